#include <weft/cluster/worker.hpp>

#include <weft/cluster/server.hpp>
#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>

#include "fake_task.hpp"
#include "master_with_fake.hpp"
#include "process_counts.hpp"

#include <weft/tensor/xtensor.hpp>

#include <random>

using weft::error_code;
using weft::message_type;
using weft::task_id;

namespace {

const task_id work{"work", 0}, first{"fake", 0}, second{"fake", 1};

// A real server at work:0; the other tasks are the test's.
struct bare_server {
  explicit bare_server(weft::server_options options = {}) : server(spec(), "work", 0, (options.log = [](const char*, const std::string&) {}, std::move(options))), cluster(server.cluster()) {}
  static weft::cluster_spec spec() { return {{"fake", {"127.0.0.1:1", "127.0.0.1:2"}}, {"work", {"127.0.0.1:0"}}}; }
  weft::server server;
  weft::cluster_spec cluster;
};

// A part that sends so much to `to` that it waits until the step has begun there.
weft::message sending_part(std::uint64_t number, const task_id& to) {
  const weft::graph g;
  const auto scope = g.as_default();
  const std::string here = to_text(work) + "/device:CPU:0", there = to_text(to) + "/device:CPU:0";
  const auto device = weft::with_device(here);
  const auto value = weft::constant(xt::xtensor<float, 1>(xt::ones<float>({std::size_t{1} << 18})));
  weft::detail::add_node("_Send", {value.raw()}, weft::op_name(),
                         {{"T", weft::dtype::float32}, {"tensor_name", "edge_5_x"}, {"send_device", here}, {"recv_device", there}, {"send_device_incarnation", 0}, {"_edge", 5}});
  weft::register_part_message what;
  what.registration = number;
  what.session = 1;
  what.edges.push_back({5, weft::part_edge::direction::outgoing, to, weft::dtype::float32, true});
  return what.encode(g);
}

// A registration that is decoded beside the event loop.
weft::message large_registration(std::uint64_t number) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto device = weft::with_device("/job:work/task:0/device:CPU:0");
  for (int i = 0; i < 20000; ++i) weft::no_op();
  weft::register_part_message what;
  what.registration = number;
  what.session = 1;
  return what.encode(g);
}

float value_of(const std::vector<weft::tensor_value>& values) {
  REQUIRE(values.size() == 1);
  return values[0].item<float>();
}

}  // namespace

TEST_CASE("worker: a tensor that comes before its run frame waits for it") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second).ok());
  sender.send(fake::tensor(lead.step(1), 3.f));
  sender.send(fake::tensor(lead.step(2), 4.f));
  sender.settle();
  lead.run(1, 1);
  CHECK(value_of(lead.answer().second) == 3.f);
  lead.run(2, 1);
  CHECK(value_of(lead.answer().second) == 4.f);
}

TEST_CASE("worker: a tensor of a step that has ended is dropped") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second).ok());
  lead.run(5, 1);
  sender.send(fake::tensor(lead.step(5), 1.f));
  CHECK(value_of(lead.answer().second) == 1.f);
  sender.send(fake::tensor(lead.step(5), 2.f));
  sender.send(fake::tensor(lead.step(4), 2.f));
  sender.settle();
  lead.run(6, 1);
  sender.send(fake::tensor(lead.step(6), 3.f));
  CHECK(value_of(lead.answer().second) == 3.f);
}

TEST_CASE("worker: a step that was aborted before its run frame does not begin") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second).ok());
  sender.send(fake::tensor(lead.step(1), 1.f));
  sender.settle();
  lead.abort(1);
  lead.run(1, 1);
  const auto refused = lead.answer().first;
  CHECK(refused.step == 1);
  CHECK(refused.result.code == error_code::aborted);
  lead.run(2, 1);
  sender.send(fake::tensor(lead.step(2), 2.f));
  CHECK(value_of(lead.answer().second) == 2.f);
}

TEST_CASE("worker: a step is not run twice") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second).ok());
  lead.run(1, 1);
  sender.send(fake::tensor(lead.step(1), 1.f));
  CHECK(lead.answer().first.result.ok());
  lead.run(1, 1);
  CHECK(lead.answer().first.result.code == error_code::aborted);
}

