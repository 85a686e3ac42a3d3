#ifndef WEFT_PARTITION_COMPARE_HPP
#define WEFT_PARTITION_COMPARE_HPP
// A partitioned graph as a drawing, and what differs between two of them.

#include <weft/core/config.hpp>
#include <weft/graph/dot.hpp>
#include <weft/partition/partitioned_graph.hpp>

#include <string>
#if WEFT_HAS_BODIES
#include <cstdint>
#include <map>
#include <set>
#endif

namespace weft {

/// The parts for `dot -Tsvg`: one box per device, transfers in bold from `_Send` to `_Recv` with their sizes.
std::string to_dot(const partitioned_graph& g);

/// What differs, one line each: `- ` stands only in `a`, `+ ` only in `b`. Empty when they are equal.
std::string difference(const partitioned_graph& a, const partitioned_graph& b);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL std::string to_dot(const partitioned_graph& g) {
  std::string out = "digraph {\n  node [shape=box];\n";
  std::map<std::int64_t, std::string> senders, receivers;
  for (const part& p : g.parts()) {
    const std::string prefix = p.task + " ";
    out += detail::dot_nodes(p.graph, prefix) + detail::dot_edges(p.graph, prefix);
    for (const node* n : p.graph.nodes())
      if (const auto* edge = n->find_attr<std::int64_t>("_edge")) (n->op() == "_Send" ? senders : receivers)[*edge] = prefix + n->name();
  }
  for (const transfer& t : g.transfers())
    out += "  " + detail::dot_quoted(senders[t.edge]) + " -> " + detail::dot_quoted(receivers[t.edge]) + " [style=bold, label=" +
           detail::dot_quoted(t.source + (t.bytes ? "\n" + std::to_string(*t.bytes) + " bytes" : std::string())) + "];\n";
  return out + "}\n";
}

WEFT_DECL std::string difference(const partitioned_graph& a, const partitioned_graph& b) {
  if (a == b) return {};
  const auto lines_of = [](const partitioned_graph& g) {
    std::vector<std::string> lines;
    for (const part& p : g.parts()) {
      for (const node* n : p.graph.nodes()) lines.push_back(p.task + ": " + to_text(*n));
      for (std::size_t i = 0; i < p.feeds.size(); ++i) lines.push_back(p.task + ": feed " + std::to_string(i) + " is " + p.feeds[i]);
      for (std::size_t i = 0; i < p.fetches.size(); ++i) lines.push_back(p.task + ": fetch " + std::to_string(i) + " is " + p.fetches[i]);
    }
    for (const transfer& t : g.transfers().all()) lines.push_back(to_text(t));
    return lines;
  };
  const auto left = lines_of(a), right = lines_of(b);
  const std::multiset<std::string> in_left(left.begin(), left.end()), in_right(right.begin(), right.end());
  std::string out;
  for (const std::string& line : left)
    if (in_right.count(line) == 0) out += "- " + line + "\n";
  for (const std::string& line : right)
    if (in_left.count(line) == 0) out += "+ " + line + "\n";
  return out.empty() ? "they differ only in the order of nodes, in attributes that are not printed, or in reasons\n" : out;
}

}  // namespace weft
#endif

#endif
