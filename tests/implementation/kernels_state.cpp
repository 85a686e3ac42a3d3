// All of these hold the loops of elementwise ops.
#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/accumulator.hpp>
#include <weft/kernels/fused.hpp>
#include <weft/kernels/state.hpp>
#include <weft/kernels/state_rows.hpp>
#include <weft/kernels/training.hpp>
