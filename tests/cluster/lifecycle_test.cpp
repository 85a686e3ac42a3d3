// Servers, clients and sessions begin and end: in every order, many times, with steps in flight.
#include "fault_proxy.hpp"

#include "../long_tests.hpp"
#include "process_counts.hpp"
#include "test_ops.hpp"

#include <weft/cluster/session.hpp>
#include <weft/ops/queue.hpp>

#include <asio/read.hpp>

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <optional>

using process_counts::soon;
using test_ops::error_later;
using test_ops::error_of;
using test_ops::gate;
using test_ops::get;
using test_ops::quiet;
using weft::error_code;
using weft::task_id;
using namespace std::chrono_literals;

namespace {

const weft::cluster_spec alone{{"work", {"127.0.0.1:0"}}};

// Pages of this process that are in memory.
long resident_pages() {
  std::ifstream from("/proc/self/statm");
  long all = 0, resident = 0;
  from >> all >> resident;
  return resident;
}

// One plus one, a step that waits at the gate, and a counter; all on one task.
struct pieces {
  explicit pieces(const char* device = "/job:work/task:0", const char* op = "TestWait") {
    gate::instance().reset();
    const auto scope = graph.as_default();
    held = test_ops::node(op, weft::constant(1.f), device);
    const auto on = weft::with_device(device);
    two = weft::constant(1.f) + 1.f;
    v = weft::variable<std::int64_t, 0>(weft::constant(std::int64_t{0}), "v");
    add = v.assign_add(std::int64_t{1});
    weft::queue_options shared;
    shared.shared_name = "q";
    queue = weft::fifo_queue<weft::tensor<float, 0>>(1, shared, "q");
    take = queue.dequeue();
  }
  std::unique_ptr<weft::session> open(const std::string& target, const weft::session_options& options = {}) const {
    return std::make_unique<weft::session>(target, options, weft::graph(graph.state()));
  }
  weft::graph graph{test_ops::ops()};
  weft::tensor<float, 0> held, two, take;
  weft::variable<std::int64_t, 0> v;
  weft::operation add;
  weft::fifo_queue<weft::tensor<float, 0>> queue;
};

// A step that waits in the server, the n-th of them.
std::future<weft::status> waiting(weft::session& session, const pieces& of, int n = 1) {
  auto result = error_later([&session, &of] { session.run(of.held); });
  REQUIRE(gate::instance().wait_entered(n));
  return result;
}

}  // namespace

TEST_CASE("lifecycle: a server starts and stops at one port, many times, and leaves nothing") {
  const pieces of;
  weft::cluster_spec cluster = weft::server(alone, "work", 0, quiet()).cluster();
  const process_counts::held before;
  for (int i = 0; i < (takes_long() ? 1000 : 50); ++i) {
    weft::server server(cluster, "work", 0, quiet());
    if (i % 3 == 0) continue;
    const auto session = of.open(server.target());
    CHECK(session->run(of.two) == 2.f);
    if (i % 3 == 1) server.stop();
  }
  before.check_back();
}

TEST_CASE("lifecycle: two servers start, run a step that crosses, and stop at the same two ports, many times") {
  weft::cluster_spec cluster{{"ps", {"127.0.0.1:0"}}, {"work", {"127.0.0.1:0"}}};
  {
    weft::local_cluster ports({{"ps", 1}, {"work", 1}}, quiet());
    cluster = ports.spec();
  }
  const weft::graph g;
  weft::tensor<float, 0> y;
  {
    const auto scope = g.as_default();
    weft::tensor<float, 0> x;
    weft::with_device("/job:ps/task:0", [&] { x = weft::constant(1.f) + 1.f; });
    weft::with_device("/job:work/task:0", [&] { y = x + 1.f; });
  }
  const process_counts::held before;
  for (int i = 0; i < (takes_long() ? 100 : 20); ++i) {
    weft::server ps(cluster, "ps", 0, quiet()), work(cluster, "work", 0, quiet());
    weft::session session(i % 2 == 0 ? work.target() : ps.target(), {}, weft::graph(g.state()));
    CHECK(session.run(y) == 3.f);
    if (i % 3 == 0) ps.stop();
    if (i % 3 == 1) work.stop();
  }
  before.check_back();
}

