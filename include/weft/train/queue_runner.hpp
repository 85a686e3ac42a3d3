#ifndef WEFT_TRAIN_QUEUE_RUNNER_HPP
#define WEFT_TRAIN_QUEUE_RUNNER_HPP
// Threads that fill a queue: each runs one enqueue operation again and again, and the last one closes the queue behind itself.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/graph/scope.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/queue.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/train/coordinator.hpp>

#include <memory>
#include <string>
#include <vector>

namespace weft {

/// What fills a queue: each operation gets a thread of its own; the same one several times gets several.
struct queue_runner {
  queue_base queue;
  std::vector<operation> enqueue_ops;
  /// Runs when the last thread ends by itself: nothing more will come.
  operation close;
  /// Runs when the coordinator asks to stop: ends those that wait to put something in.
  operation cancel;
  std::string name;
};

/// Makes a runner of these operations; adds the operations that close its queue, below the queue's device. Throws INVALID_ARGUMENT when there are none.
queue_runner make_queue_runner(const queue_base& queue, const std::vector<operation>& enqueue_ops, op_name name = {});
/// Makes a runner and counts it among those of the queue's graph, which `start_queue_runners` starts.
queue_runner add_queue_runner(const queue_base& queue, const std::vector<operation>& enqueue_ops, op_name name = {});
/// The runners of a graph.
std::vector<queue_runner> queue_runners(const graph& g = default_graph());

/// Starts the threads of a runner. A thread ends when its step fails: OUT_OF_RANGE (its input has ended) and CANCELLED end this thread alone, and the last one to end closes the queue; any other
/// error is the coordinator's reason to stop. When the coordinator stops, those that wait are sent away. The session must live until the coordinator has joined.
void start_queue_runner(const queue_runner& runner, session_interface& session, coordinator& together);
/// Starts all runners of the session's graph; how many threads there are.
std::size_t start_queue_runners(session_interface& session, coordinator& together);

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES

#include <atomic>
#include <utility>

namespace weft {

WEFT_DECL queue_runner make_queue_runner(const queue_base& queue, const std::vector<operation>& enqueue_ops, op_name name) {
  if (enqueue_ops.empty()) throw error(error_code::invalid_argument, "a queue runner needs at least one operation that puts something into '" + queue.name() + "'", name.site);
  for (const operation& op : enqueue_ops)
    if (op.empty()) throw error(error_code::invalid_argument, "an operation of the queue runner is empty", name.site);
  queue_runner out;
  out.queue = queue;
  out.enqueue_ops = enqueue_ops;
  out.close = queue.close(pending_enqueues::finish, op_name(name.site));
  out.cancel = queue.close(pending_enqueues::cancel, op_name(name.site));
  out.name = name.text.empty() ? queue.name() : std::string(name.text);
  return out;
}

// The graph keeps a runner as its operations, one after the other: those that close the queue come first, and nothing else closes one.
WEFT_DECL queue_runner add_queue_runner(const queue_base& queue, const std::vector<operation>& enqueue_ops, op_name name) {
  queue_runner out = make_queue_runner(queue, enqueue_ops, name);
  detail::graph_state& to = queue.raw().from->owner();
  to.add_to_collection("queue_runners", out.close.get());
  to.add_to_collection("queue_runners", out.cancel.get());
  for (const operation& op : enqueue_ops) to.add_to_collection("queue_runners", op.get());
  return out;
}

WEFT_DECL std::vector<queue_runner> queue_runners(const graph& g) {
  std::vector<queue_runner> out;
  const std::vector<const node*> kept = g.state()->collection("queue_runners");
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]->op() != "QueueCloseV2") {
      out.back().enqueue_ops.emplace_back(*kept[i]);
      continue;
    }
    queue_runner one;
    one.queue = queue_base(kept[i]->inputs()[0]);
    one.name = one.queue.name();
    one.close = operation(*kept[i]);
    one.cancel = operation(*kept[++i]);
    out.push_back(std::move(one));
  }
  return out;
}

namespace detail {
// What the threads of one runner share.
struct running_queue {
  queue_runner runner;
  session_interface* session;
  coordinator* together;
  std::atomic<std::size_t> left;
  // No thread uses the session any more.
  std::atomic<bool> ended{false};

  running_queue(const queue_runner& r, session_interface& s, coordinator& c) : runner(r), session(&s), together(&c), left(r.enqueue_ops.size()) {}

  void fill(std::size_t i) {
    status end;
    try {
      while (!together->should_stop()) session->run(runner.enqueue_ops[i]);
    } catch (...) {
      end = status_of_handled();
    }
    const bool last = left.fetch_sub(1) == 1;
    if (!coordinator::is_clean(end)) together->request_stop(std::move(end));
    if (!last) return;
    run_quietly(runner.close);
    ended = true;
  }
  // The queue may be closed already, and the session may have ended with all that waited in it.
  void run_quietly(const operation& op) const {
    try {
      session->run(op);
    } catch (const error&) {
    }
  }
};
}  // namespace detail

WEFT_DECL void start_queue_runner(const queue_runner& runner, session_interface& session, coordinator& together) {
  const auto shared = std::make_shared<detail::running_queue>(runner, session, together);
  for (std::size_t i = 0; i < runner.enqueue_ops.size(); ++i) together.start("queue runner " + runner.name, [shared, i] { shared->fill(i); });
  together.on_stop([shared] {
    if (!shared->ended) shared->run_quietly(shared->runner.cancel);
  });
}

WEFT_DECL std::size_t start_queue_runners(session_interface& session, coordinator& together) {
  std::size_t threads = 0;
  for (const queue_runner& runner : queue_runners(session.graph())) {
    start_queue_runner(runner, session, together);
    threads += runner.enqueue_ops.size();
  }
  return threads;
}

}  // namespace weft
#endif

#endif
