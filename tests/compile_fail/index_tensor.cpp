// expect: weft: a tensor that stands for an index is an integer of rank 0
#include "tensors.hpp"

auto y = m(m);
