#include <weft/partition/partition.hpp>

#include "letters.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using letters::all_meet;
using letters::count;
using letters::out;
using letters::world;

TEST_CASE("partition: a graph on one device is its only part") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "A2", {out(a1), out(a1)});
  const auto parts = w.parts();
  REQUIRE(parts.parts().size() == 1);
  CHECK(parts.parts()[0].task == "/job:a/task:0");
  CHECK(to_text(parts.parts()[0]) == "A1 = FloatInput()  float<unknown>  /job:a/task:0/device:CPU:0\n"
                                     "A2 = Combine(A1, A1)  float<unknown>  /job:a/task:0/device:CPU:0\n");
  CHECK(parts.transfers().empty());
}

TEST_CASE("partition: a data edge between tasks becomes a send and a receive") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  const auto& c1 = w.add("FloatInput", "C1");
  w.add("Combine", "C2", {out(a1), out(c1)});
  const auto parts = w.parts();
  CHECK(to_text(parts) ==
        "/job:a/task:0:\n"
        "A1 = FloatInput()  float<unknown>  /job:a/task:0/device:CPU:0\n"
        "A1/_send_0 = _Send(A1)  /job:a/task:0/device:CPU:0  {edge_0_A1 to /job:a/task:1/device:CPU:0}\n"
        "/job:a/task:1:\n"
        "C1 = FloatInput()  float<unknown>  /job:a/task:1/device:CPU:0\n"
        "A1/_recv_0 = _Recv()  float<unknown>  /job:a/task:1/device:CPU:0  {edge_0_A1 from /job:a/task:0/device:CPU:0}\n"
        "C2 = Combine(A1/_recv_0, C1)  float<unknown>  /job:a/task:1/device:CPU:0\n"
        "transfers:\n"
        "data 0: A1  float<unknown>  /job:a/task:0/device:CPU:0 -> /job:a/task:1/device:CPU:0  for C2\n");
  CHECK(parts.transfers()[0].between_tasks);
  CHECK(parts.transfers()[0].reason == "'C2' is pinned");
}

TEST_CASE("partition: the pair carries TensorFlow's attributes and the number of its edge") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "C1", {out(a1), out(a1)});
  weft::device_set devices;
  devices.add({"/job:a/task:0/device:CPU:0", "CPU", "host", 82});
  devices.add({"/job:a/task:1/device:CPU:0", "CPU", "host", 100});
  const auto parts = weft::partition(w.graph, devices, weft::place(w.graph, devices));
  const weft::attr_map shared{{"tensor_name", "edge_0_A1"}, {"send_device", "/job:a/task:0/device:CPU:0"}, {"recv_device", "/job:a/task:1/device:CPU:0"},
                              {"send_device_incarnation", std::int64_t{82}}, {"client_terminated", false}, {"_edge", std::int64_t{0}}};
  weft::attr_map send = shared, receive = shared;
  send["T"] = weft::dtype::float32;
  receive["tensor_type"] = weft::dtype::float32;
  CHECK(parts.at("/job:a/task:0").graph.find("A1/_send_0")->attrs() == send);
  CHECK(parts.at("/job:a/task:1").graph.find("A1/_recv_0")->attrs() == receive);
}

TEST_CASE("partition: a control edge sends an empty constant and is waited for through an Identity") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  const auto& c1 = w.add("FloatInput", "C1");
  w.add("Combine", "C2", {out(c1), out(c1)}, {&a1});
  const auto parts = w.parts();
  CHECK(to_text(parts) ==
        "/job:a/task:0:\n"
        "A1 = FloatInput()  float<unknown>  /job:a/task:0/device:CPU:0\n"
        "A1/_control_0 = Const(^A1)  float[0]  /job:a/task:0/device:CPU:0  {value=[]}\n"
        "A1/_send_0 = _Send(A1/_control_0)  /job:a/task:0/device:CPU:0  {edge_0_A1 to /job:a/task:1/device:CPU:0}\n"
        "/job:a/task:1:\n"
        "C1 = FloatInput()  float<unknown>  /job:a/task:1/device:CPU:0\n"
        "A1/_recv_0 = _Recv()  float[0]  /job:a/task:1/device:CPU:0  {edge_0_A1 from /job:a/task:0/device:CPU:0}\n"
        "A1/_after_0 = Identity(A1/_recv_0)  float[0]  /job:a/task:1/device:CPU:0\n"
        "C2 = Combine(C1, C1, ^A1/_after_0)  float<unknown>  /job:a/task:1/device:CPU:0\n"
        "transfers:\n"
        "control 0: ^A1  /job:a/task:0/device:CPU:0 -> /job:a/task:1/device:CPU:0  for ^C2\n");
}

