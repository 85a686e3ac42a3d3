#ifndef WEFT_OPS_NN_LOSSES_HPP
#define WEFT_OPS_NN_LOSSES_HPP
// Losses of TensorFlow's tf.nn: cross entropies of classes and of independent events, and of Poisson distributed counts.

#include <weft/graph/tensor.hpp>
#include <weft/ops/node_group.hpp>
#include <weft/ops/reduce.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace weft {

/// Whether a Poisson loss adds Stirling's approximation of the term that does not depend on the prediction.
enum class poisson_loss { without_constant, full };

namespace detail {

output add_softmax_cross_entropy(const side& labels, const side& logits, bool stop, const op_name& name);
output add_sparse_softmax_cross_entropy(const side& labels, const side& logits, const op_name& name);
output add_sigmoid_cross_entropy(const side& labels, const side& logits, const op_name& name);
output add_weighted_cross_entropy(const side& labels, const side& logits, const side& weight, const op_name& name);
output add_poisson_loss(const side& targets, const side& log_input, bool full, const op_name& name);

template <class T> constexpr bool is_floating_v = std::is_floating_point_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
constexpr bool ranks_agree(int a, int b) { return a == dynamic_rank || b == dynamic_rank || a == b; }

#if WEFT_HAS_BODIES
// Logits or labels as a matrix: all axes but the last are one.
inline output rows_of_classes(const node_group& g, const output& x, const char* below) {
  const partial_shape& s = x.from->output_shape(x.index);
  if (s.known_rank() && s.rank() == 2) return x;
  if (s.known_rank() && s.rank() == 0) g.fail("there must be an axis of classes, found shape []");
  const std::string scope = below;
  const auto named = [&](const char* name) { return scope + "/" + name; };
  if (s.known_rank() && s[s.rank() - 1] >= 0 && s[s.rank() - 1] <= INT32_MAX)
    return g.add("Reshape", {x, g.integers({-1, static_cast<std::int32_t>(s[s.rank() - 1])}, named("shape").c_str())}, below);
  const output sizes = g.add("Shape", {x}, named("Shape").c_str()), last = g.integers({-1}, named("begin").c_str());
  const output classes = g.add("StridedSlice", {sizes, last, g.integers({0}, named("end").c_str()), g.integers({1}, named("strides").c_str())}, named("classes").c_str(),
                               {{"end_mask", std::int64_t{1}}});
  const output wanted = g.add("ConcatV2", {last, classes, g.integer(0, named("axis").c_str())}, named("concat").c_str(), {{"N", std::int64_t{2}}});
  return g.add("Reshape", {x, wanted}, below);
}

// A loss for each row, in the shape of the logits without their last axis.
inline output in_outer_shape(const node_group& g, const output& loss, const output& logits) {
  const partial_shape& s = logits.from->output_shape(logits.index);
  if (s.fully_known()) {
    std::vector<std::int32_t> outer;
    for (int i = 0; i + 1 < s.rank(); ++i) {
      if (s[i] > INT32_MAX) g.fail("the logits' shape " + s.text() + " is too large");
      outer.push_back(static_cast<std::int32_t>(s[i]));
    }
    return g.last("Reshape", {loss, g.integers(outer, "outer")});
  }
  const output sizes = g.add("Shape", {logits}, "Shape");
  const output outer = g.add("StridedSlice", {sizes, g.integers({0}, "outer/begin"), g.integers({-1}, "outer/end"), g.integers({1}, "outer/strides")}, "outer", {{"begin_mask", std::int64_t{1}}});
  return g.last("Reshape", {loss, outer});
}

WEFT_DECL output add_softmax_cross_entropy(const side& labels, const side& logits, bool stop, const op_name& name) {
  const node_group g(logits, name, "softmax_cross_entropy_with_logits");
  const output scores = g.input(logits);
  output wanted = g.input(labels);
  if (stop) wanted = g.add("StopGradient", {wanted}, "labels_stop_gradient");
  const partial_shape& s = scores.from->output_shape(scores.index);
  const output rows = rows_of_classes(g, scores, "Reshape"), label_rows = rows_of_classes(g, wanted, "Reshape_1");
  if (s.known_rank() && s.rank() == 2) return g.last("SoftmaxCrossEntropyWithLogits", {rows, label_rows});
  return in_outer_shape(g, g.add("SoftmaxCrossEntropyWithLogits", {rows, label_rows}, "loss"), scores);
}

WEFT_DECL output add_sparse_softmax_cross_entropy(const side& labels, const side& logits, const op_name& name) {
  const node_group g(logits, name, "SparseSoftmaxCrossEntropyWithLogits");
  const output scores = g.input(logits);
  output wanted = g.input(labels);
  const partial_shape &s = scores.from->output_shape(scores.index), &l = wanted.from->output_shape(wanted.index);
  if (s.known_rank() && l.known_rank() && s.rank() != l.rank() + 1)
    g.fail("logits must have one axis more than labels, found shapes " + s.text() + " and " + l.text());
  if (s.known_rank() && s.rank() == 2) return g.last("SparseSoftmaxCrossEntropyWithLogits", {scores, wanted});
  const output rows = rows_of_classes(g, scores, "Reshape");
  wanted = g.add("Reshape", {wanted, g.integers({-1}, "Reshape_1/shape")}, "Reshape_1");
  return in_outer_shape(g, g.add("SparseSoftmaxCrossEntropyWithLogits", {rows, wanted}, "loss"), scores);
}

// max(x, 0) - x z + log(1 + exp(-|x|)), whose gradient at 0 is that of either side, as TensorFlow builds it.
WEFT_DECL output add_sigmoid_cross_entropy(const side& labels, const side& logits, const op_name& name) {
  const node_group g(logits, name, "logistic_loss");
  const output x = g.input(logits), z = g.input(labels);
  const output zeros = g.add("ZerosLike", {x}, "zeros_like"), positive = g.add("GreaterEqual", {x, zeros}, "GreaterEqual");
  const output relu = g.add("Select", {positive, x, zeros}, "Select"), negative = g.add("Neg", {x}, "Neg"), below = g.add("Select", {positive, negative, x}, "Select_1");
  const output linear = g.add("Sub", {relu, g.add("Mul", {x, z}, "mul")}, "sub");
  return g.last("AddV2", {linear, g.add("Log1p", {g.add("Exp", {below}, "Exp")}, "Log1p")});
}

// (1 - z) x + (1 + (w - 1) z) (log(1 + exp(-|x|)) + max(-x, 0)).
WEFT_DECL output add_weighted_cross_entropy(const side& labels, const side& logits, const side& weight, const op_name& name) {
  const node_group g(logits, name, "logistic_loss");
  const output x = g.input(logits), z = g.input(labels);
  const dtype type = x.from->output_dtype(x.index);
  const output one = g.number(1, type, "one"), w = weight.number.empty() ? g.input(weight) : add_const_at(weight.number, g.name() + "/pos_weight", g.site(), g.graph());
  const output log_weight = g.add("AddV2", {one, g.add("Mul", {g.add("Sub", {w, one}, "sub"), z}, "mul")}, "add");
  const output linear = g.add("Mul", {g.add("Sub", {one, z}, "sub_1"), x}, "mul_1");
  const output soft = g.add("Log1p", {g.add("Exp", {g.add("Neg", {g.add("Abs", {x}, "Abs")}, "Neg")}, "Exp")}, "Log1p");
  const output rest = g.add("AddV2", {soft, g.add("Relu", {g.add("Neg", {x}, "Neg_1")}, "Relu")}, "add_1");
  return g.last("AddV2", {linear, g.add("Mul", {log_weight, rest}, "mul_2")});
}

// exp(c) - z c, and where it is wanted z log z - z + log(2 pi z) / 2 for counts above 1.
WEFT_DECL output add_poisson_loss(const side& targets, const side& log_input, bool full, const op_name& name) {
  const node_group g(log_input, name, "log_poisson_loss");
  const output c = g.input(log_input), z = g.input(targets);
  const output exponential = g.add("Exp", {c}, "Exp"), product = g.add("Mul", {c, z}, "mul");
  if (!full) return g.last("Sub", {exponential, product});
  const dtype type = c.from->output_dtype(c.index);
  const output half_number = g.number(0.5, type, "point_five"), two_pi = g.number(6.283185307179586, type, "two_pi");
  const output entropy = g.add("Sub", {g.add("Mul", {z, g.add("Log", {z}, "Log")}, "mul_1"), z}, "sub_1");
  const output root = g.add("Mul", {half_number, g.add("Log", {g.add("Mul", {two_pi, z}, "mul_2")}, "Log_1")}, "mul_3");
  const output stirling = g.add("AddV2", {entropy, root}, "add"), zeros = g.add("ZerosLike", {z}, "zeros_like"), ones = g.add("OnesLike", {z}, "ones_like");
  const output small = g.add("LogicalAnd", {g.add("GreaterEqual", {z, zeros}, "GreaterEqual"), g.add("LessEqual", {z, ones}, "LessEqual")}, "LogicalAnd");
  return g.last("AddV2", {g.add("Sub", {exponential, product}, "sub"), g.add("Select", {small, zeros, stirling}, "Select")});
}
#endif

}  // namespace detail