TEST_CASE("worker: steps of two masters with the same numbers do not mix") {
  bare_server here;
  fake::master one(here.cluster, work, first, 11), two(here.cluster, work, second, 22);
  fake::road sender(here.cluster, work, first, 11, weft::hello_message::role::bulk);
  REQUIRE(one.register_part(1, first).ok());
  REQUIRE(two.register_part(1, first).ok());
  one.run(1, 1);
  two.run(1, 1);
  sender.send(fake::tensor(two.step(1), 2.f));
  sender.send(fake::tensor(one.step(1), 1.f));
  CHECK(value_of(one.answer().second) == 1.f);
  CHECK(value_of(two.answer().second) == 2.f);
}

TEST_CASE("worker: more than may be parked fails the step that it came for") {
  weft::server_options options;
  options.parked_bytes_per_peer = 4000;
  bare_server here(options);
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second).ok());
  const auto large = [&](std::int64_t step) {
    return weft::tensor_message{lead.step(step), {5, 0}, false}.encode(weft::tensor_value(weft::dtype::int8, weft::shape{3000}));
  };
  sender.send(large(1));
  sender.send(large(2));
  sender.send(fake::tensor(lead.step(3), 3.f));
  sender.settle();
  lead.run(2, 1);
  const auto refused = lead.answer().first;
  CHECK(refused.result.code == error_code::resource_exhausted);
  CHECK(refused.result.message == "tensors from /job:fake/task:1 came before their step and do not fit: 6512 bytes, at most 4000 may wait (server_options::parked_bytes_per_peer)");
  lead.run(3, 1);
  CHECK(value_of(lead.answer().second) == 3.f);
}

TEST_CASE("worker: early tensors for as many steps as one task may name are kept, one more ends its connection and nobody else's") {
  weft::server_options options;
  options.parked_steps_per_peer = 3;
  bare_server here(options);
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  // The master itself may send too, and has places of its own.
  fake::road own(here.cluster, work, first, 11, weft::hello_message::role::bulk);
  REQUIRE(lead.register_part(1, second).ok());
  REQUIRE(lead.register_part(2, first).ok());
  for (const std::int64_t step : {100, 101, 1, 1}) sender.send(fake::tensor(lead.step(step), 1.f));
  sender.settle();
  SUBCASE("they are kept, and places become free") {
    lead.run(1, 1);
    CHECK(lead.answer().first.result.message == "edge 5 got a second value in iteration 0");  // both were kept
    sender.send(fake::tensor(lead.step(2), 2.f));
    sender.settle();
    lead.run(2, 1);
    CHECK(value_of(lead.answer().second) == 2.f);
  }
  SUBCASE("one more") {
    for (const std::int64_t step : {1, 2, 3}) own.send(fake::tensor(lead.step(step), static_cast<float>(step)));
    own.settle();
    sender.send(fake::tensor(lead.step(102), 1.f));
    CHECK(sender.is_closed());
    for (const std::int64_t step : {1, 2, 3}) {
      lead.run(step, 2);
      CHECK(value_of(lead.answer().second) == static_cast<float>(step));
    }
  }
  SUBCASE("an abort frees them all") {
    lead.abort(101);
    lead.connection().settle();
    for (const std::int64_t step : {102, 103, 104}) sender.send(fake::tensor(lead.step(step), static_cast<float>(step)));
    sender.settle();
    lead.run(104, 1);
    CHECK(value_of(lead.answer().second) == 104.f);
  }
}

