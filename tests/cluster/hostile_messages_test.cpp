// Every kind of message cut at every byte of its control part, with bytes left over, and registrations that no graph may have: by the decoder, and against a live server.
#include <weft/cluster/cluster_reset.hpp>

#include "hostile_client.hpp"
#include "wire_nodes.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

using hostile::attrs;
using hostile::client;
using hostile::frame_of;
using hostile::number_attr;
using hostile::one_server;
using hostile::plain_socket;
using hostile::type_attr;
using hostile::wire_node;
using test_ops::error_of;
using weft::error_code;
using weft::message;
using weft::message_type;
using weft::part_edge;
using weft::status;
using weft::task_id;
using weft::tensor_value;
using weft::wire_writer;

namespace {

const task_id work{"work", 0}, first{"fake", 0}, second{"fake", 1};
const std::string here_device = "/job:work/task:0/device:CPU:0";

enum class sender { client, task, link, server };

// A good message of each kind that has a control part, who sends it, and what reads it.
struct kind {
  const char* name;
  sender by;
  message good;
  std::function<void(const message&)> read;
};

weft::graph small_graph() {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto device = weft::with_device(here_device);
  weft::no_op("n");
  return g;
}

template <class T> std::function<void(const message&)> reads() {
  return [](const message& m) { T::decode(m); };
}

std::vector<kind> kinds() {
  const auto nodes = [](const message& m) {
    weft::wire_reader from(m.head, "prepare");
    weft::prepare_message::decode(from);
    weft::decode_nodes(from, m.tensors, weft::graph(test_ops::ops()), {100, 100, 100});
    from.finish();
  };
  const auto registration = [](const message& m) { weft::register_part_message::decode(m, weft::graph(test_ops::ops()), {100, 100, 100}); };
  const auto forget = [](const message& m) { weft::decode_forget(m); };
  status why(error_code::internal, "m");
  why.node = "n";
  const weft::graph g = small_graph();
  weft::hello_message hello;
  hello.as = weft::hello_message::role::control;
  hello.task = first;
  hello.to = work;
  hello.devices.push_back({here_device, "CPU", "host", 5});
  weft::kernel_catalogue kernels;
  kernels.add({"NoOp", "CPU", {{"T", {weft::dtype::float32}}}, 0});
  hello.kernels = std::make_shared<const weft::kernel_catalogue>(kernels);
  weft::open_session_message open;
  open.device_filters = {"/job:work"};
  weft::prepare_message prepare;
  prepare.signature.targets = {0};
  weft::register_part_message part;
  part.registration = 9;
  part.edges.push_back({5, part_edge::direction::incoming, second, weft::dtype::float32, false});
  const weft::detail::reset_message reset{1, {"c"}};
  return {
      {"greeting", sender::server, hello.encode(message_type::welcome), reads<weft::hello_message>()},
      {"refusal", sender::server, weft::encode_refusal(why, {{"work", {"h:1"}}}), [](const message& m) { weft::decode_refusal(m); }},
      {"open session", sender::client, open.encode(), reads<weft::open_session_message>()},
      {"session request", sender::client, weft::session_request{1, 1, 1}.encode(message_type::close_session), reads<weft::session_request>()},
      {"session request", sender::client, weft::session_request{1, 1, 1}.encode(message_type::list_devices), reads<weft::session_request>()},
      {"session request", sender::client, weft::session_request{1, 1, 1}.encode(message_type::describe), reads<weft::session_request>()},
      {"session request", sender::client, weft::session_request{1, 1, 1}.encode(message_type::report), reads<weft::session_request>()},
      {"session request", sender::client, weft::session_request{1, 1, 1}.encode(message_type::wait_for_tasks), reads<weft::session_request>()},
      {"session request", sender::client, weft::session_request{1, 1, 1}.encode(message_type::count_tasks), reads<weft::session_request>()},
      {"reset", sender::client, reset.encode(message_type::reset), reads<weft::detail::reset_message>()},
      {"update of the cluster", sender::client, weft::update_cluster_message{1, {{"work", {"h:1"}}}}.encode(), reads<weft::update_cluster_message>()},
      {"prepare", sender::client, prepare.encode(g.nodes(), 0), nodes},
      {"run", sender::client, weft::run_message{1, 1, 1}.encode({}), reads<weft::run_message>()},
      {"registration", sender::task, part.encode(g), registration},
      {"order to forget", sender::task, weft::encode_forget(message_type::unregister_part, 1), forget},
      {"order to forget", sender::task, weft::encode_forget(message_type::forget_session, 1), forget},
      {"order to forget", sender::link, weft::encode_forget(message_type::containers_reset, 1), forget},
      {"run part", sender::task, weft::run_part_message{1, 1}.encode({}), reads<weft::run_part_message>()},
      {"feeds of a part", sender::task, weft::encode_part_feeds(1, {}), [](const message& m) { weft::decode_part_feeds(m); }},
      {"abort", sender::task, weft::abort_part_message{1, why}.encode(), reads<weft::abort_part_message>()},
      {"reset", sender::task, reset.encode(message_type::reset_containers), reads<weft::detail::reset_message>()},
      {"registration's answer", sender::link, weft::part_registered_message{1, why}.encode(), reads<weft::part_registered_message>()},
      {"answer of a part", sender::link, weft::part_done_message{1, why}.encode({}), reads<weft::part_done_message>()},
      {"tensor", sender::task, fake::tensor({11, 1}, 1.f), reads<weft::tensor_message>()},
      {"ready", sender::link, weft::encode_ready({11, 1}), [](const message& m) { weft::decode_ready(m); }},
  };
}

message with_head(const message& m, std::string head) {
  message out = m;
  out.head = std::move(head);
  return out;
}

// What is wrong with a message's control part: too little of it, at every length, and too much.
std::vector<message> damaged(const message& m) {
  std::vector<message> out;
  for (std::size_t k = 0; k < m.head.size(); ++k) out.push_back(with_head(m, m.head.substr(0, k)));
  out.push_back(with_head(m, m.head + '\0'));
  out.push_back(with_head(m, m.head + std::string(1000, '\xff')));
  return out;
}

// A server with two more tasks in its cluster, which the test plays, and a client beside it.
struct played_cluster : one_server {
  played_cluster() : one_server(test_ops::options(), {{"fake", {"127.0.0.1:1", "127.0.0.1:2"}}, {"work", {"127.0.0.1:0"}}}), cluster(server.cluster()) {}
  ~played_cluster() {
    CHECK(process_counts::soon([&] {
      const auto now = server.statistics();
      return now.steps_begun == now.steps_ended && now.parts_begun == now.parts_ended;
    }));
  }
  weft::cluster_spec cluster;
};

}  // namespace

