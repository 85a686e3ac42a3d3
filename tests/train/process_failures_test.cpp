// Training on servers in processes of their own, some of which are killed or stopped in the middle of it.
#include <weft/train.hpp>

#include "../cluster/server_processes.hpp"
#include "../format/file_test_support.hpp"

#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
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

namespace {

// A replica of synchronous training: two passes make an update, the mean of the gradients that its workers feed.
struct replica {
  explicit replica(int index) : scope(graph.as_default()) {
    {
      const auto device = weft::with_device("/job:ps/task:0");
      v = weft::variable<float, 0>(0.f, "v");
      step = weft::get_or_create_global_step();
    }
    const auto device = weft::with_device("/job:work/task:" + std::to_string(index));
    gradient = weft::placeholder<float, 0>("gradient");
    pass = sync.apply_gradients({{gradient, v}}, step);
  }
  weft::graph graph;
  decltype(graph.as_default()) scope;
  weft::gradient_descent_optimizer sgd{1.f};
  weft::sync_replicas_optimizer sync{sgd, 2};
  weft::variable<float, 0> v;
  weft::variable<std::int64_t, 0> step;
  weft::tensor<float, 0> gradient;
  weft::operation pass;
};

}  // namespace

TEST_CASE("train: a parameter server is killed in the middle of training in step, comes back empty, and training goes on from the checkpoint; no gradient counts twice") {
  processes servers;
  const file_test::folder dir;
  constexpr std::int64_t last = 40;
  std::atomic<std::int64_t> seen{0};
  std::atomic<int> recoveries{0};
  const auto play = [&](int index) {
    replica mine(index);
    weft::monitored_session_options options;
    options.role = index == 0 ? weft::session_role::chief : weft::session_role::worker;
    options.look_every = std::chrono::milliseconds(20);
    options.patience = std::chrono::seconds(60);
    options.hooks = {std::make_shared<weft::sync_replicas_hook>(mine.sync)};
    if (index == 0) {
      options.checkpoint_directory = dir.path();
      options.save_every_steps = 5;
      options.hooks.push_back(std::make_shared<weft::stop_at_step_hook>(last));
    }
    weft::monitored_session session([&] { return std::make_unique<weft::session>(servers.target({"work", index}), impatient(), weft::graph(mine.graph.state())); }, options, mine.graph);
    weft::run_options limit;
    limit.timeout = std::chrono::seconds(60);
    session.loop([&] {
      session.run(limit, {{mine.gradient, index == 0 ? 1.f : 3.f}}, mine.pass);
      if (index == 0) seen = session.last_step();
    });
    recoveries += session.recoveries();
  };
  std::vector<std::future<weft::status>> replicas;
  for (const int index : {0, 1}) replicas.push_back(std::async(std::launch::async, [&play, index] { return file_test::error_of([&] { play(index); }); }));
  const auto over = [&] { return replicas[0].wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  for (const std::int64_t at : {12, 27}) {
    while (seen < at && !over()) std::this_thread::yield();
    servers.signal(ps0, SIGKILL);
    servers.start(ps0);
  }
  for (auto& each : replicas) {
    REQUIRE(each.wait_for(std::chrono::seconds(120)) == std::future_status::ready);
    const weft::status end = each.get();
    CHECK_MESSAGE(end.ok(), end.text());
  }
  CHECK(recoveries >= 4);
  // Each update is the mean of one pass of each worker, so that the value tells of every gradient that was lost or counted twice.
  const replica reads(0);
  weft::session reader(servers.target(work0), impatient(), weft::graph(reads.graph.state()));
  const std::int64_t steps = reader.run(reads.step);
  CHECK(steps == last);
  CHECK(reader.run(reads.v) == -2.f * static_cast<float>(steps));
}
