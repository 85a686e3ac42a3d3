#ifndef WEFT_KERNELS_INPUTS_HPP
#define WEFT_KERNELS_INPUTS_HPP
// What kernels check of their inputs before they touch an element: dtypes, ranks, and small integer inputs such as shapes and axes.

#include <weft/core/config.hpp>
#include <weft/runtime/kernel.hpp>

#include <cstdint>
#include <string>
#include <vector>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Makes a kernel of class K from its node. By `new`: a `std::unique_ptr<K>` for each class costs a compiler that sees the bodies 80 MB.
template <class K> std::unique_ptr<kernel> make_kernel(const kernel_construction& what) { return std::unique_ptr<kernel>(new K(what.about)); }

/// The dtype in attribute `name`; a node without it fails.
inline dtype type_attr(const node& n, std::string_view name) { return n.attr<dtype>(name); }

/// Fails unless there are `count` inputs; a part that came over the wire may say anything.
inline void expect_inputs(const kernel_context& context, int count) {
  if (context.input_count() != count)
    context.fail("expected " + std::to_string(count) + " inputs, found " + std::to_string(context.input_count()));
}

/// Work on more elements than this belongs on a thread of the pool.
inline constexpr std::int64_t expensive_elements = 65536;

/// Elements of all inputs together, whatever they are.
inline std::int64_t input_elements(const kernel_context& context) noexcept {
  std::int64_t out = 0;
  for (int i = 0; i < context.input_count(); ++i) out += context.input(i).elements();
  return out;
}

/// Fails unless input i has this dtype.
inline void expect_dtype(const kernel_context& context, int i, dtype type) {
  if (context.input(i).dtype() != type)
    context.fail("input " + std::to_string(i) + " must be " + to_text(type) + ", found " + to_text(context.input(i).dtype()));
}

/// Bytes of one element as it lies in memory, strings and handles included.
constexpr std::size_t object_size(dtype type) noexcept {
  return type == dtype::string ? sizeof(std::string) : type == dtype::resource ? sizeof(resource_handle) : size_of(type);
}
/// The elements of a value, plain or strings.
inline const void* elements_of(const tensor_value& v) { return v.dtype() == dtype::string ? static_cast<const void*>(v.data<std::string>()) : v.raw_data(); }
inline void* elements_of(tensor_value& v) { return v.dtype() == dtype::string ? static_cast<void*>(v.mutable_data<std::string>()) : v.mutable_raw_data(); }

/// Elements of an integer input. (Only TensorFlow's ops decide which widths may stand where.)
inline std::vector<std::int64_t> integers_of(const kernel_context& context, int i, const char* what) {
  const tensor_value& v = context.input(i);
  const auto count = static_cast<std::size_t>(v.elements());
  switch (v.dtype()) {
    case dtype::int32: return {v.data<std::int32_t>(), v.data<std::int32_t>() + count};
    case dtype::int64: return {v.data<std::int64_t>(), v.data<std::int64_t>() + count};
    case dtype::int16: return {v.data<std::int16_t>(), v.data<std::int16_t>() + count};
    case dtype::uint16: return {v.data<std::uint16_t>(), v.data<std::uint16_t>() + count};
    case dtype::int8: return {v.data<std::int8_t>(), v.data<std::int8_t>() + count};
    case dtype::uint8: return {v.data<std::uint8_t>(), v.data<std::uint8_t>() + count};
    default: context.fail(std::string(what) + " must be int32 or int64, found " + to_text(v.dtype()));
  }
}

/// `[2,-1]`, for sizes that need not be a shape.
inline std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i != 0 ? "," : "") + std::to_string(sizes[i]);
  return out + "]";
}

/// The sizes that a vector input asks for. Fails when one is negative or their product does not fit.
inline shape wanted_shape(const kernel_context& context, int i, const char* what) {
  if (context.input(i).shape().rank() != 1)
    context.fail(std::string(what) + " must be a vector of sizes, found shape " + context.input(i).shape().text());
  const auto sizes = integers_of(context, i, what);
  if (sizes.size() > static_cast<std::size_t>(max_rank))
    context.fail(std::string(what) + " has " + std::to_string(sizes.size()) + " sizes, at most " + std::to_string(max_rank));
  if (!checked_elements(sizes.data(), sizes.size()))
    context.fail(std::string(what) + " " + shape_text(sizes) + " has a negative size or too many elements");
  return shape(sizes);
}

/// Axis of a tensor of this rank, counted from the end when negative; fails outside [-rank, rank).
inline int axis_of(const kernel_context& context, std::int64_t axis, int rank, const char* what) {
  if (axis < -rank || axis >= rank)
    context.fail(std::string(what) + " " + std::to_string(axis) + " is not in [" + std::to_string(-rank) + ", " + std::to_string(rank) + ")");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace weft::detail
#endif

#endif
