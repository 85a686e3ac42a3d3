#ifndef WEFT_KERNELS_ARRAY_VALUES_HPP
#define WEFT_KERNELS_ARRAY_VALUES_HPP
// Kernels that compute sequences, check values or shapes, and read elements as others.

#include <weft/kernels/array_unique.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/function_kernel.hpp>
#include <weft/kernels/strided_copy.hpp>
#include <weft/ops/array_rules.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an op that computes sequences, checks values or reads elements as others; nullptr for other ops.
kernel_factory array_values_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

// Each element is the one before plus the step, as TensorFlow adds them up.
template <class T> void fill_range(const tensor_value& start, const tensor_value& delta, tensor_value& out) {
  T value{}, step{};
  std::memcpy(&value, start.raw_data(), sizeof value);
  std::memcpy(&step, delta.raw_data(), sizeof step);
  T* to = reinterpret_cast<T*>(out.mutable_raw_data());
  const std::int64_t count = out.elements();
  for (std::int64_t i = 0; i < count; ++i, value = static_cast<T>(value + step)) to[i] = value;
}

inline void compute_range(kernel_context& context) {
  const dtype type = context.input(0).dtype();
  expect_same_dtype(context, 1, 0);
  expect_same_dtype(context, 2, 0);
  const shape s = output_shape_now(context, range_shape);
  const tensor_value start = widened(context.input(0)), delta = widened(context.input(2));
  tensor_value out(start.dtype(), s);
  switch (out.dtype()) {
    case dtype::float32: fill_range<float>(start, delta, out); break;
    case dtype::float64: fill_range<double>(start, delta, out); break;
    default: fill_range<std::uint64_t>(start, delta, out); break;
  }
  context.set_output(0, narrowed(std::move(out), type));
}

template <class T> void fill_lin_space(const tensor_value& start, const tensor_value& stop, tensor_value& out) {
  const T first = *start.data<T>(), last = *stop.data<T>();
  const std::int64_t count = out.elements();
  const T step = count > 1 ? (last - first) / static_cast<T>(count - 1) : T(0);
  T* to = out.mutable_data<T>();
  for (std::int64_t i = 0; i < count; ++i) to[i] = first + step * static_cast<T>(i);
  if (count > 1) to[count - 1] = last;
}

inline void compute_lin_space(kernel_context& context) {
  const dtype type = context.input(0).dtype();
  expect_same_dtype(context, 1, 0);
  if (!is_floating(type)) context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
  const shape s = output_shape_now(context, lin_space_shape);
  const tensor_value start = widened(context.input(0)), stop = widened(context.input(1));
  tensor_value out(start.dtype(), s);
  if (out.dtype() == dtype::float32) fill_lin_space<float>(start, stop, out);
  else fill_lin_space<double>(start, stop, out);
  context.set_output(0, narrowed(std::move(out), type));
}

inline void compute_ensure_shape(kernel_context& context) {
  (void)outputs_now(context, ensure_shape_shape);
  context.set_output(0, context.take_input(0));
}

inline void compute_bitcast(kernel_context& context) {
  shape s = output_shape_now(context, bitcast_shape);
  const dtype type = context.about().attr<dtype>("type");
  const tensor_value in = context.take_input(0);
  context.set_output(0, tensor_value(type, std::move(s), in.buffer()));
}

inline void compute_deep_copy(kernel_context& context) {
  const tensor_value& in = context.input(0);
  copy_elements(in, 0, context.allocate_output(0, in.dtype(), in.shape()), 0, in.elements());
}

// Which kinds of values that are no finite numbers an array of elements of 2, 4 or 8 bytes holds.
struct found_values {
  bool infinite = false, nan = false;
};
template <class Bits> found_values find_special(const std::byte* in, std::int64_t count, const floating_bits& kind) {
  const auto size = static_cast<Bits>(kind.sign - 1), infinity = static_cast<Bits>(kind.infinity);
  found_values out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = static_cast<Bits>(load_bits<Bits>(in + i * static_cast<std::int64_t>(sizeof(Bits))) & size);
    out.infinite |= bits == infinity;
    out.nan |= bits > infinity;
  }
  return out;
}

