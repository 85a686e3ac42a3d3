#ifndef WEFT_KERNELS_ARRAY_LAYOUT_HPP
#define WEFT_KERNELS_ARRAY_LAYOUT_HPP
// Kernels that move dimensions: transpositions, blocks between space, batch and depth, and diagonals.

#include <weft/kernels/function_kernel.hpp>
#include <weft/kernels/strided_copy.hpp>
#include <weft/ops/array_layout.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an op that moves dimensions; nullptr for other ops.
kernel_factory array_layout_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

// Whether dimensions of more than one element keep their order.
inline bool keeps_order(const std::vector<int>& perm, const shape& in) noexcept {
  int last = -1;
  for (const int d : perm) {
    if (in[d] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

inline void compute_transpose(kernel_context& context) {
  shape s = output_shape_now(context, transpose_shape);
  std::vector<int> perm;
  for (const std::int64_t wanted : integers_of(context, 1, "perm")) perm.push_back(axis_of(context, wanted, s.rank(), "perm"));
  if (s.elements() == 0 || keeps_order(perm, context.input(0).shape())) {
    tensor_value v = context.take_input(0);
    v.reshape(std::move(s));
    return context.set_output(0, std::move(v));
  }
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), std::move(s));
  const auto from = steps_of(in.shape()), to = steps_of(out.shape());
  strided_copy copy;
  for (std::size_t i = 0; i < perm.size(); ++i) copy.add(out.shape()[static_cast<int>(i)], from[static_cast<std::size_t>(perm[i])], to[i]);
  copy.run(source_of(in), 0, target_of(out), 0);
}

template <class T> void invert_permutation(kernel_context& context, const std::vector<std::int64_t>& perm, tensor_value& out) {
  const auto size = static_cast<std::int64_t>(perm.size());
  T* to = out.mutable_data<T>();
  std::fill_n(to, perm.size(), T(-1));
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] < 0 || perm[i] >= size) context.fail("x[" + std::to_string(i) + "] = " + std::to_string(perm[i]) + " is not in [0, " + std::to_string(size) + ")");
    if (to[perm[i]] != T(-1)) context.fail("x names " + std::to_string(perm[i]) + " twice");
    to[perm[i]] = static_cast<T>(i);
  }
}
inline void compute_invert_permutation(kernel_context& context) {
  shape s = output_shape_now(context, invert_permutation_shape);
  const auto perm = integers_of(context, 0, "x");
  tensor_value& out = context.allocate_output(0, context.input(0).dtype(), std::move(s));
  if (out.dtype() == dtype::int64) invert_permutation<std::int64_t>(context, perm, out);
  else invert_permutation<std::int32_t>(context, perm, out);
}

// An image whose blocks lie in space and the one where they lie in depth: the steps of an element's place in a block (row, column), then those of the block and the channel.
struct depth_axes {
  std::int64_t extent[6], space[6], deep[6];
};
inline depth_axes axes_of_depth(const shape& deep, std::int64_t block, bool channels_last) {
  const std::int64_t batch = deep[0], height = deep[channels_last ? 1 : 2], width = deep[channels_last ? 2 : 3], whole = deep[channels_last ? 3 : 1], channels = whole / (block * block);
  const std::int64_t pixel = channels_last ? channels : 1, row = width * block * pixel, deep_pixel = channels_last ? whole : 1, plane = height * width;
  const std::int64_t channel = channels_last ? 1 : plane * block * block, deep_channel = channels_last ? 1 : plane;
  return {{batch, height, block, width, block, channels},
          {plane * block * block * channels, row * block, row, pixel * block, pixel, channel},
          {plane * whole, width * deep_pixel, block * channels * deep_channel, deep_pixel, channels * deep_channel, deep_channel}};
}

