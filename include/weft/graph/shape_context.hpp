#ifndef WEFT_GRAPH_SHAPE_CONTEXT_HPP
#define WEFT_GRAPH_SHAPE_CONTEXT_HPP
// What an op's shape rule sees of a node in the making.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>

#include <string>
#include <vector>

namespace weft {

/// Inputs' dtypes, shapes and constant values in; outputs' shapes out. A rule that does nothing leaves them unknown.
/// A kernel can ask the same rule again when the node runs: then every input has its value, and the errors have the same text.
class shape_context {
 public:
  shape_context(const node& n, std::vector<output_type>& outputs) : node_(n), outputs_(outputs) {}
  /// The node runs on these values.
  shape_context(const node& n, const tensor_value* values, std::size_t count, std::vector<output_type>& outputs) : node_(n), outputs_(outputs), values_(values) {
    value_shapes_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) value_shapes_.emplace_back(values[i].shape());
  }

  /// Whether the node runs, so that nothing is left unknown.
  bool running() const noexcept { return values_ != nullptr; }
  int input_count() const noexcept { return static_cast<int>(running() ? value_shapes_.size() : node_.inputs().size()); }
  int output_count() const noexcept { return static_cast<int>(outputs_.size()); }
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

  void set_output(int i, partial_shape s) { outputs_[static_cast<std::size_t>(i)].shape = std::move(s); }
  /// Integers of a constant input in C order, or nullopt when its value is not known.
  std::optional<std::vector<std::int64_t>> input_integers(int i) const;
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
  std::vector<output_type>& outputs_;
  const tensor_value* values_ = nullptr;
  std::vector<partial_shape> value_shapes_;
};

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL std::optional<std::vector<std::int64_t>> shape_context::input_integers(int i) const {
  const tensor_value* v = input_value(i);
  if (v == nullptr) return std::nullopt;
  const auto n = static_cast<std::size_t>(v->elements());
  switch (v->dtype()) {
    case dtype::int32: return std::vector<std::int64_t>(v->data<std::int32_t>(), v->data<std::int32_t>() + n);
    case dtype::int64: return std::vector<std::int64_t>(v->data<std::int64_t>(), v->data<std::int64_t>() + n);
    case dtype::int8: return std::vector<std::int64_t>(v->data<std::int8_t>(), v->data<std::int8_t>() + n);
    case dtype::int16: return std::vector<std::int64_t>(v->data<std::int16_t>(), v->data<std::int16_t>() + n);
    case dtype::uint16: return std::vector<std::int64_t>(v->data<std::uint16_t>(), v->data<std::uint16_t>() + n);
    default: return std::nullopt;
  }
}

}  // namespace weft
#endif

#endif