TEST_CASE("lifecycle: clients connect, run and go, many times, and the process does not grow") {
  const pieces of;
  weft::server server(alone, "work", 0, quiet());
  const auto cycle = [&] { REQUIRE(of.open(server.target())->run(of.two) == 2.f); };
  const int warm = takes_long() ? 1000 : 20, cycles = takes_long() ? 10000 : 100;
  for (int i = 0; i < warm; ++i) cycle();
  const process_counts::held before;
  const long pages_before = resident_pages();
  for (int i = 0; i < cycles; ++i) cycle();
  before.check_back();
  if (takes_long() && !is_sanitized) CHECK(static_cast<double>(resident_pages()) <= 1.02 * static_cast<double>(pages_before));
}

TEST_CASE("lifecycle: what cannot start leaves nothing") {
  weft::server taken(alone, "work", 0, quiet());
  const weft::cluster_spec elsewhere{{"work", {"192.0.2.1:0"}}};
  auto open_to_all = quiet();
  open_to_all.allow_unauthenticated = true;
  const pieces of;
  const std::string nobody = [] { return weft::server(alone, "work", 0, quiet()).target(); }();
  const process_counts::held before;
  for (int i = 0; i < (takes_long() ? 100 : 20); ++i) {
    CHECK(error_of([&] { weft::server s(taken.cluster(), "work", 0, quiet()); }).code == error_code::unavailable);
    CHECK(error_of([&] { weft::server s(taken.cluster(), "work", 3, quiet()); }).code == error_code::invalid_argument);
    CHECK(error_of([&] { weft::server s(elsewhere, "work", 0, open_to_all); }).code == error_code::invalid_argument);
    CHECK(error_of([&] { of.open(nobody); }).code == error_code::unavailable);
    CHECK(error_of([&] { of.open("weft://nowhere"); }).code == error_code::invalid_argument);
  }
  before.check_back();
}

TEST_CASE("lifecycle: join says why the server ended, as its clients are told") {
  const weft::status maintenance(error_code::unavailable, "the machine is needed for something else");
  for (const bool with_reason : {false, true}) {
    const pieces of;
    weft::server server(alone, "work", 0, quiet());
    const auto session = of.open(server.target()), other = of.open(server.target());
    auto first = waiting(*session, of), second = waiting(*other, of, 2);
    weft::status joined;
    std::thread joining([&] { joined = server.join(); });
    with_reason ? server.stop(maintenance) : server.stop();
    joining.join();
    const weft::status expected = with_reason ? maintenance : weft::status(error_code::cancelled, "task /job:work/task:0 at " + server.cluster().task_address("work", 0) + " was stopped");
    for (const weft::status& why : {joined, get(first), get(second), server.join()}) CHECK(why.text() == expected.text());
  }
}

TEST_CASE("lifecycle: two threads stop a server, twice each, while others join it and clients wait") {
  for (int i = 0; i < 20; ++i) {
    const pieces of;
    weft::server server(alone, "work", 0, quiet());
    const auto session = of.open(server.target());
    auto held = waiting(*session, of);
    std::vector<std::thread> all;
    for (int t = 0; t < 2; ++t) {
      all.emplace_back([&] { server.stop(), server.stop(); });
      all.emplace_back([&] { CHECK(server.join().code == error_code::cancelled); });
    }
    for (std::thread& t : all) t.join();
    CHECK(get(held).code == error_code::cancelled);
  }
}

