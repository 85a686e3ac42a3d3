#include <weft/kernels/reduce_scan.hpp>

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
tensor_value axis(std::int32_t a) { return tensor_value::scalar(a); }

template <class T> void check_numbers(kernel_bench& bench) {
  const auto x = make<T>({2, 3}, {T(2), T(5), T(5), T(7), T(1), T(1)});
  CHECK(elements<std::int64_t>(bench("ArgMax", {x, axis(1)})) == std::vector<std::int64_t>{1, 0});
  CHECK(elements<std::int64_t>(bench("ArgMin", {x, axis(1)})) == std::vector<std::int64_t>{0, 1});
  CHECK(elements<std::int64_t>(bench("ArgMax", {x, axis(-2)})) == std::vector<std::int64_t>{1, 0, 0});
  CHECK(elements<T>(bench("Cumsum", {x, axis(1)})) == std::vector<T>{T(2), T(7), T(12), T(7), T(8), T(9)});
  CHECK(elements<T>(bench("Cumsum", {x, axis(0)})) == std::vector<T>{T(2), T(5), T(5), T(9), T(6), T(6)});
  CHECK(elements<T>(bench("Cumprod", {x, axis(1)})) == std::vector<T>{T(2), T(10), T(50), T(7), T(7), T(7)});
}
}  // namespace

TEST_CASE("positions of extremes, running sums and products: all number dtypes") {
  kernel_bench bench;
  weft_test::for_each_number_dtype([&](auto zero) { check_numbers<decltype(zero)>(bench); });
  CHECK(elements<std::int64_t>(bench("ArgMax", {make<bool>({3}, {false, true, true}), axis(0)})) == std::vector<std::int64_t>{1});
}

TEST_CASE("positions of extremes: the first of equals, NaN passed over, output and axis types") {
  kernel_bench bench;
  const float nan = std::nanf("");
  CHECK(elements<std::int64_t>(bench("ArgMax", {make<float>({4, 3}, {nan, 1, 2, 1, nan, 2, 1, 2, nan, nan, nan, nan}), axis(1)})) == std::vector<std::int64_t>{2, 2, 1, 0});
  CHECK(elements<std::int64_t>(bench("ArgMin", {make<float>({3, 3}, {nan, 1, 2, 1, nan, 2, 1, 2, nan}), axis(1)})) == std::vector<std::int64_t>{1, 0, 0});
  const auto x = make<float>({2, 2}, {1, 3, 4, 2});
  CHECK(elements<std::int32_t>(bench("ArgMax", {x, axis(0)}, {{"output_type", dtype::int32}})) == std::vector<std::int32_t>{1, 0});
  CHECK(elements<std::uint16_t>(bench("ArgMax", {x, axis(0)}, {{"output_type", dtype::uint16}})) == std::vector<std::uint16_t>{1, 0});
  CHECK(elements<std::int64_t>(bench("ArgMax", {x, tensor_value::scalar(std::int16_t{-1})})) == std::vector<std::int64_t>{1, 0});
  CHECK(elements<std::int64_t>(bench("ArgMax", {x, tensor_value::scalar(std::int64_t{0})})) == std::vector<std::int64_t>{1, 0});
  CHECK(bench("ArgMax", {make<float>({2}, {1, 2}), axis(0)}).shape() == shape{});
  CHECK(elements<std::int64_t>(bench("ArgMax", {make<float>({2, 2, 2}, {1, 2, 8, 4, 5, 6, 7, 3}), axis(1)})) == std::vector<std::int64_t>{1, 1, 1, 0});
}

TEST_CASE("positions of extremes: nothing to choose from, axes that do not exist") {
  kernel_bench bench;
  CHECK(bench("ArgMax", {tensor_value(dtype::float32, {0, 3}), axis(1)}).shape() == shape{0});
  CHECK(bench.error("ArgMax", {tensor_value(dtype::float32, {2, 0}), axis(1)}) == "INVALID_ARGUMENT: dimension 1 of shape [2,0] is empty: there is nothing to choose from");
  CHECK(bench.error("ArgMin", {tensor_value::scalar(1.f), axis(0)}) == "INVALID_ARGUMENT: a scalar has no dimension to search");
  CHECK(bench.error("ArgMax", {make<float>({2}, {1, 2}), axis(1)}) == "INVALID_ARGUMENT: axis 1 is not in [-1, 1)");
  CHECK(bench.error("ArgMax", {make<float>({2}, {1, 2}), axis(std::numeric_limits<std::int32_t>::min())}) == "INVALID_ARGUMENT: axis -2147483648 is not in [-1, 1)");
  CHECK(bench.error("ArgMax", {make<float>({2}, {1, 2}), make<std::int32_t>({1}, {0})}) == "INVALID_ARGUMENT: the axis must be a scalar, found shape [1]");
}

