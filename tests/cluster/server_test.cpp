#include <weft/cluster/server.hpp>

#include "test_ops.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dirent.h>

#include <cstring>
#include <random>

using test_ops::error_of;
using weft::error_code;

namespace {

weft::server_options quiet() {
  weft::server_options out;
  out.log = [](const char*, const std::string&) {};
  return out;
}

// A plain socket to a server.
class plain_socket {
 public:
  explicit plain_socket(const std::string& address) : number_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const auto where = weft::parse_host_port(address);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(where.port));
    ::inet_pton(AF_INET, where.host.c_str(), &to.sin_addr);
    REQUIRE(::connect(number_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const timeval most{20, 0};
    ::setsockopt(number_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  }
  ~plain_socket() { ::close(number_); }
  void send(const std::string& bytes) { (void)!::send(number_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Whether the server closes the connection; what it says before is read and dropped.
  bool is_closed() {
    char bytes[4096];
    for (;;) {
      const auto n = ::recv(number_, bytes, sizeof bytes, 0);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) return true;
      if (n < 0) return false;
    }
  }

 private:
  int number_;
};

int open_files() {
  int n = 0;
  DIR* all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++n;
  ::closedir(all);
  return n;
}
int threads() {
  int n = 0;
  DIR* all = ::opendir("/proc/self/task");
  while (::readdir(all) != nullptr) ++n;
  ::closedir(all);
  return n;
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
}

TEST_CASE("server: an address that other machines reach needs the option that says so") {
  const weft::status refused = error_of([] { weft::server s({{"work", {"0.0.0.0:0"}}}, "work", 0, quiet()); });
  CHECK(refused.code == error_code::failed_precondition);
  CHECK(refused.message.find("allow_unauthenticated") != std::string::npos);
  auto options = quiet();
  options.allow_unauthenticated = true;
  weft::server open({{"work", {"0.0.0.0:0"}}}, "work", 0, options);
}

TEST_CASE("server: it stops, frees its port and its threads, and starts again, many times") {
  weft::cluster_spec cluster{{"work", {"127.0.0.1:0"}}};
  {
    weft::server first(cluster, "work", 0, quiet());
    cluster = first.cluster();
  }
  const int threads_before = threads(), files_before = open_files();
  for (int i = 0; i < 20; ++i) {
    weft::server server(cluster, "work", 0, quiet());
    const weft::graph g;
    const auto scope = g.as_default();
    weft::session session(server.target(), {}, g);
    CHECK(session.run(weft::constant(1.f) + 1.f) == 2.f);
    if (i % 2 == 0) server.stop();
    server.stop();
  }
  CHECK(threads() == threads_before);
  CHECK(open_files() == files_before);
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
