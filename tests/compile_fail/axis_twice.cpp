// expect: weft: an axis is named twice
#include "tensors.hpp"

auto y = reduce_sum(m, axis<0, -2>);
