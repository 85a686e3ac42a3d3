#ifndef WEFT_GRAPH_KERNEL_CATALOGUE_HPP
#define WEFT_GRAPH_KERNEL_CATALOGUE_HPP
// Which kernels exist, as plain data: what placement needs to know of a task without seeing its kernels.

#include <weft/core/config.hpp>
#include <weft/graph/attr.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// One kernel: it runs `op` on devices of `device_type` for nodes whose type attributes are allowed.
struct kernel_entry {
  std::string op, device_type;
  /// Type attribute -> dtypes it may have; an attribute not named may be anything.
  std::map<std::string, std::vector<dtype>> constraints;
  /// The highest priority wins where a node could go to several device types.
  int priority = 0;

  friend bool operator==(const kernel_entry& a, const kernel_entry& b);
};

/// The kernels of one task: a value, sent in its handshake.
class kernel_catalogue {
 public:
  void add(kernel_entry entry);
  /// The kernels of an op in the order they were added; empty when there is none.
  const std::vector<kernel_entry>& kernels_of(std::string_view op) const;
  /// The best kernel for an op with these attributes on this type of device, or nullptr.
  const kernel_entry* find(std::string_view op, std::string_view device_type, const attr_map& attrs) const;
  /// Every entry by op name.
  const std::map<std::string, std::vector<kernel_entry>, std::less<>>& entries() const noexcept { return entries_; }
  bool empty() const noexcept { return entries_.empty(); }

  friend bool operator==(const kernel_catalogue& a, const kernel_catalogue& b);
  friend bool operator!=(const kernel_catalogue& a, const kernel_catalogue& b) { return !(a == b); }

 private:
  std::map<std::string, std::vector<kernel_entry>, std::less<>> entries_;
};

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

namespace detail {
WEFT_DECL bool fits(const kernel_entry& entry, const attr_map& attrs) {
  for (const auto& [name, allowed] : entry.constraints) {
    const attr_value* value = attrs.get(name);
    const dtype* type = value == nullptr ? nullptr : value->get<dtype>();
    if (type == nullptr || std::find(allowed.begin(), allowed.end(), *type) == allowed.end()) return false;
  }
  return true;
}
}  // namespace detail

WEFT_DECL bool operator==(const kernel_entry& a, const kernel_entry& b) {
  return a.op == b.op && a.device_type == b.device_type && a.constraints == b.constraints && a.priority == b.priority;
}
WEFT_DECL bool operator==(const kernel_catalogue& a, const kernel_catalogue& b) { return a.entries_ == b.entries_; }

WEFT_DECL void kernel_catalogue::add(kernel_entry entry) { entries_[entry.op].push_back(std::move(entry)); }

WEFT_DECL const std::vector<kernel_entry>& kernel_catalogue::kernels_of(std::string_view op) const {
  static const std::vector<kernel_entry> none;
  const auto it = entries_.find(op);
  return it == entries_.end() ? none : it->second;
}

WEFT_DECL const kernel_entry* kernel_catalogue::find(std::string_view op, std::string_view device_type, const attr_map& attrs) const {
  const kernel_entry* best = nullptr;
  for (const auto& entry : kernels_of(op))
    if (entry.device_type == device_type && detail::fits(entry, attrs) && (best == nullptr || entry.priority > best->priority)) best = &entry;
  return best;
}

}  // namespace weft
#endif

#endif
