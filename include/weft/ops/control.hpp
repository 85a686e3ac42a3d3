#ifndef WEFT_OPS_CONTROL_HPP
#define WEFT_OPS_CONTROL_HPP
// Operations that only order others.

#include <weft/graph/scope.hpp>
#include <weft/ops/shape_rules.hpp>

#include <initializer_list>
#include <map>
#include <string>
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

}  // namespace weft

#endif
