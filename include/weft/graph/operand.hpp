#ifndef WEFT_GRAPH_OPERAND_HPP
#define WEFT_GRAPH_OPERAND_HPP
// The typed edge: what ops accept. `operand<T, N>` carries dtype and rank at compile time and is the common base of tensor and
// variable; its operators are hidden friends, one side of which records the caller's line.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/graph/indexing.hpp>
#include <weft/tensor/value_traits.hpp>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {

constexpr int wider_rank(int a, int b) { return a == dynamic_rank || b == dynamic_rank ? dynamic_rank : a > b ? a : b; }

template <class T, int N> struct located;

// One side of a binary op while it is built: an output, a variable to read, or a number to make a constant of.
struct side {
  output out;
  bool reads_variable = false;
  tensor_value number;
};

// `x * 0.5f` gives nodes `mul/y` and `mul`, as TensorFlow names them.
output add_binary(const char* op, const char* scope, const side& a, const side& b, const op_name& name);
output add_unary(const char* op, const side& a, const op_name& name, attr_map attrs = {});
// A node that reads the variable behind `handle`.
output add_read(const output& handle, const op_name& name);
// The same for an op that uses the variable: it asks for no device, it runs where the variable is.
output add_read_for_op(const output& handle, const op_name& name);
const node& add_const(tensor_value v, const op_name& name, graph_state* to = nullptr);

template <class T> side side_of(const scalar<T>& s) { return {output(), false, tensor_value::scalar(s.value)}; }
template <class T, int N> side side_of(const operand<T, N>& x);

}  // namespace detail

