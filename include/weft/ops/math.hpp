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

#define WEFT_FLOATS "bfloat16, half, float, double"
#define WEFT_COMPLEX ", complex64, complex128"
#define WEFT_NUMBERS WEFT_FLOATS ", uint8, int8, uint16, int16, int32, uint32, uint64, int64"

inline op binary_op(const char* name, const char* types) {
  return op(name).input("x: T").input("y: T").output("z: T").attr(types).shapes(broadcast_shape);
}
inline op comparison_op(const char* name, const char* types) {
  return op(name).input("x: T").input("y: T").output("z: bool").attr(types).shapes(broadcast_shape);
}
inline op unary_op(const char* name, const char* types) {
  return op(name).input("x: T").output("y: T").attr(types).shapes(unchanged_shape);
}

inline void define_math_ops(op_registry& ops) {
  ops.add(binary_op("Add", "T: {" WEFT_FLOATS ", uint8, int8, int16, int32, int64" WEFT_COMPLEX ", string}"));
  ops.add(binary_op("AddV2", "T: {" WEFT_NUMBERS WEFT_COMPLEX "}").commutative());
  ops.add(binary_op("Sub", "T: {" WEFT_NUMBERS WEFT_COMPLEX "}"));
  ops.add(binary_op("Mul", "T: {" WEFT_NUMBERS WEFT_COMPLEX "}").commutative());
  ops.add(binary_op("Div", "T: {" WEFT_NUMBERS WEFT_COMPLEX "}"));
  ops.add(binary_op("RealDiv", "T: {" WEFT_NUMBERS WEFT_COMPLEX "}"));
  ops.add(binary_op("Maximum", "T: {" WEFT_NUMBERS "}"));
  ops.add(binary_op("Minimum", "T: {" WEFT_NUMBERS "}"));
  for (const char* name : {"Less", "LessEqual", "Greater", "GreaterEqual"}) ops.add(comparison_op(name, "T: {" WEFT_NUMBERS "}"));
  for (const char* name : {"Equal", "NotEqual"})
    ops.add(op(name).input("x: T").input("y: T").output("z: bool").attr("T: type").attr("incompatible_shape_error: bool = true").commutative().shapes([](shape_context& c) {
      // Without the error, shapes that cannot be broadcast compare as a single false.
      if (c.attr<bool>("incompatible_shape_error")) return broadcast_shape(c);
      if (!c.input(0).fully_known() || !c.input(1).fully_known()) return;
      c.set_output(0, broadcast_shapes(c.input(0), c.input(1)).value_or(partial_shape::of_rank(0)));
    }));
  ops.add(op("LogicalNot").input("x: bool").output("y: bool").shapes(unchanged_shape));
  for (const char* name : {"LogicalAnd", "LogicalOr"}) ops.add(op(name).input("x: bool").input("y: bool").output("z: bool").commutative().shapes(broadcast_shape));
  ops.add(unary_op("Neg", "T: {" WEFT_FLOATS ", int8, int16, int32, int64" WEFT_COMPLEX "}"));
  ops.add(unary_op("Square", "T: {" WEFT_FLOATS ", int8, int16, int32, int64, uint8, uint16, uint32, uint64" WEFT_COMPLEX "}"));
  ops.add(unary_op("Abs", "T: {" WEFT_FLOATS ", int8, int16, int32, int64}"));
  for (const char* name : {"Sqrt", "Exp", "Log", "Tanh", "Sigmoid"}) ops.add(unary_op(name, "T: {" WEFT_FLOATS WEFT_COMPLEX "}"));
  ops.add(op("Cast").input("x: SrcT").output("y: DstT").attr("SrcT: type").attr("DstT: type").attr("Truncate: bool = false").shapes(unchanged_shape));
  ops.add(op("AddN").input("inputs: N * T").output("sum: T").attr("N: int >= 1").attr("T: {" WEFT_NUMBERS WEFT_COMPLEX ", variant}").commutative().shapes([](shape_context& c) {
    partial_shape sum = c.input(0);
    for (int i = 1; i < c.input_count(); ++i) {
      const auto both = merge_shapes(sum, c.input(i));
      if (!both) c.fail("all inputs must have one shape, found " + sum.text() + " and " + c.input(i).text());
      sum = *both;
    }
    c.set_output(0, sum);
  }));
}
#undef WEFT_NUMBERS
#undef WEFT_COMPLEX
#undef WEFT_FLOATS

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
