#ifndef WEFT_OPS_REDUCE_HPP
#define WEFT_OPS_REDUCE_HPP
// Reductions over all or some axes.

#include <weft/graph/tensor.hpp>
#include <weft/ops/axis.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Keeps reduced axes with size 1: `reduce_sum(x, axis<1>, keep_dims)`.
struct keep_dims_t {};
inline constexpr keep_dims_t keep_dims{};

namespace detail {

#if WEFT_HAS_BODIES
// The input without the dimension that input 1, a scalar, names.
inline void arg_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "dimension");
  const partial_shape& in = c.input(0);
  if (!in.known_rank()) return;
  if (in.rank() == 0) c.fail("a scalar has no dimension to search");
  const auto named = c.input_integers(1);
  if (!named) return c.set_output(0, partial_shape::of_rank(in.rank() - 1));
  const std::int64_t axis = named->front();
  if (axis < -in.rank() || axis >= in.rank())
    c.fail("axis " + std::to_string(axis) + " is outside the " + std::to_string(in.rank()) + " dimensions of shape " + in.text());
  std::vector<std::int64_t> sizes = in.sizes();
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis < 0 ? axis + in.rank() : axis));
  c.set_output(0, partial_shape(std::move(sizes)));
}

inline void scan_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "axis");
  const auto axis = c.input_integers(1);
  const partial_shape& in = c.input(0);
  if (in.known_rank() && axis && (axis->front() < -in.rank() || axis->front() >= in.rank()))
    c.fail("axis " + std::to_string(axis->front()) + " is outside the " + std::to_string(in.rank()) + " dimensions of shape " + in.text());
  c.set_output(0, in);
}

inline void bincount_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "size");
  const auto size = c.input_integers(1);
  if (size && size->front() < 0) c.fail("size must not be negative, found " + std::to_string(size->front()));
  c.set_output(0, partial_shape({size ? size->front() : -1}));
}

// One row for each of an unknown number of segments, of the shape of a row of the data.
inline void segments_shape(shape_context& c, const partial_shape& ids) {
  const partial_shape& data = c.input(0);
  if (!data.known_rank()) return;
  if (data.rank() == 0) c.fail("the data must have at least one dimension, found shape []");
  if (c.input_count() == 2 && data[0] >= 0 && ids[0] >= 0 && data[0] != ids[0])
    c.fail("segment_ids has " + std::to_string(ids[0]) + " elements for the " + std::to_string(data[0]) + " rows of the data " + data.text());
  std::vector<std::int64_t> sizes = data.sizes();
  sizes[0] = -1;
  c.set_output(0, partial_shape(std::move(sizes)));
}
inline void segment_shape(shape_context& c) { segments_shape(c, c.with_rank(1, 1, "segment_ids")); }
inline void sparse_segment_shape(shape_context& c) {
  const auto ids = merge_shapes(c.with_rank(1, 1, "indices"), c.with_rank(2, 1, "segment_ids"));
  if (!ids) c.fail("indices " + c.input(1).text() + " and segment_ids " + c.input(2).text() + " differ in size");
  segments_shape(c, *ids);
}

// The leading dimensions, those of the ids, become one of `num_segments`.
inline void unsorted_segment_shape(shape_context& c) {
  (void)c.with_rank(2, 0, "num_segments");
  const auto wanted = c.input_integers(2);
  if (wanted && wanted->front() < 0) c.fail("num_segments must not be negative, found " + std::to_string(wanted->front()));
  const partial_shape &data = c.input(0), &ids = c.input(1);
  if (!data.known_rank() || !ids.known_rank()) return;
  bool fits = ids.rank() <= data.rank();
  for (int i = 0; fits && i < ids.rank(); ++i) fits = data[i] < 0 || ids[i] < 0 || data[i] == ids[i];
  if (!fits) c.fail("the data's shape " + data.text() + " does not start with that of segment_ids, " + ids.text());
  std::vector<std::int64_t> sizes{wanted ? wanted->front() : -1};
  sizes.insert(sizes.end(), data.sizes().begin() + ids.rank(), data.sizes().end());
  c.set_output(0, partial_shape(std::move(sizes)));
}

