#include <weft/partition/recv_schedule.hpp>

#include "letters.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using letters::all_meet;
using letters::out;
using letters::world;

namespace {

// C0 to C9 one after the other, then C10, which also wants A1 of the other task. Starts, in nodes, counted back from the end of C10: Ck at k, the receive of A1 at 9.
void late_receive(world& w) {
  const auto& a1 = w.add("FloatInput", "A1");
  const weft::node* last = &w.add("FloatInput", "C0");
  for (int i = 1; i < 10; ++i) last = &w.add("Combine", ("C" + std::to_string(i)).c_str(), {out(*last), out(*last)});
  w.add("Combine", "C10", {out(*last), out(a1)});
}

std::string line(const weft::partitioned_graph& parts, const char* name) {
  const weft::node* n = parts.at("/job:a/task:1").graph.find(name);
  return n == nullptr ? "none" : to_text(*n);
}

}  // namespace

TEST_CASE("recv scheduling: a receive waits for what runs six epochs before it") {
  world w;
  late_receive(w);
  const auto plain = w.parts();
  CHECK(line(plain, "A1/_recv_0") == "A1/_recv_0 = _Recv()  float<unknown>  /job:a/task:1/device:CPU:0  {edge_0_A1 from /job:a/task:0/device:CPU:0}");
  w.options.schedule_recvs = true;
  const auto parts = w.parts();
  // An epoch is one node: 9 - 6 = 3, and C2 is the last node that starts before it.
  CHECK(line(parts, "synch_3") == "synch_3 = ControlTrigger(^C2)  /job:a/task:1/device:CPU:0");
  CHECK(line(parts, "A1/_recv_0") == "A1/_recv_0 = _Recv(^synch_3)  float<unknown>  /job:a/task:1/device:CPU:0  {edge_0_A1 from /job:a/task:0/device:CPU:0}");
  CHECK(parts.at("/job:a/task:1").graph.size() == plain.at("/job:a/task:1").graph.size() + 1);
  CHECK(parts.at("/job:a/task:0") == plain.at("/job:a/task:0"));
  CHECK(parts.transfers() == plain.transfers());
  CHECK(all_meet(parts));
}

TEST_CASE("recv scheduling: time counts in microseconds where it is given") {
  world w;
  late_receive(w);
  w.options.schedule_recvs = true;
  w.options.node_seconds = [](const weft::node&) { return 1.; };
  const auto parts = w.parts();
  // C10 starts at 10000000, so an epoch is 100001; the receive, at 9000000, is in epoch 89; 83 begins at 8300083, after C8.
  CHECK(line(parts, "synch_83") == "synch_83 = ControlTrigger(^C8)  /job:a/task:1/device:CPU:0");
  CHECK(line(parts, "A1/_recv_0").find("_Recv(^synch_83)") != std::string::npos);
  w.options.node_seconds = [](const weft::node& n) { return n.name() == "C3" ? -1. : 1.; };
  CHECK_THROWS_WITH_AS(w.parts(), "INVALID_ARGUMENT: Combine 'C3': partition_options::node_seconds gives -1.000000, expected 0 to 1e9", weft::error);
}

TEST_CASE("recv scheduling: receives of one epoch share a trigger, those that are needed soon wait for nothing") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  const auto& a2 = w.add("FloatInput", "A2");
  const auto& a3 = w.add("FloatInput", "A3");
  const weft::node* last = &w.add("Combine", "C0", {out(a1), out(a1)});
  for (int i = 1; i < 10; ++i) last = &w.add("Combine", ("C" + std::to_string(i)).c_str(), {out(*last), out(*last)});
  const auto& c10 = w.add("Combine", "C10", {out(a2), out(a3)});
  w.add("Combine", "C11", {out(*last), out(c10)});
  w.options.schedule_recvs = true;
  const auto parts = w.parts();
  // A1, its send and its receive come before C0, which starts at 3; C11 at 13, C10 at 12, the receives of A2 and A3 at 11. Epoch 5 begins after C1, at 4.
  CHECK(line(parts, "A1/_recv_0").find("_Recv()") != std::string::npos);
  CHECK(line(parts, "synch_5") == "synch_5 = ControlTrigger(^C1)  /job:a/task:1/device:CPU:0");
  CHECK(line(parts, "A2/_recv_1").find("_Recv(^synch_5)") != std::string::npos);
  CHECK(line(parts, "A3/_recv_2").find("_Recv(^synch_5)") != std::string::npos);
  CHECK(letters::count(parts, "ControlTrigger") == 1);
}

TEST_CASE("recv scheduling: each device has triggers of its own, named apart from the graph's nodes, in TensorFlow's form too") {
  world w;
  late_receive(w);
  const auto& a2 = w.add("FloatInput", "A2");
  const weft::node* last = &w.add("FloatInput", "D0");
  for (int i = 1; i < 10; ++i) last = &w.add("Combine", ("D" + std::to_string(i)).c_str(), {out(*last), out(*last)});
  w.add("Combine", "D10", {out(*last), out(a2)});
  w.options.schedule_recvs = true;
  const auto parts = w.parts();
  CHECK(line(parts, "synch_3") == "synch_3 = ControlTrigger(^C2)  /job:a/task:1/device:CPU:0");
  CHECK(line(parts, "synch_3_") == "synch_3_ = ControlTrigger(^D2)  /job:a/task:1/device:CPU:1");
  w.options.form = weft::partition_form::tensorflow;
  CHECK(letters::count(w.parts(), "ControlTrigger") == 2);
}

TEST_CASE("recv scheduling: a short graph is cut as without it") {
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  w.add("Combine", "C1", {out(a1), out(a1)});
  const auto plain = w.parts();
  w.options.schedule_recvs = true;
  CHECK(w.parts() == plain);
}

TEST_CASE("recv scheduling: a part that has a trigger stands in the order of starts, whatever its nodes take") {
  // Twenty nodes of C that take 1 to 20 seconds end together, so the longest starts first; each has a reader, and all readers start when they have ended.
  world w;
  const auto& a1 = w.add("FloatInput", "A1");
  std::vector<const weft::node*> leaves;
  for (int i = 0; i < 20; ++i) leaves.push_back(&w.add("FloatInput", ("C" + std::to_string((i * 7) % 20 + 1)).c_str()));
  for (int i = 0; i < 20; ++i) w.add("Combine", ("Creader" + std::to_string(i)).c_str(), {out(*leaves[static_cast<std::size_t>(i)]), out(*leaves[static_cast<std::size_t>(i)])});
  w.add("Combine", "Clast", {out(a1), out(a1)});
  w.options.schedule_recvs = true;
  w.options.node_seconds = [](const weft::node& n) { return n.op() == "FloatInput" && n.name()[0] == 'C' ? std::stod(n.name().substr(1)) : 1.; };
  const auto parts = w.parts();
  std::vector<std::string> leaf_order;
  for (const weft::node* n : parts.at("/job:a/task:1").graph.nodes()) {
    if (n->op() == "FloatInput") leaf_order.push_back(n->name());
    for (const weft::output& in : n->inputs()) CHECK(in.from->id() < n->id());
  }
  std::vector<std::string> expected;
  for (int i = 20; i > 0; --i) expected.push_back("C" + std::to_string(i));
  CHECK(leaf_order == expected);
  CHECK(parts.at("/job:a/task:1").graph.size() == 43);  // 20 leaves, 21 readers, a receive, a trigger
  CHECK(line(parts, "A1/_recv_0").find("_Recv(^synch_") != std::string::npos);
}
