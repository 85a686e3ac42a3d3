#include <weft/ops/math.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::constant;
using weft::dtype;
using weft::graph;
using weft::node;
using weft::partial_shape;
using weft::placeholder;
using weft::tensor;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
  tensor<float, 1> x = placeholder<float>({3}, "x"), y = placeholder<float>({3}, "y");
};
template <class T, int N> std::string op_of(const tensor<T, N>& t) { return t.raw().from->op(); }
}  // namespace

TEST_CASE("operators: ops and names are TensorFlow's") {
  fixture t;
  const auto sum = t.x + t.y;
  const auto difference = t.x - t.y;
  const auto product = t.x * t.y;
  const auto quotient = t.x / t.y;
  const auto negated = -t.x;
  const auto smaller = t.x < t.y;
  const auto larger = t.x > t.y;
  const auto at_most = t.x <= t.y;
  const auto at_least = t.x >= t.y;
  const auto six = constant({6}, "six");
  const auto four = constant({4}, "four");
  const auto whole = six / four;
  const auto a = constant("a", "a");
  const auto b = constant("b", "b");
  const auto joined = a + b;
  CHECK(to_text(t.g) ==
        "x = Placeholder()  float[3]  {shape=[3]}\n"
        "y = Placeholder()  float[3]  {shape=[3]}\n"
        "add = AddV2(x, y)  float[3]\n"
        "sub = Sub(x, y)  float[3]\n"
        "mul = Mul(x, y)  float[3]\n"
        "truediv = RealDiv(x, y)  float[3]\n"
        "Neg = Neg(x)  float[3]\n"
        "Less = Less(x, y)  bool[3]\n"
        "Greater = Greater(x, y)  bool[3]\n"
        "LessEqual = LessEqual(x, y)  bool[3]\n"
        "GreaterEqual = GreaterEqual(x, y)  bool[3]\n"
        "six = Const()  int32[1]  {value=[6]}\n"
        "four = Const()  int32[1]  {value=[4]}\n"
        "div = Div(six, four)  int32[1]\n"
        "a = Const()  string[]  {value=\"a\"}\n"
        "b = Const()  string[]  {value=\"b\"}\n"
        "add_1 = Add(a, b)  string[]\n");
}

TEST_CASE("operators: a number becomes a constant below the op") {
  fixture t;
  const auto scaled = t.x * 2.f;
  const auto flipped = 1.f - scaled;
  CHECK(to_text(t.g) ==
        "x = Placeholder()  float[3]  {shape=[3]}\n"
        "y = Placeholder()  float[3]  {shape=[3]}\n"
        "mul/y = Const()  float[]  {value=2}\n"
        "mul = Mul(x, mul/y)  float[3]\n"
        "sub/x = Const()  float[]  {value=1}\n"
        "sub = Sub(sub/x, mul)  float[3]\n");
}

TEST_CASE("operators: shapes broadcast, or the error names both") {
  fixture t;
  CHECK((placeholder<float>({2, 1}) + t.x).shape() == partial_shape{2, 3});
  CHECK((placeholder<float>() + t.x).shape() == partial_shape());
  const auto z = placeholder<float>({4}, "z");
  CHECK_THROWS_WITH_AS((void)add(t.x, z, {"s", {"user.cpp", 2}}), "INVALID_ARGUMENT: AddV2 's' (user.cpp:2): shapes [3] and [4] cannot be broadcast", weft::error);
  CHECK_THROWS_WITH_AS((void)less(t.x, z, {"l", {"user.cpp", 2}}), "INVALID_ARGUMENT: Less 'l' (user.cpp:2): shapes [3] and [4] cannot be broadcast", weft::error);
}

TEST_CASE("operators: an empty operand is an error at that line") {
  fixture t;
  const tensor<float, 1> none;
  CHECK_THROWS_WITH_AS((void)add(none, none, {"s", {"user.cpp", 4}}), "INVALID_ARGUMENT: user.cpp:4: an operand is an empty tensor, not made by any op", weft::error);
  CHECK_THROWS_WITH_AS((void)add(t.x, none, {"s", {"user.cpp", 4}}), "INVALID_ARGUMENT: AddV2 's' (user.cpp:4): an input is an empty tensor, not made by any op", weft::error);
  CHECK_THROWS_WITH_AS((void)square(none, {"s", {"user.cpp", 4}}), "INVALID_ARGUMENT: user.cpp:4: Square: the operand is an empty tensor, not made by any op", weft::error);
}

TEST_CASE("operators: a dtype that the op does not take") {
  fixture t;
  const auto flags = constant({true, false}, "flags");
  CHECK_THROWS_WITH_AS((void)negative(flags, {"n", {"user.cpp", 6}}),
                       "INVALID_ARGUMENT: Neg 'n' (user.cpp:6): attribute 'T' must be one of [bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128], found bool", weft::error);
}

