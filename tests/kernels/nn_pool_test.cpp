#include <weft/kernels/nn_pool.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;
using list = std::vector<std::int64_t>;

namespace {
weft::attr_map pool(list ksize, list strides, const char* padding, const char* format = "NHWC") {
  return {{"ksize", std::move(ksize)}, {"strides", std::move(strides)}, {"padding", padding}, {"data_format", format}};
}
const list two{1, 2, 2, 1}, one{1, 1, 1, 1};
}  // namespace

TEST_CASE("pools: values by hand, padding left out") {
  kernel_bench bench;
  const auto x = make<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(elements<float>(bench("MaxPool", {x}, pool(two, one, "VALID"))) == std::vector<float>{5, 6, 8, 9});
  CHECK(elements<float>(bench("MaxPool", {x}, pool(two, two, "SAME"))) == std::vector<float>{5, 6, 8, 9});
  CHECK(elements<float>(bench("AvgPool", {x}, pool(two, two, "SAME"))) == std::vector<float>{3, 4.5f, 7.5f, 9});
  const auto low = make<float>({1, 2, 2, 1}, {-1, -2, -3, -4});
  CHECK(elements<float>(bench("MaxPool", {low}, pool(two, one, "SAME"))) == std::vector<float>{-1, -2, -3, -4});
  CHECK(elements<std::int8_t>(bench("MaxPool", {make<std::int8_t>({1, 1, 2, 2}, {1, -128, -5, 127})}, pool({1, 1, 2, 1}, one, "VALID"))) == std::vector<std::int8_t>{1, 127});
  CHECK(elements<half>(bench("AvgPool", {make<half>({1, 1, 2, 1}, {half(1), half(2)})}, pool({1, 1, 2, 1}, one, "VALID")))[0] == half(1.5f));
  CHECK(elements<float>(bench("MaxPool", {make<float>({1, 1, 2, 4}, {1, 5, 2, 3, 9, 7, 4, 8})}, pool({1, 1, 1, 2}, {1, 1, 1, 2}, "VALID"))) == std::vector<float>{5, 3, 9, 8});
  const auto first = make<float>({1, 2, 2, 2}, {1, 2, 3, 4, 8, 7, 6, 5});
  CHECK(elements<float>(bench("MaxPool", {first}, pool({1, 1, 2, 2}, one, "VALID", "NCHW"))) == std::vector<float>{4, 8});
  auto padded = pool(two, two, "EXPLICIT");
  padded["explicit_paddings"] = list{0, 0, 2, 0, 2, 0, 0, 0};
  CHECK(elements<float>(bench("MaxPool", {low}, padded)) == std::vector<float>{std::numeric_limits<float>::lowest(), std::numeric_limits<float>::lowest(), std::numeric_limits<float>::lowest(), -1});
  CHECK(elements<std::int16_t>(bench("MaxPool", {make<std::int16_t>({1, 2, 2, 1}, {1, 2, 3, 4})}, padded)) == std::vector<std::int16_t>{-32768, -32768, -32768, 4});
}

