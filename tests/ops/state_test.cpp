#include <weft/ops/state.hpp>

#include <doctest/doctest.h>
#include <weft/graph/scope.hpp>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::constant;
using weft::graph;
using weft::operation;
using weft::tensor;
using weft::variable;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
};
}  // namespace

TEST_CASE("variable: a handle, its first assignment, and a read") {
  fixture t;
  const variable<float, 1> w(constant({1.f, 2.f}, "start"), "w");
  CHECK(to_text(t.g) ==
        "start = Const()  float[2]  {value=[1, 2]}\n"
        "w = VarHandleOp()  resource  {dtype=float, shape=[2], shared_name=\"w\"}\n"
        "w/Assign = AssignVariableOp(w, start)\n"
        "w/Read/ReadVariableOp = ReadVariableOp(w)  float[2]\n");
  CHECK(w.name() == "w");
  CHECK(w.shape().text() == "[2]");
  CHECK(w.initializer().name() == "w/Assign");
}

TEST_CASE("variable: from a value, with names that stay together") {
  fixture t;
  const variable a(0.f);
  const variable b(std::vector<std::int64_t>{1, 2});
  const variable c(1.f, "c");
  const variable d(2.f, "c");
  CHECK(a.name() == "Variable");
  CHECK(b.name() == "Variable_1");
  CHECK(t.g.find("Variable_1/initial_value") != nullptr);
  CHECK(d.name() == "c_1");
  CHECK(d.initializer().get()->inputs()[1].from->name() == "c_1/initial_value");
  CHECK(d.raw().from->attr<std::string>("shared_name") == "c_1");
  const auto s = weft::name_scope("model");
  const variable e(1.f, "c");
  CHECK(e.raw().from->attr<std::string>("shared_name") == "model/c");
  CHECK(t.g.find("model/c/Read/ReadVariableOp") != nullptr);
}

TEST_CASE("variable: all of it follows the scopes") {
  fixture t;
  const auto device = weft::with_device("/job:ps/task:1");
  const variable w(1.f, "w");
  for (const char* name : {"w", "w/initial_value", "w/Assign", "w/Read/ReadVariableOp"}) CHECK(t.g.find(name)->device() == "/job:ps/task:1");
}

TEST_CASE("variable: each op that uses it reads it anew") {
  fixture t;
  const variable w(constant({1.f}, "start"), "w");
  const auto squared = w * w;
  const auto again = w.read("again");
  const tensor<float, 1> converted = w;
  CHECK(squared.raw().from->inputs()[0].from->name() == "mul/ReadVariableOp");
  CHECK(squared.raw().from->inputs()[1].from->name() == "mul/ReadVariableOp_1");
  CHECK(again.raw().from->op() == "ReadVariableOp");
  CHECK(again.shape().text() == "[1]");
  CHECK(converted.raw().from->op() == "ReadVariableOp");
}

TEST_CASE("variable: reads and updates wait for control dependencies") {
  fixture t;
  const variable counter(std::int64_t{0}, "n");
  const operation step = counter.assign_add(1);
  const auto wait = weft::control_dependencies({step});
  const auto after = counter.read();
  CHECK(after.raw().from->control_inputs() == std::vector<const weft::node*>{step.get()});
}

TEST_CASE("variable: assignments") {
  fixture t;
  const variable w(constant({1.f, 2.f}), "w");
  const auto v = constant({3.f, 4.f}, "v");
  CHECK(w.assign(v).get()->op() == "AssignVariableOp");
  CHECK(w.assign_add(v).get()->op() == "AssignAddVariableOp");
  CHECK(w.assign_sub(v, "down").name() == "down");
  const variable n(std::int64_t{0}, "n");
  const operation up = n.assign_add(5);
  CHECK(up.get()->inputs()[1].from->attr<weft::tensor_value>("value") == weft::tensor_value::from<std::int64_t>({}, {5}));
  CHECK_THROWS_WITH_AS((void)w.assign(constant({1.f}), {"a", {"user.cpp", 3}}), "INVALID_ARGUMENT: AssignVariableOp 'a' (user.cpp:3): the variable 'w' has shape [2], found a value of shape [1]", weft::error);
}

