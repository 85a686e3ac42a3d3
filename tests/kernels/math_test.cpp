#include <weft/kernels/math.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

using weft::bfloat16;
using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T> void check_arithmetic(kernel_bench& bench) {
  const auto x = make<T>({3}, {T(7), T(5), T(2)}), y = make<T>({3}, {T(2), T(5), T(4)});
  CHECK(elements<T>(bench("AddV2", {x, y})) == std::vector<T>{9, 10, 6});
  CHECK(elements<T>(bench("Mul", {x, y})) == std::vector<T>{14, 25, 8});
  CHECK(elements<T>(bench("Maximum", {x, y})) == std::vector<T>{7, 5, 4});
  CHECK(elements<T>(bench("Minimum", {x, y})) == std::vector<T>{2, 5, 2});
  CHECK(elements<T>(bench("Sub", {x, y}))[0] == T(5));
  CHECK(elements<T>(bench("Square", {x})) == std::vector<T>{49, 25, 4});
  CHECK(elements<T>(bench("AddN", {x, y, x})) == std::vector<T>{16, 15, 8});
  CHECK(elements<bool>(bench("Less", {x, y})) == std::vector<bool>{false, false, true});
  CHECK(elements<bool>(bench("LessEqual", {x, y})) == std::vector<bool>{false, true, true});
  CHECK(elements<bool>(bench("Greater", {x, y})) == std::vector<bool>{true, false, false});
  CHECK(elements<bool>(bench("GreaterEqual", {x, y})) == std::vector<bool>{true, true, false});
  CHECK(elements<bool>(bench("Equal", {x, y})) == std::vector<bool>{false, true, false});
  CHECK(elements<bool>(bench("NotEqual", {x, y})) == std::vector<bool>{true, false, true});
}

template <class T> void check_half(kernel_bench& bench) {
  const auto x = make<T>({2}, {T(1.5f), T(-3.f)}), y = make<T>({2}, {T(2.f), T(0.5f)});
  CHECK(elements<T>(bench("AddV2", {x, y})) == std::vector<T>{T(3.5f), T(-2.5f)});
  CHECK(elements<T>(bench("RealDiv", {x, y})) == std::vector<T>{T(0.75f), T(-6.f)});
  CHECK(elements<T>(bench("Neg", {x})) == std::vector<T>{T(-1.5f), T(3.f)});
  CHECK(elements<T>(bench("Abs", {x})) == std::vector<T>{T(1.5f), T(3.f)});
  CHECK(elements<bool>(bench("Less", {x, y})) == std::vector<bool>{true, true});
  CHECK(elements<T>(bench("Sqrt", {y}))[1] == T(0.70710678f));
}
}  // namespace

TEST_CASE("arithmetic and comparisons: all number dtypes") {
  kernel_bench bench;
  check_arithmetic<float>(bench);
  check_arithmetic<double>(bench);
  check_arithmetic<std::int8_t>(bench);
  check_arithmetic<std::int16_t>(bench);
  check_arithmetic<std::int32_t>(bench);
  check_arithmetic<std::int64_t>(bench);
  check_arithmetic<std::uint8_t>(bench);
  check_arithmetic<std::uint16_t>(bench);
  check_arithmetic<std::uint32_t>(bench);
  check_arithmetic<std::uint64_t>(bench);
  check_half<half>(bench);
  check_half<bfloat16>(bench);
  CHECK(elements<float>(bench("Add", {make<float>({1}, {1}), make<float>({1}, {2})})) == std::vector<float>{3});
}

