// expect: weft: this number has another dtype than the tensor beside it
#include "tensors.hpp"

auto y = 0.1 * x;
