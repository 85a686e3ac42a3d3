// expect: nodiscard
#include "tensors.hpp"

void mistake() { default_graph().as_default(); }
