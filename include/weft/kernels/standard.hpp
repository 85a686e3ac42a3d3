#ifndef WEFT_KERNELS_STANDARD_HPP
#define WEFT_KERNELS_STANDARD_HPP
// The kernels that every task has unless it is given others.

#include <weft/core/config.hpp>
#include <weft/kernels/accumulator.hpp>
#include <weft/kernels/array.hpp>
#include <weft/kernels/array_join.hpp>
#include <weft/kernels/array_layout.hpp>
#include <weft/kernels/array_select.hpp>
#include <weft/kernels/array_slice.hpp>
#include <weft/kernels/array_values.hpp>
#include <weft/kernels/cast.hpp>
#include <weft/kernels/control.hpp>
#include <weft/kernels/fused.hpp>
#include <weft/kernels/linear.hpp>
#include <weft/kernels/linear_qr.hpp>
#include <weft/kernels/math.hpp>
#include <weft/kernels/nn.hpp>
#include <weft/kernels/nn_conv.hpp>
#include <weft/kernels/nn_depthwise.hpp>
#include <weft/kernels/nn_norm.hpp>
#include <weft/kernels/nn_pool.hpp>
#include <weft/kernels/queue.hpp>
#include <weft/kernels/random.hpp>
#include <weft/kernels/reduce.hpp>
#include <weft/kernels/reduce_scan.hpp>
#include <weft/kernels/reduce_segments.hpp>
#include <weft/kernels/state.hpp>
#include <weft/kernels/state_rows.hpp>
#include <weft/kernels/step_barrier.hpp>
#include <weft/kernels/training.hpp>
#include <weft/ops/standard_catalogue.hpp>
#include <weft/runtime/kernel.hpp>

#include <string>
#include <utility>

namespace weft {

/// The standard kernels for the device type CPU; their catalogue is `standard_catalogue()`. Copy it to add own kernels.
const kernel_registry& standard_kernels();

#if WEFT_HAS_BODIES
namespace detail {
inline kernel_factory standard_factory(const std::string& op) {
  for (const auto family : {math_kernel, cast_kernel_of, reduction_kernel, scan_kernel, segment_kernel, linear_kernel, linear_qr_kernel, array_kernel, array_values_kernel, array_join_kernel, array_slice_kernel,
                            array_layout_kernel, array_select_kernel, nn_kernel, nn_conv_kernel, nn_depthwise_kernel, nn_pool_kernel,
                            nn_norm_kernel, random_kernel_of, state_kernel, state_rows_kernel, training_kernel, queue_kernel, accumulator_kernel, step_barrier_kernel, control_kernel, fused_kernel_of})
    if (const kernel_factory factory = family(op)) return factory;
  fail(error_code::internal, "the catalogue of standard kernels names '" + op + "', which has none");
}
}  // namespace detail

WEFT_DECL const kernel_registry& standard_kernels() {
  static const kernel_registry registry = [] {
    kernel_registry out;
    detail::catalogue::for_each_standard_kernel([&](kernel_entry entry) {
      const kernel_factory factory = detail::standard_factory(entry.op);
      out.add(std::move(entry), factory);
    });
    return out;
  }();
  return registry;
}
#endif

}  // namespace weft

#endif
