// expect-error
#include "tensors.hpp"

int mistake() { return d < 0. ? 1 : 2; }
