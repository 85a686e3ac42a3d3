// expect-error
#include "tensors.hpp"

tensor<float, 1> y = x * m;