TEST_CASE("hostile: a control part that is cut at any byte, or is too long, is refused by name") {
  for (const kind& each : kinds()) {
    INFO(std::string(each.name), " ", static_cast<int>(each.good.type));
    CHECK(error_of([&] { each.read(each.good); }).ok());
    for (const message& m : damaged(each.good)) {
      const status why = error_of([&] { each.read(m); });
      INFO(m.head.size(), " of ", each.good.head.size(), " bytes: ", why.text());
      CHECK(why.code == error_code::invalid_argument);
      CHECK(why.message.find(each.name + std::string(": ")) == 0);
    }
  }
  // The body of a reply is what is left of its control part; its request reads it.
  weft::reply_message reply;
  reply.result = status(error_code::internal, "m");
  const message good = std::move(reply).encode();
  for (std::size_t k = 0; k < good.head.size(); ++k) CHECK(error_of([&] { weft::reply_message::decode(with_head(good, good.head.substr(0, k))); }).message.find("reply: ") == 0);
  const std::string prepared = weft::prepared_body{1, {{0, "d", "r"}}}.encode();
  for (std::size_t k = 0; k < prepared.size(); ++k) CHECK(error_of([&] { weft::prepared_body::decode(prepared.substr(0, k)); }).message.find("prepared step: ") == 0);
}

TEST_CASE("hostile: a client whose message is cut at any byte is told so, and nothing is left of it") {
  one_server here;
  std::unique_ptr<client> one;
  int refusals = 0;
  for (const kind& each : kinds()) {
    if (each.by != sender::client) continue;
    for (message m : damaged(each.good)) {
      if (one == nullptr) one = std::make_unique<client>(here.target());
      if (weft::type_of(m) == message_type::prepare) {
        one->open();
        if (m.head.size() >= 12) weft::detail::store_little_endian(one->session(), m.head.data() + 4);
      }
      one->send(m);
      const auto answer = one->next();
      REQUIRE(answer);
      const bool is_reply = weft::type_of(*answer) == message_type::reply;
      const status why = is_reply ? weft::reply_message::decode(message(*answer)).result : weft::decode_refusal(*answer);
      INFO(std::string(each.name), ", ", m.head.size(), " of ", each.good.head.size(), " bytes: ", why.text());
      CHECK(why.code == error_code::invalid_argument);
      CHECK(why.message.find(each.name + std::string(": ")) == 0);
      if (is_reply) continue;  // the nodes of a graph are read later: the session ends, not the connection
      CHECK_FALSE(one->next());
      one.reset();
      ++refusals;
    }
  }
  CHECK(refusals > 200);
  CHECK(here.server.statistics().errors[static_cast<std::size_t>(error_code::invalid_argument)] > 200);
}

