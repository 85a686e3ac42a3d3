#ifndef WEFT_KERNELS_STEP_BARRIER_HPP
#define WEFT_KERNELS_STEP_BARRIER_HPP
// The barrier of steps: passes arrive, push their gradients, and wait; the chief is told when all that count have pushed, makes the update, and lets everybody go. Nobody who waits holds a thread.

#include <weft/kernels/inputs.hpp>
#include <weft/kernels/state_handle.hpp>
#include <weft/runtime/cancellation.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an op on barriers; nullptr for ops of other families.
kernel_factory step_barrier_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// A barrier. Thread-safe.
class step_barrier final : public resource, public std::enable_shared_from_this<step_barrier> {
 public:
  /// Called once, never while the barrier is locked: with what happened and two numbers, stamp and ticket or step and whether the pass counted.
  using done_function = std::function<void(const status&, std::int64_t, std::int64_t)>;

  step_barrier(std::string name, std::int64_t aggregate, std::int64_t total) : name_(std::move(name)), aggregate_(aggregate), total_(total) {}
  std::string describe() const override { return "the barrier of steps '" + name_ + "'"; }
  std::int64_t aggregate() const noexcept { return aggregate_; }
  std::int64_t total() const noexcept { return total_; }

  /// A pass for `local_step` asks to count; waits while the barrier has no step yet. A step that ends before its wait begins gives its place back.
  void arrive(std::int64_t local_step, const cancellation_token& token, done_function done);
  /// All of the pass is pushed; waits for the update it is for. Passes that others of the same step must follow go on at once.
  void wait(std::int64_t ticket, const cancellation_token& token, done_function done);
  /// Waits until all passes of a step have pushed, or, with `begun`, until there is a chief.
  void ready(bool begun, const cancellation_token& token, done_function done);
  /// Ends the wait of `ready` with CANCELLED, now and until the next reset.
  void interrupt();
  /// A worker makes no more passes, or the chief no more updates: whoever would wait in vain from now on gets OUT_OF_RANGE, until a chief begins anew.
  void leave(bool chief);
  /// The update is made: everybody goes on. With `reset` the passes so far are forgotten.
  void advance(std::int64_t step, bool reset);
  WEFT_INLINE void close(const status& why) override;

 private:
  struct pass {
    std::int64_t step = 0;
    bool counts = false, goes_on = false;
    cancellation_token token;
    std::uint64_t registration = 0;
  };
  enum class line : unsigned char { arrive, wait, ready, begun };
  struct waiter {
    line what = line::wait;
    std::int64_t step = 0;
    bool counts = false;
    cancellation_token token;
    std::uint64_t registration = 0;
    done_function done;
    // The answer.
    status result;
    std::int64_t first = 0, second = 0;
  };
  using waiter_ptr = std::shared_ptr<waiter>;

  void begin(const waiter_ptr& w);
  template <class Change> void tell(Change&& change);
  void cancel(const waiter_ptr& w, const status& why);
  void lost(std::int64_t ticket);
  bool attempt(waiter& w, std::vector<std::int64_t>& new_tickets);
  bool in_vain(waiter& w) const;
  std::vector<waiter_ptr> serve(std::vector<std::int64_t>& new_tickets);
  void finish(std::vector<waiter_ptr>& ended, const std::vector<std::int64_t>& new_tickets);

  const std::string name_;
  const std::int64_t aggregate_, total_;
  std::mutex mutex_;
  bool started_ = false, interrupted_ = false;
  std::int64_t step_ = 0, next_ticket_ = 1;
  // Of the current step: passes that count, and those of them that have pushed.
  std::int64_t admitted_ = 0, pushed_ = 0;
  // Workers that make no more passes, and whether the chief has gone.
  std::int64_t left_ = 0;
  bool chief_left_ = false;
  // Passes between arriving and waiting.
  std::map<std::int64_t, pass> passes_;
  std::vector<waiter_ptr> waiters_;
};

// Whether no update will come for the waiter: the chief has gone, or all workers that are left wait and have not pushed enough together.
WEFT_DECL bool step_barrier::in_vain(waiter& w) const {
  if (w.what == line::ready || w.what == line::begun) return false;
  if (chief_left_) {
    w.result = status(error_code::out_of_range, describe() + ": the chief has ended, there are no more updates");
    return true;
  }
  if (w.what == line::arrive || left_ == 0 || pushed_ >= aggregate_) return false;
  std::int64_t waiting = 0;
  for (const waiter_ptr& other : waiters_)
    if (other->what == line::wait) ++waiting;
  if (waiting < total_ - left_) return false;
  w.result = status(error_code::out_of_range, describe() + ": an update needs the gradients of " + std::to_string(aggregate_) + " passes, " + std::to_string(pushed_) + " are there, and of " + std::to_string(total_) +
                                                  " workers " + std::to_string(left_) + " make no more");
  return true;
}

