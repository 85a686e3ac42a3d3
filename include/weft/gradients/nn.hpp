#ifndef WEFT_GRADIENTS_NN_HPP
#define WEFT_GRADIENTS_NN_HPP
// Gradients of the ops of neural networks.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

inline attr_map attrs_of(const gradient_context& c, std::initializer_list<const char*> names) {
  attr_map out;
  for (const char* name : names) {
    attr_value v = c.attr_of(name);
    if (!v.empty()) out[name] = std::move(v);
  }
  return out;
}

// Activations whose gradient op takes the gradient that came and the output, or the input.
inline void relu_gradient(gradient_context& c) { c.set(0, c.add("ReluGrad", {c.gradient(), c.result()})); }
inline void relu6_gradient(gradient_context& c) { c.set(0, c.add("Relu6Grad", {c.gradient(), c.result()})); }
inline void elu_gradient(gradient_context& c) { c.set(0, c.add("EluGrad", {c.gradient(), c.result()})); }
inline void selu_gradient(gradient_context& c) { c.set(0, c.add("SeluGrad", {c.gradient(), c.result()})); }
inline void softplus_gradient(gradient_context& c) { c.set(0, c.add("SoftplusGrad", {c.gradient(), c.input(0)})); }
inline void softsign_gradient(gradient_context& c) { c.set(0, c.add("SoftsignGrad", {c.gradient(), c.input(0)})); }
inline void leaky_relu_gradient(gradient_context& c) { c.set(0, c.add("LeakyReluGrad", {c.gradient(), c.input(0)}, attrs_of(c, {"alpha"}))); }

// The same ops once more: inputs dy and what the activation gave or took.
inline void flat_grad_gradient(gradient_context& c, const char* op) {
  if (c.wants(0)) c.set(0, c.add(op, {c.gradient(), c.input(1)}, attrs_of(c, {"alpha"})));
  if (c.wants(1)) c.set(1, c.zeros_like(c.input(1)));
}
inline void relu_grad_gradient(gradient_context& c) { flat_grad_gradient(c, "ReluGrad"); }
inline void relu6_grad_gradient(gradient_context& c) { flat_grad_gradient(c, "Relu6Grad"); }
inline void leaky_relu_grad_gradient(gradient_context& c) { flat_grad_gradient(c, "LeakyReluGrad"); }
inline void exponential_grad_gradient(gradient_context& c, const char* op) {
  const term g = gradient_term(c), y = input(c, 1);
  if (c.wants(0)) c.set(0, apply(op, g, y));
  if (c.wants(1)) c.set(1, select(apply("Less", y, zero(y)), g * input(c, 0), zero(y)));
}
inline void elu_grad_gradient(gradient_context& c) { exponential_grad_gradient(c, "EluGrad"); }
inline void selu_grad_gradient(gradient_context& c) { exponential_grad_gradient(c, "SeluGrad"); }
inline void softplus_grad_gradient(gradient_context& c) {
  const term g = gradient_term(c), x = input(c, 1);
  if (c.wants(0)) c.set(0, apply("SoftplusGrad", g, x));
  if (c.wants(1)) c.set(1, g * input(c, 0) / (exp(-x) + (2 + exp(x))));
}

inline term sum_of_last(const term& x) { return {x.make, x.make->sum(x, x.make->integers({-1}), true)}; }
inline void softmax_gradient(gradient_context& c) {
  const term g = gradient_term(c), y = result(c);
  c.set(0, (g - sum_of_last(g * y)) * y);
}
inline void log_softmax_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  c.set(0, g - sum_of_last(g) * exp(result(c)));
}
inline term column(const gradient_context& c, output x) { return {&c, c.add("ExpandDims", {x, c.integer(-1)})}; }
// The loss' gradient times the op's second output; and what came for that output, through the derivative of softmax.
inline term cross_entropy_for_logits(gradient_context& c) {
  const term loss = column(c, c.gradient(0)), g = loss * result(c, 1);
  if (!c.has_gradient(1)) return g;
  const term second = gradient_term(c, 1), softmax = apply("Softmax", input(c, 0));
  return g + (second - sum_of_last(second * softmax)) * softmax;
}
// One side that was broadcast to the other's shape gets the sum.
inline output for_shape_of(const gradient_context& c, int side, const term& g) {
  const partial_shape &a = gradient_context::shape(c.input(side)), &b = gradient_context::shape(c.input(1 - side));
  return a.known_rank() && b.known_rank() && !merge_shapes(a, b) ? c.sum_to(g, c.input(side), c.input(1 - side)) : g;
}
inline void softmax_cross_entropy_gradient(gradient_context& c) {
  if (c.wants(0)) c.set(0, for_shape_of(c, 0, cross_entropy_for_logits(c)));
  if (c.wants(1)) c.set(1, for_shape_of(c, 1, column(c, c.gradient(0)) * -apply("LogSoftmax", input(c, 0))));
}
inline void sparse_softmax_cross_entropy_gradient(gradient_context& c) { c.set(0, cross_entropy_for_logits(c)); }

