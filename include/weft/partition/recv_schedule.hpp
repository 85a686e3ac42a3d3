#ifndef WEFT_PARTITION_RECV_SCHEDULE_HPP
#define WEFT_PARTITION_RECV_SCHEDULE_HPP
// Receives that wait until shortly before their value is needed, as TensorFlow's `enable_recv_scheduling`: less memory is held, and dear values do not get in the way of urgent ones.

#include <weft/core/config.hpp>
#include <weft/partition/partition_options.hpp>
#include <weft/partition/partitioned_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

// Nodes of all parts by one number. A node's start is the latest one that delays nothing, in microseconds of `node_seconds`, or in nodes when there is none. The time of a device is cut into 100 epochs;
// a receive of epoch e waits for a trigger, which waits for the last node of the device that starts before epoch e - 6. Starts rise along every edge, so what is added closes no circle.
class recv_scheduler {
 public:
  recv_scheduler(std::vector<part>& parts, const partition_options& options) : parts_(parts), options_(options) {}

  void run() {
    read();
    find_starts();
    std::size_t first = 0;
    for (part& p : parts_) {
      const std::size_t count = p.graph.size();
      if (schedule(first, first + count)) rebuild(p, first, first + count);
      first += count;
    }
  }

 private:
  static constexpr std::int64_t epochs = 100, prefetch = 6;
  struct trigger {
    std::size_t after = 0;  // the node that it waits for
    std::int64_t epoch = 0;
    std::string device;
    const node* made = nullptr;
  };

  void read();
  void find_starts();
  bool schedule(std::size_t begin, std::size_t end);
  void schedule_device(const std::vector<std::size_t>& nodes);
  void rebuild(part& p, std::size_t begin, std::size_t end);
  std::int64_t time_of(const node& n) const;

  std::vector<part>& parts_;
  const partition_options& options_;
  std::vector<const node*> nodes_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::int64_t> times_, starts_;
  std::vector<trigger> triggers_;           // of one part
  std::vector<std::vector<std::size_t>> triggers_after_;  // by node
  std::vector<std::size_t> waits_for_;      // by node: a trigger, or `none`
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
};

WEFT_DECL std::int64_t recv_scheduler::time_of(const node& n) const {
  if (!options_.node_seconds) return 1;
  const double seconds = [&] {
    try {
      return options_.node_seconds(n);
    } catch (const error&) {
      throw;
    } catch (const std::exception& e) {
      n.fail_about(error_code::unknown, std::string("partition_options::node_seconds: ") + e.what());
    }
  }();
  if (!(seconds >= 0) || seconds > 1e9) n.fail_about(error_code::invalid_argument, "partition_options::node_seconds gives " + std::to_string(seconds) + ", expected 0 to 1e9");
  return std::max<std::int64_t>(1, std::llround(seconds * 1e6));
}

WEFT_DECL void recv_scheduler::read() {
  std::unordered_map<std::int64_t, std::size_t> sends;
  std::size_t first = 0;
  for (const part& p : parts_) {
    for (const node* n : p.graph.nodes()) {
      if (n->op() == "_Send")
        if (const auto* edge = n->find_attr<std::int64_t>("_edge")) sends[*edge] = nodes_.size();
      nodes_.push_back(n);
      times_.push_back(time_of(*n));
    }
  }
  readers_.resize(nodes_.size());
  for (const part& p : parts_) {
    for (const node* n : p.graph.nodes()) {
      const std::size_t i = first + static_cast<std::size_t>(n->id());
      for (const output& in : n->inputs()) readers_[first + static_cast<std::size_t>(in.from->id())].push_back(i);
      for (const node* before : n->control_inputs()) readers_[first + static_cast<std::size_t>(before->id())].push_back(i);
      const auto* edge = n->op() == "_Recv" ? n->find_attr<std::int64_t>("_edge") : nullptr;
      if (edge != nullptr && sends.count(*edge) != 0) readers_[sends[*edge]].push_back(i);
    }
    first += p.graph.size();
  }
}

