#ifndef WEFT_KERNELS_LINEAR_HPP
#define WEFT_KERNELS_LINEAR_HPP
// Kernels of matrix products.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/parallel.hpp>
#include <weft/kernels/simd.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace weft::detail {
/// The factory of a matrix product; nullptr for ops of other families.
kernel_factory linear_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

using product_function = void (*)(const gemm_extents&, const matrix_view<const void>& a, const matrix_view<const void>& b, void* c, thread_pool* pool);

/// c = op(a) op(b), in parts on the pool's threads when it is large.
template <class T>
void product_array(const gemm_extents& extents, const matrix_view<const void>& a, const matrix_view<const void>& b, void* c, thread_pool* pool) {
  const matrix_view<const T> left{static_cast<const T*>(a.data), a.stride, a.order}, right{static_cast<const T*>(b.data), b.stride, b.order};
  const matrix_view<T> out{static_cast<T*>(c), extents.n};
  if (pool == nullptr || pool->size() < 2 || !std::is_floating_point_v<T>) return gemm<T>(extents, left, right, out);
  gemm<T>(extents, left, right, out, pool->size(), [pool](std::size_t parts, const std::function<void(std::size_t)>& part) { parallel_for(*pool, parts, part); });
}

/// The product of two matrices, each of them transposed first if an attribute says so.
class matmul_kernel final : public kernel {
 public:
  explicit matmul_kernel(const node& n) : type_(type_attr(n, "T")), transpose_a_(n.attr<bool>("transpose_a")), transpose_b_(n.attr<bool>("transpose_b")) {
    constexpr wide_functions<product_function> functions{product_array<float>, product_array<double>, product_array<std::uint64_t>, product_array<std::uint64_t>, nullptr};
    function_ = functions.of(type_);
    if (function_ == nullptr) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override {
    if (context.input_count() != 2) return false;
    const shape &a = context.input(0).shape(), &b = context.input(1).shape();
    if (a.rank() != 2 || b.rank() != 2) return false;
    return static_cast<double>(a.elements()) * static_cast<double>(b[transpose_b_ ? 0 : 1]) > 1e6;
  }

 private:
  dtype type_;
  bool transpose_a_, transpose_b_;
  product_function function_;
};

inline void matmul_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  expect_dtype(context, 1, type_);
  const shape a = context.input(0).shape(), b = context.input(1).shape();
  if (a.rank() != 2 || b.rank() != 2) context.fail("both operands must be matrices, found shapes " + a.text() + " and " + b.text());
  const std::int64_t m = a[transpose_a_ ? 1 : 0], inner = a[transpose_a_ ? 0 : 1], b_inner = b[transpose_b_ ? 1 : 0], n = b[transpose_b_ ? 0 : 1];
  if (inner != b_inner)
    context.fail("inner dimensions " + std::to_string(inner) + " and " + std::to_string(b_inner) + " differ (" + a.text() + (transpose_a_ ? " transposed" : "") +
                 " x " + b.text() + (transpose_b_ ? " transposed)" : ")"));
  const tensor_value left = widened(context.input(0)), right = widened(context.input(1));
  tensor_value product(left.dtype(), shape{m, n});
  const auto view = [](const tensor_value& v, bool transposed) {
    return matrix_view<const void>{v.raw_data(), static_cast<std::size_t>(v.shape()[1]), transposed ? transposition::transposed : transposition::none};
  };
  const gemm_extents extents{static_cast<std::size_t>(m), static_cast<std::size_t>(n), static_cast<std::size_t>(inner)};
  function_(extents, view(left, transpose_a_), view(right, transpose_b_), product.mutable_raw_data(), context.pool());
  context.set_output(0, narrowed(std::move(product), type_));
}

WEFT_DECL kernel_factory linear_kernel(std::string_view op) { return op == "MatMul" ? &make_kernel<matmul_kernel> : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
