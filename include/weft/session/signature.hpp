#ifndef WEFT_SESSION_SIGNATURE_HPP
#define WEFT_SESSION_SIGNATURE_HPP
// What a step is asked for: which tensors are fed and fetched and which operations run. Two runs with equal signatures share one plan.

#include <weft/graph/node.hpp>

#include <vector>

namespace weft {

/// Feeds, fetches and targets of a step, in the order in which the user named them.
struct step_signature {
  std::vector<output> feeds, fetches;
  std::vector<const node*> targets;
  friend bool operator==(const step_signature& a, const step_signature& b) { return a.feeds == b.feeds && a.fetches == b.fetches && a.targets == b.targets; }
  friend bool operator!=(const step_signature& a, const step_signature& b) { return !(a == b); }
};

}  // namespace weft

#endif
