#ifndef WEFT_OPS_ARRAY_HPP
#define WEFT_OPS_ARRAY_HPP
// Constants, placeholders, identities, and ops that make or change shapes.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace weft {

namespace detail {

inline void reshape_shape(shape_context& c) {
  const auto wanted = c.input_integers(1);
  const partial_shape& in = c.input(0);
  if (!wanted) return c.set_output(0, shape_from_input(c, 1, "shape"));
  (void)c.with_rank(1, 1, "shape");
  // 1. What is wanted: at most one open dimension, and a product that can be counted.
  std::vector<std::int64_t> sizes = *wanted, closed;
  int open = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) c.fail("a dimension cannot be " + std::to_string(sizes[i]));
    if (sizes[i] == -1 && open >= 0) c.fail("only one dimension may be -1, found shape " + partial_shape(sizes).text());
    if (sizes[i] == -1) open = static_cast<int>(i);
    else closed.push_back(sizes[i]);
  }
  const auto known = checked_elements(closed.data(), closed.size());
  if (!known) c.fail("shape " + partial_shape(sizes).text() + " has more elements than memory can address");
  // 2. Whether the elements fit, and the size of the open dimension.
  const auto elements = in.elements();
  const bool fits = !elements || (open < 0 ? *elements == *known : *known == 0 ? *elements == 0 : *elements % *known == 0);
  if (!fits) c.fail("a tensor of shape " + in.text() + " has " + std::to_string(*elements) + " elements and cannot be given shape " + partial_shape(sizes).text());
  if (elements && open >= 0) sizes[static_cast<std::size_t>(open)] = *known == 0 ? 0 : *elements / *known;
  c.set_output(0, partial_shape(std::move(sizes)));
}

// Steps of delta from start that stay before limit; -1 when the three are not constants of type T.
template <class T> std::int64_t range_length(const shape_context& c) {
  T bounds[3] = {};
  for (int i = 0; i < 3; ++i) {
    const tensor_value* v = c.input_value(i);
    if (v == nullptr || v->dtype() != dtype_of<T>) return -1;
    bounds[i] = v->item<T>();
  }
  const T start = bounds[0], limit = bounds[1], delta = bounds[2];
  if (delta == 0) c.fail("delta must not be 0");
  if ((delta > 0) != (start < limit) && start != limit)
    c.fail("from " + std::to_string(start) + " there is no way to " + std::to_string(limit) + " in steps of " + std::to_string(delta));
  if constexpr (std::is_floating_point_v<T>) {
    const double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    return steps < 9e18 ? static_cast<std::int64_t>(steps) : -1;  // what cannot be held fails when it runs
  } else {
    const auto wide = [](T v) { return static_cast<std::uint64_t>(v); };
    const std::uint64_t span = delta > 0 ? wide(limit) - wide(start) : wide(start) - wide(limit), step = delta > 0 ? wide(delta) : 0 - wide(delta);
    return static_cast<std::int64_t>(span / step + (span % step != 0 ? 1 : 0));
  }
}

inline void range_shape(shape_context& c) {
  for (int i = 0; i < 3; ++i) (void)c.with_rank(i, 0, i == 0 ? "start" : i == 1 ? "limit" : "delta");
  std::int64_t length = -1;
  switch (c.input_dtype(0)) {
    case dtype::int32: length = range_length<std::int32_t>(c); break;
    case dtype::int64: length = range_length<std::int64_t>(c); break;
    case dtype::float32: length = range_length<float>(c); break;
    case dtype::float64: length = range_length<double>(c); break;
    default: break;
  }
  c.set_output(0, partial_shape({length}));
}

inline void define_array_ops(op_registry& ops) {
  ops.add(op("Const").output("output: dtype").attr("value: tensor").attr("dtype: type").shapes([](shape_context& c) {
    const tensor_value& v = c.attr<tensor_value>("value");
    if (v.dtype() != c.attr<dtype>("dtype")) c.fail(std::string("the value is ") + to_text(v.dtype()) + ", attribute 'dtype' says " + to_text(c.attr<dtype>("dtype")));
    c.set_output(0, v.shape());
  }));
  ops.add(op("Placeholder").output("output: dtype").attr("dtype: type").attr("shape: shape = {}").shapes([](shape_context& c) { c.set_output(0, c.attr<partial_shape>("shape")); }));
  ops.add(op("Identity").input("input: T").output("output: T").attr("T: type").shapes(unchanged_shape));
  ops.add(op("IdentityN").input("input: T").output("output: T").attr("T: list(type) >= 1").shapes([](shape_context& c) {
    for (int i = 0; i < c.input_count(); ++i) c.set_output(i, c.input(i));
  }));
  ops.add(op("StopGradient").input("input: T").output("output: T").attr("T: type").shapes(unchanged_shape));
  ops.add(op("ZerosLike").input("x: T").output("y: T").attr("T: type").shapes(unchanged_shape));
  ops.add(op("OnesLike").input("x: T").output("y: T").attr("T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128, bool}").shapes(unchanged_shape));
  ops.add(op("Reshape").input("tensor: T").input("shape: Tshape").output("output: T").attr("T: type").attr("Tshape: {int32, int64} = int32").shapes(reshape_shape));
  ops.add(op("Shape").input("input: T").output("output: out_type").attr("T: type").attr("out_type: {int32, int64} = int32").shapes([](shape_context& c) {
    c.set_output(0, partial_shape({c.input(0).known_rank() ? static_cast<std::int64_t>(c.input(0).rank()) : -1}));
  }));
  ops.add(op("Size").input("input: T").output("output: out_type").attr("T: type").attr("out_type: {int32, int64} = int32").shapes(scalar_shape));
  ops.add(op("Rank").input("input: T").output("output: int32").attr("T: type").shapes(scalar_shape));
  ops.add(op("Range").input("start: Tidx").input("limit: Tidx").input("delta: Tidx").output("output: Tidx").attr("Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32").shapes(range_shape));
  ops.add(op("Fill").input("dims: index_type").input("value: T").output("output: T").attr("T: type").attr("index_type: {int32, int64} = int32").shapes([](shape_context& c) {
    c.with_rank(1, 0, "value");
    c.set_output(0, shape_from_input(c, 0, "dims"));
  }));
}

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

}  // namespace weft

#endif
