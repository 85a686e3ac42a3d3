#ifndef WEFT_CLUSTER_SERVER_HPP
#define WEFT_CLUSTER_SERVER_HPP
// One task of a cluster: listens at its address, leads the sessions of clients and runs the parts that masters register.

#include <weft/cluster/server_options.hpp>
#include <weft/cluster/server_statistics.hpp>
#include <weft/cluster/server_status.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>
#if WEFT_HAS_CLUSTER_BODIES
#include <weft/cluster/server_core_report.hpp>
#endif

#include <memory>
#include <string>
#include <utility>

namespace weft {

namespace detail {
class server_core;
}

/// A task server. It serves from the end of its constructor until `stop`. All members are thread-safe.
class server {
 public:
  /// Listens at the address of the task and nowhere else (`server_options::listen_address` says another place); port 0 takes a free one. Throws INVALID_ARGUMENT for a job or task that the
  /// cluster does not have, FAILED_PRECONDITION for an address that other machines can reach unless that is allowed, UNAVAILABLE when the port is in use.
  server(cluster_spec cluster, std::string job, int index, server_options options = {});
  /// For tasks whose ports were taken before the cluster was known.
  explicit server(std::unique_ptr<detail::server_core> core);
  server(server&&) noexcept;
  server& operator=(server&&) noexcept;
  /// Stops.
  ~server();

  /// What a session is opened with: `weft://127.0.0.1:33335`.
  const std::string& target() const;
  /// Where it listens, with the real port: the address in the target unless `server_options::listen_address` says another.
  std::string listen_address() const;
  /// `/job:work/task:2`.
  const task_id& task() const;
  /// The cluster, with the real port of this task.
  cluster_spec cluster() const;
  /// Takes other addresses of other tasks, which were replaced, more tasks, or fewer. Steps that use a task that was elsewhere end with UNAVAILABLE. Every task must be told, see
  /// `session::update_cluster`. Throws INVALID_ARGUMENT if the cluster has another address for this task.
  void update_cluster(const cluster_spec& next);
  /// What it has done and holds; the last numbers when it is stopped.
  server_statistics statistics() const;
  /// What `ask_server` gets: the statistics, and each session, registered graph and resource.
  server_report report() const;
  /// Waits until the server is stopped, by another thread; returns why, as its clients were told: CANCELLED after `stop()`.
  status join();
  /// Ends: steps fail with CANCELLED and their clients are told, threads are joined, the port is free at once. May be called by any thread and more than once; by a
  /// kernel or the log function of this server it only begins the end, and so does the destructor there. Not for signal handlers: have a thread wait for the signal.
  void stop();
  /// Ends as `stop()` does, for another reason, which steps and clients are told.
  void stop(const status& why);

 private:
  std::unique_ptr<detail::server_core> core_;
};

}  // namespace weft

#if WEFT_HAS_CLUSTER_BODIES

namespace weft {

WEFT_DECL server::server(cluster_spec cluster, std::string job, int index, server_options options)
    : core_(std::make_unique<detail::server_core>(std::move(cluster), task_id{std::move(job), index}, std::move(options))) {
  core_->start(core_->cluster_with_port());
}
WEFT_DECL server::server(std::unique_ptr<detail::server_core> core) : core_(std::move(core)) {}
WEFT_DECL server::server(server&&) noexcept = default;
WEFT_DECL server& server::operator=(server&& other) noexcept {
  detail::server_core::discard(std::exchange(core_, std::move(other.core_)));
  return *this;
}
WEFT_DECL server::~server() { detail::server_core::discard(std::move(core_)); }
WEFT_DECL const std::string& server::target() const { return core_->target(); }
WEFT_DECL std::string server::listen_address() const { return to_text(core_->address()); }
WEFT_DECL const task_id& server::task() const { return core_->task(); }
WEFT_DECL cluster_spec server::cluster() const { return core_->cluster(); }
WEFT_DECL void server::update_cluster(const cluster_spec& next) { core_->update_cluster(next); }
WEFT_DECL server_statistics server::statistics() const { return core_->statistics(); }
WEFT_DECL server_report server::report() const { return core_->report(); }
WEFT_DECL status server::join() { return core_->join(); }
WEFT_DECL void server::stop() { core_->stop(); }
WEFT_DECL void server::stop(const status& why) { core_->stop(why); }

}  // namespace weft

#endif
#endif
