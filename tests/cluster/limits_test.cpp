#include <weft/cluster/server_options.hpp>

#include "hostile_client.hpp"
#include "master_with_fake.hpp"

using hostile::client;
using hostile::frame_of;
using hostile::one_server;
using hostile::plain_socket;
using test_ops::error_later;
using test_ops::error_of;
using test_ops::gate;
using test_ops::get;
using weft::error_code;
using weft::message;
using weft::message_type;
using weft::output;
using weft::tensor_value;

namespace {

tensor_value floats(std::int64_t n) {
  tensor_value out(weft::dtype::float32, {n});
  if (n > 0) std::memset(out.mutable_raw_data(), 0, out.bytes());
  return out;
}

// A graph that a client sends: x (fed or not), and its sum.
struct small_graph {
  small_graph() {
    const auto scope = graph.as_default();
    x = weft::placeholder<float, 1>("x");
    y = weft::reduce_sum(x, "y");
    same = weft::identity(x, "same");
  }
  weft::graph graph;
  weft::tensor<float, 1> x, same;
  weft::tensor<float, 0> y;
};

// n times 1, summed.
weft::graph chain(int nodes) {
  weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> x = weft::constant(1.f, "n0");
  for (int i = 1; i < nodes; ++i) x = weft::identity(x, "n" + std::to_string(i));
  return g;
}

weft::graph with_inputs(int inputs) {
  weft::graph g;
  const auto scope = g.as_default();
  const auto one = weft::constant(1.f, "one");
  std::vector<weft::tensor<float, 0>> all(static_cast<std::size_t>(inputs), one);
  weft::add_n(all, "sum");
  return g;
}

weft::graph with_name(std::size_t length) {
  weft::graph g;
  const auto scope = g.as_default();
  weft::constant(1.f, std::string(length, 'n'));
  return g;
}

}  // namespace

TEST_CASE("limits: a graph is accepted at each limit and refused one past it") {
  auto options = test_ops::options();
  options.max_graph_nodes = 10;
  options.max_node_inputs = 5;
  options.max_name_bytes = 20;
  one_server here(options);
  const struct {
    weft::graph good, bad;
    const char* why;
  } cases[] = {
      {chain(10), chain(11), "the graph would have 11 nodes, at most 10 are accepted (server_options::max_graph_nodes)"},
      {with_inputs(5), with_inputs(6), "AddN 'sum' has 6 inputs, at most 5 are accepted (server_options::max_node_inputs)"},
      {with_name(20), with_name(21), "the graph has a name of 21 bytes, at most 20 are accepted (server_options::max_name_bytes): 'nnnnnnnnnnnnnnnnnnnnn...'"},
  };
  for (const auto& each : cases) {
    client one(here.target()), two(here.target());
    const auto accepted = one.prepare(each.good, {{each.good.nodes().back(), 0}});
    CHECK_MESSAGE(accepted.result.ok(), accepted.result.text());
    CHECK(one.run().result.ok());
    const auto refused = two.prepare(each.bad, {{each.bad.nodes().back(), 0}});
    CHECK(refused.result.code == error_code::resource_exhausted);
    CHECK(refused.result.message == each.why);
    CHECK(refused.then == weft::reply_message::advice::open_again);
    // The connection is whole, and a new session may try something smaller.
    two.open();
    CHECK(two.prepare(each.good, {{each.good.nodes().back(), 0}}).result.ok());
  }
}

TEST_CASE("limits: the filters of a session are as many as there may be tasks, and no longer than names") {
  auto options = test_ops::options();
  options.max_name_bytes = 20;
  one_server here(options);
  client one(here.target());
  weft::open_session_message what;
  const auto open = [&](std::size_t count, std::string filter) {
    ++what.request;
    what.device_filters.assign(count, std::move(filter));
    const weft::status result = one.ask(what.encode()).result;
    return result.ok() ? "" : result.message;
  };
  const std::string longest = "/job:" + std::string(15, 'j');
  CHECK(open(1025, longest) == "");
  CHECK(open(1026, longest) == "session_options::device_filters: there are 1026, at most 1025 are accepted");
  CHECK(open(1, longest + "k") == "session_options::device_filters: one has 21 bytes, at most 20 are accepted (server_options::max_name_bytes): '" + longest + "k'");
  CHECK(open(1, "/job:work") == "");
}

