// Losses, the functions of neural networks that they are made of, and metrics: values, and gradients of the sum of all outputs times 1, 2, 3, ...
#include "runner.hpp"

#include <weft/gradients.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/train/losses.hpp>
#include <weft/train/collections.hpp>
#include <weft/train/metrics.hpp>

#include <algorithm>
#include <map>

namespace conformance {

using namespace weft::detail;

namespace {

/// A case being built: its inputs by name, its arguments, and the line that all nodes get.
struct built_case {
  const json_at& record;
  std::map<std::string, weft::output> inputs;

  explicit built_case(const json_at& r) : record(r) {
    const json_value* all = find_field(record, "inputs");
    if (all == nullptr) return;
    const json_at at(*all, record, "inputs");
    for (const json_value& one : all->items) inputs[one.key] = constant(value_at(json_at(one, at, one.key), string_form::text));
  }
  static weft::output constant(weft::tensor_value v) { return {&add_const(std::move(v), weft::op_name()), 0}; }
  side of(const char* name) const {
    const auto it = inputs.find(name);
    return {it == inputs.end() ? weft::output() : it->second, false, weft::tensor_value()};
  }
  /// The first of these that there is.
  side of(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (inputs.count(name) != 0) return of(name);
    return {};
  }
  /// The only input.
  side only() const { return {inputs.begin()->second, false, weft::tensor_value()}; }
  const json_value* argument(const char* name) const {
    const json_value* all = find_field(record, "arguments");
    return all == nullptr ? nullptr : find_field(json_at(*all, record, "arguments"), name);
  }
  double number(const char* name, double otherwise) const {
    const json_value* v = argument(name);
    return v == nullptr ? otherwise : real_at(json_at(*v, record, name));
  }
  std::vector<std::int32_t> axes(const char* name, const side& x) const {
    const json_value* v = argument(name);
    std::vector<std::int32_t> out;
    if (v == nullptr || v->kind == json_kind::null)
      for (int i = 0; i < x.out.from->output_shape(x.out.index).rank(); ++i) out.push_back(i);
    else if (v->kind != json_kind::array) out.push_back(static_cast<std::int32_t>(integer_at(json_at(*v, record, name))));
    else
      for (std::size_t i = 0; i < v->items.size(); ++i) out.push_back(static_cast<std::int32_t>(integer_at(json_at(v->items[i], json_at(*v, record, name), i))));
    return out;
  }
};

// The matrix with its axes changed.
side turned(const side& x) { return {{&add_node("Transpose", {x.out, built_case::constant(weft::tensor_value::from<std::int32_t>({2}, {1, 0}))}, weft::op_name()), 0}, false, weft::tensor_value()}; }

using outputs = std::vector<weft::output>;

weft::tensor_value scalar_like(const side& x, double v) { return floating_scalar(v, x.out.from->output_dtype(x.out.index)); }

outputs nn_function(const std::string& function, const built_case& c) {
  static const std::map<std::string, const char*> unary = {{"relu", "Relu"}, {"relu6", "Relu6"}, {"elu", "Elu"}, {"selu", "Selu"}, {"softplus", "Softplus"}, {"softsign", "Softsign"}, {"sigmoid", "Sigmoid"},
                                                           {"tanh", "Tanh"}, {"softmax", "Softmax"}, {"log_softmax", "LogSoftmax"}, {"l2_loss", "L2Loss"}};
  const weft::op_name name;
  if (const auto it = unary.find(function); it != unary.end()) return {add_unary(it->second, c.only(), name)};
  if (function == "swish" || function == "silu") return {{&add_node("Mul", {c.only().out, add_unary("Sigmoid", c.only(), name)}, name), 0}};
  if (function == "leaky_relu") return {add_unary("LeakyRelu", c.only(), name, {{"alpha", static_cast<float>(c.number("alpha", 0.2))}})};
  if (function == "softmax_cross_entropy_with_logits" || function == "softmax_cross_entropy_with_logits_v2") {
    const bool first = c.number("axis", -1) == 0, stop = function.back() != '2';
    return {add_softmax_cross_entropy(first ? turned(c.of("labels")) : c.of("labels"), first ? turned(c.of("logits")) : c.of("logits"), stop, name)};
  }
  if (function == "sparse_softmax_cross_entropy_with_logits") return {add_sparse_softmax_cross_entropy(c.of("labels"), c.of("logits"), name)};
  if (function == "sigmoid_cross_entropy_with_logits") return {add_sigmoid_cross_entropy(c.of("labels"), c.of("logits"), name)};
  if (function == "weighted_cross_entropy_with_logits") return {add_weighted_cross_entropy(c.of("labels"), c.of("logits"), {{}, false, scalar_like(c.of("logits"), c.number("pos_weight", 1))}, name)};
  if (function == "l2_normalize") return {add_l2_normalize(c.of("x"), c.axes("axis", c.of("x")), c.number("epsilon", 1e-12), name)};
  if (function == "moments") {
    const json_value* keep = c.argument("keepdims");
    const auto made = add_moments(c.of("x"), c.axes("axes", c.of("x")), keep != nullptr && keep->boolean, name);
    return {made.first, made.second};
  }
  if (function == "batch_normalization") return {add_batch_normalization(c.of("x"), c.of("mean"), c.of("variance"), c.of("offset"), c.of("scale"), c.number("variance_epsilon", 0), name)};
  if (function == "in_top_k") {
    const side targets = c.of("targets");
    const auto k = static_cast<std::int64_t>(c.number("k", 1));
    const bool wide = targets.out.from->output_dtype(0) == weft::dtype::int64;
    return {{&add_node("InTopKV2", {c.of("predictions").out, targets.out, built_case::constant(wide ? weft::tensor_value::scalar(k) : weft::tensor_value::scalar(static_cast<std::int32_t>(k)))}, name), 0}};
  }
  if (function == "top_k") {
    const weft::node& n = add_node("TopKV2", {c.only().out, built_case::constant(weft::tensor_value::scalar(static_cast<std::int32_t>(c.number("k", 1))))}, name);
    return {{&n, 0}, {&n, 1}};
  }
  if (function == "dropout_scale") return {weft::dropout(weft::tensor<float>(c.of("x").out), weft::drop_rate(c.number("rate", 0))).raw()};
  weft::fail(weft::error_code::unimplemented, "there is no function '" + function + "'");
}

outputs loss_function(const std::string& function, const built_case& c) {
  static const std::map<std::string, loss_kind> kinds = {{"absolute_difference", loss_kind::absolute_difference}, {"mean_squared_error", loss_kind::mean_squared_error}, {"log_loss", loss_kind::log},
                                                         {"hinge_loss", loss_kind::hinge}, {"huber_loss", loss_kind::huber}, {"sigmoid_cross_entropy", loss_kind::sigmoid_cross_entropy},
                                                         {"softmax_cross_entropy", loss_kind::softmax_cross_entropy}, {"sparse_softmax_cross_entropy", loss_kind::sparse_softmax_cross_entropy},
                                                         {"cosine_distance", loss_kind::cosine_distance}, {"mean_pairwise_squared_error", loss_kind::mean_pairwise_squared_error}};
  static const std::map<std::string, weft::loss_reduction> reductions = {{"weighted_sum", weft::loss_reduction::weighted_sum}, {"weighted_mean", weft::loss_reduction::weighted_mean},
                                                                         {"weighted_sum_over_batch_size", weft::loss_reduction::sum_over_batch_size},
                                                                         {"weighted_sum_by_nonzero_weights", weft::loss_reduction::sum_by_nonzero_weights}};
  weft::loss_options options;
  options.epsilon = c.number("epsilon", options.epsilon);
  options.delta = c.number("delta", options.delta);
  options.label_smoothing = c.number("label_smoothing", 0);
  const json_value* reduction = find_field(c.record, "reduction");
  const bool reduced = reduction == nullptr || reduction->text != "none";
  if (reduction != nullptr && reduced) options.reduction = reductions.at(reduction->text);
  const json_value* w = find_field(c.record, "weights");
  const weft::loss_weights weights = w == nullptr ? weft::loss_weights() : weft::loss_weights(weft::tensor<float>(built_case::constant(value_at(json_at(*w, c.record, "weights"), string_form::text))));
  if (function == "cosine_distance" && c.argument("axis") == nullptr) weft::fail(weft::error_code::invalid_argument, "cosine_distance without an axis does not compile");
  const weft::op_name name;
  return {add_loss_of({kinds.at(function), c.of({"labels", "multi_class_labels", "onehot_labels"}), c.of({"predictions", "logits"}), weights, options, name, reduced, static_cast<int>(c.number("axis", 0))})};
}

weft::tensor_value counted(weft::dtype type, const weft::partial_shape& s) {
  weft::tensor_value out(type, weft::shape(s.sizes()));
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    if (type == weft::dtype::float64) out.mutable_data<double>()[i] = static_cast<double>(i + 1);
    else out.mutable_data<float>()[i] = static_cast<float>(i + 1);
  }
  return out;
}

// One operation agrees to 2e-6 of the largest number met; double to 1e-12.
tolerance tolerance_of(const weft::tensor_value& v) {
  double largest = 1;
  for (std::int64_t i = 0; i < v.elements(); ++i)
    if (const double x = std::abs(element(v, i)); x > largest && x < 1e30) largest = x;
  return v.dtype() == weft::dtype::float64 ? tolerance{1e-12, 1e-13 * largest} : tolerance{2e-6, 1e-6 * largest};
}

std::string check_values(const json_at& list, const outputs& made, weft::local_session& session) {
  if (list.value.items.size() != made.size()) return "expected " + std::to_string(list.value.items.size()) + " outputs, found " + std::to_string(made.size());
  const std::vector<weft::tensor_value> found = run_step(session, {{}, made, {}}, {});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const weft::tensor_value wanted = value_at(json_at(list.value.items[i], list, i), string_form::text);
    if (const std::string why = compare(wanted, found[i], tolerance_of(wanted)); !why.empty()) return "output " + std::to_string(i) + ": " + why;
  }
  return "";
}