TEST_CASE("arithmetic: integers wrap, extremes compare by their sign") {
  kernel_bench bench;
  const auto top = make<std::int8_t>({1}, {127}), one = make<std::int8_t>({1}, {1});
  CHECK(elements<std::int8_t>(bench("AddV2", {top, one})) == std::vector<std::int8_t>{-128});
  CHECK(elements<std::uint8_t>(bench("Sub", {make<std::uint8_t>({1}, {3}), make<std::uint8_t>({1}, {5})})) == std::vector<std::uint8_t>{254});
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  CHECK(elements<std::int64_t>(bench("Neg", {make<std::int64_t>({1}, {lowest})})) == std::vector<std::int64_t>{lowest});
  CHECK(elements<std::int32_t>(bench("Abs", {make<std::int32_t>({2}, {-7, 7})})) == std::vector<std::int32_t>{7, 7});
  CHECK(elements<bool>(bench("Less", {make<std::uint64_t>({1}, {~std::uint64_t{0}}), make<std::uint64_t>({1}, {1})})) == std::vector<bool>{false});
  CHECK(elements<bool>(bench("Less", {make<std::int64_t>({1}, {-1}), make<std::int64_t>({1}, {1})})) == std::vector<bool>{true});
  CHECK(elements<std::uint32_t>(bench("Maximum", {make<std::uint32_t>({1}, {4000000000U}), make<std::uint32_t>({1}, {1})})) == std::vector<std::uint32_t>{4000000000U});
}

TEST_CASE("division: integers are cut toward zero, the lowest by -1 is itself, by zero is an error") {
  kernel_bench bench;
  CHECK(elements<std::int32_t>(bench("Div", {make<std::int32_t>({4}, {7, -7, -2147483647 - 1, 2147483647}), make<std::int32_t>({4}, {2, 2, -1, -2147483647 - 1})})) ==
        std::vector<std::int32_t>{3, -3, -2147483647 - 1, 0});
  CHECK(elements<std::int8_t>(bench("RealDiv", {make<std::int8_t>({1}, {-128}), make<std::int8_t>({1}, {-1})})) == std::vector<std::int8_t>{-128});
  CHECK(elements<std::uint8_t>(bench("Div", {make<std::uint8_t>({1}, {255}), make<std::uint8_t>({1}, {2})})) == std::vector<std::uint8_t>{127});
  CHECK(bench.error("Div", {make<std::int32_t>({2}, {1, 2}), make<std::int32_t>({2}, {1, 0})}) == "INVALID_ARGUMENT: integer division by zero");
  CHECK(bench.error("Div", {make<std::uint16_t>({2, 1}, {1, 2}), make<std::uint16_t>({2}, {1, 0})}) == "INVALID_ARGUMENT: integer division by zero");
  CHECK(bench("Div", {make<std::int32_t>({0}, {}), make<std::int32_t>({1}, {0})}).shape() == shape{0});
  const auto floats = elements<float>(bench("RealDiv", {make<float>({3}, {1, -1, 0}), make<float>({3}, {0, 0, 0})}));
  CHECK(floats[0] == infinity);
  CHECK(floats[1] == -infinity);
  CHECK(std::isnan(floats[2]));
}

TEST_CASE("maximum, minimum: NaN in either operand is the result") {
  kernel_bench bench;
  const auto x = make<float>({3}, {std::nanf(""), 1, 2}), y = make<float>({3}, {1, std::nanf(""), 3});
  for (const char* op : {"Maximum", "Minimum"}) {
    const auto out = elements<float>(bench(op, {x, y}));
    CHECK(std::isnan(out[0]));
    CHECK(std::isnan(out[1]));
  }
  CHECK(elements<bool>(bench("Equal", {x, x})) == std::vector<bool>{false, true, true});
  CHECK(elements<bool>(bench("NotEqual", {x, x})) == std::vector<bool>{true, false, false});
}

