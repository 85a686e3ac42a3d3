#ifndef WEFT_KERNELS_LINEAR_HPP
#define WEFT_KERNELS_LINEAR_HPP
// Kernels of matrix products.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/parallel.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

inline product_function find_product(const node& n, dtype type) {
  static constexpr wide_functions<product_function> functions{product_array<float>, product_array<double>, product_array<std::uint64_t>, product_array<std::uint64_t>, nullptr};
  const product_function found = functions.of(type);
  if (found == nullptr) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
  return found;
}

/// The product of two matrices, or of the matrices in the last two dimensions; each of them transposed first if an attribute says so. The dimensions before
/// the last two are the same for both (BatchMatMul), or broadcast (BatchMatMulV2).
class matmul_kernel final : public kernel {
 public:
  explicit matmul_kernel(const node& n)
      : type_(type_attr(n, "T")), batched_(n.op() != "MatMul"), broadcasts_(n.op() == "BatchMatMulV2"), flip_a_(n.attr<bool>(batched_ ? "adj_x" : "transpose_a")),
        flip_b_(n.attr<bool>(batched_ ? "adj_y" : "transpose_b")), function_(find_product(n, type_)) {}
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override {
    if (context.input_count() != 2) return false;
    const shape &a = context.input(0).shape(), &b = context.input(1).shape();
    if (a.rank() < 2 || b.rank() < 2) return false;
    return static_cast<double>(a.elements()) * static_cast<double>(b[b.rank() - (flip_b_ ? 2 : 1)]) > 1e6;
  }

 private:
  shape check_shapes(const kernel_context& context, broadcast_plan& batches) const;
  dtype type_;
  bool batched_, broadcasts_, flip_a_, flip_b_;
  product_function function_;
};

// The shape of the result, and how the batches of both operands meet.
inline shape matmul_kernel::check_shapes(const kernel_context& context, broadcast_plan& batches) const {
  const shape &a = context.input(0).shape(), &b = context.input(1).shape();
  const auto found = [&] { return "found shapes " + a.text() + " and " + b.text(); };
  if (!batched_ && (a.rank() != 2 || b.rank() != 2)) context.fail("both operands must be matrices, " + found());
  if (a.rank() < 2 || b.rank() < 2) context.fail("both operands must have at least two dimensions, " + found());
  const auto a_rank = static_cast<std::size_t>(a.rank()), b_rank = static_cast<std::size_t>(b.rank());
  const std::int64_t *a_matrix = a.end() - 2, *b_matrix = b.end() - 2;
  const std::int64_t inner = a_matrix[flip_a_ ? 0 : 1], b_inner = b_matrix[flip_b_ ? 1 : 0];
  if (inner != b_inner)
    context.fail("inner dimensions " + std::to_string(inner) + " and " + std::to_string(b_inner) + " differ (" + a.text() + (flip_a_ ? " transposed" : "") + " x " + b.text() +
                 (flip_b_ ? " transposed)" : ")"));
  const std::int64_t rows = a_matrix[flip_a_ ? 1 : 0], columns = b_matrix[flip_b_ ? 0 : 1];
  if (a_rank == 2 && b_rank == 2) return shape{rows, columns};
  std::vector<std::int64_t> sizes(std::max(a_rank, b_rank));
  const auto plan = plan_broadcast(a.data(), a_rank - 2, b.data(), b_rank - 2, sizes.data());
  if (!plan || (!broadcasts_ && (a_rank != b_rank || !std::equal(a.begin(), a_matrix, b.begin()))))
    context.fail(std::string("the batches ") + (broadcasts_ ? "cannot be broadcast, " : "differ, ") + found());
  sizes[sizes.size() - 2] = rows;
  sizes[sizes.size() - 1] = columns;
  if (!checked_elements(sizes.data(), sizes.size())) context.fail("the product of shapes " + a.text() + " and " + b.text() + " has too many elements");
  batches = *plan;
  return shape(sizes);
}

inline void matmul_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  expect_dtype(context, 1, type_);
  broadcast_plan batches;
  const shape out_shape = check_shapes(context, batches);
  const tensor_value left = widened(context.input(0)), right = widened(context.input(1));
  tensor_value product = context.allocate(left.dtype(), out_shape);
  const auto columns = [](const tensor_value& v) { return static_cast<std::size_t>(v.shape().end()[-1]); };
  const auto rows = [](const tensor_value& v) { return static_cast<std::size_t>(v.shape().end()[-2]); };
  const gemm_extents extents{rows(product), columns(product), flip_a_ ? rows(left) : columns(left)};
  const std::size_t size = size_of(left.dtype());
  const auto view = [&](const tensor_value& v, std::size_t first, bool flipped) {
    return matrix_view<const void>{v.raw_data() + first * size, columns(v), flipped ? transposition::transposed : transposition::none};
  };
  if (out_shape.elements() == 0) return context.set_output(0, narrowed(std::move(product), type_));
  const std::size_t a_size = rows(left) * columns(left), b_size = rows(right) * columns(right), out_size = extents.m * extents.n;
  for_each_grid(batches, [&](const binary_grid& grid, std::size_t a_at, std::size_t b_at, std::size_t out_at) {
    for (std::size_t i = 0; i < grid.rows * grid.columns; ++i) {
      const std::size_t row = i / grid.columns, column = i % grid.columns;
      const std::size_t a = a_at + row * grid.a_row + (grid.a_varies ? column : 0), b = b_at + row * grid.b_row + (grid.b_varies ? column : 0);
      function_(extents, view(left, a * a_size, flip_a_), view(right, b * b_size, flip_b_), product.mutable_raw_data() + (out_at + i) * out_size * size,
                context.pool());
    }
  });
  context.set_output(0, narrowed(std::move(product), type_));
}

WEFT_DECL kernel_factory linear_kernel(std::string_view op) {
  return op == "MatMul" || op == "BatchMatMul" || op == "BatchMatMulV2" ? &make_kernel<matmul_kernel> : nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
