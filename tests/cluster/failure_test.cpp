#include <weft/cluster/local_cluster.hpp>

#include "test_ops.hpp"

using test_ops::error_later;
using test_ops::error_of;
using test_ops::gate;
using test_ops::get;
using weft::error_code;

namespace {

// ps:0 makes x, work:1 waits with it, work:0 leads and adds one.
struct held_step {
  explicit held_step(const char* op = "TestWait") {
    const auto scope = graph.as_default();
    gate::instance().reset();
    weft::with_device("/job:ps/task:0", [&] { x = weft::constant(2.f) * weft::constant(3.f); });
    held = test_ops::node(op, x, "/job:work/task:1");
    weft::with_device("/job:work/task:0", [&] { y = held + 1.f; });
    free = weft::with_device("/job:work/task:0", [&] { return weft::constant(1.f) + 2.f; });
  }
  weft::graph graph{test_ops::ops()};
  weft::tensor<float, 0> x, held, y, free;
};

}  // namespace

TEST_CASE("failure: a task that stops in mid-step ends the step with UNAVAILABLE that names it") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, test_ops::options());
  held_step step;
  weft::session session(cluster.target("work", 0), {}, step.graph);
  auto result = error_later([&] { session.run(step.y); });
  REQUIRE(gate::instance().wait_entered(1));
  const std::string address = cluster.spec().task_address("work", 1);
  cluster.stop("work", 1);
  const weft::status why = get(result);
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message.find("task /job:work/task:1 at " + address + ": ") == 0);
  CHECK(why.may_have_run);
  // Others go on, and this session too.
  CHECK(session.run(step.free) == 3.f);
  const weft::status down = error_of([&] { session.run(step.y); });
  CHECK(down.code == error_code::unavailable);
  CHECK(down.message == "task /job:work/task:1 at " + address + ": connection refused: no server is listening at " + address);
  CHECK_FALSE(down.may_have_run);
}

TEST_CASE("failure: a task that was restarted between steps is ABORTED once") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, test_ops::options());
  held_step step;
  gate::instance().open();
  weft::session session(cluster.target("work", 0), {}, step.graph);
  CHECK(session.run(step.y) == 7.f);
  for (const auto& [job, index] : {std::pair("ps", 0), std::pair("work", 0)}) {
    cluster.stop(job, index);
    cluster.start(job, index);
    const weft::status why = error_of([&] { session.run(step.y); });
    CHECK(why.code == error_code::aborted);
    CHECK(why.message == "task " + to_text(weft::task_id{job, index}) + " at " + cluster.spec().task_address(job, index) +
                             " was restarted; what it kept (variables, queues) is lost, the next run starts with it anew");
    CHECK(session.run(step.y) == 7.f);
  }
}

TEST_CASE("failure: a server that stops tells its clients CANCELLED") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, test_ops::options());
  held_step step;
  weft::session session(cluster.target("work", 0), {}, step.graph);
  auto result = error_later([&] { session.run(step.y); });
  REQUIRE(gate::instance().wait_entered(1));
  cluster.stop("work", 0);
  const weft::status why = get(result);
  CHECK(why.code == error_code::cancelled);
  CHECK(why.message == "task /job:work/task:0 at " + cluster.spec().task_address("work", 0) + " was stopped");
  CHECK(gate::instance().wait_left(1));  // the part on the other task has ended
}

TEST_CASE("failure: a timeout ends the step on every task") {
  auto options = test_ops::options();
  options.abort_grace = std::chrono::minutes(10);
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, options);
  held_step step;
  weft::session session(cluster.target("work", 0), {}, step.graph);
  const auto begun = std::chrono::steady_clock::now();
  const weft::status late = error_of([&] { session.run(weft::run_options{std::chrono::milliseconds(50)}, step.y); });
  CHECK(late.code == error_code::deadline_exceeded);
  CHECK(late.message == "the step took longer than 50 ms");
  CHECK(std::chrono::steady_clock::now() - begun < options.abort_grace);
  CHECK(gate::instance().wait_left(1));
  gate::instance().open();
  CHECK(session.run(step.y) == 7.f);
}

