#ifndef WEFT_SESSION_LOCAL_RUNTIME_HPP
#define WEFT_SESSION_LOCAL_RUNTIME_HPP
// What a local session runs on: the tasks' state, the threads, the placement, and steps with one executor per task.

#include <weft/core/bounded_wait.hpp>
#include <weft/core/config.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/partition/partition.hpp>
#include <weft/runtime/buffer_pool.hpp>
#include <weft/runtime/executor.hpp>
#include <weft/runtime/local_rendezvous.hpp>
#include <weft/runtime/seeded_step.hpp>
#include <weft/session/part_passes.hpp>
#include <weft/session/placement_log.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/session/signature_cache.hpp>

#include <algorithm>
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

namespace weft::detail {

// One step in flight: how it is cancelled, and where its parts meet. Reused by later steps of the same plan.
struct running_step {
  cancellation_source cancellation;
  local_rendezvous rendezvous;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t parts_left = 0;
  status failure;
  // Cancelled or aborted, and of no use for another step.
  std::atomic<bool> used_up{false};
  // Its owner while it waits for the next step.
  std::shared_ptr<running_step> idle;

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
  const optimizer_options& optimizer() const noexcept { return options_.optimizer; }
  const std::optional<std::uint64_t>& schedule_seed() const noexcept { return options_.schedule_seed; }
  // Held by the one step that runs in a seeded order, and by those that its kernels run.
  std::recursive_mutex& one_step() noexcept { return one_step_; }
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
  std::recursive_mutex one_step_;
  std::vector<std::weak_ptr<running_step>> watched_;
  std::atomic<std::int64_t> next_step_{1};
  std::atomic<bool> closed_{false};
  placement placement_;
  const std::shared_ptr<buffer_pool> buffers_ = std::make_shared<buffer_pool>();
  thread_pool pool_;
};

// A signature's plan: an executor per task, and which of the step's feeds and fetches are which of its own.
class local_step : public prepared_step {
 public:
  local_step(std::shared_ptr<local_runtime> runtime, const step_signature& signature);
  WEFT_INLINE ~local_step() override;
  WEFT_INLINE void run(tensor_value* feeds, tensor_value* fetches, const run_options& options) override;

 private:
  struct task_part {
    std::unique_ptr<executor> run;
    task_state* task;
    std::vector<std::size_t> feeds, fetches;
    bool feeds_in_order, fetches_in_order;
  };
  std::shared_ptr<running_step> take();
  void give_back(std::shared_ptr<running_step> step);
  // One step as it is asked for; `statistics` has a place for each part, or is nullptr.
  struct asked_step {
    std::int64_t number;
    std::chrono::milliseconds timeout;
    step_statistics* statistics;
  };
  executor::step_args arguments(const task_part& part, running_step& step, const asked_step& asked) const;
  status run_alone(tensor_value* feeds, tensor_value* fetches, running_step& step, const asked_step& asked);
  status run_parts(tensor_value* feeds, tensor_value* fetches, running_step& step, const asked_step& asked);
  status run_seeded(tensor_value* feeds, tensor_value* fetches, running_step& step, const asked_step& asked);

  std::shared_ptr<local_runtime> runtime_;
  std::vector<task_part> parts_;
  // Whether values go through the step's rendezvous.
  bool transfers_ = false;
  // What the last step left, for the common case of one step at a time; and what further ones left.
  std::atomic<running_step*> spare_{nullptr};
  std::mutex mutex_;
  std::vector<std::shared_ptr<running_step>> idle_;
};

// A session on a local runtime.
class runtime_session final : public session_interface {
 public:
  runtime_session(session_options options, const weft::graph& g)
      : steps_(options.prepared_signatures), runtime_(std::make_shared<local_runtime>(weft::graph(g.state()), std::move(options))) {}
  const weft::graph& graph() const override { return runtime_->nodes(); }
  std::shared_ptr<prepared_step> prepare(const step_signature& signature) override {
    return steps_.find_or_make(signature, [this](const step_signature& s) { return std::make_shared<local_step>(runtime_, s); });
  }
  partitioned_graph partitions(const step_signature& signature) override { return runtime_->partitions(signature); }
  std::vector<device> list_devices() override { return runtime_->devices().devices(); }
  void close() override { runtime_->close(); }

