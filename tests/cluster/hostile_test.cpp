// What a task server must survive: after each input others are served, and connections, descriptors and threads are back to where they were (`one_server` checks that).
#include <weft/cluster/server_core.hpp>

#include "hostile_client.hpp"
#include "test_ops.hpp"
#include "wire_nodes.hpp"

#include <cmath>
#include <limits>

using hostile::attr;
using hostile::client;
using hostile::frame_of;
using hostile::one_server;
using hostile::plain_socket;
using hostile::wire_node;
using test_ops::error_later;
using test_ops::error_of;
using test_ops::gate;
using test_ops::get;
using weft::error_code;
using weft::message;
using weft::message_type;
using weft::status;
using weft::tensor_value;
using weft::wire_writer;
using namespace std::string_literals;

namespace {

std::string header(std::uint32_t tensors, std::uint32_t table, std::uint32_t head, std::uint64_t body, std::uint8_t type = 1) {
  weft::frame_header h;
  h.type = type;
  h.tensors = tensors;
  h.table_bytes = table;
  h.head_bytes = head;
  h.body_bytes = body;
  std::string out(weft::frame_header::size, '\0');
  weft::encode_header(h, out.data());
  return out;
}

std::string hello() { return frame_of(weft::hello_message().encode()); }

// A request to prepare a step of these nodes, all of which it runs, or what `signature` says instead.
message prepare_of(std::uint64_t session, const std::vector<wire_node>& nodes, std::vector<tensor_value> tensors = {}, const std::string& signature = {}) {
  wire_writer to;
  to.u32(77).u64(session).boolean(false);
  if (signature.empty()) {
    to.count(0).count(0).count(nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i) to.u32(i);
  } else {
    to.raw(signature);
  }
  hostile::put_nodes(to, nodes);
  return weft::detail::make_message(message_type::prepare, to, std::move(tensors));
}

std::string number_list(const std::vector<std::uint32_t>& numbers) {
  wire_writer to;
  for (const std::uint32_t n : numbers) to.u32(n);
  return to.take();
}

}  // namespace

TEST_CASE("hostile: what is no greeting closes its connection") {
  auto options = test_ops::options();
  options.handshake_timeout = std::chrono::milliseconds(300);
  one_server here(options);
  const std::string good = hello();
  std::string noise(1 << 20, '\0');
  std::uint32_t state = 7;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  std::vector<std::string> inputs{"GET / HTTP/1.1\r\n\r\n", noise, std::string(32, '\0'), header(0, 0, UINT32_MAX, 0), header(0, 0, 0, 5ULL | (1ULL << 63)), header(0, 0, UINT32_MAX, UINT64_MAX),
                                  header(UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX), header(0, 0, 0, 1), header(1, 12, 0, 0), header(0, 0, 0, 0), header(0, 0, 8, 0) + std::string(8, '\xff'),
                                  frame_of(weft::run_message().encode({})), "", "W", good.substr(0, 31), good.substr(0, good.size() - 1)};
  for (const int version : {0, 2, 255}) inputs.push_back(std::string(good).replace(4, 1, 1, static_cast<char>(version)));
  for (const std::size_t reserved : {std::size_t{7}, std::size_t{20}, std::size_t{23}}) inputs.push_back(std::string(good).replace(reserved, 1, 1, '\1'));
  for (const std::string& bytes : inputs) {
    plain_socket one(here.target());
    one.send(bytes);
    CHECK(one.is_closed());
    CHECK(here.served());
  }
  // Cut after any byte.
  for (std::size_t k = 0; k < good.size(); ++k) {
    plain_socket one(here.target());
    one.send(std::string_view(good).substr(0, k));
    one.finish();
    CHECK(one.is_closed());
  }
  // In single bytes it is a greeting all the same.
  plain_socket slow(here.target());
  for (const char byte : good) slow.send({&byte, 1});
  CHECK(slow.receive(4) == "WEFT");
}

