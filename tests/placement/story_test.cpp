#include <weft/placement/story.hpp>

#include "fake_devices.hpp"
#include "small_world.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using small::world;

TEST_CASE("explain: a node that asks for nothing") {
  world w;
  const auto& y = w.add("Neg", "y", {&w.add("Const", "x")});
  CHECK(weft::explain(w.graph, w.devices, y, w.options) ==
        "'y' (Neg, train.cpp:11) runs on /job:work/task:1/device:CPU:0\n"
        "  because: default device\n"
        "  asks for: nothing\n"
        "  open to it: /job:work/task:1/device:CPU:0, /job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0, /job:work/task:0/device:CPU:0\n"
        "  decided by: TensorFlow's rules: default device\n");
}

TEST_CASE("explain: a group tells whose request counts and what it leaves out") {
  world w;
  const auto& v = w.add("VarHandleOp", "w", {}, "/job:ps");
  const auto& read = w.add("ReadVariableOp", "read", {&v}, "/job:work/task:0");
  w.add("Neg", "y", {&read}, "", {}, {"loc:@w"});
  w.options.placer = weft::place_by([](const weft::node&, const std::vector<std::string>& open) { return open.back(); }, "last");
  CHECK(weft::explain(w.graph, w.devices, read, w.options) ==
        "'read' (ReadVariableOp, train.cpp:11) runs on /job:ps/task:1/device:CPU:0\n"
        "  because: with its variable 'w', not '/job:work/task:0' as asked\n"
        "  asks for: '/job:work/task:0'\n"
        "  shares its device with: 'w' (VarHandleOp, train.cpp:10) asking for '/job:ps', whose request counts, 'y' (Neg, train.cpp:12)\n"
        "  open to it: /job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0\n"
        "  left out: /job:work/task:0/device:CPU:0, /job:work/task:1/device:CPU:0 (not in '/job:ps')\n"
        "  decided by: placer 'last': chosen by 'last'\n");
}

TEST_CASE("explain: devices without a kernel are left out for the op that lacks it, and soft placement says so") {
  fake::world w;
  w.where = weft::device_set();
  for (const char* type : {"FakeCPU", "FakeGPU"}) w.where.add({std::string("/job:a/task:0/device:") + type + ":0", type});
  w.where.set_catalogue("/job:a/task:0", fake::kernels());
  w.options.allow_soft_placement = true;
  const auto& in = w.add("TestInput", "in", {}, "/device:FakeGPU:0", {}, {"train.cpp", 1});
  const auto& tied = w.add("TestRelu", "tied", {fake::out(in)}, "", {"loc:@in"}, {"train.cpp", 2});
  CHECK(weft::explain(w.graph, w.where, tied, w.options) ==
        "'tied' (TestRelu, train.cpp:2) runs on /job:a/task:0/device:FakeCPU:0\n"
        "  because: colocated with 'in'\n"
        "  asks for: nothing\n"
        "  shares its device with: 'in' (TestInput, train.cpp:1) asking for '/device:FakeGPU:0', whose request counts\n"
        "  open to it: /job:a/task:0/device:FakeCPU:0\n"
        "  left out: /job:a/task:0/device:FakeGPU:0 (no kernel for op 'TestInput' of 'in')\n"
        "  decided by: only one device is open, after soft placement has dropped what cannot be had\n");
}

TEST_CASE("explain: a node that was placed before stays, and long lists are cut") {
  world w;
  w.devices = weft::device_set::of_cluster({{"ps", 12}});
  w.options = {};
  const auto& x = w.add("Const", "x");
  const auto before = weft::place(w.graph, w.devices, w.options);
  w.options.earlier = &before;
  for (int i = 0; i < 10; ++i) w.add("Const", ("c" + std::to_string(i)).c_str(), {}, "", {}, {"loc:@x"});
  const std::string story = weft::explain(w.graph, w.devices, x, w.options);
  CHECK(story.find("'c7' (Const, train.cpp:18) and 2 more\n  open to it: /job:ps/task:0/device:CPU:0\n  left out: /job:ps/task:1/device:CPU:0, ") != std::string::npos);
  CHECK(story.find("/job:ps/task:8/device:CPU:0 and 3 more (not in '/job:ps/task:0/device:CPU:0')\n  decided by: an earlier placement, or whoever assigned it\n") != std::string::npos);
}

TEST_CASE("explain: a placement knows its graph, and one without its making says what it can") {
  world w, other;
  const auto& x = w.add("Const", "x");
  const auto& stranger = other.add("Const", "stranger");
  const auto placed = weft::place(w.graph, w.devices, w.options);
  CHECK(placed.explain(x) == weft::explain(w.graph, w.devices, x, w.options));
  CHECK_THROWS_WITH_AS(placed.explain(stranger), "INVALID_ARGUMENT: Const 'stranger' (train.cpp:10): belongs to another graph than the one that was placed", weft::error);
  CHECK_THROWS_AS(placed.device_of(stranger), weft::error);
  const weft::placement plain(std::vector<weft::placed_node>{{"/job:ps/task:0/device:CPU:0", "pinned"}});
  CHECK(plain.explain(x) == "'x' (Const, train.cpp:10) runs on /job:ps/task:0/device:CPU:0\n  because: pinned\n");
}
