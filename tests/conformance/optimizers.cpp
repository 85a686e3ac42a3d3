// Optimizers step by step, learning rates over the steps, clipping, moving averages.
#include "runner.hpp"

#include <weft/gradients.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/train/clip.hpp>
#include <weft/train/moving_averages.hpp>
#include <weft/train/optimizers.hpp>
#include <weft/train/schedules.hpp>

#include <map>
#include <memory>
#include <set>

namespace conformance {

using namespace weft::detail;
using weft::tensor_value;

namespace {

// Whether TensorFlow refuses to build this.
bool is_refused(const json_at& record) { return find_field(field(record, "expect"), "error") != nullptr; }

tensor_value tensor_in(const json_at& record, const char* name) { return value_at(field(record, name), string_form::text); }
weft::dtype dtype_in(const json_at& record) { return text_field_of(record, "dtype") == "float64" ? weft::dtype::float64 : weft::dtype::float32; }

weft::output add_placeholder(weft::dtype type, const weft::partial_shape& shape, const std::string& name) {
  return {&add_node("Placeholder", {}, weft::op_name(name), {{"dtype", type}, {"shape", shape}}), 0};
}
weft::output add_tensor(const tensor_value& v) { return {&add_const(v, weft::op_name()), 0}; }
weft::any_variable add_named(const std::string& name, tensor_value initial, weft::variable_kind kind) {
  const weft::dtype type = initial.dtype();
  return weft::any_variable(weft::detail::add_variable(type, std::move(initial), kind, weft::op_name(name)).handle);
}
weft::partial_shape without_rows(const weft::shape& s) {
  std::vector<std::int64_t> sizes = weft::partial_shape(s).sizes();
  sizes[0] = -1;
  return weft::partial_shape(sizes);
}

// The arguments of a constructor. TensorFlow makes floats of its numbers; what is said to be tensors of float64 stays a double.
class arguments {
 public:
  arguments(const json_at& record, bool exact) : at_(field(record, "arguments")), exact_(exact) {}
  explicit arguments(const json_at& record) : arguments(record, find_field(record, "argument_tensors") != nullptr) {}

  bool has(const char* name) const { return find_field(at_, name) != nullptr; }
  double exact(const char* name, double otherwise) const { return has(name) ? real_at(field(at_, name)) : otherwise; }
  double number(const char* name, double otherwise) const { return exact_ ? exact(name, otherwise) : static_cast<double>(static_cast<float>(exact(name, otherwise))); }
  bool flag(const char* name) const { return has(name) && bool_at(field(at_, name)); }
  std::vector<double> list(const char* name) const {
    std::vector<double> out;
    const json_at all = field(at_, name);
    for (std::size_t i = 0; i < elements_at(all).size(); ++i) out.push_back(real_at(json_at(all.value.items[i], all, i)));
    return out;
  }

