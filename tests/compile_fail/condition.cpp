// expect: weft: a tensor of the graph has no value while the graph is built
#include "tensors.hpp"

int mistake() { return d < 0. ? 1 : 2; }
