#ifndef WEFT_OPS_NN_CONV_HPP
#define WEFT_OPS_NN_CONV_HPP
// Convolutions and pools over images, and the ops of their gradients.

#include <weft/graph/tensor.hpp>
#include <weft/ops/nn_window.hpp>
#include <weft/ops/node_group.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

#if WEFT_HAS_BODIES
namespace detail {

// Images as a shape: batch, rows, columns and channels, each -1 where it is not known.
struct image_sizes {
  std::int64_t batch, rows, columns, channels;

  static image_sizes of(const partial_shape& s, const window_attrs& w) {
    if (w.channels_first) return {s[0], s[2], s[3], s[1]};
    return {s[0], s[1], s[2], s[3]};
  }
  partial_shape shape(const window_attrs& w) const {
    if (w.channels_first) return partial_shape({batch, channels, rows, columns});
    return partial_shape({batch, rows, columns, channels});
  }
};

inline std::int64_t placed(const shape_context& c, const window_axis& w, std::int64_t size, bool window_known = true) {
  if (size < 0 || (!window_known && w.padding != window_padding::same)) return -1;
  return place_window(c.about(), w, size).count;
}

inline std::int64_t product_or_unknown(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b) ? -1 : a * b; }

// Rows and columns of a convolution's output; a filter size of -1 is unknown.
inline std::pair<std::int64_t, std::int64_t> convolved(shape_context& c, window_attrs w, const image_sizes& in, std::int64_t filter_rows, std::int64_t filter_columns) {
  if (filter_rows == 0 || filter_columns == 0) c.fail("the filter must have rows and columns, found shape " + c.input(1).text());
  w.rows.size = filter_rows < 0 ? 1 : filter_rows;
  w.columns.size = filter_columns < 0 ? 1 : filter_columns;
  if (w.rows.size > largest_window || w.columns.size > largest_window) c.fail("the filter of shape " + c.input(1).text() + " is too large");
  return {placed(c, w.rows, in.rows, filter_rows >= 0), placed(c, w.columns, in.columns, filter_columns >= 0)};
}

inline void conv2d_shape(shape_context& c) {
  const window_attrs w = read_window(c.about(), false);
  const partial_shape filter = c.with_rank(1, 4, "filter");
  const image_sizes in = image_sizes::of(c.with_rank(0, 4, "input"), w);
  if (filter[2] == 0) c.fail("the filter must have at least one channel, found shape " + filter.text());
  if (in.channels >= 0 && filter[2] > 0) {
    if (in.channels % filter[2] != 0) c.fail("the depth " + std::to_string(in.channels) + " of the input is no multiple of the depth " + std::to_string(filter[2]) + " of the filter");
    const std::int64_t groups = in.channels / filter[2];
    if (filter[3] >= 0 && groups > 0 && filter[3] % groups != 0) c.fail("a filter with " + std::to_string(filter[3]) + " outputs cannot be cut into " + std::to_string(groups) + " groups");
  }
  const auto [rows, columns] = convolved(c, w, in, filter[0], filter[1]);
  c.set_output(0, image_sizes{in.batch, rows, columns, filter[3]}.shape(w));
}

inline void depthwise_conv2d_shape(shape_context& c) {
  const window_attrs w = read_window(c.about(), false);
  const image_sizes in = image_sizes::of(c.with_rank(0, 4, "input"), w);
  const partial_shape filter = c.with_rank(1, 4, "filter");
  if (in.channels >= 0 && filter[2] >= 0 && in.channels != filter[2])
    c.fail("input and filter must have the same depth, found " + std::to_string(in.channels) + " and " + std::to_string(filter[2]));
  const auto [rows, columns] = convolved(c, w, in, filter[0], filter[1]);
  c.set_output(0, image_sizes{in.batch, rows, columns, product_or_unknown(in.channels < 0 ? filter[2] : in.channels, filter[3])}.shape(w));
}

// A shape of rank 4 that input i holds.
inline partial_shape sizes_of_rank_4(const shape_context& c, int i, const char* what) {
  const partial_shape s = shape_from_input(c, i, what);
  if (s.known_rank() && s.rank() != 4) c.fail(std::string(what) + " must contain 4 values, found " + std::to_string(s.rank()));
  return s.known_rank() ? s : partial_shape::of_rank(4);
}