 private:
  json_at at_;
  bool exact_;
};

std::unique_ptr<weft::optimizer> optimizer_of(const std::string& name, const arguments& a, const weft::hyper_parameter& rate, const weft::any_variable& global_step) {
  const double l1 = a.number("l1_regularization_strength", 0), l2 = a.number("l2_regularization_strength", 0);
  if (name == "GradientDescentOptimizer") return std::make_unique<weft::gradient_descent_optimizer>(rate);
  if (name == "MomentumOptimizer") return std::make_unique<weft::momentum_optimizer>(rate, a.number("momentum", 0), a.flag("use_nesterov") ? weft::nesterov::on : weft::nesterov::off);
  if (name == "AdagradOptimizer") return std::make_unique<weft::adagrad_optimizer>(rate, a.exact("initial_accumulator_value", 0.1));
  if (name == "AdadeltaOptimizer") return std::make_unique<weft::adadelta_optimizer>(rate, a.number("rho", 0.95), a.number("epsilon", 1e-8));
  if (name == "RMSPropOptimizer") {
    weft::rms_prop_options o;
    o.decay = a.number("decay", 0.9);
    o.momentum = a.number("momentum", 0);
    o.epsilon = a.number("epsilon", 1e-10);
    o.centered = a.flag("centered");
    return std::make_unique<weft::rms_prop_optimizer>(rate, o);
  }
  if (name == "AdamOptimizer") return std::make_unique<weft::adam_optimizer>(rate, a.number("beta1", 0.9), a.number("beta2", 0.999), a.number("epsilon", 1e-8));
  if (name == "FtrlOptimizer") {
    weft::ftrl_options o;
    o.learning_rate_power = a.number("learning_rate_power", -0.5);
    o.initial_accumulator_value = a.exact("initial_accumulator_value", 0.1);
    o.l1_regularization_strength = l1;
    o.l2_regularization_strength = l2;
    o.l2_shrinkage_regularization_strength = a.number("l2_shrinkage_regularization_strength", 0);
    o.beta = a.number("beta", 0);
    return std::make_unique<weft::ftrl_optimizer>(rate, o);
  }
  if (name == "ProximalGradientDescentOptimizer") return std::make_unique<weft::proximal_gradient_descent_optimizer>(rate, l1, l2);
  if (name == "ProximalAdagradOptimizer") return std::make_unique<weft::proximal_adagrad_optimizer>(rate, a.exact("initial_accumulator_value", 0.1), l1, l2);
  if (name == "AdagradDAOptimizer") return std::make_unique<weft::adagrad_da_optimizer>(rate, global_step, a.exact("initial_gradient_squared_accumulator_value", 0.1), l1, l2);
  throw weft::error(weft::error_code::unimplemented, "there is no optimizer '" + name + "'");
}
double usual_rate(const std::string& optimizer) { return optimizer == "AdamOptimizer" || optimizer == "AdadeltaOptimizer" ? 0.001 : 0; }

// Float64 to rounding. TensorFlow's own float32 is off by 6e-6 of max(|x|, 1e-3), by 2e-5 where nearly equal numbers are subtracted; and it adds beta to l2 in other precision.
tolerance tolerance_of(const json_at& record) {
  const std::string name = text_field_of(record, "name");
  if (name.find("ftrl_power_third/float32") != std::string::npos) return {2e-5, 2e-8};
  if (name.find("ftrl_beta/float64") != std::string::npos) return {1e-7, 1e-10};
  return dtype_in(record) == weft::dtype::float64 ? tolerance{1e-12, 1e-15} : tolerance{1e-5, 1e-8};
}

// What a step is expected to leave, to fetch and compare.
class expectations {
 public:
  explicit expectations(tolerance tol) : tol_(tol) {}
  void add(const std::string& what, const weft::output& fetch, tensor_value value) {
    names_.push_back(what);
    values_.push_back(std::move(value));
    signature_.fetches.push_back(fetch);
  }
  std::string check(weft::session_interface& session) const {
    if (names_.empty()) return "";
    const auto found = run_step(session, signature_, {});
    for (std::size_t i = 0; i < found.size(); ++i)
      if (const std::string why = compare(values_[i], found[i], tol_); !why.empty()) return names_[i] + " " + why;
    return "";
  }

