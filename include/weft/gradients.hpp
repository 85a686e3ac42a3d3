#ifndef WEFT_GRADIENTS_HPP
#define WEFT_GRADIENTS_HPP
// Derivatives of graphs: `gradients`, `custom_gradient`, and the registry of rules.

#include <weft/gradients/custom_gradient.hpp>
#include <weft/gradients/engine.hpp>
#include <weft/gradients/gradient_context.hpp>
#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/gradients.hpp>
#include <weft/gradients/standard.hpp>

#endif
