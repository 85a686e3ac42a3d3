#ifndef WEFT_CLUSTER_LIVE_STEP_HPP
#define WEFT_CLUSTER_LIVE_STEP_HPP
// What a worker keeps of the graphs that are registered with it and of the steps that run.

#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/remote_rendezvous.hpp>
#include <weft/cluster/step_trace_codec.hpp>
#include <weft/runtime/cancellation.hpp>
#include <weft/runtime/executor.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/runtime/step_statistics.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace weft::detail {

/// A part that a master registered.
struct registration {
  std::vector<part_edge> edges;
  std::unique_ptr<executor> runs;
  std::size_t nodes = 0;
  std::shared_ptr<resource_manager> session_state;
  /// Tasks that it sends to, that it receives from, and of the latter those that may owe it large tensors.
  std::set<task_id> receivers, senders, large_senders;
  /// Why it cannot be run any more: a road that it uses was lost, so that tensors may be missing.
  std::optional<status> broken;

  bool uses(const task_id& peer) const { return receivers.count(peer) != 0 || senders.count(peer) != 0; }
};

/// Tells a step's master what became of its part here.
using part_answer = std::function<void(part_done_message, std::vector<tensor_value>)>;

/// A step that runs.
struct live_step {
  step_id id;
  std::shared_ptr<registration> what;
  std::unique_ptr<remote_rendezvous> meets;
  cancellation_source cancel;
  part_answer answer;
  std::vector<tensor_value> feeds;
  /// Of a step that is traced: when the order to run it came, and what its nodes do.
  std::chrono::steady_clock::time_point ordered;
  std::unique_ptr<step_statistics> statistics;
  bool started = false;
  /// Its part is over; it stays while large tensors wait for their receivers.
  bool answered = false;
  /// Its master knows that it failed.
  bool failed = false;
};

}  // namespace weft::detail

#endif
