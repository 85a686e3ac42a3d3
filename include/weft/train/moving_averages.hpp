#ifndef WEFT_TRAIN_MOVING_AVERAGES_HPP
#define WEFT_TRAIN_MOVING_AVERAGES_HPP
// Averages of variables or tensors over the steps, where a step counts less the longer ago it was, as TensorFlow's tf.train.ExponentialMovingAverage.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/control.hpp>
#include <weft/ops/state.hpp>
#include <weft/train/collections.hpp>
#include <weft/train/formula.hpp>
#include <weft/train/hyper_parameter.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// What can be averaged: a variable, or a tensor, given by its output.
class averaged {
 public:
  template <class T, int N> averaged(const operand<T, N>& x) : out_(x.raw()) {}
  averaged(const any_variable& v) : out_(v.handle()) {}
  explicit averaged(output x) : out_(x) {}
  const output& out() const noexcept { return out_; }

 private:
  output out_;
};

/// How averages start.
struct moving_average_options {
  /// The number of updates so far: the decay is then at most (1 + updates) / (10 + updates), so that early values are forgotten soon.
  std::optional<hyper_parameter> num_updates{};
  /// Divides the averages of tensors, which start as zero, by what is still missing from one, so that they are averages from the first step. Together with num_updates they are not.
  bool zero_debias = false;
  std::string name = "ExponentialMovingAverage";
};

/// average = decay * average + (1 - decay) * value, once for each run of what `apply` returns. The averages are variables that are not trained, `w/ExponentialMovingAverage` beside each variable.
class exponential_moving_average {
 public:
  explicit exponential_moving_average(hyper_parameter decay, moving_average_options options = {}) : decay_(decay), options_(std::move(options)) {}
  exponential_moving_average(const exponential_moving_average&) = delete;
  exponential_moving_average& operator=(const exponential_moving_average&) = delete;

  /// An operation that updates the averages of these, which are made where they are not there yet; of the trainable variables of the default graph when none are named. The average of a variable
  /// starts with its initial value, that of a tensor with zero. Throws INVALID_ARGUMENT about what is not of a floating dtype.
  operation apply(const std::vector<averaged>& what = {}, op_name name = {});
  /// The average of a variable or tensor; an empty variable when `apply` was not called for it.
  any_variable average(const averaged& of) const;
  template <class T, int N> variable<T, N> average(const operand<T, N>& of, call_site where = call_site::here()) const {
    const any_variable found = average(averaged(of));
    return found.empty() ? variable<T, N>() : found.as<T, N>(where);
  }
  /// The name that the average has, or would have, e.g. to find it in a checkpoint.
  std::string average_name(const averaged& of) const;
  /// What to restore in order to use the averages in place of the variables: each variable by the name under which its value is to be found; the trained ones and those that are averaged here by the
  /// name of their average, all other global variables of the default graph by their own.
  std::map<std::string, any_variable> variables_to_restore() const;

 private:
  struct kept {
    output of;
    any_variable average, biased, local_step;
  };
  kept& keep(const output& of, call_site site);
  operation update(const kept& k, const output& decay, call_site site) const;

