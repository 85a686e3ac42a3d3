#ifndef WEFT_CLUSTER_CLUSTER_UPDATE_HPP
#define WEFT_CLUSTER_CLUSTER_UPDATE_HPP
// A running task learns that others have other addresses now.

#include <weft/cluster/accepted_peers.hpp>
#include <weft/cluster/peers.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/core/config.hpp>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// From now on tasks are where `next` says; the mutex is held while the cluster changes. What a task opened that was elsewhere, and what was opened to it, is closed, which ends the
/// steps that use it. INVALID_ARGUMENT, and nothing changes, if the own task is to be elsewhere. On the io thread.
status take_cluster(task_context& own, std::mutex& mutex, peers& roads, accepted_peers& accepted, const cluster_spec& next);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL status take_cluster(task_context& own, std::mutex& mutex, peers& roads, accepted_peers& accepted, const cluster_spec& next) {
  const std::string said = next.has(own.self) ? next.task_address(own.self) : std::string();
  if (said != own.own_address)
    return {error_code::invalid_argument, "task " + own.describe(own.self) + " runs, and the new cluster " + (said.empty() ? "does not have it" : "has it at " + said) + "; stop it, and start it anew there"};
  std::vector<std::pair<task_id, status>> moved;
  for (const task_id& task : own.cluster.tasks()) {
    const std::string now = next.has(task) ? next.task_address(task) : std::string();
    if (now == own.cluster.task_address(task)) continue;
    moved.emplace_back(task, status(error_code::unavailable, "task " + own.describe(task) + (now.empty() ? " has left the cluster" : " was replaced by one at " + now)));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    own.cluster = next;
  }
  for (const auto& [task, why] : moved) {
    own.log("info", to_text(own.self) + ": " + why.message);
    roads.drop(task, why);
    accepted.drop(task, why);
  }
  return {};
}

#endif

}  // namespace weft::detail

#endif
