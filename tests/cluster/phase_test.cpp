// Task servers in processes of their own that are killed or stopped at a given message of a step.
#include "fault_proxy.hpp"
#include "process_counts.hpp"
#include "server_processes.hpp"
#include "../long_tests.hpp"
#include "test_ops.hpp"

#include <weft/cluster/session.hpp>
#include <weft/ops/queue.hpp>

#include <signal.h>

#include <atomic>
#include <set>

using faults::proxy;
using faults::way;
using server_processes::processes;
using test_ops::error_later;
using test_ops::error_of;
using test_ops::get;
using weft::error_code;
using weft::message_type;
using weft::task_id;
using namespace std::chrono_literals;

namespace {

const task_id ps0{"ps", 0}, work0{"work", 0}, work1{"work", 1};

weft::session_options impatient() {
  weft::session_options out;
  out.heartbeat = 1000ms;
  out.connect_timeout = 3000ms;
  return out;
}

// Processes that reach each other through proxies, and one proxy for the clients of work:0.
struct stage {
  explicit stage(const weft::cluster_spec& tasks, std::chrono::milliseconds heartbeat)
      : servers(tasks, nullptr, heartbeat, [this](const task_id& task, const std::string& address) {
          return doors.emplace(task, std::make_unique<proxy>(weft::parse_host_port(address))).first->second->address();
        }), client_door(weft::parse_host_port(servers.real.at(work0))) {}
  std::string target() const { return "weft://" + client_door.address(); }
  std::map<task_id, std::unique_ptr<proxy>> doors;
  processes servers;
  proxy client_door;
};

// A message that passes in front of a task; `client` is what stands before work:0 for clients.
struct moment {
  const char* name;
  enum class place : std::uint8_t { client, ps, work } where;
  way which;
  message_type type;
};
constexpr moment moments[] = {
    {"the client's greeting", moment::place::client, way::up, message_type::hello},
    {"the answer to it", moment::place::client, way::down, message_type::welcome},
    {"the opening of the session", moment::place::client, way::up, message_type::open_session},
    {"the step's graph", moment::place::client, way::up, message_type::prepare},
    {"the greeting of work", moment::place::ps, way::up, message_type::hello},
    {"the answer of ps", moment::place::ps, way::down, message_type::welcome},
    {"a part's registration", moment::place::ps, way::up, message_type::register_part},
    {"the answer to that", moment::place::ps, way::down, message_type::part_registered},
    {"the step", moment::place::client, way::up, message_type::run},
    {"the part's step", moment::place::ps, way::up, message_type::run_part},
    {"the tensor", moment::place::work, way::up, message_type::tensor},
    {"the end of the part", moment::place::ps, way::down, message_type::part_done},
    {"the end of the session", moment::place::client, way::up, message_type::close_session},
};

// One session from its opening to its close, during which `victim` is hit at a moment and lives again after the first failure.
void play(stage& here, const moment& at, const task_id& victim, int number) {
  CAPTURE(at.name);
  CAPTURE(to_text(victim));
  CAPTURE(number);
  std::mutex mutex;
  bool hit = false, revived = false;
  proxy& door = at.where == moment::place::client ? here.client_door : *here.doors.at(at.where == moment::place::ps ? ps0 : work0);
  // Roads are opened anew, so that greetings pass.
  for (const auto& each : here.doors) each.second->strike(faults::fault::end::cut);
  door.watch([&](int, way which, message_type type, std::uint64_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (hit || which != at.which || type != at.type) return;
    hit = true;
    here.servers.signal(victim, number);
  });
  const auto revive = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!hit || std::exchange(revived, true)) return;
    if (number == SIGKILL) here.servers.start(victim);
    else here.servers.signal(victim, SIGCONT);
  };

  const weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  weft::tensor<float, 1> made;
  weft::with_device("/job:ps/task:0", [&] { made = weft::constant(xt::xtensor<float, 1>(xt::ones<float>({200}))) * x; });
  const auto y = weft::with_device("/job:work/task:0", [&] { return made + 1.f; });
  {
    std::unique_ptr<weft::session> session;
    const auto end = std::chrono::steady_clock::now() + 60s;
    for (bool done = false; !done && std::chrono::steady_clock::now() < end;) {
      try {
        if (session == nullptr) session = std::make_unique<weft::session>(here.target(), impatient(), weft::graph(graph.state()));
        const xt::xtensor<float, 1> got = session->run({{x, 2.f}}, y);
        bool right = got.size() == 200;
        for (const float each : got) right = right && each == 3.f;
        CHECK(right);
        done = true;
      } catch (const weft::error& e) {
        CAPTURE(e.what());
        CHECK((e.code() == error_code::unavailable || e.code() == error_code::aborted || e.code() == error_code::deadline_exceeded));
        CHECK(e.message().find("127.0.0.1:") != std::string::npos);
        revive();
      }
    }
    CHECK(std::chrono::steady_clock::now() < end);
  }
  // A message may be seen a moment after its receiver has acted on it.
  CHECK(process_counts::soon([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return hit;
  }));
  revive();
  door.watch({});
}

}  // namespace

