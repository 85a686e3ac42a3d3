#undef WEFT_SEPARATE_COMPILATION  // reductions are templates, compiled where they are tested
#include <weft/kernels/reduce_loops.hpp>

#include <weft/tensor/dtype.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace d = weft::detail;
namespace reduction = weft::detail::reduction;
using weft::bfloat16;
using weft::half;

namespace {

template <class Check>
void for_each_set(Check check) {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    CAPTURE(d::name_of(set));
    check(set);
  }
}

// NaN is told by its bits, so that this file means the same under any floating point flags.
bool is_nan_bits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7fffffffU) > 0x7f800000U;
}

// `axes` lists the reduced ones.
d::reduce_plan plan_of(const std::vector<std::int64_t>& dims, const std::vector<std::size_t>& axes) {
  bool flags[16] = {};
  for (std::size_t axis : axes) flags[axis] = true;
  return d::plan_reduction(dims.data(), flags, dims.size());
}

template <class R, class T>
std::vector<T> reduce(const std::vector<T>& in, const std::vector<std::int64_t>& dims, const std::vector<std::size_t>& axes,
                      d::instruction_set set) {
  const d::reduce_plan plan = plan_of(dims, axes);
  std::vector<T> out(plan.out_count);
  d::reduce_loop<R>(in.data(), out.data(), plan, set);
  return out;
}

}  // namespace

TEST_CASE("reduce: axes that behave alike are merged") {
  const d::reduce_plan plan = plan_of({2, 3, 1, 4, 5}, {1, 2});
  CHECK(plan.rank == 3);
  CHECK(plan.axes[0].extent == 2);
  CHECK(plan.axes[1].extent == 3);
  CHECK(plan.axes[1].reduced);
  CHECK(plan.axes[2].extent == 20);
  CHECK(plan.in_count == 120);
  CHECK(plan.out_count == 40);
  CHECK(plan.reduced_count == 3);
  CHECK(plan_of({4, 5}, {0, 1}).rank == 1);
  CHECK(plan_of({}, {}).out_count == 1);
  CHECK(plan_of({0, 3}, {0}).out_count == 3);
  CHECK(plan_of({0, 3}, {0}).in_count == 0);
}

TEST_CASE("reduce: sums over each set of axes, by hand") {
  const std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8};
  for_each_set([&](d::instruction_set set) {
    CHECK(reduce<reduction::sum>(in, {2, 2, 2}, {0, 1, 2}, set) == std::vector<float>{36});
    CHECK(reduce<reduction::sum>(in, {2, 2, 2}, {0}, set) == std::vector<float>{6, 8, 10, 12});
    CHECK(reduce<reduction::sum>(in, {2, 2, 2}, {1}, set) == std::vector<float>{4, 6, 12, 14});
    CHECK(reduce<reduction::sum>(in, {2, 2, 2}, {2}, set) == std::vector<float>{3, 7, 11, 15});
    CHECK(reduce<reduction::sum>(in, {2, 2, 2}, {0, 2}, set) == std::vector<float>{14, 22});
    CHECK(reduce<reduction::sum>(in, {2, 2, 2}, {}, set) == in);
  });
}

TEST_CASE("reduce: each reduction of each element type") {
  for_each_set([](d::instruction_set set) {
    const auto check = [set](auto type) {
      using T = decltype(type);
      const std::vector<T> in{T(3), T(1), T(2), T(5), T(4), T(6)};
      CHECK(reduce<reduction::sum>(in, {2, 3}, {1}, set) == std::vector<T>{T(6), T(15)});
      CHECK(reduce<reduction::mean>(in, {2, 3}, {1}, set) == std::vector<T>{T(2), T(5)});
      CHECK(reduce<reduction::prod>(in, {2, 3}, {1}, set) == std::vector<T>{T(6), T(120)});
      CHECK(reduce<reduction::max>(in, {2, 3}, {0}, set) == std::vector<T>{T(5), T(4), T(6)});
      CHECK(reduce<reduction::min>(in, {2, 3}, {0}, set) == std::vector<T>{T(3), T(1), T(2)});
    };
    check(float());
    check(double());
    check(std::int8_t());
    check(std::int16_t());
    check(std::int32_t());
    check(std::int64_t());
    check(std::uint8_t());
    check(std::uint16_t());
    check(std::uint32_t());
    check(std::uint64_t());
    const std::vector<half> halves{half(60000.f), half(60000.f), half(-1.f)};
    CHECK(reduce<reduction::mean>(halves, {3}, {0}, set)[0] == half(39999.667f));
    CHECK(reduce<reduction::max>(std::vector<bfloat16>{bfloat16(-2.f), bfloat16(-3.f)}, {2}, {0}, set)[0] == bfloat16(-2.f));
  });
}

