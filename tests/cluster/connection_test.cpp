#include <weft/cluster/connection.hpp>

#include <weft/cluster/blocking_connection.hpp>
#include <weft/cluster/listener.hpp>

#include "listening_socket.hpp"
#include "process_counts.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace std::string_literals;
using weft::blocking_connection;
using weft::connection;
using weft::connection_options;
using weft::dtype;
using weft::error_code;
using weft::message;
using weft::receive_result;
using weft::status;
using weft::tensor_value;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr auto bound = 20s;

// Values from one thread for another; every wait ends.
template <class T> class mailbox {
 public:
  void put(T value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  T take() {
    std::unique_lock<std::mutex> lock(mutex_);
    REQUIRE(changed_.wait_for(lock, bound, [this] { return !values_.empty(); }));
    T out = std::move(values_.front());
    values_.pop_front();
    return out;
  }
  std::size_t size() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return values_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

// An io_context with its thread.
class event_loop {
 public:
  event_loop() : work_(asio::make_work_guard(io)), thread_([this] { io.run(); }) {}
  ~event_loop() { stop(); }
  // No handler runs afterwards.
  void stop() {
    io.stop();
    if (thread_.joinable()) thread_.join();
  }
  // Returns when everything posted before has run.
  void settle() {
    mailbox<int> done;
    asio::post(io, [&] { done.put(1); });
    done.take();
  }
  asio::io_context io{1};

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

// A server whose connections all do the same; it echoes unless told otherwise.
class test_server {
 public:
  using handler = std::function<void(connection&, message)>;
  explicit test_server(weft::listener_options options = {}, handler on_message = nullptr, weft::host_port address = {"127.0.0.1", 0})
      : on_message_(std::move(on_message)), listener_(loop_.io, address, options, [this](std::shared_ptr<connection> c) { accepted(std::move(c)); }) {}
  // The loop still holds what its handlers use when the connections and mailboxes go.
  ~test_server() { loop_.stop(); }
  weft::host_port address() const { return listener_.address(); }
  weft::listener& listener() { return listener_; }
  event_loop& loop() { return loop_; }
  std::unique_ptr<blocking_connection> connect(const connection_options& options = {}) { return blocking_connection::connect(address(), 10s, options); }

  mailbox<message> messages;
  mailbox<status> ends;

 private:
  void accepted(std::shared_ptr<connection> c) {
    const std::weak_ptr<connection> weak = c;
    c->start(
        [this, weak](message m) {
          if (on_message_) return on_message_(*weak.lock(), std::move(m));
          weak.lock()->send(std::move(m));
        },
        [this](const status& why) { ends.put(why); });
    connections.put(std::move(c));
  }
  handler on_message_;
  event_loop loop_;

 public:
  mailbox<std::shared_ptr<connection>> connections;

 private:
  weft::listener listener_;
};

// A client without manners.
class raw_socket {
 public:
  explicit raw_socket(const weft::host_port& to) : socket_(fake::calling_socket(to)) {}
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void finish() { ::shutdown(socket_.get(), SHUT_WR); }
  // Whether the other end has closed the connection, in bounded time.
  bool closed() {
    char bytes[4096];
    ssize_t n;
    while ((n = ::recv(socket_.get(), bytes, sizeof bytes, 0)) > 0) continue;
    return n == 0 || errno == ECONNRESET;
  }
  std::string receive(std::size_t bytes) {
    std::string out(bytes, '\0');
    const ssize_t n = ::recv(socket_.get(), out.data(), bytes, MSG_WAITALL);
    out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return out;
  }
  // Closes with RST.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_ = weft::detail::descriptor();
  }

 private:
  weft::detail::descriptor socket_;
};

tensor_value bytes_of(std::size_t size, unsigned char fill) {
  tensor_value out(dtype::uint8, {static_cast<std::int64_t>(size)});
  if (size > 0) std::memset(out.mutable_raw_data(), fill, size);
  return out;
}

std::string frame_of(message m) {
  weft::frame_writer writer(std::move(m), {});
  std::string out;
  while (writer.remaining() > 0) {
    iovec part{};
    writer.gather(&part, 1, SIZE_MAX);
    out.append(static_cast<const char*>(part.iov_base), part.iov_len);
    writer.advance(part.iov_len);
  }
  return out;
}

message numbered(std::uint32_t i) {
  weft::wire_writer head;
  head.u32(i);
  return {1, 0, head.take(), {}};
}

std::uint32_t number_of(const message& m) { return weft::wire_reader(m.head).u32(); }

message receive(blocking_connection& from) {
  message m;
  REQUIRE(from.receive(m, clock_type::now() + bound) == receive_result::received);
  return m;
}

// The status of the error that a call throws.
template <class Call> status failure(Call call) {
  try {
    call();
  } catch (const weft::error& e) {
    return e.status();
  }
  return {};
}

}  // namespace

TEST_CASE("connection: a blocking client and an event loop exchange every kind of value") {
  test_server server;
  const auto client = server.connect();
  for (std::size_t tensors = 0; tensors <= 100; tensors += 10) {
    message m{9, 3, std::string(tensors * 1000, 'h'), {}};
    for (std::size_t i = 0; i < tensors; ++i) {
      if (i % 3 == 0) m.tensors.push_back(tensor_value::from<std::string>({2}, {"a\0b"s, std::string(i * 100, 'x')}));
      if (i % 3 == 1) m.tensors.push_back(bytes_of(i * 1000, static_cast<unsigned char>(i)));
      if (i % 3 == 2) m.tensors.push_back(tensor_value::scalar(static_cast<double>(i)));
    }
    client->send(m);
    const message back = receive(*client);
    CHECK(back.type == 9);
    CHECK(back.flags == 3);
    CHECK(back.head == m.head);
    CHECK((back.tensors == m.tensors));
  }
}

TEST_CASE("connection: a message of more tensors than the system takes pieces at once arrives whole, from both kinds of connection") {
  test_server server;
  const auto client = server.connect();
  message m{9, 0, "head", {}};
  for (std::size_t i = 0; i < 5000; ++i) m.tensors.push_back(bytes_of(100 + i % 7, static_cast<unsigned char>(i)));
  client->send(m);
  CHECK((receive(*client).tensors == m.tensors));
}

TEST_CASE("connection: two event loops exchange 64 MiB and do not copy what is sent") {
  test_server server;
  event_loop loop;
  mailbox<std::pair<status, std::shared_ptr<connection>>> opened;
  mailbox<message> messages;
  mailbox<status> ends;
  connection::open(loop.io, server.address(), 10s, {}, [&](const status& s, std::shared_ptr<connection> c) { opened.put({s, std::move(c)}); });
  const auto [s, client] = opened.take();
  REQUIRE(s.ok());
  CHECK(client->remote_address() == to_text(server.address()));
  client->start([&](message m) { messages.put(std::move(m)); }, [&](const status& why) { ends.put(why); });
  const tensor_value large = bytes_of(std::size_t{64} << 20, 7);
  client->send({1, 0, "first", {large}});
  CHECK_FALSE(large.writable());  // held until it is written
  client->send({1, 0, "second", {}});
  const message first = messages.take();
  CHECK(first.head == "first");
  CHECK((first.tensors[0] == large));
  CHECK(messages.take().head == "second");
  CHECK(client->queued_bytes() == 0);
  CHECK(client->bytes_sent() == client->bytes_received());
  client->close({error_code::cancelled, "enough"});
  CHECK(ends.take().message == "enough");
  CHECK(large.writable());
}

TEST_CASE("connection: messages of many threads all arrive, in the order of each") {
  test_server server;
  event_loop loop;
  mailbox<std::shared_ptr<connection>> opened;
  mailbox<message> messages;
  mailbox<status> ends;
  connection::open(loop.io, server.address(), 10s, {}, [&](const status&, std::shared_ptr<connection> c) { opened.put(std::move(c)); });
  const auto client = opened.take();
  REQUIRE(client != nullptr);
  client->start([&](message m) { messages.put(std::move(m)); }, [&](const status& why) { ends.put(why); });
  constexpr std::uint32_t threads = 4, each = 300;
  std::vector<std::thread> senders;
  for (std::uint32_t t = 0; t < threads; ++t)
    senders.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < each; ++i) {
        message m = numbered(i);
        m.type = static_cast<std::uint8_t>(t);
        if (i % 50 == 0) m.tensors.push_back(bytes_of(3 << 20, static_cast<unsigned char>(i)));
        client->send(std::move(m));
      }
    });
  for (std::thread& sender : senders) sender.join();
  std::vector<std::uint32_t> next(threads, 0);
  for (std::uint32_t i = 0; i < threads * each; ++i) {
    const message m = messages.take();
    REQUIRE(number_of(m) == next[m.type]++);
    if (number_of(m) % 50 == 0) REQUIRE(static_cast<unsigned char>(m.tensors[0].raw_data()[(3 << 20) - 1]) == number_of(m) % 256);
  }
  client->close({error_code::cancelled, "done"});
  ends.take();
}

