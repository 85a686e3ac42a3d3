#ifndef WEFT_KERNELS_STATE_HANDLE_HPP
#define WEFT_KERNELS_STATE_HANDLE_HPP
// Where the queues and accumulators of a task live and how ops find them: under their shared name for all sessions, else under their node's name in the session that made them.

#include <weft/core/device_name.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/runtime/kernel.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// What a handle says instead of a container when the resource belongs to its session. No container can be called so.
inline constexpr const char* session_container = "(session)";
/// The container of such resources among the session's state.
inline constexpr const char* session_resources = "resources";

/// Fails for the handle of another task's resource, which would be looked for among this task's. Who can feed a handle can write anything into it.
inline void expect_own_task(const kernel_context& context, const resource_handle& handle) {
  const std::string& here = context.about().device();
  if (handle.device.empty() || here.empty() || handle.device == here) return;
  const auto theirs = try_parse_device_name(handle.device), ours = try_parse_device_name(here);
  const auto differ = [](const auto& a, const auto& b) { return a && b && *a != *b; };
  if (theirs && ours && !differ(theirs->job, ours->job) && !differ(theirs->task, ours->task)) return;
  context.fail("the handle of " + detail::quoted(handle.name) + " is of device " + detail::quoted(handle.device) + ", which is not of the task of " + here + "; ops run on the task of their resource");
}

/// The handle in input i: of a resource of this task, if there is one.
inline const resource_handle& handle_of(const kernel_context& context, int i = 0) {
  expect_dtype(context, i, dtype::resource);
  if (context.input(i).elements() != 1) context.fail("the handle must be a scalar, found shape " + context.input(i).shape().text());
  const resource_handle& handle = *context.input(i).data<resource_handle>();
  expect_own_task(context, handle);
  return handle;
}

/// The name of a resource that a node makes.
class resource_name {
 public:
  resource_name(const kernel_construction& what, const char* kind) {
    const auto text = [&](std::string_view attr) {
      const auto* found = what.about.find_attr<std::string>(attr);
      return found == nullptr ? std::string() : *found;
    };
    handle_.device = what.device;
    handle_.kind = kind;
    handle_.name = text("shared_name");
    handle_.container = text("container");
    if (!handle_.name.empty()) return;
    handle_.name = what.about.name();
    handle_.container = session_container;
  }
  const std::string& name() const noexcept { return handle_.name; }

  /// The resource, made by `make()` where there is none.
  template <class R, class Make> std::shared_ptr<R> find_or_make(kernel_context& context, Make&& make) const {
    if (handle_.container != session_container) return context.resources().find_or_make<R>(handle_.container, handle_.name, std::forward<Make>(make));
    resource_manager* session = context.environment().session_state;
    if (session == nullptr) context.fail(error_code::internal, "the step has no session state to keep '" + handle_.name + "' in");
    return session->find_or_make<R>(session_resources, handle_.name, std::forward<Make>(make));
  }
  /// Sets output 0 to the handle: a resource, or as TensorFlow's older ops have it a vector of container and name.
  void set_output(kernel_context& context) const {
    resource_handle handle = handle_;
    if (handle.container.empty()) handle.container = std::string(context.resources().default_container());
    if (context.about().output_dtype(0) == dtype::string) {
      tensor_value& out = context.allocate_output(0, dtype::string, shape{2});
      out.mutable_data<std::string>()[0] = handle.container;
      out.mutable_data<std::string>()[1] = handle.name;
      return;
    }
    *context.allocate_output(0, dtype::resource, shape()).mutable_data<resource_handle>() = std::move(handle);
  }

 private:
  resource_handle handle_;
};

/// The resource that input 0 names; fails when there is none.
template <class R> std::shared_ptr<R> resource_of(kernel_context& context, const char* kind) {
  if (context.input_count() == 0) context.fail(std::string("expected the handle of ") + kind + ", found no input");
  const tensor_value& in = context.input(0);
  std::string container, name;
  if (in.dtype() == dtype::string && in.elements() == 2) {
    container = in.data<std::string>()[0];
    name = in.data<std::string>()[1];
  } else {
    const resource_handle& handle = handle_of(context);
    container = handle.container;
    name = handle.name;
  }
  const bool own = container == session_container;
  const resource_manager* where = own ? context.environment().session_state : &context.resources();
  auto found = where == nullptr ? nullptr : where->find<R>(own ? session_resources : container, name);
  if (found == nullptr) context.fail(error_code::not_found, std::string("there is no ") + kind + " " + detail::quoted(name) + (own ? " in this session" : " in container " + detail::quoted(container)));
  return found;
}

}  // namespace weft::detail
#endif

#endif
