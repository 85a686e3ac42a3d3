// expect: weft: the shape has another number of dimensions than the rank of placeholder<T, rank>
#include "tensors.hpp"

auto y = placeholder<float, 2>({784});
