#ifndef WEFT_GRADIENTS_STANDARD_HPP
#define WEFT_GRADIENTS_STANDARD_HPP
// The rules of TensorFlow's ops.

#include <weft/core/config.hpp>
#include <weft/gradients/array.hpp>
#include <weft/gradients/control.hpp>
#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/linear.hpp>
#include <weft/gradients/math.hpp>
#include <weft/gradients/nn.hpp>
#include <weft/gradients/random.hpp>
#include <weft/gradients/reduce.hpp>
#include <weft/gradients/state.hpp>

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL const gradient_registry& standard_gradients() {
  static const gradient_registry all = [] {
    gradient_registry rules;
    detail::gradient_rules::add_array_gradients(rules);
    detail::gradient_rules::add_control_gradients(rules);
    detail::gradient_rules::add_linear_gradients(rules);
    detail::gradient_rules::add_math_gradients(rules);
    detail::gradient_rules::add_nn_gradients(rules);
    detail::gradient_rules::add_random_gradients(rules);
    detail::gradient_rules::add_reduce_gradients(rules);
    detail::gradient_rules::add_state_gradients(rules);
    return rules;
  }();
  return all;
}

}  // namespace weft
#endif

#endif
