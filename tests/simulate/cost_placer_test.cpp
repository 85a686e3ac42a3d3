#include <weft/simulate/cost_placer.hpp>

#include <weft/placement/placer.hpp>

#include "../long_tests.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

const std::string home = "/job:work/task:0/device:CPU:0", away = "/job:work/task:1/device:CPU:0";

// A second for each node, 10 bytes a second, half a second on the way: one float takes 0.9 seconds to another task, a hundred take 40.5.
weft::cost_model slow() {
  weft::cost_model out;
  out.task = {1e12, 1e12, 1, 100, 1};
  out.link = {0.5, 10};
  return out;
}

struct world {
  weft::graph graph{ops()};
  weft::placement_options options;
  weft::device_set devices = weft::device_set::of_cluster({{"work", 2}});
  world() { options.placer = weft::cost_placer(slow()); }

  static weft::op_registry ops() {
    weft::op_registry out;
    out.add(weft::op("Make").output("y: float"));
    out.add(weft::op("Pass").input("x: float").output("y: float"));
    out.add(weft::op("Join").input("x: N * float").output("y: float").attr("N: int"));
    return out;
  }
  // A node whose value has so many floats.
  const weft::node& add(const std::string& name, std::vector<const weft::node*> inputs, std::int64_t floats = 1, const std::string& device = "", std::vector<std::string> classes = {}) {
    weft::node_spec spec;
    spec.op = inputs.empty() ? "Make" : inputs.size() == 1 ? "Pass" : "Join";
    spec.name = name;
    for (const weft::node* in : inputs) spec.inputs.push_back({in, 0});
    if (inputs.size() > 1) spec.attrs["N"] = static_cast<std::int64_t>(inputs.size());
    if (!classes.empty()) spec.attrs["_class"] = std::move(classes);
    spec.scoped = false;
    spec.device = device;
    spec.outputs = std::vector<weft::output_type>{{weft::dtype::float32, weft::partial_shape{floats}, false}};
    return graph.add(std::move(spec));
  }
  weft::placement placed() const { return weft::place(graph, devices, options); }
  // The devices of nodes, a letter each: h for home, a for the other.
  std::string where(const std::vector<const weft::node*>& nodes) const {
    const auto all = placed();
    std::string out;
    for (const weft::node* n : nodes) out += all.device_of(*n) == home ? 'h' : all.device_of(*n) == away ? 'a' : '?';
    return out;
  }
};

}  // namespace

TEST_CASE("cost placer: between two pins a chain is cut at its light edge") {
  struct row {
    std::vector<std::int64_t> floats;
    const char* where;
  };
  for (const row& r : {row{{100, 100, 1, 100}, "hhhaa"}, row{{1, 100, 100, 100}, "haaaa"}, row{{100, 100, 100, 1}, "hhhha"}, row{{100, 1, 100, 100}, "hhaaa"}}) {
    world w;
    std::vector<const weft::node*> nodes{&w.add("n0", {}, r.floats[0], home)};
    for (std::size_t i = 1; i < 5; ++i) nodes.push_back(&w.add("n" + std::to_string(i), {nodes.back()}, i < 4 ? r.floats[i] : 1, i == 4 ? away : ""));
    CAPTURE(r.where);
    CHECK(w.where(nodes) == r.where);
  }
}

TEST_CASE("cost placer: chains that do not need each other go to tasks of their own") {
  world w;
  w.devices = weft::device_set::of_cluster({{"work", 4}});
  std::vector<const weft::node*> last(4);
  for (std::size_t i = 0; i < 40; ++i) last[i % 4] = &w.add("n" + std::to_string(i), last[i % 4] == nullptr ? std::vector<const weft::node*>() : std::vector<const weft::node*>{last[i % 4]}, 100);
  const auto placed = w.placed();
  std::vector<int> used(4);
  for (const weft::node* n : w.graph.nodes()) {
    CHECK(placed.device_of(*n) == placed.device_of(*last[static_cast<std::size_t>(n->id() % 4)]));
    ++used[static_cast<std::size_t>(placed.device_of(*n)[15] - '0')];
  }
  CHECK(used == std::vector<int>{10, 10, 10, 10});
}

