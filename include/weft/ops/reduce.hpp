#ifndef WEFT_OPS_REDUCE_HPP
#define WEFT_OPS_REDUCE_HPP
// Reductions over all or some axes.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace weft {

/// Axes known at compile time: `reduce_sum(x, axis<1>)`. Negative ones count from the last.
template <int... A> struct axis_t {};
template <int... A> inline constexpr axis_t<A...> axis{};
/// Keeps reduced axes with size 1: `reduce_sum(x, axis<1>, keep_dims)`.
struct keep_dims_t {};
inline constexpr keep_dims_t keep_dims{};

namespace detail {

inline void define_reduce_ops(op_registry& ops) {
#define WEFT_ORDERED "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
  const auto define = [&ops](const char* name, const char* types) {
    ops.add(op(name).input("input: T").input("reduction_indices: Tidx").output("output: T").attr("keep_dims: bool = false").attr(types).attr("Tidx: {int32, int64} = int32").shapes(reduction_shape));
  };
  for (const char* name : {"Sum", "Mean", "Prod"}) define(name, "T: {" WEFT_ORDERED ", complex64, complex128}");
  for (const char* name : {"Max", "Min"}) define(name, "T: {" WEFT_ORDERED "}");
#undef WEFT_ORDERED
  for (const char* name : {"All", "Any"})
    ops.add(op(name).input("input: bool").input("reduction_indices: Tidx").output("output: bool").attr("keep_dims: bool = false").attr("Tidx: {int32, int64} = int32").shapes(reduction_shape));
}

template <int... A> constexpr bool axes_in_range(int n) { return n == dynamic_rank || (true && ... && (A >= -n && A < n)); }
template <int... A> constexpr bool axes_distinct(int n) {
  constexpr int a[] = {A..., 0};
  for (std::size_t i = 0; i < sizeof...(A); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((a[i] + (a[i] < 0 ? n : 0)) == (a[j] + (a[j] < 0 ? n : 0))) return false;
  return true;
}
constexpr int less_rank(int n, int k) { return n == dynamic_rank || n < k ? dynamic_rank : n - k; }

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
#undef WEFT_REDUCTION

}  // namespace weft

#endif
