#ifndef WEFT_SIMULATE_COST_PLACER_HPP
#define WEFT_SIMULATE_COST_PLACER_HPP
// A placer that a cost model drives: nodes that would exchange more than they compute stay together, and what remains goes where it is done first.

#include <weft/core/config.hpp>
#include <weft/placement/placer_interface.hpp>
#include <weft/simulate/cost_model.hpp>

#include <memory>
#if WEFT_HAS_BODIES
#include <weft/simulate/step.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>
#endif

namespace weft {

/// A placer for a short step. It joins nodes over chains and over their dearest transfers, as long as sending takes longer than the lighter side computes, and gives what was joined, most urgent first, to the
/// task where it is done first, transfers and the work given there before included. It sees the graph as one step, and keeps TensorFlow's placement when that is expected to take no longer. The same
/// graph gives the same placement; the time is nearly linear in nodes and edges, times the number of tasks.
std::shared_ptr<const placer> cost_placer(cost_model model = {});

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

// One question answered. Nodes are known by their ids, which rise along every edge.
class cost_planner {
 public:
  cost_planner(const placement_question& question, const cost_model& model) : question_(question), model_(model) {}

  std::vector<placement_choice> plan();

 private:
  struct edge {
    int from, slot, to;
    double bytes;
  };
  // What is placed together: groups that were joined.
  struct cluster {
    int parent = 0, open = 0, size = 1;
    double work = 0;
    int task = -1;
    std::string reason;
  };
  struct joint {
    double seconds;
    int readers, a, b;
    std::size_t edge;
  };
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
  static bool dearer(const joint& x, const joint& y) noexcept {
    if (x.seconds != y.seconds) return x.seconds > y.seconds;
    return x.readers != y.readers ? x.readers < y.readers : x.edge < y.edge;
  }

  void read_tasks();
  void read_nodes();
  void read_edges();
  int number_of(std::vector<int> tasks);
  int common(int a, int b);
  int root(int group);
  int cluster_of(int n) { return root(question_.group_of[at(n)]); }
  bool join(int a, int b);
  void join_chains();
  void join_dear();
  void rank();
  void schedule();
  void decide(int c);
  void refine();
  double evaluate(const std::vector<int>& task_of_group) const;
  double seconds(int n, int task) const;
  const link_speed& link(int from, int to) const { return *links_[at(from) * tasks_.size() + at(to)]; }
  double transfer(double bytes, int from, int to) const { return from == to ? 0 : link(from, to).latency + bytes / link(from, to).bytes_per_second; }
  double usual_transfer(double bytes) const { return model_.link.latency + bytes / model_.link.bytes_per_second; }
  std::vector<int> tasks_of_groups();