TEST_CASE("worker: a task that has no part in a step does not harm it, before it begins or later") {
  weft::server_options options;
  options.parked_bytes_per_peer = 4000;
  bare_server here(options);
  fake::master lead(here.cluster, work, first, 11);
  REQUIRE(lead.register_part(1, first).ok());
  const auto large = [&](std::int64_t step) { return weft::tensor_message{lead.step(step), {5, 0}, false}.encode(weft::tensor_value(weft::dtype::int8, weft::shape{5000})); };
  fake::road stranger(here.cluster, work, second, 22);
  stranger.send(large(1));
  stranger.send(fake::tensor(lead.step(2), 7.f));
  stranger.settle();
  for (const std::int64_t step : {1, 2}) {
    lead.run(step, 1);
    lead.connection().send(fake::tensor(lead.step(step), 3.f));
    CHECK(value_of(lead.answer().second) == 3.f);
  }
  lead.run(3, 1);
  lead.connection().settle();
  stranger.send(fake::tensor(lead.step(3), 7.f));
  CHECK(stranger.is_closed());
  lead.connection().send(fake::tensor(lead.step(3), 3.f));
  CHECK(value_of(lead.answer().second) == 3.f);
}

TEST_CASE("worker: what was parked for a master that is lost is dropped") {
  weft::server_options options;
  options.parked_bytes_per_peer = 4000;
  bare_server here(options);
  fake::road sender(here.cluster, work, second, 22);
  for (int i = 0; i < 3; ++i) {
    fake::master lead(here.cluster, work, first, 100 + static_cast<std::uint64_t>(i));
    REQUIRE(lead.register_part(1, second).ok());
    sender.send(weft::tensor_message{lead.step(2), {5, 0}, false}.encode(weft::tensor_value(weft::dtype::float32, weft::shape{750})));
    sender.send(fake::tensor(lead.step(1), 1.f));
    sender.settle();
    lead.run(1, 1);
    CHECK(value_of(lead.answer().second) == 1.f);
  }
}

TEST_CASE("worker: a task that owes a large tensor is told when the step has begun") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second, true).ok());
  lead.run(7, 1);
  const weft::message ready = sender.next();
  REQUIRE(weft::type_of(ready) == message_type::ready);
  CHECK(weft::decode_ready(ready) == lead.step(7));
  sender.send(fake::tensor(lead.step(7), 7.f));
  CHECK(value_of(lead.answer().second) == 7.f);
}

TEST_CASE("worker: a step fails when the task that it waits for is lost") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  {
    fake::road sender(here.cluster, work, second, 22);
    REQUIRE(lead.register_part(1, second).ok());
    lead.run(1, 1);
  }
  const auto failed = lead.answer().first;
  CHECK(failed.result.code == error_code::unavailable);
  CHECK(failed.result.message.find("task /job:fake/task:1 at 127.0.0.1:2: ") == 0);
  lead.run(2, 1);
  CHECK(lead.answer().first.result.code == error_code::unavailable);
}

TEST_CASE("worker: a tensor that does not belong to the step fails it") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second).ok());
  lead.run(1, 1);
  sender.send(weft::tensor_message{lead.step(1), {5, 0}, false}.encode(weft::tensor_value::scalar(1.0)));
  CHECK(lead.answer().first.result.message == "edge 5 carries float, but /job:fake/task:1 sent double");
  lead.run(2, 1);
  sender.send(fake::tensor(lead.step(2), 1.f, 6));
  CHECK(lead.answer().first.result.message == "step 2 has no edge 6 here that /job:fake/task:1 could send");
  lead.run(3, 1);
  sender.send(fake::tensor(lead.step(3), 3.f));
  CHECK(value_of(lead.answer().second) == 3.f);
}

TEST_CASE("worker: a task of another cluster is refused and told this one") {
  bare_server here;
  weft::hello_message hello;
  hello.as = weft::hello_message::role::control;
  hello.incarnation = 1;
  hello.task = first;
  hello.to = work;
  hello.cluster = here.cluster.with_address("fake", 1, "127.0.0.1:3").hash();
  fake::road stranger(here.cluster, work);
  stranger.send(hello.encode());
  const weft::message answer = stranger.next();
  REQUIRE(weft::type_of(answer) == message_type::refused);
  weft::cluster_spec known;
  const weft::status why = weft::decode_refusal(answer, &known);
  CHECK(why.code == error_code::failed_precondition);
  CHECK(why.message == "/job:work/task:0 and /job:fake/task:0 were started with different clusters");
  CHECK(known == here.cluster);
  CHECK(stranger.is_closed());
}

