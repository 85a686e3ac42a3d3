#ifndef WEFT_TRAIN_HPP
#define WEFT_TRAIN_HPP
// Training.

#include <weft/train/collections.hpp>

#endif
