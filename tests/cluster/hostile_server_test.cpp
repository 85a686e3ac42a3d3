// What a client must survive: a server that answers anything but what it should.
#include <weft/cluster/client_channel.hpp>

#include "hostile_client.hpp"
#include "listening_socket.hpp"

#include <atomic>

using hostile::frame_of;
using test_ops::error_of;
using weft::error_code;
using weft::message;
using weft::message_type;
using weft::status;
using weft::tensor_value;
using weft::wire_writer;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

// A listening socket that answers the first bytes of its one visitor with some, and each later message with others.
class liar {
 public:
  liar(std::string welcome, std::vector<std::string> answers) : address_(to_text(listening_.address())) {
    thread_ = std::thread([this, welcome = std::move(welcome), answers = std::move(answers)] { work(welcome, answers); });
  }
  ~liar() {
    listening_.stop();
    if (const int visitor = visitor_.load(); visitor >= 0) ::shutdown(visitor, SHUT_RDWR);
    thread_.join();
  }
  std::string target() const { return "weft://" + address_; }
  const std::string& address() const { return address_; }

 private:
  void work(const std::string& welcome, const std::vector<std::string>& answers) {
    const weft::detail::descriptor visitor(listening_.accept());
    visitor_ = visitor.get();
    weft::frame_reader reader(weft::connection_options{});
    std::size_t next = 0;
    for (message m;;) {
      while (reader.next(m)) {
        const std::string& answer = next == 0 ? welcome : answers[std::min(next - 1, answers.size() - 1)];
        ++next;
        for (std::size_t sent = 0; sent < answer.size();) {
          const ssize_t n = ::send(visitor.get(), answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
          if (n <= 0) break;
          sent += static_cast<std::size_t>(n);
        }
      }
      iovec parts[weft::frame_reader::max_parts];
      const ssize_t n = ::readv(visitor.get(), parts, static_cast<int>(reader.space(parts)));
      if (n <= 0) break;
      reader.filled(static_cast<std::size_t>(n));
    }
    visitor_ = -1;
  }
  fake::listening_socket listening_;
  std::string address_;
  std::atomic<int> visitor_{-1};
  std::thread thread_;
};

std::string welcome() {
  weft::hello_message hello;
  hello.incarnation = 5;
  hello.task = {"work", 0};
  return frame_of(hello.encode(message_type::welcome));
}

std::string reply(std::uint32_t request, const std::string& body, std::vector<tensor_value> tensors = {}, status result = {}) {
  weft::reply_message out;
  out.request = request;
  out.body = body;
  out.tensors = std::move(tensors);
  out.result = std::move(result);
  return frame_of(std::move(out).encode());
}

std::string number(std::uint64_t n) {
  wire_writer to;
  return to.u64(n).take();
}

std::string prepared(std::uint64_t handle) { return weft::prepared_body{handle, {}}.encode(); }

}  // namespace

TEST_CASE("hostile server: whatever answers a greeting, opening a session ends with an error") {
  weft::session_options options;
  options.connect_timeout = 500ms;
  wire_writer wide;
  wide.count(UINT32_MAX);
  std::string version = welcome();
  version[4] = '\7';
  std::string much = welcome();
  much.replace(16, 4, "\xff\xff\xff\x03");
  auto with_tensor = weft::hello_message().encode(message_type::welcome);
  with_tensor.tensors.push_back(tensor_value::scalar(1.f));
  for (const std::string& answer : {"HTTP/1.1 400 Bad Request\r\n\r\n"s, std::string(1000, '\0'), version, much, welcome().substr(0, 40), frame_of(with_tensor), frame_of(weft::run_message().encode({})),
                                    frame_of(weft::detail::make_message(message_type::welcome, wide)), frame_of(weft::encode_refusal(status(error_code::unauthenticated, "not you"))), reply(1, ""), ""s}) {
    const liar server(answer, {""});
    const auto why = error_of([&] { weft::session session(server.target(), options); });
    CHECK_FALSE(why.ok());
    CHECK(why.message.find("session at " + server.target() + ": ") == 0);
  }
}

