#ifndef WEFT_OPS_STATE_HPP
#define WEFT_OPS_STATE_HPP
// Variables: state of a task that outlives steps and sessions.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/control.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// What a variable is for. `trainable`: optimizers change it unless told otherwise. `not_trainable`: state shared by the tasks that training does not change, such as a step counter.
/// `local`: state of one task, not trained and not saved, such as a metric's sum. `automatic`: trainable if its dtype is floating or complex, else not.
enum class variable_kind { automatic, trainable, not_trainable, local };
inline constexpr variable_kind not_trainable = variable_kind::not_trainable, local_variable = variable_kind::local;

namespace detail {

#if WEFT_HAS_BODIES
// The VarHandleOp behind input i, when it can be followed to one; else nullptr.
inline const node* variable_node(const shape_context& c, int i) {
  const node* from = c.about().inputs()[static_cast<std::size_t>(i)].from;
  while (from->op() == "Identity" && !from->inputs().empty()) from = from->inputs()[0].from;
  return from->op() == "VarHandleOp" ? from : nullptr;
}

// The shape of the variable behind input i. Fails when the handle is no scalar, or was made for another dtype than attribute `attr` says.
inline partial_shape variable_shape(const shape_context& c, int i, const char* attr) {
  (void)c.with_rank(i, 0, "the handle");
  const node* made = variable_node(c, i);
  if (made == nullptr) return partial_shape();
  const dtype *held = made->find_attr<dtype>("dtype"), *expected = c.find_attr<dtype>(attr);
  if (held != nullptr && expected != nullptr && *held != *expected)
    c.fail("the variable '" + made->name() + "' is " + to_text(*held) + ", this op expects " + to_text(*expected));
  const partial_shape* s = made->find_attr<partial_shape>("shape");
  return s == nullptr ? partial_shape() : *s;
}

inline void read_variable_shape(shape_context& c) { c.set_output(0, variable_shape(c, 0, "dtype")); }

inline void expect_variable_value(shape_context& c) {
  const partial_shape held = variable_shape(c, 0, "dtype");
  if (!merge_shapes(held, c.input(1)))
    c.fail("the variable '" + c.about().inputs()[0].from->name() + "' has shape " + held.text() + ", found a value of shape " + c.input(1).text());
}

inline void variable_shape_shape(shape_context& c) {
  const partial_shape held = variable_shape(c, 0, "");
  c.set_output(0, partial_shape({held.known_rank() ? static_cast<std::int64_t>(held.rank()) : -1}));
}

// `first` followed by the dimensions of `s` from `from` on; unknown when either rank is.
inline partial_shape joined_shape(const partial_shape& first, const partial_shape& s, int from) {
  if (!first.known_rank() || !s.known_rank()) return partial_shape();
  std::vector<std::int64_t> sizes = first.sizes();
  for (int i = from; i < s.rank(); ++i) sizes.push_back(s[i]);
  return partial_shape(std::move(sizes));
}

inline void expect_rows(const shape_context& c, const partial_shape& held) {
  if (held.known_rank() && held.rank() == 0) c.fail("the variable must have rows, found a scalar");
}

inline void resource_gather_shape(shape_context& c) {
  const partial_shape held = variable_shape(c, 0, "dtype");
  expect_rows(c, held);
  const std::int64_t batch = c.attr<std::int64_t>("batch_dims");
  if (batch < 0) c.fail("batch_dims must not be negative, found " + std::to_string(batch));
  if (batch > 0 && ((held.known_rank() && batch >= held.rank()) || (c.input(1).known_rank() && batch > c.input(1).rank())))
    c.fail("batch_dims " + std::to_string(batch) + " is too large for a variable of shape " + held.text() + " and indices of shape " + c.input(1).text());
  c.set_output(0, joined_shape(c.input(1), held, static_cast<int>(batch) + 1));
}

// How many leading dimensions a row of the indices picks, -1 when that is not known; fails when there are not so many.
inline std::int64_t index_depth(const shape_context& c, const partial_shape& held) {
  const partial_shape& indices = c.input(1);
  if (!indices.known_rank()) return -1;
  if (indices.rank() == 0) c.fail("the indices must be at least a vector, found a scalar");
  const std::int64_t depth = indices[indices.rank() - 1];
  if (held.known_rank() && depth > held.rank())
    c.fail("an index of " + std::to_string(depth) + " numbers cannot pick from a variable of shape " + held.text());
  return depth;
}

// The shape of what indices into a variable pick, unknown when that cannot be said.
inline partial_shape picked_shape(const shape_context& c, const partial_shape& held) {
  const std::int64_t depth = index_depth(c, held);
  if (depth < 0 || !held.known_rank()) return partial_shape();
  const std::vector<std::int64_t>& sizes = c.input(1).sizes();
  return joined_shape(partial_shape(std::vector<std::int64_t>(sizes.begin(), sizes.end() - 1)), held, static_cast<int>(depth));
}

inline void resource_gather_nd_shape(shape_context& c) { c.set_output(0, picked_shape(c, variable_shape(c, 0, "dtype"))); }

inline void expect_updates(const shape_context& c, const partial_shape& expected) {
  if (!merge_shapes(c.input(2), expected))
    c.fail("updates must have shape " + expected.text() + " to fit indices of shape " + c.input(1).text() + ", found " + c.input(2).text());
}

inline void resource_scatter_shape(shape_context& c) {
  const partial_shape held = variable_shape(c, 0, "dtype");
  expect_rows(c, held);
  if (!c.input(2).known_rank() || c.input(2).rank() > 0) expect_updates(c, joined_shape(c.input(1), held, 1));
}

inline void resource_scatter_nd_shape(shape_context& c) { expect_updates(c, picked_shape(c, variable_shape(c, 0, "T"))); }

inline constexpr op_row state_ops[] = {
    {"VarHandleOp() -> resource: resource",
     "container: string = ''; shared_name: string = ''; debug_name: string = ''; dtype: type; shape: shape; allowed_devices: list(string) = []", scalar_shape, op_flags::stateful},
    {"ReadVariableOp(resource: resource) -> value: dtype", "dtype: type", read_variable_shape, op_flags::stateful},
    {"AssignVariableOp(resource: resource, value: dtype)", "dtype: type; validate_shape: bool = false", expect_variable_value, op_flags::stateful},
    {"AssignAddVariableOp AssignSubVariableOp(resource: resource, value: dtype)", "dtype: type", expect_variable_value, op_flags::stateful},
    {"VarIsInitializedOp(resource: resource) -> is_initialized: bool", "", scalar_shape, op_flags::stateful},
    {"VariableShape(input: resource) -> output: out_type", "out_type: {int32, int64} = int32", variable_shape_shape, op_flags::stateful},
    {"DestroyResourceOp(resource: resource)", "ignore_lookup_error: bool = true", nullptr, op_flags::stateful},
    {"ResourceGather(resource: resource, indices: Tindices) -> output: dtype", "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: {int32, int64}",
     resource_gather_shape, op_flags::stateful},
    {"ResourceGatherNd(resource: resource, indices: Tindices) -> output: dtype", "dtype: type; Tindices: {int32, int64}", resource_gather_nd_shape, op_flags::stateful},
    {"ResourceScatterUpdate(resource: resource, indices: Tindices, updates: dtype)", "dtype: type; Tindices: {int32, int64}", resource_scatter_shape, op_flags::stateful},
    {"ResourceScatterAdd ResourceScatterSub ResourceScatterMul ResourceScatterDiv ResourceScatterMin ResourceScatterMax(resource: resource, indices: Tindices, updates: dtype)",
     "dtype: {numbers, complex}; Tindices: {int32, int64}", resource_scatter_shape, op_flags::stateful},
    {"ResourceScatterNdUpdate ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMin ResourceScatterNdMax(ref: resource, indices: Tindices, updates: T)",
     "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = ''", resource_scatter_nd_shape, op_flags::stateful},
    {"ResourceCountUpTo(resource: resource) -> output: T", "limit: int; T: {int32, int64}", scalar_shape, op_flags::stateful},
};
#endif

// The nodes of one variable.
struct variable_nodes {
  output handle, read;
  const node* initializer;
};

// What a variable is made of: its exact name, how it is used, and whether it is made as TensorFlow's get_variable makes one: in a colocation group of its own, with a node that asks if it is
// initialized.
struct variable_request {
  dtype type;
  std::string full;
  call_site site;
  variable_kind kind = variable_kind::automatic;
  bool with_check = false;
};

// Nodes of a variable wait for nothing and, but for its handle, stand where the handle does.
variable_nodes add_variable(const variable_request& asked, const output& initial);
variable_nodes add_variable(dtype type, const output& initial, variable_kind kind, const op_name& name);
variable_nodes add_variable(dtype type, tensor_value initial, variable_kind kind, const op_name& name);

}  // namespace detail

