#ifndef WEFT_TRAIN_OPTIMIZERS_HPP
#define WEFT_TRAIN_OPTIMIZERS_HPP
// The optimizers, each as TensorFlow's of the same name: slots, names, order of computation. Numbers keep the precision in which they are given; TensorFlow's are float, also for variables of
// double, so 0.1f gives exactly its results there.

#include <weft/core/config.hpp>
#include <weft/ops/training.hpp>
#include <weft/train/optimizer.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// An optimizer whose update is one op, ResourceApply... for dense gradients and ResourceSparseApply... for rows, which is described by naming what the op's arguments are.
class op_optimizer : public optimizer {
 protected:
  op_optimizer(std::string name, const char* dense, const char* rows) : optimizer(std::move(name)), dense_(dense), rows_(rows) {}

  /// An argument of the op is a slot of this name, filled with a number at first.
  void add_slot(const char* argument, const char* slot_name, hyper_parameter initial) { slots_.push_back({argument, slot_name, initial}); }
  /// An argument of the op is this number; its constant has the name that follows.
  void add_number(const char* argument, const char* number_name, hyper_parameter value) { numbers_.push_back({argument, number_name, value}); }
  /// An attribute of both ops.
  void add_attr(const char* attr, attr_value value) { attrs_[attr] = std::move(value); }
  /// An argument that is neither variable, slot, number, gradient nor indices.
  WEFT_INLINE virtual output other_argument(std::string_view argument, const output& variable);

  WEFT_INLINE void create_slots(const std::vector<output>& variables) override;
  const node& apply_dense(const output& gradient, const output& variable) override { return update(dense_, gradient, output(), variable); }
  const node& apply_rows(const output& values, const output& indices, const output& variable) override { return update(rows_, values, indices, variable); }

 private:
  struct described {
    const char *argument, *name;
    hyper_parameter value;
  };
  const node& update(const char* op, const output& gradient, const output& indices, const output& variable);

  const char *dense_, *rows_;
  std::vector<described> slots_, numbers_;
  attr_map attrs_;
};

/// w -= learning_rate * gradient.
class gradient_descent_optimizer : public op_optimizer {
 public:
  explicit gradient_descent_optimizer(hyper_parameter learning_rate, std::string name = "GradientDescent");

 protected:
  WEFT_INLINE const node& apply_rows(const output& values, const output& indices, const output& variable) override;
  const node& apply_slices(const indexed_slices& rows, const output& variable) override { return apply_rows(rows.values, rows.indices, variable); }

 private:
  hyper_parameter learning_rate_;
};

/// a = momentum * a + gradient; w -= learning_rate * a, or by looking ahead, after Nesterov. Slot `momentum`. Of a sparse gradient only its rows are touched.
class momentum_optimizer : public op_optimizer {
 public:
  momentum_optimizer(hyper_parameter learning_rate, hyper_parameter momentum, nesterov how = nesterov::off, std::string name = "Momentum");
};

/// a += gradient^2; w -= learning_rate * gradient / sqrt(a) (Duchi et al., 2011). Slot `accumulator`.
class adagrad_optimizer : public op_optimizer {
 public:
  explicit adagrad_optimizer(hyper_parameter learning_rate, double initial_accumulator_value = 0.1, std::string name = "Adagrad");
};

/// Steps in proportion to the root mean square of earlier steps over that of gradients (Zeiler, 2012). Slots `accum`, `accum_update`.
class adadelta_optimizer : public op_optimizer {
 public:
  explicit adadelta_optimizer(hyper_parameter learning_rate = 0.001f, hyper_parameter rho = 0.95f, hyper_parameter epsilon = 1e-8f, std::string name = "Adadelta");
};

/// How RMSProp averages.
struct rms_prop_options {
  hyper_parameter decay = 0.9f;
  hyper_parameter momentum = 0.f;
  hyper_parameter epsilon = 1e-10f;
  /// Divides by the estimated variance of the gradient instead of its second moment.
  bool centered = false;
};
/// Divides the gradient by a running root mean square (Hinton, Coursera lecture 6e). Slots `rms`, `momentum`, centered also `mg`.
class rms_prop_optimizer : public op_optimizer {
 public:
  explicit rms_prop_optimizer(hyper_parameter learning_rate, const rms_prop_options& options = {}, std::string name = "RMSProp");
};

/// Adaptive moments (Kingma and Ba, 2014). Slots `m` and `v`; two scalar variables hold the powers of the betas. A sparse gradient counts as a dense one that is zero elsewhere: the moments of all
/// rows decay, and all rows are updated.
class adam_optimizer : public op_optimizer {
 public:
  explicit adam_optimizer(hyper_parameter learning_rate = 0.001f, hyper_parameter beta1 = 0.9f, hyper_parameter beta2 = 0.999f, hyper_parameter epsilon = 1e-8f, std::string name = "Adam");

