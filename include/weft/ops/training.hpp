#ifndef WEFT_OPS_TRAINING_HPP
#define WEFT_OPS_TRAINING_HPP
// The updates of optimizers: each changes a variable and its slots in one step that is atomic to other reads and updates. Optimizers of train/ are made of these.

#include <weft/ops/state.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

#if WEFT_HAS_BODIES
// Variables of one shape, scalars, and a gradient: of the same shape, or with `indices` a row for each index.
inline void training_shape(shape_context& c) {
  const std::vector<arg_def>& args = c.about().def()->inputs;
  int grad = -1, indices = -1;
  partial_shape held = variable_shape(c, 0, "T");
  for (int i = 0; i < c.input_count(); ++i) {
    const arg_def& arg = args[static_cast<std::size_t>(i)];
    if (arg.type == dtype::resource) {
      const auto both = merge_shapes(held, variable_shape(c, i, "T"));
      if (!both) c.fail("'" + args[0].name + "' has shape " + held.text() + ", '" + arg.name + "' has shape " + variable_shape(c, i, "T").text() + "; they must be equal");
      held = *both;
    } else if (arg.name == "grad" || arg.name == "delta") {
      grad = i;
    } else if (arg.name == "indices") {
      indices = i;
    } else {
      (void)c.with_rank(i, 0, arg.name.c_str());
    }
  }
  const std::string name = args[static_cast<std::size_t>(grad)].name;
  if (indices < 0) {
    if (!merge_shapes(held, c.input(grad))) c.fail("'" + args[0].name + "' has shape " + held.text() + ", '" + name + "' has shape " + c.input(grad).text() + "; they must be equal");
    return;
  }
  expect_rows(c, held);
  const partial_shape expected = joined_shape(c.with_rank(indices, 1, "indices"), held, 1);
  if (!merge_shapes(expected, c.input(grad)))
    c.fail("'" + name + "' must have a row for each index, shape " + expected.text() + ", found " + c.input(grad).text());
}

#define WEFT_NUMBERS "T: {numbers, complex}; use_locking: bool = false"
#define WEFT_ROWS "T: {numbers, complex}; Tindices: {int32, int64}; use_locking: bool = false"
inline constexpr op_row training_ops[] = {
    {"ResourceApplyGradientDescent(var: resource, alpha: T, delta: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyProximalGradientDescent(var: resource, alpha: T, l1: T, l2: T, delta: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyMomentum ResourceApplyKerasMomentum(var: resource, accum: resource, lr: T, grad: T, momentum: T)", WEFT_NUMBERS "; use_nesterov: bool = false", training_shape, op_flags::stateful},
    {"ResourceApplyAdagrad(var: resource, accum: resource, lr: T, grad: T)", WEFT_NUMBERS "; update_slots: bool = true", training_shape, op_flags::stateful},
    {"ResourceApplyAdagradV2(var: resource, accum: resource, lr: T, epsilon: T, grad: T)", WEFT_NUMBERS "; update_slots: bool = true", training_shape, op_flags::stateful},
    {"ResourceApplyAdagradDA(var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, lr: T, l1: T, l2: T, global_step: int64)", WEFT_NUMBERS, training_shape,
     op_flags::stateful},
    {"ResourceApplyProximalAdagrad(var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyAdadelta(var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyRMSProp(var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyCenteredRMSProp(var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyAdam(var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T)", WEFT_NUMBERS "; use_nesterov: bool = false",
     training_shape, op_flags::stateful},
    {"ResourceApplyAdamWithAmsgrad(var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T)", WEFT_NUMBERS,
     training_shape, op_flags::stateful},
    {"ResourceApplyAdaMax(var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyAddSign(var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyPowerSign(var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: T)", WEFT_NUMBERS, training_shape, op_flags::stateful},
    {"ResourceApplyFtrl(var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T)", WEFT_NUMBERS "; multiply_linear_by_lr: bool = false", training_shape,
     op_flags::stateful},
    {"ResourceApplyFtrlV2(var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T)", WEFT_NUMBERS "; multiply_linear_by_lr: bool = false",
     training_shape, op_flags::stateful},
    {"ResourceSparseApplyProximalGradientDescent(var: resource, alpha: T, l1: T, l2: T, grad: T, indices: Tindices)", WEFT_ROWS, training_shape, op_flags::stateful},
    {"ResourceSparseApplyMomentum ResourceSparseApplyKerasMomentum(var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T)", WEFT_ROWS "; use_nesterov: bool = false",
     training_shape, op_flags::stateful},
    {"ResourceSparseApplyAdagrad(var: resource, accum: resource, lr: T, grad: T, indices: Tindices)", WEFT_ROWS "; update_slots: bool = true", training_shape, op_flags::stateful},
    {"ResourceSparseApplyAdagradV2(var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: Tindices)", WEFT_ROWS "; update_slots: bool = true", training_shape, op_flags::stateful},
    {"ResourceSparseApplyAdagradDA(var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, global_step: int64)",
     WEFT_ROWS, training_shape, op_flags::stateful},
    {"ResourceSparseApplyProximalAdagrad(var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T, indices: Tindices)", WEFT_ROWS, training_shape, op_flags::stateful},
    {"ResourceSparseApplyAdadelta(var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T, indices: Tindices)", WEFT_ROWS, training_shape, op_flags::stateful},
    {"ResourceSparseApplyRMSProp(var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices)", WEFT_ROWS, training_shape, op_flags::stateful},
    {"ResourceSparseApplyCenteredRMSProp(var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices)", WEFT_ROWS, training_shape,
     op_flags::stateful},
    {"ResourceSparseApplyFtrl(var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T)", WEFT_ROWS "; multiply_linear_by_lr: bool = false",
     training_shape, op_flags::stateful},
    {"ResourceSparseApplyFtrlV2(var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T)",
     WEFT_ROWS "; multiply_linear_by_lr: bool = false", training_shape, op_flags::stateful},
};
#undef WEFT_NUMBERS
#undef WEFT_ROWS
#endif

