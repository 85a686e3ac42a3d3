#ifndef WEFT_TRAIN_MONITORED_SESSION_HPP
#define WEFT_TRAIN_MONITORED_SESSION_HPP
// A session for training: it initializes or restores the variables or waits for whoever does, calls hooks around each step, comes back after failures of tasks, and ends together with those of the other workers.

#include <weft/core/bounded_wait.hpp>
#include <weft/core/config.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/train/saver.hpp>
#include <weft/train/session_hook.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weft {

/// Opens a session; called again to come back after a failure: `[&] { return std::make_unique<weft::session>(target, options); }`.
using session_factory = std::function<std::unique_ptr<session_interface>()>;

/// Who initializes, restores and saves. A training has one chief.
enum class session_role { chief, worker };
/// What the chief makes of variables that hold values when it starts, as when only the chief was restarted: it restores or initializes them, or leaves them.
enum class live_variables { replace, keep };

/// How a monitored session works.
struct monitored_session_options {
  session_role role = session_role::chief;
  /// Where checkpoints are looked for and, by the chief, written; empty: neither.
  std::string checkpoint_directory;
  /// What checkpoints are called before `-step`.
  std::string checkpoint_name = "model";
  /// How they are written; `directory` is `checkpoint_directory` when empty.
  saver_options saving;
  /// The chief saves when this time has passed since the last time, or this many steps; 0 means not for this reason. It also saves before the first step and at the end.
  std::chrono::seconds save_every{600};
  std::int64_t save_every_steps = 0;
  /// What the chief runs where there is no checkpoint; the initializers of all global variables when empty.
  operation init;
  /// What each session runs besides, each time it was opened; the initializers of local variables when empty.
  operation local_init;
  /// What runs when the training is to stop, such as operations that close queues in which others wait.
  std::vector<operation> stop_ops;
  live_variables at_start = live_variables::replace;
  /// How long tasks may be unreachable, or variables uninitialized, at the start and after a failure.
  std::chrono::milliseconds patience = std::chrono::hours(2);
  /// The longest pause between two looks.
  std::chrono::milliseconds look_every = std::chrono::seconds(1);
  /// Called in this order, but for `end`, which is called in the opposite one.
  std::vector<std::shared_ptr<session_hook>> hooks;
};

/// Runs training steps with the interface of every session. After ABORTED or UNAVAILABLE, or when the server that leads its steps was stopped, it opens a new session and, as the chief, restores the newest checkpoint if variables have lost their values. The failed step is
/// then run again if it cannot have run, or if everything was set back to before it; otherwise `run` throws ABORTED with `may_have_run`, and the next call goes on: so no update is applied twice. OUT_OF_RANGE (the input has
/// ended) makes this session stop. One thread uses it at a time.
///
/// ```cpp
/// weft::monitored_session session([&] { return std::make_unique<weft::session>(target); }, options);
/// while (!session.should_stop()) session.run({{images, batch}}, train);
/// session.close();
/// ```
class monitored_session final : public session_interface {
 public:
  /// Opens the session and prepares it: waits until all variables of the graph are initialized. Throws DEADLINE_EXCEEDED naming those that are not, or the task that cannot be reached; FAILED_PRECONDITION
  /// when the chief's initialization leaves some out; and what the saver throws.
  monitored_session(session_factory open, monitored_session_options options = {}, const weft::graph& g = default_graph());
  /// Closes it; without `end` of the hooks when an exception is on its way.
  WEFT_INLINE ~monitored_session() override;

  /// Whether to leave the loop: somebody asked to stop, here or in another session of the training, or the input has ended.
  bool should_stop() const noexcept;
  /// Lets all sessions of this training stop: each sees it with its next step.
  void request_stop();
  /// Calls `step` until `should_stop()`: steps that were lost in a recovery and an ended input are no errors. Then closes the session.
  void loop(const std::function<void()>& step);
  /// The global step as the last step saw it; -1 before the first, or when the graph has none.
  std::int64_t last_step() const noexcept;
  /// How many times it has come back after a failure.
  int recoveries() const noexcept;

