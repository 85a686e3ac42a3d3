#include <weft/kernels/linear.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

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
template <class T> void check_product() {
  kernel_bench bench;
  const auto a = make<T>({2, 3}, {T(1), T(2), T(3), T(4), T(5), T(6)}), b = make<T>({3, 2}, {T(1), T(0), T(2), T(1), T(0), T(3)});
  const std::vector<T> wanted{T(5), T(11), T(14), T(23)};
  const auto product = bench("MatMul", {a, b});
  CHECK(product.shape() == shape{2, 2});
  CHECK(elements<T>(product) == wanted);
  const auto a_turned = make<T>({3, 2}, {T(1), T(4), T(2), T(5), T(3), T(6)}), b_turned = make<T>({2, 3}, {T(1), T(2), T(0), T(0), T(1), T(3)});
  CHECK(elements<T>(bench("MatMul", {a_turned, b}, {{"transpose_a", true}})) == wanted);
  CHECK(elements<T>(bench("MatMul", {a, b_turned}, {{"transpose_b", true}})) == wanted);
  CHECK(elements<T>(bench("MatMul", {a_turned, b_turned}, {{"transpose_a", true}, {"transpose_b", true}})) == wanted);
}
}  // namespace

TEST_CASE("matmul: all dtypes, either factor transposed") {
  check_product<float>();
  check_product<double>();
  check_product<half>();
  check_product<bfloat16>();
  check_product<std::int32_t>();
  check_product<std::int64_t>();
  check_product<std::uint8_t>();
  check_product<std::uint16_t>();
  check_product<std::uint32_t>();
  check_product<std::uint64_t>();
}

TEST_CASE("matmul: integers wrap") {
  kernel_bench bench;
  CHECK(elements<std::int32_t>(bench("MatMul", {make<std::int32_t>({1, 1}, {65536}), make<std::int32_t>({1, 1}, {65536})})) == std::vector<std::int32_t>{0});
  CHECK(elements<std::uint8_t>(bench("MatMul", {make<std::uint8_t>({1, 2}, {200, 100}), make<std::uint8_t>({2, 1}, {1, 1})})) == std::vector<std::uint8_t>{44});
}

TEST_CASE("matmul: sizes beyond the blocks, against sums known in closed form") {
  kernel_bench bench;
  for (const std::int64_t n : {1, 7, 33, 65, 300}) {
    // a[i,k] = i + 1, b[k,j] = j + 1: the product is n (i+1) (j+1).
    tensor_value a(dtype::float64, {n + 1, n}), b(dtype::float64, {n, n + 2});
    for (std::int64_t i = 0; i < a.elements(); ++i) a.mutable_data<double>()[i] = static_cast<double>(i / n + 1);
    for (std::int64_t i = 0; i < b.elements(); ++i) b.mutable_data<double>()[i] = static_cast<double>(i % (n + 2) + 1);
    const auto c = bench("MatMul", {a, b});
    bool equal = true;
    for (std::int64_t i = 0; i < c.elements(); ++i) equal = equal && c.data<double>()[i] == static_cast<double>(n * (i / (n + 2) + 1) * (i % (n + 2) + 1));
    CHECK(equal);
  }
}