// One input of an update: a variable by its handle, or what is read: a tensor, a variable, a number.
struct update_input {
  template <class T, int N> update_input(const variable<T, N>& v) : what{v.raw(), false, tensor_value()} {}
  template <class T, int N> update_input(const operand<T, N>& x) : what(side_of(x)) {}
  update_input(side s) : what(std::move(s)) {}
  side what;
};

// Numbers and reads are named below the update, after the op's inputs.
inline const node& add_update(const char* op, const std::vector<update_input>& inputs, const op_name& name, attr_map attrs = {}) {
  const output& var = inputs[0].what.out;
  if (var.from == nullptr) throw error(error_code::invalid_argument, std::string(op) + ": the variable is empty; give it an initial value", name.site);
  graph_state& to = var.from->owner();
  const std::string full = claim_name(to, name, op);
  const auto def = to.ops().find(op);
  std::vector<output> from;
  for (const update_input& in : inputs) {
    const std::string below = full + "/" + (def == nullptr ? "input_" + std::to_string(from.size()) : def->inputs[from.size()].name);
    if (!in.what.number.empty()) from.push_back(add_const_at(in.what.number, below, name.site, to));
    else if (in.what.out.from == nullptr) throw error(error_code::invalid_argument, std::string(op) + ": '" + below.substr(full.size() + 1) + "' is an empty tensor, not made by any op", name.site);
    else if (in.what.reads_variable) from.push_back(add_read(in.what.out, op_name(std::string_view(below + "/"), name.site)));
    else from.push_back(in.what.out);
  }
  return *add_node_at(op, std::move(from), full, name.site, std::move(attrs)).from;
}

// What an optimizer is told by a number: a C++ number, a scalar tensor or a variable. Not deduced, so that all of these are accepted.
template <class T> class update_number {
 public:
  template <class U, std::enable_if_t<std::is_arithmetic_v<U> || is_small_float_v<U>, int> = 0> update_number(const U& v) : what_(side_of(scalar<T>(v))) {}
  template <int N> update_number(const operand<T, N>& x) : what_(side_of(x)) {
    static_assert(N == 0 || N == dynamic_rank, "weft: the number of an optimizer must be a scalar");
  }
  operator update_input() const { return what_; }

 private:
  side what_;
};
template <class T> using number_of = std::common_type_t<update_number<T>>;
template <class T, int N> using slot_of = std::common_type_t<variable<T, N>>;

template <class T, int N, class U, int M> constexpr void check_gradient() {
  static_assert(std::is_same_v<T, U>, "weft: the gradient has another dtype than the variable; convert it with weft::cast<T>(...)");
  static_assert(N == dynamic_rank || M == dynamic_rank || N == M, "weft: the gradient has another rank than the variable");
}
template <class T, int N, class U, int M, class I, int R> constexpr void check_rows() {
  check_gradient<T, N, U, M>();
  static_assert(std::is_same_v<I, std::int32_t> || std::is_same_v<I, std::int64_t>, "weft: indices must be int32 or int64");
  static_assert(R == 1 || R == dynamic_rank, "weft: indices of rows must be a vector");
}

}  // namespace detail

