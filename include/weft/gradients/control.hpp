#ifndef WEFT_GRADIENTS_CONTROL_HPP
#define WEFT_GRADIENTS_CONTROL_HPP
// Gradients of identities and barriers.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#include <string>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// An output that nothing depends on has zeros, as TensorFlow, once another one has a gradient.
inline void pass_all_on(gradient_context& c) {
  for (int i = 0; i < c.input_count(); ++i) {
    if (c.has_gradient(i)) c.set(i, c.gradient_as_it_is(i));
    else if (c.wants(i) && is_trainable(c.about().output_dtype(i))) c.set(i, c.gradient(i));
  }
}
inline void prevent_gradient(gradient_context& c) {
  const auto* reason = c.find_attr<std::string>("message");
  c.fail(error_code::not_found, "the gradient is disabled here: '" + (reason != nullptr ? *reason : std::string()) + "'");
}
inline void check_numerics_gradient(gradient_context& c) {
  c.set(0, c.add("CheckNumerics", {c.gradient()}, {{"message", "Not a number (NaN) or infinity (Inf) values detected in gradient. " + c.attr<std::string>("message")}}));
}

inline void add_control_gradients(gradient_registry& rules) {
  rules.add({{"Identity", pass_on}, {"IdentityN", pass_all_on}, {"PlaceholderWithDefault", pass_on}, {"PreventGradient", prevent_gradient}, {"CheckNumerics", check_numerics_gradient}, {"Print", pass_on}});
  rules.add_none({"Assert", "StopGradient"});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
