#include <weft/kernels/nn.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
void check_near(const std::vector<float>& found, const std::vector<double>& wanted, double tolerance = 1e-6) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(wanted[i])) CHECK(std::isnan(found[i]));
    else CHECK(std::abs(static_cast<double>(found[i]) - wanted[i]) <= tolerance * (1 + std::abs(wanted[i])));
  }
}
constexpr float inf = std::numeric_limits<float>::infinity();
}  // namespace

TEST_CASE("bias: added to the last axis or the second, any dtype; its gradient sums the others") {
  kernel_bench bench;
  const auto x = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(elements<float>(bench("BiasAdd", {x, make<float>({3}, {10, 20, 30})})) == std::vector<float>{11, 22, 33, 14, 25, 36});
  CHECK(elements<std::uint8_t>(bench("BiasAdd", {make<std::uint8_t>({1, 2}, {250, 1}), make<std::uint8_t>({2}, {10, 1})})) == std::vector<std::uint8_t>{4, 2});
  CHECK(elements<half>(bench("BiasAddV1", {make<half>({1, 1}, {half(1)}), make<half>({1}, {half(0.5f)})}))[0] == half(1.5f));
  const auto volume = make<std::int32_t>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const weft::attr_map first{{"data_format", "NCHW"}};
  CHECK(elements<std::int32_t>(bench("BiasAdd", {volume, make<std::int32_t>({2}, {10, 20})}, first)) == std::vector<std::int32_t>{11, 12, 13, 24, 25, 26});
  CHECK(elements<std::int32_t>(bench("BiasAddGrad", {volume}, first)) == std::vector<std::int32_t>{6, 15});
  CHECK(elements<float>(bench("BiasAddGrad", {x})) == std::vector<float>{5, 7, 9});
  CHECK(elements<float>(bench("BiasAddGrad", {make<float>({0, 3}, {})})) == std::vector<float>{0, 0, 0});
  CHECK(bench("BiasAdd", {make<float>({0, 3}, {}), make<float>({3}, {1, 2, 3})}).shape() == shape{0, 3});
  CHECK(bench("BiasAdd", {make<float>({3, 0}, {}), make<float>({0}, {})}).shape() == shape{3, 0});
  CHECK(bench.error("BiasAdd", {x, make<float>({2}, {1, 2})}) == "INVALID_ARGUMENT: the channels of value and bias must be equal, found 3 and 2");
  CHECK(bench.error("BiasAdd", {make<float>({3}, {1, 2, 3}), make<float>({3}, {1, 2, 3})}) == "INVALID_ARGUMENT: value must have at least rank 2, found shape [3]");
  CHECK(bench.error("BiasAddGrad", {make<float>({}, {1})}, first) == "INVALID_ARGUMENT: out_backprop must have at least rank 3, found shape []");
}

TEST_CASE("bias: as many rows and channels as there may be") {
  kernel_bench bench;
  for (const std::int64_t channels : {1, 2, 3, 7, 100, 300, 700})
    for (const std::int64_t rows : {1, 5, 513}) {
      tensor_value x(dtype::float32, shape{rows, channels}), bias(dtype::float32, shape{channels});
      for (std::int64_t i = 0; i < rows * channels; ++i) x.mutable_data<float>()[i] = static_cast<float>(i);
      for (std::int64_t i = 0; i < channels; ++i) bias.mutable_data<float>()[i] = static_cast<float>(1000000 + i);
      const tensor_value out = bench("BiasAdd", {x, bias});
      bool right = true;
      for (std::int64_t i = 0; i < rows * channels; ++i) right = right && out.data<float>()[i] == static_cast<float>(i) + static_cast<float>(1000000 + i % channels);
      CHECK(right);
    }
}

TEST_CASE("softmax: over the last axis, exact where logits are extreme") {
  kernel_bench bench;
  const auto x = make<float>({4, 3}, {1000, 1000, 999, -1000, 0, 1000, 88, 89, 90, -1e30f, 0, -1e30f});
  check_near(elements<float>(bench("Softmax", {x})), {0.42231882, 0.42231882, 0.15536241, 0, 0, 1, 0.09003057, 0.24472848, 0.66524094, 0, 1, 0});
  check_near(elements<float>(bench("LogSoftmax", {x})), {-0.8619948, -0.8619948, -1.8619947, -2000, -1000, 0, -2.407606, -1.4076059, -0.40760595, -1e30, 0, -1e30});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto special = make<float>({4, 3}, {inf, 0, 1, -inf, 0, 1, -inf, -inf, -inf, std::nanf(""), 0, 1});
  check_near(elements<float>(bench("Softmax", {special})), {nan, nan, nan, 0, 0.26894143, 0.7310586, nan, nan, nan, nan, nan, nan});
  CHECK(bench("Softmax", {make<double>({0, 3}, {})}).shape() == shape{0, 3});
  CHECK(bench("Softmax", {make<half>({3, 0}, {})}).shape() == shape{3, 0});
  CHECK(bench.error("Softmax", {make<float>({}, {1})}) == "INVALID_ARGUMENT: logits must have at least rank 1, found shape []");
}

