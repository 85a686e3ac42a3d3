#ifndef WEFT_TRAIN_VARIABLE_SCOPE_HPP
#define WEFT_TRAIN_VARIABLE_SCOPE_HPP
// Variables by name: `get_variable` makes a variable or finds the one that has the name, as the variable scopes around it say. Follows TensorFlow's tf.variable_scope and tf.get_variable.

#include <weft/core/config.hpp>
#include <weft/graph/scope.hpp>
#include <weft/ops/state.hpp>
#include <weft/train/collections.hpp>
#include <weft/train/initializers.hpp>
#include <weft/train/partitioner.hpp>
#include <weft/train/regularizers.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// Whether `get_variable` makes variables (`none`: as the scope outside says, at the outermost it makes them), finds them (`reuse`), or finds those that are there and makes the others (`automatic`).
enum class variable_reuse { none, reuse, automatic };
inline constexpr variable_reuse reuse_variables = variable_reuse::reuse, auto_reuse = variable_reuse::automatic;

/// What a scope says of the variables made inside; what is left empty is as outside.
struct variable_scope_options {
  variable_reuse reuse = variable_reuse::none;
  /// For variables without an initializer of their own.
  weft::initializer initializer{};
  weft::regularizer regularizer{};
  /// How `get_partitioned_variable` splits.
  weft::partitioner partitioner{};
  /// The device on which ops find the values of variables: a copy is made there once a step, however many ops read it.
  std::string caching_device{};

  variable_scope_options() = default;
  variable_scope_options(variable_reuse r) : reuse(r) {}
};

/// A variable scope as a value, to enter it again: `variable_scope again(saved)`.
struct variable_scope_value {
  /// What names of variables made inside begin with; empty at the outermost.
  std::string name;
  variable_scope_options options;
};

/// The thread's variable scope.
variable_scope_value get_variable_scope();

/// Names of variables made by `get_variable` in the block begin with `name/`, those of nodes as in a name scope, which is made unique: two scopes of one name share variables, not node names.
class [[nodiscard]] variable_scope {
 public:
  explicit variable_scope(std::string_view name, const variable_scope_options& options = {}, call_site where = call_site::here());
  /// Enters a scope again: its variables' names and what it said of them, wherever this stands; node names go on in a scope of its last name.
  explicit variable_scope(const variable_scope_value& again, const variable_scope_options& options = {}, call_site where = call_site::here());
  variable_scope(const variable_scope&) = delete;
  variable_scope& operator=(const variable_scope&) = delete;

  /// The scope as a value.
  variable_scope_value value() const;

 private:
  variable_scope(std::shared_ptr<const variable_scope_value> value, std::string node_names);
  friend variable_scope unique_variable_scope(std::string_view, const variable_scope_options&, call_site);
  detail::scope_object<std::shared_ptr<const void>> variables_;
  detail::name_scope_object names_;
};

/// A scope whose name, like that of its nodes, is made unique: `dense`, `dense_1`, for a layer that is built several times.
variable_scope unique_variable_scope(std::string_view name, const variable_scope_options& options = {}, call_site where = call_site::here());

/// From here to the end of the block of the thread's innermost variable scope, variables are found, not made.
void reuse_variables_from_here();

/// What `get_variable` is told of a variable.
struct variable_options {
  /// Empty: that of the scope, or for floating dtypes glorot_uniform and for integers and bool zeros.
  weft::initializer initializer{};
  variable_kind kind = variable_kind::automatic;
  /// Empty: that of the scope.
  weft::regularizer regularizer{};
  std::string caching_device{};

  variable_options() = default;
  variable_options(weft::initializer i, variable_kind k = variable_kind::automatic) : initializer(std::move(i)), kind(k) {}
  variable_options(variable_kind k) : kind(k) {}
  /// Anything that is an initializer.
  template <class Make, class = std::enable_if_t<std::is_invocable_r_v<output, const Make&, const initializer_request&>>> variable_options(Make make) : initializer(std::move(make)) {}
};

namespace detail {
variable_nodes get_variable_nodes(std::string_view name, const weft::shape& s, dtype type, const variable_options& options, call_site where);
// The variable that is called so in the thread's variable scope, if the scope's reuse allows that there is one: else an error. `pieces` tells what has the name.
const node* find_named_variable(const std::string& full, variable_reuse reuse, call_site where);
// One variable of this name, made for certain.
variable_nodes make_named_variable(const std::string& full, initializer_request asked, const variable_options& options);
variable_options with_scope(const variable_options& options);
std::string full_variable_name(std::string_view name, call_site where);
}  // namespace detail