 private:
  signature_cache<prepared_step> steps_;
  std::shared_ptr<local_runtime> runtime_;
};

#if WEFT_HAS_BODIES

inline std::shared_ptr<const kernel_registry> kernels_of(const session_options& options) {
  return options.kernels ? options.kernels : std::shared_ptr<const kernel_registry>(std::shared_ptr<void>(), &standard_kernels());
}

inline device_set devices_of(const session_options& options, const std::shared_ptr<const kernel_registry>& kernels) {
  const std::shared_ptr<const kernel_catalogue> catalogue(kernels, &kernels->catalogue());
  device_set out = options.cluster.empty() ? device_set::of_task(local_task, options.devices, catalogue) : device_set::of_cluster(options.cluster, options.devices, catalogue);
  if (out.empty()) fail(error_code::invalid_argument, "session_options: there is no device; leave 'devices' as it is, or name at least {\"CPU\", 1}");
  return out;
}

WEFT_DECL local_runtime::local_runtime(graph g, session_options options)
    : graph_(std::move(g)), options_(std::move(options)), kernels_(kernels_of(options_)), devices_(devices_of(options_, kernels_)),
      pool_(options_.kernel_threads == 0 ? std::thread::hardware_concurrency() : options_.kernel_threads) {
  for (const std::string& task : devices_.tasks()) tasks_.emplace(task, std::make_unique<task_state>(*parse_device_name(task).job));
}

// Places nodes that are new since the last time; those placed before stay where they are.
WEFT_DECL placement local_runtime::placed() {
  const std::lock_guard<std::mutex> lock(placement_mutex_);
  const std::size_t before = placement_.size();
  if (before == graph_.size()) return placement_;
  placement_options options;
  options.default_task = devices_.tasks().front();
  options.allow_soft_placement = options_.allow_soft_placement;
  options.placer = options_.placer;
  const placement earlier = placement_;
  options.earlier = &earlier;
  placement_ = place(graph_, devices_, options);
  if (options_.log_device_placement)
    for (const node* n : graph_.nodes())
      if (static_cast<std::size_t>(n->id()) >= before && placement_.has(*n)) log_placement(*n, placement_[static_cast<std::size_t>(n->id())], options_.log);
  return placement_;
}

WEFT_DECL partitioned_graph local_runtime::partitions(const step_signature& signature) {
  partition_options options;
  options.feeds = signature.feeds;
  options.fetches = signature.fetches;
  options.targets = signature.targets;
  options.master = devices_.tasks().front();
  options.merge_equal_nodes = options_.optimizer.merge_equal_nodes;
  options.skip_identities = options_.optimizer.skip_identities;
  options.schedule_recvs = options_.optimizer.schedule_recvs;
  return partition(graph_, devices_, placed(), options);
}

WEFT_DECL void local_runtime::close() {
  closed_.store(true, std::memory_order_release);
  std::vector<std::weak_ptr<running_step>> steps;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    steps = watched_;
  }
  for (const auto& weak : steps)
    if (const auto step = weak.lock()) step->fail_step(status(error_code::cancelled, "the session was closed while the step was running"));
}

inline bool counts_up(const std::vector<std::size_t>& positions, std::size_t to) {
  for (std::size_t i = 0; i < positions.size(); ++i)
    if (positions[i] != i) return false;
  return positions.size() == to;
}

WEFT_DECL local_step::local_step(std::shared_ptr<local_runtime> runtime, const step_signature& signature) : runtime_(std::move(runtime)) {
  const partitioned_graph parted = runtime_->partitions(signature);
  transfers_ = parted.transfers().size() != 0;
  for (const part& p : parted.parts()) {
    graph runs = optimized_part(p.graph, runtime_->kernels(), runtime_->optimizer());
    task_part made{std::make_unique<executor>(std::move(runs), runtime_->kernels(), p.task), &runtime_->task(p.task), positions_of(p.feeds, signature.feeds), positions_of(p.fetches, signature.fetches), false, false};
    made.feeds_in_order = counts_up(made.feeds, signature.feeds.size());
    made.fetches_in_order = counts_up(made.fetches, signature.fetches.size());
    parts_.push_back(std::move(made));
  }
}

WEFT_DECL local_step::~local_step() {
  if (running_step* spare = spare_.exchange(nullptr)) spare->idle.reset();
}