/// Whether an update looks ahead along the momentum, after Nesterov.
enum class nesterov { off, on };

#define WEFT_GRADIENT const operand<U, M>& grad
#define WEFT_ROWS const operand<U, M>&grad, const operand<I, R>&indices
#define WEFT_DENSE_UPDATE(NAME, OP, PARAMETERS, INPUTS)                                                                             \
  template <class T, int N, class U, int M> operation NAME(const variable<T, N>& var, WEFT_UNPACK PARAMETERS, op_name name = {}) {  \
    detail::check_gradient<T, N, U, M>();                                                                                           \
    return operation(detail::add_update("ResourceApply" OP, {var, WEFT_UNPACK INPUTS}, name));                                      \
  }
#define WEFT_SPARSE_UPDATE(NAME, OP, PARAMETERS, INPUTS)                                                                                                 \
  template <class T, int N, class U, int M, class I, int R> operation NAME(const variable<T, N>& var, WEFT_UNPACK PARAMETERS, op_name name = {}) {       \
    detail::check_rows<T, N, U, M, I, R>();                                                                                                              \
    return operation(detail::add_update("ResourceSparseApply" OP, {var, WEFT_UNPACK INPUTS}, name));                                                     \
  }
#define WEFT_UNPACK(...) __VA_ARGS__
#define WEFT_NUMBER detail::number_of<T>
#define WEFT_SLOT const detail::slot_of<T, N>&

/// var -= alpha * grad (ResourceApplyGradientDescent).
WEFT_DENSE_UPDATE(apply_gradient_descent, "GradientDescent", (WEFT_NUMBER alpha, WEFT_GRADIENT), (alpha, grad))
/// A step of gradient descent, then shrinking by l1 and l2 (ResourceApplyProximalGradientDescent).
WEFT_DENSE_UPDATE(apply_proximal_gradient_descent, "ProximalGradientDescent", (WEFT_NUMBER alpha, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_GRADIENT), (alpha, l1, l2, grad))
WEFT_SPARSE_UPDATE(sparse_apply_proximal_gradient_descent, "ProximalGradientDescent", (WEFT_NUMBER alpha, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_ROWS), (alpha, l1, l2, grad, indices))
/// accum += grad^2, var -= lr * grad / sqrt(accum) (ResourceApplyAdagrad).
WEFT_DENSE_UPDATE(apply_adagrad, "Adagrad", (WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_GRADIENT), (accum, lr, grad))
WEFT_SPARSE_UPDATE(sparse_apply_adagrad, "Adagrad", (WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_ROWS), (accum, lr, grad, indices))
/// accum += grad^2, var -= lr * grad / (sqrt(accum) + epsilon) (ResourceApplyAdagradV2).
WEFT_DENSE_UPDATE(apply_adagrad_v2, "AdagradV2", (WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_NUMBER epsilon, WEFT_GRADIENT), (accum, lr, epsilon, grad))
WEFT_SPARSE_UPDATE(sparse_apply_adagrad_v2, "AdagradV2", (WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_NUMBER epsilon, WEFT_ROWS), (accum, lr, epsilon, grad, indices))
/// A step of dual averaging (ResourceApplyAdagradDA).
WEFT_DENSE_UPDATE(apply_adagrad_da, "AdagradDA",
                  (WEFT_SLOT gradient_accumulator, WEFT_SLOT gradient_squared_accumulator, WEFT_GRADIENT, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, detail::number_of<std::int64_t> global_step),
                  (gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step))
WEFT_SPARSE_UPDATE(sparse_apply_adagrad_da, "AdagradDA",
                   (WEFT_SLOT gradient_accumulator, WEFT_SLOT gradient_squared_accumulator, WEFT_ROWS, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, detail::number_of<std::int64_t> global_step),
                   (gradient_accumulator, gradient_squared_accumulator, grad, indices, lr, l1, l2, global_step))
/// A step of Adagrad, then shrinking by l1 and l2 (ResourceApplyProximalAdagrad).
WEFT_DENSE_UPDATE(apply_proximal_adagrad, "ProximalAdagrad", (WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_GRADIENT), (accum, lr, l1, l2, grad))
WEFT_SPARSE_UPDATE(sparse_apply_proximal_adagrad, "ProximalAdagrad", (WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_ROWS), (accum, lr, l1, l2, grad, indices))
/// A step of Adadelta (ResourceApplyAdadelta).
WEFT_DENSE_UPDATE(apply_adadelta, "Adadelta", (WEFT_SLOT accum, WEFT_SLOT accum_update, WEFT_NUMBER lr, WEFT_NUMBER rho, WEFT_NUMBER epsilon, WEFT_GRADIENT),
                  (accum, accum_update, lr, rho, epsilon, grad))