WEFT_DECL void recv_scheduler::find_starts() {
  // 1. As soon as possible: nodes in an order in which what they wait for comes first.
  std::vector<std::size_t> missing(nodes_.size(), 0), order;
  std::vector<std::int64_t> soonest(nodes_.size(), 0);
  for (const auto& readers : readers_)
    for (const std::size_t r : readers) ++missing[r];
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (missing[i] == 0) order.push_back(i);
  std::int64_t end = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t done = soonest[order[k]] + times_[order[k]];
    end = std::max(end, done);
    for (const std::size_t r : readers_[order[k]]) {
      soonest[r] = std::max(soonest[r], done);
      if (--missing[r] == 0) order.push_back(r);
    }
  }

  // 2. As late as possible, backwards from the end.
  starts_.resize(nodes_.size(), 0);
  for (std::size_t k = order.size(); k-- > 0;) {
    std::int64_t latest = end;
    for (const std::size_t r : readers_[order[k]]) latest = std::min(latest, starts_[r]);
    starts_[order[k]] = latest - times_[order[k]];
  }
}

// Whether any receive of these nodes is to wait.
WEFT_DECL bool recv_scheduler::schedule(std::size_t begin, std::size_t end) {
  triggers_.clear();
  triggers_after_.assign(end - begin, {});
  waits_for_.assign(end - begin, none);
  std::vector<std::string> devices;
  std::vector<std::vector<std::size_t>> nodes;
  for (std::size_t i = begin; i < end; ++i) {
    const auto known = static_cast<std::size_t>(std::find(devices.begin(), devices.end(), nodes_[i]->device()) - devices.begin());
    if (known == devices.size()) {
      devices.push_back(nodes_[i]->device());
      nodes.emplace_back();
    }
    nodes[known].push_back(i - begin);
  }
  for (auto& of_device : nodes) {
    std::stable_sort(of_device.begin(), of_device.end(), [&](std::size_t a, std::size_t b) { return starts_[begin + a] < starts_[begin + b]; });
    for (std::size_t& i : of_device) i += begin;
    schedule_device(of_device);
  }
  return !triggers_.empty();
}

// The nodes of a device, by start.
WEFT_DECL void recv_scheduler::schedule_device(const std::vector<std::size_t>& nodes) {
  const std::size_t begin = nodes[0] - static_cast<std::size_t>(nodes_[nodes[0]]->id());
  const std::int64_t resolution = starts_[nodes.back()] / epochs + 1;
  std::size_t before = 0;  // nodes that start before the epoch at hand
  for (const std::size_t i : nodes) {
    if (nodes_[i]->op() != "_Recv" || nodes_[i]->find_attr<std::int64_t>("_edge") == nullptr) continue;
    const std::int64_t epoch = starts_[i] / resolution - prefetch;
    while (epoch >= 0 && starts_[nodes[before]] < epoch * resolution) ++before;
    if (epoch < 0 || before == 0) continue;
    if (triggers_.empty() || triggers_.back().epoch != epoch || triggers_.back().device != nodes_[i]->device()) {
      triggers_after_[nodes[before - 1] - begin].push_back(triggers_.size());
      triggers_.push_back({nodes[before - 1], epoch, nodes_[i]->device(), nullptr});
    }
    waits_for_[i - begin] = triggers_.size() - 1;
  }
}

// The part anew, in the order of starts: each trigger after the node that it waits for, each receive after its trigger.
WEFT_DECL void recv_scheduler::rebuild(part& p, std::size_t begin, std::size_t end) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < end - begin; ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return starts_[begin + a] < starts_[begin + b]; });
  graph out(p.graph.ops());
  std::vector<const node*> twins(order.size());
  for (const std::size_t i : order) {
    const node& n = *nodes_[begin + i];
    std::vector<output> inputs;
    for (const output& in : n.inputs()) inputs.push_back({twins[static_cast<std::size_t>(in.from->id())], in.index});
    std::vector<const node*> control;
    for (const node* before : n.control_inputs()) control.push_back(twins[static_cast<std::size_t>(before->id())]);
    if (waits_for_[i] != none) control.push_back(triggers_[waits_for_[i]].made);
    twins[i] = &out.add_copy(n, std::move(inputs), std::move(control), n.device());
    for (const std::size_t t : triggers_after_[i]) {
      node_spec spec;
      spec.op = "ControlTrigger";
      spec.name = "synch_" + std::to_string(triggers_[t].epoch);
      while (p.graph.find(spec.name) != nullptr || out.find(spec.name) != nullptr) spec.name += "_";
      spec.exact_name = true;
      spec.control_inputs = {twins[i]};
      spec.scoped = false;
      spec.device = triggers_[t].device;
      spec.outputs = std::vector<output_type>();
      triggers_[t].made = &out.add(std::move(spec));
    }
  }
  p.graph = std::move(out);
}

}  // namespace weft::detail
#endif

#endif
