#include <weft/tls.hpp>

#include "../cluster/test_ops.hpp"
#include "certificates.hpp"

#include <weft/cluster/client_channel.hpp>
#include <weft/cluster/listener.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using test_ops::error_of;
using test_ops::patience;
using weft::error_code;
using transport = std::shared_ptr<const weft::transport_security>;

namespace {

const char* const key = "0123456789012345678901234567890123456789+A=";

// What a server logs, for a test that waits for a line.
class lines {
 public:
  void operator()(const char* level, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(std::string(level) + ": " + text);
    changed_.notify_all();
  }
  // A line with this text, or an empty one when none comes.
  std::string wait_for(const std::string& text) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::string found;
    changed_.wait_for(lock, patience, [&] {
      for (const std::string& line : all_)
        if (line.find(text) != std::string::npos) found = line;
      return !found.empty();
    });
    if (found.empty())
      for (const std::string& line : all_) MESSAGE(line);
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
};

weft::server_options secured(const transport& how, const std::shared_ptr<lines>& log = nullptr) {
  weft::server_options out;
  out.transport = how;
  out.log = [log](const char* level, const std::string& text) {
    if (log) (*log)(level, text);
  };
  return out;
}

weft::session_options client(const transport& how) {
  weft::session_options out;
  out.transport = how;
  return out;
}

// A step over three tasks: small and large tensors, in both directions.
void run_a_step(const std::string& target, const transport& how) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto fed = weft::placeholder<float, 1>("fed");
  weft::tensor<float, 1> on_ps, on_one;
  {
    const auto on = weft::with_device("/job:ps/task:0");
    on_ps = fed * 2.f;
  }
  {
    const auto on = weft::with_device("/job:work/task:1");
    on_one = on_ps + 1.f;
  }
  weft::session session(target, client(how), g);
  for (const std::size_t n : {std::size_t{1}, std::size_t{5000}, std::size_t{1} << 20}) {
    auto in = xt::xtensor<float, 1>::from_shape({n});
    for (std::size_t i = 0; i < n; ++i) in(i) = static_cast<float>(i % 1000);
    const auto out = session.run({fed, in}, on_one);
    REQUIRE(out.size() == n);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += out(i) != 2.f * in(i) + 1.f;
    CHECK(wrong == 0);
  }
}

// The error of a session that is opened with this transport.
weft::status refusal(const std::string& target, const transport& how) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  auto options = client(how);
  options.connect_timeout = std::chrono::seconds(5);
  return error_of([&] {
    weft::session session(target, options, g);
    (void)session.run(x);
  });
}

std::string temporary_file(const char* name, const std::string& content, int mode = 0600) {
  const char* folder = std::getenv("TMPDIR");
  const std::string path = std::string(folder ? folder : "/tmp") + "/weft_tls_test_" + std::to_string(::getpid()) + "_" + name;
  std::ofstream(path) << content;
  ::chmod(path.c_str(), static_cast<mode_t>(mode));
  return path;
}

// Files for one party, removed at the end.
class party {
 public:
  party(const char* name, const test_certificates::authority& trusted, const test_certificates::identity& own) {
    files_.authority = temporary_file((std::string(name) + "_ca.pem").c_str(), trusted.pem());
    files_.certificate = temporary_file((std::string(name) + "_cert.pem").c_str(), own.certificate);
    files_.key = temporary_file((std::string(name) + "_key.pem").c_str(), own.key);
  }
  ~party() {
    for (const std::string& path : {files_.authority, files_.certificate, files_.key}) std::remove(path.c_str());
  }
  transport make(weft::tls::host_names names = weft::tls::host_names::any) const {
    auto files = files_;
    files.names = names;
    return weft::tls::with_certificates(files);
  }
  const weft::tls::certificate_files& files() const { return files_; }

 private:
  weft::tls::certificate_files files_;
};

}  // namespace

TEST_CASE("TLS: a cluster with one key runs steps; who has another key, or none, is told so") {
  const auto log = std::make_shared<lines>();
  const transport ours = weft::tls::with_key(key);
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, secured(ours, log));
  const std::string target = cluster.target("work", 0);
  run_a_step(target, ours);

  const weft::status wrong = refusal(target, weft::tls::with_key(std::string(40, 'x')));
  CHECK(wrong.code == error_code::unauthenticated);
  CHECK(wrong.message == "session at " + target + ": securing the connection with " + target.substr(7) + " failed: the other end refused: illegal parameter; both ends need the same key");
  CHECK(log->wait_for("failed: the other end has another key").find("warning: /job:work/task:0 closed the connection from 127.0.0.1:") == 0);

  const weft::status plain = refusal(target, nullptr);
  INFO(plain.message);
  CHECK(plain.message.find("which is TLS: the other end has a secured transport and this one has none") != std::string::npos);
  CHECK(!log->wait_for("failed: the other end does not speak TLS; does it have a secured transport").empty());
  run_a_step(target, ours);
}

