#include <weft/kernels/reduce.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using weft::bfloat16;
using weft::dtype;
using weft::half;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
tensor_value reduce(const char* op, const tensor_value& v, std::vector<std::int32_t> axes, bool keep_dims = false) {
  kernel_bench bench;
  const auto count = static_cast<std::int64_t>(axes.size());
  return bench(op, {v, tensor_value::from<std::int32_t>({count}, axes)}, {{"keep_dims", keep_dims}});
}
const tensor_value cube = make<float>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});

template <class T> void check_numbers() {
  const auto v = make<T>({2, 2}, {T(1), T(2), T(3), T(5)});
  CHECK(elements<T>(reduce("Sum", v, {0})) == std::vector<T>{T(4), T(7)});
  CHECK(elements<T>(reduce("Sum", v, {1})) == std::vector<T>{T(3), T(8)});
  CHECK(elements<T>(reduce("Prod", v, {0})) == std::vector<T>{T(3), T(10)});
  CHECK(elements<T>(reduce("Max", v, {1})) == std::vector<T>{T(2), T(5)});
  CHECK(elements<T>(reduce("Min", v, {1})) == std::vector<T>{T(1), T(3)});
  CHECK(elements<T>(reduce("Mean", v, {0})) == std::vector<T>{T(2), weft::is_integer(weft::dtype_of<T>) ? T(3) : T(3.5f)});
}
}  // namespace

TEST_CASE("sum: any set of axes, kept or not") {
  CHECK(elements<float>(reduce("Sum", cube, {0})) == std::vector<float>{8, 10, 12, 14, 16, 18});
  CHECK(elements<float>(reduce("Sum", cube, {1})) == std::vector<float>{9, 12, 27, 30});
  CHECK(elements<float>(reduce("Sum", cube, {2})) == std::vector<float>{3, 7, 11, 15, 19, 23});
  CHECK(elements<float>(reduce("Sum", cube, {0, 2})) == std::vector<float>{18, 26, 34});
  CHECK(elements<float>(reduce("Sum", cube, {-1, -2})) == std::vector<float>{21, 57});
  const auto all = reduce("Sum", cube, {0, 1, 2});
  CHECK(all.shape() == shape{});
  CHECK(elements<float>(all) == std::vector<float>{78});
  CHECK(reduce("Sum", cube, {0, 2}).shape() == shape{3});
  CHECK(reduce("Sum", cube, {0, 2}, true).shape() == shape{1, 3, 1});
  CHECK(reduce("Sum", cube, {}) == cube);
  CHECK(elements<float>(reduce("Sum", tensor_value::scalar(5.f), {})) == std::vector<float>{5});
  CHECK(elements<float>(reduce("Sum", make<float>({1, 3, 1}, {1, 2, 3}), {1})) == std::vector<float>{6});
}

TEST_CASE("reductions: all number dtypes") {
  check_numbers<float>();
  check_numbers<double>();
  check_numbers<half>();
  check_numbers<bfloat16>();
  check_numbers<std::int8_t>();
  check_numbers<std::int16_t>();
  check_numbers<std::int32_t>();
  check_numbers<std::int64_t>();
  check_numbers<std::uint8_t>();
  check_numbers<std::uint16_t>();
  check_numbers<std::uint32_t>();
  check_numbers<std::uint64_t>();
}

TEST_CASE("reductions: integers wrap, their mean is cut toward zero") {
  CHECK(elements<std::int8_t>(reduce("Sum", make<std::int8_t>({2}, {127, 1}), {0})) == std::vector<std::int8_t>{-128});
  CHECK(elements<std::int32_t>(reduce("Mean", make<std::int32_t>({2}, {-4, 1}), {0})) == std::vector<std::int32_t>{-1});
}

TEST_CASE("all, any") {
  const auto v = make<bool>({2, 2}, {true, false, true, true});
  CHECK(elements<bool>(reduce("All", v, {1})) == std::vector<bool>{false, true});
  CHECK(elements<bool>(reduce("Any", v, {0})) == std::vector<bool>{true, true});
  CHECK(elements<bool>(reduce("All", tensor_value(dtype::boolean, {0}), {0})) == std::vector<bool>{true});
  CHECK(elements<bool>(reduce("Any", tensor_value(dtype::boolean, {0}), {0})) == std::vector<bool>{false});
}

TEST_CASE("reductions: of nothing") {
  const tensor_value none(dtype::float32, {2, 0});
  CHECK(elements<float>(reduce("Sum", none, {1})) == std::vector<float>{0, 0});
  CHECK(elements<float>(reduce("Prod", none, {1})) == std::vector<float>{1, 1});
  CHECK(elements<float>(reduce("Max", none, {1}))[0] == -std::numeric_limits<float>::infinity());
  CHECK(elements<float>(reduce("Min", none, {1}))[1] == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(elements<float>(reduce("Mean", none, {1}))[0]));
  CHECK(reduce("Sum", none, {0}).shape() == shape{0});
  CHECK(elements<std::int32_t>(reduce("Max", tensor_value(dtype::int32, {0}), {0})) == std::vector<std::int32_t>{-2147483647 - 1});
  CHECK(elements<std::int32_t>(reduce("Min", tensor_value(dtype::int32, {0}), {0})) == std::vector<std::int32_t>{2147483647});
  CHECK(elements<std::uint8_t>(reduce("Min", tensor_value(dtype::uint8, {0}), {0})) == std::vector<std::uint8_t>{255});
  CHECK(elements<std::uint64_t>(reduce("Max", tensor_value(dtype::uint64, {0}), {0})) == std::vector<std::uint64_t>{0});
  CHECK(elements<std::int64_t>(reduce("Max", tensor_value(dtype::int64, {0}), {0})) == std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()});
}

