#include <weft/ops/reduce.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <string>

using weft::axis;
using weft::graph;
using weft::keep_dims;
using weft::placeholder;
using weft::reduce_sum;
using weft::tensor;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
  tensor<float, 3> x = placeholder<float>({2, 3, weft::unknown}, "x");
};
template <class T, int N> std::string shape(const tensor<T, N>& t) { return t.shape().text(); }
}  // namespace

TEST_CASE("reductions: shapes over all, some and no axes") {
  fixture t;
  CHECK(shape(reduce_sum(t.x)) == "[]");
  CHECK(shape(reduce_sum(t.x, keep_dims)) == "[1,1,1]");
  CHECK(shape(reduce_sum(t.x, axis<1>)) == "[2,?]");
  CHECK(shape(reduce_sum(t.x, axis<-1>)) == "[2,3]");
  CHECK(shape(reduce_sum(t.x, axis<0, 2>)) == "[3]");
  CHECK(shape(reduce_sum(t.x, axis<0, 2>, keep_dims)) == "[1,3,1]");
  CHECK(shape(reduce_sum(t.x, axis<>)) == "[2,3,?]");
  CHECK(shape(reduce_sum(t.x, {1, -1})) == "[2]");
  CHECK(shape(reduce_sum(t.x, {1, 1})) == "[2,?]");
  CHECK(shape(reduce_sum(t.x, {2}, keep_dims)) == "[2,3,1]");
  CHECK(shape(reduce_sum(t.x, 0)) == "[3,?]");
  CHECK(shape(reduce_sum(placeholder<float>(), axis<0>)) == "<unknown>");
}

TEST_CASE("reductions: the op of each, with its axes as a constant below it") {
  fixture t;
  CHECK(reduce_mean(t.x).raw().from->op() == "Mean");
  CHECK(reduce_prod(t.x).raw().from->op() == "Prod");
  CHECK(reduce_max(t.x).raw().from->op() == "Max");
  CHECK(reduce_min(t.x).raw().from->op() == "Min");
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, 3}, "x");
  const auto all = reduce_sum(x);
  const auto rows = reduce_sum(x, axis<1>, keep_dims);
  const auto named = reduce_sum(x, {0, -1}, "total");
  CHECK(to_text(g) ==
        "x = Placeholder()  float[2,3]  {shape=[2,3]}\n"
        "Sum/reduction_indices = Const()  int32[2]  {value=[0, 1]}\n"
        "Sum = Sum(x, Sum/reduction_indices)  float[]\n"
        "Sum_1/reduction_indices = Const()  int32[1]  {value=[1]}\n"
        "Sum_1 = Sum(x, Sum_1/reduction_indices)  float[2,1]  {keep_dims=true}\n"
        "total/reduction_indices = Const()  int32[2]  {value=[0, -1]}\n"
        "total = Sum(x, total/reduction_indices)  float[]\n");
}

TEST_CASE("reductions: an unknown rank is found when running") {
  const graph g;
  const auto scope = g.as_default();
  const auto all = reduce_sum(placeholder<float>("x"));
  CHECK(to_text(g) ==
        "x = Placeholder()  float<unknown>\n"
        "Sum/Rank = Rank(x)  int32[]\n"
        "Sum/range/start = Const()  int32[]  {value=0}\n"
        "Sum/range/delta = Const()  int32[]  {value=1}\n"
        "Sum/range = Range(Sum/range/start, Sum/Rank, Sum/range/delta)  int32[?]\n"
        "Sum = Sum(x, Sum/range)  float<unknown>\n");
}

TEST_CASE("reductions: an axis outside the tensor is an error at that line") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)reduce_sum(t.x, {3}, {"s", {"user.cpp", 5}}), "INVALID_ARGUMENT: Sum 's' (user.cpp:5): axis 3 is outside the 3 dimensions of shape [2,3,?]", weft::error);
  CHECK_THROWS_WITH_AS((void)reduce_mean(t.x, -4, {"m", {"user.cpp", 5}}), "INVALID_ARGUMENT: Mean 'm' (user.cpp:5): axis -4 is outside the 3 dimensions of shape [2,3,?]", weft::error);
  const auto axes = weft::constant({{0}}, "axes");
  CHECK_THROWS_WITH_AS(weft::detail::add_node("Sum", {t.x.raw(), axes.raw()}, {"s", {"user.cpp", 6}}),
                       "INVALID_ARGUMENT: Sum 's' (user.cpp:6): the axes must be a number or a vector, found shape [1,1]", weft::error);
}

TEST_CASE("reductions: an empty operand is an error at that line") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)reduce_sum(tensor<float, 1>(), {"s", {"user.cpp", 7}}), "INVALID_ARGUMENT: user.cpp:7: Sum: the operand is an empty tensor, not made by any op", weft::error);
}
