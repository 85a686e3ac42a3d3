#ifndef WEFT_TRAIN_COLLECTIONS_HPP
#define WEFT_TRAIN_COLLECTIONS_HPP
// The variables of a graph by who uses them, as values without a static type, and what is done with all of them: initializing, asking which are not initialized, counting steps.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/state.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A variable whose dtype and rank are known when the program runs. A handle; converts from every `variable<T, N>`.
class any_variable {
 public:
  /// Stands for nothing.
  any_variable() = default;
  template <class T, int N> any_variable(const variable<T, N>& v, call_site where = call_site::here()) : any_variable(v.raw(), where) {}
  /// The variable behind a handle, the output of a VarHandleOp. Throws INVALID_ARGUMENT when it is none.
  explicit any_variable(const output& handle, call_site where = call_site::here());

  bool empty() const noexcept { return node_ == nullptr; }
  /// The output that stands for it in gradients and updates.
  output handle() const noexcept { return {node_, 0}; }
  /// The node of the handle; its name is the variable's.
  const node& get() const;
  const std::string& name() const { return get().name(); }
  weft::dtype dtype() const;
  /// What is known of its shape.
  partial_shape shape() const;
  /// The device asked for.
  const std::string& device() const { return get().device(); }
  /// Where the user's program made it.
  call_site site() const { return get().site(); }
  weft::graph graph() const;

  /// Runs its initial value into it; empty when the graph has no such operation, as in a graph that somebody else wrote.
  operation initializer() const;
  /// What the initializer assigns; an output of no node when there is none. A step that also runs the initializer sees the same value.
  output initial_value() const;
  /// Its value when this is computed: a new ReadVariableOp.
  output read(const op_name& name = {}) const;
  /// Whether it holds a value (VarIsInitializedOp).
  tensor<bool, 0> is_initialized(const op_name& name = {}) const;
  /// Replaces, adds to or subtracts from its value. Throws INVALID_ARGUMENT when dtype or shape cannot be its own.
  operation assign(const output& value, const op_name& name = {}) const;
  operation assign_add(const output& value, const op_name& name = {}) const;
  operation assign_sub(const output& value, const op_name& name = {}) const;
  template <class T, int N> operation assign(const operand<T, N>& value, const op_name& name = {}) const { return assign(value.as_input(name.site), name); }
  template <class T, int N> operation assign_add(const operand<T, N>& value, const op_name& name = {}) const { return assign_add(value.as_input(name.site), name); }
  template <class T, int N> operation assign_sub(const operand<T, N>& value, const op_name& name = {}) const { return assign_sub(value.as_input(name.site), name); }
  /// The variable with its static type. Throws INVALID_ARGUMENT when it has another dtype, or is known to have another rank.
  template <class T, int N = dynamic_rank> variable<T, N> as(call_site where = call_site::here()) const {
    return variable<T, N>(nodes_as(dtype_of<T>, N, where));
  }

  friend bool operator==(const any_variable& a, const any_variable& b) noexcept { return a.node_ == b.node_; }
  friend bool operator!=(const any_variable& a, const any_variable& b) noexcept { return !(a == b); }

  /// Its nodes. Throws INVALID_ARGUMENT when it has another dtype, or is known to have another rank.
  detail::variable_nodes nodes_as(weft::dtype type, int rank, call_site where = call_site::here()) const;

 private:
  operation change(const char* op, const output& value, const op_name& name) const;
  const node* node_ = nullptr;
  std::shared_ptr<detail::graph_state> owner_;
};

/// The variables of a graph that tasks share, in the order of their making: all but local ones.
std::vector<any_variable> global_variables(const graph& g = default_graph());
/// Those of them that optimizers train.
std::vector<any_variable> trainable_variables(const graph& g = default_graph());
/// The variables that belong to one task: not trained, not saved, initialized by `local_variables_initializer`.
std::vector<any_variable> local_variables(const graph& g = default_graph());
/// The variables added by `add_model_variable`.
std::vector<any_variable> model_variables(const graph& g = default_graph());
/// Counts a variable among the model's.
void add_model_variable(const any_variable& v);
/// The variables whose name starts with `scope`, as TensorFlow's `get_collection(key, scope)`; all of them when it is empty.
std::vector<any_variable> variables_in(const std::vector<any_variable>& list, std::string_view scope);

