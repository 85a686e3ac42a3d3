#ifndef WEFT_GRADIENTS_GRADIENT_CONTEXT_HPP
#define WEFT_GRADIENTS_GRADIENT_CONTEXT_HPP
// What a gradient rule sees: the node to differentiate, the gradients of its outputs, and short ways to add nodes of any op.

#include <weft/core/config.hpp>
#include <weft/gradients/gradient_output.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// One node on the way back from the ys to the xs. Nodes that a rule adds are named below `gradients/<node>_grad` and carry the call site of
/// the node that is differentiated.
class gradient_context {
 public:
  gradient_context(const node& about, std::vector<gradient_output> gradients, std::vector<bool> wanted)
      : about_(about), gradients_(std::move(gradients)), wanted_(std::move(wanted)), results_(about.inputs().size()) {}

  /// The node that is differentiated.
  const node& about() const noexcept { return about_; }
  int input_count() const noexcept { return static_cast<int>(about_.inputs().size()); }
  int output_count() const noexcept { return about_.output_count(); }
  /// Its inputs and outputs.
  output input(int i) const { return about_.inputs()[static_cast<std::size_t>(i)]; }
  output result(int i = 0) const noexcept { return {&about_, i}; }
  template <class T> const T& attr(std::string_view name) const { return about_.attr<T>(name); }
  template <class T> const T* find_attr(std::string_view name) const noexcept { return about_.find_attr<T>(name); }
  /// The attribute as it stands, to give it to another node; empty when it is absent.
  attr_value attr_of(std::string_view name) const {
    const attr_value* found = about_.attrs().get(name);
    return found == nullptr ? attr_value() : *found;
  }

  /// Whether a gradient came for output i; otherwise `gradient(i)` is zeros.
  bool has_gradient(int i = 0) const noexcept { return !gradients_[static_cast<std::size_t>(i)].empty(); }
  /// The gradient of output i as a tensor; rows are scattered into one, none is zeros like the output.
  output gradient(int i = 0);
  /// The gradient of output i as it came; for rules that can keep it sparse.
  const gradient_output& gradient_as_it_is(int i = 0) const noexcept { return gradients_[static_cast<std::size_t>(i)]; }

  /// Whether a gradient of input i is of use; a rule may leave out what is not.
  bool wants(int i) const noexcept { return wanted_[static_cast<std::size_t>(i)]; }
  /// The gradient of input i.
  void set(int i, gradient_output g) { results_[static_cast<std::size_t>(i)] = g; }
  const std::vector<gradient_output>& results() const noexcept { return results_; }

  /// Adds a node of any op and returns its first output.
  output add(const char* op, std::initializer_list<output> inputs, attr_map attrs = {}, int index = 0) const;
  output add_list(const char* op, std::vector<output> inputs, attr_map attrs = {}, int index = 0) const;
  /// A constant: a number of the given dtype, an integer, a vector of integers, any value.
  output number(double value, dtype type) const;
  output integer(std::int64_t value, dtype type = dtype::int32) const;
  output integers(const std::vector<std::int64_t>& values, dtype type = dtype::int32) const;
  output constant(tensor_value value, const char* name = "Const") const;

  /// The shape of a tensor as a vector of integers: a constant where it is known.
  output shape_of(output x, dtype type = dtype::int32) const;
  /// Its rank and number of elements as scalars: constants where they are known.
  output rank_of(output x) const;
  output size_of(output x, dtype type = dtype::int32) const;
  output zeros_like(output x) const;
  output ones_like(output x) const;
  /// Zeros of a shape given as a vector of integers.
  output zeros(output shape, dtype type) const;
  output reshape(output x, output shape) const;
  output reshape_like(output x, output like) const;
  output cast(output x, dtype to) const;
  /// The complex conjugate; x itself where it is real.
  output conjugate(output x) const;
  /// Sums over axes (a vector of integers).
  output sum(output x, output axes, bool keep = false) const;
  /// Sums a gradient of the shape that x and y broadcast to over the axes along which x was repeated, to the shape of x. The last `fixed` axes
  /// were not broadcast.
  output sum_to(output gradient, output x, output y, int fixed = 0) const;
  /// Rows of x (its slices along axis 0) by their numbers.
  output gather(output x, output rows) const;
  /// A gradient as a tensor: rows are scattered.
  output dense(const gradient_output& g) const;
  /// The values of a tensor that is a constant of int32 or int64.
  std::optional<std::vector<std::int64_t>> integers_of(output x) const;