#define WEFT_ORDERED "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
#define WEFT_SUMMED "float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, uint32, uint64"
#define WEFT_REDUCED "Tidx: {int32, int64} = int32"
#define WEFT_SEGMENTS "Tindices: {int32, int64}"
#define WEFT_COUNTED "Tnumsegments: {int32, int64} = int32"
#define WEFT_SPARSE "Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false"
inline constexpr op_row reduce_ops[] = {
    {"Sum Mean Prod EuclideanNorm(input: T, reduction_indices: Tidx) -> output: T", "keep_dims: bool = false; T: {" WEFT_SUMMED "}; " WEFT_REDUCED, reduction_shape},
    {"Max Min(input: T, reduction_indices: Tidx) -> output: T", "keep_dims: bool = false; T: {" WEFT_ORDERED "}; " WEFT_REDUCED, reduction_shape},
    {"All Any(input: bool, reduction_indices: Tidx) -> output: bool", "keep_dims: bool = false; " WEFT_REDUCED, reduction_shape},
    {"L2Loss(t: T) -> output: T", "T: {half, bfloat16, float, double}", scalar_shape},
    {"ArgMax(input: T, dimension: Tidx) -> output: output_type", "T: {" WEFT_ORDERED ", bool}; Tidx: {int16, int32, int64} = int32; output_type: {int16, uint16, int32, int64} = int64", arg_shape},
    {"ArgMin(input: T, dimension: Tidx) -> output: output_type", "T: {" WEFT_ORDERED ", bool}; Tidx: {int32, int64} = int32; output_type: {int32, int64} = int64", arg_shape},
    {"Cumsum Cumprod(x: T, axis: Tidx) -> out: T", "exclusive: bool = false; reverse: bool = false; T: {" WEFT_SUMMED "}; " WEFT_REDUCED, scan_shape},
    {"Bincount(arr: int32, size: int32, weights: T) -> bins: T", "T: {int32, int64, float, double}", bincount_shape},
    {"SegmentSum SegmentMean SegmentProd(data: T, segment_ids: Tindices) -> output: T", "T: {" WEFT_SUMMED "}; " WEFT_SEGMENTS, segment_shape},
    {"SegmentMax SegmentMin(data: T, segment_ids: Tindices) -> output: T", "T: {" WEFT_ORDERED "}; " WEFT_SEGMENTS, segment_shape},
    {"UnsortedSegmentSum(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T", "T: {" WEFT_SUMMED "}; Tindices: {int16, int32, int64}; " WEFT_COUNTED, unsorted_segment_shape},
    {"UnsortedSegmentProd(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T", "T: {" WEFT_SUMMED "}; " WEFT_SEGMENTS "; " WEFT_COUNTED, unsorted_segment_shape},
    {"UnsortedSegmentMax UnsortedSegmentMin(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T", "T: {" WEFT_ORDERED "}; " WEFT_SEGMENTS "; " WEFT_COUNTED,
     unsorted_segment_shape},
    {"SparseSegmentSum(data: T, indices: Tidx, segment_ids: Tsegmentids) -> output: T", "T: {" WEFT_ORDERED "}; " WEFT_SPARSE, sparse_segment_shape},
    {"SparseSegmentMean SparseSegmentSqrtN(data: T, indices: Tidx, segment_ids: Tsegmentids) -> output: T", "T: {floats}; " WEFT_SPARSE, sparse_segment_shape},
};
#undef WEFT_ORDERED
#undef WEFT_SUMMED
#undef WEFT_REDUCED
#undef WEFT_SEGMENTS
#undef WEFT_COUNTED
#undef WEFT_SPARSE
#endif

