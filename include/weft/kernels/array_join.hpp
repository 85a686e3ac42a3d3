#ifndef WEFT_KERNELS_ARRAY_JOIN_HPP
#define WEFT_KERNELS_ARRAY_JOIN_HPP
// Kernels that put tensors together, take them apart, repeat or surround them.

#include <weft/kernels/function_kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/strided_copy.hpp>
#include <weft/ops/array_join.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of an op that joins, splits, repeats or pads; nullptr for other ops.
kernel_factory array_join_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

// Inputs `first` to `first + count` as blocks of each of the `outer` parts of the output, one after the other.
inline void join_blocks(kernel_context& context, int first, int count, shape s, int axis) {
  for (int i = first; i < first + count; ++i) expect_same_dtype(context, i, first);
  tensor_value& out = context.allocate_output(0, context.input(first).dtype(), std::move(s));
  if (out.elements() == 0) return;
  const std::int64_t outer = elements_between(out.shape(), 0, axis), whole = out.elements() / outer;
  std::int64_t at = 0;
  for (int i = first; i < first + count; ++i) {
    const std::int64_t block = context.input(i).elements() / outer;
    strided_copy copy;
    copy.add(outer, block, whole);
    copy.add(block, 1, 1);
    copy.run(source_of(context.input(i)), 0, target_of(out), at);
    at += block;
  }
}

inline void concat_values(kernel_context& context, shape_function rule, int first, int axis_input) {
  const int count = context.input_count() - 1;
  shape s = output_shape_now(context, rule);
  const int axis = axis_of(context, integers_of(context, axis_input, "the axis")[0], s.rank(), "axis");
  join_blocks(context, first, count, s, axis);
}
inline void compute_concat(kernel_context& context) { concat_values(context, concat_shape, 1, 0); }
inline void compute_concat_v2(kernel_context& context) { concat_values(context, concat_v2_shape, 0, context.input_count() - 1); }

inline void compute_pack(kernel_context& context) {
  shape s = output_shape_now(context, pack_shape);
  const int axis = axis_of(context, context.about().attr<std::int64_t>("axis"), s.rank(), "axis");
  join_blocks(context, 0, context.input_count(), s, axis);
}

// Outputs that are blocks of each of the `outer` parts of the input, one after the other.
inline void split_blocks(kernel_context& context, int input, int axis, const std::vector<output_type>& parts) {
  const tensor_value& in = context.input(input);
  const std::int64_t outer = elements_between(in.shape(), 0, axis), whole = outer == 0 ? 0 : in.elements() / outer;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tensor_value& out = context.allocate_output(static_cast<int>(i), in.dtype(), found_shape(context, parts[i]));
    if (out.elements() == 0) continue;
    const std::int64_t block = out.elements() / outer;
    strided_copy copy;
    copy.add(outer, whole, block);
    copy.add(block, 1, 1);
    copy.run(source_of(in), at, target_of(out), 0);
    at += block;
  }
}

// A single part is the input itself, in the shape of the part.
inline void split_values(kernel_context& context, shape_function rule, int input, int axis) {
  const auto parts = outputs_now(context, rule);
  if (parts.size() != 1) return split_blocks(context, input, axis, parts);
  tensor_value whole = context.take_input(input);
  whole.reshape(found_shape(context, parts[0]));
  context.set_output(0, std::move(whole));
}

inline void compute_split(kernel_context& context) {
  (void)outputs_now(context, split_shape);
  split_values(context, split_shape, 1, axis_of(context, integers_of(context, 0, "split_dim")[0], context.input(1).shape().rank(), "split_dim"));
}
inline void compute_split_v(kernel_context& context) {
  (void)outputs_now(context, split_v_shape);
  split_values(context, split_v_shape, 0, axis_of(context, integers_of(context, 2, "split_dim")[0], context.input(0).shape().rank(), "split_dim"));
}
inline void compute_unpack(kernel_context& context) {
  split_values(context, unpack_shape, 0, axis_of(context, context.about().attr<std::int64_t>("axis"), context.input(0).shape().rank(), "axis"));
}

