#ifndef WEFT_GRAPH_DOT_HPP
#define WEFT_GRAPH_DOT_HPP
// A graph in Graphviz's language: one box per device, control edges dashed, data edges with dtype and shape.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

namespace detail {

std::string dot_quoted(std::string_view text);

std::string dot_nodes(const graph& g, const std::string& prefix);

std::string dot_edges(const graph& g, const std::string& prefix);

}  // namespace detail

/// The graph for `dot -Tsvg`.
std::string to_dot(const graph& g);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out + "\"";
}

// The nodes of one graph, in a box per device; `prefix` keeps the names of several graphs in one drawing apart.
WEFT_DECL std::string dot_nodes(const graph& g, const std::string& prefix) {
  std::map<std::string, std::vector<const node*>> by_device;
  for (const node* n : g.nodes()) by_device[n->device()].push_back(n);
  std::string out;
  for (const auto& [device, nodes] : by_device) {
    const std::string indent = device.empty() ? "  " : "    ";
    if (!device.empty()) out += "  subgraph " + dot_quoted("cluster " + prefix + device) + " {\n    label=" + dot_quoted(device) + ";\n";
    for (const node* n : nodes) out += indent + dot_quoted(prefix + n->name()) + " [label=" + dot_quoted(n->name() + "\n" + n->op()) + "];\n";
    if (!device.empty()) out += "  }\n";
  }
  return out;
}

WEFT_DECL std::string dot_edges(const graph& g, const std::string& prefix) {
  std::string out;
  for (const node* n : g.nodes()) {
    for (const output& in : n->inputs())
      out += "  " + dot_quoted(prefix + in.from->name()) + " -> " + dot_quoted(prefix + n->name()) + " [label=" +
             dot_quoted(to_text(in.from->output_dtype(in.index)) + in.from->output_shape(in.index).text()) + "];\n";
    for (const node* before : n->control_inputs())
      out += "  " + dot_quoted(prefix + before->name()) + " -> " + dot_quoted(prefix + n->name()) + " [style=dashed];\n";
  }
  return out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_dot(const graph& g) {
  return "digraph {\n  node [shape=box];\n" + detail::dot_nodes(g, "") + detail::dot_edges(g, "") + "}\n";
}

}  // namespace weft
#endif

#endif