// A reduction over all axes when `all`, else over the given ones.
inline output add_reduction(const char* op, const side& x, bool all, std::vector<std::int32_t> axes, bool keep, const op_name& name) {
  const output in = input_of(op, x, name);
  graph_state& to = in.from->owner();
  const std::string full = claim_name(to, name, op);
  const partial_shape& shape_in = in.from->output_shape(in.index);
  const auto number = [&](std::int32_t v, const char* below) { return add_const_at(tensor_value::scalar<std::int32_t>(v), full + below, name.site, to); };
  output indices;
  if (all && !shape_in.known_rank()) {
    // The rank is known only when running: range(rank).
    const output rank = add_node_at("Rank", {in}, full + "/Rank", name.site);
    const output start = number(0, "/range/start"), delta = number(1, "/range/delta");
    indices = add_node_at("Range", {start, rank, delta}, full + "/range", name.site);
  } else {
    if (all)
      for (int i = 0; i < shape_in.rank(); ++i) axes.push_back(i);
    tensor_value v = tensor_value::from<std::int32_t>({static_cast<std::int64_t>(axes.size())}, axes);
    indices = add_const_at(std::move(v), full + "/reduction_indices", name.site, to);
  }
  return add_node_at(op, {in, indices}, full, name.site, {{"keep_dims", keep}});
}

// An op along one axis, which becomes a constant below it.
output add_along_axis(const char* op, const char* what, const side& x, std::int32_t axis, const op_name& name, attr_map attrs);
// Without weights, every value counts as one.
output add_bincount(const output& values, std::int32_t size, output weights, const op_name& name);

#if WEFT_HAS_BODIES
WEFT_DECL output add_along_axis(const char* op, const char* what, const side& x, std::int32_t axis, const op_name& name, attr_map attrs) {
  const output in = input_of(op, x, name);
  graph_state& to = in.from->owner();
  const std::string full = claim_name(to, name, op);
  const output named = add_const_at(tensor_value::scalar<std::int32_t>(axis), full + "/" + what, name.site, to);
  return add_node_at(op, {in, named}, full, name.site, std::move(attrs));
}

WEFT_DECL output add_bincount(const output& values, std::int32_t size, output weights, const op_name& name) {
  if (values.from == nullptr) throw error(error_code::invalid_argument, "bincount: the operand is an empty tensor, not made by any op", name.site);
  graph_state& to = values.from->owner();
  const std::string full = claim_name(to, name, "Bincount");
  const output bins = add_const_at(tensor_value::scalar<std::int32_t>(size), full + "/size", name.site, to);
  if (weights.from == nullptr) weights = add_const_at(tensor_value(dtype::int32, {0}), full + "/weights", name.site, to);
  return add_node_at("Bincount", {values, bins, weights}, full, name.site);
}
#endif

}  // namespace detail

