#ifndef WEFT_RUNTIME_STEP_STATE_HPP
#define WEFT_RUNTIME_STEP_STATE_HPP
// One step in flight: the values and counts that a plan needs while it runs. A state is made once and serves many steps without allocating.
//
// A step holds one token for each thread that works on it, each asynchronous node that has not answered, and each node that waits to be picked
// up; it ends with the last one. While a thread holds the only token nobody else touches the step, and plain counting will do.

#include <weft/core/config.hpp>
#include <weft/runtime/local_rendezvous.hpp>
#include <weft/runtime/plan.hpp>
#include <weft/runtime/step_statistics.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace weft {

/// What one step is run with.
struct step_arguments {
  /// Values by the index of `_Arg`; one that nobody else holds may be written by a kernel.
  std::vector<tensor_value> feeds;
  resource_manager* resources = nullptr;
  resource_manager* session_state = nullptr;
  /// Where expensive kernels run; without it, on the threads that made them ready.
  thread_pool* pool = nullptr;
  /// Where `_Send` and `_Recv` meet; without it they meet within the step.
  weft::rendezvous* rendezvous = nullptr;
  /// Where large outputs get their storage; without it, from malloc.
  buffer_pool* buffers = nullptr;
  cancellation_token cancellation;
  std::int64_t step = 0;
  /// Called with the first error at once, while other kernels may still run, on the thread that found it; then the rendezvous is aborted with the
  /// same error. Whoever owns the step cancels asynchronous kernels from here.
  std::function<void(const status&)> on_error;
  /// Collects when nodes ran.
  step_statistics* statistics = nullptr;
};

namespace detail {

class step_state;

/// The states of one plan that are not in use. Thread-safe.
class step_states {
 public:
  explicit step_states(const detail::plan& p) : plan_(p) {}
  ~step_states();
  step_state& acquire();
  void release(step_state& state);

 private:
  const detail::plan& plan_;
  // The state that was used last, for the common case of one step at a time.
  std::atomic<step_state*> spare_{nullptr};
  std::mutex mutex_;
  std::vector<step_state*> idle_;
  std::vector<std::shared_ptr<step_state>> all_;
};

/// Hears of asynchronous nodes in a step that one thread runs in an order of its own.
class answer_listener {
 public:
  virtual ~answer_listener() = default;
  /// A node has answered on a thread that runs nothing of the step.
  virtual void answered_elsewhere(step_state& state, std::uint32_t node, const status& s) = 0;
  /// A node's answer is taken in.
  virtual void settled(step_state& state, std::uint32_t node) = 0;
};

/// The state of a step. Its public members are for `step_worker`, the code that runs it.
class step_state : public std::enable_shared_from_this<step_state> {
 public:
  using done_callback = std::function<void(const status&, std::vector<tensor_value>)>;
  step_state(const detail::plan& p, step_states& home);
  step_state(const step_state&) = delete;
  step_state& operator=(const step_state&) = delete;

  /// Takes the arguments in, all but their feeds, which come from `fed`; the calling thread has the first token. False, and the step has failed,
  /// when there are too few.
  bool begin(step_arguments&& args, tensor_value* fed, std::size_t count);
  /// Brings everything back to the beginning and gives the state up. Only for whoever has the last token.
  void end();
  bool stopped() const noexcept { return failed.load(std::memory_order_relaxed) || environment.cancellation.cancelled(); }
  /// Records why the step fails; the first root error stays. Nothing new starts from here on.
  void fail(const status& s);
  /// A status completed with the node and its place.
  status about(const plan_node& p, status s) const;

  /// Gives a node, with a token, to whoever comes first: the waiting caller or a thread of the pool.
  void publish(std::uint32_t node);
  /// A published node, whose token goes to the caller.
  bool take(std::uint32_t& node);
  /// Gives up the calling thread's token; the last one ends the step.
  void leave();
  /// Waits for published nodes, for the thread that has called and waits. False when the step is over but for its token.
  bool wait(std::uint32_t& node);

