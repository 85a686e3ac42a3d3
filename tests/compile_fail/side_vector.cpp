// expect-error
#include "tensors.hpp"

auto y = x + std::vector<float>{1.f};