#define WEFT_SAME_FLOATS(NAME)                                                                                                                    \
  static_assert(std::is_same_v<T, U>, "weft: " NAME " needs two tensors of one dtype; convert one with weft::cast<T>(...)");                       \
  static_assert(detail::is_floating_v<T>, "weft: " NAME " takes float, double, half or bfloat16; convert with weft::cast<T>(...)")

/// Cross entropies between distributions over classes, the last axis of labels and logits: one for each of the outer axes (SoftmaxCrossEntropyWithLogits). No gradient flows into the
/// labels. Throws INVALID_ARGUMENT when the shapes do not fit.
template <class T, int N, class U, int M> tensor<T, detail::less_rank(M, 1)> softmax_cross_entropy_with_logits(const operand<U, N>& labels, const operand<T, M>& logits, op_name name = {}) {
  WEFT_SAME_FLOATS("softmax_cross_entropy_with_logits");
  static_assert(detail::ranks_agree(N, M), "weft: labels and logits have different ranks; use sparse_softmax_cross_entropy_with_logits for class numbers");
  return tensor<T, detail::less_rank(M, 1)>(detail::add_softmax_cross_entropy(detail::side_of(labels), detail::side_of(logits), true, name));
}
/// The same with a gradient for the labels too.
template <class T, int N, class U, int M> tensor<T, detail::less_rank(M, 1)> softmax_cross_entropy_with_logits_v2(const operand<U, N>& labels, const operand<T, M>& logits, op_name name = {}) {
  WEFT_SAME_FLOATS("softmax_cross_entropy_with_logits_v2");
  static_assert(detail::ranks_agree(N, M), "weft: labels and logits have different ranks; use sparse_softmax_cross_entropy_with_logits for class numbers");
  return tensor<T, detail::less_rank(M, 1)>(detail::add_softmax_cross_entropy(detail::side_of(labels), detail::side_of(logits), false, name));
}
/// Cross entropies where each row of logits has one class, whose number is its label (SparseSoftmaxCrossEntropyWithLogits). A label outside of the classes fails the step.
template <class L, int N, class T, int M> tensor<T, detail::less_rank(M, 1)> sparse_softmax_cross_entropy_with_logits(const operand<L, N>& labels, const operand<T, M>& logits, op_name name = {}) {
  static_assert(std::is_same_v<L, std::int32_t> || std::is_same_v<L, std::int64_t>, "weft: labels are numbers of classes, int32 or int64; the order is (labels, logits)");
  static_assert(detail::is_floating_v<T>, "weft: logits are float, double, half or bfloat16");
  static_assert(N == dynamic_rank || M == dynamic_rank || M == N + 1, "weft: logits have one axis more than labels");
  return tensor<T, detail::less_rank(M, 1)>(detail::add_sparse_softmax_cross_entropy(detail::side_of(labels), detail::side_of(logits), name));
}
/// Cross entropies of events that do not exclude each other, with probabilities sigmoid(logits), elementwise: max(x, 0) - x z + log(1 + exp(-|x|)).
template <class T, int N, class U, int M> tensor<T, M> sigmoid_cross_entropy_with_logits(const operand<U, N>& labels, const operand<T, M>& logits, op_name name = {}) {
  WEFT_SAME_FLOATS("sigmoid_cross_entropy_with_logits");
  static_assert(detail::ranks_agree(N, M), "weft: labels and logits must have one shape");
  return tensor<T, M>(detail::add_sigmoid_cross_entropy(detail::side_of(labels), detail::side_of(logits), name));
}
/// The same with positive events counted `pos_weight` times.
template <class T, int N, class U, int M>
tensor<T, M> weighted_cross_entropy_with_logits(const operand<U, N>& labels, const operand<T, M>& logits, std::common_type_t<detail::scalar<T>> pos_weight, op_name name = {}) {
  WEFT_SAME_FLOATS("weighted_cross_entropy_with_logits");
  static_assert(detail::ranks_agree(N, M), "weft: labels and logits must have one shape");
  return tensor<T, M>(detail::add_weighted_cross_entropy(detail::side_of(labels), detail::side_of(logits), detail::side_of(pos_weight), name));
}
template <class T, int N, class U, int M, int K>
tensor<T, M> weighted_cross_entropy_with_logits(const operand<U, N>& labels, const operand<T, M>& logits, const operand<T, K>& pos_weight, op_name name = {}) {
  WEFT_SAME_FLOATS("weighted_cross_entropy_with_logits");
  return tensor<T, M>(detail::add_weighted_cross_entropy(detail::side_of(labels), detail::side_of(logits), detail::side_of(pos_weight), name));
}
/// Log likelihoods, with the sign changed, of counts under Poisson distributions with means exp(log_input), elementwise: exp(c) - z c.
template <class T, int N, class U, int M> tensor<T, M> log_poisson_loss(const operand<U, N>& targets, const operand<T, M>& log_input, poisson_loss kind = poisson_loss::without_constant, op_name name = {}) {
  WEFT_SAME_FLOATS("log_poisson_loss");
  return tensor<T, M>(detail::add_poisson_loss(detail::side_of(targets), detail::side_of(log_input), kind == poisson_loss::full, name));
}
#undef WEFT_SAME_FLOATS

}  // namespace weft

#endif
