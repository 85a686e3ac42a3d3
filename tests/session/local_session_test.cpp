#include <weft/session/local_session.hpp>

#include <weft/kernels/standard.hpp>

#include "session_suite.hpp"

#include <atomic>

namespace {

std::unique_ptr<weft::session_interface> open_local(const weft::session_options& options, const weft::graph& g) {
  return std::make_unique<weft::local_session>(weft::cluster_spec{{"ps", 1}, {"work", 2}}, options, weft::graph(g.state()));
}

// Waits until the step is cancelled.
struct waiting_kernel : weft::kernel {
  bool asynchronous() const noexcept override { return true; }
  void compute(weft::kernel_context&) override {}
  void compute_async(weft::kernel_context& context, weft::kernel_done done) override {
    started = true;
    context.environment().cancellation.on_cancel([done](const weft::status& why) { done(why); });
  }
  static std::atomic<bool> started;
};
std::atomic<bool> waiting_kernel::started{false};

weft::op_registry ops_that_wait() {
  auto ops = weft::standard_ops();
  ops.add(weft::op("Wait").output("y: float").stateful());
  return ops;
}

weft::session_options options_that_wait() {
  auto kernels = weft::standard_kernels();
  kernels.add({"Wait", "CPU", {}, 0}, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return std::make_unique<waiting_kernel>(); });
  weft::session_options options;
  options.kernels = std::make_shared<const weft::kernel_registry>(std::move(kernels));
  return options;
}

}  // namespace

TEST_CASE("local_session: every session's behaviour") { session_suite::run(open_local); }

TEST_CASE("local_session: one task with several devices") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x, y;
  weft::with_device("/device:CPU:1", [&] { x = weft::constant({1.f, 2.f}); });
  weft::with_device("/cpu:3", [&] { y = x + 1.f; });
  weft::session_options options;
  options.devices = {{"CPU", 4}};
  weft::local_session session(options);
  CHECK(session.run(y) == xt::xtensor<float, 1>{2.f, 3.f});
  const auto parts = session.partitions({{}, {y.raw()}, {}});
  REQUIRE(parts.transfers().size() == 1);
  CHECK(parts.transfers()[0].from == "/job:localhost/task:0/device:CPU:1");
  CHECK(parts.transfers()[0].to == "/job:localhost/task:0/device:CPU:3");
  CHECK(session.list_devices().size() == 4);
}

TEST_CASE("local_session: a job of another cluster gets a hint") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::with_device("/job:ps/task:0", [] { return weft::constant(1.f, "x"); });
  weft::local_session session;
  const auto refused = session_suite::error_of([&] { session.run(x); });
  CHECK(refused.code == weft::error_code::invalid_argument);
  CHECK(refused.message.find("the session is local") != std::string::npos);
}

TEST_CASE("local_session: the longest timeout is one") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto y = weft::constant(1.f) + 1.f;
  for (const bool seeded : {false, true}) {
    weft::session_options options;
    if (seeded) options.schedule_seed = 1;
    weft::local_session session(options, g);
    CHECK(session.run(weft::run_options{std::chrono::milliseconds::max()}, y) == 2.f);
  }
}

TEST_CASE("local_session: a step ends at its timeout and the session goes on") {
  const weft::graph g(ops_that_wait());
  const auto scope = g.as_default();
  const weft::tensor<float> never(weft::output{&weft::detail::add_node("Wait", {}, "never"), 0});
  weft::local_session session(options_that_wait());
  weft::run_options run;
  run.timeout = std::chrono::milliseconds(20);
  const auto late = session_suite::error_of([&] { session.run(run, never); });
  CHECK(late.code == weft::error_code::deadline_exceeded);
  CHECK(late.message == "the step did not end within 20 ms");
  CHECK(session.run(weft::constant(1.f)) == 1.f);
}

TEST_CASE("local_session: a kernel that fails ends those that wait, on its task and on others") {
  for (const std::string where : {"/job:work/task:0", "/job:ps/task:0"}) {
    const weft::graph g(ops_that_wait());
    const auto scope = g.as_default();
    weft::tensor<float> never;
    weft::tensor<std::int32_t, 0> zero = weft::placeholder<std::int32_t, 0>("zero"), divided;
    weft::with_device(where, [&] { never = weft::tensor<float>(weft::output{&weft::detail::add_node("Wait", {}, "never"), 0}); });
    weft::with_device("/job:work/task:0", [&] { divided = weft::constant(7) / zero; });
    weft::local_session session(weft::cluster_spec{{"ps", 1}, {"work", 1}}, options_that_wait());
    const auto failed = session_suite::error_of([&] { session.run({{zero, 0}}, never, divided); });
    CHECK(failed.code == weft::error_code::invalid_argument);
    CHECK(failed.node == divided.raw().from->name());
    CHECK(session.run({{zero, 2}}, divided) == 3);
  }
}

TEST_CASE("local_session: close cancels running steps") {
  const weft::graph g(ops_that_wait());
  const auto scope = g.as_default();
  const weft::tensor<float> never(weft::output{&weft::detail::add_node("Wait", {}, "never"), 0});
  weft::local_session session(options_that_wait());
  waiting_kernel::started = false;
  weft::status ended;
  std::thread runner([&] { ended = session_suite::error_of([&] { session.run(never); }); });
  while (!waiting_kernel::started) std::this_thread::yield();
  session.close();
  runner.join();
  CHECK(ended.code == weft::error_code::cancelled);
  CHECK(ended.message == "the session was closed while the step was running");
}

TEST_CASE("local_session: a prepared step outlives its session") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>();
  auto session = std::make_unique<weft::local_session>();
  const auto step = session->make_callable(weft::feeds(x), x * 2.f);
  session.reset();
  CHECK(step(4.f) == 8.f);
}

TEST_CASE("local_session: the signatures kept are bounded") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::session_options options;
  options.prepared_signatures = 2;
  weft::local_session session(options);
  const auto x = weft::constant(1.f), y = x + 1.f, z = y + 1.f;
  for (int i = 0; i < 3; ++i) {
    CHECK(session.run(x) == 1.f);
    CHECK(session.run(y) == 2.f);
    CHECK(session.run(z) == 3.f);
  }
}
