#ifndef WEFT_GRAPH_OP_REGISTRY_HPP
#define WEFT_GRAPH_OP_REGISTRY_HPP
// Op definitions by name: a value that a user copies and extends with own ops.

#include <weft/graph/op_def.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// A set of op definitions. Copies share the definitions; a definition never changes.
class op_registry {
 public:
  /// Adds a definition. Throws ALREADY_EXISTS when the name is taken.
  op_registry& add(op_def def);
  /// Adds the ops of a row, or of a table of rows. Throws as above, and INVALID_ARGUMENT when a row cannot be read.
  op_registry& add(const op_row& row);
  template <std::size_t N> op_registry& add(const op_row (&rows)[N]) {
    for (const op_row& row : rows) add(row);
    return *this;
  }
  /// The definition, or nullptr. It lives as long as any copy of this registry.
  std::shared_ptr<const op_def> find(std::string_view name) const;
  /// Every definition, in the order of the names.
  std::vector<std::shared_ptr<const op_def>> all() const;
  std::size_t size() const noexcept { return ops_ == nullptr ? 0 : ops_->size(); }
  /// Whether both have the very same definitions, since one is a copy of the other.
  bool shares(const op_registry& other) const noexcept { return ops_ == other.ops_; }

 private:
  using table = std::map<std::string, std::shared_ptr<const op_def>, std::less<>>;
  // Never changes while another registry has it too.
  std::shared_ptr<table> ops_;
};

/// TensorFlow's ops that weft knows. Defined in <weft/ops/standard.hpp>.
const op_registry& standard_ops();

#if WEFT_HAS_BODIES
WEFT_DECL op_registry& op_registry::add(op_def def) {
  std::shared_ptr<const op_def> shared(new op_def(std::move(def)));
  const std::string& name = shared->name;
  if (ops_ == nullptr) ops_.reset(new table());
  else if (ops_.use_count() != 1) ops_.reset(new table(*ops_));
  if (!ops_->emplace(name, shared).second) fail(error_code::already_exists, "op '" + name + "' is already defined");
  return *this;
}

WEFT_DECL op_registry& op_registry::add(const op_row& row) {
  using reader = detail::op_reader;
  const std::string_view text = row.signature;
  const auto open = text.find('('), arrow = text.find("->"), close = text.rfind(')', arrow);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) fail(error_code::invalid_argument, "cannot read the op definition '" + std::string(text) + "'");
  for (const std::string_view name : reader::split(text.substr(0, open), ' ')) {
    op made(name);
    for (const auto arg : reader::split(text.substr(open + 1, close - open - 1))) made.input(arg);
    if (arrow != std::string_view::npos)
      for (const auto arg : reader::split(text.substr(arrow + 2))) made.output(arg);
    for (const auto attr : reader::split(row.attrs, ';')) made.attr(attr);
    if (row.flags == op_flags::stateful) made.stateful();
    if (row.flags == op_flags::commutative) made.commutative();
    add(made.shapes(row.shapes));
  }
  return *this;
}

WEFT_DECL std::shared_ptr<const op_def> op_registry::find(std::string_view name) const {
  if (ops_ == nullptr) return nullptr;
  const auto it = ops_->find(name);
  return it == ops_->end() ? nullptr : it->second;
}

WEFT_DECL std::vector<std::shared_ptr<const op_def>> op_registry::all() const {
  std::vector<std::shared_ptr<const op_def>> out;
  if (ops_ == nullptr) return out;
  for (const auto& entry : *ops_) out.push_back(entry.second);
  return out;
}
#endif

}  // namespace weft

#endif
