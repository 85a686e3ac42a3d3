#ifndef WEFT_OPS_ARRAY_RULES_HPP
#define WEFT_OPS_ARRAY_RULES_HPP
// Definitions and shape rules of ops that make tensors or say something of their shapes; kernels ask the rules again with the values of a step.

#include <weft/graph/op_def.hpp>
#include <weft/ops/shape_arithmetic.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::detail {

void const_shape(shape_context& c);
void placeholder_shape(shape_context& c);
void placeholder_with_default_shape(shape_context& c);
void unchanged_shapes(shape_context& c);
void reshape_shape(shape_context& c);
void expand_dims_shape(shape_context& c);
void squeeze_shape(shape_context& c);
void ensure_shape_shape(shape_context& c);
void bitcast_shape(shape_context& c);
void shape_shape(shape_context& c);
void fill_shape(shape_context& c);
void range_shape(shape_context& c);
void lin_space_shape(shape_context& c);
void broadcast_to_shape(shape_context& c);
void broadcast_args_shape(shape_context& c);
void broadcast_gradient_args_shape(shape_context& c);

#if WEFT_HAS_BODIES
WEFT_DECL void const_shape(shape_context& c) {
  const tensor_value& v = c.attr<tensor_value>("value");
  if (v.dtype() != c.attr<dtype>("dtype")) c.fail(std::string("the value is ") + to_text(v.dtype()) + ", attribute 'dtype' says " + to_text(c.attr<dtype>("dtype")));
  c.set_output(0, v.shape());
}

WEFT_DECL void placeholder_shape(shape_context& c) { c.set_output(0, c.attr<partial_shape>("shape")); }

WEFT_DECL void placeholder_with_default_shape(shape_context& c) {
  const partial_shape& wanted = c.attr<partial_shape>("shape");
  if (!merge_shapes(wanted, c.input(0))) c.fail("the default has shape " + c.input(0).text() + ", attribute 'shape' says " + wanted.text());
  c.set_output(0, c.running() ? c.input(0) : wanted);
}

WEFT_DECL void unchanged_shapes(shape_context& c) {
  for (int i = 0; i < c.input_count() && i < c.output_count(); ++i) c.set_output(i, c.input(i));
}

