#ifndef WEFT_TESTS_CLUSTER_LISTENING_SOCKET_HPP
#define WEFT_TESTS_CLUSTER_LISTENING_SOCKET_HPP
// A socket of a test that plays a server.

#include <weft/cluster/socket.hpp>
#include <weft/core/cluster_spec.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace fake {

/// Listens at a free port of this machine, and accepts who is asked for.
class listening_socket {
 public:
  explicit listening_socket(int backlog = 4) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&here), size) == 0);
    REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&here), &size) == 0);
    REQUIRE(::listen(socket_.get(), backlog) == 0);
    address_ = {"127.0.0.1", ntohs(here.sin_port)};
  }
  const weft::host_port& address() const noexcept { return address_; }
  /// The next visitor; -1 after `stop`.
  int accept() const { return ::accept(socket_.get(), nullptr, nullptr); }
  void stop() const { ::shutdown(socket_.get(), SHUT_RDWR); }

 private:
  weft::detail::descriptor socket_;
  weft::host_port address_;
};

}  // namespace fake

#endif
