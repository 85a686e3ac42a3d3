#ifndef WEFT_TRAIN_LOSSES_HPP
#define WEFT_TRAIN_LOSSES_HPP
// Losses: what predictions cost against labels, weighted and reduced to one number, and kept in the graph's collection of losses. Follows TensorFlow's tf.losses.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/nn_losses.hpp>
#include <weft/ops/op_input.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// How the losses of elements become one number: their weighted sum, or that divided by the sum of the weights (`weighted_mean`), by the number of elements (`sum_over_batch_size`), or by the number of
/// elements whose weight is not 0 (`sum_by_nonzero_weights`). Where that is 0 the loss is 0.
enum class loss_reduction { sum_by_nonzero_weights, weighted_sum, weighted_mean, sum_over_batch_size };
/// Whether a loss is among those that `get_total_loss` adds up.
enum class loss_collection { added, left_out };

/// What a loss is told. Fields that are not its own do not matter to it.
struct loss_options {
  loss_reduction reduction = loss_reduction::sum_by_nonzero_weights;
  loss_collection collection = loss_collection::added;
  /// For log_loss: added to what logarithms are taken of.
  double epsilon = 1e-7;
  /// For huber_loss: where the square ends.
  double delta = 1;
  /// For sigmoid_cross_entropy and softmax_cross_entropy: how much of each label is spread over all classes.
  double label_smoothing = 0;

  loss_options() = default;
  loss_options(loss_reduction r) : reduction(r) {}
};

/// Weights of losses: a number, or a tensor of any numeric dtype that is a scalar or has the rank of the losses, each size being 1 or theirs.
class loss_weights {
 public:
  loss_weights(double number = 1) : number_(number) {}
  template <class T, int N> loss_weights(const operand<T, N>& weights, call_site where = call_site::here()) : tensor_(weights.as_input(where)) {}
  double number() const noexcept { return number_; }
  const output& tensor() const noexcept { return tensor_; }

 private:
  double number_ = 1;
  output tensor_;
};

/// Asks for the weighted loss of each element instead of one number.
struct no_reduction_t {};
inline constexpr no_reduction_t no_reduction{};

namespace detail {
enum class loss_kind { absolute_difference, mean_squared_error, log, hinge, huber, sigmoid_cross_entropy, softmax_cross_entropy, sparse_softmax_cross_entropy, cosine_distance, mean_pairwise_squared_error };
struct loss_call {
  loss_kind kind;
  side labels, predictions;
  const loss_weights& weights;
  const loss_options& options;
  const op_name& name;
  bool reduced = true;
  int axis = 0;
};
output add_loss_of(const loss_call& asked);
output add_weighted_loss(const output& losses, const loss_weights& weights, const loss_options& options, bool reduced, const op_name& name);
output add_total(const graph& g, const std::vector<const node*>& losses, dtype type, const char* otherwise, const op_name& name);
void keep_loss(const char* collection, const output& loss, const op_name& name);
template <class T> constexpr bool is_label_v = !std::is_same_v<T, std::string>;
}  // namespace detail