std::string check_gradients(const json_at& expected, const built_case& c, const outputs& made, weft::local_session& session) {
  // 1. The outputs that can be differentiated, with their seeds.
  outputs ys, xs;
  weft::gradient_options options;
  for (const weft::output& y : made)
    if (weft::is_floating(y.from->output_dtype(y.index))) {
      ys.push_back(y);
      options.grad_ys.push_back(built_case::constant(counted(y.from->output_dtype(y.index), y.from->output_shape(y.index))));
    }
  for (const json_value& one : expected.value.items) xs.push_back(c.inputs.at(one.key));
  // 2. Each gradient, or none.
  const auto found = weft::gradients(ys, xs, options);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const json_value& one = expected.value.items[i];
    if (one.kind == json_kind::null) {
      if (!found[i].empty()) return "'" + one.key + "' has a gradient, none was expected";
      continue;
    }
    if (found[i].empty()) return "'" + one.key + "' has no gradient";
    const weft::tensor_value wanted = value_at(json_at(one, expected, one.key), string_form::text);
    const std::string why = compare(wanted, run_step(session, {{}, {dense_gradient(found[i], weft::call_site())}, {}}, {})[0], tolerance_of(wanted));
    if (!why.empty()) return "gradient of '" + one.key + "': " + why;
  }
  return "";
}

