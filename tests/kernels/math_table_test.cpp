#include <weft/kernels/math_table.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

using weft::bfloat16;
using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

bool close(double found, double wanted, double tolerance) {
  if (std::isnan(wanted)) return std::isnan(found);
  return found == wanted || std::fabs(found - wanted) <= tolerance * std::fmax(std::fabs(wanted), 1e-3);
}

template <class T> void check_real(kernel_bench& bench, const char* op, double in, double wanted, double tolerance) {
  const tensor_value out = bench(op, {tensor_value::scalar(T(static_cast<float>(in)))});
  CAPTURE(op);
  CAPTURE(in);
  CHECK(close(static_cast<double>(static_cast<float>(out.item<T>())), wanted, tolerance));
}
template <> void check_real<double>(kernel_bench& bench, const char* op, double in, double wanted, double tolerance) {
  CAPTURE(op);
  CAPTURE(in);
  CHECK(close(bench(op, {tensor_value::scalar(in)}).item<double>(), wanted, tolerance));
}

// Arguments are exact in every floating dtype; results from tables.
constexpr struct {
  const char* op;
  double in, out;
} real_cases[] = {
    {"Sin", 1, 0.8414709848078965}, {"Cos", 1, 0.5403023058681398}, {"Tan", 1, 1.5574077246549023}, {"Asin", 0.5, 0.5235987755982989}, {"Acos", 0.5, 1.0471975511965979},
    {"Atan", 1, 0.7853981633974483}, {"Sinh", 1, 1.1752011936438014}, {"Cosh", 1, 1.5430806348152437}, {"Tanh", 0.5, 0.46211715726000975}, {"Asinh", 1, 0.881373587019543},
    {"Acosh", 2, 1.3169578969248166}, {"Atanh", 0.5, 0.5493061443340549}, {"Erf", 0.5, 0.5204998778130465}, {"Erfc", 0.5, 0.4795001221869535}, {"Lgamma", 0.5, 0.5723649429247001},
    {"Lgamma", -1.5, 0.8600470153764810}, {"Digamma", 1, -0.5772156649015329}, {"Digamma", 0.5, -1.9635100260214235}, {"Digamma", -1.5, 0.7031566406452432},
    {"Digamma", 100, 4.600161852738088}, {"Exp", 1, 2.718281828459045}, {"Expm1", 1, 1.718281828459045}, {"Log", 2, 0.6931471805599453}, {"Log1p", 1, 0.6931471805599453},
    {"Sqrt", 2, 1.4142135623730951}, {"Rsqrt", 4, 0.5}, {"Reciprocal", -4, -0.25}, {"Inv", 8, 0.125}, {"Sigmoid", 2, 0.8807970779778823}, {"Softplus", 1, 1.3132616875182228},
    {"Softplus", -20, 2.0611536203143e-9}, {"Softsign", -3, -0.75}, {"Elu", -1, -0.6321205588285577}, {"Elu", 2, 2}, {"Selu", -1, -1.1113307378125626}, {"Selu", 2, 2.101401974710961},
    {"Relu", -2, 0}, {"Relu", 2, 2}, {"Relu6", 7, 6}, {"Relu6", -7, 0}, {"LeakyRelu", -1, -0.2}, {"LeakyRelu", 3, 3}, {"Floor", -1.5, -2}, {"Ceil", -1.5, -1}, {"Rint", 2.5, 2},
    {"Round", -2.5, -2}, {"Round", 1.5, 2}, {"Sign", -7, -1}, {"Sign", 0, 0}, {"Square", -3, 9}, {"Neg", 3, -3}, {"Abs", -3, 3},
    // What is not a number, and what is infinite.
    {"Sign", not_a_number, not_a_number}, {"Relu", not_a_number, not_a_number}, {"Relu6", not_a_number, not_a_number}, {"Elu", not_a_number, not_a_number}, {"Relu6", infinity, 6}, {"Elu", -infinity, -1}, {"Softplus", -infinity, 0},
    {"Softplus", infinity, infinity}, {"Lgamma", -infinity, infinity}, {"Lgamma", 0, infinity}, {"Lgamma", -3, infinity}, {"Digamma", 0, not_a_number}, {"Digamma", -3, not_a_number}, {"Digamma", -infinity, not_a_number},
    {"Digamma", infinity, infinity}, {"Log1p", -1, -infinity}, {"Log1p", -2, not_a_number}, {"Log1p", infinity, infinity}, {"Expm1", -infinity, -1}, {"Expm1", infinity, infinity}, {"Rsqrt", 0, infinity},
    {"Acosh", 0.5, not_a_number}, {"Atanh", 1, infinity}, {"Asin", 2, not_a_number}, {"Sin", infinity, not_a_number}, {"Erf", infinity, 1}, {"Erfc", -infinity, 2}, {"Floor", infinity, infinity}, {"Rint", not_a_number, not_a_number},
};
}  // namespace

