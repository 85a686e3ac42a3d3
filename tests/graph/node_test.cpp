#include <weft/graph/node.hpp>

#include <doctest/doctest.h>
#include <weft/graph/graph.hpp>
#include <weft/ops/standard.hpp>

#include <string>
#include <utility>

using weft::graph;
using weft::node;

TEST_CASE("node: attributes that are absent or of another kind") {
  const graph g;
  const auto scope = g.as_default();
  const node& n = weft::detail::add_node("NoOp", {}, {"n", {"user.cpp", 2}}, {{"x", 5}});
  CHECK(n.attr<std::int64_t>("x") == 5);
  CHECK(n.find_attr<std::int64_t>("x") != nullptr);
  CHECK(n.find_attr<float>("x") == nullptr);
  CHECK(n.find_attr<std::int64_t>("y") == nullptr);
  CHECK_THROWS_WITH_AS(n.attr<float>("x"), "INVALID_ARGUMENT: NoOp 'n' (user.cpp:2): attribute 'x' is missing or of another kind", weft::error);
}

TEST_CASE("node: a status about it names it, its op and the user's line") {
  const graph g;
  const auto scope = g.as_default();
  const node& n = weft::detail::add_node("NoOp", {}, {"n", {"user.cpp", 2}});
  const weft::status s = n.status_about(weft::error_code::aborted, "stopped");
  CHECK(s.code == weft::error_code::aborted);
  CHECK(s.node == "n");
  CHECK(s.op == "NoOp");
  CHECK(s.site == "user.cpp:2");
  CHECK(s.text() == "ABORTED: NoOp 'n' (user.cpp:2): stopped");
}

TEST_CASE("output: its text is a tensor's name") {
  weft::op_registry ops;
  ops.add(weft::op("Pair").output("a: float").output("b: int32"));
  const graph g(ops);
  const auto scope = g.as_default();
  const node& n = weft::detail::add_node("Pair", {}, "p");
  CHECK(to_text(weft::output{&n, 0}) == "p");
  CHECK(to_text(weft::output{&n, 1}) == "p:1");
  CHECK(to_text(weft::output()) == "(none)");
  CHECK(n.output_dtype(1) == weft::dtype::int32);
  CHECK(g.find_output("p:1") == weft::output{&n, 1});
  CHECK((weft::output{&n, 0} != weft::output{&n, 1}));
}
