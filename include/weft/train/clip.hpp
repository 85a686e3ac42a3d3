#ifndef WEFT_TRAIN_CLIP_HPP
#define WEFT_TRAIN_CLIP_HPP
// Gradients, or any tensors, kept within bounds: by value, by their own norm, by the norm of all together; as TensorFlow's tf.clip_by_value and its relatives.

#include <weft/core/config.hpp>
#include <weft/gradients/gradient_output.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/train/formula.hpp>
#include <weft/train/hyper_parameter.hpp>
#include <weft/train/optimizer.hpp>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
output add_clip_by_value(const side& x, const side& least, const side& most, const op_name& name);
output add_clip_by_norm(const side& x, const hyper_parameter& norm, const std::vector<int>& axes, const op_name& name);
output add_clip_by_average_norm(const side& x, const hyper_parameter& norm, const op_name& name);
output add_global_norm(const std::vector<gradient_output>& all, dtype type, const op_name& name);
// Clips in place; returns the norm.
output add_clip_by_global_norm(std::vector<gradient_output>& all, const hyper_parameter& norm, const output& use_norm, dtype type, const op_name& name);
std::vector<gradient_output> gradients_of(const std::vector<grad_and_variable>& all);
}  // namespace detail

/// Each element at least `least` and at most `most`, which may be numbers or tensors that broadcast to the shape of x. Where the bounds cross, the lower one holds; NaN stays.
template <class T, int N> tensor<T, N> clip_by_value(const operand<T, N>& x, std::common_type_t<T> least, std::common_type_t<T> most, op_name name = {}) {
  return tensor<T, N>(detail::add_clip_by_value(detail::side_of(x), {output(), false, tensor_value::scalar(least)}, {output(), false, tensor_value::scalar(most)}, name));
}
template <class T, int N, int L, int M> tensor<T, N> clip_by_value(const operand<T, N>& x, const operand<T, L>& least, const operand<T, M>& most, op_name name = {}) {
  return tensor<T, N>(detail::add_clip_by_value(detail::side_of(x), detail::side_of(least), detail::side_of(most), name));
}
/// x, scaled down where needed so that its l2 norm, along the axes or of all elements, is at most `clip_norm`.
template <class T, int N> tensor<T, N> clip_by_norm(const operand<T, N>& x, hyper_parameter clip_norm, const std::vector<int>& axes = {}, op_name name = {}) {
  return tensor<T, N>(detail::add_clip_by_norm(detail::side_of(x), clip_norm, axes, name));
}
/// The same for a gradient: of a sparse one the rows as they stand. None stays none.
inline gradient_output clip_by_norm(const gradient_output& g, hyper_parameter clip_norm, op_name name = {}) {
  if (g.empty()) return g;
  const output clipped = detail::add_clip_by_norm({g.values(), false, tensor_value()}, clip_norm, {}, name);
  return g.is_sparse() ? gradient_output(indexed_slices{clipped, g.slices().indices, g.slices().dense_shape}) : gradient_output(clipped);
}
/// x, scaled down where needed so that its l2 norm divided by its number of elements is at most `clip_norm`.
template <class T, int N> tensor<T, N> clip_by_average_norm(const operand<T, N>& x, hyper_parameter clip_norm, op_name name = {}) {
  return tensor<T, N>(detail::add_clip_by_average_norm(detail::side_of(x), clip_norm, name));
}

/// The square root of the sum of the squares of all elements; of a sparse gradient, of its rows as they stand. None counts as zero. Throws
/// INVALID_ARGUMENT when there is no gradient, or one of another dtype than T.
template <class T = float> tensor<T, 0> global_norm(const std::vector<gradient_output>& all, op_name name = {}) { return tensor<T, 0>(detail::add_global_norm(all, dtype_of<T>, name)); }
template <class T = float> tensor<T, 0> global_norm(const std::vector<grad_and_variable>& all, op_name name = {}) { return global_norm<T>(detail::gradients_of(all), name); }

