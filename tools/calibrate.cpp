// Measures this machine in about a second and prints the speeds that the simulation takes (see <weft/simulate.hpp>): the product of matrices, memory, what a node, a step and a
// message between two tasks on this machine cost.
//
//   calibrate > this_machine.txt

#include <weft/cluster/local_cluster.hpp>
#include <weft/graph.hpp>
#include <weft/simulate.hpp>
#include <weft/session.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

// The best time of one call, in seconds, of what fits into a tenth of a second.
double seconds_of(const std::function<void()>& call) {
  using clock = std::chrono::steady_clock;
  call();
  double best = 1e9;
  const auto end = clock::now() + std::chrono::milliseconds(100);
  do {
    const auto begin = clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(clock::now() - begin).count());
  } while (clock::now() < end);
  return best;
}

weft::session_options one_thread() {
  weft::session_options out;
  out.kernel_threads = 1;
  out.optimizer = weft::optimizer_options::none();
  return out;
}

double seconds_of_local_step(const std::function<weft::operation()>& build) {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::operation step = build();
  const weft::operation initialize = weft::global_variables_initializer();
  weft::local_session session(one_thread(), g);
  session.run(initialize);
  const auto run = session.make_callable(step);
  return seconds_of([&] { run(); });
}

weft::task_speed measure_task() {
  weft::task_speed out;
  constexpr std::int64_t n = 512, elements = 1 << 20, chain = 2000;
  out.flops_per_second = 2.0 * n * n * n / seconds_of_local_step([] {
    const weft::variable<float, 2> a(weft::fill({n, n}, 0.5f)), b(weft::fill({n, n}, 0.5f));
    return weft::operation(weft::matmul(a, b));
  });
  out.bytes_per_second = 3.0 * 4 * elements / seconds_of_local_step([] {
    const weft::variable<float, 1> a(weft::fill({elements}, 0.5f)), b(weft::fill({elements}, 0.5f));
    return weft::operation(a + b);
  });
  const double nothing = seconds_of_local_step([] { return weft::no_op(); });
  out.seconds_per_node = std::max(1e-9, (seconds_of_local_step([] {
                           const weft::variable<float, 0> start(1.f);
                           weft::tensor<float, 0> x = start;
                           for (int i = 0; i < chain; ++i) x = -x;
                           return weft::operation(x);
                         }) - nothing) / chain);
  out.processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return out;
}

// A step in which a value of `elements` floats goes from one task to the other.
double seconds_of_transfer(weft::local_cluster& cluster, std::int64_t elements) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> v;
  weft::with_device("/job:work/task:0", [&] { v = weft::variable<float, 1>(weft::fill({elements}, 1.f), "sent_" + std::to_string(elements)); });
  const weft::operation done = weft::with_device("/job:work/task:1", [&] { return weft::operation(weft::identity(v)); });
  weft::session session(cluster.target("work", 1), weft::session_options(), g);
  session.run(weft::global_variables_initializer());
  const auto run = session.make_callable(done);
  return seconds_of([&] { run(); });
}

}  // namespace

int main() {
  try {
    weft::cost_model model;
    model.task = measure_task();
    weft::local_cluster cluster({{"work", 2}});
    {
      const weft::graph g;
      const auto scope = g.as_default();
      const weft::operation nothing = weft::with_device("/job:work/task:1", [] { return weft::no_op(); });
      weft::session session(cluster.target("work", 1), weft::session_options(), g);
      const auto run = session.make_callable(nothing);
      model.task.seconds_per_step = seconds_of([&] { run(); });
    }
    constexpr std::int64_t few = 16, many = 4 << 20;
    const double small = seconds_of_transfer(cluster, few), large = seconds_of_transfer(cluster, many);
    model.link.latency = std::max(1e-6, small - model.task.seconds_per_step);
    model.link.bytes_per_second = 4.0 * (many - few) / std::max(1e-9, large - small);
    std::cout << to_text(model);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "calibrate: " << e.what() << '\n';
    return 1;
  }
}
