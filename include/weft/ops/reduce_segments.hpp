#ifndef WEFT_OPS_REDUCE_SEGMENTS_HPP
#define WEFT_OPS_REDUCE_SEGMENTS_HPP
// Reductions of rows by segment: builders. Their definitions are in reduce.hpp.

#include <weft/graph/tensor.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace weft {

namespace detail {

// The number of segments is a constant below the op.
output add_unsorted_segments(const char* op, const output& data, const output& ids, std::int64_t count, const op_name& name);

#if WEFT_HAS_BODIES
WEFT_DECL output add_unsorted_segments(const char* op, const output& data, const output& ids, std::int64_t count, const op_name& name) {
  if (data.from == nullptr) throw error(error_code::invalid_argument, std::string(op) + ": the operand is an empty tensor, not made by any op", name.site);
  graph_state& to = data.from->owner();
  const std::string full = claim_name(to, name, op);
  const bool small = count >= INT32_MIN && count <= INT32_MAX;
  const output segments = add_const_at(small ? tensor_value::scalar(static_cast<std::int32_t>(count)) : tensor_value::scalar(count), full + "/num_segments", name.site, to);
  return add_node_at(op, {data, ids, segments}, full, name.site);
}
#endif

// The rank when the dimensions of M-dimensional ids become one.
constexpr int segmented_rank(int n, int m) { return n == dynamic_rank || m == dynamic_rank || m > n ? dynamic_rank : n - m + 1; }
template <class I> inline constexpr bool is_index_v = std::is_same_v<I, std::int32_t> || std::is_same_v<I, std::int64_t>;

}  // namespace detail

#define WEFT_SEGMENTS(NAME, OPNAME)                                                                                                          \
  template <class T, int N, class I, int M> tensor<T, N> NAME(const operand<T, N>& data, const operand<I, M>& segment_ids, op_name name = {}) { \
    static_assert(detail::is_index_v<I>, "weft: segment ids are int32 or int64");                                                            \
    static_assert(N != 0 && (M == 1 || M == dynamic_rank), "weft: segment ids are a vector with one id for each row of the data");          \
    return tensor<T, N>(output{&detail::add_node(OPNAME, {data.as_input(name.site), segment_ids.as_input(name.site)}, name), 0});           \
  }
/// The sum of the rows of each segment; the ids are sorted, a segment without rows is 0 (SegmentSum).
WEFT_SEGMENTS(segment_sum, "SegmentSum")
/// The mean of the rows of each segment; the ids are sorted, a segment without rows is 0 (SegmentMean).
WEFT_SEGMENTS(segment_mean, "SegmentMean")
/// The product of the rows of each segment; the ids are sorted, a segment without rows is 1 (SegmentProd).
WEFT_SEGMENTS(segment_prod, "SegmentProd")
/// The largest elements of the rows of each segment; the ids are sorted, a segment without rows is 0 (SegmentMax).
WEFT_SEGMENTS(segment_max, "SegmentMax")
/// The smallest elements of the rows of each segment; the ids are sorted, a segment without rows is 0 (SegmentMin).
WEFT_SEGMENTS(segment_min, "SegmentMin")
#undef WEFT_SEGMENTS

#define WEFT_UNSORTED_SEGMENTS(NAME, OPNAME)                                                                                                      \
  template <class T, int N, class I, int M>                                                                                                       \
  tensor<T, detail::segmented_rank(N, M)> NAME(const operand<T, N>& data, const operand<I, M>& segment_ids, std::int64_t num_segments, op_name name = {}) { \
    static_assert(detail::is_index_v<I>, "weft: segment ids are int32 or int64");                                                                 \
    static_assert(N == dynamic_rank || M == dynamic_rank || M <= N, "weft: the dimensions of the segment ids are the first ones of the data");  \
    return tensor<T, detail::segmented_rank(N, M)>(detail::add_unsorted_segments(OPNAME, data.as_input(name.site), segment_ids.as_input(name.site), num_segments, name)); \
  }                                                                                                                                               \
  template <class T, int N, class I, int M, class S>                                                                                              \
  tensor<T, detail::segmented_rank(N, M)> NAME(const operand<T, N>& data, const operand<I, M>& segment_ids, const operand<S, 0>& num_segments, op_name name = {}) { \
    static_assert(detail::is_index_v<I> && detail::is_index_v<S>, "weft: segment ids and their number are int32 or int64");                       \
    static_assert(N == dynamic_rank || M == dynamic_rank || M <= N, "weft: the dimensions of the segment ids are the first ones of the data");  \
    return tensor<T, detail::segmented_rank(N, M)>(                                                                                               \
        output{&detail::add_node(OPNAME, {data.as_input(name.site), segment_ids.as_input(name.site), num_segments.as_input(name.site)}, name), 0}); \
  }
/// The sums of the rows of each of `num_segments` segments; ids in any order, negative ones leave a row out (UnsortedSegmentSum).
WEFT_UNSORTED_SEGMENTS(unsorted_segment_sum, "UnsortedSegmentSum")
/// The products of the rows of each of `num_segments` segments (UnsortedSegmentProd).
WEFT_UNSORTED_SEGMENTS(unsorted_segment_prod, "UnsortedSegmentProd")
/// The largest elements of the rows of each of `num_segments` segments; of none the lowest finite value (UnsortedSegmentMax).
WEFT_UNSORTED_SEGMENTS(unsorted_segment_max, "UnsortedSegmentMax")
/// The smallest elements of the rows of each of `num_segments` segments; of none the highest finite value (UnsortedSegmentMin).
WEFT_UNSORTED_SEGMENTS(unsorted_segment_min, "UnsortedSegmentMin")
#undef WEFT_UNSORTED_SEGMENTS

#define WEFT_SPARSE_SEGMENTS(NAME, OPNAME)                                                                                                        \
  template <class T, int N, class I, int L, class S, int M>                                                                                       \
  tensor<T, N> NAME(const operand<T, N>& data, const operand<I, L>& indices, const operand<S, M>& segment_ids, op_name name = {}) {               \
    static_assert(detail::is_index_v<I> && detail::is_index_v<S>, "weft: indices and segment ids are int32 or int64");                            \
    static_assert(N != 0 && (L == 1 || L == dynamic_rank) && (M == 1 || M == dynamic_rank), "weft: indices and segment ids are vectors of one size"); \
    return tensor<T, N>(output{&detail::add_node(OPNAME, {data.as_input(name.site), indices.as_input(name.site), segment_ids.as_input(name.site)}, name), 0}); \
  }
/// The sum of the rows that the indices choose, for each segment; the ids are sorted (SparseSegmentSum).
WEFT_SPARSE_SEGMENTS(sparse_segment_sum, "SparseSegmentSum")
/// The mean of the rows that the indices choose, for each segment; the ids are sorted (SparseSegmentMean).
WEFT_SPARSE_SEGMENTS(sparse_segment_mean, "SparseSegmentMean")
/// The sum of the rows that the indices choose, divided by the root of their number, for each segment; the ids are sorted (SparseSegmentSqrtN).
WEFT_SPARSE_SEGMENTS(sparse_segment_sqrt_n, "SparseSegmentSqrtN")
#undef WEFT_SPARSE_SEGMENTS

}  // namespace weft

#endif
