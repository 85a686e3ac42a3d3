#ifndef WEFT_CLUSTER_TELL_CLUSTER_HPP
#define WEFT_CLUSTER_TELL_CLUSTER_HPP
// A client tells the tasks of a cluster where all of them are now, several at once.

#include <weft/cluster/client_channel.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/core/bounded_wait.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace weft::detail {

/// What became of telling one task.
struct told_task {
  /// The start of the server that answered, if one did.
  std::optional<std::uint64_t> incarnation;
  status result;
};

/// Tells each task of `next`, by connections that `open` makes; by position in `next.tasks()`. A task that does not answer holds up none of the others, up to 32 of them.
std::vector<told_task> tell_cluster(const cluster_spec& next, const std::function<std::unique_ptr<client_channel>(const host_port&)>& open, std::chrono::milliseconds time);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::vector<told_task> tell_cluster(const cluster_spec& next, const std::function<std::unique_ptr<client_channel>(const host_port&)>& open, std::chrono::milliseconds time) {
  const std::vector<task_id> tasks = next.tasks();
  std::vector<told_task> out(tasks.size());
  const auto tell = [&](std::size_t i) {
    try {
      const auto channel = open(parse_host_port(next.task_address(tasks[i])));
      out[i].incarnation = channel->incarnation();
      update_cluster_message what{channel->new_request(), next};
      out[i].result = channel->call(what.request, what.encode(), client_channel::clock::now() + bounded(time)).result;
    } catch (const error& e) {
      out[i].result = e.status();
    }
  };
  std::atomic<std::size_t> turn{0};
  const auto tell_some = [&] {
    for (std::size_t i; (i = turn.fetch_add(1)) < tasks.size();) tell(i);
  };
  constexpr std::size_t most_at_once = 32;
  std::vector<std::future<void>> others;
  try {
    for (std::size_t i = 1; i < std::min(tasks.size(), most_at_once); ++i) others.push_back(std::async(std::launch::async, tell_some));
  } catch (const std::system_error&) {
    // Fewer threads do it too.
  }
  tell_some();
  for (auto& each : others) each.get();
  return out;
}

#endif

}  // namespace weft::detail

#endif