TEST_CASE("hostile: a greeting whose bytes go on coming has to come to its end in time") {
  auto options = test_ops::options();
  options.handshake_timeout = std::chrono::milliseconds(300);
  one_server here(options);
  plain_socket drips(here.target());
  drips.send(header(0, 0, 1 << 20, 0));
  for (int i = 0; i < (1 << 20) && here.server.statistics().connections > 2; ++i) drips.send("x");
  CHECK(drips.is_closed());
  CHECK(here.log.has("within 300 ms"));
}

TEST_CASE("hostile: connections that are reset at once leave nothing behind") {
  one_server here;
  for (int i = 0; i < (takes_long() ? 1000 : 200); ++i) {
    plain_socket one(here.target());
    if (i % 3 == 1) one.send("WE");
    if (i % 3 == 2) one.send(hello());
    one.reset();
  }
  CHECK(here.log.size() < 20);
}

TEST_CASE("hostile: lengths are neither cut to 32 bits nor added up past 64") {
  const auto why = [](const std::string& bytes) {
    weft::frame_limits small;
    small.max_body = (std::uint64_t{1} << 31) - 1;
    small.max_head = UINT32_MAX - 1;
    return error_of([&] { weft::decode_header(bytes.data(), small); }).message;
  };
  for (const std::uint64_t body : {std::uint64_t{1} << 31, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 5, UINT64_MAX})
    CHECK(why(header(1, 12, 0, body)) == "frame with " + std::to_string(body) + " bytes of body, at most 2147483647 are accepted (frame_limits::max_body)");
  CHECK(why(header(0, 0, UINT32_MAX, UINT64_MAX)) == "frame with 4294967295 bytes of head, at most 4294967294 are accepted (frame_limits::max_head)");
}

TEST_CASE("hostile: a client that speaks nonsense is told so and sent away") {
  one_server here;
  const weft::session_request request{5, 1, 1};
  message cut = weft::run_message().encode({}), more = cut;
  cut.head.resize(10);
  more.head += "x";
  wire_writer wide;
  wide.u32(1).u64(1).boolean(false).count(UINT32_MAX);
  weft::run_message negative;
  negative.timeout = -1;
  const struct {
    message sent;
    error_code code;
    const char* why;
  } cases[] = {
      {weft::detail::make_message(static_cast<message_type>(255), *std::make_unique<wire_writer>()), error_code::unimplemented, "a client sent message type 255, which is not known"},
      {request.encode(message_type::reply), error_code::unimplemented, "a client sent message type 20, which is not known"},
      {weft::run_part_message{1, 1, false}.encode({}), error_code::unimplemented, "a client sent message type 33, which is not known"},
      {cut, error_code::invalid_argument, "run: expected 8 more bytes, found 6 (before byte 4 of 10)"},
      {more, error_code::invalid_argument, "run: 1 bytes are left over (before byte 29 of 30)"},
      {weft::detail::make_message(message_type::prepare, wide), error_code::invalid_argument, "prepare: a list of 4294967295 elements does not fit into the 0 bytes that follow (before byte 17 of 17)"},
      {negative.encode({}), error_code::invalid_argument, "run: a step may not take -1 ms (before byte 28 of 29)"},
  };
  for (const auto& each : cases) {
    client one(here.target());
    const auto answer = one.ask(each.sent);
    CHECK(answer.result.code == each.code);
    CHECK(answer.result.message == each.why);
    CHECK_FALSE(one.next().has_value());
    CHECK(here.log.has(each.why));
  }
}

TEST_CASE("hostile: what a client asks for and is not there is an answer, not an end") {
  one_server here;
  client one(here.target());
  const auto code = [&](message m) { return one.ask(std::move(m)).result.code; };
  CHECK(code(weft::run_message{1, 9, 9, 0}.encode({})) == error_code::aborted);
  CHECK(code(weft::session_request{2, 9, 9}.encode(message_type::describe)) == error_code::not_found);
  CHECK(code(weft::session_request{3, 9, 0}.encode(message_type::close_session)) == error_code::ok);
  CHECK(code(prepare_of(9, {})) == error_code::aborted);
  one.open();
  CHECK(code(weft::run_message{4, one.session(), 9, 0}.encode({})) == error_code::not_found);
}

