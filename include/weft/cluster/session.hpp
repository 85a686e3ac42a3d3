#ifndef WEFT_CLUSTER_SESSION_HPP
#define WEFT_CLUSTER_SESSION_HPP
// The session that understands targets: this process, or a server of a cluster.

#include <weft/core/config.hpp>
#include <weft/session/local_session.hpp>
#include <weft/session/session_interface.hpp>
#if WEFT_HAS_CLUSTER_BODIES
#include <weft/cluster/remote_session.hpp>
#endif

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// Runs steps of a graph where its target says: "" in this process, "weft://host:port" on the cluster of that server. Thread-safe.
class session : public session_interface {
 public:
  /// A session for the graph, by default the thread's. Throws INVALID_ARGUMENT for a target of unknown kind, UNAVAILABLE or DEADLINE_EXCEEDED
  /// when the server cannot be reached within `options.connect_timeout`.
  explicit session(std::string_view target = {}, session_options options = {}, const weft::graph& g = default_graph());
  explicit session(session_options options, const weft::graph& g = default_graph()) : session({}, std::move(options), g) {}
  explicit session(const weft::graph& g) : session({}, {}, g) {}

  /// Clears containers (variables, queues and the like) on all tasks of a server's cluster, as TensorFlow's `Session.reset`: those named, else the default
  /// one of each task, which is called as its job. Steps that wait for something in them end with ABORTED, and so does the next run of every session that this
  /// server leads. Throws INVALID_ARGUMENT for a target without a server, and the reason if a task cannot be reached; the others are cleared then.
  static void reset(std::string_view target, const std::vector<std::string>& containers = {}, const session_options& options = {});

  WEFT_INLINE const weft::graph& graph() const override;
  WEFT_INLINE std::shared_ptr<prepared_step> prepare(const step_signature& signature) override;
  WEFT_INLINE partitioned_graph partitions(const step_signature& signature) override;
  WEFT_INLINE std::vector<device> list_devices() override;
  WEFT_INLINE void wait_for_tasks(std::chrono::milliseconds time) override;
  WEFT_INLINE task_count count_tasks(std::chrono::milliseconds within) override;
  WEFT_INLINE void update_cluster(const cluster_spec& next) override;
  WEFT_INLINE void close() override;

 private:
  std::unique_ptr<session_interface> inner_;
};

#if WEFT_HAS_CLUSTER_BODIES

namespace detail {

// The server that a target names, or what to say of a target that cannot be understood.
WEFT_DECL host_port server_of(std::string_view target) {
  constexpr std::string_view scheme = "weft://";
  if (target.substr(0, scheme.size()) == scheme) return parse_host_port(target.substr(scheme.size()));
  std::string text = "session target " + quoted(target) + " is of no kind that weft knows; expected '' (this process) or 'weft://host:port' (the server that leads)";
  try {
    text += "; did you mean 'weft://" + to_text(parse_host_port(target)) + "'?";
  } catch (const error&) {
    // No address either.
  }
  fail(error_code::invalid_argument, std::move(text));
}

WEFT_DECL std::unique_ptr<session_interface> open_session(std::string_view target, session_options options, const graph& g) {
  if (target.empty()) return open_local_session(std::move(options), g);
  return open_remote_session(server_of(target), options, g);
}

}  // namespace detail

WEFT_DECL session::session(std::string_view target, session_options options, const weft::graph& g) : inner_(detail::open_session(target, std::move(options), g)) {}
WEFT_DECL void session::reset(std::string_view target, const std::vector<std::string>& containers, const session_options& options) {
  if (target.empty()) fail(error_code::invalid_argument, "a session without a target keeps its variables to itself; there is nothing to reset");
  detail::reset_remote(detail::server_of(target), containers, options);
}
WEFT_DECL const weft::graph& session::graph() const { return inner_->graph(); }
WEFT_DECL std::shared_ptr<prepared_step> session::prepare(const step_signature& signature) { return inner_->prepare(signature); }
WEFT_DECL partitioned_graph session::partitions(const step_signature& signature) { return inner_->partitions(signature); }
WEFT_DECL std::vector<device> session::list_devices() { return inner_->list_devices(); }
WEFT_DECL void session::wait_for_tasks(std::chrono::milliseconds time) { inner_->wait_for_tasks(time); }
WEFT_DECL task_count session::count_tasks(std::chrono::milliseconds within) { return inner_->count_tasks(within); }
WEFT_DECL void session::update_cluster(const cluster_spec& next) { inner_->update_cluster(next); }
WEFT_DECL void session::close() { inner_->close(); }

#endif

}  // namespace weft

#endif
