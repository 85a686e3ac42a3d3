#ifndef WEFT_GRADIENTS_MATH_HPP
#define WEFT_GRADIENTS_MATH_HPP
// Gradients of elementwise arithmetic.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#include <cmath>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// A unary op whose derivative is a formula of its input x and its output y.
template <term (*Derivative)(const term& x, const term& y)> void chain_rule(gradient_context& c) {
  const term g = gradient_term(c);
  c.set(0, g * conjugate(Derivative(input(c, 0), result(c))));
}
inline term abs_derivative(const term& x, const term&) { return apply("Sign", x); }
inline term square_derivative(const term& x, const term&) { return 2 * x; }
inline term exp_derivative(const term&, const term& y) { return y; }
inline term expm1_derivative(const term& x, const term&) { return exp(x); }
inline term log_derivative(const term& x, const term&) { return reciprocal(x); }
inline term log1p_derivative(const term& x, const term&) { return reciprocal(1 + x); }
inline term sinh_derivative(const term& x, const term&) { return apply("Cosh", x); }
inline term cosh_derivative(const term& x, const term&) { return apply("Sinh", x); }
inline term asinh_derivative(const term&, const term& y) { return reciprocal(apply("Cosh", y)); }
inline term acosh_derivative(const term&, const term& y) { return reciprocal(apply("Sinh", y)); }
inline term atanh_derivative(const term& x, const term&) { return reciprocal(1 - square(x)); }
inline term erf_derivative(const term& x, const term&) { return 1.1283791670955126 * exp(-square(x)); }
inline term erfc_derivative(const term& x, const term&) { return -1.1283791670955126 * exp(-square(x)); }
inline term lgamma_derivative(const term& x, const term&) { return apply("Digamma", x); }
// Polygamma is there for float and double.
inline term digamma_derivative(const term& x, const term&) {
  const bool wide = x.dtype() == dtype::float32 || x.dtype() == dtype::float64;
  const term in{x.make, wide ? x.value : x.make->cast(x, dtype::float32)}, out = apply("Polygamma", number_like(1, in), in);
  return {x.make, x.make->cast(out, x.dtype())};
}
inline term sin_derivative(const term& x, const term&) { return apply("Cos", x); }
inline term cos_derivative(const term& x, const term&) { return -apply("Sin", x); }
inline term tan_derivative(const term& x, const term&) { return square(reciprocal(apply("Cos", x))); }
inline term asin_derivative(const term& x, const term&) { return reciprocal(apply("Sqrt", 1 - square(x))); }
inline term acos_derivative(const term& x, const term&) { return -reciprocal(apply("Sqrt", 1 - square(x))); }
inline term atan_derivative(const term& x, const term&) { return reciprocal(1 + square(x)); }

// A unary op with an op for its gradient, which takes the output of the op and the gradient that came.
inline void by_gradient_op(gradient_context& c, const char* op) { c.set(0, apply(op, result(c), gradient_term(c))); }
inline void sqrt_gradient(gradient_context& c) { by_gradient_op(c, "SqrtGrad"); }
inline void rsqrt_gradient(gradient_context& c) { by_gradient_op(c, "RsqrtGrad"); }
inline void reciprocal_gradient(gradient_context& c) { by_gradient_op(c, "ReciprocalGrad"); }
inline void tanh_gradient(gradient_context& c) { by_gradient_op(c, "TanhGrad"); }
inline void sigmoid_gradient(gradient_context& c) { by_gradient_op(c, "SigmoidGrad"); }

// The same ops once more: inputs y and dy.
inline void sqrt_grad_gradient(gradient_context& c) {
  const term ratio = gradient_term(c) / input(c, 0);
  if (c.wants(0)) c.set(0, -conjugate(ratio) * result(c));
  if (c.wants(1)) c.set(1, 0.5 * ratio);
}
inline void rsqrt_grad_gradient(gradient_context& c) {
  const term g = gradient_term(c), y = conjugate(input(c, 0));
  if (c.wants(0)) c.set(0, -1.5 * (conjugate(g) * input(c, 1) * square(y)));
  if (c.wants(1)) c.set(1, apply("RsqrtGrad", y, g));
}
inline void reciprocal_grad_gradient(gradient_context& c) {
  const term g = gradient_term(c), y = conjugate(input(c, 0));
  if (c.wants(0)) c.set(0, -2 * (conjugate(g) * input(c, 1) * y));
  if (c.wants(1)) c.set(1, apply("ReciprocalGrad", y, g));
}
inline void tanh_grad_gradient(gradient_context& c) {
  const term g = gradient_term(c), y = conjugate(input(c, 0));
  if (c.wants(0)) c.set(0, -2 * (conjugate(g) * input(c, 1) * y));
  if (c.wants(1)) c.set(1, apply("TanhGrad", y, g));
}
inline void sigmoid_grad_gradient(gradient_context& c) {
  const term g = gradient_term(c), y = conjugate(input(c, 0));
  if (c.wants(0)) {
    const term both = g * conjugate(input(c, 1));
    c.set(0, both - 2 * (both * y));
  }
  if (c.wants(1)) c.set(1, apply("SigmoidGrad", y, g));
}

