#ifndef WEFT_OPS_NN_HPP
#define WEFT_OPS_NN_HPP
// Biases, softmax and cross entropies, normalisation and accuracy of neural networks.

#include <weft/graph/tensor.hpp>
#include <weft/ops/nn_losses.hpp>
#include <weft/ops/nn_norm.hpp>
#include <weft/ops/nn_window.hpp>
#include <weft/ops/node_group.hpp>
#include <weft/ops/reduce.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
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

namespace detail {
output add_softmax(const char* op, const side& logits, int axis, const op_name& name);
}  // namespace detail

/// value + bias along the channels: the last axis, or the second for `nchw` (BiasAdd). Throws INVALID_ARGUMENT when their sizes are known to differ.
template <class T, int N, class U, int M> tensor<T, N> bias_add(const operand<T, N>& value, const operand<U, M>& bias, data_format format, op_name name = {}) {
  static_assert(std::is_same_v<T, U>, "weft: bias_add needs two tensors of one dtype; convert one with weft::cast<T>(...)");
  static_assert((N >= 2 || N == dynamic_rank) && (M == 1 || M == dynamic_rank), "weft: bias_add needs a value of rank 2 or more and a bias of rank 1");
  return tensor<T, N>(output{&detail::add_node("BiasAdd", {value.as_input(name.site), bias.as_input(name.site)}, name, {{"data_format", detail::to_text(format)}}), 0});
}
template <class T, int N, class U, int M> tensor<T, N> bias_add(const operand<T, N>& value, const operand<U, M>& bias, op_name name = {}) { return bias_add(value, bias, nhwc, name); }

#define WEFT_SOFTMAX(NAME, OPNAME)                                                                                                                                       \
  template <class T, int N> tensor<T, N> NAME(const operand<T, N>& logits, int axis_number, op_name name = {}) {                                                        \
    static_assert(detail::is_floating_v<T>, "weft: " #NAME " takes float, double, half or bfloat16; convert with weft::cast<T>(...)");                                   \
    static_assert(N != 0, "weft: a tensor of rank 0 has no axis");                                                                                                      \
    return tensor<T, N>(detail::add_softmax(OPNAME, detail::side_of(logits), axis_number, name));                                                                       \
  }                                                                                                                                                                     \
  template <class T, int N> tensor<T, N> NAME(const operand<T, N>& logits, op_name name = {}) { return NAME(logits, -1, name); }                                         \
  template <class T, int N, int A> tensor<T, N> NAME(const operand<T, N>& logits, axis_t<A>, op_name name = {}) {                                                        \
    static_assert(detail::axes_in_range<A>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank)");                                               \
    return NAME(logits, A, name);                                                                                                                                       \
  }
/// exp(x) over its sum along an axis, the last if none is named (Softmax).
WEFT_SOFTMAX(softmax, "Softmax")
/// The logarithm of softmax, exact where softmax is 0 (LogSoftmax).
WEFT_SOFTMAX(log_softmax, "LogSoftmax")
#undef WEFT_SOFTMAX

/// Whether the prediction of each row's target is among the k largest of the row, ties included (InTopKV2). False for targets that are no class, and where numbers are not finite.
template <int N, class L, int M> tensor<bool, 1> in_top_k(const operand<float, N>& predictions, const operand<L, M>& targets, std::common_type_t<L> k, op_name name = {}) {
  static_assert(std::is_same_v<L, std::int32_t> || std::is_same_v<L, std::int64_t>, "weft: targets are numbers of classes, int32 or int64");
  static_assert((N == 2 || N == dynamic_rank) && (M == 1 || M == dynamic_rank), "weft: in_top_k needs predictions of rank 2 and targets of rank 1");
  const detail::node_group g(detail::side_of(predictions), name, "in_top_k");
  const output count = detail::add_const_at(tensor_value::scalar<L>(k), g.name() + "/k", name.site, g.graph());
  return tensor<bool, 1>(g.last("InTopKV2", {g.input(detail::side_of(predictions)), g.input(detail::side_of(targets)), count}));
}

#if WEFT_HAS_BODIES
namespace detail {

// Over another axis than the last, that axis changes places with the last and back.
WEFT_DECL output add_softmax(const char* op, const side& logits, int axis, const op_name& name) {
  if (axis == -1) return add_unary(op, logits, name);
  const node_group g(logits, name, op);
  const output in = g.input(logits);
  const partial_shape& s = in.from->output_shape(in.index);
  if (!s.known_rank()) g.fail("the rank must be known to find axis " + std::to_string(axis));
  if (axis < -s.rank() || axis >= s.rank()) g.fail("axis " + std::to_string(axis) + " is outside the " + std::to_string(s.rank()) + " dimensions of shape " + s.text());
  const int at = axis < 0 ? axis + s.rank() : axis;
  if (at == s.rank() - 1) return g.last(op, {in});
  std::vector<std::int32_t> order;
  for (int i = 0; i < s.rank(); ++i) order.push_back(i == at ? s.rank() - 1 : i == s.rank() - 1 ? at : i);
  const output perm = g.integers(order, "perm"), turned = g.add("Transpose", {in, perm}, "transpose");
  return g.last("Transpose", {g.add(op, {turned}, op), perm});
}

}  // namespace detail
#endif

}  // namespace weft

#endif