TEST_CASE("reduce: bools") {
  const bool in[] = {true, false, true, true, true, true};
  bool out[3];
  for_each_set([&](d::instruction_set set) {
    d::reduce_loop<reduction::all>(in, out, plan_of({2, 3}, {1}), set);
    CHECK((!out[0] && out[1]));
    d::reduce_loop<reduction::any>(in + 1, out, plan_of({1, 1}, {0, 1}), set);
    CHECK_FALSE(out[0]);
    d::reduce_loop<reduction::any>(in, out, plan_of({2, 3}, {0}), set);
    CHECK((out[0] && out[1] && out[2]));
  });
}

TEST_CASE("reduce: integers wrap, their mean is truncated toward zero") {
  for_each_set([](d::instruction_set set) {
    using i32 = std::vector<std::int32_t>;
    constexpr std::int32_t high = std::numeric_limits<std::int32_t>::max(), low = std::numeric_limits<std::int32_t>::min();
    CHECK(reduce<reduction::sum>(i32{high, 1}, {2}, {0}, set) == i32{low});
    CHECK(reduce<reduction::prod>(i32{high, 2}, {2}, {0}, set) == i32{-2});
    CHECK(reduce<reduction::mean>(i32{-7, -4}, {2}, {0}, set) == i32{-5});
    CHECK(reduce<reduction::sum>(std::vector<std::int8_t>{100, 100}, {2}, {0}, set) == std::vector<std::int8_t>{-56});
    CHECK(reduce<reduction::max>(std::vector<std::uint32_t>{1, 0x80000000U}, {2}, {0}, set) == std::vector<std::uint32_t>{0x80000000U});
  });
}

TEST_CASE("reduce: nothing reduced gives the neutral element") {
  const float inf = std::numeric_limits<float>::infinity();
  for_each_set([=](d::instruction_set set) {
    const std::vector<float> none;
    CHECK(reduce<reduction::sum>(none, {0, 2}, {0}, set) == std::vector<float>{0, 0});
    CHECK(reduce<reduction::prod>(none, {0, 2}, {0}, set) == std::vector<float>{1, 1});
    CHECK(reduce<reduction::max>(none, {0}, {0}, set) == std::vector<float>{-inf});
    CHECK(reduce<reduction::min>(none, {0}, {0}, set) == std::vector<float>{inf});
    CHECK(is_nan_bits(reduce<reduction::mean>(none, {0}, {0}, set)[0]));
    CHECK(reduce<reduction::max>(std::vector<std::int8_t>{}, {0}, {0}, set) == std::vector<std::int8_t>{-128});
    CHECK(reduce<reduction::mean>(std::vector<std::int32_t>{}, {0}, {0}, set) == std::vector<std::int32_t>{0});
    CHECK(static_cast<float>(reduce<reduction::max>(std::vector<half>{}, {0}, {0}, set)[0]) == -inf);
    CHECK(reduce<reduction::sum>(none, {2, 0}, {0}, set).empty());
    bool out[2];
    d::reduce_loop<reduction::all>(out, out, plan_of({0, 2}, {0}), set);
    CHECK((out[0] && out[1]));
  });
}

