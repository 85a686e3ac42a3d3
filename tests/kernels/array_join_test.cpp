#include <weft/kernels/array_join.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
const tensor_value six = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
tensor_value sizes(std::initializer_list<std::int32_t> list) { return make<std::int32_t>({static_cast<std::int64_t>(list.size())}, list); }
}  // namespace

TEST_CASE("concat: along any axis") {
  kernel_bench bench;
  const auto axis = [](std::int32_t a) { return tensor_value::scalar(a); };
  const auto row = make<float>({1, 3}, {7, 8, 9}), column = make<float>({2, 1}, {7, 8});
  CHECK(elements<float>(bench("ConcatV2", {six, row, axis(0)})) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto wide = bench("ConcatV2", {six, column, axis(-1)});
  CHECK(wide.shape() == shape{2, 4});
  CHECK(elements<float>(wide) == std::vector<float>{1, 2, 3, 7, 4, 5, 6, 8});
  CHECK(bench("ConcatV2", {tensor_value(dtype::float32, {0, 3}), six, axis(0)}) == six);
  CHECK(elements<std::string>(bench("ConcatV2", {make<std::string>({1}, {"a"}), make<std::string>({2}, {"b", "c"}), axis(0)})) == std::vector<std::string>{"a", "b", "c"});
  CHECK(bench.error("ConcatV2", {six, make<float>({2, 2}, {1, 2, 3, 4}), axis(0)}) ==
        "INVALID_ARGUMENT: shapes [2,3] of input 0 and [2,2] of input 1 differ in another dimension than 0");
  CHECK(bench.error("ConcatV2", {six, six, axis(2)}) == "INVALID_ARGUMENT: axis 2 is not in [-2, 2)");
  CHECK(bench.error("ConcatV2", {tensor_value::scalar(1.f), tensor_value::scalar(1.f), axis(0)}) == "INVALID_ARGUMENT: scalars have no axis to join along; stack them with Pack");
  CHECK(bench.error("ConcatV2", {six, six, sizes({0, 1})}) == "INVALID_ARGUMENT: the axis must have rank 0, found shape [2]");
}

TEST_CASE("pack: a new axis anywhere") {
  kernel_bench bench;
  const auto a = make<std::int32_t>({2}, {1, 2}), b = make<std::int32_t>({2}, {3, 4});
  const auto rows = bench("Pack", {a, b}), columns = bench("Pack", {a, b}, {{"axis", std::int64_t{-1}}});
  CHECK(rows.shape() == shape{2, 2});
  CHECK(elements<std::int32_t>(rows) == std::vector<std::int32_t>{1, 2, 3, 4});
  CHECK(elements<std::int32_t>(columns) == std::vector<std::int32_t>{1, 3, 2, 4});
  CHECK(elements<std::string>(bench("Pack", {tensor_value::scalar(std::string("a")), tensor_value::scalar(std::string("b"))})) == std::vector<std::string>{"a", "b"});
  CHECK(bench("Pack", {tensor_value(dtype::int32, {0})}).shape() == shape{1, 0});
  CHECK(bench.error("Pack", {a, make<std::int32_t>({3}, {1, 2, 3})}) == "INVALID_ARGUMENT: shapes [2] of input 0 and [3] of input 1 differ");
  CHECK(bench.error("Pack", {a, b}, {{"axis", std::int64_t{2}}}) == "INVALID_ARGUMENT: axis 2 is not in [-2, 2)");
}