TEST_CASE("pools: gradients go to the first of the largest, or to all alike") {
  kernel_bench bench;
  const auto x = make<float>({1, 2, 3, 1}, {3, 3, 1, 2, 3, 5}), y = make<float>({1, 1, 2, 1}, {3, 5}), dy = make<float>({1, 1, 2, 1}, {10, 100});
  CHECK(elements<float>(bench("MaxPoolGrad", {x, y, dy}, pool(two, one, "VALID"))) == std::vector<float>{10, 0, 0, 0, 0, 100});
  CHECK(elements<float>(bench("AvgPoolGrad", {make<std::int32_t>({4}, {1, 2, 3, 1}), dy}, pool(two, one, "VALID"))) == std::vector<float>{2.5f, 27.5f, 25, 2.5f, 27.5f, 25});
  const auto dx = make<float>({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  CHECK(elements<float>(bench("MaxPoolGradGrad", {x, y, dx}, pool(two, one, "VALID"))) == std::vector<float>{1, 6});
  const auto channels = make<double>({1, 1, 1, 4}, {1, 2, 4, 3}), largest = make<double>({1, 1, 1, 2}, {2, 4}), gradient = make<double>({1, 1, 1, 2}, {7, 8});
  CHECK(elements<double>(bench("MaxPoolGrad", {channels, largest, gradient}, pool({1, 1, 1, 2}, {1, 1, 1, 2}, "VALID"))) == std::vector<double>{0, 7, 8, 0});
}

TEST_CASE("pools: random windows and both orders of axes, by the definition") {
  kernel_bench bench;
  std::mt19937 random(9);
  const auto upto = [&](unsigned most) { return static_cast<std::int64_t>(random() % most); };
  for (int round = 0; round < 100; ++round) {
    const std::int64_t n = upto(3), h = 1 + upto(6), w = 1 + upto(6), c = upto(20), kh = 1 + upto(3), kw = 1 + upto(3), sh = 1 + upto(3), sw = 1 + upto(3);
    const bool same = random() % 2 == 0;
    if (!same && (kh > h || kw > w)) continue;
    tensor_value x(dtype::float32, shape{n, h, w, c});
    for (std::int64_t i = 0; i < x.elements(); ++i) x.mutable_data<float>()[i] = static_cast<float>(upto(1000)) - 500;
    const weft::attr_map attrs = pool({1, kh, kw, 1}, {1, sh, sw, 1}, same ? "SAME" : "VALID");
    const tensor_value largest = bench("MaxPool", {x}, attrs), mean = bench("AvgPool", {x}, attrs);
    const std::int64_t oh = same ? (h + sh - 1) / sh : (h - kh) / sh + 1, ow = same ? (w + sw - 1) / sw : (w - kw) / sw + 1;
    const std::int64_t top = same ? std::max<std::int64_t>(0, (oh - 1) * sh + kh - h) / 2 : 0, left = same ? std::max<std::int64_t>(0, (ow - 1) * sw + kw - w) / 2 : 0;
    REQUIRE(largest.shape() == shape{n, oh, ow, c});
    bool right = true;
    for (std::int64_t i = 0; i < largest.elements(); ++i) {
      const std::int64_t channel = i % c, ox = i / c % ow, oy = i / c / ow % oh, image = i / c / ow / oh;
      float top_value = -1e9f;
      double sum = 0;
      int count = 0;
      for (std::int64_t y = std::max<std::int64_t>(0, oy * sh - top); y < std::min(h, oy * sh - top + kh); ++y)
        for (std::int64_t xx = std::max<std::int64_t>(0, ox * sw - left); xx < std::min(w, ox * sw - left + kw); ++xx, ++count) {
          const float value = x.data<float>()[((image * h + y) * w + xx) * c + channel];
          top_value = std::max(top_value, value);
          sum += static_cast<double>(value);
        }
      right = right && largest.data<float>()[i] == top_value && std::abs(static_cast<double>(mean.data<float>()[i]) - sum / count) < 1e-3;
    }
    CHECK(right);
    // All of the gradient arrives, and what fetches it back finds it.
    const tensor_value dx = bench("MaxPoolGrad", {x, largest, largest}, attrs);
    double in = 0, out = 0;
    for (std::int64_t i = 0; i < dx.elements(); ++i) in += static_cast<double>(dx.data<float>()[i]);
    for (std::int64_t i = 0; i < largest.elements(); ++i) out += static_cast<double>(largest.data<float>()[i]);
    CHECK(std::abs(in - out) < 1e-6 * (1 + std::abs(out)) * 100);
    CHECK(bench("MaxPoolGradGrad", {x, largest, x}, attrs) == largest);
  }
}

TEST_CASE("pools: empty, special and hostile values") {
  kernel_bench bench;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  CHECK(bench("MaxPool", {make<float>({0, 2, 2, 1}, {})}, pool(two, two, "VALID")).shape() == shape{0, 1, 1, 1});
  CHECK(bench("AvgPool", {make<float>({1, 2, 2, 0}, {})}, pool(two, two, "VALID")).shape() == shape{1, 1, 1, 0});
  CHECK(elements<float>(bench("MaxPool", {make<float>({1, 1, 2, 1}, {-inf, -inf})}, pool({1, 1, 2, 1}, one, "VALID")))[0] == -inf);
  CHECK(std::isnan(elements<float>(bench("MaxPool", {make<float>({1, 1, 3, 1}, {1, nan, 2})}, pool({1, 1, 3, 1}, one, "VALID")))[0]));
  const auto x = make<float>({1, 2, 2, 1}, {1, 2, 3, 4});
  CHECK(bench.error("MaxPool", {make<float>({2, 2, 1}, {1, 2, 3, 4})}, pool(two, two, "VALID")) == "INVALID_ARGUMENT: input must have rank 4, found shape [2,2,1]");
  CHECK(bench.error("AvgPool", {x}, pool({1, 3, 3, 1}, one, "VALID")) == "INVALID_ARGUMENT: a window that reaches over 3 elements has no place on an axis of 2 elements");
  CHECK(bench.error("MaxPool", {x}, pool({2, 1, 1, 1}, {2, 1, 1, 1}, "VALID")) == "UNIMPLEMENTED: no kernel of this op pools over the batch");
  CHECK(bench.error("AvgPool", {x}, pool({1, 1, 1, 2}, one, "SAME")) == "UNIMPLEMENTED: no kernel of this op pools over the depth");
  CHECK(bench.error("MaxPool", {x}, pool({1, 1, 1, 2}, {1, 1, 1, 2}, "SAME")) == "INVALID_ARGUMENT: windows over 2 channels do not divide a depth of 1");
  CHECK(bench.error("MaxPoolGrad", {x, x, x}, pool(two, two, "VALID")) == "INVALID_ARGUMENT: orig_output must have shape [1,1,1,1], found [1,2,2,1]");
  CHECK(bench.error("AvgPoolGrad", {make<std::int32_t>({4}, {1, 2, 2, 2147483647}), x}, pool(two, two, "VALID")) == "INVALID_ARGUMENT: grad must have shape [1,1,1,2147483647], found [1,2,2,1]");
  CHECK(bench.error("AvgPoolGrad", {make<std::int32_t>({3}, {1, 2, 2}), x}, pool(two, two, "VALID")) == "INVALID_ARGUMENT: orig_input_shape must contain 4 values, found 3");
  CHECK(elements<float>(bench("AvgPool", {x}, pool({1, 2147483647, 2147483647, 1}, {1, 2147483647, 2147483647, 1}, "SAME"))) == std::vector<float>{2.5f});
}