enum class depth_direction : unsigned char { to_depth, to_space };
inline void move_depth(kernel_context& context, shape_function rule, depth_direction direction) {
  const std::string& format = context.about().attr<std::string>("data_format");
  if (format != "NHWC" && format != "NCHW") context.fail(error_code::unimplemented, "no kernel of this op takes data in the format '" + format + "'");
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), output_shape_now(context, rule));
  if (out.elements() == 0) return;
  const bool last = format == "NHWC";
  const depth_axes axes = axes_of_depth(direction == depth_direction::to_depth ? out.shape() : in.shape(), context.about().attr<std::int64_t>("block_size"), last);
  // From the outermost dimension of the target to its innermost.
  static constexpr int orders[2][2][6] = {{{0, 2, 4, 5, 1, 3}, {0, 1, 3, 2, 4, 5}}, {{0, 5, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}}};
  strided_copy copy;
  for (const int i : orders[direction == depth_direction::to_depth ? 0 : 1][last ? 1 : 0]) {
    if (direction == depth_direction::to_depth) copy.add(axes.extent[i], axes.space[i], axes.deep[i]);
    else copy.add(axes.extent[i], axes.deep[i], axes.space[i]);
  }
  copy.run(source_of(in), 0, target_of(out), 0);
}
inline void compute_space_to_depth(kernel_context& context) { move_depth(context, space_to_depth_shape, depth_direction::to_depth); }
inline void compute_depth_to_space(kernel_context& context) { move_depth(context, depth_to_space_shape, depth_direction::to_space); }

// What moves between the batch and the dimensions behind it: block sizes, and how far the tensor in space begins behind the first block.
struct batch_blocks {
  std::vector<std::int64_t> sizes, before;
};
inline batch_blocks batch_blocks_of(const kernel_context& context, const char* borders) {
  const bool fixed = context.input_count() == 2;
  batch_blocks out;
  out.sizes = fixed ? std::vector<std::int64_t>(2, context.about().attr<std::int64_t>("block_size")) : integers_of(context, 1, "block_shape");
  const auto values = integers_of(context, fixed ? 1 : 2, borders);
  for (std::size_t i = 0; i < out.sizes.size(); ++i) out.before.push_back(values[2 * i]);
  return out;
}

// One place in the blocks, at `offsets`: every element of the tensor in space that has it, and where they lie in that part of the batch. False when there is none.
struct batch_part {
  strided_copy gathers, spreads;
  std::int64_t space_at = 0, batch_at = 0;
};
inline bool plan_batch_part(const shape& space, const shape& batched, const batch_blocks& blocks, const std::vector<std::int64_t>& offsets, std::int64_t part, batch_part& out) {
  const auto from = steps_of(space), to = steps_of(batched);
  out.gathers.add(space[0], from[0], to[0]);
  out.spreads.add(space[0], to[0], from[0]);
  out.batch_at = part * space[0] * to[0];
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t size = blocks.sizes[i], before = blocks.before[i], extent = space[static_cast<int>(i) + 1];
    // Blocks whose element at this offset is inside: before <= o * size + offset < before + extent.
    const std::int64_t missing = before - offsets[i], first = missing <= 0 ? 0 : (missing - 1) / size + 1;
    const std::int64_t room = missing + extent, last = std::min(room <= 0 ? 0 : (room - 1) / size + 1, batched[static_cast<int>(i) + 1]);
    if (last <= first) return false;
    out.gathers.add(last - first, from[i + 1] * size, to[i + 1]);
    out.spreads.add(last - first, to[i + 1], from[i + 1] * size);
    out.space_at += (first * size - missing) * from[i + 1];
    out.batch_at += first * to[i + 1];
  }
  for (int d = static_cast<int>(offsets.size()) + 1; d < space.rank(); ++d) {
    out.gathers.add(space[d], from[static_cast<std::size_t>(d)], to[static_cast<std::size_t>(d)]);
    out.spreads.add(space[d], to[static_cast<std::size_t>(d)], from[static_cast<std::size_t>(d)]);
  }
  return true;
}