TEST_CASE("worker: tasks that were started with different clusters say which entry differs") {
  weft::server_options quiet;
  quiet.log = [](const char*, const std::string&) {};
  weft::server other({{"first", {"127.0.0.1:1"}}, {"second", {"127.0.0.1:0"}}}, "second", 0, quiet);
  weft::server leads({{"first", {"127.0.0.1:0"}}, {"second", {other.cluster().task_address("second", 0)}}}, "first", 0, quiet);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::with_device("/job:second/task:0", [] { return weft::constant(1.f) + 1.f; });
  weft::session session(leads.target(), {}, g);
  try {
    (void)session.run(x);
    FAIL("expected an error");
  } catch (const weft::error& e) {
    CHECK(e.code() == error_code::failed_precondition);
    CHECK(e.message() == "task /job:second/task:0 at " + other.cluster().task_address("second", 0) + ": /job:second/task:0 and /job:first/task:0 were started with different clusters: /job:first/task:0 is '127.0.0.1:1' here and '" +
                             leads.cluster().task_address("first", 0) + "' there");
  }
}

TEST_CASE("worker: what a lost master registered is dropped when its lease has ended") {
  weft::server_options options;
  options.max_registrations = 1;
  options.registration_lease = std::chrono::milliseconds(30);
  options.heartbeat = std::chrono::milliseconds(3000);
  bare_server here(options);
  {
    fake::master lead(here.cluster, work, first, 11);
    REQUIRE(lead.register_part(1, second).ok());
    CHECK(lead.register_part(2, second).code == error_code::resource_exhausted);
  }
  fake::master next(here.cluster, work, second, 22);
  const auto until = std::chrono::steady_clock::now() + fake::patience;
  weft::status result;
  do result = next.register_part(1, second);
  while (!result.ok() && std::chrono::steady_clock::now() < until);
  CHECK(result.ok());
}

TEST_CASE("worker: damaged messages close their connection and nothing else") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(1, second).ok());
  std::mt19937 random(1);
  weft::register_part_message registration;
  registration.registration = 9;
  registration.edges.push_back({5, weft::part_edge::direction::incoming, second, weft::dtype::float32, false});
  const std::string here_device = to_text(work) + "/device:CPU:0", there_device = to_text(second) + "/device:CPU:0";
  weft::hello_message hello;
  hello.incarnation = 3;
  const std::vector<weft::message> good{registration.encode(fake::returning_part(there_device, here_device)), weft::run_part_message{1, 9, false}.encode({}), fake::tensor({33, 1}, 1.f),
                                        weft::abort_part_message{1, weft::status(error_code::aborted, "x")}.encode(), weft::encode_ready({33, 1})};
  for (int i = 0; i < 300; ++i) {
    fake::road bad(here.cluster, work, second, 33, weft::hello_message::role::bulk);
    weft::message m = good[static_cast<std::size_t>(i) % good.size()];
    for (unsigned n = 1 + random() % 4; n > 0; --n) m.head[random() % m.head.size()] = static_cast<char>(random());
    if (random() % 4 == 0) m.head.resize(random() % m.head.size());
    if (random() % 16 == 0) m.type = static_cast<std::uint8_t>(random());
    bad.send(std::move(m));
  }
  fake::road again(here.cluster, work, second, 22);
  REQUIRE(lead.register_part(2, second).ok());
  lead.run(1, 2);
  again.send(fake::tensor(lead.step(1), 1.f));
  CHECK(value_of(lead.answer().second) == 1.f);
}

