#ifndef WEFT_CLUSTER_BLOCKING_CONNECTION_HPP
#define WEFT_CLUSTER_BLOCKING_CONNECTION_HPP
// The client's side of a connection without an event loop: the thread that asks sends, waits and receives by itself.

#include <weft/cluster/frame.hpp>
#include <weft/cluster/frame_pace.hpp>
#include <weft/cluster/frame_reader.hpp>
#include <weft/cluster/frame_writer.hpp>
#include <weft/cluster/socket.hpp>
#include <weft/cluster/spin_wait.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/time.h>

namespace weft {

namespace detail {

// Addresses of a host, in the system's order of preference.
struct socket_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

}  // namespace detail

/// How a wait for a message ended.
enum class receive_result {
  /// There is a message.
  received,
  /// The deadline passed.
  timed_out,
  /// The caller's check said so.
  cancelled
};

/// A connection that works in the caller's thread. One thread may receive while others send; `wake`, `shutdown` and the
/// observers may be called from any thread.
class blocking_connection {
 public:
  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;

  /// Connects within `deadline`. Throws UNAVAILABLE (nobody listens there, the host is unknown or cannot be reached) or DEADLINE_EXCEEDED.
  static std::unique_ptr<blocking_connection> connect(const host_port& to, std::chrono::milliseconds deadline, const connection_options& options = {});

  blocking_connection(const blocking_connection&) = delete;
  blocking_connection& operator=(const blocking_connection&) = delete;
  ~blocking_connection() = default;

  /// Sends a message and returns when the socket has taken it, or the other end has gone: what it said before it went is there for `receive`, which then
  /// throws. Throws UNAVAILABLE when the connection is known to be lost, DEADLINE_EXCEEDED when the other end takes nothing for `frame_timeout` (the connection
  /// is then shut down), INVALID_ARGUMENT as `connection::send`.
  void send(message m);
  /// Waits for the next message. `cancelled`, if any, is asked before each wait and after each `wake`. Throws UNAVAILABLE when the connection is lost
  /// and what the frame was closed for (INVALID_ARGUMENT, UNIMPLEMENTED, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED inside a frame); every later call throws the same.
  receive_result receive(message& into, std::optional<time_point> deadline = std::nullopt, const std::function<bool()>& cancelled = nullptr);
  /// Makes a thread that waits in `receive` ask its `cancelled` again. Async-signal-safe.
  void wake() noexcept;
  /// Ends the connection: whoever waits, and every later call, gets UNAVAILABLE. Async-signal-safe.
  void shutdown() noexcept;
  /// The other end, `127.0.0.1:33331`, or `localhost:33331 (127.0.0.1)`.
  const std::string& remote_address() const noexcept { return remote_; }
  /// When the last byte was received; the start at first.
  time_point last_received() const noexcept { return time_point(clock::duration(last_received_.load(std::memory_order_relaxed))); }

 private:
  blocking_connection(detail::descriptor socket, std::unique_ptr<secured_stream> stream, std::string remote, const connection_options& options);
  [[noreturn]] void lose(status why);
  void check_usable();
  bool fill(int flags);
  bool wait_shortly(std::optional<time_point> deadline);
  bool wait(std::optional<time_point> deadline);