TEST_CASE("partition: consumers on one device share one receive") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  const auto& c1 = w.add("FloatInput", "C1");
  w.add("Combine", "C2", {out(a1), out(c1)});
  w.add("Combine", "C3", {out(a1), out(a1)});
  const auto parts = w.parts();
  CHECK(count(parts, "_Send") == 1);
  CHECK(count(parts, "_Recv") == 1);
  CHECK(to_text(*parts.at("/job:a/task:1").graph.find("C3")) == "C3 = Combine(A1/_recv_0, A1/_recv_0)  float<unknown>  /job:a/task:1/device:CPU:0");
  CHECK(parts.transfers()[0].consumers == std::vector<std::string>{"C2", "C3"});
}

TEST_CASE("partition: nodes that wait for one node share one transfer") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("FloatInput", "C1", {}, {&a1});
  w.add("FloatInput", "C2", {}, {&a1});
  const auto parts = w.parts();
  CHECK(count(parts, "_Send") == 1);
  CHECK(count(parts, "Const") == 1);
  CHECK(count(parts, "Identity") == 1);
  CHECK(parts.transfers()[0].consumers == std::vector<std::string>{"^C1", "^C2"});
}

TEST_CASE("partition: data and control from one node are two transfers") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  const auto& c1 = w.add("FloatInput", "C1");
  w.add("Combine", "C2", {out(a1), out(c1)});
  w.add("FloatInput", "C3", {}, {&a1});
  const auto parts = w.parts();
  REQUIRE(parts.transfers().size() == 2);
  CHECK(parts.transfers()[0].kind == weft::transfer_kind::data);
  CHECK(parts.transfers()[1].kind == weft::transfer_kind::control);
  CHECK(parts.transfers()[1].source == "^A1");
  CHECK(all_meet(parts));
}

TEST_CASE("partition: a value for two devices of another task crosses once and is passed on") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "D1", {out(a1), out(a1)});
  w.add("Combine", "C1", {out(a1), out(a1)});
  w.add("Combine", "D2", {out(a1), out(a1)});
  const auto parts = w.parts();
  REQUIRE(parts.transfers().size() == 2);
  CHECK(parts.transfers()[0].between_tasks);
  CHECK(parts.transfers()[0].to == "/job:a/task:1/device:CPU:1");
  CHECK(parts.transfers()[0].consumers == std::vector<std::string>{"D1", "D2"});
  CHECK_FALSE(parts.transfers()[1].between_tasks);
  CHECK(parts.transfers()[1].source == "A1");
  CHECK(parts.transfers()[1].from == "/job:a/task:1/device:CPU:1");
  CHECK(parts.transfers()[1].to == "/job:a/task:1/device:CPU:0");
  CHECK(to_text(*parts.at("/job:a/task:1").graph.find("A1/_send_1")) ==
        "A1/_send_1 = _Send(A1/_recv_0)  /job:a/task:1/device:CPU:1  {edge_1_A1 to /job:a/task:1/device:CPU:0}");
  CHECK(all_meet(parts));
}