  WEFT_INLINE const weft::graph& graph() const override;
  WEFT_INLINE std::shared_ptr<prepared_step> prepare(const step_signature& signature) override;
  WEFT_INLINE partitioned_graph partitions(const step_signature& signature) override;
  WEFT_INLINE std::vector<device> list_devices() override;
  /// Ends the hooks, saves, as the chief, and closes the session. Idempotent.
  WEFT_INLINE void close() override;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/core/step_trace.hpp>
#include <weft/graph/scope.hpp>
#include <weft/partition/partitioned_graph.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/train/coordinator.hpp>
#include <weft/train/hooks.hpp>
#include <weft/train/queue_runner.hpp>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace weft {

namespace detail {
// Errors after which a new session may go on. A step that was CANCELLED by a task, not by an op such as a closed queue, was led by a server that was stopped.
WEFT_DECL bool is_recoverable(const error& e) {
  const status& s = e.status();
  return s.code == error_code::aborted || s.code == error_code::unavailable || (s.code == error_code::cancelled && s.node.empty() && !s.task.empty());
}
}  // namespace detail

struct monitored_session::state final : hook_context {
  explicit state(const weft::graph& of) : g(of.state()) {}

  // A handle to the graph of the user.
  const weft::graph g;
  session_factory open;
  monitored_session_options options;
  std::shared_ptr<session_interface> inner;
  std::unique_ptr<coordinator> runners;
  std::unique_ptr<saver> checkpoints;
  // What the session adds to the graph: the flag that all sessions share, and what asks for uninitialized variables.
  output flag, flag_read, step_read;
  operation flag_clear, flag_set;
  tensor<std::string, 1> uninitialized;
  std::int64_t step = -1;
  int came_back = 0, exceptions = std::uncaught_exceptions();
  bool stopping = false, closed = false, ready = false, lost_step = false;

  session_interface& session() override { return *inner; }
  std::int64_t last_step() const noexcept override { return step; }
  std::int64_t read_step() override {
    if (step_read.from == nullptr) return -1;
    return inner->run(run_options(), std::vector<feed>(), std::vector<output>{step_read})[0].item<std::int64_t>();
  }
  WEFT_INLINE void request_stop() override;
  bool is_chief() const noexcept override { return options.role == session_role::chief; }

