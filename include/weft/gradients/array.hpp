#ifndef WEFT_GRADIENTS_ARRAY_HPP
#define WEFT_GRADIENTS_ARRAY_HPP
// Gradients of ops that make, shape, join and move elements.

#include <weft/gradients/array_select.hpp>
#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#include <numeric>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// 0, 1, ... up to a rank.
inline output axes_up_to(const gradient_context& c, output x) {
  const int rank = gradient_context::shape(x).rank();
  if (rank == dynamic_rank) return c.add("Range", {c.integer(0), c.rank_of(x), c.integer(1)});
  std::vector<std::int64_t> all(static_cast<std::size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  return c.integers(all);
}

inline void fill_gradient(gradient_context& c) { c.set(1, c.sum(c.gradient(), axes_up_to(c, c.gradient()))); }
// The elements in the shape that the input had.
inline void reshape_gradient(gradient_context& c) { c.set(0, c.reshape_like(c.gradient(), c.input(0))); }
inline void broadcast_to_gradient(gradient_context& c) { c.set(0, c.sum_to(c.gradient(), c.input(0), c.result())); }

// Ops that undo each other.
inline void inverse_by(gradient_context& c, const char* op, attr_map attrs) { c.set(0, c.add(op, {c.gradient()}, std::move(attrs))); }
inline void depth_to_space_gradient(gradient_context& c) { inverse_by(c, "SpaceToDepth", {{"block_size", c.attr_of("block_size")}, {"data_format", c.attr_of("data_format")}}); }
inline void space_to_depth_gradient(gradient_context& c) { inverse_by(c, "DepthToSpace", {{"block_size", c.attr_of("block_size")}, {"data_format", c.attr_of("data_format")}}); }
inline void diag_gradient(gradient_context& c) { inverse_by(c, "DiagPart", {}); }
inline void diag_part_gradient(gradient_context& c) { inverse_by(c, "Diag", {}); }
inline void matrix_diag_gradient(gradient_context& c) { inverse_by(c, "MatrixDiagPart", {}); }
inline void matrix_diag_part_gradient(gradient_context& c) { c.set(0, c.add("MatrixSetDiag", {c.zeros_like(c.input(0)), c.gradient()})); }
// What was replaced has none.
inline void matrix_set_diag_gradient(gradient_context& c) {
  if (c.wants(0)) c.set(0, c.add("MatrixSetDiag", {c.gradient(), c.zeros_like(c.input(1))}));
  if (c.wants(1)) c.set(1, c.add("MatrixDiagPart", {c.gradient()}));
}
inline void matrix_band_part_gradient(gradient_context& c) { c.set(0, c.add("MatrixBandPart", {c.gradient(), c.input(1), c.input(2)})); }
inline void space_to_batch_gradient(gradient_context& c) { c.set(0, c.add("BatchToSpaceND", {c.gradient(), c.input(1), c.input(2)})); }
inline void batch_to_space_gradient(gradient_context& c) { c.set(0, c.add("SpaceToBatchND", {c.gradient(), c.input(1), c.input(2)})); }
inline void space_to_batch_v1_gradient(gradient_context& c) { c.set(0, c.add("BatchToSpace", {c.gradient(), c.input(1)}, {{"block_size", c.attr_of("block_size")}})); }
inline void batch_to_space_v1_gradient(gradient_context& c) { c.set(0, c.add("SpaceToBatch", {c.gradient(), c.input(1)}, {{"block_size", c.attr_of("block_size")}})); }
inline void reverse_gradient(gradient_context& c) { c.set(0, c.add("ReverseV2", {c.gradient(), c.input(1)})); }
inline void reverse_sequence_gradient(gradient_context& c) {
  c.set(0, c.add("ReverseSequence", {c.gradient(), c.input(1)}, {{"seq_dim", c.attr_of("seq_dim")}, {"batch_dim", c.attr_of("batch_dim")}}));
}
inline void transpose_gradient(gradient_context& c) {
  const auto order = c.integers_of(c.input(1));
  if (!order) return c.set(0, c.add("Transpose", {c.gradient(), c.add("InvertPermutation", {c.input(1)})}));
  const auto rank = static_cast<std::int64_t>(order->size());
  std::vector<std::int64_t> inverse(order->size());
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t from = (*order)[static_cast<std::size_t>(i)];
    inverse[static_cast<std::size_t>(from < 0 ? from + rank : from)] = i;
  }
  c.set(0, c.add("Transpose", {c.gradient(), c.integers(inverse, gradient_context::dtype_of(c.input(1)))}));
}

