#ifndef WEFT_KERNELS_NN_CONVOLUTION_HPP
#define WEFT_KERNELS_NN_CONVOLUTION_HPP
// What a convolution is to compute: its extents and its window, read from a node's attributes and its inputs' shapes and checked against each other.

#include <weft/kernels/nn_inputs.hpp>

#include <cstdint>
#include <string>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Extents of a convolution over images with channels last: a filter [rows, columns, depth, outputs] that is applied to groups of channels.
struct convolution {
  image_extents in, out;
  window_axis rows, columns;
  std::int64_t rows_before = 0, columns_before = 0;  // padding
  std::int64_t depth = 0, outputs = 0, groups = 1;

  /// Elements that one output reads.
  std::int64_t window() const noexcept { return rows.size * columns.size * depth; }
  /// Where the window of output (row, column) begins, in input rows and columns; may lie before the image.
  std::int64_t first_row(std::int64_t row) const noexcept { return row * rows.stride - rows_before; }
  std::int64_t first_column(std::int64_t column) const noexcept { return column * columns.stride - columns_before; }
  shape filter_shape() const { return {rows.size, columns.size, depth, outputs}; }
};

/// The attributes of a convolution that has a kernel.
inline window_attrs read_convolution(const node& n, bool depthwise) {
  const window_attrs w = read_window(n, false);
  if (w.batch_stride != 1 || w.depth.stride != 1) n.fail_about(error_code::unimplemented, "no kernel of this op has strides over the batch or the depth");
  if (w.batch_dilation != 1 || w.depth.dilation != 1) n.fail_about(error_code::unimplemented, "no kernel of this op has dilations over the batch or the depth");
  if (depthwise && w.rows.stride != w.columns.stride)
    n.fail_about(error_code::invalid_argument, "the strides of rows and columns must be equal, found " + std::to_string(w.rows.stride) + " and " + std::to_string(w.columns.stride));
  return w;
}

/// The convolution of images with a filter. Fails where they do not fit.
inline convolution plan_convolution(const kernel_context& context, const window_attrs& w, const shape& images, const shape& filter, bool depthwise) {
  if (images.rank() != 4) context.fail("input must have rank 4, found shape " + images.text());
  if (filter.rank() != 4) context.fail("filter must have rank 4, found shape " + filter.text());
  convolution c;
  c.in = image_extents::of(images, w.channels_first);
  c.depth = filter[2];
  c.outputs = filter[3];
  if (depthwise && c.in.channels != filter[2]) context.fail("input and filter must have the same depth, found " + std::to_string(c.in.channels) + " and " + std::to_string(filter[2]));
  if (!depthwise) {
    if (filter[2] == 0) context.fail("the filter must have at least one channel, found shape " + filter.text());
    if (c.in.channels == 0 || c.in.channels % filter[2] != 0)
      context.fail("the depth " + std::to_string(c.in.channels) + " of the input is no multiple of the depth " + std::to_string(filter[2]) + " of the filter");
    c.groups = c.in.channels / filter[2];
    if (filter[3] % c.groups != 0) context.fail("a filter with " + std::to_string(filter[3]) + " outputs cannot be cut into " + std::to_string(c.groups) + " groups");
  }
  if (filter[0] == 0 || filter[1] == 0) context.fail("the filter must have rows and columns, found shape " + filter.text());
  if (filter[0] > largest_window || filter[1] > largest_window) context.fail("the filter of shape " + filter.text() + " is too large");
  c.rows = w.rows;
  c.columns = w.columns;
  c.rows.size = filter[0];
  c.columns.size = filter[1];
  const window_places rows = place_window(context.about(), c.rows, c.in.rows), columns = place_window(context.about(), c.columns, c.in.columns);
  c.rows_before = rows.before;
  c.columns_before = columns.before;
  const std::int64_t sizes[] = {c.in.batch, rows.count, columns.count, depthwise ? c.depth : c.outputs, depthwise ? c.outputs : 1};
  if (!checked_elements(sizes, 5)) context.fail("the convolution of " + images.text() + " with " + filter.text() + " has too many elements");
  c.out = {c.in.batch, rows.count, columns.count, sizes[3] * sizes[4]};
  return c;
}

/// Fails unless a gradient has the shape of the convolution's output.
inline void expect_gradient(const kernel_context& context, int i, const convolution& c, bool channels_first) {
  const shape wanted = c.out.shape(channels_first);
  if (context.input(i).shape() != wanted) context.fail("out_backprop must have shape " + wanted.text() + ", found " + context.input(i).shape().text());
}

/// The shape of images that a vector input asks for; a convolution's may name rows and columns only.
inline shape wanted_images(const kernel_context& context, int i, const char* what, bool channels_first, const shape* gradient, const shape* filter) {
  const shape s = wanted_shape(context, i, what);
  if (s.rank() == 2 && gradient != nullptr && gradient->rank() == 4 && filter->rank() == 4) {
    const shape whole = image_extents{(*gradient)[0], s[0], s[1], (*filter)[2]}.shape(channels_first);
    if (!checked_elements(whole.data(), 4)) context.fail(std::string(what) + " " + s.text() + " asks for too many elements");
    return whole;
  }
  if (s.rank() != 4) context.fail(std::string(what) + " must contain 4 values" + (gradient != nullptr ? " or 2" : "") + ", found " + std::to_string(s.rank()));
  return s;
}

}  // namespace weft::detail
#endif

#endif
