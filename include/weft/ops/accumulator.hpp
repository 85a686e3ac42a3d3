#ifndef WEFT_OPS_ACCUMULATOR_HPP
#define WEFT_OPS_ACCUMULATOR_HPP
// Conditional accumulators: state of a task that sums gradients of several steps and gives their mean once there are enough, without those that are stale.

#include <weft/graph/tensor.hpp>
#include <weft/ops/op_input.hpp>
#include <weft/ops/queue.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

#if WEFT_HAS_BODIES
// The shape of the gradients of the accumulator behind input 0; fails when the accumulator is known to be of another dtype.
inline partial_shape accumulator_shape(const shape_context& c) {
  const node* made = resource_maker(c, "reduction_type");
  if (made == nullptr) return partial_shape();
  const dtype *held = made->find_attr<dtype>("dtype"), *expected = c.find_attr<dtype>("dtype");
  if (held != nullptr && expected != nullptr && *held != *expected) c.fail("the accumulator '" + made->name() + "' is " + to_text(*held) + ", this op expects " + to_text(*expected));
  const auto* s = made->find_attr<partial_shape>("shape");
  return s == nullptr ? partial_shape() : *s;
}

inline void accumulator_apply_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "the local step");
  const partial_shape held = accumulator_shape(c);
  if (!merge_shapes(held, c.input(2))) c.fail("expected a gradient of shape " + held.text() + ", found " + c.input(2).text());
}

inline void accumulator_take_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "the number of gradients");
  c.set_output(0, accumulator_shape(c));
}

inline void sparse_apply_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "the local step");
  const partial_shape indices = c.with_rank(2, 1, "the indices");
  (void)c.with_rank(4, 1, "the shape");
  (void)accumulator_shape(c);
  if (c.input(3).known_rank() && c.input(3).rank() == 0) c.fail("expected rows, found a scalar");
  if (c.input(3).known_rank() && !merge_shapes(indices, partial_shape({c.input(3)[0]}))) c.fail("expected a row for each index, found indices of shape " + indices.text() + " and rows of shape " + c.input(3).text());
}

inline void sparse_take_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "the number of gradients");
  const partial_shape held = accumulator_shape(c);
  c.set_output(0, partial_shape({-1}));
  c.set_output(2, partial_shape({held.known_rank() ? static_cast<std::int64_t>(held.rank()) : -1}));
  if (!held.known_rank() || held.rank() == 0) return;
  std::vector<std::int64_t> sizes = held.sizes();
  sizes[0] = -1;
  c.set_output(1, partial_shape(std::move(sizes)));
}

inline void accumulator_step_shape(shape_context& c) { (void)c.with_rank(1, 0, "the step"); }
inline void pair_shape(shape_context& c) { c.set_output(0, partial_shape({2})); }

#define WEFT_ACCUMULATOR "dtype: {numbers, complex}; shape: shape; container: string = ''; shared_name: string = ''; reduction_type: {'MEAN', 'SUM'} = 'MEAN'"
inline constexpr op_row accumulator_ops[] = {
    {"ResourceConditionalAccumulator() -> handle: resource", WEFT_ACCUMULATOR, scalar_shape, op_flags::stateful},
    {"ResourceAccumulatorApplyGradient(handle: resource, local_step: int64, gradient: dtype)", "dtype: {numbers, complex}", accumulator_apply_shape, op_flags::stateful},
    {"ResourceAccumulatorTakeGradient(handle: resource, num_required: int32) -> average: dtype", "dtype: {numbers, complex}", accumulator_take_shape, op_flags::stateful},
    {"ResourceAccumulatorNumAccumulated(handle: resource) -> num_accumulated: int32", "", scalar_shape, op_flags::stateful},
    {"ResourceAccumulatorSetGlobalStep(handle: resource, new_global_step: int64)", "", accumulator_step_shape, op_flags::stateful},
    {"ConditionalAccumulator SparseConditionalAccumulator() -> handle: Ref(string)", WEFT_ACCUMULATOR, pair_shape, op_flags::stateful},
    {"AccumulatorApplyGradient(handle: Ref(string), local_step: int64, gradient: dtype)", "dtype: {numbers, complex}", accumulator_apply_shape},
    {"AccumulatorTakeGradient(handle: Ref(string), num_required: int32) -> average: dtype", "dtype: {numbers, complex}", accumulator_take_shape},
    {"AccumulatorNumAccumulated(handle: Ref(string)) -> num_accumulated: int32", "", scalar_shape},
    {"AccumulatorSetGlobalStep(handle: Ref(string), new_global_step: int64)", "", accumulator_step_shape},
    {"SparseAccumulatorApplyGradient(handle: Ref(string), local_step: int64, gradient_indices: int64, gradient_values: dtype, gradient_shape: int64)",
     "dtype: {numbers, complex}; has_known_shape: bool", sparse_apply_shape},
    {"SparseAccumulatorTakeGradient(handle: Ref(string), num_required: int32) -> indices: int64, values: dtype, shape: int64", "dtype: {numbers, complex}", sparse_take_shape},
};
#undef WEFT_ACCUMULATOR
#endif

