#include <weft/kernels/fused.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::dtype;
using weft::fuse_elementwise;
using weft::graph;
using weft::partial_shape;
using weft::shape;
using weft::standard_kernels;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
// How many nodes of the fused part have this op.
int count(const graph& g, const std::string& op) {
  int out = 0;
  for (const weft::node* n : g.nodes()) out += n->op() == op;
  return out;
}
const weft::attr_map axpy{{"ops", std::vector<std::string>{"Mul", "AddV2"}}, {"names", std::vector<std::string>{"product", "sum"}}, {"operands", std::vector<std::int64_t>{0, 1, 3, 2}}};
const weft::attr_map bias_relu{{"ops", std::vector<std::string>{"BiasAdd", "Relu"}}, {"names", std::vector<std::string>{"biased", "out"}}, {"operands", std::vector<std::int64_t>{0, 1, 2, -1}}};
const weft::attr_map sigmoid_slope{{"ops", std::vector<std::string>{"SigmoidGrad", "Mul"}}, {"names", std::vector<std::string>{"slope", "out"}}, {"operands", std::vector<std::int64_t>{0, 1, 3, 2}}};
}  // namespace

TEST_CASE("fusing: a chain becomes one node with the name of its last") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 2>({weft::unknown, 3}, "x");
  const auto a = weft::constant({1.f, 2.f, 3.f}, "a");
  const auto b = weft::constant(0.5f, "b");
  const auto product = weft::multiply(x, a, "product");
  const auto sum = weft::add(product, b, "sum");
  const auto y = weft::tanh(sum, "y");
  (void)weft::reduce_sum(y, "total");
  const graph fused = fuse_elementwise(g, standard_kernels());
  CHECK(to_text(*fused.find("y")) ==
        "y = _Fused(x, a, b)  float[?,3]  {names=[\"product\", \"sum\", \"y\"], operands=[0, 1, 3, 2, 4, -1], ops=[\"Mul\", \"AddV2\", \"Tanh\"]}");
  CHECK(fused.find("sum") == nullptr);
  CHECK(fused.find("total")->inputs()[0].from == fused.find("y"));
}

TEST_CASE("fusing: what keeps a node out") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>({4}, "x"), row = weft::placeholder<float, 1>({1}, "row");
  const auto n = weft::placeholder<std::int32_t, 1>({4}, "n");
  // Read by two others, waited for, waiting, of another dtype, of another shape, on another device.
  const auto shared = weft::exp(x, "shared");
  (void)weft::negative(shared, "first");
  (void)weft::square(shared, "second");
  const auto waited = weft::exp(x, "waited");
  (void)weft::negative(waited, "third");
  {
    const auto wait = weft::control_dependencies({waited});
    (void)weft::no_op("wait");
    const auto waits = weft::exp(x, "waits");
    const auto free = weft::control_dependencies(nullptr);
    (void)weft::negative(waits, "fourth");
  }
  (void)weft::square(weft::negative(n, "integers"), "integers_squared");
  (void)weft::add(weft::exp(row, "small"), x, "broadcast");
  (void)weft::negative(weft::with_device("/device:CPU:1", [&] { return weft::exp(x, "there"); }), "here");
  (void)weft::reduce_sum(weft::exp(x, "alone"), "sum");
  CHECK(to_text(fuse_elementwise(g, standard_kernels())) == to_text(g));
}

TEST_CASE("fusing: trees, repeated operands, and a limit") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<double, 1>({4}, "x");
  const auto e = weft::exp(x, "e");
  const auto m = weft::multiply(e, e, "m");
  const auto y = weft::add(weft::square(x, "s"), m, "y");
  (void)weft::subtract(y, x, "z");
  const graph fused = fuse_elementwise(g, standard_kernels());
  CHECK(to_text(*fused.find("z")) ==
        "z = _Fused(x)  double[4]  {names=[\"e\", \"m\", \"s\", \"y\", \"z\"], operands=[0, -1, 1, 1, 0, -1, 3, 2, 4, 0], ops=[\"Exp\", \"Mul\", \"Square\", \"AddV2\", \"Sub\"]}");
  CHECK(count(fuse_elementwise(g, standard_kernels(), {2}), "_Fused") == 2);
  CHECK(count(fuse_elementwise(g, standard_kernels(), {1}), "_Fused") == 0);
}

TEST_CASE("fusing: kernels of the user's own stay") {
  const graph g;
  const auto scope = g.as_default();
  (void)weft::negative(weft::exp(weft::placeholder<float, 1>({4}, "x"), "e"), "y");
  weft::kernel_registry mine = standard_kernels();
  mine.add({"Exp", "CPU", {{"T", {dtype::float32}}}, 1}, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return nullptr; });
  CHECK(count(fuse_elementwise(g, standard_kernels()), "_Fused") == 1);
  CHECK(count(fuse_elementwise(g, mine), "_Fused") == 0);
}

