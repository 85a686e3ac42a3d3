#ifndef WEFT_RUNTIME_STEP_WORKER_HPP
#define WEFT_RUNTIME_STEP_WORKER_HPP
// One thread's share in a step: it runs the nodes that it makes ready, newest first, keeps one expensive node for the end and publishes others.

#include <weft/core/config.hpp>
#include <weft/runtime/step_state.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace weft::detail {

/// The exception in flight as a status.
status status_of_exception();

/// A share in a step, alive while its thread works. It has a token of the step's.
class step_worker {
 public:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  /// Nodes that a thread with other duties runs before it hands the rest to the pool.
  static constexpr std::int64_t guest_budget = 512;

  step_worker(step_state& s, std::int64_t budget)
      : state_(s), plan_(s.plan), nodes_(s.plan.nodes.data()), values_(s.values.data()), next_(s.next.data()), wakes_(s.plan.wakes.data()), statistics_(s.statistics), budget_(s.environment.pool == nullptr ? unlimited : budget), outer_(std::exchange(innermost(), this)) {
    asks_ = s.environment.pool != nullptr;
    find_company();
  }
  step_worker(const step_worker&) = delete;
  step_worker& operator=(const step_worker&) = delete;
  ~step_worker() { innermost() = outer_; }

  /// Makes the plan's roots ready.
  void start() {
    for (const std::uint32_t root : plan_.roots) push(root);
  }
  /// Runs what is ready until nothing is, or the budget is used up.
  void work();
  /// Runs a node that was published.
  void pick_up(std::uint32_t node) {
    find_company();
    heavy_ = node;
    work();
  }
  /// Runs one node, for a schedule that chooses among those that are ready, and asks with `take_ready` for those that became so.
  void run_one(std::uint32_t node);
  std::uint32_t take_ready() noexcept {
    const std::uint32_t node = ready_;
    if (node != nothing) ready_ = next_[node];
    return node;
  }
  /// Goes on behind an asynchronous node that has answered; its token is already gone, or is the worker's own.
  void go_on(std::uint32_t node, const status& s);
  /// Whether more than this thread has ever worked on the step, as far as it knows.
  bool had_company() const noexcept { return had_company_; }

  static step_worker*& innermost() noexcept {
    thread_local step_worker* top = nullptr;
    return top;
  }
  /// The worker on this thread that can take over an answer to the step; nullptr when there is none.
  static step_worker* accepting(const step_state& s) noexcept {
    for (step_worker* w = innermost(); w != nullptr; w = w->outer_) {
      if (&w->state_ == &s && (w->accepts_ || s.environment.pool == nullptr)) return w;
      if (s.environment.pool != nullptr) break;
    }
    return nullptr;
  }
  void take_answer(std::uint32_t node, const status& s) {
    state_.tokens.fetch_sub(1, std::memory_order_acq_rel);
    go_on(node, s);
    find_company();
  }

