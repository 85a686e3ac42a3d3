#ifndef WEFT_KERNELS_TRANSCENDENTAL_HPP
#define WEFT_KERNELS_TRANSCENDENTAL_HPP
// exp, expm1, log, log1p, tanh, sigmoid and sqrt on scalars, without branches and calls so that loops over them become vector code. Errors stay
// below 4 units in the last place over the whole range, denormals, infinities and NaN included. The polynomials are Chebyshev
// approximations of (e^r - 1 - r) / r^2 on |r| <= ln(2)/2, and for the logarithm of (log(1+f) - f + f^2/2) / f^3 in float and of
// (2 atanh(s) - 2s) / s^3 in double.

#include <weft/kernels/scalar_functions.hpp>

#if WEFT_HAS_KERNEL_BODIES
#if !defined(__GNUC__) && !defined(__clang__)
#include <cmath>
#endif

namespace weft::detail::element {

WEFT_SIMD_BEGIN

WEFT_SIMD_INLINE std::uint32_t to_bits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
WEFT_SIMD_INLINE std::uint64_t to_bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
WEFT_SIMD_INLINE float from_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
WEFT_SIMD_INLINE double from_bits(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// What the functions below need to know about a floating type.
template <class T> struct float_constants;

template <> struct float_constants<float> {
  using bits = std::uint32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr bits sign = 0x80000000U, infinity = 0x7f800000U, root_half = 0x3f3504f3U;
  static constexpr float to_integer = 0x1.8p23f, shift = 0x1p23f, smallest_normal = 0x1p-126f;
  static constexpr float log2_e = 0x1.715476p0f, ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float exp_lowest = -105.f, exp_highest = 89.f, expm1_lowest = -30.f, tanh_highest = 10.f, epsilon = 0x1p-26f;
};

template <> struct float_constants<double> {
  using bits = std::uint64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr bits sign = 0x8000000000000000U, infinity = 0x7ff0000000000000U, root_half = 0x3fe6a09e667f3bcdU;
  static constexpr double to_integer = 0x1.8p52, shift = 0x1p52, smallest_normal = 0x1p-1022;
  static constexpr double log2_e = 0x1.71547652b82fep0, ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  static constexpr double exp_lowest = -746, exp_highest = 710, expm1_lowest = -50, tanh_highest = 20, epsilon = 0x1p-56;
};

/// e^r - 1 for |r| <= ln(2)/2, exact to the last places also near 0.
template <instruction_set S>
WEFT_SIMD_INLINE float expm1_near_zero(float r) {
  float q = 0x1.6d117cp-10f;
  q = multiply_add<S>(q, r, 0x1.120be2p-7f);
  q = multiply_add<S>(q, r, 0x1.555518p-5f);
  q = multiply_add<S>(q, r, 0x1.5554dcp-3f);
  q = multiply_add<S>(q, r, 0.5f);
  return multiply_add<S>(r * r, q, r);
}
template <instruction_set S>
WEFT_SIMD_INLINE double expm1_near_zero(double r) {
  double q = 0x1.af390ba7e6f47p-26;
  q = multiply_add<S>(q, r, 0x1.2891d4ffbb0f9p-22);
  q = multiply_add<S>(q, r, 0x1.71de0d85293b8p-19);
  q = multiply_add<S>(q, r, 0x1.a019b8ca26fcfp-16);
  q = multiply_add<S>(q, r, 0x1.a01a01a7cebcdp-13);
  q = multiply_add<S>(q, r, 0x1.6c16c1789d1d7p-10);
  q = multiply_add<S>(q, r, 0x1.11111111109a6p-7);
  q = multiply_add<S>(q, r, 0x1.5555555553d37p-5);
  q = multiply_add<S>(q, r, 0x1.5555555555556p-3);
  q = multiply_add<S>(q, r, 0.5);
  return multiply_add<S>(r * r, q, r);
}

/// log(1 + f) for 1 + f between the roots of 1/2 and 2, plus `carry`, a small term that is added before the large ones.
template <instruction_set S>
WEFT_SIMD_INLINE float log1p_near_zero(float f, float carry) {
  float q = 0x1.1d8ea6p-4f;
  q = multiply_add<S>(q, f, -0x1.d635bcp-4f);
  q = multiply_add<S>(q, f, 0x1.dea282p-4f);
  q = multiply_add<S>(q, f, -0x1.fcf4c6p-4f);
  q = multiply_add<S>(q, f, 0x1.23d21ap-3f);
  q = multiply_add<S>(q, f, -0x1.555b4ap-3f);
  q = multiply_add<S>(q, f, 0x1.999d5ap-3f);
  q = multiply_add<S>(q, f, -0x1.fffffcp-3f);
  q = multiply_add<S>(q, f, 0x1.555554p-2f);
  const float square = f * f;
  return multiply_add<S>(square, -0.5f, multiply_add<S>(square * f, q, carry)) + f;
}
template <instruction_set S>
WEFT_SIMD_INLINE double log1p_near_zero(double f, double carry) {
  const double s = f / (2 + f), z = s * s, half_square = 0.5 * f * f;
  double r = 0x1.2b6776a1bf0b9p-3;
  r = multiply_add<S>(r, z, 0x1.39fd25d62ab23p-3);
  r = multiply_add<S>(r, z, 0x1.7462be245eae3p-3);
  r = multiply_add<S>(r, z, 0x1.c71c62c42db89p-3);
  r = multiply_add<S>(r, z, 0x1.2492492e0b70cp-2);
  r = multiply_add<S>(r, z, 0x1.99999999951f5p-2);
  r = multiply_add<S>(r, z, 0x1.5555555555558p-1);
  return f - (half_square - multiply_add<S>(s, multiply_add<S>(r, z, half_square), carry));
}

/// x split into n ln(2) + r with |r| <= ln(2)/2; `n` is an integer, also as the low bits of `shifted`.
template <class T> struct reduced { T r, n, shifted; };

template <instruction_set S, class T>
WEFT_SIMD_INLINE reduced<T> reduce_by_ln2(T x) {
  using c = float_constants<T>;
  const T shifted = multiply_add<S>(x, c::log2_e, c::to_integer), n = shifted - c::to_integer;
  return {multiply_add<S>(n, -c::ln2_low, multiply_add<S>(n, -c::ln2_high, x)), n, shifted};
}

/// e^x.
struct exp : traits {
  static constexpr bool heavy = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    using c = float_constants<T>;
    using bits = typename c::bits;
    T clamped = x > c::exp_highest ? c::exp_highest : x;
    clamped = clamped < c::exp_lowest ? c::exp_lowest : clamped;
    const reduced<T> part = reduce_by_ln2<S, T>(clamped);
    const T fraction = expm1_near_zero<S>(part.r) + T(1);
    // 2^n is applied in two factors, each a normal number, so that results beyond either end of the range are rounded once.
    constexpr bits offset = bits(2 * c::bias);
    const bits n = to_bits(part.shifted) - to_bits(T(c::to_integer)) + offset, first = n >> 1, second = n - first;
    return fraction * from_bits(bits(first << c::mantissa)) * from_bits(bits(second << c::mantissa));
  }
};

/// e^x - 1, exact to the last places also near 0.
struct expm1 : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    using c = float_constants<T>;
    using bits = typename c::bits;
    T clamped = x > c::exp_highest ? c::exp_highest : x;
    clamped = clamped < c::expm1_lowest ? c::expm1_lowest : clamped;
    const reduced<T> part = reduce_by_ln2<S, T>(clamped);
    // With half the power of two the largest results do not overflow before they are complete.
    const bits n = to_bits(part.shifted) - to_bits(T(c::to_integer)) + bits(c::bias - 1);
    const T power = from_bits(bits(n << c::mantissa));
    const T half = multiply_add<S>(power, expm1_near_zero<S>(part.r), power - T(0.5));
    return magnitude(x) < c::epsilon ? x : half + half;
  }
};

