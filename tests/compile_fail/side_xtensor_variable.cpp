// expect: weft: an xtensor value stands beside a tensor of the graph; write weft::constant(value)
#include "tensors.hpp"

auto y = w * x_value;
