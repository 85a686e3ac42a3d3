#ifndef WEFT_OPS_NN_HPP
#define WEFT_OPS_NN_HPP
// Biases, softmax and cross entropies, normalisation and accuracy of neural networks.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft {

#if WEFT_HAS_BODIES
namespace detail {

inline void expect_rank_at_least(const shape_context& c, int i, int least, const char* what) {
  const partial_shape& s = c.input(i);
  if (s.known_rank() && s.rank() < least) c.fail(std::string(what) + " must have at least rank " + std::to_string(least) + ", found shape " + s.text());
}

// What two sizes, -1 where not known, say together; fails where they differ.
inline std::int64_t same_size(const shape_context& c, std::int64_t a, std::int64_t b, const char* what) {
  if (a >= 0 && b >= 0 && a != b) c.fail(std::string(what) + " must be equal, found " + std::to_string(a) + " and " + std::to_string(b));
  return a >= 0 ? a : b;
}

inline partial_shape with_size(const partial_shape& s, int axis, std::int64_t size) {
  std::vector<std::int64_t> sizes = s.sizes();
  sizes[static_cast<std::size_t>(axis)] = size;
  return partial_shape(std::move(sizes));
}

// The axis of the channels that attribute data_format names, of a tensor of at least the rank that it needs.
inline int bias_axis(const shape_context& c, const char* what) {
  const std::string* format = c.find_attr<std::string>("data_format");
  const bool first = format != nullptr && *format == "NCHW";
  expect_rank_at_least(c, 0, first ? 3 : 2, what);
  return first ? 1 : c.input(0).rank() - 1;
}

inline void bias_add_shape(shape_context& c) {
  const int axis = bias_axis(c, "value");
  const partial_shape bias = c.with_rank(1, 1, "bias"), &value = c.input(0);
  if (!value.known_rank()) return;
  c.set_output(0, with_size(value, axis, same_size(c, value[axis], bias[0], "the channels of value and bias")));
}

inline void bias_add_grad_shape(shape_context& c) {
  const int axis = bias_axis(c, "out_backprop");
  c.set_output(0, partial_shape({c.input(0).known_rank() ? c.input(0)[axis] : -1}));
}

inline void softmax_shape(shape_context& c) {
  expect_rank_at_least(c, 0, 1, "logits");
  c.set_output(0, c.input(0));
}

// Logits and labels of `[batch, classes]`, broadcast against each other where their shapes are not one.
inline void softmax_cross_entropy_shape(shape_context& c) {
  const partial_shape matrix = partial_shape::of_rank(2);
  auto both = merge_shapes(c.input(0), matrix);
  if (both) both = merge_shapes(*both, c.input(1));
  if (!both) both = broadcast_shapes(c.input(0), c.input(1));
  if (!both) c.fail("the shapes " + c.input(0).text() + " of logits and " + c.input(1).text() + " of labels cannot be broadcast");
  if (both->rank() != 2) c.fail("logits and labels must be broadcast to rank 2, found shapes " + c.input(0).text() + " and " + c.input(1).text());
  c.set_output(0, partial_shape({(*both)[0]}));
  c.set_output(1, *both);
}

inline void sparse_softmax_cross_entropy_shape(shape_context& c) {
  const partial_shape logits = c.with_rank(0, 2, "logits"), labels = c.with_rank(1, 1, "labels");
  const std::int64_t batch = same_size(c, logits[0], labels[0], "the rows of logits and the labels");
  c.set_output(0, partial_shape({batch}));
  c.set_output(1, partial_shape({batch, logits[1]}));
}

inline void in_top_k_shape(shape_context& c) {
  const partial_shape predictions = c.with_rank(0, 2, "predictions"), targets = c.with_rank(1, 1, "targets");
  if (c.input_count() > 2) (void)c.with_rank(2, 0, "k");
  c.set_output(0, partial_shape({same_size(c, predictions[0], targets[0], "the rows of predictions and the targets")}));
}

// The axis of the channels of images of rank 4, or 5 where data_format names a depth.
inline std::pair<partial_shape, int> normalised_images(const shape_context& c, int i, const char* what) {
  const std::string& format = c.attr<std::string>("data_format");
  const partial_shape images = c.with_rank(i, static_cast<int>(format.size()), what);
  return {images, format[1] == 'C' ? 1 : images.rank() - 1};
}

// Mean and variance have a size of their own (0) where the batch is all that counts.
inline void batch_norm_shape(shape_context& c) {
  const auto [images, axis] = normalised_images(c, 0, "x");
  const bool given = !c.attr<bool>("is_training") || c.attr<float>("exponential_avg_factor") != 1.f;
  std::int64_t channels = images[axis];
  static constexpr const char* names[] = {"x", "scale", "offset", "mean", "variance"};
  for (int i = 1; i < 5; ++i) {
    const partial_shape s = c.with_rank(i, 1, names[i]);
    if (i < 3 || given) channels = same_size(c, channels, s[0], (std::string("the channels of x and the size of ") + names[i]).c_str());
  }
  c.set_output(0, with_size(images, axis, channels));
  for (int i = 1; i < 5; ++i) c.set_output(i, partial_shape({channels}));
}

inline void batch_norm_grad_shape(shape_context& c) {
  const auto [gradient, axis] = normalised_images(c, 0, "y_backprop");
  const auto both = merge_shapes(gradient, normalised_images(c, 1, "x").first);
  if (!both) c.fail("y_backprop and x must have one shape, found " + c.input(0).text() + " and " + c.input(1).text());
  std::int64_t channels = (*both)[axis];
  static constexpr const char* names[] = {"scale", "reserve_space_1", "reserve_space_2"};
  for (int i = 2; i < 5; ++i) channels = same_size(c, channels, c.with_rank(i, 1, names[i - 2])[0], (std::string("the channels of x and the size of ") + names[i - 2]).c_str());
  c.set_output(0, with_size(*both, axis, channels));
  for (int i = 1; i < 3; ++i) c.set_output(i, partial_shape({channels}));
  for (int i = 3; i < 5; ++i) c.set_output(i, partial_shape({0}));
}

inline void lrn_shape(shape_context& c) { c.set_output(0, c.with_rank(0, 4, "input")); }

inline void lrn_grad_shape(shape_context& c) {
  partial_shape s = partial_shape::of_rank(4);
  for (int i = 0; i < 3; ++i) {
    const auto both = merge_shapes(s, c.input(i));
    if (!both) c.fail("input_grads, input_image and output_image must have one shape of rank 4, found " + c.input(0).text() + ", " + c.input(1).text() + " and " + c.input(2).text());
    s = *both;
  }
  c.set_output(0, s);
}

#define WEFT_BIASED "T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, uint32, uint64}"
#define WEFT_FORMAT "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
#define WEFT_FLOATS "T: {half, bfloat16, float, double}"
#define WEFT_NORM "; epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
#define WEFT_NORM_GRAD "; epsilon: float = 0.0001; "
#define WEFT_TRAINING "; is_training: bool = true"
#define WEFT_VOLUMES "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"
inline constexpr op_row nn_ops[] = {
    {"BiasAdd(value: T, bias: T) -> output: T", WEFT_BIASED "; " WEFT_FORMAT, bias_add_shape},
    {"BiasAddV1(value: T, bias: T) -> output: T", WEFT_BIASED, bias_add_shape},
    {"BiasAddGrad(out_backprop: T) -> output: T", WEFT_BIASED "; " WEFT_FORMAT, bias_add_grad_shape},
    {"Softmax(logits: T) -> softmax: T", WEFT_FLOATS, softmax_shape},
    {"LogSoftmax(logits: T) -> logsoftmax: T", WEFT_FLOATS, softmax_shape},
    {"SoftmaxCrossEntropyWithLogits(features: T, labels: T) -> loss: T, backprop: T", WEFT_FLOATS, softmax_cross_entropy_shape},
    {"SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> loss: T, backprop: T", WEFT_FLOATS "; Tlabels: {int32, int64} = int64", sparse_softmax_cross_entropy_shape},
    {"InTopK(predictions: float, targets: T) -> precision: bool", "k: int; T: {int32, int64} = int32", in_top_k_shape},
    {"InTopKV2(predictions: float, targets: T, k: T) -> precision: bool", "T: {int32, int64} = int32", in_top_k_shape},
    {"FusedBatchNorm(x: T, scale: T, offset: T, mean: T, variance: T) -> y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T",
     "T: {float}" WEFT_NORM WEFT_FORMAT WEFT_TRAINING, batch_norm_shape},
    {"FusedBatchNormV2(x: T, scale: U, offset: U, mean: U, variance: U) -> y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U",
     "T: {half, bfloat16, float}; U: {float}" WEFT_NORM WEFT_FORMAT WEFT_TRAINING, batch_norm_shape},
    {"FusedBatchNormV3(x: T, scale: U, offset: U, mean: U, variance: U) -> y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
     "T: {half, bfloat16, float}; U: {bfloat16, float}" WEFT_NORM WEFT_VOLUMES WEFT_TRAINING, batch_norm_shape},
    {"FusedBatchNormGrad(y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T) -> x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
     "T: {float}" WEFT_NORM_GRAD WEFT_FORMAT WEFT_TRAINING, batch_norm_grad_shape},
    {"FusedBatchNormGradV2(y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U) -> x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U",
     "T: {half, bfloat16, float}; U: {float}" WEFT_NORM_GRAD WEFT_FORMAT WEFT_TRAINING, batch_norm_grad_shape},
    {"FusedBatchNormGradV3(y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U) -> x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U",
     "T: {half, bfloat16, float}; U: {float}" WEFT_NORM_GRAD WEFT_VOLUMES WEFT_TRAINING, batch_norm_grad_shape},
    {"LRN(input: T) -> output: T", "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = float", lrn_shape},
    {"LRNGrad(input_grads: T, input_image: T, output_image: T) -> output: T", "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = float", lrn_grad_shape},
};
#undef WEFT_BIASED
#undef WEFT_FORMAT
#undef WEFT_FLOATS
#undef WEFT_NORM
#undef WEFT_NORM_GRAD
#undef WEFT_TRAINING
#undef WEFT_VOLUMES

}  // namespace detail
#endif

}  // namespace weft

#endif
