#ifndef WEFT_SIMULATE_STEP_HPP
#define WEFT_SIMULATE_STEP_HPP
// A step of a partitioned graph played through without running it: how long it would take, who would wait for what.

#include <weft/core/config.hpp>
#include <weft/partition/partitioned_graph.hpp>
#include <weft/simulate/cost_model.hpp>

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>
#if WEFT_HAS_BODIES
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <queue>
#include <set>
#include <utility>
#endif

namespace weft {

/// What a task does during a step.
struct task_usage {
  std::string task;
  /// Seconds that its processors compute, together; and seconds that it has none to give work to, per processor, until the step's end.
  double busy = 0, idle = 0;
  double bytes_sent = 0, bytes_received = 0;
  std::size_t nodes = 0;
};

/// One thing that the step's end waits for.
struct critical_event {
  /// A node, or the value that a transfer carries, with ` -> ` and the task that gets it.
  std::string what;
  std::string task;
  /// Seconds from the step's start.
  double begin = 0, end = 0;
};

/// How a step is expected to go.
struct step_prediction {
  /// From the first node to the last.
  double seconds = 0;
  /// By task, in the order of the parts.
  std::vector<task_usage> tasks;
  /// The chain of nodes and transfers that takes as long as the step: what to make faster. A gap between two of them is a wait for a processor or a link.
  std::vector<critical_event> critical_path;
  /// Bytes that cross between tasks.
  double bytes = 0;
};

/// Plays a step. Each task runs its ready nodes in the order in which they became ready, as many at a time as it has processors; a task sends one value after the other, and
/// receives one after the other. Deterministic: equal times go by the order of the parts and of their nodes.
step_prediction simulate_step(const partitioned_graph& parts, const cost_model& model = {});

/// A table: the time, each task's use, the critical path.
std::string to_text(const step_prediction& p);
inline std::ostream& operator<<(std::ostream& out, const step_prediction& p) { return out << to_text(p); }

/// The critical path of a step, as `simulate_step` finds it.
inline std::vector<critical_event> critical_path(const partitioned_graph& parts, const cost_model& model = {}) { return simulate_step(parts, model).critical_path; }

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

class step_player {
 public:
  step_player(const partitioned_graph& parts, const cost_model& model) : model_(model) {
    read_parts(parts);
    for (const transfer& t : parts.transfers()) transfers_[t.edge] = &t;
  }

  step_prediction play() {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      const double start = model_.speed_of(out_.tasks[t].task).seconds_per_step;
      for (const std::size_t i : tasks_[t].nodes)
        if (nodes_[i].missing == 0) events_.push({start, i, false});
    }
    while (!events_.empty()) {
      const event e = events_.top();
      events_.pop();
      if (e.ends) finish(e.node, e.time);
      else make_ready(e.node, e.time);
    }
    for (std::size_t t = 0; t < tasks_.size(); ++t) out_.tasks[t].idle = std::max(0.0, out_.seconds - out_.tasks[t].busy / model_.speed_of(out_.tasks[t].task).processors);
    if (last_ != none) trace(last_);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct timed_node {
    const node* what = nullptr;
    std::size_t task = 0, missing = 0, cause = none, meeting = none;  // meeting: the Recv of a Send
    std::vector<std::size_t> readers;
    double begin = 0, end = 0, sent = 0;  // sent: when the transfer of a Send began
  };
  struct timed_task {
    std::vector<std::size_t> nodes;
    std::queue<std::size_t> ready;
    int running = 0;
    double sends_until = 0, receives_until = 0;
  };
  struct event {
    double time;
    std::size_t node;
    bool ends;
    friend bool operator<(const event& a, const event& b) { return a.time != b.time ? a.time > b.time : a.node > b.node; }
  };

  void read_parts(const partitioned_graph& parts) {
    std::map<const node*, std::size_t> index;
    std::map<std::int64_t, std::size_t> sends;
    for (const part& p : parts.parts()) {
      tasks_.emplace_back();
      out_.tasks.push_back({p.task, 0, 0, 0, 0, p.graph.size()});
      for (const node* n : p.graph.nodes()) {
        index[n] = nodes_.size();
        tasks_.back().nodes.push_back(nodes_.size());
        timed_node added;
        added.what = n;
        added.task = tasks_.size() - 1;
        nodes_.push_back(std::move(added));
        if (n->op() == "_Send") sends[n->attr<std::int64_t>("_edge")] = nodes_.size() - 1;
      }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const node& n = *nodes_[i].what;
      for (std::size_t k = 0; k < n.inputs().size(); ++k)
        if (!is_loop_edge(n, k)) depend(i, index.at(n.inputs()[k].from));
      for (const node* before : n.control_inputs()) depend(i, index.at(before));
      if (n.op() != "_Recv") continue;
      const auto send = sends.find(n.attr<std::int64_t>("_edge"));
      if (send == sends.end()) continue;
      nodes_[send->second].meeting = i;
      ++nodes_[i].missing;
    }
  }
  void depend(std::size_t reader, std::size_t on) {
    nodes_[on].readers.push_back(reader);
    ++nodes_[reader].missing;
  }