TEST_CASE("lifecycle: a thread that waits for a signal stops the server") {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  {
    weft::server server(alone, "work", 0, quiet());
    std::thread stopper([&] {
      int number = 0;
      sigwait(&signals, &number);
      server.stop({error_code::cancelled, "signal " + std::to_string(number)});
    });
    pthread_kill(stopper.native_handle(), SIGUSR1);
    CHECK(server.join().message == "signal " + std::to_string(SIGUSR1));
    stopper.join();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("lifecycle: a server may be stopped or destroyed by its own kernels and its own log function") {
  // What outlives the test case's loop when a server is destroyed late.
  struct shared {
    std::unique_ptr<weft::server> server;
    std::atomic<bool> armed{false}, left{false};
    bool destroyed = false;
    void end() {
      if (armed.exchange(false)) destroyed ? server.reset() : server->stop();
    }
  };
  const process_counts::held before;
  for (const bool destroyed : {false, true})
    for (const bool by_kernel : {true, false}) {
      const pieces of("/job:work/task:0", "TestCall");
      const auto state = std::make_shared<shared>();
      state->destroyed = destroyed;
      auto options = quiet();
      options.log = [state](const char* level, const std::string&) {
        if (std::string(level) == "warning") state->end();
      };
      state->server = std::make_unique<weft::server>(alone, "work", 0, options);
      const weft::cluster_spec cluster = state->server->cluster();
      const auto session = of.open(state->server->target());
      test_ops::call_kernel::call = [state](float x) {
        state->end();
        state->left = true;
        return x;
      };
      CHECK(session->run(of.held) == 1.f);
      state->armed = true;
      state->left = false;
      if (by_kernel) {
        const weft::status why = error_of([&] { session->run(of.held); });
        CHECK((why.ok() || why.code == error_code::cancelled || why.code == error_code::unavailable));
        CHECK(soon([&] { return state->left.load(); }));
      } else {
        asio::io_context io;
        asio::ip::tcp::socket rude(io);
        const auto address = weft::parse_host_port(cluster.task_address("work", 0));
        rude.connect({asio::ip::make_address(address.host), static_cast<std::uint16_t>(address.port)});
        std::error_code failed;
        asio::write(rude, asio::buffer(std::string(64, 'x')), failed);
        char byte = 0;
        asio::read(rude, asio::buffer(&byte, 1), failed);
        CHECK(failed);  // it was closed
      }
      if (!destroyed) {
        CHECK(state->server->join().code == error_code::cancelled);
        state->server.reset();
      }
      before.check_threads_back();  // the session is still there, and with it a connection
      CHECK(error_of([&] { weft::server next(cluster, "work", 0, quiet()); }).ok());
      test_ops::call_kernel::call = nullptr;
    }
}

TEST_CASE("lifecycle: a session that is closed with steps in flight ends them, and runs no more") {
  const pieces of;
  weft::server server(alone, "work", 0, quiet());
  const auto session = of.open(server.target()), other = of.open(server.target());
  auto first = waiting(*session, of), second = waiting(*session, of, 2);
  session->close();
  session->close();
  for (const weft::status& why : {get(first), get(second)}) {
    CHECK(why.code == error_code::cancelled);
    CHECK(why.message == "the session was closed");
  }
  CHECK(gate::instance().wait_left(2));
  CHECK(error_of([&] { session->run(of.two); }).text() == "FAILED_PRECONDITION: the session is closed");
  CHECK(other->run(of.two) == 2.f);
}

TEST_CASE("lifecycle: variables live as long as their server, for every client") {
  const pieces of;
  auto server = std::make_unique<weft::server>(alone, "work", 0, quiet());
  const weft::cluster_spec cluster = server->cluster();
  const auto one = of.open(server->target());
  one->run(of.v.initializer());
  one->run(of.add);
  one->close();
  const auto two = of.open(server->target()), three = of.open(server->target());
  two->run(of.add);
  CHECK(two->run(of.v) == 2);
  CHECK(three->run(of.v) == 2);
  // A new start is told once to each session that was there before.
  server.reset();
  weft::server next(cluster, "work", 0, quiet());
  for (const auto& session : {&two, &three}) {
    const weft::status why = error_of([&] { (*session)->run(of.two); });
    CHECK(why.code == error_code::aborted);
    CHECK(why.message == "task /job:work/task:0 at " + cluster.task_address("work", 0) + " was restarted; what it kept (variables, queues) is lost, the next run starts with it anew");
    CHECK_FALSE(why.may_have_run);
    CHECK((*session)->run(of.two) == 2.f);
    CHECK(error_of([&] { (*session)->run(of.v); }).code == error_code::failed_precondition);
  }
}

TEST_CASE("lifecycle: a reset clears containers on every task and ends the sessions of its server") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, quiet());
  const pieces on_ps("/job:ps/task:0"), on_work("/job:work/task:0");
  const auto here = on_ps.open(cluster.target("work", 0)), also = on_work.open(cluster.target("work", 0)), there = on_ps.open(cluster.target("work", 1));
  const auto start = [&] {
    on_ps.open(cluster.target("ps", 0))->run(on_ps.v.initializer());
    on_work.open(cluster.target("ps", 0))->run(on_work.v.initializer());
  };
  const auto has_value = [](weft::session& session, const pieces& of) { return error_of([&] { session.run(of.v); }).ok(); };
  const struct {
    std::vector<std::string> containers;
    bool ps_stays, work_stays;
  } cases[] = {{{}, false, false}, {{"ps"}, false, true}, {{"work"}, true, false}, {{"ps", "work"}, false, false}, {{"unknown"}, true, true}};
  for (const auto& each : cases) {
    start();
    CHECK(has_value(*here, on_ps));
    CHECK(has_value(*also, on_work));
    weft::session::reset(cluster.target("work", 0), each.containers);
    // Every session of that server is told once, whatever it uses; those of others are not.
    for (const auto& [session, of] : {std::pair(&here, &on_ps), std::pair(&also, &on_work)}) {
      const weft::status why = error_of([s = session, o = of] { (*s)->run(o->two); });
      CHECK(why.text() == "ABORTED: the session was ended by a reset of /job:work/task:0 at " + cluster.spec().task_address("work", 0));
      CHECK_FALSE(why.may_have_run);
      CHECK((*session)->run(of->two) == 2.f);
    }
    CHECK(has_value(*there, on_ps) == each.ps_stays);
    CHECK(has_value(*here, on_ps) == each.ps_stays);
    CHECK(has_value(*also, on_work) == each.work_stays);
  }

  // Steps that wait: those of the server's sessions end, and those that wait for what was cleared.
  auto first = error_later([&] { here->run(on_ps.take); }), second = error_later([&] { there->run(on_ps.take); });
  const auto queue_of = on_ps.open(cluster.target("work", 1));
  CHECK(soon([&] { return !error_of([&] { queue_of->run(weft::run_options{1ms}, on_ps.take); }).ok(); }));
  weft::session::reset(cluster.target("work", 0));
  CHECK(get(first).code == error_code::aborted);
  CHECK(second.wait_for(test_ops::patience) == std::future_status::ready);
  CHECK(second.get().code == error_code::aborted);
}

