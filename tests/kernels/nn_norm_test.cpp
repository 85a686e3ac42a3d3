#include <weft/kernels/nn_norm.hpp>

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

namespace {
void check_near(const tensor_value& found, const std::vector<double>& wanted, double tolerance = 1e-4) {
  REQUIRE(found.elements() == static_cast<std::int64_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(static_cast<double>(found.data<float>()[i]) - wanted[i]) <= tolerance * (1 + std::abs(wanted[i])));
  }
}
weft::attr_map norm(float epsilon, bool training, const char* format = "NHWC") { return {{"epsilon", epsilon}, {"is_training", training}, {"data_format", format}}; }
const std::vector<dtype> five(5, dtype::float32);
}  // namespace

// The values of the next two tests are TensorFlow's.
TEST_CASE("batch norm: training, and its gradient") {
  kernel_bench bench;
  const auto x = make<float>({1, 3, 1, 2}, {-0.2109375f, 1.6953125f, 0.625f, -0.3125f, -0.96875f, -0.0078125f});
  const auto scale = make<float>({2}, {1.25f, 1.1289062f}), offset = make<float>({2}, {0.5625f, 1.0546875f}), none = make<float>({0}, {});
  const auto out = bench.run(bench.add("FusedBatchNorm", five, norm(0.001f, true)), {x, scale, offset, none, none});
  check_near(out[0], {0.5125485, 2.6342874, 2.1159914, 0.07034731, -0.9410397, 0.4594277});
  check_near(out[1], {-0.18489584, 0.45833334});
  check_near(out[2], {0.63551843, 1.1707966});
  check_near(out[3], {-0.18489584, 0.45833334});
  check_near(out[4], {0.42367896, 0.7805311});
  const auto dy = make<float>({1, 3, 1, 2}, {-1.375f, 1.5f, 2.125f, -1, -0.25f, -1.375f});
  const auto back = bench.run(bench.add("FusedBatchNormGrad", five, norm(0.001f, true)), {dy, x, scale, out[3], out[4]});
  check_near(back[0], {-2.880564, 0.08671186, 1.3752145, 0.46717516, 1.5053496, -0.5538867});
  check_near(back[1], {2.9965901, 3.6958094});
  check_near(back[2], {0.5, -0.875});
  CHECK(back[3].shape() == shape{0});
}

TEST_CASE("batch norm: inference, its gradient, and running averages") {
  kernel_bench bench;
  const auto x = make<float>({4, 1, 1, 1}, {1.390625f, 0.7265625f, 2.4296875f, 0.921875f});
  const auto scale = make<float>({1}, {1.1015625f}), offset = make<float>({1}, {0.3984375f}), mean = make<float>({1}, {-0.25f}), variance = make<float>({1}, {1.75f});
  const auto out = bench.run(bench.add("FusedBatchNormV3", five, norm(0.001f, false)), {x, scale, offset, mean, variance});
  check_near(out[0], {1.7642007, 1.2113917, 2.629184, 1.3739827});
  check_near(out[1], {-0.25});
  check_near(out[2], {1.75});
  CHECK(out[5].shape() == shape{});
  const auto dy = make<float>({4, 1, 1, 1}, {2.5f, -1.375f, 0.125f, -2.125f});
  const auto back = bench.run(bench.add("FusedBatchNormGradV3", std::vector<dtype>(6, dtype::float32), norm(0.001f, false)), {dy, x, scale, mean, variance, out[5]});
  check_near(back[0], {2.081163, -1.1446396, 0.10405815, -1.7689885});
  check_near(back[1], {0.45608464});
  check_near(back[2], {-0.875});
  auto averaged = norm(1e-4f, true);
  averaged["exponential_avg_factor"] = 0.25f;
  const auto moving = bench.run(bench.add("FusedBatchNormV3", five, averaged), {make<float>({1, 1, 2, 1}, {1, 3}), scale, offset, make<float>({1}, {4}), make<float>({1}, {8})});
  check_near(moving[1], {0.75 * 4 + 0.25 * 2});
  check_near(moving[2], {0.75 * 8 + 0.25 * 2});
}

TEST_CASE("batch norm: both orders of axes, volumes and many channels agree") {
  kernel_bench bench;
  std::mt19937 random(2);
  for (const std::int64_t channels : {1, 3, 70}) {
    tensor_value last(dtype::float32, shape{2, 3, 5, channels}), first(dtype::float32, shape{2, channels, 3, 5}), scale(dtype::float32, shape{channels}), offset(dtype::float32, shape{channels});
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t p = 0; p < 15; ++p)
        for (std::int64_t c = 0; c < channels; ++c)
          first.mutable_data<float>()[(n * channels + c) * 15 + p] = last.mutable_data<float>()[(n * 15 + p) * channels + c] = static_cast<float>(random() % 1000) / 500;
    for (std::int64_t c = 0; c < channels; ++c) {
      scale.mutable_data<float>()[c] = static_cast<float>(c + 1);
      offset.mutable_data<float>()[c] = static_cast<float>(-c);
    }
    const auto none = make<float>({0}, {});
    const auto a = bench.run(bench.add("FusedBatchNormV3", five, norm(0.01f, true)), {last, scale, offset, none, none});
    const auto b = bench.run(bench.add("FusedBatchNormV3", five, norm(0.01f, true, "NCHW")), {first, scale, offset, none, none});
    const auto da = bench.run(bench.add("FusedBatchNormGradV3", std::vector<dtype>(6, dtype::float32), norm(0.01f, true)), {last, last, scale, a[3], a[4], a[5]});
    const auto db = bench.run(bench.add("FusedBatchNormGradV3", std::vector<dtype>(6, dtype::float32), norm(0.01f, true, "NCHW")), {first, first, scale, b[3], b[4], b[5]});
    bool same = true;
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t p = 0; p < 15; ++p)
        for (std::int64_t c = 0; c < channels; ++c)
          for (const auto& [x, y] : {std::pair(&a[0], &b[0]), std::pair(&da[0], &db[0])})
            same = same && std::abs(x->data<float>()[(n * 15 + p) * channels + c] - y->data<float>()[(n * channels + c) * 15 + p]) < 1e-3f;
    CHECK(same);
    const auto volume = bench.run(bench.add("FusedBatchNormV3", five, norm(0.01f, true, "NDHWC")), {[&] { tensor_value v = last; v.reshape(shape{2, 3, 1, 5, channels}); return v; }(), scale, offset, none, none});
    CHECK(elements<float>(volume[0]) == elements<float>(a[0]));
  }
}

