#ifndef WEFT_TENSOR_DTYPE_HPP
#define WEFT_TENSOR_DTYPE_HPP
// Element types: the run-time enumeration (TensorFlow's numbers and names) and the C++ types that stand for them.

#include <weft/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft {

/// Element type of a tensor, with the number of TensorFlow's DataType.
enum class dtype : std::uint8_t {
  invalid = 0, float32 = 1, float64 = 2, int32 = 3, uint8 = 4, int16 = 5, int8 = 6, string = 7, complex64 = 8, int64 = 9,
  boolean = 10, bfloat16 = 14, uint16 = 17, complex128 = 18, half = 19, resource = 20, variant = 21, uint32 = 22, uint64 = 23
};

/// IEEE 754 binary16, a storage type: arithmetic on it happens in float inside kernels.
struct half {
  /// The bits, sign first.
  std::uint16_t bits = 0;
  half() = default;
  explicit half(float value) noexcept;
  explicit operator float() const noexcept;
  friend bool operator==(half a, half b) noexcept { return a.bits == b.bits; }
  friend bool operator!=(half a, half b) noexcept { return a.bits != b.bits; }
};

/// The upper 16 bits of a float, a storage type: arithmetic on it happens in float inside kernels.
struct bfloat16 {
  /// The bits, sign first.
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) noexcept;
  explicit operator float() const noexcept;
  friend bool operator==(bfloat16 a, bfloat16 b) noexcept { return a.bits == b.bits; }
  friend bool operator!=(bfloat16 a, bfloat16 b) noexcept { return a.bits != b.bits; }
};

inline bfloat16::operator float() const noexcept {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float out;
  std::memcpy(&out, &wide, sizeof out);
  return out;
}

// Rounds to nearest, ties to even; a NaN stays a quiet NaN.
inline bfloat16::bfloat16(float value) noexcept {
  std::uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  if ((wide & 0x7fffffffU) > 0x7f800000U) {
    bits = static_cast<std::uint16_t>((wide >> 16) | 0x40U);
    return;
  }
  wide += 0x7fffU + ((wide >> 16) & 1U);
  bits = static_cast<std::uint16_t>(wide >> 16);
}

inline half::operator float() const noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  std::uint32_t exponent = (bits >> 10) & 0x1fU, mantissa = bits & 0x3ffU;
  std::uint32_t wide;
  if (exponent == 0x1fU) {
    wide = sign | 0x7f800000U | (mantissa << 13);
  } else if (exponent != 0) {
    wide = sign | ((exponent + 112U) << 23) | (mantissa << 13);
  } else {
    const float small = static_cast<float>(mantissa) * 0x1p-24f;
    std::memcpy(&wide, &small, sizeof wide);
    wide |= sign;
  }
  float out;
  std::memcpy(&out, &wide, sizeof out);
  return out;
}

// Rounds to nearest, ties to even; what is too large becomes infinity.
inline half::half(float value) noexcept {
  std::uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  const std::uint32_t sign = (wide >> 16) & 0x8000U, magnitude = wide & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    bits = static_cast<std::uint16_t>(sign | 0x7e00U);
  } else if (magnitude >= 0x477ff000U) {
    bits = static_cast<std::uint16_t>(sign | 0x7c00U);
  } else if (magnitude >= 0x38800000U) {
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    bits = static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
  } else {
    float small;
    std::memcpy(&small, &magnitude, sizeof small);
    small += 0.5f;  // aligns the mantissa to multiples of 2^-24 and rounds it in hardware
    std::uint32_t aligned;
    std::memcpy(&aligned, &small, sizeof aligned);
    bits = static_cast<std::uint16_t>(sign | (aligned - 0x3f000000U));
  }
}

/// Names a variable, queue or other state of a task: device, container, name, and the C++ kind of what it holds.
struct resource_handle {
  std::string device, container, name, kind;
  friend bool operator==(const resource_handle& a, const resource_handle& b) {
    return a.device == b.device && a.container == b.container && a.name == b.name && a.kind == b.kind;
  }
  friend bool operator!=(const resource_handle& a, const resource_handle& b) { return !(a == b); }
};