TEST_CASE("limits: control inputs have a limit too") {
  auto options = test_ops::options();
  options.max_node_inputs = 3;
  one_server here(options);
  for (const int n : {3, 4}) {
    const weft::graph g;
    const auto scope = g.as_default();
    std::vector<weft::operation> all;
    for (int i = 0; i < n; ++i) all.push_back(weft::no_op());
    const auto before = weft::control_dependencies(all);
    weft::no_op("last");
    client one(here.target());
    const auto answer = one.prepare(g, {}, {g.find("last")});
    CHECK(answer.result.ok() == (n == 3));
    if (n == 4) CHECK(answer.result.message == "NoOp 'last' has 4 control inputs, at most 3 are accepted (server_options::max_node_inputs)");
  }
}

TEST_CASE("limits: a message is accepted at each limit of its frame, one past it ends the connection before memory is taken") {
  const small_graph g;
  const auto with = [](auto set) {
    auto options = test_ops::options();
    set(options.frames);
    return options;
  };
  SUBCASE("bytes of the body") {
    one_server here(with([](weft::frame_limits& f) { f.max_body = 4000; }));
    client one(here.target());
    REQUIRE(one.prepare(g.graph, {g.y.raw()}, {}, {g.x.raw()}).result.ok());
    CHECK(one.run({floats(1000)}).result.ok());
    const weft::status why = one.run({floats(1001)}).result;
    CHECK(why.code == error_code::resource_exhausted);
    CHECK(why.message == "a message of this client was refused, and the connection closed (server_options::frames): frame with 4004 bytes of body, at most 4000 are accepted (frame_limits::max_body)");
    CHECK(why.task.find("/job:work/task:0") == 0);
    CHECK(here.log.has("RESOURCE_EXHAUSTED: bad message from 127.0.0.1:"));
    CHECK(here.log.has("frame with 4004 bytes of body, at most 4000 are accepted (frame_limits::max_body)"));
  }
  SUBCASE("dimensions") {
    one_server here(with([](weft::frame_limits& f) { f.max_rank = 3; }));
    for (const std::size_t rank : {std::size_t{3}, std::size_t{4}}) {
      client one(here.target());
      const std::int64_t sizes[] = {1, 1, 1, 1};
      weft::wire_writer none;
      one.send(weft::detail::make_message(message_type::heartbeat, none, {tensor_value(weft::dtype::float32, weft::shape(sizes, rank))}));
      const auto answer = one.ask(weft::session_request{7, 0, 0}.encode(message_type::list_devices));
      CHECK(answer.result.ok() == (rank == 3));
    }
    CHECK(here.log.has("frame with a table of 44 bytes for 1 tensors of at most 3 dimensions, expected 12 to 36"));
  }
  SUBCASE("tensors") {
    one_server here(with([](weft::frame_limits& f) { f.max_tensors = 2; }));
    client one(here.target());
    REQUIRE(one.prepare(g.graph, {g.y.raw()}, {}, {g.x.raw()}).result.ok());
    CHECK(one.run({floats(1), floats(1)}).result.code == error_code::invalid_argument);  // one too many for the step only
    CHECK(one.run({floats(1), floats(1), floats(1)}).result.code == error_code::resource_exhausted);
    CHECK(here.log.has("frame with 3 tensors, at most 2 are accepted (frame_limits::max_tensors)"));
  }
  SUBCASE("bytes of the head") {
    const weft::graph large = chain(3000);  // larger than what a server says of its kernels when it is greeted
    weft::prepare_message what;
    what.signature.fetches.push_back({2999, 0});
    const std::size_t head = what.encode(large.nodes(), 0).head.size();
    for (const bool fits : {true, false}) {
      one_server here(with([&](weft::frame_limits& f) { f.max_head = static_cast<std::uint32_t>(head - (fits ? 0 : 1)); }));
      client one(here.target());
      one.open();
      CHECK(one.prepare(large, {{large.nodes().back(), 0}}).result.ok() == fits);
      if (!fits) CHECK(here.log.has("frame with " + std::to_string(head) + " bytes of head, at most " + std::to_string(head - 1) + " are accepted (frame_limits::max_head)"));
    }
  }
}

