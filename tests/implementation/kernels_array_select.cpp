#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/array_select.hpp>
