#include <weft/train/collections.hpp>

#include <doctest/doctest.h>
#include <weft/graph/scope.hpp>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::any_variable;
using weft::constant;
using weft::graph;
using weft::variable;
using weft::variable_kind;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
};
std::string names(const std::vector<any_variable>& list) {
  std::string out;
  for (const any_variable& v : list) out += (out.empty() ? "" : " ") + v.name();
  return out;
}
}  // namespace

TEST_CASE("collections: a variable is found by its kind") {
  fixture t;
  const variable w(constant({1.f, 2.f}), "w");
  const variable n(std::int64_t{0}, "n");
  const variable fixed(1.f, weft::not_trainable, "fixed");
  const variable sum(0.0, weft::local_variable, "sum");
  const variable counted(std::int32_t{1}, variable_kind::trainable, "counted");
  CHECK(names(weft::global_variables(t.g)) == "w n fixed counted");
  CHECK(names(weft::trainable_variables()) == "w counted");
  CHECK(names(weft::local_variables(t.g)) == "sum");
  CHECK(weft::model_variables().empty());
  weft::add_model_variable(w);
  CHECK(weft::model_variables() == std::vector<any_variable>{w});
  const graph other;
  CHECK(weft::global_variables(other).empty());
  const graph copy(t.g);
  CHECK(names(weft::trainable_variables(copy)) == "w counted");
  CHECK(weft::trainable_variables(copy)[0].handle().from == copy.find("w"));
  const auto scope = weft::name_scope("layer");
  const variable<float, 0> inner(1.f, "w");
  CHECK(names(weft::variables_in(weft::global_variables(), "layer/")) == "layer/w");
}

TEST_CASE("collections: a variable without its static type says what it is") {
  fixture t;
  const auto place = weft::with_device("/job:ps/task:1");
  const variable<float, 1> w(constant({1.f, 2.f}, "start"), {"w", {"user.cpp", 7}});
  const any_variable v = w;
  CHECK(v.name() == "w");
  CHECK(v.dtype() == weft::dtype::float32);
  CHECK(v.shape().text() == "[2]");
  CHECK(v.device() == "/job:ps/task:1");
  CHECK(v.site().text() == "user.cpp:7");
  CHECK(v.initializer().name() == "w/Assign");
  CHECK(to_text(v.initial_value()) == "start");
  CHECK(to_text(*v.read("again").from) == "again = ReadVariableOp(w)  float[2]  /job:ps/task:1");
  CHECK(weft::to_text(*v.assign_add(constant({1.f, 1.f}, "by"), "more").get()).substr(0, 35) == "more = AssignAddVariableOp(w, by)  ");
  const variable<float, 1> same = v.as<float, 1>();
  CHECK(same.fetched() == w.fetched());
  CHECK(same.initializer().get() == w.initializer().get());
  CHECK_THROWS_WITH_AS((void)(v.as<double>({"user.cpp", 9})), "INVALID_ARGUMENT: user.cpp:9: the variable 'w' (user.cpp:7) is float, not double", weft::error);
  CHECK_THROWS_WITH_AS((void)(v.as<float, 2>({"user.cpp", 9})), "INVALID_ARGUMENT: user.cpp:9: the variable 'w' (user.cpp:7) has shape [2], not rank 2", weft::error);
  CHECK_THROWS_WITH_AS((any_variable(weft::output{t.g.find("start"), 0}, {"user.cpp", 9})), "INVALID_ARGUMENT: user.cpp:9: 'start' is no variable but the output of a Const", weft::error);
  CHECK_THROWS_AS((void)any_variable().name(), weft::error);
  CHECK_THROWS_AS((void)v.assign(constant({1.f})), weft::error);
}

