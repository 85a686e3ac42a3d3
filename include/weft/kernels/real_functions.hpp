#ifndef WEFT_KERNELS_REAL_FUNCTIONS_HPP
#define WEFT_KERNELS_REAL_FUNCTIONS_HPP
// Functions of one number that are computed in double, one by one, also for float: trigonometry, hyperbolic functions, the error function, gamma.

#include <weft/core/config.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail::real {

/// A function of one number.
using function = double (*)(double);

inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tan(double x) { return std::tan(x); }
inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double sinh(double x) { return std::sinh(x); }
inline double cosh(double x) { return std::cosh(x); }
inline double asinh(double x) { return std::asinh(x); }
inline double acosh(double x) { return std::acosh(x); }
inline double atanh(double x) { return std::atanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double erfc(double x) { return std::erfc(x); }

/// The logarithm of |gamma(x)|; infinite at 0 and at the negative integers. Unlike std::lgamma it writes no global sign.
inline double lgamma(double x) {
#if defined(__GLIBC__) || defined(__APPLE__)
  int sign = 0;
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

/// The derivative of log(gamma(x)); NaN at 0 and at the negative integers. 1. Below 0: reflection. 2. Below 10: steps upward. 3. The asymptotic series.
inline double digamma(double x) {
  constexpr double pi = 3.14159265358979323846;
  double result = 0;
  if (x <= 0) {
    const double nearest = std::rint(x);
    if (x == nearest) return std::numeric_limits<double>::quiet_NaN();
    // The cotangent has period pi, and keeps its digits beside a pole.
    result = -pi / std::tan(pi * (x - nearest));
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double square = 1 / (x * x);
  const double series = square * (1. / 12 - square * (1. / 120 - square * (1. / 252 - square * (1. / 240 - square * (1. / 132 - square * (691. / 32760 - square / 12))))));
  return result + std::log(x) - 0.5 / x - series;
}

/// out[i] = f(in[i]).
template <class T> void run(function f, const void* in_data, void* out_data, std::size_t count) {
  const auto* in = static_cast<const T*>(in_data);
  auto* out = static_cast<T*>(out_data);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(f(static_cast<double>(in[i])));
}

}  // namespace weft::detail::real
#endif

#endif
