#ifndef WEFT_OPS_STATE_HPP
#define WEFT_OPS_STATE_HPP
// Variables: state of a task that outlives steps and sessions.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/control.hpp>
#include <weft/ops/shape_rules.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace weft {

namespace detail {

// The shape of the variable behind a handle, followed to the node that made it.
inline partial_shape variable_shape(const shape_context& c) {
  const node* from = c.about().inputs()[0].from;
  while (from->op() == "Identity" && !from->inputs().empty()) from = from->inputs()[0].from;
  const partial_shape* s = from->find_attr<partial_shape>("shape");
  return from->op() == "VarHandleOp" && s != nullptr ? *s : partial_shape();
}

inline void expect_variable_value(shape_context& c) {
  const partial_shape held = variable_shape(c);
  if (!merge_shapes(held, c.input(1)))
    c.fail("the variable '" + c.about().inputs()[0].from->name() + "' has shape " + held.text() + ", found a value of shape " + c.input(1).text());
}

inline void define_state_ops(op_registry& ops) {
  ops.add(op("VarHandleOp").output("resource: resource").attr("container: string = ''").attr("shared_name: string = ''").attr("debug_name: string = ''").attr("dtype: type").attr("shape: shape").attr("allowed_devices: list(string) = []").stateful().shapes(scalar_shape));
  ops.add(op("ReadVariableOp").input("resource: resource").output("value: dtype").attr("dtype: type").stateful().shapes([](shape_context& c) { c.set_output(0, variable_shape(c)); }));
  ops.add(op("AssignVariableOp").input("resource: resource").input("value: dtype").attr("dtype: type").attr("validate_shape: bool = false").stateful().shapes(expect_variable_value));
  for (const char* name : {"AssignAddVariableOp", "AssignSubVariableOp"})
    ops.add(op(name).input("resource: resource").input("value: dtype").attr("dtype: type").stateful().shapes(expect_variable_value));
  ops.add(op("VarIsInitializedOp").input("resource: resource").output("is_initialized: bool").stateful().shapes(scalar_shape));
  ops.add(op("DestroyResourceOp").input("resource: resource").attr("ignore_lookup_error: bool = true").stateful());
}

// The nodes of one variable.
struct variable_nodes {
  output handle, read;
  const node* initializer;
};

inline variable_nodes add_variable(dtype type, const output& initial, const std::string& full, call_site site) {
  graph_state& to = initial.from->owner();
  attr_map attrs{{"dtype", type}, {"shape", initial.from->output_shape(initial.index)}, {"shared_name", full}};
  node_spec spec;
  spec.op = "VarHandleOp";
  spec.name = full;
  spec.exact_name = true;
  spec.site = site;
  spec.attrs = std::move(attrs);
  const output handle{&to.add(std::move(spec)), 0};
  const output assign = add_node_at("AssignVariableOp", {handle, initial}, full + "/Assign", site, {{"dtype", type}});
  const output read = add_node_at("ReadVariableOp", {handle}, full + "/Read/ReadVariableOp", site, {{"dtype", type}});
  to.add_to_collection("variables", handle.from);
  to.add_to_collection("initializers", assign.from);
  return {handle, read, assign.from};
}
inline variable_nodes add_variable(dtype type, const output& initial, const op_name& name) {
  if (initial.from == nullptr) throw error(error_code::invalid_argument, "the initial value is an empty tensor, not made by any op", name.site);
  return add_variable(type, initial, claim_name(initial.from->owner(), name, "Variable"), name.site);
}
inline variable_nodes add_variable(dtype type, tensor_value initial, const op_name& name) {
  graph_state& to = *current_graph();
  const std::string full = claim_name(to, name, "Variable");
  return add_variable(type, add_const_at(std::move(initial), full + "/initial_value", name.site, to), full, name.site);
}

}  // namespace detail

/// State on a task: lives there under its name until the server stops or its container is reset, shared by all sessions. Its
/// initializer must run once (`global_variables_initializer`). Each op that uses the variable reads it when it runs; control
/// dependencies order reads and writes.
template <class T, int N = dynamic_rank> class variable : public operand<T, N> {
 public:
  variable() = default;
  /// A variable with the shape of `initial`, which its initializer assigns (VarHandleOp, AssignVariableOp). `name` is also the name under which it is shared.
  explicit variable(const tensor<T, N>& initial, op_name name = {}) : variable(detail::add_variable(dtype_of<T>, initial.raw(), name)) {}
  /// As above, from a C++ value.
  template <class V, class = std::enable_if_t<std::is_same_v<typename value_traits<V>::dtype, T> && value_traits<V>::rank == N>>
  explicit variable(const V& initial, op_name name = {}) : variable(detail::add_variable(dtype_of<T>, value_traits<V>::make(initial), name)) {}

  /// Runs the initial value into the variable.
  operation initializer() const { return initializer_ == nullptr ? operation() : operation(*initializer_); }
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

 private:
  explicit variable(const detail::variable_nodes& made) : operand<T, N>(made.handle, made.read), initializer_(made.initializer) {}

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
template <class V, class = std::enable_if_t<!std::is_void_v<typename value_traits<V>::dtype>>> variable(const V&) -> variable<typename value_traits<V>::dtype, value_traits<V>::rank>;
template <class V, class = std::enable_if_t<!std::is_void_v<typename value_traits<V>::dtype>>>
variable(const V&, op_name) -> variable<typename value_traits<V>::dtype, value_traits<V>::rank>;

template <class T, int N> tensor<T, N>::tensor(const variable<T, N>& v, call_site where) : operand<T, N>(v.as_input(where)) {}
template <class T, int N> operation::operation(const variable<T, N>& v) : operation(v.raw()) {}

/// Runs the initializers of all variables of the thread's default graph, in any order (NoOp with control inputs).
inline operation global_variables_initializer(op_name name = {}) {
  std::vector<operation> all;
  for (const node* n : detail::current_graph()->collection("initializers")) all.emplace_back(*n);
  return group(all, name.text.empty() ? op_name("init", name.site) : name);
}

}  // namespace weft

#endif
