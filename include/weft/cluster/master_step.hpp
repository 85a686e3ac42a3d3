#ifndef WEFT_CLUSTER_MASTER_STEP_HPP
#define WEFT_CLUSTER_MASTER_STEP_HPP
// What a master keeps of its clients and of the steps that run for them.

#include <weft/cluster/connection.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/cluster/planner.hpp>
#include <weft/core/config.hpp>
#include <weft/cluster/server_statistics.hpp>
#include <weft/cluster/step_trace_codec.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// A client's connection and what it has open.
struct client_state {
  client_state(std::shared_ptr<connection> to, std::shared_ptr<server_counters> counts) : road(std::move(to)), counters(std::move(counts)) {}
  std::shared_ptr<connection> road;
  std::shared_ptr<server_counters> counters;
  std::map<std::uint64_t, std::shared_ptr<master_session>> sessions;
  /// Requests that are not answered yet; the client hears signs of life meanwhile.
  std::set<std::uint32_t> open;
  /// Steps that run for it.
  std::size_t steps = 0;

  std::size_t open_sessions() const noexcept {
    return static_cast<std::size_t>(std::count_if(sessions.begin(), sessions.end(), [](const auto& each) { return !each.second->closed; }));
  }
  void answer(std::uint32_t request, reply_message reply) {
    open.erase(request);
    counters->ended(reply.result);
    reply.request = request;
    const auto then = reply.then;
    try {
      road->send(std::move(reply).encode());
    } catch (const error& e) {
      // The values are more than one message may hold.
      reply_message instead;
      instead.request = request;
      instead.then = then;
      instead.result = e.status();
      instead.result.may_have_run = true;
      road->send(std::move(instead).encode());
    }
  }
  void answer(std::uint32_t request, status result, reply_message::advice then = reply_message::advice::none) {
    reply_message reply;
    reply.result = std::move(result);
    reply.then = then;
    answer(request, std::move(reply));
  }
};
using client_ptr = std::shared_ptr<client_state>;

/// A step that runs on its tasks.
struct master_step {
  std::int64_t number = 0;
  std::shared_ptr<step_plan> plan;
  client_ptr client;
  std::uint32_t request = 0;
  std::vector<tensor_value> fetches;
  /// Tasks that have not said that it is over there.
  std::set<task_id> missing;
  std::optional<status> problem;
  std::chrono::milliseconds timeout{0};
  std::unique_ptr<asio::steady_timer> timer;
  /// Of a step that is traced: when it began, and what its parts said.
  bool trace = false;
  std::chrono::steady_clock::time_point begun;
  std::vector<part_trace> traces;

  /// Takes the values that a part fetched. What the task did wrong, in words that follow its name.
  status take_fetches(const task_id& from, std::vector<tensor_value> values);
  /// Takes the trace out of a part's answer.
  void take_trace(const task_id& from, std::int64_t took, std::vector<tensor_value>& values) {
    if (!trace || took < 0 || values.empty()) return;
    // The order and the answer are taken to have been under way for the same time.
    traces.push_back({from, std::max<std::int64_t>(0, (nanoseconds_since(begun) - took) / 2), std::move(values.back())});
    values.pop_back();
  }
};
using step_ptr = std::shared_ptr<master_step>;

/// What is wrong with the feeds of a step; the graph says what they must be.
std::optional<status> wrong_feeds(const step_plan& plan, const std::vector<tensor_value>& feeds);

/// The tasks that a client's session may use; all of them for a client without one.
std::set<task_id> tasks_seen(const task_context& own, const client_state& client, std::uint64_t session);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::set<task_id> tasks_seen(const task_context& own, const client_state& client, std::uint64_t session) {
  const auto found = client.sessions.find(session);
  std::set<task_id> out;
  for (const task_id& task : own.cluster.tasks())
    if (task == own.self || found == client.sessions.end() || found->second->sees(task)) out.insert(task);
  return out;
}

WEFT_DECL status master_step::take_fetches(const task_id& from, std::vector<tensor_value> values) {
  for (const plan_part& p : plan->parts) {
    if (p.task != from) continue;
    if (values.size() != p.fetches.size()) return status(error_code::internal, "returned " + std::to_string(values.size()) + " values, expected " + std::to_string(p.fetches.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      // What a graph says of shapes does not bind, as in TensorFlow: a variable may hold a value of another one.
      const dtype expected = plan->fetched[p.fetches[i]];
      if (values[i].dtype() != expected) return status(error_code::internal, std::string("returned ") + to_text(values[i].dtype()) + values[i].shape().text() + ", the step fetches " + to_text(expected));
    }
    for (std::size_t i = 0; i < values.size(); ++i) fetches[p.fetches[i]] = std::move(values[i]);
  }
  return status();
}

WEFT_DECL std::optional<status> wrong_feeds(const step_plan& plan, const std::vector<tensor_value>& feeds) {
  const auto& wanted = plan.signature.feeds;
  if (wanted.size() != feeds.size())
    return status(error_code::invalid_argument, "the step takes " + std::to_string(wanted.size()) + " feeds, found " + std::to_string(feeds.size()));
  const auto session = plan.session.lock();
  if (session == nullptr) return status(error_code::cancelled, "the session was closed");
  const auto nodes = wanted.empty() ? std::vector<const node*>() : session->graph.nodes();
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const node& n = *nodes[wanted[i].node];
    const auto& expected = n.outputs()[wanted[i].index];
    if (feeds[i].dtype() == expected.dtype && expected.shape.accepts(feeds[i].shape())) continue;
    return n.status_about(error_code::invalid_argument, std::string("expected a feed of ") + to_text(expected.dtype) + expected.shape.text() + ", found " + to_text(feeds[i].dtype()) + feeds[i].shape().text());
  }
  return std::nullopt;
}

#endif

}  // namespace weft::detail

#endif
