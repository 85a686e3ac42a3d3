#ifndef WEFT_OPS_NN_WINDOW_HPP
#define WEFT_OPS_NN_WINDOW_HPP
// The geometry of windows that slide over images: what attributes of convolutions and pools say, and how many places a window has along an
// axis. Shape rules and kernels read it here, so that both report a mistake in the same words.

#include <weft/graph/node.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// How images lie in memory: channels last, as TensorFlow's CPU has them, or first.
enum class data_format { nhwc, nchw };
inline constexpr data_format nhwc = data_format::nhwc, nchw = data_format::nchw;

namespace detail {

inline const char* to_text(data_format format) { return format == data_format::nhwc ? "NHWC" : "NCHW"; }

/// How an axis is padded: not at all, so that the output is as long as the input divided by the stride, or by given numbers.
enum class window_padding : unsigned char { valid, same, given };

/// A window along one axis: its size, the distance of its places and of its elements, and how the axis is padded.
struct window_axis {
  std::int64_t size = 1, stride = 1, dilation = 1;
  window_padding padding = window_padding::valid;
  std::int64_t before = 0, after = 0;  // of window_padding::given
};

/// The places of a window along an axis, and the elements that are padded before it.
struct window_places {
  std::int64_t count, before;
};

/// Sizes, strides, dilations and paddings above this are errors, so that sums and products of them fit.
inline constexpr std::int64_t largest_window = 0x7fffffff;

/// What the attributes of a convolution or a pool say: for rows, columns and depth (of pools), and where the depth is stored.
struct window_attrs {
  window_axis rows, columns, depth;
  bool channels_first = false;  // NCHW
  std::int64_t batch_size = 1, batch_stride = 1, batch_dilation = 1;
};

#if WEFT_HAS_BODIES || WEFT_HAS_KERNEL_BODIES

/// Four values of a list attribute; the default where a convolution leaves dilations away.
inline std::vector<std::int64_t> window_list(const node& n, const char* name) {
  const auto* list = n.find_attr<std::vector<std::int64_t>>(name);
  if (list == nullptr && std::string(name) == "dilations") return {1, 1, 1, 1};
  if (list == nullptr || list->size() != 4)
    n.fail_about(error_code::invalid_argument, std::string("attribute '") + name + "' must contain 4 values, found " + std::to_string(list == nullptr ? 0 : list->size()));
  for (const std::int64_t value : *list)
    if (value < 1 || value > largest_window)
      n.fail_about(error_code::invalid_argument, std::string("attribute '") + name + "' must contain values between 1 and " + std::to_string(largest_window) + ", found " + std::to_string(value));
  return *list;
}

// Padding of all four axes from 'padding' and, where that says EXPLICIT, 'explicit_paddings'; only rows and columns may be padded.
inline void read_padding(const node& n, window_attrs& out) {
  const std::string& padding = n.attr<std::string>("padding");
  const auto* given = n.find_attr<std::vector<std::int64_t>>("explicit_paddings");
  const std::size_t count = given == nullptr ? 0 : given->size();
  if (padding != "EXPLICIT") {
    if (count != 0) n.fail_about(error_code::invalid_argument, "attribute 'explicit_paddings' must be empty where 'padding' is '" + padding + "', found " + std::to_string(count) + " values");
    if (padding != "SAME" && padding != "VALID") n.fail_about(error_code::invalid_argument, "attribute 'padding' must be 'SAME', 'VALID' or 'EXPLICIT', found '" + padding + "'");
    for (window_axis* axis : {&out.rows, &out.columns, &out.depth}) axis->padding = padding == "SAME" ? window_padding::same : window_padding::valid;
    return;
  }
  if (count != 8) n.fail_about(error_code::invalid_argument, "attribute 'explicit_paddings' must contain 8 values, found " + std::to_string(count));
  for (const std::int64_t value : *given)
    if (value < 0 || value > largest_window)
      n.fail_about(error_code::invalid_argument, "attribute 'explicit_paddings' must contain values between 0 and " + std::to_string(largest_window) + ", found " + std::to_string(value));
  const std::size_t rows = out.channels_first ? 4 : 2, depth = out.channels_first ? 2 : 6;
  if ((*given)[0] != 0 || (*given)[1] != 0 || (*given)[depth] != 0 || (*given)[depth + 1] != 0)
    n.fail_about(error_code::invalid_argument, "attribute 'explicit_paddings' must be 0 for the batch and the depth");
  out.rows.padding = out.columns.padding = window_padding::given;
  out.rows.before = (*given)[rows];
  out.rows.after = (*given)[rows + 1];
  out.columns.before = (*given)[rows + 2];
  out.columns.after = (*given)[rows + 3];
}

/// Reads the attributes of a pool (with 'ksize') or a convolution (with 'dilations', its window's size being the filter's). Fails about the node where they are wrong.
inline window_attrs read_window(const node& n, bool pool) {
  window_attrs out;
  const std::string* format = n.find_attr<std::string>("data_format");
  if (format != nullptr && *format != "NHWC" && *format != "NCHW") n.fail_about(error_code::unimplemented, "attribute 'data_format' must be 'NHWC' or 'NCHW', found '" + *format + "'");
  out.channels_first = format != nullptr && *format == "NCHW";
  const auto strides = window_list(n, "strides"), others = window_list(n, pool ? "ksize" : "dilations");
  const std::size_t rows = out.channels_first ? 2 : 1, depth = out.channels_first ? 1 : 3;
  const std::size_t places[] = {rows, rows + 1, depth};
  window_axis* const axes[] = {&out.rows, &out.columns, &out.depth};
  for (int i = 0; i < 3; ++i) {
    axes[i]->stride = strides[places[i]];
    (pool ? axes[i]->size : axes[i]->dilation) = others[places[i]];
  }
  out.batch_stride = strides[0];
  (pool ? out.batch_size : out.batch_dilation) = others[0];
  read_padding(n, out);
  return out;
}

/// Where a window finds place along an axis of `size` elements, as TensorFlow counts. Fails about the node where the window is larger than the padded axis.
inline window_places place_window(const node& n, const window_axis& w, std::int64_t size) {
  const std::int64_t reach = (w.size - 1) * w.dilation + 1;
  if (w.padding == window_padding::same) {
    const std::int64_t count = size / w.stride + (size % w.stride != 0 ? 1 : 0);
    const std::int64_t padding = count == 0 ? 0 : reach - (size - (count - 1) * w.stride);
    return {count, padding > 0 ? padding / 2 : 0};
  }
  if (size > std::int64_t{1} << 60) n.fail_about(error_code::invalid_argument, "an axis of " + std::to_string(size) + " elements is too long");
  const std::int64_t padded = size + w.before + w.after;
  if (padded < reach)
    n.fail_about(error_code::invalid_argument, "a window that reaches over " + std::to_string(reach) + " elements has no place on an axis of " + std::to_string(size) +
                                                   (w.padding == window_padding::given ? " elements with " + std::to_string(w.before + w.after) + " more as padding" : " elements"));
  return {(padded - reach) / w.stride + 1, w.before};
}

#endif

}  // namespace detail
}  // namespace weft

#endif
