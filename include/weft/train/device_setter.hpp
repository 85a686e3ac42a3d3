#ifndef WEFT_TRAIN_DEVICE_SETTER_HPP
#define WEFT_TRAIN_DEVICE_SETTER_HPP
// Variables on parameter servers, everything else on a worker: the device function of between-graph replication, as TensorFlow's tf.train.replica_device_setter.

#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/graph/scope.hpp>
#include <weft/placement/balance.hpp>
#include <weft/placement/random_strategy.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// The bytes of the variables of a graph by the device that each asks for, as it is written: whether one parameter server carries nearly all of them. Variables whose size is not known count nothing.
std::map<std::string, std::int64_t> variable_bytes_by_device(const graph& g = default_graph());

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

WEFT_DECL std::map<std::string, std::int64_t> variable_bytes_by_device(const graph& g) {
  std::map<std::string, std::int64_t> out;
  for (const node* n : g.nodes())
    if (n->op() == "VarHandleOp") out[n->device()] += static_cast<std::int64_t>(detail::known_bytes(*n).value_or(0));
  return out;
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
  if (known->ops.empty()) known->ops = parameter_server_ops();
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
