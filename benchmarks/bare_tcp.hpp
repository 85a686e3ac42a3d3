#ifndef WEFT_BENCHMARKS_BARE_TCP_HPP
#define WEFT_BENCHMARKS_BARE_TCP_HPP
// What a program without weft would do: processes, blocking sockets, and a stream of bytes on request.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

constexpr std::size_t mebibyte = std::size_t{1} << 20;

[[noreturn]] inline void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// A listening socket on a free port of this machine.
struct listening {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  int port = 0;
  listening() {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(socket, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(socket, 8) != 0) die("listen");
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
    port = ntohs(at.sin_port);
  }
  int accept() const {
    const int peer = ::accept(socket, nullptr, nullptr), on = 1;
    ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return peer;
  }
};

// A process that runs `body` until this object ends.
class process {
 public:
  explicit process(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ < 0) die("fork");
    if (pid_ == 0) {
      body();
      std::_Exit(0);
    }
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  ~process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

inline int connect_to(int port) {
  const int peer = ::socket(AF_INET, SOCK_STREAM, 0), on = 1;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::connect(peer, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) die("connect");
  ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return peer;
}

inline void receive_all(int socket, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, to, std::min(bytes, mebibyte), 0);
    if (n <= 0) std::_Exit(0);
    to += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

inline void send_all(int socket, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::send(socket, from, std::min(bytes, mebibyte), MSG_NOSIGNAL);
    if (n <= 0) std::_Exit(0);
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

// Sends `bytes` on request, from another process, in writes of up to 1 MiB.
class bare_stream {
 public:
  explicit bare_stream(std::size_t bytes) : data_(bytes), server_([this] { serve(); }), client_(connect_to(port_.port)) {}
  void step() {
    char go = 0;
    send_all(client_, &go, 1);
    receive_all(client_, data_.data(), data_.size());
  }

 private:
  void serve() {
    const int client = port_.accept();
    for (;;) {
      char go;
      receive_all(client, &go, 1);
      send_all(client, data_.data(), data_.size());
    }
  }
  listening port_;
  std::vector<char> data_;
  process server_;
  int client_;
};

#endif