TEST_CASE("collections: a variable waits for nothing and stands where its handle does") {
  fixture t;
  const auto a = constant(1.f, "a");
  const auto wait = weft::control_dependencies({a});
  const auto chosen = weft::with_device([](const weft::node& n) { return n.op() == "VarHandleOp" ? std::string("/job:ps/task:0") : n.device().empty() ? std::string("/job:worker") : n.device(); });
  const variable<float, 0> w(2.f, "w");
  for (const char* name : {"w", "w/initial_value", "w/Assign", "w/Read/ReadVariableOp"}) CHECK(t.g.find(name)->control_inputs().empty());
  for (const char* name : {"w", "w/Assign", "w/Read/ReadVariableOp"}) CHECK(t.g.find(name)->device() == "/job:ps/task:0");
}

TEST_CASE("collections: initializers, and the variables that are not initialized") {
  fixture t;
  const variable<float, 1> a(constant({1.f, 2.f}), "a");
  const variable<float, 0> b(5.f, "b");
  const variable<std::int64_t, 0> c(std::int64_t{7}, weft::local_variable, "c");
  const auto only_b = weft::initialize_variables({b});
  const auto globals = weft::global_variables_initializer(t.g, "everything");
  const auto locals = weft::local_variables_initializer();
  const auto missing = weft::report_uninitialized_variables();
  const auto missing_globals = weft::report_uninitialized_variables({a, b}, "globals");
  const auto none = weft::report_uninitialized_variables(std::vector<any_variable>());
  const auto known = weft::is_variable_initialized(b);
  weft::local_session session;
  using names_value = std::vector<std::string>;
  const auto listed = [&](const weft::tensor<std::string, 1>& x) {
    const auto v = session.run(x);
    return names_value(v.begin(), v.end());
  };
  CHECK(listed(missing) == names_value{"a", "b", "c"});
  CHECK(listed(none).empty());
  CHECK_FALSE(session.run(known));
  session.run(only_b);
  CHECK(session.run(known));
  CHECK(listed(missing) == names_value{"a", "c"});
  CHECK(listed(missing_globals) == names_value{"a"});
  session.run(globals);
  CHECK(listed(missing_globals).empty());
  CHECK(listed(missing) == names_value{"c"});
  session.run(locals);
  CHECK(listed(missing).empty());
  CHECK(session.run(c) == 7);
}

TEST_CASE("collections: a variable from elsewhere has no initializer") {
  fixture t;
  weft::node_spec spec;
  spec.op = "VarHandleOp";
  spec.name = "v";
  spec.attrs = {{"dtype", weft::dtype::float32}, {"shape", weft::partial_shape({2})}};
  const any_variable v(weft::output{&t.g.add(std::move(spec)), 0});
  CHECK(v.initializer().empty());
  CHECK(v.initial_value().from == nullptr);
  CHECK(v.as<float>().fetched().from->op() == "ReadVariableOp");
  CHECK_THROWS_WITH_AS((void)weft::initialize_variables({v}, {"init", {"user.cpp", 3}}), "INVALID_ARGUMENT: user.cpp:3: the variable 'v' has no initializer in this graph; it was made elsewhere", weft::error);
}

TEST_CASE("collections: the global step") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)weft::get_global_step(t.g, {"user.cpp", 3}), "NOT_FOUND: user.cpp:3: the graph has no global step; make it with create_global_step()", weft::error);
  const auto scope = weft::name_scope("model");
  const auto step = weft::get_or_create_global_step(t.g, {"user.cpp", 4});
  CHECK(step.name() == "global_step");
  CHECK(weft::get_or_create_global_step().raw() == step.raw());
  CHECK(weft::get_global_step().raw() == step.raw());
  CHECK(names(weft::global_variables()) == "global_step");
  CHECK(weft::trainable_variables().empty());
  CHECK_THROWS_WITH_AS((void)weft::create_global_step(t.g, {"user.cpp", 5}), "ALREADY_EXISTS: user.cpp:5: the graph has a global step, 'global_step' (user.cpp:4), already", weft::error);
  const auto up = step.assign_add(1);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  session.run(up);
  CHECK(session.run(step) == 1);
  const graph other;
  const auto elsewhere = weft::get_or_create_global_step(other);
  CHECK(elsewhere.raw().from == other.find("global_step"));
  CHECK(t.g.size() < 20);
}
