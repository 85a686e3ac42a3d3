#ifndef WEFT_TRAIN_OPTIMIZER_HPP
#define WEFT_TRAIN_OPTIMIZER_HPP
// What all optimizers have in common: from a loss to gradients, from gradients to an operation that updates the variables, and the slots, variables that an optimizer keeps
// beside each variable that it trains. Follows TensorFlow's tf.train.Optimizer; the nodes have the names that it gives them.

#include <weft/core/config.hpp>
#include <weft/gradients/gradient_context.hpp>
#include <weft/gradients/gradients.hpp>
#include <weft/graph/scope.hpp>
#include <weft/ops/control.hpp>
#include <weft/ops/state.hpp>
#include <weft/train/collections.hpp>
#include <weft/train/hyper_parameter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// A gradient, possibly none, with the variable that it belongs to.
struct grad_and_variable {
  gradient_output gradient;
  any_variable variable;

  grad_and_variable() = default;
  grad_and_variable(gradient_output g, any_variable v) : gradient(g), variable(std::move(v)) {}
  /// Keeps a sparse gradient sparse.
  template <class T, int N> grad_and_variable(const weft::gradient<T, N>& g, any_variable v) : gradient(g.erased()), variable(std::move(v)) {}
};

/// How an optimizer computes gradients.
struct compute_gradients_options {
  /// What is trained, e.g. `{w, b}`; empty for all trainable variables of the loss's graph.
  std::vector<any_variable> variables{};
  /// What waits for what before a gradient is used.
  gradient_gate gate = gradient_gate::op;
  aggregation_method aggregation = aggregation_method::add_n;
  /// Puts each gradient node with the node that it differentiates.
  bool colocate_with_ops = false;
  /// The gradient of the loss; none stands for ones.
  gradient_output grad_loss{};
  /// The rules; nullptr for `standard_gradients()`.
  const gradient_registry* registry = nullptr;
};

/// The gradients of a loss with respect to variables, for an optimizer of any kind; what `optimizer::compute_gradients` does, which says more. `who` begins the texts of errors.
std::vector<grad_and_variable> compute_gradients(const gradient_ys& loss, const compute_gradients_options& options = {}, const std::string& who = "compute_gradients");

/// Trains variables. An object belongs to the graph of the variables that it is first given, and keeps its slots for further calls. Not for several threads at once.
class optimizer {
 public:
  virtual ~optimizer() = default;
  optimizer(const optimizer&) = delete;
  optimizer& operator=(const optimizer&) = delete;

  /// What its nodes are called when no other name is given.
  const std::string& name() const noexcept { return name_; }

  /// The gradients of a loss, in the order of the variables; none where the loss does not depend on one. Throws INVALID_ARGUMENT when there are no variables, when one is given twice, or when
  /// the loss is not of a floating dtype.
  virtual std::vector<grad_and_variable> compute_gradients(const gradient_ys& loss, const compute_gradients_options& options = {}) { return weft::compute_gradients(loss, options, name_); }
  /// An operation that makes one step: updates each variable that has a gradient where the variable lives, then, if there is a counter,
  /// adds one to it. Throws INVALID_ARGUMENT when no variable has a gradient.
  WEFT_INLINE virtual operation apply_gradients(const std::vector<grad_and_variable>& gradients, const any_variable& global_step = {}, op_name name = {});
  /// Both in one.
  operation minimize(const gradient_ys& loss, const any_variable& global_step = {}, const compute_gradients_options& options = {}, op_name name = {});

  /// What is kept beside a variable under this name, e.g. `slot(w, "momentum")`; empty before the first `apply_gradients` and when there is none.
  template <class T, int N> variable<T, N> slot(const variable<T, N>& of, std::string_view slot_name) const { return variable<T, N>(find_slot(of.raw(), slot_name)); }
  any_variable slot(const any_variable& of, std::string_view slot_name) const {
    const output made = find_slot(of.handle(), slot_name).handle;
    return made.from == nullptr ? any_variable() : any_variable(made);
  }
  /// The names of its slots, in the order of their making.
  WEFT_INLINE virtual std::vector<std::string> slot_names() const;
  /// All variables that it has made, slots and others, in the order of their making.
  WEFT_INLINE virtual std::vector<any_variable> variables() const;

