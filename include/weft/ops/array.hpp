#ifndef WEFT_OPS_ARRAY_HPP
#define WEFT_OPS_ARRAY_HPP
// Constants, placeholders, identities, and ops that make or change shapes.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array_rules.hpp>
#include <weft/ops/axis.hpp>
#include <weft/ops/op_input.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace weft {

namespace detail {

// A vector of sizes as an int64 constant with exactly this name.
inline output add_sizes(const std::int64_t* sizes, std::size_t count, const std::string& full_name, call_site site, graph_state& to) {
  tensor_value v = tensor_value::from<std::int64_t>({static_cast<std::int64_t>(count)}, std::vector<std::int64_t>(sizes, sizes + count));
  return add_const_at(std::move(v), full_name, site, to);
}

inline output add_fill(const std::int64_t* sizes, std::size_t count, tensor_value value, const op_name& name) {
  graph_state& to = *current_graph();
  const std::string full = claim_name(to, name, "Fill");
  const output dims = add_sizes(sizes, count, full + "/dims", name.site, to);
  const output element = add_const_at(std::move(value), full + "/value", name.site, to);
  return add_node_at("Fill", {dims, element}, full, name.site);
}

inline output add_reshape(const side& x, const std::int64_t* sizes, std::size_t count, const op_name& name) {
  const output in = input_of("Reshape", x, name);
  graph_state& to = in.from->owner();
  const std::string full = claim_name(to, name, "Reshape");
  const output wanted = add_sizes(sizes, count, full + "/shape", name.site, to);
  return add_node_at("Reshape", {in, wanted}, full, name.site);
}

template <class T, int N> tensor<T, N> constant_of(tensor_value v, const op_name& name) { return tensor<T, N>(output{&add_const(std::move(v), name), 0}); }

template <class T, class List> tensor_value from_braces(const List& list, int rank, call_site where) {
  try {
    return flatten<T>(list, rank);
  } catch (const error& e) {
    throw error(e.code(), e.message(), where);
  }
}

}  // namespace detail

/// A constant from a number, a string, a std container or an xtensor value or expression, evaluated once, now (Const). Rank and dtype are the value's.
template <class V> auto constant(const V& value, op_name name = {}) {
  using traits = value_traits<V>;
  static_assert(!std::is_void_v<typename traits::dtype>,
                "weft: constant(...) takes a number, a string, nested braces, std::vector, std::array, an xtensor container or expression (include <weft/tensor/xtensor.hpp>)");
  if constexpr (!std::is_void_v<typename traits::dtype>) {
    try {
      return detail::constant_of<typename traits::dtype, traits::rank>(traits::make(value), name);
    } catch (const error& e) {
      if (!e.site().empty()) throw;
      throw error(e.code(), e.message(), name.site);
    }
  }
}
/// A constant from braces; the depth of nesting is the rank, all rows must have one length.
template <class U, class T = dtype_t<U>> tensor<T, 1> constant(std::initializer_list<U> list, op_name name = {}) {
  return detail::constant_of<T, 1>(detail::from_braces<T>(list, 1, name.site), name);
}
template <class U, class T = dtype_t<U>> tensor<T, 2> constant(std::initializer_list<std::initializer_list<U>> list, op_name name = {}) {
  return detail::constant_of<T, 2>(detail::from_braces<T>(list, 2, name.site), name);
}
template <class U, class T = dtype_t<U>> tensor<T, 3> constant(std::initializer_list<std::initializer_list<std::initializer_list<U>>> list, op_name name = {}) {
  return detail::constant_of<T, 3>(detail::from_braces<T>(list, 3, name.site), name);
}
template <class U, class T = dtype_t<U>>
tensor<T, 4> constant(std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<U>>>> list, op_name name = {}) {
  return detail::constant_of<T, 4>(detail::from_braces<T>(list, 4, name.site), name);
}

/// A dimension of a placeholder: a size, or `unknown`.
struct dim {
  std::int64_t size;
  constexpr dim(std::int64_t s) : size(s) {}
};
/// A dimension whose size is known only when a value is fed.
inline constexpr dim unknown{-1};

