#ifndef WEFT_GRADIENTS_STATE_HPP
#define WEFT_GRADIENTS_STATE_HPP
// Gradients of reads of variables: what arrives at a read goes to the variable's handle.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// Rows of the gathered tensor from what arrived for the gathered rows: indices as a vector, values to match.
inline indexed_slices gathered_rows(gradient_context& c, output shape, output indices, output g) {
  const partial_shape& index_shape = gradient_context::shape(indices);
  if (index_shape.known_rank() && index_shape.rank() == 1) return {g, indices, shape};
  // 1. As many rows as there are indices, each with the shape of a row.
  const output size = c.size_of(indices, dtype::int32);
  const output row = c.add("StridedSlice", {shape, c.integers({1}), c.integers({0}), c.integers({1})}, {{"end_mask", 1}});
  const output count = c.add("ExpandDims", {size, c.integer(0)});
  const output values_shape = c.add_list("ConcatV2", {count, row, c.integer(0)}, {{"N", 2}});
  return {c.reshape(g, values_shape), c.reshape(indices, count), shape};
}

// The shape of the variable behind a handle.
inline output variable_shape_of(gradient_context& c, output handle) {
  const node* holder = handle.from;
  while (holder->op() == "Identity" && !holder->inputs().empty()) holder = holder->inputs()[0].from;
  const partial_shape* held = holder->find_attr<partial_shape>("shape");
  if (holder->op() == "VarHandleOp" && held != nullptr && held->fully_known()) return c.integers(held->sizes());
  return c.add("VariableShape", {handle});
}

inline void resource_gather_gradient(gradient_context& c) {
  const auto* batch = c.find_attr<std::int64_t>("batch_dims");
  if (batch != nullptr && *batch != 0) c.fail(error_code::unimplemented, "the gradient of a gather with batch_dims from a variable is not defined; read the variable and gather from the value");
  c.set(0, gathered_rows(c, variable_shape_of(c, c.input(0)), c.input(1), c.gradient()));
}
inline void resource_gather_nd_gradient(gradient_context& c) {
  const output shape = variable_shape_of(c, c.input(0)), indices = c.input(1), g = c.gradient();
  const partial_shape& s = gradient_context::shape(indices);
  if (s.rank() == 2 && s[1] == 1) {
    c.set(0, indexed_slices{g, c.add("Squeeze", {indices}, {{"squeeze_dims", std::vector<std::int64_t>{-1}}}), shape});
    return;
  }
  c.set(0, c.add("ScatterNd", {indices, g, c.cast(shape, gradient_context::dtype_of(indices))}));
}

inline void add_state_gradients(gradient_registry& rules) {
  rules.add({{"ReadVariableOp", pass_on}, {"ResourceGather", resource_gather_gradient}, {"ResourceGatherNd", resource_gather_nd_gradient}});
  rules.add_none({"VarIsInitializedOp", "VariableShape"});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