TEST_CASE("connection: bytes may come one at a time") {
  test_server server;
  raw_socket client(server.address());
  const std::string frame = frame_of({5, 0, "head", {tensor_value::from<float>({2}, {1, 2}), tensor_value::scalar("text"s)}});
  for (const char byte : frame) client.send({&byte, 1});
  CHECK(client.receive(frame.size()) == frame);
}

TEST_CASE("connection: many small messages in one piece are answered in order") {
  test_server server;
  raw_socket client(server.address());
  std::string frames;
  for (std::uint32_t i = 0; i < 5000; ++i) frames += frame_of(numbered(i));
  std::thread sender([&] { client.send(frames); });
  CHECK(client.receive(frames.size()) == frames);
  sender.join();
}

TEST_CASE("connection: what is no frame closes that connection only") {
  test_server server;
  const auto bystander = server.connect();
  std::string size = frame_of({1, 0, "", {bytes_of(1, 1)}}).substr(0, 24) + "\x05\0\0\0\0\0\0\x80"s;
  std::string version = frame_of({1, 0, "", {}});
  version[4] = '\0';
  std::string head = frame_of({1, 0, "", {}});
  head.replace(16, 4, "\xff\xff\xff\xff");
  std::string noise;
  std::uint32_t state = 7;
  for (int i = 0; i < 1 << 20; ++i) noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const std::pair<std::string, error_code> inputs[] = {{"GET / HTTP/1.1\r\n\r\n", error_code::invalid_argument},
                                                       {noise, error_code::invalid_argument},
                                                       {size, error_code::resource_exhausted},
                                                       {head, error_code::resource_exhausted},
                                                       {version, error_code::unimplemented}};
  for (const auto& [bytes, code] : inputs) {
    raw_socket client(server.address());
    client.send(bytes);
    CHECK(client.closed());
    const status why = server.ends.take();
    CHECK(why.code == code);
    CHECK(why.message.rfind("bad message from 127.0.0.1:", 0) == 0);
  }
  bystander->send(numbered(1));
  CHECK(number_of(receive(*bystander)) == 1);
}