  const placement_question& question_;
  const cost_model& model_;
  std::vector<std::string> tasks_;
  std::vector<int> task_of_device_;
  std::vector<const task_speed*> speeds_;
  std::vector<const link_speed*> links_;  // by task and task
  int home_ = 0;
  std::vector<const node*> nodes_;
  std::vector<node_cost> costs_;
  std::vector<edge> edges_;               // by their readers
  std::vector<std::size_t> inputs_;       // by node: where its edges begin
  std::vector<std::vector<int>> open_;    // sets of tasks, by number
  std::unordered_map<std::string, int> numbers_;
  std::unordered_map<std::uint64_t, int> common_;
  std::vector<cluster> clusters_;         // by group
  std::vector<std::vector<int>> members_;  // by root of a cluster: nodes
  std::vector<std::vector<std::size_t>> outside_;  // by root of a cluster: edges to and from others
  std::vector<int> order_;                // nodes, most urgent first
  std::vector<double> end_;               // by node; negative until it is known
  std::vector<double> given_, free_;      // by task: seconds of work that is given and not scheduled, when it is free
};

WEFT_DECL std::vector<placement_choice> cost_planner::plan() {
  std::vector<placement_choice> out(question_.groups.size());
  read_tasks();
  if (tasks_.size() < 2) return out;

  // 1. What runs, what crosses, and what may go where.
  read_nodes();
  read_edges();

  // 2. Nodes that belong together.
  join_chains();
  join_dear();

  // 3. Where each cluster goes: once by time, once more with fewer bytes on the way; the best of both and of TensorFlow's rules.
  rank();
  schedule();
  std::vector<int> rules;
  for (const placement_group& g : question_.groups) rules.push_back(task_of_device_[at(g.by_rules)]);
  std::vector<int> best = tasks_of_groups();
  double least = evaluate(best);
  const std::vector<cluster> timed = clusters_;
  refine();
  if (const std::vector<int> refined = tasks_of_groups(); evaluate(refined) < least) {
    best = refined;
    least = evaluate(refined);
  } else {
    clusters_ = timed;
  }
  if (evaluate(rules) <= least * 1.001) return out;

  // 4. The first open device of each group on its task.
  for (std::size_t i = 0; i < out.size(); ++i) {
    const placement_group& g = question_.groups[i];
    if (g.open->size() < 2) continue;
    const auto device = std::find_if(g.open->begin(), g.open->end(), [&](int d) { return task_of_device_[at(d)] == best[i]; });
    const int lead = root(static_cast<int>(i));
    const node& first = *nodes_[at(members_[at(lead)].front())];
    out[i] = {*device, &first == g.nodes[0] ? "cost: " + clusters_[at(lead)].reason : "cost: together with '" + first.name() + "'"};
  }
  return out;
}

WEFT_DECL void cost_planner::read_tasks() {
  tasks_ = question_.devices.tasks();
  for (const device_name& name : question_.devices.names()) task_of_device_.push_back(static_cast<int>(std::find(tasks_.begin(), tasks_.end(), task_text(name)) - tasks_.begin()));
  home_ = std::max(0, static_cast<int>(std::find(tasks_.begin(), tasks_.end(), question_.home) - tasks_.begin()) % static_cast<int>(std::max<std::size_t>(1, tasks_.size())));
  for (const std::string& from : tasks_) {
    speeds_.push_back(&model_.speed_of(from));
    for (const std::string& to : tasks_) links_.push_back(&model_.speed_of(from, to));
  }
}

WEFT_DECL void cost_planner::read_nodes() {
  nodes_.resize(question_.group_of.size());
  costs_.resize(nodes_.size());
  clusters_.resize(question_.groups.size());
  const std::vector<int>* known = nullptr;
  int number = 0;
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const placement_group& g = question_.groups[i];
    if (g.open != known) {
      std::vector<int> tasks;
      for (const int device : *g.open) tasks.push_back(task_of_device_[at(device)]);
      number = number_of(std::move(tasks));
      known = g.open;
    }
    clusters_[i].parent = static_cast<int>(i);
    clusters_[i].open = number;
    for (const node* n : g.nodes) {
      nodes_[at(n->id())] = n;
      costs_[at(n->id())] = cost_of(*n, model_.unknown_size);
      clusters_[i].work += seconds(n->id(), home_);
    }
  }
}

WEFT_DECL void cost_planner::read_edges() {
  for (const node* n : nodes_) {
    inputs_.push_back(edges_.size());
    for (std::size_t k = 0; k < n->inputs().size(); ++k) {
      if (is_loop_edge(*n, k)) continue;
      const output& in = n->inputs()[k];
      edges_.push_back({in.from->id(), in.index, n->id(), bytes_of(in.from->output_dtype(in.index), in.from->output_shape(in.index), model_.unknown_size)});
    }
    for (const node* before : n->control_inputs()) edges_.push_back({before->id(), -1, n->id(), 0});
  }
  inputs_.push_back(edges_.size());
}

WEFT_DECL double cost_planner::seconds(int n, int task) const {
  const task_speed& speed = *speeds_[at(task)];
  return speed.seconds_per_node + std::max(costs_[at(n)].flops / speed.flops_per_second, costs_[at(n)].bytes / speed.bytes_per_second);
}