TEST_CASE("cost placer: the critical path stays together, what can be done beside it goes elsewhere") {
  world w;
  std::vector<const weft::node*> path{&w.add("p0", {})}, sides;
  for (int i = 1; i < 20; ++i) path.push_back(&w.add("p" + std::to_string(i), {path.back()}));
  for (int i = 0; i < 10; ++i) sides.push_back(&w.add("s" + std::to_string(i), {}));
  std::vector<const weft::node*> all = sides;
  all.push_back(path.back());
  path.push_back(&w.add("end", all));
  CHECK(w.where(path) == std::string(21, 'h'));
  CHECK(w.where(sides) == std::string(10, 'a'));
}

TEST_CASE("cost placer: stages of a pipeline with dear values between their layers are cut between stages") {
  // Three stages that feed one another one float; inside a stage two branches exchange a hundred. The first stage is pinned here, the last there.
  world w;
  const weft::node* value = &w.add("in", {}, 1, home);
  std::vector<std::vector<const weft::node*>> stages;
  for (int s = 0; s < 3; ++s) {
    const std::string name = "s" + std::to_string(s);
    const auto& a = w.add(name + "a", {value}, 100);
    const auto& b = w.add(name + "b", {&a}, 100);
    const auto& c = w.add(name + "c", {&a, &b}, 1);
    stages.push_back({&a, &b, &c});
    value = &c;
  }
  w.add("out", {value}, 1, away);
  for (const auto& stage : stages) {
    const std::string where = w.where(stage);
    CHECK((where == "hhh" || where == "aaa"));
  }
}

TEST_CASE("cost placer: where sending is dearer than waiting everything stays, by TensorFlow's rules") {
  world w;
  const auto& x = w.add("x", {}, 100);
  const auto& a = w.add("a", {&x}, 100);
  const auto& b = w.add("b", {&x}, 100);
  const auto& y = w.add("y", {&a, &b}, 100);
  CHECK(w.where({&x, &a, &b, &y}) == "hhhh");
  CHECK(w.placed().reason_of(y) == "default device");
}

TEST_CASE("cost placer: a slow task gets less, a fast one more, and groups move as one") {
  weft::cost_model model = slow();
  model.tasks["/job:work/task:0"] = {1e12, 1e12, 10, 100, 1};
  world w;
  w.options.placer = weft::cost_placer(model);
  const auto& x = w.add("x", {});
  const auto& y = w.add("y", {&x});
  const auto& z = w.add("z", {&y}, 1, "", {"loc:@x"});
  CHECK(w.where({&x, &y, &z}) == "aaa");
  CHECK(w.placed().reason_of(x) == "cost: done after 4.000 s, 30.000 s on /job:work/task:0");
  CHECK(w.placed().reason_of(y) == "cost: together with 'x'");
  CHECK(w.placed().reason_of(z) == "colocated with 'x'");
}

TEST_CASE("cost placer: a large graph is placed within what is open, the same each time") {
  const int size = takes_long() ? 100000 : 5000;
  world w;
  w.devices = weft::device_set::of_cluster({{"work", 8}});
  std::vector<const weft::node*> nodes;
  for (int i = 0; i < size; ++i) {
    std::vector<const weft::node*> inputs;
    for (int k = 1; k <= i % 3; ++k)
      if (const int from = i - 1 - (i * 7919 + k * 104729) % 50; from >= 0) inputs.push_back(nodes[static_cast<std::size_t>(from)]);
    nodes.push_back(&w.add("n" + std::to_string(i), inputs, 1 + i % 9, i % 31 == 0 ? "/task:" + std::to_string(i % 8) : ""));
  }
  const auto placed = w.placed();
  std::vector<int> used(8);
  for (int i = 0; i < size; ++i) {
    const std::string& device = placed.device_of(*nodes[static_cast<std::size_t>(i)]);
    ++used[static_cast<std::size_t>(device[15] - '0')];
    if (i % 31 == 0) CHECK(device == "/job:work/task:" + std::to_string(i % 8) + "/device:CPU:0");
  }
  for (const int n : used) CHECK(n > 0);
  CHECK(w.placed() == placed);
}
