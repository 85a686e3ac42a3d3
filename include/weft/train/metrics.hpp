#ifndef WEFT_TRAIN_METRICS_HPP
#define WEFT_TRAIN_METRICS_HPP
// Metrics over many steps: sums kept in local variables, a value computed from them, and an operation that takes one more batch into account. Follows TensorFlow's tf.metrics. The variables start with
// `local_variables_initializer`, which also starts a new evaluation.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/train/losses.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace weft {

/// A metric: `auto [accuracy, update] = streaming_accuracy(labels, predictions)`.
struct metric {
  /// What it is so far; 0 before the first batch.
  tensor<float, 0> value;
  /// Takes the batch into account, and is what it is then.
  tensor<float, 0> update;
};

namespace detail {
enum class metric_kind { mean, accuracy, mean_absolute_error, mean_squared_error, root_mean_squared_error, precision, recall };
struct metric_call {
  metric_kind kind;
  side labels, predictions;
  const loss_weights* weights;
  const op_name& name;
};
metric add_metric(const metric_call& asked);
}  // namespace detail

/// The mean of all values, of any numeric dtype.
template <class T, int N> metric streaming_mean(const operand<T, N>& values, op_name name = {}) {
  static_assert(detail::is_label_v<T>, "weft: a mean is taken of numbers");
  return detail::add_metric({detail::metric_kind::mean, {}, detail::side_of(values), nullptr, name});
}
/// The same with weights, a scalar or a tensor of the rank of the values, each size being 1 or theirs.
template <class T, int N> metric streaming_mean(const operand<T, N>& values, const loss_weights& weights, op_name name = {}) {
  static_assert(detail::is_label_v<T>, "weft: a mean is taken of numbers");
  return detail::add_metric({detail::metric_kind::mean, {}, detail::side_of(values), &weights, name});
}

