// An op of one's own with its kernel and its gradient: copy the three registries, add to them, and hand them to the graph, the session and `gradients`.

#include <weft/kernels/standard.hpp>
#include <weft/weft.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <utility>

namespace {

/// y = x * x * x, elementwise.
class cube_kernel : public weft::kernel {
 public:
  void compute(weft::kernel_context& context) override {
    const weft::tensor_value& x = context.input(0);
    weft::tensor_value& y = context.forward_or_allocate(0, 0, x.dtype(), x.shape());
    const float* from = x.data<float>();
    float* to = y.mutable_data<float>();
    for (std::int64_t i = 0; i < x.elements(); ++i) to[i] = from[i] * from[i] * from[i];
  }
};

weft::op_registry ops_with_cube() {
  weft::op_registry ops = weft::standard_ops();
  ops.add(weft::op("Cube").input("x: T").output("y: T").attr("T: {float}").shapes([](weft::shape_context& c) { c.set_output(0, c.input(0)); }));
  return ops;
}

std::shared_ptr<const weft::kernel_registry> kernels_with_cube() {
  auto kernels = std::make_shared<weft::kernel_registry>(weft::standard_kernels());
  weft::kernel_entry entry;
  entry.op = "Cube";
  entry.device_type = "CPU";
  entry.constraints["T"] = {weft::dtype::float32};
  kernels->add(entry, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return std::make_unique<cube_kernel>(); });
  return kernels;
}

/// dx = 3 x^2 dy.
void cube_gradient(weft::gradient_context& context) {
  const weft::output square = context.add("Square", {context.input(0)});
  const weft::output factor = context.add("Mul", {context.number(3, weft::dtype::float32), square});
  context.set(0, context.add("Mul", {context.gradient(), factor}));
}

/// The typed builder: the result has the rank of the input.
template <int N> weft::tensor<float, N> cube(const weft::tensor<float, N>& x, weft::op_name name = {}) {
  weft::node_spec node;
  node.op = "Cube";
  node.name = std::string(name.text);
  node.inputs = {x.raw()};
  node.site = name.site;
  return weft::tensor<float, N>(weft::output{&weft::default_graph().add(std::move(node)), 0});
}

}  // namespace

int main() {
  weft::graph graph(ops_with_cube());
  auto scope = graph.as_default();
  const auto x = weft::constant({1.f, 2.f, 3.f});
  const auto y = cube(x);

  weft::gradient_registry rules = weft::standard_gradients();
  rules.add("Cube", cube_gradient);
  weft::gradient_options differentiate;
  differentiate.registry = &rules;
  const auto dx = weft::gradients(y, x, differentiate);

  weft::session_options options;
  options.kernels = kernels_with_cube();
  weft::session session(options);
  const auto [value, derivative] = session.run(y, dx);
  std::cout << value << '\n' << derivative << '\n';
  const bool cubes = value(0) == 1.f && value(1) == 8.f && value(2) == 27.f;
  const bool derivatives = derivative(0) == 3.f && derivative(1) == 12.f && derivative(2) == 27.f;
  return cubes && derivatives ? 0 : 1;
}
