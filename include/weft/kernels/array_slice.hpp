#ifndef WEFT_KERNELS_ARRAY_SLICE_HPP
#define WEFT_KERNELS_ARRAY_SLICE_HPP
// Kernels that read or write parts of a tensor: by bounds, strides or indices.

#include <weft/kernels/element_types.hpp>
#include <weft/kernels/function_kernel.hpp>
#include <weft/kernels/strided_copy.hpp>
#include <weft/ops/array_slice.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of an op that slices, gathers, scatters or reverses; nullptr for other ops.
kernel_factory array_slice_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// Where a flat position is in a shape: `[1,0]`, or `[3]`.
inline std::string position_text(const shape& s, std::int64_t at) {
  std::string out;
  for (int i = s.rank() - 1; i >= 0; --i) {
    out = std::to_string(at % s[i]) + (out.empty() ? "" : ",") + out;
    at /= s[i];
  }
  return "[" + out + "]";
}

inline void compute_slice(kernel_context& context) {
  shape s = output_shape_now(context, slice_shape);
  if (s == context.input(0).shape()) return context.set_output(0, context.take_input(0));
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), std::move(s));
  if (out.elements() == 0) return;
  const auto begin = integers_of(context, 1, "begin"), from = steps_of(in.shape()), to = steps_of(out.shape());
  strided_copy copy;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    copy.add(out.shape()[static_cast<int>(i)], from[i], to[i]);
    start += begin[i] * from[i];
  }
  copy.run(source_of(in), start, target_of(out), 0);
}

// The elements of a slice of a tensor of shape `whole` and, one behind the other, themselves: which of both is the source is said by the caller.
struct slice_axes {
  strided_copy reads, writes;
  std::int64_t start = 0;
};
inline slice_axes axes_of_slice(const strided_slice_plan& plan, const shape& whole) {
  slice_axes out;
  const auto steps = steps_of(whole), packed = steps_of(shape(plan.count));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t step = plan.count[i] > 1 ? plan.stride[i] * steps[i] : 0;
    out.reads.add(plan.count[i], step, packed[i]);
    out.writes.add(plan.count[i], packed[i], step);
    out.start += plan.begin[i] * steps[i];
  }
  return out;
}
inline strided_slice_plan slice_plan_now(const kernel_context& context, const shape& whole, int first) {
  std::vector<output_type> ignored(1);
  const shape_context shapes(context.about(), &context.input(0), static_cast<std::size_t>(context.input_count()), ignored);
  auto plan = plan_strided_slice(shapes, whole, first);
  if (!plan) context.fail("begin, end and strides must be vectors of integers");
  return std::move(*plan);
}

inline void compute_strided_slice(kernel_context& context) {
  const shape whole = context.input(0).shape();
  const strided_slice_plan plan = slice_plan_now(context, whole, 1);
  bool all = true;
  for (int i = 0; all && i < whole.rank(); ++i) {
    const auto d = static_cast<std::size_t>(i);
    all = plan.count[d] == whole[i] && (plan.stride[d] == 1 || whole[i] <= 1);
  }
  if (all) {
    tensor_value v = context.take_input(0);
    v.reshape(shape(plan.result));
    return context.set_output(0, std::move(v));
  }
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), shape(plan.result));
  if (out.elements() == 0) return;
  const slice_axes axes = axes_of_slice(plan, whole);
  axes.reads.run(source_of(in), axes.start, target_of(out), 0);
}

inline void compute_strided_slice_grad(kernel_context& context) {
  const shape whole = output_shape_now(context, strided_slice_grad_shape);
  const strided_slice_plan plan = slice_plan_now(context, whole, 1);
  const tensor_value& dy = context.input(4);
  tensor_value& out = context.allocate_output(0, dy.dtype(), whole);
  clear_elements(out);
  if (dy.elements() == 0) return;
  const slice_axes axes = axes_of_slice(plan, whole);
  axes.writes.run(source_of(dy), 0, target_of(out), axes.start);
}

// The indices, each in [0, size).
inline std::vector<std::int64_t> checked_indices(const kernel_context& context, int i, std::int64_t size) {
  auto out = integers_of(context, i, "indices");
  for (std::size_t k = 0; k < out.size(); ++k)
    if (out[k] < 0 || out[k] >= size)
      context.fail("indices" + position_text(context.input(i).shape(), static_cast<std::int64_t>(k)) + " = " + std::to_string(out[k]) + " is not in [0, " + std::to_string(size) + ")");
  return out;
}