 private:
  tolerance tol_;
  std::vector<std::string> names_;
  std::vector<tensor_value> values_;
  weft::step_signature signature_;
};

/// One optimizer with its variables, and placeholders for the gradients.
class trained {
 public:
  trained(const json_at& record, const json_at& variables) : record_(record), dense_(text_field_of(record, "form") == "dense") {
    for (const json_value& member : variables.value.items) {
      const tensor_value initial = value_at(json_at(member, variables, member.key), string_form::text);
      const weft::any_variable v = add_named(member.key, initial, weft::variable_kind::trainable);
      names_.push_back(member.key);
      variables_.push_back(v);
      reads_[member.key] = v.read();
      if (dense_) {
        fed_.push_back(add_placeholder(initial.dtype(), initial.shape(), member.key + "_gradient"));
        gradients_.emplace_back(fed_.back(), v);
      } else {
        const weft::output values = add_placeholder(initial.dtype(), without_rows(initial.shape()), member.key + "_values"),
                           indices = add_placeholder(weft::dtype::int64, weft::partial_shape({-1}), member.key + "_indices");
        fed_.push_back(values);
        fed_.push_back(indices);
        gradients_.emplace_back(weft::indexed_slices{values, indices, add_node_at("VariableShape", {v.handle()}, member.key + "_shape", {})}, v);
      }
    }
    step_ = add_named("global_step", tensor_value::scalar(std::int64_t{0}), weft::variable_kind::not_trainable);
    const std::string name = text_field_of(record, "optimizer");
    const arguments a(record);
    weft::hyper_parameter rate = a.number("learning_rate", usual_rate(name));
    if (find_field(record, "learning_rates") != nullptr) {
      rate_ = add_placeholder(weft::dtype::float32, weft::partial_shape(std::vector<std::int64_t>()), "rate");
      fed_.push_back(rate_);
      rate = weft::hyper_parameter(rate_);
    }
    optimizer_ = optimizer_of(name, a, rate, step_);
    update_ = optimizer_->apply_gradients(gradients_, step_);
    step_read_ = step_.read();
    for (std::size_t i = 0; i < names_.size(); ++i)
      for (const std::string& slot : optimizer_->slot_names()) reads_[names_[i] + "/" + slot] = optimizer_->slot(variables_[i], slot).read();
    for (const weft::any_variable& v : optimizer_->variables()) reads_[v.name()] = v.read();
    initialize_ = weft::global_variables_initializer();
  }

  const weft::optimizer& optimizer() const { return *optimizer_; }
  weft::any_variable slot(const std::string& variable, const std::string& name) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == variable) return optimizer_->slot(variables_[i], name);
    return {};
  }
  void initialize(weft::session_interface& session) const {
    weft::step_signature what;
    what.targets = {initialize_.get()};
    run_step(session, what, {});
  }
  void step(weft::session_interface& session, std::size_t number) const {
    const json_at all = field(record_, "gradients"), now(elements_at(all).at(number), all, number);
    weft::step_signature what;
    what.feeds = fed_;
    what.targets = {update_.get()};
    std::vector<tensor_value> values;
    for (const std::string& name : names_) {
      const json_at gradient = field(now, name);
      if (dense_) {
        values.push_back(value_at(gradient, string_form::text));
        continue;
      }
      values.push_back(tensor_in(gradient, "values"));
      const json_at indices = field(gradient, "indices");
      std::vector<std::int64_t> rows;
      for (std::size_t i = 0; i < elements_at(indices).size(); ++i) rows.push_back(integer_at(json_at(indices.value.items[i], indices, i)));
      values.push_back(tensor_value::from<std::int64_t>({static_cast<std::int64_t>(rows.size())}, rows));
    }
    if (rate_.from != nullptr) {
      const json_at rates = field(record_, "learning_rates");
      values.push_back(tensor_value::scalar(static_cast<float>(real_at(json_at(elements_at(rates).at(number), rates, number)))));
    }
    run_step(session, what, values);
  }
  // What stands in `variables`, `slots` and `non_slot`.
  void expect(const json_at& state, expectations& into) const {
    if (find_field(state, "global_step") != nullptr) into.add("global_step", step_read_, tensor_value::scalar(integer_at(field(state, "global_step"))));
    for (const char* part : {"variables", "non_slot"}) {
      if (find_field(state, part) == nullptr) continue;
      const json_at map = field(state, part);
      for (const json_value& member : map.value.items) into.add(member.key, reads_.at(member.key), value_at(json_at(member, map, member.key), string_form::text));
    }
    if (find_field(state, "slots") != nullptr) expect_slots(field(state, "slots"), into);
  }
  void expect_slots(const json_at& map, expectations& into) const {
    for (const json_value& member : map.value.items) {
      const json_at slots(member, map, member.key);
      for (const json_value& slot : member.items) into.add(member.key + "/" + slot.key, reads_.at(member.key + "/" + slot.key), value_at(json_at(slot, slots, slot.key), string_form::text));
    }
  }

