#ifndef WEFT_SIMULATE_HPP
#define WEFT_SIMULATE_HPP
// Predictions of how long steps and training would take on clusters that need not exist. Needs nothing but the standard library.

#include <weft/simulate/cost_model.hpp>
#include <weft/simulate/cost_placer.hpp>
#include <weft/simulate/step.hpp>
#include <weft/simulate/training.hpp>

#endif