/// The logarithm of a positive number that is not too small, plus `carry`, which is small beside 1.
template <instruction_set S, class T>
WEFT_SIMD_INLINE T log_of_normal(T x, T bias, T carry) {
  using c = float_constants<T>;
  using bits = typename c::bits;
  const bits offset = bits(to_bits(x) - c::root_half + (bits(c::bias) << c::mantissa));
  const T biased = from_bits(bits(to_bits(T(c::shift)) | (offset >> c::mantissa)));
  const T n = biased - bias;
  const T f = from_bits(bits((offset & ((bits(1) << c::mantissa) - 1)) + c::root_half)) - T(1);
  return multiply_add<S>(n, c::ln2_high, log1p_near_zero<S>(f, multiply_add<S>(n, c::ln2_low, carry)));
}

/// The natural logarithm: -infinity at zero, NaN below it.
struct log : traits {
  static constexpr bool heavy = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    using c = float_constants<T>;
    using bits = typename c::bits;
    const bool tiny = x < c::smallest_normal;
    T result = log_of_normal<S, T>(tiny ? x * c::shift : x, tiny ? c::shift + T(c::bias + c::mantissa) : c::shift + T(c::bias), T(0));
    result = to_bits(x) >= c::infinity ? x : result;
    result = x < T(0) ? from_bits(bits(c::infinity | (c::infinity >> 1))) : result;
    return x == T(0) ? from_bits(bits(c::sign | c::infinity)) : result;
  }
};

