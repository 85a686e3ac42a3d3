#include <weft/partition/partitioned_graph.hpp>

#include "letters.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

using letters::out;
using letters::world;

namespace {

weft::partitioned_graph two_tasks() {
  world w;
  const auto& x = w.constant("A1", weft::tensor_value::from(weft::shape{100}, std::vector<float>(100)));
  w.add("Identity", "C1", {out(x)});
  w.add("NoOp", "D1");
  return w.parts();
}

}  // namespace

TEST_CASE("partitioned_graph: a part is found by its task, its device or part of a name") {
  const auto parts = two_tasks();
  CHECK(parts.at("/job:a/task:1").task == "/job:a/task:1");
  CHECK(parts.at("/job:a/replica:0/task:0").task == "/job:a/task:0");
  CHECK(parts.at("/task:1").task == "/job:a/task:1");
  CHECK(parts.at("/job:a/task:1/device:CPU:1").task == "/job:a/task:1");
  CHECK(parts.at("/cpu:1").task == "/job:a/task:1");
}

TEST_CASE("partitioned_graph: a name that fits no part or several is refused at the caller's line") {
  const auto parts = two_tasks();
  const weft::call_site here{"my_test.cpp", 7};
  CHECK_THROWS_WITH_AS(parts.at("/job:b", here), "NOT_FOUND: my_test.cpp:7: no part for '/job:b'; the parts are those of /job:a/task:0, /job:a/task:1", weft::error);
  CHECK_THROWS_WITH_AS(parts.at("/job:a/task:0/cpu:1", here),
                       "NOT_FOUND: my_test.cpp:7: no part for '/job:a/task:0/cpu:1'; the parts are those of /job:a/task:0, /job:a/task:1", weft::error);
  CHECK_THROWS_WITH_AS(parts.at("/job:a", here), "INVALID_ARGUMENT: my_test.cpp:7: '/job:a' fits the parts of /job:a/task:0 and /job:a/task:1; name one task", weft::error);
  CHECK_THROWS_AS(parts.at("job:a"), weft::error);
  CHECK_THROWS_WITH_AS(weft::partitioned_graph().at("/job:a", here), "NOT_FOUND: my_test.cpp:7: no part for '/job:a'; there are no parts", weft::error);
}

TEST_CASE("partitioned_graph: bytes between devices and tasks, named in full or in part") {
  const auto parts = two_tasks();
  CHECK(parts.transfers().bytes_between("/job:a/task:0", "/job:a/task:1") == 400);
  CHECK(parts.transfers().bytes_between("", "/job:a/task:1/device:CPU:0") == 400);
  CHECK(parts.transfers().bytes_between("/job:a/task:1", "/job:a/task:0") == 0);
  CHECK(parts.transfers().bytes_between("/job:b", "") == 0);
  CHECK_THROWS_AS(parts.transfers().bytes_between("job:a", ""), weft::error);
  weft::transfer open;
  open.from = "/job:a/task:0/device:CPU:0";
  open.to = "/job:a/task:1/device:CPU:0";
  CHECK_FALSE(weft::transfer_table({open}, {}, {}).bytes_between("/task:0", "/task:1"));
}

TEST_CASE("partitioned_graph: rows outlive what they are read from, and tables that are copied or put together again are equal") {
  std::vector<weft::transfer> rows;
  weft::transfer_table copy, again;
  {
    const auto parts = two_tasks();
    rows.assign(parts.transfers().begin(), parts.transfers().end());
    copy = parts.transfers();
    again = weft::transfer_table(rows, parts.transfers().feeds(), parts.transfers().fetches());
  }
  CHECK(copy == again);
  REQUIRE(copy.size() == 1);
  CHECK(copy[0] == rows[0]);
  CHECK(to_text(rows[0]) == "data 0: A1  float[100]  400 bytes  /job:a/task:0/device:CPU:0 -> /job:a/task:1/device:CPU:0  for C1");
  CHECK(rows[0].reason == "'C1' is pinned");
  again = weft::transfer_table({rows[0], rows[0]}, {}, {});
  CHECK(copy != again);
}