 protected:
  WEFT_INLINE void create_slots(const std::vector<output>& variables) override;
  WEFT_INLINE void prepare() override;
  WEFT_INLINE output other_argument(std::string_view argument, const output& variable) override;
  WEFT_INLINE const node& apply_rows(const output& values, const output& indices, const output& variable) override;
  WEFT_INLINE operation finish(std::vector<operation> updates, const op_name& name) override;

 private:
  // The slot times beta, plus (1 - beta) times the rows: its node, after which reads of the slot see both.
  operation decay_and_add(const output& moment, const output& rows, const output& indices, const output& beta);

  hyper_parameter learning_rate_, beta1_, beta2_, epsilon_, one_ = 1, power1_ = 0, power2_ = 0;
};

/// Regularization of FTRL.
struct ftrl_options {
  /// How the rate falls with the sum of squared gradients; zero for a fixed one. At most zero.
  double learning_rate_power = -0.5;
  /// At least zero.
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  /// Enters the gradient as a penalty of the magnitude.
  double l2_shrinkage_regularization_strength = 0;
  /// The rate at step t is learning_rate / (beta + sqrt(accumulated)).
  double beta = 0;
};
/// Follow the regularized leader (McMahan et al., 2013). Slots `accum`, `linear`.
class ftrl_optimizer : public op_optimizer {
 public:
  explicit ftrl_optimizer(hyper_parameter learning_rate, const ftrl_options& options = {}, std::string name = "Ftrl");

 protected:
  WEFT_INLINE output other_argument(std::string_view argument, const output& variable) override;

 private:
  hyper_parameter learning_rate_, l2_, half_beta_;
};

/// Gradient descent, then shrinking by l1 and l2 (Duchi and Singer, 2009).
class proximal_gradient_descent_optimizer : public op_optimizer {
 public:
  explicit proximal_gradient_descent_optimizer(hyper_parameter learning_rate, hyper_parameter l1_regularization_strength = 0.f, hyper_parameter l2_regularization_strength = 0.f,
                                               std::string name = "ProximalGradientDescent");
};

/// Adagrad, then shrinking by l1 and l2. Slot `accumulator`.
class proximal_adagrad_optimizer : public op_optimizer {
 public:
  explicit proximal_adagrad_optimizer(hyper_parameter learning_rate, double initial_accumulator_value = 0.1, hyper_parameter l1_regularization_strength = 0.f,
                                      hyper_parameter l2_regularization_strength = 0.f, std::string name = "ProximalAdagrad");
};

/// Dual averaging of Adagrad. Slots `gradient_accumulator`, `gradient_squared_accumulator`. It needs the counter of steps, the one that `apply_gradients` increments.
class adagrad_da_optimizer : public op_optimizer {
 public:
  adagrad_da_optimizer(hyper_parameter learning_rate, any_variable global_step, double initial_gradient_squared_accumulator_value = 0.1, hyper_parameter l1_regularization_strength = 0.f,
                       hyper_parameter l2_regularization_strength = 0.f, std::string name = "AdagradDA");

 protected:
  WEFT_INLINE void prepare() override;
  output other_argument(std::string_view, const output&) override { return next_step_; }

