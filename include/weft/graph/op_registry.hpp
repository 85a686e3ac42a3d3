#ifndef WEFT_GRAPH_OP_REGISTRY_HPP
#define WEFT_GRAPH_OP_REGISTRY_HPP
// Op definitions by name: a value that a user copies and extends with own ops.

#include <weft/graph/op_def.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A set of op definitions. Copies share the definitions; a definition never changes.
class op_registry {
 public:
  /// Adds a definition. Throws ALREADY_EXISTS when the name is taken.
  op_registry& add(op_def def) {
    std::shared_ptr<const op_def> shared(new op_def(std::move(def)));
    const std::string& name = shared->name;
    if (!ops_.emplace(name, shared).second) fail(error_code::already_exists, "op '" + name + "' is already defined");
    return *this;
  }
  /// The definition, or nullptr. It lives as long as any copy of this registry.
  std::shared_ptr<const op_def> find(std::string_view name) const {
    const auto it = ops_.find(name);
    return it == ops_.end() ? nullptr : it->second;
  }
  /// Every definition, in the order of the names.
  std::vector<std::shared_ptr<const op_def>> all() const {
    std::vector<std::shared_ptr<const op_def>> out;
    for (const auto& entry : ops_) out.push_back(entry.second);
    return out;
  }
  std::size_t size() const noexcept { return ops_.size(); }

 private:
  std::map<std::string, std::shared_ptr<const op_def>, std::less<>> ops_;
};

/// TensorFlow's ops that weft knows. Defined in <weft/ops/standard.hpp>.
const op_registry& standard_ops();

}  // namespace weft

#endif