inline void conv2d_backprop_input_shape(shape_context& c) {
  const window_attrs w = read_window(c.about(), false);
  const partial_shape filter = c.with_rank(1, 4, "filter");
  const image_sizes gradient = image_sizes::of(c.with_rank(2, 4, "out_backprop"), w);
  if (gradient.channels >= 0 && filter[3] >= 0 && gradient.channels != filter[3])
    c.fail("the depth " + std::to_string(gradient.channels) + " of out_backprop and the outputs " + std::to_string(filter[3]) + " of the filter differ");
  partial_shape wanted = shape_from_input(c, 0, "input_sizes");
  if (!wanted.known_rank()) wanted = partial_shape::of_rank(4);
  if (wanted.rank() == 2) return c.set_output(0, image_sizes{gradient.batch, wanted[0], wanted[1], filter[2]}.shape(w));
  if (wanted.rank() != 4) c.fail("input_sizes must contain 4 values or 2, found " + std::to_string(wanted.rank()));
  image_sizes sizes = image_sizes::of(wanted, w);
  if (sizes.batch >= 0 && gradient.batch >= 0 && sizes.batch != gradient.batch)
    c.fail("input_sizes say a batch of " + std::to_string(sizes.batch) + ", out_backprop has " + std::to_string(gradient.batch));
  if (sizes.batch < 0) sizes.batch = gradient.batch;
  c.set_output(0, sizes.shape(w));
}

inline void conv2d_backprop_filter_shape(shape_context& c) {
  (void)read_window(c.about(), false);
  (void)c.with_rank(0, 4, "input");
  (void)c.with_rank(2, 4, "out_backprop");
  c.set_output(0, sizes_of_rank_4(c, 1, "filter_sizes"));
}

inline void depthwise_backprop_input_shape(shape_context& c) {
  (void)read_window(c.about(), false);
  (void)c.with_rank(1, 4, "filter");
  (void)c.with_rank(2, 4, "out_backprop");
  c.set_output(0, sizes_of_rank_4(c, 0, "input_sizes"));
}

// Output of a pool over images of this shape; an average is not taken over depth.
inline partial_shape pooled(const shape_context& c, const partial_shape& images) {
  const window_attrs w = read_window(c.about(), true);
  const image_sizes in = image_sizes::of(images, w);
  const std::int64_t channels = c.about().op() == "AvgPool" ? in.channels : placed(c, w.depth, in.channels);
  return image_sizes{in.batch, placed(c, w.rows, in.rows), placed(c, w.columns, in.columns), channels}.shape(w);
}

inline void pool_shape(shape_context& c) { c.set_output(0, pooled(c, c.with_rank(0, 4, "input"))); }

inline void max_pool_grad_shape(shape_context& c) {
  (void)read_window(c.about(), true);
  c.set_output(0, c.with_rank(0, 4, "orig_input"));
}

inline void max_pool_grad_grad_shape(shape_context& c) {
  const auto images = merge_shapes(c.with_rank(0, 4, "orig_input"), c.with_rank(2, 4, "grad"));
  if (!images) c.fail("orig_input and grad must have one shape, found " + c.input(0).text() + " and " + c.input(2).text());
  const auto result = merge_shapes(pooled(c, *images), c.with_rank(1, 4, "orig_output"));
  if (!result) c.fail("orig_output must have shape " + pooled(c, *images).text() + ", found " + c.input(1).text());
  c.set_output(0, *result);
}

inline void avg_pool_grad_shape(shape_context& c) {
  (void)read_window(c.about(), true);
  (void)c.with_rank(1, 4, "grad");
  c.set_output(0, sizes_of_rank_4(c, 0, "orig_input_shape"));
}

