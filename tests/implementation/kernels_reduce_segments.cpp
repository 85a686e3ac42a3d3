#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/reduce_segments.hpp>
