#include <weft/core/step_trace.hpp>

#include <doctest/doctest.h>

namespace {

weft::traced_node node(const char* name, const char* op, const char* device, std::int64_t begin, std::int64_t end) {
  weft::traced_node n;
  n.name = name;
  n.op = op;
  n.device = device;
  n.begin = begin;
  n.end = end;
  return n;
}

// ps:0 makes x and sends it at 2 ms, when work:1 is ready; it arrives at 5 ms and is taken at once, for work:1 waits since 1 ms.
weft::step_trace crossing() {
  weft::step_trace out;
  out.step = 7;
  auto send = node("x/_send_0", "_Send", "/job:ps/task:0/device:CPU:0", 1500000, 1600000), receive = node("x/_recv_0", "_Recv", "/job:work/task:1/device:CPU:0", 1000000, 5000000);
  send.edge = receive.edge = 0;
  send.bytes = receive.bytes = 400;
  send.value = receive.value = "x";
  send.passed = 2000000;
  receive.passed = 5000000;
  auto lost = node("y/_send_1", "_Send", "/job:ps/task:0/device:CPU:0", 1, 2);
  lost.edge = 1;
  out.tasks.push_back({"/job:ps/task:0", {send, node("x", "Add", "/job:ps/task:0/device:CPU:0", 250000, 1500000), lost}, 3});
  out.tasks.push_back({"/job:work/task:1", {receive}, 0});
  return out;
}

}  // namespace

TEST_CASE("step_trace: a transfer is made of its two ends") {
  const auto all = weft::transfers_of(crossing());
  REQUIRE(all.size() == 1);
  CHECK(all[0].edge == 0);
  CHECK(all[0].value == "x");
  CHECK(all[0].bytes == 400);
  CHECK(all[0].from == "/job:ps/task:0/device:CPU:0");
  CHECK(all[0].to == "/job:work/task:1/device:CPU:0");
  CHECK(all[0].send_wait() == 500000);
  CHECK(all[0].wire() == 3000000);
  CHECK(all[0].receive_wait() == 4000000);
}

TEST_CASE("step_trace: within a task a value is there when it is given") {
  auto trace = crossing();
  for (auto& t : trace.tasks)
    for (auto& n : t.nodes) n.passed = -1;
  const auto all = weft::transfers_of(trace);
  REQUIRE(all.size() == 1);
  CHECK(all[0].send_wait() == 0);
  CHECK(all[0].wire() == 0);
}

TEST_CASE("step_trace: the text is a table by time") {
  CHECK(to_text(crossing()) ==
        "step 7\n"
        "/job:ps/task:0, 3 nodes, 3 more are left out\n"
        "     0.000 ms +     0.000 ms  y/_send_1 (_Send)\n"
        "     0.250 ms +     1.250 ms  x (Add)\n"
        "     1.500 ms +     0.100 ms  x/_send_0 (_Send)\n"
        "/job:work/task:1, 1 nodes\n"
        "     1.000 ms +     4.000 ms  x/_recv_0 (_Recv)\n"
        "x, 400 bytes, /job:ps/task:0/device:CPU:0 -> /job:work/task:1/device:CPU:0: waited      0.500 ms, under way      3.000 ms, waited for      4.000 ms\n");
}