WEFT_SPARSE_UPDATE(sparse_apply_adadelta, "Adadelta", (WEFT_SLOT accum, WEFT_SLOT accum_update, WEFT_NUMBER lr, WEFT_NUMBER rho, WEFT_NUMBER epsilon, WEFT_ROWS),
                   (accum, accum_update, lr, rho, epsilon, grad, indices))
/// A step of RMSProp (ResourceApplyRMSProp), or of its centered form with the mean of gradients in mg (ResourceApplyCenteredRMSProp).
WEFT_DENSE_UPDATE(apply_rms_prop, "RMSProp", (WEFT_SLOT ms, WEFT_SLOT mom, WEFT_NUMBER lr, WEFT_NUMBER rho, WEFT_NUMBER momentum, WEFT_NUMBER epsilon, WEFT_GRADIENT),
                  (ms, mom, lr, rho, momentum, epsilon, grad))
WEFT_SPARSE_UPDATE(sparse_apply_rms_prop, "RMSProp", (WEFT_SLOT ms, WEFT_SLOT mom, WEFT_NUMBER lr, WEFT_NUMBER rho, WEFT_NUMBER momentum, WEFT_NUMBER epsilon, WEFT_ROWS),
                   (ms, mom, lr, rho, momentum, epsilon, grad, indices))
WEFT_DENSE_UPDATE(apply_centered_rms_prop, "CenteredRMSProp",
                  (WEFT_SLOT mg, WEFT_SLOT ms, WEFT_SLOT mom, WEFT_NUMBER lr, WEFT_NUMBER rho, WEFT_NUMBER momentum, WEFT_NUMBER epsilon, WEFT_GRADIENT),
                  (mg, ms, mom, lr, rho, momentum, epsilon, grad))
WEFT_SPARSE_UPDATE(sparse_apply_centered_rms_prop, "CenteredRMSProp",
                   (WEFT_SLOT mg, WEFT_SLOT ms, WEFT_SLOT mom, WEFT_NUMBER lr, WEFT_NUMBER rho, WEFT_NUMBER momentum, WEFT_NUMBER epsilon, WEFT_ROWS),
                   (mg, ms, mom, lr, rho, momentum, epsilon, grad, indices))
/// Steps of Adam's relatives (ResourceApplyAdamWithAmsgrad, ResourceApplyAdaMax).
WEFT_DENSE_UPDATE(apply_adam_with_amsgrad, "AdamWithAmsgrad",
                  (WEFT_SLOT m, WEFT_SLOT v, WEFT_SLOT vhat, WEFT_NUMBER beta1_power, WEFT_NUMBER beta2_power, WEFT_NUMBER lr, WEFT_NUMBER beta1, WEFT_NUMBER beta2, WEFT_NUMBER epsilon, WEFT_GRADIENT),
                  (m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad))
WEFT_DENSE_UPDATE(apply_ada_max, "AdaMax", (WEFT_SLOT m, WEFT_SLOT v, WEFT_NUMBER beta1_power, WEFT_NUMBER lr, WEFT_NUMBER beta1, WEFT_NUMBER beta2, WEFT_NUMBER epsilon, WEFT_GRADIENT),
                  (m, v, beta1_power, lr, beta1, beta2, epsilon, grad))
/// Steps that grow where the gradient and its mean m agree in sign (ResourceApplyAddSign, ResourceApplyPowerSign).
WEFT_DENSE_UPDATE(apply_add_sign, "AddSign", (WEFT_SLOT m, WEFT_NUMBER lr, WEFT_NUMBER alpha, WEFT_NUMBER sign_decay, WEFT_NUMBER beta, WEFT_GRADIENT), (m, lr, alpha, sign_decay, beta, grad))
WEFT_DENSE_UPDATE(apply_power_sign, "PowerSign", (WEFT_SLOT m, WEFT_NUMBER lr, WEFT_NUMBER logbase, WEFT_NUMBER sign_decay, WEFT_NUMBER beta, WEFT_GRADIENT), (m, lr, logbase, sign_decay, beta, grad))
/// A step of FTRL (ResourceApplyFtrl), or of the form with a shrinkage that enters the gradient (ResourceApplyFtrlV2).
WEFT_DENSE_UPDATE(apply_ftrl, "Ftrl", (WEFT_SLOT accum, WEFT_SLOT linear, WEFT_GRADIENT, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_NUMBER lr_power), (accum, linear, grad, lr, l1, l2, lr_power))
WEFT_SPARSE_UPDATE(sparse_apply_ftrl, "Ftrl", (WEFT_SLOT accum, WEFT_SLOT linear, WEFT_ROWS, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_NUMBER lr_power),
                   (accum, linear, grad, indices, lr, l1, l2, lr_power))