TEST_CASE("hostile: a request that is not answered yet does not come twice") {
  one_server here;
  gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto held = test_ops::node("TestWait", weft::constant(1.f), "");
  client one(here.target());
  REQUIRE(one.prepare(g, {held.raw()}).result.ok());
  const message request = one.run_request();
  one.send(request);
  const auto answer = one.ask(request);
  CHECK(answer.result.code == error_code::invalid_argument);
  CHECK(answer.result.message == "a client sent request " + std::to_string(one.last_request()) + " again, which is not answered yet");
  CHECK(gate::instance().wait_left(1));  // its step is cancelled
}

TEST_CASE("hostile: nodes that no graph may have are refused by name, and the connection lives") {
  one_server here;
  client one(here.target());
  const std::string type = attr("dtype", 5, "\1"), f32 = attr("T", 5, "\1");
  const auto sizes = [](const std::vector<std::int64_t>& all) {
    wire_writer to;
    to.boolean(true).count(all.size());
    for (const std::int64_t s : all) to.i64(s);
    return attr("shape", 6, to.take());
  };
  const auto named = [](std::string name) {
    wire_node n;
    n.name = std::move(name);
    return n;
  };
  const auto on = [](std::string device) {
    wire_node n;
    n.device = std::move(device);
    return n;
  };
  const wire_node first;
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += "\1\0\0\0\1\0\0\0f\x08\0\0\0\0"s;  // a list of one attribute 'f', a function without name, whose attributes follow
  const struct {
    std::vector<wire_node> nodes;
    error_code code;
    const char* why;
  } cases[] = {
      // Names.
      {{named("")}, error_code::invalid_argument, "a node has no name"},
      {{named("a b")}, error_code::invalid_argument, "the name must match"},
      {{named("^")}, error_code::invalid_argument, "the name must match"},
      {{named(":0")}, error_code::invalid_argument, "the name must match"},
      {{named("a:-1")}, error_code::invalid_argument, "the name must match"},
      {{named("a:99999999999")}, error_code::invalid_argument, "the name must match"},
      {{named("a:1:2")}, error_code::invalid_argument, "the name must match"},
      {{named("../../etc/passwd\n")}, error_code::invalid_argument, "the name must match"},
      {{named("a\0b"s)}, error_code::invalid_argument, "the name must match"},
      {{named("\xff\xfe")}, error_code::invalid_argument, "the name must match"},
      {{named(std::string(1 << 20, 'x'))}, error_code::resource_exhausted, "the graph has a name of 1048576 bytes, at most 1024 are accepted (server_options::max_name_bytes)"},
      {{named("twice"), named("twice")}, error_code::already_exists, "twice"},
      // Inputs: none of themselves, of later nodes, of outputs that are not there.
      {{{"n", "NoOp", "", {}, {0}}}, error_code::invalid_argument, "a node refers to node 0, which is not before it"},
      {{{"n", "Identity", "", {{0, 0}}, {}, "\0\0\0\0"s, f32}}, error_code::invalid_argument, "a node refers to node 0, which is not before it"},
      {{{"a", "NoOp", "", {}, {1}}, {"b", "NoOp", "", {}, {0}}}, error_code::invalid_argument, "a node refers to node 1, which is not before it"},
      {{first, {"m", "Identity", "", {{0, 0}}, {}, "\0\0\0\0"s, f32}}, error_code::invalid_argument, "output"},
      {{first, {"m", "Identity", "", {{0, UINT32_MAX}}, {}, "\0\0\0\0"s, f32}}, error_code::invalid_argument, "output"},
      // Ops, devices.
      {{{"n", "Custom"}}, error_code::unimplemented, "op 'Custom' is not known to task /job:work/task:0"},
      {{{"n", ""}}, error_code::unimplemented, "op '' is not known to task"},
      {{{"n", "\xff"}}, error_code::unimplemented, "is not known to task"},
      {{on("/job:nosuch/task:0")}, error_code::invalid_argument, "nosuch"},
      {{on("/job:work/task:99999999999")}, error_code::invalid_argument, "99999999999"},
      {{on("/job:work/task:-1")}, error_code::invalid_argument, "-1"},
      {{on("/job:work/task:7")}, error_code::invalid_argument, "7"},
      {{on("job:work")}, error_code::invalid_argument, "job:work"},
      {{on("/job:a/job:b")}, error_code::invalid_argument, "/job:a/job:b"},
      {{on("//")}, error_code::invalid_argument, "//"},
      // Attributes: dtypes and shapes that do not exist, depth.
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, attr("dtype", 5, "\xff")}}, error_code::invalid_argument, "there is no dtype 255"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, attr("dtype", 5, "\x65")}}, error_code::invalid_argument, "dtype"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, attr("dtype", 5, "\0"s)}}, error_code::invalid_argument, "dtype"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, attr("dtype", 1, "\4\0\0\0f32x"s)}}, error_code::invalid_argument, "dtype"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, attr("dtype", 99, "\1")}}, error_code::invalid_argument, "there is no kind of attribute 99"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, sizes(std::vector<std::int64_t>(1000, 1))}}, error_code::invalid_argument, "a shape has 1000 dimensions"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, sizes({-2})}}, error_code::invalid_argument, "a dimension of a shape is -2, expected -1 (unknown) or more"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, sizes({1, std::numeric_limits<std::int64_t>::min()})}}, error_code::invalid_argument, "a dimension of a shape is -9223372036854775808"},
      {{{"n", "Placeholder", "", {}, {}, "\0\0\0\0"s, sizes({std::int64_t{1} << 62, std::int64_t{1} << 62})}}, error_code::invalid_argument, "the shape [4611686018427387904,4611686018427387904] has more elements than 64 bits count"},
      {{{"n", "VarHandleOp", "", {}, {}, "\0\0\0\0"s, sizes({std::numeric_limits<std::int64_t>::min()})}}, error_code::invalid_argument, "a dimension of a shape is -9223372036854775808"},
      {{{"n", "NoOp", "", {}, {}, "\0\0\0\0"s, nested + "\0\0\0\0"s}}, error_code::invalid_argument, "functions are nested more than 16 deep"},
      {{{"n", "Const", "", {}, {}, "\0\0\0\0"s, attr("value", 7, "\1\5\0\0\0"s)}}, error_code::invalid_argument, "tensor 5 is not in the message, which has 0"},
      {{{"n", "Const", "", {}, {}, "\0\0\0\0"s, attr("value", 7, "\0"s)}}, error_code::invalid_argument, "attribute 'dtype' of kind type is missing"},
      {{{"n", "NoOp", "", {}, {}, "\xff\xff\xff\xff"}}, error_code::invalid_argument, "a list of 4294967295 elements does not fit"},
  };
  for (const auto& each : cases) {
    one.open();
    const auto answer = one.ask(prepare_of(one.session(), each.nodes));
    INFO(each.nodes.back().name.substr(0, 50), " ", each.nodes.back().op, " ", each.nodes.back().device, " -> ", answer.result.text().substr(0, 300));
    CHECK(answer.result.code == each.code);
    CHECK(answer.result.text().find(each.why) != std::string::npos);
  }
}