// The sizes of all inputs but along the axis are equal; each begins where those before it end.
inline void compute_concat_offset(kernel_context& context) {
  const auto found = outputs_now(context, concat_offset_shape);
  if (static_cast<int>(found.size()) != context.input_count() - 1) context.fail("expected an output for each of the " + std::to_string(context.input_count() - 1) + " shapes, found " + std::to_string(found.size()));
  const std::vector<std::int64_t> first = integers_of(context, 1, "a shape");
  const int axis = axis_of(context, integers_of(context, 0, "concat_dim")[0], static_cast<int>(first.size()), "concat_dim");
  std::int64_t at = 0;
  for (int i = 1; i < context.input_count(); ++i) {
    expect_same_dtype(context, i, 1);
    const std::vector<std::int64_t> sizes = integers_of(context, i, "a shape");
    bool fits = sizes.size() == first.size();
    for (std::size_t d = 0; fits && d < sizes.size(); ++d) fits = static_cast<int>(d) == axis || sizes[d] == first[d];
    if (!fits) context.fail("shapes " + shape_text(first) + " of input 0 and " + shape_text(sizes) + " of input " + std::to_string(i - 1) + " differ in another dimension than " + std::to_string(axis));
    tensor_value& out = context.allocate_output(i - 1, context.input(1).dtype(), shape{static_cast<std::int64_t>(sizes.size())});
    clear_elements(out);
    if (out.dtype() == dtype::int64) out.mutable_data<std::int64_t>()[axis] = at;
    else out.mutable_data<std::int32_t>()[axis] = static_cast<std::int32_t>(at);
    const std::int64_t size = sizes[static_cast<std::size_t>(axis)], most = out.dtype() == dtype::int64 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max();
    if (size < 0 || size > most - at) context.fail("size " + std::to_string(size) + " of input " + std::to_string(i - 1) + " along dimension " + std::to_string(axis) + " is negative or too large");
    at += size;
  }
}

inline void compute_tile(kernel_context& context) {
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), output_shape_now(context, tile_shape));
  if (out.elements() == 0) return;
  const auto from = steps_of(in.shape()), to = steps_of(out.shape());
  strided_copy copy;
  for (int i = 0; i < in.shape().rank(); ++i) {
    const auto d = static_cast<std::size_t>(i);
    copy.add(out.shape()[i] / in.shape()[i], 0, to[d] * in.shape()[i]);
    copy.add(in.shape()[i], from[d], to[d]);
  }
  copy.run(source_of(in), 0, target_of(out), 0);
}

inline void compute_broadcast_to(kernel_context& context) {
  shape s = output_shape_now(context, broadcast_to_shape);
  if (s == context.input(0).shape()) return context.set_output(0, context.take_input(0));
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), s);
  if (out.elements() == 0) return;
  const auto from = steps_of(in.shape()), to = steps_of(s);
  const int more = s.rank() - in.shape().rank();
  strided_copy copy;
  for (int i = 0; i < s.rank(); ++i) copy.add(s[i], i < more || in.shape()[i - more] == 1 ? 0 : from[static_cast<std::size_t>(i - more)], to[static_cast<std::size_t>(i)]);
  copy.run(source_of(in), 0, target_of(out), 0);
}

// The element at which the input begins inside a padded output.
inline std::int64_t padded_start(const std::vector<std::int64_t>& paddings, const std::vector<std::int64_t>& steps) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) out += paddings[2 * i] * steps[i];
  return out;
}

// The input inside the output, which begins at element `at`.
inline void copy_inside(const tensor_value& in, tensor_value& out, std::int64_t at) {
  if (in.elements() == 0) return;
  const auto from = steps_of(in.shape()), to = steps_of(out.shape());
  strided_copy copy;
  for (int i = 0; i < in.shape().rank(); ++i) copy.add(in.shape()[i], from[static_cast<std::size_t>(i)], to[static_cast<std::size_t>(i)]);
  copy.run(source_of(in), 0, target_of(out), at);
}

