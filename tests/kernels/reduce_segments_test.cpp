#include <weft/kernels/reduce_segments.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

using weft::bfloat16;
using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
tensor_value count(std::int32_t n) { return tensor_value::scalar(n); }

// Segments 0, 1 and 3 of six values; 2 is a gap.
template <class T> void check_numbers(kernel_bench& bench) {
  const auto x = make<T>({6}, {T(1), T(3), T(2), T(3), T(4), T(5)});
  const auto ids = make<std::int32_t>({6}, {0, 0, 1, 1, 1, 3});
  CHECK(elements<T>(bench("SegmentSum", {x, ids})) == std::vector<T>{T(4), T(9), T(0), T(5)});
  CHECK(elements<T>(bench("SegmentMean", {x, ids})) == std::vector<T>{T(2), T(3), T(0), T(5)});
  CHECK(elements<T>(bench("SegmentProd", {x, ids})) == std::vector<T>{T(3), T(24), T(1), T(5)});
  CHECK(elements<T>(bench("SegmentMax", {x, ids})) == std::vector<T>{T(3), T(4), T(0), T(5)});
  CHECK(elements<T>(bench("SegmentMin", {x, ids})) == std::vector<T>{T(1), T(2), T(0), T(5)});
  const auto mixed = make<std::int64_t>({6}, {2, 0, -1, 2, 0, 0});
  CHECK(elements<T>(bench("UnsortedSegmentSum", {x, mixed, count(3)})) == std::vector<T>{T(12), T(0), T(4)});
  CHECK(elements<T>(bench("UnsortedSegmentProd", {x, mixed, count(3)})) == std::vector<T>{T(60), T(1), T(3)});
  CHECK(elements<T>(bench("UnsortedSegmentMax", {x, mixed, count(3)}))[2] == T(3));
  CHECK(elements<T>(bench("UnsortedSegmentMin", {x, mixed, count(3)}))[0] == T(3));
}
template <class T> void check_limits(kernel_bench& bench, T lowest, T highest) {
  const tensor_value nothing(weft::dtype_of<T>, {0}), no_ids(dtype::int32, {0});
  CHECK(elements<T>(bench("UnsortedSegmentMax", {nothing, no_ids, count(1)})) == std::vector<T>{lowest});
  CHECK(elements<T>(bench("UnsortedSegmentMin", {nothing, no_ids, count(1)})) == std::vector<T>{highest});
}
}  // namespace

TEST_CASE("segments: all number dtypes") {
  kernel_bench bench;
  weft_test::for_each_number_dtype([&](auto zero) { check_numbers<decltype(zero)>(bench); });
}

