#ifndef WEFT_BENCHMARKS_SERVER_PROCESSES_HPP
#define WEFT_BENCHMARKS_SERVER_PROCESSES_HPP
// Task servers in processes of their own. They are forked, so they must be made before this program has threads.

#include "bare_tcp.hpp"

#include <weft/cluster/server.hpp>
#include <weft/cluster/session.hpp>

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

// One server for each task of a cluster on this machine.
class task_servers {
 public:
  explicit task_servers(const weft::cluster_spec& jobs, std::shared_ptr<const weft::transport_security> transport = nullptr, weft::server_options options = {})
      : spec_(jobs), transport_(std::move(transport)) {
    options.transport = transport_;
    options.log = [](const char*, const std::string&) {};
    std::vector<std::unique_ptr<listening>> free;
    for (const weft::task_id& task : jobs.tasks()) {
      free.push_back(std::make_unique<listening>());
      spec_ = spec_.with_address(task.job, task.index, "127.0.0.1:" + std::to_string(free.back()->port));
    }
    for (const auto& port : free) ::close(port->socket);
    for (const weft::task_id& task : spec_.tasks())
      all_.push_back(std::make_unique<process>([this, task, options] {
        weft::server server(spec_, task.job, task.index, options);
        server.join();
      }));
    for (const weft::task_id& task : spec_.tasks()) wait_for(task);
  }
  const weft::cluster_spec& spec() const { return spec_; }
  std::string target(const std::string& job, int index) const { return "weft://" + spec_.task_address(job, index); }

 private:
  void wait_for(const weft::task_id& task) const {
    for (int attempt = 0;; ++attempt) {
      try {
        const weft::graph none;
        weft::session_options options;
        options.transport = transport_;
        weft::session session(target(task.job, task.index), options, none);
        return;
      } catch (const weft::error&) {
        if (attempt == 500) throw;
        ::usleep(10000);
      }
    }
  }

  weft::cluster_spec spec_;
  std::shared_ptr<const weft::transport_security> transport_;
  std::vector<std::unique_ptr<process>> all_;
};

#endif