  static dtype dtype_of(output x) { return x.from->output_dtype(x.index); }
  static const partial_shape& shape(output x) { return x.from->output_shape(x.index); }

  [[noreturn]] void fail(error_code code, std::string message) const { about_.fail_about(code, std::move(message)); }

 private:
  const node& about_;
  std::vector<gradient_output> gradients_;
  std::vector<bool> wanted_;
  std::vector<gradient_output> results_;
};

namespace detail {
// Gradients flow over these dtypes only.
inline bool is_trainable(dtype type) noexcept {
  switch (type) {
    case dtype::float32: case dtype::float64: case dtype::half: case dtype::bfloat16: case dtype::complex64: case dtype::complex128:
    case dtype::resource: case dtype::variant: return true;
    default: return false;
  }
}
// A scalar of any dtype that numbers can have.
tensor_value scalar_of(double value, dtype type);
}  // namespace detail

#if WEFT_HAS_BODIES
namespace detail {

WEFT_DECL tensor_value scalar_of(double value, dtype type) {
  switch (type) {
    case dtype::float32: return tensor_value::scalar(static_cast<float>(value));
    case dtype::float64: return tensor_value::scalar(value);
    case dtype::half: return tensor_value::scalar(half(static_cast<float>(value)));
    case dtype::bfloat16: return tensor_value::scalar(bfloat16(static_cast<float>(value)));
    case dtype::int8: return tensor_value::scalar(static_cast<std::int8_t>(value));
    case dtype::int16: return tensor_value::scalar(static_cast<std::int16_t>(value));
    case dtype::int32: return tensor_value::scalar(static_cast<std::int32_t>(value));
    case dtype::int64: return tensor_value::scalar(static_cast<std::int64_t>(value));
    case dtype::uint8: return tensor_value::scalar(static_cast<std::uint8_t>(value));
    case dtype::uint16: return tensor_value::scalar(static_cast<std::uint16_t>(value));
    case dtype::uint32: return tensor_value::scalar(static_cast<std::uint32_t>(value));
    case dtype::uint64: return tensor_value::scalar(static_cast<std::uint64_t>(value));
    case dtype::boolean: return tensor_value::scalar(value != 0);
    default: weft::fail(error_code::unimplemented, std::string("a constant of dtype ") + to_text(type) + " cannot be made");
  }
}

}  // namespace detail

WEFT_DECL output gradient_context::add_list(const char* op, std::vector<output> inputs, attr_map attrs, int index) const {
  node_spec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.site = about_.site();
  return {&about_.owner().add(std::move(spec)), index};
}

WEFT_DECL output gradient_context::add(const char* op, std::initializer_list<output> inputs, attr_map attrs, int index) const {
  return add_list(op, std::vector<output>(inputs), std::move(attrs), index);
}

WEFT_DECL output gradient_context::constant(tensor_value value, const char* name) const { return {&detail::add_const(std::move(value), op_name(name, about_.site()), &about_.owner()), 0}; }
WEFT_DECL output gradient_context::number(double value, dtype type) const { return constant(detail::scalar_of(value, type)); }
WEFT_DECL output gradient_context::integer(std::int64_t value, dtype type) const {
  return constant(type == dtype::int64 ? tensor_value::scalar(value) : tensor_value::scalar(static_cast<std::int32_t>(value)));
}

WEFT_DECL output gradient_context::integers(const std::vector<std::int64_t>& values, dtype type) const {
  tensor_value v(type == dtype::int64 ? dtype::int64 : dtype::int32, weft::shape({static_cast<std::int64_t>(values.size())}));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == dtype::int64) v.mutable_data<std::int64_t>()[i] = values[i];
    else v.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
  }
  return constant(std::move(v));
}

WEFT_DECL std::optional<std::vector<std::int64_t>> gradient_context::integers_of(output x) const {
  const tensor_value* v = x.from->op() == "Const" ? x.from->find_attr<tensor_value>("value") : nullptr;
  if (v == nullptr || (v->dtype() != dtype::int32 && v->dtype() != dtype::int64)) return std::nullopt;
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < v->elements(); ++i) out.push_back(v->dtype() == dtype::int32 ? v->data<std::int32_t>()[i] : v->data<std::int64_t>()[i]);
  return out;
}

