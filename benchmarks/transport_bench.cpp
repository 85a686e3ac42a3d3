// Messages against bare sockets, between two processes on one machine: one JSON line per case. The bare peers move the same number of
// bytes with blocking sockets or with Asio, whichever is faster, and allocate nothing in the loop.

#include <weft/cluster/blocking_connection.hpp>
#include <weft/cluster/connection.hpp>
#include <weft/cluster/listener.hpp>

#include <asio/read.hpp>
#include <asio/write.hpp>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using tcp = asio::ip::tcp;
using clock_type = std::chrono::steady_clock;
constexpr std::size_t mebibyte = std::size_t{1} << 20;

double micros(clock_type::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// A process that serves on a port of its own choice until this object ends.
class server_process {
 public:
  explicit server_process(const std::function<void(const std::function<void(int)>&)>& serve) {
    int ends[2];
    if (::pipe(ends) != 0) die("pipe");
    pid_ = ::fork();
    if (pid_ < 0) die("fork");
    if (pid_ == 0) {
      serve([&](int port) {
        if (::write(ends[1], &port, sizeof port) != sizeof port) die("write");
      });
      std::_Exit(0);
    }
    if (::read(ends[0], &port_, sizeof port_) != sizeof port_) die("read");
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~server_process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int port() const { return port_; }

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

void receive_all(int socket, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, to, std::min(bytes, mebibyte), 0);
    if (n <= 0) std::_Exit(0);
    to += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void send_all(int socket, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::send(socket, from, std::min(bytes, mebibyte), MSG_NOSIGNAL);
    if (n <= 0) std::_Exit(0);
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

// Answers `bytes` bytes with `answer` bytes, with blocking sockets.
void serve_blocking(const std::function<void(int)>& ready, std::size_t bytes, std::size_t answer) {
  asio::io_context io(1);
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  ready(acceptor.local_endpoint().port());
  tcp::socket peer = acceptor.accept();
  peer.set_option(tcp::no_delay(true));
  std::vector<char> data(std::max(bytes, answer), 'x');
  for (;;) {
    receive_all(peer.native_handle(), data.data(), bytes);
    send_all(peer.native_handle(), data.data(), answer);
  }
}

// The same with an event loop of Asio.
void serve_asio(const std::function<void(int)>& ready, std::size_t bytes, std::size_t answer) {
  asio::io_context io(1);
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  ready(acceptor.local_endpoint().port());
  tcp::socket peer = acceptor.accept();
  peer.set_option(tcp::no_delay(true));
  peer.non_blocking(true);
  std::vector<char> data(std::max(bytes, answer), 'x');
  std::size_t have = 0;
  std::function<void()> read = [&] {
    peer.async_read_some(asio::buffer(data.data() + have, std::min(bytes - have, mebibyte)), [&](const std::error_code& error, std::size_t n) {
      if (error) std::_Exit(0);
      have += n;
      if (have == bytes) {
        have = 0;
        asio::write(peer, asio::buffer(data.data(), answer));
      }
      read();
    });
  };
  read();
  io.run();
}

// Answers each message with one that has its tensors, or none.
void serve_weft(const std::function<void(int)>& ready, bool echo) {
  asio::io_context io(1);
  weft::listener listener(io, {"127.0.0.1", 0}, {}, [echo](const std::shared_ptr<weft::connection>& c) {
    weft::connection* peer = c.get();
    c->start(
        [peer, echo](weft::message m) {
          if (!echo) m.tensors.clear();
          peer->send(std::move(m));
        },
        [](const weft::status&) {});
  });
  ready(listener.address().port);
  io.run();
}

// Microseconds of each of `rounds` calls, sorted.
std::vector<double> times(int rounds, const std::function<void()>& call) {
  for (int i = 0; i < rounds / 10 + 1; ++i) call();
  std::vector<double> out;
  for (int i = 0; i < rounds; ++i) {
    const auto start = clock_type::now();
    call();
    out.push_back(micros(clock_type::now() - start));
  }
  std::sort(out.begin(), out.end());
  return out;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

// The time of one exchange between bare sockets.
double bare(bool with_asio, std::size_t bytes, std::size_t answer, int rounds) {
  server_process server([&](const std::function<void(int)>& ready) { with_asio ? serve_asio(ready, bytes, answer) : serve_blocking(ready, bytes, answer); });
  asio::io_context io(1);
  tcp::socket peer(io);
  peer.connect({asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(server.port())});
  peer.set_option(tcp::no_delay(true));
  std::vector<char> data(std::max(bytes, answer), 'x'), back(answer);
  return median(times(rounds, [&] {
    send_all(peer.native_handle(), data.data(), bytes);
    receive_all(peer.native_handle(), back.data(), answer);
  }));
}

// The time of one exchange of messages with a tensor of so many bytes, which comes back if `echo`.
double weft_exchange(std::size_t bytes, bool echo, int rounds) {
  server_process server([&](const std::function<void(int)>& ready) { serve_weft(ready, echo); });
  const auto peer = weft::blocking_connection::connect({"127.0.0.1", server.port()}, std::chrono::seconds(10));
  weft::message m{1, 0, std::string(16, 'h'), {weft::tensor_value(weft::dtype::uint8, {static_cast<std::int64_t>(bytes)})}};
  std::memset(m.tensors[0].mutable_raw_data(), 1, bytes);
  weft::message answer;
  return median(times(rounds, [&] {
    peer->send(m);
    peer->receive(answer);
  }));
}

// Header, one row of the table with one dimension, and a head of 16 bytes.
constexpr std::size_t frame_overhead = 32 + 20 + 16;

void ping_pong(std::size_t bytes, int rounds) {
  const std::size_t frame = bytes + frame_overhead;
  double weft = 1e30, blocking = 1e30, with_asio = 1e30;
  for (int repeat = 0; repeat < 5; ++repeat) {  // in turns, so that a change of the machine's load meets all
    weft = std::min(weft, weft_exchange(bytes, true, rounds));
    blocking = std::min(blocking, bare(false, frame, frame, rounds));
    with_asio = std::min(with_asio, bare(true, frame, frame, rounds));
  }
  std::printf("{\"name\": \"ping_pong\", \"bytes\": %zu, \"weft_us\": %.2f, \"bare_blocking_us\": %.2f, \"bare_asio_us\": %.2f, \"ratio\": %.2f}\n", bytes, weft,
              blocking, with_asio, weft / std::min(blocking, with_asio));
  std::fflush(stdout);
}

void transfer(std::size_t bytes, int rounds) {
  double weft = 1e30, blocking = 1e30, with_asio = 1e30;
  for (int repeat = 0; repeat < 3; ++repeat) {
    weft = std::min(weft, weft_exchange(bytes, false, rounds));
    blocking = std::min(blocking, bare(false, bytes + frame_overhead, 48, rounds));
    with_asio = std::min(with_asio, bare(true, bytes + frame_overhead, 48, rounds));
  }
  const double raw = std::min(blocking, with_asio);
  std::printf("{\"name\": \"transfer\", \"bytes\": %zu, \"weft_us\": %.1f, \"raw_us\": %.1f, \"weft_gb_per_s\": %.2f, \"raw_gb_per_s\": %.2f, \"throughput_ratio\": %.2f}\n",
              bytes, weft, raw, static_cast<double>(bytes) / weft / 1000, static_cast<double>(bytes) / raw / 1000, raw / weft);
  std::fflush(stdout);
}

}  // namespace

// Both cases, or the one that is named.
int main(int count, char** arguments) {
  const std::string only = count > 1 ? arguments[1] : "";
  if (only != "transfer")
    for (const std::size_t bytes : {4U, 400U, 4096U}) ping_pong(bytes, 5000);
  if (only != "ping_pong")
    for (std::size_t bytes = 1024; bytes <= 256 * mebibyte; bytes *= 4)
      transfer(bytes, bytes <= mebibyte ? 1000 : static_cast<int>(std::max<std::size_t>(5, 1024 * mebibyte / bytes)));
  return 0;
}