TEST_CASE("limits: before it has greeted a connection may send little, and no tensors") {
  one_server here;
  weft::wire_writer head;
  head.raw(std::string((4U << 20) + 1, 'x'));
  plain_socket one(here.target()), two(here.target());
  one.send(frame_of(weft::detail::make_message(message_type::hello, head)));
  CHECK(one.is_closed());
  CHECK(here.log.has("frame with 4194305 bytes of head, at most 4194304 are accepted (frame_limits::max_head)"));
  auto hello = weft::hello_message().encode();
  hello.tensors.push_back(floats(1));
  two.send(frame_of(hello));
  CHECK(two.is_closed());
  CHECK(here.log.has("frame with 1 tensors, at most 0 are accepted (frame_limits::max_tensors)"));
}

TEST_CASE("limits: connections past the limit are told so, and there is room again afterwards") {
  auto options = test_ops::options();
  options.max_connections = 4;
  one_server here(options);  // whose client has one
  auto first = std::make_unique<client>(here.target());
  const client second(here.target()), third(here.target());
  const client fourth(here.target());
  CHECK(fourth.refusal().code == error_code::resource_exhausted);
  CHECK(fourth.refusal().message == "task /job:work/task:0 at " + here.server.cluster().task_address("work", 0) + " has 4 connections, no more are accepted (server_options::max_connections)");
  CHECK(error_of([&] { weft::session s(here.target()); }).message == "session at " + here.target() + ": " + fourth.refusal().message);
  // Those who say nothing are closed when there are too many of them too.
  std::vector<plain_socket> silent;
  for (int i = 0; i < 30; ++i) silent.emplace_back(here.target());
  CHECK(silent.back().is_closed());
  silent.clear();
  first.reset();
  const auto until = std::chrono::steady_clock::now() + fake::patience;
  bool admitted = false;
  while (!admitted && std::chrono::steady_clock::now() < until) admitted = client(here.target()).refusal().ok();
  CHECK(admitted);
  CHECK(here.server.statistics().connections_refused >= 2);
}

TEST_CASE("limits: bytes in flight are bounded for each peer and for the server") {
  auto options = test_ops::options();
  options.received_bytes = 3 << 20;
  options.received_bytes_per_peer = 2 << 20;
  one_server here(options);
  const small_graph g;
  client one(here.target());
  REQUIRE(one.prepare(g.graph, {g.y.raw()}, {}, {g.x.raw()}).result.ok());
  // What is around the elements counts too.
  constexpr std::int64_t around = 256;
  CHECK(one.run({floats((2 << 20) / 4 - around)}).result.ok());
  const auto refused = one.run({floats((2 << 20) / 4)});
  CHECK(refused.result.code == error_code::resource_exhausted);
  CHECK(refused.result.message == "the feeds of the step do not fit into what may be received (server_options::received_bytes)");
  CHECK(one.run({floats(4)}).result.ok());
  CHECK(here.server.statistics().messages_refused == 1);
  // Two that have not sent all of theirs share what the server has.
  const std::string frame = frame_of(one.run_request({floats((2 << 20) / 4 - around)}));
  const std::string hello = frame_of(weft::hello_message().encode());
  plain_socket first(here.target()), second(here.target());
  first.send(hello + frame.substr(0, frame.size() - 1));
  const auto until = std::chrono::steady_clock::now() + fake::patience;
  while (here.server.statistics().received_bytes < (2 << 20) - 8 * around && std::chrono::steady_clock::now() < until) continue;
  second.send(hello + frame);
  while (here.server.statistics().messages_refused < 2 && std::chrono::steady_clock::now() < until) continue;
  CHECK(here.server.statistics().messages_refused == 2);
}