TEST_CASE("connection: a frame cut after any byte is a loss in the middle of a message") {
  test_server server;
  const std::string frame = frame_of({5, 0, "head", {tensor_value::from<float>({2}, {1, 2})}});
  for (std::size_t k = 0; k < frame.size(); ++k) {
    raw_socket client(server.address());
    client.send(std::string_view(frame).substr(0, k));
    client.finish();
    CHECK(client.closed());
    const status why = server.ends.take();
    CHECK(why.code == error_code::unavailable);
    CHECK(why.message == "lost the connection to " + server.connections.take()->remote_address() + ": the other end closed it" +
                             (k == 0 ? "" : ", in the middle of a message"));
  }
}

TEST_CASE("connection: resets harm nobody else, and descriptors come back") {
  test_server server;
  const auto bystander = server.connect();
  bystander->send(numbered(0));
  receive(*bystander);
  const process_counts::held before;
  for (int i = 0; i < 200; ++i) raw_socket(server.address()).reset();
  bystander->send(numbered(1));
  CHECK(number_of(receive(*bystander)) == 1);
  const auto end = clock_type::now() + bound;
  while (server.listener().open_connections() > 1 && clock_type::now() < end) server.loop().settle();
  CHECK(server.listener().open_connections() == 1);
  server.loop().settle();
  before.check_back();
}

TEST_CASE("connection: a frame that stops arriving has a deadline, an idle connection has none") {
  weft::listener_options options;
  options.connection.frame_timeout = 50ms;
  test_server server(options);
  const auto idle = server.connect();
  for (const std::size_t k : {std::size_t{1}, std::size_t{33}, std::size_t{100}}) {
    raw_socket client(server.address());
    client.send(frame_of({5, 0, "", {bytes_of(1000, 1)}}).substr(0, k));
    CHECK(client.closed());
    const status why = server.ends.take();
    CHECK(why.code == error_code::deadline_exceeded);
    CHECK(why.message.find(" for 50 ms in the middle of a message") != std::string::npos);
  }
  idle->send(numbered(1));
  CHECK(number_of(receive(*idle)) == 1);
}

