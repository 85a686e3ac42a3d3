#ifndef WEFT_KERNELS_REDUCE_HPP
#define WEFT_KERNELS_REDUCE_HPP
// Kernels of reductions over axes: sums, means, products, norms, extremes, and whether all or any are true.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/reduce_loops.hpp>
#include <weft/kernels/simd.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of a reduction; nullptr for ops of other families.
kernel_factory reduction_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

using reduce_function = void (*)(const reduce_plan&, const void* in, void* out);

template <class R, class T> void reduce_array(const reduce_plan& plan, const void* in, void* out) {
  reduce_loop<R, T>(static_cast<const T*>(in), static_cast<T*>(out), plan);
}
template <class R> constexpr wide_functions<reduce_function> reduce_numbers() {
  using integer = std::conditional_t<R::function::wraps, std::uint64_t, std::int64_t>;
  return {reduce_array<R, float>, reduce_array<R, double>, reduce_array<R, integer>, reduce_array<R, std::uint64_t>, nullptr};
}

/// How an op reduces elements of a wide dtype, bools as uint64; nullptr when it has no kernel for the dtype.
inline reduce_function find_reduction(std::string_view op, dtype type) {
  static constexpr auto sum = reduce_numbers<reduction::sum>(), product = reduce_numbers<reduction::prod>(), largest = reduce_numbers<reduction::max>(),
                        smallest = reduce_numbers<reduction::min>();
  if (op == "Sum" || op == "Mean" || op == "EuclideanNorm") return sum.of(type);
  if (op == "Prod") return product.of(type);
  if (op == "Max") return largest.of(type);
  if (op == "Min") return smallest.of(type);
  return op == "All" ? smallest.uint64 : largest.uint64;
}

template <class T> void square_elements(const tensor_value& in, tensor_value& out) {
  run_portable<unary_body<element::square, T, T>>(in.data<T>(), out.mutable_data<T>(), static_cast<std::size_t>(in.elements()));
}
/// The squares of elements in a wide dtype; integers wrap.
inline tensor_value squares_of(const tensor_value& v) {
  tensor_value out(v.dtype(), v.shape());
  if (v.dtype() == dtype::float32) square_elements<float>(v, out);
  else if (v.dtype() == dtype::float64) square_elements<double>(v, out);
  else for (std::int64_t i = 0; i < v.elements(); ++i) {
    std::uint64_t x;
    std::memcpy(&x, v.raw_data() + i * 8, sizeof x);
    x *= x;
    std::memcpy(out.mutable_raw_data() + i * 8, &x, sizeof x);
  }
  return out;
}

/// Reduces input 0 over the axes in input 1.
class reduce_kernel final : public kernel {
 public:
  explicit reduce_kernel(const node& n)
      : mean_(n.op() == "Mean"), norm_(n.op() == "EuclideanNorm"), largest_(n.op() == "Max"), extreme_(largest_ || n.op() == "Min"), keep_dims_(n.attr<bool>("keep_dims")) {
    const bool logical = n.op() == "All" || n.op() == "Any";
    type_ = logical ? dtype::boolean : type_attr(n, "T");
    function_ = find_reduction(n.op(), type_);
    if (function_ == nullptr) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  using axis_flags = std::array<bool, max_rank>;
  axis_flags reduced_axes(const kernel_context& context) const;
  void divide(tensor_value& sums, std::int64_t count) const;
  void take_root(tensor_value& sums) const;
  void fill_limit(tensor_value& out) const;
  dtype type_ = dtype::invalid;
  bool mean_, norm_, largest_, extreme_, keep_dims_;
  reduce_function function_;
};

inline reduce_kernel::axis_flags reduce_kernel::reduced_axes(const kernel_context& context) const {
  const int rank = context.input(0).shape().rank();
  if (context.input(1).shape().rank() > 1) context.fail("the axes must be a scalar or a vector, found shape " + context.input(1).shape().text());
  axis_flags reduced{};
  for (const std::int64_t wanted : integers_of(context, 1, "the axes")) {
    const auto axis = static_cast<std::size_t>(axis_of(context, wanted, rank, "axis"));
    if (reduced[axis]) context.fail("axis " + std::to_string(axis) + " is named twice");
    reduced[axis] = true;
  }
  return reduced;
}

inline void reduce_kernel::divide(tensor_value& sums, std::int64_t count) const {
  const std::int64_t n = sums.elements();
  switch (sums.dtype()) {
    case dtype::float32: for (std::int64_t i = 0; i < n; ++i) sums.mutable_data<float>()[i] /= static_cast<float>(count); break;
    case dtype::float64: for (std::int64_t i = 0; i < n; ++i) sums.mutable_data<double>()[i] /= static_cast<double>(count); break;
    case dtype::int64: for (std::int64_t i = 0; count != 0 && i < n; ++i) sums.mutable_data<std::int64_t>()[i] /= count; break;
    default: for (std::int64_t i = 0; count != 0 && i < n; ++i) sums.mutable_data<std::uint64_t>()[i] /= static_cast<std::uint64_t>(count);
  }
}

// Roots of integers are truncated.
inline void reduce_kernel::take_root(tensor_value& sums) const {
  const std::int64_t n = sums.elements();
  switch (sums.dtype()) {
    case dtype::float32: for (std::int64_t i = 0; i < n; ++i) sums.mutable_data<float>()[i] = std::sqrt(sums.data<float>()[i]); break;
    case dtype::float64: for (std::int64_t i = 0; i < n; ++i) sums.mutable_data<double>()[i] = std::sqrt(sums.data<double>()[i]); break;
    default: for (std::int64_t i = 0; i < n; ++i) {
      std::uint64_t x;
      std::memcpy(&x, sums.raw_data() + i * 8, sizeof x);
      x = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(x)));
      std::memcpy(sums.mutable_raw_data() + i * 8, &x, sizeof x);
    }
  }
}

