// expect: weft: more indices than the tensor has dimensions
#include "tensors.hpp"

auto y = m(0, 1, 2);
