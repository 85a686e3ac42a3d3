#ifndef WEFT_TESTS_CLUSTER_FAKE_TASK_HPP
#define WEFT_TESTS_CLUSTER_FAKE_TASK_HPP
// A task that a test plays itself, message by message, against a real server.

#include <weft/cluster/blocking_connection.hpp>
#include <weft/cluster/frame_reader.hpp>
#include <weft/cluster/frame_writer.hpp>
#include <weft/cluster/part_messages.hpp>

#include "../patience.hpp"
#include "listening_socket.hpp"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fake {

using ::patience;

/// One connection to a server.
class road {
 public:
  road(const weft::cluster_spec& cluster, const weft::task_id& to) : connection_(weft::blocking_connection::connect(weft::parse_host_port(cluster.task_address(to)), patience)) {}
  /// Connects and greets as a task.
  road(const weft::cluster_spec& cluster, const weft::task_id& to, const weft::task_id& self, std::uint64_t incarnation, weft::hello_message::role as = weft::hello_message::role::control)
      : road(cluster, to) {
    weft::hello_message hello;
    hello.as = as;
    hello.incarnation = incarnation;
    hello.task = self;
    hello.to = to;
    hello.cluster = cluster.hash();
    send(hello.encode());
    CHECK(weft::type_of(next()) == weft::message_type::welcome);
  }

  void send(weft::message m) { connection_->send(std::move(m)); }
  /// The next message that is not a sign of life.
  weft::message next() {
    weft::message m;
    do {
      REQUIRE(connection_->receive(m, weft::blocking_connection::clock::now() + patience) == weft::receive_result::received);
    } while (weft::type_of(m) == weft::message_type::heartbeat);
    return m;
  }
  /// Returns when the server has taken everything that was sent here.
  void settle() {
    weft::wire_writer head;
    head.u64(0);
    send(weft::detail::make_message(weft::message_type::register_part, head));
    while (weft::type_of(next()) != weft::message_type::part_registered) continue;
  }
  /// Waits until the server closes the connection.
  bool is_closed() {
    try {
      weft::message m;
      while (connection_->receive(m, weft::blocking_connection::clock::now() + patience) == weft::receive_result::received) continue;
      return false;
    } catch (const weft::error&) {
      return true;
    }
  }

 private:
  std::unique_ptr<weft::blocking_connection> connection_;
};

/// A part that returns what comes by edge 5 from `from`.
inline weft::graph returning_part(const std::string& from, const std::string& here) {
  const weft::graph g;
  const auto add = [&](const char* op, const char* name, std::vector<weft::output> inputs, weft::attr_map attrs) -> const weft::node& {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    spec.exact_name = true;
    spec.scoped = false;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.device = here;
    return g.add(std::move(spec));
  };
  const weft::node& recv = add("_Recv", "x", {}, {{"tensor_type", weft::dtype::float32}, {"tensor_name", "edge_5_x"}, {"send_device", from}, {"recv_device", here}, {"send_device_incarnation", 0}, {"_edge", 5}});
  add("_Retval", "y", {{&recv, 0}}, {{"T", weft::dtype::float32}, {"index", 0}});
  return g;
}

/// A master that a test plays: it registers the part above and runs steps of it.
class master {
 public:
  master(const weft::cluster_spec& cluster, const weft::task_id& to, const weft::task_id& self, std::uint64_t incarnation)
      : to_(to), road_(cluster, to, self, incarnation), incarnation_(incarnation) {}

  weft::status register_part(std::uint64_t number, const weft::task_id& sender, bool may_be_large = false) {
    weft::register_part_message what;
    what.registration = number;
    what.session = 1;
    what.edges.push_back({5, weft::part_edge::direction::incoming, sender, weft::dtype::float32, may_be_large});
    road_.send(what.encode(returning_part(to_text(sender) + "/device:CPU:0", to_text(to_) + "/device:CPU:0")));
    return weft::part_registered_message::decode(road_.next()).result;
  }
  void run(std::int64_t step, std::uint64_t number) { road_.send(weft::run_part_message{step, number, false}.encode({})); }
  void abort(std::int64_t step) { road_.send(weft::abort_part_message{step, weft::status(weft::error_code::cancelled, "the test aborts")}.encode()); }
  /// The final answer about a step, with its values.
  std::pair<weft::part_done_message, std::vector<weft::tensor_value>> answer() {
    for (;;) {
      weft::message m = road_.next();
      const auto done = weft::part_done_message::decode(m);
      if (done.finished) return {done, std::move(m.tensors)};
    }
  }
  weft::step_id step(std::int64_t number) const { return {incarnation_, number}; }
  road& connection() { return road_; }

 private:
  weft::task_id to_;
  road road_;
  std::uint64_t incarnation_;
};

inline weft::message tensor(const weft::step_id& step, float value, std::int64_t edge = 5) {
  return weft::tensor_message{step, {edge, 0}, false}.encode(weft::tensor_value::scalar(value));
}

