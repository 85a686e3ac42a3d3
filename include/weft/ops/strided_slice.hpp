#ifndef WEFT_OPS_STRIDED_SLICE_HPP
#define WEFT_OPS_STRIDED_SLICE_HPP
// What StridedSlice's inputs and masks mean for a tensor: which elements of each dimension, and which dimensions are left.

#include <weft/core/config.hpp>
#include <weft/graph/shape_context.hpp>
#include <weft/ops/shape_arithmetic.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace weft::detail {

/// A strided slice of a tensor of known rank. Unknown sizes are -1; `begin` holds where both bounds are known.
struct strided_slice_plan {
  /// By dimension of the input: the first element, the step, and how many elements.
  size_list begin, stride, count;
  /// The shape of the result: new axes inserted, shrunk ones dropped.
  size_list result;
};

/// The slice that begin, end and strides (inputs `first` to `first` + 2) and the mask attributes ask of a tensor of shape `in`, whose rank is known;
/// nothing when that depends on values that are not known yet.
std::optional<strided_slice_plan> plan_strided_slice(const shape_context& c, const partial_shape& in, int first);

#if WEFT_HAS_BODIES
// Entry i of the slice's specification, and the masks about it.
struct strided_slice_masks {
  explicit strided_slice_masks(const shape_context& c)
      : begin(c.attr<std::int64_t>("begin_mask")), end(c.attr<std::int64_t>("end_mask")), ellipsis(c.attr<std::int64_t>("ellipsis_mask")),
        new_axis(c.attr<std::int64_t>("new_axis_mask")), shrink(c.attr<std::int64_t>("shrink_axis_mask")) {}
  static bool has(std::int64_t mask, std::size_t i) noexcept { return i < 63 && (mask >> i & 1) != 0; }
  std::int64_t begin, end, ellipsis, new_axis, shrink;
};

// One dimension of the input, with what the specification says of it.
struct strided_slice_axis {
  std::int64_t begin = 0, end = 0, stride = 1;
  bool begin_masked = true, end_masked = true, shrinks = false;
};

// Negative positions count from the end; what lies outside is moved to the nearest end.
inline std::int64_t clamped_position(std::int64_t at, bool masked, bool is_end, std::int64_t size, std::int64_t stride) {
  const std::int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  if (masked) return is_end == (stride > 0) ? high : low;
  const std::int64_t from_start = at < 0 ? (at < -size ? low : at + size) : at;
  return from_start < low ? low : from_start > high ? high : from_start;
}

inline std::int64_t stepped_count(std::int64_t distance, std::int64_t stride) {
  if (distance == 0 || (distance < 0) != (stride < 0)) return 0;
  return distance / stride + (distance % stride != 0 ? 1 : 0);
}

// The first element and the number of elements along dimension i.
inline void plan_strided_axis(const shape_context& c, const strided_slice_axis& axis, int i, std::int64_t size, bool bounds_known, strided_slice_plan& out) {
  if (axis.stride == 0) c.fail("strides[" + std::to_string(i) + "] must not be 0");
  if (axis.shrinks && axis.stride < 0) c.fail("a single index needs stride 1, found " + std::to_string(axis.stride) + " for dimension " + std::to_string(i));
  std::int64_t begin = 0, count = -1;
  if (axis.shrinks) {
    count = 1;
    if (bounds_known && size >= 0) {
      begin = axis.begin < 0 && axis.begin >= -size ? axis.begin + size : axis.begin;
      if (begin < 0 || begin >= size) c.fail("index " + std::to_string(axis.begin) + " is outside dimension " + std::to_string(i) + " of size " + std::to_string(size));
    }
  } else if (size >= 0 && (bounds_known || (axis.begin_masked && axis.end_masked))) {
    begin = clamped_position(axis.begin, axis.begin_masked, false, size, axis.stride);
    count = stepped_count(clamped_position(axis.end, axis.end_masked, true, size, axis.stride) - begin, axis.stride);
  }
  out.begin.push_back(begin);
  out.stride.push_back(axis.stride);
  out.count.push_back(count);
}

// 1. The specification's length, and its entries as far as they are known. 2. What each entry says of which dimension; an ellipsis (at the end when none is given) stands for
// whole dimensions. 3. The elements of each dimension. 4. The dimensions of the result.
WEFT_DECL std::optional<strided_slice_plan> plan_strided_slice(const shape_context& c, const partial_shape& in, int first) {
  const strided_slice_masks masks(c);
  std::int64_t length = -1;
  for (int k = 0; k < 3; ++k) length = size_merged(c, length, c.with_rank(first + k, 1, k == 0 ? "begin" : k == 1 ? "end" : "strides")[0], "the lengths of begin, end and strides");
  if (length > 32) c.fail("begin, end and strides may have at most 32 entries, found " + std::to_string(length));
  const auto begin = c.input_integers(first), end = c.input_integers(first + 1), strides = c.input_integers(first + 2);
  if (!in.known_rank() || length < 0 || !strides) return std::nullopt;
  const bool bounds_known = begin && end;
  const int rank = in.rank();

  std::size_t entries = static_cast<std::size_t>(length), dots = entries, ellipses = 0, new_axes_after = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    if (strided_slice_masks::has(masks.ellipsis, i)) {
      dots = ellipses++ == 0 ? i : dots;
    } else if (ellipses > 0 && strided_slice_masks::has(masks.new_axis, i)) {
      ++new_axes_after;
    }
  }
  if (ellipses > 1) c.fail("a slice may have one ellipsis, found " + std::to_string(ellipses));
  if (ellipses == 0) ++entries;

  constexpr int new_axis = -1, shrunk = -2;
  std::vector<strided_slice_axis> axes;
  std::vector<int> result;  // dimension of the input, or one of the above
  for (std::size_t i = 0; i < entries; ++i) {
    const int dimension = static_cast<int>(axes.size());
    if (i == dots) {
      const int after = static_cast<int>(entries - i - 1 - new_axes_after);
      for (int d = dimension; d < rank - after; ++d) {
        result.push_back(d);
        axes.emplace_back();
      }
    } else if (strided_slice_masks::has(masks.new_axis, i)) {
      result.push_back(new_axis);
    } else {
      if (dimension >= rank) c.fail("the slice names dimension " + std::to_string(dimension) + ", the tensor of shape " + in.text() + " has " + std::to_string(rank));
      const bool shrinks = strided_slice_masks::has(masks.shrink, i);
      axes.push_back({begin ? (*begin)[i] : 0, end ? (*end)[i] : 0, (*strides)[i], strided_slice_masks::has(masks.begin, i), strided_slice_masks::has(masks.end, i), shrinks});
      result.push_back(shrinks ? shrunk : dimension);
    }
  }

  strided_slice_plan out;
  for (int d = 0; d < rank; ++d) plan_strided_axis(c, axes[static_cast<std::size_t>(d)], d, in[d], bounds_known, out);
  for (const int d : result)
    if (d != shrunk) out.result.push_back(d == new_axis ? 1 : out.count[static_cast<std::size_t>(d)]);
  return out;
}
#endif

}  // namespace weft::detail

#endif
