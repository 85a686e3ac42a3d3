#ifndef WEFT_CORE_STEP_TRACE_HPP
#define WEFT_CORE_STEP_TRACE_HPP
// What a step did and when, on every task: its nodes, and the values that crossed between devices. Filled by a run that is asked with `run_options::trace`.

#include <weft/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace weft {

/// One node that ran. Times are nanoseconds from the beginning of the step.
struct traced_node {
  std::string name, op, device;
  std::int64_t begin = 0, end = 0;
  /// The thread on which it ended, counted from 0 on each task.
  std::int64_t thread = 0;
  /// Of a `_Send` or `_Recv`: the number of its edge; -1 for other nodes.
  std::int64_t edge = -1;
  /// Its size, what crosses (`x`, `x:1` for a later output, `^x` for a signal), and the device at the other end.
  std::int64_t bytes = 0;
  std::string value, peer;
  /// Between tasks: when the sender handed it to the connection, because its receiver was ready; when it arrived, for the receiver. -1 where that is not known.
  std::int64_t passed = -1;
};

/// What ran on one task, in the order in which it ended.
struct task_trace {
  std::string task;
  std::vector<traced_node> nodes;
  /// Nodes that were left out because there were too many.
  std::int64_t left_out = 0;
};

/// A step as it went. The clocks of the tasks are brought together by the time that the order to run and its answer took, so that times of two tasks may differ by half of that.
struct step_trace {
  /// The number of the step at its session.
  std::int64_t step = 0;
  std::vector<task_trace> tasks;
};

/// A value on its way from one device to another, in nanoseconds from the beginning of the step.
struct traced_transfer {
  std::int64_t edge = 0, bytes = 0;
  std::string value, from, to;
  /// When the sender gave it away, when it went on the wire, when it arrived, when the receiver was there for it, and when it had it.
  std::int64_t given = 0, sent = 0, arrived = 0, wanted = 0, taken = 0;

  /// How long it waited for its receiver to be ready.
  std::int64_t send_wait() const noexcept { return sent - given; }
  /// How long it was under way.
  std::int64_t wire() const noexcept { return arrived - sent; }
  /// How long the receiver waited for it.
  std::int64_t receive_wait() const noexcept { return taken > wanted ? taken - wanted : 0; }
};

/// The values that crossed between devices, by rising number of their edges: those of which both ends are traced.
std::vector<traced_transfer> transfers_of(const step_trace& trace);

namespace detail {
// The nodes of a task by their beginning.
std::vector<const traced_node*> by_beginning(const task_trace& task);
}  // namespace detail

/// A table: each task's nodes by their beginning, then the transfers with the time that they waited and were under way.
std::string to_text(const step_trace& trace);
inline std::ostream& operator<<(std::ostream& out, const step_trace& trace) { return out << to_text(trace); }

}  // namespace weft

#if WEFT_HAS_BODIES
#include <algorithm>
#include <cstdio>
#include <map>

namespace weft {

WEFT_DECL std::vector<traced_transfer> transfers_of(const step_trace& trace) {
  struct ends {
    const traced_node *send = nullptr, *receive = nullptr;
  };
  std::map<std::int64_t, ends> edges;
  for (const task_trace& task : trace.tasks)
    for (const traced_node& n : task.nodes)
      if (n.edge >= 0) (n.op == "_Send" ? edges[n.edge].send : edges[n.edge].receive) = &n;
  std::vector<traced_transfer> out;
  for (const auto& [edge, both] : edges) {
    if (both.send == nullptr || both.receive == nullptr) continue;
    traced_transfer t;
    t.edge = edge;
    t.bytes = both.receive->bytes;
    t.value = both.send->value;
    t.from = both.send->device;
    t.to = both.receive->device;
    t.given = both.send->begin;
    t.wanted = both.receive->begin;
    t.taken = both.receive->end;
    // Within a task it is there when it is given.
    t.sent = both.send->passed >= 0 ? both.send->passed : t.given;
    t.arrived = both.receive->passed >= 0 ? both.receive->passed : t.sent;
    out.push_back(t);
  }
  return out;
}

namespace detail {
WEFT_DECL std::vector<const traced_node*> by_beginning(const task_trace& task) {
  std::vector<const traced_node*> order;
  for (const traced_node& n : task.nodes) order.push_back(&n);
  std::stable_sort(order.begin(), order.end(), [](const traced_node* a, const traced_node* b) { return a->begin < b->begin; });
  return order;
}

// `12.345 ms`, in a column.
inline std::string in_milliseconds(std::int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%10.3f ms", static_cast<double>(nanoseconds) / 1e6);
  return text;
}
}  // namespace detail

WEFT_DECL std::string to_text(const step_trace& trace) {
  std::string out = "step " + std::to_string(trace.step) + "\n";
  for (const task_trace& task : trace.tasks) {
    out += task.task + ", " + std::to_string(task.nodes.size()) + " nodes" + (task.left_out > 0 ? ", " + std::to_string(task.left_out) + " more are left out" : "") + "\n";
    for (const traced_node* n : detail::by_beginning(task)) out += detail::in_milliseconds(n->begin) + " +" + detail::in_milliseconds(n->end - n->begin) + "  " + n->name + " (" + n->op + ")\n";
  }
  for (const traced_transfer& t : transfers_of(trace))
    out += t.value + ", " + std::to_string(t.bytes) + " bytes, " + t.from + " -> " + t.to + ": waited " + detail::in_milliseconds(t.send_wait()) + ", under way " + detail::in_milliseconds(t.wire()) +
           ", waited for " + detail::in_milliseconds(t.receive_wait()) + "\n";
  return out;
}

}  // namespace weft
#endif

#endif
