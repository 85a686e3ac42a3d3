#ifndef WEFT_PLACEMENT_BALANCE_HPP
#define WEFT_PLACEMENT_BALANCE_HPP
// Which parameter server gets which variable: in turn, or by bytes. As strategies that a device function asks while a graph is built, and as placers that see the whole graph.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>
#include <weft/placement/placer_interface.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Chooses the parameter server of a node: the position, from 0, among the tasks of the job.
using ps_strategy = std::function<int(const node&)>;

/// Deals the nodes out in turn, in the order of their making.
class round_robin {
 public:
  explicit round_robin(int num_tasks) : num_tasks_(num_tasks) {}
  int operator()(const node&) { return next(); }
  /// Whose turn it is.
  int next() {
    const int task = next_;
    next_ = (next_ + 1) % num_tasks_;
    return task;
  }

 private:
  int num_tasks_, next_ = 0;
};

namespace detail {
// The bytes of a variable; nothing when it is none, or its shape or dtype do not say.
std::optional<double> known_bytes(const node& n);
}  // namespace detail

/// The bytes that a variable takes. Throws INVALID_ARGUMENT when they are not known while the graph is built.
double byte_size_load_fn(const node& variable);

/// Gives each node to the task with the smallest load so far, the first of them; a node's load is what the function says, by default its bytes.
class greedy_load_balancing {
 public:
  explicit greedy_load_balancing(int num_tasks, std::function<double(const node&)> load = byte_size_load_fn) : load_(std::move(load)), loads_(static_cast<std::size_t>(num_tasks), 0.) {}
  int operator()(const node& n);
  /// Adds to a task's load.
  void add(int task, double load) { loads_[static_cast<std::size_t>(task)] += load; }
  /// By position of the task.
  const std::vector<double>& loads() const noexcept { return loads_; }

 private:
  std::function<double(const node&)> load_;
  std::vector<double> loads_;
};

/// The ops that make what parameter servers hold: variables, tables, accumulators.
const std::vector<std::string>& parameter_server_ops();

/// A placer that deals variables and what uses them to the tasks of the job in turn, in the order of their making; a variable that is pinned to one of the tasks takes its turn too. Everything else is left
/// to TensorFlow's rules.
std::shared_ptr<const placer> round_robin_placer(std::string job = "ps");

/// A placer that gives each variable, in the order of their making, to the task of the job with the smallest load so far, to which pinned ones count from the start. The load of a variable is its bytes
/// (none when they are not known) or what the function says; variables that share a device are given together. Everything else is left to TensorFlow's rules.
std::shared_ptr<const placer> greedy_placer(std::string job = "ps", std::function<double(const node&)> load = {});

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL std::optional<double> known_bytes(const node& n) {
  const partial_shape* shape = n.find_attr<partial_shape>("shape");
  const dtype* type = n.find_attr<dtype>("dtype");
  if (shape == nullptr || type == nullptr || !shape->fully_known() || !is_plain(*type)) return std::nullopt;
  double bytes = static_cast<double>(size_of(*type));
  for (const std::int64_t size : shape->sizes()) bytes *= static_cast<double>(size);
  return bytes;
}

// What the two placers share: the groups that hold variables, and the tasks of the job that are open to each.
class parameter_placer : public placer {
 public:
  explicit parameter_placer(std::string job) : job_(std::move(job)) {}

  std::vector<placement_choice> choose(const placement_question& question) const override {
    std::vector<placement_choice> out(question.groups.size());
    std::vector<device_name> tasks;
    std::vector<int> task_of(question.devices.size(), -1);  // by device: a position in `tasks`
    for (std::size_t i = 0; i < question.devices.size(); ++i) {
      device_name task = question.devices.names()[i];
      if (task.job != job_) continue;
      task.type.reset();
      task.id.reset();
      const auto known = std::find(tasks.begin(), tasks.end(), task);
      task_of[i] = static_cast<int>(known - tasks.begin());
      if (known == tasks.end()) tasks.push_back(std::move(task));
    }
    if (tasks.empty()) fail(error_code::invalid_argument, "no task of job '" + job_ + "' has a device; name the job of the parameter servers");
    deal(question, static_cast<int>(tasks.size()), task_of, out);
    return out;
  }

 protected:
  virtual void deal(const placement_question& question, int tasks, const std::vector<int>& task_of, std::vector<placement_choice>& out) const = 0;

