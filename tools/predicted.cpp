// How true the simulation of a step is on this machine: steps of 1, 2 and 4 tasks, which share its processors, are predicted and measured, and the two are set side by side. One step does nothing on each
// task; one trains a network 784-256-128-10 with its batch of 256 split over the tasks and its variables on the first.
//
//   calibrate > this_machine.txt
//   predicted --speeds this_machine.txt

#include <weft/cluster/local_cluster.hpp>
#include <weft/gradients.hpp>
#include <weft/graph.hpp>
#include <weft/session.hpp>
#include <weft/simulate.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::string task(int i) { return "/job:work/task:" + std::to_string(i); }

weft::operation null_step(int tasks) {
  std::vector<weft::operation> parts;
  for (int i = 0; i < tasks; ++i) parts.push_back(weft::with_device(task(i), [] { return weft::no_op(); }));
  const auto after = weft::control_dependencies(parts);
  return weft::with_device(task(0), [] { return weft::no_op("done"); });
}

// In-graph replication: a tower on each task, gradients added where the variables are.
weft::operation training_step(int tasks) {
  const std::int64_t batch = 256 / tasks;
  const std::vector<std::int64_t> sizes = {784, 256, 128, 10};
  std::vector<weft::variable<float, 2>> weights;
  std::vector<weft::variable<float, 1>> biases;
  weft::with_device(task(0), [&] {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      weights.emplace_back(weft::fill({sizes[i], sizes[i + 1]}, 0.01f));
      biases.emplace_back(weft::fill({sizes[i + 1]}, 0.01f));
    }
  });
  std::vector<weft::output> handles;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    handles.push_back(weights[i].raw());
    handles.push_back(biases[i].raw());
  }
  std::vector<std::vector<weft::tensor<float>>> found(handles.size());
  for (int t = 0; t < tasks; ++t) {
    const auto device = weft::with_device(task(t));
    const weft::variable<float, 2> x(weft::fill({batch, sizes.front()}, 0.5f)), y(weft::fill({batch, sizes.back()}, 0.1f));
    weft::tensor<float, 2> h = x;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      h = weft::bias_add(weft::matmul(h, weights[i]), biases[i]);
      if (i + 1 < weights.size()) h = weft::relu(h);
    }
    const auto all = weft::gradients(weft::reduce_mean(weft::square(h - y)), handles);
    for (std::size_t k = 0; k < handles.size(); ++k) found[k].emplace_back(all[k].values());
  }
  std::vector<weft::operation> updates;
  const auto on_first = weft::with_device(task(0));
  for (std::size_t k = 0; k < handles.size(); ++k) {
    const weft::tensor<float> change = weft::add_n(found[k]) * 0.001f;
    if (k % 2 == 0) updates.push_back(weights[k / 2].assign_sub(change));
    else updates.push_back(biases[k / 2].assign_sub(change));
  }
  return weft::group(updates);
}

// The median of steps for about a second; others on the machine make single ones slow.
double measured(const std::function<void()>& step) {
  using clock = std::chrono::steady_clock;
  for (int i = 0; i < 20; ++i) step();
  std::vector<double> times;
  const auto end = clock::now() + std::chrono::seconds(1);
  do {
    const auto begin = clock::now();
    step();
    times.push_back(std::chrono::duration<double>(clock::now() - begin).count());
  } while (clock::now() < end);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// The tasks share the processors of this machine.
weft::cost_model shared_by(weft::cost_model model, int tasks) {
  const double each = static_cast<double>(model.task.processors) / tasks;
  model.task.processors = std::max(1, static_cast<int>(each));
  model.task.flops_per_second *= std::min(1.0, each);
  model.task.bytes_per_second *= std::min(1.0, each);
  return model;
}

void compare(const char* name, int tasks, weft::operation (*build)(int), const weft::cost_model& speeds) {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::operation step = build(tasks), initialize = weft::global_variables_initializer();
  const weft::local_cluster cluster({{"work", tasks}});
  weft::session session(cluster.target("work", 0), weft::session_options(), g);
  session.run(initialize);
  const weft::partitioned_graph parts = session.partitions({{}, {}, {step.get()}});
  const double predicted = simulate_step(parts, shared_by(speeds, tasks)).seconds;
  const auto run = session.make_callable(step);
  const double found = measured([&] { run(); });
  std::size_t nodes = 0;
  for (const weft::part& p : parts.parts()) nodes += p.graph.size();
  std::printf("%-10s %6d %7zu %10zu %14.3f %14.3f %+8.0f%%\n", name, tasks, nodes, parts.transfers().size(), predicted * 1e3, found * 1e3, 100 * (predicted / found - 1));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string speeds;
  std::vector<int> tasks = {1, 2, 4};
  CLI::App app("Sets predicted beside measured times of steps on this machine.");
  app.add_option("--speeds", speeds, "A file of speeds, as `calibrate` prints it")->required();
  app.add_option("--tasks", tasks, "Numbers of tasks")->delimiter(',')->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    std::ifstream in(speeds);
    if (!in) throw std::runtime_error("cannot read '" + speeds + "'");
    std::ostringstream text;
    text << in.rdbuf();
    const weft::cost_model model = weft::parse_cost_model(text.str());
    std::printf("%-10s %6s %7s %10s %14s %14s %9s\n", "step", "tasks", "nodes", "transfers", "predicted, ms", "measured, ms", "error");
    for (const int n : tasks) compare("null", n, null_step, model);
    for (const int n : tasks) compare("training", n, training_step, model);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "predicted: " << e.what() << '\n';
    return 1;
  }
}
