#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are tested
#include <weft/kernels/loops.hpp>

#include <weft/tensor/dtype.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace d = weft::detail;
namespace element = weft::detail::element;
using weft::bfloat16;
using weft::half;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<d::instruction_set> sets() {
  std::vector<d::instruction_set> result;
  for (d::instruction_set set : d::all_instruction_sets) {
    if (d::processor_has(set)) result.push_back(set);
  }
  return result;
}

std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
// NaN and signed zeros are told by their bits, so that this file means the same under any floating point flags.
bool is_nan_bits(float x) { return (bits_of(x) & 0x7fffffffU) > 0x7f800000U; }
bool same(float a, float b) { return bits_of(a) == bits_of(b) || (is_nan_bits(a) && is_nan_bits(b)); }

// vector<bool> has no array: bools are kept as a struct of one.
struct flag {
  bool value;
};

template <class F, class T>
std::vector<T> unary(const std::vector<T>& in, d::instruction_set set) {
  std::vector<T> out(in.size());
  d::unary_loop<F>(in.data(), out.data(), in.size(), set);
  return out;
}
template <class F, class T>
std::vector<T> binary(const std::vector<T>& a, const std::vector<T>& b, d::instruction_set set) {
  std::vector<T> out(a.size() == 1 ? b.size() : a.size());
  CHECK(d::binary_loop<F>(a.data(), a.size(), b.data(), b.size(), out.data(), set) == d::loop_status::ok);
  return out;
}
template <class F, class T>
std::vector<bool> compare(const std::vector<T>& a, const std::vector<T>& b, d::instruction_set set) {
  std::vector<flag> out(a.size() == 1 ? b.size() : a.size());
  d::binary_loop<F>(a.data(), a.size(), b.data(), b.size(), &out.data()->value, set);
  std::vector<bool> result;
  for (flag f : out) result.push_back(f.value);
  return result;
}

template <class T>
void check_arithmetic(d::instruction_set set) {
  const std::vector<T> a{T(6), T(1), T(8), T(15)}, b{T(3), T(1), T(2), T(4)}, two{T(2)};
  CHECK(binary<element::add>(a, b, set) == std::vector<T>{T(9), T(2), T(10), T(19)});
  CHECK(binary<element::sub>(a, b, set) == std::vector<T>{T(3), T(0), T(6), T(11)});
  CHECK(binary<element::mul>(a, b, set) == std::vector<T>{T(18), T(1), T(16), T(60)});
  CHECK(binary<element::maximum>(a, b, set) == std::vector<T>{T(6), T(1), T(8), T(15)});
  CHECK(binary<element::minimum>(a, b, set) == std::vector<T>{T(3), T(1), T(2), T(4)});
  CHECK(binary<element::squared_difference>(a, b, set) == std::vector<T>{T(9), T(0), T(36), T(121)});
  CHECK(binary<element::sub>(a, two, set) == std::vector<T>{T(4), static_cast<T>(-1), T(6), T(13)});
  CHECK(binary<element::sub>(two, std::vector<T>{T(1), T(0)}, set) == std::vector<T>{T(1), T(2)});
  CHECK(compare<element::less>(a, b, set) == std::vector<bool>{false, false, false, false});
  CHECK(compare<element::less_equal>(a, b, set) == std::vector<bool>{false, true, false, false});
  CHECK(compare<element::greater>(a, b, set) == std::vector<bool>{true, false, true, true});
  CHECK(compare<element::greater_equal>(a, b, set) == std::vector<bool>{true, true, true, true});
  CHECK(compare<element::greater>(two, std::vector<T>{T(1), T(2), T(3)}, set) == std::vector<bool>{true, false, false});
  CHECK(compare<element::equal>(a, b, set) == std::vector<bool>{false, true, false, false});
  CHECK(compare<element::not_equal>(a, b, set) == std::vector<bool>{true, false, true, true});
  CHECK(unary<element::square>(b, set) == std::vector<T>{T(9), T(1), T(4), T(16)});
  CHECK(unary<element::abs>(b, set) == b);
  CHECK(unary<element::neg>(unary<element::neg>(a, set), set) == a);
}

