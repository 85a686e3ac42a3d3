#include <weft/ops/nn_norm.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session.hpp>

#include <cmath>
#include <string>
#include <vector>

using ops_test::message;
using ops_test::shape;
using weft::axis;
using weft::graph;
using weft::keep_dims;
using weft::keep_prob;
using weft::placeholder;
using weft::unknown;

TEST_CASE("moments: the mean and the variance over axes") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, 3, 4}, "x");
  const auto m = weft::moments(x, axis<0, 2>, "m");
  CHECK(shape(m.mean) == "[3]");
  CHECK(shape(weft::moments(x, {0}, keep_dims).variance) == "[1,3,4]");
  CHECK(shape(weft::moments(placeholder<weft::half>({2, 3}), axis<1>).variance) == "[2]");
  CHECK(shape(weft::moments(x, {}).mean) == "[2,3,4]");
  CHECK(g.find("m/variance")->op() == "Mean");
  CHECK(g.find("m/StopGradient") != nullptr);
}

TEST_CASE("fused_batch_norm: training takes no mean, inference takes one") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, unknown, 4, 3}, "x");
  const auto c = placeholder<float>({3}, "c");
  const auto trained = weft::fused_batch_norm(x, c, c, 0.1f, weft::nhwc, "trained");
  const auto inferred = weft::fused_batch_norm(x, c, c, c, c);
  CHECK(shape(trained.y) == "[2,?,4,3]");
  CHECK(shape(trained.variance) == "[3]");
  CHECK(trained.y.raw().from->attr<bool>("is_training"));
  CHECK(trained.y.raw().from->attr<float>("epsilon") == 0.1f);
  CHECK(!inferred.y.raw().from->attr<bool>("is_training"));
  CHECK(message([&] { (void)weft::fused_batch_norm(x, placeholder<float>({2}), c); }) == "the channels of x and the size of scale must be equal, found 3 and 2");
  CHECK(message([&] { (void)weft::fused_batch_norm(x, c, c, placeholder<float>({weft::dim(0)}), c); }) == "the channels of x and the size of mean must be equal, found 3 and 0");
}

TEST_CASE("batch_normalization, l2_normalize, local_response_normalization: shapes") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, 3}, "x"), m = placeholder<float>({1, 3}, "m");
  CHECK(shape(weft::batch_normalization(x, m, m, m, m, 1e-3)) == "[2,3]");
  CHECK(shape(weft::batch_normalization(x, m, m, weft::tensor<float>(), weft::tensor<float>(), 1e-3, "plain")) == "[2,3]");
  CHECK(g.find("plain/Neg") != nullptr);
  CHECK(shape(weft::l2_normalize(x, axis<1>)) == "[2,3]");
  const auto images = placeholder<float>({1, 2, 2, 5});
  CHECK(weft::local_response_normalization(images, {2, 1.f, 2.f, 0.75f}).raw().from->attr<std::int64_t>("depth_radius") == 2);
}

TEST_CASE("dropout: the nodes, and rates that keep all or are none") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, 3}, "x");
  const auto y = weft::dropout(x, keep_prob(0.75), 7, "y");
  CHECK(to_text(g) ==
        "x = Placeholder()  float[2,3]  {shape=[2,3]}\n"
        "y/one = Const()  float[]  {value=1}\n"
        "y/rate = Const()  float[]  {value=0.25}\n"
        "y/Shape = Shape(x)  int32[2]\n"
        "y/random_uniform/RandomUniform = RandomUniform(y/Shape)  float[2,3]  {seed=87654321, seed2=7}\n"
        "y/sub = Sub(y/one, y/rate)  float[]\n"
        "y/truediv = RealDiv(y/one, y/sub)  float[]\n"
        "y/GreaterEqual = GreaterEqual(y/random_uniform/RandomUniform, y/rate)  bool[2,3]\n"
        "y/Cast = Cast(y/GreaterEqual)  float[2,3]\n"
        "y/mul = Mul(x, y/truediv)  float[2,3]\n"
        "y = Mul(y/mul, y/Cast)  float[2,3]\n");
  CHECK(weft::dropout(x, keep_prob(1)).raw().from->op() == "Identity");
  CHECK(weft::dropout(x, weft::drop_rate(0)).raw().from->op() == "Identity");
  CHECK(shape(weft::dropout(x, keep_prob(placeholder<float, 0>()))) == "[2,3]");
  CHECK(message([&] { (void)weft::dropout(x, keep_prob(0)); }) == "keep_prob must be in (0, 1], found 0.000000");
  CHECK(message([&] { (void)weft::dropout(x, weft::drop_rate(1.0)); }) == "drop_rate must be in [0, 1), found 1.000000");
  CHECK(message([&] { (void)weft::dropout(x, keep_prob(placeholder<double, 0>())); }) == "dropout: the probability must be float as the tensor, found double");
}

namespace {
template <class T, int N> void check_values(const weft::tensor<T, N>& t, const std::vector<double>& wanted) { ops_test::check_values(t, wanted, 1e-6); }
}  // namespace

TEST_CASE("normalisations: values") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant({{1.0, 2.0}, {3.0, 6.0}});
  const auto m = weft::moments(x, axis<0>);
  check_values(m.mean, {2, 4});
  check_values(m.variance, {1, 4});
  const auto two = weft::constant({2.0, 2.0}), one = weft::constant({1.0, 1.0});
  check_values(weft::batch_normalization(x, m.mean, m.variance, one, two, 0), {-1, -1, 3, 3});
  check_values(weft::batch_normalization(x, m.mean, m.variance, weft::tensor<double>(), weft::tensor<double>(), 0), {-1, -1, 1, 1});
  check_values(weft::l2_normalize(weft::constant({3.f, 4.f}), axis<0>), {0.6, 0.8});
  check_values(weft::l2_normalize(weft::constant({0.f, 0.f}), axis<0>), {0, 0});
}

TEST_CASE("dropout: kept elements are scaled, the others zero, as many as the rate says") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::ones<float>({1000});
  weft::local_session session;
  const auto kept = session.run(weft::dropout(x, keep_prob(0.25), 3));
  const auto fed = session.run(weft::dropout(x, weft::drop_rate(weft::constant(0.75f)), 3));
  int count = 0;
  bool right = true;
  for (std::size_t i = 0; i < 1000; ++i) {
    right = right && (kept(i) == 0.f || kept(i) == 4.f) && kept(i) == fed(i);
    count += kept(i) != 0.f ? 1 : 0;
  }
  CHECK(right);
  CHECK(count > 200);
  CHECK(count < 300);
  const auto rows = session.run(weft::dropout(weft::ones<float>({50, 20}), keep_prob(0.5), weft::constant({50, 1}), 5));
  bool together = true;
  for (std::size_t i = 0; i < 50; ++i)
    for (std::size_t j = 1; j < 20; ++j) together = together && rows(i, j) == rows(i, 0);
  CHECK(together);
}
