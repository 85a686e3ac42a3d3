#ifndef WEFT_KERNELS_LINEAR_HPP
#define WEFT_KERNELS_LINEAR_HPP
// Kernels of matrix products.

#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>

#include <string>
#include <string_view>

#if WEFT_HAS_BODIES
namespace weft::detail {

/// Sizes of a product c[m,n] = a[m,k] b[k,n], and how the factors lie in memory.
struct product_shape {
  std::size_t m, n, k;
  bool transpose_a, transpose_b;  // a lies as [k,m], b as [n,k]
};
using product_function = void (*)(const product_shape&, const void* a, const void* b, void* c);

/// Row by row, for integers and small products; integers wrap.
template <class T> void plain_product(const product_shape& p, const void* a_data, const void* b_data, void* c_data) {
  const T *a = static_cast<const T*>(a_data), *b = static_cast<const T*>(b_data);
  T* c = static_cast<T*>(c_data);
  for (std::size_t i = 0; i < p.m; ++i) {
    for (std::size_t j = 0; j < p.n; ++j) c[i * p.n + j] = T(0);
    for (std::size_t x = 0; x < p.k; ++x) {
      const T left = a[p.transpose_a ? x * p.m + i : i * p.k + x];
      for (std::size_t j = 0; j < p.n; ++j) c[i * p.n + j] += left * b[p.transpose_b ? j * p.k + x : x * p.n + j];
    }
  }
}

/// The product of two matrices, each of them transposed first if an attribute says so.
class matmul_kernel final : public kernel {
 public:
  explicit matmul_kernel(const node& n) : type_(type_attr(n, "T")), transpose_a_(n.attr<bool>("transpose_a")), transpose_b_(n.attr<bool>("transpose_b")) {
    constexpr wide_functions<product_function> functions{plain_product<float>, plain_product<double>, plain_product<std::uint64_t>, plain_product<std::uint64_t>, nullptr};
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
  const product_shape p{static_cast<std::size_t>(m), static_cast<std::size_t>(n), static_cast<std::size_t>(inner), transpose_a_, transpose_b_};
  function_(p, left.raw_data(), right.raw_data(), product.mutable_raw_data());
  context.set_output(0, narrowed(std::move(product), type_));
}

/// The factory of a linear algebra op; nullptr for ops of other families.
inline kernel_factory linear_kernel(std::string_view op) { return op == "MatMul" ? &make_kernel<matmul_kernel> : nullptr; }

}  // namespace weft::detail
#endif

#endif