TEST_CASE("phases: a process that is killed or stopped at any message of a step ends it with an error or nothing") {
  stage here({{"ps", 1}, {"work", 1}}, 700ms);
  int n = 0;
  for (const moment& at : moments)
    for (const task_id& victim : {ps0, work0}) {
      ++n;
      if (takes_long() || n % 3 == 0) play(here, at, victim, SIGKILL);
      if (takes_long() || n % 11 == 0) play(here, at, victim, SIGSTOP);
    }
}

TEST_CASE("phases: a dequeue may block for three heartbeats, and ends with the loss of any process of its step, which is named") {
  stage here({{"ps", 1}, {"work", 2}}, 700ms);
  const weft::graph graph;
  const auto scope = graph.as_default();
  weft::queue_options shared;
  shared.shared_name = "q";
  weft::fifo_queue<weft::tensor<float, 0>> queue;
  weft::tensor<float, 0> taken;
  weft::with_device("/job:ps/task:0", [&] {
    queue = weft::fifo_queue<weft::tensor<float, 0>>(1, shared, "q");
    taken = queue.dequeue();
  });
  const auto put = queue.enqueue(weft::constant(4.f));
  const auto y = weft::with_device("/job:work/task:1", [&] { return taken + 1.f; });
  // Every one of them serves the step: work:0 leads, ps:0 has the queue, work:1 waits for its element.
  const auto blocked = [&](weft::session& session) {
    std::atomic<bool> begun{false};
    here.doors.at(ps0)->watch([&](int, way which, message_type type, std::uint64_t) { begun = begun || (which == way::up && type == message_type::run_part); });
    auto result = error_later([&session, &y] {
      if (session.run(y) != 5.f) weft::fail(error_code::data_loss, "another value");
    });
    while (!begun && result.wait_for(1ms) == std::future_status::timeout) continue;
    here.doors.at(ps0)->watch({});
    return result;
  };
  {
    weft::session session(here.target(), impatient(), graph), other(here.servers.target(work1), impatient(), graph);
    auto result = blocked(session);
    CHECK(result.wait_for(2100ms) == std::future_status::timeout);
    other.run(put);
    CHECK(get(result).ok());
  }
  for (const task_id& victim : {ps0, work1, work0}) {
    CAPTURE(to_text(victim));
    weft::session session(here.target(), impatient(), graph);
    auto result = blocked(session);
    here.servers.signal(victim, SIGKILL);
    const weft::status why = get(result);
    CHECK(why.code == error_code::unavailable);
    CHECK(why.may_have_run);
    // The client knows the leader by the address of its own road.
    CHECK(why.message.find(victim == work0 ? here.client_door.address() : "task " + to_text(victim) + " at " + here.servers.cluster.task_address(victim) + ": ") != std::string::npos);
    here.servers.start(victim);
  }
}
