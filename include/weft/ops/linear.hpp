#ifndef WEFT_OPS_LINEAR_HPP
#define WEFT_OPS_LINEAR_HPP
// Matrix products.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <string>

namespace weft {

/// How matmul reads its inputs; combine with `|`.
enum class matmul_flags { none = 0, transpose_a = 1, transpose_b = 2 };
inline constexpr matmul_flags transpose_a = matmul_flags::transpose_a, transpose_b = matmul_flags::transpose_b;
constexpr matmul_flags operator|(matmul_flags a, matmul_flags b) { return static_cast<matmul_flags>(static_cast<int>(a) | static_cast<int>(b)); }
constexpr bool operator&(matmul_flags a, matmul_flags b) { return (static_cast<int>(a) & static_cast<int>(b)) != 0; }

namespace detail {

#if WEFT_HAS_BODIES
inline void matmul_shape(shape_context& c) {
  const partial_shape a = c.with_rank(0, 2, "a"), b = c.with_rank(1, 2, "b");
  const bool flip_a = c.attr<bool>("transpose_a"), flip_b = c.attr<bool>("transpose_b");
  const std::int64_t inner_a = a[flip_a ? 0 : 1], inner_b = b[flip_b ? 1 : 0];
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
    c.fail("inner dimensions " + std::to_string(inner_a) + " and " + std::to_string(inner_b) + " differ (" + a.text() + (flip_a ? " transposed" : "") + " x " + b.text() + (flip_b ? " transposed" : "") + ")");
  c.set_output(0, partial_shape({a[flip_a ? 1 : 0], b[flip_b ? 0 : 1]}));
}

inline constexpr op_row linear_ops[] = {
    {"MatMul(a: T, b: T) -> product: T", "transpose_a: bool = false; transpose_b: bool = false; T: {floats, int32, int64, uint8, uint16, uint32, uint64, complex}", matmul_shape},
};
#endif

}  // namespace detail

/// The matrix product of `[m,k]` and `[k,n]`, giving `[m,n]` (MatMul). Throws INVALID_ARGUMENT when the inner dimensions are known to differ.
template <class T, int N, class U, int M> tensor<T, 2> matmul(const operand<T, N>& a, const operand<U, M>& b, matmul_flags flags, op_name name = {}) {
  static_assert(std::is_same_v<T, U>, "weft: matmul needs two tensors of one dtype; convert one with weft::cast<T>(...)");
  static_assert((N == 2 || N == dynamic_rank) && (M == 2 || M == dynamic_rank),
                "weft: matmul needs two tensors of rank 2; use batch_matmul for more dimensions and expand a vector with x(newaxis, all)");
  return tensor<T, 2>(output{&detail::add_node("MatMul", {a.as_input(name.site), b.as_input(name.site)}, name,
                                               {{"transpose_a", flags & transpose_a}, {"transpose_b", flags & transpose_b}}), 0});
}
template <class T, int N, class U, int M> tensor<T, 2> matmul(const operand<T, N>& a, const operand<U, M>& b, op_name name = {}) { return matmul(a, b, matmul_flags::none, name); }

}  // namespace weft

#endif