WEFT_DECL void reshape_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  partial_shape wanted = shape_from_input(c, 1, "the wanted shape", -1);
  // Which sizes are -1 and which are merely unknown is known only where all are.
  const auto values = c.input_integers(1);
  if (!wanted.known_rank() || !values) return c.set_output(0, wanted);
  // 1. What is wanted: at most one open dimension, and a product that can be counted.
  size_list sizes = *values, closed;
  int open = -1, opens = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= 0) closed.push_back(sizes[i]);
    else if (opens++ == 0) open = static_cast<int>(i);
  }
  if (opens > 1) {
    if (c.running()) c.fail("only one dimension may be -1, found shape " + wanted.text());
    return c.set_output(0, wanted);
  }
  const auto known = checked_elements(closed.data(), closed.size());
  if (!known) c.fail("shape " + wanted.text() + " has more elements than memory can address");
  // 2. Whether the elements fit, and the size of the open dimension.
  const auto elements = in.elements();
  const bool fits = !elements || (open < 0 ? *elements == *known : *known == 0 ? *elements == 0 : *elements % *known == 0);
  if (!fits) c.fail("a tensor of shape " + in.text() + " has " + std::to_string(*elements) + " elements and cannot be given shape " + wanted.text());
  // Nothing can be arranged in any number of rows; when the node runs they are none.
  if (elements && open >= 0 && (*known != 0 || c.running())) sizes[static_cast<std::size_t>(open)] = *known == 0 ? 0 : *elements / *known;
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void expand_dims_shape(shape_context& c) {
  const partial_shape &in = c.input(0), &axis_shape = c.input(1);
  if (const auto count = axis_shape.elements(); count && *count != 1) c.fail("the axis must be a single integer, found shape " + axis_shape.text());
  const auto axis = c.input_integers(1);
  if (!in.known_rank() || !axis || axis->empty()) return;
  size_list sizes = in.sizes();
  sizes.insert(sizes.begin() + axis_in_rank(c, axis->front(), in.rank() + 1), 1);
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void squeeze_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  const auto& axes = c.attr<std::vector<std::int64_t>>("squeeze_dims");
  if (!in.known_rank()) return;
  std::vector<bool> dropped(static_cast<std::size_t>(in.rank()), false);
  for (const std::int64_t wanted : axes) {
    const int axis = axis_in_rank(c, wanted, in.rank());
    if (in[axis] >= 0 && in[axis] != 1) c.fail("dimension " + std::to_string(axis) + " of shape " + in.text() + " cannot be dropped, its size is not 1");
    dropped[static_cast<std::size_t>(axis)] = true;
  }
  size_list sizes;
  for (int i = 0; i < in.rank(); ++i) {
    if (axes.empty() && in[i] < 0) return;  // whether it is dropped is not known
    if (axes.empty() ? in[i] != 1 : !dropped[static_cast<std::size_t>(i)]) sizes.push_back(in[i]);
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void ensure_shape_shape(shape_context& c) {
  const partial_shape& wanted = c.attr<partial_shape>("shape");
  const auto both = merge_shapes(wanted, c.input(0));
  if (!both) c.fail("the input must have shape " + wanted.text() + ", found " + c.input(0).text());
  c.set_output(0, *both);
}

WEFT_DECL void bitcast_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  const auto from = static_cast<std::int64_t>(size_of(c.input_dtype(0))), to = static_cast<std::int64_t>(size_of(c.attr<dtype>("type")));
  if (from == 0 || to == 0) c.fail(std::string("elements of dtype ") + to_text(from == 0 ? c.input_dtype(0) : c.attr<dtype>("type")) + " have no bits to read as another");
  if (!in.known_rank()) return;
  size_list sizes = in.sizes();
  if (from > to) sizes.push_back(from / to);
  if (from < to) {
    const std::string wanted = "the last dimension must be " + std::to_string(to / from) + " to read " + to_text(c.input_dtype(0)) + " as " + to_text(c.attr<dtype>("type")) + ", found shape ";
    if (sizes.empty() || (sizes.back() >= 0 && sizes.back() != to / from)) c.fail(wanted + in.text());
    sizes.pop_back();
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

// Shape and ShapeN: a vector of each input's sizes.
WEFT_DECL void shape_shape(shape_context& c) {
  for (int i = 0; i < c.input_count() && i < c.output_count(); ++i) c.set_output(i, partial_shape({c.input(i).known_rank() ? static_cast<std::int64_t>(c.input(i).rank()) : -1}));
}

WEFT_DECL void fill_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "value");
  c.set_output(0, shape_from_input(c, 0, "dims"));
}

// One of Range's inputs in the form in which it is counted.
struct range_bounds {
  double real[3] = {};
  std::uint64_t bits[3] = {};
  bool floating = false, is_signed = true, single = false;
};

inline std::optional<range_bounds> range_bounds_of(const shape_context& c) {
  range_bounds out;
  const dtype type = c.input_dtype(0);
  out.floating = is_floating(type);
  out.single = out.floating && type != dtype::float64;
  out.is_signed = type != dtype::uint64;
  for (int i = 0; i < 3; ++i) {
    const tensor_value* v = c.input_value(i);
    if (v == nullptr && is_integer(type)) {
      // What the graph computes from shapes is known as well.
      const auto known = c.input_integers(i);
      if (!known || known->size() != 1) return std::nullopt;
      out.bits[i] = static_cast<std::uint64_t>(known->front());
      continue;
    }
    if (v == nullptr || v->dtype() != type || v->elements() != 1) return std::nullopt;
    double& real = out.real[i];
    std::uint64_t& bits = out.bits[i];
    switch (type) {
      case dtype::float32: real = static_cast<double>(v->item<float>()); break;
      case dtype::float64: real = v->item<double>(); break;
      case dtype::half: real = static_cast<double>(static_cast<float>(v->item<half>())); break;
      case dtype::bfloat16: real = static_cast<double>(static_cast<float>(v->item<bfloat16>())); break;
      case dtype::int8: bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(v->item<std::int8_t>())); break;
      case dtype::int16: bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(v->item<std::int16_t>())); break;
      case dtype::int32: bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(v->item<std::int32_t>())); break;
      case dtype::int64: bits = static_cast<std::uint64_t>(v->item<std::int64_t>()); break;
      case dtype::uint8: bits = v->item<std::uint8_t>(); break;
      case dtype::uint16: bits = v->item<std::uint16_t>(); break;
      case dtype::uint32: bits = v->item<std::uint32_t>(); break;
      case dtype::uint64: bits = v->item<std::uint64_t>(); break;
      default: return std::nullopt;
    }
  }
  return out;
}