// A node on an accumulator, `op` with the prefix of its kind.
const node& add_accumulator_op(const output& accumulator, const char* op, std::vector<op_input> inputs, attr_map attrs, const op_name& name);

}  // namespace detail

/// What an accumulator gives for the gradients taken.
enum class accumulator_reduction : unsigned char { mean, sum };

/// Options of an accumulator.
struct accumulator_options {
  /// A sparse mean divides each row by the gradients that held it.
  accumulator_reduction reduction = accumulator_reduction::mean;
  /// The name under which sessions share it on its task; empty: it belongs to the session.
  std::string shared_name{};
  /// The container of a shared name; empty for the task's own.
  std::string container{};
};

/// What accumulators of both kinds offer.
class accumulator_base {
 public:
  accumulator_base() = default;
  /// The accumulator that this output, a handle, names.
  explicit accumulator_base(output handle) : handle_(handle), owner_(detail::hold_for_handle(handle.from->owner())) {}

  /// The handle of its resource.
  output raw() const noexcept { return handle_; }
  std::string name() const { return to_text(handle_); }
  /// How many gradients it holds.
  tensor<std::int32_t, 0> num_accumulated(op_name name = {}) const { return tensor<std::int32_t, 0>(output{&detail::add_accumulator_op(handle_, "NumAccumulated", {}, {}, name), 0}); }
  /// Makes gradients of earlier steps stale; what it holds stays.
  operation set_global_step(detail::scalar<std::int64_t> step, op_name name = {}) const {
    return operation(detail::add_accumulator_op(handle_, "SetGlobalStep", {{"new_global_step", tensor_value::scalar(step.value)}}, {}, name));
  }
  template <int N> operation set_global_step(const operand<std::int64_t, N>& step, op_name name = {}) const {
    return operation(detail::add_accumulator_op(handle_, "SetGlobalStep", {step.as_input(name.site)}, {}, name));
  }

 protected:
  static output make(const char* op, const char* otherwise, dtype type, const partial_shape& shape, const accumulator_options& options, const op_name& name) {
    attr_map attrs{{"dtype", type}, {"shape", shape}, {"shared_name", options.shared_name}, {"container", options.container},
                   {"reduction_type", std::string(options.reduction == accumulator_reduction::sum ? "SUM" : "MEAN")}};
    return {&detail::add_node(op, {}, name.text.empty() ? op_name(otherwise, name.site) : name, std::move(attrs)), 0};
  }
  static detail::op_input step_of(const detail::scalar<std::int64_t>& step) { return {"local_step", tensor_value::scalar(step.value)}; }
  static detail::op_input required(const detail::scalar<std::int32_t>& n) { return {"num_required", tensor_value::scalar(n.value)}; }

 private:
  output handle_;
  std::shared_ptr<detail::graph_state> owner_;
};

/// Sums gradients of dtype T and rank N; a push for an earlier step than its own is dropped without an error (ResourceConditionalAccumulator).
template <class T, int N = dynamic_rank> class conditional_accumulator : public accumulator_base {
 public:
  conditional_accumulator() = default;
  /// With an open shape the first push after a take decides.
  explicit conditional_accumulator(const partial_shape& shape, const accumulator_options& options = {}, op_name name = {})
      : accumulator_base(make("ResourceConditionalAccumulator", "conditional_accumulator", dtype_of<T>, shape, options, name)) {}

  /// Adds a gradient that was computed for this step (ResourceAccumulatorApplyGradient).
  template <class U, int M> operation apply(const operand<U, M>& gradient, detail::scalar<std::int64_t> local_step, op_name name = {}) const { return push(gradient, step_of(local_step), name); }
  template <class U, int M, int S> operation apply(const operand<U, M>& gradient, const operand<std::int64_t, S>& local_step, op_name name = {}) const {
    return push(gradient, local_step.as_input(name.site), name);
  }
  /// The mean (or sum) of all gradients once there are at least `n`; waits for them. It is empty then, and one step further (ResourceAccumulatorTakeGradient).
  tensor<T, N> take(detail::scalar<std::int32_t> n, op_name name = {}) const {
    return tensor<T, N>(output{&detail::add_accumulator_op(raw(), "TakeGradient", {required(n)}, {{"dtype", dtype_of<T>}}, name), 0});
  }

 private:
  template <class U, int M> operation push(const operand<U, M>& gradient, detail::op_input step, const op_name& name) const {
    static_assert(std::is_same_v<T, U>, "weft: the gradient has another dtype than the accumulator; convert it with weft::cast<T>(...)");
    static_assert(N == dynamic_rank || M == dynamic_rank || N == M, "weft: the gradient has another rank than the accumulator");
    return operation(detail::add_accumulator_op(raw(), "ApplyGradient", {std::move(step), gradient.as_input(name.site)}, {{"dtype", dtype_of<T>}}, name));
  }
};