 private:
  any_variable global_step_;
  output next_step_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft {

WEFT_DECL output op_optimizer::other_argument(std::string_view argument, const output&) {
  throw error(error_code::internal, name() + ": argument '" + std::string(argument) + "' of the update is not described", site());
}

WEFT_DECL void op_optimizer::create_slots(const std::vector<output>& variables) {
  for (const output& v : variables)
    for (const described& s : slots_) make_slot(v, s.name, s.value);
}

// The arguments in the order of the op's definition.
WEFT_DECL const node& op_optimizer::update(const char* op, const output& gradient, const output& indices, const output& variable) {
  const auto def = variable.from->owner().ops().find(op);
  if (def == nullptr) throw error(error_code::not_found, name() + ": no op '" + op + "' is defined; add its definition to the graph's op_registry", site());
  const auto input = [&](const std::string& argument) {
    if (argument == "var") return variable;
    if (argument == "grad" || argument == "delta") return gradient;
    if (argument == "indices") return indices;
    for (const described& s : slots_)
      if (argument == s.argument) return slot_of(variable, s.name);
    for (const described& n : numbers_)
      if (argument == n.argument) return this->argument(n.value, n.name, variable);
    return other_argument(argument, variable);
  };
  std::vector<output> inputs;
  for (const arg_def& arg : def->inputs) inputs.push_back(input(arg.name));
  return *add(op, std::move(inputs), attrs_).from;
}

namespace detail {
// An argument of a constructor that must be positive, or at least zero.
inline void check_at_least(double value, bool zero_is_fine, const std::string& who, const char* what) {
  if (!(zero_is_fine ? value >= 0 : value > 0))
    throw error(error_code::invalid_argument,
                who + ": " + what + " must be " + (zero_is_fine ? "at least zero" : "positive") + ", found " + std::to_string(value));
}
inline void check_at_least_zero(const hyper_parameter& value, const std::string& who, const char* what) {
  if (value.is_number()) check_at_least(value.number(), true, who, what);
}
}  // namespace detail

WEFT_DECL gradient_descent_optimizer::gradient_descent_optimizer(hyper_parameter learning_rate, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyGradientDescent", "ResourceScatterAdd"), learning_rate_(learning_rate) {
  add_number("alpha", "learning_rate", learning_rate);
}
// Rows may be added one after the other whether or not they repeat.
WEFT_DECL const node& gradient_descent_optimizer::apply_rows(const output& values, const output& indices, const output& variable) {
  const output scaled = add("Mul", {add("Neg", {values}), argument(learning_rate_, "learning_rate", variable)}, {}, "mul");
  return *add("ResourceScatterAdd", {variable, indices, scaled}).from;
}

WEFT_DECL momentum_optimizer::momentum_optimizer(hyper_parameter learning_rate, hyper_parameter momentum, nesterov how, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyMomentum", "ResourceSparseApplyMomentum") {
  add_slot("accum", "momentum", 0);
  add_number("lr", "learning_rate", learning_rate);
  add_number("momentum", "momentum", momentum);
  add_attr("use_nesterov", how == nesterov::on);
}

WEFT_DECL adagrad_optimizer::adagrad_optimizer(hyper_parameter learning_rate, double initial_accumulator_value, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyAdagrad", "ResourceSparseApplyAdagrad") {
  detail::check_at_least(initial_accumulator_value, false, this->name(), "initial_accumulator_value");
  add_slot("accum", "accumulator", initial_accumulator_value);
  add_number("lr", "learning_rate", learning_rate);
}

WEFT_DECL adadelta_optimizer::adadelta_optimizer(hyper_parameter learning_rate, hyper_parameter rho, hyper_parameter epsilon, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyAdadelta", "ResourceSparseApplyAdadelta") {
  add_slot("accum", "accum", 0);
  add_slot("accum_update", "accum_update", 0);
  add_number("lr", "lr", learning_rate);
  add_number("rho", "rho", rho);
  add_number("epsilon", "epsilon", epsilon);
}

WEFT_DECL rms_prop_optimizer::rms_prop_optimizer(hyper_parameter learning_rate, const rms_prop_options& options, std::string name)
    : op_optimizer(std::move(name), options.centered ? "ResourceApplyCenteredRMSProp" : "ResourceApplyRMSProp",
                   options.centered ? "ResourceSparseApplyCenteredRMSProp" : "ResourceSparseApplyRMSProp") {
  add_slot("ms", "rms", 1);
  if (options.centered) add_slot("mg", "mg", 0);
  add_slot("mom", "momentum", 0);
  add_number("lr", "learning_rate", learning_rate);
  add_number("rho", "decay", options.decay);
  add_number("momentum", "momentum", options.momentum);
  add_number("epsilon", "epsilon", options.epsilon);
}

WEFT_DECL adam_optimizer::adam_optimizer(hyper_parameter learning_rate, hyper_parameter beta1, hyper_parameter beta2, hyper_parameter epsilon, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyAdam", ""), learning_rate_(learning_rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {
  add_slot("m", "m", 0);
  add_slot("v", "v", 0);
}
WEFT_DECL void adam_optimizer::create_slots(const std::vector<output>& variables) {
  const output first = *std::min_element(variables.begin(), variables.end(), [](const output& a, const output& b) { return a.from->name() < b.from->name(); });
  make_scalar(first, "beta1_power", beta1_);
  make_scalar(first, "beta2_power", beta2_);
  op_optimizer::create_slots(variables);
}
// All updates see the same powers, which change after them.
WEFT_DECL void adam_optimizer::prepare() {
  power1_ = read_at_home(scalar("beta1_power"));
  power2_ = read_at_home(scalar("beta2_power"));
}
WEFT_DECL output adam_optimizer::other_argument(std::string_view which, const output& variable) {
  if (which == "beta1_power") return argument(power1_, "beta1_power", variable);
  if (which == "beta2_power") return argument(power2_, "beta2_power", variable);
  if (which == "lr") return argument(learning_rate_, "learning_rate", variable);
  if (which == "beta1") return argument(beta1_, "beta1", variable);
  if (which == "beta2") return argument(beta2_, "beta2", variable);
  if (which == "epsilon") return argument(epsilon_, "epsilon", variable);
  return op_optimizer::other_argument(which, variable);
}
WEFT_DECL operation adam_optimizer::decay_and_add(const output& moment, const output& rows, const output& indices, const output& beta) {
  const attr_map type{{"dtype", moment.from->attr<dtype>("dtype")}};
  const operation decayed(*add("AssignVariableOp", {moment, add("Mul", {add("ReadVariableOp", {moment}, type), beta}, {}, "mul")}, type).from);
  const auto after = control_dependencies({decayed});
  return operation(*add("ResourceScatterAdd", {moment, indices, rows}).from);
}
WEFT_DECL const node& adam_optimizer::apply_rows(const output& values, const output& indices, const output& variable) {
  // 1. The rate of this step.
  const dtype type = variable.from->attr<dtype>("dtype");
  const output one = argument(one_, "one", variable), beta1 = other_argument("beta1", variable), beta2 = other_argument("beta2", variable);
  const output bias1 = add("Sub", {one, other_argument("beta1_power", variable)}, {}, "sub"), bias2 = add("Sub", {one, other_argument("beta2_power", variable)}, {}, "sub");
  const output rate = add("RealDiv", {add("Mul", {other_argument("lr", variable), add("Sqrt", {bias2})}, {}, "mul"), bias1}, {}, "truediv");
  // 2. The moments.
  const output m = slot_of(variable, "m"), v = slot_of(variable, "v");
  const operation m_done = decay_and_add(m, add("Mul", {values, add("Sub", {one, beta1}, {}, "sub")}, {}, "mul"), indices, beta1);
  const operation v_done = decay_and_add(v, add("Mul", {add("Mul", {values, values}, {}, "mul"), add("Sub", {one, beta2}, {}, "sub")}, {}, "mul"), indices, beta2);
  // 3. The step.
  const auto after = control_dependencies({m_done, v_done});
  const output m_now = add("ReadVariableOp", {m}, {{"dtype", type}}), v_now = add("ReadVariableOp", {v}, {{"dtype", type}});
  const output down = add("AddV2", {add("Sqrt", {v_now}), other_argument("epsilon", variable)}, {}, "add");
  const output step = add("RealDiv", {add("Mul", {rate, m_now}, {}, "mul"), down}, {}, "truediv");
  return *add("AssignSubVariableOp", {variable, step}, {{"dtype", type}}).from;
}
// The powers change when all updates are done, of which one signal comes from each device.
WEFT_DECL operation adam_optimizer::finish(std::vector<operation> updates, const op_name& name) {
  const output powers[] = {scalar("beta1_power"), scalar("beta2_power")};
  const detail::device_scope there(&detail::scope_context::devices, {parse_device_name(powers[0].from->device())});
  std::vector<operation> done = {optimizer::finish(std::move(updates), op_name("updates", site()))};
  const auto after = control_dependencies(done);
  for (const bool first : {true, false}) {
    const output& power = powers[first ? 0 : 1];
    const auto home = colocate_with(operation(*power.from), site());
    const dtype type = power.from->attr<dtype>("dtype");
    const output beta = argument(first ? beta1_ : beta2_, first ? "beta1" : "beta2", power, type);
    const output next = add("Mul", {(first ? power1_ : power2_).out(), beta}, {}, "mul");
    done.emplace_back(*add("AssignVariableOp", {power, next}, {{"dtype", type}}, first ? "Assign" : "Assign_1").from);
  }
  return optimizer::finish(std::move(done), name);
}

WEFT_DECL ftrl_optimizer::ftrl_optimizer(hyper_parameter learning_rate, const ftrl_options& options, std::string name)
    : op_optimizer(std::move(name), options.l2_shrinkage_regularization_strength > 0 ? "ResourceApplyFtrlV2" : "ResourceApplyFtrl",
                   options.l2_shrinkage_regularization_strength > 0 ? "ResourceSparseApplyFtrlV2" : "ResourceSparseApplyFtrl"),
      learning_rate_(learning_rate), l2_(options.l2_regularization_strength), half_beta_(options.beta / 2) {
  const std::string& who = this->name();
  detail::check_at_least(options.initial_accumulator_value, true, who, "initial_accumulator_value");
  detail::check_at_least(options.l1_regularization_strength, true, who, "l1_regularization_strength");
  detail::check_at_least(options.l2_regularization_strength, true, who, "l2_regularization_strength");
  detail::check_at_least(options.l2_shrinkage_regularization_strength, true, who, "l2_shrinkage_regularization_strength");
  detail::check_at_least(options.beta, true, who, "beta");
  if (!(options.learning_rate_power <= 0))
    throw error(error_code::invalid_argument, who + ": learning_rate_power must be at most zero, found " + std::to_string(options.learning_rate_power));
  add_slot("accum", "accum", options.initial_accumulator_value);
  add_slot("linear", "linear", 0);
  add_number("lr", "learning_rate", learning_rate);
  add_number("l1", "l1_regularization_strength", options.l1_regularization_strength);
  add_number("l2_shrinkage", "l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  add_number("lr_power", "learning_rate_power", options.learning_rate_power);
  // The op has no beta: its share joins l2.
  if (learning_rate.is_number() && options.beta > 0) l2_ = options.l2_regularization_strength + options.beta / (2 * learning_rate.number());
}
// l2, to which a beta adds beta / (2 * learning_rate).
WEFT_DECL output ftrl_optimizer::other_argument(std::string_view which, const output& variable) {
  if (which != "l2") return op_optimizer::other_argument(which, variable);
  const output l2 = argument(l2_, "l2_regularization_strength", variable);
  if (half_beta_.number() == 0 || learning_rate_.is_number()) return l2;
  const output share = add("RealDiv", {argument(half_beta_, "half_beta", variable), argument(learning_rate_, "learning_rate", variable)}, {}, "truediv");
  return add("AddV2", {l2, share}, {}, "add");
}

WEFT_DECL proximal_gradient_descent_optimizer::proximal_gradient_descent_optimizer(hyper_parameter learning_rate, hyper_parameter l1, hyper_parameter l2, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyProximalGradientDescent", "ResourceSparseApplyProximalGradientDescent") {
  detail::check_at_least_zero(l1, this->name(), "l1_regularization_strength");
  detail::check_at_least_zero(l2, this->name(), "l2_regularization_strength");
  add_number("alpha", "learning_rate", learning_rate);
  add_number("l1", "l1_regularization_strength", l1);
  add_number("l2", "l2_regularization_strength", l2);
}

WEFT_DECL proximal_adagrad_optimizer::proximal_adagrad_optimizer(hyper_parameter learning_rate, double initial, hyper_parameter l1, hyper_parameter l2, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyProximalAdagrad", "ResourceSparseApplyProximalAdagrad") {
  detail::check_at_least(initial, false, this->name(), "initial_accumulator_value");
  detail::check_at_least_zero(l1, this->name(), "l1_regularization_strength");
  detail::check_at_least_zero(l2, this->name(), "l2_regularization_strength");
  add_slot("accum", "accumulator", initial);
  add_number("lr", "learning_rate", learning_rate);
  add_number("l1", "l1_regularization_strength", l1);
  add_number("l2", "l2_regularization_strength", l2);
}

WEFT_DECL adagrad_da_optimizer::adagrad_da_optimizer(hyper_parameter learning_rate, any_variable global_step, double initial, hyper_parameter l1, hyper_parameter l2, std::string name)
    : op_optimizer(std::move(name), "ResourceApplyAdagradDA", "ResourceSparseApplyAdagradDA"), global_step_(std::move(global_step)) {
  if (global_step_.empty()) throw error(error_code::invalid_argument, this->name() + ": the counter of steps is an empty variable; give it an initial value");
  detail::check_at_least(initial, false, this->name(), "initial_gradient_squared_accumulator_value");
  detail::check_at_least_zero(l1, this->name(), "l1_regularization_strength");
  detail::check_at_least_zero(l2, this->name(), "l2_regularization_strength");
  add_slot("gradient_accumulator", "gradient_accumulator", 0);
  add_slot("gradient_squared_accumulator", "gradient_squared_accumulator", initial);
  add_number("lr", "learning_rate", learning_rate);
  add_number("l1", "l1_regularization_strength", l1);
  add_number("l2", "l2_regularization_strength", l2);
}
// Steps count from 1 here.
WEFT_DECL void adagrad_da_optimizer::prepare() {
  const output read = read_at_home(global_step_.handle()), one{&detail::add_const(detail::scalar_of(1, dtype::int64), op_name(site()), &read.from->owner()), 0};
  const output wide = read.from->output_dtype(read.index) == dtype::int64 ? read : add("Cast", {read}, {{"DstT", dtype::int64}});
  next_step_ = add("AddV2", {wide, one}, {}, "add");
}

}  // namespace weft
#endif

#endif
