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

TEST_CASE("split, unpack: parts of equal, given or open sizes") {
  kernel_bench bench;
  const auto axis = [](std::int32_t a) { return tensor_value::scalar(a); };
  const auto halves = bench.run(bench.add("Split", {dtype::int32, dtype::float32}, {{"num_split", std::int64_t{3}}}), {axis(1), six});
  CHECK(elements<float>(halves[2]) == std::vector<float>{3, 6});
  CHECK(halves[2].shape() == shape{2, 1});
  const auto parts = bench.run(bench.add("SplitV", {dtype::float32, dtype::int32, dtype::int32}, {{"num_split", std::int64_t{2}}}), {six, sizes({1, -1}), axis(-1)});
  CHECK(elements<float>(parts[0]) == std::vector<float>{1, 4});
  CHECK(elements<float>(parts[1]) == std::vector<float>{2, 3, 5, 6});
  const auto rows = bench.run(bench.add("Unpack", {dtype::float32}, {{"num", std::int64_t{2}}}), {six});
  CHECK(elements<float>(rows[1]) == std::vector<float>{4, 5, 6});
  CHECK(rows[1].shape() == shape{3});
  CHECK(bench.error("Split", {axis(0), six}, {{"num_split", std::int64_t{4}}}) == "INVALID_ARGUMENT: dimension 0 of size 2 cannot be divided by 4");
  CHECK(bench.error("SplitV", {six, make<std::int64_t>({2}, {INT64_MAX, INT64_MAX}), axis(0)}, {{"num_split", std::int64_t{2}}}).substr(0, 16) == "INVALID_ARGUMENT");
  CHECK(bench.error("Unpack", {six}, {{"num", std::int64_t{3}}}) == "INVALID_ARGUMENT: dimension 0 of shape [2,3] must be 3, as attribute 'num' says");
}

TEST_CASE("tile, broadcast, pad, mirror: repeated and surrounded") {
  kernel_bench bench;
  const auto row = make<float>({3}, {1, 2, 3});
  CHECK(elements<float>(bench("Tile", {row, sizes({2})})) == std::vector<float>{1, 2, 3, 1, 2, 3});
  CHECK(elements<float>(bench("Tile", {make<float>({2, 1}, {1, 2}), sizes({2, 2})})) == std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2});
  CHECK(elements<std::string>(bench("Tile", {make<std::string>({1}, {"a"}), sizes({2})})) == std::vector<std::string>{"a", "a"});
  CHECK(elements<float>(bench("BroadcastTo", {make<float>({2, 1}, {1, 2}), sizes({2, 2, 2})})) == std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2});
  const auto around = make<std::int32_t>({1, 2}, {2, 1});
  CHECK(elements<float>(bench("Pad", {row, around})) == std::vector<float>{0, 0, 1, 2, 3, 0});
  CHECK(elements<float>(bench("PadV2", {row, around, tensor_value::scalar(9.f)})) == std::vector<float>{9, 9, 1, 2, 3, 9});
  CHECK(elements<float>(bench("MirrorPad", {row, around}, {{"mode", "REFLECT"}})) == std::vector<float>{3, 2, 1, 2, 3, 2});
  CHECK(elements<float>(bench("MirrorPad", {row, around}, {{"mode", "SYMMETRIC"}})) == std::vector<float>{2, 1, 1, 2, 3, 3});
  CHECK(elements<float>(bench("MirrorPad", {six, make<std::int32_t>({2, 2}, {0, 1, 1, 0})}, {{"mode", "REFLECT"}})) == std::vector<float>{2, 1, 2, 3, 5, 4, 5, 6, 2, 1, 2, 3});
  // Each border element adds to the one that it mirrors.
  const auto grads = make<float>({6}, {1, 2, 3, 4, 5, 6});
  CHECK(elements<float>(bench("MirrorPadGrad", {grads, around}, {{"mode", "REFLECT"}})) == std::vector<float>{3, 4 + 2 + 6, 5 + 1});
  CHECK(elements<float>(bench("MirrorPadGrad", {grads, around}, {{"mode", "SYMMETRIC"}})) == std::vector<float>{3 + 2, 4 + 1, 5 + 6});
  CHECK(bench.error("Tile", {row, sizes({-1})}) == "INVALID_ARGUMENT: multiples[0] cannot be -1");
  CHECK(bench.error("Tile", {row, make<std::int64_t>({1}, {std::int64_t{1} << 62})}).substr(0, 16) == "INVALID_ARGUMENT");
  CHECK(bench.error("BroadcastTo", {row, sizes({2, 4})}) == "INVALID_ARGUMENT: a tensor of shape [3] cannot be broadcast to shape [2,4]");
  CHECK(bench.error("MirrorPad", {row, make<std::int32_t>({1, 2}, {3, 0})}, {{"mode", "REFLECT"}}) == "INVALID_ARGUMENT: paddings 3 and 0 of dimension 0 must be less than its size 3");
}

TEST_CASE("concat offset: where each input begins") {
  kernel_bench bench;
  const auto offsets = bench.run(bench.add("ConcatOffset", {dtype::int32, dtype::int32, dtype::int32}), {tensor_value::scalar(std::int32_t{1}), sizes({2, 3}), sizes({2, 5})});
  CHECK(elements<std::int32_t>(offsets[0]) == std::vector<std::int32_t>{0, 0});
  CHECK(elements<std::int32_t>(offsets[1]) == std::vector<std::int32_t>{0, 3});
  CHECK(bench.error("ConcatOffset", {tensor_value::scalar(std::int32_t{0}), sizes({2, 3}), sizes({2, 4})}) == "INVALID_ARGUMENT: shapes [2,3] of input 0 and [2,4] of input 1 differ in another dimension than 0");
}