TEST_CASE("variable: an unknown shape takes any value") {
  fixture t;
  const variable<float> w(weft::placeholder<float>(), "w");
  CHECK_FALSE(w.shape().known_rank());
  CHECK(w.assign(constant({1.f})).get() != nullptr);
}

TEST_CASE("variable: an empty one is an error where it is used, and has no initializer") {
  fixture t;
  const variable<float, 0> none;
  CHECK(none.initializer().empty());
  CHECK_THROWS_WITH_AS((void)none.read({"r", {"user.cpp", 4}}), "INVALID_ARGUMENT: user.cpp:4: the variable is empty; give it an initial value", weft::error);
  CHECK_THROWS_AS((void)none.assign(1.f), weft::error);
  CHECK_THROWS_AS((void)none.assign_add(constant(1.f)), weft::error);
  CHECK_THROWS_AS((void)(none * 2.f), weft::error);
  CHECK_THROWS_WITH_AS((variable<float, 0>(tensor<float, 0>(), {"w", {"user.cpp", 5}})), "INVALID_ARGUMENT: user.cpp:5: the initial value is an empty tensor, not made by any op", weft::error);
}

TEST_CASE("variable: is_initialized asks the handle") {
  fixture t;
  const variable w(1.f, "w");
  const auto known = w.is_initialized();
  CHECK(known.raw().from->op() == "VarIsInitializedOp");
  CHECK(known.raw().from->inputs()[0].from->name() == "w");
  CHECK(known.shape().text() == "[]");
}

TEST_CASE("global_variables_initializer: waits for the first assignment of each") {
  fixture t;
  const variable a(1.f, "a");
  const variable b(2.f, "b");
  CHECK(to_text(*weft::global_variables_initializer().get()) == "init = NoOp(^a/Assign, ^b/Assign)");
}

TEST_CASE("global_variables_initializer: a signal for each device") {
  fixture t;
  weft::with_device("/job:ps/task:0", [] { variable<float, 0> a(1.f, "a"); });
  weft::with_device("/job:ps/task:1", [] { variable<float, 0> b(1.f, "b"); });
  const operation init = weft::global_variables_initializer();
  CHECK(to_text(*init.get()) == "init = NoOp(^init/NoOp, ^init/NoOp_1)");
  CHECK(to_text(*t.g.find("init/NoOp_1")) == "init/NoOp_1 = NoOp(^b/Assign)  /job:ps/task:1");
}

TEST_CASE("variable: rows are gathered and changed without the others") {
  fixture t;
  const variable<float, 2> w(std::vector<std::vector<float>>{{1, 2}, {3, 4}, {5, 6}}, "w");
  const auto ids = weft::placeholder<std::int32_t, 1>({2}, "ids");
  const auto rows = weft::placeholder<float, 2>({2, 2}, "rows");
  const tensor<float, 2> picked = weft::gather(w, ids, "picked");
  CHECK(to_text(*picked.raw().from) == "picked = ResourceGather(w, ids)  float[2,2]");
  CHECK(weft::gather(w, constant(1)).shape().text() == "[2]");
  const tensor<float> element = weft::gather_nd(w, constant({{0, 1}}));
  CHECK(element.shape().text() == "[1]");
  CHECK(to_text(*w.scatter_add(ids, rows, "add").get()) == "add = ResourceScatterAdd(w, ids, rows)");
  CHECK(to_text(*w.scatter_update(ids, 0.f, "zero").get()) == "zero = ResourceScatterUpdate(w, ids, updates)");
  CHECK(to_text(*w.scatter_nd_sub(constant({{0, 1}}), constant({1.f}), "nd").get()).substr(0, 24) == "nd = ResourceScatterNdSu");
  CHECK(w.shape_now().shape().text() == "[2]");
  const variable<std::int64_t, 0> n(std::int64_t{0}, "n");
  CHECK(n.count_up_to(5, "next").raw().from->attr<std::int64_t>("limit") == 5);
  CHECK_THROWS_WITH_AS(w.scatter_add(ids, weft::placeholder<float, 2>({2, 3})), doctest::Contains("updates must have shape [2,2] to fit indices of shape [2], found [2,3]"), weft::error);
}