// Whether the waiter can be answered now.
WEFT_DECL bool step_barrier::attempt(waiter& w, std::vector<std::int64_t>& new_tickets) {
  if (w.what == line::begun) return started_ && !chief_left_;
  if (w.what == line::ready) {
    if (interrupted_) w.result = status(error_code::cancelled, describe() + " was interrupted, as its chief stops");
    return interrupted_ || (started_ && pushed_ >= aggregate_);
  }
  if (w.what == line::wait) {
    if (w.step == step_) return false;
    w.first = step_;
    w.second = w.counts ? 1 : 0;
    return true;
  }
  if (!started_) return false;
  pass p;
  p.step = w.step;
  p.counts = w.step == step_ && admitted_ < aggregate_;
  if (p.counts) ++admitted_;
  // Fewer workers than passes to a step: the last ones wait, each worker once.
  p.goes_on = p.counts && admitted_ <= aggregate_ - total_;
  p.token = w.token;
  w.first = p.counts ? step_ : -1;
  w.second = next_ticket_++;
  passes_.emplace(w.second, std::move(p));
  new_tickets.push_back(w.second);
  return true;
}

WEFT_DECL std::vector<step_barrier::waiter_ptr> step_barrier::serve(std::vector<std::int64_t>& new_tickets) {
  std::vector<waiter_ptr> ended, left;
  for (const waiter_ptr& w : waiters_) (attempt(*w, new_tickets) ? ended : left).push_back(w);
  waiters_.swap(left);
  if (left_ == 0 && !chief_left_) return ended;
  left.clear();
  std::vector<waiter_ptr> hopeless;
  for (const waiter_ptr& w : waiters_) (in_vain(*w) ? hopeless : left).push_back(w);
  waiters_.swap(left);
  ended.insert(ended.end(), hopeless.begin(), hopeless.end());
  return ended;
}

// A pass can be lost from here on until it waits.
WEFT_DECL void step_barrier::finish(std::vector<waiter_ptr>& ended, const std::vector<std::int64_t>& new_tickets) {
  for (const std::int64_t ticket : new_tickets) {
    cancellation_token token;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto it = passes_.find(ticket);
      if (it != passes_.end()) token = it->second.token;
    }
    // The barrier holds the token: were it held in turn, a step that ends without a wait would keep both for ever.
    const std::uint64_t registration = token.on_cancel([barrier = weak_from_this(), ticket](const status&) {
      if (const auto self = barrier.lock()) self->lost(ticket);
    });
    bool kept = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto it = passes_.find(ticket);
      kept = it != passes_.end();
      if (kept) it->second.registration = registration;
    }
    if (!kept) token.forget(registration);
  }
  for (const waiter_ptr& w : ended) {
    w->token.forget(w->registration);
    const done_function done = std::move(w->done);
    done(w->result, w->first, w->second);
  }
}

WEFT_DECL void step_barrier::begin(const waiter_ptr& w) {
  std::vector<waiter_ptr> ended;
  std::vector<std::int64_t> new_tickets;
  const auto waits = [&] { return std::find(waiters_.begin(), waiters_.end(), w) != waiters_.end(); };
  bool waiting = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiters_.push_back(w);
    ended = serve(new_tickets);
    waiting = waits();
  }
  const cancellation_token token = w->token;
  finish(ended, new_tickets);
  if (!waiting) return;
  const std::uint64_t registration = token.on_cancel([self = shared_from_this(), w](const status& why) { self->cancel(w, why); });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting = waits();
    if (waiting) w->registration = registration;
  }
  if (!waiting) token.forget(registration);
}

WEFT_DECL void step_barrier::cancel(const waiter_ptr& w, const status& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::find(waiters_.begin(), waiters_.end(), w);
    if (at == waiters_.end()) return;
    waiters_.erase(at);
  }
  w->done(why, 0, 0);
}