// params[b, o, indices[b, ...], ...]: the first `batch` dimensions of both go together, those up to the axis are repeated.
inline void gather_along(kernel_context& context, shape s, int axis, int batch) {
  const tensor_value &params = context.input(0), &indices = context.input(1);
  const auto rows = checked_indices(context, 1, params.shape()[axis]);
  tensor_value& out = context.allocate_output(0, params.dtype(), std::move(s));
  if (out.elements() == 0) return;
  const std::int64_t batches = elements_between(params.shape(), 0, batch), outer = elements_between(params.shape(), batch, axis), length = elements_between(params.shape(), axis + 1, params.shape().rank());
  const std::int64_t each = indices.elements() / batches;
  element_source from = source_of(params);
  const element_target to = target_of(out);
  std::byte* at = to.data;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t o = 0; o < outer; ++o) {
      gather_rows(from, rows.data() + b * each, static_cast<std::size_t>(each), length, at);
      from.data += params.shape()[axis] * length * from.size;
      at += each * length * to.size;
    }
}

inline void compute_gather(kernel_context& context) { gather_along(context, output_shape_now(context, gather_shape), 0, 0); }
inline void compute_gather_v2(kernel_context& context) {
  shape s = output_shape_now(context, gather_v2_shape);
  const std::int64_t batch = context.about().attr<std::int64_t>("batch_dims");
  const int axis = axis_of(context, integers_of(context, 2, "axis")[0], context.input(0).shape().rank(), "axis");
  gather_along(context, std::move(s), axis, static_cast<int>(batch < 0 ? batch + context.input(1).shape().rank() : batch));
}

// Which slice of a tensor of shape `whole` each row of the indices names; slices are what is left behind the dimensions that a row names. Rows without
// entries, which name all of it, may be more than can be listed where nothing is to be moved: `moved` elements.
inline std::vector<std::int64_t> named_slices(const kernel_context& context, int i, const shape& whole, std::int64_t moved) {
  const shape& s = context.input(i).shape();
  if (moved == 0 && context.input(i).elements() == 0) return {};
  const std::int64_t depth = s[s.rank() - 1];
  const auto indices = integers_of(context, i, "indices");
  std::vector<std::int64_t> out(static_cast<std::size_t>(elements_between(s, 0, s.rank() - 1)), 0);
  for (std::size_t k = 0; k < out.size(); ++k)
    for (int d = 0; d < depth; ++d) {
      const std::int64_t at = indices[k * static_cast<std::size_t>(depth) + static_cast<std::size_t>(d)];
      if (at < 0 || at >= whole[d]) {
        const auto first = indices.begin() + static_cast<std::ptrdiff_t>(k) * depth;
        context.fail("indices" + position_text(shape(s.data(), static_cast<std::size_t>(s.rank() - 1)), static_cast<std::int64_t>(k)) + " = " + shape_text({first, first + depth}) +
                     " does not index into shape " + whole.text());
      }
      out[k] = out[k] * whole[d] + at;
    }
  return out;
}

inline void compute_gather_nd(kernel_context& context) {
  shape s = output_shape_now(context, gather_nd_shape);
  const tensor_value& params = context.input(0);
  const shape& index_shape = context.input(1).shape();
  tensor_value& out = context.allocate_output(0, params.dtype(), std::move(s));
  const auto rows = named_slices(context, 1, params.shape(), out.elements());
  if (out.elements() == 0) return;
  const std::int64_t length = elements_between(params.shape(), static_cast<int>(index_shape[index_shape.rank() - 1]), params.shape().rank());
  gather_rows(source_of(params), rows.data(), rows.size(), length, target_of(out).data);
}

/// What a scatter does with an element and its update.
enum class scatter_kind : unsigned char { update, add, subtract, maximum, minimum };

