// expect-error
#include "tensors.hpp"

void mistake() { with_device("/job:ps"); }
