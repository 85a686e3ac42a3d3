// The one file that holds weft's heavy parts when the others are compiled with WEFT_SEPARATE_COMPILATION.
#define WEFT_IMPLEMENTATION
#include <weft/weft.hpp>