/// What an op accepts: a tensor or a variable of dtype T and rank N. Holds its graph alive.
template <class T, int N> class operand {
  static_assert(is_dtype_v<T>, "weft: this type is not a dtype; use float, double, bool, std::string, weft::half, weft::bfloat16 or a <cstdint> integer such as std::int64_t");
  static_assert(N >= dynamic_rank, "weft: a rank is 0 or more, or weft::dynamic_rank");

 public:
  using dtype = T;
  static constexpr int rank = N;

  /// The output that an op reads; for a variable this adds a node that reads it now.
  output as_input(call_site where) const { return reads_.from == nullptr ? out_ : is_cached() ? reads_ : detail::add_read_for_op(out_, op_name(where)); }
  /// The output it stands for; for a variable the handle of its resource.
  output raw() const noexcept { return out_; }
  /// The output that a session fetches; for a variable a read that was made with it.
  output fetched() const noexcept { return reads_.from == nullptr ? out_ : reads_; }
  /// Name of the node, `x` or `x:1`.
  std::string name() const { return to_text(out_); }
  /// What is known of its shape.
  partial_shape shape() const {
    const output o = fetched();
    return o.from == nullptr ? partial_shape::of_rank(N) : o.from->output_shape(o.index);
  }
  /// Where the user's program made it.
  call_site site() const { return out_.from == nullptr ? call_site() : out_.from->site(); }
  /// The graph it belongs to.
  weft::graph graph() const { return weft::graph(owner_); }
  /// Whether it is a variable that ops read from a copy on a caching device, made once a step.
  bool is_cached() const noexcept { return reads_.from != nullptr && reads_.from->op() == "Identity"; }
  /// Whether it stands for anything; a default-constructed tensor does not.
  bool empty() const noexcept { return out_.from == nullptr; }

  /// Part of it (StridedSlice): `x(0)`, `x(slice(1, 5), newaxis, ellipsis, all)`, `x(position)`; dimensions that are not named are whole. At most six entries.
  template <class A> auto operator()(const A& a, call_site w = call_site::here()) const { return indexed(w, a); }
  template <class A, class B> auto operator()(const A& a, const B& b, call_site w = call_site::here()) const { return indexed(w, a, b); }
  template <class A, class B, class C> auto operator()(const A& a, const B& b, const C& c, call_site w = call_site::here()) const { return indexed(w, a, b, c); }
  template <class A, class B, class C, class D> auto operator()(const A& a, const B& b, const C& c, const D& d, call_site w = call_site::here()) const { return indexed(w, a, b, c, d); }
  template <class A, class B, class C, class D, class E> auto operator()(const A& a, const B& b, const C& c, const D& d, const E& e, call_site w = call_site::here()) const { return indexed(w, a, b, c, d, e); }
  template <class A, class B, class C, class D, class E, class F>
  auto operator()(const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, call_site w = call_site::here()) const { return indexed(w, a, b, c, d, e, f); }

  template <class B, std::enable_if_t<std::is_same_v<B, bool>, int> = 0> explicit operator B() const {
    static_assert(detail::always_false<B>::value, "weft: a tensor of the graph has no value while the graph is built; run it with session.run(...) first, or use weft::equal and weft::less");
  }

#define WEFT_BINARY(OP, OPNAME, SCOPE, RESULT)                                                                                                    \
  template <class U, int M> friend tensor<RESULT, detail::wider_rank(N, M)> operator OP(detail::located<T, N> a, const operand<U, M>& b) {        \
    static_assert(std::is_same_v<T, U>, "weft: the two sides of an operator have different dtypes; convert one with weft::cast<T>(...)");          \
    return tensor<RESULT, detail::wider_rank(N, M)>(detail::add_binary(OPNAME, SCOPE, detail::side_of(a.value), detail::side_of(b), op_name(a.where))); \
  }                                                                                                                                               \
  friend tensor<RESULT, N> operator OP(const operand& a, detail::scalar<T> b) {                                                                   \
    return tensor<RESULT, N>(detail::add_binary(OPNAME, SCOPE, detail::side_of(a), detail::side_of(b), op_name(b.where)));                        \
  }                                                                                                                                               \
  friend tensor<RESULT, N> operator OP(detail::scalar<T> a, const operand& b) {                                                                   \
    return tensor<RESULT, N>(detail::add_binary(OPNAME, SCOPE, detail::side_of(a), detail::side_of(b), op_name(a.where)));                        \
  }
  WEFT_BINARY(+, (std::is_same_v<T, std::string> ? "Add" : "AddV2"), "add", T)
  WEFT_BINARY(-, "Sub", "sub", T)
  WEFT_BINARY(*, "Mul", "mul", T)
  WEFT_BINARY(/, (detail::is_integer_v<T> ? "Div" : "RealDiv"), (detail::is_integer_v<T> ? "div" : "truediv"), T)
  WEFT_BINARY(<, "Less", "Less", bool)
  WEFT_BINARY(>, "Greater", "Greater", bool)
  WEFT_BINARY(<=, "LessEqual", "LessEqual", bool)
  WEFT_BINARY(>=, "GreaterEqual", "GreaterEqual", bool)
#undef WEFT_BINARY
  friend tensor<T, N> operator-(detail::located<T, N> a) { return tensor<T, N>(detail::add_unary("Neg", detail::side_of(a.value), op_name(a.where))); }

 protected:
  operand() = default;
  explicit operand(output o) : out_(o) {
    if (o.from != nullptr) owner_ = detail::hold_for_handle(o.from->owner());
  }
  operand(output handle, output reads) : operand(handle) { reads_ = reads; }
  template <class... I> auto indexed(call_site where, const I&... entries) const {
    static_assert(detail::ellipses<I...>() <= 1, "weft: an index holds at most one ellipsis");
    static_assert(N == dynamic_rank || detail::indexed_dims<I...>() <= N, "weft: more indices than the tensor has dimensions");
    constexpr int left = N == dynamic_rank || detail::indexed_dims<I...>() <= N ? detail::index_rank<I...>(N) : dynamic_rank;
    const detail::index_item items[] = {detail::index_traits<I>::item(entries, where)...};
    return tensor<T, left>(detail::add_strided_slice(as_input(where), items, sizeof...(I), where));
  }
  output out_, reads_;
  std::shared_ptr<detail::graph_state> owner_;
};

namespace detail {

template <class T, int N> struct located {
  const operand<T, N>& value;
  call_site where;
  located(const operand<T, N>& v, call_site w = call_site::here()) : value(v), where(w) {}
};

template <class T, int N> side side_of(const operand<T, N>& x) {
  if (x.is_cached()) return {x.fetched(), false, tensor_value()};
  return {x.raw(), x.fetched() != x.raw(), tensor_value()};
}

template <class T, int N> operand<T, N> operand_of(const operand<T, N>&);
template <class A, class = void> struct is_operand : std::false_type {};
template <class A> struct is_operand<A, std::void_t<decltype(operand_of(std::declval<const A&>()))>> : std::true_type {};

const node& add_const(tensor_value v, const op_name& name, graph_state* to);

output add_read(const output& handle, const op_name& name);

output add_const_at(tensor_value v, const std::string& full_name, call_site site, graph_state& to);

output input_of(const char* op, const side& a, const op_name& name);

output add_binary(const char* op, const char* scope, const side& a, const side& b, const op_name& name);

output add_unary(const char* op, const side& a, const op_name& name, attr_map attrs);

}  // namespace detail
}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL const node& add_const(tensor_value v, const op_name& name, graph_state* to) {
  node_spec spec;
  spec.op = "Const";
  spec.name = std::string(name.text);
  spec.site = name.site;
  spec.attrs = {{"dtype", v.dtype()}, {"value", v}};
  return (to != nullptr ? *to : *current_graph()).add(std::move(spec));
}

