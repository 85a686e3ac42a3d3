#include <weft/partition/growing_partition.hpp>

#include <weft/testing.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace weft::testing;

namespace {

const random_graph_options shape_of_graphs;

// A graph that gets the nodes of another one, in their order.
struct growing_graph {
  explicit growing_graph(const weft::graph& all) : from(all.nodes()) {}
  void add(std::size_t count) {
    for (; count > 0 && twins.size() < from.size(); --count) twins.push_back(&graph.add_copy(*from[twins.size()], twins));
  }
  bool complete() const { return twins.size() == from.size(); }
  std::vector<const weft::node*> from, twins;
  weft::graph graph;
};

weft::device_set devices() { return weft::device_set::of_cluster(shape_of_graphs.cluster, {{"CPU", shape_of_graphs.devices}}); }

struct seen_part {
  weft::graph graph;
  std::string text;
};
std::map<std::string, seen_part> seen(const weft::partitioned_graph& parts) {
  std::map<std::string, seen_part> out;
  for (const weft::part& p : parts.parts()) out.emplace(p.task, seen_part{weft::graph(p.graph.state()), to_text(p)});
  return out;
}

// Whether the parts are those of a cut at once, and what did not change is what it was.
verdict check(const weft::growing_partition& parts, const weft::graph& g, const weft::partition_options& options, const std::map<std::string, seen_part>& before, const weft::partition_update& update) {
  const std::string differs = difference(weft::partition(g, devices(), parts.parts().placement(), options), parts.parts());
  if (!differs.empty()) return verdict::no(differs);
  std::vector<std::string> changed;
  for (const weft::part& p : parts.parts().parts()) {
    const auto it = before.find(p.task);
    const bool same = it != before.end() && it->second.text == to_text(p);
    if (!same) changed.push_back(p.task);
    if (it != before.end() && (same || !update.cut_anew) && !p.graph.same(it->second.graph)) return verdict::no("the part of " + p.task + " is another graph");
  }
  return update.changed == changed ? verdict::yes("as cut at once") : verdict::no("the changed parts are not those that are said to be");
}

// Whether nodes are where they would be if all were placed with the earlier ones fixed.
verdict check_placement(const weft::placement& before, const weft::placement& now, const weft::graph& g) {
  weft::placement_options fixed;
  for (std::size_t i = 0; i < before.size(); ++i) fixed.assigned.push_back(before[i].device);
  const weft::placement at_once = weft::place(g, devices(), fixed);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].device != at_once[i].device) return verdict::no("node " + std::to_string(i) + " is on " + now[i].device + ", not on " + at_once[i].device);
    if (i < before.size() && now[i] != before[i]) return verdict::no("node " + std::to_string(i) + " has another reason");
  }
  return now.size() == g.size() ? verdict::yes("placed") : verdict::no("not all nodes are placed");
}

weft::partition_options step() {
  weft::partition_options options;
  options.devices = {{"CPU", shape_of_graphs.devices}};
  return options;
}

const weft::node& constant(weft::graph& g, const std::string& name, const std::string& device) {
  weft::node_spec spec;
  spec.op = "Const";
  spec.name = name;
  spec.exact_name = true;
  spec.scoped = false;
  spec.device = device;
  spec.attrs = {{"dtype", weft::dtype::float32}, {"value", weft::tensor_value::from(weft::shape{2}, std::vector<float>{1, 2})}};
  return g.add(std::move(spec));
}

const weft::node& negative(weft::graph& g, const std::string& name, const weft::node& of, const std::string& device) {
  weft::node_spec spec;
  spec.op = "Neg";
  spec.name = name;
  spec.exact_name = true;
  spec.scoped = false;
  spec.inputs = {{&of, 0}};
  spec.device = device;
  return g.add(std::move(spec));
}

}  // namespace

TEST_CASE("growing partition: parts of a graph that grows are those of a cut at once, and only what changes is touched") {
  CHECK(holds_for_random_graphs(80, 1, [](const built_graph& built) {
    growing_graph g(built.graph);
    g.add(built.graph.size() / 2);
    weft::growing_partition parts(g.graph, devices(), step());
    for (std::size_t more = 1; !g.complete(); ++more) {
      const auto before = seen(parts.parts());
      const weft::placement placed = parts.parts().placement();
      const std::size_t size = g.graph.size();
      g.add(more);
      const weft::partition_update update = parts.update();
      if (update.cut_anew) return verdict::no("cut anew");
      // Each node placed, with a neighbour at most, and copied.
      if (update.visited > 3 * (g.graph.size() - size)) return verdict::no(std::to_string(update.visited) + " nodes were visited for " + std::to_string(g.graph.size() - size));
      for (const verdict& each : {check(parts, g.graph, step(), before, update), check_placement(placed, parts.parts().placement(), g.graph)})
        if (!static_cast<bool>(each)) return each;
    }
    return verdict::yes("grown");
  }, shape_of_graphs));
}

