// expect: weft: matmul needs two tensors of rank 2; use batch_matmul for more dimensions and expand a vector with x(newaxis, all)
#include "tensors.hpp"

auto y = matmul(m, x);
