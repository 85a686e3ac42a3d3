#ifndef WEFT_OPS_LINEAR_HPP
#define WEFT_OPS_LINEAR_HPP
// Matrix products.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace weft {

/// How matmul reads its inputs; combine with `|`.
enum class matmul_flags { none = 0, transpose_a = 1, transpose_b = 2 };
inline constexpr matmul_flags transpose_a = matmul_flags::transpose_a, transpose_b = matmul_flags::transpose_b;
constexpr matmul_flags operator|(matmul_flags a, matmul_flags b) { return static_cast<matmul_flags>(static_cast<int>(a) | static_cast<int>(b)); }
constexpr bool operator&(matmul_flags a, matmul_flags b) { return (static_cast<int>(a) & static_cast<int>(b)) != 0; }

namespace detail {

void qr_shape(shape_context& c);

#if WEFT_HAS_BODIES
inline void matmul_shape(shape_context& c) {
  const partial_shape a = c.with_rank(0, 2, "a"), b = c.with_rank(1, 2, "b");
  const bool flip_a = c.attr<bool>("transpose_a"), flip_b = c.attr<bool>("transpose_b");
  const std::int64_t inner_a = a[flip_a ? 0 : 1], inner_b = b[flip_b ? 1 : 0];
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
    c.fail("inner dimensions " + std::to_string(inner_a) + " and " + std::to_string(inner_b) + " differ (" + a.text() + (flip_a ? " transposed" : "") + " x " + b.text() + (flip_b ? " transposed)" : ")"));
  c.set_output(0, partial_shape({a[flip_a ? 1 : 0], b[flip_b ? 0 : 1]}));
}

// Products of the last two dimensions; the ones before them are the same for both (BatchMatMul), or broadcast.
inline void batch_matmul_shape(shape_context& c) {
  const partial_shape &x = c.input(0), &y = c.input(1);
  for (const partial_shape* s : {&x, &y})
    if (s->known_rank() && s->rank() < 2) c.fail("both operands must have at least two dimensions, found shapes " + x.text() + " and " + y.text());
  if (!x.known_rank() || !y.known_rank()) return;
  const auto batch_of = [](const partial_shape& s) { return partial_shape(std::vector<std::int64_t>(s.sizes().begin(), s.sizes().end() - 2)); };
  const auto matrix = [](const partial_shape& s, int i) { return s[s.rank() - 2 + i]; };
  const bool flip_x = c.attr<bool>("adj_x"), flip_y = c.attr<bool>("adj_y"), broadcasts = c.about().op() != "BatchMatMul";
  const std::int64_t inner_x = matrix(x, flip_x ? 0 : 1), inner_y = matrix(y, flip_y ? 1 : 0);
  if (inner_x >= 0 && inner_y >= 0 && inner_x != inner_y)
    c.fail("inner dimensions " + std::to_string(inner_x) + " and " + std::to_string(inner_y) + " differ (" + x.text() + (flip_x ? " transposed" : "") + " x " + y.text() + (flip_y ? " transposed)" : ")"));
  const auto batch = broadcasts ? broadcast_shapes(batch_of(x), batch_of(y)) : merge_shapes(batch_of(x), batch_of(y));
  if (!batch) c.fail("batches " + batch_of(x).text() + " and " + batch_of(y).text() + (broadcasts ? " cannot be broadcast" : " differ"));
  std::vector<std::int64_t> sizes = batch->sizes();
  sizes.push_back(matrix(x, flip_x ? 1 : 0));
  sizes.push_back(matrix(y, flip_y ? 0 : 1));
  c.set_output(0, partial_shape(std::move(sizes)));
}

// Matrices in the last two dimensions: Q `[..., m, p]` and R `[..., p, n]`, p being the smaller of m and n, or m.
WEFT_DECL void qr_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  if (!in.known_rank()) return;
  if (in.rank() < 2) c.fail("the input must have at least two dimensions, found shape " + in.text());
  const std::size_t last = static_cast<std::size_t>(in.rank()) - 1;
  const std::int64_t rows = in.sizes()[last - 1], columns = in.sizes()[last];
  const bool full = c.attr<bool>("full_matrices");
  const std::int64_t inner = full ? rows : rows < 0 || columns < 0 ? -1 : std::min(rows, columns);
  std::vector<std::int64_t> q = in.sizes(), r = in.sizes();
  q[last] = inner;
  r[last - 1] = inner;
  c.set_output(0, partial_shape(std::move(q)));
  c.set_output(1, partial_shape(std::move(r)));
}

#define WEFT_BATCHED "adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false"
inline constexpr op_row linear_ops[] = {
    {"MatMul(a: T, b: T) -> product: T",
     "transpose_a: bool = false; transpose_b: bool = false; T: {floats, int32, int64, uint8, uint16, uint32, uint64, complex}; grad_a: bool = false; grad_b: bool = false", matmul_shape},
    {"BatchMatMul(x: T, y: T) -> output: T", "T: {floats, int32, int64, complex}; " WEFT_BATCHED, batch_matmul_shape},
    {"BatchMatMulV2(x: T, y: T) -> output: T", "T: {floats, int16, int32, int64, uint8, uint16, uint32, uint64, complex}; " WEFT_BATCHED, batch_matmul_shape},
    {"Qr(input: T) -> q: T, r: T", "full_matrices: bool = false; T: {double, float, half, complex}", qr_shape},
};
#undef WEFT_BATCHED
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

/// The products of the matrices in the last two dimensions; the dimensions before them are broadcast (BatchMatMulV2). Throws INVALID_ARGUMENT when shapes are known not to fit.
template <class T, int N, class U, int M> tensor<T, detail::wider_rank(N, M)> batch_matmul(const operand<T, N>& a, const operand<U, M>& b, matmul_flags flags, op_name name = {}) {
  static_assert(std::is_same_v<T, U>, "weft: batch_matmul needs two tensors of one dtype; convert one with weft::cast<T>(...)");
  static_assert((N >= 2 || N == dynamic_rank) && (M >= 2 || M == dynamic_rank), "weft: batch_matmul needs two tensors of rank 2 or more; expand a vector with x(newaxis, all)");
  return tensor<T, detail::wider_rank(N, M)>(
      output{&detail::add_node("BatchMatMulV2", {a.as_input(name.site), b.as_input(name.site)}, name, {{"adj_x", flags & transpose_a}, {"adj_y", flags & transpose_b}}), 0});
}
template <class T, int N, class U, int M> tensor<T, detail::wider_rank(N, M)> batch_matmul(const operand<T, N>& a, const operand<U, M>& b, op_name name = {}) {
  return batch_matmul(a, b, matmul_flags::none, name);
}

/// The decomposition of matrices `[..., m, n]` into Q, whose columns are orthonormal, and R, which is zero below its diagonal: Q R is the matrix. Q is `[..., m, p]` and R `[..., p, n]`, p being
/// the smaller of m and n (Qr). It has a gradient where m and n are known while the graph is built and m is not smaller than n.
template <class T, int N> std::tuple<tensor<T, N>, tensor<T, N>> qr(const operand<T, N>& x, op_name name = {}) {
  static_assert(N >= 2 || N == dynamic_rank, "weft: qr takes matrices");
  const node& made = detail::add_node("Qr", {x.as_input(name.site)}, name);
  return {tensor<T, N>(output{&made, 0}), tensor<T, N>(output{&made, 1})};
}

}  // namespace weft

#endif
