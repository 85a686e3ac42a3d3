#ifndef WEFT_CLUSTER_SOCKET_HPP
#define WEFT_CLUSTER_SOCKET_HPP
// The system calls that both kinds of connection share, none of which blocks, and the words for their failures.

#include <weft/cluster/frame_reader.hpp>
#include <weft/cluster/frame_writer.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/core/bounded_wait.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

namespace weft::detail {

// Owns a file descriptor.
class descriptor {
 public:
  explicit descriptor(int number = -1) noexcept : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const noexcept { return number_; }

 private:
  int number_;
};

// The most that one system call sends.
inline constexpr std::size_t most_per_send = std::size_t{1} << 20;

// How an attempt to move bytes ended.
enum class io_result : std::uint8_t { done, would_block, lost };

// One piece alone is cheaper without the list around it.
ssize_t send_parts(int socket, iovec* parts, std::size_t count) noexcept;

ssize_t receive_parts(int socket, iovec* parts, std::size_t count, int flags) noexcept;

// Writes until the frame is out, `budget` bytes have gone, or the socket takes no more. errno tells why it was lost. A stream stands before the socket, if there is one.
io_result send_frame(int socket, secured_stream* stream, frame_writer& frame, std::size_t budget, std::uint64_t& sent) noexcept;

// Whether a loopback connection has met itself, which happens when nobody listens at a port that the system also gives to callers.
bool connected_to_itself(int socket) noexcept;

inline void set_no_delay(int socket) noexcept {
  const int on = 1;
  static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

// A program that this process starts does not hold the socket open.
inline void close_on_exec(int socket) noexcept { static_cast<void>(::fcntl(socket, F_SETFD, FD_CLOEXEC)); }

// A server may listen at the port that the system picked for this calling end, now and in the minute in which the port lingers after the connection: a cluster's ports may lie among
// those that the system picks from. Before connecting.
inline void lend_port(int socket) noexcept {
  const int on = 1;
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
}

// The system asks a silent peer for a sign of life after a minute, and gives the connection up a minute later: a machine that vanished sends nothing.
inline void keep_alive(int socket) noexcept {
  const auto set = [socket](int level, int option, int value) { static_cast<void>(::setsockopt(socket, level, option, &value, sizeof value)); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(TCP_KEEPIDLE)
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
#endif
}

// What every connection between tasks is given.
inline void set_up(int socket) noexcept {
  set_no_delay(socket);
  keep_alive(socket);
  close_on_exec(socket);
}

inline std::string errno_text(int number) { return std::generic_category().message(number); }

// `10 s`, `1.5 s`, `100 ms`.
std::string duration_text(std::chrono::milliseconds time);

// `worker1:2222 (10.0.0.7)`: an address with what its name means on this machine, if it has a name.
inline std::string resolved_text(const host_port& to, const std::string& numeric) {
  return to_text(to) + (numeric.empty() || numeric == to.host ? "" : " (" + numeric + ")");
}

// `numeric` is the address that was tried last, if any.
inline status connect_failure(const host_port& to, int number, const std::string& numeric = {}) {
  const std::string where = resolved_text(to, numeric);
  if (number == ECONNREFUSED) return {error_code::unavailable, "connection refused: no server is listening at " + where};
  return {error_code::unavailable, "cannot connect to " + where + ": " + errno_text(number)};
}

inline status connect_timeout(const host_port& to, std::chrono::milliseconds deadline, const std::string& numeric = {}) {
  return {error_code::deadline_exceeded, "connecting to " + resolved_text(to, numeric) + " timed out after " + duration_text(deadline)};
}

inline status about_handshake(const std::string& remote, const status& why) {
  status out = why;
  out.message = "securing the connection with " + remote + " failed: " + why.message;
  return out;
}

inline status handshake_timeout(const std::string& remote, std::chrono::milliseconds deadline) {
  return about_handshake(remote, status(error_code::deadline_exceeded, "no answer within " + duration_text(deadline) + "; does the server have a secured transport?"));
}

inline status resolve_failure(const host_port& to) { return {error_code::unavailable, "cannot resolve host '" + to.host + "'"}; }

// The other end is gone; `number` is 0 when it closed the connection, EPROTO when the stream knows why.
inline status lost_connection(const std::string& remote, int number, bool inside_frame, const secured_stream* stream = nullptr) {
  if (stream != nullptr && number == EPROTO) {
    status out = stream->problem();
    out.message = "lost the connection to " + remote + ": " + out.message;
    return out;
  }
  std::string text = "lost the connection to " + remote + ": ";
  text += number == 0 ? "the other end closed it" : errno_text(number);
  if (inside_frame) text += ", in the middle of a message";
  return {error_code::unavailable, std::move(text)};
}

inline status silent_connection(const std::string& remote, std::chrono::milliseconds time) {
  return {error_code::deadline_exceeded, "no byte came from " + remote + " for " + duration_text(time) + " in the middle of a message"};
}

inline status stuck_connection(const std::string& remote, std::chrono::milliseconds time) {
  return {error_code::deadline_exceeded, remote + " took nothing of a message for " + duration_text(time)};
}

// What the reader threw, with the peer's name.
inline status bad_frame(const std::string& remote, const status& why) {
  status out = why;
  out.message = "bad message from " + remote + ": " + why.message;
  return out;
}

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL ssize_t send_parts(int socket, iovec* parts, std::size_t count) noexcept {
  constexpr int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (count == 1) return ::send(socket, parts->iov_base, parts->iov_len, flags);
  msghdr call{};
  call.msg_iov = parts;
  call.msg_iovlen = count;
  return ::sendmsg(socket, &call, flags);
}

WEFT_DECL ssize_t receive_parts(int socket, iovec* parts, std::size_t count, int flags) noexcept {
  if (count == 1) return ::recv(socket, parts->iov_base, parts->iov_len, flags);
  msghdr call{};
  call.msg_iov = parts;
  call.msg_iovlen = count;
  return ::recvmsg(socket, &call, flags);
}

WEFT_DECL io_result send_frame(int socket, secured_stream* stream, frame_writer& frame, std::size_t budget, std::uint64_t& sent) noexcept {
  constexpr std::size_t most_parts = 64;
  iovec parts[most_parts];
  while (frame.remaining() > 0 && budget > 0) {
    const std::size_t count = frame.gather(parts, most_parts, std::min(budget, most_per_send));
    const ssize_t n = stream == nullptr ? send_parts(socket, parts, count) : stream->write(parts, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? io_result::would_block : io_result::lost;
    const auto bytes = static_cast<std::size_t>(n);
    frame.advance(bytes);
    budget -= bytes;
    sent += bytes;
  }
  return io_result::done;
}

WEFT_DECL bool connected_to_itself(int socket) noexcept {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return false;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) != 0) return false;
  return here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

WEFT_DECL std::string duration_text(std::chrono::milliseconds time) {
  const auto ms = time.count();
  if (ms < 1000) return std::to_string(ms) + " ms";
  std::string out = std::to_string(ms / 1000);
  if (ms % 1000 != 0) {
    std::string part = std::to_string(1000 + ms % 1000).substr(1);
    out += "." + part.substr(0, part.find_last_not_of('0') + 1);
  }
  return out + " s";
}

#endif

}  // namespace weft::detail

#endif
