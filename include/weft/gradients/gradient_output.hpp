#ifndef WEFT_GRADIENTS_GRADIENT_OUTPUT_HPP
#define WEFT_GRADIENTS_GRADIENT_OUTPUT_HPP
// What is known of a gradient while the graph is built: nothing, a tensor, or some rows of one.

#include <weft/graph/operand.hpp>

#include <utility>

namespace weft {

/// Rows of a tensor of shape `dense_shape` (TensorFlow's IndexedSlices): row `indices[i]` is the sum of all `values[i]` with that index, every
/// other row is zero.
struct indexed_slices {
  output values, indices, dense_shape;
};

/// A gradient with its dtype erased: none, dense or sparse.
class gradient_output {
 public:
  /// None: the y does not depend on the x, or not in a way that can be differentiated.
  gradient_output() = default;
  gradient_output(output dense) : values_(dense) {}
  gradient_output(indexed_slices sparse) : values_(sparse.values), indices_(sparse.indices), dense_shape_(sparse.dense_shape) {}
  template <class T, int N> gradient_output(const operand<T, N>& dense, call_site where = call_site::here()) : values_(dense.as_input(where)) {}

  /// Whether there is none.
  bool empty() const noexcept { return values_.from == nullptr; }
  /// Whether it is a tensor.
  bool is_dense() const noexcept { return !empty() && indices_.from == nullptr; }
  /// Whether it is rows of a tensor.
  bool is_sparse() const noexcept { return indices_.from != nullptr; }
  /// The tensor of a dense gradient; of a sparse one the values of its rows.
  const output& values() const noexcept { return values_; }
  /// The rows of a sparse gradient.
  indexed_slices slices() const noexcept { return {values_, indices_, dense_shape_}; }
  weft::dtype dtype() const noexcept { return empty() ? weft::dtype::invalid : values_.from->output_dtype(values_.index); }

 private:
  output values_, indices_, dense_shape_;
};

}  // namespace weft

#endif