/// The variable called `name` in the thread's variable scope: made, or found if the scope's reuse says so. Name scopes, control dependencies do not act on it; devices and colocation do.
/// Throws ALREADY_EXISTS, NOT_FOUND, and INVALID_ARGUMENT when the one found has another dtype or shape, with the line that made it.
template <class T, std::size_t M>
variable<T, static_cast<int>(M)> get_variable(std::string_view name, const std::int64_t (&dims)[M], const variable_options& options = {}, call_site where = call_site::here()) {
  return variable<T, static_cast<int>(M)>(detail::get_variable_nodes(name, shape(std::vector<std::int64_t>(dims, dims + M)), dtype_of<T>, options, where));
}
/// The same with a shape that is known when the program runs; `get_variable<float, 0>("x", {})` is a scalar.
template <class T, int N = dynamic_rank>
variable<T, N> get_variable(std::string_view name, const shape& s, const variable_options& options = {}, call_site where = call_site::here()) {
  if (N != dynamic_rank && s.rank() != N) throw error(error_code::invalid_argument, "get_variable: the shape " + s.text() + " has not rank " + std::to_string(N), where);
  return variable<T, N>(detail::get_variable_nodes(name, s, dtype_of<T>, options, where));
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft {

namespace detail {
WEFT_DECL const variable_scope_value& this_variable_scope() {
  static const variable_scope_value outermost;
  const void* there = thread_scopes().top().variables.get();
  return there == nullptr ? outermost : *static_cast<const variable_scope_value*>(there);
}
// What is said outside, with what is said inside put over it.
WEFT_DECL variable_scope_options put_over(variable_scope_options outside, const variable_scope_options& inside) {
  if (inside.reuse != variable_reuse::none) outside.reuse = inside.reuse;
  if (!inside.initializer.empty()) outside.initializer = inside.initializer;
  if (!inside.regularizer.empty()) outside.regularizer = inside.regularizer;
  if (!inside.partitioner.empty()) outside.partitioner = inside.partitioner;
  if (!inside.caching_device.empty()) outside.caching_device = inside.caching_device;
  return outside;
}
WEFT_DECL std::string inside_of(const std::string& outer, std::string_view name) { return outer.empty() ? std::string(name) : outer + "/" + std::string(name); }
WEFT_DECL std::string last_name(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}
// The full name of a new name scope.
WEFT_DECL std::string new_name_scope(std::string_view name, call_site where) {
  const std::string& outer = thread_scopes().top().name_scope;
  return name.empty() ? outer : current_graph()->unique_scope(inside_of(outer, name), where);
}
}  // namespace detail

WEFT_DECL variable_scope_value get_variable_scope() { return detail::this_variable_scope(); }

WEFT_DECL variable_scope::variable_scope(std::shared_ptr<const variable_scope_value> value, std::string node_names)
    : variables_(&detail::scope_context::variables, std::move(value)), names_(&detail::scope_context::name_scope, std::move(node_names)) {}
WEFT_DECL variable_scope::variable_scope(std::string_view name, const variable_scope_options& options, call_site where)
    : variable_scope(std::make_shared<const variable_scope_value>(variable_scope_value{name.empty() ? detail::this_variable_scope().name : detail::inside_of(detail::this_variable_scope().name, name),
                                                                                       detail::put_over(detail::this_variable_scope().options, options)}),
                     detail::new_name_scope(name, where)) {}
WEFT_DECL variable_scope::variable_scope(const variable_scope_value& again, const variable_scope_options& options, call_site where)
    : variable_scope(std::make_shared<const variable_scope_value>(variable_scope_value{again.name, detail::put_over(again.options, options)}), detail::new_name_scope(detail::last_name(again.name), where)) {}
WEFT_DECL variable_scope_value variable_scope::value() const { return detail::this_variable_scope(); }

WEFT_DECL variable_scope unique_variable_scope(std::string_view name, const variable_scope_options& options, call_site where) {
  if (name.empty() || options.reuse == variable_reuse::reuse) throw error(error_code::invalid_argument, "unique_variable_scope: a scope of a new name needs one, and has no variables to reuse", where);
  std::string nodes = detail::new_name_scope(name, where);
  const variable_scope_value& outer = detail::this_variable_scope();
  // Of the name asked for, what made the scope of the nodes unique is taken over.
  const std::string& around = detail::thread_scopes().top().name_scope;
  const std::string own = nodes.substr(around.empty() ? 0 : around.size() + 1);
  return variable_scope(std::make_shared<const variable_scope_value>(variable_scope_value{detail::inside_of(outer.name, own), detail::put_over(outer.options, options)}), std::move(nodes));
}

WEFT_DECL void reuse_variables_from_here() {
  variable_scope_value here = detail::this_variable_scope();
  here.options.reuse = variable_reuse::reuse;
  detail::thread_scopes().top().variables = std::make_shared<const variable_scope_value>(std::move(here));
}

namespace detail {

WEFT_DECL std::string store_of(const std::string& full) { return "variable_store:" + full; }

WEFT_DECL std::string full_variable_name(std::string_view name, call_site where) {
  if (name.empty() || name.back() == '/') throw error(error_code::invalid_argument, "get_variable: '" + std::string(name) + "' is no name of a variable", where);
  return inside_of(this_variable_scope().name, name);
}

WEFT_DECL const node* find_named_variable(const std::string& full, variable_reuse reuse, call_site where) {
  const auto known = current_graph()->collection(store_of(full));
  if (known.empty() && reuse == variable_reuse::reuse)
    throw error(error_code::not_found, "there is no variable '" + full + "' to reuse; it is made by get_variable outside of reuse, or here with auto_reuse", where);
  if (!known.empty() && reuse == variable_reuse::none)
    throw error(error_code::already_exists, "there is a variable '" + full + "' already, made at " + known[0]->site().text() + "; to share it, ask for it in a variable_scope with reuse_variables or auto_reuse", where);
  return known.empty() ? nullptr : known[0];
}

// What the options leave open as the scope has it.
WEFT_DECL variable_options with_scope(const variable_options& options) {
  const variable_scope_options& scope = this_variable_scope().options;
  variable_options out = options;
  if (out.initializer.empty()) out.initializer = scope.initializer;
  if (out.regularizer.empty()) out.regularizer = scope.regularizer;
  if (out.caching_device.empty()) out.caching_device = scope.caching_device;
  return out;
}

WEFT_DECL initializer default_initializer(const std::string& full, dtype type, call_site where) {
  if (is_floating(type)) return glorot_uniform_initializer();
  if (is_integer(type) || type == dtype::boolean) return zeros_initializer();
  throw error(error_code::invalid_argument, "the variable '" + full + "' of dtype " + to_text(type) + " needs an initializer", where);
}

WEFT_DECL void add_regularization(const std::string& full, const variable_nodes& made, const regularizer& by, call_site where) {
  const auto beside = colocate_with(operation(*made.handle.from));
  const auto names = name_scope(full + "/Regularizer/");
  if (const output penalty = by.make(made.read, where); penalty.from != nullptr) current_graph()->add_to_collection("regularization_losses", penalty.from);
}

WEFT_DECL variable_nodes make_named_variable(const std::string& full, initializer_request asked, const variable_options& options) {
  // 1. Outside of name scopes and control dependencies.
  const auto outermost = name_scope("");
  const auto free = control_dependencies(nullptr);
  graph_state& to = *current_graph();
  const std::string unique = to.unique_scope(full, asked.site);
  // 2. The first value, in the group of the variable, which is not there yet.
  const output initial = [&] {
    const auto names = name_scope(unique + "/Initializer/");
    const auto device = with_device(nullptr);
    const scope_object<std::string> group(&scope_context::group, "loc:@" + unique);
    return (options.initializer.empty() ? default_initializer(full, asked.dtype, asked.site) : options.initializer).make(asked);
  }();
  // 3. The variable.
  variable_nodes made = add_variable({asked.dtype, unique, asked.site, options.kind, true}, initial);
  if (!options.caching_device.empty()) {
    const auto alone = colocate_with(nullptr);
    const auto device = with_device(options.caching_device, asked.site);
    made.read = add_node_at("Identity", {made.read}, unique + "/cached", asked.site);
  }
  to.add_to_collection(store_of(full), made.handle.from);
  if (!options.regularizer.empty()) add_regularization(unique, made, options.regularizer, asked.site);
  return made;
}

WEFT_DECL variable_nodes get_variable_nodes(std::string_view name, const weft::shape& s, dtype type, const variable_options& options, call_site where) {
  const std::string full = full_variable_name(name, where);
  const node* there = find_named_variable(full, this_variable_scope().options.reuse, where);
  if (there == nullptr) return make_named_variable(full, {s, type, {}, {}, where}, with_scope(options));
  const any_variable found(output{there, 0}, where);
  if (!merge_shapes(found.shape(), partial_shape(std::vector<std::int64_t>(s.begin(), s.end()))))
    throw error(error_code::invalid_argument, "the variable '" + full + "' made at " + found.site().text() + " has shape " + found.shape().text() + ", it is to be reused with shape " + s.text(), where);
  return found.nodes_as(type, dynamic_rank, where);
}

}  // namespace detail
}  // namespace weft
#endif

#endif
