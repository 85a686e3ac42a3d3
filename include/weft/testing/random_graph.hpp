#ifndef WEFT_TESTING_RANDOM_GRAPH_HPP
#define WEFT_TESTING_RANDOM_GRAPH_HPP
// Random graphs for properties, each from a seed, and the smallest graph that still breaks a property.

#include <weft/core/config.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/split_mix.hpp>
#include <weft/graph/graph.hpp>
#include <weft/ops/standard.hpp>
#include <weft/partition/partition.hpp>
#include <weft/testing/verdict.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#if WEFT_HAS_BODIES
#include <exception>
#include <iterator>
#endif

namespace weft::testing {

/// What a random graph looks like. The parts of 100 are chances per node.
struct random_graph_options {
  /// How many nodes; at least one.
  std::size_t nodes = 30;
  /// The tasks that nodes are pinned to, with this many CPU devices each.
  cluster_spec cluster{{"ps", 2}, {"work", 3}};
  int devices = 2;
  int pinned = 60, pinned_in_part = 10, colocated = 10, with_control_inputs = 15;
};

/// One node of a recipe; inputs, control inputs and colocation refer to earlier nodes by number.
struct recipe_node {
  /// `Const` without inputs, `Neg`, `Identity` or `Square` of one, `AddV2`, `Sub` or `Mul` of two, `AddN` of several, `IdentityN` with several outputs.
  std::string op;
  /// (node, output)
  std::vector<std::pair<std::size_t, int>> inputs;
  std::vector<std::size_t> control_inputs;
  /// A device, complete or in part; empty when free.
  std::string device;
  /// The node that it must be placed with, or `nowhere`.
  std::size_t with = nowhere;
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
};

/// A graph as plain data, which can be made smaller and built. Every tensor is float[4].
using graph_recipe = std::vector<recipe_node>;

/// A graph and what a step of it would fetch: the outputs that nothing reads.
struct built_graph {
  weft::graph graph;
  std::vector<output> fetches;
};

/// The recipe of a seed: the same on every machine.
graph_recipe random_recipe(std::uint64_t seed, const random_graph_options& options = {});

/// The graph of a recipe; node i is called `n<i>`.
built_graph build(const graph_recipe& recipe);

/// What must hold of every graph.
using graph_property = std::function<verdict(const built_graph&)>;

/// The smallest recipe that one finds from `from` by taking away one thing after another while the property stays broken.
graph_recipe shrink(graph_recipe from, const graph_property& property);

/// Whether the property holds for the graphs of `count` seeds from `first_seed` on. If not, says the seed, the smallest graph that breaks it, and how.
verdict holds_for_random_graphs(std::size_t count, std::uint64_t first_seed, const graph_property& property, const random_graph_options& options = {});

}  // namespace weft::testing

#if WEFT_HAS_BODIES
namespace weft::testing::detail {

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : bits_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits_.next() % n); }
  bool percent(int chance) { return static_cast<int>(below(100)) < chance; }

 private:
  weft::detail::split_mix bits_;
};

WEFT_DECL int outputs_of(const recipe_node& n) { return n.op == "IdentityN" ? static_cast<int>(n.inputs.size()) : 1; }

// A recipe without node `gone`: who read it reads its first input, or has one input less; who has none left is a constant.
WEFT_DECL graph_recipe without(const graph_recipe& from, std::size_t gone) {
  graph_recipe out;
  const auto moved = [gone](std::size_t i) { return i > gone ? i - 1 : i; };
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i == gone) continue;
    recipe_node n = from[i];
    std::vector<std::pair<std::size_t, int>> inputs;
    for (const auto& in : n.inputs) {
      if (in.first != gone) inputs.emplace_back(moved(in.first), in.second);
      else if (!from[gone].inputs.empty()) inputs.emplace_back(moved(from[gone].inputs[0].first), from[gone].inputs[0].second);
    }
    // As many inputs as its op needs, and at least as many outputs as before are read.
    if (inputs.size() < n.inputs.size()) {
      if (inputs.empty()) n.op = "Const";
      else if (n.op == "IdentityN" || n.inputs.size() == 2) inputs.resize(n.inputs.size(), inputs[0]);
    }
    if (n.op == "Const") inputs.clear();
    n.inputs = std::move(inputs);
    std::vector<std::size_t> control;
    for (const std::size_t before : n.control_inputs)
      if (before != gone) control.push_back(moved(before));
    n.control_inputs = std::move(control);
    if (n.with == gone) n.with = recipe_node::nowhere;
    else if (n.with != recipe_node::nowhere) n.with = moved(n.with);
    out.push_back(std::move(n));
  }
  // A reader of a later output of what became a constant reads its only one.
  for (recipe_node& n : out)
    for (auto& in : n.inputs)
      if (in.second >= outputs_of(out[in.first])) in.second = 0;
  return out;
}

}  // namespace weft::testing::detail

