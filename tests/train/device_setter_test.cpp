#include <weft/train/device_setter.hpp>

#include <weft/graph.hpp>
#include <weft/train/optimizers.hpp>
#include <weft/train/partitioned_variable.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>

namespace {

const weft::cluster_spec two_and_three{{"ps", {"ps0:2222", "ps1:2222"}}, {"worker", {"w0:2222", "w1:2222", "w2:2222"}}};

std::string made_on(const std::string& name) {
  return weft::variable<float, 1>(weft::constant({1.f}), name).raw().from->device();
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const weft::error& e) {
    return e.status().message;
  }
  return "";
}

}  // namespace

TEST_CASE("device setter: variables in turn on the parameter servers, the rest on the worker") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto device = weft::with_device(weft::replica_device_setter(two_and_three));
  const weft::variable<float, 0> v(1.f, "v"), w(2.f, "w");
  const auto a = weft::add(v, w, "a");
  CHECK(v.raw().from->device() == "/job:ps/task:0");
  CHECK(w.raw().from->device() == "/job:ps/task:1");
  CHECK(v.initializer().get()->device() == "/job:ps/task:0");
  CHECK(w.initializer().get()->device() == "/job:ps/task:1");
  CHECK(a.raw().from->device() == "/job:worker");
  // Slots are with their variables, and do not take a turn.
  weft::momentum_optimizer momentum(0.1f, 0.9f);
  momentum.minimize(a);
  CHECK(momentum.slot(w, "momentum").raw().from->device() == "/job:ps/task:1");
  CHECK(g.find("Momentum/update_w/ResourceApplyMomentum")->device() == "/job:ps/task:1");
  CHECK(made_on("x") == "/job:ps/task:0");
}

// Expected: the digests of v_3, w_3, x_3, b_3 modulo 2, by Python's hashlib.
TEST_CASE("device setter: a strategy that draws from names does not depend on the order") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::replica_device_options options;
  options.strategy = weft::random_strategy(2, 3);
  const auto device = weft::with_device(weft::replica_device_setter(two_and_three, options));
  CHECK(made_on("x") == "/job:ps/task:0");
  CHECK(made_on("v") == "/job:ps/task:1");
  CHECK(made_on("b") == "/job:ps/task:1");
  CHECK(made_on("w") == "/job:ps/task:1");
}

TEST_CASE("device setter: devices that are asked for inside") {
  const weft::graph g;
  const auto scope = g.as_default();
  {
    const auto device = weft::with_device(weft::replica_device_setter(two_and_three));
    CHECK(weft::with_device("/cpu:0", [] { return made_on("v"); }) == "/job:ps/task:0/device:CPU:0");
    // Another job is no turn; the job itself is.
    CHECK(weft::with_device("/job:moon", [] { return made_on("w"); }) == "/job:moon");
    CHECK(weft::with_device("/job:moon", [] { return weft::with_device("/job:ps", [] { return made_on("x"); }); }) == "/job:ps/task:1");
    // A task that is asked for is kept, but takes a turn.
    CHECK(weft::with_device("/job:ps/task:1", [] { return made_on("y"); }) == "/job:ps/task:1");
    CHECK(made_on("z") == "/job:ps/task:1");
  }
  weft::replica_device_options options;
  options.merge_devices = false;
  const auto device = weft::with_device(weft::replica_device_setter(two_and_three, options));
  CHECK(weft::with_device("/job:ps", [] { return made_on("u"); }) == "/job:ps");
}

