#ifndef WEFT_OPS_NN_NORM_HPP
#define WEFT_OPS_NN_NORM_HPP
// Moments, normalisations and dropout.

#include <weft/graph/tensor.hpp>
#include <weft/ops/nn_losses.hpp>
#include <weft/ops/nn_window.hpp>
#include <weft/ops/node_group.hpp>
#include <weft/ops/random.hpp>
#include <weft/ops/reduce.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
std::pair<output, output> add_moments(const side& x, const std::vector<std::int32_t>& axes, bool keep, const op_name& name);
output add_batch_normalization(const side& x, const side& mean, const side& variance, const side& offset, const side& scale, double epsilon, const op_name& name);
output add_fused_batch_norm(const side& x, const side& scale, const side& offset, const side* mean, const side* variance, float epsilon, data_format format, const op_name& name);
output add_l2_normalize(const side& x, const std::vector<std::int32_t>& axes, double epsilon, const op_name& name);
output add_dropout(const side& x, const side& probability, std::optional<double> value, bool keeps, const side* noise_shape, std::optional<std::int64_t> seed, const op_name& name);
}  // namespace detail

/// Mean and variance of a tensor's elements over some of its axes.
template <class T, int N> struct moments_of {
  tensor<T, N> mean, variance;
};
/// Mean and variance over axes: `auto [mean, variance] = moments(x, axis<0>)`. The variance is that of the elements themselves, over n.
template <class T, int N, int... A> moments_of<T, detail::less_rank(N, sizeof...(A))> moments(const operand<T, N>& x, axis_t<A...>, op_name name = {}) {
  static_assert(detail::axes_in_range<A...>(N) && detail::axes_distinct<A...>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank), or named twice");
  const auto made = detail::add_moments(detail::side_of(x), {A...}, false, name);
  using reduced = tensor<T, detail::less_rank(N, sizeof...(A))>;
  return {reduced(made.first), reduced(made.second)};
}
template <class T, int N, int... A> moments_of<T, N> moments(const operand<T, N>& x, axis_t<A...>, keep_dims_t, op_name name = {}) {
  static_assert(detail::axes_in_range<A...>(N) && detail::axes_distinct<A...>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank), or named twice");
  const auto made = detail::add_moments(detail::side_of(x), {A...}, true, name);
  return {tensor<T, N>(made.first), tensor<T, N>(made.second)};
}
template <class T, int N> moments_of<T, dynamic_rank> moments(const operand<T, N>& x, std::initializer_list<int> axes, op_name name = {}) {
  const auto made = detail::add_moments(detail::side_of(x), {axes.begin(), axes.end()}, false, name);
  return {tensor<T>(made.first), tensor<T>(made.second)};
}
template <class T, int N> moments_of<T, N> moments(const operand<T, N>& x, std::initializer_list<int> axes, keep_dims_t, op_name name = {}) {
  const auto made = detail::add_moments(detail::side_of(x), {axes.begin(), axes.end()}, true, name);
  return {tensor<T, N>(made.first), tensor<T, N>(made.second)};
}

/// (x - mean) / sqrt(variance + epsilon) * scale + offset, with broadcasting. An empty tensor as scale or offset stands for none.
template <class T, int N, int M, int V, int O, int S>
tensor<T, N> batch_normalization(const operand<T, N>& x, const operand<T, M>& mean, const operand<T, V>& variance, const operand<T, O>& offset, const operand<T, S>& scale, double epsilon, op_name name = {}) {
  return tensor<T, N>(detail::add_batch_normalization(detail::side_of(x), detail::side_of(mean), detail::side_of(variance), detail::side_of(offset), detail::side_of(scale), epsilon, name));
}

