#ifndef WEFT_KERNELS_REDUCE_HPP
#define WEFT_KERNELS_REDUCE_HPP
// Kernels of reductions over axes: sums, means, products, extremes, and whether all or any are true.

#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/loops.hpp>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

/// A tensor as axes, outermost first, of which some are reduced; axes next to each other differ in that.
struct reduction_plan {
  std::vector<std::size_t> sizes;
  bool first_reduced = false;
  std::size_t inputs = 1, outputs = 1;
};
using reduce_function = void (*)(const reduction_plan&, const void* in, void* out);

struct sum_of {
  template <class T> static T first() { return T(0); }
  template <class T> static T join(T a, T b) { return element::add::apply<instruction_set::portable>(a, b); }
};
struct product_of {
  template <class T> static T first() { return T(1); }
  template <class T> static T join(T a, T b) { return element::mul::apply<instruction_set::portable>(a, b); }
};
struct largest_of {
  template <class T> static T first() { return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest(); }
  template <class T> static T join(T a, T b) { return element::maximum::apply<instruction_set::portable>(a, b); }
};
struct smallest_of {
  template <class T> static T first() { return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max(); }
  template <class T> static T join(T a, T b) { return element::minimum::apply<instruction_set::portable>(a, b); }
};

/// Walks over the input in memory order.
template <class F, class T> void reduce_array(const reduction_plan& plan, const void* in_data, void* out_data) {
  const T* in = static_cast<const T*>(in_data);
  T* out = static_cast<T*>(out_data);
  for (std::size_t i = 0; i < plan.outputs; ++i) out[i] = F::template first<T>();
  if (plan.inputs == 0) return;
  const std::size_t rank = plan.sizes.size(), row = rank == 0 ? 1 : plan.sizes[rank - 1];
  const bool row_reduced = rank != 0 && plan.first_reduced == (rank % 2 == 1);
  std::vector<std::size_t> index(rank, 0), strides(rank, 0);
  std::size_t stride = 1;
  for (std::size_t d = rank; d-- > 0;)
    if (plan.first_reduced != (d % 2 == 0)) {
      strides[d] = stride;
      stride *= plan.sizes[d];
    }
  for (std::size_t at = 0, to = 0; at < plan.inputs; at += row) {
    if (row_reduced) {
      // A row is joined in pieces, whose results are joined in turn: long sums of floats keep their digits.
      for (std::size_t begin = 0; begin < row; begin += 128) {
        T piece = F::template first<T>();
        for (std::size_t i = begin; i < row && i < begin + 128; ++i) piece = F::template join<T>(piece, in[at + i]);
        out[to] = F::template join<T>(out[to], piece);
      }
    } else {
      for (std::size_t i = 0; i < row; ++i) out[to + i] = F::template join<T>(out[to + i], in[at + i]);
    }
    for (std::size_t d = rank - (rank != 0 ? 1 : 0); d-- > 0;) {
      to += strides[d];
      if (++index[d] < plan.sizes[d]) break;
      to -= strides[d] * plan.sizes[d];
      index[d] = 0;
    }
  }
}

template <class F> constexpr wide_functions<reduce_function> reduce_numbers() {
  return {reduce_array<F, float>, reduce_array<F, double>, reduce_array<F, std::int64_t>, reduce_array<F, std::uint64_t>, nullptr};
}

inline reduce_function find_reduction(std::string_view op, dtype type) {
  static constexpr auto sum = reduce_numbers<sum_of>(), product = reduce_numbers<product_of>(), largest = reduce_numbers<largest_of>(), smallest = reduce_numbers<smallest_of>();
  if (op == "Sum" || op == "Mean") return sum.of(type);
  if (op == "Prod") return product.of(type);
  if (op == "Max") return largest.of(type);
  if (op == "Min") return smallest.of(type);
  if (type != dtype::boolean) return nullptr;
  return op == "All" ? &reduce_array<smallest_of, bool> : op == "Any" ? &reduce_array<largest_of, bool> : nullptr;
}

/// Reduces input 0 over the axes in input 1.
class reduce_kernel final : public kernel {
 public:
  explicit reduce_kernel(const node& n) : mean_(n.op() == "Mean"), largest_(n.op() == "Max"), extreme_(largest_ || n.op() == "Min"), keep_dims_(n.attr<bool>("keep_dims")) {
    const bool logical = n.op() == "All" || n.op() == "Any";
    type_ = logical ? dtype::boolean : type_attr(n, "T");
    function_ = find_reduction(n.op(), type_);
    if (function_ == nullptr) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  std::vector<bool> reduced_axes(const kernel_context& context) const;
  void divide(tensor_value& sums, std::int64_t count) const;
  void fill_limit(tensor_value& out) const;
  dtype type_ = dtype::invalid;
  bool mean_, largest_, extreme_, keep_dims_;
  reduce_function function_;
};

inline std::vector<bool> reduce_kernel::reduced_axes(const kernel_context& context) const {
  const int rank = context.input(0).shape().rank();
  if (context.input(1).shape().rank() > 1) context.fail("the axes must be a scalar or a vector, found shape " + context.input(1).shape().text());
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
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

// The extreme of no integers is the other end of their range, which the wide dtype does not know.
inline void reduce_kernel::fill_limit(tensor_value& out) const {
  const bool is_signed = wide_dtype(type_) == dtype::int64;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * size_of(type_));
  const std::uint64_t limit = largest_ ? (is_signed ? ~(all >> 1) : 0) : (is_signed ? all >> 1 : all);
  for (std::int64_t i = 0; i < out.elements(); ++i) std::memcpy(out.mutable_raw_data() + i * 8, &limit, sizeof limit);
}

// 1. Which axes; 2. the shapes; 3. axes of one element dropped and equal neighbours merged; 4. the loop; 5. a mean divides.
inline void reduce_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  const std::vector<bool> reduced = reduced_axes(context);
  const shape in_shape = context.input(0).shape();
  reduction_plan plan;
  std::vector<std::int64_t> out_sizes;
  std::int64_t count = 1;
  bool last = false;
  for (int d = 0; d < in_shape.rank(); ++d) {
    const bool gone = reduced[static_cast<std::size_t>(d)];
    const auto size = static_cast<std::size_t>(in_shape[d]);
    plan.inputs *= size;
    if (gone) count *= in_shape[d];
    else plan.outputs *= size;
    if (!gone || keep_dims_) out_sizes.push_back(gone ? 1 : in_shape[d]);
    if (size == 1) continue;
    if (plan.sizes.empty()) plan.first_reduced = gone;
    if (!plan.sizes.empty() && gone == last) plan.sizes.back() *= size;
    else plan.sizes.push_back(size);
    last = gone;
  }
  const tensor_value in = widened(context.input(0));
  tensor_value out(in.dtype(), shape(out_sizes));
  if (plan.inputs == 0 && extreme_ && is_integer(type_)) fill_limit(out);
  else function_(plan, in.raw_data(), out.mutable_raw_data());
  if (mean_) divide(out, count);
  context.set_output(0, narrowed(std::move(out), type_));
}

/// The factory of a reduction; nullptr for ops of other families.
inline kernel_factory reduction_kernel(std::string_view op) {
  for (const std::string_view name : {"Sum", "Mean", "Prod", "Max", "Min", "All", "Any"})
    if (op == name) return &make_kernel<reduce_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
