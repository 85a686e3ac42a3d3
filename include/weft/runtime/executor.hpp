#ifndef WEFT_RUNTIME_EXECUTOR_HPP
#define WEFT_RUNTIME_EXECUTOR_HPP
// Runs a task's part of a graph. The plan is made once; any number of steps may then run, also at the same time.

#include <weft/core/config.hpp>
#include <weft/runtime/step_worker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
class seeded_step;
}  // namespace detail

/// Runs one part, step after step. Feeds go to `_Arg` nodes, fetches come from `_Retval` nodes, by index.
///
/// Errors carry the node, op, line, device and task. The first root error of a step wins; after it no kernel starts, the rendezvous is aborted,
/// and the step ends when no kernel of it is running. Cancellation does the same with the token's reason, as soon as a thread works on the step;
/// pending receives and asynchronous kernels are ended by whoever cancels, through the rendezvous and the same token.
/// The executor must outlive its steps; the end of a step is the beginning of its callback.
class executor {
 public:
  using step_args = step_arguments;
  /// Takes the outcome of a step and its fetches; these are empty unless the status is ok.
  using done_callback = std::function<void(const status&, std::vector<tensor_value> fetches)>;

  /// Makes the plan and the kernels. `task` is for messages: `/job:ps/task:0 (127.0.0.1:33331)`. Throws about a node that cannot be run.
  executor(graph part, const kernel_registry& kernels, std::string task) : plan_(std::move(part), kernels, std::move(task)), states_(plan_) {}
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// Starts a step and never blocks: this thread runs a bounded number of cheap kernels, the pool the rest. `done` is called once, from any
  /// thread, perhaps before this returns.
  void run_async(step_args args, done_callback done);
  /// Runs a step; the calling thread works on it. `fetches` is emptied first; its storage is used again.
  status run(step_args args, std::vector<tensor_value>& fetches);
  /// Runs a step with feeds that are taken from `feeds`, in place of those of `args`. `fetches` has `fetch_count()` places, which are left
  /// alone unless the status is ok. The executor allocates nothing.
  status run(step_args args, tensor_value* feeds, std::size_t count, tensor_value* fetches);

  /// How many feeds and fetches the part has.
  std::size_t feed_count() const noexcept { return plan_.feeds; }
  std::size_t fetch_count() const noexcept { return plan_.fetches; }
  const std::string& task() const noexcept { return plan_.task; }

 private:
  friend class detail::seeded_step;
  detail::plan plan_;
  detail::step_states states_;
};

#if WEFT_HAS_BODIES

WEFT_DECL void executor::run_async(step_args args, done_callback done) {
  detail::step_state& state = states_.acquire();
  state.done = std::move(done);
  std::vector<tensor_value> feeds = std::move(args.feeds);
  if (!state.begin(std::move(args), feeds.data(), feeds.size())) return state.leave();
  {
    const bool inside = detail::step_worker::innermost() != nullptr;
    detail::step_worker worker(state, inside ? 0 : detail::step_worker::guest_budget);
    worker.start();
    worker.work();
  }
  state.leave();
}

WEFT_DECL status executor::run(step_args args, std::vector<tensor_value>& fetches) {
  std::vector<tensor_value> feeds = std::move(args.feeds);
  fetches.clear();
  fetches.resize(plan_.fetches);
  status outcome = run(std::move(args), feeds.data(), feeds.size(), fetches.data());
  if (!outcome.ok()) fetches.clear();
  return outcome;
}

WEFT_DECL status executor::run(step_args args, tensor_value* feeds, std::size_t count, tensor_value* fetches) {
  detail::step_state& state = states_.acquire();
  state.has_caller = true;
  if (state.begin(std::move(args), feeds, count)) {
    detail::step_worker worker(state, detail::step_worker::unlimited);
    worker.start();
    worker.work();
    std::uint32_t node;
    while (worker.had_company() && state.wait(node)) worker.pick_up(node);
  }
  status outcome;
  if (state.failed.load(std::memory_order_relaxed)) outcome = state.why;
  else std::move(state.fetches.begin(), state.fetches.end(), fetches);
  state.end();
  return outcome;
}

#endif

}  // namespace weft

#endif
