#ifndef WEFT_KERNELS_MATH_FUNCTIONS_HPP
#define WEFT_KERNELS_MATH_FUNCTIONS_HPP
// Element functions of TensorFlow's further elementwise ops: divisions and remainders, bits, rounding, activations and their gradients. As in
// scalar_functions.hpp nothing traps; what a kernel refuses beforehand (a zero divisor, a negative exponent) gives some value here.

#include <weft/kernels/transcendental.hpp>

#if WEFT_HAS_KERNEL_BODIES
#include <cmath>

namespace weft::detail::element {

WEFT_SIMD_BEGIN

/// A function that is rare, or bound by memory: one body for every processor is enough.
struct plain_traits : traits { static constexpr bool plain = true; };
/// A function with a last argument that is the same for all elements.
struct tuned_traits : traits { static constexpr bool tuned = true; };

/// Largest integer that is not above x.
WEFT_SIMD_INLINE float floor_of(float x) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_floorf(x);
#else
  return std::floor(x);
#endif
}
WEFT_SIMD_INLINE double floor_of(double x) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_floor(x);
#else
  return std::floor(x);
#endif
}
/// The nearest integer, ties to the even one.
WEFT_SIMD_INLINE float rint_of(float x) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_rintf(x);
#else
  return std::rint(x);
#endif
}
WEFT_SIMD_INLINE double rint_of(double x) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_rint(x);
#else
  return std::rint(x);
#endif
}

/// The largest integer that is not above a.
struct floor : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return floor_of(a); }
};
/// The smallest integer that is not below a.
struct ceil : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return -floor_of(-a); }
};
/// The nearest integer, ties to the even one.
struct rint : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    if constexpr (std::is_floating_point_v<T>) return rint_of(a);
    else return a;
  }
};

/// 1, 0 or -1 with the sign of a; NaN of NaN.
struct sign : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    const T up = a > T(0) ? T(1) : T(0), down = a < T(0) ? T(1) : T(0);
    return is_nan(a) ? a : static_cast<T>(up - down);
  }
};

/// 1 / a.
struct reciprocal : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return T(1) / a; }
};

/// Whether a is NaN, infinite, neither of them.
struct nan_test : plain_traits {
  static constexpr bool compares = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a) { return is_nan(a); }
};
struct infinity_test : plain_traits {
  static constexpr bool compares = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a) { return to_bits(magnitude(a)) == float_constants<T>::infinity; }
};
struct finite_test : plain_traits {
  static constexpr bool compares = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a) { return to_bits(magnitude(a)) < float_constants<T>::infinity; }
};

/// a % b with the sign of a; the remainder by -1, and by 0, is 0.
struct truncate_mod : plain_traits {
  static constexpr bool divides = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(std::fmod(a, b));
    } else {
      if (b == T(0) || (std::is_signed_v<T> && b == static_cast<T>(-1))) return T(0);
      return static_cast<T>(a % b);
    }
  }
};
/// The remainder with the sign of b.
struct floor_mod : plain_traits {
  static constexpr bool divides = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    const T rest = truncate_mod::apply<S, T>(a, b);
    if constexpr (std::is_unsigned_v<T>) return rest;
    else return rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b) : rest;
  }
};
/// The quotient without its fraction.
struct truncate_div : plain_traits {
  static constexpr bool divides = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      const T quotient = a / b, size = floor_of(magnitude(quotient));
      return quotient < T(0) ? -size : is_nan(quotient) ? quotient : size;
    } else {
      return div::apply<S, T>(a, b);
    }
  }
};
/// The largest integer that is not above the quotient.
struct floor_div : plain_traits {
  static constexpr bool divides = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return floor_of(a / b);
    } else {
      const T quotient = div::apply<S, T>(a, b);
      if constexpr (std::is_unsigned_v<T>) return quotient;
      else return truncate_mod::apply<S, T>(a, b) != T(0) && (a < T(0)) != (b < T(0)) ? static_cast<T>(quotient - 1) : quotient;
    }
  }
};
/// a / b, 0 where b is 0.
struct div_no_nan : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return b == T(0) ? T(0) : a / b; }
};
/// a * b, 0 where b is 0.
struct mul_no_nan : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return b == T(0) ? T(0) : a * b; }
};
/// a / b, a where a is 0.
struct xdivy : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return a == T(0) ? a : a / b; }
};
/// a log(b), a where a is 0.
struct xlogy : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    return a == T(0) ? a : static_cast<T>(static_cast<double>(a) * std::log(static_cast<double>(b)));
  }
};
/// a to the power b; integers wrap, and their exponents are not negative.
struct pow : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    } else {
      T result = 1;
      for (auto left = static_cast<wrapping_t<T>>(b < T(0) ? T(0) : b); left != 0; left >>= 1) {
        if ((left & 1U) != 0) result = mul::apply<S, T>(result, a);
        a = mul::apply<S, T>(a, a);
      }
      return result;
    }
  }
};
/// The angle of the point (b, a).
struct atan2 : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    return static_cast<T>(std::atan2(static_cast<double>(a), static_cast<double>(b)));
  }
};

