// What it costs to build, prune, place and partition graphs of a thousand to a million nodes over 4 and 64 devices, and to play a step of them through the simulator. Each case runs in a
// process of its own, so that the peak of its memory is its own. Prints JSON lines; times are of the thread, in milliseconds, the best of several, with building from scratch each time.
//
//   graph_bench                      every case
//   graph_bench towers 100000 64     one case

#undef WEFT_SEPARATE_COMPILATION  // the passes are compiled where they are measured
#include <weft/gradients.hpp>
#include <weft/graph.hpp>
#include <weft/ops/standard_catalogue.hpp>
#include <weft/simulate.hpp>

#include "measure.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

struct made_graph {
  weft::graph graph;
  std::vector<weft::output> fetches;
  std::vector<const weft::node*> targets;
};

// Half of the tasks hold variables, half compute.
weft::cluster_spec cluster_of(int devices) { return {{"ps", devices / 2}, {"work", devices / 2}}; }

// One network per worker, of layers matmul, bias, relu, with its gradients and a step of descent; the variables of the layers in turn on the parameter servers.
made_graph towers_of(int layers, int devices) {
  made_graph out;
  const auto scope = out.graph.as_default();
  const int workers = devices / 2;
  for (int w = 0; w < workers; ++w) {
    const int own = layers / workers + (w < layers % workers ? 1 : 0);
    if (own == 0) continue;
    const auto on_worker = weft::with_device("/job:work/task:" + std::to_string(w));
    const auto names = weft::name_scope("tower_" + std::to_string(w));
    const auto x = weft::placeholder<float, 2>({32, 64}, "x");
    weft::tensor<float, 2> h = x;
    std::vector<weft::variable<float, 2>> weights;
    std::vector<weft::variable<float, 1>> biases;
    std::vector<weft::output> handles;
    for (int i = 0; i < own; ++i) {
      const auto layer = weft::name_scope("layer_" + std::to_string(i));
      {
        const auto on_server = weft::with_device("/job:ps/task:" + std::to_string((w + i) % (devices / 2)));
        weights.emplace_back(weft::zeros<float, 2>({64, 64}), "weights");
        biases.emplace_back(weft::zeros<float, 1>({64}), "bias");
        handles.push_back(weights.back().raw());
        handles.push_back(biases.back().raw());
      }
      h = weft::relu(weft::bias_add(weft::matmul(h, weights.back()), biases.back()));
    }
    const auto loss = weft::reduce_mean(h);
    const auto found = weft::gradients(loss, handles);
    for (int i = 0; i < own; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const auto dw = weft::tensor<float, 2>(found[2 * k].values()) * 0.1f;
      const auto db = weft::tensor<float, 1>(found[2 * k + 1].values()) * 0.1f;
      out.targets.push_back(weights[k].assign_sub(dw).get());
      out.targets.push_back(biases[k].assign_sub(db).get());
    }
    out.fetches.push_back(loss.raw());
  }
  return out;
}

made_graph towers(int nodes, int devices) {
  const int few = devices, more = 2 * devices;
  const auto at_few = static_cast<double>(towers_of(few, devices).graph.size()), at_more = static_cast<double>(towers_of(more, devices).graph.size());
  const double layers = few + (nodes - at_few) * (more - few) / (at_more - at_few);
  return towers_of(std::max(1, static_cast<int>(layers)), devices);
}

weft::node_spec simple(const char* op, std::vector<weft::output> inputs, int device, int devices) {
  weft::node_spec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.scoped = false;
  spec.device = std::string(device < devices / 2 ? "/job:ps/task:" : "/job:work/task:") + std::to_string(device % (devices / 2));
  return spec;
}

weft::node_spec constant(int device, int devices) {
  weft::node_spec spec = simple("Const", {}, device, devices);
  const auto value = weft::tensor_value::from(weft::shape{2}, std::vector<float>{1, 2});
  spec.attrs = {{"dtype", value.dtype()}, {"value", value}};
  return spec;
}

// One long chain that changes its device every hundred nodes.
made_graph chain(int nodes, int devices) {
  made_graph out;
  const weft::node* last = &out.graph.add(constant(0, devices));
  for (int i = 1; i < nodes; ++i) last = &out.graph.add(simple("Neg", {{last, 0}}, i / 100 % devices, devices));
  out.fetches = {{last, 0}};
  return out;
}