TEST_CASE("batch norm: empty images and hostile shapes") {
  kernel_bench bench;
  const auto c = make<float>({3}, {1, 2, 3}), none = make<float>({0}, {});
  const auto out = bench.run(bench.add("FusedBatchNorm", five, norm(0.1f, true)), {make<float>({0, 2, 2, 3}, {}), c, c, none, none});
  CHECK(out[0].shape() == shape{0, 2, 2, 3});
  CHECK(std::isnan(out[1].data<float>()[2]));
  const auto x = make<float>({1, 1, 1, 3}, {1, 2, 3});
  CHECK(bench.error("FusedBatchNorm", {x, make<float>({2}, {1, 2}), c, none, none}, norm(0.1f, true)) == "INVALID_ARGUMENT: the channels of x and the size of scale must be equal, found 3 and 2");
  CHECK(bench.error("FusedBatchNorm", {x, c, c, none, none}, norm(0.1f, false)) == "INVALID_ARGUMENT: the channels of x and the size of mean must be equal, found 3 and 0");
  CHECK(bench.error("FusedBatchNorm", {make<float>({2, 3}, {1, 2, 3, 4, 5, 6}), c, c, none, none}, norm(0.1f, true)) == "INVALID_ARGUMENT: x must have rank 4, found shape [2,3]");
  CHECK(bench.error("FusedBatchNormGrad", {x, make<float>({1, 1, 3, 1}, {1, 2, 3}), c, c, c}, norm(0.1f, true)) == "INVALID_ARGUMENT: y_backprop and x must have one shape, found [1,1,1,3] and [1,1,3,1]");
}

TEST_CASE("lrn: values by hand, and the gradient against differences") {
  kernel_bench bench;
  const weft::attr_map attrs{{"depth_radius", std::int64_t{1}}, {"bias", 2.f}, {"alpha", 0.5f}, {"beta", 0.75f}};
  const auto x = make<float>({1, 1, 1, 3}, {1, -2, 3});
  const tensor_value y = bench("LRN", {x}, attrs);
  check_near(y, {std::pow(2 + 0.5 * 5, -0.75), -2 * std::pow(2 + 0.5 * 14, -0.75), 3 * std::pow(2 + 0.5 * 13, -0.75)}, 1e-6);
  const auto g = make<float>({1, 1, 1, 3}, {1, 10, 100});
  const tensor_value dx = bench("LRNGrad", {g, x, y}, attrs);
  const double in[3] = {1, -2, 3}, weights[3] = {1, 10, 100};
  const auto loss = [&](int moved, double by) {
    double v[3] = {in[0], in[1], in[2]}, sum = 0;
    v[moved] += by;
    for (int i = 0; i < 3; ++i) {
      double squares = 0;
      for (int k = std::max(0, i - 1); k < std::min(3, i + 2); ++k) squares += v[k] * v[k];
      sum += weights[i] * v[i] * std::pow(2 + 0.5 * squares, -0.75);
    }
    return sum;
  };
  for (int i = 0; i < 3; ++i) CHECK(std::abs(static_cast<double>(dx.data<float>()[i]) - (loss(i, 1e-5) - loss(i, -1e-5)) / 2e-5) < 1e-3);
  const weft::attr_map wide{{"depth_radius", std::numeric_limits<std::int64_t>::max()}, {"bias", 1.f}, {"alpha", 1.f}, {"beta", 0.5f}};
  check_near(bench("LRN", {x}, wide), {1 / std::sqrt(15.0), -2 / std::sqrt(15.0), 3 / std::sqrt(15.0)}, 1e-6);
  CHECK(bench("LRN", {make<float>({1, 2, 2, 0}, {})}, attrs).shape() == shape{1, 2, 2, 0});
  CHECK(bench.error("LRN", {x}, {{"depth_radius", std::int64_t{-1}}}) == "INVALID_ARGUMENT: attribute 'depth_radius' must not be negative, found -1");
  CHECK(bench.error("LRN", {make<float>({2, 3}, {1, 2, 3, 4, 5, 6})}, attrs) == "INVALID_ARGUMENT: input must have rank 4, found shape [2,3]");
}
