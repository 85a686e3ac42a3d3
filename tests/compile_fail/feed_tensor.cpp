// expect: weft: a value is fed, not a tensor of the graph; use session.run to get a value first
#include "tensors.hpp"

void mistake() { running.run({{x, x}}, loss); }