// Sets of tasks that are open, each stored once.
WEFT_DECL int cost_planner::number_of(std::vector<int> tasks) {
  std::sort(tasks.begin(), tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  std::string key;
  for (const int task : tasks) key += std::to_string(task) + ",";
  const auto [it, fresh] = numbers_.emplace(std::move(key), static_cast<int>(open_.size()));
  if (fresh) open_.push_back(std::move(tasks));
  return it->second;
}

// The set that is open to both; negative when there is none.
WEFT_DECL int cost_planner::common(int a, int b) {
  if (a == b) return a;
  const std::uint64_t key = static_cast<std::uint64_t>(std::min(a, b)) << 32 | static_cast<std::uint64_t>(std::max(a, b));
  if (const auto known = common_.find(key); known != common_.end()) return known->second;
  std::vector<int> both;
  std::set_intersection(open_[at(a)].begin(), open_[at(a)].end(), open_[at(b)].begin(), open_[at(b)].end(), std::back_inserter(both));
  return common_[key] = both.empty() ? -1 : number_of(std::move(both));
}

WEFT_DECL int cost_planner::root(int group) {
  while (clusters_[at(group)].parent != group) {
    int& parent = clusters_[at(group)].parent;
    parent = clusters_[at(parent)].parent;
    group = parent;
  }
  return group;
}

WEFT_DECL bool cost_planner::join(int a, int b) {
  const int open = common(clusters_[at(a)].open, clusters_[at(b)].open);
  if (open < 0) return false;
  if (clusters_[at(a)].size < clusters_[at(b)].size) std::swap(a, b);
  clusters_[at(b)].parent = a;
  clusters_[at(a)].open = open;
  clusters_[at(a)].size += clusters_[at(b)].size;
  clusters_[at(a)].work += clusters_[at(b)].work;
  return true;
}

// A value that nothing else reads, to a node that waits for nothing else, is never worth sending. What has no inputs and is quickly made, as a constant, does not count as
// something to wait for, and goes with its only reader.
WEFT_DECL void cost_planner::join_chains() {
  constexpr int none = -1, several = -2;
  std::vector<int> before(clusters_.size(), none), after(clusters_.size(), none);
  const auto note = [](int& known, int group) { known = known == none || known == group ? group : several; };
  const auto is_source = [&](const edge& e) {
    return question_.groups[at(question_.group_of[at(e.from)])].nodes.size() == 1 && inputs_[at(e.from)] == inputs_[at(e.from) + 1] && seconds(e.from, home_) <= usual_transfer(e.bytes);
  };
  for (const edge& e : edges_) {
    const int a = question_.group_of[at(e.from)], b = question_.group_of[at(e.to)];
    if (a == b) continue;
    note(after[at(a)], b);
    if (!is_source(e)) note(before[at(b)], a);
  }
  // The dearest first, so that a chain between two pins is cut where least crosses.
  std::vector<joint> joints;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    const edge& e = edges_[i];
    const int a = question_.group_of[at(e.from)], b = question_.group_of[at(e.to)];
    if (a != b && after[at(a)] == b && (is_source(e) || before[at(b)] == a)) joints.push_back({usual_transfer(e.bytes), 1, a, b, i});
  }
  std::sort(joints.begin(), joints.end(), dearer);
  for (const joint& j : joints)
    if (root(j.a) != root(j.b)) join(root(j.a), root(j.b));
}

// The dearest transfers first; of equal ones those that fewer nodes read.
WEFT_DECL void cost_planner::join_dear() {
  std::vector<int> readers(nodes_.size(), 0);
  for (const edge& e : edges_) ++readers[at(e.from)];
  std::vector<joint> joints;
  double total = 0;
  for (std::size_t i = 0; i < clusters_.size(); ++i)
    if (root(static_cast<int>(i)) == static_cast<int>(i)) total += clusters_[i].work;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    const int a = cluster_of(edges_[i].from), b = cluster_of(edges_[i].to);
    if (a != b) joints.push_back({usual_transfer(edges_[i].bytes), readers[at(edges_[i].from)], a, b, i});
  }
  std::sort(joints.begin(), joints.end(), dearer);
  const double most = total / static_cast<double>(tasks_.size());
  for (const joint& j : joints) {
    const int a = root(j.a), b = root(j.b);
    if (a == b) continue;
    const double x = clusters_[at(a)].work, y = clusters_[at(b)].work;
    if (j.seconds >= std::min(x, y) && (x + y <= most || std::min(x, y) * 10 <= j.seconds)) join(a, b);
  }
}

