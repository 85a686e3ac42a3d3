#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/queue.hpp>
#include <weft/kernels/step_barrier.hpp>