enum class batch_direction : unsigned char { to_batch, to_space };
inline void move_batch(kernel_context& context, shape_function rule, batch_direction direction) {
  const bool to_batch = direction == batch_direction::to_batch;
  shape s = output_shape_now(context, rule);
  const batch_blocks blocks = batch_blocks_of(context, to_batch ? "paddings" : "crops");
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), std::move(s));
  if (to_batch) clear_elements(out);
  if (out.elements() == 0 || in.elements() == 0) return;
  const shape &space = to_batch ? in.shape() : out.shape(), &batched = to_batch ? out.shape() : in.shape();
  std::vector<std::int64_t> offsets(blocks.sizes.size(), 0);
  const std::int64_t parts = batched[0] / space[0];
  for (std::int64_t part = 0; part < parts; ++part) {
    batch_part plan;
    if (plan_batch_part(space, batched, blocks, offsets, part, plan)) {
      if (to_batch) plan.gathers.run(source_of(in), plan.space_at, target_of(out), plan.batch_at);
      else plan.spreads.run(source_of(in), plan.batch_at, target_of(out), plan.space_at);
    }
    for (std::size_t i = offsets.size(); i > 0 && ++offsets[i - 1] == blocks.sizes[i - 1]; --i) offsets[i - 1] = 0;
  }
}
inline void compute_space_to_batch_nd(kernel_context& context) { move_batch(context, space_to_batch_nd_shape, batch_direction::to_batch); }
inline void compute_batch_to_space_nd(kernel_context& context) { move_batch(context, batch_to_space_nd_shape, batch_direction::to_space); }
inline void compute_space_to_batch(kernel_context& context) { move_batch(context, space_to_batch_shape, batch_direction::to_batch); }
inline void compute_batch_to_space(kernel_context& context) { move_batch(context, batch_to_space_shape, batch_direction::to_space); }

// Diagonals of `matrices` matrices: `length` elements each, whose distance is one more than a row.
struct diagonal_axes {
  std::int64_t matrices, length, matrix, step;
};
inline void read_diagonals(const tensor_value& in, tensor_value& out, const diagonal_axes& at) {
  if (out.elements() == 0) return;
  strided_copy copy;
  copy.add(at.matrices, at.matrix, at.length);
  copy.add(at.length, at.step, 1);
  copy.run(source_of(in), 0, target_of(out), 0);
}
inline void write_diagonals(const tensor_value& diagonal, tensor_value& out, const diagonal_axes& at) {
  if (diagonal.elements() == 0) return;
  strided_copy copy;
  copy.add(at.matrices, at.length, at.matrix);
  copy.add(at.length, 1, at.step);
  copy.run(source_of(diagonal), 0, target_of(out), 0);
}
// The diagonals of the last two dimensions.
inline diagonal_axes matrix_diagonals(const shape& s) {
  const std::int64_t rows = s[s.rank() - 2], columns = s[s.rank() - 1];
  return {elements_between(s, 0, s.rank() - 2), std::min(rows, columns), rows * columns, columns + 1};
}

inline void compute_diag(kernel_context& context) {
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), output_shape_now(context, diag_shape));
  clear_elements(out);
  write_diagonals(in, out, {1, in.elements(), 0, in.elements() + 1});
}
inline void compute_diag_part(kernel_context& context) {
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), output_shape_now(context, diag_part_shape));
  read_diagonals(in, out, {1, out.elements(), 0, out.elements() + 1});
}
inline void compute_matrix_diag(kernel_context& context) {
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), output_shape_now(context, matrix_diag_shape));
  clear_elements(out);
  if (out.elements() > 0) write_diagonals(in, out, matrix_diagonals(out.shape()));
}
inline void compute_matrix_diag_part(kernel_context& context) {
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, in.dtype(), output_shape_now(context, matrix_diag_part_shape));
  if (out.elements() > 0) read_diagonals(in, out, matrix_diagonals(in.shape()));
}

