#ifndef WEFT_PARTITION_PRUNE_HPP
#define WEFT_PARTITION_PRUNE_HPP
// Which nodes a step needs: those from which a fetch or a target can be reached, cut off at the feeds.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/partition/simplify.hpp>

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace weft {

namespace detail {

std::uint64_t output_key(const output& o) noexcept;

// Whether waiting for this node means nothing once its value is fed.
inline bool is_placeholder(const node& n) noexcept { return n.op() == "Placeholder" || n.op() == "PlaceholderV2"; }

// Whether the node is a placeholder whose value is fed, so that it does not run.
inline bool is_fed_placeholder(const node& n, const std::unordered_set<std::uint64_t>& fed) { return !fed.empty() && is_placeholder(n) && fed.count(output_key({&n, 0})) != 0; }

void check_loops(const node& n, const std::unordered_set<std::uint64_t>& fed);
void check_step(const graph& g, const std::vector<output>& feeds, const std::vector<output>& fetches, const std::vector<const node*>& targets);

}  // namespace detail

/// The nodes that a step runs, in the order of creation. Without fetches and targets every node, except placeholders that are fed.
/// Nodes for which others stand are left out. Throws INVALID_ARGUMENT for what belongs to another graph. Follows TensorFlow's
/// RewriteGraphForExecution.
std::vector<const node*> prune(const graph& g, const std::vector<output>& feeds, const std::vector<output>& fetches,
                                      const std::vector<const node*>& targets, const substitution& same = {});

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL std::uint64_t output_key(const output& o) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(o.from->id())) << 32 | static_cast<std::uint32_t>(o.index);
}

WEFT_DECL void check_in_graph(const graph& g, const node* n, const char* what) {
  if (n == nullptr) fail(error_code::invalid_argument, std::string("a ") + what + " is empty, not made by any op");
  if (&n->owner() != g.state().get()) n->fail_about(error_code::invalid_argument, std::string("is a ") + what + ", but belongs to another graph");
}

WEFT_DECL void check_in_graph(const graph& g, const output& o, const char* what) {
  check_in_graph(g, o.from, what);
  if (o.index < 0 || o.index >= o.from->output_count())
    o.from->fail_about(error_code::invalid_argument, "has " + std::to_string(o.from->output_count()) + " outputs; asked for number " + std::to_string(o.index) + " as a " + what);
}

WEFT_DECL void check_step(const graph& g, const std::vector<output>& feeds, const std::vector<output>& fetches, const std::vector<const node*>& targets) {
  std::unordered_set<std::uint64_t> fed;
  for (const output& o : feeds) {
    check_in_graph(g, o, "feed");
    if (!fed.insert(output_key(o)).second) o.from->fail_about(error_code::invalid_argument, "is fed twice ('" + to_text(o) + "')");
  }
  for (const output& o : fetches) check_in_graph(g, o, "fetch");
  for (const node* n : targets) check_in_graph(g, n, "target");
}

WEFT_DECL void check_loops(const node& n, const std::unordered_set<std::uint64_t>& fed) {
  for (std::size_t i = 0; i < n.inputs().size(); ++i)
    if (is_loop_edge(n, i) && fed.count(output_key(n.inputs()[i])) == 0)
      n.fail_about(error_code::unimplemented, "closes a loop (its input '" + to_text(n.inputs()[i]) + "' is made after it), and loops cannot run yet");
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::vector<const node*> prune(const graph& g, const std::vector<output>& feeds, const std::vector<output>& fetches,
                                      const std::vector<const node*>& targets, const substitution& same) {
  const std::vector<const node*> nodes = g.nodes();
  std::unordered_set<std::uint64_t> fed;
  detail::check_step(g, feeds, fetches, targets);
  for (const output& o : feeds) fed.insert(detail::output_key(o));
  std::vector<char> needed(nodes.size(), fetches.empty() && targets.empty() ? 1 : 0);
  std::vector<const node*> pending;
  const auto need = [&](const node* n) {
    if (static_cast<std::size_t>(n->id()) >= needed.size() || needed[static_cast<std::size_t>(n->id())] != 0) return;
    needed[static_cast<std::size_t>(n->id())] = 1;
    pending.push_back(n);
  };
  const auto need_output = [&](const output& o) {
    if (fed.empty() || fed.count(detail::output_key(o)) == 0) need(o.from);
  };

  // 1. From what is asked for, backwards.
  for (const output& o : fetches) need_output(o);
  for (const node* n : targets)
    if (!detail::is_fed_placeholder(*n, fed)) need(n);
  while (!pending.empty()) {
    const node* n = pending.back();
    pending.pop_back();
    for (const output& in : n->inputs()) need_output(same.resolve(in));
    for (const node* before : n->control_inputs())
      if (!detail::is_fed_placeholder(*same.resolve(before), fed)) need(same.resolve(before));
  }

  // 2. In the order of creation, in which all inputs come first.
  for (const node* n : nodes)
    if (needed[static_cast<std::size_t>(n->id())] != 0) detail::check_loops(*n, fed);
  std::vector<const node*> out;
  for (const node* n : nodes)
    if (needed[static_cast<std::size_t>(n->id())] != 0 && !detail::is_fed_placeholder(*n, fed) && !same.replaces(*n)) out.push_back(n);
  return out;
}

}  // namespace weft
#endif

#endif
