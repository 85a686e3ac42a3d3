#include <weft/kernels/random.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

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

TEST_CASE("random truncated normal: TensorFlow's streams, in every width") {
  kernel_bench bench;
  const weft::node& n = bench.add("TruncatedNormal", {dtype::int32}, seeded(dtype::float32, 1, 0));
  const tensor_value seventeen = make<std::int32_t>({1}, {17});
  check_near(doubles(bench.run(n, {seventeen})[0]), {0.3052047, 0.5671378, 0.41852272, 0.2326421, -0.89273494, -0.6950082, -0.018016433, -0.046627935, 0.33149767, 0.4665157, 0.6415256, -0.6232483,
                                                     0.07032888, 0.47086465, -0.3649671, 1.1374208, 1.1675092}, 1e-5);
  check_near(doubles(bench.run(n, {make<std::int32_t>({1}, {4})})[0]), {-1.5015026, -0.127393, 0.2868219, -0.15687028}, 1e-5);
  const tensor_value many = make<std::int32_t>({1}, {5000});
  for (const dtype type : {dtype::float32, dtype::float64}) {
    double largest = 0, sum = 0;
    for (const double x : doubles(bench("TruncatedNormal", {many}, seeded(type, 3, 4)))) {
      largest = std::max(largest, std::abs(x));
      sum += x;
    }
    CHECK(largest < 2);
    CHECK(largest > 1.9);
    CHECK(std::abs(sum / 5000) < 0.05);
  }
  // A 16-bit float may round to 2 itself.
  for (const half x : elements<half>(bench("TruncatedNormal", {many}, seeded(dtype::half, 3, 4)))) CHECK(std::abs(static_cast<float>(x)) <= 2.f);
}

TEST_CASE("random shuffle: rows in another order, the same for strings") {
  kernel_bench bench;
  tensor_value numbers(dtype::int32, shape{1000, 2}), words(dtype::string, shape{1000, 2});
  for (int i = 0; i < 2000; ++i) {
    numbers.mutable_data<std::int32_t>()[i] = i;
    words.mutable_data<std::string>()[i] = std::to_string(i);
  }
  const weft::attr_map seeds{{"seed", std::int64_t{7}}, {"seed2", std::int64_t{8}}};
  const auto a = elements<std::int32_t>(bench("RandomShuffle", {numbers}, seeds));
  const auto b = elements<std::string>(bench("RandomShuffle", {words}, seeds));
  std::vector<bool> seen(1000, false);
  bool right = true;
  for (std::size_t r = 0; r < 1000; ++r) {
    right = right && a[2 * r + 1] == a[2 * r] + 1 && b[2 * r] == std::to_string(a[2 * r]);
    seen[static_cast<std::size_t>(a[2 * r] / 2)] = true;
  }
  CHECK(right);
  CHECK(std::count(seen.begin(), seen.end(), true) == 1000);
  CHECK(bench("RandomShuffle", {tensor_value::scalar(5.f)}, seeds).item<float>() == 5.f);
  CHECK(bench("RandomShuffle", {make<float>({0}, {})}, seeds).shape() == shape{0});
  CHECK(bench("RandomShuffle", {make<float>({4, 0}, {})}, seeds).shape() == shape{4, 0});
}

TEST_CASE("random multinomial: TensorFlow's streams, and logits that are certain or not finite") {
  kernel_bench bench;
  const auto logits = make<float>({2, 4}, {-2.3025851f, -1.609438f, -1.2039728f, -0.91629076f, -0.91629076f, -1.2039728f, -1.609438f, -2.3025851f});
  const weft::attr_map seeds{{"seed", std::int64_t{87654321}}, {"seed2", std::int64_t{42}}};
  const weft::node& n = bench.add("Multinomial", {dtype::float32, dtype::int32}, seeds);
  const auto three = tensor_value::scalar(std::int32_t{3});
  CHECK(elements<std::int64_t>(bench.run(n, {logits, three})[0]) == std::vector<std::int64_t>{3, 2, 3, 1, 1, 2});
  CHECK(elements<std::int64_t>(bench.run(n, {logits, three})[0]) == std::vector<std::int64_t>{3, 3, 1, 0, 0, 2});
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(elements<std::int64_t>(bench("Multinomial", {make<float>({1, 3}, {-inf, 5, std::nanf("")}), three}, seeds)) == std::vector<std::int64_t>{1, 1, 1});
  CHECK(bench("Multinomial", {make<std::int32_t>({2, 1}, {3, 4}), tensor_value::scalar(std::int32_t{0})}, seeds).shape() == shape{2, 0});
  CHECK(bench.error("Multinomial", {make<float>({1, 0}, {}), three}, seeds) == "INVALID_ARGUMENT: there must be at least one class, found logits of shape [1,0]");
  CHECK(bench.error("Multinomial", {logits, tensor_value::scalar(std::int32_t{-1})}, seeds) == "INVALID_ARGUMENT: num_samples must not be negative, found -1");
  CHECK(bench.error("Multinomial", {make<float>({3}, {1, 2, 3}), three}, seeds) == "INVALID_ARGUMENT: logits must have rank 2, found shape [3]");
}

TEST_CASE("stateless random numbers: TensorFlow's, the same each time") {
  kernel_bench bench;
  const auto seed = make<std::int64_t>({2}, {1, 2});
  const weft::node& n = bench.add("StatelessRandomUniform", {dtype::int32, dtype::int64}, {{"dtype", dtype::float32}});
  const tensor_value three = make<std::int32_t>({1}, {3});
  for (int run = 0; run < 2; ++run) CHECK(elements<float>(bench.run(n, {three, seed})[0]) == std::vector<float>{0.8440604f, 0.19204533f, 0.9962232f});
  CHECK(elements<float>(bench("StatelessRandomUniform", {three, make<std::int32_t>({2}, {1, 2})}, {{"dtype", dtype::float32}})) == std::vector<float>{0.8440604f, 0.19204533f, 0.9962232f});
  check_near(doubles(bench("StatelessTruncatedNormal", {make<std::int32_t>({1}, {4}), seed}, {{"dtype", dtype::float32}})), {0.5441101, 0.20738031, 0.07356432, 0.04643455}, 1e-5);
  const auto limits = [](std::int64_t low, std::int64_t high) { return std::vector<tensor_value>{tensor_value::scalar(low), tensor_value::scalar(high)}; };
  CHECK(bench.error("StatelessRandomUniformInt", {three, seed, limits(5, 5)[0], limits(5, 5)[1]}, {{"dtype", dtype::int64}}) == "INVALID_ARGUMENT: minval must be less than maxval, found 5 and 5");
  CHECK(bench.error("StatelessRandomNormal", {three, make<std::int64_t>({1}, {5})}, {{"dtype", dtype::float32}}) == "INVALID_ARGUMENT: seed must have shape [2], found [1]");
  CHECK(bench("StatelessRandomUniformFullInt", {three, make<std::uint64_t>({2}, {1, 2})}, {{"dtype", dtype::uint64}, {"Tseed", dtype::uint64}}).elements() == 3);
}