namespace detail {
template <class T> struct always_false : std::false_type {};

template <class T>
inline constexpr bool is_integer_v = std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> &&
                                     !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>;

template <std::size_t Size, bool Signed> struct int_of;
template <> struct int_of<1, true> { using type = std::int8_t; };
template <> struct int_of<2, true> { using type = std::int16_t; };
template <> struct int_of<4, true> { using type = std::int32_t; };
template <> struct int_of<8, true> { using type = std::int64_t; };
template <> struct int_of<1, false> { using type = std::uint8_t; };
template <> struct int_of<2, false> { using type = std::uint16_t; };
template <> struct int_of<4, false> { using type = std::uint32_t; };
template <> struct int_of<8, false> { using type = std::uint64_t; };

// The element type that stands for a C++ type; void when there is none.
template <class T, class = void> struct canonical { using type = void; };
template <> struct canonical<bool> { using type = bool; };
template <> struct canonical<float> { using type = float; };
template <> struct canonical<double> { using type = double; };
template <> struct canonical<half> { using type = half; };
template <> struct canonical<bfloat16> { using type = bfloat16; };
template <> struct canonical<std::string> { using type = std::string; };
template <> struct canonical<const char*> { using type = std::string; };
template <> struct canonical<char*> { using type = std::string; };
template <> struct canonical<std::string_view> { using type = std::string; };
template <class T> struct canonical<T, std::enable_if_t<is_integer_v<T>>> : int_of<sizeof(T), std::is_signed_v<T>> {};

template <class T> struct dtype_of_impl;
template <> struct dtype_of_impl<float> { static constexpr dtype value = dtype::float32; };
template <> struct dtype_of_impl<double> { static constexpr dtype value = dtype::float64; };
template <> struct dtype_of_impl<half> { static constexpr dtype value = dtype::half; };
template <> struct dtype_of_impl<bfloat16> { static constexpr dtype value = dtype::bfloat16; };
template <> struct dtype_of_impl<std::int8_t> { static constexpr dtype value = dtype::int8; };
template <> struct dtype_of_impl<std::int16_t> { static constexpr dtype value = dtype::int16; };
template <> struct dtype_of_impl<std::int32_t> { static constexpr dtype value = dtype::int32; };
template <> struct dtype_of_impl<std::int64_t> { static constexpr dtype value = dtype::int64; };
template <> struct dtype_of_impl<std::uint8_t> { static constexpr dtype value = dtype::uint8; };
template <> struct dtype_of_impl<std::uint16_t> { static constexpr dtype value = dtype::uint16; };
template <> struct dtype_of_impl<std::uint32_t> { static constexpr dtype value = dtype::uint32; };
template <> struct dtype_of_impl<std::uint64_t> { static constexpr dtype value = dtype::uint64; };
template <> struct dtype_of_impl<bool> { static constexpr dtype value = dtype::boolean; };
template <> struct dtype_of_impl<std::string> { static constexpr dtype value = dtype::string; };
template <> struct dtype_of_impl<resource_handle> { static constexpr dtype value = dtype::resource; };
}  // namespace detail

/// The element type that stands for C++ type T (`long long` gives `std::int64_t`, `const char*` gives `std::string`); void when there is none.
template <class T> using dtype_t = typename detail::canonical<std::decay_t<T>>::type;
/// Whether T itself is an element type.
template <class T> inline constexpr bool is_dtype_v = std::is_same_v<dtype_t<T>, T>;
/// The run-time dtype of element type T.
template <class T> inline constexpr dtype dtype_of = detail::dtype_of_impl<T>::value;

/// Short name as in TensorFlow's Python: `float`, `int64`, `bool`, `string`.
constexpr const char* to_text(dtype type) noexcept {
  switch (type) {
    case dtype::float32: return "float";
    case dtype::float64: return "double";
    case dtype::int32: return "int32";
    case dtype::uint8: return "uint8";
    case dtype::int16: return "int16";
    case dtype::int8: return "int8";
    case dtype::string: return "string";
    case dtype::complex64: return "complex64";
    case dtype::int64: return "int64";
    case dtype::boolean: return "bool";
    case dtype::bfloat16: return "bfloat16";
    case dtype::uint16: return "uint16";
    case dtype::complex128: return "complex128";
    case dtype::half: return "half";
    case dtype::resource: return "resource";
    case dtype::variant: return "variant";
    case dtype::uint32: return "uint32";
    case dtype::uint64: return "uint64";
    case dtype::invalid: break;
  }
  return "invalid";
}

/// The dtype with this short name; `dtype::invalid` when there is none.
constexpr dtype parse_dtype(std::string_view name) noexcept {
  for (unsigned i = 1; i <= 23; ++i)
    if (name == to_text(static_cast<dtype>(i)) && name != "invalid") return static_cast<dtype>(i);
  return dtype::invalid;
}

/// Whether the number stands for a dtype that weft knows.
constexpr bool is_known_dtype(unsigned number) noexcept {
  return number <= 23 && std::string_view(to_text(static_cast<dtype>(number))) != "invalid";
}

/// Bytes of one element; 0 for string, resource and variant, whose elements are objects.
constexpr std::size_t size_of(dtype type) noexcept {
  switch (type) {
    case dtype::boolean: case dtype::int8: case dtype::uint8: return 1;
    case dtype::int16: case dtype::uint16: case dtype::half: case dtype::bfloat16: return 2;
    case dtype::float32: case dtype::int32: case dtype::uint32: return 4;
    case dtype::float64: case dtype::int64: case dtype::uint64: case dtype::complex64: return 8;
    case dtype::complex128: return 16;
    default: return 0;
  }
}

/// float, double, half or bfloat16.
constexpr bool is_floating(dtype type) noexcept {
  return type == dtype::float32 || type == dtype::float64 || type == dtype::half || type == dtype::bfloat16;
}
/// Any signed or unsigned integer (not bool).
constexpr bool is_integer(dtype type) noexcept {
  return type == dtype::int8 || type == dtype::int16 || type == dtype::int32 || type == dtype::int64 || type == dtype::uint8 ||
         type == dtype::uint16 || type == dtype::uint32 || type == dtype::uint64;
}
/// Whether elements are plain bytes (not objects such as strings).
constexpr bool is_plain(dtype type) noexcept { return size_of(type) != 0; }

}  // namespace weft

#endif
