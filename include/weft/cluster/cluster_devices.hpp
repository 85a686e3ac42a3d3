#ifndef WEFT_CLUSTER_CLUSTER_DEVICES_HPP
#define WEFT_CLUSTER_CLUSTER_DEVICES_HPP
// The devices of tasks of a cluster, asked for by a master.

#include <weft/cluster/peers.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/core/config.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace weft::detail {

/// Calls `done` on the io thread with the devices of these tasks, in the order of the tasks, or with the first reason why one cannot be asked.
void ask_for_devices(task_context& own, peers& roads, const std::set<task_id>& tasks, std::function<void(const status&, const std::vector<device>&)> done);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void ask_for_devices(task_context& own, peers& roads, const std::set<task_id>& tasks, std::function<void(const status&, const std::vector<device>&)> done) {
  struct progress {
    std::size_t open;
    std::map<task_id, std::vector<device>> found;
    std::optional<status> problem;
  };
  const auto left = std::make_shared<progress>(progress{tasks.size(), {}, std::nullopt});
  for (const task_id& task : tasks) {
    const auto one_done = [left, done, task](const status& result, const std::vector<device>& devices) {
      left->found[task] = devices;
      if (!result.ok() && !left->problem) left->problem = result;
      if (--left->open > 0) return;
      std::vector<device> all;
      for (const auto& entry : left->found) all.insert(all.end(), entry.second.begin(), entry.second.end());
      done(left->problem ? *left->problem : status(), all);
    };
    if (task == own.self) one_done(status(), own.devices);
    else roads.open(task, [one_done](const status& result, const std::shared_ptr<peer_link>& link) { one_done(result, link ? link->peer().devices : std::vector<device>()); });
  }
}

#endif

}  // namespace weft::detail

#endif
