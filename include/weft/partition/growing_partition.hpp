#ifndef WEFT_PARTITION_GROWING_PARTITION_HPP
#define WEFT_PARTITION_GROWING_PARTITION_HPP
// A graph that grows, and its parts, which grow with it: what was cut once is not cut again.

#include <weft/core/config.hpp>
#include <weft/partition/partition.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#if WEFT_HAS_BODIES
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#endif

namespace weft {

/// What an update of a `growing_partition` found to do.
struct partition_update {
  /// Tasks whose part is new, has grown or is another one, in the order of the tasks.
  std::vector<std::string> changed;
  /// How many nodes were looked at to place, to walk over and to copy: at most a few for each node that is new to the step, unless the step was cut anew.
  std::size_t visited = 0;
  /// Whether the parts could not go on growing, so that the whole step was cut again. Parts that came out equal are still the earlier ones.
  bool cut_anew = false;
};

/// The parts of a graph to which nodes are added. `parts()` always equals what `partition` makes of the graph with the nodes where they are. Nodes that were placed stay on their devices; a part that nothing
/// is added to stays the same graph (`graph::same`), and one that grows keeps its nodes. It can grow while the step has no fetches, no node is needed that is older than one that was needed before, no new name looks
/// like those of a cut (`x/_send_3`), and neither receives are scheduled nor nodes merged; else the step is cut anew. Not for use by several threads at once.
class growing_partition {
 public:
  /// Places and cuts the graph as it is. The handle keeps the graph alive. Throws as `partition`.
  growing_partition(const graph& g, const cluster_spec& cluster, partition_options options = {});
  growing_partition(const graph& g, device_set devices, partition_options options = {});
  growing_partition(growing_partition&&) noexcept = default;
  growing_partition& operator=(growing_partition&&) noexcept = default;

  /// As of the last update. References into it hold until the next one.
  const partitioned_graph& parts() const noexcept { return *parts_; }
  /// Places what was added to the graph, and cuts as much of it as the step needs: of a step that runs the whole graph everything, of another one what these further fetches and targets wait for.
  /// Throws as `partition`, INVALID_ARGUMENT for a fetch or target when the whole graph is cut; nothing has changed then.
  partition_update update(const std::vector<output>& fetches = {}, const std::vector<const node*>& targets = {});

 private:
  struct state;
  std::vector<std::string> grow(const std::vector<const node*>& added);
  std::vector<std::string> cut_anew();
  std::shared_ptr<state> state_;
  std::shared_ptr<const partitioned_graph> parts_;
};

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

// Nodes that the targets wait for and the step has not, in the order of creation.
WEFT_DECL std::vector<const node*> partitioner::waited_for(const std::vector<const node*>& targets, std::size_t& visited) const {
  std::vector<const node*> out;
  std::unordered_set<int> seen;
  const auto need = [&](const node* n) {
    ++visited;
    const bool has = at(n->id()) < twins_.size() && twins_[at(n->id())] != nullptr;
    if (!has && !is_fed_placeholder(*n, fed_) && seen.insert(n->id()).second) out.push_back(n);
  };
  for (const node* n : targets) need(n);
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const output& in : out[i]->inputs())
      if (fed_.empty() || fed_.count(output_key(in)) == 0) need(in.from);
    for (const node* before : out[i]->control_inputs()) need(before);
  }
  std::sort(out.begin(), out.end(), [](const node* a, const node* b) { return a->id() < b->id(); });
  return out;
}

WEFT_DECL std::optional<std::vector<const node*>> partitioner::added_nodes(std::size_t first, const std::vector<const node*>& targets, std::size_t& visited) const {
  std::vector<const node*> fresh = graph_.state()->nodes_from(first), out;
  if (has_hidden_names(fresh)) return std::nullopt;
  if (targets.empty()) {
    for (const node* n : fresh)
      if (where_.has(*n) && !is_fed_placeholder(*n, fed_)) out.push_back(n);
  } else {
    out = waited_for(targets, visited);
    if (!out.empty() && out[0]->id() <= last_copied_) return std::nullopt;
  }
  if (has_hidden_names(out)) return std::nullopt;
  for (const node* n : out) check_loops(*n, fed_);
  return out;
}

WEFT_DECL partitioned_graph partitioner::grow(partitioned_graph earlier, const std::vector<const node*>& added) {
  std::vector<part> parts = std::move(earlier).parts();
  std::size_t next = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (next < parts.size() && parts[next].task == device_set_.tasks()[i]) parts_[i] = std::move(parts[next++]);
  transfer_table rows = std::move(earlier).transfers();
  edges_ = std::move(rows.cut_);
  feeds_ = std::move(rows.feeds_);
  copy_all(added);
  return take();
}

WEFT_DECL void partitioner::follow(const graph& own, const graph& equal) {
  const std::vector<const node*> nodes = equal.nodes();
  const auto other = [&](const node*& n) {
    if (n != nullptr && &n->owner() == own.state().get()) n = nodes[at(n->id())];
  };
  for (const node*& n : twins_) other(n);
  for (const node*& n : arrived_) other(n);
  for (auto& entry : fed_arrivals_) other(entry.second.value);
}

}  // namespace weft::detail