TEST_CASE("TLS: a secured client, or task, at a plain server is told so, and the server too") {
  const auto log = std::make_shared<lines>();
  const transport ours = weft::tls::with_key(key);
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, secured(nullptr, log));
  const std::string target = cluster.target("ps", 0);
  const weft::status why = refusal(target, ours);
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message == "session at " + target + ": securing the connection with " + target.substr(7) + " failed: the other end closed the connection; does it have the same transport?");
  CHECK(!log->wait_for("which is TLS: the other end has a secured transport and this one has none").empty());
  cluster.stop("work", 0);
  weft::server other(cluster.spec(), "work", 0, secured(ours));
  const weft::graph g;
  const auto scope = g.as_default();
  const auto on = weft::with_device("/job:ps/task:0");
  const auto x = weft::constant(1.f);
  weft::session session(other.target(), client(ours), g);
  CHECK(error_of([&] { (void)session.run(x); }).message ==
        "task /job:ps/task:0 at " + target.substr(7) + ": securing the connection with " + target.substr(7) + " failed: the other end closed the connection; does it have the same transport?");
}

TEST_CASE("TLS: certificates of one authority; expired ones and others are refused on both sides") {
  const test_certificates::authority ours("weft test"), theirs("somebody else");
  const party good("good", ours, ours.issue("task", {"127.0.0.1", "localhost"})), foreign("foreign", ours, theirs.issue("task", {"127.0.0.1"})),
      old("old", ours, ours.issue("task", {"127.0.0.1"}, -1)), distrustful("distrustful", theirs, ours.issue("task", {"127.0.0.1"})), elsewhere("elsewhere", ours, ours.issue("task", {"192.0.2.1"}));
  const auto log = std::make_shared<lines>();
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, secured(good.make(weft::tls::host_names::verified), log));
  const std::string target = cluster.target("work", 0), at = target.substr(7);
  run_a_step(target, good.make());
  struct row {
    const party* who;
    const char *client, *server;
  };
  const row rows[] = {
      {&foreign, "the other end refused: unknown ca; each end needs a certificate", "the certificate of the other end is not accepted: unable to get local issuer certificate"},
      {&old, "the other end refused: certificate expired; each end needs a certificate", "the certificate of the other end is not accepted: certificate has expired"},
      {&distrustful, "the certificate of the other end is not accepted: unable to get local issuer certificate", "the other end refused: unknown ca"},
  };
  for (const row& r : rows) {
    const weft::status why = refusal(target, r.who->make());
    CHECK(why.code == error_code::unauthenticated);
    INFO(why.message);
    CHECK(why.message.find(r.client) != std::string::npos);
    CHECK(!log->wait_for(r.server).empty());
  }
  CHECK(refusal(target, weft::tls::with_key(key)).code == error_code::unauthenticated);

  // The name in the certificate, where the client asks for it.
  weft::server other({{"work", {"127.0.0.1:0"}}}, "work", 0, secured(elsewhere.make()));
  CHECK(refusal(other.target(), good.make()).ok());
  CHECK(refusal(other.target(), good.make(weft::tls::host_names::verified)).message.find("the certificate of the other end is not accepted: IP address mismatch") != std::string::npos);
  run_a_step(target, good.make(weft::tls::host_names::verified));
}

