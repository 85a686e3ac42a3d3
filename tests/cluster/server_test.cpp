#include <weft/cluster/server.hpp>

#include "hostile_client.hpp"
#include "process_counts.hpp"
#include "test_ops.hpp"

#include <weft/cluster/address_checks.hpp>
#include <weft/cluster/server_core.hpp>

#include <random>

using hostile::plain_socket;
using test_ops::error_of;
using weft::error_code;

namespace {

weft::server_options quiet() {
  weft::server_options out;
  out.log = [](const char*, const std::string&) {};
  return out;
}

}  // namespace

TEST_CASE("server: a task that the cluster does not have is refused with the ones it has") {
  const weft::cluster_spec cluster{{"ps", {"127.0.0.1:0"}}, {"work", {"127.0.0.1:0", "127.0.0.1:0"}}};
  CHECK(error_of([&] { weft::server s(cluster, "nosuch", 0); }).text() == "INVALID_ARGUMENT: no job 'nosuch' in the cluster; its jobs are 'ps', 'work'");
  CHECK(error_of([&] { weft::server s(cluster, "work", 7); }).text() == "INVALID_ARGUMENT: no task 7 in job 'work'; its tasks are 0-1");
  CHECK(error_of([&] { weft::server s(cluster, "work", -1); }).text() == "INVALID_ARGUMENT: no task -1 in job 'work'; its tasks are 0-1");
  CHECK(error_of([&] { weft::server s(cluster, "", 0); }).text() == "INVALID_ARGUMENT: the job name is empty; it must be one of the cluster's jobs");
}

TEST_CASE("server: port 0 becomes a real one, which the target names") {
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, quiet());
  CHECK(server.target() == "weft://" + server.cluster().task_address("work", 0));
  CHECK(server.target() != "weft://127.0.0.1:0");
  CHECK(to_text(server.task()) == "/job:work/task:0");
}

TEST_CASE("server: a port in use is named with the task that wants it") {
  weft::server one({{"work", {"127.0.0.1:0"}}}, "work", 0, quiet());
  const weft::status refused = error_of([&] { weft::server two(one.cluster(), "work", 0, quiet()); });
  CHECK(refused.code == error_code::unavailable);
  CHECK(refused.message.find("/job:work/task:0 cannot listen at " + one.cluster().task_address("work", 0)) == 0);
  CHECK(refused.message.find("address already in use by this process itself; is the task served already?") != std::string::npos);
}

TEST_CASE("server: an address that other machines reach needs the option that says so") {
  const weft::status refused = error_of([] { weft::server s({{"work", {"0.0.0.0:0"}}}, "work", 0, quiet()); });
  CHECK(refused.code == error_code::failed_precondition);
  CHECK(refused.message.find("allow_unauthenticated") != std::string::npos);
  auto options = quiet();
  options.allow_unauthenticated = true;
  weft::server open({{"work", {"0.0.0.0:0"}}}, "work", 0, options);
}

