#ifndef WEFT_PLACEMENT_KERNEL_SUPPORT_HPP
#define WEFT_PLACEMENT_KERNEL_SUPPORT_HPP
// Two tables that make placing cheap: device constraints and sets of device types, each stored once and merged once.

#include <weft/core/config.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/graph/node.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

std::uint64_t pair_key(int a, int b) noexcept;

// Device names met so far, by number; number 0 is the empty name.
class constraint_table {
 public:
  constraint_table() { number(device_name()); }

  const device_name& operator[](int i) const noexcept { return names_[static_cast<std::size_t>(i)]; }
  int number(const device_name& name) {
    const auto [it, fresh] = numbers_.emplace(to_text(name), static_cast<int>(names_.size()));
    if (fresh) names_.push_back(name);
    return it->second;
  }
  // The name as it stands at a node. Throws about the node when it is malformed.
  int of_text(const std::string& text, const node& about) {
    if (text.empty()) return 0;
    if (&text == last_text_) return last_;
    const auto it = texts_.find(text);
    if (it != texts_.end()) {
      last_text_ = &text;
      return last_ = it->second;
    }
    std::string why;
    const auto name = try_parse_device_name(text, &why);
    if (!name) about.fail_about(error_code::invalid_argument, why);
    return texts_[text] = number(*name);
  }
  // The number of the name that meets both constraints; nothing, and the reason in `why`, when they contradict each other.
  std::optional<int> merge(int a, int b, bool soft, std::string* why = nullptr) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    auto& known = soft ? soft_ : hard_;
    const auto it = known.find(pair_key(a, b));
    if (it != known.end() && it->second >= 0) return it->second;
    if (it != known.end() && why == nullptr) return std::nullopt;
    try {
      return known[pair_key(a, b)] = number(soft ? merge_names_soft((*this)[a], (*this)[b]) : merge_names((*this)[a], (*this)[b]));
    } catch (const error& e) {
      if (why != nullptr) *why = e.message();
      known[pair_key(a, b)] = -1;
      return std::nullopt;
    }
  }
  // The first constraint with what the second sets put over it.
  int override_by(int a, int b) { return b == 0 ? a : number(merge_override((*this)[a], (*this)[b])); }

 private:
  const std::string* last_text_ = nullptr;  // nodes of a graph that ask for one device share its text
  int last_ = 0;
  std::deque<device_name> names_;
  std::unordered_map<std::string, int> numbers_, texts_;
  std::unordered_map<std::uint64_t, int> hard_, soft_;  // -1: they contradict each other
};

// For one task's catalogue: the device types that a node, or a group of nodes, can run on, best first. `all` stands for every type.
struct supported_types {
  bool all = false;
  /// (type, priority)
  std::vector<std::pair<std::string, int>> types;

  friend bool operator==(const supported_types& a, const supported_types& b) { return a.all == b.all && a.types == b.types; }
  const int* priority_of(const std::string& type) const noexcept {
    static const int none = 0;
    if (all) return &none;
    for (const auto& entry : types)
      if (entry.first == type) return &entry.second;
    return nullptr;
  }
};

// Sets of supported types by number, one `supported_types` per distinct catalogue of the cluster; number 0 supports everything.
class support_table {
 public:
  explicit support_table(const device_set& devices);

  // What the node's kernels support. Throws about the node when no task has a kernel for it.
  int of_node(const node& n);
  // What both support; nothing when there is no such type. Priorities that contradict each other are dropped, as in TensorFlow.
  std::optional<int> merge(int a, int b);
  // The priority of a device for this set; nullptr when it has no kernel.
  const int* priority(int set, std::size_t device) const noexcept {
    return sets_[static_cast<std::size_t>(set)][catalogue_of_device_[device]].priority_of(devices_.devices()[device].type);
  }
  // `CPU, GPU`: the types in this set, for messages.
  std::string text(int set) const;
  std::size_t size() const noexcept { return sets_.size(); }

 private:
  using support = std::vector<supported_types>;
  int number(support s);
  int of_catalogues(const node& n);
  std::string registered(const node& n) const;
  supported_types merge(const supported_types& a, const supported_types& b) const;

  const device_set& devices_;
  std::vector<const kernel_catalogue*> catalogues_;
  std::vector<std::size_t> catalogue_of_device_;
  std::vector<std::string> types_;
  std::deque<support> sets_;
  std::unordered_map<std::string, int> numbers_, of_op_;
  std::unordered_map<std::uint64_t, int> merged_;
  std::string key_;
};


WEFT_DECL std::uint64_t pair_key(int a, int b) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
}

WEFT_DECL support_table::support_table(const device_set& devices) : devices_(devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const kernel_catalogue* catalogue = devices.catalogue_of(task_text(devices.names()[i])).get();
    auto it = std::find(catalogues_.begin(), catalogues_.end(), catalogue);
    if (it == catalogues_.end()) it = catalogues_.insert(catalogues_.end(), catalogue);
    catalogue_of_device_.push_back(static_cast<std::size_t>(it - catalogues_.begin()));
    const std::string& type = devices.devices()[i].type;
    if (std::find(types_.begin(), types_.end(), type) == types_.end()) types_.push_back(type);
  }
  std::sort(types_.begin(), types_.end(), [&](const std::string& a, const std::string& b) { return devices.rank_of(a) < devices.rank_of(b); });
  number(support(catalogues_.size(), supported_types{true, {}}));
}

