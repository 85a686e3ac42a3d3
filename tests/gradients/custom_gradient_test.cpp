#include <weft/gradients/custom_gradient.hpp>

#include <weft/gradients.hpp>
#include <weft/session.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <tuple>
#include <utility>

TEST_CASE("custom_gradient: the given gradient takes the place of the op's") {
  weft::graph graph;
  const auto scope = graph.as_default();
  // log(1 + e^x), whose plain gradient is inf / inf for large x.
  const auto log1pexp = weft::custom_gradient([](const weft::tensor<float, 1>& x) {
    const auto e = weft::exp(x);
    return std::pair(weft::log(1.f + e), [=](const weft::tensor<float, 1>& dy) { return dy * (1.f - 1.f / (1.f + e)); });
  });
  const auto x = weft::constant({0.f, 100.f});
  const auto y = log1pexp(x);
  static_assert(std::is_same_v<decltype(y), const weft::tensor<float, 1>>);
  weft::session session;
  CHECK(session.run(weft::gradients(y, x)) == xt::xtensor<float, 1>{0.5f, 1.f});
  CHECK(session.run(weft::gradients(3.f * y, x)) == xt::xtensor<float, 1>{1.5f, 3.f});
}

TEST_CASE("custom_gradient: a graph that keeps one does not live for ever") {
  std::weak_ptr<const void> graph_of;
  {
    weft::graph graph;
    const auto scope = graph.as_default();
    const auto squared = weft::custom_gradient([](const weft::tensor<float, 0>& x) {
      const auto y = x * x;
      return std::pair(y, [=](const weft::tensor<float, 0>& dy) { return dy * (x + x) + weft::zeros_like(y); });
    });
    const auto x = weft::constant(3.f);
    const auto y = squared(squared(x));
    weft::session session;
    CHECK(session.run(weft::gradients(y, x)) == 108.f);
    graph_of = graph.state();
  }
  CHECK(graph_of.expired());
}

TEST_CASE("custom_gradient: several arguments and results, and arguments without a gradient") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto f = weft::custom_gradient([](const weft::tensor<float, 0>& a, const weft::tensor<float, 0>& b) {
    return std::pair(std::tuple(a * b, a + b), [=](const weft::tensor<float, 0>& dp, const weft::tensor<float, 0>& ds) { return std::tuple(10.f * dp + ds, weft::tensor<float, 0>()); });
  });
  const auto a = weft::constant(2.f), b = weft::constant(5.f);
  const auto [product, sum] = f(a, b);
  const auto both = weft::gradients(std::tie(product, sum), std::tie(a, b), {});
  const auto second = weft::gradients(sum, a);
  weft::session session;
  CHECK(session.run(product) == 10.f);
  CHECK(session.run(std::get<0>(both)) == 11.f);
  CHECK(std::get<1>(both).empty());
  CHECK(session.run(second) == 1.f);
}
