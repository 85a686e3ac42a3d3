// expect: weft: the braces fed have another rank than the tensor they are fed to
#include "tensors.hpp"

void mistake() { session.run({{m, {1.f, 2.f}}}, loss); }
