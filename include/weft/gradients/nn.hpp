#ifndef WEFT_GRADIENTS_NN_HPP
#define WEFT_GRADIENTS_NN_HPP
// Gradients of the ops of neural networks.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail {

inline void add_nn_gradients(gradient_registry&) {}

}  // namespace weft::detail
#endif

#endif