template <class T> void combine_rows(scatter_kind kind, const void* updates, const std::vector<std::int64_t>& rows, std::int64_t length, void* out) {
  const T* from = static_cast<const T*>(updates);
  for (const std::int64_t row : rows) {
    T* to = static_cast<T*>(out) + row * length;
    for (std::int64_t e = 0; e < length; ++e) {
      const T update = from[e];
      switch (kind) {
        case scatter_kind::add: to[e] = static_cast<T>(to[e] + update); break;
        case scatter_kind::subtract: to[e] = static_cast<T>(to[e] - update); break;
        case scatter_kind::maximum: to[e] = to[e] < update ? update : to[e]; break;
        case scatter_kind::minimum: to[e] = update < to[e] ? update : to[e]; break;
        default: to[e] = update; break;
      }
    }
    from += length;
  }
}

inline void append_rows(const tensor_value& updates, const std::vector<std::int64_t>& rows, std::int64_t length, tensor_value& out) {
  const std::string* from = updates.data<std::string>();
  for (const std::int64_t row : rows)
    for (std::int64_t e = 0; e < length; ++e) out.mutable_data<std::string>()[row * length + e] += *from++;
}

// Elements of `out` combined with their updates in the dtype in which kernels compute. Sums of bools are "or", of strings are joined.
inline void scatter_into(kernel_context& context, scatter_kind kind, const tensor_value& updates, const std::vector<std::int64_t>& rows, std::int64_t length, tensor_value& out) {
  const dtype type = out.dtype();
  if (kind == scatter_kind::update) return scatter_rows(source_of(updates), rows.data(), rows.size(), length, target_of(out).data);
  const bool sums = kind == scatter_kind::add || kind == scatter_kind::subtract;
  if (type == dtype::string && kind == scatter_kind::add) return append_rows(updates, rows, length, out);
  if (type == dtype::complex64 && sums) return combine_rows<float>(kind, updates.raw_data(), rows, 2 * length, out.mutable_raw_data());
  if (type == dtype::complex128 && sums) return combine_rows<double>(kind, updates.raw_data(), rows, 2 * length, out.mutable_raw_data());
  if (wide_dtype(type) == dtype::invalid || (type == dtype::boolean && kind != scatter_kind::add))
    context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
  const tensor_value more = widened(updates);
  tensor_value sum = widened(out);
  switch (sum.dtype()) {
    case dtype::float32: combine_rows<float>(kind, more.raw_data(), rows, length, sum.mutable_raw_data()); break;
    case dtype::float64: combine_rows<double>(kind, more.raw_data(), rows, length, sum.mutable_raw_data()); break;
    case dtype::int64:
      if (!sums) {
        combine_rows<std::int64_t>(kind, more.raw_data(), rows, length, sum.mutable_raw_data());
        break;
      }
      [[fallthrough]];  // sums wrap
    default: combine_rows<std::uint64_t>(kind, more.raw_data(), rows, length, sum.mutable_raw_data()); break;
  }
  if (sum.buffer().get() != out.buffer().get()) out = narrowed(std::move(sum), type);
}

inline void compute_scatter_nd(kernel_context& context) {
  const shape s = output_shape_now(context, scatter_nd_shape);
  const shape& index_shape = context.input(0).shape();
  const tensor_value& updates = context.input(1);
  const auto rows = named_slices(context, 0, s, updates.elements());
  tensor_value& out = context.allocate_output(0, updates.dtype(), s);
  clear_elements(out);
  if (updates.elements() != 0) scatter_into(context, scatter_kind::add, updates, rows, elements_between(s, static_cast<int>(index_shape[index_shape.rank() - 1]), s.rank()), out);
}

inline void tensor_scatter(kernel_context& context, scatter_kind kind) {
  const shape s = output_shape_now(context, tensor_scatter_shape), index_shape = context.input(1).shape();
  expect_same_dtype(context, 2, 0);
  const auto rows = named_slices(context, 1, s, context.input(2).elements());
  const void* old = elements_of(context.input(0));
  tensor_value& out = context.forward_or_allocate(0, 0, context.input(0).dtype(), s);
  if (elements_of(std::as_const(out)) != old) copy_elements(context.input(0), 0, out, 0, s.elements());
  const tensor_value& updates = context.input(2);
  if (updates.elements() != 0) scatter_into(context, kind, updates, rows, elements_between(s, static_cast<int>(index_shape[index_shape.rank() - 1]), s.rank()), out);
}
inline void compute_tensor_scatter_update(kernel_context& context) { tensor_scatter(context, scatter_kind::update); }
inline void compute_tensor_scatter_add(kernel_context& context) { tensor_scatter(context, scatter_kind::add); }
inline void compute_tensor_scatter_sub(kernel_context& context) { tensor_scatter(context, scatter_kind::subtract); }
inline void compute_tensor_scatter_max(kernel_context& context) { tensor_scatter(context, scatter_kind::maximum); }
inline void compute_tensor_scatter_min(kernel_context& context) { tensor_scatter(context, scatter_kind::minimum); }

