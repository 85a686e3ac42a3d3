#ifndef WEFT_TESTS_CLUSTER_SERVER_PROCESSES_HPP
#define WEFT_TESTS_CLUSTER_SERVER_PROCESSES_HPP
// Task servers in processes of their own, for tests that kill and stop them. A test program that includes this is itself a task server when it is started again with
// WEFT_TEST_TASK set.

#include <weft/cluster/server.hpp>

#include "child_process.hpp"
#include "listening_socket.hpp"
#include "test_ops.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace server_processes {

using weft::task_id;

// This program, started again with WEFT_TEST_TASK set, is a task server until it is killed, or stopped by SIGTERM or SIGINT.
inline bool serve_if_asked() {
  const char* task = std::getenv("WEFT_TEST_TASK");
  if (task == nullptr) return false;
  const std::ios_base::Init streams;  // before main they may not be there yet
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  try {
    auto options = test_ops::options();
    options.log = [](const char*, const std::string&) {};
    options.heartbeat = std::chrono::milliseconds(std::atoi(std::getenv("WEFT_TEST_HEARTBEAT")));
    options.listen_address = std::getenv("WEFT_TEST_LISTEN");
    weft::server server(weft::parse_cluster_spec(std::getenv("WEFT_TEST_CLUSTER")), task, std::atoi(std::getenv("WEFT_TEST_INDEX")), options);
    std::cout << "serving" << std::endl;
    std::thread([&] {
      int number = 0;
      sigwait(&ends, &number);
      server.stop();
    }).detach();
    server.join();
    std::_Exit(0);  // the other thread may still be in `stop`
  } catch (const std::exception& e) {
    std::cout << e.what() << std::endl;
  }
  std::_Exit(0);
}
inline const bool served = serve_if_asked();

// Task servers in processes of their own.
class processes {
 public:
  /// `in_child` is called in each child before it becomes a server, to limit what it may use.
  /// `advertise` is told where a task listens and returns where others are to reach it, if that is elsewhere.
  explicit processes(const weft::cluster_spec& tasks = {{"ps", 1}, {"work", 2}}, std::function<void()> in_child = nullptr, std::chrono::milliseconds heartbeat = std::chrono::milliseconds(1000),
                     const std::function<std::string(const task_id&, const std::string&)>& advertise = {})
      : in_child_(std::move(in_child)), heartbeat_(std::to_string(heartbeat.count())) {
    std::map<std::string, std::map<int, std::string>> jobs;
    for (const task_id& task : tasks.tasks()) {
      const std::string address = real[task] = to_text(ports_.emplace_back().address());
      jobs[task.job][task.index] = advertise ? advertise(task, address) : address;
    }
    cluster = weft::cluster_spec(jobs);
    for (const task_id& task : cluster.tasks()) start(task);
  }
  void start(const task_id& task) {
    std::string text;
    for (const auto& [job, addresses] : cluster.entries()) {
      text += (text.empty() ? "" : ";") + job + "=";
      for (const auto& [number, address] : addresses) text += (number == 0 ? "" : ",") + address;
    }
    child_process child({{"WEFT_TEST_TASK", task.job}, {"WEFT_TEST_INDEX", std::to_string(task.index)}, {"WEFT_TEST_CLUSTER", text}, {"WEFT_TEST_LISTEN", real.at(task)}, {"WEFT_TEST_HEARTBEAT", heartbeat_}},
                        in_child_);
    REQUIRE(child.read(7) == "serving");
    running_.emplace(task, std::move(child));
  }
  void signal(const task_id& task, int number) {
    running_.at(task).signal(number);
    if (number == SIGKILL) wait(task);
  }
  /// How the process ended, as `waitpid` says it.
  int wait(const task_id& task) {
    const auto it = running_.find(task);
    const int how = it->second.wait();
    running_.erase(it);
    return how;
  }
  pid_t id(const task_id& task) const { return running_.at(task).id(); }
  std::string target(const task_id& task) const { return "weft://" + cluster.task_address(task); }

  weft::cluster_spec cluster;
  /// Where the tasks listen.
  std::map<task_id, std::string> real;

 private:
  const std::function<void()> in_child_;
  const std::string heartbeat_;
  std::vector<fake::reserved_port> ports_;
  std::map<task_id, child_process> running_;
};

}  // namespace server_processes

#endif
