// expect: weft: the value fed has another rank than the tensor it is fed to
#include "tensors.hpp"

void mistake() { running.run({{x, m_value}, {m, m_value}}, loss); }