TEST_CASE("partitioned_graph: a row without its words has all that can be counted") {
  const auto parts = two_tasks();
  for (const weft::transfer_table& table : {parts.transfers(), weft::transfer_table({parts.transfers()[0]}, {}, {})}) {
    const weft::transfer t = table.brief(0);
    CHECK(t.edge == 0);
    CHECK(t.kind == weft::transfer_kind::data);
    CHECK(t.dtype == weft::dtype::float32);
    CHECK(t.shape == weft::partial_shape{100});
    CHECK(t.bytes == 400);
    CHECK(t.between_tasks);
    CHECK((t.source.empty() && t.from.empty() && t.to.empty() && t.consumers.empty() && t.reason.empty()));
  }
}

TEST_CASE("partitioned_graph: what one asks of a temporary outlives it") {
  std::size_t rows = 0, nodes = 0;
  for (const weft::transfer& t : two_tasks().transfers()) rows += t.source == "A1" ? 1U : 0U;
  for (const weft::part& p : two_tasks().parts()) nodes += p.graph.size();
  const weft::part& kept = two_tasks().at("/job:a/task:1");
  CHECK(rows == 1);
  CHECK(nodes == 5);
  CHECK(kept.task == "/job:a/task:1");
}

TEST_CASE("partitioned_graph: equal cuts are equal, also as copies") {
  const auto a = two_tasks(), b = two_tasks();
  CHECK(a == b);
  const auto copy = a;
  CHECK(copy == b);
  CHECK(difference(copy, b).empty());
}

TEST_CASE("partitioned_graph: the difference says what stands on one side only") {
  world w;
  const auto& x = w.constant("A1", weft::tensor_value::from(weft::shape{100}, std::vector<float>(100)));
  w.add("Identity", "C1", {out(x)});
  const auto b = w.parts();
  CHECK(two_tasks() != b);
  CHECK(difference(two_tasks(), b) == "- /job:a/task:1: D1 = NoOp()  /job:a/task:1/device:CPU:1\n");
  CHECK(difference(b, two_tasks()) == "+ /job:a/task:1: D1 = NoOp()  /job:a/task:1/device:CPU:1\n");
}

TEST_CASE("partitioned_graph: prints its parts and transfers") {
  std::ostringstream printed;
  printed << two_tasks();
  CHECK(printed.str() ==
        "/job:a/task:0:\n"
        "A1 = Const()  float[100]  /job:a/task:0/device:CPU:0  {value=float[100]}\n"
        "A1/_send_0 = _Send(A1)  /job:a/task:0/device:CPU:0  {edge_0_A1 to /job:a/task:1/device:CPU:0}\n"
        "/job:a/task:1:\n"
        "A1/_recv_0 = _Recv()  float[100]  /job:a/task:1/device:CPU:0  {edge_0_A1 from /job:a/task:0/device:CPU:0}\n"
        "C1 = Identity(A1/_recv_0)  float<unknown>  /job:a/task:1/device:CPU:0\n"
        "D1 = NoOp()  /job:a/task:1/device:CPU:1\n"
        "transfers:\n"
        "data 0: A1  float[100]  400 bytes  /job:a/task:0/device:CPU:0 -> /job:a/task:1/device:CPU:0  for C1\n");
}

TEST_CASE("partitioned_graph: its drawing joins the ends of each transfer") {
  const std::string dot = to_dot(two_tasks());
  CHECK(dot.find("  subgraph \"cluster /job:a/task:1 /job:a/task:1/device:CPU:1\" {\n") != std::string::npos);
  CHECK(dot.find("  \"/job:a/task:0 A1/_send_0\" -> \"/job:a/task:1 A1/_recv_0\" [style=bold, label=\"A1\\n400 bytes\"];\n") != std::string::npos);
}

TEST_CASE("partitioned_graph: keeps the placement of the whole graph") {
  world w;
  const auto& x = w.add("FloatInput", "A1");
  const auto& y = w.add("FloatInput", "C1");
  w.options.fetches = {out(x)};
  const auto parts = w.parts();
  CHECK(parts.parts().size() == 1);
  CHECK(parts.placement().device_of(y) == "/job:a/task:1/device:CPU:0");
}
