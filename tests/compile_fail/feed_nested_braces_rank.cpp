// expect: weft: the braces fed have another rank than the tensor they are fed to
#include "tensors.hpp"

void mistake() { running.run({{x, {{1.f, 2.f}}}}, loss); }
