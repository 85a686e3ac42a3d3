// Steps without work: each worker fetches a value from every one of four parameter servers, multiplies it by zero and sends it back as an update. One JSON line per number of
// workers and size, with microseconds of a step of one worker while all of them run.

#include "barrier.hpp"
#include "server_processes.hpp"

#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int parameter_servers = 4;

struct sizes {
  const char* name;
  std::int64_t elements;  // of all servers together
  int warm, steps;
};

// Microseconds of each step of one worker.
std::vector<double> work(const task_servers& tasks, int index, const sizes& size, barrier& ready) {
  const weft::graph g;
  const auto scope = g.as_default();
  std::vector<weft::operation> initializers, updates;
  for (int p = 0; p < parameter_servers; ++p) {
    const std::string name = std::string(size.name) + "_" + std::to_string(p);
    weft::variable<float, 1> v;
    weft::with_device("/job:ps/task:" + std::to_string(p),
                      [&] { v = weft::variable<float, 1>(weft::fill({std::max<std::int64_t>(1, size.elements / parameter_servers)}, 0.f), name); });
    initializers.push_back(v.initializer());
    weft::with_device("/job:work/task:" + std::to_string(index), [&] { updates.push_back(v.assign_add(v * 0.f)); });
  }
  weft::operation initialize, step;
  weft::with_device("/job:work/task:" + std::to_string(index), [&] {
    initialize = weft::group(initializers);
    step = weft::group(updates);
  });
  weft::session session(tasks.target("work", index), weft::session_options(), g);
  session.run(initialize);
  const auto run = session.make_callable(step);
  run();
  ready.arrive_and_wait();
  std::vector<double> times;
  for (int i = 0; i < size.warm + size.steps; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (i >= size.warm) times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  return times;
}

void null_step(const task_servers& tasks, int workers, const sizes& size) {
  barrier ready(workers);
  std::vector<std::vector<double>> times(static_cast<std::size_t>(workers));
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) threads.emplace_back([&, i] { times[static_cast<std::size_t>(i)] = work(tasks, i, size, ready); });
  for (std::thread& each : threads) each.join();
  std::vector<double> all;
  for (const std::vector<double>& of_one : times) all.insert(all.end(), of_one.begin(), of_one.end());
  std::sort(all.begin(), all.end());
  std::printf("{\"work\": \"null_step.%s\", \"unit\": \"us\", \"ps\": %d, \"workers\": %d, \"bytes\": %lld, \"weft\": %.1f, \"low\": %.1f, \"high\": %.1f}\n", size.name, parameter_servers, workers,
              static_cast<long long>(size.elements * 4), all[all.size() / 2], all[all.size() / 10], all[all.size() * 9 / 10]);
  std::fflush(stdout);
}

}  // namespace

int main() {
  for (const int workers : {1, 2, 4, 8}) {
    const task_servers tasks({{"ps", parameter_servers}, {"work", workers}});
    null_step(tasks, workers, {"scalar", 1, 50, 1000});
    null_step(tasks, workers, {"dense_16MiB", 4 << 20, 2, 20});
  }
}
