// expect-error
#include "tensors.hpp"

void mistake() { default_graph().as_default(); }