// The beginning of a message that claims a gibibyte.
std::string claim() {
  std::string out = frame_of({5, 0, "", {bytes_of(4, 1)}});
  const std::uint64_t bytes = std::uint64_t{1} << 30;
  for (const std::size_t at : {std::size_t{24}, weft::frame_header::size + 4, weft::frame_header::size + 12}) weft::detail::store_little_endian(bytes, out.data() + at);
  return out;
}

TEST_CASE("connection: who sends the rest of a frame byte by byte is too slow, whole frames are not") {
  weft::listener_options options;
  options.connection.frame_timeout = 100ms;
  options.connection.frame_pace = std::uint64_t{1} << 30;
  test_server server(options);
  const auto idle = server.connect();
  raw_socket slow(server.address());
  slow.send(claim());
  const auto end = clock_type::now() + bound;
  while (server.ends.size() == 0 && clock_type::now() < end) slow.send("x");
  const status why = server.ends.take();
  CHECK(why.code == error_code::deadline_exceeded);
  CHECK(why.message.find("in the middle of a message") != std::string::npos);
  idle->send(numbered(1));
  CHECK(number_of(receive(*idle)) == 1);
}

TEST_CASE("connection: the first message can have a deadline, and so any other") {
  weft::listener_options options;
  options.connection.first_message_timeout = 50ms;
  test_server server(options);
  raw_socket silent(server.address());
  CHECK(silent.closed());
  server.connections.take();
  const status why = server.ends.take();
  CHECK(why.code == error_code::deadline_exceeded);
  CHECK(why.message.find(" within 50 ms") != std::string::npos);

  const auto client = server.connect();
  client->send(numbered(1));
  receive(*client);
  server.connections.take()->expect_message_within(20ms);
  message none;
  CHECK(failure([&] { client->receive(none, clock_type::now() + bound); }).code == error_code::unavailable);
  CHECK(server.ends.take().code == error_code::deadline_exceeded);
}

TEST_CASE("connection: past the budget a message is refused and the next one is not") {
  weft::listener_options options;
  options.connection.budget = std::make_shared<weft::receive_budget>(10 << 20);
  mailbox<message> held;
  test_server server(options, [&](connection& from, message m) {
    from.send({m.type, static_cast<std::uint8_t>(m.refused ? 1 : 0), m.head, {}});
    held.put(std::move(m));
  });
  const auto client = server.connect();
  client->send({1, 0, "fits", {bytes_of(8 << 20, 1)}});
  client->send({2, 0, "does not", {bytes_of(8 << 20, 2)}});
  client->send({3, 0, "fits", {bytes_of(1 << 20, 3)}});
  CHECK(receive(*client).flags == 0);
  const message refused = receive(*client);
  CHECK(refused.flags == 1);
  CHECK(refused.head == "does not");
  CHECK(receive(*client).flags == 0);
  for (int i = 0; i < 3; ++i) held.take();
  CHECK(options.connection.budget->used() == 0);
  client->send({2, 0, "fits now", {bytes_of(8 << 20, 2)}});
  CHECK(receive(*client).flags == 0);
}

TEST_CASE("connection: a peer that does not read holds up nobody") {
  test_server server({}, [](connection&, const message&) {});
  raw_socket stuck(server.address());
  const std::shared_ptr<connection> to = server.connections.take();
  const tensor_value large = bytes_of(std::size_t{64} << 20, 1);
  for (int i = 0; i < 10; ++i) to->send({1, 0, "", {large}});
  CHECK(to->queued_bytes() > std::size_t{500} << 20);
  const auto other = server.connect();
  server.connections.take()->send(numbered(4));
  CHECK(number_of(receive(*other)) == 4);
  to->close({error_code::aborted, "too slow"});
  CHECK(server.ends.take().message == "too slow");
  CHECK(to->queued_bytes() == 0);
  CHECK(large.writable());
}

