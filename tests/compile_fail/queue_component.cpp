// expect: weft: a component of a queue is a dtype
#include "tensors.hpp"

const fifo_queue<void*> q(3);