  /// What a thread of the pool does for the step.
  void help();
  /// An asynchronous node has answered, on any thread.
  void answered(std::uint32_t node, const status& s);
  /// A value has come for a node that receives.
  void received(std::uint32_t node, const status& s, tensor_value value, bool is_dead);

  const detail::plan& plan;
  std::vector<tensor_value> values;
  // By node: how many it still waits for, set back when it becomes ready; and the next in the list that holds it.
  std::vector<std::atomic<std::uint32_t>> pending;
  std::vector<std::uint32_t> next;
  // Of asynchronous nodes, which outlive a call.
  std::vector<kernel_context> contexts;
  step_environment environment;
  std::vector<tensor_value> feeds, fetches;
  step_statistics* statistics = nullptr;
  // By node, when asynchronous nodes started; only in steps that are asked.
  std::vector<std::chrono::steady_clock::time_point> started;
  std::atomic<std::uint32_t> tokens{0};
  std::atomic<bool> failed{false};
  // Called at the end, unless a thread waits in a call.
  done_callback done;
  bool has_caller = false;
  answer_listener* listener = nullptr;
  status why;

 private:
  void reset_values();
  void finish();
  void cancelled(std::uint64_t serial, const status& s);
  std::uint32_t pop_locked();
  bool something_to_do() const noexcept { return queue_head_ != nothing || tokens.load(std::memory_order_acquire) == 1; }

  step_states& home_;
  local_rendezvous own_rendezvous_;
  std::function<void(const status&)> on_error_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Published nodes, first in first out.
  std::uint32_t queue_head_ = nothing, queue_tail_ = nothing;
  bool caller_waits_ = false, watches_ = false;
  std::uint64_t serial_ = 1, registration_ = 0;
};

#if WEFT_HAS_BODIES

WEFT_DECL step_states::~step_states() = default;

WEFT_DECL step_state& step_states::acquire() {
  if (step_state* spare = spare_.exchange(nullptr, std::memory_order_acquire)) return *spare;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.empty()) {
    all_.push_back(std::make_shared<step_state>(plan_, *this));
    idle_.reserve(all_.size());
    return *all_.back();
  }
  step_state* out = idle_.back();
  idle_.pop_back();
  return *out;
}