TEST_CASE("functions of one operand: values in every floating dtype") {
  kernel_bench bench;
  for (const auto& c : real_cases) {
    check_real<float>(bench, c.op, c.in, c.out, 1e-6);
    check_real<double>(bench, c.op, c.in, c.out, 2e-8);  // LeakyRelu's alpha is a float
    check_real<half>(bench, c.op, c.in, c.out, 1e-3);
    check_real<bfloat16>(bench, c.op, c.in, c.out, 8e-3);
  }
}

TEST_CASE("two operands: values of floats") {
  kernel_bench bench;
  constexpr struct {
    const char* op;
    double a, b, out;
  } cases[] = {
      {"FloorDiv", -7, 2, -4}, {"FloorDiv", 7, 2, 3}, {"FloorDiv", 1, 0, infinity}, {"TruncateDiv", -7, 2, -3}, {"TruncateDiv", 7, -2, -3}, {"Mod", -7, 3, -1}, {"TruncateMod", 7, -3, 1},
      {"FloorMod", -7, 3, 2}, {"FloorMod", 7, -3, -2}, {"FloorMod", 6, 3, 0}, {"FloorMod", 1, 0, not_a_number}, {"DivNoNan", 3, 2, 1.5}, {"DivNoNan", not_a_number, 0, 0}, {"DivNoNan", infinity, 0, 0},
      {"MulNoNan", 3, 2, 6}, {"MulNoNan", not_a_number, 0, 0}, {"MulNoNan", 0, not_a_number, not_a_number}, {"Xdivy", 0, not_a_number, 0}, {"Xdivy", 3, 2, 1.5}, {"Xlogy", 0, not_a_number, 0}, {"Xlogy", 2, 1, 0},
      {"Xlogy", 3, 0, -infinity}, {"Pow", 2, 10, 1024}, {"Pow", 2, -1, 0.5}, {"Pow", 0, 0, 1}, {"Pow", -8, 3, -512}, {"Pow", not_a_number, 0, 1}, {"Atan2", 1, -1, 2.356194490192345},
      {"Atan2", -0.0, -1, -3.141592653589793}, {"SquaredDifference", 1, 4, 9},
      // Gradients: of the result first, or the result and its gradient.
      {"ReluGrad", 3, -1, 0}, {"ReluGrad", 3, 2, 3}, {"ReluGrad", 3, 0, 0}, {"ReluGrad", infinity, -1, not_a_number}, {"ReluGrad", 1, not_a_number, 0}, {"Relu6Grad", 3, 5, 3}, {"Relu6Grad", 3, 6, 0},
      {"Relu6Grad", 3, 0, 0}, {"LeakyReluGrad", 10, -1, 2}, {"LeakyReluGrad", 10, 1, 10}, {"LeakyReluGrad", 10, 0, 2}, {"EluGrad", 4, -0.5, 2}, {"EluGrad", 4, 2, 4},
      {"SeluGrad", 2, 1, 2.101401974710961}, {"SeluGrad", 2, -1, 1.516198681694754}, {"SoftplusGrad", 4, 0, 2}, {"SoftplusGrad", 1, -infinity, 0}, {"SoftsignGrad", 8, -1, 2},
      {"SoftsignGrad", 1, infinity, 0}, {"TanhGrad", 0.5, 4, 3}, {"SigmoidGrad", 0.25, 16, 3}, {"SqrtGrad", 2, 8, 2}, {"RsqrtGrad", 2, 3, -12}, {"ReciprocalGrad", 3, 2, -18}, {"InvGrad", 3, 2, -18},
  };
  for (const auto& c : cases) {
    CAPTURE(c.op);
    CAPTURE(c.a);
    CAPTURE(c.b);
    CHECK(close(bench(c.op, {tensor_value::scalar(c.a), tensor_value::scalar(c.b)}).item<double>(), c.out, 2e-8));
    const auto a = static_cast<float>(c.a), b = static_cast<float>(c.b);
    CHECK(close(static_cast<double>(bench(c.op, {tensor_value::scalar(a), tensor_value::scalar(b)}).item<float>()), c.out, 1e-6));
    CHECK(close(static_cast<double>(static_cast<float>(bench(c.op, {tensor_value::scalar(half(a)), tensor_value::scalar(half(b))}).item<half>())), c.out, 1e-3));
  }
}

