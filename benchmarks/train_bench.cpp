// Training a 784-256-128-10 network with batches of 64: in one process, and with two parameter servers and two workers, asynchronous and synchronous. Each line has steps per
// second of all workers together, and beside it the bound that the machine sets: the bytes of parameters and gradients at the speed of bare TCP, the products at that of weft's
// own matrix product, the updates at that of memory, over the processors.

#include "barrier.hpp"
#include "server_processes.hpp"

#include <weft/graph.hpp>
#include <weft/gradients.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
constexpr std::int64_t batch = 64, sizes[] = {784, 256, 128, 10};
constexpr int workers = 2;

// Weights are sin(i) * 0.05, so that every system starts alike. `device(i)` is where the i-th variable lives.
struct network {
  weft::tensor<float, 2> images = weft::placeholder<float, 2>({weft::dim(batch), weft::dim(sizes[0])}, "images");
  weft::tensor<std::int64_t, 1> labels = weft::placeholder<std::int64_t, 1>({weft::dim(batch)}, "labels");
  weft::tensor<float, 0> loss;

  template <class Device> explicit network(Device device) {
    weft::tensor<float, 2> h = images;
    for (int layer = 0; layer < 3; ++layer) {
      const std::int64_t in = sizes[layer], out = sizes[layer + 1];
      xt::xtensor<float, 2> start = xt::zeros<float>({static_cast<std::size_t>(in), static_cast<std::size_t>(out)});
      for (std::size_t i = 0; i < start.size(); ++i) start.flat(i) = static_cast<float>(std::sin(static_cast<double>(i)) * 0.05);
      const std::string index = std::to_string(layer);
      weft::variable<float, 2> w;
      weft::variable<float, 1> b;
      weft::with_device(device(2 * layer), [&] { w = weft::variable<float, 2>(start, "w" + index); });
      weft::with_device(device(2 * layer + 1), [&] { b = weft::variable<float, 1>(weft::fill({out}, 0.f), "b" + index); });
      h = weft::matmul(h, w) + b;
      if (layer < 2) h = weft::relu(h);
    }
    loss = weft::reduce_mean(weft::sparse_softmax_cross_entropy_with_logits(labels, h));
  }
};

// Formula data of Fashion-MNIST's shape: only speed is measured.
struct data {
  std::vector<xt::xtensor<float, 2>> images;
  std::vector<xt::xtensor<std::int64_t, 1>> labels;
  data() {
    for (std::size_t i = 0; i < 16; ++i) {
      images.push_back(xt::zeros<float>({std::size_t(batch), std::size_t(sizes[0])}));
      labels.push_back(xt::zeros<std::int64_t>({std::size_t(batch)}));
      for (std::size_t k = 0; k < images[i].size(); ++k) images[i].flat(k) = static_cast<float>(std::sin(static_cast<double>(i * images[i].size() + k) * 0.37) * 0.5 + 0.5);
      for (std::size_t k = 0; k < labels[i].size(); ++k) labels[i](k) = static_cast<std::int64_t>((i * labels[i].size() + k) * 7 % 10);
    }
  }
  template <class Step> void feed(const Step& step, int i) const { step(images[static_cast<std::size_t>(i) % 16], labels[static_cast<std::size_t>(i) % 16]); }
};

double seconds_since(clock_type::time_point begin) { return std::chrono::duration<double>(clock_type::now() - begin).count(); }

double best_of(int rounds, int calls, const std::function<void()>& call) {
  double best = 1e9;
  call();
  for (int r = 0; r < rounds; ++r) {
    const auto begin = clock_type::now();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, seconds_since(begin) / calls);
  }
  return best;
}

// Seconds that a step's products take in weft's own matrix product on one thread.
double product_seconds() {
  double sum = 0;
  for (int layer = 0; layer < 3; ++layer) {
    const weft::graph g;
    const auto scope = g.as_default();
    const weft::variable<float, 2> x(weft::fill({batch, sizes[layer]}, 0.5f)), w(weft::fill({sizes[layer], sizes[layer + 1]}, 0.5f)), dy(weft::fill({batch, sizes[layer + 1]}, 0.5f));
    std::vector<weft::operation> products = {weft::matmul(x, w), weft::matmul(x, dy, weft::transpose_a)};
    if (layer > 0) products.push_back(weft::matmul(dy, w, weft::transpose_b));
    weft::session_options one_thread;
    one_thread.kernel_threads = 1;
    weft::local_session session(one_thread, g);
    session.run(weft::global_variables_initializer());
    const auto run = session.make_callable(weft::group(products));
    sum += best_of(5, 200, [&] { run(); });
  }
  return sum;
}