 protected:
  explicit optimizer(std::string name) : name_(std::move(name)) {}

  /// Makes the slots of these variables that are not there yet. No scope but the device's acts here.
  virtual void create_slots(const std::vector<output>&) {}
  /// Called once before the updates of a call, in the name scope of all.
  virtual void prepare() {}
  /// The node that updates a variable; called in its name scope and colocated with it.
  virtual const node& apply_dense(const output& gradient, const output& variable) = 0;
  /// As above for rows that are all different.
  virtual const node& apply_rows(const output& values, const output& indices, const output& variable) = 0;
  /// As above for any rows; sums those with the same index first.
  WEFT_INLINE virtual const node& apply_slices(const indexed_slices& rows, const output& variable);
  /// What is done after the updates, as one operation of this name.
  WEFT_INLINE virtual operation finish(std::vector<operation> updates, const op_name& name);

  /// Makes a slot of the shape of `variable` and with it, named after variable and optimizer (`w/Momentum`), unless it is there.
  void make_slot(const output& variable, const char* slot_name, const hyper_parameter& initial);
  /// Makes a scalar variable on the device of `beside`, unless it is there.
  void make_scalar(const output& beside, const char* scalar_name, const hyper_parameter& initial);
  /// The handles of such variables; of a slot that there is not, no output.
  output slot_of(const output& variable, std::string_view slot_name) const { return find_slot(variable, slot_name).handle; }
  output scalar(std::string_view scalar_name) const { return find_slot(output(), scalar_name).handle; }
  /// A hyper-parameter as a scalar that stands with `variable`, of its dtype or the one asked for. A number is made a constant once for each device.
  output argument(const hyper_parameter& p, const char* argument_name, const output& variable, dtype type = dtype::invalid);
  /// The value of a variable, read where the variable lives, whatever scopes say.
  output read_at_home(const output& handle) const;
  /// A node of any op in the scopes of the thread; its first output.
  output add(const char* op, std::vector<output> inputs, attr_map attrs = {}, const char* name = "") const;
  /// The line of the user's call that is being served.
  call_site site() const noexcept { return site_; }

 private:
  struct kept {
    output of;
    std::string name;
    detail::variable_nodes made;
  };
  struct made_number {
    const hyper_parameter* of;
    dtype type;
    const node* beside;
    output made;
  };
  detail::variable_nodes find_slot(const output& of, std::string_view slot_name) const;
  void check_gradients(const std::vector<grad_and_variable>& gradients) const;