#define WEFT_LOSS(NAME, KIND, FIRST, SECOND, RANK_AGREES, RANK_OF_ELEMENTS)                                                                                                        \
  template <class U, int N, class T, int M> tensor<T, 0> NAME(const operand<U, N>& FIRST, const operand<T, M>& SECOND, const loss_weights& weights = {}, const loss_options& options = {}, op_name name = {}) { \
    static_assert(detail::is_floating_v<T>, "weft: " #NAME " takes " #SECOND " of float, double, half or bfloat16; the order is (" #FIRST ", " #SECOND ")");                          \
    static_assert(detail::is_label_v<U> && (RANK_AGREES), "weft: " #NAME ": " #FIRST " and " #SECOND " do not fit");                                                               \
    return tensor<T, 0>(detail::add_loss_of({detail::loss_kind::KIND, detail::side_of(FIRST), detail::side_of(SECOND), weights, options, name}));                                  \
  }                                                                                                                                                                                \
  template <class U, int N, class T, int M>                                                                                                                                        \
  tensor<T, RANK_OF_ELEMENTS> NAME(const operand<U, N>& FIRST, const operand<T, M>& SECOND, const loss_weights& weights, no_reduction_t, const loss_options& options = {}, op_name name = {}) { \
    static_assert(detail::is_floating_v<T>, "weft: " #NAME " takes " #SECOND " of float, double, half or bfloat16; the order is (" #FIRST ", " #SECOND ")");                          \
    static_assert(detail::is_label_v<U> && (RANK_AGREES), "weft: " #NAME ": " #FIRST " and " #SECOND " do not fit");                                                               \
    return tensor<T, RANK_OF_ELEMENTS>(detail::add_loss_of({detail::loss_kind::KIND, detail::side_of(FIRST), detail::side_of(SECOND), weights, options, name, false}));              \
  }
/// |predictions - labels|. Every loss here takes labels of any numeric dtype and predictions of the same shape, and computes in float, or in double where predictions are; throws INVALID_ARGUMENT
/// when the shapes of labels, predictions and weights do not fit.
WEFT_LOSS(absolute_difference, absolute_difference, labels, predictions, detail::ranks_agree(N, M), M)
/// (predictions - labels)^2.
WEFT_LOSS(mean_squared_error, mean_squared_error, labels, predictions, detail::ranks_agree(N, M), M)
/// -labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon).
WEFT_LOSS(log_loss, log, labels, predictions, detail::ranks_agree(N, M), M)
/// max(0, 1 - (2 labels - 1) logits), for labels 0 and 1.
WEFT_LOSS(hinge_loss, hinge, labels, logits, detail::ranks_agree(N, M), M)
/// Half the square of the difference up to delta, from there on linear.
WEFT_LOSS(huber_loss, huber, labels, predictions, detail::ranks_agree(N, M), M)
/// Cross entropies of events that do not exclude each other. Smoothing moves labels towards 1/2.
WEFT_LOSS(sigmoid_cross_entropy, sigmoid_cross_entropy, multi_class_labels, logits, detail::ranks_agree(N, M), M)
/// Cross entropies of distributions over classes, the last axis; one loss for each row. Smoothing moves labels towards 1/classes. No gradient flows into the labels.
WEFT_LOSS(softmax_cross_entropy, softmax_cross_entropy, onehot_labels, logits, detail::ranks_agree(N, M), detail::less_rank(M, 1))
/// Cross entropies where each row of logits has one class, whose number, int32 or int64, is its label: `[rows]` or `[rows, 1]` against `[rows, classes]`.
WEFT_LOSS(sparse_softmax_cross_entropy, sparse_softmax_cross_entropy, labels, logits, (std::is_same_v<U, std::int32_t> || std::is_same_v<U, std::int64_t>) && (detail::ranks_agree(N, M) || M == N + 1),
          detail::less_rank(M, 1))
#undef WEFT_LOSS

/// 1 - the inner products along an axis, for vectors of length 1.
template <class U, int N, class T, int M>
tensor<T, 0> cosine_distance(const operand<U, N>& labels, const operand<T, M>& predictions, int axis, const loss_weights& weights = {}, const loss_options& options = {}, op_name name = {}) {
  static_assert(detail::is_floating_v<T>, "weft: cosine_distance takes predictions of float, double, half or bfloat16; the order is (labels, predictions)");
  return tensor<T, 0>(detail::add_loss_of({detail::loss_kind::cosine_distance, detail::side_of(labels), detail::side_of(predictions), weights, options, name, true, axis}));
}
template <class U, int N, class T, int M>
tensor<T, M> cosine_distance(const operand<U, N>& labels, const operand<T, M>& predictions, int axis, const loss_weights& weights, no_reduction_t, const loss_options& options = {}, op_name name = {}) {
  static_assert(detail::is_floating_v<T>, "weft: cosine_distance takes predictions of float, double, half or bfloat16; the order is (labels, predictions)");
  return tensor<T, M>(detail::add_loss_of({detail::loss_kind::cosine_distance, detail::side_of(labels), detail::side_of(predictions), weights, options, name, false, axis}));
}
/// The mean squared difference between the differences of all pairs of elements of a row, summed over the rows `[batch, ...]`. It has no other reduction.
template <class U, int N, class T, int M>
tensor<T, 0> mean_pairwise_squared_error(const operand<U, N>& labels, const operand<T, M>& predictions, const loss_weights& weights = {}, const loss_options& options = {}, op_name name = {}) {
  static_assert(detail::is_floating_v<T> && detail::ranks_agree(N, M), "weft: mean_pairwise_squared_error takes labels and predictions of one shape, predictions being float, double, half or bfloat16");
  return tensor<T, 0>(detail::add_loss_of({detail::loss_kind::mean_pairwise_squared_error, detail::side_of(labels), detail::side_of(predictions), weights, options, name}));
}

/// Losses of your own, weighted and reduced like the ones above.
template <class T, int N> tensor<T, 0> compute_weighted_loss(const operand<T, N>& losses, const loss_weights& weights = {}, const loss_options& options = {}, op_name name = {}) {
  static_assert(!std::is_same_v<T, std::string>, "weft: losses are numbers");
  return tensor<T, 0>(detail::add_weighted_loss(losses.as_input(name.site), weights, options, true, name));
}
template <class T, int N> tensor<T, N> compute_weighted_loss(const operand<T, N>& losses, const loss_weights& weights, no_reduction_t, const loss_options& options = {}, op_name name = {}) {
  static_assert(!std::is_same_v<T, std::string>, "weft: losses are numbers");
  return tensor<T, N>(detail::add_weighted_loss(losses.as_input(name.site), weights, options, false, name));
}

/// Adds a loss to those of its graph.
template <class T, int N> void add_loss(const operand<T, N>& loss, op_name name = {}) { detail::keep_loss("losses", loss.as_input(name.site), name); }
/// The losses of a graph, in the order of their making.
std::vector<output> get_losses(const graph& g = default_graph());
/// The penalties that regularizers made for variables of a graph.
std::vector<output> get_regularization_losses(const graph& g = default_graph());
/// The sum of the penalties; 0 where there are none.
template <class T = float> tensor<T, 0> get_regularization_loss(const graph& g = default_graph(), op_name name = {}) {
  static_assert(detail::is_floating_v<T>, "weft: losses are float, double, half or bfloat16");
  return tensor<T, 0>(detail::add_total(g, g.state()->collection("regularization_losses"), dtype_of<T>, "total_regularization_loss", name));
}
/// The sum of all losses and penalties of a graph. Throws INVALID_ARGUMENT when one of them has another dtype than T or is known to be no scalar; 0 where there are none.
template <class T = float> tensor<T, 0> get_total_loss(const graph& g = default_graph(), op_name name = {}) {
  static_assert(detail::is_floating_v<T>, "weft: losses are float, double, half or bfloat16");
  std::vector<const node*> all = g.state()->collection("losses");
  for (const node* n : g.state()->collection("regularization_losses")) all.push_back(n);
  return tensor<T, 0>(detail::add_total(g, all, dtype_of<T>, "total_loss", name));
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/ops/node_group.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstdint>

namespace weft::detail {

// The nodes of a loss. Losses are computed in one dtype, double where predictions are double, else float.
struct loss_nodes {
  const node_group& g;
  dtype type;

  output add(const char* op, std::vector<output> inputs, const char* below, attr_map attrs = {}) const { return g.add(op, std::move(inputs), below, std::move(attrs)); }
  output number(double v, const char* below) const { return g.number(v, type, below); }
  output as(const output& x, dtype to, const char* below) const { return x.from->output_dtype(x.index) == to ? x : g.add("Cast", {x}, below, {{"DstT", to}}); }
  static const partial_shape& shape(const output& x) { return x.from->output_shape(x.index); }
  // The sum over all axes but the first `kept` ones, which stay as axes of size 1 (or none when everything is summed).
  output sum(const output& x, const char* below, int kept = 0) const {
    const std::string axes = std::string(below) + "/axes";
    if (const partial_shape& s = shape(x); s.known_rank()) {
      std::vector<std::int32_t> all;
      for (int i = kept; i < s.rank(); ++i) all.push_back(i);
      return g.reduce("Sum", x, all, below, kept > 0);
    }
    const output rank = g.add("Rank", {x}, (axes + "/Rank").c_str()), first = g.integer(kept, (axes + "/start").c_str()), step = g.integer(1, (axes + "/delta").c_str());
    return g.add("Sum", {x, g.add("Range", {first, rank, step}, axes.c_str())}, below, {{"keep_dims", kept > 0}});
  }
};

inline void expect_same_shape(const node_group& g, const output& labels, const output& predictions) {
  const partial_shape &l = loss_nodes::shape(labels), &p = loss_nodes::shape(predictions);
  if (!merge_shapes(l, p)) g.fail("labels and predictions must have one shape, found " + l.text() + " and " + p.text());
}

// Fails where weights are neither a scalar nor of the rank of the values, each size being 1 or theirs; where that is not known yet, the values returned fail when they are computed.
WEFT_DECL output checked_weights(const loss_nodes& n, const output& weights, const output& values) {
  const partial_shape &w = loss_nodes::shape(weights), &v = loss_nodes::shape(values);
  if (w.known_rank() && w.rank() == 0) return weights;
  const auto refuse = [&](const std::string& why) { n.g.fail("weights of shape " + w.text() + " do not fit losses of shape " + v.text() + ": " + why); };
  bool known = w.known_rank() && v.known_rank();
  if (known && w.rank() != v.rank()) refuse("they must be a scalar or have as many dimensions");
  for (int i = 0; known && i < w.rank(); ++i) {
    if (w[i] >= 0 && v[i] >= 0 && w[i] != 1 && w[i] != v[i]) refuse("each size must be 1 or the same");
    known = w[i] == 1 || (w[i] >= 0 && v[i] >= 0);
  }
  if (known) return weights;
  // The shape that both have together is that of the values.
  const output wanted = n.add("Shape", {values}, "weights/values_shape"), have = n.add("Shape", {weights}, "weights/shape");
  const output same = n.add("Equal", {n.add("BroadcastArgs", {have, wanted}, "weights/BroadcastArgs"), wanted}, "weights/Equal");
  const output holds = n.g.reduce("All", same, {0}, "weights/All", false);
  const std::string text = "the weights of a loss must be a scalar or have the rank of the losses, each size being 1 or theirs";
  const output message = add_const_at(tensor_value::scalar(text), n.g.name() + "/weights/message", n.g.site(), n.g.graph());
  const output check = n.add("Assert", {holds, message, have, wanted}, "weights/Assert");
  node_spec spec;
  spec.op = "Identity";
  spec.name = n.g.name() + "/weights/Identity";
  spec.exact_name = true;
  spec.inputs = {weights};
  spec.control_inputs = {check.from};
  spec.site = n.g.site();
  return {&n.g.graph().add(std::move(spec)), 0};
}

inline output weights_of(const loss_nodes& n, const loss_weights& weights) {
  return weights.tensor().from == nullptr ? n.number(weights.number(), "weights") : n.as(weights.tensor(), n.type, "weights/Cast");
}

// How many of the values have a weight that is not 0: in all, or in each row.
WEFT_DECL output count_present(const loss_nodes& n, const output& weights, const output& values, const char* below, int kept) {
  const std::string at = below;
  const output zero = n.number(0, (at + "/zero").c_str());
  const output present = n.as(n.add("NotEqual", {weights, zero}, (at + "/NotEqual").c_str()), n.type, (at + "/Cast").c_str());
  return n.sum(n.add("Mul", {n.add("OnesLike", {values}, (at + "/ones_like").c_str()), present}, (at + "/mul").c_str()), below, kept);
}

WEFT_DECL output weighted(const loss_nodes& n, const output& losses, const output& given, const loss_options& options, bool reduced) {
  const output weights = checked_weights(n, given, losses), each = n.add("Mul", {losses, weights}, "Mul");
  if (!reduced) return each;
  const output total = n.sum(each, "Sum");
  output count;
  switch (options.reduction) {
    case loss_reduction::weighted_sum: return total;
    case loss_reduction::weighted_mean: count = n.sum(n.add("Mul", {n.add("OnesLike", {losses}, "ones_like"), weights}, "mul"), "Sum_1"); break;
    case loss_reduction::sum_over_batch_size: count = n.as(n.add("Size", {losses}, "num_elements"), n.type, "num_elements/Cast"); break;
    case loss_reduction::sum_by_nonzero_weights: count = count_present(n, weights, losses, "num_present", 0); break;
  }
  return n.add("DivNoNan", {total, count}, "div_no_nan");
}

// What a loss makes last, with the name of the whole and the dtype of the predictions.
inline output finished(const loss_nodes& n, const output& loss, dtype type, const loss_options& options) {
  const output made = type == n.type ? n.g.last("Identity", {loss}) : n.g.last("Cast", {loss}, {{"DstT", type}});
  if (options.collection == loss_collection::added) n.g.graph().add_to_collection("losses", made.from);
  return made;
}

WEFT_DECL output squeezed_last(const loss_nodes& n, const output& x, const char* below) { return n.add("Squeeze", {x}, below, {{"squeeze_dims", std::vector<std::int64_t>{-1}}}); }

WEFT_DECL output log_losses(const loss_nodes& n, const output& labels, const output& predictions, double epsilon) {
  const output small = n.number(epsilon, "epsilon"), one = n.number(1, "one");
  const output yes = n.add("Mul", {labels, n.add("Log", {n.add("AddV2", {predictions, small}, "add")}, "Log")}, "mul_log");
  const output rest = n.add("Log", {n.add("AddV2", {n.add("Sub", {one, predictions}, "sub"), small}, "add_1")}, "Log_1");
  return n.add("Sub", {n.add("Neg", {yes}, "Neg"), n.add("Mul", {n.add("Sub", {one, labels}, "sub_1"), rest}, "mul_log_1")}, "sub_2");
}
WEFT_DECL output hinge_losses(const loss_nodes& n, const output& labels, const output& logits) {
  const output ones = n.add("OnesLike", {labels}, "all_ones"), signs = n.add("Sub", {n.add("Mul", {n.number(2, "two"), labels}, "double"), ones}, "signs");
  return n.add("Relu", {n.add("Sub", {ones, n.add("Mul", {signs, logits}, "margin")}, "sub")}, "Relu");
}
WEFT_DECL output huber_losses(const loss_nodes& n, const output& labels, const output& predictions, double delta) {
  const output limit = n.number(delta, "delta"), distance = n.add("Abs", {n.add("Sub", {predictions, labels}, "Sub")}, "Abs");
  const output quadratic = n.add("Minimum", {distance, limit}, "Minimum"), linear = n.add("Sub", {distance, quadratic}, "linear");
  const output half_squares = n.add("Mul", {n.number(0.5, "point_five"), n.add("Mul", {quadratic, quadratic}, "square")}, "half_square");
  return n.add("AddV2", {half_squares, n.add("Mul", {limit, linear}, "scaled")}, "Add");
}
WEFT_DECL output smoothed(const loss_nodes& n, const output& labels, double amount, const output& target) {
  return n.add("AddV2", {n.add("Mul", {labels, n.number(1 - amount, "smooth_positives")}, "smooth"), n.add("Mul", {n.number(amount, "smoothing"), target}, "smooth_negatives")}, "smooth_labels");
}
WEFT_DECL output softmax_losses(const loss_nodes& n, output labels, const output& logits, double smoothing, const op_name& below) {
  if (smoothing > 0) {
    const partial_shape& s = loss_nodes::shape(logits);
    if (!s.known_rank() || s.rank() < 1 || s[s.rank() - 1] < 0) n.g.fail("label smoothing needs a known number of classes, found logits of shape " + s.text());
    labels = smoothed(n, labels, smoothing, n.number(1. / static_cast<double>(s[s.rank() - 1]), "one_over_classes"));
  }
  return add_softmax_cross_entropy({labels, false, tensor_value()}, {logits, false, tensor_value()}, true, below);
}

// Labels and weights `[batch, 1]` beside logits `[batch, classes]` are `[batch]`.
WEFT_DECL output sparse_softmax_losses(const loss_nodes& n, output labels, const output& logits, output& weights, const op_name& below) {
  const auto rank = [](const output& x) { return loss_nodes::shape(x).known_rank() ? loss_nodes::shape(x).rank() : dynamic_rank; };
  if (rank(labels) >= 1 && rank(labels) == rank(logits)) {
    if (const std::int64_t last = loss_nodes::shape(labels)[rank(labels) - 1]; last > 1 || last == 0)
      n.g.fail("labels are one number for each row of logits, found shapes " + loss_nodes::shape(labels).text() + " and " + loss_nodes::shape(logits).text());
    labels = squeezed_last(n, labels, "labels/Squeeze");
  }
  if (rank(labels) >= 0 && rank(weights) == rank(labels) + 1 && rank(weights) > 0) {
    if (const std::int64_t last = loss_nodes::shape(weights)[rank(weights) - 1]; last > 1 || last == 0)
      n.g.fail("weights are one number for each row of logits, found shape " + loss_nodes::shape(weights).text() + " for labels of shape " + loss_nodes::shape(labels).text());
    if (rank(labels) > 0) weights = squeezed_last(n, weights, "weights/Squeeze");
  }
  return add_sparse_softmax_cross_entropy({labels, false, tensor_value()}, {logits, false, tensor_value()}, below);
}

WEFT_DECL output pairwise_loss(const loss_nodes& n, const output& labels, const output& predictions, const output& given) {
  const output differences = n.add("Sub", {predictions, labels}, "Sub"), weights = checked_weights(n, given, differences);
  if (const partial_shape& s = loss_nodes::shape(differences); s.known_rank() && s.rank() == 0) n.g.fail("the predictions must have a batch dimension, found a scalar");
  const output one = n.number(1, "one"), two = n.number(2, "two"), zero = n.number(0, "zero");
  // 1. In each row: sums, sums of squares, and how many count.
  const output squares = n.sum(n.add("Square", {differences}, "Square"), "sum_squares", 1), sums = n.sum(differences, "sum", 1);
  const output present = count_present(n, weights, differences, "num_present", 1), fewer = n.add("Sub", {present, one}, "fewer");
  const output pairs = n.add("Maximum", {n.add("Mul", {present, fewer}, "pairs"), zero}, "pairs/Maximum");
  const output first = n.add("Mul", {two, n.add("DivNoNan", {squares, n.add("Maximum", {fewer, zero}, "fewer/Maximum")}, "div")}, "term1");
  const output second = n.add("Mul", {two, n.add("DivNoNan", {n.add("Square", {sums}, "Square_1"), pairs}, "div_1")}, "term2");
  // 2. All rows; 0 where nothing counts.
  const output loss = n.sum(n.add("Mul", {n.add("Sub", {first, second}, "terms"), weights}, "Mul"), "Sum");
  const output any = n.add("Greater", {n.sum(present, "Sum_1"), zero}, "Greater");
  return n.add("SelectV2", {any, loss, n.add("ZerosLike", {loss}, "zeros_like")}, "value");
}

WEFT_DECL output add_loss_of(const loss_call& asked) {
  static constexpr const char* names[] = {"absolute_difference", "mean_squared_error", "log_loss", "hinge_loss", "huber_loss", "sigmoid_cross_entropy_loss", "softmax_cross_entropy_loss",
                                          "sparse_softmax_cross_entropy_loss", "cosine_distance_loss", "mean_pairwise_squared_error"};
  const node_group g(asked.predictions, asked.name, names[static_cast<int>(asked.kind)]);
  const output raw = g.input(asked.predictions), raw_labels = g.input(asked.labels);
  const dtype type = raw.from->output_dtype(raw.index);
  const loss_nodes n{g, type == dtype::float64 ? dtype::float64 : dtype::float32};
  // 1. Labels and predictions in one dtype.
  const bool sparse = asked.kind == loss_kind::sparse_softmax_cross_entropy;
  const output predictions = n.as(raw, n.type, "predictions/Cast");
  const output labels = sparse ? raw_labels : n.as(raw_labels, n.type, "labels/Cast");
  if (!sparse) expect_same_shape(g, labels, predictions);
  output weights = weights_of(n, asked.weights), losses;
  // 2. The loss of each element.
  const std::string below = g.name() + "/xentropy/";
  const op_name entropy(std::string_view(below), g.site());
  const double smoothing = asked.options.label_smoothing;
  switch (asked.kind) {
    case loss_kind::absolute_difference: losses = n.add("Abs", {n.add("Sub", {predictions, labels}, "Sub")}, "Abs"); break;
    case loss_kind::mean_squared_error: losses = n.add("SquaredDifference", {predictions, labels}, "SquaredDifference"); break;
    case loss_kind::log: losses = log_losses(n, labels, predictions, asked.options.epsilon); break;
    case loss_kind::hinge: losses = hinge_losses(n, labels, predictions); break;
    case loss_kind::huber: losses = huber_losses(n, labels, predictions, asked.options.delta); break;
    case loss_kind::sigmoid_cross_entropy:
      losses = add_sigmoid_cross_entropy({smoothing > 0 ? smoothed(n, labels, smoothing, n.number(0.5, "point_five")) : labels, false, tensor_value()}, {predictions, false, tensor_value()}, entropy);
      break;
    case loss_kind::softmax_cross_entropy: losses = softmax_losses(n, labels, predictions, smoothing, entropy); break;
    case loss_kind::sparse_softmax_cross_entropy: losses = sparse_softmax_losses(n, labels, predictions, weights, entropy); break;
    case loss_kind::cosine_distance: {
      const partial_shape& s = loss_nodes::shape(predictions);
      if (s.known_rank() && (asked.axis < -s.rank() || asked.axis >= s.rank())) g.fail("axis " + std::to_string(asked.axis) + " is outside the dimensions of shape " + s.text());
      losses = n.add("Sub", {n.number(1, "one"), g.reduce("Sum", n.add("Mul", {predictions, labels}, "products"), {asked.axis}, "cosine")}, "distance");
      break;
    }
    case loss_kind::mean_pairwise_squared_error: return finished(n, pairwise_loss(n, labels, predictions, weights), type, asked.options);
  }
  // 3. Weighted and reduced.
  return finished(n, weighted(n, losses, weights, asked.options, asked.reduced), type, asked.options);
}

WEFT_DECL output add_weighted_loss(const output& losses, const loss_weights& weights, const loss_options& options, bool reduced, const op_name& name) {
  const node_group g({losses, false, tensor_value()}, name, "weighted_loss");
  const dtype type = losses.from->output_dtype(losses.index);
  const loss_nodes n{g, type == dtype::float64 ? dtype::float64 : dtype::float32};
  return finished(n, weighted(n, n.as(losses, n.type, "losses/Cast"), weights_of(n, weights), options, reduced), type, options);
}

WEFT_DECL void keep_loss(const char* collection, const output& loss, const op_name& name) {
  if (loss.from == nullptr) throw error(error_code::invalid_argument, "add_loss: the loss is an empty tensor, not made by any op", name.site);
  // The collection holds nodes: another output than the first has one of its own.
  const output kept = loss.index == 0 ? loss : output{&add_node("Identity", {loss}, name), 0};
  kept.from->owner().add_to_collection(collection, kept.from);
}

WEFT_DECL output add_total(const graph& g, const std::vector<const node*>& losses, dtype type, const char* otherwise, const op_name& name) {
  const std::string full = claim_name(*g.state(), name, otherwise);
  std::vector<output> all;
  for (const node* n : losses) {
    const partial_shape& s = n->output_shape(0);
    if (n->output_dtype(0) != type) throw error(error_code::invalid_argument, "the loss '" + n->name() + "' (" + n->site().text() + ") is " + to_text(n->output_dtype(0)) + ", the total is " + to_text(type), name.site);
    if (s.known_rank() && s.rank() != 0) throw error(error_code::invalid_argument, "the loss '" + n->name() + "' (" + n->site().text() + ") has shape " + s.text() + " and cannot be added to others; reduce it", name.site);
    all.push_back({n, 0});
  }
  if (all.empty()) return add_const_at(floating_scalar(0, type), full, name.site, *g.state());
  const auto count = static_cast<std::int64_t>(all.size());
  return add_node_at("AddN", std::move(all), full, name.site, {{"N", count}});
}

}  // namespace weft::detail

namespace weft {

namespace detail {
WEFT_DECL std::vector<output> outputs_in(const graph& g, const char* collection) {
  std::vector<output> out;
  for (const node* n : g.state()->collection(collection)) out.push_back({n, 0});
  return out;
}
}  // namespace detail
WEFT_DECL std::vector<output> get_losses(const graph& g) { return detail::outputs_in(g, "losses"); }
WEFT_DECL std::vector<output> get_regularization_losses(const graph& g) { return detail::outputs_in(g, "regularization_losses"); }

}  // namespace weft
#endif

#endif