inline void compute_reverse_v2(kernel_context& context) {
  const shape s = output_shape_now(context, reverse_v2_shape);
  const auto axes = integers_of(context, 1, "axis");
  if (axes.empty() || s.elements() <= 1) return context.set_output(0, context.take_input(0));
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), s);
  const auto steps = steps_of(s);
  auto from = steps;
  std::int64_t start = 0;
  for (const std::int64_t wanted : axes) {
    const auto d = static_cast<std::size_t>(axis_of(context, wanted, s.rank(), "axis"));
    start += (s[static_cast<int>(d)] - 1) * steps[d];
    from[d] = -steps[d];
  }
  strided_copy copy;
  for (std::size_t d = 0; d < steps.size(); ++d) copy.add(s[static_cast<int>(d)], from[d], steps[d]);
  copy.run(source_of(in), start, target_of(out), 0);
}

// Of each entry of the batch, the first elements along one dimension in reverse, the rest as they are.
inline void compute_reverse_sequence(kernel_context& context) {
  const shape s = output_shape_now(context, reverse_sequence_shape);
  const auto lengths = integers_of(context, 1, "seq_lengths");
  const auto seq = static_cast<int>(context.about().attr<std::int64_t>("seq_dim")), batch = static_cast<int>(context.about().attr<std::int64_t>("batch_dim"));
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0 || lengths[i] > s[seq]) context.fail("seq_lengths[" + std::to_string(i) + "] = " + std::to_string(lengths[i]) + " is not in [0, " + std::to_string(s[seq]) + "]");
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), s);
  if (out.elements() == 0) return;
  const auto steps = steps_of(s);
  const std::int64_t step = steps[static_cast<std::size_t>(seq)];
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    strided_copy reversed, rest;
    for (int d = 0; d < s.rank(); ++d) {
      const std::int64_t each = steps[static_cast<std::size_t>(d)];
      if (d == batch) continue;
      reversed.add(d == seq ? lengths[b] : s[d], d == seq ? -each : each, each);
      rest.add(d == seq ? s[d] - lengths[b] : s[d], each, each);
    }
    const std::int64_t start = static_cast<std::int64_t>(b) * steps[static_cast<std::size_t>(batch)];
    if (lengths[b] > 0) reversed.run(source_of(in), start + (lengths[b] - 1) * step, target_of(out), start);
    rest.run(source_of(in), start + lengths[b] * step, target_of(out), start + lengths[b] * step);
  }
}

inline constexpr kernel_function array_slice_functions[] = {
    {"Slice", compute_slice, 3},
    {"StridedSlice", compute_strided_slice, 4},
    {"StridedSliceGrad", compute_strided_slice_grad, 5, 1, kernel_cost::by_values},
    {"Gather", compute_gather, 2},
    {"GatherV2", compute_gather_v2, 3},
    {"GatherNd", compute_gather_nd, 2},
    {"ScatterNd", compute_scatter_nd, 3, 1, kernel_cost::by_values},
    {"TensorScatterUpdate", compute_tensor_scatter_update, 3},
    {"TensorScatterAdd", compute_tensor_scatter_add, 3},
    {"TensorScatterSub", compute_tensor_scatter_sub, 3},
    {"TensorScatterMax", compute_tensor_scatter_max, 3},
    {"TensorScatterMin", compute_tensor_scatter_min, 3},
    {"ReverseV2", compute_reverse_v2, 2},
    {"ReverseSequence", compute_reverse_sequence, 2},
};

inline std::unique_ptr<kernel> make_array_slice_kernel(const kernel_construction& what) {
  return std::make_unique<function_kernel>(*find_function(array_slice_functions, what.about.op()));
}
WEFT_DECL kernel_factory array_slice_kernel(std::string_view op) { return find_function(array_slice_functions, op) != nullptr ? &make_array_slice_kernel : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
