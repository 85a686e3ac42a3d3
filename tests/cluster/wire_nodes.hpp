#ifndef WEFT_TESTS_CLUSTER_WIRE_NODES_HPP
#define WEFT_TESTS_CLUSTER_WIRE_NODES_HPP
// Nodes as they stand in a message: anything may be in them.

#include <weft/cluster/wire.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hostile {

struct wire_node {
  std::string name = "n", op = "NoOp", device = "";
  std::vector<std::pair<std::uint32_t, std::uint32_t>> inputs = {};
  std::vector<std::uint32_t> controls = {};
  std::string outputs = std::string(4, '\0'), attrs = std::string(4, '\0');
};

/// The nodes of a graph that has none before.
inline void put_nodes(weft::wire_writer& to, const std::vector<wire_node>& nodes) {
  to.count(0).count(nodes.size());
  for (const wire_node& n : nodes) {
    to.string(n.name).string(n.op).string(n.device).count(n.inputs.size());
    for (const auto& [node, index] : n.inputs) to.u32(node).u32(index);
    to.count(n.controls.size());
    for (const std::uint32_t c : n.controls) to.u32(c);
    to.raw(n.outputs).raw(n.attrs);
  }
}

/// Attributes: name, number of the kind, content.
struct wire_attr {
  std::string name;
  std::uint8_t kind;
  std::string content;
};
inline std::string attrs(const std::vector<wire_attr>& all) {
  weft::wire_writer to;
  to.count(all.size());
  for (const wire_attr& each : all) to.string(each.name).u8(each.kind).raw(each.content);
  return to.take();
}
inline std::string attr(const std::string& name, std::uint8_t kind, const std::string& content) { return attrs({{name, kind, content}}); }
inline wire_attr type_attr(const std::string& name, std::uint8_t type) { return {name, 5, std::string(1, static_cast<char>(type))}; }
inline wire_attr number_attr(const std::string& name, std::int64_t number) {
  weft::wire_writer to;
  return {name, 2, to.i64(number).take()};
}
inline wire_attr text_attr(const std::string& name, std::string_view text) {
  weft::wire_writer to;
  return {name, 1, to.string(text).take()};
}

}  // namespace hostile

#endif