TEST_CASE("polygamma: values, poles, and arguments far below zero") {
  kernel_bench bench;
  constexpr struct {
    double n, x, out;
  } cases[] = {{0, 1, -0.5772156649015329}, {1, 1, 1.6449340668482264}, {1, 0.5, 4.934802200544679}, {2, 1, -2.4041138063191885}, {3, 1, 6.493939402266829}, {1, -0.5, 8.934802200544679}, {1, -1.5, 9.379246644989123},
               {2, 0.5, -16.8287966442343199}, {2, -0.5, -0.8287966442343199}, {1, 100, 0.010050166663333571}, {1, 0, infinity}, {1, -3, infinity}, {2, 0, not_a_number}, {0.5, 1, not_a_number}, {-1, 1, not_a_number},
               {1, -1e9 - 0.5, 9.869604401089358 - 1e-9}, {1, infinity, 0}, {not_a_number, 1, not_a_number}, {1, not_a_number, not_a_number}};
  for (const auto& c : cases) {
    CAPTURE(c.n);
    CAPTURE(c.x);
    CHECK(close(bench("Polygamma", {tensor_value::scalar(c.n), tensor_value::scalar(c.x)}).item<double>(), c.out, 1e-12));
  }
  CHECK(close(static_cast<double>(bench("Polygamma", {tensor_value::scalar(2.f), tensor_value::scalar(1.f)}).item<float>()), -2.4041138063191885, 1e-6));
}

TEST_CASE("two operands: values of integers, which wrap") {
  kernel_bench bench;
  constexpr std::int64_t low8 = -128, low32 = std::numeric_limits<std::int32_t>::min(), high32 = std::numeric_limits<std::int32_t>::max();
  const struct {
    const char* op;
    std::int64_t a, b, in32, in8;
  } cases[] = {
      {"FloorDiv", -7, 2, -4, -4}, {"FloorDiv", 7, -2, -4, -4}, {"TruncateDiv", -7, 2, -3, -3}, {"Mod", -7, 3, -1, -1}, {"FloorMod", -7, 3, 2, 2}, {"TruncateMod", 7, -3, 1, 1},
      {"Pow", 2, 6, 64, 64}, {"Pow", -3, 3, -27, -27}, {"Pow", 0, 0, 1, 1}, {"Pow", 3, 40, 689956897, 33}, {"SquaredDifference", 100, 1, 9801, 73}, {"BitwiseAnd", 12, 10, 8, 8},
      {"BitwiseOr", 12, 10, 14, 14}, {"BitwiseXor", 12, -1, -13, -13}, {"LeftShift", 1, 6, 64, 64}, {"LeftShift", 1, -5, 1, 1}, {"LeftShift", 1, 100, low32, low8}, {"RightShift", -8, 1, -4, -4},
      {"RightShift", -8, 100, -1, -1}, {"RightShift", 8, -1, 8, 8}, {"Maximum", -3, 2, 2, 2}, {"ReluGrad", 5, 2, 5, 5}, {"ReluGrad", 5, -2, 0, 0}, {"Relu6Grad", 5, 7, 0, 0},
  };
  for (const auto& c : cases) {
    CAPTURE(c.op);
    CAPTURE(c.a);
    CAPTURE(c.b);
    const auto a = static_cast<std::int32_t>(c.a), b = static_cast<std::int32_t>(c.b);
    CHECK(bench(c.op, {tensor_value::scalar(a), tensor_value::scalar(b)}).item<std::int32_t>() == c.in32);
    const std::string op = c.op;
    if (op == "Mod" || op == "TruncateMod" || op == "SquaredDifference") continue;  // not defined for int8
    CHECK(bench(c.op, {tensor_value::scalar(static_cast<std::int8_t>(c.a)), tensor_value::scalar(static_cast<std::int8_t>(c.b))}).item<std::int8_t>() == c.in8);
  }
  const auto lowest = tensor_value::scalar(static_cast<std::int32_t>(low32)), minus = tensor_value::scalar(std::int32_t{-1});
  for (const char* op : {"FloorDiv", "TruncateDiv", "Div"}) CHECK(bench(op, {lowest, minus}).item<std::int32_t>() == low32);
  for (const char* op : {"Mod", "FloorMod", "TruncateMod"}) CHECK(bench(op, {lowest, minus}).item<std::int32_t>() == 0);
  CHECK(bench("FloorDiv", {tensor_value::scalar(static_cast<std::int32_t>(high32)), lowest}).item<std::int32_t>() == -1);
  CHECK(bench("RightShift", {tensor_value::scalar(std::uint8_t{200}), tensor_value::scalar(std::uint8_t{1})}).item<std::uint8_t>() == 100);
  CHECK(bench("RightShift", {tensor_value::scalar(~std::uint64_t{0}), tensor_value::scalar(~std::uint64_t{0})}).item<std::uint64_t>() == 1);
  CHECK(elements<std::uint16_t>(bench("Invert", {make<std::uint16_t>({2}, {0, 65535})})) == std::vector<std::uint16_t>{65535, 0});
  CHECK(elements<std::int8_t>(bench("Round", {make<std::int8_t>({2}, {-128, 7})})) == std::vector<std::int8_t>{-128, 7});
  CHECK(elements<std::int64_t>(bench("Sign", {make<std::int64_t>({3}, {std::numeric_limits<std::int64_t>::min(), 0, 9})})) == std::vector<std::int64_t>{-1, 0, 1});
  CHECK(elements<std::uint8_t>(bench("Relu6", {make<std::uint8_t>({2}, {255, 5})})) == std::vector<std::uint8_t>{6, 5});
}

