#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/queue.hpp>