inline void bias_add_gradient(gradient_context& c) {
  c.set(0, c.gradient_as_it_is());
  if (c.wants(1)) c.set(1, c.add("BiasAddGrad", {c.gradient()}, attrs_of(c, {"data_format"})));
}
inline void bias_add_v1_gradient(gradient_context& c) {
  c.set(0, c.gradient_as_it_is());
  if (!c.wants(1)) return;
  const output last = c.add("Sub", {c.rank_of(c.gradient()), c.integer(1)});
  c.set(1, c.sum(c.gradient(), c.add("Range", {c.integer(0), last, c.integer(1)})));
}
inline void bias_add_grad_gradient(gradient_context& c) {
  const output x = c.input(0);
  const auto* format = c.find_attr<std::string>("data_format");
  output g = c.gradient();
  if (format != nullptr && *format == "NCHW") {
    const output ones = c.add("Fill", {c.add("ExpandDims", {c.add("Sub", {c.rank_of(x), c.integer(2)}), c.integer(0)}), c.integer(1)});
    g = c.reshape(g, c.add_list("ConcatV2", {c.integers({-1}), ones, c.integer(0)}, {{"N", 2}}));
  }
  c.set(0, c.add("BroadcastTo", {g, c.shape_of(x)}));
}

// Convolutions: input and filter, each from the other and what came for the output.
struct convolution_ops {
  const char *forward, *for_input, *for_filter;
};
template <bool Depthwise> constexpr convolution_ops ops_of_convolution{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
template <> inline constexpr convolution_ops ops_of_convolution<true>{"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"};
inline attr_map convolution_attrs(const gradient_context& c) { return attrs_of(c, {"strides", "padding", "use_cudnn_on_gpu", "explicit_paddings", "data_format", "dilations"}); }
template <bool Depthwise> void convolution_gradient(gradient_context& c) {
  constexpr convolution_ops ops = ops_of_convolution<Depthwise>;
  const output g = c.gradient();
  if (c.wants(0)) c.set(0, c.add(ops.for_input, {c.shape_of(c.input(0)), c.input(1), g}, convolution_attrs(c)));
  if (c.wants(1)) c.set(1, c.add(ops.for_filter, {c.input(0), c.shape_of(c.input(1)), g}, convolution_attrs(c)));
}
// Inputs: sizes of the input, filter, dy.
template <bool Depthwise> void convolution_input_gradient(gradient_context& c) {
  constexpr convolution_ops ops = ops_of_convolution<Depthwise>;
  const output g = c.gradient();
  if (c.wants(1)) c.set(1, c.add(ops.for_filter, {g, c.shape_of(c.input(1)), c.input(2)}, convolution_attrs(c)));
  if (c.wants(2)) c.set(2, c.add(ops.forward, {g, c.input(1)}, convolution_attrs(c)));
}
// Inputs: input, sizes of the filter, dy.
template <bool Depthwise> void convolution_filter_gradient(gradient_context& c) {
  constexpr convolution_ops ops = ops_of_convolution<Depthwise>;
  const output g = c.gradient();
  if (c.wants(0)) c.set(0, c.add(ops.for_input, {c.shape_of(c.input(0)), g, c.input(2)}, convolution_attrs(c)));
  if (c.wants(2)) c.set(2, c.add(ops.forward, {c.input(0), g}, convolution_attrs(c)));
}

inline attr_map pool_attrs(const gradient_context& c) { return attrs_of(c, {"ksize", "strides", "padding", "explicit_paddings", "data_format"}); }
inline void max_pool_gradient(gradient_context& c) { c.set(0, c.add("MaxPoolGrad", {c.input(0), c.result(), c.gradient()}, pool_attrs(c))); }
inline void max_pool_grad_gradient(gradient_context& c) {
  for (int i = 0; i < 2; ++i)
    if (c.wants(i)) c.set(i, c.zeros_like(c.input(i)));
  if (!c.wants(2)) return;
  attr_map attrs = pool_attrs(c);
  attrs.erase("explicit_paddings");
  c.set(2, c.add("MaxPoolGradGrad", {c.input(0), c.input(1), c.gradient()}, std::move(attrs)));
}
inline void max_pool_grad_grad_gradient(gradient_context& c) {
  for (int i = 0; i < 2; ++i)
    if (c.wants(i)) c.set(i, c.zeros_like(c.input(i)));
  if (c.wants(2)) c.set(2, c.add("MaxPoolGrad", {c.input(0), c.input(1), c.gradient()}, pool_attrs(c)));
}
inline void avg_pool_gradient(gradient_context& c) { c.set(0, c.add("AvgPoolGrad", {c.shape_of(c.input(0)), c.gradient()}, pool_attrs(c))); }
// The sizes have themselves as their gradient, as TensorFlow.
inline void avg_pool_grad_gradient(gradient_context& c) {
  if (c.wants(0)) c.set(0, c.add("StopGradient", {c.input(0)}));
  if (c.wants(1)) c.set(1, c.add("AvgPool", {c.gradient()}, pool_attrs(c)));
}

// Batch normalisation takes the gradient of its first output only. While training, the statistics are those of the batch, kept in outputs 3 and 4.
inline void batch_norm_gradient(gradient_context& c, const char* op, bool third_reserve) {
  const bool training = c.attr<bool>("is_training");
  std::vector<output> inputs{c.gradient(0), c.input(0), c.input(1), training ? c.result(3) : c.input(3), training ? c.result(4) : c.input(4)};
  if (third_reserve) inputs.push_back(c.result(5));
  const node* made = c.add_list(op, std::move(inputs), attrs_of(c, {"epsilon", "data_format", "is_training"})).from;
  for (int i = 0; i < 3; ++i) c.set(i, output{made, i});
}
inline void fused_batch_norm_gradient(gradient_context& c) { batch_norm_gradient(c, "FusedBatchNormGrad", false); }
inline void fused_batch_norm_v2_gradient(gradient_context& c) { batch_norm_gradient(c, "FusedBatchNormGradV2", false); }
inline void fused_batch_norm_v3_gradient(gradient_context& c) { batch_norm_gradient(c, "FusedBatchNormGradV3", true); }

// Its second derivative, in float: what was normalised, h = (x - mean) / sqrt(variance + epsilon), with what belongs to each channel shaped so that it broadcasts against images.
// While training, mean and variance are computed again, so that they depend on x in further derivatives too.
struct normalised_term {
  const gradient_context* make;
  output axes, channel_shape;
  term h{}, factor{};

  term images(output x) const { return {make, make->cast(x, dtype::float32)}; }
  term channels(output numbers) const { return {make, make->reshape(make->cast(numbers, dtype::float32), channel_shape)}; }
  term mean(const term& x) const { return {make, make->add("Mean", {x, axes}, {{"keep_dims", true}})}; }
};
inline normalised_term normalised_again(const gradient_context& c, bool training) {
  const auto& format = c.attr<std::string>("data_format");
  const std::size_t channel_axis = format[1] == 'C' ? 1 : format.size() - 1;
  std::vector<std::int64_t> axes, sizes(format.size(), 1);
  sizes[channel_axis] = -1;
  for (std::size_t i = 0; i < format.size(); ++i)
    if (i != channel_axis) axes.push_back(static_cast<std::int64_t>(i));
  normalised_term n{&c, c.integers(axes), c.integers(sizes)};
  const term x = n.images(c.input(1)), centred = x - (training ? n.mean(x) : n.channels(c.input(3)));
  const term variance = training ? n.mean(square(centred)) : n.channels(c.input(4));
  n.factor = apply("Rsqrt", static_cast<double>(c.attr<float>("epsilon")) + variance);
  n.h = centred * n.factor;
  return n;
}

// The op gives the gradients scale f(dy), sum(dy h) and sum(dy). With given statistics f(v) = v factor. Those of the batch make it f(v) = (v - mean(v) - h mean(v h)) factor, which
// is its own adjoint and how the derivative goes from h to x; they come in through h and factor once more. Mean and variance that are given have no gradients, as in TensorFlow.
inline void batch_norm_grad_gradient(gradient_context& c) {
  const bool training = c.attr<bool>("is_training");
  const normalised_term n = normalised_again(c, training);
  const term dy = n.images(c.input(0)), scale = n.channels(c.input(2)), g = n.images(c.gradient(0)), for_scale = n.channels(c.gradient(1)), for_offset = n.channels(c.gradient(2));
  const auto back = [&](const term& v, const term& along) { return (v - n.mean(v) - n.h * along) * n.factor; };
  const term g_along = training ? n.mean(g * n.h) : term{}, dy_along = training ? n.mean(dy * n.h) : term{};
  const term g_back = training ? back(g, g_along) : g * n.factor, dy_back = training ? back(dy, dy_along) : dy * n.factor;
  if (c.wants(0)) c.set(0, c.cast(scale * g_back + for_scale * n.h + for_offset, gradient_context::dtype_of(c.input(0))));
  if (c.wants(2)) c.set(2, c.sum(g * dy_back, n.axes));
  if (!c.wants(1)) return;
  const auto x_gradient = [&] {
    if (!training) return for_scale * dy_back;
    const term factor = scale * n.factor, for_h = for_scale * dy - factor * (g * dy_along + dy * g_along);
    return back(for_h, n.mean(for_h * n.h)) - factor * n.mean(g * dy_back) * n.h;
  };
  c.set(1, c.cast(x_gradient(), gradient_context::dtype_of(c.input(1))));
}
inline void lrn_gradient(gradient_context& c) {
  c.set(0, c.add("LRNGrad", {c.gradient(), c.input(0), c.result()}, attrs_of(c, {"depth_radius", "bias", "alpha", "beta"})));
}

inline void add_nn_gradients(gradient_registry& rules) {
  rules.add({{"Relu", relu_gradient}, {"ReluGrad", relu_grad_gradient}, {"Relu6", relu6_gradient}, {"Relu6Grad", relu6_grad_gradient}, {"LeakyRelu", leaky_relu_gradient},
             {"LeakyReluGrad", leaky_relu_grad_gradient}, {"Elu", elu_gradient}, {"EluGrad", elu_grad_gradient}, {"Selu", selu_gradient}, {"SeluGrad", selu_grad_gradient},
             {"Softplus", softplus_gradient}, {"SoftplusGrad", softplus_grad_gradient}, {"Softsign", softsign_gradient}});
  rules.add({{"Softmax", softmax_gradient}, {"LogSoftmax", log_softmax_gradient}, {"SoftmaxCrossEntropyWithLogits", softmax_cross_entropy_gradient},
             {"SparseSoftmaxCrossEntropyWithLogits", sparse_softmax_cross_entropy_gradient}, {"BiasAdd", bias_add_gradient}, {"BiasAddV1", bias_add_v1_gradient},
             {"BiasAddGrad", bias_add_grad_gradient}});
  rules.add({{"Conv2D", convolution_gradient<false>}, {"Conv2DBackpropInput", convolution_input_gradient<false>}, {"Conv2DBackpropFilter", convolution_filter_gradient<false>},
             {"DepthwiseConv2dNative", convolution_gradient<true>}, {"DepthwiseConv2dNativeBackpropInput", convolution_input_gradient<true>},
             {"DepthwiseConv2dNativeBackpropFilter", convolution_filter_gradient<true>}});
  rules.add({{"MaxPool", max_pool_gradient}, {"MaxPoolGrad", max_pool_grad_gradient}, {"MaxPoolGradGrad", max_pool_grad_grad_gradient}, {"AvgPool", avg_pool_gradient},
             {"AvgPoolGrad", avg_pool_grad_gradient}, {"FusedBatchNorm", fused_batch_norm_gradient}, {"FusedBatchNormV2", fused_batch_norm_v2_gradient},
             {"FusedBatchNormV3", fused_batch_norm_v3_gradient}, {"FusedBatchNormGrad", batch_norm_grad_gradient}, {"FusedBatchNormGradV2", batch_norm_grad_gradient},
             {"FusedBatchNormGradV3", batch_norm_grad_gradient}, {"LRN", lrn_gradient}});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
