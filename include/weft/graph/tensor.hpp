#ifndef WEFT_GRAPH_TENSOR_HPP
#define WEFT_GRAPH_TENSOR_HPP
// Handles to nodes: `tensor<T, N>` for a value that will be computed, `operation` for a node as such.

#include <weft/core/config.hpp>
#include <weft/graph/operand.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft {

/// A tensor of the graph: dtype T, rank N (or `dynamic_rank`). A handle; copies stand for the same output.
template <class T, int N = dynamic_rank> class tensor : public operand<T, N> {
 public:
  /// Stands for nothing yet.
  tensor() = default;
  explicit tensor(output o) : operand<T, N>(o) {}
  /// Reads a variable.
  tensor(const variable<T, N>& v, call_site where = call_site::here());
  /// A known rank may be forgotten.
  template <int M, std::enable_if_t<N == dynamic_rank && M != dynamic_rank, int> = 0> tensor(const tensor<T, M>& other) : operand<T, N>(other.raw()) {}
  /// A rank may be claimed; throws INVALID_ARGUMENT when the graph knows better.
  template <int M, std::enable_if_t<N != dynamic_rank && M == dynamic_rank, int> = 0>
  explicit tensor(const tensor<T, M>& other, call_site where = call_site::here()) : operand<T, N>(other.raw()) {
    const partial_shape found = other.shape();
    if (found.known_rank() && found.rank() != N)
      throw error(error_code::invalid_argument, "'" + other.name() + "' has shape " + found.text() + ", not rank " + std::to_string(N), where);
  }
};

/// A node of the graph, to run it for its effect or to wait for it. A handle.
class operation {
 public:
  /// Stands for nothing; waiting for it is no wait.
  operation() = default;
  explicit operation(const node& n) : node_(&n), owner_(detail::hold_for_handle(n.owner())) {}
  /// The operation that computes a tensor, or that holds a variable.
  template <class T, int N> operation(const tensor<T, N>& t) : operation(t.raw()) {}
  template <class T, int N> operation(const variable<T, N>& v);

  /// The node, or nullptr.
  const node* get() const noexcept { return node_; }
  std::string name() const { return node_ == nullptr ? std::string() : node_->name(); }
  bool empty() const noexcept { return node_ == nullptr; }

 private:
  explicit operation(output o) {
    if (o.from != nullptr) *this = operation(*o.from);
  }
  const node* node_ = nullptr;
  std::shared_ptr<detail::graph_state> owner_;
};

template <class T, int N> tensor<T, N> graph::tensor(std::string_view name, call_site where) const {
  const output o = find_output(name, where);
  if (o.from->output_dtype(o.index) != dtype_of<T>)
    throw error(error_code::invalid_argument, "'" + std::string(name) + "' has dtype " + to_text(o.from->output_dtype(o.index)) + ", not " + to_text(dtype_of<T>), where);
  if constexpr (N == dynamic_rank) return weft::tensor<T>(o);
  else return weft::tensor<T, N>(weft::tensor<T>(o), where);
}

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL operation graph::operation(std::string_view name, call_site where) const {
  const node* n = find(name);
  if (n == nullptr) throw error(error_code::not_found, "the graph has no node '" + std::string(name) + "'", where);
  return weft::operation(*n);
}

}  // namespace weft
#endif

#endif