WEFT_DECL int support_table::number(support s) {
  std::string key;
  for (const supported_types& one : s) {
    key += one.all ? "*;" : ";";
    for (const auto& [type, priority] : one.types) key += type + "=" + std::to_string(priority) + ",";
  }
  const auto [it, fresh] = numbers_.emplace(std::move(key), static_cast<int>(sets_.size()));
  if (fresh) sets_.push_back(std::move(s));
  return it->second;
}

// Catalogues are asked once for each op with each combination of dtypes, which is all that they look at.
WEFT_DECL int support_table::of_node(const node& n) {
  if (std::all_of(catalogues_.begin(), catalogues_.end(), [](const kernel_catalogue* c) { return c == nullptr; })) return 0;
  key_ = n.op();
  for (const auto& [name, value] : n.attrs())
    if (const dtype* type = value.get<dtype>()) {
      key_ += ' ';
      key_ += name;
      key_ += static_cast<char>(*type);
    }
  if (const auto known = of_op_.find(key_); known != of_op_.end()) return known->second;
  const std::string key = key_;
  return of_op_[key] = of_catalogues(n);
}

WEFT_DECL int support_table::of_catalogues(const node& n) {
  bool any = false;
  support s;
  for (const kernel_catalogue* catalogue : catalogues_) {
    supported_types here;
    here.all = catalogue == nullptr;
    if (catalogue != nullptr) {
      for (const std::string& type : types_)
        if (const kernel_entry* kernel = catalogue->find(n.op(), type, n.attrs())) here.types.emplace_back(type, kernel->priority);
      std::stable_sort(here.types.begin(), here.types.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    }
    any = any || here.all || !here.types.empty();
    s.push_back(std::move(here));
  }
  if (!any) n.fail_about(error_code::invalid_argument, registered(n));
  return number(std::move(s));
}

WEFT_DECL std::string support_table::registered(const node& n) const {
  std::string attrs, kernels;
  for (const auto& [name, value] : n.attrs())
    if (value.get<dtype>() != nullptr) attrs += (attrs.empty() ? " with " : ", ") + name + "=" + to_text(value);
  for (const kernel_catalogue* catalogue : catalogues_)
    for (const kernel_entry& entry : catalogue->kernels_of(n.op())) {
      std::string line = entry.device_type;
      for (const auto& [name, allowed] : entry.constraints) line += " with " + name + " in " + to_text(attr_value(allowed));
      if (kernels.find(line) == std::string::npos) kernels += (kernels.empty() ? "" : "; ") + line;
    }
  return "no device has a kernel for op '" + n.op() + "'" + attrs + "; " +
         (kernels.empty() ? "no kernels of it are registered" : "its registered kernels are: " + kernels);
}

WEFT_DECL supported_types support_table::merge(const supported_types& a, const supported_types& b) const {
  if (a.all) return b;
  if (b.all) return a;
  // 1. What both have, each with its own priorities.
  supported_types ours, theirs;
  for (const auto& entry : a.types)
    if (const int* other = b.priority_of(entry.first)) {
      ours.types.push_back(entry);
      theirs.types.emplace_back(entry.first, *other);
    }
  // 2. If only one of them has a preference it counts; if both have and differ, neither does.
  const auto prefers = [](const supported_types& s) {
    for (const auto& entry : s.types)
      if (entry.second != s.types.front().second) return true;
    return false;
  };
  if (!prefers(theirs)) return ours;
  if (!prefers(ours)) return theirs;
  std::stable_sort(theirs.types.begin(), theirs.types.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  for (std::size_t i = 0; i < ours.types.size(); ++i)
    if (ours.types[i].first != theirs.types[i].first) {
      for (auto& entry : ours.types) entry.second = 0;
      return ours;
    }
  return ours;
}

WEFT_DECL std::optional<int> support_table::merge(int a, int b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (const auto it = merged_.find(pair_key(a, b)); it != merged_.end()) return it->second;
  support s;
  bool any = false;
  for (std::size_t i = 0; i < catalogues_.size(); ++i) {
    s.push_back(merge(sets_[static_cast<std::size_t>(a)][i], sets_[static_cast<std::size_t>(b)][i]));
    any = any || s.back().all || !s.back().types.empty();
  }
  if (!any) return std::nullopt;
  return merged_[pair_key(a, b)] = number(std::move(s));
}

WEFT_DECL std::string support_table::text(int set) const {
  std::string out;
  for (const std::string& type : types_)
    for (const supported_types& one : sets_[static_cast<std::size_t>(set)])
      if (one.priority_of(type) != nullptr) {
        out += (out.empty() ? "" : ", ") + type;
        break;
      }
  return out.empty() ? "none" : out;
}

}  // namespace weft::detail
#endif

#endif
