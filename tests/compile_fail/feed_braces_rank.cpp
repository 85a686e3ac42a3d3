// expect: weft: the braces fed have another rank than the tensor they are fed to
#include "tensors.hpp"

void mistake() { running.run({{m, {1.f, 2.f}}}, loss); }
