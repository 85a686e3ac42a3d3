#ifndef WEFT_TESTS_CLUSTER_HOSTILE_CLIENT_HPP
#define WEFT_TESTS_CLUSTER_HOSTILE_CLIENT_HPP
// A client that a test plays message by message, a plain socket below it, and what a test asks of a server that was treated badly.

#include <weft/cluster/server.hpp>
#include <weft/cluster/session.hpp>

#include "../long_tests.hpp"
#include "fake_task.hpp"
#include "listening_socket.hpp"
#include "process_counts.hpp"
#include "test_ops.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hostile {

using weft::error_code;
using weft::message;
using weft::message_type;
using weft::status;
using weft::tensor_value;

/// The bytes of a message on the wire.
inline std::string frame_of(message m) {
  weft::frame_writer writer(std::move(m), {});
  std::string out;
  while (writer.remaining() > 0) {
    iovec part{};
    writer.gather(&part, 1, SIZE_MAX);
    out.append(static_cast<const char*>(part.iov_base), part.iov_len);
    writer.advance(part.iov_len);
  }
  return out;
}

/// A socket that sends any bytes.
class plain_socket {
 public:
  explicit plain_socket(const std::string& target)
      : number_(fake::calling_socket(weft::parse_host_port(target.find("//") == std::string::npos ? target : target.substr(target.find("//") + 2)), &connected_)) {}
  bool connected() const noexcept { return connected_; }
  int number() const noexcept { return number_.get(); }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::send(number_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// Sends what the socket takes at once; how many bytes that were.
  std::size_t send_some(std::string_view bytes) const {
    const ssize_t n = ::send(number_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : static_cast<std::size_t>(n);
  }
  void finish() const { ::shutdown(number_.get(), SHUT_WR); }
  /// Closes with RST.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(number_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    number_ = weft::detail::descriptor();
  }
  /// Whether the server closes the connection within bounded time; what it says before is read and dropped.
  bool is_closed() const {
    char bytes[4096];
    ssize_t n;
    while ((n = ::recv(number_.get(), bytes, sizeof bytes, 0)) > 0) continue;
    return n == 0 || errno == ECONNRESET || errno == EPIPE;
  }
  std::string receive(std::size_t bytes) const {
    std::string out(bytes, '\0');
    const ssize_t n = ::recv(number_.get(), out.data(), bytes, MSG_WAITALL);
    out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return out;
  }

 private:
  bool connected_ = false;
  weft::detail::descriptor number_;
};

/// A client that has greeted.
class client {
 public:
  explicit client(const std::string& target, weft::hello_message hello = {}) : road_(weft::blocking_connection::connect(weft::parse_host_port(target.substr(target.find("//") + 2)), fake::patience)) {
    send(hello.encode());
    welcome_ = next();
  }
  /// What came back for the greeting; empty when it was no refusal.
  status refusal() const { return weft::type_of(*welcome_) == message_type::refused ? weft::decode_refusal(*welcome_) : status(); }
  void send(message m) { road_->send(std::move(m)); }
  /// The next message that is not a sign of life; nothing when the connection is closed.
  std::optional<message> next() {
    message m;
    do {
      auto result = weft::receive_result::timed_out;
      try {
        result = road_->receive(m, weft::blocking_connection::clock::now() + fake::patience);
      } catch (const weft::error&) {
        return std::nullopt;
      }
      REQUIRE(result == weft::receive_result::received);
    } while (weft::type_of(m) == message_type::heartbeat);
    return m;
  }
  /// The next reply; why the connection was closed, or UNAVAILABLE, when there is none.
  weft::reply_message reply() {
    auto m = next();
    if (m && weft::type_of(*m) == message_type::reply) return weft::reply_message::decode(std::move(*m));
    weft::reply_message out;
    out.result = m ? weft::decode_refusal(*m) : status(error_code::unavailable, "closed");
    return out;
  }
  weft::reply_message ask(message m) {
    send(std::move(m));
    return reply();
  }
  std::uint64_t open() {
    weft::open_session_message what;
    what.request = ++request_;
    const auto answer = ask(what.encode());
    REQUIRE_MESSAGE(answer.result.ok(), answer.result.text());
    weft::wire_reader from(answer.body);
    return session_ = from.u64();
  }
  /// Sends all nodes of a graph and prepares a step of it.
  weft::reply_message prepare(const weft::graph& g, const std::vector<weft::output>& fetches, const std::vector<const weft::node*>& targets = {}, const std::vector<weft::output>& feeds = {}) {
    if (session_ == 0) open();
    weft::prepare_message what;
    what.request = ++request_;
    what.session = session_;
    const auto numbers = [](const std::vector<weft::output>& all) {
      std::vector<weft::output_number> out;
      for (const weft::output& o : all) out.push_back({static_cast<std::uint32_t>(o.from->id()), static_cast<std::uint32_t>(o.index)});
      return out;
    };
    what.signature.fetches = numbers(fetches);
    what.signature.feeds = numbers(feeds);
    for (const weft::node* n : targets) what.signature.targets.push_back(static_cast<std::uint32_t>(n->id()));
    auto answer = ask(what.encode(g.nodes(), 0));
    if (answer.result.ok()) handle_ = weft::prepared_body::decode(answer.body).handle;
    return answer;
  }
  message run_request(std::vector<tensor_value> feeds = {}) {
    weft::run_message what;
    what.request = ++request_;
    what.session = session_;
    what.handle = handle_;
    return what.encode(std::move(feeds));
  }
  weft::reply_message run(std::vector<tensor_value> feeds = {}) { return ask(run_request(std::move(feeds))); }
  std::uint32_t last_request() const noexcept { return request_; }
  std::uint64_t session() const noexcept { return session_; }
  std::uint64_t handle() const noexcept { return handle_; }

