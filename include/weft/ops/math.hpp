#ifndef WEFT_OPS_MATH_HPP
#define WEFT_OPS_MATH_HPP
// Elementwise arithmetic, comparison, logic and casts.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

#if WEFT_HAS_BODIES
// Operands of one shape, which is also the result's.
inline void same_shape(shape_context& c) {
  const auto both = merge_shapes(c.input(0), c.input(1));
  if (!both) c.fail("shapes " + c.input(0).text() + " and " + c.input(1).text() + " differ");
  c.set_output(0, *both);
}

// Without the error, shapes that cannot be broadcast compare as a single false.
inline void equality_shape(shape_context& c) {
  if (c.attr<bool>("incompatible_shape_error")) return broadcast_shape(c);
  if (!c.input(0).fully_known() || !c.input(1).fully_known()) return;
  c.set_output(0, broadcast_shapes(c.input(0), c.input(1)).value_or(partial_shape::of_rank(0)));
}

// Any number of inputs of one shape; attribute `shape`, where there is one, says it too.
inline void add_n_shape(shape_context& c) {
  const partial_shape* said = c.find_attr<partial_shape>("shape");
  partial_shape sum = said == nullptr ? partial_shape() : *said;
  for (int i = 0; i < c.input_count(); ++i) {
    const auto both = merge_shapes(sum, c.input(i));
    if (!both) c.fail("all inputs must have one shape, found " + sum.text() + " and " + c.input(i).text());
    sum = *both;
  }
  c.set_output(0, sum);
}

inline constexpr op_row math_ops[] = {
    // Two operands with broadcasting.
    {"Add(x: T, y: T) -> z: T", "T: {floats, uint8, int8, int16, int32, int64, complex, string}", broadcast_shape},
    {"AddV2(x: T, y: T) -> z: T", "T: {floats, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex}", broadcast_shape, op_flags::commutative},
    {"Sub(x: T, y: T) -> z: T", "T: {floats, uint8, int8, uint16, int16, int32, int64, complex, uint32, uint64}", broadcast_shape},
    {"Mul(x: T, y: T) -> z: T", "T: {numbers, complex}", broadcast_shape, op_flags::commutative},
    {"Div RealDiv FloorDiv TruncateDiv(x: T, y: T) -> z: T", "T: {numbers, complex}", broadcast_shape},
    {"DivNoNan(x: T, y: T) -> z: T", "T: {half, float, bfloat16, double, complex}", broadcast_shape},
    {"MulNoNan(x: T, y: T) -> z: T", "T: {floats, complex}", broadcast_shape},
    {"Xdivy Xlogy(x: T, y: T) -> z: T", "T: {half, bfloat16, float, double, complex}", broadcast_shape},
    {"Polygamma(a: T, x: T) -> z: T", "T: {float, double}", broadcast_shape},
    {"Mod(x: T, y: T) -> z: T", "T: {int32, int64, half, half, bfloat16, float, double}", broadcast_shape},
    {"FloorMod(x: T, y: T) -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, floats}", broadcast_shape},
    {"TruncateMod(x: T, y: T) -> z: T", "T: {int32, int64, floats}", broadcast_shape},
    {"Pow(x: T, y: T) -> z: T", "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex}", broadcast_shape},
    {"Maximum Minimum(x: T, y: T) -> z: T", "T: {floats, int8, uint8, int16, uint16, int32, uint32, int64, uint64}", broadcast_shape},
    {"SquaredDifference(x: T, y: T) -> z: T", "T: {floats, int32, int64, complex}", broadcast_shape, op_flags::commutative},
    {"Atan2(y: T, x: T) -> z: T", "T: {floats}", broadcast_shape},
    {"BitwiseAnd BitwiseOr BitwiseXor(x: T, y: T) -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", broadcast_shape, op_flags::commutative},
    {"LeftShift RightShift(x: T, y: T) -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", broadcast_shape},
    // Comparisons and logic.
    {"Less LessEqual Greater GreaterEqual(x: T, y: T) -> z: bool", "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", broadcast_shape},
    {"Equal NotEqual(x: T, y: T) -> z: bool", "T: type; incompatible_shape_error: bool = true", equality_shape, op_flags::commutative},
    {"ApproximateEqual(x: T, y: T) -> z: bool", "T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, uint32, uint64}; tolerance: float = 1e-05",
     same_shape, op_flags::commutative},
    {"LogicalAnd LogicalOr(x: bool, y: bool) -> z: bool", "", broadcast_shape, op_flags::commutative},
    {"LogicalNot(x: bool) -> y: bool", "", unchanged_shape},
    // One operand.
    {"Neg Reciprocal Inv Sign Round(x: T) -> y: T", "T: {floats, int8, int16, int32, int64, complex}", unchanged_shape},
    {"Abs(x: T) -> y: T", "T: {floats, int8, int16, int32, int64}", unchanged_shape},
    {"Square(x: T) -> y: T", "T: {floats, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex}", unchanged_shape},
    {"Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid(x: T) -> y: T", "T: {floats, complex}", unchanged_shape},
    {"Erf Erfc Lgamma Digamma Floor Ceil Rint(x: T) -> y: T", "T: {floats}", unchanged_shape},
    {"IsNan IsInf IsFinite(x: T) -> y: bool", "T: {floats}", unchanged_shape},
    {"Invert(x: T) -> y: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", unchanged_shape},
    {"Cast(x: SrcT) -> y: DstT", "SrcT: type; DstT: type; Truncate: bool = false", unchanged_shape},
    // Activations.
    {"Relu Relu6(features: T) -> activations: T", "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", unchanged_shape},
    {"Elu Selu Softplus Softsign(features: T) -> activations: T", "T: {half, bfloat16, float, double}", unchanged_shape},
    {"LeakyRelu(features: T) -> activations: T", "alpha: float = 0.2; T: {half, bfloat16, float, double} = float", unchanged_shape},
    // Gradients of one operand, of which some are written with its result.
    {"TanhGrad SigmoidGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad(y: T, dy: T) -> z: T", "T: {floats, complex}", same_shape},
    {"ReluGrad Relu6Grad(gradients: T, features: T) -> backprops: T", "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", same_shape},
    {"EluGrad SeluGrad(gradients: T, outputs: T) -> backprops: T", "T: {half, bfloat16, float, double}", same_shape},
    {"SoftplusGrad SoftsignGrad(gradients: T, features: T) -> backprops: T", "T: {half, bfloat16, float, double}", same_shape},
    {"LeakyReluGrad(gradients: T, features: T) -> backprops: T", "alpha: float = 0.2; T: {half, bfloat16, float, double} = float", same_shape},
    // Many operands.
    {"AddN(inputs: N * T) -> sum: T", "N: int >= 1; T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, uint32, uint64, variant}", add_n_shape,
     op_flags::commutative},
    {"AccumulateNV2(inputs: N * T) -> sum: T",
     "N: int >= 1; T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, uint32, uint64}; shape: shape", add_n_shape, op_flags::commutative},
};
#endif

}  // namespace detail

