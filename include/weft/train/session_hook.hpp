#ifndef WEFT_TRAIN_SESSION_HOOK_HPP
#define WEFT_TRAIN_SESSION_HOOK_HPP
// What a monitored session calls around its steps.

#include <weft/core/config.hpp>
#include <weft/session/feed.hpp>
#include <weft/session/session_interface.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// What a hook sees of the training.
class hook_context {
 public:
  virtual ~hook_context() = default;
  /// The session below the monitored one: its steps call no hooks.
  virtual session_interface& session() = 0;
  /// The graph's global step as the last step of this session saw it; -1 before the first, or when the graph has none.
  virtual std::int64_t last_step() const noexcept = 0;
  /// The global step as it is now, which takes a step of its own; -1 when the graph has none.
  virtual std::int64_t read_step() = 0;
  /// Lets every session of this training stop.
  virtual void request_stop() = 0;
  /// Whether this is the session that initializes and saves.
  virtual bool is_chief() const noexcept = 0;
};

/// What a hook adds to a step.
struct hook_request {
  std::vector<output> fetches;
  std::vector<feed> feeds;
  /// Filled with what ran and when; it must live until `after_run`.
  step_trace* trace = nullptr;
};

/// Called by a monitored session. Derive from it and override what is needed; what it throws comes out of `run`, and ABORTED or UNAVAILABLE lead to a recovery as those of a step do.
class session_hook {
 public:
  virtual ~session_hook() = default;
  /// Once, before the session is opened; it may add nodes to the graph.
  virtual void begin(const graph&) {}
  /// When the session is open and all variables are initialized, also after each recovery.
  virtual void after_create_session(hook_context&) {}
  /// Before each step.
  virtual void before_run(hook_context&, hook_request&) {}
  /// After each step that succeeded, with the values of the hook's fetches.
  virtual void after_run(hook_context&, const std::vector<tensor_value>&) {}
  /// When the session is closed without an error.
  virtual void end(hook_context&) {}
};

}  // namespace weft

#endif
