#include <weft/gradients/nn.hpp>

#include <weft/gradients.hpp>
#include <weft/session.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using list = std::vector<double>;

/// The elements of tensors of floating-point numbers.
list elements(const weft::tensor_value& v) {
  const auto values = [&](auto zero) {
    const auto* data = v.data<decltype(zero)>();
    list out;
    for (std::int64_t i = 0; i < v.elements(); ++i) out.push_back(static_cast<double>(static_cast<std::conditional_t<std::is_same_v<decltype(zero), double>, double, float>>(data[i])));
    return out;
  };
  switch (v.dtype()) {
    case weft::dtype::float64: return values(0.);
    case weft::dtype::half: return values(weft::half());
    case weft::dtype::bfloat16: return values(weft::bfloat16());
    default: return values(0.f);
  }
}
weft::tensor_value value_of(const weft::gradient_output& g) {
  weft::session session;
  return session.run(weft::run_options(), {}, {g.values()})[0];
}
void check_near(const list& found, const list& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found[i] - expected[i]) <= tolerance * std::max(1., std::abs(expected[i])));
  }
}

weft::output constant(const weft::shape& s, const list& values, weft::dtype type) {
  const weft::output wide{&weft::detail::add_const(weft::tensor_value::from<double>(s, values), {}), 0};
  return {&weft::detail::add_node("Cast", {wide}, {}, {{"DstT", type}}), 0};
}
weft::output add(const char* op, std::vector<weft::output> inputs, weft::attr_map attrs = {}) {
  weft::node_spec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  return {&weft::default_graph().add(std::move(spec)), 0};
}

/// Batch normalisation of images `[..., channels]` while training, of float by the op and of double by its formula.
weft::output normalised(const weft::output& x, const weft::output& scale, const weft::output& offset, bool fused) {
  constexpr float epsilon = 0.25f;
  if (fused) {
    const weft::output none = constant({0}, {}, weft::dtype::float32);
    return add("FusedBatchNormV3", {x, scale, offset, none, none}, {{"is_training", true}, {"epsilon", epsilon}});
  }
  const weft::tensor<double, 4> images(x);
  const weft::tensor<double, 1> s(scale), o(offset);
  const auto centred = images - weft::reduce_mean(images, weft::axis<0, 1, 2>, weft::keep_dims);
  const auto variance = weft::reduce_mean(weft::square(centred), weft::axis<0, 1, 2>, weft::keep_dims);
  return (centred * weft::rsqrt(variance + static_cast<double>(epsilon)) * s + o).raw();
}

/// Gradients of the gradients, weighed by sines of how many there were, once for each order: with respect to x, scale, offset and dy.
std::vector<weft::output> derivatives(const std::vector<list>& values, int order, bool fused) {
  const weft::dtype type = fused ? weft::dtype::float32 : weft::dtype::float64;
  const weft::shape images{2, 1, 3, 2}, channels{2};
  const weft::output x = constant(images, values[0], type), scale = constant(channels, values[1], type), offset = constant(channels, values[2], type), dy = constant(images, values[3], type);
  std::vector<weft::output> ys{normalised(x, scale, offset, fused)};
  std::vector<weft::gradient_output> weights{dy};
  int drawn = 0;
  for (int i = 0; i < order; ++i) {
    weft::gradient_options options;
    options.grad_ys = weights;
    options.unconnected = weft::unconnected_gradients::zero;
    std::vector<weft::output> xs{x, scale, dy};
    const auto found = weft::gradients(ys, xs, options);
    ys.clear();
    weights.clear();
    for (const auto& g : found) {
      ys.push_back(g.values());
      list weight;
      const weft::shape s = &g == &found[1] ? channels : images;
      while (static_cast<std::int64_t>(weight.size()) < s.elements()) weight.push_back(std::sin(++drawn));
      weights.emplace_back(constant(s, weight, type));
    }
  }
  return ys;
}