TEST_CASE("matmul: without rows, columns or anything to add") {
  kernel_bench bench;
  CHECK(bench("MatMul", {tensor_value(dtype::float32, {0, 3}), tensor_value(dtype::float32, {3, 2})}).shape() == shape{0, 2});
  const auto zeros = bench("MatMul", {tensor_value(dtype::float32, {2, 0}), tensor_value(dtype::float32, {0, 2})});
  CHECK(elements<float>(zeros) == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("matmul: factors that do not fit") {
  kernel_bench bench;
  const tensor_value a(dtype::float32, {2, 3}), b(dtype::float32, {4, 5}), row(dtype::float32, {3});
  CHECK(bench.error("MatMul", {a, b}) == "INVALID_ARGUMENT: inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  CHECK(bench.error("MatMul", {a, b}, {{"transpose_a", true}, {"transpose_b", true}}) == "INVALID_ARGUMENT: inner dimensions 2 and 5 differ ([2,3] transposed x [4,5] transposed)");
  CHECK(bench.error("MatMul", {row, b}) == "INVALID_ARGUMENT: both operands must be matrices, found shapes [3] and [4,5]");
}

TEST_CASE("matmul: a million multiplications are called expensive") {
  kernel_bench bench;
  bench("MatMul", {tensor_value(dtype::int32, {2, 2}), tensor_value(dtype::int32, {2, 2})});
  CHECK(!bench.expensive);
  tensor_value wide(dtype::uint8, {128, 128});
  std::fill_n(wide.mutable_data<std::uint8_t>(), 128 * 128, std::uint8_t{1});
  bench("MatMul", {wide, wide});
  CHECK(bench.expensive);
}

TEST_CASE("batch_matmul: equal batches, broadcasting, either factor transposed") {
  kernel_bench bench;
  const auto a = make<float>({2, 1, 2}, {1, 2, 3, 4}), b = make<float>({2, 2, 1}, {1, 10, 2, 20});
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"}) {
    const auto product = bench(op, {a, b});
    CHECK(product.shape() == shape{2, 1, 1});
    CHECK(elements<float>(product) == std::vector<float>{21, 86});
    const auto outer = bench(op, {a, b}, {{"adj_x", true}, {"adj_y", true}});
    CHECK(outer.shape() == shape{2, 2, 2});
    CHECK(elements<float>(outer) == std::vector<float>{1, 10, 2, 20, 6, 60, 8, 80});
  }
  const auto one = make<float>({2, 1}, {1, 10});
  CHECK(elements<float>(bench("BatchMatMulV2", {a, one})) == std::vector<float>{21, 43});
  CHECK(elements<float>(bench("BatchMatMulV2", {make<float>({1, 2}, {1, 1}), b})) == std::vector<float>{11, 22});
  const auto wide = bench("BatchMatMulV2", {make<std::int32_t>({2, 1, 1, 1}, {2, 3}), make<std::int32_t>({3, 1, 1}, {1, 10, 100})});
  CHECK(wide.shape() == shape{2, 3, 1, 1});
  CHECK(elements<std::int32_t>(wide) == std::vector<std::int32_t>{2, 20, 200, 3, 30, 300});
  CHECK(elements<half>(bench("BatchMatMul", {make<half>({1, 1, 1}, {half(2.f)}), make<half>({1, 1, 1}, {half(4.f)})})) == std::vector<half>{half(8.f)});
}

TEST_CASE("batch_matmul: empty batches and matrices") {
  kernel_bench bench;
  CHECK(bench("BatchMatMulV2", {tensor_value(dtype::float32, {0, 2, 3}), tensor_value(dtype::float32, {3, 4})}).shape() == shape{0, 2, 4});
  CHECK(bench("BatchMatMul", {tensor_value(dtype::float32, {2, 0, 3}), tensor_value(dtype::float32, {2, 3, 4})}).shape() == shape{2, 0, 4});
  CHECK(elements<float>(bench("BatchMatMulV2", {tensor_value(dtype::float32, {1, 2, 0}), tensor_value(dtype::float32, {0, 1})})) == std::vector<float>{0, 0});
}

TEST_CASE("batch_matmul: shapes that do not fit") {
  kernel_bench bench;
  const auto zeros = [](std::initializer_list<std::int64_t> sizes) { return tensor_value(dtype::float32, shape(sizes)); };
  CHECK(bench.error("BatchMatMulV2", {zeros({2, 2, 3}), zeros({2, 2, 3})}) == "INVALID_ARGUMENT: inner dimensions 3 and 2 differ ([2,2,3] x [2,2,3])");
  CHECK(bench.error("BatchMatMulV2", {zeros({2, 2, 3}), zeros({3, 3, 2})}) == "INVALID_ARGUMENT: the batches cannot be broadcast, found shapes [2,2,3] and [3,3,2]");
  CHECK(bench.error("BatchMatMul", {zeros({1, 2, 3}), zeros({2, 3, 2})}) == "INVALID_ARGUMENT: the batches differ, found shapes [1,2,3] and [2,3,2]");
  CHECK(bench.error("BatchMatMul", {zeros({2, 3}), zeros({1, 3, 2})}) == "INVALID_ARGUMENT: the batches differ, found shapes [2,3] and [1,3,2]");
  CHECK(bench.error("BatchMatMulV2", {zeros({3}), zeros({3, 2})}) == "INVALID_ARGUMENT: both operands must have at least two dimensions, found shapes [3] and [3,2]");
  CHECK(bench.error("MatMul", {zeros({2, 2, 3}), zeros({3, 4})}) == "INVALID_ARGUMENT: both operands must be matrices, found shapes [2,2,3] and [3,4]");
}
