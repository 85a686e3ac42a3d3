#ifndef WEFT_SESSION_LOCAL_RUNTIME_HPP
#define WEFT_SESSION_LOCAL_RUNTIME_HPP
// What a local session runs on: the tasks' state, the threads, the placement, and steps with one executor per task.

#include <weft/core/config.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/partition/partition.hpp>
#include <weft/runtime/buffer_pool.hpp>
#include <weft/runtime/executor.hpp>
#include <weft/runtime/local_rendezvous.hpp>
#include <weft/session/placement_log.hpp>
#include <weft/session/session_interface.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES

namespace weft::detail {

// One step in flight: how it is cancelled, and where its parts meet. Reused by later steps of the same plan.
struct running_step {
  cancellation_source cancellation;
  local_rendezvous rendezvous;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t parts_left = 0;
  status failure;
  bool used_up = false;

  // Keeps the first root error and ends the other parts.
  void finish_part(const status& outcome) {
    if (!outcome.ok()) fail_step(outcome);
    const std::lock_guard<std::mutex> lock(mutex);
    if (--parts_left == 0) changed.notify_all();
  }
  void fail_step(const status& why) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (failure.ok() || (failure.derived && !why.derived)) failure = why;
      used_up = true;
    }
    status derived = why;
    derived.derived = true;
    cancellation.cancel(derived);
    rendezvous.abort(derived);
  }
};

// The state of one task.
struct task_state {
  explicit task_state(std::string container) : resources(std::move(container)) {}
  resource_manager resources, session_state;
};

class local_runtime {
 public:
  local_runtime(graph g, session_options options);

  placement placed();
  partitioned_graph partitions(const step_signature& signature);
  const graph& nodes() const noexcept { return graph_; }
  const device_set& devices() const noexcept { return devices_; }
  const kernel_registry& kernels() const noexcept { return *kernels_; }
  task_state& task(const std::string& name) { return *tasks_.at(name); }
  thread_pool& pool() noexcept { return pool_; }
  buffer_pool& buffers() noexcept { return *buffers_; }
  std::int64_t next_step() {
    if (closed_.load(std::memory_order_acquire)) fail(error_code::failed_precondition, "the session is closed");
    return next_step_.fetch_add(1, std::memory_order_relaxed);
  }
  // Steps that `close` must be able to cancel.
  void watch(const std::shared_ptr<running_step>& step) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watched_.erase(std::remove_if(watched_.begin(), watched_.end(), [](const auto& w) { return w.expired(); }), watched_.end());
    watched_.push_back(step);
  }
  void close();

 private:
  const graph graph_;
  const session_options options_;
  const std::shared_ptr<const kernel_registry> kernels_;
  const device_set devices_;
  std::map<std::string, std::unique_ptr<task_state>, std::less<>> tasks_;
  std::mutex mutex_, placement_mutex_;
  std::vector<std::weak_ptr<running_step>> watched_;
  std::atomic<std::int64_t> next_step_{1};
  std::atomic<bool> closed_{false};
  placement placement_;
  const std::shared_ptr<buffer_pool> buffers_ = std::make_shared<buffer_pool>();
  thread_pool pool_;
};

inline std::shared_ptr<const kernel_registry> kernels_of(const session_options& options) {
  return options.kernels ? options.kernels : std::shared_ptr<const kernel_registry>(std::shared_ptr<void>(), &standard_kernels());
}

inline device_set devices_of(const session_options& options, const std::shared_ptr<const kernel_registry>& kernels) {
  const std::shared_ptr<const kernel_catalogue> catalogue(kernels, &kernels->catalogue());
  device_set out = options.cluster.empty() ? device_set::of_task(local_task, options.devices, catalogue) : device_set::of_cluster(options.cluster, options.devices, catalogue);
  if (out.empty()) fail(error_code::invalid_argument, "session_options: there is no device; leave 'devices' as it is, or name at least {\"CPU\", 1}");
  return out;
}

