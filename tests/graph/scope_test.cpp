#include <weft/graph/scope.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using weft::colocate_with;
using weft::constant;
using weft::control_dependencies;
using weft::graph;
using weft::name_scope;
using weft::node;
using weft::op_name;
using weft::operation;
using weft::with_device;

// The expected names, devices, colocation groups and control inputs are what TensorFlow gives for the same programs.

namespace {

const node& c(const char* name) { return *constant(1.f, name).raw().from; }
const node& c() { return *constant(1.f).raw().from; }
const node& add(const char* op, std::vector<weft::output> inputs, op_name name = {}, weft::attr_map attrs = {}) {
  return weft::detail::add_node(op, std::move(inputs), name, std::move(attrs));
}
const node& handle(const char* name) {
  return add("VarHandleOp", {}, name, {{"dtype", weft::dtype::float32}, {"shape", weft::partial_shape({2})}, {"shared_name", name}});
}
operation run(const node& n) { return operation(n); }

std::string names(const graph& g) {
  std::string out;
  for (const node* n : g.nodes()) out += (out.empty() ? "" : " ") + n->name();
  return out;
}
std::string classes(const node& n) {
  std::string out;
  if (const auto* groups = n.find_attr<std::vector<std::string>>("_class"))
    for (const std::string& group : *groups) out += (out.empty() ? "" : " ") + group;
  return out;
}
std::string waits(const node& n) {
  std::string out;
  for (const node* before : n.control_inputs()) out += (out.empty() ? "" : " ") + before->name();
  return out;
}

// A fresh graph as the thread's default.
struct fresh_graph {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
};

}  // namespace

TEST_CASE("names: a taken name gets a number") {
  fresh_graph t;
  for (const char* name : {"x", "x", "x"}) c(name);
  CHECK(names(t.g) == "x x_1 x_2");
}

TEST_CASE("names: the numbered name is asked for later") {
  fresh_graph t;
  for (const char* name : {"x", "x", "x_1", "x_1", "x"}) c(name);
  CHECK(names(t.g) == "x x_1 x_1_1 x_1_2 x_2");
}

TEST_CASE("names: unique without regard to case") {
  fresh_graph t;
  for (const char* name : {"x", "X", "x", "X"}) c(name);
  CHECK(names(t.g) == "x X_1 x_2 X_3");
  fresh_graph other;
  for (const char* name : {"X_1", "x", "x", "x"}) c(name);
  CHECK(names(other.g) == "X_1 x x_2 x_3");
}

TEST_CASE("names: the default is the op's; an empty name means the default") {
  fresh_graph t;
  c();
  c("");
  add("NoOp", {});
  CHECK(names(t.g) == "Const Const_1 NoOp");
}

TEST_CASE("names: a slash in a name takes no scope") {
  fresh_graph t;
  for (const char* name : {"p/q/r", "p/q", "p/q"}) c(name);
  {
    const auto s = name_scope("p");
    c("q");
  }
  CHECK(names(t.g) == "p/q/r p/q p/q_1 p/q_2");
}

TEST_CASE("names: a trailing slash takes the name as it is") {
  fresh_graph t;
  const auto s = name_scope("s");
  c("t/y/");
  CHECK(names(t.g) == "t/y");
  CHECK_THROWS_WITH_AS(add("NoOp", {}, op_name("t/y/", {"user.cpp", 3})), "ALREADY_EXISTS: NoOp 't/y' (user.cpp:3): the graph already has a node of this name", weft::error);
}