TEST_CASE("connection: closing in the middle of a transfer is told once at both ends") {
  for (int round = 0; round < 10; ++round) {
    test_server server({}, [](connection&, const message&) {});
    event_loop loop;
    mailbox<std::shared_ptr<connection>> opened;
    mailbox<status> ends;
    connection::open(loop.io, server.address(), 10s, {}, [&](const status&, std::shared_ptr<connection> c) { opened.put(std::move(c)); });
    const auto client = opened.take();
    const auto other = server.connections.take();
    client->start([](const message&) {}, [&](const status& why) { ends.put(why); });
    std::thread sender([&] {
      for (int i = 0; i < 20; ++i) client->send({1, 0, "", {bytes_of(4 << 20, 1)}});
    });
    std::thread closer([&] {
      client->close({error_code::cancelled, "first"});
      client->close({error_code::cancelled, "second"});
    });
    const status why = ends.take();
    CHECK(why.message == "first");
    CHECK(server.ends.take().code == error_code::unavailable);
    sender.join();
    closer.join();
    CHECK(client->closed());
    CHECK(other->closed());
    loop.settle();
    server.loop().settle();
    CHECK(ends.size() == 0);
    CHECK(server.ends.size() == 0);
  }
}

TEST_CASE("connection: after close no message is delivered") {
  std::atomic<int> delivered{0};
  test_server server({}, [&](connection& from, const message&) {
    ++delivered;
    from.close({error_code::cancelled, "one is enough"});
  });
  raw_socket client(server.address());
  std::string frames;
  for (std::uint32_t i = 0; i < 1000; ++i) frames += frame_of(numbered(i));
  client.send(frames);
  CHECK(server.ends.take().message == "one is enough");
  CHECK(client.closed());
  CHECK(delivered == 1);
}

TEST_CASE("connection: an exception of the handler closes the connection with its reason") {
  test_server server({}, [](connection&, const message& m) {
    if (m.type == 1) weft::fail(error_code::invalid_argument, "bad greeting");
    throw std::runtime_error("surprise");
  });
  const auto first = server.connect(), second = server.connect();
  first->send({1, 0, "", {}});
  CHECK(server.ends.take().message == "bad greeting");
  second->send({2, 0, "", {}});
  const status why = server.ends.take();
  CHECK(why.code == error_code::internal);
  CHECK(why.message.find("surprise") != std::string::npos);
}

TEST_CASE("connection: closing when sent delivers what was sent before") {
  test_server server({}, [](connection& from, const message&) {
    from.send({1, 0, "", {bytes_of(32 << 20, 9)}});
    from.send({2, 0, "refused", {}});
    from.close_when_sent({error_code::failed_precondition, "other cluster"});
    from.send({3, 0, "too late", {}});
  });
  const auto client = server.connect();
  client->send(numbered(0));
  CHECK(receive(*client).tensors[0].bytes() == 32 << 20);
  CHECK(receive(*client).head == "refused");
  message none;
  CHECK(failure([&] { client->receive(none, clock_type::now() + bound); }).message ==
        "lost the connection to " + to_text(server.address()) + ": the other end closed it");
  CHECK(server.ends.take().message == "other cluster");
}

TEST_CASE("connection: closing when sent ends although the other end takes nothing") {
  weft::listener_options options;
  options.connection.frame_timeout = 50ms;
  test_server server(options);
  raw_socket stuck(server.address());
  const auto to = server.connections.take();
  to->send({1, 0, "", {bytes_of(64 << 20, 9)}});
  to->close_when_sent({error_code::failed_precondition, "other cluster"});
  CHECK(server.ends.take().message == "other cluster");
}

TEST_CASE("connection: what was sent before the end is still received") {
  test_server server;
  raw_socket client(server.address());
  client.send(frame_of(numbered(1)) + frame_of(numbered(2)));
  client.finish();
  CHECK(client.receive(72) == frame_of(numbered(1)) + frame_of(numbered(2)));
  CHECK(server.ends.take().code == error_code::unavailable);
}

TEST_CASE("connection: opening fails with the address and the reason") {
  event_loop loop;
  mailbox<std::pair<status, bool>> opened;
  const auto open = [&](const weft::host_port& to, std::chrono::milliseconds deadline) {
    return connection::open(loop.io, to, deadline, {}, [&](const status& s, const std::shared_ptr<connection>& c) { opened.put({s, c != nullptr}); });
  };
  const fake::reserved_port reserved;
  const weft::host_port& nobody = reserved.address();
  open(nobody, 10s);
  auto [refused, there] = opened.take();
  CHECK(refused.code == error_code::unavailable);
  CHECK(refused.message == "connection refused: no server is listening at " + to_text(nobody));
  CHECK_FALSE(there);
  open({std::string(100, 'x'), 1}, 10s);
  CHECK(opened.take().first.message == "cannot resolve host '" + std::string(100, 'x') + "'");
  test_server server;
  open({"localhost", server.address().port}, 10s);
  CHECK(opened.take().first.ok());
  open(server.address(), 0ms);
  opened.take();  // either may come first
  open(nobody, 10s)->close({error_code::cancelled, "not needed"});
  CHECK(opened.take().first.code != error_code::ok);
}