TEST_CASE("broadcasting: scalars, rows, columns, both sides, higher ranks") {
  kernel_bench bench;
  const auto matrix = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(elements<float>(bench("Mul", {matrix, tensor_value::scalar(10.f)})) == std::vector<float>{10, 20, 30, 40, 50, 60});
  CHECK(elements<float>(bench("Sub", {tensor_value::scalar(1.f), matrix})) == std::vector<float>{0, -1, -2, -3, -4, -5});
  CHECK(elements<float>(bench("AddV2", {matrix, make<float>({3}, {10, 20, 30})})) == std::vector<float>{11, 22, 33, 14, 25, 36});
  CHECK(elements<float>(bench("Sub", {make<float>({2, 1}, {10, 20}), matrix})) == std::vector<float>{9, 8, 7, 16, 15, 14});
  const auto outer = bench("Mul", {make<std::int32_t>({3, 1}, {1, 2, 3}), make<std::int32_t>({1, 2}, {10, 100})});
  CHECK(outer.shape() == shape{3, 2});
  CHECK(elements<std::int32_t>(outer) == std::vector<std::int32_t>{10, 100, 20, 200, 30, 300});
  CHECK(elements<bool>(bench("Greater", {make<float>({2, 1}, {1, 3}), make<float>({2}, {2, 0})})) == std::vector<bool>{false, true, true, true});
  const auto high = bench("AddV2", {make<std::int8_t>({2, 1, 2}, {1, 2, 3, 4}), make<std::int8_t>({2, 1}, {10, 20})});
  CHECK(high.shape() == shape{2, 2, 2});
  CHECK(elements<std::int8_t>(high) == std::vector<std::int8_t>{11, 12, 21, 22, 13, 14, 23, 24});
  const auto ones = bench("AddV2", {make<float>({1, 1}, {2}), make<float>({1}, {3})});
  CHECK(ones.shape() == shape{1, 1});
  CHECK(elements<float>(ones) == std::vector<float>{5});
}

TEST_CASE("broadcasting: long rows and scalars beside them agree with the rule") {
  kernel_bench bench;
  std::vector<float> wanted;
  tensor_value x(dtype::float32, {2000});
  for (int i = 0; i < 2000; ++i) {
    x.mutable_data<float>()[i] = static_cast<float>(i);
    wanted.push_back(static_cast<float>(i) * 2);
  }
  CHECK(elements<float>(bench("Mul", {x, tensor_value::scalar(2.f)})) == wanted);
  CHECK(elements<float>(bench("AddV2", {x, x})) == wanted);
  tensor_value small(dtype::int16, {2000});
  for (int i = 0; i < 2000; ++i) small.mutable_data<std::int16_t>()[i] = static_cast<std::int16_t>(i);
  const auto sums = elements<std::int16_t>(bench("AddV2", {small, tensor_value::scalar(std::int16_t(1))}));
  CHECK(sums[0] == 1);
  CHECK(sums[511] == 512);
  CHECK(sums[512] == 513);
  CHECK(sums[1999] == 2000);
}

TEST_CASE("broadcasting: shapes that do not fit, dtypes that differ") {
  kernel_bench bench;
  CHECK(bench.error("AddV2", {make<float>({2, 3}, {1, 2, 3, 4, 5, 6}), make<float>({4}, {1, 2, 3, 4})}) == "INVALID_ARGUMENT: shapes [2,3] and [4] cannot be broadcast");
  CHECK(bench.error("Less", {make<float>({2}, {1, 2}), make<float>({3}, {1, 2, 3})}) == "INVALID_ARGUMENT: shapes [2] and [3] cannot be broadcast");
  const weft::node& n = bench.add("AddV2", {dtype::float32, dtype::float32}, {}, "sum");
  CHECK_THROWS_WITH_AS(bench.run(n, {tensor_value::scalar(1.f), tensor_value::scalar(1.0)}),
                       "INVALID_ARGUMENT: AddV2 'sum': input 1 must be float, found double", weft::error);
  CHECK_THROWS_WITH_AS(bench.run(n, {tensor_value::scalar(1.f)}), "INVALID_ARGUMENT: AddV2 'sum': expected 2 inputs, found 1", weft::error);
}

TEST_CASE("elementwise: empty tensors") {
  kernel_bench bench;
  CHECK(bench("AddV2", {tensor_value(dtype::float32, {0, 3}), make<float>({3}, {1, 2, 3})}).shape() == shape{0, 3});
  CHECK(bench("AddV2", {tensor_value(dtype::float32, {0}), make<float>({1}, {1})}).shape() == shape{0});
  CHECK(bench("AddV2", {tensor_value(dtype::half, {2, 0}), tensor_value(dtype::half, {2, 1})}).shape() == shape{2, 0});
  CHECK(bench("Exp", {tensor_value(dtype::bfloat16, {0})}).shape() == shape{0});
  CHECK(bench("Equal", {tensor_value(dtype::string, {0}), tensor_value(dtype::string, {0})}).shape() == shape{0});
}

