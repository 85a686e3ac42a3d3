#ifndef WEFT_TESTS_KERNELS_ACCURACY_HPP
#define WEFT_TESTS_KERNELS_ACCURACY_HPP
// How far results of floating functions are from the exact ones, in units of the last place, for every instruction set that the processor has.

#include <weft/kernels/loops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace weft_test {

template <class To, class From>
To bits_as(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline bool is_nan_bits(float x) { return (bits_as<std::uint32_t>(x) & 0x7fffffffU) > 0x7f800000U; }

inline bool is_infinite_bits(float x) { return (bits_as<std::uint32_t>(x) & 0x7fffffffU) == 0x7f800000U; }
inline bool is_infinite_bits(double x) { return (bits_as<std::uint64_t>(x) & 0x7fffffffffffffffU) == 0x7ff0000000000000U; }

/// The distance from the exact result in units of the last place.
inline double units_off(float found, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  if (std::fabs(exact) < 0x1p-126) exponent = -125;
  return std::fabs(static_cast<double>(found) - exact) / std::ldexp(1.0, exponent - 24);
}
inline double units_off(double found, long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  if (std::fabs(exact) < 0x1p-1022L) exponent = -1021;
  return static_cast<double>(std::fabs(static_cast<long double>(found) - exact) / std::ldexp(1.0L, exponent - 53));
}

/// Floats of all exponents and both signs; every 4099th of them.
inline std::vector<float> all_magnitudes() {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
    const auto value = bits_as<float>(static_cast<std::uint32_t>(bits));
    if (!is_nan_bits(value)) values.push_back(value);
  }
  return values;
}

/// Checks that no result of F is more than `most` units from the exact one; where that is NaN, so is the result.
template <class F, class T, class Exact>
void check_accuracy(const std::vector<T>& in, double most, Exact exact) {
  namespace d = weft::detail;
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    CAPTURE(d::name_of(set));
    std::vector<T> out(in.size());
    d::unary_loop<F>(in.data(), out.data(), in.size(), set);
    double worst = 0;
    T worst_at = T(0);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto truth = exact(in[i]);
      const auto rounded = static_cast<T>(truth);
      double off = 0;
      if (truth != truth) {
        off = out[i] != out[i] ? 0 : 1e9;
      } else if (std::fabs(truth) > static_cast<decltype(truth)>(std::numeric_limits<T>::max())) {
        const bool rounds_to_infinity = is_infinite_bits(rounded);
        if (rounds_to_infinity && (!is_infinite_bits(out[i]) || (out[i] > 0) != (truth > 0))) off = 1e9;
      } else {
        off = units_off(out[i], truth);
      }
      if (off <= worst) continue;
      worst = off;
      worst_at = in[i];
    }
    CAPTURE(worst_at);
    CHECK(worst <= most);
  }
}

}  // namespace weft_test

#endif
