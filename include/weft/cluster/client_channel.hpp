#ifndef WEFT_CLUSTER_CLIENT_CHANNEL_HPP
#define WEFT_CLUSTER_CLIENT_CHANNEL_HPP
// A client's connection to its master: requests of several threads, each of which waits for its own answer. No thread of its own: of those
// who wait, one receives for all. It wakes whoever has an answer, and when it leaves, one of the others to receive in its place.

#include <weft/cluster/blocking_connection.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/core/bounded_wait.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/runtime/thread_pool.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace weft::detail {

/// See the head of this file. Once lost, it stays so: every later call throws the reason.
class client_channel {
 public:
  using clock = std::chrono::steady_clock;

  /// Connects and greets. Throws UNAVAILABLE or DEADLINE_EXCEEDED that name the address.
  client_channel(const host_port& to, std::chrono::milliseconds deadline, std::chrono::milliseconds heartbeat, const connection_options& options);

  /// The start of the server that answers here.
  std::uint64_t incarnation() const noexcept { return peer_.incarnation; }
  /// What the server said of itself: its task, devices and kernels.
  const hello_message& peer() const noexcept { return peer_; }
  /// `/job:work/task:2 at 127.0.0.1:33335`.
  std::string describe() const { return to_text(peer_.task) + " at " + road_->remote_address(); }
  std::uint32_t new_request() noexcept { return next_request_.fetch_add(1) + 1; }

  /// Throws UNAVAILABLE if the server has closed the connection. Asks the socket only when nobody waits at it anyway.
  void check_alive();
  /// Sends a request and waits for its answer. Throws when the connection is lost or the deadline has passed, after which the connection is shut down.
  reply_message call(std::uint32_t request, message m, std::optional<clock::time_point> deadline);
  /// Sends something that has no answer.
  void tell(message m) { send(std::move(m)); }
  void shutdown() noexcept { road_->shutdown(); }
  /// Whether the connection has ended, as far as anybody who received has found.
  bool lost() const noexcept { return lost_.load(); }
  /// Threads in `call` that sleep, because another one receives for them.
  std::size_t asleep();

 private:
  struct waiter {
    std::optional<reply_message> reply;
    std::optional<status> failure;
    // While it sleeps, and how it is woken: with its answer, or to receive for those who are left.
    bool asleep = false;
    std::condition_variable woken;
    bool done() const noexcept { return reply.has_value() || failure.has_value(); }
  };
  void greet(clock::time_point until);
  void receive_one(std::unique_lock<std::mutex>& lock, clock::time_point until);
  void sleep(waiter& mine, std::unique_lock<std::mutex>& lock, clock::time_point until);
  void hand_over();
  void dispatch(message m);
  void send(message m);
  void answer_heartbeat();
  void fail_all(const status& why);
  clock::time_point next_look(std::optional<clock::time_point> deadline) const;
  std::optional<status> overdue(std::optional<clock::time_point> deadline, clock::time_point begun) const;

  std::unique_ptr<blocking_connection> road_;
  const std::chrono::milliseconds heartbeat_;
  hello_message peer_;
  std::atomic<std::uint32_t> next_request_{0};
  // Threads inside `send`: what they write shows that this client lives.
  std::atomic<int> sending_{0};
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::map<std::uint32_t, waiter*> waiting_;
  bool receiving_ = false;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL client_channel::client_channel(const host_port& to, std::chrono::milliseconds deadline, std::chrono::milliseconds heartbeat, const connection_options& options) : heartbeat_(bounded(heartbeat)) {
  const auto until = clock::now() + bounded(deadline);
  try {
    road_ = blocking_connection::connect(to, deadline, options);
    greet(until);
  } catch (const error& e) {
    status s = e.status();
    s.message = "session at weft://" + to_text(to) + ": " + s.message;
    throw error(std::move(s));
  }
}

WEFT_DECL void client_channel::greet(clock::time_point until) {
  hello_message hello;
  road_->send(hello.encode());
  message answer;
  do {
    if (road_->receive(answer, until) != receive_result::received) fail(error_code::deadline_exceeded, "the server did not answer the greeting in time");
  } while (type_of(answer) == message_type::heartbeat);
  if (type_of(answer) == message_type::refused) throw error(decode_refusal(answer));
  if (type_of(answer) != message_type::welcome) fail(error_code::internal, "the server answered the greeting with message type " + std::to_string(answer.type));
  peer_ = hello_message::decode(answer);
}

WEFT_DECL void client_channel::check_alive() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (receiving_ || !waiting_.empty()) return;
  receive_one(lock, clock::now());
  hand_over();
}

WEFT_DECL std::size_t client_channel::asleep() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<std::size_t>(std::count_if(waiting_.begin(), waiting_.end(), [](const auto& one) { return one.second->asleep; }));
}

