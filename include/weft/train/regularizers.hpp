#ifndef WEFT_TRAIN_REGULARIZERS_HPP
#define WEFT_TRAIN_REGULARIZERS_HPP
// Penalties on the values of variables, which `get_variable` adds to the graph's regularization losses.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {
class regularizer_base {
 public:
  virtual ~regularizer_base() = default;
  virtual output make(const output& value, call_site where) const = 0;
};
template <class Make> class penalty_by final : public regularizer_base {
 public:
  explicit penalty_by(Make make) : make_(std::move(make)) {}
  output make(const output& value, call_site where) const override { return make_(value, where); }

 private:
  Make make_;
};
}  // namespace detail

/// Makes a scalar from the value of a variable. A value; copies share what they do.
class regularizer {
 public:
  /// None.
  regularizer() = default;
  /// One of your own: a callable that takes the value as an `output` and the user's line, and returns a scalar output, or an empty one for no penalty.
  template <class Make, class = std::enable_if_t<std::is_invocable_r_v<output, const Make&, const output&, call_site>>>
  regularizer(Make make) : what_(std::make_shared<detail::penalty_by<Make>>(std::move(make))) {}

  bool empty() const noexcept { return what_ == nullptr; }
  /// The penalty of a value. Throws INVALID_ARGUMENT when it is no scalar.
  output make(const output& value, call_site where = call_site::here()) const;
  /// The same with static types.
  template <class T, int N> tensor<T, 0> operator()(const operand<T, N>& value, call_site where = call_site::here()) const {
    const output made = make(value.as_input(where), where);
    return made.from == nullptr ? tensor<T, 0>() : tensor<T, 0>(tensor<T>(made), where);
  }

 private:
  std::shared_ptr<const detail::regularizer_base> what_;
};

/// `scale` times the sum of the absolute values. A scale of 0 is none; a negative one is INVALID_ARGUMENT.
regularizer l1_regularizer(double scale, call_site where = call_site::here());
/// `scale` times half the sum of the squares.
regularizer l2_regularizer(double scale, call_site where = call_site::here());
/// Both.
regularizer l1_l2_regularizer(double l1, double l2, call_site where = call_site::here());

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/ops/node_group.hpp>

#include <string>
#include <vector>

namespace weft {

namespace detail {
WEFT_DECL output penalty_of(const output& value, double l1, double l2, call_site where) {
  const dtype type = value.from->output_dtype(value.index);
  if (!is_floating(type)) throw error(error_code::invalid_argument, "only values of floating dtypes are penalised, found " + std::string(to_text(type)), where);
  const node_group g({value, false, tensor_value()}, op_name(where), l2 == 0 ? "l1_regularizer" : l1 == 0 ? "l2_regularizer" : "l1_l2_regularizer");
  std::vector<output> parts;
  if (l1 != 0) {
    const partial_shape& s = value.from->output_shape(value.index);
    if (!s.known_rank()) g.fail("the rank of the value must be known");
    std::vector<std::int32_t> axes;
    for (int i = 0; i < s.rank(); ++i) axes.push_back(i);
    const output sum = g.reduce("Sum", g.add("Abs", {value}, "Abs"), axes, "Sum", false), scale = g.number(l1, type, "l1_scale");
    if (l2 == 0) return g.last("Mul", {scale, sum});
    parts.push_back(g.add("Mul", {scale, sum}, "l1"));
  }
  const output half_squares = g.add("L2Loss", {value}, "L2Loss"), scale = g.number(l2, type, "l2_scale");
  if (parts.empty()) return g.last("Mul", {scale, half_squares});
  return g.last("AddV2", {parts[0], g.add("Mul", {scale, half_squares}, "l2")});
}
}  // namespace detail

WEFT_DECL output regularizer::make(const output& value, call_site where) const {
  if (what_ == nullptr) throw error(error_code::invalid_argument, "the regularizer is empty", where);
  if (value.from == nullptr) throw error(error_code::invalid_argument, "the value to penalise is an empty tensor, not made by any op", where);
  const output made = what_->make(value, where);
  if (made.from == nullptr) return made;
  const partial_shape& s = made.from->output_shape(made.index);
  if (s.known_rank() && s.rank() != 0) throw error(error_code::invalid_argument, "a penalty is a scalar, the regularizer made '" + to_text(made) + "' of shape " + s.text(), where);
  return made;
}

WEFT_DECL regularizer l1_l2_regularizer(double l1, double l2, call_site where) {
  if (!(l1 >= 0) || !(l2 >= 0)) throw error(error_code::invalid_argument, "the scale of a regularizer must not be negative, found " + std::to_string(l1 >= 0 ? l2 : l1), where);
  if (l1 == 0 && l2 == 0) return regularizer();
  return regularizer([=](const output& value, call_site at) { return detail::penalty_of(value, l1, l2, at); });
}
WEFT_DECL regularizer l1_regularizer(double scale, call_site where) { return l1_l2_regularizer(scale, 0, where); }
WEFT_DECL regularizer l2_regularizer(double scale, call_site where) { return l1_l2_regularizer(0, scale, where); }

}  // namespace weft
#endif

#endif
