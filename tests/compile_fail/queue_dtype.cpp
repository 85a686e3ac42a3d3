// expect: weft: the tensor has another dtype than this component of the queue; convert it with weft::cast<T>(...)
#include "tensors.hpp"

const fifo_queue<std::int64_t> q(3);
const operation put = q.enqueue(x);