#define WEFT_WINDOW "strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]"
#define WEFT_POOL "ksize: list(int) >= 4; strides: list(int) >= 4; padding: "
#define WEFT_FORMAT "; data_format: {'NHWC', 'NCHW'} = 'NHWC'"
#define WEFT_ORDERED "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
inline constexpr op_row nn_conv_ops[] = {
    {"Conv2D(input: T, filter: T) -> output: T", "T: {half, bfloat16, float, double, int32}; use_cudnn_on_gpu: bool = true; " WEFT_WINDOW, conv2d_shape},
    {"Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> output: T", "T: {half, bfloat16, float, double, int32}; use_cudnn_on_gpu: bool = true; " WEFT_WINDOW, conv2d_backprop_input_shape},
    {"Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> output: T", "T: {half, bfloat16, float, double}; use_cudnn_on_gpu: bool = true; " WEFT_WINDOW, conv2d_backprop_filter_shape},
    {"DepthwiseConv2dNative(input: T, filter: T) -> output: T", "T: {half, bfloat16, float, double}; " WEFT_WINDOW, depthwise_conv2d_shape},
    {"DepthwiseConv2dNativeBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> output: T", "T: {half, bfloat16, float, double}; " WEFT_WINDOW, depthwise_backprop_input_shape},
    {"DepthwiseConv2dNativeBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> output: T", "T: {half, bfloat16, float, double}; " WEFT_WINDOW, conv2d_backprop_filter_shape},
    {"MaxPool(input: T) -> output: T", "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16} = float; " WEFT_POOL "{'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", pool_shape},
    {"MaxPoolGrad(orig_input: T, orig_output: T, grad: T) -> output: T", WEFT_POOL "{'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []" WEFT_FORMAT "; T: {" WEFT_ORDERED "} = float", max_pool_grad_shape},
    {"MaxPoolGradGrad(orig_input: T, orig_output: T, grad: T) -> output: T", WEFT_POOL "{'SAME', 'VALID'}" WEFT_FORMAT "; T: {" WEFT_ORDERED "}", max_pool_grad_grad_shape},
    {"AvgPool(value: T) -> output: T", WEFT_POOL "{'SAME', 'VALID'}" WEFT_FORMAT "; T: {half, bfloat16, float, double}", pool_shape},
    {"AvgPoolGrad(orig_input_shape: int32, grad: T) -> output: T", WEFT_POOL "{'SAME', 'VALID'}" WEFT_FORMAT "; T: {half, bfloat16, float, double}", avg_pool_grad_shape},
};
#undef WEFT_WINDOW
#undef WEFT_POOL
#undef WEFT_FORMAT
#undef WEFT_ORDERED

}  // namespace detail
#endif

/// Sizes, strides or dilations of windows: one number for rows and columns, two, or TensorFlow's four in the order of the data format.
struct window_size {
  std::int64_t values[4];
  int count;
  constexpr window_size(std::int64_t both) : values{both, both, 1, 1}, count(2) {}
  constexpr window_size(std::int64_t rows, std::int64_t columns) : values{rows, columns, 1, 1}, count(2) {}
  constexpr window_size(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) : values{a, b, c, d}, count(4) {}
};

/// How images are padded at their edges.
struct image_padding {
  const char* kind;
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
};
/// The output is as large as the input over the stride; padding is even, the odd element comes last.
inline constexpr image_padding same_padding{"SAME"};
/// No padding: windows lie inside of the image.
inline constexpr image_padding valid_padding{"VALID"};
/// Rows and columns of zeros.
constexpr image_padding explicit_padding(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right) { return {"EXPLICIT", top, bottom, left, right}; }

/// What a convolution may say besides its strides and padding.
struct conv_options {
  data_format format = nhwc;
  window_size dilations = 1;
};

namespace detail {
attr_map window_attr_map(const window_size& strides, const image_padding& padding, data_format format, const window_size& other, const char* other_name);
output add_conv2d(const char* op, const side& input, const side& filter, const attr_map& attrs, const op_name& name);
output add_conv2d_transpose(const side& value, const side& filter, const side* sizes, const std::int64_t* numbers, attr_map attrs, const op_name& name);
output add_separable_conv2d(const side& input, const side& depthwise_filter, const side& pointwise_filter, attr_map attrs, data_format format, const op_name& name);
constexpr bool image_rank(int n) { return n == 4 || n == dynamic_rank; }
}  // namespace detail

#define WEFT_IMAGES(NAME)                                                                                                                         \
  static_assert(std::is_same_v<T, U>, "weft: " NAME " needs images and a filter of one dtype; convert one with weft::cast<T>(...)");               \
  static_assert(detail::image_rank(N) && detail::image_rank(M), "weft: " NAME " needs images and a filter of rank 4")

