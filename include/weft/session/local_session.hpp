#ifndef WEFT_SESSION_LOCAL_SESSION_HPP
#define WEFT_SESSION_LOCAL_SESSION_HPP
// A session in this process: on one task with any number of devices, or on every task of a cluster through memory. Needs neither
// Asio nor JSON.

#include <weft/core/config.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_runtime.hpp>
#include <weft/session/session_interface.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
class local_runtime;
std::shared_ptr<local_runtime> make_local_runtime(const graph& g, const session_options& options);
std::shared_ptr<prepared_step> make_local_step(const std::shared_ptr<local_runtime>& runtime, const step_signature& signature);
partitioned_graph local_partitions(local_runtime& runtime, const step_signature& signature);
std::vector<device> local_devices(const local_runtime& runtime);
void close_local(local_runtime& runtime);
}  // namespace detail

/// Runs steps in this process; the calling thread works. Variables live as long as the session and its prepared steps.
class local_session : public session_interface {
 public:
  /// A session for this graph. Throws INVALID_ARGUMENT when the options name no device.
  explicit local_session(session_options options = {}, weft::graph g = default_graph())
      : graph_(g.state()), runtime_(detail::make_local_runtime(graph_, options)), steps_(options.prepared_signatures) {}
  /// A session in which every task of the cluster runs in this process, with the partitions of the real cluster.
  explicit local_session(const cluster_spec& cluster, session_options options = {}, weft::graph g = default_graph())
      : local_session((options.cluster = cluster, std::move(options)), std::move(g)) {}

  const weft::graph& graph() const override { return graph_; }
  std::shared_ptr<prepared_step> prepare(const step_signature& signature) override {
    return steps_.find_or_make(signature, [this](const step_signature& s) { return detail::make_local_step(runtime_, s); });
  }
  partitioned_graph partitions(const step_signature& signature) override { return detail::local_partitions(*runtime_, signature); }
  std::vector<device> list_devices() override { return detail::local_devices(*runtime_); }
  void close() override { detail::close_local(*runtime_); }

 private:
  weft::graph graph_;
  std::shared_ptr<detail::local_runtime> runtime_;
  detail::signature_cache<prepared_step> steps_;
};

#if WEFT_HAS_BODIES
namespace detail {
WEFT_DECL std::shared_ptr<local_runtime> make_local_runtime(const graph& g, const session_options& options) { return std::make_shared<local_runtime>(graph(g.state()), options); }
WEFT_DECL std::shared_ptr<prepared_step> make_local_step(const std::shared_ptr<local_runtime>& runtime, const step_signature& signature) {
  return std::make_shared<local_step>(runtime, signature);
}
WEFT_DECL partitioned_graph local_partitions(local_runtime& runtime, const step_signature& signature) { return runtime.partitions(signature); }
WEFT_DECL std::vector<device> local_devices(const local_runtime& runtime) { return runtime.devices().devices(); }
WEFT_DECL void close_local(local_runtime& runtime) { runtime.close(); }
}  // namespace detail
#endif

}  // namespace weft

#endif
