#ifndef WEFT_KERNELS_CONVERSIONS_HPP
#define WEFT_KERNELS_CONVERSIONS_HPP
// Conversions between element types, defined for every value and following TensorFlow on x86-64: floats are truncated toward zero, what an
// integer cannot hold becomes the lowest int32 or int64 (then cut for narrower types), integers wrap, anything but zero is true.
// The 16-bit floating types are stored as bits and computed in float.

#include <weft/kernels/transcendental.hpp>

#include <cstddef>

namespace weft {
struct half;
struct bfloat16;
}  // namespace weft

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Layouts of 16-bit floating types.
enum class float16_format : unsigned char { none, ieee, brain };

/// The 16-bit layout of T, `none` for types that kernels compute in themselves; specialise it for a storage type of two bytes.
template <class T> inline constexpr float16_format float16_format_v = float16_format::none;
template <> inline constexpr float16_format float16_format_v<half> = float16_format::ieee;
template <> inline constexpr float16_format float16_format_v<bfloat16> = float16_format::brain;

/// Whether T is a 16-bit floating storage type.
template <class T> inline constexpr bool is_float16_v = float16_format_v<T> != float16_format::none;

namespace element {

WEFT_SIMD_BEGIN

/// IEEE binary16 to float, exact.
WEFT_SIMD_INLINE float half_to_float(std::uint16_t bits) {
  const std::uint32_t size = bits & 0x7fffU, sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t normal = (size << 13) + (112U << 23), special = 0x7f800000U | (size << 13);
  const std::uint32_t small = to_bits(static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f);
  return from_bits(sign | (size >= 0x7c00U ? special : size < 0x400U ? small : normal));
}

/// Float to IEEE binary16, to nearest, ties to even; too large becomes infinity, a NaN a quiet NaN.
WEFT_SIMD_INLINE std::uint16_t float_to_half(float x) {
  const std::uint32_t bits = to_bits(x), size = bits & 0x7fffffffU;
  const std::uint32_t normal = (size + 0xfffU + ((size >> 13) & 1U) - 0x38000000U) >> 13;
  const std::uint32_t small = to_bits(from_bits(size < 0x38800000U ? size : 0U) + 0.5f) - 0x3f000000U;
  const std::uint32_t finite = size < 0x38800000U ? small : size < 0x477ff000U ? normal : 0x7c00U;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000U) | (size > 0x7f800000U ? 0x7e00U : finite));
}

/// The upper half of a float to float, exact.
WEFT_SIMD_INLINE float bfloat16_to_float(std::uint16_t bits) { return from_bits(static_cast<std::uint32_t>(bits) << 16); }

/// Float to its upper half, to nearest, ties to even; a NaN stays a quiet NaN.
WEFT_SIMD_INLINE std::uint16_t float_to_bfloat16(float x) {
  const std::uint32_t bits = to_bits(x), rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>(((bits & 0x7fffffffU) > 0x7f800000U ? bits | 0x400000U : rounded) >> 16);
}

/// Truncates to an integer of 32 or 64 bits; NaN and what does not fit give the lowest one.
template <class To, class From>
WEFT_SIMD_INLINE To truncate(From x) {
  static_assert(std::is_same_v<To, std::int32_t> || std::is_same_v<To, std::int64_t>);
  constexpr From limit = sizeof(To) == 4 ? From(0x1p31) : From(0x1p63);
  constexpr From below = sizeof(To) == 4 && sizeof(From) == 8 ? From(-0x1p31) - 1 : From(0);  // only a double has values between
  const bool fits = x < limit && (below != From(0) ? x > below : x >= -limit);
  const To inside = static_cast<To>(fits ? x : From(0));
  return fits ? inside : std::numeric_limits<To>::min();
}

/// The value as another type.
template <class To> struct cast {
  template <instruction_set S, class From> WEFT_SIMD_INLINE static To apply(From x) {
    if constexpr (is_float16_v<From>) return apply<S>(load(x));
    else if constexpr (std::is_same_v<To, From>) return x;
    else if constexpr (is_float16_v<To>) return store(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, bool>) return x != From(0);
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return to_integer(x);
    else return static_cast<To>(x);
  }

 private:
  template <class From> WEFT_SIMD_INLINE static float load(From x) {
    std::uint16_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return float16_format_v<From> == float16_format::ieee ? half_to_float(bits) : bfloat16_to_float(bits);
  }
  WEFT_SIMD_INLINE static To store(float x) {
    const std::uint16_t bits = float16_format_v<To> == float16_format::ieee ? float_to_half(x) : float_to_bfloat16(x);
    To result;
    std::memcpy(static_cast<void*>(&result), &bits, sizeof bits);
    return result;
  }
  template <class From> WEFT_SIMD_INLINE static To to_integer(From x) {
    if constexpr (std::is_same_v<To, std::uint64_t>) {
      const bool upper = x >= From(0x1p63);
      const auto bits = static_cast<std::uint64_t>(truncate<std::int64_t>(upper ? x - From(0x1p63) : x));
      return upper ? bits ^ 0x8000000000000000U : bits;
    } else if constexpr (sizeof(To) == 8 || std::is_same_v<To, std::uint32_t>) {
      return static_cast<To>(truncate<std::int64_t>(x));
    } else {
      return static_cast<To>(truncate<std::int32_t>(x));
    }
  }
};

