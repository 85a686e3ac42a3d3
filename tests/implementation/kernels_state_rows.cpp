#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/state_rows.hpp>
