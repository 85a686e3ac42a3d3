#define WEFT_IMPLEMENTATION_KERNELS
#include <weft/kernels/onednn.hpp>

#include <doctest/doctest.h>
#include <weft/kernels/standard.hpp>
#include <weft/ops/nn.hpp>
#include <weft/ops/nn_conv.hpp>
#include <weft/session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

using weft::placeholder;

namespace {
weft::tensor_value random_values(const weft::shape& s, unsigned seed) {
  std::mt19937 random(seed);
  weft::tensor_value out(weft::dtype::float32, s);
  for (std::int64_t i = 0; i < out.elements(); ++i) out.mutable_data<float>()[i] = static_cast<float>(random()) * 0x1p-31f - 1.f;
  return out;
}
// One output of a node on these inputs, by the kernels of a registry.
weft::tensor_value compute(const weft::kernel_registry& kernels, const weft::node& n, std::vector<weft::tensor_value> inputs) {
  weft::step_environment environment;
  weft::tensor_value out;
  weft::kernel_context context(n, environment, inputs.data(), inputs.size(), &out);
  kernels.make({n, "/job:localhost/task:0/device:CPU:0"}, "CPU")->compute(context);
  return out;
}
void check_equal(const weft::node& n, const std::vector<weft::tensor_value>& inputs) {
  const weft::tensor_value own = compute(weft::standard_kernels(), n, inputs), other = compute(weft::with_onednn(), n, inputs);
  REQUIRE(own.shape() == other.shape());
  float worst = 0;
  for (std::int64_t i = 0; i < own.elements(); ++i) worst = std::max(worst, std::abs(own.data<float>()[i] - other.data<float>()[i]));
  CHECK(worst < 1e-4f);
}
}  // namespace

TEST_CASE("oneDNN: preferred where it has a kernel, weft's own elsewhere") {
  const weft::kernel_registry kernels = weft::with_onednn();
  CHECK(kernels.catalogue().find("Conv2D", "CPU", {{"T", weft::dtype::float32}})->priority == 1);
  CHECK(kernels.catalogue().find("Conv2D", "CPU", {{"T", weft::dtype::float64}})->priority == 0);
}

TEST_CASE("oneDNN: convolutions, products and softmax agree with weft's") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float, 4>("x"), w = placeholder<float, 4>("w");
  for (const weft::image_padding padding : {weft::same_padding, weft::valid_padding, weft::explicit_padding(1, 2, 0, 1)})
    for (const std::int64_t stride : {1, 2})
      for (const std::int64_t dilation : {1, 2}) {
        const weft::node& n = *weft::conv2d(x, w, stride, padding, {weft::nhwc, dilation}).raw().from;
        check_equal(n, {random_values({2, 9, 8, 3}, 1), random_values({3, 2, 3, 5}, 2)});
        check_equal(n, {random_values({1, 7, 7, 16}, 3), random_values({1, 1, 16, 32}, 4)});
        check_equal(n, {random_values({1, 6, 6, 4}, 5), random_values({2, 2, 2, 4}, 6)});  // groups
        check_equal(n, {random_values({0, 6, 6, 4}, 5), random_values({2, 2, 4, 4}, 6)});
      }
  const auto a = placeholder<float, 2>(), b = placeholder<float, 2>();
  check_equal(*weft::matmul(a, b).raw().from, {random_values({5, 7}, 1), random_values({7, 3}, 2)});
  check_equal(*weft::matmul(a, b, weft::transpose_a | weft::transpose_b).raw().from, {random_values({7, 5}, 1), random_values({3, 7}, 2)});
  check_equal(*weft::matmul(a, b).raw().from, {random_values({5, 0}, 1), random_values({0, 3}, 2)});
  check_equal(*weft::softmax(x).raw().from, {random_values({2, 3, 4, 10}, 7)});
  check_equal(*weft::softmax(x).raw().from, {random_values({2, 0, 4, 10}, 7)});
  CHECK_THROWS_AS(compute(weft::with_onednn(), *weft::matmul(a, b).raw().from, {random_values({5, 7}, 1), random_values({6, 3}, 2)}), weft::error);
}

TEST_CASE("oneDNN: the kernels of a session") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant({{{{1.f}, {2.f}, {3.f}}, {{4.f}, {5.f}, {6.f}}, {{7.f}, {8.f}, {9.f}}}});
  const auto y = weft::conv2d(x, weft::constant({{{{1.f}}, {{10.f}}}, {{{100.f}}, {{1000.f}}}}), 1, weft::valid_padding);
  weft::session_options options;
  options.kernels = std::make_shared<const weft::kernel_registry>(weft::with_onednn());
  weft::local_session session(options);
  const auto found = session.run(y);
  CHECK(std::vector<float>(found.begin(), found.end()) == std::vector<float>{5421, 6532, 8754, 9865});
}
