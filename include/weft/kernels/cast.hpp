#ifndef WEFT_KERNELS_CAST_HPP
#define WEFT_KERNELS_CAST_HPP
// Cast: elements as another dtype. Floats are cut toward zero, integers wrap, what is not zero is true; floats narrow to nearest unless
// `Truncate` asks for cutting their last bits.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace weft::detail {
/// The factory of Cast; nullptr for ops of other families.
kernel_factory cast_kernel_of(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// Elements of type Wide as elements of a dtype; nullptr when they are that already, or there is no such conversion.
template <class Wide> array_function conversion_to(dtype to) noexcept {
  switch (to) {
    case dtype::float32: return &convert_array<float, Wide>;
    case dtype::float64: return &convert_array<double, Wide>;
    case dtype::half: return &convert_array<half, Wide>;
    case dtype::bfloat16: return &convert_array<bfloat16, Wide>;
    case dtype::int8: return &convert_array<std::int8_t, Wide>;
    case dtype::int16: return &convert_array<std::int16_t, Wide>;
    case dtype::int32: return &convert_array<std::int32_t, Wide>;
    case dtype::int64: return &convert_array<std::int64_t, Wide>;
    case dtype::uint8: return &convert_array<std::uint8_t, Wide>;
    case dtype::uint16: return &convert_array<std::uint16_t, Wide>;
    case dtype::uint32: return &convert_array<std::uint32_t, Wide>;
    case dtype::uint64: return &convert_array<std::uint64_t, Wide>;
    case dtype::boolean: return &convert_array<bool, Wide>;
    default: return nullptr;
  }
}

/// Clears the bits of a float or double that a narrower float has no room for; NaN stays as it is.
template <class Bits> void cut_mantissa(void* elements, std::size_t count, int bits, Bits infinity) {
  auto* x = static_cast<Bits*>(elements);
  const Bits mask = static_cast<Bits>(~Bits(0)) << bits, size = static_cast<Bits>(~Bits(0)) >> 1;
  for (std::size_t i = 0; i < count; ++i)
    if ((x[i] & size) <= infinity) x[i] &= mask;
}

/// Widens the elements, block by block, and converts them from there.
class cast_kernel final : public kernel {
 public:
  explicit cast_kernel(const node& n);
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  void cut(void* elements, std::size_t count) const {
    if (wide_ == dtype::float32) cut_mantissa<std::uint32_t>(elements, count, cut_bits_, 0x7f800000U);
    else cut_mantissa<std::uint64_t>(elements, count, cut_bits_, 0x7ff0000000000000U);
  }
  dtype from_, to_, wide_;
  array_function widen_, convert_ = nullptr;
  int cut_bits_ = 0;
};

inline cast_kernel::cast_kernel(const node& n) : from_(type_attr(n, "SrcT")), to_(type_attr(n, "DstT")), wide_(wide_dtype(from_)), widen_(widening(from_)) {
  if (from_ == dtype::boolean) {
    wide_ = dtype::uint64;
    widen_ = &convert_array<std::uint64_t, std::uint8_t>;
  }
  const bool whole = is_integer(to_) || to_ == dtype::boolean;  // the sign of the source makes no difference
  if (wide_ == dtype::float32) convert_ = conversion_to<float>(to_);
  else if (wide_ == dtype::float64) convert_ = conversion_to<double>(to_);
  else if (wide_ == dtype::uint64 || (wide_ == dtype::int64 && whole)) convert_ = conversion_to<std::uint64_t>(to_);
  else if (wide_ == dtype::int64) convert_ = conversion_to<std::int64_t>(to_);
  if (convert_ == nullptr)
    n.fail_about(error_code::unimplemented, std::string("no kernel of this op makes ") + to_text(to_) + " of " + to_text(from_));
  const bool* truncate = n.find_attr<bool>("Truncate");
  if (truncate != nullptr && *truncate && is_floating(from_) && is_floating(to_)) {
    const auto mantissa = [](dtype type) { return type == dtype::float64 ? 52 : type == dtype::float32 ? 23 : type == dtype::half ? 10 : 7; };
    cut_bits_ = std::max(0, mantissa(wide_) - mantissa(to_));
  }
}

inline void cast_kernel::compute(kernel_context& context) {
  expect_inputs(context, 1);
  expect_dtype(context, 0, from_);
  if (from_ == to_) return context.set_output(0, context.take_input(0));
  const tensor_value& in = context.input(0);
  tensor_value& out = context.forward_or_allocate(0, 0, to_, in.shape());
  const auto count = static_cast<std::size_t>(in.elements());
  const std::byte* from = in.raw_data();
  std::byte* to = out.mutable_raw_data();
  if (widen_ == nullptr && cut_bits_ == 0) return convert_(from, to, count);
  block_storage block;
  for (std::size_t at = 0; at < count; at += block_storage::elements) {
    const std::size_t some = std::min(count - at, block_storage::elements);
    if (widen_ != nullptr) widen_(from + at * size_of(from_), block.bytes, some);
    else std::memcpy(block.bytes, from + at * size_of(from_), some * size_of(from_));
    if (cut_bits_ != 0) cut(block.bytes, some);
    convert_(block.bytes, to + at * size_of(to_), some);
  }
}

WEFT_DECL kernel_factory cast_kernel_of(std::string_view op) { return op == "Cast" ? &make_kernel<cast_kernel> : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
