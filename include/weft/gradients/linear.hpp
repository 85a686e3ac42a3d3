#ifndef WEFT_GRADIENTS_LINEAR_HPP
#define WEFT_GRADIENTS_LINEAR_HPP
// Gradients of matrix products.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

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

inline void add_linear_gradients(gradient_registry& rules) {
  rules.add({{"MatMul", mat_mul_gradient}, {"BatchMatMul", batch_mat_mul_gradient}, {"BatchMatMulV2", batch_mat_mul_v2_gradient}});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
