// What must hold of every placed and partitioned graph.
#include <weft/testing_run.hpp>

#include <weft/simulate/cost_placer.hpp>

#include "../long_tests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using namespace weft::testing;

namespace {

const random_graph_options shape_of_graphs;

// No threads are in it, and what a sanitizer could find ten thousand show.
std::size_t graphs() { return takes_long() && !is_sanitized ? 100000 : 10000; }

weft::partition_options step_of(const built_graph& built) {
  weft::partition_options options;
  options.fetches = built.fetches;
  options.master = "/job:work/task:1";
  options.devices = {{"CPU", shape_of_graphs.devices}};
  return options;
}

weft::partitioned_graph cut(const built_graph& built) { return weft::partition(built.graph, shape_of_graphs.cluster, step_of(built)); }

// The nodes of a part that stand in the whole graph; the others pass values or control edges on.
std::vector<std::string> own_names(const weft::graph& part, const weft::graph& whole) {
  std::vector<std::string> out;
  for (const weft::node* n : part.nodes())
    if (whole.find(n->name()) != nullptr) out.push_back(n->name());
  return out;
}

// The nodes that a step needs, found by walking back from its fetches.
std::vector<std::string> needed(const built_graph& built) {
  std::vector<bool> seen(built.graph.size(), false);
  std::vector<const weft::node*> open;
  const auto visit = [&](const weft::node* n) {
    if (seen[static_cast<std::size_t>(n->id())]) return;
    seen[static_cast<std::size_t>(n->id())] = true;
    open.push_back(n);
  };
  for (const weft::output& o : built.fetches) visit(o.from);
  std::vector<std::string> out;
  while (!open.empty()) {
    const weft::node* n = open.back();
    open.pop_back();
    out.push_back(n->name());
    for (const weft::output& in : n->inputs()) visit(in.from);
    for (const weft::node* before : n->control_inputs()) visit(before);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("properties: every Send has one Recv, every edge of a part is local, a value goes to a task once") {
  CHECK(holds_for_random_graphs(graphs(), 1, [](const built_graph& built) {
    const weft::partitioned_graph parts = cut(built);
    for (const verdict& each : {sends_meet_receives(parts), local(parts), sends_once(parts)})
      if (!static_cast<bool>(each)) return each;
    return verdict::yes("cut");
  }, shape_of_graphs));
}

TEST_CASE("properties: the parts together are the pruned graph and the transfers, each node on its device") {
  CHECK(holds_for_random_graphs(graphs(), 20001, [](const built_graph& built) {
    const weft::partitioned_graph parts = cut(built);
    std::vector<std::string> found;
    std::size_t crossings = 0;
    for (const weft::part& p : parts.parts()) {
      for (const weft::node* n : p.graph.nodes()) {
        if (n->op() == "_Send" || n->op() == "_Recv") ++crossings;
        const weft::node* original = built.graph.find(n->name());
        if (original != nullptr && n->op() == original->op() && n->device() != parts.placement().device_of(*original)) return verdict::no("'" + n->name() + "' is not where it was placed");
      }
      for (const std::string& name : own_names(p.graph, built.graph)) found.push_back(name);
    }
    std::sort(found.begin(), found.end());
    if (found != needed(built)) return verdict::no("the parts have other nodes than the step needs");
    if (crossings != 2 * parts.transfers().size()) return verdict::no("the table has " + std::to_string(parts.transfers().size()) + " transfers for " + std::to_string(crossings) + " Send and Recv");
    return verdict::yes("cut");
  }, shape_of_graphs));
}

TEST_CASE("properties: a cut graph computes what the whole one does") {
  CHECK(holds_for_random_graphs(graphs() / 10, 40001, [](const built_graph& built) {
    return same_values_as_unpartitioned(built.graph, shape_of_graphs.cluster, built.fetches, {}, shape_of_graphs.devices, {1, 2});
  }, shape_of_graphs));
}

TEST_CASE("properties: what a session runs is what partition says") {
  CHECK(holds_for_random_graphs(graphs() / 10, 60001, [](const built_graph& built) {
    weft::session_options options;
    options.cluster = shape_of_graphs.cluster;
    options.devices = {{"CPU", shape_of_graphs.devices}};
    options.optimizer = weft::optimizer_options::none();
    weft::local_session session(options, weft::graph(built.graph.state()));
    weft::partition_options step = step_of(built);
    step.master = "";
    const std::string differs = difference(weft::partition(built.graph, shape_of_graphs.cluster, step), session.partitions({{}, built.fetches, {}}));
    return differs.empty() ? verdict::yes("the same") : verdict::no(differs);
  }, shape_of_graphs));
}

TEST_CASE("properties: the same graph is cut the same way, in whatever memory it lies") {
  CHECK(holds_for_random_graphs(graphs() / 10, 80001, [](const built_graph& built) {
    const weft::graph copy = built.graph;
    std::vector<weft::output> fetches;
    for (const weft::output& o : built.fetches) fetches.push_back({copy.find(*o.from), o.index});
    weft::partition_options options = step_of(built);
    options.fetches = fetches;
    const std::string differs = difference(cut(built), weft::partition(copy, shape_of_graphs.cluster, options));
    return differs.empty() ? verdict::yes("the same") : verdict::no(differs);
  }, shape_of_graphs));
}

namespace {

// The values that a session with these options gives, or an error's text.
std::string values_of(const built_graph& built, const weft::session_options& options, std::vector<weft::tensor_value>& values) {
  weft::run_options limit;
  limit.timeout = std::chrono::seconds(60);
  try {
    values = weft::local_session(options, weft::graph(built.graph.state())).run(limit, std::vector<weft::feed>(), built.fetches);
    return "";
  } catch (const weft::error& e) {
    return e.what();
  }
}

verdict same_values(const built_graph& built, weft::session_options a, weft::session_options b) {
  for (weft::session_options* options : {&a, &b}) {
    options->cluster = shape_of_graphs.cluster;
    options->devices = {{"CPU", shape_of_graphs.devices}};
  }
  std::vector<weft::tensor_value> one, other;
  const std::string failed = values_of(built, a, one) + values_of(built, b, other);
  if (!failed.empty()) return verdict::no(failed);
  for (std::size_t i = 0; i < one.size(); ++i)
    if (!weft::testing::detail::same_value(one[i], other[i])) return verdict::no("'" + to_text(built.fetches[i]) + "' has another value");
  return verdict::yes("the same");
}

}  // namespace

TEST_CASE("properties: receives that wait until they are needed change no value") {
  std::size_t waiting = 0;
  CHECK(holds_for_random_graphs(graphs() / 40, 100001, [&](const built_graph& built) {
    weft::partition_options step = step_of(built);
    step.schedule_recvs = true;
    for (const weft::part& p : weft::partition(built.graph, shape_of_graphs.cluster, step).parts())
      for (const weft::node* n : p.graph.nodes()) waiting += n->op() == "ControlTrigger" ? 1 : 0;
    weft::session_options scheduled;
    scheduled.optimizer.schedule_recvs = true;
    return same_values(built, {}, scheduled);
  }, shape_of_graphs));
  CHECK(waiting > 100);
}

TEST_CASE("properties: whoever places the nodes, the values are the same") {
  weft::session_options by_name, by_cost;
  by_name.placer = weft::place_by([](const weft::node& n, const std::vector<std::string>& open) { return open[std::hash<std::string>()(n.name()) % open.size()]; });
  weft::cost_model model;
  model.link = {1e-9, 1e12};
  model.task.seconds_per_node = 1e-6;
  by_cost.placer = weft::cost_placer(model);
  for (const auto* options : {&by_name, &by_cost})
    CHECK(holds_for_random_graphs(graphs() / 40, 120001, [&](const built_graph& built) { return same_values(built, {}, *options); }, shape_of_graphs));
}
