#include <weft/cluster/server.hpp>

#include "../session/session_suite.hpp"
#include "test_ops.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>

using test_ops::error_later;
using test_ops::error_of;
using test_ops::get;
using weft::error_code;
using weft::task_id;

namespace {

// This program, started again with WEFT_TEST_TASK set, is a task server until it is killed.
bool serve_if_asked() {
  const char* task = std::getenv("WEFT_TEST_TASK");
  if (task == nullptr) return false;
  try {
    auto options = test_ops::options();
    options.log = [](const char*, const std::string&) {};
    options.heartbeat = std::chrono::milliseconds(1000);
    weft::server server(weft::parse_cluster_spec(std::getenv("WEFT_TEST_CLUSTER")), task, std::atoi(std::getenv("WEFT_TEST_INDEX")), options);
    std::cout << "serving" << std::endl;
    server.join();
  } catch (const std::exception& e) {
    std::cout << e.what() << std::endl;
  }
  std::_Exit(0);
}
const bool served = serve_if_asked();

// A port that was free a moment ago.
int free_port() {
  const int number = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(number, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(number, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(number);
  return ntohs(address.sin_port);
}

// Task servers in processes of their own.
class processes {
 public:
  processes() {
    std::map<std::string, std::map<int, std::string>> jobs;
    for (const task_id& task : {task_id{"ps", 0}, task_id{"work", 0}, task_id{"work", 1}}) jobs[task.job][task.index] = "127.0.0.1:" + std::to_string(free_port());
    cluster = weft::cluster_spec(jobs);
    for (const task_id& task : cluster.tasks()) start(task);
  }
  ~processes() {
    while (!running_.empty()) signal(running_.begin()->first, SIGKILL);
  }
  void start(const task_id& task) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const std::string text = "ps=" + cluster.task_address("ps", 0) + ";work=" + cluster.task_address("work", 0) + "," + cluster.task_address("work", 1);
    const std::string index = std::to_string(task.index);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::setenv("WEFT_TEST_TASK", task.job.c_str(), 1);
      ::setenv("WEFT_TEST_INDEX", index.c_str(), 1);
      ::setenv("WEFT_TEST_CLUSTER", text.c_str(), 1);
      ::execl("/proc/self/exe", "task", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    char said[8] = {};
    REQUIRE(::read(ends[0], said, 7) == 7);
    CHECK(std::string(said) == "serving");
    ::close(ends[0]);
    running_[task] = child;
  }
  void signal(const task_id& task, int number) {
    const auto it = running_.find(task);
    ::kill(it->second, number);
    if (number != SIGKILL) return;
    ::waitpid(it->second, nullptr, 0);
    running_.erase(it);
  }
  std::string target(const task_id& task) const { return "weft://" + cluster.task_address(task); }

  weft::cluster_spec cluster;

 private:
  std::map<task_id, pid_t> running_;
};

const task_id ps0{"ps", 0}, work0{"work", 0}, work1{"work", 1};

// ps:0 makes x, `where` holds it up until the step ends, work:0 adds one.
struct held_step {
  explicit held_step(const char* where) {
    const auto scope = graph.as_default();
    weft::with_device("/job:ps/task:0", [&] { x = weft::constant(2.f) * weft::constant(3.f); });
    const auto held = test_ops::node("TestWait", x, where);
    weft::with_device("/job:work/task:0", [&] { y = held + 1.f; });
    weft::with_device("/job:work/task:1", [&] { free = x + 1.f; });
  }
  weft::graph graph{test_ops::ops()};
  weft::tensor<float, 0> x, y, free;
};

}  // namespace

TEST_CASE("processes: a cluster of processes serves as every session does") {
  processes servers;
  session_suite::run([&](const weft::session_options& options, const weft::graph& g) { return std::make_unique<weft::session>(servers.target(work0), options, g); });
}

TEST_CASE("processes: a task that is killed in mid-step ends the step, a session that does not use it goes on") {
  processes servers;
  held_step step("/job:work/task:1");
  weft::session session(servers.target(work0), {}, step.graph);
  CHECK(session.run(step.free) == 7.f);
  auto result = error_later([&] { session.run(step.y); });
  while (result.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout && session.run(step.x) != 6.f) continue;
  const auto begun = std::chrono::steady_clock::now();
  servers.signal(work1, SIGKILL);
  const weft::status why = get(result);
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message.find("task /job:work/task:1 at " + servers.cluster.task_address(work1)) == 0);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
  CHECK(session.run(step.x) == 6.f);

  servers.start(work1);
  CHECK(session.run(step.free) == 7.f);  // the loss was reported, so the new start is no surprise
}

TEST_CASE("processes: a master that is killed takes its sessions with it and nothing else") {
  processes servers;
  held_step step("/job:ps/task:0");
  weft::session session(servers.target(work0), {}, step.graph), other(servers.target(work1), {}, step.graph);
  CHECK(other.run(step.free) == 7.f);
  auto result = error_later([&] { session.run(step.y); });
  result.wait_for(std::chrono::milliseconds(200));
  servers.signal(work0, SIGKILL);
  const weft::status why = get(result);
  CHECK(why.code == error_code::unavailable);
  CHECK(why.may_have_run);
  CHECK(other.run(step.free) == 7.f);
  CHECK(error_of([&] { session.run(step.free); }).code == error_code::unavailable);
  servers.start(work0);
  CHECK(session.run(step.free) == 7.f);  // the loss was reported, so the new start is no surprise
}

TEST_CASE("processes: a task that falls silent is lost after the heartbeat") {
  processes servers;
  held_step step("/job:work/task:1");
  weft::session session(servers.target(work0), {}, step.graph);
  auto result = error_later([&] { session.run(step.y); });
  result.wait_for(std::chrono::milliseconds(300));
  servers.signal(work1, SIGSTOP);
  const weft::status why = get(result);
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message == "task /job:work/task:1 at " + servers.cluster.task_address(work1) + ": nothing was heard for 1000 ms");
}

TEST_CASE("processes: a master that falls silent is lost to its client after the heartbeat") {
  processes servers;
  held_step step("/job:work/task:0");
  weft::session_options options;
  options.heartbeat = std::chrono::milliseconds(1000);
  weft::session session(servers.target(work0), options, step.graph);
  auto result = error_later([&] { session.run(step.y); });
  result.wait_for(std::chrono::milliseconds(1500));  // signs of life keep it going
  CHECK(result.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  servers.signal(work0, SIGSTOP);
  const weft::status why = get(result);
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message == "task /job:work/task:0 at " + servers.cluster.task_address(work0) + ": nothing was heard for 1000 ms");
}