  static bool is_parameter(const node& n) { return std::find(parameter_server_ops().begin(), parameter_server_ops().end(), n.op()) != parameter_server_ops().end(); }
  static bool has_parameter(const placement_group& group) { return std::any_of(group.nodes.begin(), group.nodes.end(), [](const node* n) { return is_parameter(*n); }); }
  // The best open device of a task; -1 when it has none.
  static int device_on(const placement_group& group, int task, const std::vector<int>& task_of) {
    for (const int device : *group.open)
      if (task_of[static_cast<std::size_t>(device)] == task) return device;
    return -1;
  }
  // The one task of the job to which a group is bound; -1 when it has a choice, or none of the job.
  static int bound_to(const placement_group& group, const std::vector<int>& task_of) {
    const int task = task_of[static_cast<std::size_t>(group.open->front())];
    for (const int device : *group.open)
      if (task_of[static_cast<std::size_t>(device)] != task) return -1;
    return task;
  }
  std::string servers(std::size_t n) const { return std::to_string(n) + " tasks of '" + job_ + "'"; }

 private:
  const std::string job_;
};

class turn_placer final : public parameter_placer {
 public:
  using parameter_placer::parameter_placer;
  std::string name() const override { return "round robin"; }

 protected:
  void deal(const placement_question& question, int tasks, const std::vector<int>& task_of, std::vector<placement_choice>& out) const override {
    round_robin turn(tasks);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const placement_group& group = question.groups[i];
      if (!has_parameter(group) || std::all_of(group.open->begin(), group.open->end(), [&](int device) { return task_of[static_cast<std::size_t>(device)] < 0; })) continue;
      // A task that is not open to the group loses its turn.
      int task = turn.next(), device = device_on(group, task, task_of);
      for (; device < 0; device = device_on(group, task, task_of)) task = turn.next();
      if (bound_to(group, task_of) < 0) out[i] = {device, "round robin: " + std::to_string(task + 1) + " of " + servers(static_cast<std::size_t>(tasks))};
    }
  }
};

class load_placer final : public parameter_placer {
 public:
  load_placer(std::string job, std::function<double(const node&)> load) : parameter_placer(std::move(job)), load_(std::move(load)) {}
  std::string name() const override { return "greedy"; }

 protected:
  void deal(const placement_question& question, int tasks, const std::vector<int>& task_of, std::vector<placement_choice>& out) const override {
    greedy_load_balancing balance(tasks);
    std::vector<double> load(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (const node* n : question.groups[i].nodes)
        if (is_parameter(*n)) load[i] += load_ ? load_(*n) : known_bytes(*n).value_or(0);
      if (const int task = bound_to(question.groups[i], task_of); task >= 0) balance.add(task, load[i]);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const placement_group& group = question.groups[i];
      if (!has_parameter(group) || bound_to(group, task_of) >= 0) continue;
      int best = -1, device = -1;
      for (int task = 0; task < tasks; ++task)
        if (best < 0 || balance.loads()[static_cast<std::size_t>(task)] < balance.loads()[static_cast<std::size_t>(best)])
          if (const int here = device_on(group, task, task_of); here >= 0) best = task, device = here;
      if (best < 0) continue;
      const auto more = std::count_if(balance.loads().begin(), balance.loads().end(), [&](double other) { return other > balance.loads()[static_cast<std::size_t>(best)]; });
      out[i] = {device, "greedy: " + (more == 0 ? "the first of " + servers(static_cast<std::size_t>(tasks)) + ", none holds more"
                                                : std::to_string(more) + " of " + servers(static_cast<std::size_t>(tasks)) + (more == 1 ? " holds more " : " hold more ") + (load_ ? "load" : "bytes"))};
      balance.add(best, load[i]);
    }
  }

 private:
  const std::function<double(const node&)> load_;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL double byte_size_load_fn(const node& n) {
  const partial_shape* shape = n.find_attr<partial_shape>("shape");
  const dtype* type = n.find_attr<dtype>("dtype");
  if (shape == nullptr || type == nullptr) n.fail_about(error_code::invalid_argument, "only the bytes of variables are known; give a load function that knows op '" + n.op() + "'");
  if (const auto bytes = detail::known_bytes(n)) return *bytes;
  n.fail_about(error_code::invalid_argument, "the bytes of a variable of shape " + shape->text() + " and dtype " + to_text(*type) + " are not known");
}

WEFT_DECL int greedy_load_balancing::operator()(const node& n) {
  if (loads_.empty()) n.fail_about(error_code::invalid_argument, "greedy_load_balancing has no tasks to choose from");
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += load_(n);
  return static_cast<int>(least - loads_.begin());
}

WEFT_DECL const std::vector<std::string>& parameter_server_ops() {
  static const std::vector<std::string> ops{"Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2",
                                            "MutableDenseHashTable", "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp",
                                            "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator"};
  return ops;
}

WEFT_DECL std::shared_ptr<const placer> round_robin_placer(std::string job) { return std::make_shared<const detail::turn_placer>(std::move(job)); }
WEFT_DECL std::shared_ptr<const placer> greedy_placer(std::string job, std::function<double(const node&)> load) {
  return std::make_shared<const detail::load_placer>(std::move(job), std::move(load));
}

}  // namespace weft
#endif

#endif