/// A tensor whose value is fed to each step (Placeholder); shape unknown but for its rank.
template <class T, int N = dynamic_rank> tensor<T, N> placeholder(op_name name = {}) {
  return tensor<T, N>(output{&detail::add_node("Placeholder", {}, name, {{"dtype", dtype_of<T>}, {"shape", partial_shape::of_rank(N)}}), 0});
}
/// A placeholder of this shape; `unknown` dimensions accept any size.
template <class T, int N = dynamic_rank, std::size_t M>
tensor<T, N == dynamic_rank ? static_cast<int>(M) : N> placeholder(const dim (&dims)[M], op_name name = {}) {
  static_assert(N == dynamic_rank || N == static_cast<int>(M), "weft: the shape has another number of dimensions than the rank of placeholder<T, rank>");
  std::vector<std::int64_t> sizes;
  for (const dim& d : dims) sizes.push_back(d.size);
  return tensor<T, N == dynamic_rank ? static_cast<int>(M) : N>(
      output{&detail::add_node("Placeholder", {}, name, {{"dtype", dtype_of<T>}, {"shape", partial_shape(std::move(sizes))}}), 0});
}

/// The same value (Identity); useful to name it, or to give it a device or control dependencies of its own.
template <class T, int N> tensor<T, N> identity(const operand<T, N>& x, op_name name = {}) { return tensor<T, N>(detail::add_unary("Identity", detail::side_of(x), name)); }
/// The same value, through which no gradient flows (StopGradient).
template <class T, int N> tensor<T, N> stop_gradient(const operand<T, N>& x, op_name name = {}) { return tensor<T, N>(detail::add_unary("StopGradient", detail::side_of(x), name)); }
/// Zeros in the shape and dtype of x (ZerosLike).
template <class T, int N> tensor<T, N> zeros_like(const operand<T, N>& x, op_name name = {}) { return tensor<T, N>(detail::add_unary("ZerosLike", detail::side_of(x), name)); }
/// Ones in the shape and dtype of x (OnesLike).
template <class T, int N> tensor<T, N> ones_like(const operand<T, N>& x, op_name name = {}) { return tensor<T, N>(detail::add_unary("OnesLike", detail::side_of(x), name)); }
/// The sizes of x's dimensions: int32 of shape `[rank]` (Shape).
template <class T, int N> tensor<std::int32_t, 1> shape_of(const operand<T, N>& x, op_name name = {}) { return tensor<std::int32_t, 1>(detail::add_unary("Shape", detail::side_of(x), name)); }

/// A tensor of this shape whose elements all are `value` (Fill).
template <class V, std::size_t M, class T = dtype_t<V>> tensor<T, static_cast<int>(M)> fill(const std::int64_t (&dims)[M], const V& value, op_name name = {}) {
  return tensor<T, static_cast<int>(M)>(detail::add_fill(dims, M, tensor_value::scalar<T>(T(value)), name));
}
/// Zeros of dtype T.
template <class T, std::size_t M> tensor<T, static_cast<int>(M)> zeros(const std::int64_t (&dims)[M], op_name name = {}) { return fill(dims, T{}, name); }
/// Ones of dtype T.
template <class T, std::size_t M> tensor<T, static_cast<int>(M)> ones(const std::int64_t (&dims)[M], op_name name = {}) { return fill(dims, static_cast<T>(1), name); }

/// The elements of x in another shape; one dimension may be -1 and is computed (Reshape). Throws INVALID_ARGUMENT when the elements do not fit.
template <class T, int N, std::size_t M> tensor<T, static_cast<int>(M)> reshape(const operand<T, N>& x, const std::int64_t (&dims)[M], op_name name = {}) {
  return tensor<T, static_cast<int>(M)>(detail::add_reshape(detail::side_of(x), dims, M, name));
}

