#ifndef WEFT_GRAPH_SCOPE_HPP
#define WEFT_GRAPH_SCOPE_HPP
// Scopes of the thread: where nodes go, what they are called, in which container their state lives, what they wait for, with what they share a device.
// Each comes as an object that acts until the end of its block, and as a function around a callable, whose result it returns.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
// Puts one member of the thread's scopes back when the block ends.
template <class Member> class scope_object {
 public:
  scope_object(Member scope_context::*member, Member changed) : member_(member), saved_(std::exchange(thread_scopes().top().*member, std::move(changed))) {}
  scope_object(const scope_object&) = delete;
  scope_object& operator=(const scope_object&) = delete;
  ~scope_object() { thread_scopes().top().*member_ = std::move(saved_); }

 private:
  Member scope_context::*member_;
  Member saved_;
};
using device_scope = scope_object<std::vector<device_entry>>;
using name_scope_object = scope_object<std::string>;
using container_scope = scope_object<std::string>;
using control_scope = scope_object<std::vector<std::shared_ptr<control_frame>>>;

class colocation_scope {
 public:
  explicit colocation_scope(std::vector<const node*> with)
      : colocation_(&scope_context::colocation, std::move(with)), devices_(&scope_context::devices, std::vector<device_entry>()) {}

 private:
  scope_object<std::vector<const node*>> colocation_;
  device_scope devices_;
};

std::vector<device_entry> devices_and(device_entry inner);
void check_container(std::string_view name, call_site where);
}  // namespace detail

/// Nodes made in the block go to this device, where an inner scope does not say otherwise; parts left open are taken from outer
/// scopes. Throws INVALID_ARGUMENT at this line when the device string is malformed.
[[nodiscard]] inline detail::device_scope with_device(std::string_view device, call_site where = call_site::here()) {
  return {&detail::scope_context::devices, detail::devices_and(parse_device_name(device, where))};
}
/// A function chooses the device of each node; its answer replaces what inner scopes said.
[[nodiscard]] inline detail::device_scope with_device(device_function choose) {
  return {&detail::scope_context::devices, detail::devices_and(std::move(choose))};
}
/// `with_device(nullptr)`: nodes made in the block ignore the outer device scopes.
[[nodiscard]] inline detail::device_scope with_device(std::nullptr_t) {
  return {&detail::scope_context::devices, detail::devices_and(detail::device_entry())};
}
/// Calls `body` inside a device scope and returns what it returns.
template <class Body> decltype(auto) with_device(std::string_view device, Body&& body, call_site where = call_site::here()) {
  const auto scope = with_device(device, where);
  return std::forward<Body>(body)();
}

/// Names of nodes made in the block begin with `name/`; the name is made unique. A name that ends in '/' re-enters a scope as it is;
/// an empty name leaves all scopes.
[[nodiscard]] inline detail::name_scope_object name_scope(std::string_view name, call_site where = call_site::here()) {
  std::string full;
  if (!name.empty() && name.back() == '/') {
    full = std::string(name.substr(0, name.size() - 1));
    detail::graph_state::check_scope(full, where);
  } else if (!name.empty()) {
    const std::string& outer = detail::thread_scopes().top().name_scope;
    full = detail::current_graph()->unique_scope(outer.empty() ? std::string(name) : outer + "/" + std::string(name), where);
  }
  return {&detail::scope_context::name_scope, std::move(full)};
}
/// Calls `body` inside a name scope and returns what it returns.
template <class Body> decltype(auto) name_scope(std::string_view name, Body&& body, call_site where = call_site::here()) {
  const auto scope = name_scope(name, where);
  return std::forward<Body>(body)();
}

/// Variables, queues and other state made in the block live in this container of their task, which `session::reset` can clear without touching others, as TensorFlow's `tf.container`. An inner scope
/// replaces an outer one; an empty name means the task's own container, which is called as its job. What is told a container by its options keeps that. A queue or accumulator without a shared name belongs
/// to its session all the same. Throws INVALID_ARGUMENT at this line unless the name begins with a letter, digit or '.' and goes on with these, '-' and '/'.
[[nodiscard]] inline detail::container_scope with_container(std::string_view name, call_site where = call_site::here()) {
  detail::check_container(name, where);
  return {&detail::scope_context::container, std::string(name)};
}
/// Calls `body` inside a container scope and returns what it returns.
template <class Body> decltype(auto) with_container(std::string_view name, Body&& body, call_site where = call_site::here()) {
  const auto scope = with_container(name, where);
  return std::forward<Body>(body)();
}

/// Nodes made in the block run after these operations. Empty operations are no wait.
[[nodiscard]] inline detail::control_scope control_dependencies(const std::vector<operation>& after) {
  auto frame = std::make_shared<detail::control_frame>();
  for (const operation& op : after)
    if (op.get() != nullptr && std::find(frame->inputs.begin(), frame->inputs.end(), op.get()) == frame->inputs.end()) frame->inputs.push_back(op.get());
  auto frames = detail::thread_scopes().top().control;
  frames.push_back(std::move(frame));
  return {&detail::scope_context::control, std::move(frames)};
}
[[nodiscard]] inline detail::control_scope control_dependencies(std::initializer_list<operation> after) { return control_dependencies(std::vector<operation>(after)); }
/// `control_dependencies(nullptr)`: nodes made in the block ignore the outer control dependencies.
[[nodiscard]] inline detail::control_scope control_dependencies(std::nullptr_t) { return {&detail::scope_context::control, {}}; }
/// Calls `body` inside the scope and returns what it returns.
template <class Body> decltype(auto) control_dependencies(std::initializer_list<operation> after, Body&& body) {
  const auto scope = control_dependencies(after);
  return std::forward<Body>(body)();
}

/// Nodes made in the block share the device of this operation, whatever outer device scopes say.
[[nodiscard]] inline detail::colocation_scope colocate_with(const operation& with, call_site where = call_site::here()) {
  if (with.get() == nullptr) throw error(error_code::invalid_argument, "colocate_with: the operation is empty", where);
  auto stack = detail::thread_scopes().top().colocation;
  stack.push_back(with.get());
  return detail::colocation_scope(std::move(stack));
}
/// `colocate_with(nullptr)`: nodes made in the block are free of outer colocation.
[[nodiscard]] inline detail::colocation_scope colocate_with(std::nullptr_t) { return detail::colocation_scope({}); }
/// Calls `body` inside the scope and returns what it returns.
template <class Body> decltype(auto) colocate_with(const operation& with, Body&& body, call_site where = call_site::here()) {
  const auto scope = colocate_with(with, where);
  return std::forward<Body>(body)();
}

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL std::vector<device_entry> devices_and(device_entry inner) {
  std::vector<device_entry> out = thread_scopes().top().devices;
  out.push_back(std::move(inner));
  return out;
}

WEFT_DECL void check_container(std::string_view name, call_site where) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.'; };
  for (std::size_t i = 0; i < name.size(); ++i)
    if (!plain(name[i]) && (i == 0 || (name[i] != '-' && name[i] != '/')))
      throw error(error_code::invalid_argument, "with_container: the name " + quoted(name) + " must begin with a letter, digit or '.' and go on with these, '-' and '/'", where);
}

}  // namespace weft::detail
#endif

#endif