inline void compute_pad(kernel_context& context) {
  const tensor_value& in = context.input(0);
  const bool valued = context.input_count() == 3;
  if (valued) expect_same_dtype(context, 2, 0);
  shape s = output_shape_now(context, pad_shape);
  if (s == in.shape()) return context.set_output(0, context.take_input(0));
  tensor_value& out = context.allocate_output(0, in.dtype(), std::move(s));
  if (out.elements() == 0) return;
  if (valued) fill_elements(out, context.input(2));
  else clear_elements(out);
  copy_inside(in, out, padded_start(integers_of(context, 1, "paddings"), steps_of(out.shape())));
}

// What is mirrored along one dimension of the padded shape: `count` slices at both sides of each of its edges, the inner ones nearest to the edge (or one further) first.
struct mirror_run {
  std::int64_t count, inner, inner_step, outer;
};
// The border before and the border behind dimension `i`: where the mirrored slices are inside, and where the border's slice nearest to the edge is.
inline void mirror_runs(mirror_run (&runs)[2], std::int64_t before, std::int64_t size, std::int64_t after, std::int64_t skipped) {
  runs[0] = {before, before + skipped, 1, before - 1};
  runs[1] = {after, before + size - 1 - skipped, -1, before + size};
}

// Axes of the slices that are mirrored along dimension `i` of `s`: whole inner dimensions, and of the outer ones what is not border.
inline strided_copy mirror_axes(const shape& s, const std::vector<std::int64_t>& paddings, int i, const mirror_run& run, std::int64_t& start) {
  const auto steps = steps_of(s);
  strided_copy copy;
  start = 0;
  for (int d = 0; d < s.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (d == i) {
      const std::int64_t inner = run.inner_step * steps[at];
      copy.add(run.count, inner, -inner);
      continue;
    }
    const bool outer = d < i;
    copy.add(outer ? s[d] - paddings[2 * at] - paddings[2 * at + 1] : s[d], steps[at], steps[at]);
    if (outer) start += paddings[2 * at] * steps[at];
  }
  return copy;
}

// 1. The input inside. 2. Dimension by dimension, from the innermost, the borders from what stands inside already.
inline void compute_mirror_pad(kernel_context& context) {
  const tensor_value& in = context.input(0);
  shape s = output_shape_now(context, mirror_pad_shape);
  if (s == in.shape()) return context.set_output(0, context.take_input(0));
  tensor_value& out = context.allocate_output(0, in.dtype(), std::move(s));
  if (out.elements() == 0) return;
  const auto paddings = integers_of(context, 1, "paddings");
  const auto steps = steps_of(out.shape());
  copy_inside(in, out, padded_start(paddings, steps));
  const std::int64_t skipped = context.about().attr<std::string>("mode") == "REFLECT" ? 1 : 0;
  for (int i = out.shape().rank() - 1; i >= 0; --i) {
    const auto d = static_cast<std::size_t>(i);
    mirror_run runs[2];
    mirror_runs(runs, paddings[2 * d], in.shape()[i], paddings[2 * d + 1], skipped);
    for (const mirror_run& run : runs) {
      std::int64_t start = 0;
      const strided_copy copy = mirror_axes(out.shape(), paddings, i, run, start);
      if (run.count > 0) copy.run(source_of(out), start + run.inner * steps[d], target_of(out), start + run.outer * steps[d]);
    }
  }
}

// Adds to elements of an array others of the same array; steps in elements, axes outermost first.
template <class T> void add_mirrored(T* data, const shape& s, const std::vector<std::int64_t>& paddings, int i, const mirror_run& run) {
  const auto steps = steps_of(s);
  std::int64_t outer = 1, inner = steps[static_cast<std::size_t>(i)];
  for (int d = 0; d < i; ++d) outer *= s[d] - paddings[2 * static_cast<std::size_t>(d)] - paddings[2 * static_cast<std::size_t>(d) + 1];
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t start = 0, rest = o;
    for (int d = i - 1; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      const std::int64_t size = s[d] - paddings[2 * at] - paddings[2 * at + 1];
      start += (rest % size + paddings[2 * at]) * steps[at];
      rest /= size;
    }
    for (std::int64_t k = 0; k < run.count; ++k) {
      T* to = data + start + (run.inner + k * run.inner_step) * inner;
      const T* from = data + start + (run.outer - k * run.inner_step) * inner;
      for (std::int64_t e = 0; e < inner; ++e) to[e] = static_cast<T>(to[e] + from[e]);
    }
  }
}