// How long the step lasts after a node has begun, transfers between clusters included: the longer, the more urgent.
WEFT_DECL void cost_planner::rank() {
  members_.resize(clusters_.size());
  outside_.resize(clusters_.size());
  for (const node* n : nodes_) members_[at(cluster_of(n->id()))].push_back(n->id());
  std::vector<double> left(nodes_.size(), 0);
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    left[n] += seconds(static_cast<int>(n), home_);
    for (std::size_t i = inputs_[n]; i < inputs_[n + 1]; ++i) {
      const edge& e = edges_[i];
      const bool crosses = cluster_of(e.from) != cluster_of(e.to);
      left[at(e.from)] = std::max(left[at(e.from)], left[n] + (crosses ? usual_transfer(e.bytes) : 0));
      if (!crosses) continue;
      outside_[at(cluster_of(e.from))].push_back(i);
      outside_[at(cluster_of(e.to))].push_back(i);
    }
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) order_.push_back(static_cast<int>(n));
  std::sort(order_.begin(), order_.end(), [&](int a, int b) { return left[at(a)] != left[at(b)] ? left[at(a)] > left[at(b)] : a < b; });
}

WEFT_DECL void cost_planner::schedule() {
  given_.assign(tasks_.size(), 0);
  free_.clear();
  for (std::size_t t = 0; t < tasks_.size(); ++t) free_.push_back(transfer(0, home_, static_cast<int>(t)));
  end_.assign(nodes_.size(), -1);
  for (std::size_t i = 0; i < clusters_.size(); ++i)
    if (const int c = root(static_cast<int>(i)); c == static_cast<int>(i) && open_[at(clusters_[i].open)].size() == 1) {
      clusters_[i].task = open_[at(clusters_[i].open)].front();
      clusters_[i].reason = "the only task that is open to all of it";
    }
  for (const int n : order_) {
    const int c = cluster_of(n);
    // What waits for nothing has time until somebody reads it.
    if (clusters_[at(c)].task < 0 && inputs_[at(n)] == inputs_[at(n) + 1] && members_[at(c)].size() > 1) continue;
    if (clusters_[at(c)].task < 0) decide(c);
    const int task = clusters_[at(c)].task;
    double ready = 0;
    for (std::size_t i = inputs_[at(n)]; i < inputs_[at(n) + 1]; ++i) {
      const edge& e = edges_[i];
      const int from = cluster_of(e.from);
      if (clusters_[at(from)].task < 0) decide(from);
      ready = std::max(ready, std::max(0., end_[at(e.from)]) + transfer(e.bytes, clusters_[at(from)].task, task));
    }
    const double takes = seconds(n, task), share = takes / std::max(1, speeds_[at(task)]->processors);
    end_[at(n)] = std::max(ready, free_[at(task)]) + takes;
    free_[at(task)] = std::max(free_[at(task)], std::max(ready, free_[at(task)]) + share);
    given_[at(task)] = std::max(0., given_[at(task)] - takes);
  }
  for (std::size_t i = 0; i < clusters_.size(); ++i)
    if (root(static_cast<int>(i)) == static_cast<int>(i) && clusters_[i].task < 0) decide(static_cast<int>(i));
}

// The task where a cluster is done first, and its values are where they are wanted.
WEFT_DECL void cost_planner::decide(int c) {
  cluster& it = clusters_[at(c)];
  const std::vector<int>& open = open_[at(it.open)];
  const int usual = task_of_device_[at(question_.groups[at(question_.group_of[at(members_[at(c)].front())])].by_rules)];
  int best = -1, second = -1;
  double least = 0, next = 0, least_cut = 0;
  for (const int task : open) {
    double begin = free_[at(task)] + given_[at(task)] / std::max(1, speeds_[at(task)]->processors), after = transfer(0, task, home_), cut = 0, work = 0;
    for (const std::size_t i : outside_[at(c)]) {
      const edge& e = edges_[i];
      const bool comes = cluster_of(e.to) == c;
      const int other = clusters_[at(cluster_of(comes ? e.from : e.to))].task;
      if (other < 0 || other == task) continue;
      const double takes = comes ? transfer(e.bytes, other, task) : transfer(e.bytes, task, other);
      cut += takes;
      if (comes) begin = std::max(begin, std::max(0., end_[at(e.from)]) + takes);
      else after = std::max(after, takes);
    }
    for (const int n : members_[at(c)]) work += seconds(n, task);
    const double done = begin + work + after;
    const double slack = 1e-9 * (done + least);
    const bool better = best < 0 || done < least - slack || (done <= least + slack && (cut < least_cut || (cut == least_cut && task == usual)));
    if (better) {
      second = best;
      next = least;
      best = task;
      least = done;
      least_cut = cut;
    } else if (second < 0 || done < next) {
      second = task;
      next = done;
    }
  }
  it.task = best;
  it.reason = "done after " + time_text(least) + (second < 0 ? "" : ", " + time_text(next) + " on " + tasks_[at(second)]);
  for (const int n : members_[at(c)]) given_[at(best)] += seconds(n, best);
}

