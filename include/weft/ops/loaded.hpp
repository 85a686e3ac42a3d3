#ifndef WEFT_OPS_LOADED_HPP
#define WEFT_OPS_LOADED_HPP
// Definitions of ops that weft loads, prints and writes but does not run: loops and their state, functions,
// checkpoints, and the reference variables of older graphs (their resource forms run).

#include <weft/graph/op_registry.hpp>
#include <weft/ops/shape_rules.hpp>

namespace weft::detail {

#if WEFT_HAS_BODIES
inline void switch_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "the predicate");
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
}

// What all inputs have in common.
inline void merge_shape(shape_context& c) {
  partial_shape common = c.input(0);
  for (int i = 1; i < c.input_count() && common.known_rank(); ++i) {
    const partial_shape& other = c.input(i);
    if (other.rank() != common.rank()) common = partial_shape();
    std::vector<std::int64_t> sizes = common.sizes();
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != other.sizes()[d]) sizes[d] = -1;
    if (common.known_rank()) common = partial_shape(std::move(sizes));
  }
  c.set_output(0, common);
  c.set_output(1, partial_shape({}));
}

inline void pushed_shape(shape_context& c) { c.set_output(0, c.input(1)); }
inline void declared_shape(shape_context& c) { c.set_output(0, c.attr<partial_shape>("shape")); }
inline void assigned_shape(shape_context& c) {
  const bool* checked = c.find_attr<bool>("validate_shape");
  const auto both = merge_shapes(c.input(0), c.input(1));
  if (checked != nullptr && !*checked) return c.set_output(0, c.input(1));
  if (!both) c.fail("the variable has shape " + c.input(0).text() + ", found a value of shape " + c.input(1).text());
  c.set_output(0, *both);
}

inline constexpr op_row loaded_ops[] = {
    // Branches and loops.
    {"Switch(data: T, pred: bool) -> output_false: T, output_true: T", "T: type", switch_shape},
    {"RefSwitch(data: Ref(T), pred: bool) -> output_false: Ref(T), output_true: Ref(T)", "T: type", switch_shape},
    {"Merge(inputs: N * T) -> output: T, value_index: int32", "T: type; N: int >= 1", merge_shape},
    {"RefMerge(inputs: Ref(N * T)) -> output: Ref(T), value_index: int32", "T: type; N: int >= 1", merge_shape},
    {"Enter(data: T) -> output: T", "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10", unchanged_shape},
    {"RefEnter(data: Ref(T)) -> output: Ref(T)", "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10", unchanged_shape},
    {"Exit NextIteration(data: T) -> output: T", "T: type", unchanged_shape},
    {"RefExit RefNextIteration(data: Ref(T)) -> output: Ref(T)", "T: type", unchanged_shape},
    {"LoopCond(input: bool) -> output: bool", "", scalar_shape},
    // Functions.
    {"PartitionedCall(args: Tin) -> output: Tout", "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; config_proto: string = ''; executor_type: string = ''"},
    {"StatefulPartitionedCall(args: Tin) -> output: Tout", "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = ''; config_proto: string = ''; executor_type: string = ''", nullptr, op_flags::stateful},
    {"StatelessIf(cond: Tcond, input: Tin) -> output: Tout", "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func; output_shapes: list(shape) = []"},
    {"If(cond: Tcond, input: Tin) -> output: Tout", "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func; output_shapes: list(shape) = []", nullptr, op_flags::stateful},
    {"StatelessWhile(input: T) -> output: T", "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10"},
    {"While(input: T) -> output: T", "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10", nullptr, op_flags::stateful},
    // Stacks and arrays of tensors.
    {"StackV2(max_size: int32) -> handle: resource", "elem_type: type; stack_name: string = ''", scalar_shape, op_flags::stateful},
    {"StackPushV2(handle: resource, elem: T) -> output: T", "T: type; swap_memory: bool = false", pushed_shape, op_flags::stateful},
    {"StackPopV2(handle: resource) -> elem: elem_type", "elem_type: type", nullptr, op_flags::stateful},
    {"StackCloseV2(handle: resource)", "", nullptr, op_flags::stateful},
    {"TensorArrayV3(size: int32) -> handle: resource, flow: float", "dtype: type; element_shape: shape = {}; dynamic_size: bool = false; clear_after_read: bool = true; identical_element_shapes: bool = false; tensor_array_name: string = ''", nullptr, op_flags::stateful},
    {"TensorArrayGradV3(handle: resource, flow_in: float) -> grad_handle: resource, flow_out: float", "source: string", nullptr, op_flags::stateful},
    {"TensorArrayReadV3(handle: resource, index: int32, flow_in: float) -> value: dtype", "dtype: type", nullptr, op_flags::stateful},
    {"TensorArrayWriteV3(handle: resource, index: int32, value: T, flow_in: float) -> flow_out: float", "T: type", scalar_shape, op_flags::stateful},
    {"TensorArrayGatherV3(handle: resource, indices: int32, flow_in: float) -> value: dtype", "dtype: type; element_shape: shape = {}", nullptr, op_flags::stateful},
    {"TensorArrayScatterV3(handle: resource, indices: int32, value: T, flow_in: float) -> flow_out: float", "T: type", scalar_shape, op_flags::stateful},
    {"TensorArraySizeV3(handle: resource, flow_in: float) -> size: int32", "", scalar_shape, op_flags::stateful},
    {"TensorArrayCloseV3(handle: resource)", "", nullptr, op_flags::stateful},
    // The names of files.
    {"StaticRegexFullMatch(input: string) -> output: bool", "pattern: string", unchanged_shape},
    {"StringJoin(inputs: N * string) -> output: string", "N: int >= 1; separator: string = ''"},
    // Reference variables.
    {"VariableV2() -> ref: Ref(dtype)", "shape: shape; dtype: type; container: string = ''; shared_name: string = ''", declared_shape, op_flags::stateful},
    {"IsVariableInitialized(ref: Ref(dtype)) -> is_initialized: bool", "dtype: type", scalar_shape},
    {"Assign(ref: Ref(T), value: T) -> output_ref: Ref(T)", "T: type; validate_shape: bool = true; use_locking: bool = true", assigned_shape},
    {"AssignAdd AssignSub(ref: Ref(T), value: T) -> output_ref: Ref(T)", "T: {numbers, complex}; use_locking: bool = false", unchanged_shape},
    {"CountUpTo(ref: Ref(T)) -> output: T", "limit: int; T: {int32, int64}", scalar_shape},
    {"ScatterAdd ScatterSub(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T)", "T: {numbers, complex}; Tindices: {int32, int64}; use_locking: bool = false", unchanged_shape},
    {"ScatterUpdate(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T)", "T: type; Tindices: {int32, int64}; use_locking: bool = true", unchanged_shape},
    {"ApplyGradientDescent(var: Ref(T), alpha: T, delta: T) -> out: Ref(T)", "T: {numbers, complex}; use_locking: bool = false", unchanged_shape},
    {"ApplyMomentum(var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T) -> out: Ref(T)", "T: {numbers, complex}; use_locking: bool = false; use_nesterov: bool = false", unchanged_shape},
    {"ApplyAdagrad(var: Ref(T), accum: Ref(T), lr: T, grad: T) -> out: Ref(T)", "T: {numbers, complex}; use_locking: bool = false; update_slots: bool = true", unchanged_shape},
    {"ApplyAdam(var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T) -> out: Ref(T)", "T: {numbers, complex}; use_locking: bool = false; use_nesterov: bool = false", unchanged_shape},
};
#endif

}  // namespace weft::detail

#endif