/// Images `[batch, rows, columns, channels]` convolved with a filter `[rows, columns, channels, outputs]` (Conv2D), as TensorFlow does: `conv2d(x, w, 1, same_padding)`, `conv2d(x, w, {1, 2, 2, 1}, valid_padding)`.
/// A filter with fewer channels is applied to groups of channels. Throws INVALID_ARGUMENT when the shapes do not fit.
template <class T, int N, class U, int M> tensor<T, 4> conv2d(const operand<T, N>& input, const operand<U, M>& filter, window_size strides, image_padding padding, conv_options options, op_name name = {}) {
  WEFT_IMAGES("conv2d");
  return tensor<T, 4>(detail::add_conv2d("Conv2D", detail::side_of(input), detail::side_of(filter), detail::window_attr_map(strides, padding, options.format, options.dilations, "dilations"), name));
}
template <class T, int N, class U, int M> tensor<T, 4> conv2d(const operand<T, N>& input, const operand<U, M>& filter, window_size strides, image_padding padding, op_name name = {}) {
  return conv2d(input, filter, strides, padding, conv_options(), name);
}

/// The gradient of a convolution by its images, for images of this shape (Conv2DBackpropInput): the filter is `[rows, columns, outputs, channels]`, channels being those of `value`.
template <class T, int N, class U, int M>
tensor<T, 4> conv2d_transpose(const operand<T, N>& value, const operand<U, M>& filter, const std::int64_t (&output_shape)[4], window_size strides, image_padding padding = same_padding, data_format format = nhwc, op_name name = {}) {
  WEFT_IMAGES("conv2d_transpose");
  return tensor<T, 4>(detail::add_conv2d_transpose(detail::side_of(value), detail::side_of(filter), nullptr, output_shape, detail::window_attr_map(strides, padding, format, 1, "dilations"), name));
}
template <class T, int N, class U, int M, int K>
tensor<T, 4> conv2d_transpose(const operand<T, N>& value, const operand<U, M>& filter, const operand<std::int32_t, K>& output_shape, window_size strides, image_padding padding = same_padding, data_format format = nhwc, op_name name = {}) {
  WEFT_IMAGES("conv2d_transpose");
  const detail::side sizes = detail::side_of(output_shape);
  return tensor<T, 4>(detail::add_conv2d_transpose(detail::side_of(value), detail::side_of(filter), &sizes, nullptr, detail::window_attr_map(strides, padding, format, 1, "dilations"), name));
}

/// Images convolved with filters of their own for each channel, `[rows, columns, channels, multiplier]`, which gives channels * multiplier channels (DepthwiseConv2dNative).
template <class T, int N, class U, int M> tensor<T, 4> depthwise_conv2d(const operand<T, N>& input, const operand<U, M>& filter, window_size strides, image_padding padding, conv_options options, op_name name = {}) {
  WEFT_IMAGES("depthwise_conv2d");
  return tensor<T, 4>(
      detail::add_conv2d("DepthwiseConv2dNative", detail::side_of(input), detail::side_of(filter), detail::window_attr_map(strides, padding, options.format, options.dilations, "dilations"), name));
}
template <class T, int N, class U, int M> tensor<T, 4> depthwise_conv2d(const operand<T, N>& input, const operand<U, M>& filter, window_size strides, image_padding padding, op_name name = {}) {
  return depthwise_conv2d(input, filter, strides, padding, conv_options(), name);
}

/// A depthwise convolution whose channels a filter `[1, 1, channels * multiplier, outputs]` mixes (DepthwiseConv2dNative, Conv2D).
template <class T, int N, class U, int M, class V, int K>
tensor<T, 4> separable_conv2d(const operand<T, N>& input, const operand<U, M>& depthwise_filter, const operand<V, K>& pointwise_filter, window_size strides, image_padding padding, conv_options options = {}, op_name name = {}) {
  WEFT_IMAGES("separable_conv2d");
  static_assert(std::is_same_v<T, V> && detail::image_rank(K), "weft: separable_conv2d needs filters of rank 4 and the images' dtype");
  return tensor<T, 4>(detail::add_separable_conv2d(detail::side_of(input), detail::side_of(depthwise_filter), detail::side_of(pointwise_filter),
                                                   detail::window_attr_map(strides, padding, options.format, options.dilations, "dilations"), options.format, name));
}
#undef WEFT_IMAGES