namespace weft::testing {

WEFT_DECL graph_recipe random_recipe(std::uint64_t seed, const random_graph_options& options) {
  detail::random_numbers random(seed);
  static constexpr const char* ops[] = {"Const", "Neg", "Identity", "Square", "AddV2", "Sub", "Mul", "AddN", "IdentityN"};
  const std::vector<task_id> tasks = options.cluster.tasks();
  graph_recipe out;
  for (std::size_t i = 0; i < options.nodes; ++i) {
    recipe_node n;
    const std::size_t op = i == 0 ? 0 : random.below(std::size(ops));
    n.op = ops[op];
    const std::size_t inputs = op == 0 ? 0 : op <= 3 ? 1 : op <= 6 ? 2 : 1 + random.below(3);
    for (std::size_t k = 0; k < inputs; ++k) {
      const std::size_t from = random.below(i);
      n.inputs.emplace_back(from, static_cast<int>(random.below(static_cast<std::size_t>(detail::outputs_of(out[from])))));
    }
    if (i > 0 && random.percent(options.with_control_inputs)) n.control_inputs.push_back(random.below(i));
    if (i > 0 && random.percent(options.colocated)) n.with = random.below(i);
    else if (!tasks.empty() && random.percent(options.pinned)) n.device = to_text(tasks[random.below(tasks.size())]) + "/device:CPU:" + std::to_string(random.below(static_cast<std::size_t>(options.devices)));
    else if (!tasks.empty() && random.percent(options.pinned_in_part)) n.device = to_text(tasks[random.below(tasks.size())]);
    out.push_back(std::move(n));
  }
  return out;
}

WEFT_DECL built_graph build(const graph_recipe& recipe) {
  built_graph out;
  std::vector<const node*> made;
  std::vector<std::vector<bool>> is_read;
  for (std::size_t i = 0; i < recipe.size(); ++i) {
    const recipe_node& from = recipe[i];
    node_spec spec;
    spec.op = from.op;
    spec.name = "n" + std::to_string(i);
    spec.exact_name = true;
    spec.scoped = false;
    spec.device = from.device;
    for (const auto& [source, index] : from.inputs) {
      spec.inputs.push_back({made[source], index});
      is_read[source][static_cast<std::size_t>(index)] = true;
    }
    for (const std::size_t before : from.control_inputs) spec.control_inputs.push_back(made[before]);
    const auto count = static_cast<std::int64_t>(from.inputs.size());
    if (from.op == "Const") {
      const auto first = static_cast<float>(i);
      const auto value = tensor_value::from(shape{4}, std::vector<float>{first, 1.f, -first, 0.5f});
      spec.outputs = std::vector<output_type>{{value.dtype(), value.shape(), false}};
      spec.attrs = {{"dtype", value.dtype()}, {"value", value}};
    } else if (from.op == "AddN") {
      spec.attrs = {{"N", count}, {"T", dtype::float32}};
    } else if (from.op == "IdentityN") {
      spec.attrs = {{"T", std::vector<dtype>(from.inputs.size(), dtype::float32)}};
    } else {
      spec.attrs = {{"T", dtype::float32}};
    }
    if (from.with != recipe_node::nowhere) spec.attrs["_class"] = std::vector<std::string>{"loc:@" + made[from.with]->name()};
    made.push_back(&out.graph.add(std::move(spec)));
    is_read.emplace_back(static_cast<std::size_t>(detail::outputs_of(from)), false);
  }
  for (std::size_t i = 0; i < made.size(); ++i)
    for (std::size_t k = 0; k < is_read[i].size(); ++k)
      if (!is_read[i][k]) out.fetches.push_back({made[i], static_cast<int>(k)});
  return out;
}

}  // namespace weft::testing

namespace weft::testing::detail {

// What a property says of a graph; an exception is a no.
WEFT_DECL verdict ask(const graph_property& property, const graph_recipe& recipe) {
  try {
    return property(build(recipe));
  } catch (const std::exception& e) {
    return verdict::no(e.what());
  }
}

// Every recipe that is one step smaller: a node, a control input, a device or a colocation less.
WEFT_DECL std::vector<graph_recipe> smaller(const graph_recipe& from) {
  std::vector<graph_recipe> out;
  if (from.size() > 1)
    for (std::size_t i = from.size(); i-- > 0;) out.push_back(without(from, i));
  for (std::size_t i = from.size(); i-- > 0;) {
    if (!from[i].control_inputs.empty()) out.push_back(from), out.back()[i].control_inputs.clear();
    if (!from[i].device.empty()) out.push_back(from), out.back()[i].device.clear();
    if (from[i].with != recipe_node::nowhere) out.push_back(from), out.back()[i].with = recipe_node::nowhere;
  }
  return out;
}

}  // namespace weft::testing::detail

namespace weft::testing {

WEFT_DECL graph_recipe shrink(graph_recipe from, const graph_property& property) {
  for (bool smaller_found = true; smaller_found;) {
    smaller_found = false;
    for (graph_recipe& candidate : detail::smaller(from)) {
      if (static_cast<bool>(detail::ask(property, candidate))) continue;
      from = std::move(candidate);
      smaller_found = true;
      break;
    }
  }
  return from;
}

WEFT_DECL verdict holds_for_random_graphs(std::size_t count, std::uint64_t first_seed, const graph_property& property, const random_graph_options& options) {
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    graph_recipe recipe = random_recipe(seed, options);
    if (static_cast<bool>(detail::ask(property, recipe))) continue;
    recipe = shrink(std::move(recipe), property);
    return verdict::no("seed " + std::to_string(seed) + ": " + detail::ask(property, recipe).text() + "\nin the graph\n" + to_text(build(recipe).graph));
  }
  return verdict::yes("holds for " + std::to_string(count) + " random graphs");
}

}  // namespace weft::testing
#endif

#endif
