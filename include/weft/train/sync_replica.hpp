#ifndef WEFT_TRAIN_SYNC_REPLICA_HPP
#define WEFT_TRAIN_SYNC_REPLICA_HPP
// A replica of synchronous training at work: what has to be initialised for it, and on the chief the thread that makes the updates.

#include <weft/core/bounded_wait.hpp>
#include <weft/core/config.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/train/coordinator.hpp>
#include <weft/train/session_hook.hpp>
#include <weft/train/sync_replicas.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace weft {

/// Whether a replica also makes the updates; exactly one does.
enum class replica_role : unsigned char { chief, worker };

/// Options of a running replica.
struct sync_replica_options {
  /// How long a worker waits until the chief has initialised the variables and makes updates.
  std::chrono::milliseconds ready_timeout = std::chrono::seconds(60);
  /// TensorFlow's order: tokens that the chief puts in the queue, as `init_tokens`. With 0 and as many workers as are aggregated nothing is wasted.
  std::int64_t num_tokens = -1;
};

/// A replica at work: all that has to run beside the passes of a worker. Its constructor initialises what the role needs (the variables must be initialised by the chief before); on the chief a
/// thread makes the updates until this ends. When that thread fails, the session is closed, so that no pass waits in vain, and `stop` throws the reason. In TensorFlow's order the chief's `stop`
/// closes the session: its thread waits where nothing else ends it.
class sync_replica {
 public:
  /// The session must live as long as this.
  sync_replica(sync_replicas_optimizer& sync, session_interface& session, replica_role role, sync_replica_options options = {});
  sync_replica(const sync_replica&) = delete;
  sync_replica& operator=(const sync_replica&) = delete;
  /// Stops, and drops the reason if there is one.
  ~sync_replica();
  /// Says that this replica makes no more passes, and on the chief no more updates, so that nobody waits for it: the others' passes that need it end with OUT_OF_RANGE (in TensorFlow's order they wait).
  /// Ends the chief's thread, after the update that it is making. Throws the error that ended it before, once.
  void stop();
  /// Updates that this chief has made.
  std::int64_t updates() const noexcept;