// A named binary op: two operands of one dtype, or an operand and a number.
#define WEFT_BINARY_FUNCTION(NAME, OPNAME, RESULT)                                                                                                       \
  template <class T, int N, class U, int M> tensor<RESULT, detail::wider_rank(N, M)> NAME(const operand<T, N>& x, const operand<U, M>& y, op_name name = {}) { \
    static_assert(std::is_same_v<T, U>, "weft: " #NAME " needs two tensors of one dtype; convert one with weft::cast<T>(...)");                           \
    return tensor<RESULT, detail::wider_rank(N, M)>(detail::add_binary(OPNAME, OPNAME, detail::side_of(x), detail::side_of(y), name));                   \
  }                                                                                                                                                      \
  template <class T, int N> tensor<RESULT, N> NAME(const operand<T, N>& x, std::common_type_t<detail::scalar<T>> y, op_name name = {}) {                  \
    return tensor<RESULT, N>(detail::add_binary(OPNAME, OPNAME, detail::side_of(x), detail::side_of(y), name));                                          \
  }                                                                                                                                                      \
  template <class T, int N> tensor<RESULT, N> NAME(std::common_type_t<detail::scalar<T>> x, const operand<T, N>& y, op_name name = {}) {                  \
    return tensor<RESULT, N>(detail::add_binary(OPNAME, OPNAME, detail::side_of(x), detail::side_of(y), name));                                          \
  }
/// x + y with broadcasting (AddV2); strings are joined (Add).
WEFT_BINARY_FUNCTION(add, (std::is_same_v<T, std::string> ? "Add" : "AddV2"), T)
/// x - y with broadcasting (Sub).
WEFT_BINARY_FUNCTION(subtract, "Sub", T)
/// x * y with broadcasting (Mul).
WEFT_BINARY_FUNCTION(multiply, "Mul", T)
/// x / y with broadcasting; integers are divided towards zero (RealDiv, Div). A zero integer divisor fails the step with INVALID_ARGUMENT.
WEFT_BINARY_FUNCTION(divide, (detail::is_integer_v<T> ? "Div" : "RealDiv"), T)
/// The larger of x and y, with broadcasting (Maximum).
WEFT_BINARY_FUNCTION(maximum, "Maximum", T)
/// The smaller of x and y, with broadcasting (Minimum).
WEFT_BINARY_FUNCTION(minimum, "Minimum", T)
/// x / y rounded toward minus infinity, with broadcasting (FloorDiv). A zero integer divisor fails the step with INVALID_ARGUMENT.
WEFT_BINARY_FUNCTION(floor_div, "FloorDiv", T)
/// x / y rounded toward zero, with broadcasting (TruncateDiv). A zero integer divisor fails the step.
WEFT_BINARY_FUNCTION(truncate_div, "TruncateDiv", T)
/// The remainder with the sign of y, with broadcasting (FloorMod). A zero integer divisor fails the step with INVALID_ARGUMENT.
WEFT_BINARY_FUNCTION(floor_mod, "FloorMod", T)
/// The remainder with the sign of x, with broadcasting (TruncateMod). A zero integer divisor fails the step.
WEFT_BINARY_FUNCTION(truncate_mod, "TruncateMod", T)
/// x / y, 0 where y is 0, with broadcasting (DivNoNan).
WEFT_BINARY_FUNCTION(divide_no_nan, "DivNoNan", T)
/// x * y, 0 where y is 0 even if x is not finite, with broadcasting (MulNoNan).
WEFT_BINARY_FUNCTION(multiply_no_nan, "MulNoNan", T)
/// x / y, 0 where x is 0, with broadcasting (Xdivy).
WEFT_BINARY_FUNCTION(xdivy, "Xdivy", T)
/// x * log(y), 0 where x is 0, with broadcasting (Xlogy).
WEFT_BINARY_FUNCTION(xlogy, "Xlogy", T)
/// x to the power y, with broadcasting (Pow). A negative exponent of integers fails the step with INVALID_ARGUMENT.
WEFT_BINARY_FUNCTION(pow, "Pow", T)
/// The angle of the point (x, y), first argument y, with broadcasting (Atan2).
WEFT_BINARY_FUNCTION(atan2, "Atan2", T)
/// (x - y) squared, with broadcasting (SquaredDifference).
WEFT_BINARY_FUNCTION(squared_difference, "SquaredDifference", T)
/// The bits that both have, with broadcasting; integers only (BitwiseAnd).
WEFT_BINARY_FUNCTION(bitwise_and, "BitwiseAnd", T)
/// The bits that either has, with broadcasting; integers only (BitwiseOr).
WEFT_BINARY_FUNCTION(bitwise_or, "BitwiseOr", T)
/// The bits that one of both has, with broadcasting; integers only (BitwiseXor).
WEFT_BINARY_FUNCTION(bitwise_xor, "BitwiseXor", T)
/// x shifted to the left by y bits, y brought into the width of the dtype, with broadcasting (LeftShift).
WEFT_BINARY_FUNCTION(left_shift, "LeftShift", T)
/// x shifted to the right by y bits, keeping the sign, y brought into the width of the dtype, with broadcasting (RightShift).
WEFT_BINARY_FUNCTION(right_shift, "RightShift", T)
/// x and y, of bools, with broadcasting (LogicalAnd).
WEFT_BINARY_FUNCTION(logical_and, "LogicalAnd", T)
/// x or y, of bools, with broadcasting (LogicalOr).
WEFT_BINARY_FUNCTION(logical_or, "LogicalOr", T)
/// x == y elementwise, with broadcasting (Equal).
WEFT_BINARY_FUNCTION(equal, "Equal", bool)
/// x != y elementwise, with broadcasting (NotEqual).
WEFT_BINARY_FUNCTION(not_equal, "NotEqual", bool)
/// x < y elementwise, with broadcasting (Less).
WEFT_BINARY_FUNCTION(less, "Less", bool)
/// x <= y elementwise, with broadcasting (LessEqual).
WEFT_BINARY_FUNCTION(less_equal, "LessEqual", bool)
/// x > y elementwise, with broadcasting (Greater).
WEFT_BINARY_FUNCTION(greater, "Greater", bool)
/// x >= y elementwise, with broadcasting (GreaterEqual).
WEFT_BINARY_FUNCTION(greater_equal, "GreaterEqual", bool)
#undef WEFT_BINARY_FUNCTION

/// Whether x and y, of one shape, are at most `tolerance` apart (ApproximateEqual).
template <class T, int N, class U, int M>
tensor<bool, detail::wider_rank(N, M)> approximate_equal(const operand<T, N>& x, const operand<U, M>& y, float tolerance = 1e-5f, op_name name = {}) {
  static_assert(std::is_same_v<T, U>, "weft: approximate_equal needs two tensors of one dtype; convert one with weft::cast<T>(...)");
  static_assert(N == M || N == dynamic_rank || M == dynamic_rank, "weft: approximate_equal needs two tensors of one shape");
  return tensor<bool, detail::wider_rank(N, M)>(output{&detail::add_node("ApproximateEqual", {x.as_input(name.site), y.as_input(name.site)}, name, {{"tolerance", tolerance}}), 0});
}

// A named op of one operand.
#define WEFT_UNARY_FUNCTION(NAME, OPNAME, RESULT)                                               \
  template <class T, int N> tensor<RESULT, N> NAME(const operand<T, N>& x, op_name name = {}) { \
    return tensor<RESULT, N>(detail::add_unary(OPNAME, detail::side_of(x), name));              \
  }
/// -x (Neg).
WEFT_UNARY_FUNCTION(negative, "Neg", T)
/// x * x (Square).
WEFT_UNARY_FUNCTION(square, "Square", T)
/// |x| (Abs).
WEFT_UNARY_FUNCTION(abs, "Abs", T)
/// Square root (Sqrt).
WEFT_UNARY_FUNCTION(sqrt, "Sqrt", T)
/// e to the x (Exp).
WEFT_UNARY_FUNCTION(exp, "Exp", T)
/// Natural logarithm (Log).
WEFT_UNARY_FUNCTION(log, "Log", T)
/// Hyperbolic tangent (Tanh).
WEFT_UNARY_FUNCTION(tanh, "Tanh", T)
/// 1 / (1 + e to the -x) (Sigmoid).
WEFT_UNARY_FUNCTION(sigmoid, "Sigmoid", T)
/// 1 / x (Reciprocal).
WEFT_UNARY_FUNCTION(reciprocal, "Reciprocal", T)
/// 1, 0 or -1 with the sign of x (Sign).
WEFT_UNARY_FUNCTION(sign, "Sign", T)
/// 1 / sqrt(x) (Rsqrt).
WEFT_UNARY_FUNCTION(rsqrt, "Rsqrt", T)
/// e to the x, less 1 (Expm1).
WEFT_UNARY_FUNCTION(expm1, "Expm1", T)
/// log(1 + x) (Log1p).
WEFT_UNARY_FUNCTION(log1p, "Log1p", T)
/// Sine (Sin).
WEFT_UNARY_FUNCTION(sin, "Sin", T)
/// Cosine (Cos).
WEFT_UNARY_FUNCTION(cos, "Cos", T)
/// Tangent (Tan).
WEFT_UNARY_FUNCTION(tan, "Tan", T)
/// Inverse sine (Asin).
WEFT_UNARY_FUNCTION(asin, "Asin", T)
/// Inverse cosine (Acos).
WEFT_UNARY_FUNCTION(acos, "Acos", T)
/// Inverse tangent (Atan).
WEFT_UNARY_FUNCTION(atan, "Atan", T)
/// Hyperbolic sine (Sinh).
WEFT_UNARY_FUNCTION(sinh, "Sinh", T)
/// Hyperbolic cosine (Cosh).
WEFT_UNARY_FUNCTION(cosh, "Cosh", T)
/// Inverse hyperbolic sine (Asinh).
WEFT_UNARY_FUNCTION(asinh, "Asinh", T)
/// Inverse hyperbolic cosine (Acosh).
WEFT_UNARY_FUNCTION(acosh, "Acosh", T)
/// Inverse hyperbolic tangent (Atanh).
WEFT_UNARY_FUNCTION(atanh, "Atanh", T)
/// The error function (Erf).
WEFT_UNARY_FUNCTION(erf, "Erf", T)
/// 1 - erf(x), exact also for large x (Erfc).
WEFT_UNARY_FUNCTION(erfc, "Erfc", T)
/// The logarithm of |gamma(x)| (Lgamma).
WEFT_UNARY_FUNCTION(lgamma, "Lgamma", T)
/// The derivative of lgamma (Digamma).
WEFT_UNARY_FUNCTION(digamma, "Digamma", T)
/// The largest integer not above x (Floor).
WEFT_UNARY_FUNCTION(floor, "Floor", T)
/// The smallest integer not below x (Ceil).
WEFT_UNARY_FUNCTION(ceil, "Ceil", T)
/// The nearest integer, ties to the even one; floating dtypes only (Rint).
WEFT_UNARY_FUNCTION(rint, "Rint", T)
/// The nearest integer, ties to the even one (Round).
WEFT_UNARY_FUNCTION(round, "Round", T)
/// Whether x is not a number (IsNan).
WEFT_UNARY_FUNCTION(is_nan, "IsNan", bool)
/// Whether x is infinite (IsInf).
WEFT_UNARY_FUNCTION(is_inf, "IsInf", bool)
/// Whether x is neither infinite nor not a number (IsFinite).
WEFT_UNARY_FUNCTION(is_finite, "IsFinite", bool)
/// All bits of x turned; integers only (Invert).
WEFT_UNARY_FUNCTION(invert, "Invert", T)
/// not x, of bools (LogicalNot).
WEFT_UNARY_FUNCTION(logical_not, "LogicalNot", T)
/// x, 0 where it is negative (Relu).
WEFT_UNARY_FUNCTION(relu, "Relu", T)
/// x brought into [0, 6] (Relu6).
WEFT_UNARY_FUNCTION(relu6, "Relu6", T)
/// x, e to the x less 1 where it is negative (Elu).
WEFT_UNARY_FUNCTION(elu, "Elu", T)
/// The self-normalising form of elu (Selu).
WEFT_UNARY_FUNCTION(selu, "Selu", T)
/// log(1 + e to the x) (Softplus).
WEFT_UNARY_FUNCTION(softplus, "Softplus", T)
/// x / (1 + |x|) (Softsign).
WEFT_UNARY_FUNCTION(softsign, "Softsign", T)
#undef WEFT_UNARY_FUNCTION

/// x, alpha x where it is negative (LeakyRelu).
template <class T, int N> tensor<T, N> leaky_relu(const operand<T, N>& x, float alpha, op_name name = {}) {
  return tensor<T, N>(detail::add_unary("LeakyRelu", detail::side_of(x), name, {{"alpha", alpha}}));
}
/// x, 0.2 x where it is negative (LeakyRelu).
template <class T, int N> tensor<T, N> leaky_relu(const operand<T, N>& x, op_name name = {}) { return leaky_relu(x, 0.2f, name); }

/// The elements of x as dtype To (Cast): floats to integers are cut towards zero, numbers to bool are `!= 0`.
template <class To, class T, int N> tensor<To, N> cast(const operand<T, N>& x, op_name name = {}) {
  static_assert(is_dtype_v<To>, "weft: cast<T> needs a dtype: float, double, bool, weft::half, weft::bfloat16 or a <cstdint> integer such as std::int64_t");
  return tensor<To, N>(detail::add_unary("Cast", detail::side_of(x), name, {{"DstT", dtype_of<To>}}));
}

/// The sum of tensors of one shape (AddN). Throws INVALID_ARGUMENT when `parts` is empty.
template <class T, int N> tensor<T, N> add_n(const std::vector<tensor<T, N>>& parts, op_name name = {}) {
  if (parts.empty()) throw error(error_code::invalid_argument, "add_n: there is nothing to add", name.site);
  std::vector<output> inputs;
  for (const auto& part : parts) inputs.push_back(part.as_input(name.site));
  return tensor<T, N>(output{&detail::add_node("AddN", std::move(inputs), name), 0});
}
template <class T, int N> tensor<T, N> add_n(std::initializer_list<tensor<T, N>> parts, op_name name = {}) { return add_n(std::vector<tensor<T, N>>(parts), name); }

/// The sum of tensors of one shape (AccumulateNV2, which states the shape). Throws INVALID_ARGUMENT when `parts` is empty or two shapes differ.
template <class T, int N> tensor<T, N> accumulate_n(const std::vector<tensor<T, N>>& parts, op_name name = {}) {
  if (parts.empty()) throw error(error_code::invalid_argument, "accumulate_n: there is nothing to add", name.site);
  std::vector<output> inputs;
  partial_shape shape;
  for (const auto& part : parts) {
    inputs.push_back(part.as_input(name.site));
    shape = merge_shapes(shape, part.shape()).value_or(shape);
  }
  return tensor<T, N>(output{&detail::add_node("AccumulateNV2", std::move(inputs), name, {{"shape", std::move(shape)}}), 0});
}
template <class T, int N> tensor<T, N> accumulate_n(std::initializer_list<tensor<T, N>> parts, op_name name = {}) { return accumulate_n(std::vector<tensor<T, N>>(parts), name); }

}  // namespace weft

#endif
