#ifndef WEFT_PLACEMENT_PLACEMENT_HPP
#define WEFT_PLACEMENT_PLACEMENT_HPP
// Where each node of a graph runs, and why. Plain data.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/placement/placed_rows.hpp>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace weft {

class placer;
namespace detail {
struct placement_record;
bool same_graph(const placement_record& record, const graph_state& g) noexcept;
}  // namespace detail

/// What decides between devices that suit a node equally well.
enum class placement_order {
  /// The session's own task first, then the full names in lexicographic order.
  session_task,
  /// Only the full names in lexicographic order, as TensorFlow 1.
  tensorflow
};

/// Where one node runs, and why in a few words.
struct placed_node {
  /// Short complete name: `/job:ps/task:0/device:CPU:0`.
  std::string device;
  /// `pinned at train.cpp:42`, `with its variable 'w'`, `default device`, ...
  std::string reason;

  friend bool operator==(const placed_node& a, const placed_node& b) { return a.device == b.device && a.reason == b.reason; }
  friend bool operator!=(const placed_node& a, const placed_node& b) { return !(a == b); }
};

inline std::ostream& operator<<(std::ostream& out, const placed_node& n) { return out << n.device << " (" << n.reason << ")"; }

/// The placement of a graph's nodes, by node id. Made by `place` it also remembers how it came about, for `explain`; that is no part of what is compared.
class placement {
 public:
  placement() = default;
  explicit placement(const std::vector<placed_node>& nodes);
  /// An earlier placement and the nodes that were added to its graph since, in numbers. Shares what the earlier one knows.
  placement(const placement& earlier, std::shared_ptr<const detail::placed_words> words, std::vector<detail::placed_row> added, std::shared_ptr<const detail::placement_record> record)
      : blocks_(detail::add_block(earlier.blocks_, std::move(words), std::move(added))), record_(std::move(record)) {}

  /// How many nodes are placed; nodes added to the graph later are not.
  std::size_t size() const noexcept { return blocks_ == nullptr ? 0 : blocks_->first + blocks_->rows.size(); }
  /// Whether the node was in the graph when it was placed.
  bool has(const node& n) const noexcept { return static_cast<std::size_t>(n.id()) < size(); }
  /// The node's device, short complete name. Throws FAILED_PRECONDITION for a node added later, INVALID_ARGUMENT for one of another graph.
  const std::string& device_of(const node& n) const { return device_at(checked(n)); }
  /// Why it is there. Throws as `device_of`.
  std::string reason_of(const node& n) const { return (*this)[checked(n)].reason; }
  /// The whole story: what the node asked for, which nodes share its device and whose request counts, which devices were open, which were left out and why, what decided. One
  /// line each. Throws as `device_of`.
  std::string explain(const node& n) const;
  /// Where the node of this id is, and why. id < size().
  placed_node operator[](std::size_t id) const {
    const detail::placed_block& block = block_of(id);
    const detail::placed_row& row = block.rows[id - block.first];
    return {block.words->devices[static_cast<std::size_t>(row.device)], block.words->text_of(row.reason)};
  }
  /// Its device alone.
  const std::string& device_at(std::size_t id) const noexcept {
    const detail::placed_block& block = block_of(id);
    return block.words->devices[static_cast<std::size_t>(block.rows[id - block.first].device)];
  }
  /// Whether it can be a placement of this graph: one that `place` has made is of no other.
  bool is_of(const detail::graph_state& g) const noexcept { return record_ == nullptr || detail::same_graph(*record_, g); }
  /// How many nodes `place` looked at for it: all, or those that were added since an earlier placement with their neighbours. 0 when it was not made by `place`.
  std::size_t looked_at() const noexcept;
  /// What it remembers of how it came about; nullptr when it was not made by `place`.
  const std::shared_ptr<const detail::placement_record>& record() const noexcept { return record_; }

  friend bool operator==(const placement& a, const placement& b);
  friend bool operator!=(const placement& a, const placement& b) { return !(a == b); }

 private:
  std::size_t checked(const node& n) const {
    if (!is_of(n.owner())) n.fail_about(error_code::invalid_argument, "belongs to another graph than the one that was placed");
    if (!has(n)) n.fail_about(error_code::failed_precondition, "was added after the graph was placed; place the graph again");
    return static_cast<std::size_t>(n.id());
  }
  const detail::placed_block& block_of(std::size_t id) const noexcept {
    const detail::placed_block* block = blocks_.get();
    while (id < block->first) block = block->before.get();
    return *block;
  }
  // Never changes: copies share it.
  std::shared_ptr<const detail::placed_block> blocks_;
  std::shared_ptr<const detail::placement_record> record_;
};

/// What a placement depends on besides the graph and the devices.
struct placement_options {
  /// Task of nodes that ask for none: `/job:work/task:1`. Empty means the task of the first device.
  std::string default_task{};
  /// Lets a node whose device type or number does not exist, or has no kernel for it, go to another device of the same task or job.
  bool allow_soft_placement = false;
  placement_order order = placement_order::session_task;
  /// Devices that are fixed already, by node id; "" or missing means free.
  std::vector<std::string> assigned{};
  /// An earlier placement of the graph, before nodes were added: its nodes stay where they are, for the same reasons. Without a placer only the added nodes are looked at, and those that they share
  /// a device with.
  const placement* earlier = nullptr;
  /// What chooses among the devices that requests, colocation, resources and kernels leave open; TensorFlow's rules when empty.
  std::shared_ptr<const weft::placer> placer{};
  /// What has left tasks of the cluster out of the devices, for messages: `session_options::device_filters`. Empty: nothing has.
  std::string filtered_by{};
};

/// Where a node was placed and why: `y (Mul): /job:work/task:1/device:CPU:0 (pinned at train.cpp:42)`.
std::string to_text(const placed_node& where, const node& n);

/// One such line per node, as `log_device_placement` prints them.
std::string to_text(const placement& where, const graph& g);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL placement::placement(const std::vector<placed_node>& nodes) {
  detail::placed_words_in_the_making words(nullptr);
  std::vector<detail::placed_row> rows;
  rows.reserve(nodes.size());
  for (const placed_node& n : nodes) rows.push_back({words.device(n.device), words.text(n.reason)});
  blocks_ = detail::add_block(nullptr, words.take(), std::move(rows));
}

WEFT_DECL std::string to_text(const placed_node& where, const node& n) { return n.name() + " (" + n.op() + "): " + where.device + " (" + where.reason + ")"; }

WEFT_DECL std::string to_text(const placement& where, const graph& g) {
  std::string out;
  for (const node* n : g.nodes())
    if (where.has(*n)) out += to_text(where[static_cast<std::size_t>(n->id())], *n) + "\n";
  return out;
}

WEFT_DECL bool operator==(const placement& a, const placement& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; a.blocks_ != b.blocks_ && i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

}  // namespace weft
#endif

#endif