TEST_CASE("connection: connecting to what does not answer ends in time") {
  // A socket whose queue of connections is full drops the next ones.
  const fake::listening_socket full(0);
  const weft::host_port& to = full.address();
  raw_socket first(to);
  std::vector<std::unique_ptr<blocking_connection>> more;
  const status why = failure([&] {
    for (int i = 0; i < 10; ++i) more.push_back(blocking_connection::connect(to, 100ms));
  });
  CHECK(why.code == error_code::deadline_exceeded);
  CHECK(why.message == "connecting to " + to_text(to) + " timed out after 100 ms");
  event_loop loop;
  mailbox<status> opened;
  connection::open(loop.io, to, 100ms, {}, [&](const status& s, const std::shared_ptr<connection>&) { opened.put(s); });
  CHECK(opened.take().message == "connecting to " + to_text(to) + " timed out after 100 ms");
  mailbox<status> cancelled;
  connection::open(loop.io, to, 1h, {}, [&](const status& s, const std::shared_ptr<connection>&) { cancelled.put(s); })->close({error_code::cancelled, "not needed"});
  CHECK(cancelled.take().message == "not needed");
}

TEST_CASE("connection: durations are written as people say them") {
  CHECK(weft::detail::duration_text(10s) == "10 s");
  CHECK(weft::detail::duration_text(1500ms) == "1.5 s");
  CHECK(weft::detail::duration_text(1005ms) == "1.005 s");
  CHECK(weft::detail::duration_text(0ms) == "0 ms");
}

TEST_CASE("connection: a closed one may be held longer than its event loop") {
  std::shared_ptr<connection> held;
  {
    test_server server;
    const auto client = server.connect();
    held = server.connections.take();
    held->close({error_code::cancelled, "stop"});
    server.ends.take();
  }
  CHECK(held->closed());
  held->send({1, 0, "", {bytes_of(10, 1)}});
  held->close({error_code::cancelled, "again"});
  held->expect_message_within(1s);
}

TEST_CASE("connection: everything may be destroyed while handlers wait") {
  for (const bool run : {false, true}) {
    auto io = std::make_unique<asio::io_context>(1);
    auto listener = std::make_unique<weft::listener>(*io, weft::host_port{"127.0.0.1", 0}, weft::listener_options(), [](const std::shared_ptr<connection>& c) {
      c->start([](const message&) {}, [](const status&) {});
    });
    std::weak_ptr<connection> weak;
    {
      auto opening = connection::open(*io, listener->address(), 10s, {}, [](const status& s, const std::shared_ptr<connection>& c) {
        REQUIRE(s.ok());
        c->start([](const message&) {}, [](const status&) {});
        c->expect_message_within(1h);
        c->send({1, 0, "", {bytes_of(16 << 20, 1)}});
      });
      weak = opening;
    }
    const raw_socket waiting(listener->address());
    if (run)
      for (int i = 0; i < 20; ++i) io->run_one_for(100ms);
    listener.reset();
    io.reset();
    CHECK(weak.expired());
  }
}

TEST_CASE("listener: the port is bound exactly, and free again at once") {
  event_loop loop;
  const auto ignore = [](const std::shared_ptr<connection>& c) { c->start([](const message&) {}, [](const status&) {}); };
  auto first = std::make_unique<weft::listener>(loop.io, weft::host_port{"127.0.0.1", 0}, weft::listener_options(), ignore);
  const weft::host_port address = first->address();
  CHECK(address.port > 0);
  const auto client = blocking_connection::connect(address, 10s);
  const status taken = failure([&] { weft::listener(loop.io, address, {}, ignore); });
  CHECK(taken.code == error_code::unavailable);
  CHECK(taken.message == "cannot listen on " + to_text(address) + ": address already in use by this process itself; is the task served already?");
  first.reset();
  const weft::listener again(loop.io, address, {}, ignore);
  CHECK(again.address() == address);
  CHECK(failure([&] { weft::listener(loop.io, {"192.0.2.1", 0}, {}, ignore); }).message == "cannot listen on 192.0.2.1:0: this machine does not have the address");
  CHECK(failure([&] { weft::listener(loop.io, {std::string(100, 'x'), 1}, {}, ignore); }).code == error_code::invalid_argument);
}

