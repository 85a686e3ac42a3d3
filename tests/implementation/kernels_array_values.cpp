#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/array_values.hpp>
