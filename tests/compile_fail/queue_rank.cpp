// expect: weft: the tensor has another rank than this component of the queue
#include "tensors.hpp"

const fifo_queue<tensor<float, 2>> q(3);
const operation put = q.enqueue(constant(1.f));