TEST_CASE("device setter: other jobs, a cluster without the job, tasks with gaps") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::replica_device_options options;
  options.ps_device = "/job:moon/cpu:0";
  options.worker_device = "/job:sun/task:1";
  {
    const auto device = weft::with_device(weft::replica_device_setter(weft::cluster_spec{{"sun", 3}, {"moon", 2}}, options));
    CHECK(made_on("v") == "/job:moon/task:0/device:CPU:0");
    CHECK(made_on("w") == "/job:moon/task:1/device:CPU:0");
    CHECK(weft::constant(1.f).raw().from->device() == "/job:sun/task:1");
  }
  {
    const auto device = weft::with_device(weft::replica_device_setter(weft::cluster_spec{{"worker", 1}}));
    CHECK(made_on("free") == "");
  }
  const auto device = weft::with_device(weft::replica_device_setter(weft::cluster_spec({{"ps", {{1, "a:1"}, {3, "b:1"}}}, {"worker", {{0, "c:1"}}}})));
  CHECK(made_on("first") == "/job:ps/task:1");
  CHECK(made_on("second") == "/job:ps/task:3");
}

TEST_CASE("device setter: strategies") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto tasks_of = [](const weft::ps_strategy& strategy) {
    weft::replica_device_options options;
    options.strategy = strategy;
    const auto device = weft::with_device(weft::replica_device_setter(two_and_three, options));
    std::string out;
    const std::int64_t shapes[][2] = {{2, 2}, {2, 1}, {2, 2}, {1, 3}};
    for (const auto& shape : shapes) {
      const weft::variable<float, 2> v(weft::zeros<float>(shape));
      out += v.raw().from->device() == "/job:ps/task:0" ? '0' : '1';
    }
    return out;
  };
  CHECK(tasks_of(weft::greedy_load_balancing(2)) == "0110");
  CHECK(tasks_of(weft::greedy_load_balancing(2, [](const weft::node&) { return 1.; })) == "0101");
  CHECK(tasks_of([](const weft::node&) { return 1; }) == "1111");
}

TEST_CASE("device setter: the bytes of each parameter server, and pieces that balance them") {
  const auto bytes = [](bool in_pieces) {
    const weft::graph g;
    const auto scope = g.as_default();
    weft::replica_device_options options;
    options.strategy = weft::greedy_load_balancing(4);
    const auto device = weft::with_device(weft::replica_device_setter(4, options));
    if (in_pieces) weft::get_partitioned_variable<float>("w", {784, 1024}, weft::fixed_size_partitioner(4));
    else weft::get_variable<float>("w", {784, 1024});
    weft::get_variable<float>("b", {1024});
    weft::get_variable<float>("v", {1024, 10});
    weft::get_variable<float>("c", {10});
    return weft::variable_bytes_by_device(g);
  };
  CHECK(bytes(false) == std::map<std::string, std::int64_t>{{"/job:ps/task:0", 3211264}, {"/job:ps/task:1", 4096}, {"/job:ps/task:2", 40960}, {"/job:ps/task:3", 40}});
  CHECK(bytes(true) == std::map<std::string, std::int64_t>{{"/job:ps/task:0", 802816 + 4096}, {"/job:ps/task:1", 802816 + 40960}, {"/job:ps/task:2", 802816 + 40}, {"/job:ps/task:3", 802816}});
}

TEST_CASE("device setter: misuse") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::replica_device_options options;
  options.strategy = [](const weft::node&) { return 2; };
  {
    const auto device = weft::with_device(weft::replica_device_setter(two_and_three, options));
    CHECK(message_of([] { made_on("v"); }) == "the strategy chose parameter server 2 of 2");
  }
  options.strategy = weft::greedy_load_balancing(2);
  {
    const auto device = weft::with_device(weft::replica_device_setter(two_and_three, options));
    CHECK(message_of([] { weft::variable<float, 1> v(weft::placeholder<float, 1>()); }) == "the bytes of a variable of shape [?] and dtype float are not known");
  }
  options.ps_device = "/cpu:0";
  CHECK(message_of([&] { weft::replica_device_setter(two_and_three, options); }) == "replica_device_setter: ps_device must name a job of the cluster, found '/cpu:0'");
  CHECK(message_of([] { weft::replica_device_setter(-1); }) == "replica_device_setter: the number of parameter servers must not be negative, found -1");
}
