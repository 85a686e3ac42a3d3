#ifndef WEFT_TRAIN_DEVICE_SETTER_HPP
#define WEFT_TRAIN_DEVICE_SETTER_HPP
// Variables on parameter servers, everything else on a worker: the device function of between-graph replication, as TensorFlow's tf.train.replica_device_setter.

#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/graph/scope.hpp>

#include <algorithm>
#include <functional>
#include <memory>
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
  int operator()(const node&) {
    const int task = next_;
    next_ = (next_ + 1) % num_tasks_;
    return task;
  }

 private:
  int num_tasks_, next_ = 0;
};

/// The bytes that a variable takes. Throws INVALID_ARGUMENT when they are not known while the graph is built.
double byte_size_load_fn(const node& variable);

/// Gives each node to the task with the smallest load so far, the first of them; a node's load is what the function says, by default its bytes.
class greedy_load_balancing {
 public:
  explicit greedy_load_balancing(int num_tasks, std::function<double(const node&)> load = byte_size_load_fn) : load_(std::move(load)), loads_(static_cast<std::size_t>(num_tasks), 0.) {}
  int operator()(const node& n);

 private:
  std::function<double(const node&)> load_;
  std::vector<double> loads_;
};

/// How a replica_device_setter chooses.
struct replica_device_options {
  /// Where variables go; the task is filled in if this names a job and no other job is asked for.
  std::string ps_device = "/job:ps";
  /// Where everything else goes. Without a task the placer takes the first.
  std::string worker_device = "/job:worker";
  /// Whether a node with a device of its own keeps it as it is instead of having its open parts filled in.
  bool merge_devices = true;
  /// The ops that go to parameter servers; empty for variables, tables and accumulators.
  std::vector<std::string> ps_ops{};
  /// Which of the parameter servers; in turn when empty.
  ps_strategy strategy{};
};

/// A function for `with_device`: variables made in the block go to the tasks of the job that `ps_device` names, everything else to `worker_device`. Without such tasks it changes nothing. Each call
/// starts with the first task.
device_function replica_device_setter(const cluster_spec& cluster, const replica_device_options& options = {}, call_site where = call_site::here());
/// The same for this number of parameter servers.
device_function replica_device_setter(int ps_tasks, const replica_device_options& options = {}, call_site where = call_site::here());

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft {

WEFT_DECL double byte_size_load_fn(const node& n) {
  const partial_shape* shape = n.find_attr<partial_shape>("shape");
  const dtype* type = n.find_attr<dtype>("dtype");
  if (shape == nullptr || type == nullptr) n.fail_about(error_code::invalid_argument, "only the bytes of variables are known; give a load function that knows op '" + n.op() + "'");
  if (!shape->fully_known() || !is_plain(*type)) n.fail_about(error_code::invalid_argument, "the bytes of a variable of shape " + shape->text() + " and dtype " + to_text(*type) + " are not known");
  double bytes = static_cast<double>(size_of(*type));
  for (const std::int64_t size : shape->sizes()) bytes *= static_cast<double>(size);
  return bytes;
}

WEFT_DECL int greedy_load_balancing::operator()(const node& n) {
  if (loads_.empty()) n.fail_about(error_code::invalid_argument, "greedy_load_balancing has no tasks to choose from");
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += load_(n);
  return static_cast<int>(least - loads_.begin());
}

namespace detail {

// What the device function knows. One object serves all copies of the function, so that the turn goes on.
struct replica_devices {
  device_name ps, worker;
  std::vector<int> tasks;
  bool merge;
  std::vector<std::string> ops;
  ps_strategy strategy;

  std::string choose(const node& n) const {
    if (!merge && !n.device().empty()) return n.device();
    const device_name asked = parse_device_name(n.device(), n.site());
    if (std::find(ops.begin(), ops.end(), n.op()) == ops.end()) return to_text(merge_override(worker, asked));
    device_name here = ps;
    if (ps.job && (!asked.job || *asked.job == *ps.job)) {
      const int at = strategy(n);
      if (at < 0 || at >= static_cast<int>(tasks.size()))
        n.fail_about(error_code::invalid_argument, "the strategy chose parameter server " + std::to_string(at) + " of " + std::to_string(tasks.size()));
      here.task = tasks[static_cast<std::size_t>(at)];
    }
    return to_text(merge_override(here, asked));
  }
};

WEFT_DECL device_function replica_device_function(std::vector<int> tasks, const replica_device_options& options, call_site where) {
  auto known = std::make_shared<replica_devices>();
  known->ps = parse_device_name(options.ps_device, where);
  known->worker = parse_device_name(options.worker_device, where);
  if (tasks.empty()) return [](const node& n) { return n.device(); };
  known->merge = options.merge_devices;
  known->ops = options.ps_ops;
  if (known->ops.empty())
    known->ops = {"Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
                  "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator"};
  known->strategy = options.strategy ? options.strategy : ps_strategy(round_robin(static_cast<int>(tasks.size())));
  known->tasks = std::move(tasks);
  return [known](const node& n) { return known->choose(n); };
}

}  // namespace detail

WEFT_DECL device_function replica_device_setter(const cluster_spec& cluster, const replica_device_options& options, call_site where) {
  const device_name ps = parse_device_name(options.ps_device, where);
  if (!ps.job) throw error(error_code::invalid_argument, "replica_device_setter: ps_device must name a job of the cluster, found '" + options.ps_device + "'", where);
  return detail::replica_device_function(cluster.has_job(*ps.job) ? cluster.task_indices(*ps.job) : std::vector<int>(), options, where);
}

WEFT_DECL device_function replica_device_setter(int ps_tasks, const replica_device_options& options, call_site where) {
  if (ps_tasks < 0) throw error(error_code::invalid_argument, "replica_device_setter: the number of parameter servers must not be negative, found " + std::to_string(ps_tasks), where);
  std::vector<int> tasks;
  for (int i = 0; i < ps_tasks; ++i) tasks.push_back(i);
  return detail::replica_device_function(std::move(tasks), options, where);
}

}  // namespace weft
#endif

#endif
