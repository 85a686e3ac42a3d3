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
#include <queue>
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
  step_player(const partitioned_graph& parts, const cost_model& model) : model_(model), transfers_(parts.transfers()) { read_parts(parts); }

  step_prediction play() {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      for (std::size_t i = tasks_[t].first; i < tasks_[t].last; ++i)
        if (nodes_[i].missing == 0) events_.push({tasks_[t].speed->seconds_per_step, i, false});
    }
    while (!events_.empty()) {
      const event e = events_.top();
      events_.pop();
      if (e.ends) finish(e.node, e.time);
      else make_ready(e.node, e.time);
    }
    for (std::size_t t = 0; t < tasks_.size(); ++t) out_.tasks[t].idle = std::max(0.0, out_.seconds - out_.tasks[t].busy / tasks_[t].speed->processors);
    if (last_ != none) trace(last_);
    return std::move(out_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr std::uint32_t nobody = static_cast<std::uint32_t>(-1);
  struct timed_node {
    const node* what = nullptr;
    std::int64_t edge = -1;                                   // of a Send or Recv
    std::uint32_t task = 0, missing = 0, cause = nobody, meeting = nobody;  // meeting: the Recv of a Send
    std::uint32_t readers = 0, readers_end = 0;               // their places in readers_
    double begin = 0, takes = 0, sent = 0;                    // sent: when the transfer of a Send began
  };
  struct timed_task {
    const task_speed* speed = nullptr;
    std::size_t first = 0, last = 0;  // its nodes
    std::queue<std::size_t> ready;
    int running = 0;
    double sends_until = 0, receives_until = 0;
  };
  struct transfer_row {
    std::size_t number = none;
    double bytes = 0;
  };
  struct event {
    double time;
    std::size_t node;
    bool ends;
    friend bool operator<(const event& a, const event& b) { return a.time != b.time ? a.time > b.time : a.node > b.node; }
  };

  // The nodes of a part stand one after the other, in the order of their numbers.
  void read_parts(const partitioned_graph& parts) {
    std::vector<std::size_t> sends(transfers_.size(), none);
    rows_.assign(transfers_.size(), {});
    for (std::size_t row = 0; row < transfers_.size(); ++row) {
      const transfer t = transfers_.brief(row);
      rows_.at(at(t.edge)) = {row, model_.bytes(t)};
    }
    std::size_t count = 0;
    for (const part& p : parts.parts()) count += p.graph.size();
    nodes_.reserve(count);
    for (const part& p : parts.parts()) {
      tasks_.emplace_back();
      out_.tasks.push_back({p.task, 0, 0, 0, 0, p.graph.size()});
      tasks_.back().speed = &model_.speed_of(p.task);
      tasks_.back().first = nodes_.size();
      for (const node* n : p.graph.nodes()) {
        timed_node added;
        added.what = n;
        added.task = static_cast<std::uint32_t>(tasks_.size() - 1);
        added.takes = model_.seconds(*n, *tasks_.back().speed);
        if (n->op() == "_Send" || n->op() == "_Recv") added.edge = edge_of(*n);
        if (added.edge >= 0 && n->op() == "_Send") sends[at(added.edge)] = nodes_.size();
        nodes_.push_back(added);
      }
      tasks_.back().last = nodes_.size();
    }
    // Who reads what: counted, then filled in.
    for_each_edge([this](std::size_t, std::size_t on) { ++nodes_[on].readers_end; });
    std::uint32_t end = 0;
    for (timed_node& n : nodes_) {
      end += n.readers_end;
      n.readers = n.readers_end = end;
    }
    readers_.resize(end);
    for_each_edge([this](std::size_t reader, std::size_t on) {
      readers_[--nodes_[on].readers] = static_cast<std::uint32_t>(reader);
      ++nodes_[reader].missing;
    });
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].edge < 0 || nodes_[i].what->op() != "_Recv" || sends[at(nodes_[i].edge)] == none) continue;
      nodes_[sends[at(nodes_[i].edge)]].meeting = static_cast<std::uint32_t>(i);
      ++nodes_[i].missing;
    }
  }
  // In the order that makes the readers of a node come out in theirs, since they are filled in from the end.
  template <class F> void for_each_edge(const F& f) const {
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      const node& n = *nodes_[i].what;
      const std::size_t first = tasks_[nodes_[i].task].first;
      for (std::size_t k = n.control_inputs().size(); k-- > 0;) f(i, first + at(n.control_inputs()[k]->id()));
      for (std::size_t k = n.inputs().size(); k-- > 0;)
        if (!is_loop_edge(n, k)) f(i, first + at(n.inputs()[k].from->id()));
    }
  }
  static std::size_t at(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
  std::int64_t edge_of(const node& n) const {
    const std::int64_t edge = n.attr<std::int64_t>("_edge");
    if (edge < 0 || at(edge) >= rows_.size() || rows_[at(edge)].number == none) n.fail_about(error_code::invalid_argument, "belongs to edge " + std::to_string(edge) + ", which is not in the transfer table");
    return edge;
  }

  void make_ready(std::size_t i, double now) {
    timed_task& t = tasks_[nodes_[i].task];
    t.ready.push(i);
    start_ready(t, now);
  }
  void start_ready(timed_task& t, double now) {
    while (!t.ready.empty()) {
      const std::size_t i = t.ready.front();
      if (t.running >= t.speed->processors) return;
      t.ready.pop();
      ++t.running;
      const double takes = nodes_[i].takes;
      nodes_[i].begin = now;
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
    for (std::uint32_t k = n.readers; k != n.readers_end; ++k) release(readers_[k], i, now);
    if (n.meeting != nobody) send(i, now);
    if (!t.ready.empty() && nodes_[t.ready.front()].cause == nobody) nodes_[t.ready.front()].cause = static_cast<std::uint32_t>(i);
    start_ready(t, now);
  }
  void release(std::size_t reader, std::size_t by, double now) {
    if (--nodes_[reader].missing > 0) return;
    nodes_[reader].cause = static_cast<std::uint32_t>(by);
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
      const double size = rows_[at(from.edge)].bytes;
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
    for (; i != nobody; i = nodes_[i].cause) {
      const timed_node& n = nodes_[i];
      if (n.what->op() == "_Recv") continue;
      const std::string& task = out_.tasks[n.task].task;
      if (n.meeting != nobody && n.task != nodes_[n.meeting].task)
        out_.critical_path.push_back({transfers_[rows_[at(n.edge)].number].source + " -> " + out_.tasks[nodes_[n.meeting].task].task, task, n.sent, nodes_[n.meeting].begin});
      else if (n.meeting == nobody) out_.critical_path.push_back({n.what->name(), task, n.begin, n.begin + n.takes});
    }
    std::reverse(out_.critical_path.begin(), out_.critical_path.end());
  }

  const cost_model& model_;
  std::vector<timed_node> nodes_;
  std::vector<timed_task> tasks_;
  std::vector<std::uint32_t> readers_;
  const transfer_table& transfers_;
  std::vector<transfer_row> rows_;  // by edge
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
