#ifndef WEFT_OPS_CONTROL_HPP
#define WEFT_OPS_CONTROL_HPP
// Operations that order others, check and print.

#include <weft/graph/scope.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
#if WEFT_HAS_BODIES
inline void assert_shape(shape_context& c) { (void)c.with_rank(0, 0, "the condition"); }
inline void print_shape(shape_context& c) { (void)c.with_rank(0, 0, "the text"); }

inline constexpr op_row control_ops[] = {
    {"NoOp()"},
    {"ControlTrigger()"},
    {"Assert(condition: bool, data: T)", "T: list(type) >= 1; summarize: int = 3", assert_shape, op_flags::stateful},
    {"Print(input: T, data: U) -> output: T", "T: type; U: list(type); message: string = ''; first_n: int = -1; summarize: int = 3", unchanged_shape, op_flags::stateful},
    {"PrintV2(input: string)", "output_stream: string = 'stderr'; end: string = '\n'", print_shape, op_flags::stateful},
};
#endif
}  // namespace detail

/// Does nothing; useful to wait for its control dependencies (NoOp).
inline operation no_op(op_name name = {}) { return operation(detail::add_node("NoOp", {}, name)); }

/// Finishes when all of these have (NoOp with control inputs). Where they are pinned to several devices, each device has a part of
/// its own, so that one signal per device crosses, as in TensorFlow.
inline operation group(const std::vector<operation>& all, op_name name = {}) {
  // 1. By device, in the order of the device names.
  std::map<std::string, std::vector<const node*>> by_device;
  const node* any = nullptr;
  for (const operation& one : all)
    if (one.get() != nullptr) {
      by_device[one.get()->device()].push_back(one.get());
      any = one.get();
    }
  detail::graph_state& to = any != nullptr ? any->owner() : *detail::current_graph();
  const std::string wanted = name.text.empty() ? "group_deps" : std::string(name.text);
  const auto waits_for = [&](std::string text, std::vector<const node*> control, const std::string* device) {
    node_spec spec;
    spec.op = "NoOp";
    spec.name = std::move(text);
    spec.site = name.site;
    spec.control_inputs = std::move(control);
    if (device == nullptr) return operation(to.add(std::move(spec)));
    const detail::device_scope there(&detail::scope_context::devices, {parse_device_name(*device)});
    return operation(to.add(std::move(spec)));
  };
  // 2. One device: one node there. Several: one node on each, and one that waits for those.
  if (by_device.empty()) return waits_for(wanted, {}, nullptr);
  if (by_device.size() == 1) return waits_for(wanted, by_device.begin()->second, &by_device.begin()->first);
  const std::string unique = detail::claim_name(to, name, "group_deps");
  std::vector<const node*> parts;
  for (const auto& [device, members] : by_device) parts.push_back(waits_for(unique + "/NoOp" + (parts.empty() ? "" : "_" + std::to_string(parts.size())) + "/", members, &device).get());
  return waits_for(unique + "/", std::move(parts), nullptr);
}
inline operation group(std::initializer_list<operation> all, op_name name = {}) { return group(std::vector<operation>(all), name); }

/// Something to print or to report: a tensor, a variable, a text or a number.
class printed {
 public:
  template <class T, int N> printed(const operand<T, N>& x) : what_(detail::side_of(x)) {}
  template <class V, class T = typename value_traits<V>::dtype, std::enable_if_t<!std::is_void_v<T> && !detail::is_operand<V>::value, int> = 0>
  printed(const V& value) : what_{output(), false, value_traits<V>::make(value)} {}
  const detail::side& what() const noexcept { return what_; }

 private:
  detail::side what_;
};