/// All gradients, scaled by the same factor so that their global norm is at most `clip_norm`, and that norm (of before):
/// `auto [clipped, norm] = clip_by_global_norm(gradients, 5.f)`. A norm that is not finite makes everything NaN. `use_norm`, if given, is the norm that was computed already.
template <class T = float>
std::pair<std::vector<gradient_output>, tensor<T, 0>> clip_by_global_norm(std::vector<gradient_output> all, hyper_parameter clip_norm, const tensor<T, 0>& use_norm = {}, op_name name = {}) {
  const output norm = detail::add_clip_by_global_norm(all, clip_norm, use_norm.raw(), dtype_of<T>, name);
  return {std::move(all), tensor<T, 0>(norm)};
}
template <class T = float>
std::pair<std::vector<grad_and_variable>, tensor<T, 0>> clip_by_global_norm(std::vector<grad_and_variable> all, hyper_parameter clip_norm, const tensor<T, 0>& use_norm = {}, op_name name = {}) {
  std::vector<gradient_output> gradients = detail::gradients_of(all);
  const output norm = detail::add_clip_by_global_norm(gradients, clip_norm, use_norm.raw(), dtype_of<T>, name);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].gradient = gradients[i];
  return {std::move(all), tensor<T, 0>(norm)};
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft::detail {

// What is clipped, the name of all the nodes, and the scope in which they are made.
class clipping {
 public:
  clipping(const side& x, const op_name& name, const char* otherwise)
      : full_(claim(x, name, otherwise)),
        names_(&scope_context::name_scope, full_),
        what_{input_of(otherwise, x, op_name(name.site)), name.site} {}

  const term& what() const { return what_; }
  term bound(const side& s, const char* name) const {
    return {s.number.empty() ? input_of(full_.c_str(), s, op_name(what_.site)) : output{&add_const(s.number, op_name(std::string_view(name), what_.site), &what_.value.from->owner()), 0}, what_.site};
  }
  term scalar(const hyper_parameter& p, const char* name) const { return scalar_of_parameter(p, what_.dtype(), what_.value.from->owner(), what_.site, name); }
  // The sum of the squares along axes, which stay as ones; along all when none are named.
  term sum_of_squares(const std::vector<int>& axes) const;
  output last(const char* op, std::vector<output> inputs) const { return add_node_at(op, std::move(inputs), full_, what_.site); }

 private:
  static std::string claim(const side& x, const op_name& name, const char* otherwise) {
    if (x.out.from == nullptr) throw error(error_code::invalid_argument, std::string(otherwise) + ": x is an empty tensor, not made by any op", name.site);
    return claim_name(x.out.from->owner(), name, otherwise);
  }
  std::string full_;
  name_scope_object names_;
  term what_;
};

WEFT_DECL term clipping::sum_of_squares(const std::vector<int>& axes) const {
  const term squares = apply("Mul", what_, what_, "mul");
  graph_state& to = what_.value.from->owner();
  output along;
  if (!axes.empty()) {
    const std::vector<std::int32_t> numbers(axes.begin(), axes.end());
    along = {&add_const(tensor_value::from<std::int32_t>({static_cast<std::int64_t>(numbers.size())}, numbers), op_name("axes", what_.site), &to), 0};
  } else {
    const auto number = [&](std::int32_t n) { return output{&add_const(tensor_value::scalar(n), op_name(what_.site), &to), 0}; };
    along = apply("Range", {number(0), apply("Rank", what_).value, number(1)}, what_.site).value;
  }
  return apply("Sum", {squares.value, along}, what_.site, {{"keep_dims", true}});
}

WEFT_DECL output add_clip_by_value(const side& x, const side& least, const side& most, const op_name& name) {
  const clipping c(x, name, "clip_by_value");
  const term low = c.bound(least, "min"), high = c.bound(most, "max");
  for (const term& b : {low, high})
    if (const auto both = broadcast_shapes(c.what().shape(), b.shape()); !both || !merge_shapes(*both, c.what().shape()))
      throw error(error_code::invalid_argument, "clip_by_value: a bound of shape " + b.shape().text() + " does not broadcast to the shape " + c.what().shape().text() + " of x", name.site);
  return c.last("Maximum", {minimum(c.what(), high).value, low.value});
}

WEFT_DECL output add_clip_by_norm(const side& x, const hyper_parameter& clip_norm, const std::vector<int>& axes, const op_name& name) {
  const clipping c(x, name, "clip_by_norm");
  // The root of zero has no derivative: it is kept out of the way.
  const term squares = c.sum_of_squares(axes), some = apply("Greater", squares, number_like(0, squares)), safe = select(some, squares, apply("OnesLike", squares));
  const term norm = select(some, apply("Sqrt", safe), squares);
  // A negative norm counts as zero.
  const term most = clip_norm.is_number() ? c.scalar(std::max(clip_norm.number(), 0.), "clip_norm") : maximum(c.scalar(clip_norm, "clip_norm"), number_like(0, norm));
  return c.last("Identity", {(c.what() * most / maximum(norm, most)).value});
}

WEFT_DECL output add_clip_by_average_norm(const side& x, const hyper_parameter& clip_norm, const op_name& name) {
  const clipping c(x, name, "clip_by_average_norm");
  const term count = cast(apply("Size", c.what()), c.what().dtype()), most = c.scalar(clip_norm, "clip_norm");
  const term inverse = apply("Rsqrt", c.sum_of_squares({}));
  return c.last("Identity", {(c.what() * most * minimum(inverse * count, 1. / most)).value});
}

WEFT_DECL std::vector<gradient_output> gradients_of(const std::vector<grad_and_variable>& all) {
  std::vector<gradient_output> out;
  for (const grad_and_variable& one : all) out.push_back(one.gradient);
  return out;
}

// The first gradient that is not none, and that all are of the same dtype.
WEFT_DECL const gradient_output& check_gradients_to_clip(const std::vector<gradient_output>& all, const char* who, dtype type, call_site site) {
  const gradient_output* first = nullptr;
  for (const gradient_output& g : all) {
    if (g.empty()) continue;
    if (first == nullptr) first = &g;
    if (g.dtype() != type)
      throw error(error_code::invalid_argument,
                  std::string(who) + ": the gradient '" + to_text(g.values()) + "' is " + to_text(g.dtype()) + ", not " + to_text(type) +
                      "; name the dtype, as in " + who + "<double>(...)",
                  site);
  }
  if (first == nullptr) throw error(error_code::invalid_argument, std::string(who) + ": there are no gradients", site);
  return *first;
}

WEFT_DECL output add_global_norm(const std::vector<gradient_output>& all, dtype type, const op_name& name) {
  const gradient_output& first = check_gradients_to_clip(all, "global_norm", type, name.site);
  const std::string full = claim_name(first.values().from->owner(), name, "global_norm");
  const name_scope_object names(&scope_context::name_scope, full);
  // Half the sum of squares of each where it is.
  std::vector<output> halves;
  for (const gradient_output& g : all) {
    if (g.empty()) continue;
    const auto with = colocate_with(operation(*g.values().from), name.site);
    halves.push_back(apply("L2Loss", {g.values()}, name.site).value);
  }
  const auto count = static_cast<std::int64_t>(halves.size());
  const term stacked = apply("Pack", std::move(halves), name.site, {{"N", count}}, "stack"),
             axis{{&add_const(tensor_value::from<std::int32_t>({1}, {0}), op_name(name.site), &first.values().from->owner()), 0},
                  name.site};
  const term sum = apply("Sum", stacked, axis);
  return add_node_at("Sqrt", {(sum * number_like(2, sum)).value}, full + "/global_norm", name.site);
}

WEFT_DECL output add_clip_by_global_norm(std::vector<gradient_output>& all, const hyper_parameter& clip_norm, const output& use_norm, dtype type, const op_name& name) {
  const gradient_output& first = check_gradients_to_clip(all, "clip_by_global_norm", type, name.site);
  graph_state& to = first.values().from->owner();
  const output norm = use_norm.from != nullptr ? use_norm : add_global_norm(all, type, op_name(name.site));
  const std::string full = claim_name(to, name, "clip_by_global_norm");
  const name_scope_object names(&scope_context::name_scope, full);
  // 1. The factor: one where the norm is small enough, not a number where it is not finite.
  const term size{norm, name.site}, most = scalar_of_parameter(clip_norm, type, to, name.site, "clip_norm");
  const term factor = most * minimum(1. / size, 1. / most), scale = factor + (size - size);
  // 2. Each where it is.
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    const auto with = colocate_with(operation(*all[i].values().from), name.site);
    const term scaled = term{all[i].values(), name.site} * scale;
    const output out = add_node_at("Identity", {scaled.value}, to.unique_scope(full + "/" + full.substr(full.rfind('/') + 1) + "/_" + std::to_string(i), name.site), name.site);
    all[i] = all[i].is_sparse() ? gradient_output(indexed_slices{out, all[i].slices().indices, all[i].slices().dense_shape}) : gradient_output(out);
  }
  return norm;
}

}  // namespace weft::detail
#endif

#endif
