#include <weft/graph/graph.hpp>

#include <doctest/doctest.h>
#include <weft/graph/scope.hpp>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using weft::constant;
using weft::default_graph;
using weft::graph;
using weft::node;
using weft::node_spec;

namespace {
const weft::call_site here{"user.cpp", 12};

node_spec spec_of(const char* op, const char* name, std::vector<weft::output> inputs = {}) {
  node_spec spec;
  spec.op = op;
  spec.name = name;
  spec.inputs = std::move(inputs);
  spec.site = here;
  return spec;
}
}  // namespace

TEST_CASE("graph: nodes in the order of creation, found by name") {
  const graph g;
  CHECK(g.size() == 0);
  const node& a = g.add(spec_of("NoOp", "a"));
  const node& b = g.add(spec_of("NoOp", "b"));
  CHECK(g.nodes() == std::vector<const node*>{&a, &b});
  CHECK(a.id() == 0);
  CHECK(b.id() == 1);
  CHECK(g.find("b") == &b);
  CHECK(g.find("B") == nullptr);
  CHECK(g.find("c") == nullptr);
  CHECK(a.site() == here);
  CHECK(a.op() == "NoOp");
  CHECK(a.output_count() == 0);
}

TEST_CASE("graph: a handle, so that graphs and what they hold move without moving nodes") {
  graph g;
  const node& a = g.add(spec_of("NoOp", "a"));
  graph moved = std::move(g);
  CHECK(moved.find("a") == &a);
  graph third;
  third = std::move(moved);
  CHECK(third.find("a") == &a);
}

TEST_CASE("graph: tensors and operations keep it alive") {
  weft::tensor<float, 1> t;
  weft::operation o;
  {
    const graph g;
    const auto scope = g.as_default();
    t = constant({1.f, 2.f}, "x");
    o = weft::no_op("n");
  }
  CHECK(t.name() == "x");
  CHECK(t.shape().text() == "[2]");
  CHECK(o.name() == "n");
  CHECK(t.graph().size() == 2);
}

TEST_CASE("graph: a copy is equal and independent") {
  graph g;
  weft::tensor<float, 0> y;
  {
    const auto scope = g.as_default();
    const auto device = weft::with_device("/job:ps/task:0");
    const auto x = constant(2.f, "x");
    const auto wait = weft::control_dependencies({weft::no_op("first")});
    y = x * 3.f;
    const weft::variable<float, 0> w(x, "w");
  }
  graph copy = g;
  CHECK(to_text(copy) == to_text(g));
  CHECK_FALSE(copy.same(g));
  const node* twin = copy.find(*y.raw().from);
  REQUIRE(twin != nullptr);
  CHECK(twin != y.raw().from);
  CHECK(twin->site() == y.site());
  CHECK(twin->inputs()[0].from == copy.find("x"));
  CHECK(copy.state()->collection("initializers") == std::vector<const node*>{copy.find("w/Assign")});

  copy.add(spec_of("NoOp", "only_here"));
  CHECK(g.find("only_here") == nullptr);
  CHECK(copy.add(spec_of("NoOp", "x")).name() == "x_1");  // names stay taken

  graph assigned;
  assigned = g;
  CHECK(to_text(assigned) == to_text(g));
  const graph& same = assigned;
  assigned = same;
  CHECK(assigned.size() == g.size());
}

TEST_CASE("graph: as_default is the thread's graph until the block ends, with fresh scopes") {
  const graph g;
  const auto outer_device = weft::with_device("/job:ps");
  const auto outer_name = weft::name_scope("outer");
  {
    const auto scope = g.as_default();
    CHECK(default_graph().same(g));
    const weft::operation inside = weft::no_op("x");
    CHECK(inside.name() == "x");
    CHECK(inside.get()->device().empty());
    const graph inner;
    {
      const auto again = inner.as_default();
      CHECK(default_graph().same(inner));
    }
    CHECK(default_graph().same(g));
  }
  CHECK_FALSE(default_graph().same(g));
}

TEST_CASE("graph: reset_default_graph gives a new one, and old handles stay valid") {
  weft::reset_default_graph();
  const auto x = constant(1.f, "x");
  const graph before = default_graph();
  weft::reset_default_graph();
  CHECK_FALSE(default_graph().same(before));
  CHECK(default_graph().size() == 0);
  CHECK(x.name() == "x");
}

TEST_CASE("graph: each thread has a default graph of its own") {
  weft::reset_default_graph();
  const auto x = constant(1.f, "x");
  std::size_t elsewhere = 99;
  bool same = true;
  std::thread([&] {
    elsewhere = default_graph().size();
    same = default_graph().same(x.graph());
  }).join();
  CHECK(elsewhere == 0);
  CHECK_FALSE(same);
  CHECK(default_graph().size() == 1);
}