TEST_CASE("named ops: the op of each") {
  fixture t;
  CHECK(op_of(add(t.x, t.y)) == "AddV2");
  CHECK(op_of(subtract(t.x, t.y)) == "Sub");
  CHECK(op_of(multiply(t.x, t.y)) == "Mul");
  CHECK(op_of(divide(t.x, t.y)) == "RealDiv");
  CHECK(op_of(divide(constant(7), 2)) == "Div");
  CHECK(op_of(maximum(t.x, t.y)) == "Maximum");
  CHECK(op_of(minimum(t.x, 0.f)) == "Minimum");
  CHECK(op_of(equal(t.x, t.y)) == "Equal");
  CHECK(op_of(not_equal(t.x, t.y)) == "NotEqual");
  CHECK(op_of(less(t.x, t.y)) == "Less");
  CHECK(op_of(less_equal(t.x, t.y)) == "LessEqual");
  CHECK(op_of(greater(0.f, t.y)) == "Greater");
  CHECK(op_of(greater_equal(t.x, t.y)) == "GreaterEqual");
  CHECK(op_of(negative(t.x)) == "Neg");
  CHECK(op_of(square(t.x)) == "Square");
  CHECK(op_of(abs(t.x)) == "Abs");
  CHECK(op_of(sqrt(t.x)) == "Sqrt");
  CHECK(op_of(exp(t.x)) == "Exp");
  CHECK(op_of(log(t.x)) == "Log");
  CHECK(op_of(tanh(t.x)) == "Tanh");
  CHECK(op_of(sigmoid(t.x)) == "Sigmoid");
  CHECK(add(t.x, 1.f, "named").name() == "named");
  CHECK(t.g.find("named/y") != nullptr);
}

TEST_CASE("named ops: a name is made unique with what is below it") {
  fixture t;
  const auto first = add(t.x, 1.f, "n");
  const auto second = add(t.x, 2.f, "n");
  CHECK(second.name() == "n_1");
  CHECK(second.raw().from->inputs()[1].from->name() == "n_1/y");
  CHECK(add(t.x, t.y, "n").name() == "n_2");
  CHECK(add(t.x, 3.f, "exact/").name() == "exact");
}

TEST_CASE("cast: from and to are attributes") {
  fixture t;
  const node& n = *weft::cast<std::int32_t>(t.x).raw().from;
  CHECK(n.op() == "Cast");
  CHECK(n.attr<dtype>("SrcT") == dtype::float32);
  CHECK(n.attr<dtype>("DstT") == dtype::int32);
  CHECK_FALSE(n.attr<bool>("Truncate"));
  CHECK(n.output_dtype(0) == dtype::int32);
  CHECK(n.output_shape(0) == partial_shape{3});
}

TEST_CASE("equal: without the error, shapes that differ compare as one false") {
  fixture t;
  const auto z = placeholder<float>({4}, "z");
  const weft::attr_map relaxed{{"incompatible_shape_error", false}};
  CHECK(weft::detail::add_node("Equal", {t.x.raw(), z.raw()}, "e", relaxed).output_shape(0) == partial_shape(std::vector<std::int64_t>{}));
  CHECK(weft::detail::add_node("Equal", {t.x.raw(), t.y.raw()}, "e", relaxed).output_shape(0) == partial_shape{3});
  CHECK_FALSE(weft::detail::add_node("Equal", {placeholder<float, 1>().raw(), z.raw()}, "e", relaxed).output_shape(0).known_rank());
}

TEST_CASE("add_n: one shape for all") {
  fixture t;
  const auto sum = weft::add_n({t.x, t.y, placeholder<float, 1>()});
  CHECK(sum.raw().from->attr<std::int64_t>("N") == 3);
  CHECK(sum.shape() == partial_shape{3});
  const auto z = placeholder<float>({4}, "z");
  CHECK_THROWS_WITH_AS((void)weft::add_n({t.x, z}, {"s", {"user.cpp", 7}}), "INVALID_ARGUMENT: AddN 's' (user.cpp:7): all inputs must have one shape, found [3] and [4]", weft::error);
  CHECK_THROWS_WITH_AS((void)weft::add_n(std::vector<tensor<float, 1>>(), {"s", {"user.cpp", 7}}), "INVALID_ARGUMENT: user.cpp:7: add_n: there is nothing to add", weft::error);
}

