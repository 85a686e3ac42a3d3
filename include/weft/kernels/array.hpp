#ifndef WEFT_KERNELS_ARRAY_HPP
#define WEFT_KERNELS_ARRAY_HPP
// Kernels that make, pass on and reshape tensors.

#include <weft/kernels/inputs.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/kernels/strided_copy.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of an op on arrays; nullptr for ops of other families.
kernel_factory array_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// A scalar 1 of a number dtype or bool.
inline tensor_value one_of(dtype type) {
  switch (type) {
    case dtype::float32: return tensor_value::scalar(1.f);
    case dtype::float64: return tensor_value::scalar(1.0);
    case dtype::half: return tensor_value::scalar(half(1.f));
    case dtype::bfloat16: return tensor_value::scalar(bfloat16(1.f));
    case dtype::int16: case dtype::uint16: return tensor_value(type, shape(), tensor_value::scalar(std::uint16_t(1)).buffer());
    case dtype::int32: case dtype::uint32: return tensor_value(type, shape(), tensor_value::scalar(std::uint32_t(1)).buffer());
    case dtype::int64: case dtype::uint64: return tensor_value(type, shape(), tensor_value::scalar(std::uint64_t(1)).buffer());
    default: return tensor_value(type, shape(), tensor_value::scalar(std::uint8_t(1)).buffer());
  }
}

/// The value of its attribute, shared by every step.
class const_kernel final : public cheap_kernel {
 public:
  explicit const_kernel(const node& n) : value_(n.attr<tensor_value>("value")) {
    if (value_.dtype() != type_attr(n, "dtype"))
      n.fail_about(error_code::invalid_argument, std::string("the value is ") + to_text(value_.dtype()) + ", attribute 'dtype' says " + to_text(type_attr(n, "dtype")));
  }
  void compute(kernel_context& context) override { context.set_output(0, value_); }

 private:
  tensor_value value_;
};

/// Passes on its inputs.
class identity_kernel final : public cheap_kernel {
 public:
  explicit identity_kernel(const node&) {}
  void compute(kernel_context& context) override {
    expect_inputs(context, context.about().output_count());
    for (int i = 0; i < context.input_count(); ++i) context.set_output(i, context.take_input(i));
  }
};

/// Stands where a value must be fed; runs only when none was.
class placeholder_kernel final : public cheap_kernel {
 public:
  explicit placeholder_kernel(const node&) {}
  void compute(kernel_context& context) override {
    const auto* wanted = context.about().find_attr<partial_shape>("shape");
    context.fail(std::string("the placeholder must be fed a value of dtype ") + to_text(type_attr(context.about(), "dtype")) +
                 (wanted != nullptr && wanted->known_rank() ? " and shape " + wanted->text() : std::string()));
  }
};

/// The same elements in another shape: Reshape, ExpandDims, Squeeze.
class reshape_kernel final : public cheap_kernel {
 public:
  explicit reshape_kernel(const node& n) : op_(n.op()) {
    if (const auto* axes = n.find_attr<std::vector<std::int64_t>>("squeeze_dims")) squeezed_ = *axes;
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, op_ == "Squeeze" ? 1 : 2);
    shape wanted = op_ == "Reshape" ? reshaped(context) : op_ == "ExpandDims" ? expanded(context) : squeezed(context);
    tensor_value v = context.take_input(0);
    v.reshape(std::move(wanted));
    context.set_output(0, std::move(v));
  }

 private:
  shape reshaped(const kernel_context& context) const;
  shape expanded(const kernel_context& context) const;
  shape squeezed(const kernel_context& context) const;
  std::string op_;
  std::vector<std::int64_t> squeezed_;
};

inline shape reshape_kernel::reshaped(const kernel_context& context) const {
  const tensor_value &in = context.input(0), &wanted = context.input(1);
  if (wanted.shape().rank() != 1) context.fail("the wanted shape must be a vector, found shape " + wanted.shape().text());
  std::vector<std::int64_t> sizes = integers_of(context, 1, "the wanted shape");
  const std::string text = shape_text(sizes);
  std::int64_t* open = nullptr;
  for (auto& size : sizes) {
    if (size < -1) context.fail("the wanted shape " + text + " has a negative size other than -1");
    if (size != -1) continue;
    if (open != nullptr) context.fail("the wanted shape " + text + " has more than one -1");
    open = &size;
  }
  if (open != nullptr) *open = 1;
  const auto known = checked_elements(sizes.data(), sizes.size());
  if (open != nullptr && known && *known > 0 && in.elements() % *known == 0) *open = in.elements() / *known;
  else if (open != nullptr && known && *known == 0) *open = 0;
  if (checked_elements(sizes.data(), sizes.size()) != in.elements())
    context.fail("a tensor of shape " + in.shape().text() + " has " + std::to_string(in.elements()) + " elements and cannot be given shape " + text);
  return shape(sizes);
}