  std::string name_;
  // The graph of its variables, kept alive with what is kept of them.
  std::shared_ptr<detail::graph_state> graph_;
  std::vector<kept> kept_;
  // During one apply_gradients: the constants so far, the name scope of all its nodes, the line of the caller.
  std::vector<made_number> numbers_;
  std::string scope_;
  call_site site_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft {

namespace detail {

inline bool optimizers_take(dtype type) noexcept { return is_floating(type); }

inline std::string quoted_names(const std::vector<any_variable>& all) {
  std::string out;
  for (const any_variable& v : all) out += (out.empty() ? "'" : ", '") + v.name() + "'";
  return out;
}

// The shape of a variable as a vector: a constant where it is known, else that of its initial value.
inline output initial_shape(const any_variable& v, const std::string& below, call_site where) {
  if (const partial_shape shape = v.shape(); shape.fully_known()) {
    std::vector<std::int32_t> sizes;
    for (const std::int64_t size : shape.sizes()) sizes.push_back(static_cast<std::int32_t>(size));
    return add_const_at(tensor_value::from<std::int32_t>({static_cast<std::int64_t>(sizes.size())}, sizes), below + "/shape_as_tensor", where, v.get().owner());
  }
  const output initial = v.initial_value();
  return initial.from != nullptr ? add_node_at("Shape", {initial}, below + "/shape_as_tensor", where) : add_node_at("VariableShape", {v.handle()}, below + "/shape_as_tensor", where);
}

}  // namespace detail

WEFT_DECL output optimizer::add(const char* op, std::vector<output> inputs, attr_map attrs, const char* name) const {
  return {&detail::add_node(op, std::move(inputs), op_name(std::string_view(name), site_), std::move(attrs)), 0};
}

WEFT_DECL output optimizer::read_at_home(const output& handle) const {
  const auto free = colocate_with(nullptr);
  const auto home = colocate_with(operation(*handle.from), site_);
  return detail::add_read(handle, op_name(site_));
}

WEFT_DECL detail::variable_nodes optimizer::find_slot(const output& of, std::string_view slot_name) const {
  for (const kept& k : kept_)
    if (k.of == of && k.name == slot_name) return k.made;
  return {};
}

WEFT_DECL std::vector<std::string> optimizer::slot_names() const {
  std::vector<std::string> out;
  for (const kept& k : kept_)
    if (k.of.from != nullptr && std::find(out.begin(), out.end(), k.name) == out.end()) out.push_back(k.name);
  return out;
}

WEFT_DECL std::vector<any_variable> optimizer::variables() const {
  std::vector<any_variable> out;
  for (const kept& k : kept_) out.emplace_back(k.made.handle);
  return out;
}

WEFT_DECL void optimizer::make_slot(const output& variable, const char* slot_name, const hyper_parameter& initial) {
  if (slot_of(variable, slot_name).from != nullptr) return;
  // 1. Where the variable is, below its name.
  const any_variable beside(variable, site_);
  detail::graph_state& to = variable.from->owner();
  const auto with = colocate_with(operation(*variable.from), site_);
  const std::string full = to.unique_scope(beside.name() + "/" + name_, site_), below = full + "/Initializer";
  // 2. Filled with its initial value.
  const dtype type = beside.dtype();
  const output sizes = detail::initial_shape(beside, below, site_);
  output value = initial.is_number()        ? detail::add_const_at(detail::scalar_of(initial.number(), type), below + "/Const", site_, to)
                 : initial.reads_variable() ? read_at_home(initial.out())
                                            : initial.out();
  if (value.from->output_dtype(value.index) != type) value = add("Cast", {value}, {{"DstT", type}});
  const output filled = detail::add_node_at("Fill", {sizes, value}, full + "/Initializer/zeros", site_);
  kept_.push_back({variable, slot_name, detail::add_variable(detail::variable_request{type, full, site_, variable_kind::not_trainable}, filled)});
}

WEFT_DECL void optimizer::make_scalar(const output& beside, const char* scalar_name, const hyper_parameter& initial) {
  if (scalar(scalar_name).from != nullptr) return;
  detail::graph_state& to = beside.from->owner();
  const auto with = colocate_with(operation(*beside.from), site_);
  const std::string full = detail::claim_name(to, op_name(std::string_view(scalar_name), site_), scalar_name);
  const output value = initial.is_number()       ? detail::add_const_at(detail::scalar_of(initial.number(), dtype::float32), full + "/initial_value", site_, to)
                       : initial.reads_variable() ? read_at_home(initial.out())
                                                  : initial.out();
  const dtype type = value.from->output_dtype(value.index);
  kept_.push_back({output(), scalar_name, detail::add_variable(detail::variable_request{type, full, site_, variable_kind::not_trainable}, value)});
}

WEFT_DECL output optimizer::argument(const hyper_parameter& p, const char* argument_name, const output& variable, dtype type) {
  if (type == dtype::invalid) type = variable.from->attr<dtype>("dtype");
  // 1. A tensor comes as it is, or converted beside the variable.
  if (!p.is_number() && !p.reads_variable()) return p.out().from->output_dtype(p.out().index) == type ? p.out() : add("Cast", {p.out()}, {{"DstT", type}});
  // 2. What was made for another variable of the same device serves again.
  for (const made_number& m : numbers_)
    if (m.of == &p && m.type == type && (p.reads_variable() || m.beside->device() == variable.from->device())) return m.made;
  // 3. A read of a variable, or a constant that stands with the variable.
  const detail::name_scope_object names(&detail::scope_context::name_scope, scope_);
  output made;
  if (p.reads_variable()) {
    made = read_at_home(p.out());
    if (made.from->output_dtype(made.index) != type) made = add("Cast", {made}, {{"DstT", type}});
  } else {
    const auto order = control_dependencies(nullptr);
    made = {&detail::add_const(detail::scalar_of(p.number(), type), op_name(std::string_view(argument_name), site_), &variable.from->owner()), 0};
  }
  numbers_.push_back({&p, type, variable.from, made});
  return made;
}

WEFT_DECL const node& optimizer::apply_slices(const indexed_slices& rows, const output& variable) {
  const output different = add("Unique", {rows.indices}, {{"out_idx", dtype::int32}}), positions{different.from, 1};
  const output count = add("Size", {different});
  return apply_rows(add("UnsortedSegmentSum", {rows.values, positions, count}), different, variable);
}

WEFT_DECL operation optimizer::finish(std::vector<operation> updates, const op_name& name) { return group(updates, name); }

WEFT_DECL std::vector<grad_and_variable> compute_gradients(const gradient_ys& loss, const compute_gradients_options& options, const std::string& who) {
  // 1. What is trained.
  if (loss.outputs().empty() || loss.outputs()[0].from == nullptr) throw error(error_code::invalid_argument, who + ": the loss is an empty tensor, not made by any op", loss.site());
  const std::vector<any_variable> trained = options.variables.empty() ? trainable_variables(graph(loss.outputs()[0].from->owner().shared_from_this())) : options.variables;
  if (trained.empty()) throw error(error_code::invalid_argument, who + ": there are no variables to train; the graph has no trainable variable", loss.site());
  std::vector<output> xs;
  for (const any_variable& v : trained) {
    if (v.empty()) throw error(error_code::invalid_argument, who + ": a variable to train is empty; give it an initial value", loss.site());
    if (std::find(xs.begin(), xs.end(), v.handle()) != xs.end()) throw error(error_code::invalid_argument, who + ": variable '" + v.name() + "' is given twice", loss.site());
    xs.push_back(v.handle());
  }
  for (const output& y : loss.outputs())
    if (y.from != nullptr && !detail::optimizers_take(y.from->output_dtype(y.index)))
      throw error(error_code::invalid_argument, who + ": the loss '" + to_text(y) + "' must be float, double, half or bfloat16, found " + to_text(y.from->output_dtype(y.index)), loss.site());

  // 2. Their gradients.
  gradient_options how;
  how.gate = options.gate;
  how.aggregation = options.aggregation;
  how.colocate_with_ops = options.colocate_with_ops;
  how.registry = options.registry;
  if (!options.grad_loss.empty()) how.grad_ys = {options.grad_loss};
  const std::vector<gradient_output> found = gradients(loss, xs, how);
  std::vector<grad_and_variable> out;
  for (std::size_t i = 0; i < xs.size(); ++i) out.emplace_back(found[i], trained[i]);
  return out;
}

WEFT_DECL void optimizer::check_gradients(const std::vector<grad_and_variable>& gradients) const {
  if (gradients.empty()) throw error(error_code::invalid_argument, name_ + ": no variables are given", site_);
  std::vector<any_variable> without;
  for (const grad_and_variable& one : gradients) {
    if (one.variable.empty()) throw error(error_code::invalid_argument, name_ + ": a variable to train is empty; give it an initial value", site_);
    const std::string& variable = one.variable.name();
    if (&one.variable.get().owner() != &gradients[0].variable.get().owner())
      throw error(error_code::invalid_argument, name_ + ": the variables '" + gradients[0].variable.name() + "' and '" + variable + "' belong to different graphs", site_);
    if (one.gradient.empty()) {
      without.push_back(one.variable);
      continue;
    }
    const dtype type = one.variable.dtype();
    if (!detail::optimizers_take(type)) throw error(error_code::invalid_argument, name_ + ": the variable '" + variable + "' must be float, double, half or bfloat16, found " + to_text(type), site_);
    if (one.gradient.dtype() != type)
      throw error(error_code::invalid_argument, name_ + ": the gradient of '" + variable + "' is " + to_text(one.gradient.dtype()) + ", the variable is " + to_text(type), site_);
  }
  if (without.size() == gradients.size())
    throw error(error_code::invalid_argument,
                name_ + ": no variable has a gradient: the loss does not depend on " + detail::quoted_names(without) +
                    ", or only through ops that have no gradient",
                site_);
}

WEFT_DECL operation optimizer::apply_gradients(const std::vector<grad_and_variable>& gradients, const any_variable& global_step, op_name name) {
  site_ = name.site;
  check_gradients(gradients);
  detail::graph_state& to = gradients[0].variable.get().owner();
  if (graph_ == nullptr) graph_ = to.shared_from_this();
  if (graph_.get() != &to)
    throw error(error_code::invalid_argument,
                name_ + ": the variable '" + gradients[0].variable.name() +
                    "' belongs to another graph than those that were trained before; use an optimizer for each graph",
                site_);

  // 1. Slots.
  std::vector<output> trained;
  for (const grad_and_variable& one : gradients)
    if (!one.gradient.empty()) trained.push_back(one.variable.handle());
  {
    const auto order = control_dependencies(nullptr);
    create_slots(trained);
  }

  // 2. An update for each gradient, where its variable is.
  scope_ = detail::claim_name(to, name, name_.c_str());
  numbers_.clear();
  const detail::name_scope_object names(&detail::scope_context::name_scope, scope_);
  prepare();
  std::vector<operation> updates;
  for (const grad_and_variable& one : gradients) {
    if (one.gradient.empty()) continue;
    const detail::name_scope_object inner(&detail::scope_context::name_scope, to.unique_scope(scope_ + "/update_" + one.variable.name(), site_));
    const output variable = one.variable.handle();
    const auto with = colocate_with(operation(*variable.from), site_);
    updates.emplace_back(one.gradient.is_sparse() ? apply_slices(one.gradient.slices(), variable) : apply_dense(one.gradient.values(), variable));
  }

  // 3. What follows all of them; the counter last.
  const std::string exact = scope_ + "/";
  if (global_step.empty()) return finish(std::move(updates), op_name(std::string_view(exact), site_));
  const operation updated = [&] {
    // Where updates on several devices meet is with the counter, which waits for them.
    const detail::device_scope there(&detail::scope_context::devices, {parse_device_name(global_step.device())});
    return finish(std::move(updates), op_name("update", site_));
  }();
  const auto after = control_dependencies({updated});
  const auto with = colocate_with(operation(global_step.get()), site_);
  const dtype type = global_step.dtype();
  const output one{&detail::add_const(detail::scalar_of(1, type), op_name(site_), &to), 0};
  return operation(*detail::add_node_at("AssignAddVariableOp", {global_step.handle(), one}, scope_, site_, {{"dtype", type}}).from);
}

WEFT_DECL operation optimizer::minimize(const gradient_ys& loss, const any_variable& global_step, const compute_gradients_options& options, op_name name) {
  return apply_gradients(compute_gradients(loss, options), global_step, name);
}

}  // namespace weft
#endif

#endif
