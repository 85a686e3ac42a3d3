#include <weft/graph/known_value.hpp>

#include <weft/graph.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using weft::dtype;
using weft::known_integers;
using weft::output;
using weft::tensor_value;

namespace {
constexpr std::int64_t open = known_integers::open;

/// Builds nodes by their op's name.
struct toy_graph {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
  output add(const char* op, std::vector<output> inputs, weft::attr_map attrs = {}) { return {&weft::detail::add_node(op, std::move(inputs), {}, std::move(attrs)), 0}; }
  output numbers(std::vector<std::int32_t> values) {
    return add("Const", {}, {{"dtype", dtype::int32}, {"value", tensor_value::from<std::int32_t>({static_cast<std::int64_t>(values.size())}, values)}});
  }
  output number(std::int32_t value) { return add("Const", {}, {{"dtype", dtype::int32}, {"value", tensor_value::scalar(value)}}); }
  output placeholder(weft::partial_shape s) { return add("Placeholder", {}, {{"dtype", dtype::float32}, {"shape", std::move(s)}}); }
};
std::vector<std::int64_t> values(const output& of) {
  const auto known = weft::known_value(of);
  return known ? known->values : std::vector<std::int64_t>{-12345};
}
const std::vector<std::int64_t> unknown = {-12345};
}  // namespace

TEST_CASE("known_value: constants and what arithmetic makes of them") {
  toy_graph t;
  const output a = t.numbers({2, 3, -7}), b = t.numbers({4, 5, 2}), two = t.number(2);
  CHECK(values(a) == std::vector<std::int64_t>{2, 3, -7});
  CHECK(values(t.add("AddV2", {a, b})) == std::vector<std::int64_t>{6, 8, -5});
  CHECK(values(t.add("Sub", {a, two})) == std::vector<std::int64_t>{0, 1, -9});
  CHECK(values(t.add("Mul", {two, b})) == std::vector<std::int64_t>{8, 10, 4});
  CHECK(values(t.add("Maximum", {a, b})) == std::vector<std::int64_t>{4, 5, 2});
  CHECK(values(t.add("Minimum", {a, b})) == std::vector<std::int64_t>{2, 3, -7});
  CHECK(values(t.add("Cast", {a}, {{"DstT", dtype::int64}})) == std::vector<std::int64_t>{2, 3, -7});
  CHECK(weft::known_value(two)->scalar());
  CHECK(weft::known_value(a)->dims == std::vector<std::int64_t>{3});
}

TEST_CASE("known_value: what does not fit or is not defined is not known") {
  toy_graph t;
  const output big = t.number(2147483647), one = t.number(1), zero = t.number(0);
  CHECK(values(t.add("AddV2", {big, one})) == unknown);
  CHECK(values(t.add("Mul", {big, big})) == unknown);
  CHECK(values(t.add("Div", {one, zero})) == unknown);
  CHECK(values(t.add("AddV2", {t.numbers({1, 2}), t.add("Cast", {t.placeholder({2})}, {{"DstT", dtype::int32}})})) == unknown);
}

TEST_CASE("known_value: shapes, with open sizes where the shape has them") {
  toy_graph t;
  const output x = t.placeholder({7, -1, 5});
  const output shape = t.add("Shape", {x});
  CHECK(values(shape) == std::vector<std::int64_t>{7, open, 5});
  CHECK_FALSE(weft::known_value(shape)->complete());
  CHECK(values(t.add("Rank", {x})) == std::vector<std::int64_t>{3});
  CHECK(values(t.add("Size", {x})) == unknown);
  CHECK(values(t.add("Size", {t.placeholder({7, 5})})) == std::vector<std::int64_t>{35});
  CHECK(values(t.add("Shape", {t.placeholder(weft::partial_shape())})) == unknown);
  CHECK(values(t.add("Mul", {shape, shape})) == unknown);
}

TEST_CASE("known_value: a graph that reaches one node on very many ways is given up, not followed for ever") {
  toy_graph t;
  output x = t.number(0);
  for (int i = 0; i < 60; ++i) x = t.add("AddV2", {x, x});
  CHECK(values(x) == unknown);
  output deep = t.number(0);
  for (int i = 0; i < 10000; ++i) deep = t.add("Identity", {deep});
  CHECK(values(deep) == unknown);
}