 private:
  friend class sync_replicas_hook;
  struct state;
  explicit sync_replica(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

/// Keeps a sync_replica for each session that a monitored session opens, so that synchronous training survives a recovery: `hooks = {std::make_shared<sync_replicas_hook>(sync)}`.
class sync_replicas_hook final : public session_hook {
 public:
  /// `sync` must live as long as this.
  explicit sync_replicas_hook(sync_replicas_optimizer& sync, sync_replica_options options = {});
  WEFT_INLINE ~sync_replicas_hook() override;
  WEFT_INLINE void after_create_session(hook_context& context) override;
  /// Throws what has ended the chief's thread.
  WEFT_INLINE void before_run(hook_context& context, hook_request& request) override;
  WEFT_INLINE void end(hook_context& context) override;

 private:
  sync_replicas_optimizer& sync_;
  sync_replica_options options_;
  std::unique_ptr<sync_replica> replica_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

namespace weft {

struct sync_replica::state {
  state(sync_replicas_optimizer& optimizer, session_interface& in, replica_role what, sync_replica_options asked) : sync(optimizer), session(in), role(what), options(asked) {}

  sync_replicas_optimizer& sync;
  session_interface& session;
  const replica_role role;
  const sync_replica_options options;
  // Whether the session is there as long as this, to be closed when the chief's thread has failed.
  bool closes = true;
  // Steps that outlive the session: the chief's, and the end of what this replica does for the others.
  std::shared_ptr<prepared_step> step, interrupt, leave, chief_leave;
  std::atomic<std::int64_t> updates{0};
  // Declared last: its threads use the rest.
  coordinator together{};

  void begin();
  void init_worker();
  void wait_for_chief(std::chrono::steady_clock::time_point until);
  void say_goodbye();
  void init_chief();
  void work();
  void end_wait();
};

// Until the chief has initialised the counter.
WEFT_DECL void sync_replica::state::init_worker() {
  const auto until = std::chrono::steady_clock::now() + detail::bounded(options.ready_timeout);
  for (;;) {
    try {
      session.run(sync.local_init());
      if (sync.order() != sync_order::exact) return;
      // The chief may restore variables until it begins.
      wait_for_chief(until);
      return session.run(sync.local_init());
    } catch (const error& e) {
      if (e.code() != error_code::failed_precondition) throw;
      if (std::chrono::steady_clock::now() >= until)
        throw error(error_code::deadline_exceeded, "the chief has not initialised the variables within " + std::to_string(options.ready_timeout.count()) + " ms: " + e.message());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

WEFT_DECL void sync_replica::state::wait_for_chief(std::chrono::steady_clock::time_point until) {
  run_options limit;
  limit.timeout = std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()));
  try {
    session.run(limit, sync.chief_begun());
  } catch (const error& e) {
    if (e.code() != error_code::deadline_exceeded) throw;
    throw error(error_code::deadline_exceeded, sync.name() + ": the variables are initialised, but within " + std::to_string(options.ready_timeout.count()) +
                                                   " ms no chief began to make updates; exactly one worker makes its sync_replica with replica_role::chief");
  }
}

// The session may be lost or closed, and nobody left who would wait.
WEFT_DECL void sync_replica::state::say_goodbye() {
  run_options limit;
  limit.timeout = std::chrono::seconds(1);
  for (auto* farewell : {&leave, &chief_leave}) {
    const auto last = std::exchange(*farewell, nullptr);
    if (last == nullptr) continue;
    try {
      last->run(nullptr, nullptr, limit);
    } catch (const error&) {
    }
  }
}

// What an earlier chief has left behind is forgotten: the workers that pushed it are told that it did not count.
WEFT_DECL void sync_replica::state::init_chief() {
  const auto prepared = [this](const operation& op) { return session.prepare({{}, {}, {op.get()}}); };
  step = prepared(sync.chief_step());
  if (sync.order() == sync_order::exact) {
    interrupt = prepared(sync.chief_interrupt());
    for (std::size_t i = 0; i < sync.drains().size(); ++i)
      if (session.run(sync.held()[i]) > 0) session.run(sync.drains()[i]);
  }
  session.run(sync.chief_init());
  if (sync.order() == sync_order::tensorflow && options.num_tokens != 0) session.run(sync.init_tokens(options.num_tokens));
}

WEFT_DECL void sync_replica::state::work() {
  try {
    while (!together.should_stop()) {
      step->run(nullptr, nullptr, run_options());
      ++updates;
    }
  } catch (...) {
    const bool asked = together.should_stop();
    together.request_stop_of_exception();
    // Passes that wait for this thread end with the session.
    if (closes && !asked) session.close();
  }
}

// Only the wait is cut short: an update that has begun is finished. In TensorFlow's order nothing but the end of the session ends the wait.
WEFT_DECL void sync_replica::state::end_wait() {
  if (role == replica_role::worker || !together.reason().ok()) return;
  try {
    if (interrupt != nullptr) interrupt->run(nullptr, nullptr, run_options());
    else if (closes) session.close();
  } catch (const error&) {
    // A cluster that does not answer has ended the wait, or will; so has a session that is closed.
  }
}

WEFT_DECL void sync_replica::state::begin() {
  const auto prepared = [this](const operation& op) { return session.prepare({{}, {}, {op.get()}}); };
  if (role == replica_role::worker) init_worker();
  else init_chief();
  if (sync.order() == sync_order::exact) {
    leave = prepared(sync.leave());
    if (role == replica_role::chief) chief_leave = prepared(sync.chief_leave());
  }
  if (role == replica_role::worker) return;
  together.start("chief of " + sync.name(), [this] { work(); });
}

WEFT_DECL sync_replica::sync_replica(std::unique_ptr<state> s) : state_(std::move(s)) { state_->begin(); }
WEFT_DECL sync_replica::sync_replica(sync_replicas_optimizer& sync, session_interface& session, replica_role role, sync_replica_options options)
    : sync_replica(std::make_unique<state>(sync, session, role, options)) {}

WEFT_DECL sync_replica::~sync_replica() {
  try {
    stop();
  } catch (const error&) {
    // Who wants to know calls stop().
  }
}

WEFT_DECL void sync_replica::stop() {
  state_->together.request_stop();
  state_->end_wait();
  try {
    state_->together.join();
  } catch (...) {
    state_->say_goodbye();
    throw;
  }
  state_->say_goodbye();
}

WEFT_DECL std::int64_t sync_replica::updates() const noexcept { return state_->updates; }

WEFT_DECL sync_replicas_hook::sync_replicas_hook(sync_replicas_optimizer& sync, sync_replica_options options) : sync_(sync), options_(options) {}
WEFT_DECL sync_replicas_hook::~sync_replicas_hook() = default;

WEFT_DECL void sync_replicas_hook::after_create_session(hook_context& context) {
  // The session before this one is closed, and with it the thread's wait.
  replica_.reset();
  auto made = std::make_unique<sync_replica::state>(sync_, context.session(), context.is_chief() ? replica_role::chief : replica_role::worker, options_);
  made->closes = false;
  replica_.reset(new sync_replica(std::move(made)));
}

WEFT_DECL void sync_replicas_hook::before_run(hook_context&, hook_request&) {
  if (replica_ == nullptr) return;
  if (const status why = replica_->state_->together.reason(); !why.ok()) throw error(why);
}

WEFT_DECL void sync_replicas_hook::end(hook_context&) {
  // In TensorFlow's order the thread ends when the session is closed, after this.
  if (replica_ != nullptr && sync_.order() == sync_order::exact) replica_->stop();
}

}  // namespace weft
#endif

#endif
