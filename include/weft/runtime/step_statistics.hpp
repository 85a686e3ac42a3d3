#ifndef WEFT_RUNTIME_STEP_STATISTICS_HPP
#define WEFT_RUNTIME_STEP_STATISTICS_HPP
// When each node of a step ran, for whoever asks; a step that is not asked pays nothing.

#include <weft/graph/node.hpp>

#include <chrono>
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
};

/// Collects the executions of a step. Thread-safe; the nodes belong to the executor's part.
class step_statistics {
 public:
  void add(const node_statistics& one) {
    const std::lock_guard<std::mutex> lock(mutex_);
    nodes_.push_back(one);
  }
  /// What was collected, in the order in which the nodes ended; none is left.
  std::vector<node_statistics> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::move(nodes_);
  }

 private:
  std::mutex mutex_;
  std::vector<node_statistics> nodes_;
};

}  // namespace weft

#endif
