#ifndef WEFT_PARTITION_PARTITIONED_GRAPH_HPP
#define WEFT_PARTITION_PARTITIONED_GRAPH_HPP
// A graph cut into one part per task: plain data, which prints, compares and can be looked into.

#include <weft/core/config.hpp>
#include <weft/core/device_name.hpp>
#include <weft/graph/graph.hpp>
#include <weft/graph/text.hpp>
#include <weft/partition/transfer.hpp>
#include <weft/placement/placement.hpp>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#if WEFT_HAS_BODIES
#include <weft/placement/story.hpp>
#endif

namespace weft {

namespace detail {
bool same_node(const node& a, const node& b);
}  // namespace detail

/// What one task runs: its nodes with `_Send`, `_Recv`, `_Arg` and `_Retval`, each on its device.
struct part {
  /// `/job:ps/task:0`
  std::string task;
  weft::graph graph;
  /// Names of the tensors fed to it and fetched from it (`x:0`), by the attribute `index` of `_Arg` and `_Retval`.
  std::vector<std::string> feeds, fetches;

  friend bool operator==(const part& a, const part& b);
  friend bool operator!=(const part& a, const part& b) { return !(a == b); }
};

/// Positions of a part's feeds or fetches, which it knows by name, among those of the whole step.
std::vector<std::size_t> positions_of(const std::vector<std::string>& names, const std::vector<output>& among);

/// The lines of its graph.
inline std::string to_text(const part& p) { return to_text(p.graph); }
inline std::ostream& operator<<(std::ostream& out, const part& p) { return out << to_text(p); }

/// The parts of a graph, what crosses between them, and where each node of the whole graph was placed.
class partitioned_graph {
 public:
  partitioned_graph() = default;
  partitioned_graph(std::vector<part> parts, transfer_table transfers, weft::placement where)
      : parts_(std::move(parts)), transfers_(std::move(transfers)), placement_(std::move(where)) {}

  /// One part per task that has something to run, in the order of the tasks.
  const std::vector<part>& parts() const& noexcept { return parts_; }
  /// Of a temporary, as in `for (const part& p : partition(g, cluster).parts())`, by value; so are the next ones.
  std::vector<part> parts() && { return std::move(parts_); }
  /// The part of a task, which may be named in part (`/job:ps`) or by one of its devices. Throws NOT_FOUND with the names of the parts,
  /// INVALID_ARGUMENT when several fit.
  const part& at(std::string_view device_or_task, call_site where = call_site::here()) const&;
  part at(std::string_view device_or_task, call_site where = call_site::here()) && { return static_cast<const partitioned_graph&>(*this).at(device_or_task, where); }
  /// What crosses between devices.
  const transfer_table& transfers() const& noexcept { return transfers_; }
  transfer_table transfers() && { return std::move(transfers_); }
  /// The placement of the whole graph, needed or not.
  const weft::placement& placement() const& noexcept { return placement_; }
  weft::placement placement() && { return std::move(placement_); }
  /// The story of a node of the whole graph, needed or not; see `placement::explain`.
  std::string explain(const node& n) const { return placement_.explain(n); }

  friend bool operator==(const partitioned_graph& a, const partitioned_graph& b);
  friend bool operator!=(const partitioned_graph& a, const partitioned_graph& b) { return !(a == b); }

 private:
  std::vector<part> parts_;
  transfer_table transfers_;
  weft::placement placement_;
};

/// Each part after its task's name, then the transfers.
std::string to_text(const partitioned_graph& g);

inline std::ostream& operator<<(std::ostream& out, const partitioned_graph& g) { return out << to_text(g); }

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL bool same_node(const node& a, const node& b) {
  const auto same_output = [](const output& x, const output& y) { return x.index == y.index && x.from->name() == y.from->name(); };
  const auto same_name = [](const node* x, const node* y) { return x->name() == y->name(); };
  return a.name() == b.name() && a.op() == b.op() && a.device() == b.device() && a.attrs() == b.attrs() &&
         std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(), b.inputs().end(), same_output) &&
         std::equal(a.control_inputs().begin(), a.control_inputs().end(), b.control_inputs().begin(), b.control_inputs().end(), same_name);
}

// Whether the part's task meets a name and, when it has a type or number, one of its nodes does.
WEFT_DECL bool part_meets(const part& p, const device_name& wanted) {
  device_name task = wanted;
  task.type.reset();
  task.id.reset();
  if (!matches(task, parse_device_name(p.task))) return false;
  if (!wanted.type && !wanted.id) return true;
  const auto nodes = p.graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const node* n) { return matches(wanted, parse_device_name(n->device())); });
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL const part& partitioned_graph::at(std::string_view device_or_task, call_site where) const& {
  const device_name wanted = parse_device_name(device_or_task, where);
  const part* found = nullptr;
  std::string known;
  for (const part& p : parts_) {
    known += (known.empty() ? "" : ", ") + p.task;
    if (!detail::part_meets(p, wanted)) continue;
    if (found != nullptr)
      throw error(error_code::invalid_argument, "'" + std::string(device_or_task) + "' fits the parts of " + found->task + " and " + p.task + "; name one task", where);
    found = &p;
  }
  if (found == nullptr)
    throw error(error_code::not_found, "no part for '" + std::string(device_or_task) + "'; " + (known.empty() ? "there are no parts" : "the parts are those of " + known), where);
  return *found;
}

WEFT_DECL std::string to_text(const partitioned_graph& g) {
  std::string out;
  for (const part& p : g.parts()) out += p.task + ":\n" + to_text(p);
  return out + "transfers:\n" + to_text(g.transfers());
}

WEFT_DECL bool operator==(const part& a, const part& b) {
  const auto x = a.graph.nodes(), y = b.graph.nodes();
  return a.task == b.task && a.feeds == b.feeds && a.fetches == b.fetches &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const node* n, const node* m) { return detail::same_node(*n, *m); });
}

WEFT_DECL bool operator==(const partitioned_graph& a, const partitioned_graph& b) { return a.parts_ == b.parts_ && a.transfers_ == b.transfers_; }

WEFT_DECL std::vector<std::size_t> positions_of(const std::vector<std::string>& names, const std::vector<output>& among) {
  std::vector<std::string> all;
  for (const output& o : among) all.push_back(o.from->name() + ":" + std::to_string(o.index));
  std::vector<std::size_t> out;
  for (const std::string& name : names) out.push_back(static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin()));
  return out;
}

}  // namespace weft
#endif

#endif
