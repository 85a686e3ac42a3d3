// expect: weft: an xtensor value stands beside a tensor of the graph; write weft::constant(value)
#include "tensors.hpp"

auto y = x_value * (x * 2.f);
