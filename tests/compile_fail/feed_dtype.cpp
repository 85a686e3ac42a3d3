// expect: weft: the value fed has another dtype than the tensor it is fed to
#include "tensors.hpp"

void mistake() { running.run({{m, double_value}}, loss); }
