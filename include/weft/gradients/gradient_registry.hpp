#ifndef WEFT_GRADIENTS_GRADIENT_REGISTRY_HPP
#define WEFT_GRADIENTS_GRADIENT_REGISTRY_HPP
// Which rule differentiates which op: a value that a user copies and extends with rules for own ops.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class gradient_context;
/// Builds the gradients of a node's inputs from the gradients of its outputs, and hands them to `gradient_context::set`; inputs that are not set
/// have none. A rule that sets nothing declares that the op cannot be differentiated and that a path through it counts for nothing.
using gradient_function = void (*)(gradient_context&);

/// An op and its rule.
struct gradient_rule {
  const char* op;
  gradient_function function;
};

/// A set of rules by the name of the op. An op without a rule is an error where a gradient reaches it.
class gradient_registry {
 public:
  /// Adds a rule. Throws ALREADY_EXISTS when the op has one.
  gradient_registry& add(const std::string& op, gradient_function rule);
  gradient_registry& add(std::initializer_list<gradient_rule> rules) {
    for (const gradient_rule& r : rules) add(r.op, r.function);
    return *this;
  }
  /// Adds a rule, in place of one that the op may have.
  gradient_registry& replace(const std::string& op, gradient_function rule);
  /// Declares that paths through these ops count for nothing (TensorFlow's NotDifferentiable).
  gradient_registry& add_none(std::initializer_list<const char*> ops) {
    for (const char* op : ops) add(op, nullptr);
    return *this;
  }

  /// Whether the op has a rule or is declared to have no gradient.
  bool has(std::string_view op) const { return rules_.find(op) != rules_.end(); }
  /// The rule; nullptr for an op that has none or is declared to have no gradient.
  gradient_function find(std::string_view op) const {
    const auto it = rules_.find(op);
    return it == rules_.end() ? nullptr : it->second;
  }
  /// The names of the ops, in their order; those that are declared to have no gradient included.
  std::vector<std::string> ops() const;

 private:
  std::map<std::string, gradient_function, std::less<>> rules_;
};

/// The rules of TensorFlow's ops. Thread-safe.
const gradient_registry& standard_gradients();

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL gradient_registry& gradient_registry::add(const std::string& op, gradient_function rule) {
  if (!rules_.emplace(op, rule).second) fail(error_code::already_exists, "op '" + op + "' already has a gradient; use 'replace' to give it another");
  return *this;
}

WEFT_DECL gradient_registry& gradient_registry::replace(const std::string& op, gradient_function rule) {
  rules_[op] = rule;
  return *this;
}

WEFT_DECL std::vector<std::string> gradient_registry::ops() const {
  std::vector<std::string> out;
  for (const auto& entry : rules_) out.push_back(entry.first);
  return out;
}

}  // namespace weft
#endif

#endif
