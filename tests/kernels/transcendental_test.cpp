#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are tested
#include <weft/kernels/loops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace d = weft::detail;
namespace element = weft::detail::element;

namespace {

template <class To, class From>
To bits_as(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}
bool is_nan_bits(float x) { return (bits_as<std::uint32_t>(x) & 0x7fffffffU) > 0x7f800000U; }

bool is_infinite_bits(float x) { return (bits_as<std::uint32_t>(x) & 0x7fffffffU) == 0x7f800000U; }
bool is_infinite_bits(double x) { return (bits_as<std::uint64_t>(x) & 0x7fffffffffffffffU) == 0x7ff0000000000000U; }

// The distance from the exact result in units of the last place of a float.
double units_off(float found, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  if (std::fabs(exact) < 0x1p-126) exponent = -125;
  return std::fabs(static_cast<double>(found) - exact) / std::ldexp(1.0, exponent - 24);
}
double units_off(double found, long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  if (std::fabs(exact) < 0x1p-1022L) exponent = -1021;
  return static_cast<double>(std::fabs(static_cast<long double>(found) - exact) / std::ldexp(1.0L, exponent - 53));
}

// Floats of all exponents and both signs; every 4099th of them.
std::vector<float> all_magnitudes() {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
    const auto value = bits_as<float>(static_cast<std::uint32_t>(bits));
    if (!is_nan_bits(value)) values.push_back(value);
  }
  return values;
}

template <class F, class T, class Exact>
void check_accuracy(const std::vector<T>& in, double most, Exact exact) {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    CAPTURE(d::name_of(set));
    std::vector<T> out(in.size());
    d::unary_loop<F>(in.data(), out.data(), in.size(), set);
    double worst = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto truth = exact(in[i]);
      const auto rounded = static_cast<T>(truth);
      if (std::fabs(truth) > static_cast<decltype(truth)>(std::numeric_limits<T>::max())) {
        const bool rounds_to_infinity = is_infinite_bits(rounded);
        if (rounds_to_infinity && (!is_infinite_bits(out[i]) || (out[i] > 0) != (truth > 0))) worst = 1e9;
      } else {
        worst = std::fmax(worst, units_off(out[i], truth));
      }
    }
    CHECK(worst <= most);
  }
}

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
