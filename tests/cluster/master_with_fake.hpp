#ifndef WEFT_TESTS_CLUSTER_MASTER_WITH_FAKE_HPP
#define WEFT_TESTS_CLUSTER_MASTER_WITH_FAKE_HPP
// A real master, and a worker that a test plays.

#include <weft/cluster/server.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/ops/standard.hpp>

#include "fake_task.hpp"

#include <functional>
#include <memory>

namespace fake {

/// The task /job:work/task:0 of a cluster whose /job:far/task:0 is played.
struct with_deaf_worker {
  explicit with_deaf_worker(const std::function<void(deaf_worker&)>& prepare = nullptr, const weft::server_options& options = quiet()) {
    if (prepare) prepare(worker);
    server = std::make_unique<weft::server>(weft::cluster_spec{{"far", {worker.address()}}, {"work", {"127.0.0.1:0"}}}, "work", 0, options);
    weft::hello_message welcome;
    welcome.as = weft::hello_message::role::control;
    welcome.incarnation = 5;
    welcome.task = {"far", 0};
    welcome.to = {"work", 0};
    welcome.cluster = server->cluster().hash();
    welcome.devices.push_back({"/job:far/task:0/device:CPU:0", "CPU", "host", 5});
    static const auto kernels = std::make_shared<const weft::kernel_catalogue>(weft::standard_kernels().catalogue());
    welcome.kernels = kernels;
    worker.serve(welcome);
  }
  static weft::server_options quiet() {
    static const auto ops = std::make_shared<const weft::op_registry>(weft::standard_ops());
    static const auto kernels = std::make_shared<const weft::kernel_registry>(weft::standard_kernels());
    weft::server_options out;
    out.ops = ops;
    out.kernels = kernels;
    out.log = [](const char*, const std::string&) {};
    return out;
  }
  deaf_worker worker;
  std::unique_ptr<weft::server> server;
};

}  // namespace fake

#endif
