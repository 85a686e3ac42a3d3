#ifndef WEFT_KERNELS_SCALAR_FUNCTIONS_HPP
#define WEFT_KERNELS_SCALAR_FUNCTIONS_HPP
// The element functions that loops are made of: types with a static `apply<S>(values...)` on scalars, always inlined. Integers wrap,
// nothing traps; comparisons give bool. `wraps` says that a function of integers gives the same bits for signed and unsigned.

#include <weft/kernels/simd.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail::element {

WEFT_SIMD_BEGIN

template <class T, bool = std::is_integral_v<T> && !std::is_same_v<T, bool>> struct wrapping { using type = T; };
template <class T> struct wrapping<T, true> { using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>; };

/// The type in which T is added and multiplied without undefined overflow: unsigned for integers, T itself for others.
template <class T> using wrapping_t = typename wrapping<T>::type;

/// What loops know about an element function.
struct traits {
  static constexpr bool wraps = false;     // signed and unsigned integers give the same bits
  static constexpr bool compares = false;  // the result is bool
  static constexpr bool logical = false;   // operands are bool
  static constexpr bool divides = false;   // an integer zero on the right is an error
  static constexpr bool heavy = false;     // a long formula
  static constexpr bool plain = false;     // not worth more than one body
  static constexpr bool tuned = false;     // has a last argument that is the same for all elements
};
struct wrapping_traits : traits { static constexpr bool wraps = true; };
struct comparing_traits : traits { static constexpr bool compares = true; };
struct logical_traits : traits { static constexpr bool logical = true; };
struct swapped {};  // loops exchange the operands and run `other`

/// Whether a value is not a number, read from its bits so that no compiler flag can fold it away.
WEFT_SIMD_INLINE bool is_nan(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::int32_t>(bits & 0x7fffffffU) > 0x7f800000;
}
WEFT_SIMD_INLINE bool is_nan(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::int64_t>(bits & 0x7fffffffffffffffU) > 0x7ff0000000000000;
}
template <class T>
WEFT_SIMD_INLINE bool is_nan(T) {
  return false;
}

/// A value without its sign.
WEFT_SIMD_INLINE float magnitude(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0x7fffffffU;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
WEFT_SIMD_INLINE double magnitude(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0x7fffffffffffffffU;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

/// a + b.
struct add : wrapping_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) + static_cast<wrapping_t<T>>(b));
  }
};

/// a - b.
struct sub : wrapping_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) - static_cast<wrapping_t<T>>(b));
  }
};

/// a * b.
struct mul : wrapping_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) * static_cast<wrapping_t<T>>(b));
  }
};

/// a / b, integers toward zero; the lowest integer divided by -1 is itself. Loops report a zero divisor, here it gives 0.
struct div : traits {
  static constexpr bool divides = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == T(0)) return T(0);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return sub::apply<S, T>(T(0), a);
      return static_cast<T>(a / b);
    }
  }
};

/// The larger of both, the first if they are equal, NaN if either is.
struct maximum : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    const T larger = a < b ? b : a;  // a itself if a is NaN
    return is_nan(b) ? b : larger;
  }
};

/// The smaller of both, the first if they are equal, NaN if either is.
struct minimum : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    const T smaller = b < a ? b : a;  // a itself if a is NaN
    return is_nan(b) ? b : smaller;
  }
};

/// (a - b)^2.
struct squared_difference : wrapping_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) {
    const T difference = sub::apply<S, T>(a, b);
    return mul::apply<S, T>(difference, difference);
  }
};

/// a < b.
struct less : comparing_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a, T b) { return a < b; }
};

/// a <= b.
struct less_equal : comparing_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a, T b) { return a <= b; }
};

/// a > b.
struct greater : comparing_traits, swapped { using other = less; };

/// a >= b.
struct greater_equal : comparing_traits, swapped { using other = less_equal; };

/// a == b; NaN equals nothing.
struct equal : comparing_traits {
  static constexpr bool wraps = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a, T b) { return a == b; }
};

/// a != b; NaN differs from everything.
struct not_equal : comparing_traits {
  static constexpr bool wraps = true;
  template <instruction_set S, class T> WEFT_SIMD_INLINE static bool apply(T a, T b) { return a != b; }
};

/// a and b, of bool.
struct logical_and : logical_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return (a & b) != 0; }
};

/// a or b, of bool.
struct logical_or : logical_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a, T b) { return (a | b) != 0; }
};

/// not a, of bool.
struct logical_not : logical_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return !a; }
};

/// -a.
struct neg : wrapping_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    if constexpr (std::is_floating_point_v<T>) return -a;
    else return sub::apply<S, T>(T(0), a);
  }
};

/// a * a.
struct square : wrapping_traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return mul::apply<S, T>(a, a); }
};

/// The magnitude; that of the lowest integer is itself.
struct abs : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) {
    if constexpr (std::is_floating_point_v<T>) return magnitude(a);
    else return a < T(0) ? sub::apply<S, T>(T(0), a) : a;
  }
};

/// a if it is positive or NaN, else 0.
struct relu : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T a) { return is_nan(a) ? a : a > T(0) ? a : T(0); }
};

WEFT_SIMD_END

}  // namespace weft::detail::element
#endif

#endif
