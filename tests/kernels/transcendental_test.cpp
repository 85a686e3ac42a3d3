#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are tested
#include <weft/kernels/loops.hpp>

#include "accuracy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace d = weft::detail;
namespace element = weft::detail::element;
using weft_test::all_magnitudes;
using weft_test::bits_as;
using weft_test::check_accuracy;
using weft_test::is_nan_bits;

namespace {

// Values at which results change their kind, with the results' bits.
template <class F>
void check_special(const std::vector<std::uint32_t>& in, const std::vector<std::uint32_t>& expected) {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    for (std::size_t i = 0; i < in.size(); ++i) {
      CAPTURE(i);
      const std::vector<float> values(21, bits_as<float>(in[i]));  // vectors and a rest
      std::vector<float> out(21);
      d::unary_loop<F>(values.data(), out.data(), 21, set);
      for (float value : out) {
        if (expected[i] == 0x7fc00000U)
          CHECK(is_nan_bits(value));
        else
          CHECK(bits_as<std::uint32_t>(value) == expected[i]);
      }
    }
  }
}

constexpr std::uint32_t zero = 0, minus_zero = 0x80000000U, one = 0x3f800000U, minus_one = 0xbf800000U, half_one = 0x3f000000U,
                        infinity = 0x7f800000U, minus_infinity = 0xff800000U, not_a_number = 0x7fc00000U, minus_not_a_number = 0xffc00000U,
                        smallest = 1, largest = 0x7f7fffffU, lowest = 0xff7fffffU;

}  // namespace

TEST_CASE("exp: within 4 units in the last place, and right at the ends") {
  check_accuracy<element::exp>(all_magnitudes(), 4, [](float x) { return std::exp(static_cast<double>(x)); });
  check_special<element::exp>(
      {zero, minus_zero, infinity, minus_infinity, not_a_number, minus_not_a_number, smallest, largest, lowest, 0x42b17218U},
      {one, one, infinity, zero, not_a_number, not_a_number, one, infinity, zero, infinity});
}

TEST_CASE("log: within 4 units in the last place, and right at the ends") {
  std::vector<float> positive;
  for (float value : all_magnitudes()) {
    if ((bits_as<std::uint32_t>(value) & 0x80000000U) == 0 && value > 0.f) positive.push_back(value);
  }
  for (int i = 0; i < 2000; ++i) positive.push_back(1.f + static_cast<float>(i - 1000) * 0x1p-20f);
  check_accuracy<element::log>(positive, 4, [](float x) { return std::log(static_cast<double>(x)); });
  check_special<element::log>(
      {zero, minus_zero, one, infinity, minus_infinity, minus_one, not_a_number, minus_not_a_number, lowest, 0x80000001U},
      {minus_infinity, minus_infinity, zero, infinity, not_a_number, not_a_number, not_a_number, not_a_number, not_a_number, not_a_number});
}

TEST_CASE("tanh: within 4 units in the last place, and right at the ends") {
  check_accuracy<element::tanh>(all_magnitudes(), 4, [](float x) { return std::tanh(static_cast<double>(x)); });
  check_special<element::tanh>({zero, minus_zero, infinity, minus_infinity, not_a_number, smallest, 0x80000001U, largest, lowest},
                               {zero, minus_zero, one, minus_one, not_a_number, smallest, 0x80000001U, one, minus_one});
}

TEST_CASE("sigmoid: within 4 units in the last place, and right at the ends") {
  check_accuracy<element::sigmoid>(all_magnitudes(), 4, [](float x) { return 1 / (1 + std::exp(-static_cast<double>(x))); });
  check_special<element::sigmoid>({zero, minus_zero, infinity, minus_infinity, not_a_number, largest, lowest},
                                  {half_one, half_one, one, zero, not_a_number, one, zero});
}

TEST_CASE("sqrt: correctly rounded") {
  std::vector<float> positive;
  for (float value : all_magnitudes()) {
    if ((bits_as<std::uint32_t>(value) & 0x80000000U) == 0) positive.push_back(value);
  }
  check_accuracy<element::sqrt>(positive, 0.5, [](float x) { return std::sqrt(static_cast<double>(x)); });
  check_special<element::sqrt>({zero, minus_zero, infinity, minus_infinity, minus_one, not_a_number, 0x40800000U},
                               {zero, minus_zero, infinity, not_a_number, not_a_number, not_a_number, 0x40000000U});
}

TEST_CASE("double: exp, log, tanh and sigmoid within 4 units in the last place") {
  std::vector<double> small, wide, positive;
  for (int i = -30000; i <= 30000; ++i) {
    small.push_back(i * 0x1.23456789abcdep-12);
    wide.push_back(i * 0.0249123456789);
    positive.push_back(std::exp2(i / 28.0) * 1.0001);
  }
  const auto exp = [](double x) { return std::exp(static_cast<long double>(x)); };
  const auto tanh = [](double x) { return std::tanh(static_cast<long double>(x)); };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-static_cast<long double>(x))); };
  check_accuracy<element::exp>(small, 4, exp);
  check_accuracy<element::exp>(wide, 4, exp);
  check_accuracy<element::tanh>(small, 4, tanh);
  check_accuracy<element::tanh>(wide, 4, tanh);
  check_accuracy<element::sigmoid>(small, 4, sigmoid);
  check_accuracy<element::sigmoid>(wide, 4, sigmoid);
  check_accuracy<element::log>(positive, 4, [](double x) { return std::log(static_cast<long double>(x)); });
  check_accuracy<element::sqrt>(positive, 0.5001, [](double x) { return std::sqrt(static_cast<long double>(x)); });
}