TEST_CASE("functions of one argument") {
  kernel_bench bench;
  const auto x = make<float>({3}, {0, 1, 4});
  CHECK(elements<float>(bench("Sqrt", {x})) == std::vector<float>{0, 1, 2});
  const auto exp = elements<float>(bench("Exp", {make<float>({3}, {0, 1, -1})}));
  CHECK(exp[0] == 1.f);
  CHECK(exp[1] == doctest::Approx(2.7182817));
  CHECK(exp[2] == doctest::Approx(0.36787945));
  const auto log = elements<double>(bench("Log", {make<double>({2}, {1, 10})}));
  CHECK(log[0] == 0.0);
  CHECK(log[1] == doctest::Approx(2.302585092994046).epsilon(1e-14));
  CHECK(elements<float>(bench("Tanh", {make<float>({2}, {0.5f, -20})}))[0] == doctest::Approx(0.46211717));
  CHECK(elements<float>(bench("Sigmoid", {make<float>({2}, {0, 2})}))[1] == doctest::Approx(0.8807971));
  CHECK(elements<half>(bench("Exp", {make<half>({1}, {half(1.f)})}))[0] == half(2.7182817f));
  CHECK(elements<bool>(bench("LogicalNot", {make<bool>({2}, {true, false})})) == std::vector<bool>{false, true});
}

TEST_CASE("logic and comparisons of bools and strings") {
  kernel_bench bench;
  const auto a = make<bool>({4}, {true, true, false, false}), b = make<bool>({4}, {true, false, true, false});
  CHECK(elements<bool>(bench("LogicalAnd", {a, b})) == std::vector<bool>{true, false, false, false});
  CHECK(elements<bool>(bench("LogicalOr", {a, b})) == std::vector<bool>{true, true, true, false});
  CHECK(elements<bool>(bench("LogicalAnd", {a, tensor_value::scalar(true)})) == std::vector<bool>{true, true, false, false});
  CHECK(elements<bool>(bench("Equal", {a, b})) == std::vector<bool>{true, false, false, true});
  const auto words = make<std::string>({2}, {"a", "bc"});
  CHECK(elements<std::string>(bench("Add", {words, tensor_value::scalar(std::string("!"))})) == std::vector<std::string>{"a!", "bc!"});
  CHECK(elements<bool>(bench("Equal", {words, make<std::string>({2}, {"a", "b"})})) == std::vector<bool>{true, false});
  CHECK(elements<bool>(bench("NotEqual", {make<std::string>({2, 1}, {"a", "b"}), words})) == std::vector<bool>{false, true, true, true});
}

TEST_CASE("elementwise: an input nobody else holds gives its storage to the output") {
  kernel_bench bench;
  auto x = make<float>({2}, {1, 2});
  const auto kept = make<float>({2}, {3, 4});
  const void* storage = x.raw_data();
  std::vector<tensor_value> inputs;
  inputs.push_back(std::move(x));
  inputs.push_back(kept);
  const auto sum = bench("AddV2", std::move(inputs));
  CHECK(sum.raw_data() == storage);
  CHECK(elements<float>(sum) == std::vector<float>{4, 6});
  const auto negative = bench("Neg", {kept});
  CHECK(negative.raw_data() != kept.raw_data());
  CHECK(elements<float>(kept) == std::vector<float>{3, 4});
}

TEST_CASE("elementwise: work on many elements is called expensive") {
  kernel_bench bench;
  tensor_value large(dtype::float32, {140000}), small(dtype::float32, {100});
  std::fill_n(large.mutable_data<float>(), 140000, 1.f);
  std::fill_n(small.mutable_data<float>(), 100, 1.f);
  bench("AddV2", {large, tensor_value::scalar(1.f)});
  CHECK(bench.expensive);
  bench("AddV2", {small, small});
  CHECK(!bench.expensive);
}

TEST_CASE("sum of many tensors: shapes must agree") {
  kernel_bench bench;
  CHECK(bench.error("AddN", {make<float>({2}, {1, 2}), make<float>({3}, {1, 2, 3})}) ==
        "INVALID_ARGUMENT: all inputs must have one shape, found [2] for input 0 and [3] for input 1");
  CHECK(elements<float>(bench("AddN", {make<float>({2}, {1, 2})})) == std::vector<float>{1, 2});
}
