#include <weft/cluster/server_status.hpp>

#include "hostile_client.hpp"

using test_ops::error_later;
using test_ops::error_of;
using test_ops::gate;
using test_ops::get;
using weft::error_code;

namespace {

std::uint64_t number(const weft::server_report& r, const std::string& name) {
  for (const auto& [key, value] : r.statistics)
    if (key == name) return value;
  return 0;
}

}  // namespace

TEST_CASE("server_status: a server says what it is, has and does") {
  gate::instance().reset();
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, test_ops::options());
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  weft::variable<float, 2> w;
  weft::fifo_queue<weft::tensor<std::int64_t, 0>> queue;
  weft::tensor<float, 0> held;
  {
    const auto device = weft::with_device("/job:ps/task:0");
    w = weft::variable<float, 2>(xt::xtensor<float, 2>(xt::zeros<float>({2, 3})), "w");
    weft::queue_options named;
    named.shared_name = "examples";
    queue = weft::fifo_queue<weft::tensor<std::int64_t, 0>>(32, named, "q");
    held = test_ops::node("TestWait", weft::reduce_sum(w.read()), "/job:ps/task:0");
  }
  const auto put = queue.enqueue(7);
  weft::session session(cluster.target("work", 0), {}, g);
  session.run(w.initializer());
  session.run(put);
  session.run(put);
  auto result = error_later([&] { session.run(held); });
  REQUIRE(gate::instance().wait_entered(1));

  const auto ps = weft::ask_server(cluster.target("ps", 0)), work = weft::ask_server(cluster.spec().task_address("work", 0));
  CHECK(to_text(ps.task) == "/job:ps/task:0");
  CHECK(ps.address == cluster.spec().task_address("ps", 0));
  CHECK(ps.version == "0.1.0");
  CHECK(ps.incarnation != work.incarnation);
  REQUIRE(ps.devices.size() == 1);
  CHECK(ps.devices[0].name == "/job:ps/task:0/device:CPU:0");
  CHECK(ps.sessions.empty());
  REQUIRE(ps.registrations.size() == 3);
  CHECK(ps.registrations[0].master == work.incarnation);
  CHECK(ps.registrations[0].steps + ps.registrations[1].steps + ps.registrations[2].steps == 1);
  REQUIRE(ps.resources.size() == 2);
  CHECK(ps.resources[0].container == "ps");
  CHECK(ps.resources[0].name == "examples");
  CHECK(ps.resources[0].what == "FIFOQueue 'examples'");
  CHECK(ps.resources[0].contents == "2 elements, at most 32");
  CHECK(ps.resources[1].name == "w");
  CHECK(ps.resources[1].dtype == "float");
  CHECK(ps.resources[1].shape == "[2,3]");
  CHECK(ps.resources[1].bytes == 24);
  CHECK(number(ps, "parts_begun") == 4);
  CHECK(number(ps, "parts_ended") == 3);
  REQUIRE(work.sessions.size() == 1);
  CHECK(work.sessions[0].nodes == g.size());
  CHECK(work.sessions[0].prepared == 3);
  CHECK(work.sessions[0].steps == 1);
  CHECK(work.sessions[0].client.find("127.0.0.1:") == 0);
  CHECK(number(work, "steps_begun") == 4);
  CHECK(number(work, "steps_ended") == 3);
  const std::string text = to_text(ps);
  INFO(text);
  CHECK(text.find("/job:ps/task:0 at " + ps.address + ", weft 0.1.0, up ") == 0);
  CHECK(text.find(", now float[2,3], 24 bytes\n") != std::string::npos);
  CHECK(text.find("\n  ps/examples: FIFOQueue 'examples', 2 elements, at most 32\n") != std::string::npos);
  CHECK(text.find("\n  parts_begun 4\n") != std::string::npos);
  gate::instance().open();
  CHECK(get(result).ok());
}

TEST_CASE("server_status: who asks where nobody answers is told so") {
  const auto refused = error_of([] { weft::ask_server("127.0.0.1:1", std::chrono::seconds(5)); });
  CHECK(refused.text() == "UNAVAILABLE: session at weft://127.0.0.1:1: connection refused: no server is listening at 127.0.0.1:1");
  for (const char* bad : {"", "localhost", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:http", "weft://"})
    CHECK(error_of([&] { weft::ask_server(bad, std::chrono::seconds(5)); }).code == error_code::invalid_argument);
}

TEST_CASE("statistics: what happens is counted, and nothing falls below zero") {
  hostile::one_server here;
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>("x");
  const auto y = weft::reduce_sum(x);
  const auto bad = weft::reshape(x, {4});
  const auto before = here.server.statistics();
  CHECK(before.connections == 1);
  CHECK(before.sessions == 1);
  {
    weft::session session(here.target(), {}, g);
    for (int i = 0; i < 5; ++i) CHECK(session.run({{x, {1, 2, 3}}}, y) == 6.f);
    CHECK(error_of([&] { session.run({{x, {1, 2, 3}}}, bad); }).code == error_code::invalid_argument);
    const auto during = here.server.statistics();
    CHECK(during.connections == 2);
    CHECK(during.connections_accepted == before.connections_accepted + 1);
    CHECK(during.sessions == 2);
    CHECK(during.sessions_opened == before.sessions_opened + 1);
    CHECK(during.steps_begun == before.steps_begun + 6);
    CHECK(during.steps_ended == before.steps_ended + 6);
    CHECK(during.steps_failed == before.steps_failed + 1);
    CHECK(during.parts_failed == before.parts_failed + 1);
    CHECK(during.errors[static_cast<std::size_t>(error_code::invalid_argument)] == 1);
    CHECK(during.registrations == before.registrations + 2);
    CHECK(during.bytes_in > before.bytes_in + 5 * 12);
    CHECK(during.bytes_out > before.bytes_out + 5 * 4);
    CHECK(to_text(during).find("steps_failed 1\n") != std::string::npos);
    CHECK(to_text(during).find("errors/INVALID_ARGUMENT 1\n") != std::string::npos);
  }
  const auto until = std::chrono::steady_clock::now() + fake::patience;
  while (here.server.statistics().connections > 1 && std::chrono::steady_clock::now() < until) continue;
  const auto after = here.server.statistics();
  CHECK(after.sessions == 1);
  CHECK(after.registrations == before.registrations);
  // Also when it is stopped, and while it is being stopped.
  weft::server other({{"work", {"127.0.0.1:0"}}}, "work", 0, test_ops::options());
  std::thread asking([&] {
    for (int i = 0; i < 1000; ++i) CHECK(other.statistics().connections < 100);
  });
  other.stop();
  asking.join();
  CHECK(other.statistics().connections == 0);
}