TEST_CASE("TLS: handshakes that are cut or never come end, and the server lives") {
  const auto log = std::make_shared<lines>();
  const transport ours = weft::tls::with_key(key);
  auto options = secured(ours, log);
  options.handshake_timeout = std::chrono::milliseconds(200);
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  const weft::host_port where = weft::parse_host_port(server.target().substr(7));
  const auto open = [&] {
    weft::detail::descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(weft::detail::connect_socket(socket.get(), weft::detail::look_up(where, AI_NUMERICHOST).at(0), std::chrono::steady_clock::now() + patience) == 0);
    return socket;
  };
  const weft::detail::descriptor silent = open();
  CHECK(!log->wait_for("within 200 ms").empty());
  // The beginning of a greeting: a record of 100 bytes, of which some come.
  weft::detail::descriptor cut = open();
  const char begun[] = "\x16\x03\x01\x00\x64\x01\x00";
  REQUIRE(::send(cut.get(), begun, sizeof begun - 1, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof begun - 1));
  cut = weft::detail::descriptor();
  CHECK(!log->wait_for("failed: the other end closed the connection; does it have the same transport?").empty());
  CHECK(refusal(server.target(), ours).ok());

  // A server that never answers, and one that goes in the middle.
  const weft::detail::descriptor mute(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(mute.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0);
  REQUIRE(::listen(mute.get(), 8) == 0);
  socklen_t size = sizeof loopback;
  REQUIRE(::getsockname(mute.get(), reinterpret_cast<sockaddr*>(&loopback), &size) == 0);
  const weft::host_port quiet{"127.0.0.1", ntohs(loopback.sin_port)};
  weft::connection_options how;
  how.transport = ours;
  const weft::status late = error_of([&] { (void)weft::blocking_connection::connect(quiet, std::chrono::milliseconds(100), how); });
  CHECK(late.text() == "DEADLINE_EXCEEDED: securing the connection with " + to_text(quiet) + " failed: no answer within 100 ms; does the server have a secured transport?");
}

TEST_CASE("TLS: many threads send over one connection, and every message arrives whole") {
  asio::io_context io;
  const auto work = asio::make_work_guard(io);
  std::thread loop([&] { io.run(); });
  weft::listener_options how;
  how.connection.transport = weft::tls::with_key(key);
  weft::listener listener(io, {"127.0.0.1", 0}, how, [](const std::shared_ptr<weft::connection>& c) {
    c->start([to = c.get()](weft::message m) { to->send(std::move(m)); }, [](const weft::status&) {});  // sends back what comes
  });
  auto client = weft::blocking_connection::connect(listener.address(), patience, how.connection);
  constexpr int threads = 4, each = 30;
  std::vector<std::thread> senders;
  for (int t = 0; t < threads; ++t)
    senders.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        weft::message m;
        m.type = 4;
        m.head = std::string(static_cast<std::size_t>((i * 977) % 5000), static_cast<char>('a' + t));
        m.tensors.emplace_back(weft::dtype::uint8, weft::shape{(i % 5 == 0) ? 300000 + i : i});
        std::fill_n(m.tensors[0].mutable_data<std::uint8_t>(), m.tensors[0].elements(), static_cast<std::uint8_t>(t));
        client->send(std::move(m));
      }
    });
  int right = 0;
  for (int i = 0; i < threads * each; ++i) {
    weft::message m;
    REQUIRE(client->receive(m, std::chrono::steady_clock::now() + patience) == weft::receive_result::received);
    REQUIRE(m.tensors.size() == 1);
    const std::uint8_t* first = m.tensors[0].data<std::uint8_t>();
    const bool even = std::all_of(first, first + m.tensors[0].elements(), [&](std::uint8_t v) { return v == *first; });
    const bool head = m.tensors[0].elements() == 0 || m.head.find_first_not_of(static_cast<char>('a' + *first)) == std::string::npos;
    right += even && head;
  }
  for (std::thread& each_thread : senders) each_thread.join();
  CHECK(right == threads * each);
  client->shutdown();
  listener.close();
  client.reset();
  io.stop();
  loop.join();
}

TEST_CASE("TLS: keys come from files that only their owner reads, or from variables") {
  const std::string good = temporary_file("good", std::string(key) + "\n"), open = temporary_file("open", key, 0644), brief = temporary_file("brief", "secret\n"), binary = temporary_file("binary", std::string(40, '\x01'));
  CHECK(weft::tls::with_key_file(good) != nullptr);
  CHECK(error_of([&] { (void)weft::tls::with_key_file(open); }).text() ==
        "PERMISSION_DENIED: '" + open + "' holds a secret and may be used by others than its owner (mode 644); run: chmod 600 '" + open + "'");
  CHECK(error_of([&] { (void)weft::tls::with_key_file(brief); }).text() ==
        "INVALID_ARGUMENT: key file '" + brief + "': expected a key of 32 to 4096 printable characters in one line, found 6 bytes; make one with: head -c 32 /dev/urandom | base64");
  CHECK(error_of([&] { (void)weft::tls::with_key_file(binary); }).code == error_code::invalid_argument);
  CHECK(error_of([&] { (void)weft::tls::with_key_file(good + "x"); }).code == error_code::not_found);
  ::setenv("WEFT_TLS_TEST_KEY", key, 1);
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, secured(weft::tls::with_key_variable("WEFT_TLS_TEST_KEY")));
  CHECK(refusal(server.target(), weft::tls::with_key_file(good)).ok());
  ::unsetenv("WEFT_TLS_TEST_KEY");
  CHECK(error_of([] { (void)weft::tls::with_key_variable("WEFT_TLS_TEST_KEY"); }).text() == "NOT_FOUND: the variable WEFT_TLS_TEST_KEY, which should hold the key of the cluster, is not set");
  for (const std::string& path : {good, open, brief, binary}) std::remove(path.c_str());
}

TEST_CASE("TLS: an address that other machines reach needs nothing else") {
  auto options = secured(weft::tls::with_key(key));
  options.listen_address = "0.0.0.0:0";
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  CHECK(refusal(server.target(), weft::tls::with_key(key)).ok());
}
