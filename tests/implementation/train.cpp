// Training.
#define WEFT_IMPLEMENTATION_TRAIN
#include <weft/train.hpp>
