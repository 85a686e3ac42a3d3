#ifndef WEFT_CLUSTER_LISTENER_HPP
#define WEFT_CLUSTER_LISTENER_HPP
// Accepts connections at the address of a task.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/connection.hpp>
#include <weft/cluster/frame.hpp>
#include <weft/cluster/socket.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
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

namespace weft {

/// A bound port. Accepting begins with the constructor's return and ends with `close` or the destructor; a lack of file descriptors or
/// memory only pauses it. The io_context must outlive the listener.
class listener {
 public:
  using accept_handler = std::function<void(std::shared_ptr<connection>)>;

  /// Binds exactly `address` (`::` is every address of both families); port 0 takes a free one. `on_accept` runs on the io thread and gets each connection, not started yet.
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
  std::size_t open_connections() const noexcept { return state_->open->load(); }

 private:
  using tcp = asio::ip::tcp;
  // Shared with the handlers that wait.
  struct state : std::enable_shared_from_this<state> {
    state(asio::io_context& io, const listener_options& how, accept_handler handler)
        : acceptor(io), pause(io), options(how), on_accept(std::move(handler)) {}
    bool accept();
    void accepted(const std::error_code& error, tcp::socket socket);
    void close();

    std::mutex mutex;
    // Under the mutex.
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    bool closed = false;

    const listener_options options;
    const accept_handler on_accept;
    // Shared with the connections, which may be held longer.
    const std::shared_ptr<std::atomic<std::size_t>> open = std::make_shared<std::atomic<std::size_t>>(0);
  };
  static tcp::endpoint endpoint_of(asio::io_context& io, const host_port& address);
  void bind(const tcp::endpoint& endpoint);

  std::shared_ptr<state> state_;
  host_port address_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL listener::listener(asio::io_context& io, const host_port& address, const listener_options& options, accept_handler on_accept)
    : state_(std::make_shared<state>(io, options, std::move(on_accept))), address_(address) {
  bind(endpoint_of(io, address));
  state_->accept();
}

WEFT_DECL asio::ip::tcp::endpoint listener::endpoint_of(asio::io_context& io, const host_port& address) {
  std::error_code error;
  const asio::ip::address numeric = asio::ip::make_address(address.host, error);
  if (!error) return {numeric, static_cast<std::uint16_t>(address.port)};
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
  if (error || found.empty())
    fail(error_code::invalid_argument, "cannot listen on " + to_text(address) + ": cannot resolve host '" + address.host + "'");
  return found.begin()->endpoint();
}

namespace detail {
// Whether a socket of this process listens at the port. Only asked for a message.
WEFT_DECL bool listens_already(const asio::ip::tcp::endpoint& endpoint) {
  const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
  for (int number = 0; number < most; ++number) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    asio::ip::tcp::endpoint bound;
    socklen_t length = static_cast<socklen_t>(bound.capacity());
    if (::getsockname(number, bound.data(), &length) == 0 && bound.port() == endpoint.port() && bound.protocol() == endpoint.protocol()) return true;
  }
  return false;
}

// Whether a port that cannot be listened at has no listener: a caller's connection has it, or had it a minute ago. Only asked for a message.
WEFT_DECL bool nobody_listens(const asio::ip::tcp::endpoint& endpoint) {
  const descriptor socket(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval at_most{1, 0};
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &at_most, sizeof at_most));
  return ::connect(socket.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 && errno == ECONNREFUSED;
}

WEFT_DECL std::string who_has_port(const asio::ip::tcp::endpoint& endpoint) {
  if (listens_already(endpoint)) return " by this process itself; is the task served already?";
  if (nobody_listens(endpoint))
    return " though no server listens there: it is, or was a minute ago, the calling end of a program's connection; try again in a minute, or choose a port that the system does not give to callers";
  return {};
}
}  // namespace detail

WEFT_DECL void listener::bind(const tcp::endpoint& endpoint) {
  tcp::acceptor& acceptor = state_->acceptor;
  std::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) detail::close_on_exec(acceptor.native_handle());
  // A port whose last connections still linger may be bound at once; one with a listener may not.
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) {
    const tcp::endpoint bound = acceptor.local_endpoint(error);
    address_.port = bound.port();
  }
  if (!error) return;
  const std::string where = "cannot listen on " + to_text(address_) + ": ";
  if (error.value() == EADDRINUSE)
    fail(error_code::unavailable, where + "address already in use" + detail::who_has_port(endpoint));
  if (error.value() == EACCES) fail(error_code::permission_denied, where + "permission denied");
  if (error.value() == EADDRNOTAVAIL) fail(error_code::invalid_argument, where + "this machine does not have the address");
  fail(error_code::unavailable, where + detail::errno_text(error.value()));
}

WEFT_DECL void listener::close() { state_->close(); }

WEFT_DECL void listener::state::close() {
  const std::lock_guard<std::mutex> lock(mutex);
  closed = true;
  std::error_code none;
  acceptor.close(none);
  pause.cancel();
}

// Waits for the next connection; false once closed.
WEFT_DECL bool listener::state::accept() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (closed) return false;
  acceptor.async_accept([self = shared_from_this()](const std::error_code& error, tcp::socket socket) { self->accepted(error, std::move(socket)); });
  return true;
}

WEFT_DECL void listener::state::accepted(const std::error_code& error, tcp::socket socket) {
  // 1. Without descriptors or memory the next attempt would fail at once: wait for others to close theirs. What a peer took back is passed over.
  if (error && error != asio::error::connection_aborted) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (closed) return;
    pause.expires_after(std::chrono::milliseconds(100));
    return pause.async_wait([self = shared_from_this()](const std::error_code& stopped) {
      if (!stopped) self->accept();
    });
  }
  // 2. Accepting goes on whatever becomes of this connection. One too many is closed at once, so that its owner learns it.
  if (!accept() || error || open->load() >= options.max_connections) return;
  open->fetch_add(1);
  std::shared_ptr<void> slot(nullptr, [count = open](std::nullptr_t) { count->fetch_sub(1); });
  on_accept(weft::connection::adopt(std::move(socket), options.connection, std::move(slot)));
}

#endif

}  // namespace weft

#endif