WEFT_SIMD_END

}  // namespace element

WEFT_SIMD_BEGIN

template <class F, class T, class R> struct unary_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, R* out, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] = F::template apply<S>(in[i]);
  }
};

#if WEFT_SIMD_X86 && !defined(__clang__)
// To g++ the square root may set errno, which keeps it out of vector loops: here the vectors and the instruction are written out.
template <class T, bool Reciprocal> struct root_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, T* out, std::size_t count) {
    constexpr std::size_t bytes = S == instruction_set::avx512 ? 64 : S == instruction_set::avx2 ? 32 : 16, lanes = bytes / sizeof(T);
    typedef T vector __attribute__((vector_size(bytes)));
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      vector x;
      std::memcpy(&x, in + i, sizeof x);
      if constexpr (bytes == 16 && sizeof(T) == 4) __asm__("sqrtps %0, %0" : "+x"(x));
      else if constexpr (bytes == 16) __asm__("sqrtpd %0, %0" : "+x"(x));
      else if constexpr (sizeof(T) == 4) __asm__("vsqrtps %0, %0" : "+v"(x));
      else __asm__("vsqrtpd %0, %0" : "+v"(x));
      if constexpr (Reciprocal) x = T(1) / x;
      std::memcpy(out + i, &x, sizeof x);
    }
    for (; i < count; ++i) {
      const T root = element::sqrt::apply<S, T>(in[i]);
      out[i] = Reciprocal ? T(1) / root : root;
    }
  }
};
template <class T> struct unary_body<element::sqrt, T, T> : root_body<T, false> {};
template <class T> struct unary_body<element::rsqrt, T, T> : root_body<T, true> {};
#endif

WEFT_SIMD_END

/// Elements that loops convert at a time when they compute in another type than the array's.
inline constexpr std::size_t block_size = 512;

template <class T> inline constexpr bool is_small_integer_v = std::is_integral_v<T> && sizeof(T) < 4;
template <class T>
using unsigned_of = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// The type through which From becomes To so that few loops serve all pairs, void where one loop does it.
template <class To, class From> constexpr auto cast_hub() {
  if constexpr (is_float16_v<From> || is_float16_v<To>) {
    if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float>) return;
    else return float();
  } else if constexpr (is_small_integer_v<From>) {
    if constexpr (std::is_same_v<To, std::int32_t>) return;
    else return std::int32_t();
  } else if constexpr (is_small_integer_v<To> && !std::is_same_v<To, bool>) {
    if constexpr (std::is_integral_v<From> && sizeof(From) == 4) return;
    else return std::int32_t();
  } else if constexpr ((std::is_same_v<From, std::uint32_t> && std::is_floating_point_v<To>) ||
                       (std::is_same_v<To, std::uint32_t> && std::is_floating_point_v<From>)) {
    return std::int64_t();
  }
}

/// From or To of a cast between integers, unsigned where the sign makes no difference.
template <class To, class From> constexpr auto cast_source() {
  constexpr bool integers = std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<From, bool>;
  if constexpr (integers && (sizeof(To) <= sizeof(From) || std::is_same_v<To, bool>)) return unsigned_of<From>();
  else return From();
}
template <class To, class From> constexpr auto cast_target() {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) return unsigned_of<To>();
  else return To();
}

/// out[i] = in[i] as another type.
template <class To, class From>
void cast_loop(const From* in, To* out, std::size_t count, instruction_set set = best_instruction_set()) {
  using hub = decltype(cast_hub<To, From>());
  if constexpr (std::is_void_v<hub>) {
    using source = decltype(cast_source<To, From>());
    using target = decltype(cast_target<To, From>());
    dispatch<unary_body<element::cast<target>, source, target>, instruction_set::avx2>(set, reinterpret_cast<const source*>(in),
                                                                                       reinterpret_cast<target*>(out), count);
  } else {
    hub block[block_size];
    for (std::size_t begin = 0; begin < count; begin += block_size) {
      const std::size_t size = count - begin < block_size ? count - begin : block_size;
      cast_loop<hub>(in + begin, block, size, set);
      cast_loop<To>(static_cast<const hub*>(block), out + begin, size, set);
    }
  }
}

}  // namespace weft::detail
#endif

#endif
