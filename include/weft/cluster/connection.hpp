#ifndef WEFT_CLUSTER_CONNECTION_HPP
#define WEFT_CLUSTER_CONNECTION_HPP
// A TCP connection between tasks that belongs to an event loop: messages in, messages out, in order.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/frame.hpp>
#include <weft/core/cluster_spec.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#if WEFT_HAS_BODIES

namespace weft {

/// A connection whose messages are received on the io thread, the one that runs its io_context (one thread at a time; the
/// io_context must outlive the connection). All members may be called from any thread, and none blocks.
class connection : public std::enable_shared_from_this<connection> {
 public:
  using clock = std::chrono::steady_clock;
  using open_handler = std::function<void(const status&, std::shared_ptr<connection>)>;
  using message_handler = std::function<void(message)>;
  using close_handler = std::function<void(const status&)>;

  /// Connects within `deadline`. `done` is called once on the io thread: with ok and the connection, which waits for `start`, or with
  /// UNAVAILABLE, DEADLINE_EXCEEDED, or the reason of `close`, and none. The connection returned is only there to be closed.
  static std::shared_ptr<connection> open(asio::io_context& io, const host_port& to, std::chrono::milliseconds deadline,
                                          const connection_options& options, open_handler done);
  /// Takes over a connected socket. `slot`, if any, is dropped when the connection closes.
  static std::shared_ptr<connection> adopt(asio::ip::tcp::socket socket, const connection_options& options, std::shared_ptr<void> slot = nullptr);

  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() = default;

  /// Begins to receive; to be called once. Both handlers run on the io thread: `on_message` for each message in order, then `on_closed`
  /// once with the reason, also after a local `close`; afterwards both are destroyed. An exception from `on_message` closes the connection.
  void start(message_handler on_message, close_handler on_closed);
  /// Sends a message after those sent before, from the calling thread if the socket is free, else from the io thread. The tensors
  /// are held, not copied, until they are written. Does nothing on a closed connection. Throws INVALID_ARGUMENT for a message that no receiver
  /// accepts (an empty value, more than `max_rank` dimensions) and for one past the limits of this side's options.
  void send(message m);
  /// Bytes that `send` took and the socket has not.
  std::size_t queued_bytes() const noexcept { return queued_bytes_.load(std::memory_order_relaxed); }
  /// Closes at once; what is queued is dropped. The first reason stays. `on_closed` gets it.
  void close(status why);
  /// Closes when what is queued is sent, or after `frame_timeout` without progress.
  void close_when_sent(status why);
  /// Closes with DEADLINE_EXCEEDED unless a whole message is received within this time from now; zero takes that back.
  void expect_message_within(std::chrono::milliseconds time);
  /// Whether `close` was called, or the connection lost.
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  /// The other end, `127.0.0.1:33331`.
  const std::string& remote_address() const noexcept { return remote_; }
  /// When the last byte was received; the start at first.
  clock::time_point last_received() const noexcept { return clock::time_point(clock::duration(last_received_.load(std::memory_order_relaxed))); }
  /// Bytes received so far.
  std::uint64_t bytes_received() const noexcept { return bytes_received_.load(std::memory_order_relaxed); }
  /// Bytes sent so far.
  std::uint64_t bytes_sent() const noexcept { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  std::string remote_;
  std::atomic<std::size_t> queued_bytes_{0};
  std::atomic<bool> closed_{false};
  std::atomic<clock::rep> last_received_{0};
  std::atomic<std::uint64_t> bytes_received_{0}, bytes_sent_{0};
};

}  // namespace weft

#endif
#endif
