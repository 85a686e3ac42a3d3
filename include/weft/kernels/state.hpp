#ifndef WEFT_KERNELS_STATE_HPP
#define WEFT_KERNELS_STATE_HPP
// Kernels of variables: handles, reads, assignments and updates.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/math.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/kernels/state_handle.hpp>
#include <weft/runtime/variable.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace weft::detail {
/// The factory of an op on variables; nullptr for ops of other families.
kernel_factory state_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

[[noreturn]] inline void fail_uninitialized(const kernel_context& context, const std::string& name) {
  context.fail(error_code::failed_precondition, "variable " + detail::quoted(name) + " is not initialized; run its initializer (global_variables_initializer) first");
}

/// The variable that input i names. Fails when there is none, or when it is of another dtype.
inline std::shared_ptr<variable_resource> variable_of(const kernel_context& context, dtype type, int i = 0) {
  const resource_handle& handle = handle_of(context, i);
  auto found = context.resources().find<variable_resource>(handle.container, handle.name);
  if (found == nullptr || !found->initialized()) fail_uninitialized(context, handle.name);
  if (found->dtype() != type) context.fail("variable " + detail::quoted(handle.name) + " is " + to_text(found->dtype()) + ", this op expects " + to_text(type));
  return found;
}

/// Names a variable: its container, and attribute `shared_name` or the node's name.
class var_handle_kernel final : public cheap_kernel {
 public:
  explicit var_handle_kernel(const kernel_construction& what) {
    const node& n = what.about;
    handle_.device = what.device;
    handle_.container = text_attr(n, "container");
    handle_.name = text_attr(n, "shared_name");
    if (handle_.name.empty()) handle_.name = n.name();
    handle_.kind = "variable";
  }
  static std::unique_ptr<kernel> make(const kernel_construction& what) { return std::make_unique<var_handle_kernel>(what); }
  void compute(kernel_context& context) override {
    tensor_value& out = context.allocate_output(0, dtype::resource, shape());
    resource_handle& handle = *out.mutable_data<resource_handle>();
    handle = handle_;
    if (handle.container.empty()) handle.container = std::string(context.resources().default_container());
  }

 private:
  static std::string text_attr(const node& n, std::string_view name) {
    const auto* text = n.find_attr<std::string>(name);
    return text == nullptr ? std::string() : *text;
  }
  resource_handle handle_;
};

/// The value of a variable; its elements are shared, later updates do not change them.
class read_variable_kernel final : public cheap_kernel {
 public:
  explicit read_variable_kernel(const node& n) : type_(type_attr(n, "dtype")) {}
  void compute(kernel_context& context) override {
    expect_inputs(context, 1);
    context.set_output(0, variable_of(context, type_)->read());
  }

 private:
  dtype type_;
};

/// Makes a value that of a variable, which comes into being by it.
class assign_variable_kernel final : public cheap_kernel {
 public:
  explicit assign_variable_kernel(const node& n) : type_(type_attr(n, "dtype")) {
    const bool* validate = n.find_attr<bool>("validate_shape");
    validate_shape_ = validate != nullptr && *validate;
  }
  WEFT_INLINE void compute(kernel_context& context) override;

 private:
  dtype type_;
  bool validate_shape_;
};

inline void assign_variable_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  const resource_handle handle = handle_of(context);
  expect_dtype(context, 1, type_);
  buffer_pool* pool = context.environment().buffers;
  const auto variable = context.resources().find_or_make<variable_resource>(handle.container, handle.name, [&] {
    return std::make_shared<variable_resource>(handle.name, type_, partial_shape(), pool == nullptr ? nullptr : pool->shared_from_this());
  });
  if (variable->dtype() != type_) context.fail("variable '" + handle.name + "' is " + to_text(variable->dtype()) + ", the value is " + to_text(type_));
  tensor_value value = context.take_input(1);
  if (validate_shape_ && variable->initialized()) {
    const shape held = variable->read().shape();
    if (held != value.shape()) context.fail("variable '" + handle.name + "' has shape " + held.text() + ", the value has shape " + value.shape().text());
  }
  variable->assign(std::move(value));
}

/// Adds a value to a variable or subtracts it, atomically, in place while nobody else holds the elements.
class update_variable_kernel final : public kernel {
 public:
  explicit update_variable_kernel(const node& n)
      : type_(type_attr(n, "dtype")), rows_(*find_pair_op(n.op() == "AssignSubVariableOp" ? "Sub" : "Add"), type_) {
    if (!rows_.exists()) fail_without_loop(n, type_);
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
  pair_rows rows_;
};

inline void update_variable_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 1, type_);
  const tensor_value& change = context.input(1);
  const auto variable = variable_of(context, type_);
  variable->replace([&](const tensor_value& current, tensor_value& next) {
    if (current.shape() != change.shape())
      context.fail("variable '" + variable->name() + "' has shape " + current.shape().text() + ", the change has shape " + change.shape().text() + "; they must be equal");
    rows_.run({current.raw_data(), true}, {change.raw_data(), true}, next.mutable_raw_data(), static_cast<std::size_t>(change.elements()));
  });
}

/// Whether a variable holds a value.
class is_initialized_kernel final : public cheap_kernel {
 public:
  explicit is_initialized_kernel(const node&) {}
  void compute(kernel_context& context) override {
    expect_inputs(context, 1);
    const resource_handle& handle = handle_of(context);
    const auto found = context.resources().find<variable_resource>(handle.container, handle.name);
    context.set_output(0, tensor_value::scalar(found != nullptr && found->initialized()));
  }
};

/// Forgets a resource.
class destroy_resource_kernel final : public cheap_kernel {
 public:
  explicit destroy_resource_kernel(const node& n) {
    const bool* ignore = n.find_attr<bool>("ignore_lookup_error");
    ignore_missing_ = ignore == nullptr || *ignore;
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, 1);
    const resource_handle& handle = handle_of(context);
    if (!context.resources().erase(handle.container, handle.name) && !ignore_missing_)
      context.fail(error_code::not_found, "there is no resource " + detail::quoted(handle.name) + " in container " + detail::quoted(handle.container));
  }

 private:
  bool ignore_missing_;
};

WEFT_DECL kernel_factory state_kernel(std::string_view op) {
  if (op == "VarHandleOp") return &var_handle_kernel::make;
  if (op == "ReadVariableOp") return &make_kernel<read_variable_kernel>;
  if (op == "AssignVariableOp") return &make_kernel<assign_variable_kernel>;
  if (op == "AssignAddVariableOp" || op == "AssignSubVariableOp") return &make_kernel<update_variable_kernel>;
  if (op == "VarIsInitializedOp") return &make_kernel<is_initialized_kernel>;
  if (op == "DestroyResourceOp") return &make_kernel<destroy_resource_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