TEST_CASE("hostile: a step may only feed, fetch and run what is there") {
  one_server here;
  client one(here.target());
  const std::vector<wire_node> nodes{{"x", "Placeholder", "", {}, {}, "\0\0\0\0"s, attr("dtype", 5, "\1")}};
  for (const auto& numbers : std::vector<std::vector<std::uint32_t>>{{1, 9, 0, 0, 0}, {0, 1, 9, 0, 0}, {0, 1, 0, 1, 0}, {0, 1, 0, UINT32_MAX, 0}, {0, 1, UINT32_MAX, UINT32_MAX, 0}, {0, 0, 1, 9}, {0, 0, 1, UINT32_MAX}, {2, 0, 0, 0, 0, 0, 0}}) {
    one.open();
    const auto answer = one.ask(prepare_of(one.session(), nodes, {}, number_list(numbers)));
    CHECK(answer.result.code == error_code::invalid_argument);
  }
  // Feeds of another number, dtype or shape.
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>("x");
  const auto y = weft::reduce_sum(x);
  client two(here.target());
  REQUIRE(two.prepare(g, {y.raw()}, {}, {x.raw()}).result.ok());
  for (const std::vector<tensor_value>& feeds : std::vector<std::vector<tensor_value>>{{}, {tensor_value::scalar(1.f)}, {tensor_value::from<double>({1}, {1})}, {tensor_value::from<float>({1}, {1}), tensor_value::from<float>({1}, {1})},
                                                                                       {tensor_value::from<std::string>({1}, {"1"})}, {tensor_value::from<float>({1, 1}, {1})}})
    CHECK(two.run(feeds).result.code == error_code::invalid_argument);
  CHECK(two.run({tensor_value::from<float>({2}, {1, 2})}).result.ok());
}

