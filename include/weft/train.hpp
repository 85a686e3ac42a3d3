#ifndef WEFT_TRAIN_HPP
#define WEFT_TRAIN_HPP
// Training.

#include <weft/train/collections.hpp>
#include <weft/train/hyper_parameter.hpp>
#include <weft/train/initializers.hpp>
#include <weft/train/optimizer.hpp>
#include <weft/train/optimizers.hpp>

#endif
