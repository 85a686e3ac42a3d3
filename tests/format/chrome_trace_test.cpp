#include <weft/format/chrome_trace.hpp>

#include "file_test_support.hpp"

#include <doctest/doctest.h>

namespace {

weft::step_trace small_trace() {
  weft::traced_node send, receive, add;
  add.name = "x";
  add.op = "Add";
  add.device = "/job:ps/task:0/device:CPU:0";
  add.begin = 500;
  add.end = 2000;
  send = add;
  send.name = "x/_send_0";
  send.op = "_Send";
  send.begin = 2000;
  send.end = 2500;
  send.edge = 4;
  send.bytes = 400;
  send.value = "x";
  send.peer = "/job:work/task:1/device:CPU:0";
  send.passed = 3000;
  receive = send;
  receive.name = "x/_recv_0";
  receive.op = "_Recv";
  receive.device = send.peer;
  receive.peer = add.device;
  receive.begin = 0;
  receive.end = 9000;
  receive.passed = 8500;
  weft::step_trace out;
  out.step = 3;
  out.tasks = {{"/job:ps/task:0", {add, send}, 0}, {"/job:work/task:1", {receive}, 0}};
  return out;
}

}  // namespace

TEST_CASE("chrome_trace: a process for each task, slices, and an arrow for what crossed") {
  CHECK(weft::to_chrome_trace(small_trace()) ==
        R"({"displayTimeUnit":"ms","otherData":{"step":3},"traceEvents":[)"
        R"({"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"/job:ps/task:0"}},)"
        R"({"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"thread 0"}},)"
        R"({"ph":"X","name":"x","pid":0,"tid":0,"cat":"Add","ts":0.5,"dur":1.5,"args":{"op":"Add","device":"/job:ps/task:0/device:CPU:0"}},)"
        R"({"ph":"X","name":"x/_send_0","pid":0,"tid":0,"cat":"_Send","ts":2,"dur":0.5,"args":{"op":"_Send","device":"/job:ps/task:0/device:CPU:0","value":"x","bytes":400,"to":"/job:work/task:1/device:CPU:0","sent":3}},)"
        R"({"ph":"s","name":"x","pid":0,"tid":0,"cat":"transfer","id":4,"ts":2},)"
        R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"/job:work/task:1"}},)"
        R"({"ph":"M","name":"thread_name","pid":1,"tid":1000,"args":{"name":"waiting 0"}},)"
        R"({"ph":"X","name":"x/_recv_0","pid":1,"tid":1000,"cat":"_Recv","ts":0,"dur":9,"args":{"op":"_Recv","device":"/job:work/task:1/device:CPU:0","value":"x","bytes":400,"from":"/job:ps/task:0/device:CPU:0","arrived":8.5}},)"
        R"({"ph":"f","name":"x","pid":1,"tid":1000,"cat":"transfer","id":4,"ts":9,"bp":"e"}]})");
}

TEST_CASE("chrome_trace: nodes that wait at the same time stand on rows of their own") {
  auto trace = small_trace();
  auto& nodes = trace.tasks[1].nodes;
  nodes.push_back(nodes[0]);
  nodes.push_back(nodes[0]);
  nodes[1].begin = 100;
  nodes[1].end = 200;
  nodes[2].begin = 200;
  nodes[2].end = 300;
  const std::string text = weft::to_chrome_trace(trace);
  CHECK(text.find("waiting 1") != std::string::npos);
  CHECK(text.find("waiting 2") == std::string::npos);
}

TEST_CASE("chrome_trace: it is written to a folder that is made") {
  const file_test::folder dir;
  weft::write_chrome_trace(dir / "new/trace.json", small_trace());
  CHECK(file_test::get(dir / "new/trace.json") == weft::to_chrome_trace(small_trace()));
}
