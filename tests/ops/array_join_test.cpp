#include <weft/ops/array_join.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using ops_test::message;
using namespace weft;

namespace {

struct operands {
  graph g;
  detail::graph_scope scope = g.as_default();
  tensor<float, 2> x = placeholder<float, 2>({2, 3}, "x");
  tensor<float, 2> y = placeholder<float, 2>({4, 3}, "y");
  tensor<float, 2> open = placeholder<float, 2>({unknown, 3}, "open");
};

}  // namespace

TEST_CASE("concat, stack, unstack, split: ranks and shapes") {
  operands t;
  IS(concat({t.x, t.y}, 0), tensor<float, 2>);
  IS(stack({t.x, t.x}, 1), tensor<float, 3>);
  IS(unstack(t.x, 2), std::vector<tensor<float, 1>>);
  IS(split(t.x, 3, 1), std::vector<tensor<float, 2>>);
  CHECK(concat({t.x, t.y}, 0).shape() == partial_shape{6, 3});
  CHECK(concat({t.x, t.open}, -2).shape() == partial_shape{-1, 3});
  CHECK(concat({t.x}, 0).raw().from->op() == "Identity");
  CHECK(stack({t.x, t.x}, -1).shape() == partial_shape{2, 3, 2});
  CHECK(unstack(t.x, 3, 1)[2].shape() == partial_shape{2});
  CHECK(unstack(t.x, 3, 1)[2].raw().index == 2);
  CHECK(split(t.y, 2)[1].shape() == partial_shape{2, 3});
  CHECK(split(t.y, {1, -1})[1].shape() == partial_shape{3, 3});
  CHECK(message([&] { (void)concat(std::vector<tensor<float, 2>>(), 0); }) == "concat: there is nothing to join");
  CHECK(message([&] { (void)concat({t.x, t.y}, 1); }) == "shapes [2,3] of input 0 and [4,3] of input 1 differ in another dimension than 1");
  CHECK(message([&] { (void)stack({t.x, t.y}); }) == "shapes [2,3] of input 0 and [4,3] of input 1 differ");
  CHECK(message([&] { (void)unstack(t.x, 3); }) == "dimension 0 of shape [2,3] must be 3, as attribute 'num' says");
  CHECK(message([&] { (void)split(t.x, 2, 1); }) == "dimension 1 of size 3 cannot be divided by 2");
  CHECK(message([&] { (void)split(t.y, {1, 2}); }) == "a dimension of size 4 cannot be split into parts that together are 3");
  CHECK(message([&] { (void)split(t.y, {-1, -1}); }) == "only one of size_splits may be -1");
  CHECK(message([&] { (void)concat({t.x, tensor<float, 2>()}, 0); }) == "ConcatV2: an operand is an empty tensor, not made by any op");
}

TEST_CASE("concat: the axis is a constant below it, as TensorFlow names it") {
  operands t;
  (void)concat({t.x, t.y}, 0);
  (void)concat({t.x, t.x}, 1, "wide");
  const std::string text = to_text(t.g);
  CHECK(text.substr(text.find("concat/axis")) ==
        "concat/axis = Const()  int32[]  {value=0}\n"
        "concat = ConcatV2(x, y, concat/axis)  float[6,3]\n"
        "wide/axis = Const()  int32[]  {value=1}\n"
        "wide = ConcatV2(x, x, wide/axis)  float[2,6]\n");
}

TEST_CASE("tile, pad: ranks, shapes and what they refuse") {
  operands t;
  IS(tile(t.x, {2, 1}), tensor<float, 2>);
  IS(pad(t.x, {{1, 1}, {0, 2}}, 1), tensor<float, 2>);
  CHECK(tile(t.x, {2, 1}).shape() == partial_shape{4, 3});
  CHECK(tile(t.open, constant({2, 1})).shape() == partial_shape{-1, 3});
  CHECK(pad(t.x, {{1, 1}, {0, 2}}).raw().from->op() == "Pad");
  CHECK(pad(t.x, {{1, 1}, {0, 2}}).shape() == partial_shape{4, 5});
  CHECK(pad(t.x, {{1, 1}, {0, 2}}, 7).raw().from->inputs()[2].from->attr<tensor_value>("value") == tensor_value::scalar(7.f));
  CHECK(mirror_pad(t.x, {{1, 0}, {2, 2}}, mirror_mode::reflect).shape() == partial_shape{3, 7});
  CHECK(message([&] { (void)tile(t.x, {2}); }) == "multiples must have 2 elements, one for each dimension of shape [2,3], found 1");
  CHECK(message([&] { (void)tile(t.x, {2, -1}); }) == "multiples[1] cannot be -1");
  CHECK(message([&] { (void)tile(t.x, {1, INT64_MAX}); }) == "the product of sizes 3 and 9223372036854775807 is larger than a dimension can be");
  CHECK(message([&] { (void)pad(t.x, {{1, 1}}); }) == "paddings must have one row for each dimension of shape [2,3], found shape [1,2]");
  CHECK(message([&] { (void)pad(t.x, {{1, 1}, {-1, 0}}); }) == "paddings must not be negative, found -1 and 0 for dimension 1");
}