 private:
  const json_at& record_;
  bool dense_;
  std::vector<std::string> names_;
  std::vector<weft::any_variable> variables_;
  std::vector<weft::output> fed_;
  std::vector<weft::grad_and_variable> gradients_;
  std::map<std::string, weft::output> reads_;
  weft::any_variable step_;
  weft::output rate_, step_read_;
  std::unique_ptr<weft::optimizer> optimizer_;
  weft::operation update_, initialize_;
};

// The names of the slots' variables and the ops that update.
std::string check_graph(const json_at& expected, const trained& what, const weft::graph& g) {
  const json_at names = field(expected, "slot_variable_names");
  for (const json_value& member : names.value.items)
    for (const json_value& slot : member.items)
      if (const weft::any_variable v = what.slot(member.key, slot.key); v.empty() || v.name() != slot.text)
        return "slot '" + slot.key + "' of '" + member.key + "' is '" + (v.empty() ? std::string() : v.name()) + "', expected '" + slot.text + "'";
  std::set<std::string> ops, found;
  for (const std::string& op : names_field_of(expected, "ops")) ops.insert(op);
  for (const weft::node* n : g.nodes()) {
    if (n->op().compare(0, 8, "Resource") == 0 && ops.count(n->op()) == 0) return "the graph has a node of op '" + n->op() + "', '" + n->name() + "'";
    found.insert(n->op());
  }
  for (const std::string& op : ops)
    if (found.count(op) == 0) return "the graph has no node of op '" + op + "'";
  return "";
}

weft::session_options quiet() {
  weft::session_options options;
  options.kernel_threads = 1;
  options.optimizer = passes();
  return options;
}

std::string check_optimizer(const json_at& record) {
  const weft::graph g;
  const auto scope = g.as_default();
  const trained what(record, field(record, "variables"));
  const json_at expected = field(record, "expect");
  if (is_refused(record)) return "";
  if (std::string why = check_graph(expected, what, g); !why.empty()) return why;
  const tolerance tol = tolerance_of(record);
  const json_at steps = field(expected, "steps");
  weft::local_session session(quiet(), g);
  what.initialize(session);
  expectations first(tol);
  what.expect_slots(field(expected, "initial_slots"), first);
  if (const std::string why = first.check(session); !why.empty()) return "at first " + why;
  std::size_t done = 0;
  for (std::size_t i = 0; i < elements_at(steps).size(); ++i) {
    const json_at state(steps.value.items[i], steps, i);
    const auto until = static_cast<std::size_t>(integer_at(field(state, "step"), 1, 1000));
    while (done < until) what.step(session, done++);
    expectations now(tol);
    what.expect(state, now);
    if (const std::string why = now.check(session); !why.empty()) return "after step " + std::to_string(until) + ": " + why;
  }
  return "";
}