std::string check_dropped(const json_at& expect, const weft::output& made, weft::local_session& session) {
  const weft::tensor_value found = run_step(session, {{}, {made}, {}}, {})[0];
  const json_at values = field(expect, "values"), between = field(expect, "kept_between");
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < found.elements(); ++i) {
    bool known = false;
    for (std::size_t j = 0; j < values.value.items.size(); ++j) known = known || std::abs(element(found, i) - real_at(json_at(values.value.items[j], values, j))) < 1e-5;
    if (!known) return "found the value " + std::to_string(element(found, i));
    kept += element(found, i) != 0;
  }
  const auto bound = [&](std::size_t i) { return integer_at(json_at(between.value.items[i], between, i)); };
  return kept >= bound(0) && kept <= bound(1) ? "" : std::to_string(kept) + " elements were kept";
}

std::string check_loss(const json_at& record, bool nn) {
  const std::string function = text_field_of(record, "function");
  const built_case c(record);
  const outputs made = nn ? nn_function(function, c) : loss_function(function, c);
  const json_at expect = field(record, "expect");
  weft::local_session session;
  if (const json_value* error = find_field(expect, "error")) {
    (void)run_step(session, {{}, made, {}}, {});
    return "expected an error (" + text_field_of(json_at(*error, expect, "error"), "message") + "), found none";
  }
  if (find_field(expect, "kept_between") != nullptr) return check_dropped(expect, made[0], session);
  if (const json_value* count = find_field(expect, "losses_collection"); count != nullptr && integer_at(json_at(*count, expect, "losses_collection")) != static_cast<std::int64_t>(weft::get_losses().size()))
    return "the collection holds " + std::to_string(weft::get_losses().size()) + " losses";
  if (const std::string why = check_values(field(expect, "outputs"), made, session); !why.empty()) return why;
  const json_value* gradients = find_field(expect, "gradients");
  return gradients == nullptr ? "" : check_gradients(json_at(*gradients, expect, "gradients"), c, made, session);
}