WEFT_DECL void step_states::release(step_state& state) {
  step_state* none = nullptr;
  if (spare_.compare_exchange_strong(none, &state, std::memory_order_release, std::memory_order_relaxed)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(&state);
}

WEFT_DECL step_state::step_state(const detail::plan& p, step_states& home)
    : plan(p), values(p.slots), pending(p.nodes.size()), next(p.nodes.size(), nothing), feeds(p.feeds), fetches(p.fetches), home_(home) {
  contexts.reserve(p.asynchronous.size());
  for (const std::uint32_t i : p.asynchronous) {
    const plan_node& n = p.nodes[i];
    contexts.emplace_back(*n.about, environment, values.data() + n.inputs, n.input_count, values.data() + n.outputs, n.kept);
  }
  reset_values();
}

WEFT_DECL void step_state::reset_values() {
  for (std::size_t i = 0; i < pending.size(); ++i) pending[i].store(plan.predecessors[i], std::memory_order_relaxed);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = plan.constant_of[i] == nothing ? tensor_value() : plan.constants[plan.constant_of[i]];
}

WEFT_DECL bool step_state::begin(step_arguments&& args, tensor_value* fed, std::size_t count) {
  tokens.store(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < feeds.size() && i < count; ++i) feeds[i] = std::move(fed[i]);
  fetches.resize(plan.fetches);
  environment.resources = args.resources;
  environment.session_state = args.session_state;
  environment.pool = args.pool;
  environment.rendezvous = args.rendezvous != nullptr ? args.rendezvous : &own_rendezvous_;
  environment.buffers = args.buffers;
  environment.cancellation = std::move(args.cancellation);
  environment.step = args.step;
  environment.feeds = &feeds;
  environment.fetches = &fetches;
  statistics = args.statistics;
  if (statistics != nullptr) started.resize(plan.nodes.size());
  on_error_ = std::move(args.on_error);
  if (count >= feeds.size()) return true;
  status s(error_code::invalid_argument, "the part takes " + std::to_string(plan.feeds) + " feeds, found " + std::to_string(count));
  s.task = plan.task;
  fail(s);
  return false;
}

WEFT_DECL void step_state::end() {
  if (watches_) {
    environment.cancellation.forget(registration_);
    const std::lock_guard<std::mutex> lock(mutex_);
    watches_ = false;
    ++serial_;
  }
  if (failed.load(std::memory_order_relaxed)) {
    reset_values();
    own_rendezvous_.reset();
    why = status();
    failed.store(false, std::memory_order_relaxed);
    for (tensor_value& v : fetches) v = tensor_value();
  }
  for (tensor_value& v : feeds)
    if (!v.empty()) v = tensor_value();
  environment.cancellation = cancellation_token();
  on_error_ = nullptr;
  has_caller = false;
  home_.release(*this);
}

WEFT_DECL void step_state::finish() {
  const status s = why;
  std::vector<tensor_value> out;
  if (s.ok()) out.swap(fetches);
  const done_callback call = std::exchange(done, nullptr);
  end();
  call(s, std::move(out));
}

WEFT_DECL status step_state::about(const plan_node& p, status s) const {
  if (s.node.empty()) {
    s.node = p.about->name();
    s.op = p.about->op();
    s.site = p.about->site().text();
  }
  if (s.device.empty() && s.node == p.about->name()) s.device = p.about->device();
  if (s.task.empty()) s.task = plan.task;
  return s;
}

// Whoever calls has a token, so that taking those of the queue away does not end the step.
WEFT_DECL void step_state::fail(const status& s) {
  bool first;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    first = !failed.load(std::memory_order_relaxed);
    if (first || (why.derived && !s.derived)) why = s;
    failed.store(true, std::memory_order_relaxed);
    while (queue_head_ != nothing) {
      pop_locked();
      tokens.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
  if (!first) return;
  if (on_error_) on_error_(s);
  environment.rendezvous->abort(s);
}

WEFT_DECL std::uint32_t step_state::pop_locked() {
  const std::uint32_t node = queue_head_;
  queue_head_ = next[node];
  if (queue_head_ == nothing) queue_tail_ = nothing;
  return node;
}

WEFT_DECL void step_state::publish(std::uint32_t node) {
  bool watch = false, woken = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed.load(std::memory_order_relaxed)) return;
    tokens.fetch_add(1, std::memory_order_relaxed);
    next[node] = nothing;
    (queue_tail_ == nothing ? queue_head_ : next[queue_tail_]) = node;
    queue_tail_ = node;
    watch = !std::exchange(watches_, true);
    woken = std::exchange(caller_waits_, false);
    if (woken) changed_.notify_one();
  }
  if (!woken) environment.pool->schedule([self = shared_from_this()] { self->help(); });
  // A cancelled step must not wait until the pool has time for it.
  if (watch)
    registration_ = environment.cancellation.on_cancel([self = shared_from_this(), serial = serial_](const status& s) { self->cancelled(serial, s); });
}

WEFT_DECL void step_state::cancelled(std::uint64_t serial, const status& s) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (serial != serial_ || queue_head_ == nothing) return;
    pop_locked();
  }
  fail(s);
  leave();
}

WEFT_DECL bool step_state::take(std::uint32_t& node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (queue_head_ == nothing) return false;
  node = pop_locked();
  return true;
}

WEFT_DECL bool step_state::wait(std::uint32_t& node) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!something_to_do()) {
    const thread_pool::blocking elsewhere(environment.pool);
    while (!something_to_do()) {
      caller_waits_ = true;
      changed_.wait(lock);
    }
    caller_waits_ = false;
  }
  if (queue_head_ == nothing) return false;
  node = pop_locked();
  tokens.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// With a caller the token goes under the lock, which the caller takes before it ends the step: afterwards nobody is left in here.
WEFT_DECL void step_state::leave() {
  if (has_caller) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tokens.fetch_sub(1, std::memory_order_acq_rel) == 2) changed_.notify_one();
  } else if (tokens.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    finish();
  }
}

#endif

}  // namespace detail
}  // namespace weft

#endif