#define WEFT_POOL(NAME, OPNAME, TYPES, SENTENCE)                                                                                                                                    \
  template <class T, int N> tensor<T, 4> NAME(const operand<T, N>& input, window_size ksize, window_size strides, image_padding padding, data_format format, op_name name = {}) {   \
    static_assert(detail::image_rank(N), "weft: " #NAME " needs images of rank 4");                                                                                                 \
    static_assert(TYPES, "weft: " #NAME SENTENCE);                                                                                                                                  \
    return tensor<T, 4>(detail::add_unary(OPNAME, detail::side_of(input), name, detail::window_attr_map(strides, padding, format, ksize, "ksize")));                                \
  }                                                                                                                                                                                 \
  template <class T, int N> tensor<T, 4> NAME(const operand<T, N>& input, window_size ksize, window_size strides, image_padding padding, op_name name = {}) {                       \
    return NAME(input, ksize, strides, padding, nhwc, name);                                                                                                                        \
  }
/// The largest element of each window of each channel (MaxPool); padding never wins.
WEFT_POOL(max_pool, "MaxPool", (!std::is_same_v<T, std::string> && !std::is_same_v<T, bool>), " takes numbers")
/// The mean of each window of each channel, of what lies inside of the image (AvgPool).
WEFT_POOL(avg_pool, "AvgPool", (std::is_floating_point_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>), " takes float, double, half or bfloat16")
#undef WEFT_POOL

#if WEFT_HAS_BODIES
namespace detail {

WEFT_DECL attr_map window_attr_map(const window_size& strides, const image_padding& padding, data_format format, const window_size& other, const char* other_name) {
  const auto four = [format](const window_size& w) -> std::vector<std::int64_t> {
    if (w.count == 4) return {w.values[0], w.values[1], w.values[2], w.values[3]};
    if (format == data_format::nchw) return {1, 1, w.values[0], w.values[1]};
    return {1, w.values[0], w.values[1], 1};
  };
  attr_map out{{"strides", four(strides)}, {"padding", padding.kind}, {"data_format", to_text(format)}, {other_name, four(other)}};
  if (std::string(padding.kind) != "EXPLICIT") return out;
  std::vector<std::int64_t> sides{0, 0, 0, 0, 0, 0, 0, 0};
  const std::size_t rows = format == data_format::nchw ? 4 : 2;
  sides[rows] = padding.top;
  sides[rows + 1] = padding.bottom;
  sides[rows + 2] = padding.left;
  sides[rows + 3] = padding.right;
  out["explicit_paddings"] = sides;
  return out;
}

WEFT_DECL output add_conv2d(const char* op, const side& input, const side& filter, const attr_map& attrs, const op_name& name) {
  return {&add_node(op, {input_of(op, input, name), input_of(op, filter, name)}, name, attrs), 0};
}

WEFT_DECL output add_conv2d_transpose(const side& value, const side& filter, const side* sizes, const std::int64_t* numbers, attr_map attrs, const op_name& name) {
  const node_group g(value, name, "conv2d_transpose");
  const output in = g.input(value), weights = g.input(filter);
  output wanted;
  if (sizes != nullptr) wanted = g.input(*sizes);
  else {
    std::vector<std::int32_t> values;
    for (int i = 0; i < 4; ++i) {
      if (numbers[i] < 0 || numbers[i] > INT32_MAX) g.fail("output_shape cannot have a size of " + std::to_string(numbers[i]));
      values.push_back(static_cast<std::int32_t>(numbers[i]));
    }
    wanted = g.integers(values, "output_shape");
  }
  return g.last("Conv2DBackpropInput", {wanted, weights, in}, std::move(attrs));
}

WEFT_DECL output add_separable_conv2d(const side& input, const side& depthwise_filter, const side& pointwise_filter, attr_map attrs, data_format format, const op_name& name) {
  const node_group g(input, name, "separable_conv2d");
  const output in = g.input(input), depthwise = g.input(depthwise_filter), pointwise = g.input(pointwise_filter);
  const output channels = g.add("DepthwiseConv2dNative", {in, depthwise}, "depthwise", std::move(attrs));
  return g.last("Conv2D", {channels, pointwise}, window_attr_map(1, valid_padding, format, 1, "dilations"));
}

}  // namespace detail
#endif

}  // namespace weft

#endif