namespace weft {

struct growing_partition::state {
  state(const graph& g, device_set all, partition_options what) : nodes(g.state()), devices(std::move(all)), options(std::move(what)) {}
  bool whole() const noexcept { return options.fetches.empty() && options.targets.empty(); }
  bool can_grow() const noexcept {
    return options.form == partition_form::weft && options.fetches.empty() && !options.schedule_recvs && !options.merge_equal_nodes && !options.skip_identities;
  }
  const graph nodes;
  const device_set devices;
  partition_options options;
  placement where;
  partitioned_graph parts;
  // What goes on with the cut; nothing when the step can only be cut anew.
  std::unique_ptr<detail::partitioner> cut;
};

WEFT_DECL growing_partition::growing_partition(const graph& g, const cluster_spec& cluster, partition_options options)
    : growing_partition(g, detail::devices_of_cluster(cluster, options), options) {}

WEFT_DECL growing_partition::growing_partition(const graph& g, device_set devices, partition_options options) : state_(std::make_shared<state>(g, std::move(devices), std::move(options))) {
  parts_ = std::shared_ptr<const partitioned_graph>(state_, &state_->parts);
  state_->where = place(state_->nodes, state_->devices, detail::placing_for(state_->options));
  cut_anew();
}

WEFT_DECL partition_update growing_partition::update(const std::vector<output>& fetches, const std::vector<const node*>& targets) {
  state& own = *state_;
  partition_update out;
  if (own.whole() && !(fetches.empty() && targets.empty())) fail(error_code::invalid_argument, "growing_partition: the whole graph is cut, and a fetch or target would make it less; name one when you make it");

  // 1. Where the new nodes are.
  partition_options wanted = own.options;
  wanted.fetches.insert(wanted.fetches.end(), fetches.begin(), fetches.end());
  wanted.targets.insert(wanted.targets.end(), targets.begin(), targets.end());
  detail::check_step(own.nodes, wanted.feeds, fetches, targets);
  const placement before = own.where;
  placement_options placing = detail::placing_for(own.options);
  placing.earlier = &before;
  placement where = place(own.nodes, own.devices, placing);
  const bool grew = where.size() > before.size();
  if (grew) out.visited += where.looked_at();
  const bool more = own.whole() ? grew : !(fetches.empty() && targets.empty()) || (grew && detail::has_hidden_names(own.nodes.state()->nodes_from(before.size())));

  // 2. The parts: longer ones, the same ones, or others. If that fails all is as it was.
  std::swap(own.options, wanted);
  std::swap(own.where, where);
  bool growing = false;
  try {
    if (!more) {
      own.parts = partitioned_graph(std::move(own.parts).parts(), std::move(own.parts).transfers(), own.where);
      return out;
    }
    const auto added = own.cut == nullptr || !own.can_grow() ? std::nullopt : own.cut->added_nodes(before.size(), targets, out.visited);
    out.cut_anew = !added;
    growing = added.has_value();
    if (added) out.changed = grow(*added);
    else out.changed = cut_anew();
    out.visited += added ? added->size() : own.nodes.size();
  } catch (...) {
    own.options = std::move(wanted);
    own.where = std::move(where);
    if (growing) {
      own.parts = partitioned_graph();
      cut_anew();
    }
    throw;
  }
  return out;
}

WEFT_DECL std::vector<std::string> growing_partition::grow(const std::vector<const node*>& added) {
  state& own = *state_;
  std::map<std::string, std::size_t> sizes;
  for (const part& p : own.parts.parts()) sizes[p.task] = p.graph.size();
  own.parts = own.cut->grow(std::move(own.parts), added);
  std::vector<std::string> changed;
  for (const part& p : own.parts.parts())
    if (const auto it = sizes.find(p.task); it == sizes.end() || it->second != p.graph.size()) changed.push_back(p.task);
  return changed;
}

// A part that comes out equal is the one that there was.
WEFT_DECL std::vector<std::string> growing_partition::cut_anew() {
  state& own = *state_;
  std::unique_ptr<detail::partitioner> cut;
  partitioned_graph made;
  if (own.can_grow()) {
    cut = std::make_unique<detail::partitioner>(own.nodes, own.devices, own.where, own.options);
    made = cut->run();
  } else {
    made = partition(own.nodes, own.devices, own.where, own.options);
  }
  std::vector<std::string> changed;
  std::vector<part> parts = std::move(made).parts();
  std::map<std::string, const part*> earlier;
  for (const part& p : own.parts.parts()) earlier.emplace(p.task, &p);
  for (part& p : parts) {
    const auto it = earlier.find(p.task);
    if (it == earlier.end() || *it->second != p) changed.push_back(p.task);
    else {
      if (cut != nullptr) cut->follow(p.graph, it->second->graph);
      p.graph = graph(it->second->graph.state());
    }
    if (it != earlier.end()) earlier.erase(it);
  }
  for (const std::string& task : own.devices.tasks())
    if (earlier.count(task) != 0) changed.push_back(task);
  own.parts = partitioned_graph(std::move(parts), std::move(made).transfers(), own.where);
  own.cut = std::move(cut);
  return changed;
}

}  // namespace weft
#endif

#endif
