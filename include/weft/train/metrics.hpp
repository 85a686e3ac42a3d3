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
  void add(const char* name, const output& amount) {
    const std::string full = n.g.name() + "/" + name;
    const variable_nodes made = [&] {
      const auto free = control_dependencies(nullptr);
      return add_variable({dtype::float32, full, n.g.site(), variable_kind::local}, n.number(0, (std::string(name) + "/initial_value").c_str()));
    }();
    n.g.graph().add_to_collection("metric_variables", made.handle.from);
    handles.push_back(made.handle);
    updates.push_back(operation(*n.add("AssignAddVariableOp", {made.handle, amount}, (std::string(name) + "/update").c_str(), {{"dtype", dtype::float32}}).from));
  }
  // The quotient of the sums as they are when this is computed.
  output quotient(const char* below, bool root) const {
    const std::string at = below;
    std::vector<output> sums;
    for (const output& handle : handles) sums.push_back(n.add("ReadVariableOp", {handle}, (at + "/ReadVariableOp" + (sums.empty() ? "" : "_1")).c_str(), {{"dtype", dtype::float32}}));
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

}  // namespace weft::detail
#endif

#endif
