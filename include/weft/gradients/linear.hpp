#ifndef WEFT_GRADIENTS_LINEAR_HPP
#define WEFT_GRADIENTS_LINEAR_HPP
// Gradients of matrix products and of the QR decomposition.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// The products that give the gradients of a and b, for each combination of transposed factors: left, right (0: g, 1: a, 2: b), and whether each is transposed.
struct product_rule {
  int left, right;
  bool left_transposed, right_transposed;
};

inline output product_gradient(gradient_context& c, int side, const char* op, const char* transpose_left, const char* transpose_right) {
  constexpr product_rule rules[2][4] = {{{0, 2, false, true}, {0, 2, false, false}, {2, 0, false, true}, {2, 0, true, true}},
                                        {{1, 0, true, false}, {0, 1, true, false}, {1, 0, false, false}, {0, 1, true, true}}};
  const product_rule& r = rules[side][(c.attr<bool>(transpose_left) ? 2 : 0) + (c.attr<bool>(transpose_right) ? 1 : 0)];
  // MatMul only transposes; the adjoints of BatchMatMul conjugate by themselves.
  const auto factor = [&](int which) { return which == 0 ? c.gradient() : transpose_left[0] == 'a' ? c.input(which - 1) : c.conjugate(c.input(which - 1)); };
  return c.add(op, {factor(r.left), factor(r.right)}, {{transpose_left, r.left_transposed}, {transpose_right, r.right_transposed}});
}

inline void mat_mul_gradient(gradient_context& c) {
  for (int i = 0; i < 2; ++i)
    if (c.wants(i)) c.set(i, product_gradient(c, i, "MatMul", "transpose_a", "transpose_b"));
}
inline void batch_mat_mul_gradient(gradient_context& c) {
  for (int i = 0; i < 2; ++i)
    if (c.wants(i)) c.set(i, product_gradient(c, i, "BatchMatMul", "adj_x", "adj_y"));
}
inline void batch_mat_mul_v2_gradient(gradient_context& c) {
  for (int i = 0; i < 2; ++i)
    if (c.wants(i)) c.set(i, c.sum_to(product_gradient(c, i, "BatchMatMulV2", "adj_x", "adj_y"), c.input(i), c.input(1 - i), 2));
}

inline term product(const term& x, const term& y, bool x_transposed = false, bool y_transposed = false) {
  return {x.make, x.make->add("BatchMatMul", {x, y}, {{"adj_x", x_transposed}, {"adj_y", y_transposed}})};
}
inline term transposed(const term& x) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < gradient_context::shape(x).rank(); ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 2], axes.back());
  return {x.make, x.make->add("Transpose", {x, x.make->integers(axes)})};
}
// The inverse of upper triangular matrices of size n, whose elements below the diagonal are zeros: first that of the diagonal, then, with each inverse of
// diagonal blocks, that of blocks twice as large, as [[a, b], [0, c]]^-1 = [[a^-1, -a^-1 b c^-1], [0, c^-1]].
inline term inverse_of_upper(const term& r, std::int64_t n) {
  term inverse = apply("MatrixDiag", reciprocal(apply("MatrixDiagPart", r)));
  for (std::int64_t block = 1; block < n; block *= 2) {
    std::vector<std::int64_t> own, partner;
    for (std::int64_t i = 0; i < n; ++i) {
      own.push_back(i / block);
      partner.push_back(own.back() ^ 1);
    }
    const term beside{r.make, r.make->add("Equal", {r.make->add("ExpandDims", {r.make->integers(partner), r.make->integer(1)}), r.make->integers(own)})};
    inverse = inverse - product(product(inverse, select(beside, r, zero(r))), inverse);
  }
  return inverse;
}

// The size of R where the derivative is defined, which is where it is square.
inline std::int64_t size_of_square_r(const gradient_context& c) {
  const partial_shape &in = gradient_context::shape(c.input(0)), &r = gradient_context::shape(c.result(1));
  const dtype type = gradient_context::dtype_of(c.input(0));
  if (!is_floating(type)) c.fail(error_code::unimplemented, std::string("the gradient needs a real dtype, found ") + to_text(type));
  const std::int64_t rows = r.known_rank() ? r[r.rank() - 2] : -1, columns = r.known_rank() ? r[r.rank() - 1] : -1;
  if (rows < 0 || columns < 0)
    c.fail(error_code::unimplemented,
           "the gradient needs matrices whose numbers of rows and columns are known while the graph is built, found shape " + in.text() + "; give the input its shape, for example with ensure_shape");
  if (rows < columns) c.fail(error_code::unimplemented, "the gradient needs matrices with at least as many rows as columns, found shape " + in.text());
  if (rows > columns) c.fail(error_code::unimplemented, "the gradient with full_matrices needs square matrices, found shape " + in.text() + "; leave full_matrices false");
  return columns;
}
// With p = Q^T dQ - dR R^T and l the part of p - p^T below its diagonal: Q dR + (dQ + Q (l - Q^T dQ)) R^-T. That R has an inverse is taken for granted: else infinities come.
inline void qr_gradient(gradient_context& c) {
  const std::int64_t n = size_of_square_r(c);
  const term q = result(c, 0), r = result(c, 1), dq = gradient_term(c, 0), dr = gradient_term(c, 1);
  const term turned = product(q, dq, true), p = turned - product(dr, r, false, true);
  const term lower{&c, c.add("MatrixBandPart", {p - transposed(p), c.integer(-1, dtype::int64), c.integer(0, dtype::int64)})};
  c.set(0, product(q, dr) + product(dq + product(q, lower - turned), inverse_of_upper(r, n), false, true));
}

inline void add_linear_gradients(gradient_registry& rules) {
  rules.add({{"MatMul", mat_mul_gradient}, {"BatchMatMul", batch_mat_mul_gradient}, {"BatchMatMulV2", batch_mat_mul_v2_gradient}, {"Qr", qr_gradient}});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