// The gradient of what was copied several times is the sum: dimension by dimension, from the outermost, the borders are added to what they mirror; then the inside is cut out.
inline void compute_mirror_pad_grad(kernel_context& context) {
  const dtype type = context.input(0).dtype();
  shape s = output_shape_now(context, mirror_pad_grad_shape);
  if (wide_dtype(type) == dtype::invalid || type == dtype::boolean) context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
  if (s == context.input(0).shape()) return context.set_output(0, context.take_input(0));
  const tensor_value given = widened(context.input(0));
  tensor_value whole(given.dtype(), given.shape()), inside(given.dtype(), s);
  if (whole.elements() > 0) std::memcpy(whole.mutable_raw_data(), given.raw_data(), whole.bytes());
  const auto paddings = integers_of(context, 1, "paddings");
  const auto steps = steps_of(whole.shape());
  const std::int64_t skipped = context.about().attr<std::string>("mode") == "REFLECT" ? 1 : 0;
  for (int i = 0; inside.elements() > 0 && i < s.rank(); ++i) {
    const auto d = static_cast<std::size_t>(i);
    mirror_run runs[2];
    mirror_runs(runs, paddings[2 * d], s[i], paddings[2 * d + 1], skipped);
    for (const mirror_run& run : runs) {
      switch (given.dtype()) {
        case dtype::float32: add_mirrored(whole.mutable_data<float>(), whole.shape(), paddings, i, run); break;
        case dtype::float64: add_mirrored(whole.mutable_data<double>(), whole.shape(), paddings, i, run); break;
        default: add_mirrored(reinterpret_cast<std::uint64_t*>(whole.mutable_raw_data()), whole.shape(), paddings, i, run); break;
      }
    }
  }
  if (inside.elements() > 0) {
    const auto to = steps_of(s);
    strided_copy copy;
    for (int i = 0; i < s.rank(); ++i) copy.add(s[i], steps[static_cast<std::size_t>(i)], to[static_cast<std::size_t>(i)]);
    copy.run(source_of(whole), padded_start(paddings, steps), target_of(inside), 0);
  }
  context.set_output(0, narrowed(std::move(inside), type));
}

inline constexpr kernel_function array_join_functions[] = {
    {"Concat", compute_concat, -2},
    {"ConcatV2", compute_concat_v2, -2},
    {"ConcatOffset", compute_concat_offset, -2, -1, kernel_cost::cheap},
    {"Pack", compute_pack, -1},
    {"Unpack", compute_unpack, 1, -1},
    {"Split", compute_split, 2, -1},
    {"SplitV", compute_split_v, 3, -1},
    {"Tile", compute_tile, 2, 1, kernel_cost::by_values},
    {"BroadcastTo", compute_broadcast_to, 2, 1, kernel_cost::by_values},
    {"Pad", compute_pad, 2, 1, kernel_cost::by_values},
    {"PadV2", compute_pad, 3, 1, kernel_cost::by_values},
    {"MirrorPad", compute_mirror_pad, 2, 1, kernel_cost::by_values},
    {"MirrorPadGrad", compute_mirror_pad_grad, 2},
};

inline std::unique_ptr<kernel> make_array_join_kernel(const kernel_construction& what) {
  return std::make_unique<function_kernel>(*find_function(array_join_functions, what.about.op()));
}
WEFT_DECL kernel_factory array_join_kernel(std::string_view op) { return find_function(array_join_functions, op) != nullptr ? &make_array_join_kernel : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
