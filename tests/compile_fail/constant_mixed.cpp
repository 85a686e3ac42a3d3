// expect-error
#include "tensors.hpp"

auto y = constant({1, 2.5});