#define WEFT_REDUCTION(NAME, OPNAME)                                                                                                                \
  template <class T, int N> tensor<T, 0> NAME(const operand<T, N>& x, op_name name = {}) {                                                          \
    return tensor<T, 0>(detail::add_reduction(OPNAME, detail::side_of(x), true, {}, false, name));                                                   \
  }                                                                                                                                                 \
  template <class T, int N> tensor<T, N> NAME(const operand<T, N>& x, keep_dims_t, op_name name = {}) {                                              \
    return tensor<T, N>(detail::add_reduction(OPNAME, detail::side_of(x), true, {}, true, name));                                                    \
  }                                                                                                                                                 \
  template <class T, int N, int... A> tensor<T, detail::less_rank(N, sizeof...(A))> NAME(const operand<T, N>& x, axis_t<A...>, op_name name = {}) {  \
    static_assert(detail::axes_in_range<A...>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)");                        \
    static_assert(detail::axes_distinct<A...>(N), "weft: an axis is named twice");                                                                   \
    return tensor<T, detail::less_rank(N, sizeof...(A))>(detail::add_reduction(OPNAME, detail::side_of(x), false, {A...}, false, name));             \
  }                                                                                                                                                 \
  template <class T, int N, int... A> tensor<T, N> NAME(const operand<T, N>& x, axis_t<A...>, keep_dims_t, op_name name = {}) {                      \
    static_assert(detail::axes_in_range<A...>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)");                        \
    static_assert(detail::axes_distinct<A...>(N), "weft: an axis is named twice");                                                                   \
    return tensor<T, N>(detail::add_reduction(OPNAME, detail::side_of(x), false, {A...}, true, name));                                               \
  }                                                                                                                                                 \
  template <class T, int N> tensor<T> NAME(const operand<T, N>& x, std::initializer_list<int> axes, op_name name = {}) {                             \
    return tensor<T>(detail::add_reduction(OPNAME, detail::side_of(x), false, {axes.begin(), axes.end()}, false, name));                             \
  }                                                                                                                                                 \
  template <class T, int N> tensor<T, N> NAME(const operand<T, N>& x, std::initializer_list<int> axes, keep_dims_t, op_name name = {}) {             \
    return tensor<T, N>(detail::add_reduction(OPNAME, detail::side_of(x), false, {axes.begin(), axes.end()}, true, name));                           \
  }                                                                                                                                                 \
  template <class T, int N> tensor<T, detail::less_rank(N, 1)> NAME(const operand<T, N>& x, int axis_number, op_name name = {}) {                    \
    static_assert(N != 0, "weft: a tensor of rank 0 has no axis");                                                                                   \
    return tensor<T, detail::less_rank(N, 1)>(detail::add_reduction(OPNAME, detail::side_of(x), false, {axis_number}, false, name));                 \
  }
/// The sum over all axes, or over the named ones (Sum).
WEFT_REDUCTION(reduce_sum, "Sum")
/// The mean over all axes, or over the named ones (Mean).
WEFT_REDUCTION(reduce_mean, "Mean")
/// The product over all axes, or over the named ones (Prod).
WEFT_REDUCTION(reduce_prod, "Prod")
/// The largest element over all axes, or over the named ones (Max).
WEFT_REDUCTION(reduce_max, "Max")
/// The smallest element over all axes, or over the named ones (Min).
WEFT_REDUCTION(reduce_min, "Min")
/// The root of the sum of squares over all axes, or over the named ones (EuclideanNorm).
WEFT_REDUCTION(reduce_euclidean_norm, "EuclideanNorm")
/// Whether all bools are true, over all axes or over the named ones (All).
WEFT_REDUCTION(reduce_all, "All")
/// Whether any bool is true, over all axes or over the named ones (Any).
WEFT_REDUCTION(reduce_any, "Any")
#undef WEFT_REDUCTION

/// Half the sum of the squares of all elements (L2Loss).
template <class T, int N> tensor<T, 0> l2_loss(const operand<T, N>& x, op_name name = {}) { return tensor<T, 0>(detail::add_unary("L2Loss", detail::side_of(x), name)); }

/// The position of the largest element along an axis, the first of equals (ArgMax): int64, or the integer type that is asked for, as in `argmax<std::int32_t>(x, 1)`. The axis is left out.
template <class Index = std::int64_t, class T, int N> tensor<Index, detail::less_rank(N, 1)> argmax(const operand<T, N>& x, int axis_number, op_name name = {}) {
  static_assert(N != 0, "weft: a tensor of rank 0 has no axis");
  return tensor<Index, detail::less_rank(N, 1)>(detail::add_along_axis("ArgMax", "dimension", detail::side_of(x), axis_number, name, {{"output_type", dtype_of<Index>}}));
}
template <class Index = std::int64_t, class T, int N, int A> tensor<Index, detail::less_rank(N, 1)> argmax(const operand<T, N>& x, axis_t<A>, op_name name = {}) {
  static_assert(detail::axes_in_range<A>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)");
  return argmax<Index>(x, A, name);
}
/// The position of the smallest element along an axis, the first of equals (ArgMin): int64 or int32. The axis is left out.
template <class Index = std::int64_t, class T, int N> tensor<Index, detail::less_rank(N, 1)> argmin(const operand<T, N>& x, int axis_number, op_name name = {}) {
  static_assert(N != 0, "weft: a tensor of rank 0 has no axis");
  return tensor<Index, detail::less_rank(N, 1)>(detail::add_along_axis("ArgMin", "dimension", detail::side_of(x), axis_number, name, {{"output_type", dtype_of<Index>}}));
}
template <class Index = std::int64_t, class T, int N, int A> tensor<Index, detail::less_rank(N, 1)> argmin(const operand<T, N>& x, axis_t<A>, op_name name = {}) {
  static_assert(detail::axes_in_range<A>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)");
  return argmin<Index>(x, A, name);
}