TEST_CASE("reduce: NaN is kept by sum, max and min wherever it stands") {
  const float not_a_number = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for_each_set([=](d::instruction_set set) {
    for (std::size_t count : {3U, 40U, 1000U, 5000U}) {
      for (std::size_t place : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<float> in(count, 1.f);
        in[place] = not_a_number;
        in[(place + 1) % count] = inf;
        const auto extent = static_cast<std::int64_t>(count);
        CHECK(is_nan_bits(reduce<reduction::max>(in, {extent}, {0}, set)[0]));
        CHECK(is_nan_bits(reduce<reduction::min>(in, {extent}, {0}, set)[0]));
        CHECK(is_nan_bits(reduce<reduction::sum>(in, {extent}, {0}, set)[0]));
      }
    }
    CHECK(is_nan_bits(reduce<reduction::sum>(std::vector<float>{inf, 2.f, -inf}, {3}, {0}, set)[0]));
  });
}

TEST_CASE("reduce: random shapes and axes agree with an element by element loop") {
  std::mt19937 random(11);
  const std::int64_t extents[] = {1, 2, 3, 7, 20, 65, 300, 1100, 3000};
  for_each_set([&](d::instruction_set set) {
    for (int round = 0; round < 150; ++round) {
      const std::size_t rank = random() % 5;
      std::vector<std::int64_t> dims;
      std::vector<std::size_t> axes;
      std::size_t count = 1;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        std::int64_t extent = extents[random() % 9];
        if (count * static_cast<std::size_t>(extent) > 60000) extent = 2;
        count *= static_cast<std::size_t>(extent);
        dims.push_back(extent);
        if (random() % 2 == 0) axes.push_back(axis);
      }
      std::vector<float> in(count);
      std::vector<std::int64_t> integers(count);
      for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(integers[i] = static_cast<std::int64_t>(random() % 100));
      // Where each element goes, from its index along the kept axes.
      const std::vector<float> sums = reduce<reduction::sum>(in, dims, axes, set);
      const std::vector<std::int64_t> largest = reduce<reduction::max>(integers, dims, axes, set);
      std::vector<float> expected(sums.size(), 0.f);
      std::vector<std::int64_t> expected_largest(sums.size(), -1);
      for (std::size_t flat = 0; flat < count; ++flat) {
        std::size_t rest = flat, target = 0, stride = 1;
        for (std::size_t axis = rank; axis-- > 0;) {
          const auto extent = static_cast<std::size_t>(dims[axis]);
          bool reduced = false;
          for (std::size_t other : axes) reduced = reduced || other == axis;
          if (!reduced) {
            target += rest % extent * stride;
            stride *= extent;
          }
          rest /= extent;
        }
        expected[target] += in[flat];
        expected_largest[target] = integers[flat] > expected_largest[target] ? integers[flat] : expected_largest[target];
      }
      CHECK(sums == expected);
      CHECK(largest == expected_largest);
    }
  });
}

TEST_CASE("reduce: sums of many floats lose no more than pairwise summation") {
  std::mt19937 random(12);
  std::vector<float> in(std::size_t{1} << 20);
  double exact = 0;
  for (float& value : in) {
    value = static_cast<float>(random()) * 0x1p-32f;
    exact += static_cast<double>(value);
  }
  const auto count = static_cast<std::int64_t>(in.size());
  // Any order of the tree: 20 levels of rounding by half a unit, and 16 in a row within a block.
  const double most = exact * 36 * 0x1p-24;
  for_each_set([&](d::instruction_set set) {
    CHECK(std::fabs(static_cast<double>(reduce<reduction::sum>(in, {count}, {0}, set)[0]) - exact) <= most);
    double columns = 0;
    for (float value : reduce<reduction::sum>(in, {count / 4, 4}, {0}, set)) columns += static_cast<double>(value);
    CHECK(std::fabs(columns - exact) <= most);
    // A running float sum would stop growing at 2^24.
    const std::vector<float> ones(std::size_t{20000000}, 1.f);
    CHECK(reduce<reduction::sum>(ones, {20000000}, {0}, set)[0] == 20000000.f);
  });
}