TEST_CASE("hostile: a task whose message is cut at any byte loses its connection, and nothing is left of it") {
  played_cluster here;
  weft::hello_message hello;
  hello.as = weft::hello_message::role::control;
  hello.incarnation = 11;
  hello.task = first;
  hello.to = work;
  hello.cluster = here.cluster.hash();
  const std::string greeting = frame_of(hello.encode());
  int ends = 0;
  for (const kind& each : kinds()) {
    if (each.by == sender::client) continue;
    // A server's own answers, and what belongs on the road that it opened, are no better whole.
    const bool is_foreign = each.by != sender::task;
    for (const message& m : is_foreign ? std::vector<message>{each.good} : damaged(each.good)) {
      if (weft::type_of(m) == message_type::register_part && m.head.size() >= 8) continue;
      plain_socket one(here.server.target());
      one.send(greeting + frame_of(m));
      INFO(std::string(each.name), ", ", m.head.size(), " of ", each.good.head.size(), " bytes");
      CHECK(one.is_closed());
      ++ends;
    }
  }
  CHECK(ends > 100);
  // A registration with a number is answered.
  fake::road lead(here.cluster, work, first, 11);
  for (const kind& each : kinds()) {
    if (weft::type_of(each.good) != message_type::register_part) continue;
    for (const message& m : damaged(each.good)) {
      if (m.head.size() < 8) continue;
      lead.send(m);
      const auto answer = weft::part_registered_message::decode(lead.next());
      CHECK(answer.registration == 9);
      CHECK(answer.result.code == error_code::invalid_argument);
      CHECK(answer.result.message.find("registration: ") == 0);
    }
  }
}