 private:
  void find_company() noexcept {
    shared_ = state_.tokens.load(std::memory_order_acquire) != 1;
    had_company_ = had_company_ || shared_;
  }
  void push(std::uint32_t node) noexcept {
    next_[node] = ready_;
    ready_ = node;
  }
  // Whether nothing may start any more; then what was ready is forgotten.
  bool stops() {
    if (!state_.stopped()) return false;
    stop();
    return true;
  }
  [[gnu::noinline, gnu::cold]] void stop() {
    if (!state_.failed.load(std::memory_order_relaxed)) {
      status s = state_.environment.cancellation.why();
      if (s.task.empty()) s.task = plan_.task;
      state_.fail(s);
    }
    ready_ = heavy_ = nothing;
  }
  void run_other(std::uint32_t i, const plan_node& p, bool ask);
  [[gnu::noinline]] void compute_timed(const plan_node& p, kernel_context& context) {
    const auto begin = std::chrono::steady_clock::now();
    p.kernel->compute(context);
    statistics_->add({p.about, begin, std::chrono::steady_clock::now(), std::this_thread::get_id(), -1, 0});
  }
  [[gnu::always_inline]] void compute(std::uint32_t i, const plan_node& p, bool ask);
  void start_asynchronous(std::uint32_t i, const plan_node& p, bool ask);
  void start_receive(std::uint32_t i, const plan_node& p);
  void send(const plan_node& p);
  void note_start(std::uint32_t i) {
    if (statistics_ != nullptr) state_.started[i] = std::chrono::steady_clock::now();
  }
  void defer(std::uint32_t i);
  void publish_ready();
  // Out of line, so that the strings of messages do not weigh on the loop.
  [[gnu::noinline, gnu::cold]] void failed_with(const plan_node& p, status s) { state_.fail(state_.about(p, std::move(s))); }
  [[gnu::noinline, gnu::cold]] void failed_in_kernel(const plan_node& p) { failed_with(p, status_of_exception()); }
  [[gnu::noinline, gnu::cold]] void failed_without_output(const plan_node& p, std::ptrdiff_t output) {
    failed_with(p, status(error_code::internal, "output " + std::to_string(output) + " was left without a value"));
  }
  // As assigning an empty value, for a slot whose old value is known to be of no use.
  [[gnu::noinline]] static void release(tensor_value& v) noexcept {
    v.~tensor_value();
    ::new (static_cast<void*>(&v)) tensor_value();
  }
  [[gnu::always_inline]] void release_inputs(const plan_node& p);
  [[gnu::noinline]] void release_many_inputs(const plan_node& p) {
    for (std::uint32_t slot = p.inputs; slot != p.inputs + p.input_count; ++slot)
      if (plan_.constant_of[slot] == nothing) release(values_[slot]);
  }
  [[gnu::always_inline]] void propagate(const plan_node& p);
  [[gnu::noinline]] void copy_outputs(const plan_node& p) {
    for (std::uint32_t c = p.copies; c != p.copies_end; ++c) {
      const plan_copy& copy = plan_.copies[c];
      if (copy.to == nothing) release(values_[copy.from]);
      else if (copy.last) values_[copy.to] = std::move(values_[copy.from]);
      else values_[copy.to] = values_[copy.from];
    }
  }
  bool arrive(std::atomic<std::uint32_t>& count, std::uint32_t all) const noexcept;

  step_state& state_;
  const plan& plan_;
  const plan_node* nodes_;
  tensor_value* values_;
  std::uint32_t* next_;
  const plan_wake* wakes_;
  step_statistics* statistics_;
  std::int64_t budget_;
  step_worker* outer_;
  // The newest ready node, and the expensive one that is kept for the end.
  std::uint32_t ready_ = nothing, heavy_ = nothing;
  bool shared_ = false, had_company_ = false, asks_ = false;
  // While an asynchronous node starts or a value is sent: answers that come on this thread continue here instead of nesting.
  bool accepts_ = false;
};

#if WEFT_HAS_BODIES

WEFT_DECL status status_of_exception() {
  try {
    throw;
  } catch (const error& e) {
    return e.status();
  } catch (const std::bad_alloc&) {
    return status(error_code::resource_exhausted, "out of memory");
  } catch (const std::exception& e) {
    return status(error_code::internal, std::string("the kernel threw an exception: ") + e.what());
  } catch (...) {
    return status(error_code::internal, "the kernel threw something that is not a std::exception");
  }
}