inline void neg_gradient(gradient_context& c) {
  const gradient_output g = c.gradient_as_it_is();
  const output minus = c.add("Neg", {g.values()});
  if (g.is_dense()) c.set(0, minus);
  else c.set(0, indexed_slices{minus, g.slices().indices, g.slices().dense_shape});
}
inline void sign_gradient(gradient_context& c) { c.set(0, c.zeros_like(c.input(0))); }
inline void cast_gradient(gradient_context& c) {
  const gradient_output g = c.gradient_as_it_is();
  const dtype from = gradient_context::dtype_of(c.input(0));
  if (!is_trainable(from) || !is_trainable(g.dtype())) return;
  const output back = c.cast(g.values(), from);
  if (g.is_dense()) c.set(0, back);
  else c.set(0, indexed_slices{back, g.slices().indices, g.slices().dense_shape});
}
inline void sum_of_inputs_gradient(gradient_context& c) {
  for (int i = 0; i < c.input_count(); ++i) c.set(i, c.gradient_as_it_is());
}

inline void add_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  for (int i = 0; i < 2; ++i)
    if (c.wants(i)) set_side(c, i, g);
}
inline void sub_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  if (c.wants(0)) set_side(c, 0, g);
  if (c.wants(1)) c.set(1, c.add("Neg", {c.sum_to(g, c.input(1), c.input(0))}));
}
inline void mul_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  for (int i = 0; i < 2; ++i)
    if (c.wants(i)) set_side(c, i, g * conjugate(input(c, 1 - i)));
}
inline void mul_no_nan_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  if (c.wants(0)) set_side(c, 0, apply("MulNoNan", g, input(c, 1)));
  if (c.wants(1)) set_side(c, 1, apply("MulNoNan", input(c, 0), g));
}
inline void quotient_gradient(gradient_context& c, const char* divide) {
  const term g = gradient_term(c), x = conjugate(input(c, 0)), y = conjugate(input(c, 1));
  if (c.wants(0)) set_side(c, 0, apply(divide, g, y));
  if (c.wants(1)) set_side(c, 1, g * apply(divide, apply(divide, -x, y), y));
}
inline void div_gradient(gradient_context& c) { quotient_gradient(c, "RealDiv"); }
inline void div_no_nan_gradient(gradient_context& c) { quotient_gradient(c, "DivNoNan"); }
inline void floor_mod_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  if (c.wants(0)) set_side(c, 0, g);
  if (c.wants(1)) set_side(c, 1, g * -apply("FloorDiv", input(c, 0), input(c, 1)));
}
// For the exponent, the logarithm of a base that is not positive counts as 0.
inline void pow_gradient(gradient_context& c) {
  const term g = gradient_term(c), x = conjugate(input(c, 0)), y = conjugate(input(c, 1));
  if (c.wants(0)) set_side(c, 0, g * y * apply("Pow", x, y - 1.0));
  if (!c.wants(1)) return;
  const bool complex = x.dtype() == dtype::complex64 || x.dtype() == dtype::complex128;
  const term safe = apply(complex ? "NotEqual" : "Greater", x, zero(x));
  const term log = select(safe, apply("Log", select(safe, x, number_like(1, x))), zero(x));
  set_side(c, 1, g * conjugate(result(c)) * log);
}
inline void larger_gradient(gradient_context& c, const char* compare) {
  const term g = gradient_term(c), first = apply(compare, input(c, 0), input(c, 1));
  if (c.wants(0)) set_side(c, 0, select(first, g, zero(g)));
  if (c.wants(1)) set_side(c, 1, select(first, zero(g), g));
}
inline void maximum_gradient(gradient_context& c) { larger_gradient(c, "GreaterEqual"); }
inline void minimum_gradient(gradient_context& c) { larger_gradient(c, "LessEqual"); }
inline void squared_difference_gradient(gradient_context& c) {
  const term g = 2 * gradient_term(c) * (input(c, 0) - input(c, 1));
  if (c.wants(0)) set_side(c, 0, g);
  if (c.wants(1)) c.set(1, c.add("Neg", {c.sum_to(g, c.input(1), c.input(0))}));
}
// Inputs y, x.
inline void atan2_gradient(gradient_context& c) {
  const term y = input(c, 0), x = input(c, 1), g = gradient_term(c) / (square(x) + square(y));
  if (c.wants(0)) set_side(c, 0, x * g);
  if (c.wants(1)) set_side(c, 1, -y * g);
}
inline void xlogy_gradient(gradient_context& c) {
  const term g = gradient_term(c), x = input(c, 0), y = input(c, 1);
  if (c.wants(0)) set_side(c, 0, apply("Xlogy", {&c, c.cast(apply("NotEqual", x, zero(x)), x.dtype())}, y) * g);
  if (c.wants(1)) set_side(c, 1, apply("Xdivy", x, y) * g);
}
inline void xdivy_gradient(gradient_context& c) {
  const term g = gradient_term(c), x = input(c, 0), y = input(c, 1);
  if (c.wants(0)) set_side(c, 0, apply("Xdivy", {&c, c.cast(apply("NotEqual", x, zero(x)), x.dtype())}, y) * g);
  if (c.wants(1)) set_side(c, 1, apply("Xdivy", -x, square(y)) * g);
}

