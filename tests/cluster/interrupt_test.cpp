// Programs that are interrupted (Ctrl-C is SIGINT) while a step of theirs runs: clients and task servers in processes of their own.
#include "child_process.hpp"
#include "listening_socket.hpp"
#include "process_counts.hpp"
#include "server_processes.hpp"
#include "test_ops.hpp"

#include <weft/cluster/server_status.hpp>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

using server_processes::processes;
using test_ops::error_later;
using test_ops::error_of;
using test_ops::gate;
using test_ops::get;
using weft::error_code;
using weft::task_id;

namespace {

const task_id ps0{"ps", 0}, work0{"work", 0}, work1{"work", 1};

// ps:0 makes six, `where` holds it up, work:0 adds one. `large` is fed and goes to ps:0.
struct held_step {
  explicit held_step(const char* where) {
    const auto scope = graph.as_default();
    large = weft::placeholder<float, 1>("large");
    weft::with_device("/job:ps/task:0", [&] {
      six = weft::constant(2.f) * weft::constant(3.f);
      sum = weft::reduce_sum(large);
    });
    const auto held = test_ops::node("TestWait", six, where);
    weft::with_device("/job:work/task:0", [&] {
      seven = held + 1.f;
      here = weft::constant(2.f) + 2.f;
    });
    weft::with_device("/job:work/task:1", [&] { free = six + 1.f; });
  }
  weft::graph graph{test_ops::ops()};
  weft::tensor<float, 1> large;
  weft::tensor<float, 0> six, sum, seven, here, free;
};

// What a client program does with SIGINT: nothing, so that it ends; note it; or close its session in a thread that waits for it.
int be_client(const std::string& target, const std::string& kind) {
  static const auto note = [](int) { static_cast<void>(!::write(STDOUT_FILENO, "!", 1)); };
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  if (kind == "notes") {
    struct sigaction how{};
    how.sa_handler = note;  // without SA_RESTART: calls into the system return early
    ::sigaction(SIGINT, &how, nullptr);
  }
  if (kind == "closes") pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  const held_step step("/job:work/task:1");
  weft::session session(target, {}, step.graph);
  std::thread closing([&] {
    if (kind != "closes") return;
    int number = 0;
    sigwait(&interrupt, &number);
    session.close();
  });
  const weft::status why = error_of([&] {
    if (kind == "feeds")
      for (;;) session.run({{step.large, xt::xtensor<float, 1>(xt::ones<float>({std::size_t{1} << 20}))}}, step.sum);
    if (session.run(step.seven) != 7.f) weft::fail(error_code::data_loss, "another value");
  });
  closing.join();
  std::cout << why.text() << "." << std::flush;
  return 0;
}
const bool is_client = [] {
  const char* target = std::getenv("WEFT_TEST_CLIENT_OF");
  if (target == nullptr) return false;
  const std::ios_base::Init streams;
  const weft::status failed = error_of([&] { std::_Exit(be_client(target, std::getenv("WEFT_TEST_CLIENT_KIND"))); });
  std::cout << failed.text() << std::endl;
  std::_Exit(1);
}();

child_process start_client(const std::string& target, const char* kind) { return child_process({{"WEFT_TEST_CLIENT_OF", target}, {"WEFT_TEST_CLIENT_KIND", kind}}); }

bool ended_by(int how, int number) { return WIFSIGNALED(how) && WTERMSIG(how) == number; }
bool ended_well(int how) { return WIFEXITED(how) && WEXITSTATUS(how) == 0; }

// A cluster of this process beside which clients are interrupted, with one of good manners.
struct served_cluster {
  served_cluster() : session(tasks.target("work", 1), {}, step.graph) {
    gate::instance().reset();
    CHECK(serves());
  }
  bool serves() { return session.run(step.free) == 7.f; }
  // Whether nothing of other clients is left on any task.
  bool is_back() {
    return process_counts::soon([&] {
      for (const task_id& task : tasks.spec().tasks()) {
        const auto now = tasks.at(task.job, task.index).statistics();
        if (now.sessions != (task == work1 ? 1U : 0U) || now.steps_begun != now.steps_ended || now.parts_begun != now.parts_ended || now.received_bytes != 0 || now.queued_bytes != 0) return false;
      }
      return true;
    });
  }
  weft::local_cluster tasks{{{"ps", 1}, {"work", 2}}, test_ops::quiet()};
  const held_step step{"/job:work/task:1"};
  weft::session session;
};

}  // namespace

