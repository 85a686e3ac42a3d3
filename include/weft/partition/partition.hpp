#ifndef WEFT_PARTITION_PARTITION_HPP
#define WEFT_PARTITION_PARTITION_HPP
// Cuts a placed graph into one part per task, with a pair of `_Send` and `_Recv` for each value that crosses. Pure functions.

#include <weft/core/config.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/partition/compare.hpp>
#include <weft/partition/partition_options.hpp>
#include <weft/partition/partitioned_graph.hpp>
#include <weft/partition/prune.hpp>
#include <weft/placement/placer.hpp>

#include <string>
#include <utility>
#if WEFT_HAS_BODIES
#include <weft/partition/partitioner.hpp>
#include <weft/partition/tensorflow_form.hpp>
#endif

namespace weft {

/// The parts of a placed graph for one step: pruned to the feeds, fetches and targets, cut by task and device.
/// Throws INVALID_ARGUMENT about a feed, fetch or target that belongs to another graph.
partitioned_graph partition(const graph& g, const device_set& devices, const placement& where, const partition_options& options = {});

/// As above, with devices and placement of its own: every task of the cluster has `options.devices`, kernels exist for every op.
partitioned_graph partition(const graph& g, const cluster_spec& cluster, const partition_options& options = {});

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL device_set devices_of_cluster(const cluster_spec& cluster, const partition_options& options) {
  device_set devices = device_set::of_cluster(cluster, options.devices);
  if (devices.empty())
    fail(error_code::invalid_argument, cluster.tasks().empty() ? "the cluster has no tasks; name at least one, as in {{\"work\", 1}}"
                                                               : "partition_options: there is no device; leave 'devices' as it is, or name at least {\"CPU\", 1}");
  return devices;
}

WEFT_DECL placement_options placing_for(const partition_options& options) {
  placement_options out;
  out.default_task = options.master;
  out.allow_soft_placement = options.allow_soft_placement;
  out.order = options.order;
  out.placer = options.placer;
  return out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL partitioned_graph partition(const graph& g, const device_set& devices, const placement& where, const partition_options& options) {
  if (options.form == partition_form::tensorflow) return detail::tensorflow_step(g, devices, where, options).run();
  return detail::partitioner(g, devices, where, options).run();
}

WEFT_DECL partitioned_graph partition(const graph& g, const cluster_spec& cluster, const partition_options& options) {
  const device_set devices = detail::devices_of_cluster(cluster, options);
  return partition(g, devices, place(g, devices, detail::placing_for(options)), options);
}

}  // namespace weft
#endif

#endif
