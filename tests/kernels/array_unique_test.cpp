#include <weft/kernels/array_unique.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

TEST_CASE("unique: in the order of the first occurrence; zeros are equal, NaN equals nothing") {
  kernel_bench bench;
  const auto run = [&](tensor_value v) { return bench.run(bench.add("UniqueWithCounts", {v.dtype()}), {v}); };
  const auto numbers = run(make<std::int32_t>({6}, {3, 1, 3, 2, 1, 3}));
  CHECK(elements<std::int32_t>(numbers[0]) == std::vector<std::int32_t>{3, 1, 2});
  CHECK(elements<std::int32_t>(numbers[1]) == std::vector<std::int32_t>{0, 1, 0, 2, 1, 0});
  CHECK(elements<std::int32_t>(numbers[2]) == std::vector<std::int32_t>{3, 2, 1});
  CHECK(elements<std::int32_t>(run(make<double>({5}, {0., -0., NAN, NAN, 1.}))[1]) == std::vector<std::int32_t>{0, 0, 1, 2, 3});
  CHECK(elements<std::string>(run(make<std::string>({3}, {"b", "a", "b"}))[0]) == std::vector<std::string>{"b", "a"});
  CHECK(run(tensor_value(dtype::int64, {0}))[0].shape() == shape{0});
  std::vector<std::int64_t> many;
  for (std::int64_t i = 0; i < 5000; ++i) many.push_back(i * i % 1009);
  const auto found = run(tensor_value::from<std::int64_t>({5000}, many));
  CHECK(found[0].elements() == 505);  // the squares modulo a prime p are (p + 1) / 2
  for (std::size_t i = 0; i < many.size(); ++i) CHECK(found[0].data<std::int64_t>()[found[1].data<std::int32_t>()[i]] == many[i]);
}

TEST_CASE("unique v2: slices along an axis; list diff: what the second list has not") {
  kernel_bench bench;
  const auto matrix = make<std::int32_t>({2, 3}, {1, 2, 1, 3, 4, 3});
  const auto columns = bench.run(bench.add("UniqueV2", {dtype::int32, dtype::int64}), {matrix, make<std::int64_t>({1}, {1})});
  CHECK(columns[0].shape() == shape{2, 2});
  CHECK(elements<std::int32_t>(columns[0]) == std::vector<std::int32_t>{1, 2, 3, 4});
  CHECK(elements<std::int32_t>(columns[1]) == std::vector<std::int32_t>{0, 1, 0});
  const auto left = bench.run(bench.add("ListDiff", {dtype::int32, dtype::int32}), {make<std::int32_t>({5}, {1, 2, 3, 2, 5}), make<std::int32_t>({2}, {2, 7})});
  CHECK(elements<std::int32_t>(left[0]) == std::vector<std::int32_t>{1, 3, 5});
  CHECK(elements<std::int32_t>(left[1]) == std::vector<std::int32_t>{0, 2, 4});
  CHECK(bench.error("Unique", {matrix}) == "INVALID_ARGUMENT: x must have rank 1, found shape [2,3]");
  CHECK(bench.error("UniqueV2", {matrix, make<std::int64_t>({1}, {2})}) == "INVALID_ARGUMENT: axis 2 is not in [-2, 2)");
}