// Joins: each part gets its piece of what arrived.
inline void concat_parts_gradient(gradient_context& c, int first, int count, output axis) {
  if (count == 1) return c.set(first, c.gradient_as_it_is());
  const output g = c.gradient();
  const int rank = gradient_context::shape(c.input(first)).rank();
  // 1. Where the axis and the sizes along it are known, slices with constant bounds.
  const auto known = c.integers_of(axis);
  bool decided = known && rank != dynamic_rank;
  const std::int64_t along = decided ? ((*known)[0] < 0 ? (*known)[0] + rank : (*known)[0]) : 0;
  for (int i = 0; decided && i < count; ++i) decided = gradient_context::shape(c.input(first + i)).known_rank() && gradient_context::shape(c.input(first + i))[static_cast<int>(along)] >= 0;
  if (decided) {
    std::vector<std::int64_t> begin(static_cast<std::size_t>(rank), 0), size(static_cast<std::size_t>(rank), -1);
    for (int i = 0; i < count; ++i) {
      const std::int64_t length = gradient_context::shape(c.input(first + i))[static_cast<int>(along)];
      size[static_cast<std::size_t>(along)] = length;
      if (c.wants(first + i)) c.set(first + i, c.add("Slice", {g, c.integers(begin), c.integers(size)}));
      begin[static_cast<std::size_t>(along)] += length;
    }
    return;
  }
  // 2. Else the bounds are found when it runs.
  std::vector<output> shapes{c.add("FloorMod", {c.cast(axis, dtype::int32), c.rank_of(c.input(first))})};
  for (int i = 0; i < count; ++i) shapes.push_back(c.shape_of(c.input(first + i)));
  const std::vector<output> sizes(shapes.begin() + 1, shapes.end());
  const node* offsets = c.add_list("ConcatOffset", std::move(shapes), {{"N", count}}).from;
  for (int i = 0; i < count; ++i)
    if (c.wants(first + i)) c.set(first + i, c.add("Slice", {g, {offsets, i}, sizes[static_cast<std::size_t>(i)]}));
}
inline void concat_gradient(gradient_context& c) { concat_parts_gradient(c, 1, c.input_count() - 1, c.input(0)); }
inline void concat_v2_gradient(gradient_context& c) { concat_parts_gradient(c, 0, c.input_count() - 1, c.input(c.input_count() - 1)); }
inline void join_outputs(gradient_context& c, int value, output axis) {
  if (c.output_count() == 1) return c.set(value, c.gradient_as_it_is());
  std::vector<output> parts;
  for (int i = 0; i < c.output_count(); ++i) parts.push_back(c.gradient(i));
  parts.push_back(axis);
  c.set(value, c.add_list("ConcatV2", std::move(parts), {{"N", c.output_count()}}));
}
inline void split_gradient(gradient_context& c) { join_outputs(c, 1, c.input(0)); }
inline void split_v_gradient(gradient_context& c) { join_outputs(c, 0, c.input(2)); }
inline void pack_gradient(gradient_context& c) {
  if (c.input_count() == 0) return;
  const node* parts = c.add("Unpack", {c.gradient()}, {{"num", c.input_count()}, {"axis", c.attr_of("axis")}}).from;
  for (int i = 0; i < c.input_count(); ++i) c.set(i, output{parts, i});
}
inline void unpack_gradient(gradient_context& c) {
  if (c.output_count() == 0) return;
  std::vector<output> parts;
  for (int i = 0; i < c.output_count(); ++i) parts.push_back(c.gradient(i));
  c.set(0, c.add_list("Pack", std::move(parts), {{"N", c.output_count()}, {"axis", c.attr_of("axis")}}));
}

// What was repeated is added: each axis becomes a pair of repetition and size.
inline void tile_gradient(gradient_context& c) {
  const output x = c.input(0), multiples = c.input(1);
  const auto times = c.integers_of(multiples);
  const partial_shape& s = gradient_context::shape(x);
  output pairs, axes;
  if (times && s.fully_known()) {
    std::vector<std::int64_t> both, repeated;
    for (int i = 0; i < s.rank(); ++i) {
      repeated.push_back(static_cast<std::int64_t>(both.size()));
      both.push_back((*times)[static_cast<std::size_t>(i)]);
      both.push_back(s[i]);
    }
    pairs = c.integers(both, dtype::int64);
    axes = c.integers(repeated);
  } else {
    const output sizes = c.shape_of(x, gradient_context::dtype_of(multiples));
    pairs = c.reshape(c.add_list("Pack", {multiples, sizes}, {{"N", 2}, {"axis", 1}}), c.integers({-1}));
    axes = c.add("Range", {c.integer(0), c.size_of(pairs), c.integer(2)});
  }
  c.set(0, c.sum(c.reshape(c.gradient(), pairs), axes));
}

