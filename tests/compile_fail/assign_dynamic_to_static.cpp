// expect-error
#include "tensors.hpp"

tensor<float, 1> y = any_rank;
