#ifndef WEFT_OPS_STANDARD_HPP
#define WEFT_OPS_STANDARD_HPP
// The registry of TensorFlow's ops that weft knows.

#include <weft/ops/accumulator.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/array_join.hpp>
#include <weft/ops/array_layout.hpp>
#include <weft/ops/array_select.hpp>
#include <weft/ops/array_slice.hpp>
#include <weft/ops/control.hpp>
#include <weft/ops/file.hpp>
#include <weft/ops/linear.hpp>
#include <weft/ops/loaded.hpp>
#include <weft/ops/math.hpp>
#include <weft/ops/nn.hpp>
#include <weft/ops/nn_conv.hpp>
#include <weft/ops/queue.hpp>
#include <weft/ops/random.hpp>
#include <weft/ops/reduce.hpp>
#include <weft/ops/reduce_segments.hpp>
#include <weft/ops/sendrecv.hpp>
#include <weft/ops/state.hpp>
#include <weft/ops/step_barrier.hpp>
#include <weft/ops/training.hpp>

namespace weft {

#if WEFT_HAS_BODIES
/// TensorFlow's ops that weft knows; copy it to add own ops. Thread-safe.
WEFT_DECL const op_registry& standard_ops() {
  static const op_registry all = [] {
    op_registry ops;
    ops.add(detail::accumulator_ops);
    ops.add(detail::array_ops);
    ops.add(detail::array_join_ops);
    ops.add(detail::array_layout_ops);
    ops.add(detail::array_select_ops);
    ops.add(detail::array_slice_ops);
    ops.add(detail::control_ops);
    ops.add(detail::file_ops);
    ops.add(detail::linear_ops);
    ops.add(detail::loaded_ops);
    ops.add(detail::math_ops);
    ops.add(detail::nn_ops);
    ops.add(detail::nn_conv_ops);
    ops.add(detail::queue_ops);
    ops.add(detail::random_ops);
    ops.add(detail::reduce_ops);
    ops.add(detail::sendrecv_ops);
    ops.add(detail::state_ops);
    ops.add(detail::step_barrier_ops);
    ops.add(detail::training_ops);
    return ops;
  }();
  return all;
}
#endif

}  // namespace weft

#endif
