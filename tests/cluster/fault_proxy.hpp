#ifndef WEFT_TESTS_CLUSTER_FAULT_PROXY_HPP
#define WEFT_TESTS_CLUSTER_FAULT_PROXY_HPP
// A TCP proxy in this process that delays, cuts, resets, swallows or changes what passes, and a cluster whose tasks reach each other through such proxies.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/frame.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/cluster/server.hpp>
#include <weft/cluster/server_core.hpp>

#include <asio/write.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace faults {

/// From whoever connected to the server, or back.
enum class way : std::uint8_t { up, down };

/// What befalls the bytes of one direction of a connection.
struct fault {
  enum class end : std::uint8_t { never, cut, reset, black_hole };
  end how = end::never;
  /// How many bytes pass before that.
  std::uint64_t after = 0;
  /// At most so many bytes pass in one piece.
  std::size_t slice = std::size_t{64} << 10;
  /// The wait before each piece: latency, and with small slices a throttle.
  std::chrono::microseconds pause{0};
  /// What passes upwards is also sent over a second connection, whose answers are thrown away.
  bool twice = false;
  /// The byte of which the bits of `mask` are flipped, if there are any.
  std::uint64_t flip = 0;
  std::uint8_t mask = 0;
};

/// Listens at a free port and passes connections on to a server. Connections are numbered from 0.
class proxy {
 public:
  using chooser = std::function<fault(int connection, way)>;
  /// Called on the proxy's thread when a frame has passed as a whole, with its last byte's place in the direction's bytes.
  using observer = std::function<void(int connection, way, weft::message_type, std::uint64_t end)>;

  explicit proxy(weft::host_port server) : server_(std::move(server)), acceptor_(io_, {asio::ip::address_v4::loopback(), 0}), busy_(asio::make_work_guard(io_)) {
    port_ = acceptor_.local_endpoint().port();
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~proxy() {
    io_.stop();
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// For connections that come from now on.
  void choose(chooser faults) {
    const std::lock_guard<std::mutex> lock(mutex_);
    choose_ = std::move(faults);
    connections_ = 0;
  }
  /// When it returns, no observer of before is being called any more. Not to be called by an observer.
  void watch(observer sees) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      watch_ = std::move(sees);
    }
    do_between([] {});
  }
  /// From now on nothing passes in either direction, or all ends.
  void strike(fault::end how) {
    do_between([this, how] {
      for (const auto& weak : links_)
        if (const auto each = weak.lock()) each->strike(how);
    });
  }

 private:
  using tcp = asio::ip::tcp;
  struct link;
  // One direction of a connection.
  struct stream {
    stream(link& l, way w, fault f) : of(l), which(w), plan(f), pause(l.of.io_) {}
    void start() { plan.how != fault::end::never && plan.after == 0 ? end(plan.how) : read(); }
    void read();
    void end(fault::end how) {
      of.strike(how);
      if (how == fault::end::black_hole) read();
    }
    void finish(const std::error_code& error);
    void write(std::size_t bytes);
    void see(const char* bytes, std::size_t count);
    link& of;
    const way which;
    fault plan;
    asio::steady_timer pause;
    std::uint64_t passed = 0, frame_left = 0;
    bool over = false, flipped = false;
    std::array<char, 16384> buffer{};
    std::string header;
  };
  struct link : std::enable_shared_from_this<link> {
    link(proxy& p, int n, tcp::socket from, const fault& up_plan, const fault& down_plan)
        : of(p), number(n), client(std::move(from)), server(p.io_), twin(p.io_), up(*this, way::up, up_plan), down(*this, way::down, down_plan) {}
    void strike(fault::end how) {
      if (how == fault::end::black_hole) return void(swallowing = true);
      for (tcp::socket* s : {&client, &server, &twin}) {
        std::error_code none;
        if (how == fault::end::reset && s->is_open()) s->set_option(asio::socket_base::linger(true, 0), none);
        s->close(none);
      }
    }
    proxy& of;
    const int number;
    tcp::socket client, server, twin;
    bool swallowing = false;
    stream up, down;
    std::array<char, 4096> thrown_away{};
    void drain_twin() {
      twin.async_read_some(asio::buffer(thrown_away), [self = shared_from_this()](const std::error_code& e, std::size_t) {
        if (!e) self->drain_twin();
      });
    }
  };

