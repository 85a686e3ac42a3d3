// expect-error
#include "tensors.hpp"

void mistake() { running.make_callable(feeds(m, x), loss)(m_value); }