inline shape reshape_kernel::expanded(const kernel_context& context) const {
  if (context.input(1).elements() != 1) context.fail("the axis must be a single integer, found shape " + context.input(1).shape().text());
  std::vector<std::int64_t> sizes = context.input(0).shape().vector();
  const int axis = axis_of(context, integers_of(context, 1, "the axis")[0], static_cast<int>(sizes.size()) + 1, "axis");
  sizes.insert(sizes.begin() + axis, 1);
  return shape(sizes);
}

inline shape reshape_kernel::squeezed(const kernel_context& context) const {
  const shape& in = context.input(0).shape();
  std::vector<bool> dropped(static_cast<std::size_t>(in.rank()), squeezed_.empty());
  for (const std::int64_t wanted : squeezed_) {
    const int axis = axis_of(context, wanted, in.rank(), "axis");
    if (in[axis] != 1) context.fail("dimension " + std::to_string(axis) + " of shape " + in.text() + " cannot be dropped, its size is not 1");
    dropped[static_cast<std::size_t>(axis)] = true;
  }
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < in.rank(); ++i)
    if (in[i] != 1 || !dropped[static_cast<std::size_t>(i)]) sizes.push_back(in[i]);
  return shape(sizes);
}

/// Shape, size or rank of its input, or the shape of each.
class shape_kernel final : public cheap_kernel {
 public:
  explicit shape_kernel(const node& n) : op_(n.op()), type_(n.find_attr<dtype>("out_type") != nullptr ? *n.find_attr<dtype>("out_type") : dtype::int32) {
    if (type_ != dtype::int32 && type_ != dtype::int64)
      n.fail_about(error_code::invalid_argument, std::string("attribute 'out_type' must be int32 or int64, found ") + to_text(type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;

 private:
  std::string op_;
  dtype type_;
};

inline void shape_kernel::compute(kernel_context& context) {
  expect_inputs(context, context.about().output_count());
  for (int input = 0; input < context.input_count(); ++input) {
    const shape s = context.input(input).shape();
    const bool scalar = op_ == "Size" || op_ == "Rank";
    const std::vector<std::int64_t> numbers = scalar ? std::vector<std::int64_t>{op_ == "Size" ? s.elements() : s.rank()} : s.vector();
    tensor_value& out = context.allocate_output(input, type_, scalar ? shape() : shape{static_cast<std::int64_t>(numbers.size())});
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (type_ == dtype::int64) {
        out.mutable_data<std::int64_t>()[i] = numbers[i];
      } else {
        if (numbers[i] > std::numeric_limits<std::int32_t>::max()) context.fail(std::to_string(numbers[i]) + " does not fit into int32; ask for out_type int64");
        out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(numbers[i]);
      }
    }
  }
}

/// A tensor with one value everywhere: Fill, ZerosLike, OnesLike.
class fill_kernel final : public kernel {
 public:
  explicit fill_kernel(const node& n) : op_(n.op()), type_(type_attr(n, "T")) {}
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return op_ == "Fill" || input_elements(context) > expensive_elements; }

 private:
  std::string op_;
  dtype type_;
};

inline void fill_kernel::compute(kernel_context& context) {
  const bool fill = op_ == "Fill";
  expect_inputs(context, fill ? 2 : 1);
  expect_dtype(context, fill ? 1 : 0, type_);
  if (fill) {
    if (context.input(1).shape().rank() != 0) context.fail("the value must be a scalar, found shape " + context.input(1).shape().text());
    fill_elements(context.allocate_output(0, type_, wanted_shape(context, 0, "the wanted shape")), context.input(1));
  } else if (op_ == "OnesLike") {
    fill_elements(context.forward_or_allocate(0, 0, type_, context.input(0).shape()), one_of(type_));
  } else {
    tensor_value& out = context.forward_or_allocate(0, 0, type_, context.input(0).shape());
    if (type_ != dtype::string) std::memset(out.mutable_raw_data(), 0, out.bytes());
  }
}

WEFT_DECL kernel_factory array_kernel(std::string_view op) {
  if (op == "Const") return &make_kernel<const_kernel>;
  if (op == "Placeholder" || op == "PlaceholderV2") return &make_kernel<placeholder_kernel>;
  for (const char* same : {"Identity", "IdentityN", "StopGradient", "Snapshot", "PreventGradient", "PlaceholderWithDefault"})
    if (op == same) return &make_kernel<identity_kernel>;
  if (op == "Reshape" || op == "ExpandDims" || op == "Squeeze") return &make_kernel<reshape_kernel>;
  if (op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank") return &make_kernel<shape_kernel>;
  if (op == "Fill" || op == "ZerosLike" || op == "OnesLike") return &make_kernel<fill_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