WEFT_DECL void client_channel::sleep(waiter& mine, std::unique_lock<std::mutex>& lock, clock::time_point until) {
  mine.asleep = true;
  mine.woken.wait_until(lock, until);
  mine.asleep = false;
}

// Whoever has received and goes away wakes one of those who rely on that. One that is awake finds by itself that nobody receives.
WEFT_DECL void client_channel::hand_over() {
  if (receiving_) return;
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), [](const auto& one) { return one.second->asleep; });
  if (next != waiting_.end()) next->second->woken.notify_one();
}

// Receives at most one message for whoever it is for. The lock is released meanwhile; what goes wrong is thrown, and told to all who wait.
WEFT_DECL void client_channel::receive_one(std::unique_lock<std::mutex>& lock, clock::time_point until) {
  receiving_ = true;
  lock.unlock();
  message m;
  receive_result result = receive_result::timed_out;
  std::optional<status> failure;
  try {
    result = road_->receive(m, until);
    if (result == receive_result::received && type_of(m) == message_type::heartbeat) answer_heartbeat();
  } catch (const error& e) {
    failure = e.status();
  }
  lock.lock();
  receiving_ = false;
  if (!failure && result == receive_result::received) {
    try {
      dispatch(std::move(m));
    } catch (const error& e) {
      failure = status(error_code::internal, "task " + describe() + " sent a message that makes no sense: " + e.message());
      road_->shutdown();
    }
  }
  if (failure) {
    fail_all(*failure);
    throw error(*failure);
  }
}

WEFT_DECL void client_channel::send(message m) {
  const std::unique_ptr<std::atomic<int>, void (*)(std::atomic<int>*)> inside(&sending_, [](std::atomic<int>* count) { --*count; });
  ++sending_;
  road_->send(std::move(m));
}

// The server takes a client that waits for an answer and is silent for lost. Whoever receives does not wait for a large message to be sent.
WEFT_DECL void client_channel::answer_heartbeat() {
  if (sending_.load() > 0) return;
  wire_writer empty;
  road_->send(make_message(message_type::heartbeat, empty));
}

WEFT_DECL void client_channel::dispatch(message m) {
  if (type_of(m) == message_type::refused) return fail_all(decode_refusal(m));
  if (type_of(m) != message_type::reply) return;
  const bool refused = m.refused;
  reply_message reply = reply_message::decode(std::move(m));
  if (refused && reply.result.ok()) reply.result = status(error_code::resource_exhausted, "the fetched values do not fit into memory, or into what may be received (session_options::received_bytes)");
  const auto it = waiting_.find(reply.request);
  if (it == waiting_.end()) return;
  it->second->reply = std::move(reply);
  it->second->woken.notify_one();
  waiting_.erase(it);
}

WEFT_DECL void client_channel::fail_all(const status& why) {
  lost_.store(true);
  for (const auto& entry : waiting_) {
    entry.second->failure = why;
    entry.second->woken.notify_one();
  }
  waiting_.clear();
}

// When whoever waits looks up next: at its deadline, and often enough to notice that the server is silent.
WEFT_DECL client_channel::clock::time_point client_channel::next_look(std::optional<clock::time_point> deadline) const {
  const auto soon = clock::now() + heartbeat_ / 2;
  return deadline ? std::min(*deadline, soon) : soon;
}

WEFT_DECL std::optional<status> client_channel::overdue(std::optional<clock::time_point> deadline, clock::time_point begun) const {
  const auto now = clock::now();
  if (deadline && now >= *deadline) return status(error_code::deadline_exceeded, "task " + describe() + " did not answer in time");
  if (now - std::max(begun, road_->last_received()) > heartbeat_)
    return status(error_code::unavailable, "task " + describe() + ": nothing was heard for " + std::to_string(heartbeat_.count()) + " ms");
  return std::nullopt;
}

WEFT_DECL reply_message client_channel::call(std::uint32_t request, message m, std::optional<clock::time_point> deadline) {
  // A kernel that waits for a step of its own server must not take the thread that the step needs.
  const thread_pool::blocking elsewhere(thread_pool::of_this_thread());
  waiter mine;
  const auto begun = clock::now();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.emplace(request, &mine);
  }
  try {
    send(std::move(m));
    std::unique_lock<std::mutex> lock(mutex_);
    while (!mine.done()) {
      if (receiving_) sleep(mine, lock, next_look(deadline));
      else receive_one(lock, next_look(deadline));
      if (mine.done()) break;
      if (const auto late = overdue(deadline, begun)) {
        road_->shutdown();
        throw error(*late);
      }
    }
    hand_over();
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.erase(request);
    hand_over();
    throw;
  }
  if (mine.failure) throw error(*mine.failure);
  return std::move(*mine.reply);
}

#endif

}  // namespace weft::detail

#endif