TEST_CASE("worker: a part that is taken back, or whose master is lost, while it is decoded is not kept") {
  weft::server_options options;
  options.registration_lease = std::chrono::milliseconds(30);  // for those that are decoded before the loss is seen
  options.heartbeat = std::chrono::milliseconds(3000);
  bare_server here(options);
  for (const bool lost : {false, true}) {
    CAPTURE(lost);
    auto lead = std::make_unique<fake::road>(here.cluster, work, first, 11);
    for (const std::uint64_t number : {1U, 2U, 3U}) lead->send(large_registration(number));
    if (lost) lead.reset();
    else
      for (const std::uint64_t number : {1U, 2U, 3U}) lead->send(weft::encode_forget(message_type::unregister_part, number));
    for (int i = 0; lead != nullptr && i < 3; ++i) {
      const auto answer = weft::part_registered_message::decode(lead->next());
      CHECK((answer.result.ok() || answer.result.code == error_code::cancelled));
    }
    {  // What comes later is decoded later: when this is there, nothing of the others is still to come.
      fake::road other(here.cluster, work, second, 22);
      other.send(large_registration(9));
      CHECK(weft::part_registered_message::decode(other.next()).result.ok());
      other.send(weft::encode_forget(message_type::unregister_part, 9));
      other.settle();
    }
    CHECK(process_counts::soon([&] { return here.server.statistics().registrations == 0; }));
  }
}

TEST_CASE("worker: a part of a number that is being decoded is refused") {
  bare_server here;
  fake::road lead(here.cluster, work, first, 11);
  lead.send(large_registration(1));
  lead.send(large_registration(1));
  std::vector<error_code> codes;
  for (int i = 0; i < 2; ++i) codes.push_back(weft::part_registered_message::decode(lead.next()).result.code);
  std::sort(codes.begin(), codes.end());
  CHECK(codes == std::vector<error_code>{error_code::ok, error_code::already_exists});
}

namespace {

// A part that returns what comes by edges 5 and 6 from `second`, the first of them made a scalar.
weft::message two_edges(std::uint64_t number) {
  const weft::graph g;
  const auto scope = g.as_default();
  const std::string here = to_text(work) + "/device:CPU:0", there = to_text(second) + "/device:CPU:0";
  const auto device = weft::with_device(here);
  const auto add = [](const char* op, std::vector<weft::output> inputs, weft::attr_map attrs) { return weft::output{&weft::detail::add_node(op, std::move(inputs), weft::op_name(), std::move(attrs)), 0}; };
  weft::register_part_message what;
  what.registration = number;
  what.session = 1;
  for (const std::int64_t edge : {5, 6}) {
    const auto x = add("_Recv", {}, {{"tensor_type", weft::dtype::float32}, {"tensor_name", "t"}, {"send_device", there}, {"recv_device", here}, {"send_device_incarnation", 0}, {"_edge", edge}});
    const auto none = add("Const", {}, {{"dtype", weft::dtype::int32}, {"value", weft::tensor_value(weft::dtype::int32, {0})}});
    const auto y = edge == 6 ? x : add("Reshape", {x, none}, {{"T", weft::dtype::float32}, {"Tshape", weft::dtype::int32}});
    add("_Retval", {y}, {{"T", weft::dtype::float32}, {"index", edge - 5}});
    what.edges.push_back({edge, weft::part_edge::direction::incoming, second, weft::dtype::float32, false});
  }
  return what.encode(g);
}

}  // namespace