TEST_CASE("names: what TensorFlow refuses is refused") {
  fresh_graph t;
  for (const char* name : {"_x", "-x", "/x", "x y", "gr\xc3\xb6\xc3\x9f" "e", "x:0", "^x"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(c(name), weft::error);
  }
  CHECK_THROWS_WITH_AS(add("NoOp", {}, op_name("x:0", {"user.cpp", 3})),
                       "INVALID_ARGUMENT: NoOp 'x:0' (user.cpp:3): the name must match [A-Za-z0-9.][A-Za-z0-9._/\\->]* and have at most 1024 characters", weft::error);
  CHECK_THROWS_AS(c(std::string(1025, 'x').c_str()), weft::error);
  CHECK(t.g.size() == 0);
  for (const char* name : {"9", ".x", "a\\b", "a->b", "a_b."}) CHECK(c(name).name() == name);
}

TEST_CASE("name_scope: prefixes, is numbered, and nests") {
  fresh_graph t;
  for (int i = 0; i < 2; ++i) {
    const auto s = name_scope("s");
    c("x");
    const auto inner = name_scope("t");
    c("x");
  }
  CHECK(names(t.g) == "s/x s/t/x s_1/x s_1/t/x");
}

TEST_CASE("name_scope: scopes and nodes share one set of names") {
  fresh_graph t;
  {
    const auto s = name_scope("s");
    c("x");
  }
  c("s");
  { const auto empty = name_scope("e"); }
  {
    const auto s = name_scope("e");
    c("x");
  }
  CHECK(names(t.g) == "s/x s_1 e_1/x");
  fresh_graph other;
  {
    const auto upper = name_scope("Scope");
    c("x");
  }
  {
    const auto lower = name_scope("scope");
    c("x");
    c("X");
  }
  CHECK(names(other.g) == "Scope/x scope_1/x scope_1/X_1");
}

TEST_CASE("name_scope: a trailing slash enters a scope as it is") {
  fresh_graph t;
  const auto o = name_scope("o");
  for (int i = 0; i < 2; ++i) {
    const auto s = name_scope("s/");
    c("x");
  }
  c("x");
  CHECK(names(t.g) == "s/x s/x_1 o/x");
}

TEST_CASE("name_scope: entering a name as it is does not use it up") {
  fresh_graph t;
  {
    const auto s = name_scope("s/");
    c("x");
  }
  {
    const auto s = name_scope("s");
    c("x");
  }
  CHECK(names(t.g) == "s/x s/x_1");
}

TEST_CASE("name_scope: a slash in the middle uses up only the whole name") {
  fresh_graph t;
  for (const char* name : {"s/t", "s", "s/t"}) {
    const auto s = name_scope(name);
    c("x");
  }
  CHECK(names(t.g) == "s/t/x s/x s/t_1/x");
}

TEST_CASE("name_scope: an empty name goes back to the root") {
  fresh_graph t;
  const auto s = name_scope("s");
  {
    const auto root = name_scope("");
    c("x");
  }
  c("x");
  CHECK(names(t.g) == "x s/x");
}

TEST_CASE("name_scope: a bad name throws at that line") {
  fresh_graph t;
  const weft::call_site where{"user.cpp", 9};
  CHECK_THROWS_WITH_AS((void)name_scope("_s", where), "INVALID_ARGUMENT: user.cpp:9: name scope '_s' must match [A-Za-z0-9.][A-Za-z0-9._/\\->]* and have at most 1024 characters", weft::error);
  CHECK_THROWS_AS((void)name_scope("/"), weft::error);
  CHECK_THROWS_AS((void)name_scope("a b"), weft::error);
  const auto s = name_scope("s");
  const auto inner = name_scope("_t");  // inside another it is allowed
  CHECK(c("_x").name() == "s/_t/_x");
}

TEST_CASE("with_device: inner parts win, open parts come from outside") {
  fresh_graph t;
  const auto job = with_device("/job:ps/task:1");
  CHECK(c().device() == "/job:ps/task:1");
  {
    const auto cpu = with_device("/cpu:0");
    CHECK(c().device() == "/job:ps/task:1/device:CPU:0");
    const auto task = with_device("/task:2/device:GPU:3");
    CHECK(c().device() == "/job:ps/task:2/device:GPU:3");
    const auto wildcard = with_device("/device:GPU:*");
    CHECK(c().device() == "/job:ps/task:2/device:GPU:3");
  }
  const auto empty = with_device("");
  CHECK(c().device() == "/job:ps/task:1");
}

TEST_CASE("with_device: canonical form, and the outer device back afterwards") {
  fresh_graph t;
  {
    const auto d = with_device("/device:cpu:0/task:1/job:w/replica:0");
    CHECK(c().device() == "/job:w/task:1/device:CPU:0");
  }
  CHECK(c().device().empty());
}

TEST_CASE("with_device: nullptr drops what is outside") {
  fresh_graph t;
  const auto outer = with_device("/job:ps/task:1");
  {
    const auto none = with_device(nullptr);
    CHECK(c().device().empty());
    const auto inner = with_device("/cpu:1");
    CHECK(c().device() == "/device:CPU:1");
  }
  CHECK(c().device() == "/job:ps/task:1");
}

TEST_CASE("with_device: a bad string throws at that line") {
  CHECK_THROWS_WITH_AS((void)with_device("job:ps", {"user.cpp", 4}),
                       "INVALID_ARGUMENT: user.cpp:4: device string 'job:ps' is malformed: it must begin with '/'; expected something like '/job:ps/task:0/device:CPU:0'", weft::error);
}

TEST_CASE("with_device: a function's answer replaces what inner scopes said") {
  fresh_graph t;
  std::vector<std::string> seen;
  const auto outer = with_device("/job:w");
  const auto choose = with_device([&](const node& n) -> std::string {
    seen.push_back(n.op() + n.device());
    return n.op() == "Const" ? "/job:ps/task:0" : n.device();
  });
  CHECK(c().device() == "/job:ps/task:0");
  {
    const auto inner = with_device("/cpu:1");
    CHECK(c().device() == "/job:ps/task:0");
    CHECK(add("NoOp", {}).device() == "/job:w/device:CPU:1");
  }
  CHECK(seen == std::vector<std::string>{"Const", "Const/device:CPU:1", "NoOp/device:CPU:1"});
}

TEST_CASE("with_device: what a function answers is written as everywhere, and refused where it is wrong") {
  fresh_graph t;
  {
    const auto scope = with_device([](const node&) { return "/gpu:0"; });
    CHECK(c().device() == "/device:GPU:0");
  }
  CHECK_THROWS_AS((void)with_device("/physical_device:GPU:0"), weft::error);
  {
    const auto scope = with_device([](const node&) { return "/physical_device:GPU:0"; });
    CHECK_THROWS_AS(c(), weft::error);
  }
  // Variables on the CPU, the rest where inner scopes say.
  const auto outer = with_device([](const node& n) -> std::string { return n.op() == "Const" ? "/cpu:0" : n.device(); });
  const auto inner = with_device("/gpu:1");
  CHECK(c().device() == "/device:CPU:0");
  CHECK(add("NoOp", {}).device() == "/device:GPU:1");
}

TEST_CASE("colocate_with: takes the other's device over any outer scope") {
  fresh_graph t;
  const node* a = nullptr;
  {
    const auto d = with_device("/job:ps/task:1");
    a = &c("a");
  }
  const auto outer = with_device("/job:w/task:0");
  const auto together = colocate_with(run(*a));
  const node& b = c("b");
  CHECK(b.device() == "/job:ps/task:1");
  CHECK(classes(b) == "loc:@a");
  CHECK(classes(*a).empty());
}

TEST_CASE("colocate_with: groups are followed to their head, and add up sorted") {
  fresh_graph t;
  const node &a = c("a"), &z = c("z");
  const node* b = nullptr;
  {
    const auto with_a = colocate_with(run(a));
    b = &c("b");
  }
  const auto with_z = colocate_with(run(z));
  const auto with_b = colocate_with(run(*b));
  CHECK(classes(c("d")) == "loc:@a loc:@z");
}

TEST_CASE("colocate_with: nullptr frees what is inside") {
  fresh_graph t;
  const node& a = c("a");
  const auto with_a = colocate_with(run(a));
  const auto free = colocate_with(nullptr);
  CHECK(classes(c("b")).empty());
}

TEST_CASE("colocate_with: an empty operation is an error at that line") {
  CHECK_THROWS_WITH_AS((void)colocate_with(operation(), {"user.cpp", 5}), "INVALID_ARGUMENT: user.cpp:5: colocate_with: the operation is empty", weft::error);
}

TEST_CASE("control_dependencies: written sorted by name, each once") {
  fresh_graph t;
  const operation b = run(c("b")), a = run(c("a"));
  const auto s = control_dependencies({b, a, b, operation()});
  const auto inner = control_dependencies({a});
  CHECK(waits(c("x")) == "a b");
}

TEST_CASE("control_dependencies: nullptr clears them") {
  fresh_graph t;
  const operation a = run(c("a")), b = run(c("b"));
  const auto s = control_dependencies({a});
  {
    const auto none = control_dependencies(nullptr);
    CHECK(waits(c("x")).empty());
    const auto more = control_dependencies({b});
    CHECK(waits(c("y")) == "b");
  }
  CHECK(waits(c("z")) == "a");
}

TEST_CASE("control_dependencies: an input made in the scope makes the edge needless") {
  fresh_graph t;
  const node &a = c("a"), &outside = c("o");
  const auto s = control_dependencies({run(a)});
  const node& inside = c("i");
  CHECK(waits(inside) == "a");
  CHECK(waits(add("Neg", {{&inside, 0}})).empty());
  CHECK(waits(add("Neg", {{&outside, 0}})) == "a");
  CHECK(waits(add("AddV2", {{&inside, 0}, {&outside, 0}})).empty());  // one such input is enough
  CHECK(waits(add("Neg", {{&a, 0}})).empty());                        // a itself is an input
}

TEST_CASE("control_dependencies: made in an outer scope still waits for the inner one") {
  fresh_graph t;
  const node &a = c("a"), &b = c("b");
  const auto s = control_dependencies({run(a)});
  const node& made = c("m");
  const auto inner = control_dependencies({run(b)});
  CHECK(waits(add("Neg", {{&made, 0}})) == "b");
}

TEST_CASE("control_dependencies: order an update and a read") {
  fresh_graph t;
  const node& w = handle("w");
  const node& ones = *constant({1.f, 1.f}, "ones").raw().from;
  const node& update = add("AssignAddVariableOp", {{&w, 0}, {&ones, 0}}, "update", {{"dtype", weft::dtype::float32}});
  const auto s = control_dependencies({run(update)});
  CHECK(waits(add("ReadVariableOp", {{&w, 0}}, "read", {{"dtype", weft::dtype::float32}})) == "update");
}

TEST_CASE("with_container: state made inside lives there, unless it is told another container") {
  fresh_graph t;
  const auto container = [](const node& n) {
    const std::string* found = n.find_attr<std::string>("container");
    return found == nullptr ? std::string("none") : *found;
  };
  const auto queue = [](weft::attr_map attrs) -> const node& {
    attrs.emplace("component_types", std::vector<weft::dtype>{weft::dtype::float32});
    return add("FIFOQueueV2", {}, {}, std::move(attrs));
  };
  CHECK(container(handle("a")).empty());
  {
    const auto outer = weft::with_container("test0");
    CHECK(container(handle("b")) == "test0");
    CHECK(container(queue({})) == "test0");
    CHECK(container(queue({{"container", "own"}})) == "own");
    CHECK(container(c("no_state")) == "none");
    CHECK(weft::with_container("test1/x-2", [&] { return container(handle("c")); }) == "test1/x-2");
    CHECK(weft::with_container("", [&] { return container(handle("d")); }).empty());
    CHECK(container(handle("e")) == "test0");
  }
  CHECK(container(handle("f")).empty());
  for (const char* bad : {"_a", "a b", "-", "a:0"}) CHECK_THROWS_AS((void)weft::with_container(bad), weft::error);
  CHECK_THROWS_WITH((void)weft::with_container("a b"), doctest::Contains("with_container: the name 'a b' must begin with a letter, digit or '.' and go on with these, '-' and '/'"));
}

TEST_CASE("scopes: all kinds at once") {
  fresh_graph t;
  const operation a = run(c("a"));
  const auto d = with_device("/job:w/task:1");
  const auto n = name_scope("tower");
  const auto s = control_dependencies({a});
  CHECK(to_text(c("x")) == "tower/x = Const(^a)  float[]  /job:w/task:1  {value=1}");
}

TEST_CASE("scopes: the form with a callable returns its result and ends with it, also by an exception") {
  fresh_graph t;
  const weft::tensor<float, 0> a = with_device("/job:ps", [] { return constant(1.f, "a"); });
  CHECK(a.raw().from->device() == "/job:ps");
  CHECK(name_scope("s", [] { return c("x").name(); }) == "s/x");
  CHECK(waits(control_dependencies({a}, []() -> const node& { return c("y"); })) == "a");
  CHECK(classes(colocate_with(a, []() -> const node& { return c("z"); })) == "loc:@a");
  CHECK_THROWS_AS(with_device("/job:ps", [] { throw std::runtime_error("x"); }), std::runtime_error);
  with_device("/job:ps", [] { c("v"); });
  const node& after = c("w");
  CHECK(to_text(after) == "w = Const()  float[]  {value=1}");
}

TEST_CASE("scopes: another graph's nodes are refused") {
  graph g, h;
  const operation foreign = [&] {
    const auto s = g.as_default();
    return run(c("foreign"));
  }();
  const auto s = h.as_default();
  {
    const auto wait = control_dependencies({foreign});
    CHECK_THROWS_WITH_AS(add("NoOp", {}, op_name("n", {"user.cpp", 6})), "INVALID_ARGUMENT: NoOp 'n' (user.cpp:6): the control dependency 'foreign' belongs to another graph", weft::error);
  }
  const auto together = colocate_with(foreign);
  CHECK_THROWS_WITH_AS(add("NoOp", {}, op_name("n", {"user.cpp", 8})), "INVALID_ARGUMENT: NoOp 'n' (user.cpp:8): is to be colocated with 'foreign', which belongs to another graph", weft::error);
}
