#ifndef WEFT_CLUSTER_LOCAL_CLUSTER_HPP
#define WEFT_CLUSTER_LOCAL_CLUSTER_HPP
// A whole cluster of real servers on free ports in this process, for tests and notebooks.

#include <weft/cluster/server.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// Servers that listen at 127.0.0.1. The destructor stops those that still run.
class local_cluster {
 public:
  /// `local_cluster cluster({{"ps", 1}, {"work", 2}});`. Addresses in the spec are ignored.
  explicit local_cluster(const cluster_spec& jobs, const server_options& options = {});
  local_cluster(std::initializer_list<cluster_spec::job> jobs, const server_options& options = {});
  local_cluster(const local_cluster&) = delete;
  local_cluster& operator=(const local_cluster&) = delete;
  ~local_cluster();

  /// The cluster with its real addresses.
  const cluster_spec& spec() const noexcept { return spec_; }
  /// A running server. Throws NOT_FOUND when it is stopped, INVALID_ARGUMENT when there is no such task.
  server& at(std::string_view job, int index);
  /// What a session is opened with to be led by this task, also when the task is stopped.
  std::string target(std::string_view job, int index) const;
  /// The first task of the last job leads.
  std::string target() const;
  /// Stops a task. Nothing happens when it is stopped already.
  void stop(std::string_view job, int index);
  /// Starts a stopped task again, at its old port.
  void start(std::string_view job, int index);

 private:
  cluster_spec spec_;
  server_options options_;
  std::map<task_id, std::unique_ptr<server>> servers_;
};

}  // namespace weft

#if WEFT_HAS_CLUSTER_BODIES

#include <iostream>

namespace weft {

WEFT_DECL local_cluster::local_cluster(std::initializer_list<cluster_spec::job> jobs, const server_options& options) : local_cluster(cluster_spec(jobs), options) {}

WEFT_DECL local_cluster::local_cluster(const cluster_spec& jobs, const server_options& options) : spec_(jobs), options_(options) {
  if (!options_.log) options_.log = [](const char* level, const std::string& text) {
    if (std::string_view(level) != "info") std::clog << "weft: " + text + "\n";
  };
  for (const task_id& task : jobs.tasks()) {
    spec_ = spec_.with_address(task.job, task.index, "127.0.0.1:0");
  }
  // All ports first: each server is told the whole cluster.
  std::map<task_id, std::unique_ptr<detail::server_core>> listening;
  for (const task_id& task : spec_.tasks()) listening.emplace(task, std::make_unique<detail::server_core>(spec_, task, options_));
  for (const auto& [task, core] : listening) spec_ = spec_.with_address(task.job, task.index, to_text(core->address()));
  for (auto& [task, core] : listening) {
    core->start(spec_);
    servers_.emplace(task, std::make_unique<server>(std::move(core)));
  }
}

WEFT_DECL local_cluster::~local_cluster() = default;

WEFT_DECL server& local_cluster::at(std::string_view job, int index) {
  (void)spec_.task_address(job, index);
  const auto it = servers_.find({std::string(job), index});
  if (it == servers_.end()) fail(error_code::not_found, to_text(task_id{std::string(job), index}) + " is stopped");
  return *it->second;
}

WEFT_DECL void local_cluster::stop(std::string_view job, int index) { servers_.erase({std::string(job), index}); }

WEFT_DECL void local_cluster::start(std::string_view job, int index) {
  auto& slot = servers_[{std::string(job), index}];
  if (slot == nullptr) slot = std::make_unique<server>(spec_, std::string(job), index, options_);
}

WEFT_DECL std::string local_cluster::target(std::string_view job, int index) const { return "weft://" + spec_.task_address(job, index); }

WEFT_DECL std::string local_cluster::target() const {
  const task_id last = spec_.tasks().back();
  return target(last.job, spec_.task_indices(last.job).front());
}

}  // namespace weft

#endif
#endif