WEFT_DECL void step_barrier::lost(std::int64_t ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = passes_.find(ticket);
  if (it == passes_.end()) return;
  if (it->second.counts && it->second.step == step_) --admitted_;
  passes_.erase(it);
}

WEFT_DECL void step_barrier::arrive(std::int64_t local_step, const cancellation_token& token, done_function done) {
  const auto w = std::make_shared<waiter>();
  w->what = line::arrive;
  w->step = local_step;
  w->token = token;
  w->done = std::move(done);
  begin(w);
}

WEFT_DECL void step_barrier::wait(std::int64_t ticket, const cancellation_token& token, done_function done) {
  std::vector<waiter_ptr> ended;
  std::vector<std::int64_t> new_tickets;
  pass p;
  bool known = false;
  std::int64_t now = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = passes_.find(ticket);
    known = it != passes_.end();
    if (known) {
      p = std::move(it->second);
      passes_.erase(it);
      if (p.counts && p.step == step_) ++pushed_;
      ended = serve(new_tickets);
    }
    now = step_;
  }
  if (!known) return done(status(error_code::aborted, describe() + " was reset, or there is no pass with ticket " + std::to_string(ticket)), 0, 0);
  p.token.forget(p.registration);
  finish(ended, new_tickets);
  if (p.goes_on) return done(status(), now, p.counts ? 1 : 0);
  const auto w = std::make_shared<waiter>();
  w->step = p.step;
  w->counts = p.counts;
  w->token = token;
  w->done = std::move(done);
  begin(w);
}

// Changes what is known of the replicas, and answers whoever need not wait any more.
template <class Change> void step_barrier::tell(Change&& change) {
  std::vector<waiter_ptr> ended;
  std::vector<std::int64_t> new_tickets;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    change();
    ended = serve(new_tickets);
  }
  finish(ended, new_tickets);
}

WEFT_DECL void step_barrier::leave(bool chief) {
  tell([&] {
    if (chief) chief_left_ = true;
    else left_ = std::min(left_ + 1, total_);
  });
}

WEFT_DECL void step_barrier::interrupt() {
  tell([&] { interrupted_ = true; });
}

WEFT_DECL void step_barrier::ready(bool begun, const cancellation_token& token, done_function done) {
  const auto w = std::make_shared<waiter>();
  w->what = begun ? line::begun : line::ready;
  w->token = token;
  w->done = std::move(done);
  begin(w);
}

WEFT_DECL void step_barrier::advance(std::int64_t step, bool reset) {
  std::vector<waiter_ptr> ended;
  std::vector<std::int64_t> new_tickets;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (reset || step != step_) admitted_ = pushed_ = 0;
    if (reset) {
      interrupted_ = chief_left_ = false;
      left_ = 0;
      // Whoever waits has pushed in vain.
      std::vector<waiter_ptr> left;
      for (const waiter_ptr& w : waiters_) {
        if (w->what != line::wait) {
          left.push_back(w);
          continue;
        }
        w->first = step;
        w->second = 0;
        ended.push_back(w);
      }
      waiters_.swap(left);
      for (auto& one : passes_) {
        one.second.counts = false;
        one.second.goes_on = true;
      }
    }
    step_ = step;
    started_ = true;
    for (const waiter_ptr& w : serve(new_tickets)) ended.push_back(w);
  }
  finish(ended, new_tickets);
}

WEFT_DECL void step_barrier::close(const status& why) {
  std::vector<waiter_ptr> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended.swap(waiters_);
    for (const waiter_ptr& w : ended) w->result = why;
  }
  finish(ended, {});
}

inline bool is_set(const node& n, const char* attr) {
  const bool* set = n.find_attr<bool>(attr);
  return set != nullptr && *set;
}

/// Makes the barrier where there is none yet, and names it.
class step_barrier_handle_kernel final : public cheap_kernel {
 public:
  explicit step_barrier_handle_kernel(const kernel_construction& what)
      : handle_(what, "barrier of steps"), aggregate_(what.about.attr<std::int64_t>("replicas_to_aggregate")), total_(what.about.attr<std::int64_t>("total_num_replicas")) {
    if (aggregate_ < 1 || total_ < 1) what.about.fail_about(error_code::invalid_argument, "the numbers of replicas must be positive, found " + std::to_string(aggregate_) + " of " + std::to_string(total_));
  }
  static std::unique_ptr<kernel> make(const kernel_construction& what) { return std::make_unique<step_barrier_handle_kernel>(what); }
  void compute(kernel_context& context) override {
    const auto made = handle_.find_or_make<step_barrier>(context, [this] { return std::make_shared<step_barrier>(handle_.name(), aggregate_, total_); });
    if (made->aggregate() != aggregate_ || made->total() != total_)
      context.fail(made->describe() + " is for " + std::to_string(made->aggregate()) + " of " + std::to_string(made->total()) + " replicas, found " + std::to_string(aggregate_) + " of " +
                   std::to_string(total_));
    handle_.set_output(context);
  }