// Seconds that the updates of a step take: each variable, and its gradient, read and written once.
double update_seconds() {
  const weft::graph g;
  const auto scope = g.as_default();
  std::int64_t elements = 0;
  for (int layer = 0; layer < 3; ++layer) elements += sizes[layer] * sizes[layer + 1] + sizes[layer + 1];
  const weft::variable<float, 1> w(weft::fill({elements}, 0.5f)), gradient(weft::fill({elements}, 0.f));
  const weft::operation update = w.assign_sub(gradient);
  weft::local_session session({}, g);
  session.run(weft::global_variables_initializer());
  const auto run = session.make_callable(update);
  return best_of(5, 200, [&] { run(); });
}

// Bytes that one step of a worker moves: the variables to it, the gradients from it.
double step_bytes() {
  std::int64_t elements = 0;
  for (int layer = 0; layer < 3; ++layer) elements += sizes[layer] * sizes[layer + 1] + sizes[layer + 1];
  return 2.0 * 4 * static_cast<double>(elements);
}

double steps_per_second_local(const data& batches, int steps) {
  const weft::graph g;
  const auto scope = g.as_default();
  const network net([](int) { return ""; });
  const auto train = weft::gradient_descent_optimizer(0.1f).minimize(net.loss);
  weft::local_session session({}, g);
  session.run(weft::global_variables_initializer());
  const auto step = session.make_callable(weft::feeds(net.images, net.labels), train);
  std::vector<double> times;
  for (int i = 0; i < steps + 50; ++i) {
    const auto begin = clock_type::now();
    batches.feed(step, i);
    if (i >= 50) times.push_back(seconds_since(begin));
  }
  std::sort(times.begin(), times.end());
  return 1 / times[times.size() / 2];
}

double steps_per_second(const task_servers& tasks, const data& batches, int steps, bool in_step) {
  barrier ready(workers);
  std::vector<double> seconds(workers);
  std::vector<std::thread> threads;
  for (int index = 0; index < workers; ++index)
    threads.emplace_back([&, index] {
      const weft::graph g;
      const auto scope = g.as_default();
      const auto here = weft::with_device("/job:work/task:" + std::to_string(index));
      const network net([](int i) { return "/job:ps/task:" + std::to_string(i % 2); });
      weft::gradient_descent_optimizer descent(0.1f);
      weft::sync_replicas_optimizer in_step_descent(descent, workers);
      weft::optimizer& optimizer = in_step ? static_cast<weft::optimizer&>(in_step_descent) : descent;
      const auto global_step = weft::with_device("/job:ps/task:0", [] { return weft::create_global_step(); });
      const auto train = optimizer.minimize(net.loss, global_step);
      const auto initialize = weft::global_variables_initializer();
      weft::session session(tasks.target("work", index), weft::session_options(), g);
      if (index == 0) session.run(initialize);
      ready.arrive_and_wait();
      std::optional<weft::sync_replica> replica;
      if (in_step) replica.emplace(in_step_descent, session, index == 0 ? weft::replica_role::chief : weft::replica_role::worker);
      const auto step = session.make_callable(weft::feeds(net.images, net.labels), train);
      for (int i = 0; i < 20; ++i) batches.feed(step, i);
      ready.arrive_and_wait();
      const auto begin = clock_type::now();
      for (int i = 0; i < steps; ++i) batches.feed(step, i);
      seconds[static_cast<std::size_t>(index)] = seconds_since(begin);
      ready.arrive_and_wait();
    });
  for (std::thread& t : threads) t.join();
  return workers * steps / *std::max_element(seconds.begin(), seconds.end());
}

void report(const char* work, double steps, double bound) {
  std::printf("{\"work\": \"train.%s\", \"unit\": \"steps/s\", \"weft\": %.1f, \"bound\": %.1f, \"share_of_bound\": %.2f}\n", work, steps, bound, steps / bound);
  std::fflush(stdout);
}

}  // namespace

int main() {
  const data batches;
  const auto processors = static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));
  const task_servers for_asynchronous({{"ps", 2}, {"work", workers}}), for_synchronous({{"ps", 2}, {"work", workers}});
  double bytes_per_second = 0;
  {
    bare_stream stream(64 * mebibyte);
    bytes_per_second = 64 * static_cast<double>(mebibyte) / best_of(5, 2, [&] { stream.step(); });
  }
  const double products = product_seconds(), updates = update_seconds(), bytes = step_bytes() / bytes_per_second;
  std::printf("{\"work\": \"parts of a step's bound\", \"unit\": \"us\", \"products_one_thread\": %.1f, \"updates_one_thread\": %.1f, \"bytes_raw_tcp\": %.1f}\n", products * 1e6, updates * 1e6, bytes * 1e6);
  // Computing is spread over the processors; a stream of bytes keeps two of them busy already.
  report("local", steps_per_second_local(batches, 1000), processors / (products + updates));
  const double bound = 1 / (bytes + (products + updates) / processors);
  report("async", steps_per_second(for_asynchronous, batches, 1000, false), bound);
  report("sync", steps_per_second(for_synchronous, batches, 1000, true), bound);
}