TEST_CASE("hostile: long chains and wide nodes work") {
  one_server here;
  const int nodes = takes_long() ? 1000000 : 8000, wide = takes_long() ? 100000 : 5000;
  weft::session_options plain;
  plain.connect_timeout = std::chrono::minutes(2);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  weft::tensor<float, 0> y = x;
  for (int i = 0; i < nodes; ++i) y = weft::identity(y);
  const auto sum = weft::add_n(std::vector<weft::tensor<float, 0>>(static_cast<std::size_t>(wide), x));
  weft::session session(here.target(), plain, g);
  CHECK(session.run({{x, 2.f}}, y) == 2.f);
  CHECK(session.run({{x, 2.f}}, sum) == 2.f * static_cast<float>(wide));
}

TEST_CASE("hostile: a step that fetches what it feeds is refused, and one for which nobody has to run is over at once") {
  one_server here;
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  const auto y = weft::identity(x);
  client one(here.target());
  const auto refused = one.prepare(g, {y.raw(), x.raw()}, {}, {x.raw()});
  CHECK(refused.result.code == error_code::invalid_argument);
  CHECK(refused.result.message.find("the step fetches 'x', which it is fed") != std::string::npos);
  client two(here.target());
  REQUIRE(two.prepare(g, {}, {x.raw().from}, {x.raw()}).result.ok());
  for (int i = 0; i < 3; ++i) CHECK(two.run({tensor_value::scalar(1.f)}).result.ok());
  CHECK(two.run({}).result.code == error_code::invalid_argument);
}

