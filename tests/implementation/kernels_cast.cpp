#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/cast.hpp>