inline local_runtime::local_runtime(graph g, session_options options)
    : graph_(std::move(g)), options_(std::move(options)), kernels_(kernels_of(options_)), devices_(devices_of(options_, kernels_)),
      pool_(options_.kernel_threads == 0 ? std::thread::hardware_concurrency() : options_.kernel_threads) {
  for (const std::string& task : devices_.tasks()) tasks_.emplace(task, std::make_unique<task_state>(*parse_device_name(task).job));
}

// Places nodes that are new since the last time; those placed before stay where they are.
inline placement local_runtime::placed() {
  const std::lock_guard<std::mutex> lock(placement_mutex_);
  const std::size_t before = placement_.size();
  if (before == graph_.size()) return placement_;
  placement_options options;
  options.default_task = devices_.tasks().front();
  options.allow_soft_placement = options_.allow_soft_placement;
  const placement earlier = placement_;
  options.earlier = &earlier;
  placement_ = place(graph_, devices_, options);
  if (options_.log_device_placement) log_placement(graph_, placement_, before, options_.log);
  return placement_;
}

inline partitioned_graph local_runtime::partitions(const step_signature& signature) {
  partition_options options;
  options.feeds = signature.feeds;
  options.fetches = signature.fetches;
  options.targets = signature.targets;
  options.master = devices_.tasks().front();
  return partition(graph_, devices_, placed(), options);
}

inline void local_runtime::close() {
  closed_.store(true, std::memory_order_release);
  std::vector<std::weak_ptr<running_step>> steps;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    steps = watched_;
  }
  for (const auto& weak : steps)
    if (const auto step = weak.lock()) step->fail_step(status(error_code::cancelled, "the session was closed while the step was running"));
}

// A signature's plan: an executor per task, and which of the step's feeds and fetches are which of its own.
class local_step : public prepared_step {
 public:
  local_step(std::shared_ptr<local_runtime> runtime, const step_signature& signature);
  void run(std::vector<tensor_value> feeds, std::vector<tensor_value>& fetches, const run_options& options) override;

 private:
  struct task_part {
    std::unique_ptr<executor> run;
    task_state* task;
    std::vector<std::size_t> feeds, fetches;
    bool feeds_in_order, fetches_in_order;
  };
  std::shared_ptr<running_step> take();
  void give_back(std::shared_ptr<running_step> step);
  executor::step_args arguments(const task_part& part, const std::vector<tensor_value>& feeds, running_step& step, std::int64_t number) const;
  status run_alone(std::vector<tensor_value> feeds, std::vector<tensor_value>& fetches, running_step& step, std::int64_t number);
  status run_parts(const std::vector<tensor_value>& feeds, std::vector<tensor_value>& fetches, running_step& step, std::int64_t number, std::chrono::milliseconds timeout);

  std::shared_ptr<local_runtime> runtime_;
  std::vector<task_part> parts_;
  std::size_t fetch_count_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<running_step>> idle_;
};

// Positions of a part's tensors, known by name, among the step's.
inline std::vector<std::size_t> positions_of(const std::vector<std::string>& names, const std::vector<output>& among) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < among.size(); ++i) by_name.emplace(among[i].from->name() + ":" + std::to_string(among[i].index), i);
  std::vector<std::size_t> out;
  for (const std::string& name : names) out.push_back(by_name.at(name));
  return out;
}

inline bool counts_up(const std::vector<std::size_t>& positions, std::size_t to) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (positions[i] != i) return false;
  return positions.size() == to;
}

inline local_step::local_step(std::shared_ptr<local_runtime> runtime, const step_signature& signature) : runtime_(std::move(runtime)), fetch_count_(signature.fetches.size()) {
  const partitioned_graph parted = runtime_->partitions(signature);
  for (const part& p : parted.parts()) {
    task_part made{std::make_unique<executor>(p.graph, runtime_->kernels(), p.task), &runtime_->task(p.task), positions_of(p.feeds, signature.feeds),
                   positions_of(p.fetches, signature.fetches), false, false};
    made.feeds_in_order = counts_up(made.feeds, signature.feeds.size());
    made.fetches_in_order = counts_up(made.fetches, fetch_count_);
    parts_.push_back(std::move(made));
  }
}

