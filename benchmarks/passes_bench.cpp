// What running elementwise nodes in one pass gains: the kernels of chains one after the other, as the executor runs them (each takes over the storage of the one before), beside the fused
// node, on the calling thread. Prints JSON lines {"work", "unit", "single", "fused", "ratio"}; ratio is how many times faster the fused node is. Last, an update of Adam beside a copy of what it reads and writes.

#undef WEFT_SEPARATE_COMPILATION  // kernels are compiled where they are measured
#include <weft/kernels/fused.hpp>
#include <weft/kernels/training.hpp>
#include <weft/ops/math.hpp>
#include <weft/ops/standard.hpp>

#include "measure.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using weft::dtype;
using weft::shape;
using weft::tensor_value;

struct chain {
  const char* work;
  std::vector<std::string> ops;
  std::vector<std::int64_t> operands;  // as in `_Fused`
  std::vector<shape> inputs;
};

// A node with its kernel.
struct ready_node {
  const weft::node* about;
  std::unique_ptr<weft::kernel> runs;
};

class bench {
 public:
  bench() { environment_.buffers = buffers_.get(); environment_.resources = &resources; }
  ready_node make(const std::string& op, weft::attr_map attrs, weft::kernel_factory factory, std::size_t inputs) {
    weft::node_spec spec;
    spec.op = op;
    spec.attrs = std::move(attrs);
    spec.scoped = false;
    spec.outputs = std::vector<weft::output_type>{{dtype::float32, weft::partial_shape()}};
    for (std::size_t i = 0; i < inputs; ++i) {
      weft::node_spec in;
      in.op = "Placeholder";
      in.scoped = false;
      in.attrs = {{"dtype", dtype::float32}, {"shape", weft::partial_shape()}};
      spec.inputs.push_back({&graph_.add(std::move(in)), 0});
    }
    const weft::node& n = graph_.add(std::move(spec));
    return {&n, factory({n, "/device:CPU:0"})};
  }
  tensor_value run(const ready_node& n, std::vector<tensor_value> inputs) {
    tensor_value out;
    weft::kernel_context context(*n.about, environment_, inputs.data(), inputs.size(), &out);
    n.runs->compute(context);
    return out;
  }
  weft::resource_manager resources;

 private:
  weft::graph graph_{weft::standard_ops()};
  std::shared_ptr<weft::buffer_pool> buffers_ = std::make_shared<weft::buffer_pool>();
  weft::step_environment environment_;
};

// Microseconds of the fastest of many repetitions, each of at least some calls.
double best_of(const std::function<void()>& work) {
  const double first = seconds_now();
  work();
  const int calls = std::max(1, static_cast<int>(1e-4 / std::max(seconds_now() - first, 1e-7)));
  double best = 1e9;
  for (int i = 0; i < 60; ++i) {
    const double begin = seconds_now();
    for (int k = 0; k < calls; ++k) work();
    best = std::min(best, (seconds_now() - begin) / calls);
  }
  return best * 1e6;
}

void measure(const chain& c) {
  bench b;
  std::vector<tensor_value> inputs;
  for (const shape& s : c.inputs) {
    inputs.emplace_back(dtype::float32, s);
    for (std::int64_t i = 0; i < inputs.back().elements(); ++i) inputs.back().mutable_data<float>()[i] = static_cast<float>(i % 1000) * 0.001f;
  }
  std::vector<ready_node> nodes;
  for (const std::string& op : c.ops) {
    const auto factory = op == "BiasAdd" ? weft::detail::nn_kernel(op) : weft::detail::math_kernel(op);
    weft::attr_map attrs{{"T", dtype::float32}};
    if (op == "BiasAdd") attrs["data_format"] = "NHWC";
    nodes.push_back(b.make(op, std::move(attrs), factory, 0));
  }
  const ready_node fused = b.make("_Fused", {{"T", dtype::float32}, {"ops", c.ops}, {"names", c.ops}, {"operands", c.operands}}, weft::detail::fused_kernel_of("_Fused"), inputs.size());
  const auto one_by_one = [&] {
    std::vector<tensor_value> made;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      std::vector<tensor_value> in;
      for (const std::int64_t o : {c.operands[2 * i], c.operands[2 * i + 1]}) {
        if (o < 0) continue;
        const auto k = static_cast<std::size_t>(o);
        in.push_back(k < inputs.size() ? inputs[k] : std::move(made[k - inputs.size()]));
      }
      made.push_back(b.run(nodes[i], std::move(in)));
    }
  };
  const double single = best_of(one_by_one), together = best_of([&] { b.run(fused, inputs); });
  std::printf("{\"work\": \"%s\", \"unit\": \"us\", \"single\": %.1f, \"fused\": %.1f, \"ratio\": %.2f}\n", c.work, single, together, single / together);
}