[[noreturn]] inline void fail_range(const shape_context& c, const std::string& start, const std::string& limit, const std::string& delta) {
  c.fail("from " + start + " there is no way to " + limit + " in steps of " + delta);
}

inline std::int64_t floating_range_length(const shape_context& c, const double (&b)[3], bool single) {
  const double start = b[0], limit = b[1], delta = b[2];
  if (delta == 0) c.fail("delta must not be 0");
  // Not a number is neither, and is refused here.
  if (!(delta > 0 ? start <= limit : start >= limit)) fail_range(c, std::to_string(start), std::to_string(limit), std::to_string(delta));
  const double steps = single ? static_cast<double>(std::ceil(std::fabs((static_cast<float>(limit) - static_cast<float>(start)) / static_cast<float>(delta))))
                              : std::ceil(std::fabs((limit - start) / delta));
  if (!(steps < 0x1p62)) c.fail("a range from " + std::to_string(start) + " to " + std::to_string(limit) + " in steps of " + std::to_string(delta) + " has too many elements");
  return static_cast<std::int64_t>(steps);
}

inline std::int64_t integer_range_length(const shape_context& c, const std::uint64_t (&b)[3], bool is_signed) {
  const std::uint64_t start = b[0], limit = b[1], delta = b[2];
  const auto text = [is_signed](std::uint64_t v) { return is_signed ? std::to_string(static_cast<std::int64_t>(v)) : std::to_string(v); };
  if (delta == 0) c.fail("delta must not be 0");
  // With the sign bit turned, signed numbers compare as unsigned ones.
  const std::uint64_t sign = is_signed ? std::uint64_t{1} << 63 : 0, from = start ^ sign, to = limit ^ sign;
  const bool upward = (delta & sign) == 0;
  if (upward ? from > to : from < to) fail_range(c, text(start), text(limit), text(delta));
  const std::uint64_t span = upward ? limit - start : start - limit, step = upward ? delta : 0 - delta, length = span / step + (span % step != 0 ? 1 : 0);
  if (length > std::uint64_t{1} << 62) c.fail("a range from " + text(start) + " to " + text(limit) + " in steps of " + text(delta) + " has too many elements");
  return static_cast<std::int64_t>(length);
}

WEFT_DECL void range_shape(shape_context& c) {
  for (int i = 0; i < 3; ++i) (void)c.with_rank(i, 0, i == 0 ? "start" : i == 1 ? "limit" : "delta");
  const auto bounds = range_bounds_of(c);
  const std::int64_t length = !bounds ? -1 : bounds->floating ? floating_range_length(c, bounds->real, bounds->single) : integer_range_length(c, bounds->bits, bounds->is_signed);
  c.set_output(0, partial_shape({length}));
}

WEFT_DECL void lin_space_shape(shape_context& c) {
  (void)c.with_rank(0, 0, "start");
  (void)c.with_rank(1, 0, "stop");
  const auto count = scalar_input(c, 2, "num");
  if (count && *count < 1) c.fail("num must be at least 1, found " + std::to_string(*count));
  c.set_output(0, partial_shape({count.value_or(-1)}));
}

