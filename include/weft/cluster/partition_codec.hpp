#ifndef WEFT_CLUSTER_PARTITION_CODEC_HPP
#define WEFT_CLUSTER_PARTITION_CODEC_HPP
// A whole partitioned graph in a message, for a client that asks what really runs.

#include <weft/cluster/graph_codec.hpp>
#include <weft/cluster/wire.hpp>
#include <weft/core/config.hpp>
#include <weft/partition/partitioned_graph.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

inline void encode_strings(wire_writer& to, const std::vector<std::string>& all) {
  to.count(all.size());
  for (const std::string& each : all) to.string(each);
}
inline std::vector<std::string> decode_strings(wire_reader& from) {
  std::vector<std::string> out(from.count(4));
  for (std::string& each : out) each = from.string();
  return out;
}

void encode_transfers(wire_writer& to, const std::vector<transfer>& all);
std::vector<transfer> decode_transfers(wire_reader& from);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void encode_transfers(wire_writer& to, const std::vector<transfer>& all) {
  std::vector<tensor_value> none;
  attr_encoder shapes(to, none);
  to.count(all.size());
  for (const transfer& t : all) {
    to.i64(t.edge).enumerator(t.kind).string(t.source).string(t.from).string(t.to).enumerator(t.dtype).i64(t.bytes.value_or(-1)).boolean(t.between_tasks).string(t.reason);
    shapes.write(t.shape);
    encode_strings(to, t.consumers);
  }
}

WEFT_DECL std::vector<transfer> decode_transfers(wire_reader& from) {
  const std::vector<tensor_value> none;
  attr_decoder shapes(from, none);
  std::vector<transfer> out(from.count(40));
  for (transfer& t : out) {
    t.edge = from.i64();
    t.kind = from.enumerator(transfer_kind::fetch);
    t.source = from.string();
    t.from = from.string();
    t.to = from.string();
    t.dtype = from.enumerator(dtype::uint64);
    if (const std::int64_t bytes = from.i64(); bytes >= 0) t.bytes = bytes;
    t.between_tasks = from.boolean();
    t.reason = from.string();
    shapes.read(t.shape);
    t.consumers = decode_strings(from);
  }
  return out;
}

#endif

}  // namespace detail

/// Writes parts, transfers and placement; tensors go into the message's body.
void encode_partitions(wire_writer& to, std::vector<tensor_value>& tensors, const partitioned_graph& all);

/// Reads what `encode_partitions` wrote, into graphs of these ops.
partitioned_graph decode_partitions(wire_reader& from, const std::vector<tensor_value>& tensors, const op_registry& ops);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void encode_partitions(wire_writer& to, std::vector<tensor_value>& tensors, const partitioned_graph& all) {
  to.count(all.parts().size());
  for (const part& p : all.parts()) {
    to.string(p.task);
    detail::encode_strings(to, p.feeds);
    detail::encode_strings(to, p.fetches);
    encode_nodes(to, tensors, p.graph.nodes(), 0);
  }
  const std::vector<transfer> edges(all.transfers().begin(), all.transfers().end());
  for (const auto* list : {&edges, &all.transfers().feeds(), &all.transfers().fetches()}) detail::encode_transfers(to, *list);
  to.count(all.placement().size());
  for (std::size_t i = 0; i < all.placement().size(); ++i) to.string(all.placement()[i].device).string(all.placement()[i].reason);
}

WEFT_DECL partitioned_graph decode_partitions(wire_reader& from, const std::vector<tensor_value>& tensors, const op_registry& ops) {
  std::vector<part> parts;
  for (std::size_t n = from.count(20); n > 0; --n) {
    std::string task = from.string();
    auto feeds = detail::decode_strings(from), fetches = detail::decode_strings(from);
    graph g(ops);
    decode_nodes(from, tensors, g, {});
    parts.push_back({std::move(task), std::move(g), std::move(feeds), std::move(fetches)});
  }
  auto edges = detail::decode_transfers(from), feeds = detail::decode_transfers(from), fetches = detail::decode_transfers(from);
  std::vector<placed_node> placed(from.count(8));
  for (placed_node& n : placed) {
    n.device = from.string();
    n.reason = from.string();
  }
  from.finish();
  return partitioned_graph(std::move(parts), transfer_table(std::move(edges), std::move(feeds), std::move(fetches)), placement(std::move(placed)));
}

#endif

}  // namespace weft

#endif
