#ifndef WEFT_OPS_MATH_HPP
#define WEFT_OPS_MATH_HPP
// Elementwise arithmetic, comparison, logic and casts.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <initializer_list>
#include <string>
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

#define WEFT_UNARY_FUNCTION(NAME, OPNAME)                                                    \
  template <class T, int N> tensor<T, N> NAME(const operand<T, N>& x, op_name name = {}) {   \
    return tensor<T, N>(detail::add_unary(OPNAME, detail::side_of(x), name));                \
  }
/// -x (Neg).
WEFT_UNARY_FUNCTION(negative, "Neg")
/// x * x (Square).
WEFT_UNARY_FUNCTION(square, "Square")
/// |x| (Abs).
WEFT_UNARY_FUNCTION(abs, "Abs")
/// Square root (Sqrt).
WEFT_UNARY_FUNCTION(sqrt, "Sqrt")
/// e to the x (Exp).
WEFT_UNARY_FUNCTION(exp, "Exp")
/// Natural logarithm (Log).
WEFT_UNARY_FUNCTION(log, "Log")
/// Hyperbolic tangent (Tanh).
WEFT_UNARY_FUNCTION(tanh, "Tanh")
/// 1 / (1 + e to the -x) (Sigmoid).
WEFT_UNARY_FUNCTION(sigmoid, "Sigmoid")
#undef WEFT_UNARY_FUNCTION

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

}  // namespace weft

#endif
