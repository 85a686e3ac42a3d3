#ifndef WEFT_GRADIENTS_GRADIENTS_HPP
#define WEFT_GRADIENTS_GRADIENTS_HPP
// Symbolic derivatives: adds the nodes that compute the gradients of some tensors with respect to others.

#include <weft/core/config.hpp>
#include <weft/gradients/gradient_output.hpp>
#include <weft/gradients/gradient_registry.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/state.hpp>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace weft {

/// How the gradients that reach a tensor over several paths are summed (TensorFlow's AggregationMethod).
enum class aggregation_method { add_n, tree, accumulate_n };
/// The gradient of an x that the ys do not depend on: none, or zeros of its shape.
enum class unconnected_gradients { none, zero };
/// What waits for what: nothing, each node's gradients for each other, all gradients for each other.
enum class gradient_gate { none, op, graph };

/// How gradients are built.
struct gradient_options {
  /// The gradient of each y, in their order; an empty list or entry stands for ones.
  std::vector<gradient_output> grad_ys{};
  /// Gradients do not go further back than these.
  std::vector<operation> stop_gradients{};
  /// Puts each gradient node with the node that it differentiates.
  bool colocate_with_ops = false;
  aggregation_method aggregation = aggregation_method::add_n;
  unconnected_gradients unconnected = unconnected_gradients::none;
  gradient_gate gate = gradient_gate::none;
  /// The rules; nullptr for `standard_gradients()`. Must live until the call returns.
  const gradient_registry* registry = nullptr;
  /// The name scope of the new nodes.
  std::string name = "gradients";
};

/// What is differentiated: a tensor or variable, or several, whose gradients are summed. Records the caller's line.
class gradient_ys {
 public:
  template <class T, int N> gradient_ys(const operand<T, N>& y, call_site where = call_site::here()) : outputs_{y.as_input(where)}, site_(where) {}
  template <class T, int N> gradient_ys(const std::vector<tensor<T, N>>& ys, call_site where = call_site::here()) : site_(where) {
    for (const auto& y : ys) outputs_.push_back(y.as_input(where));
  }
  template <class... Y> gradient_ys(const std::tuple<Y...>& ys, call_site where = call_site::here()) : site_(where) {
    std::apply([&](const auto&... y) { (outputs_.push_back(y.as_input(where)), ...); }, ys);
  }
  gradient_ys(std::vector<output> ys, call_site where = call_site::here()) : outputs_(std::move(ys)), site_(where) {}

  const std::vector<output>& outputs() const noexcept { return outputs_; }
  call_site site() const noexcept { return site_; }

 private:
  std::vector<output> outputs_;
  call_site site_;
};

/// The gradient with respect to a tensor or variable of dtype T and rank N: a tensor, empty when there is none. Where it is sparse, the
/// rows stand beside the tensor that they were scattered into.
template <class T, int N = dynamic_rank> class gradient : public tensor<T, N> {
 public:
  gradient() = default;
  gradient(output dense, gradient_output as_it_is) : tensor<T, N>(dense), as_it_is_(as_it_is) {}
  /// Whether it came as rows.
  bool is_sparse() const noexcept { return as_it_is_.is_sparse(); }
  /// Its rows; only when `is_sparse()`.
  indexed_slices slices() const noexcept { return as_it_is_.slices(); }
  /// The gradient with its type erased; a sparse one as rows.
  const gradient_output& erased() const noexcept { return as_it_is_; }

 private:
  gradient_output as_it_is_;
};

/// The gradients of the sum of all elements of the ys with respect to each x, which follows TensorFlow's tf.gradients: sums over all paths;
/// none where an x is not reached or only over integers; sparse where the x is only gathered from. A variable is given by its handle.
/// Throws NOT_FOUND about a node that a path leads through and whose op has no rule.
std::vector<gradient_output> gradients(const gradient_ys& ys, const std::vector<output>& xs, const gradient_options& options = {});

namespace detail {
// A gradient as a tensor, made in the thread's scopes; an empty output for none.
output dense_gradient(const gradient_output& g, call_site where);

template <class T, int N> gradient<T, N> typed_gradient(const operand<T, N>&, const gradient_output& g, call_site where) { return {dense_gradient(g, where), g}; }
template <class... X, std::size_t... I> auto typed_gradients(const std::tuple<X...>& xs, const std::vector<gradient_output>& found, call_site where, std::index_sequence<I...>) {
  return std::make_tuple(typed_gradient(std::get<I>(xs), found[I], where)...);
}
}  // namespace detail

/// The gradient with respect to one tensor or variable.
template <class T, int N> gradient<T, N> gradients(const gradient_ys& ys, const operand<T, N>& x, const gradient_options& options = {}) {
  return detail::typed_gradient(x, gradients(ys, std::vector<output>{x.raw()}, options)[0], ys.site());
}
/// Gradients with respect to several, as a tuple: `auto [dw, db] = gradients(loss, w, b)`.
template <class T, int N, class U, int M, class... X>
auto gradients(const gradient_ys& ys, const operand<T, N>& x, const operand<U, M>& second, const X&... more) {
  const std::vector<gradient_output> found = gradients(ys, std::vector<output>{x.raw(), second.raw(), more.raw()...});
  return detail::typed_gradients(std::tie(x, second, more...), found, ys.site(), std::make_index_sequence<2 + sizeof...(X)>());
}
/// Gradients with respect to several, with options: `gradients(loss, std::tie(w, b), options)`.
template <class... X> auto gradients(const gradient_ys& ys, const std::tuple<X...>& xs, const gradient_options& options = {}) {
  const std::vector<gradient_output> found =
      gradients(ys, std::apply([](const auto&... x) { return std::vector<output>{x.raw()...}; }, xs), options);
  return detail::typed_gradients(xs, found, ys.site(), std::index_sequence_for<X...>());
}
/// Gradients with respect to tensors of one type.
template <class T, int N> std::vector<gradient<T, N>> gradients(const gradient_ys& ys, const std::vector<tensor<T, N>>& xs, const gradient_options& options = {}) {
  std::vector<output> raw;
  for (const auto& x : xs) raw.push_back(x.raw());
  std::vector<gradient<T, N>> out;
  for (const gradient_output& g : gradients(ys, raw, options)) out.push_back({detail::dense_gradient(g, ys.site()), g});
  return out;
}

}  // namespace weft

#endif
