// expect: weft: constant(...) takes a number, a string, nested braces
#include "tensors.hpp"

auto y = constant(nullptr);
