#ifndef WEFT_GRAPH_SHAPE_CONTEXT_HPP
#define WEFT_GRAPH_SHAPE_CONTEXT_HPP
// What an op's shape rule sees of a node in the making.

#include <weft/core/config.hpp>
#include <weft/graph/known_value.hpp>
#include <weft/graph/node.hpp>

#include <string>
#include <vector>

namespace weft {

/// Inputs' dtypes, shapes and constant values in; outputs' shapes out. A rule that does nothing leaves them unknown.
/// A kernel can ask the same rule again when the node runs: then every input has its value, and the errors have the same text.
class shape_context {
 public:
  shape_context(const node& n, std::vector<output_type>& outputs) : node_(n), outputs_(outputs.data()), output_count_(outputs.size()) {}
  /// The node is being made, and nobody else has its outputs yet.
  shape_context(const node& n, const detail::output_list& outputs) : node_(n), outputs_(outputs.data()), output_count_(outputs.size()) {}
  /// The node runs on these values.
  shape_context(const node& n, const tensor_value* values, std::size_t count, std::vector<output_type>& outputs)
      : node_(n), outputs_(outputs.data()), output_count_(outputs.size()), values_(values) {
    value_shapes_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) value_shapes_.emplace_back(values[i].shape());
  }

  /// Whether the node runs, so that nothing is left unknown.
  bool running() const noexcept { return values_ != nullptr; }
  int input_count() const noexcept { return static_cast<int>(running() ? value_shapes_.size() : node_.inputs().size()); }
  int output_count() const noexcept { return static_cast<int>(output_count_); }
  const partial_shape& input(int i) const noexcept {
    if (running()) return value_shapes_[static_cast<std::size_t>(i)];
    const output& in = node_.inputs()[static_cast<std::size_t>(i)];
    return in.from->output_shape(in.index);
  }
  dtype input_dtype(int i) const noexcept {
    if (running()) return values_[i].dtype();
    const output& in = node_.inputs()[static_cast<std::size_t>(i)];
    return in.from->output_dtype(in.index);
  }
  /// The value of input i when it is known already (a constant), else nullptr.
  const tensor_value* input_value(int i) const noexcept {
    if (running()) return &values_[i];
    const node* from = node_.inputs()[static_cast<std::size_t>(i)].from;
    return from->op() == "Const" ? from->find_attr<tensor_value>("value") : nullptr;
  }
  template <class T> const T& attr(std::string_view name) const { return node_.attr<T>(name); }
  template <class T> const T* find_attr(std::string_view name) const noexcept { return node_.find_attr<T>(name); }
  const node& about() const noexcept { return node_; }

  void set_output(int i, partial_shape s) { outputs_[i].shape = std::move(s); }
  /// Integers of input i in C order, or nullopt when they are not all known.
  std::optional<std::vector<std::int64_t>> input_integers(int i) const;
  /// Sizes that input i, a vector or a number, holds: -1 where one is open, and nullopt when not even their count is known. Negative integers come as they are.
  std::optional<std::vector<std::int64_t>> input_sizes(int i) const;
  /// Input i's shape when it has this rank or its rank is unknown; fails otherwise, naming the input as `what`.
  partial_shape with_rank(int i, int rank, const char* what) const {
    const partial_shape& s = input(i);
    if (s.known_rank() && s.rank() != rank)
      fail(std::string(what) + " must have rank " + std::to_string(rank) + ", found shape " + s.text());
    return s.known_rank() ? s : partial_shape::of_rank(rank);
  }
  [[noreturn]] void fail(std::string message) const { node_.fail_about(error_code::invalid_argument, std::move(message)); }

 private:
  const node& node_;
  output_type* outputs_;
  std::size_t output_count_;
  const tensor_value* values_ = nullptr;
  std::vector<partial_shape> value_shapes_;
};

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

// A running node has values instead of nodes to follow.
WEFT_DECL std::optional<std::vector<std::int64_t>> shape_context::input_integers(int i) const {
  if (running()) {
    auto all = detail::integers_of(values_[i]);
    if (!all) fail("input " + std::to_string(i) + " must hold integers, found " + to_text(values_[i].dtype()));
    return all;
  }
  // Constants may be of any size.
  if (const tensor_value* v = input_value(i)) return detail::integers_of(*v);
  auto known = known_value(node_.inputs()[static_cast<std::size_t>(i)]);
  if (!known || !known->complete()) return std::nullopt;
  return std::move(known->values);
}

WEFT_DECL std::optional<std::vector<std::int64_t>> shape_context::input_sizes(int i) const {
  if (input_value(i) != nullptr) {
    if (auto all = input_integers(i)) return all;
  } else if (auto known = known_value(node_.inputs()[static_cast<std::size_t>(i)])) {
    for (std::int64_t& v : known->values)
      if (v == known_integers::open) v = -1;
    return std::move(known->values);
  }
  const partial_shape& s = input(i);
  if (!s.known_rank() || s.rank() != 1 || s[0] < 0 || s[0] > max_rank) return std::nullopt;
  return std::vector<std::int64_t>(static_cast<std::size_t>(s[0]), -1);
}

}  // namespace weft
#endif

#endif
