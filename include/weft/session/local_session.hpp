#ifndef WEFT_SESSION_LOCAL_SESSION_HPP
#define WEFT_SESSION_LOCAL_SESSION_HPP
// A session in this process: on one task with any number of devices, or on every task of a cluster through memory. Needs neither
// Asio nor JSON.

#include <weft/core/config.hpp>
#include <weft/graph/scope.hpp>
#include <weft/session/session_interface.hpp>
#if WEFT_HAS_BODIES
#include <weft/session/local_runtime.hpp>
#endif

#include <memory>
#include <vector>

namespace weft {

namespace detail {
std::unique_ptr<session_interface> open_local_session(session_options options, const graph& g);
}

/// Runs steps in this process; the calling thread works. Variables live as long as the session and its prepared steps.
class local_session : public session_interface {
 public:
  /// A session for this graph. Throws INVALID_ARGUMENT when the options name no device.
  explicit local_session(session_options options = {}, const weft::graph& g = default_graph());
  /// A session in which every task of the cluster runs in this process, with the partitions of the real cluster.
  explicit local_session(const cluster_spec& cluster, session_options options = {}, const weft::graph& g = default_graph());

  WEFT_INLINE const weft::graph& graph() const override;
  WEFT_INLINE std::shared_ptr<prepared_step> prepare(const step_signature& signature) override;
  WEFT_INLINE partitioned_graph partitions(const step_signature& signature) override;
  WEFT_INLINE std::vector<device> list_devices() override;
  WEFT_INLINE void close() override;

 private:
  std::unique_ptr<session_interface> inner_;
};

#if WEFT_HAS_BODIES

namespace detail {
WEFT_DECL std::unique_ptr<session_interface> open_local_session(session_options options, const graph& g) {
  return std::make_unique<runtime_session>(std::move(options), g);
}
}  // namespace detail

WEFT_DECL local_session::local_session(session_options options, const weft::graph& g) : inner_(detail::open_local_session(std::move(options), g)) {}
WEFT_DECL local_session::local_session(const cluster_spec& cluster, session_options options, const weft::graph& g)
    : local_session((options.cluster = cluster, std::move(options)), g) {}
WEFT_DECL const weft::graph& local_session::graph() const { return inner_->graph(); }
WEFT_DECL std::shared_ptr<prepared_step> local_session::prepare(const step_signature& signature) { return inner_->prepare(signature); }
WEFT_DECL partitioned_graph local_session::partitions(const step_signature& signature) { return inner_->partitions(signature); }
WEFT_DECL std::vector<device> local_session::list_devices() { return inner_->list_devices(); }
WEFT_DECL void local_session::close() { inner_->close(); }

#endif

}  // namespace weft

#endif