  void make_ready(std::size_t i, double now) {
    timed_task& t = tasks_[nodes_[i].task];
    t.ready.push(i);
    start_ready(t, now);
  }
  void start_ready(timed_task& t, double now) {
    while (!t.ready.empty()) {
      const std::size_t i = t.ready.front();
      const std::string& name = out_.tasks[nodes_[i].task].task;
      if (t.running >= model_.speed_of(name).processors) return;
      t.ready.pop();
      ++t.running;
      const double takes = model_.seconds(*nodes_[i].what, name);
      nodes_[i].begin = now;
      nodes_[i].end = now + takes;
      out_.tasks[nodes_[i].task].busy += takes;
      events_.push({now + takes, i, true});
    }
  }
  void finish(std::size_t i, double now) {
    timed_node& n = nodes_[i];
    if (last_ == none || now >= out_.seconds) {
      out_.seconds = now;
      last_ = i;
    }
    timed_task& t = tasks_[n.task];
    --t.running;
    for (const std::size_t reader : n.readers) release(reader, i, now);
    if (n.meeting != none) send(i, now);
    if (!t.ready.empty() && nodes_[t.ready.front()].cause == none) nodes_[t.ready.front()].cause = i;
    start_ready(t, now);
  }
  void release(std::size_t reader, std::size_t by, double now) {
    if (--nodes_[reader].missing > 0) return;
    nodes_[reader].cause = by;
    events_.push({now, reader, false});
  }
  // Between the devices of one task a value is there at once.
  void send(std::size_t i, double now) {
    timed_node& from = nodes_[i];
    timed_node& to = nodes_[from.meeting];
    double there = now;
    from.sent = now;
    if (from.task != to.task) {
      timed_task &out = tasks_[from.task], &in = tasks_[to.task];
      const link_speed& link = model_.speed_of(out_.tasks[from.task].task, out_.tasks[to.task].task);
      const double size = model_.bytes(*transfers_.at(from.what->attr<std::int64_t>("_edge")));
      from.sent = std::max(now, out.sends_until);
      out.sends_until = from.sent + size / link.bytes_per_second;
      in.receives_until = std::max(out.sends_until, in.receives_until + size / link.bytes_per_second);
      out_.tasks[from.task].bytes_sent += size;
      out_.tasks[to.task].bytes_received += size;
      out_.bytes += size;
      there = in.receives_until + link.latency;
    }
    release(from.meeting, i, there);
  }

  // The events that the end waited for, from the last one back.
  void trace(std::size_t i) {
    for (; i != none; i = nodes_[i].cause) {
      const timed_node& n = nodes_[i];
      if (n.what->op() == "_Recv") continue;
      const std::string& task = out_.tasks[n.task].task;
      if (n.meeting != none && n.task != nodes_[n.meeting].task)
        out_.critical_path.push_back({transfers_.at(n.what->attr<std::int64_t>("_edge"))->source + " -> " + out_.tasks[nodes_[n.meeting].task].task, task, n.sent, nodes_[n.meeting].begin});
      else if (n.meeting == none) out_.critical_path.push_back({n.what->name(), task, n.begin, n.end});
    }
    std::reverse(out_.critical_path.begin(), out_.critical_path.end());
  }

  const cost_model& model_;
  std::vector<timed_node> nodes_;
  std::vector<timed_task> tasks_;
  std::map<std::int64_t, const transfer*> transfers_;
  std::priority_queue<event> events_;
  step_prediction out_;
  std::size_t last_ = none;
};

inline std::string time_text(double seconds) {
  char text[32];
  if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.2f us", seconds * 1e6);
  else if (seconds < 1) std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL step_prediction simulate_step(const partitioned_graph& parts, const cost_model& model) { return detail::step_player(parts, model).play(); }

WEFT_DECL std::string to_text(const step_prediction& p) {
  std::string out = "step " + detail::time_text(p.seconds) + ", " + std::to_string(static_cast<long long>(p.bytes)) + " bytes between tasks\n";
  for (const task_usage& t : p.tasks)
    out += t.task + ": busy " + detail::time_text(t.busy) + ", idle " + detail::time_text(t.idle) + ", sends " + std::to_string(static_cast<long long>(t.bytes_sent)) + " bytes, receives " +
           std::to_string(static_cast<long long>(t.bytes_received)) + ", " + std::to_string(t.nodes) + " nodes\n";
  out += "critical path:\n";
  for (const critical_event& e : p.critical_path) out += "  " + detail::time_text(e.begin) + " to " + detail::time_text(e.end) + "  " + e.what + " on " + e.task + "\n";
  return out;
}

}  // namespace weft
#endif

#endif