TEST_CASE("partition: a control edge to two devices of another task crosses once") {
  world w;
  const auto& a1 = w.add("NoOp", "A1");
  w.add("NoOp", "C1", {}, {&a1});
  w.add("NoOp", "D1", {}, {&a1});
  const auto parts = w.parts();
  CHECK(parts.transfers().size() == 2);
  CHECK(count(parts, "Const") == 1);
  CHECK(to_text(*parts.at("/job:a/task:1").graph.find("A1/_send_1")) ==
        "A1/_send_1 = _Send(A1/_recv_0)  /job:a/task:1/device:CPU:0  {edge_1_A1 to /job:a/task:1/device:CPU:1}");
  CHECK(to_text(*parts.at("/job:a/task:1").graph.find("D1")) == "D1 = NoOp(^A1/_after_1)  /job:a/task:1/device:CPU:1");
  CHECK(all_meet(parts));
}

TEST_CASE("partition: two devices of one task exchange values too, in one part") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "B1", {out(a1), out(a1)});
  const auto parts = w.parts();
  CHECK(parts.parts().size() == 1);
  REQUIRE(parts.transfers().size() == 1);
  CHECK_FALSE(parts.transfers()[0].between_tasks);
  CHECK(all_meet(parts));
}

TEST_CASE("partition: two outputs of one node are two transfers") {
  world w;
  const auto& split = w.add("Split", "A2", {out(w.add("FloatInput", "A1"))});
  w.add("Combine", "C1", {out(split, 1), out(split, 0)});
  const auto parts = w.parts();
  REQUIRE(parts.transfers().size() == 2);
  CHECK(parts.transfers()[0].source == "A2:1");
  CHECK(parts.transfers()[1].source == "A2");
  CHECK(all_meet(parts));
}

TEST_CASE("partition: there and back crosses twice") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  const auto& c1 = w.add("Combine", "C1", {out(a1), out(a1)});
  w.add("Combine", "A2", {out(c1), out(a1)});
  const auto parts = w.parts();
  CHECK(parts.transfers().size() == 2);
  CHECK(to_text(*parts.at("/job:a/task:0").graph.find("A2")) == "A2 = Combine(C1/_recv_1, A1)  float<unknown>  /job:a/task:0/device:CPU:0");
  CHECK(all_meet(parts));
}

TEST_CASE("partition: a transfer whose consumer is not asked for does not happen") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "C1", {out(a1), out(a1)});
  const auto& a2 = w.add("Combine", "A2", {out(a1), out(a1)});
  w.options.fetches = {out(a2)};
  const auto parts = w.parts();
  CHECK(parts.transfers().empty());
  CHECK(parts.parts().size() == 1);
}

TEST_CASE("partition: bytes are known where dtype and shape are") {
  world w;
  const auto& x = w.constant("A1", weft::tensor_value(weft::dtype::float64, weft::shape{100, 3}));
  const auto& s = w.constant("A2", weft::tensor_value(weft::dtype::string, weft::shape{2}));
  w.add("NoOp", "C0", {}, {&x});
  w.add("Identity", "C1", {out(x)});
  w.add("Identity", "C2", {out(s)});
  w.add("Combine", "E1", {out(w.add("FloatInput", "C3")), out(w.add("FloatInput", "E0"))});
  const auto parts = w.parts();
  REQUIRE(parts.transfers().size() == 4);
  CHECK(parts.transfers()[0].bytes == 0);
  CHECK(parts.transfers()[1].bytes == 2400);
  CHECK_FALSE(parts.transfers()[2].bytes.has_value());
  CHECK_FALSE(parts.transfers()[3].bytes.has_value());
}

