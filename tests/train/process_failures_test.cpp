// Training on servers in processes of their own, some of which are killed or stopped in the middle of it.
#include <weft/train.hpp>

#include "../cluster/server_processes.hpp"

#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using server_processes::processes;
using weft::error_code;
using weft::task_id;

namespace {

const task_id ps0{"ps", 0}, work0{"work", 0}, work1{"work", 1};

// The variable on the parameter server falls by one with each step.
struct counting_worker {
  explicit counting_worker(int index) {
    const auto scope = graph.as_default();
    const auto here = weft::with_device("/job:work/task:" + std::to_string(index));
    weft::with_device("/job:ps/task:0", [&] { w = weft::variable<float, 0>(0.f, "w"); });
    step = weft::gradient_descent_optimizer(1.f).minimize(weft::identity(w));
    initialize = weft::global_variables_initializer();
  }
  weft::graph graph;
  weft::variable<float, 0> w;
  weft::operation step, initialize;
};

struct outcome {
  std::atomic<int> succeeded{0}, maybe{0}, refused{0};
  // A failed step that cannot have run changes nothing.
  void count(const weft::error& e) { ++(e.may_have_run() ? maybe : refused); }
};

weft::session_options impatient() {
  weft::session_options out;
  out.heartbeat = std::chrono::milliseconds(1000);
  out.connect_timeout = std::chrono::milliseconds(5000);
  return out;
}

// Runs steps until so many have succeeded, again after each failure; gives up after a while.
void train(const processes& servers, const counting_worker& worker, const task_id& on, int steps, outcome& counts) {
  weft::session session(servers.target(on), impatient(), weft::graph(worker.graph.state()));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  for (int done = 0; done < steps && std::chrono::steady_clock::now() < end;) {
    try {
      session.run(worker.step);
      ++counts.succeeded;
      ++done;
    } catch (const weft::error& e) {
      counts.count(e);
      std::this_thread::yield();
    }
  }
}

}  // namespace

TEST_CASE("train: a worker is killed and replaced in mid-training, and every update counts once") {
  processes servers;
  const counting_worker first(0), second(1);
  weft::session(servers.target(work0), impatient(), first.graph).run(first.initialize);
  constexpr int steps = 300;
  outcome counts, of_killed;
  std::thread killed([&] { train(servers, second, work1, steps, of_killed); });
  while (of_killed.succeeded < 50) std::this_thread::yield();
  servers.signal(work1, SIGKILL);
  train(servers, first, work0, steps, counts);  // the other worker is not held up
  CHECK(counts.succeeded == steps);
  CHECK(counts.maybe + counts.refused == 0);
  servers.start(work1);
  killed.join();
  CHECK(of_killed.succeeded == steps);
  CHECK(of_killed.maybe + of_killed.refused > 0);
  weft::session reader(servers.target(work0), impatient(), weft::graph(first.graph.state()));
  const auto updates = static_cast<int>(-reader.run(first.w));
  CHECK(updates >= counts.succeeded + of_killed.succeeded);
  CHECK(updates <= counts.succeeded + of_killed.succeeded + of_killed.maybe);
}

TEST_CASE("train: a worker that stands still longer than the heartbeat fails by itself, and goes on when it runs again") {
  processes servers;
  const counting_worker first(0), second(1);
  weft::session(servers.target(work0), impatient(), first.graph).run(first.initialize);
  constexpr int steps = 200;
  outcome counts, of_stopped;
  std::thread stopped([&] { train(servers, second, work1, steps, of_stopped); });
  while (of_stopped.succeeded < 50) std::this_thread::yield();
  servers.signal(work1, SIGSTOP);
  train(servers, first, work0, steps, counts);
  CHECK(counts.succeeded == steps);
  while (of_stopped.maybe + of_stopped.refused == 0) std::this_thread::yield();
  servers.signal(work1, SIGCONT);
  stopped.join();
  CHECK(of_stopped.succeeded == steps);
  weft::session reader(servers.target(work0), impatient(), weft::graph(first.graph.state()));
  const auto updates = static_cast<int>(-reader.run(first.w));
  CHECK(updates >= counts.succeeded + of_stopped.succeeded);
  CHECK(updates <= counts.succeeded + of_stopped.succeeded + of_stopped.maybe);
}

TEST_CASE("train: a parameter server is killed and started again, and training goes on from its checkpoint") {
  processes servers;
  const counting_worker worker(0);
  weft::saver saver({}, weft::graph(worker.graph.state()));
  weft::session session(servers.target(work0), impatient(), weft::graph(worker.graph.state()));
  session.run(worker.initialize);
  for (int i = 0; i < 10; ++i) session.run(worker.step);
  char folder[] = "/tmp/weft_failures_XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string saved = saver.save(session, std::string(folder) + "/model");
  session.run(worker.step);
  servers.signal(ps0, SIGKILL);
  const auto failure = [&] {
    try {
      session.run(worker.step);
    } catch (const weft::error& e) {
      return e.status().code;
    }
    return error_code::ok;
  };
  CHECK(failure() == error_code::unavailable);
  servers.start(ps0);
  error_code last = error_code::ok;
  for (int i = 0; i < 100 && (last = failure()) != error_code::failed_precondition; ++i) continue;
  CHECK(last == error_code::failed_precondition);  // the new server has no variable yet
  saver.restore(session, saved);
  CHECK(session.run(worker.w) == -10.f);
  session.run(worker.step);
  CHECK(session.run(worker.w) == -11.f);
  CHECK(std::system(("rm -r " + std::string(folder)).c_str()) == 0);
}

TEST_CASE("train: the server that leads the chief is killed, or stopped in order, and started again; training goes on without an update made twice") {
  processes servers;
  const counting_worker worker(0);
  weft::monitored_session_options options;
  options.init = worker.initialize;
  options.look_every = std::chrono::milliseconds(50);
  options.patience = std::chrono::seconds(60);
  int made = 0, lost = 0;
  {
    weft::monitored_session chief([&] { return std::make_unique<weft::session>(servers.target(work0), impatient(), weft::graph(worker.graph.state())); }, options, worker.graph);
    for (int i = 0; made < 60 && i < 1000; ++i) {
      if (made == 20 && chief.recoveries() == 0) {
        servers.signal(work0, SIGKILL);
        servers.start(work0);
      }
      if (made == 40 && chief.recoveries() == 1) {
        servers.signal(work0, SIGTERM);
        servers.wait(work0);
        servers.start(work0);
      }
      try {
        chief.run(worker.step);
        ++made;
      } catch (const weft::error& e) {
        CHECK_MESSAGE((e.code() == error_code::aborted && e.may_have_run()), e.what());
        ++lost;
      }
    }
    CHECK(chief.recoveries() == 2);
  }
  CHECK(made == 60);
  weft::session reader(servers.target(work0), impatient(), weft::graph(worker.graph.state()));
  const auto updates = static_cast<int>(-reader.run(worker.w));
  CHECK(updates >= made);
  CHECK(updates <= made + lost);
}