WEFT_DECL std::shared_ptr<running_step> local_step::take() {
  if (running_step* spare = spare_.exchange(nullptr, std::memory_order_acquire)) return std::move(spare->idle);
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

WEFT_DECL void local_step::give_back(std::shared_ptr<running_step> step) {
  if (step->used_up.load(std::memory_order_acquire)) return;
  if (transfers_) step->rendezvous.reset();
  running_step* const raw = step.get();
  raw->idle = std::move(step);
  running_step* none = nullptr;
  if (spare_.compare_exchange_strong(none, raw, std::memory_order_release, std::memory_order_relaxed)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(raw->idle));
}

WEFT_DECL executor::step_args local_step::arguments(const task_part& part, running_step& step, const asked_step& asked) const {
  executor::step_args out;
  out.resources = &part.task->resources;
  out.session_state = &part.task->session_state;
  out.pool = &runtime_->pool();
  out.buffers = &runtime_->buffers();
  out.on_error = [&step](const status& why) { step.fail_step(why); };
  out.rendezvous = &step.rendezvous;
  out.cancellation = step.cancellation.token();
  out.step = asked.number;
  if (asked.statistics != nullptr) out.statistics = asked.statistics + (&part - parts_.data());
  return out;
}

WEFT_DECL void local_step::run(tensor_value* feeds, tensor_value* fetches, const run_options& options) {
  asked_step asked{runtime_->next_step(), options.timeout, nullptr};
  std::unique_ptr<step_statistics[]> statistics;
  const auto begun = options.trace != nullptr ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  if (options.trace != nullptr) {
    statistics = std::make_unique<step_statistics[]>(parts_.size());
    asked.statistics = statistics.get();
  }
  std::shared_ptr<running_step> step = take();
  const bool alone = parts_.size() == 1 && options.timeout.count() <= 0;
  status outcome = runtime_->schedule_seed() ? run_seeded(feeds, fetches, *step, asked) : alone ? run_alone(feeds, fetches, *step, asked) : run_parts(feeds, fetches, *step, asked);
  give_back(std::move(step));
  if (outcome.ok() && options.trace == nullptr) return;
  if (outcome.ok()) {
    *options.trace = step_trace{asked.number, {}};
    for (std::size_t i = 0; i < parts_.size(); ++i) options.trace->tasks.push_back(trace_of(statistics[i], parts_[i].run->task(), begun));
    return;
  }
  outcome.derived = false;
  outcome.may_have_run = true;
  // A node that became part of another is known by its name.
  if (const node* n = outcome.site.empty() && !outcome.node.empty() ? runtime_->nodes().find(outcome.node) : nullptr) outcome.site = n->site().text();
  throw error(std::move(outcome));
}

WEFT_DECL status local_step::run_alone(tensor_value* feeds, tensor_value* fetches, running_step& step, const asked_step& asked) {
  const task_part& part = parts_[0];
  std::vector<tensor_value> fed, got;
  if (!part.feeds_in_order)
    for (const std::size_t i : part.feeds) fed.push_back(feeds[i]);
  if (!part.fetches_in_order) got.resize(part.fetches.size());
  status outcome = part.run->run(arguments(part, step, asked), part.feeds_in_order ? feeds : fed.data(), part.feeds.size(), part.fetches_in_order ? fetches : got.data());
  if (!outcome.ok()) {
    const std::lock_guard<std::mutex> lock(step.mutex);
    step.used_up = true;
    return step.failure.ok() || !outcome.derived ? outcome : step.failure;
  }
  for (std::size_t i = 0; i < got.size(); ++i) fetches[part.fetches[i]] = std::move(got[i]);
  return outcome;
}

WEFT_DECL status local_step::run_parts(tensor_value* feeds, tensor_value* fetches, running_step& step, const asked_step& asked) {
  step.parts_left = parts_.size();
  // 1. Every part starts; a part that waits for another holds no thread.
  for (const task_part& part : parts_) {
    executor::step_args args = arguments(part, step, asked);
    for (const std::size_t i : part.feeds) args.feeds.push_back(feeds[i]);
    part.run->run_async(std::move(args), [&part, fetches, &step](const status& outcome, std::vector<tensor_value> got) {
      for (std::size_t i = 0; outcome.ok() && i < got.size(); ++i) fetches[part.fetches[i]] = std::move(got[i]);
      step.finish_part(outcome);
    });
  }
  // 2. The caller waits for all of them; past the deadline they are told to end.
  std::unique_lock<std::mutex> lock(step.mutex);
  const auto ended = [&step] { return step.parts_left == 0; };
  const thread_pool::blocking place(&runtime_->pool());
  if (asked.timeout.count() > 0 && !step.changed.wait_for(lock, bounded(asked.timeout), ended)) {
    lock.unlock();
    step.fail_step(status(error_code::deadline_exceeded, "the step did not end within " + std::to_string(asked.timeout.count()) + " ms"));
    lock.lock();
  }
  step.changed.wait(lock, ended);
  return step.failure;
}

// Each step has an order of its own, drawn from the session's seed and the step's number.
WEFT_DECL status local_step::run_seeded(tensor_value* feeds, tensor_value* fetches, running_step& step, const asked_step& asked) {
  const std::lock_guard<std::recursive_mutex> lock(runtime_->one_step());
  std::vector<seeded_part> shares;
  for (const task_part& part : parts_) {
    shares.emplace_back();
    shares.back().runs = part.run.get();
    shares.back().args = arguments(part, step, asked);
    shares.back().args.pool = nullptr;
    for (const std::size_t i : part.feeds) shares.back().args.feeds.push_back(feeds[i]);
  }
  const status outcome = run_in_seeded_order(shares, *runtime_->schedule_seed(), asked.number, asked.timeout);
  for (std::size_t k = 0; outcome.ok() && k < parts_.size(); ++k)
    for (std::size_t i = 0; i < parts_[k].fetches.size(); ++i) fetches[parts_[k].fetches[i]] = std::move(shares[k].fetches[i]);
  if (!outcome.ok()) step.used_up = true;
  const std::lock_guard<std::mutex> read(step.mutex);
  return outcome.ok() || step.failure.ok() || !outcome.derived ? outcome : step.failure;
}

#endif

}  // namespace weft::detail

#endif
