#ifndef WEFT_OPS_SENDRECV_HPP
#define WEFT_OPS_SENDRECV_HPP
// The nodes that partitioning adds: what crosses between devices, and where feeds enter and fetches leave a part.

#include <weft/graph/op_registry.hpp>
#include <weft/ops/shape_rules.hpp>

namespace weft::detail {

inline void define_sendrecv_ops(op_registry& ops) {
  for (const char* name : {"_Send", "_HostSend"})
    ops.add(op(name).input("tensor: T").attr("T: type").attr("tensor_name: string").attr("send_device: string").attr("send_device_incarnation: int").attr("recv_device: string").attr("client_terminated: bool = false").attr("_edge: int = -1").stateful());
  for (const char* name : {"_Recv", "_HostRecv"})
    ops.add(op(name).output("tensor: tensor_type").attr("tensor_type: type").attr("tensor_name: string").attr("send_device: string").attr("send_device_incarnation: int").attr("recv_device: string").attr("client_terminated: bool = false").attr("_edge: int = -1").stateful());
  ops.add(op("_Arg").output("output: T").attr("T: type").attr("index: int >= 0").stateful());
  ops.add(op("_Retval").input("input: T").attr("T: type").attr("index: int >= 0").stateful());
}

}  // namespace weft::detail

#endif