// 16-bit floats are made from floats.
template <class T>
void check_float16(d::instruction_set set) {
  const auto of = [](std::vector<float> values) {
    std::vector<T> result;
    for (float v : values) result.push_back(T(v));
    return result;
  };
  const std::vector<T> a = of({6, 1, -8, 15}), b = of({3, 1, 2, 4});
  CHECK(binary<element::add>(a, b, set) == of({9, 2, -6, 19}));
  CHECK(binary<element::div>(a, b, set) == of({2, 1, -4, 3.75f}));
  CHECK(binary<element::mul>(a, of({2}), set) == of({12, 2, -16, 30}));
  CHECK(binary<element::sub>(of({2}), b, set) == of({-1, 1, 0, -2}));
  CHECK(compare<element::greater>(a, b, set) == std::vector<bool>{true, false, false, true});
  CHECK(unary<element::neg>(a, set) == of({-6, -1, 8, -15}));
  CHECK(unary<element::sqrt>(of({16, 2.25f}), set) == of({4, 1.5f}));
  CHECK(unary<element::exp>(of({0, -inf}), set) == of({1, 0}));
}

}  // namespace

TEST_CASE("loops: arithmetic and comparisons of every element type") {
  for (d::instruction_set set : sets()) {
    CAPTURE(d::name_of(set));
    check_arithmetic<float>(set);
    check_arithmetic<double>(set);
    check_arithmetic<std::int8_t>(set);
    check_arithmetic<std::int16_t>(set);
    check_arithmetic<std::int32_t>(set);
    check_arithmetic<std::int64_t>(set);
    check_arithmetic<std::uint8_t>(set);
    check_arithmetic<std::uint16_t>(set);
    check_arithmetic<std::uint32_t>(set);
    check_arithmetic<std::uint64_t>(set);
    check_float16<half>(set);
    check_float16<bfloat16>(set);
  }
}

TEST_CASE("loops: integers wrap") {
  for (d::instruction_set set : sets()) {
    using i32 = std::vector<std::int32_t>;
    using i64 = std::vector<std::int64_t>;
    constexpr std::int32_t low = std::numeric_limits<std::int32_t>::min(), high = std::numeric_limits<std::int32_t>::max();
    constexpr std::int64_t low64 = std::numeric_limits<std::int64_t>::min(), high64 = std::numeric_limits<std::int64_t>::max();
    CHECK(binary<element::add>(i32{high, low}, i32{1, -1}, set) == i32{low, high});
    CHECK(binary<element::mul>(i32{65536, 46341}, i32{65536, 46341}, set) == i32{0, -2147479015});
    CHECK(unary<element::neg>(i32{low, 5}, set) == i32{low, -5});
    CHECK(unary<element::abs>(i32{low, -5}, set) == i32{low, 5});
    CHECK(unary<element::abs>(i64{low64, -5}, set) == i64{low64, 5});
    CHECK(binary<element::sub>(i64{low64}, i64{1}, set) == i64{high64});
    CHECK(binary<element::mul>(std::vector<std::uint16_t>{65535}, std::vector<std::uint16_t>{65535}, set) == std::vector<std::uint16_t>{1});
    CHECK(binary<element::add>(std::vector<std::int8_t>{127}, std::vector<std::int8_t>{1}, set) == std::vector<std::int8_t>{-128});
    CHECK(binary<element::sub>(std::vector<std::uint8_t>{0}, std::vector<std::uint8_t>{1}, set) == std::vector<std::uint8_t>{255});
  }
}

TEST_CASE("loops: unsigned values above the signed range keep their order") {
  for (d::instruction_set set : sets()) {
    const std::vector<std::uint32_t> a{0x80000000U, 1}, b{1, 0xffffffffU};
    CHECK(compare<element::less>(a, b, set) == std::vector<bool>{false, true});
    CHECK(binary<element::maximum>(a, b, set) == std::vector<std::uint32_t>{0x80000000U, 0xffffffffU});
    CHECK(binary<element::div>(b, std::vector<std::uint32_t>{1, 2}, set) == std::vector<std::uint32_t>{1, 0x7fffffffU});
    const std::vector<std::uint64_t> c{0x8000000000000000U, 1}, e{1, 0xffffffffffffffffU};
    CHECK(compare<element::less>(c, e, set) == std::vector<bool>{false, true});
    CHECK(binary<element::minimum>(c, e, set) == std::vector<std::uint64_t>{1, 1});
  }
}

