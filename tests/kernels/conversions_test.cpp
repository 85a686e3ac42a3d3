#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are tested
#include <weft/kernels/conversions.hpp>

#include <weft/tensor/dtype.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace d = weft::detail;
using weft::bfloat16;
using weft::half;

namespace {

template <class To, class From>
std::vector<To> cast(const std::vector<From>& in, d::instruction_set set) {
  std::vector<To> out(in.size());
  d::cast_loop<To>(in.data(), out.data(), in.size(), set);
  return out;
}

template <class Check>
void for_each_set(Check check) {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    CAPTURE(d::name_of(set));
    check(set);
  }
}

float float_of(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Integers to integers of any pair: the low bits, read with the sign of the target.
template <class To, class From>
void check_integers(d::instruction_set set) {
  std::mt19937_64 random(sizeof(To) * 16 + sizeof(From));
  std::vector<From> in(700);
  for (From& value : in) value = static_cast<From>(random());
  const std::vector<To> out = cast<To>(in, set);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) wrong += out[i] != static_cast<To>(in[i]) ? 1 : 0;
  CHECK(wrong == 0);
}
template <class From>
void check_integers_from(d::instruction_set set) {
  check_integers<std::int8_t, From>(set);
  check_integers<std::int16_t, From>(set);
  check_integers<std::int32_t, From>(set);
  check_integers<std::int64_t, From>(set);
  check_integers<std::uint8_t, From>(set);
  check_integers<std::uint16_t, From>(set);
  check_integers<std::uint32_t, From>(set);
  check_integers<std::uint64_t, From>(set);
  check_integers<float, From>(set);
  check_integers<double, From>(set);
}

}  // namespace

TEST_CASE("cast: integers to all numbers keep their low bits or are rounded once") {
  for_each_set([](d::instruction_set set) {
    check_integers_from<std::int8_t>(set);
    check_integers_from<std::int16_t>(set);
    check_integers_from<std::int32_t>(set);
    check_integers_from<std::int64_t>(set);
    check_integers_from<std::uint8_t>(set);
    check_integers_from<std::uint16_t>(set);
    check_integers_from<std::uint32_t>(set);
    check_integers_from<std::uint64_t>(set);
  });
}

TEST_CASE("cast: floats are truncated, and what does not fit gives TensorFlow's answer on x86-64") {
  constexpr std::int32_t low = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t low64 = std::numeric_limits<std::int64_t>::min();
  const float inf = float_of(0x7f800000U), nan = float_of(0x7fc00000U);
  for_each_set([=](d::instruction_set set) {
    const std::vector<float> f{1.9f, -1.9f, nan, inf, -inf, 3e9f, -3e9f, -2147483648.f, 2147483520.f};
    CHECK(cast<std::int32_t>(f, set) == std::vector<std::int32_t>{1, -1, low, low, low, low, low, low, 2147483520});
    const std::vector<double> g{nan, inf, -inf, 1e19, -1e19, -2147483648.9, 2147483647.9};
    CHECK(cast<std::int64_t>(g, set) == std::vector<std::int64_t>{low64, low64, low64, low64, low64, -2147483648, 2147483647});
    CHECK(cast<std::int32_t>(g, set) == std::vector<std::int32_t>{low, low, low, low, low, low, 2147483647});
    const std::vector<float> bytes{-1.f, -1.5f, -100.f, 256.f, 300.5f};
    CHECK(cast<std::uint8_t>(bytes, set) == std::vector<std::uint8_t>{255, 255, 156, 0, 44});
    CHECK(cast<std::int8_t>(std::vector<float>{-128.f, 127.9f, 200.f}, set) == std::vector<std::int8_t>{-128, 127, -56});
    CHECK(cast<std::int16_t>(std::vector<double>{-32768., 40000.}, set) == std::vector<std::int16_t>{-32768, -25536});
    CHECK(cast<std::uint32_t>(std::vector<float>{4e9f, -1.f, nan}, set) == std::vector<std::uint32_t>{4000000000U, 0xffffffffU, 0U});
    CHECK(cast<std::uint64_t>(std::vector<double>{1e19, 5., -1., 1e20, nan}, set) ==
          std::vector<std::uint64_t>{10000000000000000000U, 5U, 0xffffffffffffffffU, 0U, 0x8000000000000000U});
  });
}