TEST_CASE("server: it may listen elsewhere than where the cluster says, and is known by what the cluster says") {
  auto options = quiet();
  options.listen_address = "127.0.0.1:0";
  weft::server server({{"work", {"localhost:1"}}}, "work", 0, options);
  CHECK(server.target() == "weft://localhost:1");
  CHECK(server.cluster().task_address("work", 0) == "localhost:1");
  CHECK(server.listen_address() != "127.0.0.1:0");
  const weft::graph g;
  const auto scope = g.as_default();
  const auto two = weft::constant(2.f);
  weft::session session("weft://" + server.listen_address());
  CHECK(session.run(two) == 2.f);

  // A wider one needs the option that says so; the cluster's host with port 0 gets the real port.
  options.listen_address = "0.0.0.0:0";
  CHECK(error_of([&] { weft::server s({{"work", {"127.0.0.1:0"}}}, "work", 0, options); }).code == error_code::failed_precondition);
  options.allow_unauthenticated = true;
  weft::server wide({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  CHECK(wide.listen_address().rfind("0.0.0.0:", 0) == 0);
  CHECK(wide.target() == "weft://127.0.0.1:" + wide.listen_address().substr(8));
  weft::session through(wide.target());
  CHECK(through.run(two) == 2.f);
}

TEST_CASE("server: names and IPv6 addresses, with any free port, work in a cluster") {
  const weft::detail::descriptor probe(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has_v6 = ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  if (!has_v6) MESSAGE("skipped: this machine has no IPv6");
  for (const char* host : {"localhost", "127.0.0.1", "[::1]"}) {
    if (host[0] == '[' && !has_v6) continue;
    weft::cluster_spec cluster{{"ps", {std::string(host) + ":0"}}, {"work", {"127.0.0.1:0"}}};
    // All ports are taken before anybody serves.
    auto ps = std::make_unique<weft::detail::server_core>(cluster, weft::task_id{"ps", 0}, quiet());
    auto work = std::make_unique<weft::detail::server_core>(cluster, weft::task_id{"work", 0}, quiet());
    cluster = ps->cluster_with_port().with_address("work", 0, work->cluster_with_port().task_address("work", 0));
    for (auto* each : {&ps, &work}) (*each)->start(cluster);
    const weft::server first(std::move(ps)), second(std::move(work));
    CHECK(cluster.task_address("ps", 0).rfind(std::string(host) + ":", 0) == 0);
    const weft::graph g;
    const auto scope = g.as_default();
    weft::tensor<float, 0> x;
    {
      const auto on = weft::with_device("/job:ps/task:0");
      x = weft::constant(20.f);
    }
    weft::session session(second.target());
    CHECK(session.run(x + 1.f) == 21.f);
  }
}

TEST_CASE("server: an address that other tasks cannot reach is said in the log, and in their errors") {
  using weft::detail::doubt_about_address;
  const weft::task_id self{"work", 0};
  const auto doubt = [&](const char* own, const char* other, bool elsewhere = false) {
    weft::detail::host_lookups hosts;
    return doubt_about_address({{"ps", {other}}, {"work", {own}}}, self, elsewhere, hosts).value_or("");
  };
  CHECK(doubt("127.0.0.1:1", "localhost:2").empty());
  CHECK(doubt("localhost:1", "[::1]:2").empty());
  CHECK(doubt("192.0.2.1:1", "192.0.2.2:2").empty());
  CHECK(doubt("127.0.0.1:1", "192.0.2.2:2") == "/job:work/task:0 has the address 127.0.0.1:1 in the cluster, which the tasks on other machines cannot reach; write the address that they use");
  CHECK(doubt("127.0.0.1:1", "192.0.2.2:2", true).empty());
  CHECK(doubt("0.0.0.0:1", "192.0.2.2:2").find("write the address that others use into the cluster") != std::string::npos);
  CHECK(doubt("localhost:1", "192.0.2.2:2").find("'localhost' is 127.0.0.1 on this machine") != std::string::npos);

  // Two tasks whose names mean one address here: whoever is met says who it is, and the error says what the name means.
  weft::server ps({{"ps", {"127.0.0.1:0"}}}, "ps", 0, quiet());
  const std::string port = ps.target().substr(ps.target().rfind(':'));
  const weft::cluster_spec mixed{{"ps", {"127.0.0.1" + port}}, {"work", {"127.0.0.1:0"}}, {"zeta", {"localhost" + port}}};
  auto options = quiet();
  options.listen_address = "127.0.0.1:0";
  ps.stop();
  weft::server met(mixed.with_address("work", 0, "127.0.0.1:9"), "ps", 0, quiet()), work(mixed.with_address("work", 0, "127.0.0.1:9"), "work", 0, options);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto on = weft::with_device("/job:zeta/task:0");
  const auto x = weft::constant(1.f);
  weft::session session("weft://" + work.listen_address());
  CHECK(error_of([&] { (void)session.run(x); }).message ==
        "task /job:zeta/task:0 at localhost" + port + ": expected /job:zeta/task:0, found /job:ps/task:0; two tasks seem to have the same address; reached as localhost" + port + " (127.0.0.1)");
}

TEST_CASE("server: it stops, frees its port and its threads, and starts again, many times") {
  weft::cluster_spec cluster{{"work", {"127.0.0.1:0"}}};
  {
    weft::server first(cluster, "work", 0, quiet());
    cluster = first.cluster();
  }
  const process_counts::held before;
  for (int i = 0; i < 20; ++i) {
    weft::server server(cluster, "work", 0, quiet());
    const weft::graph g;
    const auto scope = g.as_default();
    weft::session session(server.target(), {}, g);
    CHECK(session.run(weft::constant(1.f) + 1.f) == 2.f);
    if (i % 2 == 0) server.stop();
    server.stop();
  }
  before.check_back();
}

TEST_CASE("server: join returns when another thread stops it") {
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, quiet());
  std::thread other([&] { server.stop(); });
  server.join();
  other.join();
  server.join();
}

TEST_CASE("server: bytes that are no message close their connection, and it serves on") {
  auto options = quiet();
  std::mutex mutex;
  std::vector<std::string> lines;
  options.log = [&](const char* level, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (std::string(level) == "warning") lines.push_back(text);
  };
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  const std::string address = server.cluster().task_address("work", 0);
  std::mt19937 random(7);
  std::string noise(1 << 20, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  std::string huge("WEFT\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\x80", 32);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), noise, huge, std::string("WEFT\xff", 5) + std::string(27, '\0'), std::string(32, '\0')}) {
    plain_socket socket(address);
    socket.send(bytes);
    CHECK(socket.is_closed());
  }
  const weft::graph g;
  const auto scope = g.as_default();
  weft::session session(server.target(), {}, g);
  CHECK(session.run(weft::constant(1.f) + 1.f) == 2.f);
  const std::lock_guard<std::mutex> lock(mutex);
  CHECK(lines.size() == 5);
  CHECK(lines[0].find("/job:work/task:0 closed the connection from 127.0.0.1:") == 0);
}