TEST_CASE("loops: integer division truncates, and the lowest integer divided by -1 is itself") {
  for (d::instruction_set set : sets()) {
    using i32 = std::vector<std::int32_t>;
    constexpr std::int32_t low = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t low64 = std::numeric_limits<std::int64_t>::min();
    CHECK(binary<element::div>(i32{7, -7, 7, -7, low, low}, i32{2, 2, -2, -2, -1, 1}, set) == i32{3, -3, -3, 3, low, low});
    CHECK(binary<element::div>(std::vector<std::int64_t>{low64, 9}, std::vector<std::int64_t>{-1}, set) ==
          std::vector<std::int64_t>{low64, -9});
    CHECK(binary<element::div>(std::vector<std::int8_t>{-128}, std::vector<std::int8_t>{-1}, set) == std::vector<std::int8_t>{-128});
  }
}

TEST_CASE("loops: an integer divided by zero is reported, a float is not") {
  const std::int32_t a[] = {1, 2, 3}, b[] = {1, 0, 1};
  std::int32_t out[3];
  CHECK(d::binary_loop<element::div>(a, 3, b, 3, out) == d::loop_status::division_by_zero);
  CHECK(d::binary_loop<element::div>(a, 3, b + 1, 1, out) == d::loop_status::division_by_zero);
  CHECK(d::binary_loop<element::div>(b + 1, 1, a, 3, out) == d::loop_status::ok);
  CHECK(d::binary_loop<element::div>(a, 0, b, 0, out) == d::loop_status::ok);
  CHECK(d::binary_loop<element::div>(a, 0, b + 1, 1, out) == d::loop_status::ok);
  const std::uint8_t c[] = {4, 5}, e[] = {2, 0};
  std::uint8_t small[2];
  CHECK(d::binary_loop<element::div>(c, 2, e, 2, small) == d::loop_status::division_by_zero);
  const std::int64_t rows[] = {2, 1}, columns[] = {1, 2};
  const std::int32_t zero_last[] = {5, 0};
  CHECK(d::binary_loop<element::div>(a, zero_last, out, *d::plan_broadcast(rows, 2, columns, 2)) == d::loop_status::division_by_zero);
  const float x[] = {1, 0, -1}, y[] = {0, 0, 0};
  float z[3];
  CHECK(d::binary_loop<element::div>(x, 3, y, 3, z) == d::loop_status::ok);
  CHECK(same(z[0], inf));
  CHECK(is_nan_bits(z[1]));
  CHECK(same(z[2], -inf));
}

TEST_CASE("loops: maximum and minimum give NaN if either side is, and the first of two equals") {
  const std::vector<float> a{0.f, -0.f, not_a_number, 1.f, not_a_number, inf, -inf, 3.f, -2.f},
      b{-0.f, 0.f, 1.f, not_a_number, not_a_number, 2.f, -3.f, inf, -2.f};
  const std::vector<float> larger{0.f, -0.f, not_a_number, not_a_number, not_a_number, inf, -3.f, inf, -2.f},
      smaller{0.f, -0.f, not_a_number, not_a_number, not_a_number, 2.f, -inf, 3.f, -2.f};
  for (d::instruction_set set : sets()) {
    CAPTURE(d::name_of(set));
    for (std::size_t i = 0; i < a.size(); ++i) {
      CAPTURE(i);
      const std::vector<float> left(21, a[i]), right(21, b[i]);  // vectors and a rest
      for (float value : binary<element::maximum>(left, right, set)) CHECK(same(value, larger[i]));
      for (float value : binary<element::minimum>(left, right, set)) CHECK(same(value, smaller[i]));
    }
  }
}

TEST_CASE("loops: comparisons with NaN are false, but for not_equal") {
  const std::vector<float> a(9, not_a_number), b(9, 1.f);
  const std::vector<bool> all(9, true), none(9, false);
  for (d::instruction_set set : sets()) {
    CHECK(compare<element::less>(a, b, set) == none);
    CHECK(compare<element::greater_equal>(a, b, set) == none);
    CHECK(compare<element::less_equal>(b, a, set) == none);
    CHECK(compare<element::equal>(a, a, set) == none);
    CHECK(compare<element::not_equal>(a, a, set) == all);
  }
}

TEST_CASE("loops: relu keeps NaN, abs and neg change the sign only") {
  for (d::instruction_set set : sets()) {
    const std::vector<float> in{-1.f, 0.f, 2.f, not_a_number, -inf, inf, -0.f}, out = unary<element::relu>(in, set);
    const float expected[] = {0.f, 0.f, 2.f, not_a_number, 0.f, inf, 0.f};
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(same(out[i], expected[i]));
    CHECK(same(unary<element::abs>(in, set)[6], 0.f));
    CHECK(same(unary<element::neg>(in, set)[1], -0.f));
    CHECK(same(unary<element::neg>(in, set)[4], inf));
  }
}

