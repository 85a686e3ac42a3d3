#include <weft/kernels/array_slice.hpp>

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
tensor_value number(std::int32_t v) { return tensor_value::scalar(v); }
std::vector<float> floats(const tensor_value& v) { return elements<float>(v); }
const std::string bad = "INVALID_ARGUMENT: ";
weft::attr_map masks(std::int64_t begin, std::int64_t end, std::int64_t ellipsis, std::int64_t new_axis, std::int64_t shrink) {
  return {{"begin_mask", begin}, {"end_mask", end}, {"ellipsis_mask", ellipsis}, {"new_axis_mask", new_axis}, {"shrink_axis_mask", shrink}};
}
}  // namespace

TEST_CASE("slice: by begin and size") {
  kernel_bench bench;
  CHECK(floats(bench("Slice", {six, ints({0, 1}), ints({2, 2})})) == std::vector<float>{2, 3, 5, 6});
  CHECK(floats(bench("Slice", {six, ints({1, 0}), ints({-1, -1})})) == std::vector<float>{4, 5, 6});
  CHECK(bench("Slice", {six, ints({2, 0}), ints({0, 3})}).shape() == shape{0, 3});
  CHECK(bench("Slice", {six, ints({0, 0}), ints({2, 3})}).raw_data() == six.raw_data());
  CHECK(bench.error("Slice", {six, ints({0, 2}), ints({2, 2})}) == bad + "size[1] = 2 is not in [0, 1]");
  CHECK(bench.error("Slice", {six, ints({3, 0}), ints({0, 0})}) == bad + "begin[0] = 3 is not in [0, 2]");
  CHECK(bench.error("Slice", {six, make<std::int64_t>({2}, {0, INT64_MIN}), make<std::int64_t>({2}, {1, -1})}).substr(0, 23) == bad + "begin");
}

TEST_CASE("strided slice: strides, masks and what they make of the shape") {
  kernel_bench bench;
  CHECK(floats(bench("StridedSlice", {six, ints({0, 2}), ints({2, -4}), ints({1, -2})})) == std::vector<float>{3, 1, 6, 4});
  CHECK(floats(bench("StridedSlice", {six, ints({1, 0}), ints({2, 0}), ints({1, 1})}, masks(2, 2, 0, 0, 1))) == std::vector<float>{4, 5, 6});
  CHECK(bench("StridedSlice", {six, ints({1, 0}), ints({2, 0}), ints({1, 1})}, masks(2, 2, 0, 0, 1)).shape() == shape{3});
  CHECK(bench("StridedSlice", {six, ints({0, 0}), ints({0, 0}), ints({1, 1})}, masks(0, 0, 1, 2, 0)).shape() == shape{2, 3, 1});
  CHECK(elements<std::string>(bench("StridedSlice", {make<std::string>({3}, {"a", "b", "c"}), ints({-1}), ints({-100}), ints({-1})})) == std::vector<std::string>{"c", "b", "a"});
  CHECK(bench("StridedSlice", {six, make<std::int64_t>({1}, {0}), make<std::int64_t>({1}, {INT64_MAX}), make<std::int64_t>({1}, {INT64_MAX})}).shape() == shape{1, 3});
  CHECK(bench("StridedSlice", {six, make<std::int64_t>({1}, {INT64_MAX}), make<std::int64_t>({1}, {INT64_MIN}), make<std::int64_t>({1}, {INT64_MIN})}).shape() == shape{1, 3});
  CHECK(bench.error("StridedSlice", {six, ints({0}), ints({1}), ints({0})}) == bad + "strides[0] must not be 0");
  CHECK(bench.error("StridedSlice", {six, ints({2}), ints({3}), ints({1})}, masks(0, 0, 0, 0, 1)) == bad + "index 2 is outside dimension 0 of size 2");
  CHECK(bench.error("StridedSlice", {six, ints({0, 0, 0}), ints({1, 1, 1}), ints({1, 1, 1})}) == bad + "the slice names dimension 2, the tensor of shape [2,3] has 2");
  CHECK(bench.error("StridedSlice", {six, ints({0, 0}), ints({1, 1}), ints({1, 1})}, masks(0, 0, 3, 0, 0)) == bad + "a slice may have one ellipsis, found 2");
  CHECK(floats(bench("StridedSliceGrad", {ints({2, 3}), ints({0, 2}), ints({2, -4}), ints({1, -2}), make<float>({2, 2}, {1, 2, 3, 4})})) == std::vector<float>{2, 0, 1, 4, 0, 3});
  CHECK(bench.error("StridedSliceGrad", {ints({2, 3}), ints({0}), ints({1}), ints({1}), six}) == bad + "dy must have shape [1,3], found [2,3]");
}