  void build();
  // Opens a session and waits until it can be used; whether all variables were set back to the checkpoint, or to their initial values.
  bool prepare_session(bool first);
  bool initialize(bool first);
  std::vector<std::string> ask_uninitialized();
  void stop_runners();
  error cause_of(const error& e) const;
  void run(const step_signature& signature, tensor_value* feeds, tensor_value* fetches, const run_options& run);
  void run_once(const step_signature& signature, std::vector<tensor_value> fed, tensor_value* fetches, const run_options& run);
  void recover(const error& why);
  // Prepares a session; `lost_step` says whether the step that was interrupted must not be repeated.
  void begin_session(const status& interrupted);
  void close(bool with_hooks);
};

WEFT_DECL void monitored_session::state::build() {
  const auto scope = g.as_default();
  if (options.checkpoint_directory.empty()) options.save_every = std::chrono::seconds(0), options.save_every_steps = 0;
  if (const any_variable counter = detail::find_global_step(g, call_site()); !counter.empty()) step_read = counter.read("monitored_session/global_step");
  // The flag stands beside the global step, where every worker can read it. It is no variable of the graph's lists: it is neither saved nor initialized with them.
  const std::string device = step_read.from == nullptr ? std::string() : step_read.from->inputs()[0].from->device();
  if (const node* made = g.find("monitored_session/stop")) {
    flag = {made, 0};
  } else {
    const auto place = with_device(device);
    flag = detail::add_node_at("VarHandleOp", {}, "monitored_session/stop", call_site(), {{"dtype", dtype::boolean}, {"shape", partial_shape({})}, {"shared_name", std::string("monitored_session/stop")}});
  }
  const any_variable shared(flag);
  flag_read = shared.read("monitored_session/read_stop");
  flag_clear = shared.assign(output{&detail::add_const(tensor_value::scalar(false), "monitored_session/no", &flag.from->owner()), 0}, "monitored_session/clear");
  flag_set = shared.assign(output{&detail::add_const(tensor_value::scalar(true), "monitored_session/yes", &flag.from->owner()), 0}, "monitored_session/set");
  std::vector<any_variable> all = global_variables(g);
  if (options.init.empty() && !all.empty()) options.init = initialize_variables(all, "monitored_session/init");
  const std::vector<any_variable> local = local_variables(g);
  if (options.local_init.empty() && !local.empty()) options.local_init = initialize_variables(local, "monitored_session/local_init");
  if (!options.checkpoint_directory.empty() && !all.empty()) {
    if (options.saving.directory.empty()) options.saving.directory = options.checkpoint_directory;
    checkpoints = std::make_unique<saver>(std::vector<saved_variable>(all.begin(), all.end()), options.saving);
  }
  all.push_back(shared);
  uninitialized = report_uninitialized_variables(all, "monitored_session/uninitialized");
  if (is_chief() && checkpoints != nullptr) {
    checkpoint_hook_options every;
    every.path = options.checkpoint_name;
    every.seconds = options.save_every;
    every.steps = options.save_every_steps;
    options.hooks.insert(options.hooks.begin(), std::make_shared<checkpoint_hook>(*checkpoints, every));
  }
  for (const auto& hook : options.hooks) hook->begin(g);
}

WEFT_DECL std::vector<std::string> monitored_session::state::ask_uninitialized() {
  const tensor_value names = inner->run(run_options(), std::vector<feed>(), std::vector<output>{uninitialized.raw()})[0];
  return std::vector<std::string>(names.data<std::string>(), names.data<std::string>() + names.elements());
}

// The chief gives all variables their values unless none has lost its own. Whether they were set back.
WEFT_DECL bool monitored_session::state::initialize(bool first) {
  const std::vector<std::string> lost = ask_uninitialized();
  // The flag says nothing about the training: without a global step it stands on the session's own task, which may have been restarted by itself.
  const bool flag_lost = std::find(lost.begin(), lost.end(), flag.from->name()) != lost.end();
  const bool keep = lost.size() == (flag_lost ? 1U : 0U) && (!first || options.at_start == live_variables::keep);
  if (keep) {
    if (flag_lost) inner->run(flag_clear);
    return false;
  }
  const auto newest = checkpoints == nullptr ? std::nullopt : latest_checkpoint(options.checkpoint_directory);
  if (newest) checkpoints->restore(*inner, *newest);
  else if (!options.init.empty()) inner->run(options.init);
  inner->run(flag_clear);
  return true;
}

WEFT_DECL bool monitored_session::state::prepare_session(bool first) {
  const auto deadline = std::chrono::steady_clock::now() + detail::bounded(options.patience);
  auto pause = std::chrono::milliseconds(10);
  bool set_back = false;
  for (std::string waiting_for;;) {
    bool reached = false;
    try {
      if (inner == nullptr) inner = open();
      if (inner == nullptr) fail(error_code::invalid_argument, "the factory of the monitored session gave no session");
      if (is_chief()) set_back = initialize(first) || set_back;
      const std::vector<std::string> names = ask_uninitialized();
      reached = true;
      if (names.empty()) {
        if (!options.local_init.empty()) inner->run(options.local_init);
        return set_back;
      }
      waiting_for = "variables that are not initialized: ";
      for (std::size_t i = 0; i < names.size(); ++i) waiting_for += i == 20 ? ", ..." : i > 20 ? "" : (i == 0 ? "'" : ", '") + names[i] + "'";
      if (is_chief()) fail(error_code::failed_precondition, "the initialization of the chief leaves " + waiting_for);
    } catch (const error& e) {
      if (!detail::is_recoverable(e)) throw;
      inner.reset();
      reached = false;
      waiting_for = e.message();
    }
    if (std::chrono::steady_clock::now() + pause > deadline)
      fail(error_code::deadline_exceeded, std::string("after ") + std::to_string(options.patience.count()) + " ms this " + (is_chief() ? "chief" : "worker") + " still waits for " +
                                              (reached ? "the chief, who should initialize " + waiting_for : "a task: " + waiting_for));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, options.look_every);
  }
}

WEFT_DECL void monitored_session::state::stop_runners() {
  if (runners == nullptr) return;
  runners->request_stop();
  try {
    runners->join();
  } catch (const error&) {
    // Why they stopped was thrown by the step, or ends with the session.
  }
  runners.reset();
}

// A step that finds a queue closed fails for the reason that ended whoever was to fill it.
WEFT_DECL error monitored_session::state::cause_of(const error& e) const {
  const bool found_closed = e.code() == error_code::out_of_range || e.code() == error_code::cancelled;
  if (!found_closed || runners == nullptr || runners->reason().ok()) return e;
  return error(runners->reason());
}