// Batches through one metric whose inputs are fed.
std::string check_metric(const json_at& record) {
  static const std::map<std::string, metric_kind> kinds = {{"mean", metric_kind::mean}, {"accuracy", metric_kind::accuracy}, {"mean_absolute_error", metric_kind::mean_absolute_error},
                                                           {"mean_squared_error", metric_kind::mean_squared_error}, {"root_mean_squared_error", metric_kind::root_mean_squared_error},
                                                           {"precision", metric_kind::precision}, {"recall", metric_kind::recall}};
  const json_at batches = field(record, "batches"), expect = field(record, "expect");
  // 1. Placeholders for what a batch holds.
  const auto value_of = [&](std::size_t batch, std::size_t i) {
    const json_at one(batches.value.items[batch], batches, batch);
    return value_at(json_at(one.value.items[i], one, i), string_form::text);
  };
  outputs fed;
  for (std::size_t i = 0; i < batches.value.items[0].items.size(); ++i)
    fed.push_back({&add_node("Placeholder", {}, weft::op_name(), {{"dtype", value_of(0, i).dtype()}, {"shape", weft::partial_shape({-1})}}), 0});
  const json_value* w = find_field(record, "weights");
  std::vector<float> numbers;
  if (w != nullptr)
    for (std::size_t i = 0; i < w->items.size(); ++i) numbers.push_back(static_cast<float>(real_at(json_at(w->items[i], record, i))));
  const weft::loss_weights weights = w == nullptr ? weft::loss_weights() : weft::loss_weights(weft::constant(numbers));
  const weft::op_name name;
  const auto as_side = [](const weft::output& x) { return side{x, false, weft::tensor_value()}; };
  const weft::metric m = add_metric({kinds.at(text_field_of(record, "function")), fed.size() > 1 ? as_side(fed[0]) : side(), as_side(fed.back()), w == nullptr ? nullptr : &weights, name});
  // 2. The names of its variables, and its value before and after each batch.
  std::vector<std::string> names;
  for (const weft::any_variable& v : weft::local_variables()) names.push_back(v.name());
  if (names != names_field_of(expect, "local_variables")) return "it has other local variables";
  weft::local_session session;
  session.run(weft::local_variables_initializer());
  const auto differs = [&](const json_at& wanted, const weft::tensor<float, 0>& x, const std::vector<weft::tensor_value>& values) {
    const weft::tensor_value v = value_at(wanted, string_form::text);
    return compare(v, run_step(session, {values.empty() ? outputs() : fed, {x.raw()}, {}}, values)[0], tolerance_of(v));
  };
  if (const std::string why = differs(field(expect, "before"), m.value, {}); !why.empty()) return "before: " + why;
  const json_at after = field(expect, "after_batch");
  for (std::size_t i = 0; i < after.value.items.size(); ++i) {
    std::vector<weft::tensor_value> values;
    for (std::size_t j = 0; j < fed.size(); ++j) values.push_back(value_of(i, j));
    const json_at one(after.value.items[i], after, i);
    if (const std::string why = differs(field(one, "update"), m.update, values); !why.empty()) return "update " + std::to_string(i) + ": " + why;
    if (const std::string why = differs(field(one, "value"), m.value, {}); !why.empty()) return "value " + std::to_string(i) + ": " + why;
  }
  return "";
}

}  // namespace

void run_loss_record(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), kind = name.substr(0, name.find('/'));
  if (!asked.wants(kind)) return;
  const weft::graph g;
  const auto scope = g.as_default();
  try {
    const std::string why = kind == "metric" ? check_metric(record) : check_loss(record, kind == "nn");
    if (why.empty()) into.passed(kind, name);
    else into.failed(kind, name, why);
  } catch (const weft::error& e) {
    if (find_field(field(record, "expect"), "error") != nullptr) into.passed(kind, name);
    else into.failed(kind, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
