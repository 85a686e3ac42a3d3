// expect: nodiscard
#include "tensors.hpp"

void mistake() { with_device("/job:ps"); }