WEFT_DENSE_UPDATE(apply_ftrl_v2, "FtrlV2", (WEFT_SLOT accum, WEFT_SLOT linear, WEFT_GRADIENT, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_NUMBER l2_shrinkage, WEFT_NUMBER lr_power),
                  (accum, linear, grad, lr, l1, l2, l2_shrinkage, lr_power))
WEFT_SPARSE_UPDATE(sparse_apply_ftrl_v2, "FtrlV2", (WEFT_SLOT accum, WEFT_SLOT linear, WEFT_ROWS, WEFT_NUMBER lr, WEFT_NUMBER l1, WEFT_NUMBER l2, WEFT_NUMBER l2_shrinkage, WEFT_NUMBER lr_power),
                   (accum, linear, grad, indices, lr, l1, l2, l2_shrinkage, lr_power))

/// accum = momentum * accum + grad, var -= lr * accum, with or without looking ahead (ResourceApplyMomentum).
template <class T, int N, class U, int M>
operation apply_momentum(const variable<T, N>& var, WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_GRADIENT, WEFT_NUMBER momentum, nesterov how = nesterov::off, op_name name = {}) {
  detail::check_gradient<T, N, U, M>();
  return operation(detail::add_update("ResourceApplyMomentum", {var, accum, lr, grad, momentum}, name, {{"use_nesterov", how == nesterov::on}}));
}
template <class T, int N, class U, int M, class I, int R>
operation sparse_apply_momentum(const variable<T, N>& var, WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_ROWS, WEFT_NUMBER momentum, nesterov how = nesterov::off, op_name name = {}) {
  detail::check_rows<T, N, U, M, I, R>();
  return operation(detail::add_update("ResourceSparseApplyMomentum", {var, accum, lr, grad, indices, momentum}, name, {{"use_nesterov", how == nesterov::on}}));
}
/// accum = momentum * accum - lr * grad, var += accum, with or without looking ahead (ResourceApplyKerasMomentum).
template <class T, int N, class U, int M>
operation apply_keras_momentum(const variable<T, N>& var, WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_GRADIENT, WEFT_NUMBER momentum, nesterov how = nesterov::off, op_name name = {}) {
  detail::check_gradient<T, N, U, M>();
  return operation(detail::add_update("ResourceApplyKerasMomentum", {var, accum, lr, grad, momentum}, name, {{"use_nesterov", how == nesterov::on}}));
}
template <class T, int N, class U, int M, class I, int R>
operation sparse_apply_keras_momentum(const variable<T, N>& var, WEFT_SLOT accum, WEFT_NUMBER lr, WEFT_ROWS, WEFT_NUMBER momentum, nesterov how = nesterov::off, op_name name = {}) {
  detail::check_rows<T, N, U, M, I, R>();
  return operation(detail::add_update("ResourceSparseApplyKerasMomentum", {var, accum, lr, grad, indices, momentum}, name, {{"use_nesterov", how == nesterov::on}}));
}
/// A step of Adam (ResourceApplyAdam); beta1_power and beta2_power are the betas to the power of the step's number, which the caller keeps.
template <class T, int N, class U, int M>
operation apply_adam(const variable<T, N>& var, WEFT_SLOT m, WEFT_SLOT v, WEFT_NUMBER beta1_power, WEFT_NUMBER beta2_power, WEFT_NUMBER lr, WEFT_NUMBER beta1, WEFT_NUMBER beta2, WEFT_NUMBER epsilon,
                     WEFT_GRADIENT, nesterov how = nesterov::off, op_name name = {}) {
  detail::check_gradient<T, N, U, M>();
  return operation(detail::add_update("ResourceApplyAdam", {var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad}, name, {{"use_nesterov", how == nesterov::on}}));
}

#undef WEFT_GRADIENT
#undef WEFT_ROWS
#undef WEFT_DENSE_UPDATE
#undef WEFT_SPARSE_UPDATE
#undef WEFT_UNPACK
#undef WEFT_NUMBER
#undef WEFT_SLOT

}  // namespace weft

#endif
