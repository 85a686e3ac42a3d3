#ifndef WEFT_FORMAT_PARTITION_JSON_HPP
#define WEFT_FORMAT_PARTITION_JSON_HPP
// A partitioned graph as JSON, for programs that draw or compare partitions.

#include <weft/core/config.hpp>
#include <weft/format/json_writer.hpp>
#include <weft/partition/partitioned_graph.hpp>

#include <string>

namespace weft {

/// `{"parts": [{"task", "feeds", "fetches", "nodes": [{"name", "op", "device", "inputs", "outputs": [{"dtype", "shape"}]}]}], "transfers": [{"kind", "edge", "source", "consumers", "from", "to", "dtype", "shape",
/// "bytes", "betweenTasks", "reason"}]}`. Inputs are written as in a GraphDef (`x`, `x:1`, `^x`), shapes as lists with -1 for an open size, or null for an open rank; `bytes` is null where it is not known.
/// Equal partitions give equal texts. `indent` 0 writes one line.
std::string to_json(const partitioned_graph& g, int indent = 2);

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
namespace weft::detail {

inline void write_names(json_writer& out, const char* field, const std::vector<std::string>& names) {
  out.field(field).begin('[');
  for (const std::string& name : names) out.string(name);
  out.end(']');
}

inline void write_shape(json_writer& out, const partial_shape& s) {
  out.field("shape");
  if (!s.known_rank()) {
    out.null();
    return;
  }
  out.begin('[');
  for (const std::int64_t size : s.sizes()) out.small(size);
  out.end(']');
}

inline void write_node(json_writer& out, const node& n) {
  std::vector<std::string> inputs;
  for (const output& in : n.inputs()) inputs.push_back(to_text(in));
  for (const node* before : n.control_inputs()) inputs.push_back("^" + before->name());
  out.begin('{').field("name").string(n.name()).field("op").string(n.op()).field("device").string(n.device());
  write_names(out, "inputs", inputs);
  out.field("outputs").begin('[');
  for (const output_type& type : n.outputs()) {
    out.begin('{').field("dtype").string(to_text(type.dtype));
    write_shape(out, type.shape);
    out.end('}');
  }
  out.end(']').end('}');
}

inline void write_transfer(json_writer& out, const transfer& t) {
  out.begin('{').field("kind").string(to_text(t.kind)).field("edge").small(t.edge).field("source").string(t.source);
  write_names(out, "consumers", t.consumers);
  out.field("from").string(t.from).field("to").string(t.to).field("dtype").string(to_text(t.dtype));
  write_shape(out, t.shape);
  out.field("bytes");
  if (t.bytes) out.small(*t.bytes);
  else out.null();
  out.field("between_tasks").boolean(t.between_tasks).field("reason").string(t.reason).end('}');
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_json(const partitioned_graph& g, int indent) {
  detail::json_writer out(indent, false);
  out.begin('{').field("parts").begin('[');
  for (const part& p : g.parts()) {
    out.begin('{').field("task").string(p.task);
    detail::write_names(out, "feeds", p.feeds);
    detail::write_names(out, "fetches", p.fetches);
    out.field("nodes").begin('[');
    for (const node* n : p.graph.nodes()) detail::write_node(out, *n);
    out.end(']').end('}');
  }
  out.end(']').field("transfers").begin('[');
  for (const transfer& t : g.transfers().all()) detail::write_transfer(out, t);
  out.end(']').end('}');
  return out.take();
}

}  // namespace weft
#endif

#endif
