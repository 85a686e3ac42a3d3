#ifndef WEFT_TESTS_CLUSTER_LISTENING_SOCKET_HPP
#define WEFT_TESTS_CLUSTER_LISTENING_SOCKET_HPP
// The sockets of a test that plays a server, or a client without manners.

#include <weft/cluster/socket.hpp>
#include <weft/core/cluster_spec.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace fake {

/// A port of this machine.
inline sockaddr_in loopback(int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

/// A port of this machine: bound, so that the system gives it to nobody else, and not listened at. Whoever calls there is refused; a server of this or another process can take it.
class reserved_port {
 public:
  reserved_port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    weft::detail::lend_port(socket_.get());
    sockaddr_in here = loopback(0);
    socklen_t size = sizeof here;
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&here), size) == 0);
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&here), &size) == 0);
    address_ = {"127.0.0.1", ntohs(here.sin_port)};
  }
  const weft::host_port& address() const noexcept { return address_; }

 protected:
  weft::detail::descriptor socket_;

 private:
  weft::host_port address_;
};

/// Listens at a free port of this machine, and accepts who is asked for.
class listening_socket : public reserved_port {
 public:
  explicit listening_socket(int backlog = 4) { REQUIRE(::listen(socket_.get(), backlog) == 0); }
  /// The next visitor; -1 after `stop`.
  int accept() const { return ::accept(socket_.get(), nullptr, nullptr); }
  void stop() const { ::shutdown(socket_.get(), SHUT_RDWR); }
};

/// A socket that calls a server of this machine, and waits for nothing longer than 20 seconds. `connected`: whether it may be refused, and whether it was.
inline weft::detail::descriptor calling_socket(const weft::host_port& server, bool* connected = nullptr) {
  weft::detail::descriptor out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(server.port);
  const timeval most{20, 0};
  ::setsockopt(out.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  ::setsockopt(out.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  weft::detail::lend_port(out.get());
  const bool reached = ::connect(out.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  if (connected != nullptr) *connected = reached;
  REQUIRE((reached || connected != nullptr));
  return out;
}

}  // namespace fake

#endif