// The input in storage that may be written.
inline tensor_value& own_output(kernel_context& context, const shape& s) {
  const void* old = elements_of(context.input(0));
  tensor_value& out = context.forward_or_allocate(0, 0, context.input(0).dtype(), s);
  if (elements_of(std::as_const(out)) != old) copy_elements(context.input(0), 0, out, 0, s.elements());
  return out;
}

inline void compute_matrix_set_diag(kernel_context& context) {
  const shape s = output_shape_now(context, matrix_set_diag_shape);
  expect_same_dtype(context, 1, 0);
  tensor_value& out = own_output(context, s);
  if (out.elements() > 0) write_diagonals(context.input(1), out, matrix_diagonals(s));
}

// What is further below the diagonal than `lower` or above it than `upper` becomes zero; negative numbers keep everything.
inline void compute_matrix_band_part(kernel_context& context) {
  const shape s = output_shape_now(context, matrix_band_part_shape);
  const std::int64_t rows = s[s.rank() - 2], columns = s[s.rank() - 1], lower = integers_of(context, 1, "num_lower")[0], upper = integers_of(context, 2, "num_upper")[0];
  if (lower > rows) context.fail("num_lower must be negative or at most the number of rows " + std::to_string(rows) + ", found " + std::to_string(lower));
  if (upper > columns) context.fail("num_upper must be negative or at most the number of columns " + std::to_string(columns) + ", found " + std::to_string(upper));
  if (!is_plain(context.input(0).dtype())) context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(context.input(0).dtype()));
  tensor_value& out = own_output(context, s);
  const auto size = static_cast<std::int64_t>(size_of(out.dtype()));
  const std::int64_t matrices = out.elements() == 0 ? 0 : elements_between(s, 0, s.rank() - 2);
  std::byte* row = out.mutable_raw_data();
  for (std::int64_t m = 0; m < matrices; ++m)
    for (std::int64_t r = 0; r < rows; ++r, row += columns * size) {
      const std::int64_t first = std::min(lower < 0 ? 0 : std::max<std::int64_t>(r - lower, 0), columns), last = upper < 0 ? columns : std::min(r + upper + 1, columns);
      std::memset(row, 0, static_cast<std::size_t>(first * size));
      if (last < columns) std::memset(row + last * size, 0, static_cast<std::size_t>((columns - last) * size));
    }
}

inline constexpr kernel_function array_layout_functions[] = {
    {"Transpose", compute_transpose, 2},
    {"InvertPermutation", compute_invert_permutation, 1},
    {"SpaceToDepth", compute_space_to_depth, 1},
    {"DepthToSpace", compute_depth_to_space, 1},
    {"SpaceToBatchND", compute_space_to_batch_nd, 3, 1, kernel_cost::by_values},
    {"BatchToSpaceND", compute_batch_to_space_nd, 3},
    {"SpaceToBatch", compute_space_to_batch, 2, 1, kernel_cost::by_values},
    {"BatchToSpace", compute_batch_to_space, 2},
    {"Diag", compute_diag, 1, 1, kernel_cost::by_values},
    {"DiagPart", compute_diag_part, 1},
    {"MatrixDiag", compute_matrix_diag, 1, 1, kernel_cost::by_values},
    {"MatrixDiagPart", compute_matrix_diag_part, 1},
    {"MatrixSetDiag", compute_matrix_set_diag, 2},
    {"MatrixBandPart", compute_matrix_band_part, 3},
};

inline std::unique_ptr<kernel> make_array_layout_kernel(const kernel_construction& what) {
  return std::make_unique<function_kernel>(*find_function(array_layout_functions, what.about.op()));
}
WEFT_DECL kernel_factory array_layout_kernel(std::string_view op) { return find_function(array_layout_functions, op) != nullptr ? &make_array_layout_kernel : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
