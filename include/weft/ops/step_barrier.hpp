#ifndef WEFT_OPS_STEP_BARRIER_HPP
#define WEFT_OPS_STEP_BARRIER_HPP
// A barrier of steps, weft's own: it decides which passes of the workers count for the update of a step, and holds each worker until that update is made.

#include <weft/graph/op_registry.hpp>
#include <weft/ops/shape_rules.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail {

inline void barrier_answers_shape(shape_context& c) {
  c.set_output(0, partial_shape({}));
  c.set_output(1, partial_shape({}));
}

// Arrive answers the step for which the pass counts, or -1 when it is stale, and a ticket; Wait takes the ticket, holds until that step is made, answers the step then and whether the pass counted.
inline constexpr op_row step_barrier_ops[] = {
    {"_StepBarrier() -> handle: resource", "replicas_to_aggregate: int >= 1; total_num_replicas: int >= 1; container: string = ''; shared_name: string = ''", scalar_shape, op_flags::stateful},
    {"_StepBarrierArrive(handle: resource, local_step: int64) -> stamp: int64, ticket: int64", "", barrier_answers_shape, op_flags::stateful},
    {"_StepBarrierWait(handle: resource, ticket: int64) -> step: int64, counted: bool", "", barrier_answers_shape, op_flags::stateful},
    {"_StepBarrierReady(handle: resource)", "begun: bool = false", nullptr, op_flags::stateful},
    {"_StepBarrierInterrupt(handle: resource)", "", nullptr, op_flags::stateful},
    {"_StepBarrierLeave(handle: resource)", "chief: bool = false", nullptr, op_flags::stateful},
    {"_StepBarrierAdvance(handle: resource, step: int64)", "reset: bool = false", nullptr, op_flags::stateful},
};

}  // namespace weft::detail
#endif

#endif