TEST_CASE("max, min: NaN wins") {
  const auto v = make<float>({3}, {1, std::nanf(""), 3});
  CHECK(std::isnan(elements<float>(reduce("Max", v, {0}))[0]));
  CHECK(std::isnan(elements<float>(reduce("Min", v, {0}))[0]));
}

TEST_CASE("sum: large inputs keep their digits") {
  tensor_value v(dtype::float32, {100, 1000});
  std::fill_n(v.mutable_data<float>(), 100000, 0.1f);
  CHECK(elements<float>(reduce("Sum", v, {0, 1}))[0] == doctest::Approx(10000).epsilon(1e-5));
  CHECK(elements<float>(reduce("Mean", v, {1}))[99] == doctest::Approx(0.1).epsilon(1e-5));
  CHECK(elements<float>(reduce("Sum", v, {0}))[999] == doctest::Approx(10).epsilon(1e-5));
}

TEST_CASE("reductions: axes that do not exist, twice the same, or no vector") {
  kernel_bench bench;
  const auto v = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(bench.error("Sum", {v, make<std::int32_t>({1}, {2})}) == "INVALID_ARGUMENT: axis 2 is not in [-2, 2)");
  CHECK(bench.error("Sum", {v, make<std::int64_t>({1}, {-3})}) == "INVALID_ARGUMENT: axis -3 is not in [-2, 2)");
  CHECK(bench.error("Sum", {v, make<std::int32_t>({2}, {0, -2})}) == "INVALID_ARGUMENT: axis 0 is named twice");
  CHECK(bench.error("Max", {v, make<std::int32_t>({1, 1}, {0})}) == "INVALID_ARGUMENT: the axes must be a scalar or a vector, found shape [1,1]");
  CHECK(elements<float>(bench("Sum", {v, tensor_value::scalar(std::int64_t{1})})) == std::vector<float>{6, 15});
}

TEST_CASE("euclidean norm: roots of sums of squares, truncated for integers") {
  CHECK(elements<float>(reduce("EuclideanNorm", make<float>({2, 2}, {3, 4, -6, 8}), {1})) == std::vector<float>{5, 10});
  CHECK(elements<double>(reduce("EuclideanNorm", make<double>({2}, {-3, 4}), {})) == std::vector<double>{3, 4});
  CHECK(elements<half>(reduce("EuclideanNorm", make<half>({2}, {half(3.f), half(4.f)}), {0})) == std::vector<half>{half(5.f)});
  CHECK(elements<std::int32_t>(reduce("EuclideanNorm", make<std::int32_t>({3}, {1, -1, 4}), {0})) == std::vector<std::int32_t>{4});
  CHECK(elements<std::uint8_t>(reduce("EuclideanNorm", make<std::uint8_t>({2}, {100, 100}), {0})) == std::vector<std::uint8_t>{141});
  CHECK(elements<float>(reduce("EuclideanNorm", tensor_value(dtype::float32, {0, 2}), {0}, true)) == std::vector<float>{0, 0});
  CHECK(std::isnan(elements<float>(reduce("EuclideanNorm", make<float>({2}, {1, std::nanf("")}), {0}))[0]));
}

TEST_CASE("l2 loss: half the sum of squares of everything") {
  kernel_bench bench;
  CHECK(bench("L2Loss", {make<float>({2, 2}, {1, 2, 3, 4})}).item<float>() == 15.f);
  CHECK(bench("L2Loss", {tensor_value::scalar(3.0)}).item<double>() == 4.5);
  CHECK(bench("L2Loss", {tensor_value(dtype::float32, {0, 3})}).item<float>() == 0.f);
  CHECK(bench("L2Loss", {make<half>({2}, {half(1.f), half(2.f)})}).item<half>() == half(2.5f));
  CHECK(bench("L2Loss", {make<bfloat16>({1}, {bfloat16(4.f)})}).shape() == shape{});
}

TEST_CASE("reductions: random shapes, dtypes and axes give a result or an error") {
  kernel_bench bench;
  std::mt19937 random(5);
  const char* const ops[] = {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm", "All", "Any"};
  constexpr dtype types[] = {dtype::float32, dtype::float64, dtype::half, dtype::bfloat16, dtype::int8, dtype::int32, dtype::int64, dtype::uint8, dtype::uint64};
  for (int round = 0; round < 2000; ++round) {
    const std::size_t which = random() % 8;
    std::vector<std::int64_t> sizes(random() % 5);
    for (auto& size : sizes) size = static_cast<std::int64_t>(random() % 4);
    tensor_value in(which >= 6 ? dtype::boolean : types[random() % 9], shape(sizes));
    for (std::size_t i = 0; i < in.bytes(); ++i) in.mutable_raw_data()[i] = static_cast<std::byte>(random() % (which >= 6 ? 2 : 256));
    std::vector<std::int64_t> axes(random() % 3);
    for (auto& axis : axes) axis = random() % 20 == 0 ? std::numeric_limits<std::int64_t>::min() : static_cast<std::int64_t>(random() % 8) - 4;
    try {
      const tensor_value out = bench(ops[which], {in, tensor_value::from<std::int64_t>({static_cast<std::int64_t>(axes.size())}, axes)}, {{"keep_dims", random() % 2 == 0}});
      CHECK(out.dtype() == in.dtype());
    } catch (const weft::error& e) {
      CHECK(e.code() == weft::error_code::invalid_argument);
    }
  }
}
