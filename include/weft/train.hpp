#ifndef WEFT_TRAIN_HPP
#define WEFT_TRAIN_HPP
// Training.

#endif
