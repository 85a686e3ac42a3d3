#include <weft/kernels/nn_depthwise.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;
using list = std::vector<std::int64_t>;

namespace {
weft::attr_map attrs(const char* padding, std::int64_t stride = 1, std::int64_t dilation = 1) {
  return {{"strides", list{1, stride, stride, 1}}, {"dilations", list{1, dilation, dilation, 1}}, {"padding", padding}};
}
tensor_value random_values(const shape& s, std::mt19937& random) {
  tensor_value out(dtype::float64, s);
  for (std::int64_t i = 0; i < out.elements(); ++i) out.mutable_data<double>()[i] = static_cast<double>(random() % 2001) / 1000 - 1;
  return out;
}
double dot(const tensor_value& a, const tensor_value& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}
}  // namespace

TEST_CASE("depthwise convolution: values by hand") {
  kernel_bench bench;
  const auto x = make<float>({1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  const auto w = make<float>({2, 1, 2, 1}, {1, 2, 100, 200});
  CHECK(elements<float>(bench("DepthwiseConv2dNative", {x, w}, attrs("VALID"))) == std::vector<float>{301, 6020, 402, 8040});
  const auto doubled = make<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  CHECK(elements<float>(bench("DepthwiseConv2dNative", {x, doubled}, attrs("VALID", 2))) == std::vector<float>{1, 2, 30, 40});
}

// The three ops are one trilinear form: <out, conv(x, w)> = <x, to_input(w, out)> = <w, to_filter(x, out)>, for any images, filter and gradient.
TEST_CASE("depthwise convolution: the gradients are transposes") {
  kernel_bench bench;
  std::mt19937 random(5);
  for (const char* padding : {"SAME", "VALID"})
    for (const std::int64_t stride : {1, 2})
      for (const std::int64_t multiplier : {1, 3})
        for (const std::int64_t dilation : {1, 2}) {
          const shape images{2, 5, 6, 3}, filter{2, 3, 3, multiplier};
          const tensor_value x = random_values(images, random), w = random_values(filter, random);
          const tensor_value y = bench("DepthwiseConv2dNative", {x, w}, attrs(padding, stride, dilation));
          const tensor_value dy = random_values(y.shape(), random);
          const tensor_value dx = bench("DepthwiseConv2dNativeBackpropInput", {make<std::int32_t>({4}, {2, 5, 6, 3}), w, dy}, attrs(padding, stride, dilation));
          const tensor_value dw =
              bench("DepthwiseConv2dNativeBackpropFilter", {x, make<std::int32_t>({4}, {2, 3, 3, static_cast<std::int32_t>(multiplier)}), dy}, attrs(padding, stride, dilation));
          CHECK(dx.shape() == images);
          CHECK(dw.shape() == filter);
          const double wanted = dot(y, dy);
          CHECK(std::abs(dot(x, dx) - wanted) < 1e-12 * (1 + std::abs(wanted)) * 100);
          CHECK(std::abs(dot(w, dw) - wanted) < 1e-12 * (1 + std::abs(wanted)) * 100);
        }
}

TEST_CASE("depthwise convolution: channels first, empty and hostile") {
  kernel_bench bench;
  const auto x = make<float>({1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40}), w = make<float>({2, 1, 2, 1}, {1, 2, 100, 200});
  auto first = attrs("VALID");
  first["data_format"] = "NCHW";
  CHECK(elements<float>(bench("DepthwiseConv2dNative", {x, w}, first)) == std::vector<float>{301, 402, 6020, 8040});
  CHECK(bench("DepthwiseConv2dNative", {make<float>({0, 2, 2, 2}, {}), w}, attrs("VALID")).shape() == shape{0, 1, 2, 2});
  CHECK(bench("DepthwiseConv2dNative", {make<float>({1, 2, 2, 0}, {}), make<float>({1, 1, 0, 2}, {})}, attrs("SAME")).shape() == shape{1, 2, 2, 0});
  CHECK(bench.error("DepthwiseConv2dNative", {x, make<float>({1, 1, 3, 1}, {1, 2, 3})}, attrs("SAME")) == "INVALID_ARGUMENT: input and filter must have the same depth, found 2 and 3");
  CHECK(bench.error("DepthwiseConv2dNative", {x, w}, {{"strides", list{1, 1, 2, 1}}, {"padding", "SAME"}}) == "INVALID_ARGUMENT: the strides of rows and columns must be equal, found 1 and 2");
  CHECK(bench.error("DepthwiseConv2dNativeBackpropInput", {make<std::int32_t>({2}, {2, 2}), w, x}, attrs("SAME")) == "INVALID_ARGUMENT: input_sizes must contain 4 values, found 2");
  CHECK(bench.error("DepthwiseConv2dNativeBackpropFilter", {x, make<std::int32_t>({4}, {1, 1, 2, 1}), w}, attrs("SAME")) ==
        "INVALID_ARGUMENT: out_backprop must have shape [1,2,2,2], found [2,1,2,1]");
}