inline void pad_gradient(gradient_context& c) {
  const output x = c.input(0), paddings = c.input(1);
  const auto known = c.integers_of(paddings);
  output begin;
  if (known) {
    std::vector<std::int64_t> before;
    for (std::size_t i = 0; i < known->size(); i += 2) before.push_back((*known)[i]);
    begin = c.integers(before, gradient_context::dtype_of(paddings));
  } else {
    begin = c.add("StridedSlice", {paddings, c.integers({0, 0}), c.integers({0, 1}), c.integers({1, 1})}, {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
  }
  c.set(0, c.add("Slice", {c.gradient(), begin, c.shape_of(x, gradient_context::dtype_of(paddings))}));
}
inline void mirror_pad_gradient(gradient_context& c) { c.set(0, c.add("MirrorPadGrad", {c.gradient(), c.input(1)}, {{"mode", c.attr_of("mode")}})); }
inline void mirror_pad_grad_gradient(gradient_context& c) { c.set(0, c.add("MirrorPad", {c.gradient(), c.input(1)}, {{"mode", c.attr_of("mode")}})); }

inline void slice_gradient(gradient_context& c) {
  const output x = c.input(0), begin = c.input(1);
  const partial_shape &whole = gradient_context::shape(x), &part = gradient_context::shape(c.result());
  const dtype type = gradient_context::dtype_of(begin);
  const auto from = c.integers_of(begin);
  output paddings;
  if (from && whole.fully_known() && part.fully_known()) {
    tensor_value v(dtype::int64, weft::shape({whole.rank(), 2}));
    for (int i = 0; i < whole.rank(); ++i) {
      const std::int64_t before = (*from)[static_cast<std::size_t>(i)];
      v.mutable_data<std::int64_t>()[2 * i] = before;
      v.mutable_data<std::int64_t>()[2 * i + 1] = whole[i] - part[i] - before;
    }
    paddings = c.constant(std::move(v));
  } else {
    const output after = c.add("Sub", {c.add("Sub", {c.shape_of(x, type), c.shape_of(c.result(), type)}), begin});
    paddings = c.add_list("Pack", {begin, after}, {{"N", 2}, {"axis", 1}});
  }
  c.set(0, c.add("Pad", {c.gradient(), paddings}));
}
inline attr_map slice_masks(const gradient_context& c) {
  attr_map masks;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) masks[name] = c.attr_of(name);
  return masks;
}
inline void strided_slice_gradient(gradient_context& c) {
  const output sizes = c.shape_of(c.input(0), gradient_context::dtype_of(c.input(1)));
  c.set(0, c.add("StridedSliceGrad", {sizes, c.input(1), c.input(2), c.input(3), c.gradient()}, slice_masks(c)));
}
inline void strided_slice_grad_gradient(gradient_context& c) { c.set(4, c.add("StridedSlice", {c.gradient(), c.input(1), c.input(2), c.input(3)}, slice_masks(c))); }

inline void add_array_gradients(gradient_registry& rules) {
  rules.add({{"Fill", fill_gradient}, {"Reshape", reshape_gradient}, {"ExpandDims", reshape_gradient}, {"Squeeze", reshape_gradient}, {"EnsureShape", pass_on},
             {"BroadcastTo", broadcast_to_gradient}, {"DepthToSpace", depth_to_space_gradient}, {"SpaceToDepth", space_to_depth_gradient}, {"Diag", diag_gradient},
             {"DiagPart", diag_part_gradient}, {"MatrixDiag", matrix_diag_gradient}, {"MatrixDiagPart", matrix_diag_part_gradient},
             {"MatrixSetDiag", matrix_set_diag_gradient}, {"MatrixBandPart", matrix_band_part_gradient}, {"SpaceToBatch", space_to_batch_v1_gradient}, {"BatchToSpace", batch_to_space_v1_gradient},
             {"SpaceToBatchND", space_to_batch_gradient}, {"BatchToSpaceND", batch_to_space_gradient},
             {"ReverseV2", reverse_gradient}, {"ReverseSequence", reverse_sequence_gradient}, {"Transpose", transpose_gradient}});
  rules.add({{"Concat", concat_gradient}, {"ConcatV2", concat_v2_gradient}, {"Split", split_gradient}, {"SplitV", split_v_gradient}, {"Pack", pack_gradient},
             {"Unpack", unpack_gradient}, {"Tile", tile_gradient}, {"Pad", pad_gradient}, {"PadV2", pad_gradient}, {"MirrorPad", mirror_pad_gradient},
             {"MirrorPadGrad", mirror_pad_grad_gradient}, {"Slice", slice_gradient}, {"StridedSlice", strided_slice_gradient}, {"StridedSliceGrad", strided_slice_grad_gradient}});
  add_select_gradients(rules);
  rules.add_none({"BroadcastGradientArgs", "ConcatOffset", "Const", "InvertPermutation", "LinSpace", "OneHot", "OnesLike", "Range", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