// The extreme of no integers is the other end of their range, which the wide dtype does not know.
inline void reduce_kernel::fill_limit(tensor_value& out) const {
  const bool is_signed = wide_dtype(type_) == dtype::int64;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * size_of(type_));
  const std::uint64_t limit = largest_ ? (is_signed ? ~(all >> 1) : 0) : (is_signed ? all >> 1 : all);
  for (std::int64_t i = 0; i < out.elements(); ++i) std::memcpy(out.mutable_raw_data() + i * 8, &limit, sizeof limit);
}

// 1. Which axes; 2. the shape of the result; 3. the loop, over elements in their wide dtype; 4. a mean divides.
inline void reduce_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  const axis_flags reduced = reduced_axes(context);
  const shape in_shape = context.input(0).shape();
  std::vector<std::int64_t> out_sizes;
  for (int d = 0; d < in_shape.rank(); ++d)
    if (!reduced[static_cast<std::size_t>(d)] || keep_dims_) out_sizes.push_back(reduced[static_cast<std::size_t>(d)] ? 1 : in_shape[d]);
  tensor_value out(type_ == dtype::boolean ? dtype::uint64 : wide_dtype(type_), shape(out_sizes));
  const std::int64_t in_count = in_shape.elements(), out_count = out.elements();
  if (in_count == out_count && in_count != 0 && !norm_) {
    tensor_value same = context.take_input(0);
    same.reshape(out.shape());
    return context.set_output(0, std::move(same));
  }
  // Shapes without elements are not planned: their sizes know no bounds.
  reduce_plan plan;
  plan.in_count = 0;
  plan.out_count = static_cast<std::size_t>(out_count);
  if (in_count != 0) plan = plan_reduction(in_shape.data(), reduced.data(), static_cast<std::size_t>(in_shape.rank()));
  if (in_count == 0 && extreme_ && is_integer(type_)) fill_limit(out);
  else function_(plan, (norm_ ? squares_of(widened(context.input(0))) : widened(context.input(0))).raw_data(), out.mutable_raw_data());
  if (norm_) take_root(out);
  if (mean_) divide(out, in_count == 0 ? 0 : in_count / out_count);
  context.set_output(0, narrowed(std::move(out), type_));
}

/// Half the sum of all squares.
class l2_loss_kernel final : public kernel {
 public:
  explicit l2_loss_kernel(const node& n) : type_(type_attr(n, "T")) {
    if (!is_floating(type_)) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
};

inline void l2_loss_kernel::compute(kernel_context& context) {
  expect_inputs(context, 1);
  expect_dtype(context, 0, type_);
  const tensor_value squares = squares_of(widened(context.input(0)));
  tensor_value out(squares.dtype(), shape());
  const std::int64_t count = squares.elements();
  const bool reduced[] = {true};
  find_reduction("Sum", squares.dtype())(plan_reduction(&count, reduced, 1), squares.raw_data(), out.mutable_raw_data());
  if (out.dtype() == dtype::float32) *out.mutable_data<float>() *= 0.5f;
  else *out.mutable_data<double>() *= 0.5;
  context.set_output(0, narrowed(std::move(out), type_));
}

WEFT_DECL kernel_factory reduction_kernel(std::string_view op) {
  for (const std::string_view name : {"Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm"})
    if (op == name) return &make_kernel<reduce_kernel>;
  return op == "L2Loss" ? &make_kernel<l2_loss_kernel> : nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
