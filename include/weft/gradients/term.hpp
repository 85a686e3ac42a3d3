#ifndef WEFT_GRADIENTS_TERM_HPP
#define WEFT_GRADIENTS_TERM_HPP
// Formulas inside gradient rules: outputs with operators that add nodes.

#include <weft/gradients/gradient_context.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// An output, and the context that adds nodes for it.
struct term {
  const gradient_context* make;
  output value;

  operator output() const { return value; }
  operator gradient_output() const { return value; }
  weft::dtype dtype() const { return gradient_context::dtype_of(value); }
};

inline term input(const gradient_context& c, int i) { return {&c, c.input(i)}; }
inline term result(const gradient_context& c, int i = 0) { return {&c, c.result(i)}; }
inline term gradient_term(gradient_context& c, int i = 0) { return {&c, c.gradient(i)}; }

inline term apply(const char* op, const term& x) { return {x.make, x.make->add(op, {x.value})}; }
inline term apply(const char* op, const term& x, const term& y) { return {x.make, x.make->add(op, {x.value, y.value})}; }
inline term number_like(double value, const term& x) { return {x.make, x.make->number(value, x.dtype())}; }

inline term operator+(const term& x, const term& y) { return apply("AddV2", x, y); }
inline term operator-(const term& x, const term& y) { return apply("Sub", x, y); }
inline term operator*(const term& x, const term& y) { return apply("Mul", x, y); }
inline term operator/(const term& x, const term& y) { return apply("RealDiv", x, y); }
inline term operator-(const term& x) { return apply("Neg", x); }
inline term operator+(double x, const term& y) { return number_like(x, y) + y; }
inline term operator-(double x, const term& y) { return number_like(x, y) - y; }
inline term operator-(const term& x, double y) { return x - number_like(y, x); }
inline term operator*(double x, const term& y) { return number_like(x, y) * y; }
inline term square(const term& x) { return apply("Square", x); }
inline term reciprocal(const term& x) { return apply("Reciprocal", x); }
inline term exp(const term& x) { return apply("Exp", x); }
inline term conjugate(const term& x) { return {x.make, x.make->conjugate(x.value)}; }
inline term zero(const term& like) { return number_like(0, like); }
// Elements of x where the condition holds, else of y, with broadcasting.
inline term select(const term& condition, const term& x, const term& y) { return {x.make, x.make->add("SelectV2", {condition.value, x.value, y.value})}; }

// The gradient of one side of a binary op, summed to the shape of that side.
inline void set_side(gradient_context& c, int side, const term& g) { c.set(side, c.sum_to(g.value, c.input(side), c.input(1 - side))); }
// The gradient as it came for an input that has the shape of the output; rows stay rows.
inline void pass_on(gradient_context& c) { c.set(0, c.gradient_as_it_is()); }
inline void no_gradient(gradient_context&) {}

}  // namespace weft::detail::gradient_rules
#endif

#endif
