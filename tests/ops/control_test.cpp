#include <weft/ops/control.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <string>
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