WEFT_DECL output gradient_context::shape_of(output x, dtype type) const {
  if (shape(x).fully_known()) return integers(shape(x).sizes(), type);
  return add("Shape", {x}, {{"out_type", type}});
}
WEFT_DECL output gradient_context::rank_of(output x) const { return shape(x).known_rank() ? integer(shape(x).rank()) : add("Rank", {x}); }
WEFT_DECL output gradient_context::size_of(output x, dtype type) const {
  const auto known = shape(x).elements();
  return known ? integer(*known, type) : add("Size", {x}, {{"out_type", type}});
}

// Small ones of known shape are constants, so that x need not be there.
WEFT_DECL output gradient_context::zeros_like(output x) const {
  if (!shape(x).fully_known()) return add("ZerosLike", {x});
  return zeros(integers(shape(x).sizes()), dtype_of(x));
}
WEFT_DECL output gradient_context::ones_like(output x) const {
  const output sizes = shape_of(x);
  return add("Fill", {sizes, number(1, dtype_of(x))});
}
WEFT_DECL output gradient_context::zeros(output sizes, dtype type) const { return add("Fill", {sizes, number(0, type)}); }
WEFT_DECL output gradient_context::reshape(output x, output sizes) const { return add("Reshape", {x, sizes}); }
WEFT_DECL output gradient_context::reshape_like(output x, output like) const {
  return shape(x).fully_known() && shape(x) == shape(like) ? x : reshape(x, shape_of(like));
}
WEFT_DECL output gradient_context::cast(output x, dtype to) const { return dtype_of(x) == to ? x : add("Cast", {x}, {{"DstT", to}}); }
WEFT_DECL output gradient_context::conjugate(output x) const { return dtype_of(x) == dtype::complex64 || dtype_of(x) == dtype::complex128 ? add("Conj", {x}) : x; }
WEFT_DECL output gradient_context::sum(output x, output axes, bool keep) const { return add("Sum", {x, axes}, {{"keep_dims", keep}}); }

WEFT_DECL output gradient_context::sum_to(output g, output x, output y, int fixed) const {
  const partial_shape &a = shape(x), &b = shape(y);
  // 1. Which axes were repeated, as far as the known sizes decide it.
  bool decided = x == y || (a.known_rank() && b.known_rank());
  std::vector<std::int64_t> axes;
  std::int64_t outer = 0;
  if (x != y && decided) {
    outer = std::max(0, b.rank() - a.rank());
    for (std::int64_t i = 0; i < outer; ++i) axes.push_back(i);
    for (int i = 0; i < a.rank() - fixed; ++i) {
      const int j = i + b.rank() - a.rank();
      const std::int64_t other = j < 0 ? 1 : b[j];
      if (a[i] == 1 && other != 1) axes.push_back(i + outer);
      if (a[i] == -1 && other != 1) decided = false;
    }
  }
  // 2. What is not known is found when it runs.
  if (!decided) {
    const output from = shape_of(x), with = shape_of(y);
    const auto batch = [&](output sizes) { return fixed == 0 ? sizes : add("StridedSlice", {sizes, integers({0}), integers({-fixed}), integers({1})}, {{"begin_mask", 1}}); };
    return reshape(sum(g, add("BroadcastGradientArgs", {batch(from), batch(with)})), from);
  }
  if (axes.empty()) return g;
  const bool inner = axes.size() > static_cast<std::size_t>(outer);
  const output summed = sum(g, integers(axes), inner);
  if (!inner || outer == 0) return summed;
  axes.resize(static_cast<std::size_t>(outer));
  return add("Squeeze", {summed}, {{"squeeze_dims", axes}});
}

WEFT_DECL output gradient_context::gather(output x, output rows) const { return add("GatherV2", {x, rows, integer(0)}); }

WEFT_DECL output gradient_context::dense(const gradient_output& g) const {
  if (!g.is_sparse()) return g.values();
  const indexed_slices rows = g.slices();
  const auto known = integers_of(rows.dense_shape);
  const dtype type = dtype_of(rows.dense_shape);
  output count;
  if (known && !known->empty()) count = integer((*known)[0], type);
  else count = add("StridedSlice", {rows.dense_shape, integers({0}), integers({1}), integers({1})}, {{"shrink_axis_mask", 1}});
  return add("UnsortedSegmentSum", {rows.values, rows.indices, count});
}

WEFT_DECL output gradient_context::gradient(int i) {
  gradient_output& g = gradients_[static_cast<std::size_t>(i)];
  if (g.empty()) g = zeros_like(result(i));
  else if (g.is_sparse()) g = dense(g);
  return g.values();
}
#endif

}  // namespace weft

#endif