TEST_CASE("loops: bools") {
  const bool a[] = {false, false, true, true}, b[] = {false, true, false, true};
  bool out[4];
  d::binary_loop<element::logical_and>(a, 4, b, 4, out);
  CHECK((!out[0] && !out[1] && !out[2] && out[3]));
  d::binary_loop<element::logical_or>(a, 4, b, 4, out);
  CHECK((!out[0] && out[1] && out[2] && out[3]));
  d::unary_loop<element::logical_not>(a, out, 4);
  CHECK((out[0] && out[1] && !out[2] && !out[3]));
  d::binary_loop<element::equal>(a, 4, b, 4, out);
  CHECK((out[0] && !out[1] && !out[2] && out[3]));
}

TEST_CASE("loops: the output may be an operand") {
  for (d::instruction_set set : sets()) {
    for (std::size_t count : {1U, 7U, 64U, 1000U}) {
      std::vector<float> x(count), y(count), z(count);
      for (std::size_t i = 0; i < count; ++i) {
        x[i] = static_cast<float>(i);
        y[i] = static_cast<float>(3 * i);
        z[i] = static_cast<float>(i);
      }
      d::binary_loop<element::add>(x.data(), count, y.data(), count, x.data(), set);
      d::unary_loop<element::neg>(x.data(), x.data(), count, set);
      d::binary_loop<element::mul>(z.data(), count, y.data(), count, y.data(), set);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) wrong += x[i] != -static_cast<float>(4 * i) || y[i] != static_cast<float>(3 * i * i) ? 1 : 0;
      CHECK(wrong == 0);
    }
    half h[] = {half(1.f), half(2.f)};
    d::binary_loop<element::add>(h, 2, h, 2, h, set);
    CHECK(h[1] == half(4.f));
  }
}

#if !(defined(__clang__) && defined(__FAST_MATH__))
TEST_CASE("loops: scale and add in one pass gives the bits of two") {
  std::mt19937 random(9);
  std::vector<float> in(1003), product(1003), twice(1003), once(1003);
  for (float& value : in) value = static_cast<float>(random()) * 0x1p-32f - 0.5f;
  const float scale = 0.1f, offset = 0.3f;
  for (d::instruction_set set : sets()) {
    d::binary_loop<element::mul>(in.data(), in.size(), &scale, 1, product.data(), set);
    d::binary_loop<element::add>(product.data(), in.size(), &offset, 1, twice.data(), set);
    d::scale_and_add_loop(in.data(), scale, offset, once.data(), in.size(), set);
    CHECK(once == twice);
  }
}
#endif

TEST_CASE("broadcast: shapes are merged and refused as TensorFlow does") {
  const std::int64_t a[] = {2, 3, 4}, b[] = {3, 4}, c[] = {1, 4}, e[] = {3};
  std::int64_t out[3] = {};
  const auto same_tail = d::plan_broadcast(a, 3, b, 2, out);
  REQUIRE(same_tail.has_value());
  CHECK(same_tail->rank == 2);
  CHECK(same_tail->extents[0] == 12);
  CHECK(same_tail->extents[1] == 2);
  CHECK(same_tail->count == 24);
  CHECK(same_tail->b_count() == 12);
  CHECK((out[0] == 2 && out[1] == 3 && out[2] == 4));
  CHECK(d::plan_broadcast(a, 3, c, 2)->rank == 2);
  CHECK(d::plan_broadcast(a, 3, a, 3)->rank == 1);
  CHECK_FALSE(d::plan_broadcast(a, 3, e, 1).has_value());
  CHECK(d::plan_broadcast(nullptr, 0, nullptr, 0)->count == 1);
  const std::int64_t zero[] = {0, 1}, huge[] = {std::int64_t{1} << 62, std::int64_t{1} << 62};
  CHECK(d::plan_broadcast(zero, 2, c, 2)->count == 0);
  CHECK_FALSE(d::plan_broadcast(zero, 2, huge, 2).has_value());
  std::vector<std::int64_t> ones(200, 1), other(200, 1);
  ones[3] = 5;
  other[150] = 2;
  CHECK(d::plan_broadcast(ones.data(), 200, other.data(), 200)->count == 10);
}