TEST_CASE("gather: along an axis, in batches, by rows of indices") {
  kernel_bench bench;
  CHECK(floats(bench("GatherV2", {six, ints({2, 0}), number(1)})) == std::vector<float>{3, 1, 6, 4});
  CHECK(floats(bench("Gather", {six, make<std::int64_t>({1, 2}, {1, 1})})) == std::vector<float>{4, 5, 6, 4, 5, 6});
  CHECK(floats(bench("GatherV2", {six, make<std::int32_t>({2, 1}, {2, 0}), number(1)}, {{"batch_dims", std::int64_t{1}}})) == std::vector<float>{3, 4});
  CHECK(bench("GatherV2", {tensor_value(dtype::float32, {0, 3}), ints({}), number(0)}).shape() == shape{0, 3});
  CHECK(floats(bench("GatherNd", {six, make<std::int32_t>({2, 2}, {1, 2, 0, 0})})) == std::vector<float>{6, 1});
  CHECK(floats(bench("GatherNd", {six, make<std::int32_t>({1, 1}, {1})})) == std::vector<float>{4, 5, 6});
  CHECK(bench.error("GatherV2", {six, make<std::int32_t>({1, 2}, {0, 3}), number(1)}) == bad + "indices[0,1] = 3 is not in [0, 3)");
  CHECK(bench.error("Gather", {tensor_value(dtype::float32, {0, 3}), ints({0})}) == bad + "indices[0] = 0 is not in [0, 0)");
  CHECK(bench.error("GatherNd", {six, make<std::int32_t>({1, 2}, {0, -1})}) == bad + "indices[0] = [0,-1] does not index into shape [2,3]");
}

TEST_CASE("scatter: sums, replacements and extremes") {
  kernel_bench bench;
  const auto rows = make<std::int32_t>({3, 1}, {1, 0, 1});
  CHECK(floats(bench("ScatterNd", {rows, make<float>({3}, {1, 2, 3}), ints({3})})) == std::vector<float>{2, 4, 0});
  CHECK(elements<std::int8_t>(bench("ScatterNd", {rows, make<std::int8_t>({3}, {100, 2, 100}), ints({2})})) == std::vector<std::int8_t>{2, -56});
  CHECK(elements<std::string>(bench("ScatterNd", {rows, make<std::string>({3}, {"a", "b", "c"}), ints({2})})) == std::vector<std::string>{"b", "ac"});
  const auto updates = make<float>({3, 3}, {10, 20, 30, -1, -2, -3, 0, 1, 2});
  CHECK(floats(bench("TensorScatterUpdate", {six, rows, updates})) == std::vector<float>{-1, -2, -3, 0, 1, 2});
  CHECK(floats(bench("TensorScatterAdd", {six, rows, updates})) == std::vector<float>{0, 0, 0, 14, 26, 38});
  CHECK(floats(bench("TensorScatterSub", {six, rows, updates})) == std::vector<float>{2, 4, 6, -6, -16, -26});
  CHECK(floats(bench("TensorScatterMax", {six, rows, updates})) == std::vector<float>{1, 2, 3, 10, 20, 30});
  CHECK(floats(bench("TensorScatterMin", {six, rows, updates})) == std::vector<float>{-1, -2, -3, 0, 1, 2});
  CHECK(floats(six) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(bench.error("ScatterNd", {make<std::int32_t>({1, 1}, {4}), make<float>({1}, {1}), ints({4})}) == bad + "indices[0] = [4] does not index into shape [4]");
  CHECK(bench.error("ScatterNd", {rows, make<float>({2}, {1, 2}), ints({3})}) == bad + "updates must have shape [3] (indices [3,1], output [3]), found [2]");
  CHECK(bench.error("ScatterNd", {rows, make<float>({3}, {1, 2, 3}), ints({-3})}) == bad + "shape cannot have a dimension of -3");
}

TEST_CASE("reverse: whole dimensions, or the first elements of each sequence") {
  kernel_bench bench;
  CHECK(floats(bench("ReverseV2", {six, ints({1})})) == std::vector<float>{3, 2, 1, 6, 5, 4});
  CHECK(floats(bench("ReverseV2", {six, ints({-2, 1})})) == std::vector<float>{6, 5, 4, 3, 2, 1});
  CHECK(floats(bench("ReverseSequence", {six, ints({2, 3})}, {{"seq_dim", std::int64_t{1}}})) == std::vector<float>{2, 1, 3, 6, 5, 4});
  CHECK(bench.error("ReverseV2", {six, ints({0, -2})}) == bad + "axis 0 is named twice");
  CHECK(bench.error("ReverseSequence", {six, ints({2, 4})}, {{"seq_dim", std::int64_t{1}}}) == bad + "seq_lengths[1] = 4 is not in [0, 3]");
  CHECK(bench.error("ReverseSequence", {six, ints({1, 1})}, {{"seq_dim", std::int64_t{0}}}) == bad + "attributes 'seq_dim' and 'batch_dim' must differ, both are 0");
}