TEST_CASE("integers that an op refuses") {
  kernel_bench bench;
  const auto one = make<std::int64_t>({2}, {1, 2}), zero = make<std::int64_t>({2}, {1, 0}), minus = make<std::int64_t>({2}, {1, -1});
  for (const char* op : {"Div", "FloorDiv", "Mod", "FloorMod"}) CHECK(bench.error(op, {one, zero}) == "INVALID_ARGUMENT: integer division by zero");
  for (const char* op : {"TruncateDiv", "TruncateMod"}) CHECK(bench.error(op, {one, zero}) == "INTERNAL: integer division by zero");
  CHECK(bench.error("Pow", {one, minus}) == "INVALID_ARGUMENT: an integer to the power of a negative integer is not an integer");
  CHECK(bench("Pow", {tensor_value(dtype::int64, {0}), tensor_value::scalar(std::int64_t{-1})}).shape() == shape{0});
  CHECK(bench("FloorMod", {tensor_value(dtype::int64, {0, 2}), zero}).shape() == shape{0, 2});
}

TEST_CASE("what is a number: bools of every floating dtype") {
  kernel_bench bench;
  const auto x = make<float>({4}, {1, static_cast<float>(not_a_number), static_cast<float>(infinity), -static_cast<float>(infinity)});
  CHECK(elements<bool>(bench("IsNan", {x})) == std::vector<bool>{false, true, false, false});
  CHECK(elements<bool>(bench("IsInf", {x})) == std::vector<bool>{false, false, true, true});
  CHECK(elements<bool>(bench("IsFinite", {x})) == std::vector<bool>{true, false, false, false});
  CHECK(elements<bool>(bench("IsInf", {make<half>({2}, {half(1e9f), half(1.f)})})) == std::vector<bool>{true, false});
  CHECK(elements<bool>(bench("IsFinite", {make<double>({2}, {not_a_number, 1e308})})) == std::vector<bool>{false, true});
}