/// How cumsum and cumprod run; combine with `|`: `exclusive` leaves an element out of its own result, `reversed` begins at the end.
enum class scan_flags { none = 0, exclusive = 1, reversed = 2 };
inline constexpr scan_flags exclusive = scan_flags::exclusive, reversed = scan_flags::reversed;
constexpr scan_flags operator|(scan_flags a, scan_flags b) { return static_cast<scan_flags>(static_cast<int>(a) | static_cast<int>(b)); }
constexpr bool operator&(scan_flags a, scan_flags b) { return (static_cast<int>(a) & static_cast<int>(b)) != 0; }

#define WEFT_SCAN(NAME, OPNAME)                                                                                                                              \
  template <class T, int N> tensor<T, N> NAME(const operand<T, N>& x, int axis_number, scan_flags flags, op_name name = {}) {                                \
    static_assert(N != 0, "weft: a tensor of rank 0 has no axis");                                                                                           \
    return tensor<T, N>(detail::add_along_axis(OPNAME, "axis", detail::side_of(x), axis_number, name, {{"exclusive", flags & exclusive}, {"reverse", flags & reversed}})); \
  }                                                                                                                                                          \
  template <class T, int N> tensor<T, N> NAME(const operand<T, N>& x, int axis_number = 0, op_name name = {}) { return NAME(x, axis_number, scan_flags::none, name); }     \
  template <class T, int N, int A> tensor<T, N> NAME(const operand<T, N>& x, axis_t<A>, scan_flags flags, op_name name = {}) {                               \
    static_assert(detail::axes_in_range<A>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)");                                   \
    return NAME(x, A, flags, name);                                                                                                                          \
  }                                                                                                                                                          \
  template <class T, int N, int A> tensor<T, N> NAME(const operand<T, N>& x, axis_t<A> a, op_name name = {}) { return NAME(x, a, scan_flags::none, name); }
/// The running sum along an axis, the first unless another is given (Cumsum): `cumsum(x, axis<1>, exclusive | reversed)`.
WEFT_SCAN(cumsum, "Cumsum")
/// The running product along an axis, the first unless another is given (Cumprod).
WEFT_SCAN(cumprod, "Cumprod")
#undef WEFT_SCAN

/// The total weight of each integer below `size` among the values, which have as many weights (Bincount): `[size]`. Values from `size` on do not count.
template <int N, class T, int M> tensor<T, 1> bincount(const operand<std::int32_t, N>& values, std::int32_t size, const operand<T, M>& weights, op_name name = {}) {
  return tensor<T, 1>(detail::add_bincount(values.as_input(name.site), size, weights.as_input(name.site), name));
}
/// How often each integer below `size` occurs among the values (Bincount): `[size]`.
template <int N> tensor<std::int32_t, 1> bincount(const operand<std::int32_t, N>& values, std::int32_t size, op_name name = {}) {
  return tensor<std::int32_t, 1>(detail::add_bincount(values.as_input(name.site), size, output(), name));
}

}  // namespace weft

#endif