inline std::shared_ptr<running_step> local_step::take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      auto out = std::move(idle_.back());
      idle_.pop_back();
      return out;
    }
  }
  auto made = std::make_shared<running_step>();
  runtime_->watch(made);
  return made;
}

// A step that failed leaves a cancelled source and an aborted rendezvous behind; it is not used again.
inline void local_step::give_back(std::shared_ptr<running_step> step) {
  {
    const std::lock_guard<std::mutex> lock(step->mutex);
    if (step->used_up) return;
  }
  if (parts_.size() > 0) step->rendezvous.reset();
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(step));
}

inline executor::step_args local_step::arguments(const task_part& part, const std::vector<tensor_value>& feeds, running_step& step, std::int64_t number) const {
  executor::step_args out;
  for (const std::size_t i : part.feeds) out.feeds.push_back(feeds[i]);
  out.resources = &part.task->resources;
  out.session_state = &part.task->session_state;
  out.pool = &runtime_->pool();
  out.buffers = &runtime_->buffers();
  out.on_error = [&step](const status& why) { step.fail_step(why); };
  out.rendezvous = &step.rendezvous;
  out.cancellation = step.cancellation.token();
  out.step = number;
  return out;
}

inline void local_step::run(std::vector<tensor_value> feeds, std::vector<tensor_value>& fetches, const run_options& options) {
  const std::int64_t number = runtime_->next_step();
  const std::shared_ptr<running_step> step = take();
  fetches.clear();
  const bool alone = parts_.size() == 1 && options.timeout.count() <= 0;
  status outcome = alone ? run_alone(std::move(feeds), fetches, *step, number) : run_parts(feeds, fetches, *step, number, options.timeout);
  give_back(step);
  if (outcome.ok()) return;
  outcome.derived = false;
  outcome.may_have_run = true;
  throw error(std::move(outcome));
}

inline status local_step::run_alone(std::vector<tensor_value> feeds, std::vector<tensor_value>& fetches, running_step& step, std::int64_t number) {
  const task_part& part = parts_[0];
  executor::step_args args = part.feeds_in_order ? arguments({nullptr, part.task, {}, {}, true, true}, feeds, step, number) : arguments(part, feeds, step, number);
  if (part.feeds_in_order) args.feeds = std::move(feeds);
  std::vector<tensor_value> got;
  const status outcome = part.run->run(std::move(args), part.fetches_in_order ? fetches : got);
  if (!outcome.ok()) {
    const std::lock_guard<std::mutex> lock(step.mutex);
    step.used_up = true;
    return step.failure.ok() || !outcome.derived ? outcome : step.failure;
  }
  if (!part.fetches_in_order) {
    fetches.resize(fetch_count_);
    for (std::size_t i = 0; i < got.size(); ++i) fetches[part.fetches[i]] = std::move(got[i]);
  }
  return outcome;
}

inline status local_step::run_parts(const std::vector<tensor_value>& feeds, std::vector<tensor_value>& fetches, running_step& step, std::int64_t number,
                                    std::chrono::milliseconds timeout) {
  fetches.resize(fetch_count_);
  step.parts_left = parts_.size();
  // 1. Every part starts; a part that waits for another holds no thread.
  for (const task_part& part : parts_)
    part.run->run_async(arguments(part, feeds, step, number), [&part, &fetches, &step](const status& outcome, std::vector<tensor_value> got) {
      for (std::size_t i = 0; outcome.ok() && i < got.size(); ++i) fetches[part.fetches[i]] = std::move(got[i]);
      step.finish_part(outcome);
    });
  // 2. The caller waits for all of them; past the deadline they are told to end.
  std::unique_lock<std::mutex> lock(step.mutex);
  const auto ended = [&step] { return step.parts_left == 0; };
  const thread_pool::blocking place(&runtime_->pool());
  if (timeout.count() > 0 && !step.changed.wait_for(lock, timeout, ended)) {
    lock.unlock();
    step.fail_step(status(error_code::deadline_exceeded, "the step did not end within " + std::to_string(timeout.count()) + " ms"));
    lock.lock();
  }
  step.changed.wait(lock, ended);
  return step.failure;
}

}  // namespace weft::detail

#endif

#endif
