#include <weft/ops/reduce_segments.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>

using weft::graph;
using weft::placeholder;
using weft::tensor;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
  tensor<float, 3> data = placeholder<float>({4, 3, 2}, "data");
  tensor<std::int32_t, 1> ids = placeholder<std::int32_t>({4}, "ids");
};
template <class T, int N> std::string shape(const tensor<T, N>& t) { return t.shape().text(); }
template <class T, int N> std::string op_of(const tensor<T, N>& t) { return t.raw().from->op(); }
}  // namespace

TEST_CASE("segments: the op of each, and its shape") {
  fixture t;
  CHECK(op_of(segment_sum(t.data, t.ids)) == "SegmentSum");
  CHECK(op_of(segment_mean(t.data, t.ids)) == "SegmentMean");
  CHECK(op_of(segment_prod(t.data, t.ids)) == "SegmentProd");
  CHECK(op_of(segment_max(t.data, t.ids)) == "SegmentMax");
  CHECK(op_of(segment_min(t.data, t.ids)) == "SegmentMin");
  CHECK(shape(segment_sum(t.data, t.ids)) == "[?,3,2]");
  CHECK(shape(segment_sum(placeholder<float>(), t.ids)) == "<unknown>");
  const auto rows = placeholder<std::int64_t>({weft::unknown}, "rows"), wide = placeholder<std::int64_t>({5}, "wide");
  CHECK(op_of(sparse_segment_sum(t.data, rows, wide)) == "SparseSegmentSum");
  CHECK(op_of(sparse_segment_mean(t.data, rows, t.ids)) == "SparseSegmentMean");
  CHECK(op_of(sparse_segment_sqrt_n(t.data, rows, t.ids)) == "SparseSegmentSqrtN");
  CHECK(shape(sparse_segment_mean(t.data, rows, wide)) == "[?,3,2]");
}

TEST_CASE("unsorted segments: a number or a tensor of segments, ids of any rank") {
  const graph g;
  const auto scope = g.as_default();
  const auto data = placeholder<float>({4, 3, 2}, "data");
  const auto ids = placeholder<std::int32_t>({4}, "ids");
  const auto many = placeholder<std::int64_t>({4, weft::unknown}, "many");
  const auto count = placeholder<std::int32_t, 0>("count");
  const tensor<float, 3> sums = unsorted_segment_sum(data, ids, 7);
  const tensor<float, 2> most = unsorted_segment_max(data, many, 7, "most");
  const tensor<float> least = unsorted_segment_min(data, ids, count);
  const tensor<float, 3> products = unsorted_segment_prod(data, ids, std::int64_t{1} << 40);
  CHECK(to_text(g) ==
        "data = Placeholder()  float[4,3,2]  {shape=[4,3,2]}\n"
        "ids = Placeholder()  int32[4]  {shape=[4]}\n"
        "many = Placeholder()  int64[4,?]  {shape=[4,?]}\n"
        "count = Placeholder()  int32[]  {shape=[]}\n"
        "UnsortedSegmentSum/num_segments = Const()  int32[]  {value=7}\n"
        "UnsortedSegmentSum = UnsortedSegmentSum(data, ids, UnsortedSegmentSum/num_segments)  float[7,3,2]\n"
        "most/num_segments = Const()  int32[]  {value=7}\n"
        "most = UnsortedSegmentMax(data, many, most/num_segments)  float[7,2]\n"
        "UnsortedSegmentMin = UnsortedSegmentMin(data, ids, count)  float[?,3,2]\n"
        "UnsortedSegmentProd/num_segments = Const()  int64[]  {value=1099511627776}\n"
        "UnsortedSegmentProd = UnsortedSegmentProd(data, ids, UnsortedSegmentProd/num_segments)  float[1099511627776,3,2]\n");
}

TEST_CASE("segments: what cannot be is an error at that line") {
  fixture t;
  const auto five = placeholder<std::int32_t>({5}, "five");
  CHECK_THROWS_WITH_AS((void)segment_sum(t.data, five, {"s", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: SegmentSum 's' (user.cpp:3): segment_ids has 5 elements for the 4 rows of the data [4,3,2]", weft::error);
  CHECK_THROWS_WITH_AS((void)sparse_segment_sum(t.data, t.ids, five, {"s", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: SparseSegmentSum 's' (user.cpp:3): indices [4] and segment_ids [5] differ in size", weft::error);
  CHECK_THROWS_WITH_AS((void)unsorted_segment_sum(t.data, five, 2, {"s", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: UnsortedSegmentSum 's' (user.cpp:3): the data's shape [4,3,2] does not start with that of segment_ids, [5]", weft::error);
  CHECK_THROWS_WITH_AS((void)unsorted_segment_sum(t.data, t.ids, -1, {"u", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: UnsortedSegmentSum 'u' (user.cpp:3): num_segments must not be negative, found -1", weft::error);
}
