#include <weft/cluster/session.hpp>

#include "../session/session_suite.hpp"

#include <weft/cluster/local_cluster.hpp>

namespace {

weft::local_cluster& shared_cluster() {
  static weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  return cluster;
}

}  // namespace

TEST_CASE("session: a cluster of servers serves as every session does") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  session_suite::run([&](const weft::session_options& options, const weft::graph& g) { return std::make_unique<weft::session>(cluster.target("work", 0), options, g); });
}

TEST_CASE("session: an empty target runs in this process") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant({1.f, 2.f});
  weft::session session;
  CHECK(session.run(x * 2.f) == xt::xtensor<float, 1>{2.f, 4.f});
}

TEST_CASE("session: a target of unknown kind names the kinds there are") {
  const auto refused = session_suite::error_of([] { weft::session session("grpc://127.0.0.1:1"); });
  CHECK(refused.code == weft::error_code::invalid_argument);
  CHECK(refused.message == "session target 'grpc://127.0.0.1:1' is of no kind that weft knows; expected '' (this process) or 'weft://host:port' (the server that leads)");
  CHECK(session_suite::error_of([] { weft::session session("127.0.0.1:33335"); }).message ==
        "session target '127.0.0.1:33335' is of no kind that weft knows; expected '' (this process) or 'weft://host:port' (the server that leads); did you mean 'weft://127.0.0.1:33335'?");
  CHECK(session_suite::error_of([] { weft::session session("weft://127.0.0.1"); }).code == weft::error_code::invalid_argument);
}

TEST_CASE("session: options that only a session in this process can have are refused for a server") {
  const auto refused = [](const weft::session_options& options) { return session_suite::error_of([&] { weft::session session("weft://127.0.0.1:1", options); }); };
  weft::session_options threads, devices, cluster;
  threads.kernel_threads = 1;
  devices.devices = {{"CPU", 2}};
  cluster.cluster = {{"ps", 1}};
  CHECK(refused(threads).code == weft::error_code::invalid_argument);
  CHECK(refused(threads).message == "session_options::kernel_threads is for sessions in this process, the server at weft://127.0.0.1:1 has its own; set server_options::kernel_threads where it starts");
  CHECK(refused(devices).message == "session_options::devices is for sessions in this process, the server at weft://127.0.0.1:1 has its own; set server_options::devices where it starts");
  CHECK(refused(cluster).message == "session_options::cluster is for sessions in this process, the server at weft://127.0.0.1:1 has its own; leave it empty");
}

TEST_CASE("session: a port where nobody listens is refused at once") {
  weft::local_cluster cluster({{"work", 1}});
  cluster.stop("work", 0);
  const std::string address = cluster.spec().task_address("work", 0);
  const auto refused = session_suite::error_of([&] { weft::session session(cluster.target()); });
  CHECK(refused.code == weft::error_code::unavailable);
  CHECK(refused.message == "session at weft://" + address + ": connection refused: no server is listening at " + address);
  CHECK_FALSE(refused.may_have_run);
}

TEST_CASE("session: two clients share the variables of a task") {
  auto& cluster = shared_cluster();
  const auto client = [&](const std::string& target, bool init) {
    const weft::graph g;
    const auto scope = g.as_default();
    weft::variable<std::int64_t, 0> v;
    weft::operation add;
    weft::with_device("/job:ps/task:0", [&] {
      v = weft::variable<std::int64_t, 0>(weft::constant(std::int64_t{0}), "shared_by_clients");
      add = v.assign_add(1);
    });
    weft::session session(target, {}, g);
    if (init) session.run(v.initializer());
    else
      for (int i = 0; i < 200; ++i) session.run(add);
    return session.run(v);
  };
  client(cluster.target("work", 0), true);
  // Two masters, one worker.
  std::thread one([&] { client(cluster.target("work", 0), false); }), two([&] { client(cluster.target("work", 1), false); });
  one.join();
  two.join();
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<std::int64_t, 0> v;
  weft::with_device("/job:ps/task:0", [&] { v = weft::variable<std::int64_t, 0>(weft::constant(std::int64_t{0}), "shared_by_clients"); });
  CHECK(weft::session(cluster.target("ps", 0), {}, g).run(v) == 400);
}

TEST_CASE("session: large feeds, tensors and fetches arrive whole") {
  auto& cluster = shared_cluster();
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>("x");
  weft::tensor<float, 1> doubled, back;
  weft::with_device("/job:ps/task:0", [&] { doubled = x * 2.f; });
  weft::with_device("/job:work/task:1", [&] { back = doubled + 1.f; });
  weft::session session(cluster.target("work", 0), {}, g);
  xt::xtensor<float, 1> value = xt::arange<float>(0.f, 1000000.f);
  for (int i = 0; i < 3; ++i) {
    const auto got = session.run({{x, value}}, back);
    REQUIRE(got.size() == value.size());
    CHECK(got(0) == 1.f);
    CHECK(got(999999) == 1999999.f);
  }
}

