#include <weft/kernels/cast.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

using weft::bfloat16;
using weft::dtype;
using weft::half;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
tensor_value cast(const tensor_value& v, dtype to, bool truncate = false) {
  kernel_bench bench;
  return bench("Cast", {v}, {{"DstT", to}, {"Truncate", truncate}});
}
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class From> void check_to_all() {
  const auto v = make<From>({3}, {From(0.f), From(1.f), From(100.f)});
  CHECK(elements<float>(cast(v, dtype::float32)) == std::vector<float>{0, 1, 100});
  CHECK(elements<double>(cast(v, dtype::float64)) == std::vector<double>{0, 1, 100});
  CHECK(elements<half>(cast(v, dtype::half)) == std::vector<half>{half(0.f), half(1.f), half(100.f)});
  CHECK(elements<bfloat16>(cast(v, dtype::bfloat16)) == std::vector<bfloat16>{bfloat16(0.f), bfloat16(1.f), bfloat16(100.f)});
  CHECK(elements<std::int8_t>(cast(v, dtype::int8)) == std::vector<std::int8_t>{0, 1, 100});
  CHECK(elements<std::int16_t>(cast(v, dtype::int16)) == std::vector<std::int16_t>{0, 1, 100});
  CHECK(elements<std::int32_t>(cast(v, dtype::int32)) == std::vector<std::int32_t>{0, 1, 100});
  CHECK(elements<std::int64_t>(cast(v, dtype::int64)) == std::vector<std::int64_t>{0, 1, 100});
  CHECK(elements<std::uint8_t>(cast(v, dtype::uint8)) == std::vector<std::uint8_t>{0, 1, 100});
  CHECK(elements<std::uint16_t>(cast(v, dtype::uint16)) == std::vector<std::uint16_t>{0, 1, 100});
  CHECK(elements<std::uint32_t>(cast(v, dtype::uint32)) == std::vector<std::uint32_t>{0, 1, 100});
  CHECK(elements<std::uint64_t>(cast(v, dtype::uint64)) == std::vector<std::uint64_t>{0, 1, 100});
  CHECK(elements<bool>(cast(v, dtype::boolean)) == std::vector<bool>{false, true, true});
}
}  // namespace

TEST_CASE("cast: between all dtypes") {
  check_to_all<float>();
  check_to_all<double>();
  check_to_all<half>();
  check_to_all<bfloat16>();
  check_to_all<std::int8_t>();
  check_to_all<std::int16_t>();
  check_to_all<std::int32_t>();
  check_to_all<std::int64_t>();
  check_to_all<std::uint8_t>();
  check_to_all<std::uint16_t>();
  check_to_all<std::uint32_t>();
  check_to_all<std::uint64_t>();
  CHECK(elements<float>(cast(make<bool>({2}, {true, false}), dtype::float32)) == std::vector<float>{1, 0});
  CHECK(elements<std::int64_t>(cast(make<bool>({2}, {true, false}), dtype::int64)) == std::vector<std::int64_t>{1, 0});
  CHECK(elements<half>(cast(make<bool>({2}, {true, false}), dtype::half)) == std::vector<half>{half(1.f), half(0.f)});
}

TEST_CASE("cast: floats are cut toward zero, what does not fit becomes what x86-64 makes of it") {
  CHECK(elements<std::int32_t>(cast(make<float>({4}, {1.9f, -1.9f, 0.5f, -0.5f}), dtype::int32)) == std::vector<std::int32_t>{1, -1, 0, 0});
  const std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
  CHECK(elements<std::int32_t>(cast(make<double>({6}, {std::nan(""), infinity, -infinity, 3e9, -3e9, 1e30}), dtype::int32)) == std::vector<std::int32_t>(6, lowest));
  CHECK(elements<std::uint8_t>(cast(make<float>({5}, {-1.f, -1.5f, -100.f, 256.f, 300.5f}), dtype::uint8)) == std::vector<std::uint8_t>{255, 255, 156, 0, 44});
  CHECK(elements<bool>(cast(make<float>({4}, {std::nanf(""), infinity, -infinity, -0.f}), dtype::boolean)) == std::vector<bool>{true, true, true, false});
}