  // Does something between two events, and waits for that.
  template <class F> void do_between(F what) {
    std::promise<void> done;
    asio::post(io_, [&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }

  void accept() {
    acceptor_.async_accept([this](const std::error_code& error, tcp::socket socket) {
      if (error) return;
      accept();
      int number = 0;
      fault up, down;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        number = connections_++;
        if (choose_) {
          up = choose_(number, way::up);
          down = choose_(number, way::down);
        }
      }
      const auto made = std::make_shared<link>(*this, number, std::move(socket), up, down);
      links_.push_back(made);
      std::error_code failed;
      const tcp::endpoint to(asio::ip::make_address(server_.host), static_cast<std::uint16_t>(server_.port));
      for (tcp::socket* s : {&made->server, &made->twin}) {
        if (failed || (s == &made->twin && !up.twice)) break;
        s->open(to.protocol(), failed);
        weft::detail::lend_port(s->native_handle());
        s->connect(to, failed);  // on this machine, at once
      }
      if (failed) return made->strike(fault::end::reset);
      for (tcp::socket* s : {&made->client, &made->server}) s->set_option(tcp::no_delay(true), failed);
      if (up.twice) made->drain_twin();
      made->up.start();
      made->down.start();
    });
  }

  const weft::host_port server_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::executor_work_guard<asio::io_context::executor_type> busy_;
  std::vector<std::weak_ptr<link>> links_;
  std::mutex mutex_;
  chooser choose_;
  observer watch_;
  int connections_ = 0;
  int port_ = 0;
  std::thread thread_;
};

inline void proxy::stream::read() {
  auto& from = which == way::up ? of.client : of.server;
  if (!from.is_open()) return;
  from.async_read_some(asio::buffer(buffer, std::min(plan.slice, buffer.size())), [this, self = of.shared_from_this()](const std::error_code& error, std::size_t bytes) {
    if (error) return finish(error);
    if (of.swallowing) return read();
    if (plan.pause.count() == 0) return write(bytes);
    pause.expires_after(plan.pause);
    pause.async_wait([this, self, bytes](const std::error_code&) { write(bytes); });
  });
}

// What one end closes is closed for the other; in a black hole nobody hears of it.
inline void proxy::stream::finish(const std::error_code& error) {
  if (of.swallowing) return;
  if (error != asio::error::eof) return of.strike(error == asio::error::connection_reset ? fault::end::reset : fault::end::cut);
  std::error_code none;
  over = true;
  if (of.up.over && of.down.over) return of.strike(fault::end::cut);
  (which == way::up ? of.server : of.client).shutdown(tcp::socket::shutdown_send, none);
}

inline void proxy::stream::write(std::size_t bytes) {
  const bool ends = plan.how != fault::end::never && passed + bytes >= plan.after;
  const std::size_t passing = ends ? static_cast<std::size_t>(plan.after - passed) : bytes;
  auto& to = which == way::up ? of.server : of.client;
  if (!to.is_open()) return;
  if (of.swallowing) return read();
  if (plan.mask != 0 && plan.flip >= passed && plan.flip - passed < passing) {
    buffer[static_cast<std::size_t>(plan.flip - passed)] ^= static_cast<char>(plan.mask);
    flipped = true;
  }
  if (which == way::up && plan.twice) {
    std::error_code none;
    asio::write(of.twin, asio::buffer(buffer, passing), none);
  }
  asio::async_write(to, asio::buffer(buffer, passing), [this, ends, passing, self = of.shared_from_this()](const std::error_code& error, std::size_t) {
    if (error) return of.strike(fault::end::cut);
    see(buffer.data(), passing);
    if (ends) return end(plan.how);
    read();
  });
}

// Follows the frames in what has passed, until something was changed in it.
inline void proxy::stream::see(const char* bytes, std::size_t count) {
  if (flipped) return void(passed += count);
  observer tell;
  {
    const std::lock_guard<std::mutex> lock(of.of.mutex_);
    tell = of.of.watch_;
  }
  for (std::size_t at = 0; at < count;) {
    constexpr std::size_t size = weft::frame_header::size;
    if (header.size() < size) {
      const std::size_t some = std::min(size - header.size(), count - at);
      header.append(bytes + at, some);
      at += some;
      passed += some;
      if (header.size() < size) return;
      const weft::frame_header h = weft::decode_header(header.data(), {});
      frame_left = h.table_bytes + h.head_bytes + h.body_bytes;
    } else {
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(frame_left, count - at));
      at += some;
      passed += some;
      frame_left -= some;
    }
    if (frame_left > 0) continue;
    const auto type = static_cast<weft::message_type>(header[5]);
    header.clear();
    if (tell) tell(of.number, which, type, passed);
  }
}

/// Servers that know each other by the addresses of proxies.
class proxied_cluster {
 public:
  proxied_cluster(const weft::cluster_spec& jobs, const weft::server_options& options) : spec(jobs) {
    weft::cluster_spec any = jobs;
    for (const weft::task_id& task : jobs.tasks()) any = any.with_address(task.job, task.index, "127.0.0.1:0");
    std::map<weft::task_id, std::unique_ptr<weft::detail::server_core>> listening;
    for (const weft::task_id& task : jobs.tasks()) {
      const auto& core = listening.emplace(task, std::make_unique<weft::detail::server_core>(any, task, options)).first->second;
      real_.emplace(task, core->address());
      doors_.emplace(task, std::make_unique<proxy>(core->address()));
      spec = spec.with_address(task.job, task.index, doors_.at(task)->address());
    }
    for (auto& [task, core] : listening) {
      core->start(spec);
      servers_.emplace(task, std::make_unique<weft::server>(std::move(core)));
    }
  }
  /// What stands before a task.
  proxy& door(const weft::task_id& task) { return *doors_.at(task); }
  const weft::host_port& real(const weft::task_id& task) const { return real_.at(task); }
  /// Past all proxies.
  std::string target(const weft::task_id& task) const { return "weft://" + to_text(real(task)); }

  weft::cluster_spec spec;

 private:
  std::map<weft::task_id, weft::host_port> real_;
  std::map<weft::task_id, std::unique_ptr<proxy>> doors_;
  std::map<weft::task_id, std::unique_ptr<weft::server>> servers_;
};

}  // namespace faults

#endif