/// Runs the initializers of these variables, in any order (NoOp with control inputs). Throws INVALID_ARGUMENT about a variable that has none.
operation initialize_variables(const std::vector<any_variable>& list, op_name name = {});
/// Runs the initializers of the graph's variables but local ones.
operation global_variables_initializer(const graph& g, op_name name = {});
/// Runs the initializers of the graph's local variables.
operation local_variables_initializer(const graph& g = default_graph(), op_name name = {});

/// Whether the variable holds a value (VarIsInitializedOp).
tensor<bool, 0> is_variable_initialized(const any_variable& v, op_name name = {});
/// The names of those of the variables that hold no value: `[how many]`. It runs where nothing else says, asks each variable where it lives.
tensor<std::string, 1> report_uninitialized_variables(const std::vector<any_variable>& list, op_name name = {});
/// The same for all variables of the graph, global ones first.
tensor<std::string, 1> report_uninitialized_variables(const graph& g = default_graph(), op_name name = {});

/// The graph's counter of training steps, a global int64 that is not trained. Throws NOT_FOUND when the graph has none.
variable<std::int64_t, 0> get_global_step(const graph& g = default_graph(), call_site where = call_site::here());
/// Makes the counter, `global_step`, 0 at first. Throws ALREADY_EXISTS when the graph has one.
variable<std::int64_t, 0> create_global_step(const graph& g = default_graph(), call_site where = call_site::here());
/// The graph's counter; made if there is none.
variable<std::int64_t, 0> get_or_create_global_step(const graph& g = default_graph(), call_site where = call_site::here());

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft {

WEFT_DECL any_variable::any_variable(const output& handle, call_site where) {
  if (handle.from == nullptr) throw error(error_code::invalid_argument, "the variable is empty; give it an initial value", where);
  if (handle.from->op() != "VarHandleOp") throw error(error_code::invalid_argument, "'" + to_text(handle) + "' is no variable but the output of a " + handle.from->op(), where);
  node_ = handle.from;
  owner_ = node_->owner().shared_from_this();
}
WEFT_DECL const node& any_variable::get() const {
  if (node_ == nullptr) fail(error_code::invalid_argument, "the variable is empty; give it an initial value");
  return *node_;
}
WEFT_DECL weft::dtype any_variable::dtype() const { return get().attr<weft::dtype>("dtype"); }
WEFT_DECL partial_shape any_variable::shape() const {
  const partial_shape* s = get().find_attr<partial_shape>("shape");
  return s == nullptr ? partial_shape() : *s;
}
WEFT_DECL weft::graph any_variable::graph() const {
  (void)get();
  return weft::graph(owner_);
}

namespace detail {
// The node `<variable>/<suffix>` if it is of this op and uses the variable.
WEFT_DECL const node* node_beside(const node& handle, const char* suffix, const char* op) {
  const node* n = handle.owner().find(handle.name() + suffix);
  return n != nullptr && n->op() == op && !n->inputs().empty() && n->inputs()[0].from == &handle ? n : nullptr;
}
WEFT_DECL const node* initializer_of(const node& handle) {
  if (const node* n = node_beside(handle, "/Assign", "AssignVariableOp")) return n;
  for (const char* collection : {"initializers", "local_initializers"})
    for (const node* n : handle.owner().collection(collection))
      if (!n->inputs().empty() && n->inputs()[0].from == &handle) return n;
  return nullptr;
}
WEFT_DECL std::vector<any_variable> variables_of(const weft::graph& g, const char* collection) {
  std::vector<any_variable> out;
  for (const node* n : g.state()->collection(collection)) out.emplace_back(output{n, 0});
  return out;
}
}  // namespace detail

WEFT_DECL operation any_variable::initializer() const {
  const node* n = detail::initializer_of(get());
  return n == nullptr ? operation() : operation(*n);
}
WEFT_DECL output any_variable::initial_value() const {
  const node* n = detail::initializer_of(get());
  return n == nullptr ? output() : n->inputs()[1];
}
WEFT_DECL output any_variable::read(const op_name& name) const { return detail::add_read(handle(), name); }
WEFT_DECL tensor<bool, 0> any_variable::is_initialized(const op_name& name) const { return tensor<bool, 0>(output{&detail::add_node("VarIsInitializedOp", {{&get(), 0}}, name), 0}); }
WEFT_DECL operation any_variable::change(const char* op, const output& value, const op_name& name) const { return operation(detail::add_node(op, {{&get(), 0}, value}, name, {{"dtype", dtype()}})); }
WEFT_DECL operation any_variable::assign(const output& value, const op_name& name) const { return change("AssignVariableOp", value, name); }
WEFT_DECL operation any_variable::assign_add(const output& value, const op_name& name) const { return change("AssignAddVariableOp", value, name); }
WEFT_DECL operation any_variable::assign_sub(const output& value, const op_name& name) const { return change("AssignSubVariableOp", value, name); }
WEFT_DECL detail::variable_nodes any_variable::nodes_as(weft::dtype type, int rank, call_site where) const {
  const partial_shape held = shape();
  if (dtype() != type) throw error(error_code::invalid_argument, "the variable '" + name() + "' (" + site().text() + ") is " + to_text(dtype()) + ", not " + to_text(type), where);
  if (rank != dynamic_rank && held.known_rank() && held.rank() != rank)
    throw error(error_code::invalid_argument, "the variable '" + name() + "' (" + site().text() + ") has shape " + held.text() + ", not rank " + std::to_string(rank), where);
  const node* read_before = detail::node_beside(*node_, "/Read/ReadVariableOp", "ReadVariableOp");
  if (const node* cached = node_->owner().find(name() + "/cached"); cached != nullptr && cached->op() == "Identity" && cached->inputs()[0].from == read_before) read_before = cached;
  return {handle(), read_before != nullptr ? output{read_before, 0} : read(op_name(where)), detail::initializer_of(*node_)};
}

WEFT_DECL std::vector<any_variable> global_variables(const graph& g) { return detail::variables_of(g, "variables"); }
WEFT_DECL std::vector<any_variable> trainable_variables(const graph& g) { return detail::variables_of(g, "trainable_variables"); }
WEFT_DECL std::vector<any_variable> local_variables(const graph& g) { return detail::variables_of(g, "local_variables"); }
WEFT_DECL std::vector<any_variable> model_variables(const graph& g) { return detail::variables_of(g, "model_variables"); }
WEFT_DECL void add_model_variable(const any_variable& v) { v.graph().state()->add_to_collection("model_variables", &v.get()); }
WEFT_DECL std::vector<any_variable> variables_in(const std::vector<any_variable>& list, std::string_view scope) {
  std::vector<any_variable> out;
  for (const any_variable& v : list)
    if (v.name().compare(0, scope.size(), scope) == 0) out.push_back(v);
  return out;
}

WEFT_DECL operation initialize_variables(const std::vector<any_variable>& list, op_name name) {
  std::vector<operation> all;
  for (const any_variable& v : list) {
    all.push_back(v.initializer());
    if (all.back().empty()) throw error(error_code::invalid_argument, "the variable '" + v.name() + "' has no initializer in this graph; it was made elsewhere", name.site);
  }
  return group(all, name.text.empty() ? op_name("init", name.site) : name);
}
namespace detail {
// Makes `g` the default graph, unless it is already: then the thread's scopes stay.
class default_if_other {
 public:
  explicit default_if_other(const weft::graph& g) {
    if (g.state() != current_graph()) scope_ = std::make_unique<graph_scope>(g.state());
  }

 private:
  std::unique_ptr<graph_scope> scope_;
};
}  // namespace detail
WEFT_DECL operation global_variables_initializer(const graph& g, op_name name) {
  const detail::default_if_other scope(g);
  return initialize_variables(global_variables(g), name);
}
WEFT_DECL operation local_variables_initializer(const graph& g, op_name name) {
  const detail::default_if_other scope(g);
  return initialize_variables(local_variables(g), name.text.empty() ? op_name("init_local", name.site) : name);
}

WEFT_DECL tensor<bool, 0> is_variable_initialized(const any_variable& v, op_name name) { return v.is_initialized(name); }

WEFT_DECL tensor<std::string, 1> report_uninitialized_variables(const std::vector<any_variable>& list, op_name name) {
  detail::graph_state& to = list.empty() ? *detail::current_graph() : list[0].get().owner();
  const std::string full = detail::claim_name(to, name, "report_uninitialized_variables");
  tensor_value names(dtype::string, shape{static_cast<std::int64_t>(list.size())});
  std::vector<output> known;
  for (std::size_t i = 0; i < list.size(); ++i) {
    names.mutable_data<std::string>()[i] = list[i].name();
    const std::string each = full + "/VarIsInitializedOp" + (i == 0 ? "" : "_" + std::to_string(i)) + "/";
    known.push_back(list[i].is_initialized(op_name(std::string_view(each), name.site)).raw());
  }
  if (list.empty()) return tensor<std::string, 1>(detail::add_const_at(std::move(names), full, name.site, to));
  const output mask = detail::add_node_at("LogicalNot", {detail::add_node_at("Pack", std::move(known), full + "/stack", name.site)}, full + "/LogicalNot", name.site);
  const output all = detail::add_const_at(std::move(names), full + "/Const", name.site, to);
  const output positions = detail::add_node_at("Where", {mask}, full + "/Where", name.site);
  return tensor<std::string, 1>(detail::add_node_at("GatherNd", {all, positions}, full, name.site));
}
WEFT_DECL tensor<std::string, 1> report_uninitialized_variables(const graph& g, op_name name) {
  const detail::default_if_other scope(g);
  std::vector<any_variable> all = global_variables(g);
  for (const any_variable& v : local_variables(g)) all.push_back(v);
  return report_uninitialized_variables(all, name);
}

namespace detail {
WEFT_DECL any_variable find_global_step(const weft::graph& g, call_site where) {
  const auto marked = g.state()->collection("global_step");
  const node* n = !marked.empty() ? marked[0] : g.find("global_step");
  if (n == nullptr) return any_variable();
  const any_variable step(output{n, 0}, where);
  return step;
}
}  // namespace detail
WEFT_DECL variable<std::int64_t, 0> get_global_step(const graph& g, call_site where) {
  const any_variable step = detail::find_global_step(g, where);
  if (step.empty()) throw error(error_code::not_found, "the graph has no global step; make it with create_global_step()", where);
  return step.as<std::int64_t, 0>(where);
}
WEFT_DECL variable<std::int64_t, 0> create_global_step(const graph& g, call_site where) {
  if (const any_variable step = detail::find_global_step(g, where); !step.empty())
    throw error(error_code::already_exists, "the graph has a global step, '" + step.name() + "' (" + step.site().text() + "), already", where);
  const detail::default_if_other scope(g);
  const auto outermost = name_scope("");
  const variable<std::int64_t, 0> made(std::int64_t{0}, not_trainable, op_name("global_step", where));
  g.state()->add_to_collection("global_step", made.raw().from);
  return made;
}
WEFT_DECL variable<std::int64_t, 0> get_or_create_global_step(const graph& g, call_site where) {
  return detail::find_global_step(g, where).empty() ? create_global_step(g, where) : get_global_step(g, where);
}

}  // namespace weft
#endif

#endif
