#include <weft/cluster/client_channel.hpp>

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/transport.hpp>

#include "../patience.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/uio.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using weft::detail::client_channel;

namespace {

constexpr auto never = std::chrono::milliseconds(1h);

// Lets a test hold a thread inside the look of a connection at its socket, until bytes are there.
class gate {
 public:
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }
  bool wait_for_visitor() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [this] { return visitors_ > 0; });
  }
  void pass(int socket) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!closed_) return;
    ++visitors_;
    changed_.notify_all();
    changed_.wait_for(lock, patience, [this] { return !closed_; });
    --visitors_;
    lock.unlock();
    pollfd entry{socket, POLLIN, 0};
    (void)::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int visitors_ = 0;
};

class gated_stream final : public weft::secured_stream {
 public:
  gated_stream(int socket, gate& at) : socket_(socket), at_(at) {}
  progress handshake() noexcept override { return progress::done; }
  ssize_t read(const iovec* parts, std::size_t count) noexcept override {
    at_.pass(socket_);
    return ::readv(socket_, parts, static_cast<int>(count));
  }
  ssize_t write(const iovec* parts, std::size_t count) noexcept override {
    msghdr call{};
    call.msg_iov = const_cast<iovec*>(parts);
    call.msg_iovlen = count;
    return ::sendmsg(socket_, &call, MSG_NOSIGNAL);
  }
  weft::status problem() const override { return {}; }

 private:
  int socket_;
  gate& at_;
};

class gated_transport final : public weft::transport_security {
 public:
  explicit gated_transport(gate& at) : at_(at) {}
  std::unique_ptr<weft::secured_stream> secure(int socket, side, const std::string&) const override { return std::make_unique<gated_stream>(socket, at_); }

 private:
  gate& at_;
};

// A server and a channel to it, neither of which sends a sign of life while the test is patient: nothing but an answer wakes whoever waits for one.
struct silent_pair {
  silent_pair() {
    weft::server_options quiet;
    quiet.heartbeat = never;
    cluster.emplace(weft::cluster_spec{{"work", 1}}, quiet);
    weft::connection_options through;
    through.transport = std::make_shared<gated_transport>(door);
    const std::string target = cluster->target("work", 0);
    channel.emplace(weft::parse_host_port(target.substr(target.find("//") + 2)), patience, 3 * patience, through);
  }
  // Asks the server for its report.
  std::future<bool> ask() {
    return std::async(std::launch::async, [this] {
      weft::session_request what;
      what.request = channel->new_request();
      return channel->call(what.request, what.encode(weft::message_type::report), std::nullopt).result.ok();
    });
  }
  bool wait_for_sleepers(std::size_t n) {
    for (const auto until = std::chrono::steady_clock::now() + patience; channel->asleep() != n; std::this_thread::yield())
      if (std::chrono::steady_clock::now() > until) return false;
    return true;
  }
  // Whether the answer came; if not, ends the wait.
  bool answered(std::future<bool>& by) {
    const bool in_time = by.wait_for(patience) == std::future_status::ready;
    if (!in_time) channel->shutdown();
    try {
      return by.get() && in_time;
    } catch (const weft::error&) {
      return false;
    }
  }

  gate door;
  std::optional<weft::local_cluster> cluster;
  std::optional<client_channel> channel;
};

}  // namespace

TEST_SUITE("client channel") {
  TEST_CASE("client channel: a thread that looks whether the server lives wakes whoever has the answer that it found") {
    silent_pair pair;
    pair.door.close();
    auto look = std::async(std::launch::async, [&] { pair.channel->check_alive(); });
    REQUIRE(pair.door.wait_for_visitor());
    auto first = pair.ask();
    CHECK(pair.wait_for_sleepers(1));
    pair.door.open();
    CHECK(pair.answered(first));
    look.get();
    CHECK(pair.channel->asleep() == 0);
  }

  TEST_CASE("client channel: whoever has received and goes leaves the rest to one that sleeps") {
    silent_pair pair;
    pair.door.close();
    auto look = std::async(std::launch::async, [&] { pair.channel->check_alive(); });
    REQUIRE(pair.door.wait_for_visitor());
    std::future<bool> asked[4];
    for (auto& each : asked) each = pair.ask();
    CHECK(pair.wait_for_sleepers(4));
    pair.door.open();
    for (auto& each : asked) CHECK(pair.answered(each));
    look.get();
    CHECK(pair.channel->asleep() == 0);
  }

  TEST_CASE("client channel: a look leaves alone what others wait for") {
    silent_pair pair;
    pair.door.close();
    auto first = pair.ask();
    REQUIRE(pair.door.wait_for_visitor());
    auto second = pair.ask();
    CHECK(pair.wait_for_sleepers(1));
    pair.channel->check_alive();
    pair.door.open();
    CHECK(pair.answered(first));
    CHECK(pair.answered(second));
  }
}