#define WEFT_METRIC(NAME, KIND, FITS, TEXT)                                                                                                             \
  template <class U, int N, class T, int M> metric NAME(const operand<U, N>& labels, const operand<T, M>& predictions, op_name name = {}) {             \
    static_assert(FITS, "weft: " #NAME " takes " TEXT "; the order is (labels, predictions)");                                                          \
    static_assert(detail::ranks_agree(N, M), "weft: labels and predictions must have one shape");                                                       \
    return detail::add_metric({detail::metric_kind::KIND, detail::side_of(labels), detail::side_of(predictions), nullptr, name});                       \
  }                                                                                                                                                     \
  template <class U, int N, class T, int M>                                                                                                             \
  metric NAME(const operand<U, N>& labels, const operand<T, M>& predictions, const loss_weights& weights, op_name name = {}) {                          \
    static_assert(FITS, "weft: " #NAME " takes " TEXT "; the order is (labels, predictions)");                                                          \
    static_assert(detail::ranks_agree(N, M), "weft: labels and predictions must have one shape");                                                       \
    return detail::add_metric({detail::metric_kind::KIND, detail::side_of(labels), detail::side_of(predictions), &weights, name});                      \
  }
/// How often predictions equal labels, of one dtype. Throws INVALID_ARGUMENT when the shapes do not fit, as all of these.
WEFT_METRIC(streaming_accuracy, accuracy, (std::is_same_v<T, U>), "labels and predictions of one dtype")
/// The mean of |predictions - labels|.
WEFT_METRIC(streaming_mean_absolute_error, mean_absolute_error, (detail::is_label_v<T> && detail::is_label_v<U>), "numbers")
/// The mean of (predictions - labels)^2.
WEFT_METRIC(streaming_mean_squared_error, mean_squared_error, (detail::is_label_v<T> && detail::is_label_v<U>), "numbers")
/// The root of that mean.
WEFT_METRIC(streaming_root_mean_squared_error, root_mean_squared_error, (detail::is_label_v<T> && detail::is_label_v<U>), "numbers")
/// The part of what is predicted, a prediction that is not 0 or false, whose label is so too. 0 where nothing is predicted.
WEFT_METRIC(streaming_precision, precision, (detail::is_label_v<T> && detail::is_label_v<U>), "numbers or bool")
/// The part of the labels that are not 0 or false which are predicted. 0 where there are none.
WEFT_METRIC(streaming_recall, recall, (detail::is_label_v<T> && detail::is_label_v<U>), "numbers or bool")
#undef WEFT_METRIC

/// What the area below is taken of: true positives over false positives, or precision over recall.
enum class auc_curve { roc, precision_recall };
struct auc_options {
  /// At how many thresholds between 0 and 1 predictions are taken as positive; the more, the closer the area is to that of the exact curve. At least 2.
  int thresholds = 200;
  auc_curve curve = auc_curve::roc;
};

namespace detail {
struct auc_call {
  side labels, predictions;
  const loss_weights* weights;
  auc_options options;
  const op_name& name;
};
metric add_auc(const auc_call& asked);
}  // namespace detail

/// The area under the curve of predictions in [0, 1] for labels that are 0 or false, or not: how well they rank. By trapezoids between thresholds. A prediction outside of [0, 1] fails the update.
template <class U, int N, class T, int M> metric streaming_auc(const operand<U, N>& labels, const operand<T, M>& predictions, auc_options options = {}, op_name name = {}) {
  static_assert(detail::is_label_v<U> && detail::is_floating_v<T>, "weft: streaming_auc takes labels that are numbers or bool, and floating predictions; the order is (labels, predictions)");
  static_assert(detail::ranks_agree(N, M), "weft: labels and predictions must have one shape");
  return detail::add_auc({detail::side_of(labels), detail::side_of(predictions), nullptr, options, name});
}
template <class U, int N, class T, int M>
metric streaming_auc(const operand<U, N>& labels, const operand<T, M>& predictions, const loss_weights& weights, auc_options options = {}, op_name name = {}) {
  static_assert(detail::is_label_v<U> && detail::is_floating_v<T>, "weft: streaming_auc takes labels that are numbers or bool, and floating predictions; the order is (labels, predictions)");
  static_assert(detail::ranks_agree(N, M), "weft: labels and predictions must have one shape");
  return detail::add_auc({detail::side_of(labels), detail::side_of(predictions), &weights, options, name});
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/graph/scope.hpp>
#include <weft/ops/state.hpp>

namespace weft::detail {

// Two sums that a metric divides.
struct metric_sums {
  const loss_nodes& n;
  std::vector<output> handles;
  std::vector<operation> updates;

  // A local variable to which a step adds the amount.
  void add(const char* name, const output& amount) { add(name, amount, n.number(0, (std::string(name) + "/initial_value").c_str())); }
  void add(const char* name, const output& amount, const output& initial_value) {
    const std::string full = n.g.name() + "/" + name;
    const variable_nodes made = [&] {
      const auto free = control_dependencies(nullptr);
      return add_variable({dtype::float32, full, n.g.site(), variable_kind::local}, initial_value);
    }();
    n.g.graph().add_to_collection("metric_variables", made.handle.from);
    handles.push_back(made.handle);
    updates.push_back(operation(*n.add("AssignAddVariableOp", {made.handle, amount}, (std::string(name) + "/update").c_str(), {{"dtype", dtype::float32}}).from));
  }
  // The sums as they are when this is computed.
  std::vector<output> read(const std::string& below) const {
    std::vector<output> out;
    for (const output& handle : handles)
      out.push_back(n.add("ReadVariableOp", {handle}, (below + "/ReadVariableOp" + (out.empty() ? "" : "_" + std::to_string(out.size()))).c_str(), {{"dtype", dtype::float32}}));
    return out;
  }
  output quotient(const char* below, bool root) const {
    const std::string at = below;
    const std::vector<output> sums = read(at);
    if (!root) return n.add("DivNoNan", sums, below);
    return n.add("Sqrt", {n.add("DivNoNan", sums, (at + "/div_no_nan").c_str())}, below);
  }
};

// What a metric averages: the values, or how labels and predictions differ.
WEFT_DECL output metric_values(const loss_nodes& n, metric_kind kind, const output& labels, const output& predictions) {
  const auto number = [&](const output& x, const char* below) { return n.as(x, dtype::float32, below); };
  if (kind == metric_kind::mean) return number(predictions, "values/Cast");
  if (kind == metric_kind::accuracy) return number(n.add("Equal", {predictions, labels}, "Equal"), "Cast");
  const output p = number(predictions, "predictions/Cast"), l = number(labels, "labels/Cast");
  return kind == metric_kind::mean_absolute_error ? n.add("Abs", {n.add("Sub", {p, l}, "Sub")}, "Abs") : n.add("SquaredDifference", {p, l}, "SquaredDifference");
}

WEFT_DECL metric add_metric(const metric_call& asked) {
  static constexpr const char* names[] = {"mean", "accuracy", "mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "precision", "recall"};
  const node_group g(asked.predictions, asked.name, names[static_cast<int>(asked.kind)]);
  const loss_nodes n{g, dtype::float32};
  const output predictions = g.input(asked.predictions), labels = asked.kind == metric_kind::mean ? output() : g.input(asked.labels);
  if (asked.kind != metric_kind::mean) expect_same_shape(g, labels, predictions);
  metric_sums sums{n, {}, {}};
  if (asked.kind == metric_kind::precision || asked.kind == metric_kind::recall) {
    // What is both predicted and true, of what is predicted, or of what is true.
    const output said = n.as(predictions, dtype::boolean, "predictions/Cast"), held = n.as(labels, dtype::boolean, "labels/Cast");
    const output both = n.as(n.add("LogicalAnd", {said, held}, "LogicalAnd"), dtype::float32, "both/Cast"), of = n.as(asked.kind == metric_kind::precision ? said : held, dtype::float32, "of/Cast");
    const output weights = asked.weights == nullptr ? output() : checked_weights(n, weights_of(n, *asked.weights), both);
    const auto counted = [&](const output& x, const char* below) { return n.sum(weights.from == nullptr ? x : n.add("Mul", {x, weights}, (std::string(below) + "/mul").c_str()), below); };
    sums.add("true_positives", counted(both, "both"));
    sums.add(asked.kind == metric_kind::precision ? "predicted" : "positives", counted(of, "of"));
  } else {
    const output values = metric_values(n, asked.kind, labels, predictions);
    if (asked.weights == nullptr) {
      sums.add("total", n.sum(values, "Sum"));
      sums.add("count", n.as(n.add("Size", {values}, "Size"), dtype::float32, "ToFloat"));
    } else {
      const output weights = checked_weights(n, weights_of(n, *asked.weights), values);
      sums.add("total", n.sum(n.add("Mul", {values, weights}, "Mul"), "Sum"));
      sums.add("count", n.sum(n.add("Mul", {n.add("OnesLike", {values}, "ones_like"), weights}, "broadcast_weights"), "Sum_1"));
    }
  }
  const bool root = asked.kind == metric_kind::root_mean_squared_error;
  metric out;
  out.value = tensor<float, 0>(sums.quotient("value", root));
  const auto after = control_dependencies(sums.updates);
  out.update = tensor<float, 0>(sums.quotient("update_op", root));
  return out;
}

// The area under a curve whose points are given by true positives, false negatives, true negatives and false positives at each threshold.
WEFT_DECL output area_under(const metric_sums& sums, auc_curve curve, int thresholds, const std::string& below) {
  const loss_nodes& n = sums.n;
  const auto at = [&](const char* name) { return below + "/" + name; };
  const auto add = [&](const char* op, std::vector<output> inputs, const char* name) { return n.add(op, std::move(inputs), at(name).c_str()); };
  // 1. Points; the small number keeps the quotients defined where nothing is positive, or negative.
  const std::vector<output> read = sums.read(below);
  const output &tp = read[0], &fn = read[1], &tn = read[2], &fp = read[3], little = n.number(1e-6, at("epsilon").c_str()), some = add("AddV2", {tp, little}, "positives");
  const output recall = add("RealDiv", {some, add("AddV2", {add("AddV2", {tp, fn}, "labels"), little}, "labels/add")}, "recall");
  const bool roc = curve == auc_curve::roc;
  const output false_rate = roc ? add("RealDiv", {fp, add("AddV2", {add("AddV2", {fp, tn}, "others"), little}, "others/add")}, "false_positive_rate") : output();
  const output precision = roc ? output() : add("RealDiv", {some, add("AddV2", {add("AddV2", {tp, fp}, "said"), little}, "said/add")}, "precision");
  const output &x = roc ? false_rate : recall, &y = roc ? recall : precision;
  // 2. Trapezoids between each point and the next one.
  const output size = n.g.integers({thresholds - 1}, at("size").c_str()), first = n.g.integers({0}, at("first").c_str()), second = n.g.integers({1}, at("second").c_str());
  const auto part = [&](const output& of, const output& from, const char* name) { return add("Slice", {of, from, size}, name); };
  const output widths = add("Sub", {part(x, first, "x"), part(x, second, "x/next")}, "widths");
  const output heights = add("Mul", {add("AddV2", {part(y, first, "y"), part(y, second, "y/next")}, "y/sum"), n.number(0.5, at("half").c_str())}, "heights");
  return n.g.reduce("Sum", add("Mul", {widths, heights}, "areas"), {0}, below.c_str(), false);
}

WEFT_DECL metric add_auc(const auc_call& asked) {
  const int count = asked.options.thresholds;
  const node_group g(asked.predictions, asked.name, "auc");
  if (count < 2) g.fail("expected at least 2 thresholds, found " + std::to_string(count));
  const loss_nodes n{g, dtype::float32};
  const output labels = g.input(asked.labels), given = n.as(g.input(asked.predictions), dtype::float32, "predictions/Cast");
  expect_same_shape(g, labels, given);
  // 1. Predictions are probabilities.
  const std::string text = "predictions must be in [0, 1]";
  const output message = add_const_at(tensor_value::scalar(text), g.name() + "/assert/message", g.site(), g.graph());
  const output inside = n.add("LogicalAnd", {n.add("GreaterEqual", {given, n.number(0, "zero")}, "GreaterEqual"), n.add("LessEqual", {given, n.number(1, "one")}, "LessEqual")}, "inside");
  const operation holds(*n.add("Assert", {g.reduce("All", n.add("Reshape", {inside, g.integers({-1}, "flat")}, "inside/flat"), {0}, "all_inside", false), message, given}, "assert").from);
  const output row = g.integers({1, -1}, "row");
  const output predictions = [&] {
    const auto checked = control_dependencies({holds});
    return n.add("Reshape", {given, row}, "predictions");
  }();
  // 2. What is said at each threshold, a row for each, beside what holds.
  std::vector<float> all(static_cast<std::size_t>(count));
  for (int i = 1; i + 1 < count; ++i) all[static_cast<std::size_t>(i)] = static_cast<float>(static_cast<double>(i) / (count - 1));
  all.front() = -1e-7f;
  all.back() = 1 + 1e-7f;
  const output thresholds = add_const_at(tensor_value::from({count, 1}, all), g.name() + "/thresholds", g.site(), g.graph());
  const output said = n.add("Greater", {predictions, thresholds}, "said"), not_said = n.add("LogicalNot", {said}, "not_said");
  const output held = n.add("Reshape", {n.as(labels, dtype::boolean, "labels/Cast"), row}, "held"), not_held = n.add("LogicalNot", {held}, "not_held");
  const output ones = n.add("OnesLike", {given}, "ones_like");
  const output weights = n.add("Reshape", {asked.weights == nullptr ? ones : n.add("Mul", {ones, checked_weights(n, weights_of(n, *asked.weights), given)}, "broadcast_weights"), row}, "weights/row");
  // 3. Sums of the weights of what agrees and of what does not.
  metric_sums sums{n, {}, {}};
  const auto add_sum = [&](const std::string& name, const output& a, const output& b) {
    const auto at = [&](const char* end) { return name + end; };
    const output both = n.as(n.add("LogicalAnd", {a, b}, at("/both").c_str()), dtype::float32, at("/Cast").c_str());
    const output zeros = add_const_at(tensor_value::from({count}, std::vector<float>(all.size())), g.name() + "/" + at("/initial_value"), g.site(), g.graph());
    sums.add(name.c_str(), g.reduce("Sum", n.add("Mul", {both, weights}, at("/mul").c_str()), {1}, at("/Sum").c_str(), false), zeros);
  };
  add_sum("true_positives", said, held);
  add_sum("false_negatives", not_said, held);
  add_sum("true_negatives", not_said, not_held);
  add_sum("false_positives", said, not_held);
  // 4. The area, before and after the batch.
  metric out;
  out.value = tensor<float, 0>(area_under(sums, asked.options.curve, count, "value"));
  const auto after = control_dependencies(sums.updates);
  out.update = tensor<float, 0>(area_under(sums, asked.options.curve, count, "update_op"));
  return out;
}

}  // namespace weft::detail
#endif

#endif