  const connection_options options_;
  const std::string remote_;
  const detail::descriptor socket_;
  // Between this and the socket; null where the connection is plain.
  const std::unique_ptr<secured_stream> stream_;
  // A pipe; `wake` writes to it.
  detail::descriptor wake_in_, wake_out_;
  std::atomic<clock::rep> last_received_{0};
  std::atomic<bool> shut_{false};
  // EPIPE or ECONNRESET, once sending has found that the other end is gone.
  std::atomic<int> gone_{0};
  frame_reader reader_;
  detail::frame_pace pace_;
  detail::spin_wait waits_;
  // One sender at a time.
  std::mutex sending_;
  // Why the connection is of no more use; ok while it is.
  std::mutex mutex_;
  status broken_;
};

namespace detail {

// Waits for events on a descriptor until `until`; false when nothing came.
bool wait_for(int number, short events, std::chrono::steady_clock::time_point until);

std::vector<socket_address> look_up(const host_port& host, int flags);

// The system's look-up cannot be interrupted, so a name is looked up by a thread that is left behind when time is up.
std::vector<socket_address> look_up_within(const host_port& host, std::chrono::milliseconds deadline);

// `10.0.0.7`.
std::string numeric_host(const socket_address& address);

// Connects a socket to one address: 0, ETIMEDOUT when time is up, or what the system says.
int connect_socket(int number, const socket_address& to, std::chrono::steady_clock::time_point until);

// Secures a connected socket: the handshake, or an exception.
std::unique_ptr<secured_stream> secure_within(int number, const transport_security& transport, const host_port& to, const std::string& numeric,
                                              std::chrono::steady_clock::time_point until, std::chrono::milliseconds deadline);

// From now on a receive without MSG_DONTWAIT waits, for some milliseconds at most (or not at all, where that cannot be set).
inline void let_receive_block_shortly(int number) {
  const timeval most{0, 1000};
  if (::setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most) != 0) return;
  static_cast<void>(::fcntl(number, F_SETFL, ::fcntl(number, F_GETFL) & ~O_NONBLOCK));
}

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL bool wait_for(int number, short events, std::chrono::steady_clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd entry{number, events, 0};
    const int n = ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
    if (n > 0 || (n < 0 && errno != EINTR)) return true;
    if (n == 0 && left <= (1 << 30)) return false;
  }
}

WEFT_DECL std::vector<socket_address> look_up(const host_port& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  std::vector<socket_address> out;
  if (::getaddrinfo(host.host.c_str(), std::to_string(host.port).c_str(), &hints, &list) != 0) return out;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    socket_address address;
    std::memcpy(&address.bytes, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    out.push_back(address);
  }
  ::freeaddrinfo(list);
  return out;
}

WEFT_DECL std::vector<socket_address> look_up_within(const host_port& host, std::chrono::milliseconds deadline) {
  std::vector<socket_address> found = look_up(host, AI_NUMERICHOST);
  if (!found.empty()) return found;
  auto promise = std::make_shared<std::promise<std::vector<socket_address>>>();
  auto result = promise->get_future();
  std::thread([promise, host] { promise->set_value(look_up(host, 0)); }).detach();
  if (result.wait_for(bounded(deadline)) != std::future_status::ready) throw error(connect_timeout(host, deadline));
  found = result.get();
  if (found.empty()) throw error(resolve_failure(host));
  return found;
}