TEST_CASE("limits: those who claim much and send little keep nobody from sending") {
  auto options = test_ops::options();
  options.received_bytes = 3 << 20;
  options.received_bytes_per_peer = 2 << 20;
  one_server here(options);
  const small_graph of;
  const std::string hello = frame_of(weft::hello_message().encode());
  weft::wire_writer graph;
  graph.raw(std::string(2000000, 'g'));
  const std::string body = frame_of(weft::run_message().encode({floats(500000)})), head = frame_of(weft::detail::make_message(message_type::prepare, graph));
  const std::uint64_t before = here.server.statistics().bytes_in;
  std::vector<plain_socket> claims;
  for (int i = 0; i < 8; ++i) {
    claims.emplace_back(here.target());
    claims.back().send(hello + (i % 2 == 0 ? body : head).substr(0, 1000));
  }
  REQUIRE(process_counts::soon([&] { return here.server.statistics().bytes_in >= before + 8 * (hello.size() + 1000); }));
  CHECK(here.server.statistics().received_bytes < 8 * weft::frame_reader::buffer_bytes + 8192);
  weft::session session(here.target(), {}, of.graph);
  const auto filled = [](std::size_t n) { return xt::xtensor<float, 1>(xt::ones<float>({n})); };
  CHECK(session.run({{of.x, filled(500000)}}, of.y) == 500000.f);
  CHECK(here.server.statistics().messages_refused == 0);
}

TEST_CASE("limits: a message that comes too slowly ends its connection, and what it held is free") {
  auto options = test_ops::options();
  options.received_bytes = 2 << 20;
  options.frame_timeout = std::chrono::milliseconds(200);
  options.frame_pace = std::size_t{1} << 30;
  one_server here(options);
  const small_graph of;
  weft::session session(here.target(), {}, of.graph);
  const std::string frame = frame_of(weft::run_message().encode({floats(250000)}));
  plain_socket slow(here.target());
  slow.send(frame_of(weft::hello_message().encode()) + frame.substr(0, 600000));
  CHECK(process_counts::soon([&] { return here.server.statistics().received_bytes >= 590000; }));
  for (const char byte : frame.substr(600000)) {
    slow.send({&byte, 1});
    if (here.server.statistics().received_bytes == 0) break;
  }
  CHECK(here.log.has("closed the connection of a client from 127.0.0.1:"));
  CHECK(here.log.has("in the middle of a message"));
  CHECK(here.server.statistics().received_bytes == 0);
  CHECK(session.run({{of.x, xt::xtensor<float, 1>(xt::ones<float>({10}))}}, of.y) == 10.f);
}

TEST_CASE("limits: a claimed body takes no memory before it arrives") {
  one_server here;
  const auto resident = [] {
    std::size_t pages = 0, all = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  };
  weft::run_message what;
  std::string frame = frame_of(what.encode({floats(4)}));
  const std::int64_t elements = std::int64_t{1} << 29;  // 2 GiB of float
  weft::detail::store_little_endian(static_cast<std::uint64_t>(elements * 4), frame.data() + 24);
  weft::detail::store_little_endian(static_cast<std::uint64_t>(elements * 4), frame.data() + 32 + 4);
  weft::detail::store_little_endian(static_cast<std::uint64_t>(elements), frame.data() + 32 + 12);
  const std::size_t before = resident();
  {
    plain_socket one(here.target());
    one.send(frame_of(weft::hello_message().encode()) + frame);
    const auto before_it = here.server.statistics().bytes_in;
    one.send(std::string(1000, 'x'));
    CHECK(process_counts::soon([&] { return here.server.statistics().bytes_in >= before_it + 1000; }));
    const auto held = here.server.statistics().received_bytes;
    CHECK(held > 0);
    CHECK(held < (1 << 20));
    if (!is_sanitized) CHECK(resident() < before + (std::size_t{64} << 20));
  }
}