namespace detail {
// The outputs to print; texts, numbers and reads of variables are named below `full`.
inline std::vector<output> realise_all(const std::vector<printed>& data, const std::string& full, const op_name& name, graph_state& to) {
  std::vector<output> out;
  for (const printed& one : data) {
    const side& what = one.what();
    if (what.number.empty() && what.out.from == nullptr) throw error(error_code::invalid_argument, "there is an empty tensor, not made by any op, among what is to be printed", name.site);
    const std::string below = full + "/data_" + std::to_string(out.size());
    out.push_back(!what.number.empty() ? add_const_at(what.number, below, name.site, to) : what.reads_variable ? add_read_for_op(what.out, op_name(std::string_view(below + "/"), name.site)) : what.out);
  }
  return out;
}
inline output add_assert(const output& condition, const std::vector<printed>& data, std::int64_t summarize, const op_name& name) {
  if (condition.from == nullptr) throw error(error_code::invalid_argument, "assert_that: the condition is an empty tensor, not made by any op", name.site);
  graph_state& to = condition.from->owner();
  const std::string full = claim_name(to, name, "Assert");
  std::vector<output> inputs = realise_all(data.empty() ? std::vector<printed>{printed("the condition does not hold")} : data, full, name, to);
  inputs.insert(inputs.begin(), condition);
  return add_node_at("Assert", std::move(inputs), full, name.site, {{"summarize", summarize}});
}
inline output add_print(const output& in, const std::vector<printed>& data, std::string_view message, std::int64_t summarize, const op_name& name) {
  if (in.from == nullptr) throw error(error_code::invalid_argument, "print: the operand is an empty tensor, not made by any op", name.site);
  graph_state& to = in.from->owner();
  const std::string full = claim_name(to, name, "Print");
  std::vector<output> inputs = realise_all(data, full, name, to);
  inputs.insert(inputs.begin(), in);
  return add_node_at("Print", std::move(inputs), full, name.site, {{"message", std::string(message)}, {"summarize", summarize}});
}
// `x` once these operations are done, on the device of x.
inline output add_after(const std::vector<operation>& after, const output& x, const op_name& name) {
  if (x.from == nullptr) throw error(error_code::invalid_argument, "with_dependencies: the operand is an empty tensor, not made by any op", name.site);
  const auto place = colocate_with(operation(*x.from), name.site);
  const auto order = control_dependencies(after);
  return {&add_node("Identity", {x}, name.text.empty() ? op_name("control_dependency", name.site) : name), 0};
}
}  // namespace detail

/// Fails the step with INVALID_ARGUMENT and a summary of `data` (the first `summarize` elements of each, all when it is negative) unless the condition, a scalar, holds (Assert). It acts in
/// steps that run it: make what relies on the condition wait for it by `control_dependencies` or `with_dependencies`.
template <int N> operation assert_that(const operand<bool, N>& condition, const std::vector<printed>& data, std::int64_t summarize, op_name name = {}) {
  static_assert(N == 0 || N == dynamic_rank, "weft: the condition must be a scalar; reduce it with reduce_all");
  return operation(*detail::add_assert(condition.as_input(name.site), data, summarize, name).from);
}
template <int N> operation assert_that(const operand<bool, N>& condition, const std::vector<printed>& data = {}, op_name name = {}) { return assert_that(condition, data, 3, name); }

/// x, and each time it is computed a line on standard error: `message`, then a summary of each of `data` in brackets (Print).
template <class T, int N> tensor<T, N> print(const operand<T, N>& x, const std::vector<printed>& data, std::string_view message = {}, std::int64_t summarize = 3, op_name name = {}) {
  return tensor<T, N>(detail::add_print(x.as_input(name.site), data, message, summarize, name));
}

/// x, available only when these operations are done (Identity).
template <class T, int N> tensor<T, N> with_dependencies(const std::vector<operation>& after, const operand<T, N>& x, op_name name = {}) {
  return tensor<T, N>(detail::add_after(after, x.as_input(name.site), name));
}

/// The same tensors, each available only when all of them are computed. Follows TensorFlow's `tuple`; the name is that of the scope of the new nodes.
template <class T, int N> std::vector<tensor<T, N>> tuple_of(const std::vector<tensor<T, N>>& all, op_name name = {}) {
  const auto scope = name_scope(name.text.empty() ? std::string_view("tuple") : name.text, name.site);
  const operation gate = group(std::vector<operation>(all.begin(), all.end()), op_name(name.site));
  std::vector<tensor<T, N>> out;
  for (const auto& one : all) out.push_back(with_dependencies({gate}, one, op_name(name.site)));
  return out;
}
template <class... T, int... N> std::tuple<tensor<T, N>...> tuple_of(const std::tuple<tensor<T, N>...>& all, op_name name = {}) {
  return std::apply(
      [&](const auto&... one) {
        const auto scope = name_scope(name.text.empty() ? std::string_view("tuple") : name.text, name.site);
        const operation gate = group({operation(one)...}, op_name(name.site));
        return std::tuple<tensor<T, N>...>{with_dependencies({gate}, one, op_name(name.site))...};
      },
      all);
}

namespace detail {
template <class... T, int... N, std::size_t... I> std::tuple<tensor<T, N>...> add_identity_n(const std::tuple<tensor<T, N>...>& all, const op_name& name, std::index_sequence<I...>) {
  const node& made = add_node("IdentityN", {std::get<I>(all).as_input(name.site)...}, name);
  return {tensor<T, N>(output{&made, static_cast<int>(I)})...};
}
}  // namespace detail

/// The same tensors (IdentityN), as outputs of one node.
template <class... T, int... N> std::tuple<tensor<T, N>...> identity_n(const std::tuple<tensor<T, N>...>& all, op_name name = {}) {
  static_assert(sizeof...(T) > 0, "weft: identity_n needs at least one tensor");
  return detail::add_identity_n(all, name, std::index_sequence_for<T...>());
}

}  // namespace weft

#endif