TEST_CASE("failure: a kernel that ignores cancellation costs the abort's grace") {
  auto options = test_ops::options();
  options.abort_grace = std::chrono::milliseconds(200);
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, options);
  held_step step("TestBlock");
  weft::session session(cluster.target("work", 0), {}, step.graph);
  const auto begun = std::chrono::steady_clock::now();
  const weft::status late = error_of([&] { session.run(weft::run_options{std::chrono::milliseconds(50)}, step.y); });
  const auto took = std::chrono::steady_clock::now() - begun;
  CHECK(late.code == error_code::deadline_exceeded);
  CHECK(took >= std::chrono::milliseconds(250));
  CHECK(took < test_ops::patience);
  gate::instance().open();
  CHECK(session.run(step.y) == 7.f);
}

TEST_CASE("failure: a client that goes away cancels its step") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, test_ops::options());
  held_step step;
  {
    weft::session session(cluster.target("work", 0), {}, step.graph);
    auto result = error_later([&] { session.run(step.y); });
    REQUIRE(gate::instance().wait_entered(1));
    session.close();
    CHECK(get(result).code == error_code::cancelled);
  }
  CHECK(gate::instance().wait_left(1));
  gate::instance().open();
  weft::session next(cluster.target("work", 0), {}, step.graph);
  CHECK(next.run(step.y) == 7.f);
}

TEST_CASE("failure: a kernel that blocks does not stop the server, with one kernel thread") {
  auto options = test_ops::options();
  options.kernel_threads = 1;
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, options);
  held_step step("TestBlock");
  weft::session session(cluster.target("work", 1), {}, step.graph), other(cluster.target("work", 1), {}, step.graph);
  auto result = error_later([&] { session.run(step.y); });
  REQUIRE(gate::instance().wait_entered(1));
  CHECK(other.run(step.free) == 3.f);
  CHECK(other.list_devices().size() == 3);
  gate::instance().open();
  CHECK(get(result).ok());
}

TEST_CASE("failure: a kernel may run a step on its own server, with one kernel thread") {
  auto options = test_ops::options();
  options.kernel_threads = 1;
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, options);
  held_step step("TestCall");
  const weft::graph inner_graph{test_ops::ops()};
  weft::tensor<float, 0> in, out;
  {
    const auto scope = inner_graph.as_default();
    in = weft::placeholder<float, 0>("in");
    gate::instance().open();
    out = test_ops::node("TestBlock", in, "/job:work/task:1") * 10.f;  // needs the one thread
  }
  test_ops::call_kernel::call = [&](float x) {
    weft::session inner(cluster.target("work", 1), {}, inner_graph);
    return inner.run({{in, x}}, out);
  };
  weft::session session(cluster.target("work", 0), {}, step.graph);
  CHECK(session.run(weft::run_options{test_ops::patience}, step.y) == 61.f);
  test_ops::call_kernel::call = nullptr;
}

TEST_CASE("failure: the first root error is reported, not what follows from it") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, test_ops::options());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto a = weft::placeholder<float, 2>("a");
  weft::tensor<float, 2> product;
  weft::tensor<float, 0> total;
  weft::with_device("/job:ps/task:0", [&] { product = weft::matmul(a, a, "product"); });
  weft::with_device("/job:work/task:1", [&] { total = weft::reduce_sum(product); });
  const auto more = weft::with_device("/job:work/task:0", [&] { return total + 1.f; });
  weft::session session(cluster.target("work", 0), {}, g);
  for (int i = 0; i < 20; ++i) {
    const weft::status why = error_of([&] { session.run({{a, {{1, 2}}}}, more); });
    CHECK(why.code == error_code::invalid_argument);
    CHECK(why.node == "product");
    CHECK(why.device == "/job:ps/task:0/device:CPU:0");
    CHECK(why.task == "/job:ps/task:0 (" + cluster.spec().task_address("ps", 0) + ")");
    CHECK(why.may_have_run);
  }
  CHECK(session.run({{a, {{1, 2}, {3, 4}}}}, more) == 55.f);
}

TEST_CASE("failure: an op that only the client knows is UNIMPLEMENTED, with its node") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  held_step step;
  weft::session session(cluster.target("work", 0), {}, step.graph);
  const weft::status why = error_of([&] { session.run(step.y); });
  CHECK(why.code == error_code::unimplemented);
  CHECK(why.message == "op 'TestWait' is not known to task /job:work/task:0 at " + cluster.spec().task_address("work", 0) + "; give its definition and kernels to the servers (server_options::ops and kernels)");
  CHECK(why.node == "TestWait");
  CHECK(why.op == "TestWait");
  CHECK(why.site.find("test_ops.hpp:") == 0);
}
