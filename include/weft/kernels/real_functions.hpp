#ifndef WEFT_KERNELS_REAL_FUNCTIONS_HPP
#define WEFT_KERNELS_REAL_FUNCTIONS_HPP
// Functions of one number that are computed in double, one by one, also for float where there is no loop: trigonometry, hyperbolic functions, the error function, gamma.

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
inline double expm1(double x) { return std::expm1(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double elu(double x) { return x < 0 ? std::expm1(x) : x; }
inline double selu(double x) { return x < 0 ? 1.7580993408473768599402175208123 * std::expm1(x) : 1.0507009873554804934193349852946 * x; }
inline double softplus(double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }
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

/// The sum of (q + i) to the power -s over i = 0, 1, ..., for s > 1 and q > 0: 1. term by term until q + i is large, 2. the rest by Euler and Maclaurin.
inline double hurwitz_zeta(double s, double q) {
  // (2k)! / B(2k) for the Bernoulli numbers B(2), B(4), ...
  constexpr double ratios[] = {12, -720, 30240, -1209600, 47900160, -1307674368000. / 691, 74724249600., -10670622842880000. / 3617, 5109094217170944000. / 43867};
  if (std::isinf(q)) return 0;
  double sum = 0;
  for (; q < 10; q += 1) sum += std::pow(q, -s);
  const double last = std::pow(q, -s);
  sum += last * q / (s - 1) + last / 2;
  double term = last * s / q;
  for (int k = 0; k < 9; ++k) {
    sum += term / ratios[k];
    term *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
  }
  return sum;
}

/// The n-th derivative of digamma; NaN where n is not 0, 1, 2, ... At 0 and the negative integers infinite for odd n, else NaN.
inline double polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return std::numeric_limits<double>::quiet_NaN();
  if (n == 0) return digamma(x);
  const double s = n + 1, sign = std::fmod(n, 2) == 1 ? 1 : -1, factor = sign * std::exp(lgamma(s));
  if (x > 0 || x != x) return factor * hurwitz_zeta(s, x);
  if (x == std::floor(x)) return sign > 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  // The terms below 0 are those from -x downward; without a loop over them, which could be long.
  const double below = std::floor(-x) + 1, up = x + below;
  return factor * (hurwitz_zeta(s, up) + sign * (hurwitz_zeta(s, 1 - up) - hurwitz_zeta(s, 1 - up + below)));
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