TEST_CASE("lifecycle: a reset while steps run is their error or comes between them, and what runs afterwards is right") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, quiet());
  const pieces of("/job:ps/task:0");
  const auto there = of.open(cluster.target("ps", 0));
  there->run(of.v.initializer());
  std::atomic<bool> over{false};
  std::atomic<int> fine{0}, ended{0}, empty{0}, other{0};
  const auto work = [&](bool updates) {
    const auto session = of.open(cluster.target("work", 0));
    while (!over) {
      const weft::status why = error_of([&] { updates ? session->run(of.add) : static_cast<void>(session->run(of.v)); });
      ++(why.ok() ? fine : why.code == error_code::aborted ? ended : why.code == error_code::failed_precondition ? empty : other);
      if (!why.ok() && other == 1) CHECK(why.text() == "");
    }
  };
  std::vector<std::thread> workers;
  for (const bool updates : {true, false, true}) workers.emplace_back(work, updates);
  for (int i = 0; i < 20; ++i) {
    const int before = fine + empty;
    CHECK(soon([&] { return fine + empty > before + 3; }));
    weft::session::reset(cluster.target("work", 0), {"ps"});
    if (i % 2 == 0) there->run(of.v.initializer());
  }
  over = true;
  for (auto& each : workers) each.join();
  CHECK(fine > 0);
  CHECK(ended > 0);
  CHECK(other == 0);
  there->run(of.v.initializer());
  const auto here = of.open(cluster.target("work", 0));
  for (int i = 0; i < 3; ++i) here->run(of.add);
  CHECK(here->run(of.v) == 3);
  for (const char* job : {"ps", "work"}) {
    CHECK(soon([&] {
      const auto now = cluster.at(job, 0).statistics();
      return now.steps_begun == now.steps_ended && now.parts_begun == now.parts_ended;
    }));
  }
}

// As TensorFlow's server_lib_multiple_containers_test.
TEST_CASE("lifecycle: a reset of one container leaves what other containers hold") {
  weft::local_cluster cluster({{"work", 1}}, quiet());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto variable = [](float value) { return weft::variable<float, 0>(value, "v"); };
  const auto first = weft::with_container("test0", [&] { return variable(1.f); }), second = weft::with_container("test1", [&] { return variable(2.f); });
  const auto own = variable(3.f);
  weft::queue_options shared;
  shared.shared_name = "q";
  const auto queue = [&] { return weft::fifo_queue<float>(4, shared); };
  const auto left = weft::with_container("test0", queue), right = weft::with_container("test1", queue);
  const auto put = left.enqueue(5.f), put_there = right.enqueue(6.f);
  const auto size = left.size(), size_there = right.size();
  weft::session old(cluster.target("work", 0));
  old.run(first.initializer(), second.initializer(), own.initializer(), put, put_there);
  CHECK(old.run(first) == 1.f);
  weft::session::reset(cluster.target("work", 0), {"test0"});
  CHECK(error_of([&] { old.run(first); }).code == error_code::aborted);
  weft::session anew(cluster.target("work", 0));
  CHECK(error_of([&] { anew.run(first); }).code == error_code::failed_precondition);
  CHECK(anew.run(second) == 2.f);
  CHECK(anew.run(own) == 3.f);
  CHECK(anew.run(size) == 0);
  CHECK(anew.run(size_there) == 1);
}

