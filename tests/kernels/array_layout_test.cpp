#include <weft/kernels/array_layout.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
const tensor_value six = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
tensor_value ints(std::initializer_list<std::int32_t> list) { return make<std::int32_t>({static_cast<std::int64_t>(list.size())}, list); }
std::vector<float> floats(const tensor_value& v) { return elements<float>(v); }
const std::string bad = "INVALID_ARGUMENT: ";
}  // namespace

TEST_CASE("transpose: any order, without a copy where none changes") {
  kernel_bench bench;
  CHECK(floats(bench("Transpose", {six, ints({1, 0})})) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(bench("Transpose", {six, ints({1, 0})}).shape() == shape{3, 2});
  CHECK(floats(bench("Transpose", {six, ints({-1, 0})})) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(bench("Transpose", {six, ints({0, 1})}).raw_data() == six.raw_data());
  const auto cube = make<std::int32_t>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(bench("Transpose", {cube, ints({1, 0, 2})}).shape() == shape{1, 2, 3});
  CHECK(elements<std::int32_t>(bench("Transpose", {cube, ints({2, 1, 0})})) == std::vector<std::int32_t>{1, 4, 2, 5, 3, 6});
  CHECK(elements<std::string>(bench("Transpose", {make<std::string>({2, 2}, {"a", "b", "c", "d"}), ints({1, 0})})) == std::vector<std::string>{"a", "c", "b", "d"});
  CHECK(bench.error("Transpose", {six, ints({0, 0})}) == bad + "perm names dimension 0 twice");
  CHECK(bench.error("Transpose", {six, ints({0, 2})}) == bad + "perm 2 is not in [-2, 2)");
  CHECK(bench.error("Transpose", {six, ints({0})}) == bad + "perm must have 2 elements, one for each dimension of shape [2,3], found 1");
  CHECK(elements<std::int32_t>(bench("InvertPermutation", {ints({2, 0, 1})})) == std::vector<std::int32_t>{1, 2, 0});
  CHECK(bench.error("InvertPermutation", {ints({0, 2})}) == bad + "x[1] = 2 is not in [0, 2)");
  CHECK(bench.error("InvertPermutation", {ints({1, 1})}) == bad + "x names 1 twice");
}

TEST_CASE("space, depth and batch: blocks move and come back") {
  kernel_bench bench;
  const auto image = make<float>({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const weft::attr_map two{{"block_size", std::int64_t{2}}}, channels_first{{"block_size", std::int64_t{2}}, {"data_format", "NCHW"}};
  const auto deep = bench("SpaceToDepth", {image}, two);
  CHECK(deep.shape() == shape{1, 1, 1, 8});
  CHECK(floats(deep) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(bench("DepthToSpace", {deep}, two) == image);
  // Channel c of [1, 2, 2, 2] as channels first; the block's place is the outer part of the depth.
  const auto first = make<float>({1, 2, 2, 2}, {1, 3, 5, 7, 2, 4, 6, 8});
  CHECK(floats(bench("SpaceToDepth", {first}, channels_first)) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(bench("DepthToSpace", {bench("SpaceToDepth", {first}, channels_first)}, channels_first) == first);
  const auto line = make<float>({1, 3, 1}, {1, 2, 3});
  const auto pads = make<std::int32_t>({1, 2}, {1, 0});
  const auto batched = bench("SpaceToBatchND", {line, ints({2}), pads});
  CHECK(batched.shape() == shape{2, 2, 1});
  CHECK(floats(batched) == std::vector<float>{0, 2, 1, 3});
  CHECK(bench("BatchToSpaceND", {batched, ints({2}), pads}) == line);
  CHECK(bench.error("SpaceToDepth", {image}, {{"block_size", std::int64_t{3}}}) == bad + "height 2 cannot be divided by 3");
  CHECK(bench.error("SpaceToDepth", {image}, {{"block_size", std::int64_t{2}}, {"data_format", "NCHW_VECT_C"}}) == "UNIMPLEMENTED: no kernel of this op takes data in the format 'NCHW_VECT_C'");
  CHECK(bench.error("SpaceToBatchND", {line, ints({2}), make<std::int32_t>({1, 2}, {0, 0})}) == bad + "padded dimension 1 of size 3 cannot be divided by 2");
  CHECK(bench.error("SpaceToBatchND", {line, make<std::int64_t>({1}, {INT64_MAX}), pads}).substr(0, 18) == bad);
}

TEST_CASE("diagonals and bands") {
  kernel_bench bench;
  CHECK(floats(bench("Diag", {make<float>({2}, {1, 2})})) == std::vector<float>{1, 0, 0, 2});
  CHECK(floats(bench("DiagPart", {make<float>({2, 2}, {1, 2, 3, 4})})) == std::vector<float>{1, 4});
  CHECK(floats(bench("MatrixDiag", {make<float>({2, 2}, {1, 2, 3, 4})})) == std::vector<float>{1, 0, 0, 2, 3, 0, 0, 4});
  CHECK(floats(bench("MatrixDiagPart", {six})) == std::vector<float>{1, 5});
  CHECK(floats(bench("MatrixSetDiag", {six, make<float>({2}, {8, 9})})) == std::vector<float>{8, 2, 3, 4, 9, 6});
  const auto bound = [](std::int64_t v) { return tensor_value::scalar(v); };
  CHECK(floats(bench("MatrixBandPart", {six, bound(0), bound(0)})) == std::vector<float>{1, 0, 0, 0, 5, 0});
  CHECK(floats(bench("MatrixBandPart", {six, bound(-1), bound(1)})) == std::vector<float>{1, 2, 0, 4, 5, 6});
  CHECK(floats(bench("MatrixBandPart", {six, bound(0), bound(-1)})) == std::vector<float>{1, 2, 3, 0, 5, 6});
  CHECK(bench.error("DiagPart", {six}) == bad + "dimensions 0 and 1 must be equal, found 2 and 3");
  CHECK(bench.error("MatrixBandPart", {six, bound(3), bound(0)}) == bad + "num_lower must be negative or at most the number of rows 2, found 3");
}