TEST_CASE("worker: a tensor of another shape, or that comes twice, is its value or an error of its step, and the next one is right") {
  bare_server here;
  fake::master lead(here.cluster, work, first, 11);
  fake::road sender(here.cluster, work, second, 22);
  lead.connection().send(two_edges(1));
  REQUIRE(weft::part_registered_message::decode(lead.connection().next()).result.ok());
  const auto of_shape = [](std::vector<std::int64_t> sizes) {
    weft::tensor_value out(weft::dtype::float32, weft::shape(sizes.data(), sizes.size()));
    for (std::int64_t i = 0; i < out.elements(); ++i) out.mutable_data<float>()[i] = 3.f;
    return out;
  };
  const auto tensor = [&](std::int64_t step, std::int64_t edge, weft::tensor_value value) { return weft::tensor_message{lead.step(step), {edge, 0}, false}.encode(std::move(value)); };
  std::int64_t step = 0;
  const auto good = [&] {
    lead.run(++step, 1);
    sender.send(fake::tensor(lead.step(step), 1.f, 5));
    sender.send(fake::tensor(lead.step(step), 2.f, 6));
    const auto values = lead.answer().second;
    REQUIRE(values.size() == 2);
    CHECK(values[0].item<float>() == 1.f);
    CHECK(values[1].item<float>() == 2.f);
  };
  good();
  // 1. Of another shape: what an op cannot take is its error, anything else is a value of that shape.
  const struct {
    std::vector<std::int64_t> sizes;
    bool fine;
  } shapes[] = {{{}, true}, {{1}, true}, {{1, 1, 1}, true}, {{2}, false}, {{0}, false}, {{1, 0, 5}, false}, {{300, 40}, false}};
  for (const auto& each : shapes) {
    lead.run(++step, 1);
    sender.send(tensor(step, 6, of_shape(each.sizes)));
    sender.send(tensor(step, 5, of_shape(each.sizes)));
    const auto [done, values] = lead.answer();
    const weft::status& result = done.result;
    INFO(result.text());
    CHECK(result.ok() == each.fine);
    if (each.fine) CHECK(values.at(1).shape().rank() == static_cast<int>(each.sizes.size()));
    else CHECK(result.code == error_code::invalid_argument);
    good();
  }
  // 2. Twice, into a step that runs and before it does.
  for (const bool early : {false, true}) {
    ++step;
    if (!early) lead.run(step, 1);
    sender.send(fake::tensor(lead.step(step), 1.f, 5));
    sender.send(fake::tensor(lead.step(step), 9.f, 5));
    sender.settle();
    if (early) lead.run(step, 1);
    weft::part_done_message done;
    weft::status root;
    do {
      done = weft::part_done_message::decode(lead.connection().next());
      if (root.ok() || root.derived) root = done.result;
    } while (!done.finished);
    CHECK(root.code == error_code::internal);
    CHECK(root.message == "edge 5 got a second value in iteration 0");
    good();
  }
  // 3. Dead, where nothing can be dead.
  lead.run(++step, 1);
  sender.send(weft::tensor_message{lead.step(step), {5, 0}, true}.encode({}));
  sender.send(fake::tensor(lead.step(step), 2.f, 6));
  CHECK_FALSE(lead.answer().first.result.ok());
  good();
  CHECK(process_counts::soon([&] { return here.server.statistics().received_bytes == 0; }));
}

namespace {

// A part that returns so many floats.
weft::message constant_part(std::uint64_t number, std::int64_t floats) {
  const weft::graph g;
  const auto add = [&](const char* op, const char* name, std::vector<weft::output> inputs, weft::attr_map attrs) -> const weft::node& {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.device = "/job:work/task:0/device:CPU:0";
    return g.add(std::move(spec));
  };
  const auto value = weft::tensor_value::from<float>(weft::shape{floats}, std::vector<float>(static_cast<std::size_t>(floats), 1.f));
  const weft::node& c = add("Const", "c", {}, {{"dtype", weft::dtype::float32}, {"value", value}});
  add("_Retval", "y", {{&c, 0}}, {{"T", weft::dtype::float32}, {"index", 0}});
  weft::register_part_message what;
  what.registration = number;
  what.session = 1;
  return what.encode(g);
}

}  // namespace

TEST_CASE("worker: one master gets no more than its share of registrations, and those of its earlier start are dropped") {
  weft::server_options options;
  options.max_registrations = 5;
  bare_server here(options);
  fake::master greedy(here.cluster, work, first, 11), other(here.cluster, work, second, 22);
  for (std::uint64_t i = 1; i <= 4; ++i) REQUIRE(greedy.register_part(i, first).ok());
  const auto refused = greedy.register_part(5, first);
  CHECK(refused.code == error_code::resource_exhausted);
  CHECK(refused.message == "task /job:work/task:0 at " + here.cluster.task_address(work) + " keeps 4 registered graphs, 4 of this master, no more are accepted (server_options::max_registrations)");
  CHECK(other.register_part(1, second).ok());
  CHECK(other.register_part(2, second).code == error_code::resource_exhausted);
  fake::master again(here.cluster, work, first, 12);
  CHECK(here.server.statistics().registrations == 1);
  for (std::uint64_t i = 1; i <= 2; ++i) CHECK(again.register_part(i, first).ok());
  CHECK(other.register_part(2, second).ok());
}