TEST_CASE("broadcast: rows, columns, and the outer product") {
  const std::int64_t matrix[] = {2, 3}, row[] = {3}, column[] = {2, 1};
  const float m[] = {1, 2, 3, 4, 5, 6}, r[] = {10, 20, 30}, c[] = {100, 200};
  for (d::instruction_set set : sets()) {
    std::vector<float> out(6);
    d::binary_loop<element::add>(m, r, out.data(), *d::plan_broadcast(matrix, 2, row, 1), set);
    CHECK(out == std::vector<float>{11, 22, 33, 14, 25, 36});
    d::binary_loop<element::sub>(c, m, out.data(), *d::plan_broadcast(column, 2, matrix, 2), set);
    CHECK(out == std::vector<float>{99, 98, 97, 196, 195, 194});
    d::binary_loop<element::sub>(r, c, out.data(), *d::plan_broadcast(row, 1, column, 2), set);
    CHECK(out == std::vector<float>{-90, -80, -70, -190, -180, -170});
    std::vector<flag> flags(6);
    d::binary_loop<element::greater>(r, c, &flags.data()->value, *d::plan_broadcast(row, 1, column, 2), set);
    CHECK_FALSE(flags[0].value);
    d::binary_loop<element::greater>(c, r, &flags.data()->value, *d::plan_broadcast(column, 2, row, 1), set);
    CHECK(flags[5].value);
  }
}

namespace {

// out[i] = a[i'] - 2 b[i''], every index computed from scratch.
template <class T>
std::vector<T> naive_broadcast(const std::vector<T>& a, const std::vector<std::int64_t>& a_dims, const std::vector<T>& b,
                               const std::vector<std::int64_t>& b_dims, const std::vector<std::int64_t>& dims) {
  std::size_t count = 1;
  for (std::int64_t extent : dims) count *= static_cast<std::size_t>(extent);
  std::vector<T> out(count);
  for (std::size_t flat = 0; flat < count; ++flat) {
    std::size_t rest = flat, a_index = 0, b_index = 0, a_stride = 1, b_stride = 1;
    for (std::size_t back = 1; back <= dims.size(); ++back) {
      const auto extent = static_cast<std::size_t>(dims[dims.size() - back]);
      const std::size_t i = rest % extent;
      rest /= extent;
      if (back <= a_dims.size() && a_dims[a_dims.size() - back] != 1) {
        a_index += i * a_stride;
        a_stride *= extent;
      }
      if (back <= b_dims.size() && b_dims[b_dims.size() - back] != 1) {
        b_index += i * b_stride;
        b_stride *= extent;
      }
    }
    out[flat] = a[a_index] - b[b_index];
  }
  return out;
}

}  // namespace

TEST_CASE("broadcast: random shapes agree with an index by index loop") {
  std::mt19937 random(7);
  const std::vector<d::instruction_set> all = sets();
  const std::int64_t extents[] = {1, 2, 3, 5, 17, 70, 300};
  for (int round = 0; round < 400; ++round) {
    const std::size_t rank = random() % 5;
    std::vector<std::int64_t> a_dims, b_dims, dims;
    std::size_t a_count = 1, b_count = 1, count = 1;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      std::int64_t extent = extents[random() % 7];
      if (count * static_cast<std::size_t>(extent) > 40000) extent = 2;
      const auto kind = random() % 3;
      a_dims.push_back(kind == 0 ? 1 : extent);
      b_dims.push_back(kind == 1 ? 1 : extent);
      dims.push_back(extent);
      a_count *= static_cast<std::size_t>(a_dims.back());
      b_count *= static_cast<std::size_t>(b_dims.back());
      count *= static_cast<std::size_t>(extent);
    }
    std::vector<float> a(a_count), b(b_count), out(count);
    std::vector<std::int16_t> a16(a_count), b16(b_count), out16(count);
    for (std::size_t i = 0; i < a_count; ++i) a[i] = static_cast<float>(a16[i] = static_cast<std::int16_t>(random() % 1000));
    for (std::size_t i = 0; i < b_count; ++i) b[i] = static_cast<float>(b16[i] = static_cast<std::int16_t>(random() % 1000));
    const auto plan = d::plan_broadcast(a_dims.data(), rank, b_dims.data(), rank);
    REQUIRE(plan.has_value());
    REQUIRE(plan->count == count);
    const d::instruction_set set = all[static_cast<std::size_t>(round) % all.size()];
    d::binary_loop<element::sub>(a.data(), b.data(), out.data(), *plan, set);
    CHECK(out == naive_broadcast(a, a_dims, b, b_dims, dims));
    d::binary_loop<element::sub>(a16.data(), b16.data(), out16.data(), *plan, set);
    CHECK(out16 == naive_broadcast(a16, a_dims, b16, b_dims, dims));
  }
}