TEST_CASE("lifecycle: a reset that cannot reach a task says which, and clears the others") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, quiet());
  const pieces of;
  const auto session = of.open(cluster.target("work", 0));
  session->run(of.v.initializer());
  cluster.stop("ps", 0);
  const std::string down = cluster.spec().task_address("ps", 0);
  CHECK(error_of([&] { weft::session::reset(cluster.target("work", 0)); }).text() == "UNAVAILABLE: task /job:ps/task:0 at " + down + ": connection refused: no server is listening at " + down);
  CHECK(error_of([&] { session->run(of.v); }).code == error_code::aborted);
  CHECK(error_of([&] { session->run(of.v); }).code == error_code::failed_precondition);
  CHECK(error_of([&] { weft::session::reset(""); }).code == error_code::invalid_argument);
  CHECK(error_of([&] { weft::session::reset("work:1"); }).code == error_code::invalid_argument);
  CHECK(error_of([&] { weft::session::reset("weft://" + down); }).text() == "UNAVAILABLE: session at weft://" + down + ": connection refused: no server is listening at " + down);
}

TEST_CASE("lifecycle: a client that falls silent with a step in flight loses it and its session") {
  auto options = quiet();
  options.heartbeat = 600ms;
  options.max_sessions = 1;
  const pieces of;
  weft::server server(alone, "work", 0, options);
  faults::proxy door(weft::parse_host_port(server.cluster().task_address("work", 0)));
  weft::session_options patient;
  patient.connect_timeout = 200ms;
  const auto session = of.open("weft://" + door.address(), patient);
  auto held = waiting(*session, of);
  CHECK(held.wait_for(1500ms) == std::future_status::timeout);  // more than two heartbeats do it no harm
  door.strike(faults::fault::end::black_hole);
  CHECK(gate::instance().wait_left(1));
  const auto next = of.open(server.target());
  CHECK(soon([&] { return error_of([&] { next->run(of.two); }).ok(); }));
  session->close();
  CHECK(get(held).code == error_code::cancelled);
}

TEST_CASE("lifecycle: a client that is cut off leaves room for the next") {
  auto options = quiet();
  options.max_sessions = 1;
  const pieces of;
  weft::server server(alone, "work", 0, options);
  faults::proxy door(weft::parse_host_port(server.cluster().task_address("work", 0)));
  for (const auto how : {faults::fault::end::cut, faults::fault::end::reset}) {
    const auto session = of.open("weft://" + door.address());
    CHECK(soon([&] { return error_of([&] { session->run(of.two); }).ok(); }));
    door.strike(how);
    const auto next = of.open(server.target());
    CHECK(soon([&] { return error_of([&] { next->run(of.two); }).ok(); }));
    CHECK(error_of([&] { of.open(server.target())->run(of.two); }).code == error_code::resource_exhausted);
  }
}

TEST_CASE("lifecycle: the system looks after the connections of clients that are idle") {
  const pieces of;
  weft::server server(alone, "work", 0, quiet());
  const auto session = of.open(server.target());
  CHECK(session->run(of.two) == 2.f);
  if (!std::ifstream("/proc/net/tcp")) {
    MESSAGE("skipped: there is no /proc/net/tcp");
    return;
  }
  char port[8];
  std::snprintf(port, sizeof port, ":%04X", weft::parse_host_port(server.cluster().task_address("work", 0)).port);
  // Number, local address, remote address, state (01: established), queues, timer (02: keepalive) and when it ends.
  CHECK(soon([&] {
    std::ifstream table("/proc/net/tcp");
    for (std::string number, local, remote, state, queues, timer, rest; table >> number >> local >> remote >> state >> queues >> timer && std::getline(table, rest);)
      if (local.size() > 5 && local.substr(local.size() - 5) == port && state == "01" && timer.substr(0, 3) == "02:") return true;
    return false;
  }));
}

TEST_CASE("lifecycle: many clients at once each get their own values") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, quiet());
  const weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  weft::tensor<float, 0> made, y;
  weft::with_device("/job:ps/task:0", [&] { made = x * 2.f; });
  weft::with_device("/job:work/task:0", [&] { y = made + 1.f; });
  const int clients = takes_long() ? 200 : 40;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i)
    threads.emplace_back([&, i] {
      weft::session session(cluster.target("work", 0), {}, weft::graph(graph.state()));
      for (int n = 0; n < 5; ++n) {
        const float fed = static_cast<float>(i) + static_cast<float>(n) / 8.f;
        if (session.run({{x, fed}}, y) == fed * 2.f + 1.f) ++right;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(right == clients * 5);
}