 private:
  resource_name handle_;
  std::int64_t aggregate_, total_;
};

/// Arrives at a barrier, waits there, or waits for all.
class step_barrier_use_kernel final : public kernel {
 public:
  explicit step_barrier_use_kernel(const node& n) : arrives_(n.op() == "_StepBarrierArrive"), waits_(n.op() == "_StepBarrierWait"), begun_(is_set(n, "begun")) {}
  bool asynchronous() const noexcept override { return true; }
  bool waits_for_others() const noexcept override { return true; }
  void compute(kernel_context& context) override { context.fail(error_code::internal, "this kernel answers later, it was called as if it answered at once"); }
  void compute_async(kernel_context& context, kernel_done done) override {
    expect_inputs(context, arrives_ || waits_ ? 2 : 1);
    const auto barrier = resource_of<step_barrier>(context, "barrier of steps");
    const cancellation_token& token = context.environment().cancellation;
    if (!arrives_ && !waits_) return barrier->ready(begun_, token, [done = std::move(done)](const status& s, std::int64_t, std::int64_t) { done(s); });
    expect_dtype(context, 1, dtype::int64);
    if (context.input(1).elements() != 1) context.fail(std::string(arrives_ ? "the local step" : "the ticket") + " must be a scalar, found shape " + context.input(1).shape().text());
    const std::int64_t number = *context.input(1).data<std::int64_t>();
    auto answer = [&context, arrives = arrives_, done = std::move(done)](const status& s, std::int64_t first, std::int64_t second) {
      if (s.ok()) {
        context.set_output(0, tensor_value::scalar(first));
        if (arrives) context.set_output(1, tensor_value::scalar(second));
        else context.set_output(1, tensor_value::scalar(second != 0));
      }
      done(s);
    };
    if (arrives_) barrier->arrive(number, token, std::move(answer));
    else barrier->wait(number, token, std::move(answer));
  }

 private:
  bool arrives_, waits_, begun_;
};

/// Tells a barrier that a worker, or the chief, has ended.
class step_barrier_leave_kernel final : public cheap_kernel {
 public:
  explicit step_barrier_leave_kernel(const node& n) : chief_(is_set(n, "chief")) {}
  void compute(kernel_context& context) override {
    expect_inputs(context, 1);
    resource_of<step_barrier>(context, "barrier of steps")->leave(chief_);
  }

 private:
  bool chief_;
};

/// Ends the wait of the chief.
class step_barrier_interrupt_kernel final : public cheap_kernel {
 public:
  explicit step_barrier_interrupt_kernel(const node&) {}
  void compute(kernel_context& context) override { resource_of<step_barrier>(context, "barrier of steps")->interrupt(); }
};

/// Lets everybody at a barrier go on.
class step_barrier_advance_kernel final : public cheap_kernel {
 public:
  explicit step_barrier_advance_kernel(const node& n) : reset_(is_set(n, "reset")) {}
  void compute(kernel_context& context) override {
    expect_inputs(context, 2);
    const auto barrier = resource_of<step_barrier>(context, "barrier of steps");
    if (context.input(1).elements() != 1) context.fail("the step must be a scalar, found shape " + context.input(1).shape().text());
    barrier->advance(integers_of(context, 1, "the step")[0], reset_);
  }

 private:
  bool reset_;
};

WEFT_DECL kernel_factory step_barrier_kernel(std::string_view op) {
  if (op == "_StepBarrier") return &step_barrier_handle_kernel::make;
  if (op == "_StepBarrierArrive" || op == "_StepBarrierWait" || op == "_StepBarrierReady") return &make_kernel<step_barrier_use_kernel>;
  if (op == "_StepBarrierInterrupt") return &make_kernel<step_barrier_interrupt_kernel>;
  if (op == "_StepBarrierLeave") return &make_kernel<step_barrier_leave_kernel>;
  if (op == "_StepBarrierAdvance") return &make_kernel<step_barrier_advance_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