weft::output schedule_of(const std::string& name, const arguments& a, const weft::output& step) {
  const weft::hyper_parameter rate = a.number("learning_rate", 0), at(step), steps = a.number("decay_steps", 0), decay = a.number("decay_rate", 0);
  const auto stairs = a.flag("staircase") ? weft::staircase::on : weft::staircase::off;
  if (name == "exponential_decay") return weft::exponential_decay(rate, at, steps, decay, stairs).raw();
  if (name == "natural_exp_decay") return weft::natural_exp_decay(rate, at, steps, decay, stairs).raw();
  if (name == "inverse_time_decay") return weft::inverse_time_decay(rate, at, steps, decay, stairs).raw();
  if (name == "polynomial_decay")
    return weft::polynomial_decay(rate, at, steps, a.number("end_learning_rate", 0.0001), a.number("power", 1),
                                  a.flag("cycle") ? weft::cycle::on : weft::cycle::off)
        .raw();
  if (name == "cosine_decay") return weft::cosine_decay(rate, at, steps, a.number("alpha", 0)).raw();
  if (name == "cosine_decay_restarts")
    return weft::cosine_decay_restarts(rate, at, a.number("first_decay_steps", 1), a.number("t_mul", 2), a.number("m_mul", 1), a.number("alpha", 0)).raw();
  if (name == "linear_cosine_decay") return weft::linear_cosine_decay(rate, at, steps, a.number("num_periods", 0.5), a.number("alpha", 0), a.number("beta", 0.001)).raw();
  if (name != "piecewise_constant") throw weft::error(weft::error_code::unimplemented, "there is no schedule '" + name + "'");
  std::vector<float> values;
  for (const double v : a.list("values")) values.push_back(static_cast<float>(v));
  const auto piecewise = [&](auto kind) {
    std::vector<decltype(kind)> boundaries;
    for (const double b : a.list("boundaries")) boundaries.push_back(static_cast<decltype(kind)>(b));
    return weft::piecewise_constant(weft::tensor<decltype(kind)>(step), boundaries, values).raw();
  };
  return step.from->output_dtype(step.index) == weft::dtype::int32 ? piecewise(std::int32_t{}) : piecewise(std::int64_t{});
}

std::string check_schedule(const json_at& record) {
  const weft::graph g;
  const auto scope = g.as_default();
  const json_at type = field(record, "global_step_dtype");
  const bool none = type.value.kind == json_kind::null, small = !none && type.value.text == "int32";
  const weft::output step = none ? weft::output() : add_placeholder(small ? weft::dtype::int32 : weft::dtype::int64, weft::partial_shape(std::vector<std::int64_t>()), "step");
  const weft::output rate = schedule_of(text_field_of(record, "function"), arguments(record), step);
  if (is_refused(record)) return "";
  const json_at steps = field(record, "global_steps"), expected = field(record, "expect");
  const tensor_value values = tensor_in(expected, "values");
  weft::local_session session(quiet(), g);
  weft::step_signature what;
  what.feeds = {step};
  what.fetches = {rate};
  for (std::size_t i = 0; i < elements_at(steps).size(); ++i) {
    const std::int64_t at = integer_at(json_at(steps.value.items[i], steps, i));
    const auto found = run_step(session, what, {small ? tensor_value::scalar(static_cast<std::int32_t>(at)) : tensor_value::scalar(at)});
    const tensor_value wanted = tensor_value::scalar(values.data<float>()[i]);
    if (const std::string why = compare(wanted, found[0], tolerance{1e-5, 1e-7}); !why.empty()) return "at step " + std::to_string(at) + " " + why;
  }
  return "";
}

// Tensors, rows or nothing.
std::vector<weft::gradient_output> inputs_of(const json_at& record) {
  std::vector<weft::gradient_output> out;
  const json_at all = field(record, "inputs");
  for (std::size_t i = 0; i < all.value.items.size(); ++i) {
    const json_at one(all.value.items[i], all, i);
    if (one.value.kind == json_kind::null) {
      out.emplace_back();
    } else if (find_field(one, "indices") != nullptr) {
      std::vector<std::int64_t> rows;
      const json_at indices = field(one, "indices");
      for (std::size_t j = 0; j < elements_at(indices).size(); ++j) rows.push_back(integer_at(json_at(indices.value.items[j], indices, j)));
      const weft::output values = add_tensor(tensor_in(one, "values")), where = add_tensor(tensor_value::from<std::int64_t>({static_cast<std::int64_t>(rows.size())}, rows));
      out.emplace_back(weft::indexed_slices{values, where, add_tensor(tensor_value::from<std::int64_t>({2}, {5, 2}))});
    } else {
      out.emplace_back(add_tensor(value_at(one, string_form::text)));
    }
  }
  return out;
}

