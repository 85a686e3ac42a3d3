#ifndef WEFT_KERNELS_REDUCE_SCAN_HPP
#define WEFT_KERNELS_REDUCE_SCAN_HPP
// Kernels along one axis: positions of extremes, running sums and products; and counts of values.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of ArgMax, ArgMin, Cumsum, Cumprod and Bincount; nullptr for other ops.
kernel_factory scan_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// An array seen along one of its axes.
struct axis_view {
  std::size_t outer = 1, size = 1, inner = 1;
};

/// Input 0 of a kernel along the axis that input 1, a scalar, names. Shapes without elements have no outer part: their sizes know no bounds.
inline axis_view view_along_axis(const kernel_context& context, int& axis) {
  const shape& s = context.input(0).shape();
  const tensor_value& named = context.input(1);
  if (named.shape().rank() != 0) context.fail("the axis must be a scalar, found shape " + named.shape().text());
  const std::int64_t wanted = named.dtype() == dtype::int16 ? named.data<std::int16_t>()[0] : integers_of(context, 1, "the axis")[0];
  axis = axis_of(context, wanted, s.rank(), "axis");
  axis_view view;
  view.size = static_cast<std::size_t>(s[axis]);
  if (s.elements() == 0) return {0, view.size, 1};
  for (int d = 0; d < s.rank(); ++d)
    if (d != axis) (d < axis ? view.outer : view.inner) *= static_cast<std::size_t>(s[d]);
  return view;
}

/// Whether x takes the place of the best so far: NaN never does, and always gives its place up.
template <class T> bool is_better(bool largest, T x, T best) {
  return (largest ? x > best : x < best) || (element::is_nan(best) && !element::is_nan(x));
}

/// Finds the first position of the largest (or smallest) element along an axis.
template <class T> void find_extremes(const axis_view& view, bool largest, const void* elements, std::int64_t* out) {
  const auto* in = static_cast<const T*>(elements);
  std::vector<T> best(view.inner);
  for (std::size_t o = 0; o < view.outer; ++o, in += view.size * view.inner, out += view.inner) {
    std::fill_n(out, view.inner, std::int64_t{0});
    if (view.inner == 1) {
      T found = in[0];
      for (std::size_t r = 1; r < view.size; ++r)
        if (is_better(largest, in[r], found)) {
          found = in[r];
          *out = static_cast<std::int64_t>(r);
        }
      continue;
    }
    std::copy_n(in, view.inner, best.begin());
    for (std::size_t r = 1; r < view.size; ++r) {
      const T* row = in + r * view.inner;
      for (std::size_t i = 0; i < view.inner; ++i) {
        const bool better = is_better(largest, row[i], best[i]);
        best[i] = better ? row[i] : best[i];
        out[i] = better ? static_cast<std::int64_t>(r) : out[i];
      }
    }
  }
}
using extremes_function = void (*)(const axis_view&, bool, const void*, std::int64_t*);

/// The position of the largest or smallest element along the axis in input 1.
class arg_kernel final : public kernel {
 public:
  explicit arg_kernel(const node& n) : type_(type_attr(n, "T")), out_type_(type_attr(n, "output_type")), largest_(n.op() == "ArgMax") {
    static constexpr wide_functions<extremes_function> functions{find_extremes<float>, find_extremes<double>, find_extremes<std::int64_t>, find_extremes<std::uint64_t>,
                                                                 find_extremes<std::uint64_t>};
    function_ = functions.of(type_);
    if (function_ == nullptr || !is_integer(out_type_)) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_, out_type_;
  bool largest_;
  extremes_function function_;
};

inline void arg_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  const shape in = context.input(0).shape();
  if (in.rank() == 0) context.fail("a scalar has no dimension to search");
  int axis = 0;
  const axis_view view = view_along_axis(context, axis);
  std::vector<std::int64_t> sizes(in.begin(), in.end());
  sizes.erase(sizes.begin() + axis);
  const shape out_shape(sizes);
  if (view.size == 0 && checked_elements(sizes.data(), sizes.size()) != std::int64_t{0})
    context.fail("dimension " + std::to_string(axis) + " of shape " + in.text() + " is empty: there is nothing to choose from");
  tensor_value positions = context.allocate(dtype::int64, out_shape);
  function_(view, largest_, widened(context.input(0)).raw_data(), positions.mutable_data<std::int64_t>());
  context.set_output(0, narrowed(std::move(positions), out_type_));
}

/// How rows follow each other in a running sum or product.
struct scan_order {
  bool exclusive, reverse;
};