 private:
  std::unique_ptr<weft::blocking_connection> road_;
  std::optional<message> welcome_;
  std::uint32_t request_ = 0;
  std::uint64_t session_ = 0, handle_ = 0;
};

/// The lines of a server's log.
class log_lines {
 public:
  weft::log_function sink() {
    return [this](const char* level, const std::string& text) {
      const std::lock_guard<std::mutex> lock(mutex_);
      lines_.push_back(std::string(level) + ": " + text);
    };
  }
  /// Whether there is a line with this, now or soon.
  bool has(const std::string& part) const { return process_counts::soon([&] { return has_now(part); }); }
  std::size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_.size();
  }

 private:
  bool has_now(const std::string& part) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& line : lines_)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// A server, of one task unless a cluster is given, with a client of good manners beside the test. The fixture's end checks that this client is still served and that connections,
/// sessions, registered graphs, descriptors, threads and what was received are back to where they were.
class one_server {
 public:
  explicit one_server(weft::server_options options = test_ops::options(), weft::cluster_spec cluster = {{"work", {"127.0.0.1:0"}}})
      : server(std::move(cluster), "work", 0, with_log(std::move(options))) {
    const auto scope = graph_.as_default();
    x_ = weft::placeholder<float, 0>("x");
    sum_ = x_ + 2.f;
    bystander_ = std::make_unique<weft::session>(server.target(), weft::session_options(), graph_);
    CHECK(served());
    registrations_ = server.statistics().registrations;
    before_.emplace();
  }
  ~one_server() {
    CHECK(served());
    static_cast<void>(process_counts::soon([&] { return is_back(); }));  // what is not back is told one by one
    const auto now = server.statistics();
    CHECK(now.connections == 1);
    CHECK(now.sessions == 1);
    CHECK(now.registrations == registrations_);
    CHECK(now.received_bytes == 0);
    CHECK(now.parked_bytes == 0);
    CHECK(now.queued_bytes == 0);
    before_->check_back();
  }
  /// Whether another client's step runs, which takes a feed.
  bool served() { return bystander_->run({{x_, 1.f}}, sum_) == 3.f; }
  const std::string& target() const { return server.target(); }

  log_lines log;
  weft::server server;

 private:
  weft::server_options with_log(weft::server_options options) {
    options.log = log.sink();
    return options;
  }
  bool is_back() {
    const auto now = server.statistics();
    return now.connections == 1 && now.sessions == 1 && now.registrations == registrations_ && now.received_bytes == 0 && now.queued_bytes == 0 && now.parked_bytes == 0 && before_->is_back();
  }

  weft::graph graph_;
  weft::tensor<float, 0> x_, sum_;
  std::unique_ptr<weft::session> bystander_;
  std::uint64_t registrations_ = 0;
  std::optional<process_counts::held> before_;
};

}  // namespace hostile

#endif