TEST_CASE("fused kernel: operands of the same shape, rows, single elements, and what the nodes do one by one") {
  kernel_bench bench;
  const auto x = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto one = tensor_value::scalar(1.f), two = make<float>({1, 1}, {2}), row = make<float>({3}, {10, 20, 30}), column = make<float>({2, 1}, {100, 200});
  CHECK(elements<float>(bench("_Fused", {x, two, one}, axpy)) == std::vector<float>{3, 5, 7, 9, 11, 13});
  CHECK(elements<float>(bench("_Fused", {x, row, one}, axpy)) == std::vector<float>{11, 41, 91, 41, 101, 181});
  CHECK(elements<float>(bench("_Fused", {two, one, x}, axpy)) == std::vector<float>{3, 4, 5, 6, 7, 8});
  CHECK(elements<float>(bench("_Fused", {x, x, row}, axpy)) == std::vector<float>{11, 24, 39, 26, 45, 66});
  CHECK(elements<float>(bench("_Fused", {x, column, row}, axpy)) == std::vector<float>{110, 220, 330, 810, 1020, 1230});
  CHECK(elements<float>(bench("_Fused", {row, column, one}, axpy)) == std::vector<float>{1001, 2001, 3001, 2001, 4001, 6001});
  CHECK(bench("_Fused", {tensor_value(dtype::float32, shape{0, 3}), row, one}, axpy).shape() == shape{0, 3});
  CHECK(bench("_Fused", {one, one, one}, axpy).item<float>() == 2);
  // Long rows, and as many short ones as do not fill a block.
  for (const std::int64_t width : {1, 7, 300, 511, 512, 513, 1500}) {
    CAPTURE(width);
    const std::int64_t height = 9;
    tensor_value wide(dtype::float32, shape{height, width}), bias(dtype::float32, shape{width});
    for (std::int64_t i = 0; i < wide.elements(); ++i) wide.mutable_data<float>()[i] = static_cast<float>(i % 101) - 50.f;
    for (std::int64_t i = 0; i < width; ++i) bias.mutable_data<float>()[i] = static_cast<float>(i % 13);
    const auto found = elements<float>(bench("_Fused", {wide, bias}, bias_relu));
    int wrong = 0;
    for (std::int64_t i = 0; i < wide.elements(); ++i) {
      const float expected = wide.data<float>()[i] + bias.data<float>()[i % width];
      wrong += found[static_cast<std::size_t>(i)] != (expected > 0 ? expected : 0.f);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("fused kernel: takes over the storage of an operand that nobody else holds, and only then") {
  kernel_bench bench;
  std::vector<tensor_value> inputs{make<float>({2}, {1, 2}), make<float>({2}, {3, 4}), make<float>({2}, {5, 6})};
  const void* storage = inputs[0].raw_data();
  const weft::node& n = bench.add("_Fused", {dtype::float32, dtype::float32, dtype::float32}, axpy);
  const auto kept = inputs[1], kept_too = inputs[2];
  const auto out = bench.run(n, std::move(inputs))[0];
  CHECK(out.raw_data() == storage);
  CHECK(elements<float>(out) == std::vector<float>{8, 14});
  CHECK(elements<float>(kept) == std::vector<float>{3, 4});
  // sum = x*y + x reads x after the product is made: the product must not overwrite it.
  const weft::attr_map again{{"ops", std::vector<std::string>{"Mul", "AddV2", "Mul"}}, {"names", std::vector<std::string>{"p", "s", "t"}}, {"operands", std::vector<std::int64_t>{0, 1, 2, 0, 3, 0}}};
  const weft::node& m = bench.add("_Fused", {dtype::float32, dtype::float32}, again);
  CHECK(elements<float>(bench.run(m, {make<float>({2}, {2, 3}), make<float>({2}, {5, 7})})[0]) == std::vector<float>{24, 72});
}

TEST_CASE("fused kernel: errors are those of the single nodes, and a part from elsewhere may say anything") {
  kernel_bench bench;
  const auto x = make<float>({2, 3}, {1, 2, 3, 4, 5, 6}), wrong = make<float>({4}, {1, 2, 3, 4}), one = tensor_value::scalar(1.f);
  CHECK(bench.error("_Fused", {x, wrong, one}, axpy) == bench.error("Mul", {x, wrong}));
  CHECK(bench.error("_Fused", {x, wrong}, bias_relu) == bench.error("BiasAdd", {x, wrong}));
  CHECK(bench.error("_Fused", {x, one, x}, sigmoid_slope) == bench.error("SigmoidGrad", {x, one}));
  try {
    bench("_Fused", {x, wrong, one}, axpy);
  } catch (const weft::error& e) {
    CHECK(e.node() == "product");
    CHECK(e.op() == "Mul");
  }
  const auto refused = [&](std::vector<std::string> ops, std::vector<std::int64_t> operands) {
    return bench.error("_Fused", {x, x}, {{"ops", ops}, {"names", std::vector<std::string>(ops.size(), "n")}, {"operands", std::move(operands)}}) == "INVALID_ARGUMENT: the steps of the fused node do not fit together";
  };
  CHECK(refused({"Mul"}, {0, 2}));
  CHECK(refused({"Mul"}, {0, -2}));
  CHECK(refused({"Mul"}, {-1, 0}));
  CHECK(refused({"Mul"}, {0, 1, 0}));
  CHECK(refused({"Mul"}, {0, -1}));
  CHECK(refused({"Less"}, {0, 1}));
  CHECK(refused({"NoSuch"}, {0, 1}));
  CHECK(refused({"Exp", "Mul"}, {0, -1, 3, 0}));
}