WEFT_DECL output add_read(const output& handle, const op_name& name) {
  if (handle.from == nullptr) throw error(error_code::invalid_argument, "the variable is empty; give it an initial value", name.site);
  return {&add_node("ReadVariableOp", {handle}, name, {{"dtype", handle.from->attr<dtype>("dtype")}}), 0};
}

WEFT_DECL output add_read_for_op(const output& handle, const op_name& name) {
  struct without_places {
    scope_context& scope = thread_scopes().top();
    std::vector<device_entry> devices = std::exchange(scope.devices, {});
    std::vector<const node*> colocation = std::exchange(scope.colocation, {});
    without_places() = default;
    without_places(const without_places&) = delete;
    without_places& operator=(const without_places&) = delete;
    ~without_places() {
      scope.devices = std::move(devices);
      scope.colocation = std::move(colocation);
    }
  };
  const without_places anywhere;
  return add_read(handle, name);
}

// A constant with exactly this name, for an op that names its own inputs.
WEFT_DECL output add_const_at(tensor_value v, const std::string& full_name, call_site site, graph_state& to) {
  const std::string exact = full_name + "/";
  return {&add_const(std::move(v), op_name(std::string_view(exact), site), &to), 0};
}

// The output that an op reads: a variable is read now.
WEFT_DECL output input_of(const char* op, const side& a, const op_name& name) {
  const output in = a.reads_variable ? add_read_for_op(a.out, op_name(name.site)) : a.out;
  if (in.from == nullptr) throw error(error_code::invalid_argument, std::string(op) + ": the operand is an empty tensor, not made by any op", name.site);
  return in;
}

// Constants and reads that a binary op makes for its own inputs are named below it.
WEFT_DECL output realise(const side& s, const std::string& below, const char* suffix, const op_name& name, graph_state& to) {
  if (!s.number.empty()) return add_const_at(s.number, below + "/" + suffix, name.site, to);
  if (!s.reads_variable) return s.out;
  const std::string full = below + "/ReadVariableOp" + (suffix[0] == 'y' ? "_1" : "") + "/";
  return add_read_for_op(s.out, op_name(std::string_view(full), name.site));
}

WEFT_DECL graph_state& graph_of(const side& a, const side& b, const op_name& name) {
  const node* from = a.out.from != nullptr ? a.out.from : b.out.from;
  if (from == nullptr) throw error(error_code::invalid_argument, "an operand is an empty tensor, not made by any op", name.site);
  return from->owner();
}

WEFT_DECL output add_binary(const char* op, const char* scope, const side& a, const side& b, const op_name& name) {
  graph_state& to = graph_of(a, b, name);
  const bool plain = a.number.empty() && b.number.empty() && !a.reads_variable && !b.reads_variable;
  if (plain) return {&add_node(op, {a.out, b.out}, name.text.empty() ? op_name(scope, name.site) : name), 0};
  const std::string unique = claim_name(to, name, scope);
  const output x = realise(a, unique, "x", name, to), y = realise(b, unique, "y", name, to);
  return add_node_at(op, {x, y}, unique, name.site);
}

WEFT_DECL output add_unary(const char* op, const side& a, const op_name& name, attr_map attrs) {
  if (!a.reads_variable || a.out.from == nullptr) return {&add_node(op, {input_of(op, a, name)}, name, std::move(attrs)), 0};
  // The read is named below the op.
  const std::string full = claim_name(a.out.from->owner(), name, op), below = full + "/ReadVariableOp/";
  return add_node_at(op, {add_read_for_op(a.out, op_name(std::string_view(below), name.site))}, full, name.site, std::move(attrs));
}

}  // namespace weft::detail
#endif

#endif