TEST_CASE("worker: one master gets no more than its share of steps") {
  weft::server_options options;
  options.max_steps = 5;
  bare_server here(options);
  fake::master greedy(here.cluster, work, first, 11), other(here.cluster, work, second, 22);
  REQUIRE(greedy.register_part(1, first).ok());
  REQUIRE(other.register_part(1, second).ok());
  for (std::int64_t step = 1; step <= 5; ++step) greedy.run(step, 1);
  const auto refused = greedy.answer().first;
  CHECK(refused.step == 5);
  CHECK(refused.result.message == "task /job:work/task:0 at " + here.cluster.task_address(work) + " runs 4 steps, 4 of this master, no more are accepted (server_options::max_steps)");
  other.run(1, 1);
  other.connection().send(fake::tensor(other.step(1), 3.f));
  CHECK(value_of(other.answer().second) == 3.f);
}

TEST_CASE("worker: a task that connects its second road again loses the one before") {
  bare_server here;
  fake::road control(here.cluster, work, first, 11);
  fake::road before(here.cluster, work, first, 11, weft::hello_message::role::bulk), after(here.cluster, work, first, 11, weft::hello_message::role::bulk);
  CHECK(before.is_closed());
  after.settle();
  control.settle();
}

TEST_CASE("worker: of a master that reads nothing few large values wait, the other steps fail") {
  weft::server_options options;
  options.queued_bytes_per_task = std::size_t{4} << 20;
  bare_server here(options);
  fake::road lead(here.cluster, work, first, 11), bulk(here.cluster, work, first, 11, weft::hello_message::role::bulk);
  lead.send(constant_part(1, 1 << 18));
  REQUIRE(weft::part_registered_message::decode(lead.next()).result.ok());
  constexpr std::int64_t steps = 40;
  for (std::int64_t i = 1; i <= steps; ++i) lead.send(weft::run_part_message{i, 1, false}.encode({}));
  CHECK(process_counts::soon([&] { return here.server.statistics().parts_ended == steps; }));
  CHECK(here.server.statistics().queued_bytes < (5 << 20));
  weft::wire_writer end;
  lead.send(weft::detail::make_message(message_type::register_part, end.u64(0)));
  std::int64_t refused = 0;
  for (weft::message m = lead.next(); weft::type_of(m) != message_type::part_registered; m = lead.next()) {
    const auto done = weft::part_done_message::decode(m);
    CHECK(done.result.code == error_code::resource_exhausted);
    CHECK(done.result.message.find("task /job:fake/task:0 at 127.0.0.1:1 does not take what it is sent: ") == 0);
    CHECK(done.finished);
    ++refused;
  }
  CHECK(refused > 0);
  for (std::int64_t i = refused; i < steps; ++i) CHECK(bulk.next().tensors.at(0).bytes() == std::size_t{1} << 20);
  lead.send(weft::run_part_message{steps + 1, 1, false}.encode({}));
  CHECK(bulk.next().tensors.size() == 1);
}

TEST_CASE("worker: from a master that does not read its answers no more orders are taken") {
  weft::server_options options;
  options.queued_bytes_per_client = std::size_t{64} << 10;
  bare_server here(options);
  fake::road lead(here.cluster, work, first, 11);
  lead.send(constant_part(1, 8000));
  REQUIRE(weft::part_registered_message::decode(lead.next()).result.ok());
  constexpr std::int64_t steps = 1000;  // whose answers are more than sockets hold
  for (std::int64_t i = 1; i <= steps; ++i) lead.send(weft::run_part_message{i, 1, false}.encode({}));
  CHECK(process_counts::soon([&] { return here.server.statistics().queued_bytes > (32 << 10); }));
  for (int i = 0; i < 20; ++i) CHECK(here.server.statistics().queued_bytes < (100 << 10));
  CHECK(here.server.statistics().parts_begun < steps);
  for (std::int64_t i = 1; i <= steps; ++i) {
    const weft::message m = lead.next();
    const auto done = weft::part_done_message::decode(m);
    REQUIRE(done.step == i);
    REQUIRE(done.result.ok());
  }
}