WEFT_DECL void monitored_session::state::recover(const error& why) {
  if (closed) throw why;
  ready = false;
  if (inner != nullptr) inner->close();
  stop_runners();
  inner.reset();
  ++came_back;
}

WEFT_DECL void monitored_session::state::request_stop() {
  if (std::exchange(stopping, true) || inner == nullptr) return;
  try {
    inner->run(flag_set);
    for (const operation& op : options.stop_ops) inner->run(op);
  } catch (const error& e) {
    // Whoever cannot be reached cannot be told.
    if (!detail::is_recoverable(e)) throw;
  }
}

WEFT_DECL void monitored_session::state::run_once(const step_signature& signature, std::vector<tensor_value> fed, tensor_value* fetches, const run_options& run) {
  if (runners != nullptr && !runners->reason().ok()) throw error(runners->reason());
  step_signature whole = signature;
  std::vector<hook_request> requests(options.hooks.size());
  const auto want = [&whole](const output& what) {
    if (std::find(whole.fetches.begin(), whole.fetches.end(), what) == whole.fetches.end() && std::find(whole.feeds.begin(), whole.feeds.end(), what) == whole.feeds.end()) whole.fetches.push_back(what);
  };
  for (std::size_t i = 0; i < options.hooks.size(); ++i) {
    options.hooks[i]->before_run(*this, requests[i]);
    for (const feed& f : requests[i].feeds) {
      if (std::find(whole.feeds.begin(), whole.feeds.end(), f.to()) != whole.feeds.end()) fail(error_code::invalid_argument, "'" + to_text(f.to()) + "' is fed twice, by a hook and by the step or another hook");
      whole.feeds.push_back(f.to());
      fed.push_back(f.value());
    }
  }
  for (const hook_request& r : requests)
    for (const output& o : r.fetches) want(o);
  want(flag_read);
  if (step_read.from != nullptr) want(step_read);
  std::vector<tensor_value> kept = fed, got(whole.fetches.size());
  step_trace trace;
  run_options how = run;
  for (const hook_request& r : requests)
    if (r.trace != nullptr) how.trace = &trace;
  inner->prepare(whole)->run(fed.data(), got.data(), how);
  if (how.trace == &trace) {
    if (run.trace != nullptr) *run.trace = trace;
    for (const hook_request& r : requests)
      if (r.trace != nullptr) *r.trace = trace;
  }
  const auto value_of = [&](const output& what) {
    const auto at = std::find(whole.fetches.begin(), whole.fetches.end(), what);
    if (at != whole.fetches.end()) return got[static_cast<std::size_t>(at - whole.fetches.begin())];
    return kept[static_cast<std::size_t>(std::find(whole.feeds.begin(), whole.feeds.end(), what) - whole.feeds.begin())];
  };
  if (value_of(flag_read).item<bool>()) stopping = true;
  if (step_read.from != nullptr) step = value_of(step_read).item<std::int64_t>();
  for (std::size_t i = 0; i < signature.fetches.size(); ++i) fetches[i] = got[i];
  for (std::size_t i = 0; i < options.hooks.size() && ready; ++i) {
    std::vector<tensor_value> values;
    for (const output& o : requests[i].fetches) values.push_back(value_of(o));
    try {
      options.hooks[i]->after_run(*this, values);
    } catch (const error& e) {
      // The step itself has run: what a hook could not do is tried again after the next one.
      if (!detail::is_recoverable(e)) throw;
      recover(e);
    }
  }
}

WEFT_DECL void monitored_session::state::begin_session(const status& interrupted) {
  const bool set_back = prepare_session(came_back == 0);
  if (!queue_runners(g).empty()) {
    runners = std::make_unique<coordinator>();
    (void)start_queue_runners(*inner, *runners);
  }
  for (const auto& hook : options.hooks) hook->after_create_session(*this);
  ready = true;
  lost_step = !interrupted.ok() && !(set_back && is_chief());
}