TEST_CASE("hostile: a part that no graph has is refused, or its steps end with an error") {
  played_cluster here;
  fake::road lead(here.cluster, work, first, 11);
  const fake::road bulk(here.cluster, work, first, 11, weft::hello_message::role::bulk);
  using direction = part_edge::direction;
  wire_writer value;
  value.u8(1).u32(0);
  const wire_node one{"one", "Const", here_device, {}, {}, std::string(4, '\0'), attrs({type_attr("dtype", 1), {"value", 7, value.take()}})};
  const auto returned = [&](std::int64_t index, std::uint32_t from = 0, const char* name = "y", std::uint8_t type = 1) {
    return wire_node{name, "_Retval", here_device, {{from, 0}}, {}, std::string(4, '\0'), attrs({type_attr("T", type), number_attr("index", index)})};
  };
  const auto fed = [&](std::int64_t index) { return wire_node{"x", "_Arg", here_device, {}, {}, std::string(4, '\0'), attrs({type_attr("T", 1), number_attr("index", index)})}; };
  const auto crossing = [&](std::int64_t edge, const char* type, std::uint8_t dtype) {
    return attrs({type_attr(type, dtype), hostile::text_attr("tensor_name", "t"), hostile::text_attr("send_device", here_device), number_attr("send_device_incarnation", 0), hostile::text_attr("recv_device", here_device), number_attr("_edge", edge)});
  };
  const auto sent = [&](std::int64_t edge, std::uint32_t from = 0) { return wire_node{"s", "_Send", here_device, {{from, 0}}, {}, std::string(4, '\0'), crossing(edge, "T", 1)}; };
  const auto received = [&](std::int64_t edge, std::uint8_t type = 1) { return wire_node{"r", "_Recv", here_device, {}, {}, std::string(4, '\0'), crossing(edge, "tensor_type", type)}; };
  const auto on = [&](std::string device) {
    wire_node n;
    n.device = std::move(device);
    return n;
  };
  const auto edge = [&](direction way, task_id peer, weft::dtype type = weft::dtype::float32) { return part_edge{5, way, std::move(peer), type, false}; };
  constexpr error_code ok = error_code::ok, invalid = error_code::invalid_argument, internal = error_code::internal;
  const auto waits = error_code::cancelled;  // until it is aborted
  const struct {
    const char* what;
    std::vector<part_edge> edges;
    std::vector<wire_node> nodes;
    error_code registered, done;
  } cases[] = {
      {"a good one", {}, {one, returned(0)}, ok, ok},
      {"nothing", {}, {}, ok, ok},
      {"fetch -1", {}, {one, returned(-1)}, invalid, ok},
      {"fetch 2^31", {}, {one, returned(std::int64_t{1} << 31)}, invalid, ok},
      {"fetch 2^24", {}, {one, returned(std::int64_t{1} << 24)}, invalid, ok},
      {"fetch 2^62", {}, {one, returned(std::int64_t{1} << 62)}, invalid, ok},
      {"a fetch before which others are missing", {}, {one, returned(3)}, ok, invalid},
      {"a fetch twice", {}, {one, returned(0), returned(0, 0, "z")}, invalid, ok},
      {"a fetch of nothing", {}, {wire_node(), returned(0)}, invalid, ok},
      {"a fetch of another dtype", {}, {one, returned(0, 0, "y", 2)}, invalid, ok},
      {"feeds that nobody gives", {}, {fed(3), returned(0)}, ok, invalid},
      {"feed -1", {}, {fed(-1), returned(0)}, invalid, ok},
      {"feed 2^24", {}, {fed(std::int64_t{1} << 24), returned(0)}, invalid, ok},
      {"sends by an edge that is not there", {}, {one, sent(5)}, ok, internal},
      {"receives by an edge that is not there", {}, {received(5), returned(0)}, ok, internal},
      {"sends where it receives", {edge(direction::incoming, first)}, {one, sent(5)}, ok, internal},
      {"an edge from nobody", {edge(direction::incoming, {"nobody", 0})}, {received(5), returned(0)}, invalid, ok},
      {"an edge to nobody", {edge(direction::outgoing, {"fake", 7})}, {one, sent(5)}, invalid, ok},
      {"an edge to whom nobody can reach", {edge(direction::outgoing, second)}, {one, sent(5)}, error_code::unavailable, ok},
      {"an edge from who is not there", {edge(direction::incoming, second)}, {received(5), returned(0)}, ok, error_code::unavailable},
      {"an edge within, of another task", {edge(direction::inside, second)}, {received(5), returned(0)}, ok, waits},
      {"a value that comes of itself", {edge(direction::inside, work)}, {received(5), sent(5)}, ok, waits},
      {"a value that is received twice", {edge(direction::inside, work)}, {one, sent(5), received(5), {"r2", "_Recv", here_device, {}, {}, std::string(4, '\0'), crossing(5, "tensor_type", 1)}}, ok, internal},
      {"a value that is sent twice", {edge(direction::inside, work)}, {one, sent(5), {"s2", "_Send", here_device, {{0, 0}}, {}, std::string(4, '\0'), crossing(5, "T", 1)}}, ok, internal},
      {"a value of another dtype within", {edge(direction::inside, work)}, {one, sent(5), received(5, 2), {"m", "Neg", here_device, {{2, 0}}, {}, std::string(4, '\0'), attrs({type_attr("T", 2)})}, returned(0, 3, "y", 2)}, ok, invalid},
      {"no device", {}, {on("")}, ok, ok},
      {"a bad device", {}, {on("//"), {"m", "ControlTrigger", "//"}}, invalid, ok},
      {"a device of no kernels", {}, {{"m", "Const", "/job:work/task:0/device:NONE:0", {}, {}, std::string(4, '\0'), one.attrs}}, error_code::unimplemented, ok},
      {"an unknown op", {}, {{"m", "Custom", here_device}}, error_code::unimplemented, ok},
  };
  std::uint64_t number = 0;
  std::int64_t step = 0;
  const auto statistics = here.server.statistics();
  for (const auto& each : cases) {
    INFO(std::string(each.what));
    wire_writer head;
    head.u64(++number).u64(1).count(each.edges.size());
    for (const part_edge& e : each.edges) {
      head.i64(e.edge).enumerator(e.way).boolean(e.may_be_large).enumerator(e.dtype);
      weft::detail::encode_task(head, e.peer);
    }
    for (int i = 0; i < 5; ++i) head.boolean(false);
    hostile::put_nodes(head, each.nodes);
    lead.send(weft::detail::make_message(message_type::register_part, head, {tensor_value::scalar(1.f)}));
    const auto answer = weft::part_registered_message::decode(lead.next());
    INFO(answer.result.text());
    CHECK(answer.registration == number);
    CHECK(answer.result.code == each.registered);
    if (answer.result.ok()) {
      lead.send(weft::run_part_message{++step, number}.encode({}));
      if (each.done == waits) lead.send(weft::abort_part_message{step, status(waits, "the test aborts")}.encode());
      weft::part_done_message done;
      status root;
      do {
        done = weft::part_done_message::decode(lead.next());
        if (root.ok() || root.derived) root = done.result;
      } while (!done.finished);
      INFO(root.text());
      CHECK(done.step == step);
      CHECK(root.code == each.done);
    }
    lead.send(weft::encode_forget(message_type::unregister_part, number));
  }
  lead.send(weft::encode_forget(message_type::forget_session, 1));
  lead.settle();
  CHECK(here.server.statistics().registrations == statistics.registrations);
  CHECK(here.served());
}