struct second_derivatives {
  list dy, x, scale;
};
second_derivatives second(const char* op, bool training, weft::dtype type) {
  const weft::shape images{1, 3, 1, 2}, channels{2};
  const auto numbers = [&](const list& values) { return constant(channels, values, weft::dtype::float32); };
  const weft::output dy = constant(images, {1, 2, -1, 0, 3, 1}, type), x = constant(images, {0, 1, 2, -1, 1, 3}, type), scale = numbers({2, -1});
  const weft::output mean = numbers({1, 2}), variance = numbers({0.75, 3.75}), batch_variance = numbers({2. / 3, 8. / 3}), batch_mean = numbers({1, 1});
  std::vector<weft::output> inputs{dy, x, scale, training ? batch_mean : mean, training ? batch_variance : variance};
  if (std::string(op) == "FusedBatchNormGradV3") inputs.push_back(constant({}, {0}, weft::dtype::float32));
  const weft::output first = add(op, inputs, {{"is_training", training}, {"epsilon", 0.25f}});
  weft::gradient_options options;
  options.grad_ys = {constant(images, {1, -2, 0, 1, 2, 1}, type), numbers({1, -1}), numbers({2, 3})};
  const auto found = weft::gradients(std::vector<weft::output>{{first.from, 0}, {first.from, 1}, {first.from, 2}}, inputs, options);
  for (std::size_t i = 3; i < inputs.size(); ++i) CHECK(found[i].empty());
  CHECK(found[1].dtype() == type);
  return {elements(value_of(found[0])), elements(value_of(found[1])), elements(value_of(found[2]))};
}

}  // namespace

TEST_CASE("gradients of batch normalisation's gradient: as differences in 60 digits") {
  weft::graph graph;
  const auto scope = graph.as_default();
  for (const weft::dtype type : {weft::dtype::float32, weft::dtype::half, weft::dtype::bfloat16})
    for (const char* op : {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"}) {
      if (type != weft::dtype::float32 && std::string(op) == "FusedBatchNormGrad") continue;
      const double close = type == weft::dtype::float32 ? 2e-6 : type == weft::dtype::half ? 2e-3 : 1e-2;
      const second_derivatives training = second(op, true, type), given = second(op, false, type);
      check_near(training.dy, {0.19592247464094967, 4.17108008753824, 1.7151456538906762, 3.58554004376912, 4.0889318714683744, 1.2433798686926403}, close);
      check_near(training.x, {0.6215003915112518, -0.8532154923492891, -5.748878621479079, 0.8532154923492891, 5.127378229967827, 0}, close);
      check_near(training.scale, {3.418252153311885, -1.7566201313073597}, close);
      check_near(given.dy, {3, 4.5, 3, 4, 6, 2}, close);
      check_near(given.x, {1, -1, -1, 0, 3, -0.5}, close);
      check_near(given.scale, {7, -1.5}, close);
    }
}

TEST_CASE("gradients of batch normalisation: of the first to the third order as those of its formula in double") {
  weft::graph graph;
  const auto scope = graph.as_default();
  weft::session session;
  list numbers;
  for (int i = 1; i <= 28; ++i) numbers.push_back(std::cos(1.7 * i * i));
  const auto part = [&](int from, int to) { return list(numbers.begin() + from, numbers.begin() + to); };
  const std::vector<list> values{part(0, 12), part(12, 14), part(14, 16), part(16, 28)};
  for (const int order : {1, 2, 3}) {
    CAPTURE(order);
    const auto fused = session.run(weft::run_options(), std::vector<weft::feed>{}, derivatives(values, order, true));
    const auto formula = session.run(weft::run_options(), std::vector<weft::feed>{}, derivatives(values, order, false));
    for (std::size_t i = 0; i < fused.size(); ++i) check_near(elements(fused[i]), elements(formula[i]), 2e-5);
  }
}

TEST_CASE("gradients of batch normalisation's gradient: of no images are zeros") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const weft::output none = constant({0, 2, 2, 3}, {}, weft::dtype::float32), three = constant({3}, {1, 2, 3}, weft::dtype::float32);
  for (const bool training : {true, false}) {
    const weft::output first = add("FusedBatchNormGradV2", {none, none, three, three, three}, {{"is_training", training}});
    const auto found = weft::gradients(std::vector<weft::output>{{first.from, 0}}, {none, three});
    CHECK(value_of(found[0]).shape() == weft::shape{0, 2, 2, 3});
    CHECK(elements(value_of(found[1])) == list{0, 0, 0});
  }
}