TEST_CASE("limits: requests of one client that are not answered are bounded") {
  auto options = test_ops::options();
  options.max_client_requests = 3;
  one_server here(options);
  gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto held = test_ops::node("TestWait", weft::constant(1.f), "");
  client one(here.target());
  REQUIRE(one.prepare(g, {held.raw()}).result.ok());
  for (int i = 0; i < 3; ++i) one.send(one.run_request());
  const auto refused = one.run();
  CHECK(refused.request == one.last_request());
  CHECK(refused.result.code == error_code::resource_exhausted);
  CHECK(refused.result.message == "task /job:work/task:0 at " + here.server.cluster().task_address("work", 0) +
                                      " has 3 requests of this client that are not answered yet, no more are accepted (server_options::max_client_requests)");
  CHECK_FALSE(refused.result.may_have_run);
  CHECK(here.served());
  gate::instance().open();
  for (int i = 0; i < 3; ++i) CHECK(one.reply().result.ok());
  CHECK(one.run().result.ok());
}

TEST_CASE("limits: steps of all clients together are bounded") {
  auto options = test_ops::options();
  options.max_steps = 2;
  weft::local_cluster cluster({{"work", 1}}, options);
  gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  const auto held = test_ops::node("TestWait", x, "");
  weft::session first(cluster.target(), {}, g), second(cluster.target(), {}, g), third(cluster.target(), {}, g);
  auto one = error_later([&] { first.run(held); }), two = error_later([&] { second.run(held); });
  REQUIRE(gate::instance().wait_entered(2));
  const auto refused = error_of([&] { third.run(x); });
  CHECK(refused.code == error_code::resource_exhausted);
  CHECK(refused.message == "task /job:work/task:0 at " + cluster.spec().task_address("work", 0) + " leads 2 steps, 0 of this client, no more are accepted (server_options::max_steps)");
  CHECK_FALSE(refused.may_have_run);
  gate::instance().open();
  CHECK(get(one).ok());
  CHECK(get(two).ok());
  CHECK(third.run(x) == 1.f);
}

TEST_CASE("limits: who asks for much and reads nothing has to wait, others are served") {
  auto options = test_ops::options();
  options.queued_bytes_per_client = 4 << 20;
  one_server here(options);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto large = weft::ones<float>({1 << 18});  // 1 MiB
  client one(here.target());
  REQUIRE(one.prepare(g, {large.raw()}).result.ok());
  constexpr int requests = 100;
  for (int i = 0; i < requests; ++i) one.send(one.run_request());
  const auto until = std::chrono::steady_clock::now() + fake::patience;
  while (here.server.statistics().queued_bytes < (3 << 20) && std::chrono::steady_clock::now() < until) continue;
  for (int i = 0; i < 20; ++i) {
    CHECK(here.served());
    CHECK(here.server.statistics().queued_bytes < (6 << 20));
  }
  CHECK(here.server.statistics().steps_ended < 60);
  for (int i = 0; i < requests; ++i) {
    const auto answer = one.reply();
    REQUIRE(answer.result.ok());
    REQUIRE(answer.tensors[0].bytes() == 1 << 20);
  }
}

TEST_CASE("limits: many requests at once are answered in order, however late the answers are read") {
  auto options = test_ops::options();
  options.queued_bytes_per_client = 64 << 10;
  one_server here(options);
  const small_graph g;
  client one(here.target());
  REQUIRE(one.prepare(g.graph, {g.same.raw()}, {}, {g.x.raw()}).result.ok());
  const std::uint32_t requests = takes_long() ? 100000 : 20000, first = one.last_request() + 1;
  std::thread sender([&] {
    for (std::uint32_t i = 0; i < requests; ++i) one.send(one.run_request({floats(256)}));
  });
  const auto until = std::chrono::steady_clock::now() + fake::patience;
  while (here.server.statistics().queued_bytes < (32 << 10) && std::chrono::steady_clock::now() < until) continue;
  for (int i = 0; i < 20; ++i) {
    CHECK(here.served());
    CHECK(here.server.statistics().queued_bytes <= (66 << 10));
  }
  for (std::uint32_t i = 0; i < requests; ++i) {
    const auto answer = one.reply();
    REQUIRE(answer.result.ok());
    REQUIRE(answer.request == first + i);
  }
  sender.join();
}