/// State on a task: lives there under its name until the server stops or its container is reset, shared by all sessions. Its
/// initializer must run once (`global_variables_initializer`). Each op that uses the variable reads it when it runs; control
/// dependencies order reads and writes.
template <class T, int N = dynamic_rank> class variable : public operand<T, N> {
 public:
  variable() = default;
  /// A variable with the shape of `initial`, which its initializer assigns (VarHandleOp, AssignVariableOp). `name` is also the name under which it is shared.
  explicit variable(const tensor<T, N>& initial, op_name name = {}) : variable(initial, variable_kind::automatic, name) {}
  /// As above, of the kind that says who uses it.
  variable(const tensor<T, N>& initial, variable_kind kind, op_name name = {}) : variable(detail::add_variable(dtype_of<T>, initial.raw(), kind, name)) {}
  /// As above, from a C++ value.
  template <class V, class = std::enable_if_t<std::is_same_v<typename value_traits<V>::dtype, T> && value_traits<V>::rank == N>>
  explicit variable(const V& initial, op_name name = {}) : variable(initial, variable_kind::automatic, name) {}
  template <class V, class = std::enable_if_t<std::is_same_v<typename value_traits<V>::dtype, T> && value_traits<V>::rank == N>>
  variable(const V& initial, variable_kind kind, op_name name = {}) : variable(detail::add_variable(dtype_of<T>, value_traits<V>::make(initial), kind, name)) {}
  /// The variable that these nodes make up.
  explicit variable(const detail::variable_nodes& made) : operand<T, N>(made.handle, made.read), initializer_(made.initializer) {}

  /// Runs the initial value into the variable.
  operation initializer() const { return initializer_ == nullptr ? operation() : operation(*initializer_); }
  /// What its initializer assigns; a step that also runs the initializer sees the same value.
  tensor<T, N> initial_value() const { return initializer_ == nullptr ? tensor<T, N>() : tensor<T, N>(initializer_->inputs()[1]); }
  /// The value at the time the returned tensor is computed.
  tensor<T, N> read(op_name name = {}) const { return tensor<T, N>(detail::add_read(this->out_, name)); }
  /// Whether it holds a value (VarIsInitializedOp).
  tensor<bool, 0> is_initialized(op_name name = {}) const { return tensor<bool, 0>(output{&detail::add_node("VarIsInitializedOp", {this->out_}, name), 0}); }

  /// Replaces the value (AssignVariableOp).
  template <class U, int M> operation assign(const operand<U, M>& value, op_name name = {}) const { return change("AssignVariableOp", value, name); }
  operation assign(detail::scalar<T> value) const { return change("AssignVariableOp", value); }
  /// Adds to the value, atomically (AssignAddVariableOp).
  template <class U, int M> operation assign_add(const operand<U, M>& value, op_name name = {}) const { return change("AssignAddVariableOp", value, name); }
  operation assign_add(detail::scalar<T> value) const { return change("AssignAddVariableOp", value); }
  /// Subtracts from the value, atomically (AssignSubVariableOp).
  template <class U, int M> operation assign_sub(const operand<U, M>& value, op_name name = {}) const { return change("AssignSubVariableOp", value, name); }
  operation assign_sub(detail::scalar<T> value) const { return change("AssignSubVariableOp", value); }

#define WEFT_SCATTER(NAME, OP)                                                                                                                                       \
  template <class I, int R, class U, int M> operation NAME(const operand<I, R>& indices, const operand<U, M>& updates, op_name name = {}) const {                   \
    return scatter<I, R, U, M>(OP, indices, detail::side_of(updates), name);                                                                                        \
  }                                                                                                                                                                  \
  template <class I, int R> operation NAME(const operand<I, R>& indices, detail::scalar<T> update, op_name name = {}) const {                                       \
    return scatter<I, R, T, 0>(OP, indices, detail::side_of(update), name);                                                                                         \
  }
  /// Changes the rows that `indices` name, one after the other, by the rows of `updates`, of shape `indices.shape + shape[1:]`, or all of them by one number. An index that does not exist fails
  /// the step; the rows before it have changed then (ResourceScatterUpdate, ResourceScatterAdd, ...).
  WEFT_SCATTER(scatter_update, "ResourceScatterUpdate")
  WEFT_SCATTER(scatter_add, "ResourceScatterAdd")
  WEFT_SCATTER(scatter_sub, "ResourceScatterSub")
  WEFT_SCATTER(scatter_mul, "ResourceScatterMul")
  WEFT_SCATTER(scatter_div, "ResourceScatterDiv")
  WEFT_SCATTER(scatter_min, "ResourceScatterMin")
  WEFT_SCATTER(scatter_max, "ResourceScatterMax")
#undef WEFT_SCATTER
#define WEFT_SCATTER_ND(NAME, OP)                                                                                                                                    \
  template <class I, int R, class U, int M> operation NAME(const operand<I, R>& indices, const operand<U, M>& updates, op_name name = {}) const {                   \
    check_scatter<I, U>();                                                                                                                                          \
    return operation(detail::add_node(OP, {this->out_, indices.as_input(name.site), updates.as_input(name.site)}, name));                                           \
  }
  /// Changes the slices that the index tuples in the last dimension of `indices` pick, by updates of shape `indices.shape[:-1] + shape[depth:]`; all of them exist, or nothing changes
  /// (ResourceScatterNdUpdate, ResourceScatterNdAdd, ResourceScatterNdSub).
  WEFT_SCATTER_ND(scatter_nd_update, "ResourceScatterNdUpdate")
  WEFT_SCATTER_ND(scatter_nd_add, "ResourceScatterNdAdd")
  WEFT_SCATTER_ND(scatter_nd_sub, "ResourceScatterNdSub")
#undef WEFT_SCATTER_ND

  /// The value before one is added to it; OUT_OF_RANGE at the limit (ResourceCountUpTo). For scalar variables of int32 and int64.
  tensor<T, 0> count_up_to(std::int64_t limit, op_name name = {}) const {
    static_assert(std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>, "weft: only int32 and int64 variables count");
    return tensor<T, 0>(output{&detail::add_node("ResourceCountUpTo", {this->out_}, name, {{"T", dtype_of<T>}, {"limit", limit}}), 0});
  }
  /// The sizes of its value when this is computed (VariableShape).
  tensor<std::int32_t, 1> shape_now(op_name name = {}) const { return tensor<std::int32_t, 1>(output{&detail::add_node("VariableShape", {this->out_}, name), 0}); }

 private:
  template <class I, class U> static constexpr void check_scatter() {
    static_assert(std::is_same_v<I, std::int32_t> || std::is_same_v<I, std::int64_t>, "weft: indices must be int32 or int64");
    static_assert(std::is_same_v<T, U>, "weft: the updates have another dtype than the variable; convert them with weft::cast<T>(...)");
  }
  template <class I, int R, class U, int M> operation scatter(const char* op, const operand<I, R>& indices, const detail::side& updates, const op_name& name) const {
    check_scatter<I, U>();
    static_assert(N != 0, "weft: a scalar variable has no rows");
    static_assert(M == 0 || N == dynamic_rank || M == dynamic_rank || R == dynamic_rank || M == R + N - 1, "weft: updates have the shape of the indices, then that of a row of the variable");
    const output in = indices.as_input(name.site);
    if (in.from == nullptr) throw error(error_code::invalid_argument, std::string(op) + ": the indices are an empty tensor, not made by any op", name.site);
    const output by = updates.number.empty() ? detail::input_of(op, updates, name) : output{&detail::add_const(updates.number, op_name("updates", name.site), &in.from->owner()), 0};
    return operation(detail::add_node(op, {this->out_, in, by}, name, {{"dtype", dtype_of<T>}}));
  }

  template <class U, int M> operation change(const char* op, const operand<U, M>& value, const op_name& name) const {
    static_assert(std::is_same_v<T, U>, "weft: the value has another dtype than the variable; convert it with weft::cast<T>(...)");
    static_assert(N == dynamic_rank || M == dynamic_rank || N == M, "weft: the value has another rank than the variable");
    return operation(detail::add_node(op, {this->out_, value.as_input(name.site)}, name, {{"dtype", dtype_of<T>}}));
  }
  operation change(const char* op, const detail::scalar<T>& value) const {
    static_assert(N == dynamic_rank || N == 0, "weft: the value has another rank than the variable");
    const op_name at(value.where);
    if (this->out_.from == nullptr) throw error(error_code::invalid_argument, "the variable is empty; give it an initial value", value.where);
    const output v{&detail::add_const(tensor_value::scalar(value.value), op_name("value", value.where), &this->out_.from->owner()), 0};
    return operation(detail::add_node(op, {this->out_, v}, at, {{"dtype", dtype_of<T>}}));
  }
  const node* initializer_ = nullptr;
};

