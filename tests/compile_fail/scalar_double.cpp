// expect: weft: this number has another dtype than the tensor beside it
#include "tensors.hpp"

auto y = x * 0.1;
