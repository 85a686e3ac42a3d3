// expect-error
#include "tensors.hpp"

void mistake() { session.make_callable(feeds(m, x), loss)(m_value); }
