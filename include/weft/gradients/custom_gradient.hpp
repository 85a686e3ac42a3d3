#ifndef WEFT_GRADIENTS_CUSTOM_GRADIENT_HPP
#define WEFT_GRADIENTS_CUSTOM_GRADIENT_HPP
// A function of tensors with a gradient of its own, in place of the one that follows from the ops it uses.

#include <weft/core/config.hpp>
#include <weft/gradients/gradient_context.hpp>
#include <weft/graph/tensor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

// From the gradients of the results to those of the arguments; an empty output for none.
using custom_gradient_body = std::function<std::vector<output>(const std::vector<output>&)>;
struct custom_gradient_rule : kept_object {
  custom_gradient_rule(custom_gradient_body f, std::size_t n) : function(std::move(f)), results(n) {}
  custom_gradient_body function;
  std::size_t results;
};

// Passes the results and arguments of a function through one node (IdentityN) whose gradient is this rule. The node; its first outputs are the results.
const node& add_custom_gradient(const std::vector<output>& results, const std::vector<output>& arguments, custom_gradient_body rule, call_site site);
// The rule that a node with this `_gradient_op_type` got in this graph, or nullptr.
std::shared_ptr<const custom_gradient_rule> find_custom_gradient(const graph_state& of, const std::string& type);
void call_custom_gradient(const custom_gradient_rule& rule, gradient_context& context);

template <class T> struct as_tuple {
  using type = std::tuple<T>;
  static type of(T v) { return type(std::move(v)); }
};
template <class... T> struct as_tuple<std::tuple<T...>> {
  using type = std::tuple<T...>;
  static type of(type v) { return v; }
};
template <class T, int N> tensor<T, N> tensor_of(const operand<T, N>& x, call_site where) { return tensor<T, N>(x.as_input(where)); }
template <class Tuple> std::vector<output> outputs_of(const Tuple& tensors) {
  return std::apply([](const auto&... t) { return std::vector<output>{t.raw()...}; }, tensors);
}
template <class Tuple, std::size_t... I> Tuple tensors_of(const output* from, std::index_sequence<I...>) { return Tuple(std::tuple_element_t<I, Tuple>(from[I])...); }

template <class F> class custom_gradient_function {
 public:
  custom_gradient_function(F f, call_site where) : function_(std::move(f)), site_(where) {}

  template <class... X> auto operator()(const X&... x) const { return apply(tensor_of(x, site_)...); }

 private:
  template <class... X> auto apply(const X&... x) const {
    auto [result, differentiate] = [&] {
      const kept_function_scope kept;
      return function_(X(x.raw())...);
    }();
    using results = as_tuple<decltype(result)>;
    using tuple = typename results::type;
    constexpr auto count = std::tuple_size_v<tuple>;
    const auto rule = [differentiate = differentiate](const std::vector<output>& gradients) {
      auto found = std::apply(differentiate, tensors_of<tuple>(gradients.data(), std::make_index_sequence<count>()));
      const auto all = as_tuple<decltype(found)>::of(found);
      static_assert(std::tuple_size_v<std::decay_t<decltype(all)>> == sizeof...(X), "weft: the gradient of a custom_gradient must return one tensor for each argument of the function");
      return outputs_of(all);
    };
    const node& made = add_custom_gradient(outputs_of(results::of(result)), {x.raw()...}, rule, site_);
    std::vector<output> outputs;
    for (std::size_t i = 0; i < count; ++i) outputs.push_back({&made, static_cast<int>(i)});
    const auto through = tensors_of<tuple>(outputs.data(), std::make_index_sequence<count>());
    if constexpr (std::is_same_v<tuple, decltype(result)>) return through;
    else return std::get<0>(through);
  }
  F function_;
  call_site site_;
};

}  // namespace detail

/// Gives a function of tensors its own gradient (tf.custom_gradient). `f(x...)` returns a pair: the result, a tensor or a tuple of tensors, and a
/// function from the gradients of the results to those of the arguments, a tensor or a tuple; an empty tensor stands for none. The graph keeps that
/// function: it may capture what `f` was given and made, and of what was made outside of `f` nothing that holds the graph, lest the graph lives for ever.
template <class F> detail::custom_gradient_function<F> custom_gradient(F f, call_site where = call_site::here()) { return {std::move(f), where}; }

#if WEFT_HAS_BODIES
namespace detail {

WEFT_DECL const node& add_custom_gradient(const std::vector<output>& results, const std::vector<output>& arguments, custom_gradient_body rule, call_site site) {
  std::vector<output> all = results;
  all.insert(all.end(), arguments.begin(), arguments.end());
  for (const output& o : all)
    if (o.from == nullptr) throw error(error_code::invalid_argument, "custom_gradient: a result or an argument is an empty tensor, not made by any op", site);
  const std::size_t number = all[0].from->owner().keep(std::make_shared<const custom_gradient_rule>(std::move(rule), results.size()));
  return add_node("IdentityN", std::move(all), op_name(site), {{"_gradient_op_type", "CustomGradient-" + std::to_string(number)}});
}

WEFT_DECL std::shared_ptr<const custom_gradient_rule> find_custom_gradient(const graph_state& of, const std::string& type) {
  constexpr std::string_view prefix = "CustomGradient-";
  if (type.size() <= prefix.size() || type.size() > prefix.size() + 9 || type.compare(0, prefix.size(), prefix) != 0) return nullptr;
  std::size_t number = 0;
  for (std::size_t i = prefix.size(); i < type.size(); ++i) {
    if (type[i] < '0' || type[i] > '9') return nullptr;
    number = number * 10 + static_cast<std::size_t>(type[i] - '0');
  }
  const std::vector<std::shared_ptr<const kept_object>> kept = of.kept();
  return number < kept.size() ? std::dynamic_pointer_cast<const custom_gradient_rule>(kept[number]) : nullptr;
}

WEFT_DECL void call_custom_gradient(const custom_gradient_rule& rule, gradient_context& context) {
  std::vector<output> arrived;
  for (std::size_t i = 0; i < rule.results; ++i) arrived.push_back(context.gradient(static_cast<int>(i)));
  const std::vector<output> found = rule.function(arrived);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].from != nullptr) context.set(static_cast<int>(rule.results + i), found[i]);
}

}  // namespace detail
#endif

}  // namespace weft

#endif