TEST_CASE("partition: a fed tensor enters at each device that reads it") {
  world w;
  const auto& p = w.add("Placeholder", "A1");
  w.add("Combine", "C1", {out(p), out(p)});
  w.add("Combine", "D1", {out(p), out(p)});
  w.add("Combine", "E1", {out(p), out(p)});
  w.options.feeds = {out(p)};
  const auto parts = w.parts();
  CHECK(parts.transfers().empty());
  CHECK(parts.parts().size() == 2);
  CHECK(parts.at("/job:a/task:1").feeds == std::vector<std::string>{"A1:0"});
  CHECK(to_text(parts.at("/job:a/task:1")) ==
        "A1/_feed_0 = _Arg()  float<unknown>  /job:a/task:1/device:CPU:0  {T=float, index=0}\n"
        "C1 = Combine(A1/_feed_0, A1/_feed_0)  float<unknown>  /job:a/task:1/device:CPU:0\n"
        "A1/_feed_1 = _Arg()  float<unknown>  /job:a/task:1/device:CPU:1  {T=float, index=0}\n"
        "D1 = Combine(A1/_feed_1, A1/_feed_1)  float<unknown>  /job:a/task:1/device:CPU:1\n");
  REQUIRE(parts.transfers().feeds().size() == 3);
  CHECK(parts.transfers().feeds()[2].from == "/job:a/task:0/device:CPU:0");
  CHECK(parts.transfers().feeds()[2].to == "/job:b/task:0/device:CPU:0");
  CHECK(parts.transfers().feeds()[2].between_tasks);
  CHECK(parts.transfers().feeds()[2].consumers == std::vector<std::string>{"E1"});
}

TEST_CASE("partition: a fetch leaves from the device that makes it, once") {
  world w;
  const auto& c1 = w.add("Split", "C1", {out(w.add("FloatInput", "C0"))});
  w.options.fetches = {out(c1, 1), out(c1, 0), out(c1, 1)};
  w.options.master = "/job:b/task:0";
  const auto parts = w.parts();
  CHECK(parts.at("/job:a/task:1").fetches == std::vector<std::string>{"C1:1", "C1:0"});
  CHECK(to_text(*parts.at("/job:a/task:1").graph.find("C1/_fetch_0")) == "C1/_fetch_0 = _Retval(C1:1)  /job:a/task:1/device:CPU:0  {T=float, index=0}");
  REQUIRE(parts.transfers().fetches().size() == 2);
  CHECK(parts.transfers().fetches()[0].source == "C1:1");
  CHECK(parts.transfers().fetches()[0].to == "/job:b/task:0/device:CPU:0");
  CHECK(parts.transfers().all().size() == 2);
}

TEST_CASE("partition: what is fed and fetched needs no part") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.options.feeds = w.options.fetches = {out(a1)};
  CHECK(w.parts().parts().empty());
}

TEST_CASE("partition: a fed output cuts only itself; another output of the node still runs it") {
  world w;
  const auto& split = w.add("Split", "A2", {out(w.add("FloatInput", "A1"))});
  const auto& c1 = w.add("Combine", "C1", {out(split, 0), out(split, 1)});
  w.options.feeds = {out(split, 0)};
  w.options.fetches = {out(c1)};
  const auto parts = w.parts();
  REQUIRE(parts.transfers().size() == 1);
  CHECK(parts.transfers()[0].source == "A2:1");
  CHECK(parts.at("/job:a/task:1").feeds == std::vector<std::string>{"A2:0"});
  CHECK(parts.at("/job:a/task:0").graph.find("A1") != nullptr);
}

TEST_CASE("partition: waiting for a fed placeholder means nothing, waiting for another fed node runs it") {
  world w;
  const auto& p = w.add("Placeholder", "A1");
  const auto& x = w.add("FloatInput", "A2");
  const auto& c1 = w.add("NoOp", "C1", {}, {&p, &x});
  w.options.feeds = {out(p), out(x)};
  w.options.targets = {&c1};
  const auto parts = w.parts();
  REQUIRE(parts.transfers().size() == 1);
  CHECK(parts.transfers()[0].source == "^A2");
  CHECK(parts.at("/job:a/task:0").graph.find("A1") == nullptr);
}

TEST_CASE("partition: names of new nodes leave those of the graph alone") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "C1", {out(a1), out(a1)});
  w.add("FloatInput", "A1/_send_0");
  const auto parts = w.parts();
  CHECK(parts.at("/job:a/task:0").graph.find("A1/_send_0")->op() == "FloatInput");
  CHECK(parts.at("/job:a/task:0").graph.find("A1/_send_0_")->op() == "_Send");
}