TEST_CASE("interrupt: a client that ends in mid-step leaves nothing of it, and others are served") {
  served_cluster here;
  child_process client = start_client(here.tasks.target("work", 0), "ends");
  REQUIRE(gate::instance().wait_entered(1));
  client.signal(SIGINT);
  CHECK(ended_by(client.wait(), SIGINT));
  CHECK(gate::instance().wait_left(1));
  CHECK(here.is_back());
  CHECK(here.serves());
}

TEST_CASE("interrupt: a client that ends in the middle of its feeds leaves nothing of them, and others are served") {
  served_cluster here;
  child_process client = start_client(here.tasks.target("work", 0), "feeds");
  REQUIRE(process_counts::soon([&] { return here.tasks.at("ps", 0).statistics().bytes_in > (5 << 20); }));
  client.signal(SIGINT);
  CHECK(ended_by(client.wait(), SIGINT));
  CHECK(here.is_back());
  CHECK(here.serves());
}

TEST_CASE("interrupt: a signal that a client handles does not disturb its step") {
  served_cluster here;
  child_process client = start_client(here.tasks.target("work", 0), "notes");
  REQUIRE(gate::instance().wait_entered(1));
  for (int i = 0; i < 3; ++i) {
    client.signal(SIGINT);
    CHECK(client.read(1) == "!");
  }
  gate::instance().open();
  CHECK(client.read(100) == "OK.");
  CHECK(ended_well(client.wait()));
  CHECK(here.is_back());
}

TEST_CASE("interrupt: a client may close its session when it is interrupted, which ends its step") {
  served_cluster here;
  child_process client = start_client(here.tasks.target("work", 0), "closes");
  REQUIRE(gate::instance().wait_entered(1));
  client.signal(SIGINT);
  CHECK(client.read(100) == "CANCELLED: the session was closed.");
  CHECK(ended_well(client.wait()));
  CHECK(gate::instance().wait_left(1));
  CHECK(here.is_back());
  CHECK(here.serves());
}

TEST_CASE("interrupt: a client ends while it connects to what is closed, or to what says nothing") {
  const fake::listening_socket silent;
  child_process client = start_client("weft://" + to_text(silent.address()), "ends");
  const weft::detail::descriptor road(silent.accept());
  char byte;
  REQUIRE(::recv(road.get(), &byte, 1, 0) == 1);  // it has greeted and waits for the answer
  client.signal(SIGINT);
  CHECK(ended_by(client.wait(), SIGINT));
  // A signal that it handles does not disturb it.
  child_process patient = start_client("weft://" + to_text(silent.address()), "notes");
  {
    const weft::detail::descriptor other_road(silent.accept());
    REQUIRE(::recv(other_road.get(), &byte, 1, 0) == 1);
    for (int i = 0; i < 3; ++i) {
      patient.signal(SIGINT);
      CHECK(patient.read(1) == "!");
    }
  }
  CHECK(patient.read(20) == "UNAVAILABLE: session");
  CHECK(WIFEXITED(patient.wait()));
  const std::string closed = [] { return to_text(fake::listening_socket().address()); }();
  child_process other = start_client("weft://" + closed, "ends");
  CHECK(other.read(200) == "UNAVAILABLE: session at weft://" + closed + ": connection refused: no server is listening at " + closed + "\n");
  other.wait();
}

TEST_CASE("interrupt: a server in mid-step stops in order, its step ends with an error that names it, other steps go on") {
  for (const task_id& victim : {work0, work1, ps0}) {
    CAPTURE(to_text(victim));
    processes servers;
    const held_step step(victim == ps0 ? "/job:ps/task:0" : "/job:work/task:1");
    weft::session session(servers.target(work0), {}, step.graph), other(servers.target(work1), {}, step.graph);
    auto result = error_later([&] { session.run(step.seven); });
    REQUIRE(process_counts::soon([&] {
      for (const weft::registration_report& each : weft::ask_server(servers.target(victim)).registrations)
        if (each.steps > 0) return true;
      return false;
    }));
    servers.signal(victim, SIGINT);
    const weft::status why = get(result);
    CHECK(ended_well(servers.wait(victim)));
    CHECK(why.code == (victim == work0 ? error_code::cancelled : error_code::unavailable));
    CHECK(why.may_have_run);
    CHECK(why.message.find("task " + to_text(victim) + " at " + servers.cluster.task_address(victim)) == 0);
    if (victim != work0) CHECK(session.run(step.here) == 4.f);
    servers.start(victim);
    float got = 0;
    CHECK(process_counts::soon([&] { return error_of([&] { got = other.run(step.free); }).ok(); }));
    CHECK(got == 7.f);
  }
}