// Sums of two earlier nodes, each pinned to any device: nearly every edge crosses. One node of twenty is a constant.
made_graph random_graph(int nodes, int devices) {
  made_graph out;
  weft::detail::split_mix random(1);
  const auto below = [&random](int n) { return static_cast<int>(random.next() % static_cast<std::uint64_t>(n)); };
  std::vector<const weft::node*> made;
  for (int i = 0; i < nodes; ++i) {
    const int device = below(devices);
    if (i < 2 || below(20) == 0) {
      made.push_back(&out.graph.add(constant(device, devices)));
      continue;
    }
    const auto recent = [&] { return made[static_cast<std::size_t>(std::max(0, i - 1 - below(1000)))]; };
    made.push_back(&out.graph.add(simple("AddV2", {{recent(), 0}, {recent(), 0}}, device, devices)));
  }
  for (const weft::node* n : made) out.targets.push_back(n);
  return out;
}

made_graph make(const std::string& kind, int nodes, int devices) { return kind == "chain" ? chain(nodes, devices) : kind == "random" ? random_graph(nodes, devices) : towers(nodes, devices); }

double milliseconds(const work_function& work) {
  const double begin = seconds_now();
  work();
  return 1e3 * (seconds_now() - begin);
}

void measure_case(const std::string& kind, int nodes, int devices) {
  const int repetitions = nodes >= 1000000 ? 1 : nodes >= 100000 ? 5 : 20;
  const std::shared_ptr<const weft::kernel_catalogue> catalogue(std::shared_ptr<void>(), &weft::standard_catalogue());
  const weft::device_set set = weft::device_set::of_cluster(cluster_of(devices), {{"CPU", 1}}, catalogue);
  double build = 1e9, prune = 1e9, place = 1e9, cut = 1e9, play = 1e9;
  std::size_t size = 0, run = 0, transfers = 0;
  for (int i = 0; i < repetitions; ++i) {
    made_graph made;
    build = std::min(build, milliseconds([&] { made = make(kind, nodes, devices); }));
    size = made.graph.size();
    prune = std::min(prune, milliseconds([&] { weft::prune(made.graph, {}, made.fetches, made.targets); }));
    weft::placement where;
    place = std::min(place, milliseconds([&] { where = weft::place(made.graph, set); }));
    weft::partition_options options;
    options.fetches = made.fetches;
    options.targets = made.targets;
    weft::partitioned_graph parts;
    cut = std::min(cut, milliseconds([&] { parts = weft::partition(made.graph, set, where, options); }));
    transfers = parts.transfers().size();
    run = 0;
    for (const weft::part& p : parts.parts()) run += p.graph.size();
    if (nodes < 1000000) play = std::min(play, milliseconds([&] { weft::simulate_step(parts); }));
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"graph\": \"%s\", \"nodes\": %zu, \"devices\": %d, \"transfers\": %zu, \"unit\": \"ms\", \"build\": %.2f, \"prune\": %.2f, \"place\": %.2f, \"partition with its prune\": %.2f, \"place and partition\": %.2f, "
              "\"us a node\": %.3f, \"peak MB\": %.0f, \"simulated nodes a second\": %.0f}\n",
              kind.c_str(), size, devices, transfers, build, prune, place, cut, place + cut, 1e3 * (place + cut) / static_cast<double>(size), static_cast<double>(usage.ru_maxrss) / 1024, nodes < 1000000 ? 1e3 * static_cast<double>(run) / play : 0.0);
  std::fflush(stdout);
}

void measure_in_a_process(const std::string& kind, int nodes, int devices) {
  const pid_t child = fork();
  if (child == 0) {
    measure_case(kind, nodes, devices);
    _exit(0);
  }
  int outcome = 0;
  waitpid(child, &outcome, 0);
  if (outcome != 0) std::printf("{\"graph\": \"%s\", \"nodes\": %d, \"devices\": %d, \"failed\": %d}\n", kind.c_str(), nodes, devices, outcome);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) {
    measure_case(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
    return 0;
  }
  for (const char* kind : {"towers", "chain", "random"})
    for (const int devices : {4, 64})
      for (const int nodes : {1000, 10000, 100000, 1000000}) measure_in_a_process(kind, nodes, devices);
}
