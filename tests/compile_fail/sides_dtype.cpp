// expect: weft: the two sides of an operator have different dtypes; convert one with weft::cast<T>(...)
#include "tensors.hpp"

auto y = x * d;
