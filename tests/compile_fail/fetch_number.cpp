// expect: weft: only tensors, variables and operations can be fetched
#include "tensors.hpp"

void mistake() { running.run({{m, m_value}}, 1); }
