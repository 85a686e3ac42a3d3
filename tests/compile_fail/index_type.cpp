// expect: weft: an index is an integer, slice(...), newaxis, ellipsis, all, or an integer tensor of rank 0
#include "tensors.hpp"

auto y = m(1.5);
