#ifndef WEFT_GRADIENTS_ARRAY_HPP
#define WEFT_GRADIENTS_ARRAY_HPP
// Gradients of ops that make, move and select elements.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/state.hpp>
#include <weft/gradients/term.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail {

inline void fill_gradient(gradient_context& c) {
  const output g = c.gradient();
  const partial_shape& s = gradient_context::shape(g);
  std::vector<std::int64_t> all;
  for (int i = 0; i < s.rank(); ++i) all.push_back(i);
  const output axes = s.known_rank() ? c.integers(all) : c.add("Range", {c.integer(0), c.rank_of(g), c.integer(1)});
  c.set(1, c.sum(g, axes));
}
// The elements in the shape that the input had.
inline void reshape_gradient(gradient_context& c) { c.set(0, c.reshape_like(c.gradient(), c.input(0))); }

inline void add_array_gradients(gradient_registry& rules) {
  rules.add({{"Fill", fill_gradient}, {"Reshape", reshape_gradient}, {"ExpandDims", reshape_gradient}, {"Squeeze", reshape_gradient}});
  rules.add_none({"BroadcastGradientArgs", "ConcatOffset", "Const", "InvertPermutation", "LinSpace", "OneHot", "OnesLike", "Range", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"});
}

}  // namespace weft::detail
#endif

#endif