TEST_CASE("approximate equality, alpha: attributes count") {
  kernel_bench bench;
  const auto x = make<float>({4}, {1, 1, static_cast<float>(infinity), static_cast<float>(not_a_number)}), y = make<float>({4}, {1.5f, 1.000001f, static_cast<float>(infinity), static_cast<float>(not_a_number)});
  CHECK(elements<bool>(bench("ApproximateEqual", {x, y})) == std::vector<bool>{false, true, false, false});
  CHECK(elements<bool>(bench("ApproximateEqual", {x, y}, {{"tolerance", 0.5f}})) == std::vector<bool>{true, true, false, false});
  const auto low = make<std::int8_t>({2}, {-128, 3}), high = make<std::int8_t>({2}, {127, 3});
  CHECK(elements<bool>(bench("ApproximateEqual", {low, high})) == std::vector<bool>{false, true});
  CHECK(elements<bool>(bench("ApproximateEqual", {low, high}, {{"tolerance", 255.f}})) == std::vector<bool>{true, true});
  CHECK(bench.error("ApproximateEqual", {x, tensor_value::scalar(1.f)}) == "INVALID_ARGUMENT: shapes [4] and [] differ");
  CHECK(bench.error("ReluGrad", {x, make<float>({2}, {1, 2})}) == "INVALID_ARGUMENT: shapes [4] and [2] differ");
  CHECK(elements<float>(bench("LeakyRelu", {make<float>({2}, {-2, 2})}, {{"alpha", 0.5f}})) == std::vector<float>{-1, 2});
  CHECK(elements<float>(bench("LeakyReluGrad", {make<float>({2}, {8, 8}), make<float>({2}, {-2, 2})}, {{"alpha", 0.25f}})) == std::vector<float>{2, 8});
}

TEST_CASE("equality without an error: shapes that do not fit give one answer") {
  kernel_bench bench;
  const auto x = make<float>({2}, {1, 2}), y = make<float>({3}, {1, 2, 3});
  const weft::attr_map lenient{{"incompatible_shape_error", false}};
  const auto same = bench("Equal", {x, y}, lenient), other = bench("NotEqual", {x, y}, lenient);
  CHECK(same.shape() == shape{});
  CHECK(same.item<bool>() == false);
  CHECK(other.item<bool>() == true);
  CHECK(elements<bool>(bench("Equal", {x, x}, lenient)) == std::vector<bool>{true, true});
  CHECK(bench.error("Equal", {x, y}) == "INVALID_ARGUMENT: shapes [2] and [3] cannot be broadcast");
}

TEST_CASE("accumulate: adds like AddN") {
  kernel_bench bench;
  const auto x = make<float>({2}, {1, 2}), y = make<float>({2}, {10, 20});
  CHECK(elements<float>(bench("AccumulateNV2", {x, y, y}, {{"shape", weft::partial_shape{2}}})) == std::vector<float>{21, 42});
}

TEST_CASE("elementwise: any op on operands of random dtypes and shapes gives a result or an error") {
  kernel_bench bench;
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  const auto words = [](std::string text) {
    std::vector<std::string> out;
    for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
      end = std::min(text.find(' ', at), text.size());
      out.push_back(text.substr(at, end - at));
    }
    return out;
  };
  const auto unary = words(
      "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Digamma Elu Erf Erfc Exp Expm1 Floor Inv Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p LogicalNot "
      "Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Tan Tanh");
  const auto binary = words(
      "Add AddV2 ApproximateEqual Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual LeftShift Less LessEqual LogicalAnd "
      "LogicalOr Maximum Minimum Mod Mul MulNoNan NotEqual Pow RealDiv RightShift SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlogy ReluGrad Relu6Grad "
      "LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad TanhGrad SigmoidGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad");
  const auto value = [&](dtype type, const shape& s) {
    tensor_value out(type, s);
    std::byte* bytes = out.mutable_raw_data();
    for (std::size_t i = 0; i < out.bytes(); ++i) bytes[i] = static_cast<std::byte>(type == dtype::boolean ? below(2) : below(4) == 0 ? 0 : below(256));
    return out;
  };
  const auto random_shape = [&] {
    std::vector<std::int64_t> sizes(below(4));
    for (auto& size : sizes) size = static_cast<std::int64_t>(below(3) == 0 ? 1 : below(4));
    return shape(sizes);
  };
  constexpr dtype types[] = {dtype::float32, dtype::float64, dtype::half, dtype::bfloat16, dtype::int8, dtype::int16, dtype::int32, dtype::int64, dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64, dtype::boolean};
  for (int round = 0; round < 3000; ++round) {
    const bool two = below(2) == 0;
    const std::string& op = two ? binary[below(binary.size())] : unary[below(unary.size())];
    const dtype type = types[below(13)];
    std::vector<tensor_value> in{value(type, random_shape())};
    if (two) in.push_back(value(type, below(2) == 0 ? in[0].shape() : random_shape()));
    try {
      const tensor_value out = bench(op, std::move(in));
      CHECK(out.elements() >= 0);
    } catch (const weft::error& e) {
      CHECK((e.code() == weft::error_code::invalid_argument || e.code() == weft::error_code::unimplemented || e.code() == weft::error_code::internal));
    }
  }
}
