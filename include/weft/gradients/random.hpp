#ifndef WEFT_GRADIENTS_RANDOM_HPP
#define WEFT_GRADIENTS_RANDOM_HPP
// Random numbers do not depend on their inputs in a way that can be differentiated.

#include <weft/gradients/gradient_registry.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

inline void add_random_gradients(gradient_registry& rules) {
  rules.add_none({"Multinomial", "RandomShuffle", "RandomStandardNormal", "RandomUniform", "StatelessRandomNormal", "StatelessRandomUniform", "StatelessRandomUniformFullInt",
                  "StatelessRandomUniformInt", "StatelessTruncatedNormal", "TruncatedNormal"});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