/// Each row along the axis is F of the one before it and of an element: its own, or when exclusive the one before.
template <class F, class T> void scan_array(const axis_view& view, scan_order order, const void* elements, void* result) {
  const auto* in = static_cast<const T*>(elements);
  auto* out = static_cast<T*>(result);
  constexpr T nothing = std::is_same_v<F, element::mul> ? T(1) : T(0);
  for (std::size_t o = 0; o < view.outer; ++o, in += view.size * view.inner, out += view.size * view.inner) {
    if (view.inner == 1) {
      T sum = nothing;
      for (std::size_t r = 0; r < view.size; ++r) {
        const std::size_t at = order.reverse ? view.size - 1 - r : r;
        const T next = F::template apply<instruction_set::portable, T>(sum, in[at]);
        out[at] = order.exclusive ? sum : next;
        sum = next;
      }
      continue;
    }
    for (std::size_t r = 0; r < view.size; ++r) {
      const std::size_t at = (order.reverse ? view.size - 1 - r : r) * view.inner, before = order.reverse ? at + view.inner : at - view.inner;
      if (r == 0) {
        if (order.exclusive) std::fill_n(out + at, view.inner, nothing);
        else std::memcpy(out + at, in + at, view.inner * sizeof(T));
        continue;
      }
      const T* from = in + (order.exclusive ? before : at);
      for (std::size_t i = 0; i < view.inner; ++i) out[at + i] = F::template apply<instruction_set::portable, T>(out[before + i], from[i]);
    }
  }
}
using scan_function = void (*)(const axis_view&, scan_order, const void*, void*);

/// Running sums or products along the axis in input 1.
class cumulative_kernel final : public kernel {
 public:
  explicit cumulative_kernel(const node& n) : type_(type_attr(n, "T")), order_{n.attr<bool>("exclusive"), n.attr<bool>("reverse")} {
    static constexpr wide_functions<scan_function> sums{scan_array<element::add, float>, scan_array<element::add, double>, scan_array<element::add, std::uint64_t>,
                                                        scan_array<element::add, std::uint64_t>, nullptr};
    static constexpr wide_functions<scan_function> products{scan_array<element::mul, float>, scan_array<element::mul, double>, scan_array<element::mul, std::uint64_t>,
                                                            scan_array<element::mul, std::uint64_t>, nullptr};
    function_ = (n.op() == "Cumsum" ? sums : products).of(type_);
    if (function_ == nullptr) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
  scan_order order_;
  scan_function function_;
};

inline void cumulative_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  int axis = 0;
  const axis_view view = view_along_axis(context, axis);
  const tensor_value in = widened(context.input(0));
  tensor_value out = context.allocate(in.dtype(), in.shape());
  function_(view, order_, in.raw_data(), out.mutable_raw_data());
  context.set_output(0, narrowed(std::move(out), type_));
}

template <class T> void count_values(const tensor_value& values, const tensor_value& weights, tensor_value& bins) {
  const std::int32_t* value = values.data<std::int32_t>();
  const T* weight = weights.elements() == 0 ? nullptr : weights.data<T>();
  T* out = bins.mutable_data<T>();
  std::fill_n(out, bins.elements(), T(0));
  for (std::int64_t i = 0; i < values.elements(); ++i)
    if (value[i] < bins.elements()) out[value[i]] = element::add::apply<instruction_set::portable, T>(out[value[i]], weight == nullptr ? T(1) : weight[i]);
}

/// How often (or with which total weight) each integer below `size` occurs; larger ones are passed over.
class bincount_kernel final : public kernel {
 public:
  explicit bincount_kernel(const node& n) : type_(type_attr(n, "T")) {}
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
};

inline void bincount_kernel::compute(kernel_context& context) {
  expect_inputs(context, 3);
  expect_dtype(context, 0, dtype::int32);
  expect_dtype(context, 1, dtype::int32);
  expect_dtype(context, 2, type_);
  const tensor_value &values = context.input(0), &weights = context.input(2);
  if (context.input(1).shape().rank() != 0) context.fail("size must be a scalar, found shape " + context.input(1).shape().text());
  const std::int64_t size = context.input(1).data<std::int32_t>()[0];
  if (size < 0) context.fail("size must not be negative, found " + std::to_string(size));
  if (weights.elements() != 0 && weights.elements() != values.elements())
    context.fail("the weights must have as many elements as the values, or none; found shapes " + weights.shape().text() + " and " + values.shape().text());
  for (std::int64_t i = 0; i < values.elements(); ++i)
    if (values.data<std::int32_t>()[i] < 0) context.fail("the values must not be negative, found " + std::to_string(values.data<std::int32_t>()[i]));
  tensor_value& bins = context.allocate_output(0, type_, shape{size});
  if (type_ == dtype::int32) count_values<std::int32_t>(values, weights, bins);
  else if (type_ == dtype::int64) count_values<std::int64_t>(values, weights, bins);
  else if (type_ == dtype::float32) count_values<float>(values, weights, bins);
  else count_values<double>(values, weights, bins);
}

WEFT_DECL kernel_factory scan_kernel(std::string_view op) {
  if (op == "ArgMax" || op == "ArgMin") return &make_kernel<arg_kernel>;
  if (op == "Cumsum" || op == "Cumprod") return &make_kernel<cumulative_kernel>;
  return op == "Bincount" ? &make_kernel<bincount_kernel> : nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
