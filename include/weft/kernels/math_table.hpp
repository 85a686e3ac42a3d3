#ifndef WEFT_KERNELS_MATH_TABLE_HPP
#define WEFT_KERNELS_MATH_TABLE_HPP
// The elementwise ops by name: their loops in each wide dtype, and what is peculiar to them.

#include <weft/core/config.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/loops.hpp>
#include <weft/kernels/math_functions.hpp>
#include <weft/kernels/real_functions.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/kernels/sine_loops.hpp>

#include <limits>
#include <string_view>
#include <type_traits>

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// The best instruction set for which a loop is compiled. Each costs every program compile time: only arithmetic on floats, and long formulas of doubles, get wide vectors.
template <class F, class T> inline constexpr instruction_set kernel_limit_v =
    std::is_same_v<T, float> && !F::plain ? loop_limit_v<F, T> : std::is_same_v<T, double> && F::heavy ? instruction_set::avx2 : instruction_set::portable;

/// The derivative of digamma of order a at b.
struct polygamma : element::plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return static_cast<T>(real::polygamma(static_cast<double>(a), static_cast<double>(b))); }
};

template <class F, class T, class R> struct tuned_binary_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* a, const T* b, R* out, std::size_t count, T last) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] = F::template apply<S>(a[i], b[i], last);
  }
};
template <class F, class T, class R> struct tuned_unary_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, R* out, std::size_t count, T last) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] = F::template apply<S>(in[i], last);
  }
};

/// out[i] = f(a[i], b[i]) with a last argument, which most functions do not have.
using pair_loop = void (*)(const void* a, const void* b, void* out, std::size_t count, double last);
/// out[i] = f(in[i]) with a last argument, which most functions do not have.
using single_loop = void (*)(const void* in, void* out, std::size_t count, double last);

/// Runs a body: what is compiled once only stands in the calling function itself.
template <class Body, instruction_set Highest, class... Arguments> WEFT_SIMD_INLINE void run_body(Arguments... arguments) {
  if constexpr (Highest == instruction_set::portable) Body::template run<instruction_set::portable>(arguments...);
  else dispatch<Body, Highest>(best_instruction_set(), arguments...);
}

