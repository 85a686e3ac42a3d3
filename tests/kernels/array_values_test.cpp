#include <weft/kernels/array_values.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using weft::dtype;
using weft::half;
using weft::partial_shape;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
const std::string bad = "INVALID_ARGUMENT: ";
template <class T> std::vector<tensor_value> range(T start, T limit, T delta) { return {tensor_value::scalar(start), tensor_value::scalar(limit), tensor_value::scalar(delta)}; }
}  // namespace

TEST_CASE("range: every number dtype, up and down") {
  kernel_bench bench;
  CHECK(elements<std::int32_t>(bench("Range", range(3, 18, 6))) == std::vector<std::int32_t>{3, 9, 15});
  CHECK(elements<std::int64_t>(bench("Range", range<std::int64_t>(2, -1, -1))) == std::vector<std::int64_t>{2, 1, 0});
  CHECK(elements<std::int8_t>(bench("Range", range<std::int8_t>(-128, 127, 100))) == std::vector<std::int8_t>{-128, -28, 72});
  CHECK(elements<std::uint64_t>(bench("Range", range<std::uint64_t>(UINT64_MAX - 2, UINT64_MAX, 1))) == std::vector<std::uint64_t>{UINT64_MAX - 2, UINT64_MAX - 1});
  CHECK(elements<float>(bench("Range", range(0.f, 1.f, 0.25f))) == std::vector<float>{0, 0.25f, 0.5f, 0.75f});
  CHECK(bench("Range", range(half(0.f), half(3.f), half(0.5f))).elements() == 6);
  CHECK(bench("Range", range(5, 5, -1)).elements() == 0);
  CHECK(bench.error("Range", range(0, 5, 0)) == bad + "delta must not be 0");
  CHECK(bench.error("Range", range(0, 5, -1)) == bad + "from 0 there is no way to 5 in steps of -1");
  CHECK(bench.error("Range", range(0.f, NAN, 1.f)).substr(0, 22) == bad + "from");
  CHECK(bench.error("Range", range(0.0, 1e300, 1e-300)).substr(0, 25) == bad + "a range");
  CHECK(bench.error("Range", range<std::int64_t>(INT64_MIN, INT64_MAX, 1)).substr(0, 25) == bad + "a range");
}

TEST_CASE("lin space: both ends included") {
  kernel_bench bench;
  const auto run = [&](float start, float stop, std::int32_t count) { return elements<float>(bench("LinSpace", {tensor_value::scalar(start), tensor_value::scalar(stop), tensor_value::scalar(count)})); };
  CHECK(run(0, 1, 5) == std::vector<float>{0, 0.25f, 0.5f, 0.75f, 1});
  CHECK(run(2, 5, 1) == std::vector<float>{2});
  CHECK(bench.error("LinSpace", {tensor_value::scalar(0.f), tensor_value::scalar(1.f), tensor_value::scalar(std::int32_t{0})}) == bad + "num must be at least 1, found 0");
}

TEST_CASE("checks: shapes and values; bits read as others") {
  kernel_bench bench;
  const auto pair = make<float>({2}, {1, 2});
  CHECK(bench("EnsureShape", {pair}, {{"shape", partial_shape{-1}}}).raw_data() == pair.raw_data());
  CHECK(bench.error("EnsureShape", {pair}, {{"shape", partial_shape{3}}}) == bad + "the input must have shape [3], found [2]");
  CHECK(bench("CheckNumerics", {pair}, {{"message", "loss"}}) == pair);
  CHECK(bench.error("CheckNumerics", {make<float>({2}, {NAN, 1})}, {{"message", "loss"}}) == bad + "loss: the tensor has NaN");
  CHECK(bench.error("CheckNumerics", {make<double>({2}, {-INFINITY, 1})}, {{"message", "loss"}}) == bad + "loss: the tensor has infinite values");
  CHECK(bench.error("CheckNumerics", {make<half>({2}, {half(INFINITY), half(NAN)})}, {{"message", "loss"}}) == bad + "loss: the tensor has infinite values and NaN");
  CHECK(elements<std::int32_t>(bench("Bitcast", {pair}, {{"type", dtype::int32}})) == std::vector<std::int32_t>{0x3f800000, 0x40000000});
  CHECK(bench("Bitcast", {pair}, {{"type", dtype::float64}}).shape() == shape{});
  CHECK(bench("Bitcast", {pair}, {{"type", dtype::uint8}}).shape() == shape{2, 4});
  CHECK(bench.error("Bitcast", {make<float>({3}, {1, 2, 3})}, {{"type", dtype::int64}}) == bad + "the last dimension must be 2 to read float as int64, found shape [3]");
  CHECK(bench("DeepCopy", {pair}) == pair);
  CHECK(bench("DeepCopy", {pair}).raw_data() != pair.raw_data());
}

TEST_CASE("broadcast args: the common shape, and what each gradient sums over") {
  kernel_bench bench;
  const auto sizes = [](std::initializer_list<std::int32_t> list) { return make<std::int32_t>({static_cast<std::int64_t>(list.size())}, list); };
  CHECK(elements<std::int32_t>(bench("BroadcastArgs", {sizes({2, 1, 3}), sizes({4, 1})})) == std::vector<std::int32_t>{2, 4, 3});
  const auto run = [&](tensor_value a, tensor_value b) { return bench.run(bench.add("BroadcastGradientArgs", {dtype::int32, dtype::int32}), {a, b}); };
  CHECK(elements<std::int32_t>(run(sizes({2, 3, 1}), sizes({2, 1, 1}))[0]) == std::vector<std::int32_t>{2});
  CHECK(elements<std::int32_t>(run(sizes({2, 3, 1}), sizes({2, 1, 1}))[1]) == std::vector<std::int32_t>{1, 2});
  CHECK(run(sizes({1, 3}), sizes({1, 3}))[0].elements() == 0);
  CHECK(bench.error("BroadcastArgs", {sizes({2}), sizes({3})}) == bad + "shapes [2] and [3] cannot be broadcast");
}