TEST_CASE("limits: a session accepts of its server what its options say") {
  one_server here;
  const weft::graph g;
  const auto scope = g.as_default();
  const auto four = weft::ones<float>({1024});
  weft::session_options options;
  options.frames.max_body = 4096;
  weft::session fits(here.target(), options, g);
  CHECK(fits.run(four).size() == 1024);
  options.frames.max_body = 4095;
  weft::session small(here.target(), options, g);
  const auto bad = error_of([&] { small.run(four); });
  CHECK(bad.code == error_code::resource_exhausted);
  CHECK(bad.message == "bad message from " + here.server.cluster().task_address("work", 0) + ": frame with 4096 bytes of body, at most 4095 are accepted (frame_limits::max_body)");
  CHECK(bad.may_have_run);
  options = {};
  options.received_bytes = 4000;
  weft::session poor(here.target(), options, g);
  const auto refused = error_of([&] { poor.run(four); });
  CHECK(refused.code == error_code::resource_exhausted);
  CHECK(refused.message == "the fetched values do not fit into memory, or into what may be received (session_options::received_bytes)");
  CHECK(poor.run(weft::constant(1.f)) == 1.f);
}

TEST_CASE("limits: a session is told which limit of its server a message breaks, and goes on") {
  auto options = test_ops::options();
  options.frames.max_body = 1 << 20;
  one_server here(options);
  const small_graph of;
  weft::session session(here.target(), {}, of.graph);
  const auto filled = [](std::size_t n) { return xt::xtensor<float, 1>(xt::ones<float>({n})); };
  // What fits into the buffers of the sockets, and what does not: then the server closes while the client still sends.
  for (const std::size_t elements : {std::size_t{300000}, std::size_t{8000000}}) {
    CHECK(session.run({{of.x, filled(262144)}}, of.y) == 262144.f);
    const auto why = error_of([&] { session.run({{of.x, filled(elements)}}, of.y); });
    CHECK(why.code == error_code::resource_exhausted);
    CHECK(why.message == "a message of this client was refused, and the connection closed (server_options::frames): frame with " + std::to_string(4 * elements) +
                             " bytes of body, at most 1048576 are accepted (frame_limits::max_body)");
    CHECK(why.task.find("/job:work/task:0") == 0);
  }
  CHECK(session.run({{of.x, filled(10)}}, of.y) == 10.f);
}

TEST_CASE("limits: steps that wait on a connection which is closed for another's message are told why") {
  auto options = test_ops::options();
  options.frames.max_body = 4000;
  one_server here(options);
  gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto held = test_ops::node("TestWait", weft::constant(1.f), "/job:work/task:0");
  const auto x = weft::placeholder<float, 1>("x");
  const auto y = weft::reduce_sum(x);
  weft::session session(here.target(), {}, g);
  auto waiting = test_ops::error_later([&] { session.run(held); });
  REQUIRE(gate::instance().wait_entered(1));
  CHECK(error_of([&] { session.run({{x, xt::xtensor<float, 1>(xt::ones<float>({1001}))}}, y); }).code == error_code::resource_exhausted);
  const auto told = test_ops::get(waiting);
  CHECK(told.code == error_code::resource_exhausted);
  CHECK(told.may_have_run);
  gate::instance().open();
  CHECK(session.run({{x, xt::xtensor<float, 1>(xt::ones<float>({1000}))}}, y) == 1000.f);
}

TEST_CASE("limits: one client gets no more than its share of sessions and of steps, the next one gets some") {
  auto options = test_ops::options();
  options.max_sessions = options.max_steps = 5;
  one_server here(options);  // whose client has one session
  gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto held = test_ops::node("TestWait", weft::constant(1.f), "");
  client greedy(here.target()), other(here.target());
  for (int i = 0; i < 3; ++i) greedy.open();
  weft::open_session_message more;
  more.request = 1000;
  const auto refused = greedy.ask(more.encode()).result;
  const std::string task = "task /job:work/task:0 at " + here.server.cluster().task_address("work", 0);
  CHECK(refused.code == error_code::resource_exhausted);
  CHECK(refused.message == task + " has 4 open sessions, 3 of this client, no more are accepted (server_options::max_sessions)");
  CHECK(other.open() != 0);
  REQUIRE(greedy.prepare(g, {held.raw()}).result.ok());
  for (int i = 0; i < 4; ++i) greedy.send(greedy.run_request());
  const auto no_step = greedy.run().result;
  CHECK(no_step.code == error_code::resource_exhausted);
  CHECK(no_step.message == task + " leads 4 steps, 4 of this client, no more are accepted (server_options::max_steps)");
  CHECK(here.served());
  gate::instance().open();
  for (int i = 0; i < 4; ++i) CHECK(greedy.reply().result.ok());
  CHECK(greedy.run().result.ok());
}