// Counts one arrival at a node that waits for several. The last one sets the count back for the next step.
WEFT_DECL bool step_worker::arrive(std::atomic<std::uint32_t>& count, std::uint32_t all) const noexcept {
  const std::uint32_t left = count.load(shared_ ? std::memory_order_acquire : std::memory_order_relaxed);
  if (left != 1) {
    if (!shared_) {
      count.store(left - 1, std::memory_order_relaxed);
      return false;
    }
    if (count.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  }
  count.store(all, std::memory_order_relaxed);
  return true;
}

// Constants stay in their slots; what a kernel took is gone already.
WEFT_DECL void step_worker::release_inputs(const plan_node& p) {
  if (p.input_count > 63) return release_many_inputs(p);
  std::uint64_t kept = p.kept;
  tensor_value* input = values_ + p.inputs;
  for (tensor_value* const end = input + p.input_count; input != end; ++input, kept >>= 1)
    if ((kept & 1U) == 0 && input->buffer()) release(*input);
}

// Hands a node's outputs on and makes ready whoever waited for nothing else: the one place to change for frames and dead values.
WEFT_DECL void step_worker::propagate(const plan_node& p) {
  const tensor_value* output = values_ + p.outputs;
  for (const tensor_value* const end = output + p.output_count; output != end; ++output)
    if (!output->buffer()) return failed_without_output(p, output - (values_ + p.outputs));
  // Every copy is made before anybody is woken who might take the original.
  if (p.copies != p.copies_end) copy_outputs(p);
  const plan_wake* wake = wakes_ + p.wakes;
  for (const plan_wake* const end = wakes_ + p.wakes_end; wake != end; ++wake)
    if (wake->predecessors == 1 || arrive(state_.pending[wake->node], wake->predecessors)) push(wake->node);
}

WEFT_DECL void step_worker::work() {
  for (;;) {
    const bool cheap = ready_ != nothing;
    const std::uint32_t i = cheap ? ready_ : heavy_;
    if (i == nothing || stops()) return;
    if (cheap) {
      if (budget_-- <= 0) return publish_ready();
      ready_ = next_[i];
    } else {
      heavy_ = nothing;
    }
    const plan_node& p = nodes_[i];
    if (p.kind == plan_kind::compute) compute(i, p, cheap && asks_);
    else run_other(i, p, cheap && asks_);
  }
}

WEFT_DECL void step_worker::run_one(std::uint32_t node) {
  if (stops()) return;
  const plan_node& p = nodes_[node];
  if (p.kind == plan_kind::compute) compute(node, p, false);
  else run_other(node, p, false);
}

WEFT_DECL void step_worker::compute(std::uint32_t i, const plan_node& p, bool ask) {
  kernel_context context(*p.about, state_.environment, values_ + p.inputs, p.input_count, values_ + p.outputs, p.kept);
  try {
    if (ask && p.kernel->expensive(context)) return defer(i);
    if (statistics_ == nullptr) p.kernel->compute(context);
    else compute_timed(p, context);
  } catch (...) {
    return failed_in_kernel(p);
  }
  release_inputs(p);
  propagate(p);
}

WEFT_DECL void step_worker::run_other(std::uint32_t i, const plan_node& p, bool ask) {
  const bool kept = p.kept != 0;
  switch (p.kind) {
    case plan_kind::asynchronous: return start_asynchronous(i, p, ask);
    case plan_kind::receive: return start_receive(i, p);
    case plan_kind::send: return send(p);
    case plan_kind::identity: values_[p.outputs] = kept ? values_[p.inputs] : std::move(values_[p.inputs]); break;
    case plan_kind::arg: {
      tensor_value& feed = state_.feeds[p.number];
      values_[p.outputs] = plan_.feed_read_once[p.number] ? std::move(feed) : feed;
      break;
    }
    case plan_kind::retval: state_.fetches[p.number] = kept ? values_[p.inputs] : std::move(values_[p.inputs]); break;
    case plan_kind::no_op: case plan_kind::compute: break;
  }
  propagate(p);
}

// The token for the answer exists before anybody can answer.
WEFT_DECL void step_worker::start_asynchronous(std::uint32_t i, const plan_node& p, bool ask) {
  kernel_context& context = state_.contexts[p.number];
  if (ask && p.kernel->expensive(context)) return defer(i);
  note_start(i);
  state_.tokens.fetch_add(1, std::memory_order_relaxed);
  shared_ = had_company_ = true;
  accepts_ = true;
  try {
    p.kernel->compute_async(context, [state = &state_, i](const status& s) { state->answered(i, s); });
  } catch (...) {
    take_answer(i, status_of_exception());
  }
  accepts_ = false;
}

WEFT_DECL void step_worker::start_receive(std::uint32_t i, const plan_node& p) {
  note_start(i);
  state_.tokens.fetch_add(1, std::memory_order_relaxed);
  shared_ = had_company_ = true;
  accepts_ = true;
  state_.environment.rendezvous->receive({plan_.edges[p.number], 0}, [state = &state_, i](const status& s, tensor_value value, bool is_dead) {
    state->received(i, s, std::move(value), is_dead);
  });
  accepts_ = false;
}

WEFT_DECL void step_worker::send(const plan_node& p) {
  tensor_value value = p.kept != 0 ? values_[p.inputs] : std::move(values_[p.inputs]);
  node_statistics asked;
  if (statistics_ != nullptr) asked = {p.about, std::chrono::steady_clock::now(), {}, std::this_thread::get_id(), plan_.edges[p.number], value.bytes()};
  accepts_ = true;
  status s = state_.environment.rendezvous->send({plan_.edges[p.number], 0}, std::move(value), false);
  accepts_ = false;
  if (statistics_ != nullptr) {
    asked.end = std::chrono::steady_clock::now();
    statistics_->add(asked);
  }
  if (!s.ok()) return failed_with(p, std::move(s));
  propagate(p);
}

// A thread with other duties publishes every expensive node; others keep one, which spares the way through the pool where nothing is parallel.
WEFT_DECL void step_worker::defer(std::uint32_t i) {
  if (budget_ < unlimited / 2 || heavy_ != nothing) {
    shared_ = had_company_ = true;
    state_.publish(i);
  } else {
    heavy_ = i;
  }
}

WEFT_DECL void step_worker::publish_ready() {
  shared_ = had_company_ = true;
  while (ready_ != nothing) {
    const std::uint32_t i = ready_;
    ready_ = next_[i];
    state_.publish(i);
  }
}

WEFT_DECL void step_worker::go_on(std::uint32_t node, const status& s) {
  const plan_node& p = nodes_[node];
  if (state_.listener != nullptr) state_.listener->settled(state_, node);
  if (statistics_ != nullptr) {
    const bool receives = p.kind == plan_kind::receive && s.ok();
    statistics_->add({p.about, state_.started[node], std::chrono::steady_clock::now(), std::this_thread::get_id(), receives ? plan_.edges[p.number] : -1, receives ? values_[p.outputs].bytes() : 0});
  }
  if (s.ok()) {
    release_inputs(p);
    propagate(p);
  } else if (p.kind == plan_kind::receive) {
    // The reason names its own place; that this node waited for the value says nothing.
    status located = s;
    if (located.task.empty()) located.task = plan_.task;
    state_.fail(located);
  } else {
    failed_with(p, s);
  }
}

WEFT_DECL void step_state::help() {
  std::uint32_t node;
  if (!take(node)) return;
  {
    step_worker worker(*this, step_worker::unlimited);
    worker.pick_up(node);
    while (take(node)) {
      tokens.fetch_sub(1, std::memory_order_relaxed);
      worker.pick_up(node);
    }
  }
  leave();
}

WEFT_DECL void step_state::answered(std::uint32_t node, const status& s) {
  if (step_worker* here = step_worker::accepting(*this)) return here->take_answer(node, s);
  if (listener != nullptr) return listener->answered_elsewhere(*this, node, s);
  // Inside another kernel's call nothing may be run, on a thread of the pool everything, on other threads a little.
  const thread_pool* pool = environment.pool;
  const bool inside = step_worker::innermost() != nullptr;
  {
    step_worker worker(*this, inside ? 0 : pool != nullptr && pool->on_pool_thread() ? step_worker::unlimited : step_worker::guest_budget);
    worker.go_on(node, s);
    worker.work();
  }
  leave();
}

WEFT_DECL void step_state::received(std::uint32_t node, const status& s, tensor_value value, bool is_dead) {
  if (s.ok() && !is_dead) {
    values[plan.nodes[node].outputs] = std::move(value);
    return answered(node, s);
  }
  answered(node, s.ok() ? status(error_code::unimplemented, "a dead value was received outside control flow") : s);
}

#endif

}  // namespace weft::detail

#endif