/// log(1 + x), exact to the last places also near 0: what 1 + x loses is carried along.
struct log1p : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    using c = float_constants<T>;
    using bits = typename c::bits;
    const T sum = T(1) + x, larger = x > T(1) ? x : T(1), smaller = x > T(1) ? T(1) : x;
    T result = log_of_normal<S, T>(sum, c::shift + T(c::bias), (smaller - (sum - larger)) / sum);
    result = magnitude(x) < c::epsilon ? x : result;
    result = to_bits(magnitude(x)) >= c::infinity ? x : result;
    result = x < T(-1) ? from_bits(bits(c::infinity | (c::infinity >> 1))) : result;
    return x == T(-1) ? from_bits(bits(c::sign | c::infinity)) : result;
  }
};

/// The hyperbolic tangent, t / (t + 2) with t = e^(2|x|) - 1, with the sign of x.
struct tanh : traits {
  static constexpr bool heavy = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    using c = float_constants<T>;
    using bits = typename c::bits;
    const T size = magnitude(x), clamped = size > c::tanh_highest ? c::tanh_highest : size;
    const reduced<T> part = reduce_by_ln2<S, T>(clamped + clamped);
    const bits n = to_bits(part.shifted) - to_bits(T(c::to_integer)) + bits(c::bias);
    const T power = from_bits(bits(n << c::mantissa));
    const T t = multiply_add<S>(power, expm1_near_zero<S>(part.r), power - T(1));
    return from_bits(bits(to_bits(t / (t + T(2))) | (to_bits(x) & c::sign)));
  }
};

/// 1 / (1 + e^-x), written with e^-|x| so that both ends keep their digits.
struct sigmoid : traits {
  static constexpr bool heavy = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    const T e = exp::apply<S, T>(-magnitude(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
  }
};

/// The square root, correctly rounded.
struct sqrt : traits {
  static constexpr bool heavy = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
#if defined(__clang__) && defined(__x86_64__) && defined(__FAST_MATH__)
    // Whatever the pragmas say, fast math turns a float's root into an estimate: the instruction is written out.
    T root;
    if constexpr (std::is_same_v<T, float>) __asm__("sqrtss %1, %0" : "=x"(root) : "x"(x));
    else __asm__("sqrtsd %1, %0" : "=x"(root) : "x"(x));
    return root;
#elif defined(__clang__) && defined(__x86_64__)
    // The generic builtin may set errno and so stays a call; this one becomes vector instructions.
    if constexpr (std::is_same_v<T, float>) {
      typedef float lanes __attribute__((vector_size(16)));
      return __builtin_ia32_sqrtss(lanes{x, 0, 0, 0})[0];
    } else {
      typedef double lanes __attribute__((vector_size(16)));
      return __builtin_ia32_sqrtsd(lanes{x, 0})[0];
    }
#elif defined(__GNUC__) || defined(__clang__)
    if constexpr (std::is_same_v<T, float>) return __builtin_sqrtf(x);
    else return __builtin_sqrt(x);
#else
    return std::sqrt(x);
#endif
  }
};

/// 1 / sqrt(x).
struct rsqrt : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) { return T(1) / sqrt::apply<S, T>(x); }
};

WEFT_SIMD_END

}  // namespace weft::detail::element
#endif

#endif