TEST_CASE("cast: integers wrap, large ones keep their value in 64 bits") {
  CHECK(elements<std::int8_t>(cast(make<std::int32_t>({3}, {128, 255, -129}), dtype::int8)) == std::vector<std::int8_t>{-128, -1, 127});
  CHECK(elements<std::uint32_t>(cast(make<std::int64_t>({1}, {-1}), dtype::uint32)) == std::vector<std::uint32_t>{4294967295U});
  CHECK(elements<double>(cast(make<std::uint64_t>({1}, {std::uint64_t{1} << 63}), dtype::float64)) == std::vector<double>{9223372036854775808.0});
  CHECK(elements<double>(cast(make<std::int64_t>({1}, {std::numeric_limits<std::int64_t>::min()}), dtype::float64)) == std::vector<double>{-9223372036854775808.0});
  CHECK(elements<std::int64_t>(cast(make<std::int16_t>({1}, {-5}), dtype::int64)) == std::vector<std::int64_t>{-5});
  CHECK(elements<float>(cast(make<std::int32_t>({1}, {16777217}), dtype::float32)) == std::vector<float>{16777216.f});
}

TEST_CASE("cast: floats narrow to nearest even, Truncate cuts") {
  const auto x = make<float>({4}, {1.f, 1.0039062f, 1.0117188f, 3.1415927f});
  CHECK(elements<bfloat16>(cast(x, dtype::bfloat16)) == std::vector<bfloat16>{bfloat16(1.f), bfloat16(1.f), bfloat16(1.015625f), bfloat16(3.140625f)});
  CHECK(elements<bfloat16>(cast(x, dtype::bfloat16, true)) == std::vector<bfloat16>{bfloat16(1.f), bfloat16(1.f), bfloat16(1.0078125f), bfloat16(3.140625f)});
  CHECK(elements<half>(cast(make<float>({4}, {0.1f, 1.999f, 2049.7f, 70000.f}), dtype::half, true)) ==
        std::vector<half>{half(0.0999755859375f), half(1.998046875f), half(2048.f), half(infinity)});
  CHECK(elements<float>(cast(make<double>({3}, {0.1, 16777219.0, 1.0 / 3}), dtype::float32, true)) == std::vector<float>{0.099999994f, 16777218.f, 0.3333333f});
  const auto special = elements<bfloat16>(cast(make<float>({2}, {std::nanf(""), infinity}), dtype::bfloat16, true));
  CHECK(std::isnan(static_cast<float>(special[0])));
  CHECK(static_cast<float>(special[1]) == infinity);
}

TEST_CASE("cast: to the same dtype passes the value on, nothing stays nothing") {
  const auto x = make<float>({2}, {1, 2});
  CHECK(cast(x, dtype::float32).raw_data() == x.raw_data());
  CHECK(cast(tensor_value(dtype::int8, {0, 2}), dtype::half).shape() == weft::shape{0, 2});
}

TEST_CASE("cast: more elements than a block") {
  tensor_value x(dtype::int16, {1300});
  for (int i = 0; i < 1300; ++i) x.mutable_data<std::int16_t>()[i] = static_cast<std::int16_t>(i - 650);
  const auto out = elements<float>(cast(x, dtype::float32));
  bool equal = true;
  for (int i = 0; i < 1300; ++i) equal = equal && out[static_cast<std::size_t>(i)] == static_cast<float>(i - 650);
  CHECK(equal);
}

TEST_CASE("cast: string and numbers do not convert") {
  kernel_bench bench;
  CHECK(bench.error("Cast", {make<std::string>({1}, {"1"})}, {{"DstT", dtype::float32}}).substr(0, 13) == "UNIMPLEMENTED");
}
