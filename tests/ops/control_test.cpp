#include <weft/ops/control.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/standard.hpp>
#include <weft/ops/state.hpp>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

using weft::graph;
using weft::group;
using weft::no_op;
using weft::operation;
using weft::with_device;

TEST_CASE("no_op: does nothing, and can wait") {
  const graph g;
  const auto scope = g.as_default();
  const operation a = no_op("a");
  const auto wait = weft::control_dependencies({a});
  CHECK(to_text(*no_op().get()) == "NoOp = NoOp(^a)");
}

TEST_CASE("group: one node where its members are") {
  const graph g;
  const auto scope = g.as_default();
  const operation b = no_op("b"), a = no_op("a");
  CHECK(to_text(*group({b, a}).get()) == "group_deps = NoOp(^a, ^b)");
  CHECK(group({b, operation()}, "both").get()->control_inputs().size() == 1);
  CHECK(to_text(*group(std::vector<operation>()).get()) == "group_deps_1 = NoOp()");
}

TEST_CASE("group: on several devices, a part on each, and one that waits for those") {
  const graph g;
  const auto scope = g.as_default();
  const operation a = with_device("/job:ps/task:0", [] { return no_op("a"); });
  const operation b = with_device("/job:ps/task:1", [] { return no_op("b"); });
  const operation c = with_device("/job:ps/task:0", [] { return no_op("c"); });
  const auto here = with_device("/job:w/task:0");
  const operation all = group({a, b, c}, "all");
  CHECK(to_text(g) ==
        "a = NoOp()  /job:ps/task:0\n"
        "b = NoOp()  /job:ps/task:1\n"
        "c = NoOp()  /job:ps/task:0\n"
        "all/NoOp = NoOp(^a, ^c)  /job:ps/task:0\n"
        "all/NoOp_1 = NoOp(^b)  /job:ps/task:1\n"
        "all = NoOp(^all/NoOp, ^all/NoOp_1)  /job:w/task:0\n");
}

TEST_CASE("group: the device scopes are as before, also after an error") {
  const graph g, h;
  const auto scope = g.as_default();
  const operation a = with_device("/job:ps", [] { return no_op("a"); });
  const operation foreign = [&] {
    const auto other = h.as_default();
    return with_device("/job:ps", [] { return no_op("foreign"); });
  }();
  CHECK_THROWS_WITH_AS((void)group({a, foreign}, {"both", {"user.cpp", 3}}), "INVALID_ARGUMENT: NoOp 'both' (user.cpp:3): a control dependency 'a' belongs to another graph", weft::error);
  CHECK(no_op().get()->device().empty());
}

TEST_CASE("assert_that and print: what they report is named below them") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>({weft::unknown}, "x");
  const auto ok = weft::placeholder<bool, 0>("ok");
  const weft::variable<float, 0> v(1.f, "v");
  CHECK(to_text(*weft::assert_that(ok, {"x is", x, 3, v}).get()) == "Assert = Assert(ok, Assert/data_0, x, Assert/data_2, Assert/data_3)");
  CHECK(g.find("Assert/data_0")->attr<weft::tensor_value>("value").item<std::string>() == "x is");
  CHECK(g.find("Assert/data_3")->op() == "ReadVariableOp");
  CHECK(weft::assert_that(ok).get()->inputs().size() == 2);
  CHECK(to_text(*weft::assert_that(ok, {x}, -1, "all").get()) == "all = Assert(ok, x)  {summarize=-1}");
  const weft::tensor<float, 1> y = weft::print(x, {x, "end"}, "x: ");
  CHECK(to_text(*y.raw().from) == "Print = Print(x, x, Print/data_1)  float[?]  {message=\"x: \"}");
}

TEST_CASE("with_dependencies, tuple_of, identity_n") {
  const graph g;
  const auto scope = g.as_default();
  const auto a = weft::placeholder<float, 1>({2}, "a");
  const auto b = with_device("/job:ps/task:1", [] { return weft::placeholder<std::int64_t, 0>("b"); });
  const operation first = no_op("first");
  CHECK(to_text(*weft::with_dependencies({first}, a).raw().from) == "control_dependency = Identity(a, ^first)  float[2]  {_class=[\"loc:@a\"]}");
  const weft::tensor<std::int64_t, 0> later = weft::with_dependencies({first}, b, "later");
  CHECK(later.raw().from->attr<std::vector<std::string>>("_class") == std::vector<std::string>{"loc:@b"});
  const auto [a2, b2] = weft::tuple_of(std::tuple(a, b), "gate");
  CHECK(a2.raw().from->control_inputs().size() == 1);
  CHECK(b2.raw().from->inputs()[0].from->name() == "b");
  CHECK(weft::tuple_of(std::vector{a, a}).size() == 2);
  const auto [a3, b3] = weft::identity_n(std::tuple(a, b), "both");
  CHECK(a3.name() == "both");
  CHECK(b3.name() == "both:1");
}
