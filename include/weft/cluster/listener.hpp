#ifndef WEFT_CLUSTER_LISTENER_HPP
#define WEFT_CLUSTER_LISTENER_HPP
// Accepts connections at the address of a task.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/connection.hpp>
#include <weft/cluster/frame.hpp>
#include <weft/core/cluster_spec.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace weft {

/// How a listener behaves.
struct listener_options {
  /// Of every accepted connection.
  connection_options connection;
  /// Connections open at once; one more is accepted and closed at once.
  std::size_t max_connections = 4096;
};

}  // namespace weft

#if WEFT_HAS_BODIES

namespace weft {

/// A bound port. Accepting begins with the constructor's return and ends with `close` or the destructor; a lack of file descriptors or
/// memory only pauses it. The io_context must outlive the listener.
class listener {
 public:
  using accept_handler = std::function<void(std::shared_ptr<connection>)>;

  /// Binds exactly `address`; port 0 takes a free one. `on_accept` runs on the io thread and gets each connection, not started yet.
  /// Throws UNAVAILABLE (the port is in use), PERMISSION_DENIED, or INVALID_ARGUMENT (not an address of this machine).
  listener(asio::io_context& io, const host_port& address, const listener_options& options, accept_handler on_accept);
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() { close(); }

  /// The address with the real port.
  const host_port& address() const noexcept { return address_; }
  /// Frees the port at once and accepts no more. From any thread; `on_accept` is not called afterwards, except if it is running.
  void close();
  /// Accepted connections that are open.
  std::size_t open_connections() const noexcept;

 private:
  host_port address_;
};

}  // namespace weft

#endif
#endif
