// expect: nodiscard
#include "tensors.hpp"

void mistake() { name_scope("a"); }