template <class T, int N> variable(const tensor<T, N>&) -> variable<T, N>;
template <class T, int N> variable(const tensor<T, N>&, op_name) -> variable<T, N>;
template <class T, int N> variable(const tensor<T, N>&, variable_kind) -> variable<T, N>;
template <class T, int N> variable(const tensor<T, N>&, variable_kind, op_name) -> variable<T, N>;
template <class V, class = std::enable_if_t<!std::is_void_v<typename value_traits<V>::dtype>>> variable(const V&) -> variable<typename value_traits<V>::dtype, value_traits<V>::rank>;
template <class V, class = std::enable_if_t<!std::is_void_v<typename value_traits<V>::dtype>>>
variable(const V&, op_name) -> variable<typename value_traits<V>::dtype, value_traits<V>::rank>;
template <class V, class = std::enable_if_t<!std::is_void_v<typename value_traits<V>::dtype>>>
variable(const V&, variable_kind) -> variable<typename value_traits<V>::dtype, value_traits<V>::rank>;
template <class V, class = std::enable_if_t<!std::is_void_v<typename value_traits<V>::dtype>>>
variable(const V&, variable_kind, op_name) -> variable<typename value_traits<V>::dtype, value_traits<V>::rank>;

template <class T, int N> tensor<T, N>::tensor(const variable<T, N>& v, call_site where) : operand<T, N>(v.as_input(where)) {}
template <class T, int N> operation::operation(const variable<T, N>& v) : operation(v.raw()) {}