/// Images normalised over their batch, with what training keeps of it: the batch's mean and its variance over n - 1.
template <class T> struct normalised_batch {
  tensor<T, 4> y;
  tensor<float, 1> mean, variance;
};
namespace detail {
template <class T> normalised_batch<T> normalised(const output& y) { return {tensor<T, 4>(y), tensor<float, 1>(output{y.from, 1}), tensor<float, 1>(output{y.from, 2})}; }
}  // namespace detail
/// Normalises images by the mean and variance of each channel over the batch, for training (FusedBatchNormV3). Scale and offset have shape `[channels]`.
template <class T, int N> normalised_batch<T> fused_batch_norm(const operand<T, N>& x, const operand<float, 1>& scale, const operand<float, 1>& offset, float epsilon = 0.001f, data_format format = nhwc, op_name name = {}) {
  static_assert(N == 4 || N == dynamic_rank, "weft: fused_batch_norm needs images of rank 4");
  static_assert(detail::is_floating_v<T> && !std::is_same_v<T, double>, "weft: fused_batch_norm takes images of float, half or bfloat16");
  return detail::normalised<T>(detail::add_fused_batch_norm(detail::side_of(x), detail::side_of(scale), detail::side_of(offset), nullptr, nullptr, epsilon, format, name));
}
/// Normalises images by a given mean and variance of each channel, for inference (FusedBatchNormV3).
template <class T, int N>
normalised_batch<T> fused_batch_norm(const operand<T, N>& x, const operand<float, 1>& scale, const operand<float, 1>& offset, const operand<float, 1>& mean, const operand<float, 1>& variance, float epsilon = 0.001f,
                                     data_format format = nhwc, op_name name = {}) {
  static_assert(N == 4 || N == dynamic_rank, "weft: fused_batch_norm needs images of rank 4");
  static_assert(detail::is_floating_v<T> && !std::is_same_v<T, double>, "weft: fused_batch_norm takes images of float, half or bfloat16");
  const detail::side means = detail::side_of(mean), variances = detail::side_of(variance);
  return detail::normalised<T>(detail::add_fused_batch_norm(detail::side_of(x), detail::side_of(scale), detail::side_of(offset), &means, &variances, epsilon, format, name));
}

/// x over the root of its sum of squares along axes, of at least epsilon.
template <class T, int N, int... A> tensor<T, N> l2_normalize(const operand<T, N>& x, axis_t<A...>, double epsilon = 1e-12, op_name name = {}) {
  static_assert(detail::axes_in_range<A...>(N) && detail::axes_distinct<A...>(N), "weft: an axis is outside the tensor's dimensions (-rank <= axis < rank), or named twice");
  return tensor<T, N>(detail::add_l2_normalize(detail::side_of(x), {A...}, epsilon, name));
}
template <class T, int N> tensor<T, N> l2_normalize(const operand<T, N>& x, std::initializer_list<int> axes, double epsilon = 1e-12, op_name name = {}) {
  return tensor<T, N>(detail::add_l2_normalize(detail::side_of(x), {axes.begin(), axes.end()}, epsilon, name));
}

/// How a local response normalisation weighs neighbouring channels.
struct lrn_options {
  std::int64_t depth_radius = 5;
  float bias = 1, alpha = 1, beta = 0.5f;
};
/// Images over (bias + alpha * the squares of the channels at most depth_radius away) to the power of beta (LRN).
template <class T, int N> tensor<T, 4> local_response_normalization(const operand<T, N>& images, lrn_options options = {}, op_name name = {}) {
  static_assert(N == 4 || N == dynamic_rank, "weft: local_response_normalization needs images of rank 4");
  static_assert(detail::is_floating_v<T> && !std::is_same_v<T, double>, "weft: local_response_normalization takes images of float, half or bfloat16");
  return tensor<T, 4>(detail::add_unary("LRN", detail::side_of(images), name,
                                        {{"depth_radius", options.depth_radius}, {"bias", options.bias}, {"alpha", options.alpha}, {"beta", options.beta}}));
}

/// The share of elements that dropout keeps: a number, or a scalar tensor, which a step may be fed with.
class keep_prob {
 public:
  explicit keep_prob(double value) : value_(value) {}
  template <class T, int N> explicit keep_prob(const operand<T, N>& value) : side_(detail::side_of(value)), type_(dtype_of<T>) {
    static_assert(N == 0 || N == dynamic_rank, "weft: a probability is a number or a tensor of rank 0");
  }
  std::optional<double> value() const noexcept { return value_; }
  const detail::side& tensor() const noexcept { return side_; }
  dtype type() const noexcept { return type_; }

