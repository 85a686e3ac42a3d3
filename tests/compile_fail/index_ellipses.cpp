// expect: weft: an index holds at most one ellipsis
#include "tensors.hpp"

auto y = m(ellipsis, ellipsis);
