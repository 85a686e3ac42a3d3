#include <weft/cluster/server.hpp>

#include "../session/session_suite.hpp"
#include "server_processes.hpp"
#include "test_ops.hpp"

#include <signal.h>

using server_processes::processes;
using test_ops::error_later;
using test_ops::error_of;
using test_ops::get;
using weft::error_code;
using weft::task_id;

namespace {

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
  CHECK(std::chrono::steady_clock::now() - begun < test_ops::patience);
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