  hyper_parameter decay_;
  moving_average_options options_;
  std::vector<kept> kept_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft {

namespace detail {
inline bool holds_variable(const output& o) { return o.from->op() == "VarHandleOp"; }

// A variable of this shape that is not trained, zero at first, where the scopes say.
inline any_variable add_zeros(dtype type, const output& like, const std::string& full, call_site site) {
  graph_state& to = like.from != nullptr ? like.from->owner() : *current_graph();
  const std::string below = full + "/Initializer/";
  output zero = add_const_at(scalar_of(0, type), below + "Const", site, to);
  if (like.from != nullptr) {
    const partial_shape& shape = like.from->output_shape(like.index);
    if (!shape.fully_known()) throw error(error_code::invalid_argument, "the average of '" + to_text(like) + "' needs its shape, which is " + shape.text() + " while the graph is built", site);
    std::vector<std::int32_t> sizes;
    for (const std::int64_t size : shape.sizes()) sizes.push_back(static_cast<std::int32_t>(size));
    const output dims = add_const_at(tensor_value::from<std::int32_t>({static_cast<std::int64_t>(sizes.size())}, sizes), below + "shape_as_tensor", site, to);
    zero = add_node_at("Fill", {dims, zero}, below + "zeros", site);
  }
  return any_variable(add_variable(variable_request{type, full, site, variable_kind::not_trainable}, zero).handle);
}
}  // namespace detail

WEFT_DECL exponential_moving_average::kept& exponential_moving_average::keep(const output& of, call_site site) {
  for (kept& k : kept_)
    if (k.of == of) return k;
  // Beside what is averaged, whatever scopes say.
  const auto order = control_dependencies(nullptr);
  const auto free = colocate_with(nullptr);
  const auto with = colocate_with(operation(*of.from), site);
  detail::graph_state& to = of.from->owner();
  const std::string full = to.unique_scope(average_name(averaged(of)), site);
  if (!detail::holds_variable(of)) {
    const dtype type = of.from->output_dtype(of.index);
    kept made{of, detail::add_zeros(type, of, full, site), {}, {}};
    if (options_.zero_debias) {
      made.biased = detail::add_zeros(type, of, full + "/biased", site);
      made.local_step = detail::add_zeros(type, output(), full + "/local_step", site);
    }
    kept_.push_back(std::move(made));
    return kept_.back();
  }
  const any_variable v(of, site);
  const output initial = v.initial_value();
  if (initial.from == nullptr)
    throw error(error_code::invalid_argument,
                options_.name + ": the variable '" + v.name() + "' has no initializer in this graph, from which its average would start",
                site);
  kept_.push_back({of, any_variable(detail::add_variable(detail::variable_request{v.dtype(), full, site, variable_kind::not_trainable}, initial).handle), {}, {}});
  to.add_to_collection("moving_average_variables", of.from);
  return kept_.back();
}

WEFT_DECL operation exponential_moving_average::update(const kept& k, const output& rate, call_site site) const {
  const auto with = colocate_with(operation(k.average.get()), site);
  const dtype type = k.average.dtype();
  const attr_map attrs{{"dtype", type}};
  const auto read = [&](const any_variable& v) { return detail::apply("ReadVariableOp", {v.handle()}, site, attrs); };
  const auto subtract = [&](const any_variable& v, const detail::term& what) { return operation(detail::add_node("AssignSubVariableOp", {v.handle(), what.value}, op_name(site), attrs)); };
  const detail::term by = detail::cast({rate, site}, type);
  const detail::term value = detail::holds_variable(k.of) ? detail::apply("ReadVariableOp", {k.of}, site, attrs) : detail::term{k.of, site};
  if (k.biased.empty()) return subtract(k.average, (read(k.average) - value) * by);
  // The average is what a biased one, which starts at zero, has gathered, divided by the share that it can have gathered.
  const operation gathered = subtract(k.biased, (read(k.biased) - value) * by);
  const operation counted = k.local_step.assign_add(detail::number_like(1, by).value, op_name(site));
  const auto after = control_dependencies({gathered, counted});
  const detail::term share = 1. - detail::power(1. - by, read(k.local_step));
  return subtract(k.average, read(k.average) - read(k.biased) / share);
}

WEFT_DECL operation exponential_moving_average::apply(const std::vector<averaged>& what, op_name name) {
  // 1. The averages.
  std::vector<output> all;
  for (const averaged& one : what) all.push_back(one.out());
  if (all.empty())
    for (const any_variable& v : trainable_variables()) all.push_back(v.handle());
  if (all.empty()) throw error(error_code::invalid_argument, options_.name + ": there is nothing to average; the graph has no trainable variable", name.site);
  std::vector<kept> averages;
  for (const output& o : all) {
    if (o.from == nullptr) throw error(error_code::invalid_argument, options_.name + ": what is averaged is an empty tensor or variable", name.site);
    const dtype type = detail::holds_variable(o) ? o.from->attr<dtype>("dtype") : o.from->output_dtype(o.index);
    if (!is_floating(type)) throw error(error_code::invalid_argument, options_.name + ": '" + to_text(o) + "' must be float, double, half or bfloat16, found " + to_text(type), name.site);
    averages.push_back(keep(o, name.site));
  }
  // 2. How much of the old average goes.
  detail::graph_state& to = all[0].from->owner();
  const std::string full = detail::claim_name(to, name, options_.name.c_str());
  const detail::name_scope_object names(&detail::scope_context::name_scope, full);
  detail::term decay = detail::scalar_of_parameter(decay_, dtype::float32, to, name.site, "decay");
  if (options_.num_updates) {
    const detail::term updates = detail::scalar_of_parameter(*options_.num_updates, dtype::float32, to, name.site, "num_updates");
    decay = detail::minimum(decay, (1. + updates) / (10. + updates));
  }
  const detail::term rate = 1. - decay;
  // 3. The updates.
  std::vector<operation> updates;
  for (const kept& k : averages) {
    const detail::name_scope_object inner(&detail::scope_context::name_scope, to.unique_scope(full + "/AssignMovingAvg", name.site));
    updates.push_back(update(k, rate.value, name.site));
  }
  const std::string exact = full + "/";
  return group(updates, op_name(std::string_view(exact), name.site));
}

WEFT_DECL any_variable exponential_moving_average::average(const averaged& of) const {
  for (const kept& k : kept_)
    if (k.of == of.out()) return k.average;
  return any_variable();
}

WEFT_DECL std::string exponential_moving_average::average_name(const averaged& of) const {
  for (const kept& k : kept_)
    if (k.of == of.out()) return k.average.name();
  if (of.out().from == nullptr) throw error(error_code::invalid_argument, options_.name + ": what is averaged is an empty tensor or variable");
  return of.out().from->name() + "/" + options_.name;
}

WEFT_DECL std::map<std::string, any_variable> exponential_moving_average::variables_to_restore() const {
  std::vector<any_variable> by_average = trainable_variables();
  for (const node* n : detail::current_graph()->collection("moving_average_variables")) by_average.emplace_back(output{n, 0});
  std::map<std::string, any_variable> out;
  for (const any_variable& v : by_average) out[average_name(v)] = v;
  // The averages themselves are not asked for: their values go into the variables.
  for (const any_variable& v : global_variables())
    if (std::find(by_average.begin(), by_average.end(), v) == by_average.end()) out.emplace(v.name(), v);
  return out;
}

}  // namespace weft
#endif

#endif