inline void compute_check_numerics(kernel_context& context) {
  const tensor_value& in = context.input(0);
  const floating_bits kind = floating_bits_of(in.dtype());
  if (!is_floating(in.dtype())) context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(in.dtype()));
  const found_values found = size_of(in.dtype()) == 2   ? find_special<std::uint16_t>(in.raw_data(), in.elements(), kind)
                             : size_of(in.dtype()) == 4 ? find_special<std::uint32_t>(in.raw_data(), in.elements(), kind)
                                                        : find_special<std::uint64_t>(in.raw_data(), in.elements(), kind);
  if (found.infinite || found.nan)
    context.fail(context.about().attr<std::string>("message") + ": the tensor has " + (found.infinite && found.nan ? "infinite values and NaN" : found.nan ? "NaN" : "infinite values"));
  context.set_output(0, context.take_input(0));
}

// Two shapes with ones put before the shorter one; fails where they cannot be broadcast.
struct broadcast_pair {
  std::vector<std::int64_t> a, b;
};
inline broadcast_pair broadcast_pair_of(const kernel_context& context) {
  expect_same_dtype(context, 1, 0);
  broadcast_pair out{integers_of(context, 0, "s0"), integers_of(context, 1, "s1")};
  const std::size_t rank = std::max(out.a.size(), out.b.size());
  const std::string text = "shapes " + shape_text(out.a) + " and " + shape_text(out.b) + " cannot be broadcast";
  out.a.insert(out.a.begin(), rank - out.a.size(), 1);
  out.b.insert(out.b.begin(), rank - out.b.size(), 1);
  for (std::size_t i = 0; i < rank; ++i)
    if (out.a[i] < 0 || out.b[i] < 0 || (out.a[i] != out.b[i] && out.a[i] != 1 && out.b[i] != 1)) context.fail(text);
  return out;
}

inline void compute_broadcast_args(kernel_context& context) {
  (void)outputs_now(context, broadcast_args_shape);
  broadcast_pair pair = broadcast_pair_of(context);
  for (std::size_t i = 0; i < pair.a.size(); ++i)
    if (pair.a[i] == 1) pair.a[i] = pair.b[i];
  set_integers(context, 0, context.input(0).dtype(), pair.a);
}

// The dimensions along which the gradient of each operand is summed; none where the shapes are equal.
inline void compute_broadcast_gradient_args(kernel_context& context) {
  (void)outputs_now(context, broadcast_gradient_args_shape);
  const broadcast_pair pair = broadcast_pair_of(context);
  std::vector<std::int64_t> a, b;
  const bool equal = integers_of(context, 0, "s0") == integers_of(context, 1, "s1");
  for (std::size_t i = 0; !equal && i < pair.a.size(); ++i) {
    if (pair.a[i] == 1) a.push_back(static_cast<std::int64_t>(i));
    if (pair.b[i] == 1) b.push_back(static_cast<std::int64_t>(i));
  }
  set_integers(context, 0, context.input(0).dtype(), a);
  set_integers(context, 1, context.input(0).dtype(), b);
}

inline constexpr kernel_function array_values_functions[] = {
    {"Range", compute_range, 3, 1, kernel_cost::by_values},
    {"LinSpace", compute_lin_space, 3, 1, kernel_cost::by_values},
    {"EnsureShape", compute_ensure_shape, 1, 1, kernel_cost::cheap},
    {"Bitcast", compute_bitcast, 1, 1, kernel_cost::cheap},
    {"DeepCopy", compute_deep_copy, 1},
    {"CheckNumerics", compute_check_numerics, 1},
    {"BroadcastArgs", compute_broadcast_args, 2, 1, kernel_cost::cheap},
    {"BroadcastGradientArgs", compute_broadcast_gradient_args, 2, 2, kernel_cost::cheap},
};

inline std::unique_ptr<kernel> make_array_values_kernel(const kernel_construction& what) {
  return std::make_unique<function_kernel>(*find_function(array_values_functions, what.about.op()));
}
WEFT_DECL kernel_factory array_values_kernel(std::string_view op) { return find_function(array_values_functions, op) != nullptr ? &make_array_values_kernel : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