/// The last argument of a tuned function in the type of the elements: the nearest there is, 0 for NaN.
template <class T> T tuned_value(double last) noexcept {
  if constexpr (std::is_integral_v<T>) {
    if (!(last > static_cast<double>(std::numeric_limits<T>::lowest()))) return last < 0 ? std::numeric_limits<T>::lowest() : T(0);
    if (last >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(last);
}

template <class F, class T> WEFT_SIMD_OPTIMIZED void pair_array(const void* a, const void* b, void* out, std::size_t count, [[maybe_unused]] double last) {
  using R = loop_result_t<F, T>;
  const auto *left = static_cast<const T*>(a), *right = static_cast<const T*>(b);
  if constexpr (F::tuned) run_body<tuned_binary_body<F, T, R>, kernel_limit_v<F, T>>(left, right, static_cast<R*>(out), count, tuned_value<T>(last));
  else run_body<binary_body<F, T, R>, kernel_limit_v<F, T>>(left, right, static_cast<R*>(out), count);
}
template <class F, class T> WEFT_SIMD_OPTIMIZED void single_array(const void* in, void* out, std::size_t count, [[maybe_unused]] double last) {
  using R = loop_result_t<F, T>;
  const auto* from = static_cast<const T*>(in);
  if constexpr (F::tuned) run_body<tuned_unary_body<F, T, R>, kernel_limit_v<F, T>>(from, static_cast<R*>(out), count, tuned_value<T>(last));
  else run_body<unary_body<F, T, R>, kernel_limit_v<F, T>>(from, static_cast<R*>(out), count);
}

/// What is peculiar to an op of two operands.
enum class pair_traits : unsigned {
  none = 0,
  gives_bool = 1,
  swapped = 2,         // a > b is b < a
  zero_fails = 4,      // an integer zero on the right is an error
  negative_fails = 8,  // a negative integer on the right is an error
  strings = 16,        // takes strings too
  same_shape = 32,     // does not broadcast
};
constexpr pair_traits operator|(pair_traits a, pair_traits b) { return static_cast<pair_traits>(static_cast<unsigned>(a) | static_cast<unsigned>(b)); }
constexpr bool operator&(pair_traits a, pair_traits b) { return (static_cast<unsigned>(a) & static_cast<unsigned>(b)) != 0; }

/// An op of two operands.
struct pair_op {
  std::string_view name;
  wide_functions<pair_loop> loops;
  pair_traits traits = pair_traits::none;
};

/// An op of one operand: loops in its wide dtypes, and a function of doubles that serves floating ones without a loop.
struct single_op {
  std::string_view name;
  wide_functions<single_loop> loops;
  real::function function = nullptr;
  bool gives_bool = false;
};

/// The op of two operands of this name, or nullptr. Bools are compared as the bytes they are.
const pair_op* find_pair_op(std::string_view name);
/// The op of one operand of this name, or nullptr.
const single_op* find_single_op(std::string_view name);

template <class F> constexpr wide_functions<pair_loop> floating_pairs() { return {pair_array<F, float>, pair_array<F, double>, nullptr, nullptr, nullptr}; }
template <class F> constexpr wide_functions<pair_loop> integer_pairs() {
  using integer = std::conditional_t<F::wraps, std::uint64_t, std::int64_t>;
  return {nullptr, nullptr, pair_array<F, integer>, pair_array<F, std::uint64_t>, nullptr};
}
template <class F> constexpr wide_functions<pair_loop> number_pairs() {
  const auto floats = floating_pairs<F>(), integers = integer_pairs<F>();
  return {floats.float32, floats.float64, integers.int64, integers.uint64, nullptr};
}
template <class F> constexpr wide_functions<single_loop> float_single() { return {single_array<F, float>, nullptr, nullptr, nullptr, nullptr}; }
template <class F> constexpr wide_functions<single_loop> floating_singles() { return {single_array<F, float>, single_array<F, double>, nullptr, nullptr, nullptr}; }
template <class F> constexpr wide_functions<single_loop> number_singles() {
  using integer = std::conditional_t<F::wraps, std::uint64_t, std::int64_t>;
  return {single_array<F, float>, single_array<F, double>, single_array<F, integer>, single_array<F, std::uint64_t>, nullptr};
}

WEFT_DECL const pair_op* find_pair_op(std::string_view name) {
  using namespace element;
  using traits = pair_traits;
  static constexpr auto less_loops = number_pairs<less>(), at_most_loops = number_pairs<less_equal>(), add_loops = number_pairs<add>(), divide_loops = number_pairs<div>(),
                        remainder_loops = number_pairs<truncate_mod>(), reciprocal_loops = floating_pairs<reciprocal_grad>();
  static constexpr wide_functions<pair_loop> equal_loops = {pair_array<equal, float>, pair_array<equal, double>, pair_array<equal, std::uint64_t>, pair_array<equal, std::uint64_t>,
                                                            pair_array<equal, std::uint8_t>};
  static constexpr wide_functions<pair_loop> not_equal_loops = {pair_array<not_equal, float>, pair_array<not_equal, double>, pair_array<not_equal, std::uint64_t>,
                                                                pair_array<not_equal, std::uint64_t>, pair_array<not_equal, std::uint8_t>};
  static constexpr pair_op table[] = {
      {"AddV2", add_loops, traits::strings},
      {"Add", add_loops, traits::strings},
      {"Sub", number_pairs<sub>()},
      {"Mul", number_pairs<mul>()},
      {"RealDiv", divide_loops, traits::zero_fails},
      {"Div", divide_loops, traits::zero_fails},
      {"TruncateDiv", number_pairs<truncate_div>(), traits::zero_fails},
      {"FloorDiv", number_pairs<floor_div>(), traits::zero_fails},
      {"Mod", remainder_loops, traits::zero_fails},
      {"TruncateMod", remainder_loops, traits::zero_fails},
      {"FloorMod", number_pairs<floor_mod>(), traits::zero_fails},
      {"DivNoNan", floating_pairs<div_no_nan>()},
      {"MulNoNan", floating_pairs<mul_no_nan>()},
      {"Xdivy", floating_pairs<xdivy>()},
      {"Xlogy", floating_pairs<xlogy>()},
      {"Pow", number_pairs<element::pow>(), traits::negative_fails},
      {"Atan2", floating_pairs<element::atan2>()},
      {"Polygamma", floating_pairs<polygamma>()},
      {"Maximum", number_pairs<element::maximum>()},
      {"Minimum", number_pairs<element::minimum>()},
      {"SquaredDifference", number_pairs<squared_difference>()},
      {"Less", less_loops, traits::gives_bool},
      {"LessEqual", at_most_loops, traits::gives_bool},
      {"Greater", less_loops, traits::gives_bool | traits::swapped},
      {"GreaterEqual", at_most_loops, traits::gives_bool | traits::swapped},
      {"Equal", equal_loops, traits::gives_bool | traits::strings},
      {"NotEqual", not_equal_loops, traits::gives_bool | traits::strings},
      {"ApproximateEqual", number_pairs<approximate_equal>(), traits::gives_bool | traits::same_shape},
      {"LogicalAnd", {nullptr, nullptr, nullptr, nullptr, pair_array<logical_and, bool>}, traits::gives_bool},
      {"LogicalOr", {nullptr, nullptr, nullptr, nullptr, pair_array<logical_or, bool>}, traits::gives_bool},
      {"BitwiseAnd", integer_pairs<bit_and>()},
      {"BitwiseOr", integer_pairs<bit_or>()},
      {"BitwiseXor", integer_pairs<bit_xor>()},
      {"LeftShift", integer_pairs<shift_left>()},
      {"RightShift", integer_pairs<shift_right>()},
      {"ReluGrad", number_pairs<relu_grad>(), traits::same_shape},
      {"Relu6Grad", number_pairs<relu6_grad>(), traits::same_shape},
      {"LeakyReluGrad", floating_pairs<leaky_relu_grad>(), traits::same_shape},
      {"EluGrad", floating_pairs<elu_grad>(), traits::same_shape},
      {"SeluGrad", floating_pairs<selu_grad>(), traits::same_shape},
      {"SoftplusGrad", floating_pairs<softplus_grad>(), traits::same_shape},
      {"SoftsignGrad", floating_pairs<softsign_grad>(), traits::same_shape},
      {"TanhGrad", floating_pairs<tanh_grad>(), traits::same_shape},
      {"SigmoidGrad", floating_pairs<sigmoid_grad>(), traits::same_shape},
      {"SqrtGrad", floating_pairs<sqrt_grad>(), traits::same_shape},
      {"RsqrtGrad", floating_pairs<rsqrt_grad>(), traits::same_shape},
      {"ReciprocalGrad", reciprocal_loops, traits::same_shape},
      {"InvGrad", reciprocal_loops, traits::same_shape},
  };
  for (const pair_op& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

WEFT_DECL const single_op* find_single_op(std::string_view name) {
  using namespace element;
  using i64 = std::int64_t;
  using u64 = std::uint64_t;
  static constexpr wide_functions<single_loop> none = {nullptr, nullptr, nullptr, nullptr, nullptr};
  static constexpr auto rint_loops = floating_singles<element::rint>(), reciprocal_loops = floating_singles<reciprocal>();
  static constexpr single_op table[] = {
      {"Neg", number_singles<neg>()},
      {"Abs", {single_array<element::abs, float>, single_array<element::abs, double>, single_array<element::abs, i64>, nullptr, nullptr}},
      {"Square", number_singles<square>()},
      {"Sign", {single_array<sign, float>, single_array<sign, double>, single_array<sign, i64>, nullptr, nullptr}},
      {"Reciprocal", reciprocal_loops},
      {"Inv", reciprocal_loops},
      {"Sqrt", floating_singles<element::sqrt>()},
      {"Rsqrt", floating_singles<rsqrt>()},
      {"Exp", floating_singles<element::exp>()},
      {"Expm1", float_single<element::expm1>(), real::expm1},
      {"Log", floating_singles<element::log>()},
      {"Log1p", float_single<element::log1p>(), real::log1p},
      {"Sin", float_single<element::sin>(), real::sin},
      {"Cos", float_single<element::cos>(), real::cos},
      {"Tan", none, real::tan},
      {"Asin", none, real::asin},
      {"Acos", none, real::acos},
      {"Atan", none, real::atan},
      {"Sinh", none, real::sinh},
      {"Cosh", none, real::cosh},
      {"Tanh", floating_singles<element::tanh>()},
      {"Asinh", none, real::asinh},
      {"Acosh", none, real::acosh},
      {"Atanh", none, real::atanh},
      {"Sigmoid", floating_singles<sigmoid>()},
      {"Erf", float_single<element::erf>(), real::erf},
      {"Erfc", none, real::erfc},
      {"Lgamma", none, real::lgamma},
      {"Digamma", none, real::digamma},
      {"Floor", floating_singles<element::floor>()},
      {"Ceil", floating_singles<element::ceil>()},
      {"Rint", rint_loops},
      {"Round", {rint_loops.float32, rint_loops.float64, single_array<element::rint, i64>, nullptr, nullptr}},
      {"IsNan", floating_singles<nan_test>(), nullptr, true},
      {"IsInf", floating_singles<infinity_test>(), nullptr, true},
      {"IsFinite", floating_singles<finite_test>(), nullptr, true},
      {"Invert", {nullptr, nullptr, single_array<bit_not, u64>, single_array<bit_not, u64>, nullptr}},
      {"LogicalNot", {nullptr, nullptr, nullptr, nullptr, single_array<logical_not, bool>}},
      {"Relu", number_singles<relu>()},
      {"Relu6", number_singles<relu6>()},
      {"LeakyRelu", floating_singles<leaky_relu>()},
      {"Elu", float_single<element::elu>(), real::elu},
      {"Selu", float_single<element::selu>(), real::selu},
      {"Softplus", float_single<element::softplus>(), real::softplus},
      {"Softsign", floating_singles<softsign>()},
  };
  for (const single_op& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