 private:
  std::optional<double> value_;
  detail::side side_;
  dtype type_ = dtype::invalid;
};
/// The share of elements that dropout takes away.
class drop_rate : public keep_prob {
 public:
  using keep_prob::keep_prob;
};

namespace detail {
template <class T> output dropout_of(const side& x, const keep_prob& p, bool keeps, const side* noise_shape, std::optional<std::int64_t> seed, const op_name& name) {
  static_assert(is_floating_v<T>, "weft: dropout takes float, double, half or bfloat16");
  if (!p.value() && p.type() != dtype_of<T>) throw error(error_code::invalid_argument, std::string("dropout: the probability must be ") + to_text(dtype_of<T>) + " as the tensor, found " + to_text(p.type()), name.site);
  return add_dropout(x, p.tensor(), p.value(), keeps, noise_shape, seed, name);
}
}  // namespace detail
/// Sets elements to zero at random, anew in each step, and scales the others so that sums keep their mean: `dropout(x, keep_prob(0.5))` or `dropout(x, drop_rate(0.5))`.
template <class T, int N> tensor<T, N> dropout(const operand<T, N>& x, const keep_prob& p, std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  return tensor<T, N>(detail::dropout_of<T>(detail::side_of(x), p, true, nullptr, seed, name));
}
template <class T, int N> tensor<T, N> dropout(const operand<T, N>& x, const drop_rate& p, std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  return tensor<T, N>(detail::dropout_of<T>(detail::side_of(x), p, false, nullptr, seed, name));
}
/// The same with one choice for all elements that a broadcast of `noise_shape` to the shape of x joins: 1 in place of an axis keeps or drops along it together.
template <class T, int N, int M> tensor<T, N> dropout(const operand<T, N>& x, const keep_prob& p, const operand<std::int32_t, M>& noise_shape, std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  const detail::side shape = detail::side_of(noise_shape);
  return tensor<T, N>(detail::dropout_of<T>(detail::side_of(x), p, true, &shape, seed, name));
}
template <class T, int N, int M> tensor<T, N> dropout(const operand<T, N>& x, const drop_rate& p, const operand<std::int32_t, M>& noise_shape, std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  const detail::side shape = detail::side_of(noise_shape);
  return tensor<T, N>(detail::dropout_of<T>(detail::side_of(x), p, false, &shape, seed, name));
}

