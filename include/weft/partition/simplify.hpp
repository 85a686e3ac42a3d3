#ifndef WEFT_PARTITION_SIMPLIFY_HPP
#define WEFT_PARTITION_SIMPLIFY_HPP
// Passes that find nodes a step can do without: equal nodes on one device, and identities. They change no graph; their answer says
// which output stands for which.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/placement/placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft {

/// Which outputs and nodes stand for others. An empty one changes nothing.
class substitution {
 public:
  /// The output to read instead of this one; itself when nothing stands for it.
  output resolve(const output& o) const noexcept {
    const entry* e = find(o.from);
    return e == nullptr ? o : e->keeps_index ? output{e->by.from, o.index} : e->by;
  }
  /// The node to wait for instead of this one.
  const node* resolve(const node* n) const noexcept {
    const entry* e = find(n);
    return e == nullptr ? n : e->by.from;
  }
  /// Whether another node stands for this one.
  bool replaces(const node& n) const noexcept { return find(&n) != nullptr; }
  /// How many nodes are replaced.
  std::size_t size() const noexcept { return size_; }

  /// Lets `by` stand for every output of n, output by output. `by` must come before n.
  void replace(const node& n, const node& by) { put(n, {output{&by, 0}, true}); }
  /// Lets `by` stand for the only output of n. `by` must come before n.
  void replace(const node& n, const output& by) { put(n, {by, false}); }

 private:
  struct entry {
    output by;
    bool keeps_index = false;
  };
  const entry* find(const node* n) const noexcept {
    const auto id = static_cast<std::size_t>(n->id());
    return id < entries_.size() && entries_[id].by.from != nullptr ? &entries_[id] : nullptr;
  }
  void put(const node& n, entry e) {
    const auto id = static_cast<std::size_t>(n.id());
    if (id >= entries_.size()) entries_.resize(id + 1);
    entries_[id] = e;
    ++size_;
  }
  std::vector<entry> entries_;
  std::size_t size_ = 0;
};

/// Which passes to run, and what they must leave alone.
struct simplify_options {
  /// Lets one of several equal nodes on one device stand for all.
  bool merge_equal_nodes = false;
  /// Reads the input of an Identity on the same device instead of its output.
  bool skip_identities = false;
  /// Nodes that take no part: what is fed, fetched or a target.
  std::vector<const node*> keep{};
};

/// Finds nodes that a step can do without, and what stands for them. Stateful nodes, placeholders and nodes on different devices never
/// merge; inputs of commutative ops may come in any order. Follows TensorFlow's OptimizeCSE.
substitution simplify(const graph& g, const placement& where, const simplify_options& options);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

class simplifier {
 public:
  simplifier(const graph& g, const placement& where, const simplify_options& options) : nodes_(g.nodes()), where_(where), options_(options) {}

  substitution run() {
    kept_.resize(nodes_.size(), 0);
    before_.resize(nodes_.size(), -1);
    for (const node* n : options_.keep)
      if (static_cast<std::size_t>(n->id()) < kept_.size()) kept_[static_cast<std::size_t>(n->id())] = 1;
    // In the order of creation, so that inputs are settled before the nodes that read them.
    for (const node* n : nodes_) {
      if (!where_.has(*n)) break;
      if (is_kept(*n)) continue;
      if (options_.skip_identities && is_idle(*n)) found_.replace(*n, found_.resolve(n->inputs()[0]));
      else if (options_.merge_equal_nodes && is_mergeable(*n)) merge(*n);
    }
    return std::move(found_);
  }

 private:
  bool is_kept(const node& n) const noexcept { return kept_[static_cast<std::size_t>(n.id())] != 0; }