TEST_CASE("named ops: the op of each further one") {
  fixture t;
  const auto i = constant({6}, "i"), j = constant({4}, "j");
  const auto p = constant({true}, "p"), q = constant({false}, "q");
  CHECK(op_of(weft::floor_div(t.x, t.y)) == "FloorDiv");
  CHECK(op_of(weft::truncate_div(t.x, t.y)) == "TruncateDiv");
  CHECK(op_of(weft::floor_mod(t.x, t.y)) == "FloorMod");
  CHECK(op_of(weft::truncate_mod(t.x, t.y)) == "TruncateMod");
  CHECK(op_of(weft::divide_no_nan(t.x, t.y)) == "DivNoNan");
  CHECK(op_of(weft::multiply_no_nan(t.x, t.y)) == "MulNoNan");
  CHECK(op_of(weft::xdivy(t.x, t.y)) == "Xdivy");
  CHECK(op_of(weft::xlogy(t.x, t.y)) == "Xlogy");
  CHECK(op_of(weft::pow(t.x, t.y)) == "Pow");
  CHECK(op_of(weft::atan2(t.x, t.y)) == "Atan2");
  CHECK(op_of(weft::squared_difference(t.x, t.y)) == "SquaredDifference");
  CHECK(op_of(weft::bitwise_and(i, j)) == "BitwiseAnd");
  CHECK(op_of(weft::bitwise_or(i, j)) == "BitwiseOr");
  CHECK(op_of(weft::bitwise_xor(i, j)) == "BitwiseXor");
  CHECK(op_of(weft::left_shift(i, j)) == "LeftShift");
  CHECK(op_of(weft::right_shift(i, j)) == "RightShift");
  CHECK(op_of(weft::logical_and(p, q)) == "LogicalAnd");
  CHECK(op_of(weft::logical_or(p, q)) == "LogicalOr");
  CHECK(op_of(weft::reciprocal(t.x)) == "Reciprocal");
  CHECK(op_of(weft::sign(t.x)) == "Sign");
  CHECK(op_of(weft::rsqrt(t.x)) == "Rsqrt");
  CHECK(op_of(weft::expm1(t.x)) == "Expm1");
  CHECK(op_of(weft::log1p(t.x)) == "Log1p");
  CHECK(op_of(weft::sin(t.x)) == "Sin");
  CHECK(op_of(weft::cos(t.x)) == "Cos");
  CHECK(op_of(weft::tan(t.x)) == "Tan");
  CHECK(op_of(weft::asin(t.x)) == "Asin");
  CHECK(op_of(weft::acos(t.x)) == "Acos");
  CHECK(op_of(weft::atan(t.x)) == "Atan");
  CHECK(op_of(weft::sinh(t.x)) == "Sinh");
  CHECK(op_of(weft::cosh(t.x)) == "Cosh");
  CHECK(op_of(weft::asinh(t.x)) == "Asinh");
  CHECK(op_of(weft::acosh(t.x)) == "Acosh");
  CHECK(op_of(weft::atanh(t.x)) == "Atanh");
  CHECK(op_of(weft::erf(t.x)) == "Erf");
  CHECK(op_of(weft::erfc(t.x)) == "Erfc");
  CHECK(op_of(weft::lgamma(t.x)) == "Lgamma");
  CHECK(op_of(weft::digamma(t.x)) == "Digamma");
  CHECK(op_of(weft::floor(t.x)) == "Floor");
  CHECK(op_of(weft::ceil(t.x)) == "Ceil");
  CHECK(op_of(weft::rint(t.x)) == "Rint");
  CHECK(op_of(weft::round(t.x)) == "Round");
  CHECK(op_of(weft::is_nan(t.x)) == "IsNan");
  CHECK(op_of(weft::is_inf(t.x)) == "IsInf");
  CHECK(op_of(weft::is_finite(t.x)) == "IsFinite");
  CHECK(op_of(weft::invert(i)) == "Invert");
  CHECK(op_of(weft::logical_not(p)) == "LogicalNot");
  CHECK(op_of(weft::relu(t.x)) == "Relu");
  CHECK(op_of(weft::relu6(t.x)) == "Relu6");
  CHECK(op_of(weft::elu(t.x)) == "Elu");
  CHECK(op_of(weft::selu(t.x)) == "Selu");
  CHECK(op_of(weft::softplus(t.x)) == "Softplus");
  CHECK(op_of(weft::softsign(t.x)) == "Softsign");
  CHECK(op_of(weft::pow(t.x, 2.f)) == "Pow");
  CHECK(weft::is_nan(t.x).raw().from->output_dtype(0) == dtype::boolean);
  CHECK(weft::leaky_relu(t.x).raw().from->attr<float>("alpha") == 0.2f);
  CHECK(weft::leaky_relu(t.x, 0.5f).raw().from->attr<float>("alpha") == 0.5f);
  CHECK(weft::leaky_relu(t.x, "named").name() == "named");
  CHECK(weft::approximate_equal(t.x, t.y, 0.5f).raw().from->attr<float>("tolerance") == 0.5f);
  CHECK(weft::accumulate_n({t.x, placeholder<float, 1>()}).raw().from->attr<partial_shape>("shape") == partial_shape{3});
}

TEST_CASE("gradient ops and approximate equality: two operands of one shape") {
  fixture t;
  const auto z = placeholder<float>({4}, "z");
  const auto add = [&](const char* op, const auto& a, const auto& b) { return weft::detail::add_node(op, {a.raw(), b.raw()}, {"n", {"user.cpp", 8}}).output_shape(0); };
  CHECK(add("ReluGrad", t.x, placeholder<float, 1>()) == partial_shape{3});
  CHECK(add("TanhGrad", placeholder<float>(), t.x) == partial_shape{3});
  CHECK_THROWS_WITH_AS(add("ReluGrad", t.x, z), "INVALID_ARGUMENT: ReluGrad 'n' (user.cpp:8): shapes [3] and [4] differ", weft::error);
  CHECK_THROWS_WITH_AS(add("ApproximateEqual", t.x, z), "INVALID_ARGUMENT: ApproximateEqual 'n' (user.cpp:8): shapes [3] and [4] differ", weft::error);
}
