// expect-error
#include "tensors.hpp"

tensor<double, 1> y = x * 0.1f;