void measure_adam(std::int64_t count) {
  bench b;
  const tensor_value zeros = [&] {
    tensor_value v(dtype::float32, shape{count});
    std::memset(v.mutable_raw_data(), 0, v.bytes());
    return v;
  }();
  std::vector<tensor_value> inputs;
  for (const char* name : {"var", "m", "v"}) {
    b.resources.find_or_make<weft::variable_resource>("", name, [&] { return std::make_shared<weft::variable_resource>(name, dtype::float32, weft::partial_shape()); })->assign(weft::deep_copy(zeros));
    tensor_value handle(dtype::resource, shape());
    handle.mutable_data<weft::resource_handle>()->name = name;
    inputs.push_back(handle);
  }
  for (const float number : {0.9f, 0.999f, 0.001f, 0.9f, 0.999f, 1e-7f}) inputs.push_back(tensor_value::scalar(number));
  tensor_value grad(dtype::float32, shape{count});
  for (std::int64_t i = 0; i < count; ++i) grad.mutable_data<float>()[i] = static_cast<float>(i % 100) * 0.01f - 0.5f;
  inputs.push_back(grad);
  const ready_node adam = b.make("ResourceApplyAdam", {{"T", dtype::float32}}, weft::detail::training_kernel("ResourceApplyAdam"), inputs.size());
  const double update = best_of([&] { b.run(adam, inputs); });
  // An update reads four arrays and writes three: as much traffic as three and a half copies.
  std::vector<float> from(static_cast<std::size_t>(count) * 7 / 2), to(from.size());
  const double copy = best_of([&] { std::memcpy(to.data(), from.data(), from.size() * sizeof(float)); });
  std::printf("{\"work\": \"Adam, %lld floats, beside a copy of as many bytes\", \"unit\": \"us\", \"single\": %.1f, \"fused\": %.1f, \"ratio\": %.2f}\n", static_cast<long long>(count), copy, update, copy / update);
}

}  // namespace

int main() {
  const shape million{1000, 1000}, row{1000}, one{};
  measure({"x * a + b, numbers, 1M floats", {"Mul", "AddV2"}, {0, 1, 3, 2}, {million, one, one}});
  measure({"x * a + b, arrays, 1M floats", {"Mul", "AddV2"}, {0, 1, 3, 2}, {million, million, million}});
  measure({"relu(x + bias), [1000,1000]", {"BiasAdd", "Relu"}, {0, 1, 2, -1}, {million, row}});
  measure({"relu(x + bias), [50000,20]", {"BiasAdd", "Relu"}, {0, 1, 2, -1}, {shape{50000, 20}, shape{20}}});
  measure({"sigmoid'(y) * g * s, 1M floats", {"SigmoidGrad", "Mul"}, {0, 1, 3, 2}, {million, million, one}});
  measure({"tanh(x * a + b), 1M floats", {"Mul", "AddV2", "Tanh"}, {0, 1, 3, 2, 4, -1}, {million, one, one}});
  measure({"x * a + b, numbers, 1000 floats", {"Mul", "AddV2"}, {0, 1, 3, 2}, {row, one, one}});
  measure({"x * a + b, numbers, 50 floats", {"Mul", "AddV2"}, {0, 1, 3, 2}, {shape{50}, one, one}});
  measure_adam(1 << 20);
  measure_adam(1 << 14);
}