TEST_CASE("running sums and products: exclusive, reverse, wrapping, empty") {
  kernel_bench bench;
  const auto x = make<float>({4}, {1, 2, 3, 4});
  const weft::attr_map exclusive{{"exclusive", true}}, reverse{{"reverse", true}}, both{{"exclusive", true}, {"reverse", true}};
  CHECK(elements<float>(bench("Cumsum", {x, axis(0)}, exclusive)) == std::vector<float>{0, 1, 3, 6});
  CHECK(elements<float>(bench("Cumsum", {x, axis(0)}, reverse)) == std::vector<float>{10, 9, 7, 4});
  CHECK(elements<float>(bench("Cumsum", {x, axis(0)}, both)) == std::vector<float>{9, 7, 4, 0});
  CHECK(elements<float>(bench("Cumprod", {x, axis(-1)}, exclusive)) == std::vector<float>{1, 1, 2, 6});
  CHECK(elements<float>(bench("Cumprod", {x, axis(-1)}, reverse)) == std::vector<float>{24, 24, 12, 4});
  CHECK(elements<float>(bench("Cumprod", {x, axis(-1)}, both)) == std::vector<float>{24, 12, 4, 1});
  CHECK(elements<float>(bench("Cumsum", {make<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), axis(1)}, exclusive)) == std::vector<float>{0, 0, 1, 2, 0, 0, 5, 6});
  CHECK(elements<std::uint8_t>(bench("Cumsum", {make<std::uint8_t>({2}, {200, 100}), axis(0)})) == std::vector<std::uint8_t>{200, 44});
  CHECK(elements<std::int32_t>(bench("Cumprod", {make<std::int32_t>({2}, {65536, 65536}), axis(0)})) == std::vector<std::int32_t>{65536, 0});
  CHECK(bench("Cumsum", {tensor_value(dtype::float32, {0, 3}), axis(0)}).shape() == shape{0, 3});
  CHECK(bench("Cumprod", {tensor_value(dtype::int8, {2, 0}), axis(0)}).shape() == shape{2, 0});
  CHECK(bench.error("Cumsum", {x, axis(1)}) == "INVALID_ARGUMENT: axis 1 is not in [-1, 1)");
  CHECK(bench.error("Cumsum", {tensor_value::scalar(1.f), axis(0)}) == "INVALID_ARGUMENT: axis 0 is not in [0, 0)");
  CHECK(bench.error("Cumprod", {x, make<std::int32_t>({1}, {0})}) == "INVALID_ARGUMENT: the axis must be a scalar, found shape [1]");
}

TEST_CASE("counts: weights, sizes, values that do not count") {
  kernel_bench bench;
  const auto values = make<std::int32_t>({2, 3}, {0, 2, 2, 5, 1, 2});
  const auto size = [](std::int32_t n) { return tensor_value::scalar(n); };
  CHECK(elements<float>(bench("Bincount", {values, size(4), tensor_value(dtype::float32, {0})})) == std::vector<float>{1, 1, 3, 0});
  CHECK(elements<std::int64_t>(bench("Bincount", {values, size(6), make<std::int64_t>({6}, {1, 2, 3, 4, 5, 6})})) == std::vector<std::int64_t>{1, 5, 11, 0, 0, 4});
  CHECK(bench("Bincount", {values, size(0), tensor_value(dtype::int32, {0})}).shape() == shape{0});
  CHECK(elements<double>(bench("Bincount", {tensor_value(dtype::int32, {0}), size(2), tensor_value(dtype::float64, {0})})) == std::vector<double>{0, 0});
  CHECK(bench.error("Bincount", {values, size(-1), tensor_value(dtype::int32, {0})}) == "INVALID_ARGUMENT: size must not be negative, found -1");
  CHECK(bench.error("Bincount", {make<std::int32_t>({1}, {-3}), size(4), tensor_value(dtype::int32, {0})}) == "INVALID_ARGUMENT: the values must not be negative, found -3");
  CHECK(bench.error("Bincount", {values, size(4), make<float>({2}, {1, 2})}) ==
        "INVALID_ARGUMENT: the weights must have as many elements as the values, or none; found shapes [2] and [2,3]");
}