// Moves clusters to where they exchange most, if no task gets more work than the busiest has.
WEFT_DECL void cost_planner::refine() {
  std::vector<double> load(tasks_.size(), 0), gain(tasks_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const int task = clusters_[at(cluster_of(static_cast<int>(n)))].task;
    load[at(task)] += seconds(static_cast<int>(n), task);
  }
  const double most = *std::max_element(load.begin(), load.end());
  for (int sweep = 0; sweep < 2; ++sweep)
    for (std::size_t i = 0; i < clusters_.size(); ++i) {
      cluster& it = clusters_[i];
      if (it.parent != static_cast<int>(i) || open_[at(it.open)].size() < 2) continue;
      std::fill(gain.begin(), gain.end(), 0.);
      for (const std::size_t k : outside_[i]) {
        const edge& e = edges_[k];
        const int other = clusters_[at(cluster_of(cluster_of(e.to) == static_cast<int>(i) ? e.from : e.to))].task;
        gain[at(other)] += usual_transfer(e.bytes);
      }
      int best = it.task;
      for (const int task : open_[at(it.open)])
        if (gain[at(task)] > gain[at(best)] && load[at(task)] + it.work <= most) best = task;
      if (best == it.task) continue;
      load[at(it.task)] -= it.work;
      load[at(best)] += it.work;
      it.task = best;
      it.reason = "with what it exchanges most";
    }
}

WEFT_DECL std::vector<int> cost_planner::tasks_of_groups() {
  std::vector<int> out;
  for (std::size_t i = 0; i < clusters_.size(); ++i) out.push_back(clusters_[at(root(static_cast<int>(i)))].task);
  return out;
}

// The time of the step: nodes in their order, a task's processors one node each, one value after the other out of a task.
WEFT_DECL double cost_planner::evaluate(const std::vector<int>& task_of_group) const {
  std::vector<double> end(nodes_.size(), 0), sending(tasks_.size(), 0);
  std::vector<std::vector<double>> free(tasks_.size());
  for (std::size_t t = 0; t < free.size(); ++t) free[t].assign(std::min(at(std::max(1, speeds_[t]->processors)), nodes_.size()), -transfer(0, home_, static_cast<int>(t)));
  std::unordered_map<std::uint64_t, double> arrived;
  double last = 0;
  for (const int n : order_) {
    const int task = task_of_group[at(question_.group_of[at(n)])];
    double ready = 0;
    for (std::size_t i = inputs_[at(n)]; i < inputs_[at(n) + 1]; ++i) {
      const edge& e = edges_[i];
      const int from = task_of_group[at(question_.group_of[at(e.from)])];
      double there = end[at(e.from)];
      if (from != task) {
        const std::uint64_t key = (static_cast<std::uint64_t>(e.from) * (tasks_.size() + 1) + static_cast<std::uint64_t>(task)) << 16 | static_cast<std::uint64_t>(e.slot + 1);
        const auto [it, fresh] = arrived.emplace(key, 0.);
        if (fresh) {
          sending[at(from)] = std::max(sending[at(from)], there) + e.bytes / link(from, task).bytes_per_second;
          it->second = sending[at(from)] + link(from, task).latency;
        }
        there = it->second;
      }
      ready = std::max(ready, there);
    }
    // The heap has the processor that is free first on top, times negated.
    std::vector<double>& processors = free[at(task)];
    std::pop_heap(processors.begin(), processors.end());
    end[at(n)] = std::max(ready, -processors.back()) + seconds(n, task);
    processors.back() = -end[at(n)];
    std::push_heap(processors.begin(), processors.end());
    last = std::max(last, end[at(n)] + transfer(0, task, home_));
  }
  return last;
}

class costing_placer final : public placer {
 public:
  explicit costing_placer(cost_model model) : model_(std::move(model)) {}
  std::string name() const override { return "cost"; }
  std::vector<placement_choice> choose(const placement_question& question) const override { return cost_planner(question, model_).plan(); }

 private:
  const cost_model model_;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::shared_ptr<const placer> cost_placer(cost_model model) { return std::make_shared<const detail::costing_placer>(std::move(model)); }

}  // namespace weft
#endif

#endif
