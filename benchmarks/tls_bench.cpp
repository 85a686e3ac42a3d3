// What a secured transport costs: steps on two tasks, plain and with TLS by a key. One JSON line per step and transport.

#include "server_processes.hpp"

#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>
#ifdef WITH_TLS
#include <weft/tls.hpp>
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using transport = std::shared_ptr<const weft::transport_security>;

// Runs a step often and prints the median and the rate of its bytes.
void measure(const char* step, const char* name, int times, double bytes, const std::function<void()>& run) {
  std::vector<double> micros;
  for (int i = 0; i < times + times / 5 + 1; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (i > times / 5) micros.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(micros.begin(), micros.begin() + static_cast<std::ptrdiff_t>(micros.size() / 2), micros.end());
  const double median = micros[micros.size() / 2];
  std::printf("{\"benchmark\": \"tls\", \"step\": \"%s\", \"transport\": \"%s\", \"median_us\": %.1f, \"MB_per_s\": %.0f}\n", step, name, median, bytes / median);
  std::fflush(stdout);
}

void run_steps(const char* name, const transport& how) {
  constexpr std::int64_t elements = 16 << 20;  // 64 MiB
  const task_servers tasks({{"ps", 1}, {"work", 1}}, how);
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> v, small;
  weft::with_device("/job:ps/task:0", [&] {
    v = weft::variable<float, 1>(weft::fill({elements}, 1.f), "v");
    small = weft::variable<float, 1>(weft::fill({1}, 1.f), "small");
  });
  weft::operation nothing, one_value, all_values;
  weft::with_device("/job:work/task:0", [&] {
    nothing = weft::no_op();
    one_value = weft::operation(small + 1.f);
    all_values = weft::operation(weft::identity(v));
  });
  weft::session_options options;
  options.transport = how;
  weft::session session(tasks.target("work", 0), options, g);
  session.run(v.initializer(), small.initializer());
  const auto run_nothing = session.make_callable(nothing), run_one = session.make_callable(one_value), run_all = session.make_callable(all_values);
  measure("nothing", name, 2000, 0, [&] { run_nothing(); });
  measure("one_value_between_tasks", name, 2000, 4, [&] { run_one(); });
  measure("64_MiB_between_tasks", name, 20, elements * 4., [&] { run_all(); });
  const auto fetch = session.make_callable(v);
  measure("64_MiB_to_the_client", name, 20, elements * 4., [&] { (void)fetch(); });
}

}  // namespace

int main() {
  run_steps("plain", nullptr);
#ifdef WITH_TLS
  run_steps("tls_key", weft::tls::with_key("0123456789012345678901234567890123456789+A="));
#endif
}