WEFT_DECL void broadcast_to_shape(shape_context& c) {
  const partial_shape in = c.input(0), wanted = shape_from_input(c, 1, "the wanted shape");
  if (!wanted.known_rank() || !in.known_rank()) return c.set_output(0, wanted);
  const int more = wanted.rank() - in.rank();
  if (more < 0) c.fail("a tensor of shape " + in.text() + " has more dimensions than shape " + wanted.text());
  size_list sizes = wanted.sizes();
  for (int i = 0; i < in.rank(); ++i) {
    std::int64_t& size = sizes[static_cast<std::size_t>(more + i)];
    if (size >= 0 && in[i] >= 0 && in[i] != 1 && in[i] != size) c.fail("a tensor of shape " + in.text() + " cannot be broadcast to shape " + wanted.text());
    if (size < 0 && in[i] > 1) size = in[i];
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void broadcast_args_shape(shape_context& c) {
  const std::int64_t a = c.with_rank(0, 1, "s0")[0], b = c.with_rank(1, 1, "s1")[0];
  c.set_output(0, partial_shape({a < 0 || b < 0 ? -1 : std::max(a, b)}));
}

WEFT_DECL void broadcast_gradient_args_shape(shape_context& c) {
  (void)c.with_rank(0, 1, "s0");
  (void)c.with_rank(1, 1, "s1");
  c.set_output(0, partial_shape({-1}));
  c.set_output(1, partial_shape({-1}));
}

inline constexpr op_row array_ops[] = {
    {"Const() -> output: dtype", "value: tensor; dtype: type", const_shape},
    {"Placeholder() -> output: dtype", "dtype: type; shape: shape = {}", placeholder_shape},
    {"PlaceholderV2() -> output: dtype", "dtype: type; shape: shape", placeholder_shape},
    {"PlaceholderWithDefault(input: dtype) -> output: dtype", "dtype: type; shape: shape", placeholder_with_default_shape},
    {"Identity StopGradient Snapshot(input: T) -> output: T", "T: type", unchanged_shape},
    {"IdentityN(input: T) -> output: T", "T: list(type) >= 1", unchanged_shapes},
    {"PreventGradient(input: T) -> output: T", "T: type; message: string = ''", unchanged_shape},
    {"CheckNumerics(tensor: T) -> output: T", "T: {floats}; message: string", unchanged_shape, op_flags::stateful},
    {"DeepCopy(x: T) -> y: T", "T: type", unchanged_shape, op_flags::stateful},
    {"ZerosLike(x: T) -> y: T", "T: type", unchanged_shape},
    {"OnesLike(x: T) -> y: T", "T: {numbers, complex, bool}", unchanged_shape},
    {"Fill(dims: index_type, value: T) -> output: T", "T: type; index_type: {int32, int64} = int32", fill_shape},
    {"Range(start: Tidx, limit: Tidx, delta: Tidx) -> output: Tidx", "Tidx: {floats, int8, int16, int32, int64, uint16, uint32, uint64} = int32", range_shape},
    {"LinSpace(start: T, stop: T, num: Tidx) -> output: T", "T: {floats}; Tidx: {int32, int64} = int32", lin_space_shape},
    {"Reshape(tensor: T, shape: Tshape) -> output: T", "T: type; Tshape: {int32, int64} = int32", reshape_shape},
    {"ExpandDims(input: T, dim: Tdim) -> output: T", "T: type; Tdim: {int32, int64} = int32", expand_dims_shape},
    {"Squeeze(input: T) -> output: T", "T: type; squeeze_dims: list(int) >= 0 = []", squeeze_shape},
    {"EnsureShape(input: T) -> output: T", "shape: shape; T: type", ensure_shape_shape},
    {"Bitcast(input: T) -> output: type", "T: {numbers, complex}; type: {numbers, complex}", bitcast_shape},
    {"Shape(input: T) -> output: out_type", "T: type; out_type: {int32, int64} = int32", shape_shape},
    {"ShapeN(input: N * T) -> output: N * out_type", "N: int >= 1; T: type; out_type: {int32, int64} = int32", shape_shape},
    {"Size(input: T) -> output: out_type", "T: type; out_type: {int32, int64} = int32", scalar_shape},
    {"Rank(input: T) -> output: int32", "T: type", scalar_shape},
    {"BroadcastTo(input: T, shape: Tidx) -> output: T", "T: type; Tidx: {int32, int64} = int32", broadcast_to_shape},
    {"BroadcastArgs(s0: T, s1: T) -> r0: T", "T: {int32, int64} = int32", broadcast_args_shape},
    {"BroadcastGradientArgs(s0: T, s1: T) -> r0: T, r1: T", "T: {int32, int64} = int32", broadcast_gradient_args_shape},
};
#endif

}  // namespace weft::detail

#endif