/// Sums sparse gradients, rows of a variable with their indices; indices of one push should be sorted and different (SparseConditionalAccumulator).
template <class T, int N = dynamic_rank> class sparse_conditional_accumulator : public accumulator_base {
 public:
  sparse_conditional_accumulator() = default;
  /// `shape` is that of the whole variable.
  explicit sparse_conditional_accumulator(const partial_shape& shape, const accumulator_options& options = {}, op_name name = {})
      : accumulator_base(make("SparseConditionalAccumulator", "sparse_conditional_accumulator", dtype_of<T>, shape, options, name)) {}

  /// Adds rows: `values` has a row for each of `indices` (SparseAccumulatorApplyGradient).
  template <class U, int M> operation apply(const operand<std::int64_t, 1>& indices, const operand<U, M>& values, detail::scalar<std::int64_t> local_step, op_name name = {}) const {
    return push(indices, values, step_of(local_step), name);
  }
  template <class U, int M, int S> operation apply(const operand<std::int64_t, 1>& indices, const operand<U, M>& values, const operand<std::int64_t, S>& local_step, op_name name = {}) const {
    return push(indices, values, local_step.as_input(name.site), name);
  }
  /// Indices, rows, and the shape of the variable, -1 where it is open; waits for `n` gradients (SparseAccumulatorTakeGradient).
  std::tuple<tensor<std::int64_t, 1>, tensor<T, N>, tensor<std::int64_t, 1>> take(detail::scalar<std::int32_t> n, op_name name = {}) const {
    const node& taken = detail::add_accumulator_op(raw(), "TakeGradient", {required(n)}, {{"dtype", dtype_of<T>}}, name);
    return {tensor<std::int64_t, 1>(output{&taken, 0}), tensor<T, N>(output{&taken, 1}), tensor<std::int64_t, 1>(output{&taken, 2})};
  }

 private:
  template <class U, int M> operation push(const operand<std::int64_t, 1>& indices, const operand<U, M>& values, detail::op_input step, const op_name& name) const {
    static_assert(std::is_same_v<T, U>, "weft: the gradient has another dtype than the accumulator; convert it with weft::cast<T>(...)");
    static_assert(N == dynamic_rank || M == dynamic_rank || N == M, "weft: the rows have another rank than the variable");
    return operation(detail::add_accumulator_op(raw(), "ApplyGradient",
                                                {std::move(step), indices.as_input(name.site), values.as_input(name.site), {"gradient_shape", tensor_value(dtype::int64, weft::shape{0})}},
                                                {{"dtype", dtype_of<T>}, {"has_known_shape", false}}, name));
  }
};

#if WEFT_HAS_BODIES
namespace detail {

WEFT_DECL const node& add_accumulator_op(const output& accumulator, const char* op, std::vector<op_input> inputs, attr_map attrs, const op_name& name) {
  if (accumulator.from == nullptr) fail_builder(op, "the accumulator is empty, not made by any op", name);
  const std::string& made = accumulator.from->op();
  const bool moves = std::string_view(op) == "ApplyGradient" || std::string_view(op) == "TakeGradient";
  const char* prefix = made == "ResourceConditionalAccumulator" ? "ResourceAccumulator" : made == "SparseConditionalAccumulator" && moves ? "SparseAccumulator" : "Accumulator";
  const std::string full = std::string(prefix) + op;
  inputs.insert(inputs.begin(), op_input(accumulator));
  return add_op(full.c_str(), full.c_str(), inputs, name, std::move(attrs));
}

}  // namespace detail
#endif

}  // namespace weft

#endif