WEFT_DECL void monitored_session::state::run(const step_signature& signature, tensor_value* feeds, tensor_value* fetches, const run_options& run) {
  if (closed) fail(error_code::failed_precondition, "the monitored session is closed");
  // The inner session may take the values that it is given.
  const std::vector<tensor_value> fed(feeds, feeds + signature.feeds.size());
  const auto begun = std::chrono::steady_clock::now();
  status interrupted;
  for (auto pause = std::chrono::milliseconds(10);; pause = std::min(pause * 2, options.look_every)) {
    try {
      if (!ready) begin_session(interrupted);
      if (!lost_step && signature.fetches.empty() && signature.targets.empty()) return;
      if (!lost_step) return run_once(signature, fed, fetches, run);
    } catch (const error& caught) {
      const error e = cause_of(caught);
      if (e.code() == error_code::out_of_range) stopping = true;
      if (!detail::is_recoverable(e)) throw e;
      const bool in_step = ready;
      recover(e);
      if (std::chrono::steady_clock::now() - begun > options.patience) throw e;
      if (in_step) interrupted = e.may_have_run() ? e.status() : status();
      std::this_thread::sleep_for(pause);
      continue;
    }
    lost_step = false;
    status lost(error_code::aborted, "the step was interrupted and may have run, so it was not repeated; the session has recovered and goes on with the next one. It failed with: " + interrupted.text());
    lost.may_have_run = true;
    throw error(lost);
  }
}

WEFT_DECL void monitored_session::state::close(bool with_hooks) {
  if (closed) return;
  try {
    if (with_hooks && ready)
      for (auto hook = options.hooks.rbegin(); hook != options.hooks.rend(); ++hook) (*hook)->end(*this);
  } catch (...) {
    close(false);
    throw;
  }
  closed = true;
  stop_runners();
  if (inner != nullptr) inner->close();
}

namespace detail {
// A step of a monitored session, whatever session is below it.
template <class State> class monitored_step final : public prepared_step {
 public:
  monitored_step(std::shared_ptr<State> of, step_signature signature) : of_(std::move(of)), signature_(std::move(signature)) {}
  void run(tensor_value* feeds, tensor_value* fetches, const run_options& options) override { of_->run(signature_, feeds, fetches, options); }

 private:
  const std::shared_ptr<State> of_;
  const step_signature signature_;
};
}  // namespace detail

WEFT_DECL monitored_session::monitored_session(session_factory open, monitored_session_options options, const weft::graph& g) : state_(std::make_shared<state>(g)) {
  state_->open = std::move(open);
  state_->options = std::move(options);
  state_->build();
  state_->run(step_signature(), nullptr, nullptr, run_options());
}

WEFT_DECL monitored_session::~monitored_session() {
  try {
    state_->close(std::uncaught_exceptions() <= state_->exceptions);
  } catch (...) {
    // Who wants to know calls close().
  }
}

WEFT_DECL bool monitored_session::should_stop() const noexcept { return state_->stopping || state_->closed; }
WEFT_DECL void monitored_session::request_stop() { state_->request_stop(); }
WEFT_DECL std::int64_t monitored_session::last_step() const noexcept { return state_->step; }
WEFT_DECL int monitored_session::recoveries() const noexcept { return state_->came_back; }
WEFT_DECL const weft::graph& monitored_session::graph() const { return state_->g; }
WEFT_DECL std::shared_ptr<prepared_step> monitored_session::prepare(const step_signature& signature) { return std::make_shared<detail::monitored_step<state>>(state_, signature); }
WEFT_DECL void monitored_session::close() { state_->close(true); }

WEFT_DECL partitioned_graph monitored_session::partitions(const step_signature& signature) {
  if (state_->inner == nullptr) fail(error_code::unavailable, "the monitored session has lost its session; its next step opens a new one");
  return state_->inner->partitions(signature);
}
WEFT_DECL std::vector<device> monitored_session::list_devices() {
  if (state_->inner == nullptr) fail(error_code::unavailable, "the monitored session has lost its session; its next step opens a new one");
  return state_->inner->list_devices();
}

WEFT_DECL void monitored_session::loop(const std::function<void()>& step) {
  while (!should_stop()) {
    try {
      step();
    } catch (const error& e) {
      const bool lost = e.code() == error_code::aborted && e.may_have_run() && state_->ready;
      if (!lost && !(e.code() == error_code::out_of_range && should_stop())) throw;
    }
  }
  close();
}

}  // namespace weft
#endif

#endif