TEST_CASE("limits: who sends large messages does not take the last of what may be received") {
  auto options = test_ops::options();
  options.received_bytes = 5 << 20;
  one_server here(options);
  const small_graph of;
  weft::session session(here.target(), {}, of.graph);
  const auto filled = [](std::size_t n) { return xt::xtensor<float, 1>(xt::ones<float>({n})); };
  CHECK(session.run({{of.x, filled(1000000)}}, of.y) == 1000000.f);
  CHECK(error_of([&] { session.run({{of.x, filled(1100000)}}, of.y); }).code == error_code::resource_exhausted);  // more than four fifths
  const std::string hello = frame_of(weft::hello_message().encode());
  const auto sent = [&](const plain_socket& by, std::int64_t elements) {
    const std::string frame = frame_of(weft::run_message().encode({floats(elements)}));
    const auto before = here.server.statistics().bytes_in;
    by.send(hello + frame.substr(0, frame.size() - 1));
    return process_counts::soon([&] { return here.server.statistics().bytes_in + 1 >= before + hello.size() + frame.size(); });
  };
  plain_socket first(here.target()), second(here.target());
  REQUIRE(sent(first, 1000000));
  CHECK(here.server.statistics().received_bytes >= 3999999);
  REQUIRE(sent(second, 270000));  // it would fit, and leave next to nothing
  CHECK(here.server.statistics().received_bytes < 4100000);
  CHECK(session.run({{of.x, filled(200000)}}, of.y) == 200000.f);
}

TEST_CASE("limits: clients, however many, do not keep out the tasks of the cluster") {
  auto options = test_ops::options();
  options.max_connections = 1;
  const weft::task_id work{"work", 0}, first{"fake", 0};
  one_server here(options, {{"fake", {"127.0.0.1:1"}}, {"work", {"127.0.0.1:0"}}});  // whose client has the one
  CHECK(client(here.target()).refusal().code == error_code::resource_exhausted);
  {
    fake::road control(here.server.cluster(), work, first, 11), bulk(here.server.cluster(), work, first, 11, weft::hello_message::role::bulk);
    control.settle();
    bulk.settle();
  }
}

TEST_CASE("limits: a tensor that does not fit into what waits for a task fails its step") {
  auto options = fake::with_deaf_worker::quiet();
  options.queued_bytes_per_task = std::size_t{4} << 20;
  options.abort_grace = std::chrono::milliseconds(20);
  std::atomic<std::uint64_t> master{0};
  const auto says_ready = [&](fake::deaf_worker& worker) {
    worker.answers = [&](const weft::run_part_message& r) { return std::vector<message>{weft::encode_ready({master, r.step})}; };
  };
  fake::with_deaf_worker cluster(says_ready, options);
  master = cluster.server->report().incarnation;
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x;
  weft::tensor<float, 0> y;
  weft::with_device("/job:work/task:0", [&] { x = weft::placeholder<float, 1>("x"); });
  weft::with_device("/job:far/task:0", [&] { y = weft::reduce_sum(x); });
  client one(cluster.server->target());
  REQUIRE(one.prepare(g, {y.raw()}, {}, {x.raw()}).result.ok());
  for (int i = 0; i < 40; ++i) one.send(one.run_request({floats(1 << 18)}));
  const auto why = one.reply().result;  // the steps whose tensors wait have no end
  CHECK(why.code == error_code::resource_exhausted);
  CHECK(why.message.find("task /job:far/task:0 at " + cluster.worker.address() + " does not take what it is sent: ") != std::string::npos);
  CHECK(cluster.server->statistics().queued_bytes <= (4 << 20));
  weft::session session(cluster.server->target(), {}, g);
  CHECK(session.run(weft::constant(3.f) + 4.f) == 7.f);
}