TEST_CASE("worker: for a task that does not begin its steps few large tensors wait, the other steps fail") {
  const task_id far{"far", 0};
  auto options = fake::with_deaf_worker::quiet();
  options.queued_bytes_per_task = std::size_t{6} << 20;  // one master gets 4.8
  fake::with_deaf_worker of(nullptr, options);
  const weft::cluster_spec cluster = of.server->cluster();
  fake::road lead(cluster, work, far, 5);
  lead.send(sending_part(1, far));
  REQUIRE(weft::part_registered_message::decode(lead.next()).result.ok());
  const auto run = [&](std::int64_t step) {
    lead.send(weft::run_part_message{step, 1, false}.encode({}));
    for (;;) {
      const auto done = weft::part_done_message::decode(lead.next());
      REQUIRE(done.step == step);
      if (!done.result.ok()) return done.result;
      if (done.finished) return weft::status();
    }
  };
  constexpr std::size_t each = (std::size_t{1} << 20) + 256;
  for (std::int64_t step = 1; step <= 4; ++step) CHECK(run(step).ok());
  CHECK(of.server->statistics().queued_bytes == 4 * each);
  const weft::status refused = run(5);
  CHECK(refused.code == error_code::resource_exhausted);
  CHECK(refused.message.find("task /job:far/task:0 at " + of.worker.address() + " has not begun step 5: " + std::to_string(4 * each) + " bytes wait for it, " + std::to_string(4 * each) +
                             " of this master's steps, 1048576 more do not fit (server_options::queued_bytes_per_task)") != std::string::npos);
  const weft::graph g;
  const auto scope = g.as_default();
  weft::session session(of.server->target(), {}, g);
  CHECK(session.run(weft::constant(3.f) + 4.f) == 7.f);
  // There is room again when such a step is over, or its master is gone.
  lead.send(weft::abort_part_message{1, weft::status(error_code::cancelled, "the test aborts")}.encode());
  lead.send(weft::abort_part_message{5, weft::status(error_code::cancelled, "the test aborts")}.encode());
  lead.settle();
  CHECK(of.server->statistics().queued_bytes == 3 * each);
  CHECK(run(6).ok());
  CHECK(of.server->statistics().queued_bytes == 4 * each);
  { fake::road again(cluster, work, far, 6); }
  CHECK(process_counts::soon([&] { return of.server->statistics().queued_bytes == 0; }));
}

TEST_CASE("worker: two servers that say they are one task are told so, the one that came last is served") {
  bare_server here;
  auto one = std::make_unique<fake::master>(here.cluster, work, first, 11);
  REQUIRE(one->register_part(1, first).ok());
  auto two = std::make_unique<fake::master>(here.cluster, work, first, 22);
  CHECK(one->connection().is_closed());
  REQUIRE(two->register_part(1, first).ok());
  const auto greets = [&](std::uint64_t incarnation, weft::hello_message::role as) {
    fake::road road(here.cluster, work);
    weft::hello_message hello;
    hello.as = as;
    hello.incarnation = incarnation;
    hello.task = first;
    hello.to = work;
    hello.cluster = here.cluster.hash();
    road.send(hello.encode());
    const weft::message answer = road.next();
    return weft::type_of(answer) == message_type::refused ? weft::decode_refusal(answer) : weft::status();
  };
  for (const auto as : {weft::hello_message::role::control, weft::hello_message::role::bulk}) {
    const weft::status why = greets(11, as);
    CHECK(why.code == error_code::failed_precondition);
    CHECK(why.message.find("two servers say that they are /job:fake/task:0: this one (incarnation 000000000000000b) was replaced by one that is connected from 127.0.0.1:") == 0);
    CHECK(why.message.find(" (incarnation 0000000000000016); stop one of them") != std::string::npos);
  }
  two->run(1, 1);
  two->connection().send(fake::tensor(two->step(1), 3.f));
  CHECK(value_of(two->answer().second) == 3.f);
  // When that one is gone, the other one may come back.
  two = nullptr;
  CHECK(process_counts::soon([&] { return greets(11, weft::hello_message::role::control).ok(); }));
}