  // Behind a Switch or inside a loop an Identity decides whether what waits for it runs.
  bool is_idle(const node& n) const {
    if (n.op() != "Identity" || !n.control_inputs().empty() || n.inputs().size() != 1) return false;
    const node& from = *n.inputs()[0].from;
    for (const char* op : {"Switch", "RefSwitch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"})
      if (from.op() == op) return false;
    return from.output_count() == 1 && !from.outputs()[0].is_ref && where_.device_of(n) == where_.device_of(*found_.resolve(&from));
  }

  // State, side effects and references make two nodes differ, whatever they look like; so does being a hole for a feed.
  static bool is_mergeable(const node& n) {
    if (n.stateful() || n.op() == "Placeholder" || n.op() == "PlaceholderV2" || n.op() == "PlaceholderWithDefault" || n.output_count() == 0) return false;
    for (const output_type& type : n.outputs())
      if (type.is_ref) return false;
    for (const output& in : n.inputs())
      if (in.from->outputs()[static_cast<std::size_t>(in.index)].is_ref) return false;
    return true;
  }

  void merge(const node& n) {
    std::vector<output> inputs = inputs_of(n);
    std::size_t key = std::hash<std::string>()(n.op()) ^ std::hash<std::string>()(where_.device_of(n)) * 31;
    for (const output& in : inputs) key = key * 1099511628211u + static_cast<std::size_t>(in.from->id()) * 31 + static_cast<std::size_t>(in.index);
    if (const tensor_value* value = n.find_attr<tensor_value>("value")) key = key * 31 + value_hash(*value);
    const auto last = last_of_.emplace(key, -1).first;
    for (int other = last->second; other >= 0; other = before_[static_cast<std::size_t>(other)])
      if (equal(n, inputs, *nodes_[static_cast<std::size_t>(other)])) return found_.replace(n, *nodes_[static_cast<std::size_t>(other)]);
    before_[static_cast<std::size_t>(n.id())] = last->second;
    last->second = n.id();
  }

  // Of the beginning only; equal values have equal hashes.
  static std::size_t value_hash(const tensor_value& v) {
    std::size_t h = static_cast<std::size_t>(v.elements());
    if (h == 0 || !v.buffer() || !v.buffer()->host()) return h;
    if (v.dtype() == dtype::string) return h ^ std::hash<std::string>()(v.data<std::string>()[0]);
    if (!is_plain(v.dtype())) return h;
    const char* bytes = static_cast<const char*>(static_cast<const void*>(v.raw_data()));
    return h ^ std::hash<std::string_view>()(std::string_view(bytes, std::min<std::size_t>(v.bytes(), 64)));
  }

  std::vector<output> inputs_of(const node& n) const {
    std::vector<output> out;
    for (const output& in : n.inputs()) out.push_back(found_.resolve(in));
    if (n.def() != nullptr && n.def()->commutative)
      std::sort(out.begin(), out.end(), [](const output& a, const output& b) { return a.from->id() != b.from->id() ? a.from->id() < b.from->id() : a.index < b.index; });
    return out;
  }

  std::vector<const node*> control_of(const node& n) const {
    std::vector<const node*> out;
    for (const node* before : n.control_inputs()) out.push_back(found_.resolve(before));
    std::sort(out.begin(), out.end(), [](const node* a, const node* b) { return a->id() < b->id(); });
    return out;
  }

  bool equal(const node& n, const std::vector<output>& inputs, const node& other) const {
    return n.op() == other.op() && where_.device_of(n) == where_.device_of(other) && inputs == inputs_of(other) && control_of(n) == control_of(other) &&
           n.attrs() == other.attrs();
  }

  const std::vector<const node*> nodes_;
  const placement& where_;
  const simplify_options& options_;
  std::vector<char> kept_;
  substitution found_;
  // Nodes with the same hash form a list: the last one by hash, and by node id the one before it.
  std::unordered_map<std::uint64_t, int> last_of_;
  std::vector<int> before_;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL substitution simplify(const graph& g, const placement& where, const simplify_options& options) {
  return detail::simplifier(g, where, options).run();
}

}  // namespace weft
#endif

#endif
