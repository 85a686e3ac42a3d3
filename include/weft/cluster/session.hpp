#ifndef WEFT_CLUSTER_SESSION_HPP
#define WEFT_CLUSTER_SESSION_HPP
// The session that understands targets: this process, or a server of a cluster.

#include <weft/cluster/remote_session.hpp>
#include <weft/core/config.hpp>
#include <weft/session/local_session.hpp>
#include <weft/session/session_interface.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

inline std::unique_ptr<session_interface> open_session(std::string_view target, session_options options, const graph& g) {
  constexpr std::string_view scheme = "weft://";
  if (target.empty()) return std::make_unique<local_session>(std::move(options), graph(g.state()));
  if (target.substr(0, scheme.size()) != scheme)
    fail(error_code::invalid_argument, "session target " + quoted(target) + " is of no kind that weft knows; expected '' (this process) or 'weft://host:port' (the server that leads)");
  return open_remote_session(parse_host_port(target.substr(scheme.size())), options, g);
}

}  // namespace detail

/// Runs steps of a graph where its target says: "" in this process, "weft://host:port" on the cluster of that server. Thread-safe.
class session : public session_interface {
 public:
  /// A session for the graph, by default the thread's. Throws INVALID_ARGUMENT for a target of unknown kind, UNAVAILABLE or DEADLINE_EXCEEDED
  /// when the server cannot be reached within `options.connect_timeout`.
  explicit session(std::string_view target = {}, session_options options = {}, const weft::graph& g = default_graph())
      : inner_(detail::open_session(target, std::move(options), g)) {}
  explicit session(session_options options, const weft::graph& g = default_graph()) : session({}, std::move(options), g) {}
  explicit session(const weft::graph& g) : session({}, {}, g) {}

  const weft::graph& graph() const override { return inner_->graph(); }
  std::shared_ptr<prepared_step> prepare(const step_signature& signature) override { return inner_->prepare(signature); }
  partitioned_graph partitions(const step_signature& signature) override { return inner_->partitions(signature); }
  std::vector<device> list_devices() override { return inner_->list_devices(); }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<session_interface> inner_;
};

}  // namespace weft

#endif