/// The rows of a variable that `indices` name, without reading the others: `indices.shape + params.shape[1:]` (ResourceGather). An index that does not exist fails the step with INVALID_ARGUMENT.
template <class T, int N, class I, int R>
tensor<T, N == dynamic_rank || R == dynamic_rank ? dynamic_rank : N + R - 1> gather(const variable<T, N>& params, const operand<I, R>& indices, op_name name = {}) {
  static_assert(std::is_same_v<I, std::int32_t> || std::is_same_v<I, std::int64_t>, "weft: indices must be int32 or int64");
  static_assert(N != 0, "weft: a scalar variable has no rows");
  return tensor<T, N == dynamic_rank || R == dynamic_rank ? dynamic_rank : N + R - 1>(
      output{&detail::add_node("ResourceGather", {params.raw(), indices.as_input(name.site)}, name, {{"dtype", dtype_of<T>}}), 0});
}
/// The slices of a variable that the index tuples in the last dimension of `indices` pick (ResourceGatherNd).
template <class T, int N, class I, int R> tensor<T> gather_nd(const variable<T, N>& params, const operand<I, R>& indices, op_name name = {}) {
  static_assert(std::is_same_v<I, std::int32_t> || std::is_same_v<I, std::int64_t>, "weft: indices must be int32 or int64");
  return tensor<T>(output{&detail::add_node("ResourceGatherNd", {params.raw(), indices.as_input(name.site)}, name, {{"dtype", dtype_of<T>}}), 0});
}

