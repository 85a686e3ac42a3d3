#include <weft/kernels/array_select.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
const tensor_value six = make<float>({2, 3}, {1, 2, 3, 4, 5, 6}), other = make<float>({2, 3}, {-1, -2, -3, -4, -5, -6});
tensor_value ints(std::initializer_list<std::int32_t> list) { return make<std::int32_t>({static_cast<std::int64_t>(list.size())}, list); }
std::vector<float> floats(const tensor_value& v) { return elements<float>(v); }
std::vector<std::int32_t> numbers(const tensor_value& v) { return elements<std::int32_t>(v); }
const std::string bad = "INVALID_ARGUMENT: ";
}  // namespace

TEST_CASE("select: elements, rows, everything; select v2 broadcasts") {
  kernel_bench bench;
  CHECK(floats(bench("Select", {make<bool>({2, 3}, {true, false, true, false, true, false}), six, other})) == std::vector<float>{1, -2, 3, -4, 5, -6});
  CHECK(floats(bench("Select", {make<bool>({2}, {false, true}), six, other})) == std::vector<float>{-1, -2, -3, 4, 5, 6});
  CHECK(bench("Select", {tensor_value::scalar(true), six, other}).raw_data() == six.raw_data());
  CHECK(floats(bench("SelectV2", {make<bool>({3}, {false, true, false}), six, tensor_value::scalar(0.f)})) == std::vector<float>{0, 2, 0, 0, 5, 0});
  CHECK(floats(bench("SelectV2", {make<bool>({2, 1}, {true, false}), make<float>({3}, {7, 8, 9}), six})) == std::vector<float>{7, 8, 9, 4, 5, 6});
  CHECK(elements<std::string>(bench("SelectV2", {make<bool>({2}, {true, false}), tensor_value::scalar(std::string("yes")), tensor_value::scalar(std::string("no"))})) == std::vector<std::string>{"yes", "no"});
  CHECK(bench.error("Select", {make<bool>({3}, {true, true, true}), six, other}) == bad + "a condition of shape [3] cannot choose from shape [2,3]");
  CHECK(bench.error("SelectV2", {make<bool>({2}, {true, false}), six, other}) == bad + "shapes [2] of the condition, [2,3] and [2,3] cannot be broadcast");
}

TEST_CASE("where: positions of what is not zero") {
  kernel_bench bench;
  CHECK(elements<std::int64_t>(bench("Where", {make<bool>({2, 2}, {false, true, true, false})})) == std::vector<std::int64_t>{0, 1, 1, 0});
  CHECK(elements<std::int64_t>(bench("Where", {make<float>({4}, {0, -0.f, NAN, 1e-40f})})) == std::vector<std::int64_t>{2, 3});
  CHECK(elements<std::int64_t>(bench("Where", {make<half>({3}, {half(-0.f), half(1.f), half(0.f)})})) == std::vector<std::int64_t>{1});
  CHECK(bench("Where", {make<std::int8_t>({2, 1, 1}, {0, 0})}).shape() == shape{0, 3});
  CHECK(bench.error("Where", {tensor_value::scalar(true)}) == bad + "the input must have at least 1 dimension, found shape []");
}

TEST_CASE("one hot: along any axis; indices outside have no place") {
  kernel_bench bench;
  const auto depth = tensor_value::scalar(std::int32_t{2}), on = tensor_value::scalar(1.f), off = tensor_value::scalar(0.f);
  CHECK(floats(bench("OneHot", {ints({1, 0, 5, -1}), depth, on, off})) == std::vector<float>{0, 1, 1, 0, 0, 0, 0, 0});
  CHECK(floats(bench("OneHot", {ints({1, 0}), depth, on, off}, {{"axis", std::int64_t{0}}})) == std::vector<float>{0, 1, 1, 0});
  CHECK(bench.error("OneHot", {ints({1}), tensor_value::scalar(std::int32_t{-1}), on, off}) == bad + "depth must not be negative, found -1");
  CHECK(bench.error("OneHot", {ints({1}), depth, make<float>({1}, {1}), off}) == bad + "on_value must have rank 0, found shape [1]");
}

TEST_CASE("top k: the largest first, the lower position among equals") {
  kernel_bench bench;
  const auto k = tensor_value::scalar(std::int32_t{2});
  const auto run = [&](tensor_value v, weft::attr_map attrs = {}) { return bench.run(bench.add("TopKV2", {v.dtype(), dtype::int32}, std::move(attrs)), {v, k}); };
  const auto rows = run(make<float>({2, 3}, {1, 3, 3, -1, -5, -1}));
  CHECK(floats(rows[0]) == std::vector<float>{3, 3, -1, -1});
  CHECK(numbers(rows[1]) == std::vector<std::int32_t>{1, 2, 0, 2});
  CHECK(numbers(run(make<float>({3}, {-0.f, 0.f, -INFINITY}))[1]) == std::vector<std::int32_t>{0, 1});
  CHECK(numbers(run(make<std::int64_t>({4}, {INT64_MIN, INT64_MAX, -1, 0}))[1]) == std::vector<std::int32_t>{1, 3});
  CHECK(numbers(run(make<std::uint8_t>({3}, {128, 255, 0}))[1]) == std::vector<std::int32_t>{1, 0});
  CHECK(elements<std::int64_t>(run(make<half>({3}, {half(1.f), half(-2.f), half(3.f)}), {{"index_type", dtype::int64}})[1]) == std::vector<std::int64_t>{2, 0});
  CHECK(bench.error("TopKV2", {make<float>({1}, {1}), k}) == bad + "rows of 1 elements have no 2 largest");
}

TEST_CASE("partition, stitch: rows by their numbers") {
  kernel_bench bench;
  const auto parts = bench.run(bench.add("DynamicPartition", {dtype::float32, dtype::int32}, {{"num_partitions", std::int64_t{3}}}), {six, ints({2, 0})});
  CHECK(floats(parts[0]) == std::vector<float>{4, 5, 6});
  CHECK(parts[1].shape() == shape{0, 3});
  CHECK(floats(parts[2]) == std::vector<float>{1, 2, 3});
  CHECK(floats(bench("DynamicStitch", {ints({2, 0}), ints({2}), make<float>({2}, {1, 2}), make<float>({1}, {3})})) == std::vector<float>{2, 0, 3});
  CHECK(bench.error("DynamicPartition", {six, ints({0, 3})}, {{"num_partitions", std::int64_t{3}}}) == bad + "partitions[1] = 3 is not in [0, 3)");
  CHECK(bench.error("DynamicStitch", {ints({-1}), make<float>({1}, {3})}) == bad + "indices[0] of input 0 is negative: -1");
}
