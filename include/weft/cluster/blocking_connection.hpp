#ifndef WEFT_CLUSTER_BLOCKING_CONNECTION_HPP
#define WEFT_CLUSTER_BLOCKING_CONNECTION_HPP
// The client's side of a connection without an event loop: the thread that asks sends, waits and receives by itself.

#include <weft/cluster/frame.hpp>
#include <weft/core/cluster_spec.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#if WEFT_HAS_BODIES

namespace weft {

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

  /// Sends a message and returns when the socket has taken it. Throws UNAVAILABLE when the connection is lost, DEADLINE_EXCEEDED when the other
  /// end takes nothing for `frame_timeout` (the connection is then shut down), INVALID_ARGUMENT as `connection::send`.
  void send(const message& m);
  /// Waits for the next message. `cancelled`, if any, is asked after each `wake` and before each wait. Throws UNAVAILABLE when the connection is lost
  /// and what the frame was closed for (INVALID_ARGUMENT, UNIMPLEMENTED, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED inside a frame); every later call throws the same.
  receive_result receive(message& into, std::optional<time_point> deadline = std::nullopt, const std::function<bool()>& cancelled = nullptr);
  /// Makes a thread that waits in `receive` ask its `cancelled` again. Async-signal-safe.
  void wake() noexcept;
  /// Ends the connection: whoever waits, and every later call, gets UNAVAILABLE. Async-signal-safe.
  void shutdown() noexcept;
  /// The other end, `127.0.0.1:33331`.
  const std::string& remote_address() const noexcept { return remote_; }
  /// When the last byte was received; the start at first.
  time_point last_received() const noexcept { return time_point(clock::duration(last_received_.load(std::memory_order_relaxed))); }

 private:
  std::string remote_;
  std::atomic<clock::rep> last_received_{0};
};

}  // namespace weft

#endif
#endif