template <class T> std::string check_clip(const json_at& record) {
  const weft::graph g;
  const auto scope = g.as_default();
  const std::string kind = text_field_of(record, "kind");
  const arguments a(record, false);
  std::vector<weft::gradient_output> in = inputs_of(record), out;
  const auto x = [&] { return weft::tensor<T>(in.at(0).values()); };
  weft::output norm;
  const auto bound = [&](const char* name) {
    const json_at at = field(field(record, "arguments"), name);
    if (at.value.kind != json_kind::array) return weft::tensor<T>(weft::constant(static_cast<T>(real_at(at))));
    std::vector<T> values;
    for (const double v : a.list(name)) values.push_back(static_cast<T>(v));
    return weft::tensor<T>(weft::constant(values));
  };
  if (kind == "clip_by_value") out = {weft::clip_by_value(x(), bound("min"), bound("max"))};
  if (kind == "clip_by_norm" && in.at(0).is_sparse()) {
    out = {weft::clip_by_norm(in[0], a.number("clip_norm", 0))};
  } else if (kind == "clip_by_norm") {
    std::vector<int> axes;
    if (a.has("axes"))
      for (const double axis : a.list("axes")) axes.push_back(static_cast<int>(axis));
    out = {weft::clip_by_norm(x(), a.number("clip_norm", 0), axes)};
  }
  if (kind == "clip_by_average_norm") out = {weft::clip_by_average_norm(x(), a.number("clip_norm", 0))};
  if (kind == "global_norm") out = {weft::global_norm<T>(in)};
  if (kind == "clip_by_global_norm") {
    weft::tensor<T, 0> use;
    if (a.has("use_norm")) use = weft::constant(static_cast<T>(a.number("use_norm", 0)));
    const auto clipped = weft::clip_by_global_norm<T>(in, a.number("clip_norm", 0), use);
    out = clipped.first;
    norm = clipped.second.raw();
  }
  if (is_refused(record)) return "";
  const json_at expected = field(record, "expect"), outputs = field(expected, "outputs");
  expectations now(std::is_same_v<T, double> ? tolerance{1e-12, 1e-15} : tolerance{2e-6, 1e-8});
  for (std::size_t i = 0; i < outputs.value.items.size(); ++i) {
    const json_at one(outputs.value.items[i], outputs, i);
    const std::string name = "output " + std::to_string(i);
    if (one.value.kind == json_kind::null) {
      if (!out.at(i).empty()) return name + " is there, expected none";
      continue;
    }
    now.add(name, out.at(i).values(), find_field(one, "indices") != nullptr ? tensor_in(one, "values") : value_at(one, string_form::text));
  }
  if (norm.from != nullptr) now.add("the norm", norm, tensor_in(expected, "global_norm"));
  weft::local_session session(quiet(), g);
  return now.check(session);
}
std::string check_clip(const json_at& record) {
  const json_at inputs = field(record, "inputs");
  if (inputs.value.kind == json_kind::string) return "";
  const auto is_wide = [](const json_at& at) { return find_field(at, "dtype") != nullptr && dtype_in(at) == weft::dtype::float64; };
  bool wide = false;
  if (inputs.value.kind == json_kind::array)
    for (std::size_t i = 0; i < inputs.value.items.size(); ++i) {
      const json_at one(inputs.value.items[i], inputs, i);
      if (one.value.kind == json_kind::object) wide = wide || (find_field(one, "indices") != nullptr ? is_wide(field(one, "values")) : is_wide(one));
    }
  return wide ? check_clip<double>(record) : check_clip<float>(record);
}