TEST_CASE("softmax cross entropy: values, broadcasting, hostile shapes") {
  kernel_bench bench;
  const auto logits = make<float>({2, 1}, {0.0703125f, -1.5390625f}), labels = make<float>({2, 3}, {0.26660156f, 0.5332031f, 0.20019531f, 0.34765625f, 0.3046875f, 0.34765625f});
  const auto out = bench.run(bench.add("SoftmaxCrossEntropyWithLogits", {dtype::float32, dtype::float32}), {logits, labels});
  check_near(elements<float>(out[0]), {1.0986124, 1.0986123});
  check_near(elements<float>(out[1]), {0.06673178, -0.19986978, 0.13313803, -0.014322907, 0.028645843, -0.014322907});
  CHECK(bench("SoftmaxCrossEntropyWithLogits", {make<float>({0, 3}, {}), make<float>({0, 3}, {})}).shape() == shape{0});
  CHECK(bench.error("SoftmaxCrossEntropyWithLogits", {make<float>({1, 2}, {1, 2}), make<float>({1, 3}, {1, 2, 3})}) ==
        "INVALID_ARGUMENT: the shapes [1,2] of logits and [1,3] of labels cannot be broadcast");
  CHECK(bench.error("SoftmaxCrossEntropyWithLogits", {make<float>({2}, {1, 2}), make<float>({2}, {1, 2})}) ==
        "INVALID_ARGUMENT: logits and labels must be broadcast to rank 2, found shapes [2] and [2]");
}

TEST_CASE("sparse softmax cross entropy: values, and labels that are no class") {
  kernel_bench bench;
  const auto logits = make<double>({2, 3}, {1, 2, 3, 0, 0, 0});
  const auto out = bench.run(bench.add("SparseSoftmaxCrossEntropyWithLogits", {dtype::float64, dtype::int64}), {logits, make<std::int64_t>({2}, {2, 0})});
  CHECK(std::abs(out[0].data<double>()[0] - 0.40760596444438) < 1e-12);
  CHECK(std::abs(out[0].data<double>()[1] - std::log(3.0)) < 1e-12);
  CHECK(std::abs(out[1].data<double>()[2] - (0.66524095577482 - 1)) < 1e-12);
  CHECK(std::abs(out[1].data<double>()[3] - (1.0 / 3 - 1)) < 1e-12);
  for (const std::int64_t label : {std::int64_t{3}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()})
    CHECK(bench.error("SparseSoftmaxCrossEntropyWithLogits", {logits, make<std::int64_t>({2}, {0, label})}) == "INVALID_ARGUMENT: label " + std::to_string(label) + " is not in [0, 3)");
  CHECK(bench.error("SparseSoftmaxCrossEntropyWithLogits", {make<float>({2, 0}, {}), make<std::int32_t>({2}, {0, 0})}) ==
        "INVALID_ARGUMENT: there must be at least one class, found logits of shape [2,0]");
  CHECK(bench.error("SparseSoftmaxCrossEntropyWithLogits", {logits, make<std::int32_t>({1}, {0})}) == "INVALID_ARGUMENT: the rows of logits and the labels must be equal, found 2 and 1");
}

TEST_CASE("in_top_k: ties count, numbers that are not finite and targets out of range do not") {
  kernel_bench bench;
  const auto p = make<float>({3, 4}, {0.1f, 0.3f, 0.2f, 0.4f, 0.1f, 0.1f, 0.8f, 0.1f, 0.5f, 0.5f, 0.5f, 0.5f});
  const auto top = [&](std::initializer_list<std::int32_t> targets, std::int32_t k) { return elements<bool>(bench("InTopKV2", {p, make<std::int32_t>({3}, targets), tensor_value::scalar(k)})); };
  CHECK(top({1, 2, 3}, 1) == std::vector<bool>{false, true, true});
  CHECK(top({1, 2, 3}, 2) == std::vector<bool>{true, true, true});
  CHECK(top({4, -1, 0}, 2) == std::vector<bool>{false, false, true});
  CHECK(top({3, 2, 3}, 0) == std::vector<bool>{false, false, false});
  CHECK(top({3, 2, 3}, -5) == std::vector<bool>{false, false, false});
  CHECK(top({std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(), 0}, std::numeric_limits<std::int32_t>::max()) == std::vector<bool>{false, false, true});
  const auto special = make<float>({3, 3}, {std::nanf(""), 1, 2, 1, inf, 2, 1, std::nanf(""), 2});
  CHECK(elements<bool>(bench("InTopK", {special, make<std::int64_t>({3}, {1, 1, 1})}, {{"k", std::int64_t{3}}})) == std::vector<bool>{false, false, false});
  CHECK(bench.error("InTopKV2", {p, make<std::int32_t>({2}, {1, 2}), tensor_value::scalar(std::int32_t{1})}) == "INVALID_ARGUMENT: the rows of predictions and the targets must be equal, found 3 and 2");
}
