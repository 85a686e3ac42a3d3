#include <weft/kernels/random.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

using weft::bfloat16;
using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
weft::attr_map seeded(dtype type, std::int64_t seed, std::int64_t seed2) { return {{"dtype", type}, {"seed", seed}, {"seed2", seed2}}; }
const tensor_value five = make<std::int32_t>({1}, {5});

void check_near(const std::vector<double>& found, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(found[i] - wanted[i]) <= tolerance);
}
std::vector<double> doubles(const tensor_value& v) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < v.elements(); ++i) out.push_back(v.dtype() == dtype::float64 ? v.data<double>()[i] : static_cast<double>(v.data<float>()[i]));
  return out;
}
}  // namespace

// The seeded values of this file are TensorFlow's.
TEST_CASE("random uniform: TensorFlow's streams, going on from run to run") {
  kernel_bench bench;
  const weft::node& n = bench.add("RandomUniform", {dtype::int32}, seeded(dtype::float32, 87654321, 42));
  CHECK(elements<float>(bench.run(n, {five})[0]) == std::vector<float>{0.95227146f, 0.67740774f, 0.79531825f, 0.75578177f, 0.4759556f});
  CHECK(elements<float>(bench.run(n, {five})[0]) == std::vector<float>{0.81274223f, 0.59748733f, 0.79614735f, 0.5760071f, 0.13790011f});
  const weft::node& wide = bench.add("RandomUniform", {dtype::int32}, seeded(dtype::float64, 1, 0));
  const tensor_value four = make<std::int32_t>({1}, {4});
  CHECK(elements<double>(bench.run(wide, {four})[0]) == std::vector<double>{0.5015725085112726, 0.13348456503684658, 0.5049093953246451, 0.029853492835205442});
  CHECK(elements<double>(bench.run(wide, {four})[0]) == std::vector<double>{0.024557483088474275, 0.6487472084576131, 0.23425324119568858, 0.869519443733509});
}

TEST_CASE("random normal: TensorFlow's streams") {
  kernel_bench bench;
  const weft::node& n = bench.add("RandomStandardNormal", {dtype::int32}, seeded(dtype::float32, 87654321, 42));
  check_near(doubles(bench.run(n, {five})[0]), {-0.28077507, -0.1377521, -0.6763296, 0.024580413, -0.89358455}, 1e-6);
  check_near(doubles(bench.run(n, {five})[0]), {-0.37023765, -0.5268839, -0.31035113, -0.59968674, 1.6946021}, 1e-6);
  const weft::node& wide = bench.add("RandomStandardNormal", {dtype::int32}, seeded(dtype::float64, 87654321, 42));
  check_near(doubles(bench.run(wide, {five})[0]), {0.7456244549943906, -0.6371964266311646, 0.04856931364585292, -0.6518469707884212, -0.861626965289776}, 1e-12);
}

TEST_CASE("random integers: TensorFlow's streams, both widths and the whole range") {
  kernel_bench bench;
  const weft::attr_map seeds{{"seed", std::int64_t{87654321}}, {"seed2", std::int64_t{42}}};
  const weft::node& n = bench.add("RandomUniformInt", {dtype::int32, dtype::int32, dtype::int32}, seeds);
  const std::vector<tensor_value> inputs{five, tensor_value::scalar(std::int32_t{-3}), tensor_value::scalar(std::int32_t{2147483647})};
  CHECK(elements<std::int32_t>(bench.run(n, inputs)[0]) == std::vector<std::int32_t>{838460419, 1985393991, 929418490, 249609586, 146598938});
  CHECK(elements<std::int32_t>(bench.run(n, inputs)[0]) == std::vector<std::int32_t>{887621611, 1422686834, 2103830565, 1137293975, 1360111283});
  const weft::attr_map others{{"seed", std::int64_t{1}}, {"seed2", std::int64_t{2}}};
  const auto out = bench("RandomUniformInt", {make<std::int32_t>({1}, {3}), tensor_value::scalar(std::int64_t{-4611686018427387904}), tensor_value::scalar(std::int64_t{4611686018427387904})}, others);
  CHECK(elements<std::int64_t>(out) == std::vector<std::int64_t>{-3680067806584109873, -3888016201593972938, 1946874808246780275});
}

TEST_CASE("random integers: an empty range is an error") {
  kernel_bench bench;
  CHECK(bench.error("RandomUniformInt", {five, tensor_value::scalar(std::int32_t{5}), tensor_value::scalar(std::int32_t{5})}) ==
        "INVALID_ARGUMENT: minval must be less than maxval, found 5 and 5");
}

TEST_CASE("random: the 16-bit floats stay in range") {
  kernel_bench bench;
  const auto many = make<std::int32_t>({1}, {1000});
  for (const half x : elements<half>(bench("RandomUniform", {many}, seeded(dtype::half, 1, 2)))) {
    CHECK(static_cast<float>(x) >= 0.f);
    CHECK(static_cast<float>(x) < 1.f);
  }
  for (const bfloat16 x : elements<bfloat16>(bench("RandomUniform", {many}, seeded(dtype::bfloat16, 1, 2)))) CHECK(static_cast<float>(x) < 1.f);
  float sum = 0;
  for (const half x : elements<half>(bench("RandomStandardNormal", {many}, seeded(dtype::half, 1, 2)))) sum += static_cast<float>(x);
  CHECK(std::abs(sum / 1000) < 0.2f);
}

TEST_CASE("random: without seeds another stream in every session, the same one going on within it") {
  kernel_bench one, other;
  const auto first = one("RandomUniform", {five}, {{"dtype", dtype::float32}}, "draw");
  const auto second = other("RandomUniform", {five}, {{"dtype", dtype::float32}}, "draw");
  CHECK(first != second);
}

TEST_CASE("random: the position of a stream belongs to session and node, and survives a new registration") {
  kernel_bench bench, fresh;
  const weft::node& n = bench.add("RandomUniform", {dtype::int32}, seeded(dtype::float32, 87654321, 42), "draw");
  bench.run(n, {five});
  // A kernel made anew from a node of this name in the same session goes on where the first one stopped.
  CHECK(elements<float>(bench.run(n, {five})[0])[0] == 0.81274223f);
  CHECK(elements<float>(fresh("RandomUniform", {five}, seeded(dtype::float32, 87654321, 42), "draw"))[0] == 0.95227146f);
}

TEST_CASE("random: shapes") {
  kernel_bench bench;
  CHECK(bench("RandomUniform", {make<std::int64_t>({2}, {2, 3})}, seeded(dtype::float32, 1, 1)).shape() == shape{2, 3});
  CHECK(bench("RandomUniform", {make<std::int32_t>({0}, {})}, seeded(dtype::float32, 1, 1)).shape() == shape{});
  CHECK(bench("RandomUniform", {make<std::int32_t>({1}, {0})}, seeded(dtype::float32, 1, 1)).shape() == shape{0});
  CHECK(bench.error("RandomUniform", {make<std::int32_t>({1}, {-1})}, seeded(dtype::float32, 1, 1)) ==
        "INVALID_ARGUMENT: the wanted shape [-1] has a negative size or too many elements");
  CHECK(bench.error("RandomUniform", {tensor_value::scalar(std::int32_t{3})}, seeded(dtype::float32, 1, 1)) ==
        "INVALID_ARGUMENT: the wanted shape must be a vector of sizes, found shape []");
}
