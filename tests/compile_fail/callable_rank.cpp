// expect: weft: the value fed has another rank than the tensor it is fed to
#include "tensors.hpp"

void mistake() { running.make_callable(feeds(m, x), loss)(x_value, x_value); }