WEFT_DECL std::string numeric_host(const socket_address& address) {
  char text[NI_MAXHOST] = {};
  const int failed = ::getnameinfo(reinterpret_cast<const sockaddr*>(&address.bytes), address.size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text : std::string();
}

WEFT_DECL int connect_socket(int number, const socket_address& to, std::chrono::steady_clock::time_point until) {
  lend_port(number);
  if (::connect(number, reinterpret_cast<const sockaddr*>(&to.bytes), to.size) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(number, POLLOUT, until)) return ETIMEDOUT;
    int failure = 0;
    socklen_t size = sizeof failure;
    if (::getsockopt(number, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) return errno;
    if (failure != 0) return failure;
  }
  return connected_to_itself(number) ? ECONNREFUSED : 0;
}

WEFT_DECL std::unique_ptr<secured_stream> secure_within(int number, const transport_security& transport, const host_port& to, const std::string& numeric,
                                                        std::chrono::steady_clock::time_point until, std::chrono::milliseconds deadline) {
  set_no_delay(number);
  auto stream = transport.secure(number, transport_security::side::client, to.host);
  for (;;) {
    const secured_stream::progress now = stream->handshake();
    if (now == secured_stream::progress::done) return stream;
    if (now == secured_stream::progress::failed) throw error(about_handshake(resolved_text(to, numeric), stream->problem()));
    if (!wait_for(number, now == secured_stream::progress::wants_read ? POLLIN : POLLOUT, until)) throw error(handshake_timeout(resolved_text(to, numeric), deadline));
  }
}

#endif

}  // namespace detail

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::unique_ptr<blocking_connection> blocking_connection::connect(const host_port& to, std::chrono::milliseconds deadline,
                                                                         const connection_options& options) {
  const time_point until = clock::now() + detail::bounded(deadline);
  int failure = ECONNREFUSED;
  std::string numeric;
  for (const detail::socket_address& address : detail::look_up_within(to, deadline)) {
    detail::descriptor socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    failure = socket.get() < 0 ? errno : detail::connect_socket(socket.get(), address, until);
    numeric = detail::numeric_host(address);
    if (failure == 0) {
      detail::set_no_delay(socket.get());
      auto stream = options.transport == nullptr ? nullptr : detail::secure_within(socket.get(), *options.transport, to, numeric, until, deadline);
      if (stream == nullptr) detail::let_receive_block_shortly(socket.get());
      return std::unique_ptr<blocking_connection>(new blocking_connection(std::move(socket), std::move(stream), detail::resolved_text(to, numeric), options));
    }
    if (clock::now() >= until) throw error(detail::connect_timeout(to, deadline, numeric));
  }
  throw error(detail::connect_failure(to, failure, numeric));
}

WEFT_DECL blocking_connection::blocking_connection(detail::descriptor socket, std::unique_ptr<secured_stream> stream, std::string remote, const connection_options& options)
    : options_(options), remote_(std::move(remote)), socket_(std::move(socket)), stream_(std::move(stream)), reader_(options), pace_(options.frame_timeout, options.frame_pace), waits_(options.spin_time) {
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
    fail(error_code::resource_exhausted, "cannot make a pipe for the connection to " + remote_ + ": " + detail::errno_text(errno));
  wake_in_ = detail::descriptor(ends[1]);
  wake_out_ = detail::descriptor(ends[0]);
  last_received_.store(clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

WEFT_DECL void blocking_connection::wake() noexcept {
  const char byte = 0;
  static_cast<void>(!::write(wake_in_.get(), &byte, 1));  // a full pipe wakes as well
}

WEFT_DECL void blocking_connection::shutdown() noexcept {
  shut_.store(true);
  ::shutdown(socket_.get(), SHUT_RDWR);
}

// Ends the connection for everybody, with the first reason.
WEFT_DECL void blocking_connection::lose(status why) {
  if (shut_.load()) why = status(error_code::unavailable, "the connection to " + remote_ + " was shut down");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (broken_.ok()) broken_ = std::move(why);
  ::shutdown(socket_.get(), SHUT_RDWR);
  throw error(broken_);
}

WEFT_DECL void blocking_connection::check_usable() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_.ok()) throw error(broken_);
}

WEFT_DECL void blocking_connection::send(message m) {
  frame_writer frame(std::move(m), options_.limits);
  const std::lock_guard<std::mutex> one(sending_);
  check_usable();
  while (frame.remaining() > 0 && gone_.load() == 0) {
    std::uint64_t bytes = 0;
    const detail::io_result result = detail::send_frame(socket_.get(), stream_.get(), frame, std::size_t{64} << 20, bytes);
    if (result == detail::io_result::done) continue;
    if (result == detail::io_result::lost) {
      if (errno != EPIPE && errno != ECONNRESET) lose(detail::lost_connection(remote_, errno, false, stream_.get()));
      return gone_.store(errno);
    }
    const bool endless = options_.frame_timeout.count() <= 0;
    if (!detail::wait_for(socket_.get(), POLLOUT, clock::now() + detail::bounded(endless ? std::chrono::hours(24 * 365) : options_.frame_timeout)))
      lose(detail::stuck_connection(remote_, options_.frame_timeout));
  }
}