TEST_CASE("hostile server: whatever answers a request, the step ends with an error or its values") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  weft::session_options options;
  options.connect_timeout = 300ms;
  options.heartbeat = 500ms;
  options.frames.max_body = 1000;
  const tensor_value one = tensor_value::scalar(1.f);
  const std::string opened = reply(1, number(1)), ready = reply(2, prepared(1)), good = reply(3, "", {one});
  const struct {
    std::vector<std::string> answers;
    bool fine;
  } cases[] = {
      {{opened, ready, good}, true},
      {{opened, ready, reply(99, "") + reply(3, "", {one})}, true},                        // an answer that nobody waits for
      {{opened, ready, good + good + good}, true},                                         // three times the same
      {{opened + reply(2, prepared(1)) + reply(3, "", {one}), "", ""}, false},             // before it was asked for: then it is not there
      {{opened, ready, frame_of(weft::encode_refusal(status(error_code::unavailable, "enough")))}, false},
      {{opened, ready, reply(3, "")}, false},                                              // no value
      {{opened, ready, reply(3, "", {one, one})}, false},                                  // too many
      {{opened, ready, reply(3, "", {tensor_value(weft::dtype::uint8, {1001})})}, false},  // too large
      {{opened, ready, "HTTP/1.1 200 OK\r\n\r\n"}, false},
      {{opened, ready, good.substr(0, good.size() - 1)}, false},                           // never whole
      {{opened, ready, frame_of(weft::detail::make_message(message_type::reply, *std::make_unique<wire_writer>()))}, false},
      {{opened, ready, reply(3, "", {}, status(error_code::internal, std::string(10000, '\xff')))}, false},
      {{opened, reply(2, "\1\2")}, false},
      {{opened, reply(2, number(1) + "\xff\xff\xff\xff")}, false},
      {{opened, reply(2, "", {}, status(error_code::internal, "no"))}, false},
      {{reply(1, "")}, false},
      {{reply(1, "", {}, status(error_code::resource_exhausted, "full"))}, false},
      {{""}, false},  // never an answer
  };
  for (const auto& each : cases) {
    const liar server(welcome(), each.answers);
    weft::session session(server.target(), options, g);
    float value = 0;
    const auto begun = std::chrono::steady_clock::now();
    const auto why = error_of([&] { value = session.run(x); });
    INFO(static_cast<int>(&each - &cases[0]), ": ", why.text().substr(0, 300));
    CHECK(why.ok() == each.fine);
    if (each.fine) CHECK(value == 1.f);
    CHECK(std::chrono::steady_clock::now() - begun < fake::patience);
  }
}

TEST_CASE("hostile server: a value of another dtype or shape is no surprise") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  weft::session_options options;
  options.connect_timeout = 300ms;
  for (const tensor_value& value : {tensor_value::scalar(1.0), tensor_value::from<float>({2}, {1, 2}), tensor_value::from<std::string>({}, {"1"}), tensor_value(weft::dtype::float32, {0})}) {
    const liar server(welcome(), {reply(1, number(1)), reply(2, prepared(1)), reply(3, "", {value})});
    weft::session session(server.target(), options, g);
    CHECK_FALSE(error_of([&] { (void)session.run(x); }).ok());
  }
}

TEST_CASE("hostile server: a report that makes no sense is an error") {
  for (const std::string& body : {""s, std::string(100, '\xff'), number(1)}) {
    const liar server(welcome(), {reply(1, body)});
    CHECK(error_of([&] { weft::ask_server(server.address(), 500ms); }).code == error_code::invalid_argument);
  }
  const liar silent(welcome(), {""});
  CHECK(error_of([&] { weft::ask_server(silent.address(), 100ms); }).code == error_code::deadline_exceeded);
}