/// The elements of x in the shape that a vector of the graph holds; its rank, when known, is claimed with `tensor<T, N>(...)` (Reshape).
template <class T, int N, class I, int M, std::enable_if_t<detail::is_integer_v<I>, int> = 0> tensor<T> reshape(const operand<T, N>& x, const operand<I, M>& dims, op_name name = {}) {
  return tensor<T>(output{&detail::add_op("Reshape", "Reshape", {x.as_input(name.site), dims.as_input(name.site)}, name), 0});
}
/// x with a new dimension of size 1 at `axis`, which counts from behind when negative (ExpandDims).
template <class T, int N> tensor<T, detail::more_rank(N, 1)> expand_dims(const operand<T, N>& x, int axis, op_name name = {}) {
  return tensor<T, detail::more_rank(N, 1)>(output{&detail::add_op("ExpandDims", "ExpandDims", {x.as_input(name.site), {"dim", std::int64_t{axis}}}, name), 0});
}
/// x without its dimensions of size 1, or without the named ones, whose size must be 1 (Squeeze).
template <class T, int N> tensor<T> squeeze(const operand<T, N>& x, op_name name = {}) { return tensor<T>(output{&detail::add_op("Squeeze", "Squeeze", {x.as_input(name.site)}, name), 0}); }
template <class T, int N> tensor<T> squeeze(const operand<T, N>& x, std::initializer_list<std::int64_t> axes, op_name name = {}) {
  return tensor<T>(output{&detail::add_op("Squeeze", "Squeeze", {x.as_input(name.site)}, name, {{"squeeze_dims", std::vector<std::int64_t>(axes)}}), 0});
}
template <class T, int N, int... A> tensor<T, detail::less_rank(N, sizeof...(A))> squeeze(const operand<T, N>& x, axis_t<A...>, op_name name = {}) {
  static_assert(detail::axes_in_range<A...>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)");
  return tensor<T, detail::less_rank(N, sizeof...(A))>(
      output{&detail::add_op("Squeeze", "Squeeze", {x.as_input(name.site)}, name, {{"squeeze_dims", std::vector<std::int64_t>{A...}}}), 0});
}
/// The number of elements of x: int32 (Size).
template <class T, int N> tensor<std::int32_t, 0> size_of(const operand<T, N>& x, op_name name = {}) { return tensor<std::int32_t, 0>(detail::add_unary("Size", detail::side_of(x), name)); }
/// The number of dimensions of x: int32 (Rank).
template <class T, int N> tensor<std::int32_t, 0> rank_of(const operand<T, N>& x, op_name name = {}) { return tensor<std::int32_t, 0>(detail::add_unary("Rank", detail::side_of(x), name)); }
/// x, whose shape must be this one when the step runs; `unknown` sizes may be any (EnsureShape).
template <class T, int N, std::size_t M> tensor<T, static_cast<int>(M)> ensure_shape(const operand<T, N>& x, const dim (&dims)[M], op_name name = {}) {
  static_assert(N == dynamic_rank || N == static_cast<int>(M), "weft: the shape has another number of dimensions than the tensor");
  std::vector<std::int64_t> sizes;
  for (const dim& d : dims) sizes.push_back(d.size);
  return tensor<T, static_cast<int>(M)>(output{&detail::add_op("EnsureShape", "EnsureShape", {x.as_input(name.site)}, name, {{"shape", partial_shape(std::move(sizes))}}), 0});
}
/// The bits of x read as elements of dtype To; between dtypes of different sizes the last dimension appears or disappears (Bitcast).
template <class To, class T, int N> auto bitcast(const operand<T, N>& x, op_name name = {}) {
  static_assert(std::is_arithmetic_v<T> && std::is_arithmetic_v<To> && !std::is_same_v<T, bool> && !std::is_same_v<To, bool>, "weft: bitcast<T> reads numbers as numbers");
  constexpr int rank = sizeof(T) == sizeof(To) ? N : sizeof(T) > sizeof(To) ? detail::more_rank(N, 1) : detail::less_rank(N, 1);
  return tensor<To, rank>(output{&detail::add_op("Bitcast", "Bitcast", {x.as_input(name.site)}, name, {{"type", dtype_of<To>}}), 0});
}
/// x, unless a step finds NaN or infinite values in it: then it fails with this message (CheckNumerics).
template <class T, int N> tensor<T, N> check_numerics(const operand<T, N>& x, const std::string& message, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("CheckNumerics", "CheckNumerics", {x.as_input(name.site)}, name, {{"message", message}}), 0});
}
/// x; asking for a gradient through it is an error with this message (PreventGradient).
template <class T, int N> tensor<T, N> prevent_gradient(const operand<T, N>& x, const std::string& message, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("PreventGradient", "PreventGradient", {x.as_input(name.site)}, name, {{"message", message}}), 0});
}
/// A tensor that a step may feed and that otherwise is `value` (PlaceholderWithDefault); `unknown` sizes may be fed with any.
template <class T, int N, std::size_t M> tensor<T, static_cast<int>(M)> placeholder_with_default(const operand<T, N>& value, const dim (&dims)[M], op_name name = {}) {
  static_assert(N == dynamic_rank || N == static_cast<int>(M), "weft: the shape has another number of dimensions than the default value");
  std::vector<std::int64_t> sizes;
  for (const dim& d : dims) sizes.push_back(d.size);
  return tensor<T, static_cast<int>(M)>(output{&detail::add_op("PlaceholderWithDefault", "PlaceholderWithDefault", {value.as_input(name.site)}, name, {{"shape", partial_shape(std::move(sizes))}}), 0});
}
template <class T, int N> tensor<T, N> placeholder_with_default(const operand<T, N>& value, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("PlaceholderWithDefault", "PlaceholderWithDefault", {value.as_input(name.site)}, name, {{"shape", value.shape()}}), 0});
}
/// The numbers from `start` on in steps of `delta` that come before `limit`: `[ceil((limit - start) / delta)]` (Range).
template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0>
tensor<dtype_t<T>, 1> range(T start, std::common_type_t<T> limit, std::common_type_t<T> delta, op_name name = {}) {
  using U = dtype_t<T>;
  return tensor<U, 1>(output{&detail::add_op("Range", "range", {{"start", tensor_value::scalar(U(start))}, {"limit", tensor_value::scalar(U(limit))}, {"delta", tensor_value::scalar(U(delta))}}, name), 0});
}
/// The numbers 0, 1, ... before `limit` (Range).
template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0> tensor<dtype_t<T>, 1> range(T limit, op_name name = {}) { return range(T(0), limit, T(1), name); }
template <class T> tensor<T, 1> range(const operand<T, 0>& start, const operand<T, 0>& limit, const operand<T, 0>& delta, op_name name = {}) {
  return tensor<T, 1>(output{&detail::add_op("Range", "range", {start.as_input(name.site), limit.as_input(name.site), delta.as_input(name.site)}, name), 0});
}
template <class T> tensor<T, 1> range(const operand<T, 0>& limit, op_name name = {}) {
  return tensor<T, 1>(output{&detail::add_op("Range", "range", {{"start", tensor_value::scalar(static_cast<T>(0))}, limit.as_input(name.site), {"delta", tensor_value::scalar(static_cast<T>(1))}}, name), 0});
}
/// `count` numbers in equal distances from `start` to `stop`, both included (LinSpace).
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0> tensor<T, 1> lin_space(T start, std::common_type_t<T> stop, std::int64_t count, op_name name = {}) {
  return tensor<T, 1>(output{&detail::add_op("LinSpace", "LinSpace", {{"start", tensor_value::scalar(start)}, {"stop", tensor_value::scalar(stop)}, {"num", count}}, name), 0});
}
/// x repeated along dimensions of size 1, and along new ones before the others, to this shape (BroadcastTo).
template <class T, int N, std::size_t M> tensor<T, static_cast<int>(M)> broadcast_to(const operand<T, N>& x, const std::int64_t (&dims)[M], op_name name = {}) {
  static_assert(N <= static_cast<int>(M), "weft: the tensor has more dimensions than the shape to which it is broadcast");
  return tensor<T, static_cast<int>(M)>(output{&detail::add_op("BroadcastTo", "BroadcastTo", {x.as_input(name.site), {"shape", detail::int_list(std::vector<std::int64_t>(dims, dims + M))}}, name), 0});
}
template <class T, int N, class I, int M, std::enable_if_t<detail::is_integer_v<I>, int> = 0> tensor<T> broadcast_to(const operand<T, N>& x, const operand<I, M>& dims, op_name name = {}) {
  return tensor<T>(output{&detail::add_op("BroadcastTo", "BroadcastTo", {x.as_input(name.site), dims.as_input(name.site)}, name), 0});
}

}  // namespace weft

#endif