TEST_CASE("hostile: values that an op cannot take are errors of the step") {
  one_server here;
  const weft::graph g;
  const auto scope = g.as_default();
  const auto a = weft::placeholder<float, weft::dynamic_rank>("a"), b = weft::placeholder<float, weft::dynamic_rank>("b");
  const auto i = weft::placeholder<std::int32_t, 1>("i"), j = weft::placeholder<std::int32_t, 1>("j");
  const auto axis = weft::placeholder<std::int32_t, 0>("axis");
  const auto node = [](const char* op, std::vector<weft::output> inputs, weft::attr_map attrs = {}) {
    return weft::tensor<float, weft::dynamic_rank>(weft::output{&weft::detail::add_node(op, std::move(inputs), weft::op_name(), std::move(attrs)), 0});
  };
  const auto product = node("MatMul", {a.raw(), b.raw()}), shaped = node("Reshape", {a.raw(), i.raw()}), rows = node("GatherV2", {a.raw(), i.raw(), axis.raw()}),
             total = node("Sum", {a.raw(), i.raw()}), piece = node("Slice", {a.raw(), i.raw(), j.raw()});
  const auto quotient = weft::output{&weft::detail::add_node("Div", {i.raw(), j.raw()}, weft::op_name()), 0};
  const auto labels = node("SparseSoftmaxCrossEntropyWithLogits", {a.raw(), i.raw()});
  client one(here.target());
  const tensor_value m23 = tensor_value::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}), m45(weft::dtype::float32, {4, 5});
  const auto ints = [](std::vector<std::int32_t> v) { return tensor_value::from<std::int32_t>({static_cast<std::int64_t>(v.size())}, v); };
  const auto number = [](std::int32_t v) { return tensor_value::scalar(v); };
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min(), highest = std::numeric_limits<std::int32_t>::max();
  const struct {
    weft::output fetch;
    std::vector<weft::output> fed;
    std::vector<tensor_value> feeds;
    bool fine;
  } cases[] = {
      {product.raw(), {a.raw(), b.raw()}, {m23, m45}, false},
      {shaped.raw(), {a.raw(), i.raw()}, {m23, ints({4})}, false},
      {shaped.raw(), {a.raw(), i.raw()}, {m23, ints({-1, -1})}, false},
      {shaped.raw(), {a.raw(), i.raw()}, {m23, ints({lowest, 2})}, false},
      {rows.raw(), {a.raw(), i.raw(), axis.raw()}, {m23, ints({-1}), number(0)}, false},
      {rows.raw(), {a.raw(), i.raw(), axis.raw()}, {m23, ints({2}), number(0)}, false},
      {rows.raw(), {a.raw(), i.raw(), axis.raw()}, {m23, ints({0}), number(7)}, false},
      {rows.raw(), {a.raw(), i.raw(), axis.raw()}, {m23, ints({1}), number(0)}, true},
      {total.raw(), {a.raw(), i.raw()}, {m23, ints({7})}, false},
      {total.raw(), {a.raw(), i.raw()}, {m23, ints({-7})}, false},
      {total.raw(), {a.raw(), i.raw()}, {m23, ints({-1})}, true},
      {piece.raw(), {a.raw(), i.raw(), j.raw()}, {m23, ints({1, 1}), ints({highest, 1})}, false},
      {piece.raw(), {a.raw(), i.raw(), j.raw()}, {m23, ints({-1, 0}), ints({1, 1})}, false},
      {piece.raw(), {a.raw(), i.raw(), j.raw()}, {m23, ints({1}), ints({1})}, false},
      {labels.raw(), {a.raw(), i.raw()}, {m23, ints({0, 3})}, false},
      {labels.raw(), {a.raw(), i.raw()}, {m23, ints({0, -1})}, false},
      {quotient, {i.raw(), j.raw()}, {ints({1}), ints({0})}, false},
      {quotient, {i.raw(), j.raw()}, {ints({lowest}), ints({-1})}, true},
  };
  for (const auto& each : cases) {
    one.open();
    REQUIRE(one.prepare(g, {each.fetch}, {}, each.fed).result.ok());
    const auto answer = one.run(each.feeds);
    INFO(each.fetch.from->op(), ": ", answer.result.text());
    CHECK(answer.result.ok() == each.fine);
    if (!each.fine && each.fetch.from->op() != "SparseSoftmaxCrossEntropyWithLogits") CHECK(answer.result.code == error_code::invalid_argument);
  }
}

TEST_CASE("hostile: numbers of every kind pass bit for bit") {
  one_server here;
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>("x");
  const auto y = weft::identity(x);
  client one(here.target());
  REQUIRE(one.prepare(g, {y.raw()}, {}, {x.raw()}).result.ok());
  const std::uint32_t bits[] = {0x7fc00001, 0xffc12345, 0x7f800001, 0x7f800000, 0xff800000, 0x00000001, 0x807fffff, 0x80000000, 0};
  tensor_value v(weft::dtype::float32, {9});
  std::memcpy(v.mutable_raw_data(), bits, sizeof bits);
  const auto answer = one.run({v});
  REQUIRE(answer.result.ok());
  CHECK(std::memcmp(answer.tensors[0].raw_data(), bits, sizeof bits) == 0);
}

