#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/linear_qr.hpp>
