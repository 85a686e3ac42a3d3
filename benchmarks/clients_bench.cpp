// Many clients at once on one cluster of two tasks, each with a session and a thread of its own: steps a second of all of them together, for 8 and for 200,
// every value checked. One JSON line per number of clients, then their ratio.

#include "server_processes.hpp"

#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

struct outcome {
  double steps_a_second;
  int wrong;
};

// Steps of ps:0 and work:0, led by work:0, until the time is up.
outcome run_clients(const task_servers& tasks, int clients, std::chrono::milliseconds time) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  weft::tensor<float, 0> made, y;
  weft::with_device("/job:ps/task:0", [&] { made = x * 2.f; });
  weft::with_device("/job:work/task:0", [&] { y = made + 1.f; });
  std::atomic<int> open{0}, wrong{0};
  std::atomic<long> steps{0};
  std::atomic<bool> begun{false}, ended{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i)
    threads.emplace_back([&, i] {
      weft::session session(tasks.target("work", 0), weft::session_options(), weft::graph(g.state()));
      const auto step = session.make_callable(weft::feeds(x), y);
      (void)step(0.f);
      ++open;
      while (!begun) std::this_thread::yield();
      for (long n = 0; !ended; ++n) {
        const float fed = static_cast<float>(i) + static_cast<float>(n % 1000) / 1024.f;
        if (step(fed) != fed * 2.f + 1.f) ++wrong;
        ++steps;
      }
    });
  while (open < clients) std::this_thread::yield();
  const auto begin = clock_type::now();
  begun = true;
  std::this_thread::sleep_for(time);
  const long done = steps;
  const double seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
  ended = true;
  for (std::thread& t : threads) t.join();
  return {static_cast<double>(done) / seconds, wrong};
}

}  // namespace

int main() {
  const task_servers tasks({{"ps", 1}, {"work", 1}});
  std::vector<double> few, many;
  int wrong = 0;
  for (int round = 0; round < 5; ++round)
    for (const int clients : {8, 200}) {
      const outcome found = run_clients(tasks, clients, std::chrono::milliseconds(1500));
      (clients == 8 ? few : many).push_back(found.steps_a_second);
      wrong += found.wrong;
    }
  for (auto* each : {&few, &many}) std::sort(each->begin(), each->end());
  std::printf("{\"work\": \"8 clients at once\", \"unit\": \"steps/s\", \"weft\": %.0f, \"wrong\": %d}\n", few[2], wrong);
  std::printf("{\"work\": \"200 clients at once\", \"unit\": \"steps/s\", \"weft\": %.0f, \"peer\": %.0f, \"peer_name\": \"8 clients\", \"ratio\": %.3f}\n", many[2], few[2], many[2] / few[2]);
  return wrong == 0 ? 0 : 1;
}