TEST_CASE("graph: an op joins the graph of its inputs") {
  const graph g;
  const auto x = [&] {
    const auto scope = g.as_default();
    return constant(1.f, "x");
  }();
  const auto y = x * 2.f;
  CHECK(y.graph().same(g));
  CHECK(g.find("mul/y") != nullptr);
}

TEST_CASE("graph: inputs of two graphs are refused") {
  const graph g, h;
  const auto x = [&] {
    const auto scope = g.as_default();
    return constant(1.f, "x");
  }();
  const auto scope = h.as_default();
  const auto y = constant(1.f, "y");
  CHECK_THROWS_WITH_AS((void)add(y, x, {"sum", here}),
                       "INVALID_ARGUMENT: AddV2 'sum' (user.cpp:12): input 'x' belongs to another graph; all inputs of an op must be in one graph", weft::error);
  CHECK(h.size() == 1);
}

TEST_CASE("graph: an exact name that is taken is ALREADY_EXISTS") {
  const graph g;
  node_spec spec = spec_of("NoOp", "a");
  spec.exact_name = true;
  g.add(spec);
  CHECK_THROWS_WITH_AS(g.add(spec), "ALREADY_EXISTS: NoOp 'a' (user.cpp:12): the graph already has a node of this name", weft::error);
  CHECK(g.add(spec_of("NoOp", "a")).name() == "a_1");
  CHECK(g.size() == 2);
}

TEST_CASE("graph: names that were known to be free are found and taken like others") {
  using weft::detail::naming;
  const graph g;
  const auto add = [&](const char* name, naming how) -> const node& {
    node_spec spec = spec_of("NoOp", name);
    spec.exact_name = true;
    return g.state()->add(std::move(spec), how);
  };
  const node& a = add("a", naming::known_free);
  const node& b = add("B", naming::known_free);
  CHECK_THROWS_WITH_AS(add("a", naming::checked), "ALREADY_EXISTS: NoOp 'a' (user.cpp:12): the graph already has a node of this name", weft::error);
  CHECK(g.find("a") == &a);
  CHECK(g.find("B") == &b);
  CHECK(g.find("b") == nullptr);
  CHECK(g.add(spec_of("NoOp", "b")).name() == "b_1");
  add("c", naming::known_free);
  CHECK(g.find("c")->id() == 3);
}

TEST_CASE("graph: the devices that nodes ask for, each once, in the order of their first use") {
  const graph g;
  const auto add = [&](const char* device) {
    node_spec spec = spec_of("NoOp", "n");
    spec.scoped = false;
    spec.device = device;
    g.add(std::move(spec));
  };
  CHECK(g.state()->devices().empty());
  for (const char* device : {"/job:b", "/job:a", "/job:b", "/job:c"}) add(device);
  node_spec refused = spec_of("Nothing", "n");
  refused.scoped = false;
  refused.device = "/job:d";
  CHECK_THROWS_AS(g.add(std::move(refused)), weft::error);
  CHECK(g.state()->devices() == std::vector<std::string>{"/job:b", "/job:a", "/job:c"});
  add("/job:d");
  CHECK(g.state()->devices().back() == "/job:d");
}

TEST_CASE("graph: a node of any number of edges has them in order") {
  const graph g;
  std::vector<weft::output> inputs;
  std::vector<const node*> before;
  for (int i = 0; i < 300; ++i) {
    node_spec spec = spec_of("Placeholder", "x");
    spec.attrs = {{"dtype", weft::dtype::float32}};
    inputs.push_back({&g.add(std::move(spec)), 0});
    before.push_back(&g.add(spec_of("NoOp", "b")));
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{300}}) {
    node_spec spec = spec_of("AddN", "sum", {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count)});
    spec.control_inputs = {before.rbegin(), before.rend()};
    spec.scoped = false;
    const node& sum = g.add(std::move(spec));
    CHECK(sum.inputs() == std::vector<weft::output>(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count)));
    CHECK(sum.control_inputs() == std::vector<const node*>(before.rbegin(), before.rend()));
  }
}

TEST_CASE("graph: an op that nobody defined") {
  const graph g;
  CHECK_THROWS_WITH_AS(g.add(spec_of("Nonesuch", "x")), "NOT_FOUND: Nonesuch 'x' (user.cpp:12): no op 'Nonesuch' is defined; add its definition to the graph's op_registry", weft::error);
  node_spec known = spec_of("Nonesuch", "x");
  known.outputs = std::vector<weft::output_type>{{weft::dtype::float32, {2}, false}};
  const node& n = g.add(known);  // an imported node whose outputs are known
  CHECK(n.def() == nullptr);
  CHECK(n.stateful());
  CHECK(n.output_shape(0).text() == "[2]");
}

