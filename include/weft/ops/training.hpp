#ifndef WEFT_OPS_TRAINING_HPP
#define WEFT_OPS_TRAINING_HPP
// The updates of optimizers: each changes a variable and its slots in one step that is atomic to other reads and updates. Optimizers of train/ are made of these.

#include <weft/ops/state.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
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

}  // namespace detail

}  // namespace weft

#endif
