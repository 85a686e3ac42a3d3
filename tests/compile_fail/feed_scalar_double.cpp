// expect: weft: the value fed has another dtype than the tensor it is fed to
#include "tensors.hpp"

void mistake() { running.run({{loss, 0.1}}, x); }