WEFT_DECL receive_result blocking_connection::receive(message& into, std::optional<time_point> deadline, const std::function<bool()>& cancelled) {
  check_usable();
  for (bool first = true;; first = false) {
    try {
      if (reader_.next(into)) {
        pace_.restart();
        return receive_result::received;
      }
    } catch (const error& e) {
      lose(detail::bad_frame(remote_, e.status()));
    }
    if (cancelled && cancelled()) return receive_result::cancelled;
    if (first && wait_shortly(deadline)) continue;
    if (!wait(deadline)) return receive_result::timed_out;
  }
}

// An answer that comes within milliseconds costs one system call less this way, which neither `wake` nor a deadline can interrupt. False when
// a deadline is too near for that.
WEFT_DECL bool blocking_connection::wait_shortly(std::optional<time_point> deadline) {
  if (deadline && *deadline - clock::now() < std::chrono::milliseconds(20)) return false;
  do {
    if (!fill(MSG_DONTWAIT)) continue;
    waits_.found();
    return true;
  } while (waits_.again());
  if (stream_ != nullptr) return false;
  fill(0);
  return true;
}

// Waits for bytes, which it takes, or for `wake`. False when the deadline passed.
WEFT_DECL bool blocking_connection::wait(std::optional<time_point> deadline) {
  // What a stream has read ahead, no wait for the socket finds.
  if (stream_ != nullptr && fill(MSG_DONTWAIT)) return true;
  const time_point begun = clock::now();
  time_point until = deadline.value_or(time_point::max());
  const bool inside = reader_.inside_frame() && options_.frame_timeout.count() > 0;
  if (inside) {
    if (auto slow = pace_.look(remote_)) lose(std::move(*slow));
    until = std::min(until, last_received() + detail::bounded(options_.frame_timeout));
    if (pace_.counts()) until = std::min(until, begun + pace_.next());
  }
  int milliseconds = -1;
  if (until != time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - begun).count();
    milliseconds = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
  }
  pollfd entries[2] = {{socket_.get(), POLLIN, 0}, {wake_out_.get(), POLLIN, 0}};
  const int ready = ::poll(entries, 2, milliseconds);
  if (inside) pace_.waited(clock::now() - begun);
  if (ready < 0 && errno != EINTR) lose(detail::lost_connection(remote_, errno, reader_.inside_frame()));
  if (ready > 0 && entries[1].revents != 0) {
    char bytes[64];
    while (::read(wake_out_.get(), bytes, sizeof bytes) > 0) continue;
  }
  if (ready > 0 && entries[0].revents != 0) {
    fill(MSG_DONTWAIT);
    return true;
  }
  const time_point now = clock::now();
  if (ready == 0 && inside && last_received() + detail::bounded(options_.frame_timeout) <= now)
    lose(detail::silent_connection(remote_, options_.frame_timeout));
  return ready != 0 || !deadline || now < *deadline;
}

// Takes the bytes that are there; false when there are none.
WEFT_DECL bool blocking_connection::fill(int flags) {
  iovec parts[frame_reader::max_parts];
  const std::size_t count = reader_.space(parts);
  const ssize_t n = stream_ == nullptr ? detail::receive_parts(socket_.get(), parts, count, flags) : stream_->read(parts, count);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (n <= 0) {
    const int found = n == 0 ? gone_.load() : errno;  // of a reset, sending may have taken the news
    lose(detail::lost_connection(remote_, found == EPIPE ? 0 : found, reader_.inside_frame(), stream_.get()));
  }
  last_received_.store(clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  if (reader_.inside_frame()) pace_.came(static_cast<std::uint64_t>(n));
  reader_.filled(static_cast<std::size_t>(n));
  return true;
}

#endif

}  // namespace weft

#endif