/// A listening task that a test plays: a worker that registers whatever it is given. Unless it is told to take tensors, it takes nothing from
/// its bulk connection and answers a step only when it is aborted.
class deaf_worker {
 public:
  ~deaf_worker() {
    listening_.stop();
    for (const int number : {control_.load(), bulk_.load()})
      if (number >= 0) ::shutdown(number, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    for (const int number : {control_.load(), bulk_.load()})
      if (number >= 0) ::close(number);
  }
  std::string address() const { return to_text(listening_.address()); }
  /// Serves as this task, with one device and the kernels of weft.
  void serve(weft::hello_message welcome) {
    thread_ = std::thread([this, welcome = std::move(welcome)] { work(welcome); });
  }
  int aborts() const noexcept { return aborts_; }
  /// Parts that the master has taken back.
  int unregistered() const noexcept { return unregistered_; }
  /// Messages on the control connection but signs of life.
  int messages() const noexcept { return messages_; }
  /// To be set before `serve`: called before a registration is answered.
  std::function<void()> before_registered;
  /// To be set before `serve`: what it says when it is to run a step, and when it is to register a part of this number, instead of what is right.
  std::function<std::vector<weft::message>(const weft::run_part_message&)> answers;
  std::function<std::vector<weft::message>(std::uint64_t)> registers;
  /// To be set before `serve`: each step takes one large tensor, four mebibytes at a time, with `pause` before each time; `taken` gets it, and the step is over.
  std::function<void()> pause;
  std::function<void(const weft::tensor_value&)> taken;

 private:
  static void send(int number, weft::message m) {
    weft::frame_writer frame(std::move(m), {});
    while (frame.remaining() > 0) {
      iovec parts[16];
      msghdr call{};
      call.msg_iov = parts;
      call.msg_iovlen = frame.gather(parts, 16, std::size_t{1} << 20);
      const auto n = ::sendmsg(number, &call, MSG_NOSIGNAL);
      if (n <= 0) return;
      frame.advance(static_cast<std::size_t>(n));
    }
  }
  static bool next(int number, weft::frame_reader& reader, weft::message& m) {
    while (!reader.next(m)) {
      iovec parts[weft::frame_reader::max_parts];
      const auto n = ::readv(number, parts, static_cast<int>(reader.space(parts)));
      if (n <= 0) return false;
      reader.filled(static_cast<std::size_t>(n));
    }
    return true;
  }
  int accept_and_welcome(const weft::hello_message& welcome, weft::frame_reader& reader) {
    const int number = listening_.accept();
    weft::message m;
    if (number < 0 || !next(number, reader, m)) return number;
    master_ = weft::hello_message::decode(m).incarnation;
    send(number, welcome.encode(weft::message_type::welcome));
    return number;
  }
  // Reads on until a frame is a tensor's: others are signs of life.
  static bool next_tensor(weft::frame_reader& bulk, weft::message& m) {
    while (bulk.next(m))
      if (!m.tensors.empty()) return true;
    return false;
  }
  void take_tensor(const weft::run_part_message& run, weft::frame_reader& bulk) {
    send(control_, weft::encode_ready({master_, run.step}));
    weft::message m;
    while (!next_tensor(bulk, m)) {
      pause();
      constexpr std::size_t some = std::size_t{4} << 20;
      for (std::size_t left = some; left > 0;) {
        iovec parts[weft::frame_reader::max_parts];
        (void)bulk.space(parts);
        const auto n = ::recv(bulk_, parts[0].iov_base, std::min(parts[0].iov_len, left), left == some ? 0 : MSG_DONTWAIT);
        if (n == 0) return;
        if (n < 0) break;
        bulk.filled(static_cast<std::size_t>(n));
        left -= static_cast<std::size_t>(n);
        if (next_tensor(bulk, m)) return finish(run, m);
      }
    }
    finish(run, m);
  }
  void finish(const weft::run_part_message& run, const weft::message& m) {
    taken(m.tensors.at(0));
    send(control_, weft::part_done_message{run.step, {}, true}.encode({}));
  }
  void work(const weft::hello_message& welcome) {
    weft::frame_reader control(weft::connection_options{}), bulk(weft::connection_options{});
    control_ = accept_and_welcome(welcome, control);
    bulk_ = accept_and_welcome(welcome, bulk);
    listening_.stop();  // whoever loses it finds it gone
    weft::message m;
    while (next(control_, control, m)) {
      weft::wire_reader head(m.head);
      if (weft::type_of(m) != weft::message_type::heartbeat) ++messages_;
      if (weft::type_of(m) == weft::message_type::unregister_part) ++unregistered_;
      if (weft::type_of(m) == weft::message_type::register_part && before_registered) before_registered();
      if (weft::type_of(m) == weft::message_type::run_part && answers)
        for (weft::message& each : answers(weft::run_part_message::decode(m))) send(control_, std::move(each));
      if (weft::type_of(m) == weft::message_type::register_part && registers)
        for (weft::message& each : registers(head.u64())) send(control_, std::move(each));
      else if (weft::type_of(m) == weft::message_type::register_part) send(control_, weft::part_registered_message{head.u64(), {}}.encode());
      if (weft::type_of(m) == weft::message_type::run_part && taken) take_tensor(weft::run_part_message::decode(m), bulk);
      if (weft::type_of(m) != weft::message_type::abort_part) continue;
      ++aborts_;
      send(control_, weft::part_done_message{head.i64(), weft::status(weft::error_code::cancelled, "aborted"), true}.encode({}));
    }
  }

  listening_socket listening_;
  std::atomic<int> control_{-1}, bulk_{-1}, aborts_{0}, messages_{0}, unregistered_{0};
  std::uint64_t master_ = 0;
  std::thread thread_;
};

}  // namespace fake

#endif