TEST_CASE("listener: the port of a calling end is no hindrance, while the connection lives and while its port lingers") {
  event_loop loop;
  const auto ignore = [](const std::shared_ptr<connection>& c) { c->start([](const message&) {}, [](const status&) {}); };
  const auto can_listen = [&](const weft::host_port& at) { return weft::listener(loop.io, at, {}, ignore).address() == at; };
  test_server server;
  const auto end_of = [](const connection& accepted) { return weft::parse_host_port(accepted.remote_address()); };
  // 1. Of both kinds of connection.
  auto blocking = server.connect();
  const weft::host_port first = end_of(*server.connections.take());
  CHECK(can_listen(first));
  blocking.reset();
  server.ends.take();
  CHECK(can_listen(first));
  mailbox<std::shared_ptr<connection>> opened;
  connection::open(loop.io, server.address(), 10s, {}, [&](const status& result, std::shared_ptr<connection> c) {
    CHECK(result.ok());
    opened.put(std::move(c));
  });
  auto on_loop = opened.take();
  const weft::host_port second = end_of(*server.connections.take());
  CHECK(can_listen(second));
  on_loop->start([](const message&) {}, [](const status&) {});
  on_loop->close(status());
  server.ends.take();
  CHECK(can_listen(second));
  // 2. Of another program's connection it is one, and that is said.
  const weft::detail::descriptor foreign(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = fake::loopback(server.address().port);
  REQUIRE(::connect(foreign.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  const weft::host_port third = end_of(*server.connections.take());
  CHECK(failure([&] { can_listen(third); }).message.find(": address already in use though no server listens there: it is, or was a minute ago, the calling end") != std::string::npos);
}

TEST_CASE("listener: IPv6 works") {
  const weft::detail::descriptor probe(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_loopback;
  if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) {
    MESSAGE("skipped: this machine has no IPv6");
    return;
  }
  test_server server({}, nullptr, {"::1", 0});
  const auto client = server.connect();
  client->send(numbered(6));
  CHECK(number_of(receive(*client)) == 6);
  CHECK(client->remote_address() == "[::1]:" + std::to_string(server.address().port));
  CHECK(server.connections.take()->remote_address().rfind("[::1]:", 0) == 0);
}

TEST_CASE("listener: a connection too many is closed, and there is room again afterwards") {
  weft::listener_options options;
  options.max_connections = 2;
  test_server server(options);
  auto first = server.connect(), second = server.connect();
  second->send(numbered(2));
  receive(*second);
  CHECK(raw_socket(server.address()).closed());
  first.reset();
  server.ends.take();
  const auto third = server.connect();
  third->send(numbered(3));
  CHECK(number_of(receive(*third)) == 3);
}

// The undefined behaviour sanitizer needs a descriptor to see whether memory can be read, and here reports objects as invalid that it only cannot look at.
TEST_CASE("listener: without descriptors it waits and goes on") {
  test_server server;
  raw_socket before(server.address());
  server.connections.take();
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  weft::detail::descriptor client(::socket(AF_INET, SOCK_STREAM, 0)), highest(::dup(client.get()));
  weft::detail::lend_port(client.get());
  const sockaddr_in address = fake::loopback(server.address().port);
  rlimit none = limit;
  none.rlim_cur = static_cast<rlim_t>(client.get());
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int connected = ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  server.loop().settle();
  const std::string frame = frame_of(numbered(1));
  before.send(frame);
  const std::string answer = before.receive(frame.size());  // others are served meanwhile
  const std::size_t accepted = server.connections.size();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(connected == 0);
  CHECK(accepted == 0);
  CHECK(answer == frame);
  server.connections.take();
}

TEST_CASE("blocking connection: connecting fails with the address and the reason") {
  const fake::reserved_port reserved;
  const weft::host_port& nobody = reserved.address();
  const status refused = failure([&] { blocking_connection::connect(nobody, 10s); });
  CHECK(refused.code == error_code::unavailable);
  CHECK(refused.message == "connection refused: no server is listening at " + to_text(nobody));
  const status unknown = failure([] { blocking_connection::connect({std::string(100, 'x'), 1}, 10s); });
  CHECK(unknown.code == error_code::unavailable);
  CHECK(unknown.message == "cannot resolve host '" + std::string(100, 'x') + "'");
  test_server server;
  const auto client = blocking_connection::connect({"localhost", server.address().port}, 10s);
  client->send(numbered(1));
  CHECK(number_of(receive(*client)) == 1);
}

TEST_CASE("blocking connection: a wait ends by its deadline or by its caller") {
  test_server server({}, [](connection&, const message&) {});
  const auto client = server.connect();
  message m;
  CHECK(client->receive(m, clock_type::now()) == receive_result::timed_out);
  CHECK(client->receive(m, clock_type::now() - 1h) == receive_result::timed_out);
  CHECK(client->receive(m, clock_type::now() + 30ms) == receive_result::timed_out);
  CHECK(client->receive(m, std::nullopt, [] { return true; }) == receive_result::cancelled);
  std::atomic<bool> cancelled{false};
  mailbox<receive_result> result;
  std::thread waiting([&] { result.put(client->receive(m, std::nullopt, [&] { return cancelled.load(); })); });
  client->wake();  // asks, and goes on waiting
  cancelled = true;
  client->wake();
  CHECK(result.take() == receive_result::cancelled);
  waiting.join();
  server.connections.take()->send(numbered(8));
  CHECK(number_of(receive(*client)) == 8);
}

TEST_CASE("blocking connection: shutdown ends every wait") {
  test_server server({}, [](connection&, const message&) {});
  const auto client = server.connect();
  mailbox<status> result;
  std::thread waiting([&] {
    result.put(failure([&] {
      message m;
      client->receive(m);
    }));
  });
  client->shutdown();
  const status why = result.take();
  waiting.join();
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message == "the connection to " + to_text(server.address()) + " was shut down");
  CHECK(failure([&] { client->send(numbered(1)); }) == why);
  server.ends.take();
}

TEST_CASE("blocking connection: losing the server is told by every later call") {
  auto server = std::make_unique<test_server>();
  const weft::host_port address = server->address();
  const auto client = server->connect();
  client->send(numbered(1));
  receive(*client);
  server->connections.take()->close({error_code::cancelled, "stop"});
  server->ends.take();
  message m;
  const status why = failure([&] { client->receive(m, clock_type::now() + bound); });
  CHECK(why.message == "lost the connection to " + to_text(address) + ": the other end closed it");
  CHECK(failure([&] { client->receive(m); }) == why);
  CHECK(failure([&] { client->send(numbered(1)); }) == why);
}

TEST_CASE("blocking connection: a server that takes nothing has a deadline") {
  const fake::listening_socket mute;
  connection_options options;
  options.frame_timeout = 50ms;
  const auto client = blocking_connection::connect(mute.address(), 10s, options);
  const status why = failure([&] { client->send({1, 0, "", {bytes_of(64 << 20, 1)}}); });
  CHECK(why.code == error_code::deadline_exceeded);
  CHECK(why.message == client->remote_address() + " took nothing of a message for 50 ms");
}

TEST_CASE("blocking connection: an answer that comes byte by byte is too slow") {
  const fake::listening_socket server;
  connection_options options;
  options.frame_timeout = 40ms;
  options.frame_pace = std::uint64_t{1} << 30;
  const auto client = blocking_connection::connect(server.address(), 10s, options);
  const weft::detail::descriptor other(server.accept());
  std::atomic<bool> over{false};
  std::thread drips([&] {
    const std::string begin = claim();
    static_cast<void>(!::send(other.get(), begin.data(), begin.size(), MSG_NOSIGNAL));
    while (!over && ::send(other.get(), "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::yield();
  });
  const status why = failure([&] {
    message m;
    client->receive(m, clock_type::now() + bound);
  });
  over = true;
  drips.join();
  CHECK(why.code == error_code::deadline_exceeded);
  CHECK(why.message.find("in the middle of a message") != std::string::npos);
}

TEST_CASE("blocking connection: a bad or unfinished answer ends it") {
  const auto answer = [](const std::string& bytes) {
    const fake::listening_socket server;
    connection_options options;
    options.frame_timeout = 50ms;
    const auto client = blocking_connection::connect(server.address(), 10s, options);
    const weft::detail::descriptor other(server.accept());
    REQUIRE(::send(other.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    return failure([&] {
      message m;
      client->receive(m, clock_type::now() + bound);
    });
  };
  CHECK(answer("HTTP/1.1 400 Bad Request\r\n\r\n").code == error_code::invalid_argument);
  const status silent = answer(frame_of(numbered(1)).substr(0, 33));
  CHECK(silent.code == error_code::deadline_exceeded);
  CHECK(silent.message.find("for 50 ms in the middle of a message") != std::string::npos);
}
