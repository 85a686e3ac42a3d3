#ifndef WEFT_KERNELS_ELEMENT_TYPES_HPP
#define WEFT_KERNELS_ELEMENT_TYPES_HPP
// How few loops serve all dtypes: kernels compute in float, double, int64 or uint64 (bool in itself), and elements of other types are
// widened to one of these and narrowed back. Wrapping integer arithmetic gives the same bits in any wider type.

#include <weft/kernels/conversions.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// out[i] = f(in[i]) over arrays whose element types are erased.
using array_function = void (*)(const void* in, void* out, std::size_t count);

/// One function for each dtype in which kernels compute; nullptr where there is none.
template <class Function> struct wide_functions {
  Function float32, float64, int64, uint64, boolean;
  /// The function that serves elements of a dtype, in the dtype of `wide_dtype`.
  Function of(dtype type) const noexcept;
};

/// The dtype in which elements of a dtype are computed; `invalid` when they are neither numbers nor bools.
constexpr dtype wide_dtype(dtype type) noexcept {
  switch (type) {
    case dtype::half: case dtype::bfloat16: case dtype::float32: return dtype::float32;
    case dtype::float64: return dtype::float64;
    case dtype::int8: case dtype::int16: case dtype::int32: case dtype::int64: return dtype::int64;
    case dtype::uint8: case dtype::uint16: case dtype::uint32: case dtype::uint64: return dtype::uint64;
    case dtype::boolean: return dtype::boolean;
    default: return dtype::invalid;
  }
}

template <class Function> Function wide_functions<Function>::of(dtype type) const noexcept {
  switch (wide_dtype(type)) {
    case dtype::float32: return float32;
    case dtype::float64: return float64;
    case dtype::int64: return int64;
    case dtype::uint64: return uint64;
    case dtype::boolean: return boolean;
    default: return nullptr;
  }
}

/// Converts elements; only between 16-bit floats, float and int32 in the best instruction set, the others are rare.
template <class To, class From> void convert_array(const void* in_data, void* out_data, std::size_t count) {
  const auto* in = static_cast<const From*>(in_data);
  auto* out = static_cast<To*>(out_data);
  constexpr bool plain = !is_float16_v<From> && !is_float16_v<To> && (sizeof(From) == 8 || sizeof(To) == 8);
  if constexpr (plain) run_portable<unary_body<element::cast<To>, From, To>>(in, out, count);
  else cast_loop<To>(in, out, count);
}

/// Brings elements into their wide dtype; nullptr when they are in it already.
inline array_function widening(dtype type) noexcept {
  switch (type) {
    case dtype::half: return &convert_array<float, half>;
    case dtype::bfloat16: return &convert_array<float, bfloat16>;
    case dtype::int8: return &convert_array<std::int64_t, std::int8_t>;
    case dtype::int16: return &convert_array<std::int64_t, std::int16_t>;
    case dtype::int32: return &convert_array<std::int64_t, std::int32_t>;
    case dtype::uint8: return &convert_array<std::uint64_t, std::uint8_t>;
    case dtype::uint16: return &convert_array<std::uint64_t, std::uint16_t>;
    case dtype::uint32: return &convert_array<std::uint64_t, std::uint32_t>;
    default: return nullptr;
  }
}

/// Brings elements from their wide dtype back, integers cut; nullptr when the wide dtype is theirs.
inline array_function narrowing(dtype type) noexcept {
  switch (type) {
    case dtype::half: return &convert_array<half, float>;
    case dtype::bfloat16: return &convert_array<bfloat16, float>;
    case dtype::int8: case dtype::uint8: return &convert_array<std::uint8_t, std::uint64_t>;
    case dtype::int16: case dtype::uint16: return &convert_array<std::uint16_t, std::uint64_t>;
    case dtype::int32: case dtype::uint32: return &convert_array<std::uint32_t, std::uint64_t>;
    default: return nullptr;
  }
}

/// Stack storage for elements that are converted or repeated, a block at a time.
struct block_storage {
  static constexpr std::size_t elements = 512;
  alignas(64) unsigned char bytes[elements * 8];

  /// Copies the first element behind itself until there are `count`.
  void repeat_first(std::size_t size, std::size_t count) {
    for (std::size_t filled = 1; filled < count; filled *= 2) std::memcpy(bytes + filled * size, bytes, std::min(filled, count - filled) * size);
  }
};

/// The same elements in the dtype in which they are computed, bools as uint64; the value itself when it is in it already.
inline tensor_value widened(const tensor_value& v) {
  const bool boolean = v.dtype() == dtype::boolean;
  const array_function widen = boolean ? &convert_array<std::uint64_t, std::uint8_t> : widening(v.dtype());
  if (widen == nullptr) return v;
  tensor_value out(boolean ? dtype::uint64 : wide_dtype(v.dtype()), v.shape());
  widen(v.raw_data(), out.mutable_raw_data(), static_cast<std::size_t>(v.elements()));
  return out;
}

/// A value in the wide dtype of `type` brought to `type`.
inline tensor_value narrowed(tensor_value v, dtype type) {
  const array_function narrow = type == dtype::boolean ? &convert_array<bool, std::uint64_t> : narrowing(type);
  if (narrow == nullptr) return v;
  tensor_value out(type, v.shape());
  narrow(v.raw_data(), out.mutable_raw_data(), static_cast<std::size_t>(v.elements()));
  return out;
}

}  // namespace weft::detail
#endif

#endif