TEST_CASE("hostile: variables say what is wrong with their use, and count exactly") {
  one_server here;
  const weft::graph g;
  const auto scope = g.as_default();
  const auto count = weft::variable<std::int64_t, 0>(std::int64_t{0}, "count");
  const auto up = count.assign_add(std::int64_t{1});
  const auto value = count.read();
  // A shape that is known is checked when the graph is built, here and at the server; one that is not may be any, as in TensorFlow.
  const auto two_wide = weft::placeholder<std::int64_t, 1>("two_wide");
  CHECK(error_of([&] { weft::detail::add_node("AssignVariableOp", {{g.find("count"), 0}, two_wide.raw()}, weft::op_name("wide")); }).code == error_code::invalid_argument);
  const auto any = weft::placeholder<std::int64_t, weft::dynamic_rank>("any");
  const weft::node& replace = weft::detail::add_node("AssignVariableOp", {{g.find("count"), 0}, any.raw()}, weft::op_name("replace"));
  weft::session one(here.target(), {}, g), two(here.target(), {}, g);
  CHECK(error_of([&] { one.run(value); }).code == error_code::failed_precondition);
  one.run(count.initializer());
  client raw(here.target());
  REQUIRE(raw.prepare(g, {}, {&replace}, {any.raw()}).result.ok());
  CHECK(raw.run({tensor_value::scalar(1.f)}).result.code == error_code::invalid_argument);
  const int each = takes_long() ? 10000 : 500;
  const auto count_up = [&](weft::session& s) {
    const auto step = s.make_callable(up);
    for (int i = 0; i < each; ++i) step();
  };
  std::thread other([&] { count_up(two); });
  count_up(one);
  other.join();
  CHECK(one.run(value) == 2 * each);
}

TEST_CASE("hostile: a deadline of any length is a deadline") {
  one_server here;
  gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  const auto held = test_ops::node("TestWait", x, "");
  client one(here.target());
  REQUIRE(one.prepare(g, {held.raw()}).result.ok());
  const auto run = [&](std::int64_t timeout, std::uint32_t request) { return weft::run_message{request, one.session(), one.handle(), timeout}.encode({}); };
  CHECK(one.ask(run(1, 100)).result.code == error_code::deadline_exceeded);
  gate::instance().open();
  for (const std::int64_t longest : {std::int64_t{0}, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max() / 1000000 + 1}) CHECK(one.ask(run(longest, 101)).result.ok());
}

TEST_CASE("hostile: a part that is unregistered and a session that is closed while their step runs end well") {
  weft::local_cluster cluster({{"far", 1}, {"work", 1}}, test_ops::options());
  const weft::task_id work{"work", 0}, far{"far", 0};
  {
    fake::master lead(cluster.spec(), work, far, 11);
    fake::road sender(cluster.spec(), work, far, 11, weft::hello_message::role::bulk);
    REQUIRE(lead.register_part(1, far).ok());
    lead.run(1, 1);
    lead.connection().send(weft::encode_forget(message_type::unregister_part, 1));
    lead.connection().send(weft::encode_forget(message_type::forget_session, 1));
    sender.send(fake::tensor(lead.step(1), 3.f));
    const auto done = lead.answer();
    CHECK(done.first.result.ok());
    lead.run(2, 1);
    CHECK(lead.answer().first.result.code == error_code::aborted);
  }
  gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto held = test_ops::node("TestBlock", weft::constant(1.f), "");
  client one(cluster.target("work", 0));
  REQUIRE(one.prepare(g, {held.raw()}).result.ok());
  one.send(one.run_request());
  REQUIRE(gate::instance().wait_entered(1));
  one.send(weft::session_request{500, one.session(), 0}.encode(message_type::close_session));
  gate::instance().open();
  // Both are answered: the step has ended or was cancelled, and the session is closed.
  const weft::reply_message replies[] = {one.reply(), one.reply()};
  CHECK(replies[0].request != replies[1].request);
  for (const weft::reply_message& r : replies) CHECK((r.result.ok() || (r.request != 500 && r.result.code == error_code::cancelled)));
}

TEST_CASE("hostile: a server may be stopped by a kernel of its own") {
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto stopping = test_ops::node("TestCall", weft::constant(1.f), "");
  auto options = test_ops::options();
  options.log = [](const char*, const std::string&) {};
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  test_ops::call_kernel::call = [&](float x) {
    server.stop();
    return x;
  };
  weft::session session(server.target(), {}, g);
  const auto end = error_of([&] { session.run(stopping); }).code;
  CHECK((end == error_code::ok || end == error_code::cancelled));
  server.join();
  test_ops::call_kernel::call = nullptr;
}