TEST_CASE("graph: own ops") {
  weft::op_registry ops = weft::standard_ops();
  ops.add(weft::op("Twice").input("x: T").output("y: T").attr("T: {float, double}"));
  const graph g(ops);
  const auto scope = g.as_default();
  const auto x = constant(1.f, "x");
  const node& twice = g.add(spec_of("Twice", "t", {x.raw()}));
  CHECK(twice.output_dtype(0) == weft::dtype::float32);
  CHECK_FALSE(twice.output_shape(0).known_rank());
  CHECK_THROWS_WITH_AS(ops.add(weft::op("Twice")), "ALREADY_EXISTS: op 'Twice' is already defined", weft::error);
}

TEST_CASE("graph: inputs that do not exist") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = constant(1.f, "x");
  CHECK_THROWS_WITH_AS(g.add(spec_of("Neg", "n", {{x.raw().from, 1}})), "INVALID_ARGUMENT: Neg 'n' (user.cpp:12): 'x' has 1 outputs, asked for number 1", weft::error);
  CHECK_THROWS_WITH_AS(g.add(spec_of("Neg", "n", {{x.raw().from, -1}})), "INVALID_ARGUMENT: Neg 'n' (user.cpp:12): 'x' has 1 outputs, asked for number -1", weft::error);
  CHECK_THROWS_WITH_AS(g.add(spec_of("Neg", "n", {weft::output()})), "INVALID_ARGUMENT: Neg 'n' (user.cpp:12): an input is an empty tensor, not made by any op", weft::error);
  node_spec waits = spec_of("NoOp", "n");
  waits.control_inputs = {nullptr};
  CHECK_THROWS_WITH_AS(g.add(waits), "INVALID_ARGUMENT: NoOp 'n' (user.cpp:12): a control dependency is an empty operation", weft::error);
}

TEST_CASE("graph: find_output reads the names of tensors") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = constant(1.f, "x");
  CHECK(g.find_output("x") == x.raw());
  CHECK(g.find_output("x:0") == x.raw());
  CHECK(to_text(x.raw()) == "x");
  CHECK_THROWS_WITH_AS(g.find_output("y", here), "NOT_FOUND: user.cpp:12: the graph has no node 'y'", weft::error);
  CHECK_THROWS_WITH_AS(g.find_output("x:1", here), "INVALID_ARGUMENT: user.cpp:12: 'x' has 1 outputs, asked for number 1", weft::error);
  for (const char* name : {"x:", "x:a", "x:-1", "x:1234567", "x: 0", "^x:0:"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(g.find_output(name, here), weft::error);
  }
  CHECK_THROWS_WITH_AS(g.find_output("x:-1", here), "INVALID_ARGUMENT: user.cpp:12: 'x:-1' is not the name of a tensor; write 'node' or 'node:0'", weft::error);
}

TEST_CASE("graph: typed handles by name are checked") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = constant({{1.f, 2.f}}, "x");
  CHECK(g.tensor<float, 2>("x:0").raw() == x.raw());
  CHECK(g.tensor<float>("x").raw() == x.raw());
  CHECK(g.operation("x").get() == x.raw().from);
  CHECK_THROWS_WITH_AS((void)(g.tensor<double, 2>("x", here)), "INVALID_ARGUMENT: user.cpp:12: 'x' has dtype float, not double", weft::error);
  CHECK_THROWS_WITH_AS((void)(g.tensor<float, 1>("x", here)), "INVALID_ARGUMENT: user.cpp:12: 'x' has shape [1,2], not rank 1", weft::error);
  CHECK_THROWS_WITH_AS((void)g.operation("z", here), "NOT_FOUND: user.cpp:12: the graph has no node 'z'", weft::error);
}

TEST_CASE("graph: several threads add nodes at once while another reads") {
  const graph g;
  constexpr int threads = 4, each = 200;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&g, t] {
      const auto scope = g.as_default();
      const auto device = weft::with_device("/job:w/task:" + std::to_string(t));
      const auto wait = weft::control_dependencies({weft::no_op("start")});
      auto x = constant(1.f, "x");
      for (int i = 1; i < each; ++i) x = x * 2.f;
    });
  workers.emplace_back([&g] {
    for (int i = 0; i < 50; ++i)
      for (const node* n : g.nodes()) CHECK(g.find(n->name()) == n);
  });
  for (auto& w : workers) w.join();
  // start, x, and two nodes for each product
  CHECK(g.size() == threads * (2 + 2 * (each - 1)));
  std::set<std::string> names;
  int id = 0;
  for (const node* n : g.nodes()) {
    CHECK(n->id() == id++);
    names.insert(n->name());
    for (const weft::output& in : n->inputs()) CHECK(in.from->device() == n->device());
  }
  CHECK(names.size() == g.size());
}