std::string check_average(const json_at& record) {
  const weft::graph g;
  const auto scope = g.as_default();
  const json_at series = field(record, "series"), expected = field(record, "expect");
  const json_value* updates = find_field(record, "num_updates");
  const bool of_variable = text_field_of(record, "source") == "variable";
  const tensor_value first = value_at(json_at(elements_at(series).at(0), series, 0), string_form::text);
  const weft::output value = add_placeholder(first.dtype(), first.shape(), of_variable ? "value" : "t");
  weft::step_signature set, average;
  weft::output source = value;
  if (of_variable) {
    const weft::any_variable v = add_named("v", first, weft::variable_kind::trainable);
    source = v.handle();
    set.feeds = {value};
    set.targets = {v.assign(value).get()};
  }
  weft::moving_average_options options;
  options.zero_debias = bool_at(field(record, "zero_debias"));
  if (updates != nullptr) {
    average.feeds.push_back(add_placeholder(weft::dtype::int64, weft::partial_shape(std::vector<std::int64_t>()), "updates"));
    options.num_updates = weft::hyper_parameter(average.feeds[0]);
  }
  if (!of_variable) average.feeds.push_back(value);
  weft::exponential_moving_average averages(static_cast<float>(real_at(field(record, "decay"))), options);
  average.targets = {averages.apply({weft::averaged(source)}).get()};
  const weft::any_variable found = averages.average(weft::averaged(source));
  if (found.name() != text_field_of(expected, "average_name")) return "the average is '" + found.name() + "', expected '" + text_field_of(expected, "average_name") + "'";
  for (const std::string& name : names_field_of(expected, "other_variables"))
    if (g.find(name) == nullptr) return "there is no variable '" + name + "'";
  const weft::output read = found.read();
  weft::step_signature initialize;
  initialize.targets = {weft::global_variables_initializer().get()};

  weft::local_session session(quiet(), g);
  run_step(session, initialize, {});
  const tolerance tol = first.dtype() == weft::dtype::float64 ? tolerance{1e-12, 1e-15} : tolerance{1e-5, 1e-7};
  expectations before(tol);
  before.add("the initial average", read, tensor_in(expected, "initial_average"));
  if (const std::string why = before.check(session); !why.empty()) return why;
  const json_at wanted = field(expected, "averages");
  for (std::size_t i = 0; i < elements_at(series).size(); ++i) {
    const tensor_value now = value_at(json_at(series.value.items[i], series, i), string_form::text);
    if (of_variable) run_step(session, set, {now});
    std::vector<tensor_value> fed;
    if (options.num_updates) fed.push_back(tensor_value::scalar(integer_at(json_at(updates->items.at(i), record, i))));
    if (!of_variable) fed.push_back(now);
    run_step(session, average, fed);
    expectations after(tol);
    after.add("the average", read, value_at(json_at(elements_at(wanted).at(i), wanted, i), string_form::text));
    if (const std::string why = after.check(session); !why.empty()) return "after " + std::to_string(i + 1) + " updates: " + why;
  }
  return "";
}

std::string check_minimize(const json_at& record) {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 0> a(1.f, "a"), b(2.f, "b");
  const weft::variable<std::int64_t, 0> step(std::int64_t{0}, "global_step");
  const auto loss = weft::square(3.f * a - b) + b * b;
  weft::compute_gradients_options options;
  const std::int64_t gate = integer_at(field(record, "gate_gradients"), 0, 2);
  options.gate = gate == 0 ? weft::gradient_gate::none : gate == 1 ? weft::gradient_gate::op : weft::gradient_gate::graph;
  weft::gradient_descent_optimizer descent(0.1f);
  const weft::operation train = descent.minimize(loss, step, options);
  const json_at expected = field(record, "expect"), rows = field(expected, "rows");
  if (train.name() != text_field_of(expected, "train_op")) return "the operation is '" + train.name() + "', expected '" + text_field_of(expected, "train_op") + "'";
  weft::local_session session(quiet(), g);
  session.run(weft::global_variables_initializer());
  for (std::size_t i = 0; i < elements_at(rows).size(); ++i) {
    session.run(train);
    const auto [av, bv, lv, sv] = session.run(a, b, loss, step);
    const double found[] = {static_cast<double>(av), static_cast<double>(bv), static_cast<double>(lv), static_cast<double>(sv)};
    const json_at row(rows.value.items[i], rows, i);
    for (std::size_t j = 0; j < 4; ++j) {
      const double wanted = real_at(json_at(elements_at(row).at(j), row, j));
      if (std::abs(wanted - found[j]) > 2e-6 * std::abs(wanted))
        return "row " + std::to_string(i) + ", column " + std::to_string(j) + ": expected " + std::to_string(wanted) + ", found " +
               std::to_string(found[j]);
    }
  }
  return "";
}

