#include <weft/ops/array_layout.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>

#include <string>
#include <type_traits>

using ops_test::message;
using namespace weft;

TEST_CASE("transpose: turns the dimensions around, or takes a permutation") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float, 3>({2, 3, unknown}, "x");
  const auto any = placeholder<float>();
  IS(transpose(x), tensor<float, 3>);
  IS(transpose(any), tensor<float>);
  CHECK(transpose(x).shape() == partial_shape{-1, 3, 2});
  CHECK(transpose(x, {1, 2, 0}).shape() == partial_shape{3, -1, 2});
  CHECK(transpose(x, {-1, 0, 1}).shape() == partial_shape{-1, 2, 3});
  CHECK(transpose(any).raw().from->inputs()[1].from->op() == "Sub");  // rank - 1 - range(rank)
  CHECK(transpose(x, invert_permutation(constant({2, 0, 1}))).shape() == partial_shape{3, -1, 2});
  CHECK(message([&] { (void)transpose(x, {0, 1}); }) == "perm must have 3 elements, one for each dimension of shape [2,3,?], found 2");
  CHECK(message([&] { (void)transpose(x, {0, 1, 3}); }) == "perm 3 is not in [-3, 3)");
}

TEST_CASE("blocks of space, depth and batch") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float, 4>({unknown, 4, 6, 3}, "x");
  CHECK(space_to_depth(x, 2).shape() == partial_shape{-1, 2, 3, 12});
  CHECK(depth_to_space(space_to_depth(x, 2), 2).shape() == partial_shape{-1, 4, 6, 3});
  const auto y = placeholder<float, 4>({1, 3, 6, 3}, "y");
  CHECK(space_to_batch(y, {2, 3}, {{1, 0}, {0, 0}}).shape() == partial_shape{6, 2, 2, 3});
  CHECK(batch_to_space(space_to_batch(y, {2, 3}, {{1, 0}, {0, 0}}), {2, 3}, {{1, 0}, {0, 0}}).shape() == partial_shape{1, 3, 6, 3});
  CHECK(message([&] { (void)space_to_depth(x, 4); }) == "width 6 cannot be divided by 4");
  CHECK(message([&] { (void)depth_to_space(x, 2); }) == "depth 3 cannot be divided by 4");
  CHECK(message([&] { (void)space_to_batch(y, {2, 3}, {{0, 0}, {0, 0}}); }) == "padded dimension 1 of size 3 cannot be divided by 2");
  CHECK(message([&] { (void)batch_to_space(y, {1, 1}, {{2, 2}, {0, 0}}); }) == "dimension 1 of size 3 cannot lose 4 to crops");
  CHECK(message([&] { (void)space_to_batch(y, {0, 1}, {{0, 0}, {0, 0}}); }) == "block size 0 must be at least 1, found 0");
}

TEST_CASE("diagonals and bands") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float, 2>({2, 3}, "x");
  IS(diag(x), tensor<float, 4>);
  IS(diag_part(diag(x)), tensor<float, 2>);
  IS(matrix_diag(x), tensor<float, 3>);
  IS(matrix_diag_part(x), tensor<float, 1>);
  CHECK(diag(x).shape() == partial_shape{2, 3, 2, 3});
  CHECK(diag_part(diag(x)).shape() == partial_shape{2, 3});
  CHECK(matrix_diag(x).shape() == partial_shape{2, 3, 3});
  CHECK(matrix_diag_part(x).shape() == partial_shape{2});
  CHECK(matrix_band_part(x, -1, 0).shape() == partial_shape{2, 3});
  CHECK(matrix_set_diag(x, placeholder<float, 1>({2})).shape() == partial_shape{2, 3});
  CHECK(message([&] { (void)diag_part(x); }) == "dimensions 0 and 1 must be equal, found 2 and 3");
  CHECK(message([&] { (void)matrix_set_diag(x, placeholder<float, 1>({3})); }) == "the diagonal of shape [2,3] must have shape [2], found [3]");
}