TEST_CASE("segments: extremes of nothing are the finite limits of the dtype") {
  kernel_bench bench;
  check_limits<float>(bench, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
  check_limits<double>(bench, std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
  check_limits<half>(bench, half(-65504.f), half(65504.f));
  check_limits<bfloat16>(bench, bfloat16(-0x1.fep127f), bfloat16(0x1.fep127f));
  check_limits<std::int8_t>(bench, -128, 127);
  check_limits<std::uint16_t>(bench, 0, 65535);
  check_limits<std::int64_t>(bench, std::numeric_limits<std::int64_t>::min(), huge);
  CHECK(elements<float>(bench("UnsortedSegmentMin", {make<float>({1}, {std::numeric_limits<float>::infinity()}), make<std::int32_t>({1}, {0}), count(1)})) ==
        std::vector<float>{std::numeric_limits<float>::max()});
}

TEST_CASE("segments: rows, means of integers, ids of any rank") {
  kernel_bench bench;
  const auto rows = make<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto sums = bench("SegmentSum", {rows, make<std::int64_t>({3}, {0, 0, 2})});
  CHECK(sums.shape() == shape{3, 2});
  CHECK(elements<float>(sums) == std::vector<float>{4, 6, 0, 0, 5, 6});
  CHECK(elements<std::int32_t>(bench("SegmentMean", {make<std::int32_t>({3}, {-1, -2, -2}), make<std::int32_t>({3}, {0, 0, 0})})) == std::vector<std::int32_t>{-1});
  CHECK(bench("SegmentMax", {tensor_value(dtype::float32, {0, 2}), tensor_value(dtype::int32, {0})}).shape() == shape{0, 2});
  const auto whole = bench("UnsortedSegmentSum", {rows, make<std::int32_t>({3, 2}, {0, 1, 0, 1, 0, -5}), count(2)});
  CHECK(elements<float>(whole) == std::vector<float>{9, 6});
  CHECK(elements<float>(bench("UnsortedSegmentSum", {rows, make<std::int16_t>({3}, {1, 1, 0}), count(2)})) == std::vector<float>{5, 6, 4, 6});
  CHECK(elements<float>(bench("UnsortedSegmentSum", {make<float>({2}, {1, 2}), tensor_value::scalar(std::int32_t{1}), count(2)})) == std::vector<float>{0, 0, 1, 2});
  CHECK(bench("UnsortedSegmentSum", {rows, make<std::int32_t>({3}, {-1, -1, -1}), count(0)}).shape() == shape{0, 2});
  const float nan = std::nanf("");
  CHECK(std::isnan(elements<float>(bench("SegmentMin", {make<float>({2}, {1, nan}), make<std::int32_t>({2}, {0, 0})}))[0]));
}

TEST_CASE("sparse segments: rows by index, mean and root mean") {
  kernel_bench bench;
  const auto rows = make<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto indices = make<std::int32_t>({3}, {2, 0, 2}), ids = make<std::int32_t>({3}, {0, 2, 2});
  CHECK(elements<float>(bench("SparseSegmentSum", {rows, indices, ids})) == std::vector<float>{5, 6, 0, 0, 6, 8});
  CHECK(elements<float>(bench("SparseSegmentMean", {rows, indices, ids})) == std::vector<float>{5, 6, 0, 0, 3, 4});
  const auto root = elements<float>(bench("SparseSegmentSqrtN", {rows, indices, ids}));
  CHECK(root[0] == 5.f);
  CHECK(root[4] == doctest::Approx(6 / std::sqrt(2.0)));
  CHECK(elements<std::int8_t>(bench("SparseSegmentSum", {make<std::int8_t>({2}, {100, 100}), make<std::int64_t>({2}, {0, 1}), make<std::int64_t>({2}, {0, 0})})) ==
        std::vector<std::int8_t>{-56});
  CHECK(bench("SparseSegmentMean", {rows, tensor_value(dtype::int32, {0}), tensor_value(dtype::int32, {0})}).shape() == shape{0, 2});
}

TEST_CASE("segments: ids and indices that cannot be") {
  kernel_bench bench;
  const auto x = make<float>({3}, {1, 2, 3}), rows = make<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  CHECK(bench.error("SegmentSum", {x, make<std::int32_t>({3}, {0, 2, 1})}) == "INVALID_ARGUMENT: segment_ids must not decrease, found 2 before 1");
  CHECK(bench.error("SegmentMax", {x, make<std::int32_t>({3}, {-1, 0, 1})}) == "INVALID_ARGUMENT: segment_ids[0] is -1, expected 0 or more");
  CHECK(bench.error("SegmentMin", {x, make<std::int32_t>({2}, {0, 1})}) == "INVALID_ARGUMENT: segment_ids has 2 elements for the 3 rows of the data [3]");
  CHECK(bench.error("SegmentMean", {rows, make<std::int32_t>({1, 3}, {0, 1, 1})}) == "INVALID_ARGUMENT: segment_ids must be a vector, found shape [1,3]");
  CHECK(bench.error("SegmentSum", {tensor_value::scalar(1.f), make<std::int32_t>({1}, {0})}) == "INVALID_ARGUMENT: the data must have at least one dimension, found shape []");
  CHECK(bench.error("SegmentSum", {x, make<std::int64_t>({3}, {0, 1, huge})}) == "INVALID_ARGUMENT: segment_ids[2] is too large");
  CHECK(bench.error("SegmentSum", {rows, make<std::int64_t>({3}, {0, 1, huge - 1})}) == "INVALID_ARGUMENT: a result of shape [9223372036854775807,2] has too many elements");
  CHECK(bench.error("UnsortedSegmentSum", {x, make<std::int32_t>({3}, {0, 3, 1}), count(3)}) == "INVALID_ARGUMENT: segment_ids[1] is 3, which is not below num_segments, 3");
  CHECK(bench.error("UnsortedSegmentMax", {x, make<std::int32_t>({2}, {0, 1}), count(3)}) == "INVALID_ARGUMENT: the data's shape [3] does not start with that of segment_ids, [2]");
  CHECK(bench.error("UnsortedSegmentProd", {x, make<std::int32_t>({3}, {0, 1, 0}), count(-1)}) == "INVALID_ARGUMENT: num_segments must not be negative, found -1");
  CHECK(bench.error("UnsortedSegmentMin", {x, make<std::int32_t>({3}, {0, 1, 0}), make<std::int32_t>({2}, {1, 2})}) == "INVALID_ARGUMENT: num_segments must be a scalar, found shape [2]");
  CHECK(bench.error("UnsortedSegmentSum", {rows, make<std::int32_t>({3}, {0, 1, 0}), tensor_value::scalar(huge)}) ==
        "INVALID_ARGUMENT: a result of shape [9223372036854775807,2] has too many elements");
  CHECK(bench.error("SparseSegmentSum", {rows, make<std::int32_t>({2}, {0, 3}), make<std::int32_t>({2}, {0, 1})}) == "INVALID_ARGUMENT: indices[1] is 3, which is not in [0, 3)");
  CHECK(bench.error("SparseSegmentMean", {rows, make<std::int32_t>({2}, {0, -1}), make<std::int32_t>({2}, {0, 1})}) == "INVALID_ARGUMENT: indices[1] is -1, which is not in [0, 3)");
  CHECK(bench.error("SparseSegmentSum", {rows, make<std::int32_t>({2}, {0, 1}), make<std::int32_t>({1}, {0})}) ==
        "INVALID_ARGUMENT: indices and segment_ids must have the same size, found shapes [2] and [1]");
}

TEST_CASE("segments: random ids and indices give a result or an error") {
  kernel_bench bench;
  std::mt19937 random(3);
  const auto id = [&]() -> std::int64_t { return random() % 16 == 0 ? -static_cast<std::int64_t>(random() % 3) : static_cast<std::int64_t>(random() % 5); };
  const char* const ops[] = {"SegmentSum", "SegmentMean", "SegmentMax", "UnsortedSegmentMin", "UnsortedSegmentSum", "SparseSegmentSum", "SparseSegmentSqrtN"};
  for (int round = 0; round < 2000; ++round) {
    const std::string op = ops[random() % 7];
    const auto rows = static_cast<std::int64_t>(random() % 5), columns = static_cast<std::int64_t>(random() % 4);
    std::vector<std::int64_t> ids(random() % 6 == 0 ? random() % 5 : static_cast<std::size_t>(rows)), indices(ids.size());
    for (auto& i : ids) i = id();
    for (auto& i : indices) i = id();
    if (random() % 4 != 0) std::sort(ids.begin(), ids.end());
    const auto size = static_cast<std::int64_t>(ids.size());
    tensor_value data(dtype::float32, {rows, columns});
    std::fill_n(data.mutable_data<float>(), rows * columns, 1.f);
    std::vector<tensor_value> in{data};
    if (op[1] == 'p') in.push_back(tensor_value::from<std::int64_t>({size}, indices));
    in.push_back(tensor_value::from<std::int64_t>({size}, ids));
    if (op[0] == 'U') in.push_back(tensor_value::scalar(id()));
    try {
      const tensor_value out = bench(op, std::move(in));
      CHECK(out.shape().rank() == 2);
    } catch (const weft::error& e) {
      CHECK(e.code() == weft::error_code::invalid_argument);
    }
  }
}