/// Runs the initializers of all variables but local ones of the thread's default graph, in any order (NoOp with control inputs).
inline operation global_variables_initializer(op_name name = {}) {
  std::vector<operation> all;
  for (const node* n : detail::current_graph()->collection("initializers")) all.emplace_back(*n);
  return group(all, name.text.empty() ? op_name("init", name.site) : name);
}

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL variable_nodes add_variable(const variable_request& asked, const output& initial) {
  graph_state& to = initial.from->owner();
  const auto free = control_dependencies(nullptr);
  // 1. The handle.
  node_spec spec;
  spec.op = "VarHandleOp";
  spec.name = asked.full;
  spec.exact_name = true;
  spec.site = asked.site;
  spec.attrs = {{"dtype", asked.type}, {"shape", initial.from->output_shape(initial.index)}, {"shared_name", asked.full}};
  const output handle = [&] {
    const scope_object<std::string> own_group(&scope_context::group, asked.with_check ? "loc:@" + asked.full : std::string());
    return output{&to.add(std::move(spec)), 0};
  }();
  if (asked.with_check) add_node_at("VarIsInitializedOp", {handle}, asked.full + "/IsInitialized/VarIsInitializedOp", asked.site);
  // 2. What assigns and reads it, on its device.
  const attr_map attrs{{"dtype", asked.type}};
  const auto on_its_device = [&] { return with_device(handle.from->device(), asked.site); };
  const output assign = [&] {
    const auto alone = colocate_with(nullptr);
    const auto device = on_its_device();
    return add_node_at("AssignVariableOp", {handle, initial}, asked.full + "/Assign", asked.site, attrs);
  }();
  const auto device = on_its_device();
  const output read = add_node_at("ReadVariableOp", {handle}, asked.full + "/Read/ReadVariableOp", asked.site, attrs);
  // 3. Who uses it.
  const bool local = asked.kind == variable_kind::local;
  to.add_to_collection(local ? "local_variables" : "variables", handle.from);
  to.add_to_collection(local ? "local_initializers" : "initializers", assign.from);
  if (asked.kind == variable_kind::trainable || (asked.kind == variable_kind::automatic && (is_floating(asked.type) || asked.type == dtype::complex64 || asked.type == dtype::complex128))) to.add_to_collection("trainable_variables", handle.from);
  return {handle, read, assign.from};
}
WEFT_DECL variable_nodes add_variable(dtype type, const output& initial, variable_kind kind, const op_name& name) {
  if (initial.from == nullptr) throw error(error_code::invalid_argument, "the initial value is an empty tensor, not made by any op", name.site);
  return add_variable({type, claim_name(initial.from->owner(), name, "Variable"), name.site, kind}, initial);
}
WEFT_DECL variable_nodes add_variable(dtype type, tensor_value initial, variable_kind kind, const op_name& name) {
  graph_state& to = *current_graph();
  const std::string full = claim_name(to, name, "Variable");
  const auto free = control_dependencies(nullptr);
  const output value = add_const_at(std::move(initial), full + "/initial_value", name.site, to);
  return add_variable({type, full, name.site, kind}, value);
}

}  // namespace weft::detail
#endif

#endif
