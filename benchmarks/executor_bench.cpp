// What the executor costs per node: one JSON line per case. Kernels are scalar additions and negations, so that little but the executor is measured.

#include <weft/ops/standard.hpp>
#include <weft/runtime/executor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

class add_scalar final : public weft::cheap_kernel {
 public:
  void compute(weft::kernel_context& context) override {
    const float* x = context.input(0).data<float>();
    weft::tensor_value& out = context.take_or_allocate(0, 0, weft::dtype::float32, context.input(0).shape());
    *out.mutable_data<float>() = *x + *context.input(1).data<float>();
  }
};

class negate_scalar final : public weft::cheap_kernel {
 public:
  void compute(weft::kernel_context& context) override {
    const float* x = context.input(0).data<float>();
    weft::tensor_value& out = context.take_or_allocate(0, 0, weft::dtype::float32, context.input(0).shape());
    *out.mutable_data<float>() = -*x;
  }
};

weft::kernel_registry kernels() {
  weft::kernel_registry out;
  out.add({"AddV2", "CPU", {}, 0}, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return std::make_unique<add_scalar>(); });
  out.add({"Neg", "CPU", {}, 0}, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return std::make_unique<negate_scalar>(); });
  return out;
}

// A graph whose nodes are made without asking for their definitions.
class builder {
 public:
  weft::output add(const char* op, std::vector<weft::output> inputs, weft::attr_map attrs = {}, bool has_output = true) {
    weft::node_spec spec;
    spec.op = op;
    spec.name = op + std::to_string(graph_.size());
    spec.exact_name = true;
    spec.scoped = false;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.outputs.emplace();
    if (has_output) spec.outputs->push_back({weft::dtype::float32, weft::partial_shape(), false});
    return {&graph_.add(std::move(spec)), 0};
  }
  weft::output arg(int index) { return add("_Arg", {}, {{"T", weft::dtype::float32}, {"index", index}}); }
  weft::output constant(float value) { return add("Const", {}, {{"dtype", weft::dtype::float32}, {"value", weft::tensor_value::scalar(value)}}); }
  void fetch(weft::output from, int index) { add("_Retval", {from}, {{"T", weft::dtype::float32}, {"index", index}}, false); }
  weft::graph take() { return std::move(graph_); }

 private:
  weft::graph graph_{weft::op_registry()};
};

// Chains of additions of a constant, each from its own feed to its own fetch.
weft::graph chains(int count, int length) {
  builder b;
  std::vector<weft::output> ends;
  for (int i = 0; i < count; ++i) ends.push_back(b.arg(i));
  const weft::output one = b.constant(1.0f);
  for (int level = 0; level < length; ++level)
    for (auto& end : ends) end = b.add("AddV2", {end, one});
  for (int i = 0; i < count; ++i) b.fetch(ends[static_cast<std::size_t>(i)], i);
  return b.take();
}

// Layers of additions of neighbours, so that every node waits for two and is read by two.
weft::graph lattice(int width, int length) {
  builder b;
  std::vector<weft::output> row, next;
  for (int i = 0; i < width; ++i) row.push_back(b.arg(i));
  for (int level = 0; level < length; ++level) {
    next.clear();
    for (std::size_t i = 0; i < row.size(); ++i) next.push_back(b.add("AddV2", {row[i], row[(i + 1) % row.size()]}));
    row.swap(next);
  }
  for (int i = 0; i < width; ++i) b.fetch(row[static_cast<std::size_t>(i)], i);
  return b.take();
}

weft::graph one_op() {
  builder b;
  b.fetch(b.add("Neg", {b.arg(0)}), 0);
  return b.take();
}

// The best of many short rounds, in nanoseconds per step: other work on the machine spoils rounds, not the result.
double measure(weft::executor& runner, int feeds, int steps, weft::thread_pool* pool) {
  std::vector<weft::tensor_value> fetches;
  double best = 1e300;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (int round = 0; round < 20 || std::chrono::steady_clock::now() < end; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) {
      weft::executor::step_args args;
      args.feeds.reserve(static_cast<std::size_t>(feeds));
      for (int f = 0; f < feeds; ++f) args.feeds.push_back(weft::tensor_value::scalar(1.0f));
      args.pool = pool;
      if (const weft::status s = runner.run(std::move(args), fetches); !s.ok()) {
        std::fprintf(stderr, "%s\n", s.text().c_str());
        std::exit(1);
      }
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / steps);
  }
  return best;
}

void report(const char* name, weft::graph g, int feeds, int nodes, int steps, weft::thread_pool* pool) {
  weft::executor runner(std::move(g), kernels(), "/job:localhost/task:0");
  const double step = measure(runner, feeds, steps, pool);
  std::printf("{\"benchmark\": \"executor/%s\", \"ns_per_step\": %.1f, \"ns_per_node\": %.2f}\n", name, step, step / nodes);
}

}  // namespace

int main() {
  weft::thread_pool pool(2);
  report("chain_10000", chains(1, 10000), 1, 10000, 1, &pool);
  report("chains_64x200", chains(64, 200), 64, 12800, 1, &pool);
  report("lattice_64x200", lattice(64, 200), 64, 12800, 1, &pool);
  report("one_op", one_op(), 1, 1, 1000, &pool);
  report("one_op_without_pool", one_op(), 1, 1, 1000, nullptr);
  return 0;
}
