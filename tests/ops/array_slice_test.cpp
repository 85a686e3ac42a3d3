#include <weft/ops/array_slice.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using namespace weft;
using std::int32_t;
using std::int64_t;

namespace {

struct operands {
  graph g;
  detail::graph_scope scope = g.as_default();
  tensor<float, 2> x2 = placeholder<float, 2>({5, 4}, "x2");
  tensor<float, 1> x1 = placeholder<float, 1>("x1");
  tensor<float> xd = placeholder<float>("xd");
  tensor<int32_t, 1> i1 = placeholder<int32_t, 1>("i1");
  tensor<int64_t, 2> i2 = placeholder<int64_t, 2>({3, 1}, "i2");
};
template <class F> std::string message(F make) {
  try {
    make();
  } catch (const error& e) {
    return e.message() + " at " + e.site();
  }
  return "no error";
}

}  // namespace

TEST_CASE("index: ranks are computed from the entries, shapes from their values") {
  operands t;
  const variable w(constant({{1.f, 2.f}, {3.f, 4.f}}), "w");
  IS(t.x2(slice(1, 5), newaxis, ellipsis), tensor<float, 3>);
  IS(t.x2(0), tensor<float, 1>);
  IS(t.x2(0, 1), tensor<float, 0>);
  IS(t.x2(all, 3), tensor<float, 1>);
  IS(t.x2(all(), 3), tensor<float, 1>);
  IS(t.x2(ellipsis, newaxis), tensor<float, 3>);
  IS(t.xd(0, ellipsis), tensor<float>);
  IS(t.x1(constant(3)), tensor<float, 0>);
  IS(w(0, all), tensor<float, 1>);
  CHECK(t.x2(slice(1, 5), newaxis, ellipsis).shape() == partial_shape{4, 1, 4});
  CHECK(t.x2(slice(1, to_end)).shape() == partial_shape{4, 4});
  CHECK(t.x2(slice(from_start, -2)).shape() == partial_shape{3, 4});
  CHECK(t.x2(slice(from_start, to_end, -2)).shape() == partial_shape{3, 4});
  CHECK(t.x2(slice(4, 0, -1), 2).shape() == partial_shape{4});
  CHECK(t.x2(-1).shape() == partial_shape{4});
  CHECK(t.x2(all, 3).shape() == partial_shape{5});
  CHECK(t.x2(newaxis, all, ellipsis, newaxis).shape() == partial_shape{1, 5, 4, 1});
  CHECK(t.xd(0, ellipsis).shape() == partial_shape());
  CHECK(t.x1(constant(3)).shape() == partial_shape::of_rank(0));
}

TEST_CASE("index: bounds are constants below the slice, what the graph computes is packed") {
  operands t;
  (void)t.x2(slice(1, 3), 2);
  const auto position = constant(int64_t{1}, "position");
  (void)t.x2(position, all);
  const std::string text = to_text(t.g);
  CHECK(text.substr(text.find("strided_slice/stack ")) ==
        "strided_slice/stack = Const()  int32[2]  {value=[1, 2]}\n"
        "strided_slice/stack_1 = Const()  int32[2]  {value=[3, 3]}\n"
        "strided_slice/stack_2 = Const()  int32[2]  {value=[1, 1]}\n"
        "strided_slice = StridedSlice(x2, strided_slice/stack, strided_slice/stack_1, strided_slice/stack_2)  float[2]  {shrink_axis_mask=2}\n"
        "position = Const()  int64[]  {value=1}\n"
        "strided_slice_1/stack/1 = Const()  int64[]  {value=0}\n"
        "strided_slice_1/stack = Pack(position, strided_slice_1/stack/1)  int64[2]\n"
        "strided_slice_1/stack_1/1 = Const()  int64[]  {value=0}\n"
        "strided_slice_1/stack_1 = Pack(position, strided_slice_1/stack_1/1)  int64[2]\n"
        "strided_slice_1/stack_2 = Const()  int64[2]  {value=[1, 1]}\n"
        "strided_slice_1 = StridedSlice(x2, strided_slice_1/stack, strided_slice_1/stack_1, strided_slice_1/stack_2)  float[4]  {begin_mask=2, end_mask=2, shrink_axis_mask=1}\n");
}

TEST_CASE("index: what is outside or too much is an error at that line") {
  operands t;
  const std::string line = " at array_slice_test.cpp:" + std::to_string(__LINE__ + 1);
  CHECK(message([&] { (void)t.x2(5); }) == "index 5 is outside dimension 0 of size 5" + line);
  CHECK(message([&] { (void)t.x2(slice(0, 3, 0)); }).substr(0, 24) == "strides[0] must not be 0");
}

TEST_CASE("gather, scatter, reverse: ranks and shapes") {
  operands t;
  IS(gather(t.x2, t.i1), tensor<float, 2>);
  IS(gather(t.x2, t.i2, 1), tensor<float, 3>);
  IS(gather(t.xd, t.i1), tensor<float>);
  IS(scatter_nd(t.i2, t.x1, {4, 4}), tensor<float, 2>);
  IS(tensor_scatter_add(t.x2, t.i2, t.x2), tensor<float, 2>);
  CHECK(gather(t.x2, t.i1).shape() == partial_shape{-1, 4});
  CHECK(gather(t.x2, t.i2, 1).shape() == partial_shape{5, 3, 1});
  CHECK(gather(t.x2, {0, 2, 2}, -1).shape() == partial_shape{5, 3});
  CHECK(gather_nd(t.x2, t.i2).shape() == partial_shape{3, 4});
  CHECK(scatter_nd(t.i2, placeholder<float, 2>({3, 7}), {9, 7}).shape() == partial_shape{9, 7});
  CHECK(tensor_scatter_update(t.x2, t.i2, placeholder<float, 2>({3, 4})).shape() == partial_shape{5, 4});
  CHECK(slice_of(t.x2, {1, 1}, {2, -1}).shape() == partial_shape{2, 3});
  CHECK(slice_of(t.x2, {1, 0}, {2, 4000000000}).raw().from->inputs()[1].from->output_dtype(0) == dtype::int64);
  CHECK(reverse(t.x2, {0, -1}).shape() == partial_shape{5, 4});
  CHECK(reverse_sequence(t.x2, t.i1, 1).shape() == partial_shape{5, 4});
  CHECK(batch_gather(t.x2, placeholder<int32_t, 2>({5, 2}), 1, 1).shape() == partial_shape{5, 2});
  CHECK(message([&] { (void)gather(t.x2, t.i1, 2); }).substr(0, 24) == "axis 2 is not in [-2, 2)");
  CHECK(message([&] { (void)tensor_scatter_add(t.x2, t.i2, placeholder<float, 2>({2, 4})); }).substr(0, 78) ==
        "updates must have shape [3,4] (indices [3,1], output [5,4]), found [2,4] at ar");
  CHECK(message([&] { (void)reverse(t.x2, {0, -2}); }).substr(0, 21) == "axis 0 is named twice");
}
