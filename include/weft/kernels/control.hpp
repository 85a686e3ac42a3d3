#ifndef WEFT_KERNELS_CONTROL_HPP
#define WEFT_KERNELS_CONTROL_HPP
// Kernels that compute nothing: points to wait at, and ops that the executor carries out itself.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/inputs.hpp>

#include <string_view>

namespace weft::detail {
/// The factory of an op that only orders others; nullptr for ops of other families.
kernel_factory control_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
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

WEFT_DECL kernel_factory control_kernel(std::string_view op) {
  if (op == "NoOp") return &make_kernel<no_op_kernel>;
  if (op == "_Arg" || op == "_Retval" || op == "_Send" || op == "_Recv") return &make_kernel<executor_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