TEST_CASE("session: two tasks that send each other four times what may be parked succeed") {
  weft::server_options small;
  small.parked_bytes_per_peer = std::size_t{1} << 20;
  weft::local_cluster cluster({{"work", 2}}, small);
  const weft::graph g;
  const auto scope = g.as_default();
  std::vector<weft::operation> sums;
  std::vector<weft::tensor<float, 0>> all;
  for (int i = 0; i < 16; ++i) {
    const std::string here = "/job:work/task:" + std::to_string(i % 2), there = "/job:work/task:" + std::to_string(1 - i % 2);
    weft::tensor<float, 2> made;
    weft::with_device(here, [&] { made = weft::random_uniform<float>({512, 256}) * 0.f + 1.f; });
    weft::with_device(there, [&] { all.push_back(weft::reduce_sum(made)); });
  }
  weft::tensor<float, 0> total = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) total = total + all[i];
  weft::session session(cluster.target("work", 0), {}, g);
  for (int i = 0; i < 5; ++i) CHECK(session.run(total) == 16.f * 512 * 256);
}

TEST_CASE("session: a step that takes longer than its timeout ends with DEADLINE_EXCEEDED") {
  // Work for seconds on one task, without a place where it could be cancelled for long.
  auto& cluster = shared_cluster();
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 2> m;
  weft::with_device("/job:ps/task:0", [&] {
    m = weft::random_uniform<float>({600, 600});
    for (int i = 0; i < 300; ++i) m = weft::matmul(m, m) * 1e-9f;
  });
  const auto total = weft::reduce_sum(m);
  weft::session session(cluster.target("work", 0), {}, g);
  (void)session.prepare({{}, {total.raw()}, {}});
  const auto begun = std::chrono::steady_clock::now();
  const auto late = session_suite::error_of([&] { session.run(weft::run_options{std::chrono::milliseconds(30)}, total); });
  CHECK(late.code == weft::error_code::deadline_exceeded);
  CHECK(late.message == "the step took longer than 30 ms");
  CHECK(late.may_have_run);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::minutes(1));
  CHECK(session.run(weft::constant(1.f)) == 1.f);
}

TEST_CASE("session: a variable that is updated while it is sent arrives as one value") {
  auto& cluster = shared_cluster();
  const weft::graph g;
  const auto scope = g.as_default();
  constexpr std::size_t size = std::size_t{4} << 20;
  weft::variable<float, 1> v;
  weft::operation bump;
  weft::tensor<float, 1> seen;
  weft::with_device("/job:ps/task:0", [&] {
    v = weft::variable<float, 1>(weft::constant(xt::xtensor<float, 1>(xt::zeros<float>({size}))), "updated_while_sent");
    bump = v.assign_add(weft::constant(xt::xtensor<float, 1>(xt::ones<float>({size}))));
    seen = weft::tensor<float, 1>(v);
  });
  weft::with_device("/job:work/task:1", [&] { seen = weft::identity(seen); });
  weft::session writer(cluster.target("ps", 0), {}, g), reader(cluster.target("work", 0), {}, g);
  writer.run(v.initializer());
  std::atomic<bool> done{false};
  std::thread updates([&] {
    while (!done) writer.run(bump);
  });
  float last = 0.f;
  for (int i = 0; i < 5; ++i) {
    const xt::xtensor<float, 1> got = reader.run(seen);
    std::size_t differing = 0;
    for (const float each : got) differing += each == got(0) ? 0 : 1;
    CHECK(differing == 0);
    CHECK(got(0) >= last);
    last = got(0);
  }
  done = true;
  updates.join();
}

TEST_CASE("session: the counter of a random op belongs to its node, whatever else a step asks for") {
  auto& cluster = shared_cluster();
  const weft::graph g;
  const auto scope = g.as_default();
  g.set_random_seed(7);
  weft::tensor<float, 1> r;
  weft::with_device("/job:ps/task:0", [&] { r = weft::random_uniform<float>({3}); });
  const auto other = weft::constant(1.f);
  weft::session here("", [] {
    weft::session_options options;
    options.allow_soft_placement = true;
    options.cluster = {{"ps", 1}, {"work", 2}};
    return options;
  }(), g);
  weft::session there(cluster.target("work", 0), {}, g), anew(cluster.target("work", 0), {}, g);
  const xt::xtensor<float, 1> first = there.run(r), second = std::get<0>(there.run(r, other)), third = there.run(r);
  CHECK(first != second);
  CHECK(second != third);
  CHECK(first == here.run(r));
  CHECK(second == std::get<0>(here.run(r, other)));
  CHECK(third == here.run(r));
  CHECK(first == anew.run(r));  // another session counts from the beginning
}
