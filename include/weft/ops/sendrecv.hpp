#ifndef WEFT_OPS_SENDRECV_HPP
#define WEFT_OPS_SENDRECV_HPP
// The nodes that partitioning and the passes over a part add: what crosses between devices, where feeds enter and fetches leave a part, and elementwise nodes that became one.

#include <weft/graph/op_registry.hpp>
#include <weft/ops/shape_rules.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail {

#define WEFT_CROSSING "tensor_name: string; send_device: string; send_device_incarnation: int; recv_device: string; client_terminated: bool = false; _edge: int = -1"
inline constexpr op_row sendrecv_ops[] = {
    {"_Send _HostSend(tensor: T)", "T: type; " WEFT_CROSSING, nullptr, op_flags::stateful},
    {"_Recv _HostRecv() -> tensor: tensor_type", "tensor_type: type; " WEFT_CROSSING, nullptr, op_flags::stateful},
    {"_Arg() -> output: T", "T: type; index: int >= 0", nullptr, op_flags::stateful},
    {"_Retval(input: T)", "T: type; index: int >= 0", nullptr, op_flags::stateful},
    {"_Fused(inputs: N * T) -> output: T", "N: int >= 1; T: {float, double}; ops: list(string) >= 1; names: list(string) >= 1; operands: list(int)", nullptr},
};
#undef WEFT_CROSSING

}  // namespace weft::detail
#endif

#endif