TEST_CASE("cast: everything but zero is true") {
  for_each_set([](d::instruction_set set) {
    const auto truth = [set](const auto& in) {
      bool out[8];
      d::cast_loop<bool>(in.data(), out, in.size(), set);
      return std::vector<bool>(out, out + in.size());
    };
    CHECK(truth(std::vector<float>{0.f, -0.f, 0.5f, float_of(0x7fc00000U)}) == std::vector<bool>{false, false, true, true});
    CHECK(truth(std::vector<double>{0., 1e-300}) == std::vector<bool>{false, true});
    CHECK(truth(std::vector<std::int64_t>{0, std::int64_t{1} << 32, -1}) == std::vector<bool>{false, true, true});
    CHECK(truth(std::vector<std::uint8_t>{0, 200}) == std::vector<bool>{false, true});
    CHECK(truth(std::vector<half>{half(0.f), half(-2.f)}) == std::vector<bool>{false, true});
    const bool flags[] = {false, true};
    float f[2];
    std::int64_t i[2];
    d::cast_loop<float>(flags, f, 2, set);
    d::cast_loop<std::int64_t>(flags, i, 2, set);
    CHECK((f[0] == 0.f && f[1] == 1.f && i[0] == 0 && i[1] == 1));
  });
}

TEST_CASE("half: every value survives the way to float and back, and NaN stays NaN") {
  std::vector<half> in(65536);
  for (std::size_t i = 0; i < in.size(); ++i) in[i].bits = static_cast<std::uint16_t>(i);
  for_each_set([&](d::instruction_set set) {
    const std::vector<float> wide = cast<float>(in, set);
    const std::vector<half> back = cast<half>(wide, set);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool nan = (i & 0x7fffU) > 0x7c00U;
      wrong += nan ? ((back[i].bits & 0x7fffU) > 0x7c00U ? 0 : 1) : (back[i] == in[i] ? 0 : 1);
    }
    CHECK(wrong == 0);
    CHECK(wide[0x3c00] == 1.f);
    CHECK(wide[0xc000] == -2.f);
    CHECK(wide[0x7bff] == 65504.f);
    CHECK(wide[0x0001] == 0x1p-24f);
    CHECK(wide[0x0400] == 0x1p-14f);
    CHECK(wide[0x3555] == 0.333251953125f);
  });
}

TEST_CASE("half: rounds to nearest, ties to even") {
  for_each_set([](d::instruction_set set) {
    const std::vector<half> out = cast<half>(
        std::vector<float>{0x1.002p0f, 0x1.006p0f, 65519.9f, 65520.f, 0x1p-25f, 0x1.8p-25f, 0x1.8p-24f, 0x1.ffcp-15f, -1e30f, 1e-40f}, set);
    const std::uint16_t expected[] = {0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000, 0x0001, 0x0002, 0x0400, 0xfc00, 0x0000};
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i].bits == expected[i]);
  });
}

TEST_CASE("bfloat16: rounds to nearest, ties to even, and every value survives") {
  for_each_set([](d::instruction_set set) {
    const std::vector<bfloat16> out = cast<bfloat16>(std::vector<float>{float_of(0x3f808000U), float_of(0x3f818000U), float_of(0x3f808001U),
                                                                        float_of(0x7f7fffffU), float_of(0x7f800001U), -2.5f},
                                                     set);
    const std::uint16_t expected[] = {0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x7fc0, 0xc020};
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i].bits == expected[i]);
    std::vector<bfloat16> in(65536);
    for (std::size_t i = 0; i < in.size(); ++i) in[i].bits = static_cast<std::uint16_t>(i);
    const std::vector<bfloat16> back = cast<bfloat16>(cast<float>(in, set), set);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < in.size(); ++i) wrong += (i & 0x7fffU) <= 0x7f80U && !(back[i] == in[i]) ? 1 : 0;
    CHECK(wrong == 0);
    CHECK(cast<half>(std::vector<bfloat16>{bfloat16(1.5f)}, set)[0].bits == 0x3e00);
    CHECK(cast<std::int32_t>(std::vector<half>{half(-2.75f)}, set)[0] == -2);
    CHECK(cast<half>(std::vector<std::int64_t>{-3}, set)[0].bits == 0xc200);
    CHECK(cast<double>(std::vector<half>{half(0.5f)}, set)[0] == 0.5);
  });
}
