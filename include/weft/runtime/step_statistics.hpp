#ifndef WEFT_RUNTIME_STEP_STATISTICS_HPP
#define WEFT_RUNTIME_STEP_STATISTICS_HPP
// When each node of a step ran, for whoever asks; a step that is not asked pays nothing.

#include <weft/core/config.hpp>
#include <weft/core/step_trace.hpp>
#include <weft/graph/node.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace weft {

/// One execution of one node.
struct node_statistics {
  const node* about = nullptr;
  std::chrono::steady_clock::time_point start, end;
  /// The thread on which it ended.
  std::thread::id thread;
  /// Of a `_Send` or `_Recv`: its edge and the bytes that crossed.
  std::int64_t edge = -1;
  std::size_t bytes = 0;
};

/// Collects the executions of a step. Thread-safe; the nodes belong to the executor's part.
class step_statistics {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  void add(const node_statistics& one) {
    const std::lock_guard<std::mutex> lock(mutex_);
    nodes_.push_back(one);
  }
  /// The value of an edge goes to another task now, or comes from there.
  void passes(std::int64_t edge) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard<std::mutex> lock(mutex_);
    passed_.emplace(edge, now);
  }
  /// What was collected, in the order in which the nodes ended; none is left.
  std::vector<node_statistics> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::move(nodes_);
  }
  /// When the values of edges passed between tasks.
  std::map<std::int64_t, time_point> passed() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return passed_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<node_statistics> nodes_;
  std::map<std::int64_t, time_point> passed_;
};

/// What a task's part did, as data; the statistics are used up. At most `most` nodes. The part must still be there.
task_trace trace_of(step_statistics& statistics, std::string task, step_statistics::time_point begin, std::size_t most = 200000);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL task_trace trace_of(step_statistics& statistics, std::string task, step_statistics::time_point begin, std::size_t most) {
  const auto since = [begin](step_statistics::time_point t) { return static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t - begin).count()); };
  const auto text = [](const node& n, const char* name) {
    const std::string* found = n.find_attr<std::string>(name);
    return found == nullptr ? std::string() : *found;
  };
  const auto nodes = statistics.take();
  const auto passed = statistics.passed();
  std::map<std::thread::id, std::int64_t> threads;
  task_trace out;
  out.task = std::move(task);
  for (const node_statistics& one : nodes) {
    if (out.nodes.size() >= most) {
      ++out.left_out;
      continue;
    }
    traced_node n;
    n.name = one.about->name();
    n.op = one.about->op();
    n.device = one.about->device();
    n.begin = since(one.start);
    n.end = since(one.end);
    n.thread = threads.emplace(one.thread, static_cast<std::int64_t>(threads.size())).first->second;
    if (one.edge >= 0) {
      n.edge = one.edge;
      n.bytes = static_cast<std::int64_t>(one.bytes);
      // `edge_5_x`
      const std::string prefix = "edge_" + std::to_string(one.edge) + "_";
      n.value = text(*one.about, "tensor_name");
      if (n.value.compare(0, prefix.size(), prefix) == 0) n.value.erase(0, prefix.size());
      n.peer = text(*one.about, n.op == "_Send" ? "recv_device" : "send_device");
      if (const auto at = passed.find(one.edge); at != passed.end()) n.passed = since(at->second);
    }
    out.nodes.push_back(std::move(n));
  }
  return out;
}

}  // namespace weft
#endif

#endif