// Misuse, by the name of the case.
std::string check_misuse(const json_at& record) {
  const std::string full = text_field_of(record, "name"), what = full.substr(full.find('/') + 1);
  const weft::graph g;
  const auto scope = g.as_default();
  weft::gradient_descent_optimizer descent(1.f);
  if (what == "no_variables") descent.minimize(weft::constant(1.f));
  const weft::variable<float, 0> a(0.f, "a");
  const auto one = weft::constant(1.f);
  weft::compute_gradients_options only_a;
  only_a.variables = {a};
  if (what == "no_gradients") descent.minimize(weft::constant(1.f), {}, only_a);
  if (what == "no_gradients_list") descent.apply_gradients({{weft::gradient_output(), a}});
  if (what == "empty_apply") descent.apply_gradients({});
  if (what == "int_loss") descent.minimize(weft::cast<std::int32_t>(a));
  if (what == "not_a_variable") {
    weft::compute_gradients_options constant;
    constant.variables.emplace_back(one.raw());
  }
  if (what == "bad_gradient_type") descent.apply_gradients({{weft::gradient_output(weft::constant("x")), a}});
  if (what != "duplicate_variable") return "";
  const auto step = descent.apply_gradients({{one, a}, {one, a}});
  weft::local_session session(quiet(), g);
  session.run(weft::global_variables_initializer());
  session.run(step);
  const double wanted = real_at(field(field(record, "expect"), "a"));
  return static_cast<double>(session.run(a)) == wanted ? "" : "a is not " + std::to_string(wanted);
}

std::string check_record(const json_at& record) {
  const std::string kind = text_field_of(record, "kind");
  if (kind == "optimizer") return check_optimizer(record);
  if (kind == "schedule") return check_schedule(record);
  if (kind == "moving_average") return check_average(record);
  if (kind == "minimize") return check_minimize(record);
  if (kind == "optimizer_error") return check_misuse(record);
  if (kind.compare(0, 5, "clip_") == 0 || kind == "global_norm") return check_clip(record);
  return "there is no player for kind '" + kind + "'";
}

}  // namespace

std::unique_ptr<weft::optimizer> optimizer_at(const json_at& record) {
  const std::string name = text_field_of(record, "optimizer");
  const arguments a(record);
  return optimizer_of(name, a, a.number("learning_rate", usual_rate(name)), {});
}

void run_optimizer_record(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = text_field_of(record, "kind");
  if (!asked.wants(op)) return;
  const json_value* failure = find_field(field(record, "expect"), "error");
  const std::string wanted = failure == nullptr ? "" : "expected an error (" + text_field_of(json_at(*failure, record, "error"), "message") + ")";
  try {
    const std::string why = check_record(record);
    if (failure != nullptr) into.failed(op, name, wanted + ", found none");
    else if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    if (failure != nullptr && e.code() == weft::error_code::invalid_argument) into.passed(op, name);
    else into.failed(op, name, (failure != nullptr ? wanted + ", " : std::string()) + "found " + e.what());
  }
}

}  // namespace conformance