#if WEFT_HAS_BODIES
namespace detail {

// Half and bfloat16 are summed in float.
WEFT_DECL std::pair<output, output> add_moments(const side& x, const std::vector<std::int32_t>& axes, bool keep, const op_name& name) {
  const node_group g(x, name, "moments");
  output in = g.input(x);
  const dtype type = in.from->output_dtype(in.index);
  const bool narrow = type == dtype::half || type == dtype::bfloat16;
  if (narrow) in = g.add("Cast", {in}, "Cast", {{"DstT", dtype::float32}});
  output mean = g.reduce("Mean", in, axes, "mean");
  const output distance = g.add("SquaredDifference", {in, g.add("StopGradient", {mean}, "StopGradient")}, "SquaredDifference");
  output variance = g.reduce("Mean", distance, axes, "variance");
  if (!keep) {
    const std::vector<std::int64_t> squeezed(axes.begin(), axes.end());
    // Without axes nothing is squeezed: no list would mean all axes of one element.
    mean = g.add(axes.empty() ? "Identity" : "Squeeze", {mean}, "Squeeze", axes.empty() ? attr_map{} : attr_map{{"squeeze_dims", squeezed}});
    variance = g.add(axes.empty() ? "Identity" : "Squeeze", {variance}, "Squeeze_1", axes.empty() ? attr_map{} : attr_map{{"squeeze_dims", squeezed}});
  }
  if (narrow) mean = g.add("Cast", {mean}, "Cast_1", {{"DstT", type}});
  if (narrow) variance = g.add("Cast", {variance}, "Cast_2", {{"DstT", type}});
  return {mean, variance};
}

WEFT_DECL output add_batch_normalization(const side& x, const side& mean, const side& variance, const side& offset, const side& scale, double epsilon, const op_name& name) {
  const node_group g(x, name, "batchnorm");
  const output in = g.input(x), m = g.input(mean), v = g.input(variance);
  const dtype type = in.from->output_dtype(in.index);
  output inverse = g.add("Rsqrt", {g.add("AddV2", {v, g.number(epsilon, type, "add/y")}, "add")}, "Rsqrt");
  if (scale.out.from != nullptr) inverse = g.add("Mul", {inverse, g.input(scale)}, "mul");
  const output shift = g.add("Mul", {m, inverse}, "mul_2");
  const output rest = offset.out.from == nullptr ? g.add("Neg", {shift}, "Neg") : g.add("Sub", {g.input(offset), shift}, "sub");
  return g.last("AddV2", {g.add("Mul", {in, inverse}, "mul_1"), rest});
}

WEFT_DECL output add_fused_batch_norm(const side& x, const side& scale, const side& offset, const side* mean, const side* variance, float epsilon, data_format format, const op_name& name) {
  const node_group g(x, name, "FusedBatchNorm");
  const auto given = [&](const side* s, const char* below) { return s != nullptr ? g.input(*s) : add_const_at(tensor_value::from<float>({0}, {}), g.name() + "/" + below, g.site(), g.graph()); };
  const output images = g.input(x), scales = g.input(scale), offsets = g.input(offset), means = given(mean, "mean"), variances = given(variance, "variance");
  return g.last("FusedBatchNormV3", {images, scales, offsets, means, variances}, {{"epsilon", epsilon}, {"data_format", to_text(format)}, {"is_training", mean == nullptr}});
}

WEFT_DECL output add_l2_normalize(const side& x, const std::vector<std::int32_t>& axes, double epsilon, const op_name& name) {
  const node_group g(x, name, "l2_normalize");
  const output in = g.input(x);
  const output sum = g.reduce("Sum", g.add("Square", {in}, "Square"), axes, "Sum");
  const output inverse = g.add("Rsqrt", {g.add("Maximum", {sum, g.number(epsilon, in.from->output_dtype(in.index), "Maximum/y")}, "Maximum")}, "Rsqrt");
  return g.last("Mul", {in, inverse});
}

// x / (1 - rate) where a number of [0, 1) is at least the rate, else 0. A number that keeps all needs no node but the name's.
WEFT_DECL output add_dropout(const side& x, const side& probability, std::optional<double> value, bool keeps, const side* noise_shape, std::optional<std::int64_t> seed, const op_name& name) {
  if (value && !(keeps ? *value > 0 && *value <= 1 : *value >= 0 && *value < 1))
    throw error(error_code::invalid_argument, keeps ? "keep_prob must be in (0, 1], found " + std::to_string(*value) : "drop_rate must be in [0, 1), found " + std::to_string(*value), name.site);
  const node_group g(x, name, "dropout");
  const output in = g.input(x);
  if (value && *value == (keeps ? 1.0 : 0.0)) return g.last("Identity", {in});
  const dtype type = in.from->output_dtype(in.index);
  const auto seeds = op_seeds(g.graph(), seed);
  const output one = g.number(1, type, "one");
  const output rate = value ? g.number(keeps ? 1 - *value : *value, type, "rate") : keeps ? g.add("Sub", {one, g.input(probability)}, "rate") : g.input(probability);
  const output sizes = noise_shape != nullptr ? g.input(*noise_shape) : g.add("Shape", {in}, "Shape");
  const output drawn = g.add("RandomUniform", {sizes}, "random_uniform/RandomUniform", {{"dtype", type}, {"seed", seeds.first}, {"seed2", seeds.second}});
  const output scale = g.add("RealDiv", {one, g.add("Sub", {one, rate}, "sub")}, "truediv");
  const output kept = g.add("Cast", {g.add("GreaterEqual", {drawn, rate}, "GreaterEqual")}, "Cast", {{"DstT", type}});
  return g.last("Mul", {g.add("Mul", {in, scale}, "mul"), kept});
}

}  // namespace detail
#endif

}  // namespace weft

#endif