TEST_CASE("partition: feeds, fetches and targets must belong to the graph") {
  world w, other;
  const auto& stranger = other.add("FloatInput", "A1");
  w.add("FloatInput", "A2");
  w.options.fetches = {out(stranger)};
  CHECK_THROWS_WITH_AS(w.parts(), "INVALID_ARGUMENT: FloatInput 'A1': is a fetch, but belongs to another graph", weft::error);
  w.options.fetches.clear();
  w.options.feeds = {out(stranger)};
  CHECK_THROWS_WITH_AS(w.parts(), "INVALID_ARGUMENT: FloatInput 'A1': is a feed, but belongs to another graph", weft::error);
  w.options.feeds.clear();
  w.options.targets = {&stranger};
  CHECK_THROWS_WITH_AS(w.parts(), "INVALID_ARGUMENT: FloatInput 'A1': is a target, but belongs to another graph", weft::error);
  w.options.targets = {nullptr};
  CHECK_THROWS_WITH_AS(w.parts(), "INVALID_ARGUMENT: a target is empty, not made by any op", weft::error);
}

TEST_CASE("partition: floats cross between tasks as bfloat16 when asked for, and nothing else does") {
  world w;
  w.options.bfloat16_sendrecv = true;
  const auto& x = w.constant("A1", weft::tensor_value(weft::dtype::float32, weft::shape{20}));
  const auto& i = w.constant("A2", weft::tensor_value(weft::dtype::int32, weft::shape{20}));
  w.add("Identity", "B1", {out(x)});
  w.add("Identity", "C1", {out(x)});
  w.add("Identity", "C2", {out(i)});
  const auto parts = w.parts();
  REQUIRE(parts.transfers().size() == 3);
  CHECK(parts.transfers()[0].dtype == weft::dtype::float32);
  CHECK(parts.transfers()[1].dtype == weft::dtype::bfloat16);
  CHECK(parts.transfers()[1].bytes == 40);
  CHECK(parts.transfers()[2].dtype == weft::dtype::int32);
  const weft::node& narrow = *parts.at("/job:a/task:0").graph.find("A1/_narrow_1");
  CHECK(narrow.attrs() == weft::attr_map{{"SrcT", weft::dtype::float32}, {"DstT", weft::dtype::bfloat16}, {"Truncate", true}});
  CHECK(to_text(*parts.at("/job:a/task:1").graph.find("C1")) == "C1 = Identity(A1/_widen_1)  float<unknown>  /job:a/task:1/device:CPU:0");
}

TEST_CASE("partition: a part is a graph to which nodes can be added, each name once") {
  world w;
  const auto& x = w.constant("A1", weft::tensor_value(weft::dtype::float32, weft::shape{20}));
  w.add("Identity", "C1", {out(x)});
  const auto parts = w.parts();
  const weft::graph& part = parts.at("/job:a/task:0").graph;
  weft::node_spec spec;
  spec.op = "NoOp";
  spec.name = "A1/_send_0";
  spec.exact_name = true;
  spec.scoped = false;
  CHECK_THROWS_WITH_AS(part.add(spec), "ALREADY_EXISTS: NoOp 'A1/_send_0': the graph already has a node of this name", weft::error);
  spec.exact_name = false;
  CHECK(part.add(spec).name() == "A1/_send_0_1");
}

TEST_CASE("partition: the graph is left as it was") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "C1", {out(a1), out(a1)});
  const std::string before = to_text(w.graph);
  w.parts();
  CHECK(to_text(w.graph) == before);
}

TEST_CASE("partition: nodes that are added after placing are not in the whole graph") {
  world w;
  w.add("FloatInput", "A1");
  const auto devices = weft::device_set::of_cluster(letters::cluster);
  const auto placed = weft::place(w.graph, devices);
  const auto& late = w.add("FloatInput", "A2");
  CHECK(weft::partition(w.graph, devices, placed).parts()[0].graph.size() == 1);
  weft::partition_options options;
  options.fetches = {out(late)};
  CHECK_THROWS_AS(weft::partition(w.graph, devices, placed, options), weft::error);
}
