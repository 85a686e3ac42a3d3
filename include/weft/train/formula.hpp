#ifndef WEFT_TRAIN_FORMULA_HPP
#define WEFT_TRAIN_FORMULA_HPP
// Formulas over tensors whose dtype is known only when the program runs: outputs with operators that add nodes in the thread's scopes.

#include <weft/core/config.hpp>
#include <weft/gradients/gradient_context.hpp>
#include <weft/graph/operand.hpp>
#include <weft/graph/scope.hpp>
#include <weft/train/hyper_parameter.hpp>

#include <string_view>
#include <utility>
#include <vector>

#if WEFT_HAS_TRAIN_BODIES
namespace weft::detail {

// An output in a formula, with the line that the formula's nodes are to carry.
struct term {
  output value;
  call_site site;

  weft::dtype dtype() const { return value.from->output_dtype(value.index); }
  const partial_shape& shape() const { return value.from->output_shape(value.index); }
};

inline term apply(const char* op, std::vector<output> inputs, call_site site, attr_map attrs = {}, std::string_view name = {}) {
  return {{&add_node(op, std::move(inputs), op_name(name, site), std::move(attrs)), 0}, site};
}
inline term apply(const char* op, const term& x, std::string_view name = {}) { return apply(op, {x.value}, x.site, {}, name); }
inline term apply(const char* op, const term& x, const term& y, std::string_view name = {}) { return apply(op, {x.value, y.value}, x.site, {}, name); }
inline term number_like(double value, const term& x, std::string_view name = {}) {
  return {{&add_const(scalar_of(value, x.dtype()), op_name(name, x.site), &x.value.from->owner()), 0}, x.site};
}
inline term cast(const term& x, dtype to) { return x.dtype() == to ? x : apply("Cast", {x.value}, x.site, {{"DstT", to}}); }
// A hyper-parameter as a scalar of this dtype; a number becomes a constant of this name.
inline term scalar_of_parameter(const hyper_parameter& p, dtype type, graph_state& to, call_site site, std::string_view name) {
  if (p.is_number()) return {{&add_const(scalar_of(p.number(), type), op_name(name, site), &to), 0}, site};
  return cast({p.reads_variable() ? add_read(p.out(), op_name(site)) : p.out(), site}, type);
}

inline term operator+(const term& x, const term& y) { return apply("AddV2", x, y, "add"); }
inline term operator-(const term& x, const term& y) { return apply("Sub", x, y, "sub"); }
inline term operator*(const term& x, const term& y) { return apply("Mul", x, y, "mul"); }
inline term operator/(const term& x, const term& y) { return apply("RealDiv", x, y, "truediv"); }
inline term operator+(const term& x, double y) { return x + number_like(y, x); }
inline term operator+(double x, const term& y) { return number_like(x, y) + y; }
inline term operator-(double x, const term& y) { return number_like(x, y) - y; }
inline term operator*(double x, const term& y) { return number_like(x, y) * y; }
inline term operator/(double x, const term& y) { return number_like(x, y) / y; }
inline term power(const term& x, const term& y) { return apply("Pow", x, y); }
inline term minimum(const term& x, const term& y) { return apply("Minimum", x, y); }
inline term maximum(const term& x, const term& y) { return apply("Maximum", x, y); }
inline term select(const term& condition, const term& x, const term& y) { return apply("SelectV2", {condition.value, x.value, y.value}, x.site); }

// The graph of what a formula is made from; throws when none of it is a node.
inline graph_state& graph_of_parameter(const hyper_parameter& p, const char* who, const char* what, call_site site) {
  if (p.is_number() || p.out().from == nullptr) throw error(error_code::invalid_argument, std::string(who) + ": " + what + " must be a tensor or a variable of the graph", site);
  return p.out().from->owner();
}

}  // namespace weft::detail
#endif

#endif
