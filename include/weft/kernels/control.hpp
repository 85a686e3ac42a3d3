#ifndef WEFT_KERNELS_CONTROL_HPP
#define WEFT_KERNELS_CONTROL_HPP
// Kernels that compute nothing: points to wait at, and ops that the executor carries out itself.

#include <weft/kernels/inputs.hpp>

#include <string_view>

#if WEFT_HAS_BODIES
namespace weft::detail {

/// Does nothing once everything it waits for is done.
class no_op_kernel final : public cheap_kernel {
 public:
  explicit no_op_kernel(const node&) {}
  void compute(kernel_context&) override {}
};

/// Feeds, fetches and transfers are the executor's own work; their kernels exist so that they are placed like all others.
class executor_kernel final : public cheap_kernel {
 public:
  explicit executor_kernel(const node&) {}
  void compute(kernel_context& context) override { context.fail(error_code::internal, "this op is carried out by the executor, its kernel was called"); }
};

/// The factory of a control op; nullptr for ops of other families.
inline kernel_factory control_kernel(std::string_view op) {
  if (op == "NoOp") return &make_kernel<no_op_kernel>;
  if (op == "_Arg" || op == "_Retval" || op == "_Send" || op == "_Recv") return &make_kernel<executor_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
