// expect: weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)
#include "tensors.hpp"

auto y = reduce_sum(m, axis<2>);
