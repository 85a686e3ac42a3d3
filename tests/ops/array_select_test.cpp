#include <weft/ops/array_select.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using ops_test::message;
using namespace weft;
using std::int32_t;
using std::int64_t;

namespace {
struct operands {
  graph g;
  detail::graph_scope scope = g.as_default();
  tensor<float, 2> x = placeholder<float, 2>({2, 3}, "x");
  tensor<float, 1> row = placeholder<float, 1>({3}, "row");
  tensor<bool, 2> c2 = placeholder<bool, 2>({2, 3}, "c2");
  tensor<bool, 1> c1 = placeholder<bool, 1>({2}, "c1");
  tensor<int32_t, 1> i1 = placeholder<int32_t, 1>({2}, "i1");
};
}  // namespace

TEST_CASE("where, select, boolean mask") {
  operands t;
  IS(where(t.c2, t.x, t.row), tensor<float, 2>);
  IS(where(t.c2, t.row, 0), tensor<float, 2>);
  IS(where(t.c2, 0.f, t.row), tensor<float, 2>);
  IS(where(t.c2), tensor<int64_t, 2>);
  IS(boolean_mask(t.x, t.c1), tensor<float, 2>);
  IS(boolean_mask(t.x, t.c2), tensor<float, 1>);
  CHECK(where(t.c2, t.x, t.row).shape() == partial_shape{2, 3});
  CHECK(where(t.c2, t.row, 0).raw().from->op() == "SelectV2");
  CHECK(where(t.c2).shape() == partial_shape{-1, 2});
  CHECK(select(t.c1, t.x, t.x).shape() == partial_shape{2, 3});
  CHECK(boolean_mask(t.x, t.c1).shape() == partial_shape{-1, 3});
  CHECK(boolean_mask(t.x, t.c2).shape() == partial_shape{-1});
  CHECK(message([&] { (void)where(t.c1, t.x, t.x); }) == "shapes [2] of the condition, [2,3] and [2,3] cannot be broadcast");
  CHECK(message([&] { (void)select(placeholder<bool, 1>({3}), t.x, t.x); }) == "a condition of shape [3] cannot choose from shape [2,3]");
}

TEST_CASE("one hot, top k, unique, partitions") {
  operands t;
  IS(one_hot(t.i1, 10), tensor<float, 2>);
  IS(one_hot<int>(t.i1, 10), tensor<int32_t, 2>);
  IS(one_hot_values(t.i1, 3, 0.9, 0.1), tensor<double, 2>);
  CHECK(one_hot(t.i1, 10).shape() == partial_shape{2, 10});
  CHECK(one_hot(t.i1, 10, 0).shape() == partial_shape{10, 2});
  CHECK(message([&] { (void)one_hot(t.i1, -1); }) == "depth must not be negative, found -1");
  CHECK(message([&] { (void)one_hot(t.i1, 3, 2); }) == "attribute 'axis' must be at most 1, the rank of the indices, found 2");
  const auto [values, indices] = top_k(t.x, 2);
  IS(values, tensor<float, 2>);
  IS(indices, tensor<int32_t, 2>);
  CHECK(values.shape() == partial_shape{2, 2});
  CHECK(indices.raw().index == 1);
  CHECK(message([&] { (void)top_k(t.x, 4); }) == "rows of 3 elements have no 4 largest");
  const auto [found, positions, counts] = unique_with_counts(t.i1);
  CHECK(found.shape() == partial_shape{-1});
  CHECK(positions.shape() == partial_shape{2});
  CHECK(counts.shape() == partial_shape{-1});
  CHECK(unique(t.i1).indices.shape() == partial_shape{2});
  const auto parts = dynamic_partition(t.x, t.i1, 2);
  CHECK(parts.size() == 2);
  CHECK(parts[1].shape() == partial_shape{-1, 3});
  CHECK(dynamic_stitch(std::vector{t.i1, constant({2})}, std::vector{t.x, placeholder<float, 2>({1, 3})}).shape() == partial_shape{-1, 3});
  CHECK(dynamic_stitch(std::vector{constant({0, 4})}, std::vector{t.x}).shape() == partial_shape{5, 3});
  CHECK(message([&] { (void)dynamic_partition(t.x, placeholder<int32_t, 1>({3}), 2); }) == "data of shape [2,3] must begin with the shape [3] of its partitions");
}