TEST_CASE("growing partition: a step gets further targets, older and new ones") {
  std::size_t grown = 0, anew = 0;
  CHECK(holds_for_random_graphs(60, 1001, [&](const built_graph& built) {
    growing_graph g(built.graph);
    g.add(built.graph.size() / 3);
    weft::partition_options options = step();
    options.feeds = {{g.twins[0], 0}};
    options.targets = {g.twins[g.twins.size() / 2]};
    weft::growing_partition parts(g.graph, devices(), options);
    for (std::size_t k = 0; !g.complete(); ++k) {
      const auto before = seen(parts.parts());
      g.add(5);
      const weft::node* target = k % 3 == 2 ? g.twins[k] : g.twins.back();
      options.targets.push_back(target);
      const weft::partition_update update = parts.update({}, {target});
      ++(update.cut_anew ? anew : grown);
      const verdict as_at_once = check(parts, g.graph, options, before, update);
      if (!static_cast<bool>(as_at_once)) return as_at_once;
    }
    return verdict::yes("grown");
  }, shape_of_graphs));
  CHECK(grown > 20);
  CHECK(anew > 20);
}

TEST_CASE("growing partition: a step with fetches is cut anew, and equal parts stay") {
  weft::graph g;
  const auto& x = constant(g, "x", "/job:ps/task:0");
  const auto& y = negative(g, "y", x, "/job:ps/task:0");
  const auto& z = constant(g, "z", "/job:work/task:1");
  weft::partition_options options = step();
  options.fetches = {{&y, 0}};
  weft::growing_partition parts(g, shape_of_graphs.cluster, options);
  const weft::graph ps(parts.parts().at("/job:ps").graph.state());
  weft::partition_update update = parts.update({{&z, 0}});
  CHECK(update.cut_anew);
  CHECK(update.changed == std::vector<std::string>{"/job:work/task:1"});
  CHECK(parts.parts().at("/job:ps").graph.same(ps));
  options.fetches.push_back({&z, 0});
  CHECK(parts.parts() == weft::partition(g, shape_of_graphs.cluster, options));
  // What the step does not need is placed and no more.
  const auto& late = negative(g, "late", z, "");
  update = parts.update();
  CHECK_FALSE(update.cut_anew);
  CHECK(update.changed.empty());
  CHECK(update.visited == 1);
  CHECK(parts.parts().placement().has(late));
}

TEST_CASE("growing partition: the work is that of the added nodes, however large the graph is") {
  weft::graph g;
  const weft::node* last = &constant(g, "x", "/job:ps/task:0");
  for (int i = 0; i < 2000; ++i) last = &negative(g, "n" + std::to_string(i), *last, i % 100 < 50 ? "/job:ps/task:0" : "/job:work/task:1");
  weft::growing_partition parts(g, shape_of_graphs.cluster, step());
  const weft::part& work = parts.parts().at("/job:work/task:1");
  const weft::node* kept = work.graph.nodes().front();
  const std::size_t transfers = parts.parts().transfers().size();
  negative(g, "more", *last, "/job:ps/task:1");
  const weft::partition_update update = parts.update();
  CHECK_FALSE(update.cut_anew);
  CHECK(update.visited == 2);
  CHECK(update.changed == std::vector<std::string>{"/job:ps/task:1", "/job:work/task:1"});
  CHECK(parts.parts().transfers().size() == transfers + 1);
  CHECK(parts.parts().at("/job:work/task:1").graph.nodes().front() == kept);
}

TEST_CASE("growing partition: names like those of a cut make it cut anew") {
  weft::graph g;
  const auto& x = constant(g, "x", "/job:ps/task:0");
  negative(g, "y", x, "/job:work/task:1");
  weft::growing_partition parts(g, shape_of_graphs.cluster, step());
  negative(g, "x/_send_0", x, "/job:ps/task:0");
  const weft::partition_update update = parts.update();
  CHECK(update.cut_anew);
  CHECK(parts.parts() == weft::partition(g, shape_of_graphs.cluster, step()));
  negative(g, "last", x, "/job:ps/task:1");
  CHECK_FALSE(parts.update().cut_anew);
  CHECK(parts.parts() == weft::partition(g, shape_of_graphs.cluster, step()));
}

TEST_CASE("growing partition: what cannot be placed or asked for changes nothing") {
  weft::graph g;
  const auto& x = constant(g, "x", "/job:ps/task:0");
  weft::growing_partition parts(g, shape_of_graphs.cluster, step());
  const std::string before = to_text(parts.parts());
  CHECK_THROWS_WITH_AS(parts.update({{&x, 0}}), "INVALID_ARGUMENT: growing_partition: the whole graph is cut, and a fetch or target would make it less; name one when you make it", weft::error);
  negative(g, "y", x, "/job:nowhere/task:0");
  CHECK_THROWS_AS(parts.update(), weft::error);
  CHECK_THROWS_AS(parts.update(), weft::error);
  CHECK(to_text(parts.parts()) == before);
  CHECK(parts.parts().placement().size() == 1);
  CHECK_THROWS_WITH_AS(weft::growing_partition(g, weft::cluster_spec()), "INVALID_ARGUMENT: the cluster has no tasks; name at least one, as in {{\"work\", 1}}", weft::error);
}
