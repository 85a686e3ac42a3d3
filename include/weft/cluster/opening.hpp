#ifndef WEFT_CLUSTER_OPENING_HPP
#define WEFT_CLUSTER_OPENING_HPP
// A connection in the making on an event loop: the host is looked up, its addresses are tried one after the other, and the transport is secured.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/socket.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace weft::detail {

/// Calls back once with the outcome of a handshake, unless the socket is closed before. Socket and stream are the owner's, whom `done` holds.
void run_handshake(asio::ip::tcp::socket& socket, secured_stream& stream, std::function<void(const status&)> done);

/// See the head of this file. All members belong to the io thread.
class opening : public std::enable_shared_from_this<opening> {
 public:
  using tcp = asio::ip::tcp;
  using handler = std::function<void(const status&, opening&)>;

  /// `done` is called once within the deadline, unless this is cancelled before.
  opening(const asio::any_io_executor& executor, host_port to, std::chrono::milliseconds deadline, std::shared_ptr<const transport_security> transport, handler done)
      : to_(std::move(to)), deadline_(deadline), transport_(std::move(transport)), done_(std::move(done)), resolver_(executor), timer_(executor), socket_(executor) {}

  void start();
  void cancel();

  /// What was made.
  tcp::socket& socket() noexcept { return socket_; }
  std::unique_ptr<secured_stream>& stream() noexcept { return stream_; }
  /// `worker1:2222 (10.0.0.7)`.
  std::string remote() const { return resolved_text(to_, tried()); }

 private:
  void connect_next();
  void secure();
  void finish(const status& result);
  // The address that was tried last.
  std::string tried() const { return next_ == 0 ? std::string() : endpoints_[next_ - 1].address().to_string(); }

  const host_port to_;
  const std::chrono::milliseconds deadline_;
  const std::shared_ptr<const transport_security> transport_;
  handler done_;
  tcp::resolver resolver_;
  asio::steady_timer timer_;
  tcp::socket socket_;
  std::unique_ptr<secured_stream> stream_;
  std::vector<tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
  int failure_ = ECONNREFUSED;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void run_handshake(asio::ip::tcp::socket& socket, secured_stream& stream, std::function<void(const status&)> done) {
  const secured_stream::progress now = stream.handshake();
  if (now == secured_stream::progress::failed) return done(stream.problem());
  if (now == secured_stream::progress::done) return done(status());
  const auto wait = now == secured_stream::progress::wants_read ? asio::ip::tcp::socket::wait_read : asio::ip::tcp::socket::wait_write;
  socket.async_wait(wait, [&socket, &stream, done = std::move(done)](const std::error_code& error) mutable {
    if (!error) run_handshake(socket, stream, std::move(done));
  });
}

WEFT_DECL void opening::start() {
  if (!done_) return;
  timer_.expires_after(bounded(deadline_));
  timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (error || !self->done_) return;
    if (self->stream_ != nullptr) return self->finish(handshake_timeout(self->remote(), self->deadline_));
    self->finish(connect_timeout(self->to_, self->deadline_, self->tried()));
  });
  std::error_code not_numeric;
  const asio::ip::address address = asio::ip::make_address(to_.host, not_numeric);
  if (!not_numeric) {
    endpoints_.emplace_back(address, static_cast<std::uint16_t>(to_.port));
    return connect_next();
  }
  resolver_.async_resolve(to_.host, std::to_string(to_.port), [self = shared_from_this()](const std::error_code& error, const tcp::resolver::results_type& found) {
    if (!self->done_) return;
    if (error) return self->finish(resolve_failure(self->to_));
    for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
    self->connect_next();
  });
}

WEFT_DECL void opening::connect_next() {
  std::error_code error;
  for (;;) {
    if (next_ == endpoints_.size()) return finish(connect_failure(to_, failure_, tried()));
    socket_.close(error);
    socket_.open(endpoints_[next_++].protocol(), error);
    if (!error) break;
    failure_ = error.value();
  }
  lend_port(socket_.native_handle());
  close_on_exec(socket_.native_handle());
  socket_.async_connect(endpoints_[next_ - 1], [self = shared_from_this()](const std::error_code& failure) {
    if (!self->done_) return;
    if (!failure && !connected_to_itself(self->socket_.native_handle())) return self->secure();
    self->failure_ = failure ? failure.value() : ECONNREFUSED;
    self->connect_next();
  });
}

WEFT_DECL void opening::secure() {
  if (transport_ == nullptr) return finish(status());
  set_no_delay(socket_.native_handle());
  stream_ = transport_->secure(socket_.native_handle(), transport_security::side::client, to_.host);
  run_handshake(socket_, *stream_, [self = shared_from_this()](const status& result) {
    if (self->done_) self->finish(result.ok() ? result : about_handshake(self->remote(), result));
  });
}

WEFT_DECL void opening::finish(const status& result) {
  const handler done = std::exchange(done_, nullptr);
  timer_.cancel();
  done(result, *this);
}

WEFT_DECL void opening::cancel() {
  done_ = nullptr;
  std::error_code none;
  timer_.cancel();
  resolver_.cancel();
  socket_.close(none);
}

#endif

}  // namespace weft::detail

#endif
