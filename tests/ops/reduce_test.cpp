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

TEST_CASE("norms and logic: reductions like the others") {
  fixture t;
  CHECK(reduce_euclidean_norm(t.x, axis<1>).raw().from->op() == "EuclideanNorm");
  const auto flags = placeholder<bool>({2, 3}, "flags");
  const tensor<bool, 1> all = reduce_all(flags, axis<0>);
  const tensor<bool, 0> any = reduce_any(flags);
  CHECK(all.raw().from->op() == "All");
  CHECK(any.raw().from->op() == "Any");
  CHECK(shape(all) == "[3]");
  CHECK(shape(l2_loss(t.x)) == "[]");
}

TEST_CASE("along an axis: it is a constant below the op") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, 3}, "x");
  const tensor<std::int64_t, 1> most = weft::argmax(x, axis<-1>);
  const tensor<std::int32_t, 1> least = weft::argmin<std::int32_t>(x, 0, "least");
  const auto sums = weft::cumsum(x, axis<1>, weft::exclusive | weft::reversed);
  const auto products = weft::cumprod(x, 1, "products");
  const auto first = weft::cumsum(x);
  CHECK(to_text(g) ==
        "x = Placeholder()  float[2,3]  {shape=[2,3]}\n"
        "ArgMax/dimension = Const()  int32[]  {value=-1}\n"
        "ArgMax = ArgMax(x, ArgMax/dimension)  int64[2]\n"
        "least/dimension = Const()  int32[]  {value=0}\n"
        "least = ArgMin(x, least/dimension)  int32[3]\n"
        "Cumsum/axis = Const()  int32[]  {value=1}\n"
        "Cumsum = Cumsum(x, Cumsum/axis)  float[2,3]  {exclusive=true, reverse=true}\n"
        "products/axis = Const()  int32[]  {value=1}\n"
        "products = Cumprod(x, products/axis)  float[2,3]\n"
        "Cumsum_1/axis = Const()  int32[]  {value=0}\n"
        "Cumsum_1 = Cumsum(x, Cumsum_1/axis)  float[2,3]\n");
  CHECK_THROWS_WITH_AS((void)weft::argmax(x, 2, {"a", {"user.cpp", 9}}), "INVALID_ARGUMENT: ArgMax 'a' (user.cpp:9): axis 2 is outside the 2 dimensions of shape [2,3]", weft::error);
  CHECK_THROWS_WITH_AS((void)weft::cumsum(x, -3, {"c", {"user.cpp", 9}}), "INVALID_ARGUMENT: Cumsum 'c' (user.cpp:9): axis -3 is outside the 2 dimensions of shape [2,3]", weft::error);
}

TEST_CASE("bincount: size and weights are constants below it") {
  const graph g;
  const auto scope = g.as_default();
  const auto values = placeholder<std::int32_t>({2, 2}, "values");
  const auto counts = weft::bincount(values, 5);
  const tensor<float, 1> weighted = weft::bincount(values, 5, placeholder<float>({2, 2}, "weights"), "weighted");
  CHECK(to_text(g) ==
        "values = Placeholder()  int32[2,2]  {shape=[2,2]}\n"
        "Bincount/size = Const()  int32[]  {value=5}\n"
        "Bincount/weights = Const()  int32[0]  {value=[]}\n"
        "Bincount = Bincount(values, Bincount/size, Bincount/weights)  int32[5]\n"
        "weights = Placeholder()  float[2,2]  {shape=[2,2]}\n"
        "weighted/size = Const()  int32[]  {value=5}\n"
        "weighted = Bincount(values, weighted/size, weights)  float[5]\n");
  CHECK_THROWS_WITH_AS((void)weft::bincount(values, -1, {"b", {"user.cpp", 9}}), "INVALID_ARGUMENT: Bincount 'b' (user.cpp:9): size must not be negative, found -1", weft::error);
}