// Inputs: the order, which has no gradient, and x.
inline void polygamma_gradient(gradient_context& c) {
  if (c.wants(1)) set_side(c, 1, gradient_term(c) * apply("Polygamma", input(c, 0) + number_like(1, input(c, 0)), input(c, 1)));
}

inline void add_math_gradients(gradient_registry& rules) {
  rules.add({{"Abs", chain_rule<abs_derivative>}, {"Square", chain_rule<square_derivative>}, {"Exp", chain_rule<exp_derivative>}, {"Expm1", chain_rule<expm1_derivative>},
             {"Log", chain_rule<log_derivative>}, {"Log1p", chain_rule<log1p_derivative>}, {"Sinh", chain_rule<sinh_derivative>}, {"Cosh", chain_rule<cosh_derivative>},
             {"Asinh", chain_rule<asinh_derivative>}, {"Acosh", chain_rule<acosh_derivative>}, {"Atanh", chain_rule<atanh_derivative>}, {"Erf", chain_rule<erf_derivative>},
             {"Erfc", chain_rule<erfc_derivative>}, {"Lgamma", chain_rule<lgamma_derivative>}, {"Digamma", chain_rule<digamma_derivative>}, {"Sin", chain_rule<sin_derivative>},
             {"Cos", chain_rule<cos_derivative>}, {"Tan", chain_rule<tan_derivative>}, {"Asin", chain_rule<asin_derivative>}, {"Acos", chain_rule<acos_derivative>},
             {"Atan", chain_rule<atan_derivative>}});
  rules.add({{"Sqrt", sqrt_gradient}, {"SqrtGrad", sqrt_grad_gradient}, {"Rsqrt", rsqrt_gradient}, {"RsqrtGrad", rsqrt_grad_gradient},
             {"Reciprocal", reciprocal_gradient}, {"ReciprocalGrad", reciprocal_grad_gradient}, {"Inv", reciprocal_gradient}, {"InvGrad", reciprocal_grad_gradient},
             {"Tanh", tanh_gradient}, {"TanhGrad", tanh_grad_gradient}, {"Sigmoid", sigmoid_gradient}, {"SigmoidGrad", sigmoid_grad_gradient},
             {"Neg", neg_gradient}, {"Sign", sign_gradient}, {"Cast", cast_gradient}, {"AddN", sum_of_inputs_gradient}, {"AccumulateNV2", sum_of_inputs_gradient}});
  rules.add({{"Add", add_gradient}, {"AddV2", add_gradient}, {"Sub", sub_gradient}, {"Mul", mul_gradient}, {"MulNoNan", mul_no_nan_gradient},
             {"Div", div_gradient}, {"RealDiv", div_gradient}, {"DivNoNan", div_no_nan_gradient}, {"FloorMod", floor_mod_gradient}, {"Pow", pow_gradient},
             {"Maximum", maximum_gradient}, {"Minimum", minimum_gradient}, {"SquaredDifference", squared_difference_gradient}, {"Atan2", atan2_gradient},
             {"Xlogy", xlogy_gradient}, {"Xdivy", xdivy_gradient}, {"Polygamma", polygamma_gradient}});
  rules.add({{"Ceil", no_gradient}, {"Floor", no_gradient}, {"Rint", no_gradient}, {"Round", no_gradient}, {"FloorDiv", no_gradient}, {"TruncateDiv", no_gradient}});
  rules.add_none({"ApproximateEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterEqual", "Invert", "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalNot",
                  "LogicalOr", "NotEqual", "RightShift"});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