TEST_CASE("server: a log function that throws ends neither the server nor what it was told about") {
  auto options = quiet();
  std::atomic<int> lines{0};
  options.log = [&](const char*, const std::string&) {
    ++lines;
    throw std::runtime_error("the disk is full");
  };
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto y = weft::constant(1.f) + 1.f;
  {
    plain_socket socket(server.cluster().task_address("work", 0));
    socket.send("GET / HTTP/1.1\r\n\r\n");
    CHECK(socket.is_closed());
  }
  weft::session session(server.target(), {}, g);
  CHECK(session.run(y) == 2.f);
  CHECK(lines >= 2);
}

TEST_CASE("server: the longest of waits is a wait") {
  auto longest = std::chrono::milliseconds::max();
  auto options = quiet();
  options.connect_timeout = options.handshake_timeout = options.abort_grace = options.heartbeat = options.registration_lease = longest;
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto y = weft::constant(1.f) + 1.f;
  weft::session_options how;
  how.connect_timeout = how.abort_grace = how.heartbeat = longest;
  weft::session session(server.target(), how, g);
  CHECK(session.run(weft::run_options{longest}, y) == 2.f);
  CHECK(session.run(weft::run_options{longest - std::chrono::milliseconds(1)}, y) == 2.f);
  session.close();
  weft::session::reset(server.target(), {}, how);
}

TEST_CASE("server: whoever connects and says nothing is sent away") {
  auto options = quiet();
  options.handshake_timeout = std::chrono::milliseconds(50);
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  plain_socket silent(server.cluster().task_address("work", 0));
  CHECK(silent.is_closed());
}

TEST_CASE("server: connections that are reset leave nothing behind") {
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, quiet());
  const std::string address = server.cluster().task_address("work", 0);
  for (int i = 0; i < 200; ++i) {
    plain_socket socket(address);
    socket.send("WE");
  }
  const weft::graph g;
  const auto scope = g.as_default();
  weft::session session(server.target(), {}, g);
  CHECK(session.run(weft::constant(1.f) + 1.f) == 2.f);
}