struct bit_and : plain_traits {
  static constexpr bool wraps = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return a & b; }
};
struct bit_or : plain_traits {
  static constexpr bool wraps = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return a | b; }
};
struct bit_xor : plain_traits {
  static constexpr bool wraps = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return a ^ b; }
};
struct bit_not : plain_traits {
  static constexpr bool wraps = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return ~a; }
};
/// a shifted by b, which is brought into [0, most] first.
struct shift_left : plain_traits {
  static constexpr bool tuned = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b, T most) {
    const T count = b < T(0) ? T(0) : b > most ? most : b;
    return static_cast<T>(static_cast<std::uint64_t>(a) << count);
  }
};
struct shift_right : plain_traits {
  static constexpr bool tuned = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b, T most) {
    const T count = b < T(0) ? T(0) : b > most ? most : b;
    return static_cast<T>(a >> count);
  }
};

/// Whether a and b are at most `tolerance` apart.
struct approximate_equal : plain_traits {
  static constexpr bool compares = true, tuned = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a, T b, T tolerance) {
    if constexpr (std::is_floating_point_v<T>) return magnitude(a - b) <= tolerance;
    else return static_cast<std::uint64_t>(a < b ? sub::apply<S, T>(b, a) : sub::apply<S, T>(a, b)) <= static_cast<std::uint64_t>(tolerance);
  }
};

/// a if it is in [0, 6] or NaN, else the nearer end.
struct relu6 : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    const T positive = relu::apply<S, T>(a);
    return positive > T(6) ? T(6) : positive;
  }
};
/// a if it is positive, else alpha a.
struct leaky_relu : tuned_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T alpha) {
    const T below = a * alpha;
    return a > T(0) ? a : below;
  }
};
/// a if it is not negative, else e^a - 1.
struct elu : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    const T below = expm1::apply<S, T>(a);
    return a < T(0) ? below : a;
  }
};
/// The self-normalising form of elu.
struct selu : traits {
  template <class T> static constexpr T scale = T(1.0507009873554804934193349852946);
  template <class T> static constexpr T scaled_alpha = T(1.7580993408473768599402175208123);
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    const T below = scaled_alpha<T> * expm1::apply<S, T>(a);
    return a < T(0) ? below : scale<T> * a;
  }
};
/// log(1 + e^a).
struct softplus : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    using c = float_constants<T>;
    // 1 + power is in [1, 2]; what the sum loses is divided by it to a few digits, which is enough.
    const T power = exp::apply<S, T>(-magnitude(a)), sum = T(1) + power, lost = power - (sum - T(1));
    return (a > T(0) ? a : T(0)) + log_of_normal<S, T>(sum, c::shift + T(c::bias), lost * (T(1.5) - T(0.5) * sum));
  }
};
/// a / (1 + |a|).
struct softsign : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return a / (T(1) + magnitude(a)); }
};

// Gradients: g is that of the result, x the operand, y the result.

struct relu_grad : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T g, T x) { return g * (x > T(0) ? T(1) : T(0)); }
};
struct relu6_grad : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T g, T x) { return g * (((x > T(0)) & (x < T(6))) ? T(1) : T(0)); }
};
struct leaky_relu_grad : tuned_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T g, T x, T alpha) {
    const T below = g * alpha;
    return x > T(0) ? g : below;
  }
};
struct elu_grad : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T g, T y) { return y < T(0) ? g * (y + T(1)) : g; }
};
struct selu_grad : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T g, T y) { return g * (y < T(0) ? y + selu::scaled_alpha<T> : selu::scale<T>); }
};
struct softplus_grad : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T g, T x) { return g / (exp::apply<S, T>(-x) + T(1)); }
};
struct softsign_grad : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T g, T x) {
    const T size = T(1) + magnitude(x);
    return g / (size * size);
  }
};
struct tanh_grad : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T y, T g) { return g * (T(1) - y * y); }
};
struct sigmoid_grad : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T y, T g) { return g * y * (T(1) - y); }
};
struct sqrt_grad : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T y, T g) { return T(0.5) * g / y; }
};
struct rsqrt_grad : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T y, T g) { return T(-0.5) * g * (y * y * y); }
};
struct reciprocal_grad : plain_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T y, T g) { return -g * (y * y); }
};

WEFT_SIMD_END

}  // namespace weft::detail::element
#endif

#endif
