#include <weft/placement/balance.hpp>

#include "small_world.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using small::world;

namespace {

weft::attr_map of_size(std::int64_t elements) { return {{"dtype", weft::dtype::float32}, {"shape", weft::partial_shape{elements}}}; }

}  // namespace

TEST_CASE("placer: round robin deals variables to the parameter servers in turn, pinned ones included") {
  world w;
  w.options.placer = weft::round_robin_placer();
  const auto& a = w.add("VarHandleOp", "a");
  const auto& pinned = w.add("VarHandleOp", "pinned", {}, "/job:ps/task:1");
  const auto& b = w.add("VarHandleOp", "b", {}, "/job:ps");
  const auto& mine = w.add("VarHandleOp", "mine", {}, "/job:work");
  const auto& c = w.add("VarHandleOp", "c");
  const auto& read = w.add("ReadVariableOp", "read", {&c});
  const auto& y = w.add("Neg", "y", {&read});
  CHECK(w.where(a) == "/job:ps/task:0/device:CPU:0 (round robin: 1 of 2 tasks of 'ps')");
  CHECK(w.where(pinned) == "/job:ps/task:1/device:CPU:0 (pinned at train.cpp:11)");
  CHECK(w.where(b) == "/job:ps/task:0/device:CPU:0 (round robin: 1 of 2 tasks of 'ps', within '/job:ps' pinned at train.cpp:12)");
  CHECK(w.where(mine) == "/job:work/task:1/device:CPU:0 (pinned at train.cpp:13)");
  CHECK(w.where(c) == "/job:ps/task:1/device:CPU:0 (round robin: 2 of 2 tasks of 'ps')");
  CHECK(w.where(read) == "/job:ps/task:1/device:CPU:0 (with its variable 'c')");
  CHECK(w.where(y) == "/job:work/task:1/device:CPU:0 (default device)");
}

TEST_CASE("placer: nodes that are added later are dealt out as if all had been there") {
  world w;
  w.options.placer = weft::round_robin_placer("work");
  w.add("VarHandleOp", "a");
  const auto before = weft::place(w.graph, w.devices, w.options);
  const auto& b = w.add("VarHandleOp", "b");
  const std::string at_once = w.where(b);
  w.options.earlier = &before;
  CHECK(w.where(b) == at_once);
  CHECK(at_once == "/job:work/task:1/device:CPU:0 (round robin: 2 of 2 tasks of 'work')");
}

TEST_CASE("placer: greedy gives a variable to the server with the fewest bytes, to which pinned ones count") {
  world w;
  w.devices = weft::device_set::of_cluster({{"ps", 4}, {"work", 2}});
  w.options.placer = weft::greedy_placer();
  // Bytes: 400 pinned to 2; then 4000 to 0, 40 to 1, 80 to 3, and the next ones to 1 until it holds more than 3.
  const auto& big = w.add("VarHandleOp", "big", {}, "", {}, {}, of_size(1000));
  const auto& small = w.add("VarHandleOp", "small", {}, "", {}, {}, of_size(10));
  const auto& middle = w.add("VarHandleOp", "middle", {}, "", {}, {}, of_size(20));
  const auto& next = w.add("VarHandleOp", "next", {}, "", {}, {}, of_size(100));
  const auto& last = w.add("VarHandleOp", "last", {}, "", {}, {}, of_size(1));
  w.add("VarHandleOp", "pinned", {}, "/job:ps/task:2", {}, {}, of_size(100));
  CHECK(w.where(big) == "/job:ps/task:0/device:CPU:0 (greedy: 1 of 4 tasks of 'ps' holds more bytes)");
  CHECK(w.where(small) == "/job:ps/task:1/device:CPU:0 (greedy: 2 of 4 tasks of 'ps' hold more bytes)");
  CHECK(w.where(middle) == "/job:ps/task:3/device:CPU:0 (greedy: 3 of 4 tasks of 'ps' hold more bytes)");
  CHECK(w.where(next) == "/job:ps/task:1/device:CPU:0 (greedy: 3 of 4 tasks of 'ps' hold more bytes)");
  CHECK(w.where(last) == "/job:ps/task:3/device:CPU:0 (greedy: 3 of 4 tasks of 'ps' hold more bytes)");
}

TEST_CASE("placer: greedy weighs variables that share a device together, and takes a load function") {
  world w;
  w.options.placer = weft::greedy_placer("ps");
  const auto& a = w.add("VarHandleOp", "a", {}, "", {}, {}, of_size(10));
  const auto& slot = w.add("VarHandleOp", "slot", {}, "", {}, {"loc:@a"}, of_size(10));
  const auto& b = w.add("VarHandleOp", "b", {}, "", {}, {}, of_size(15));
  const auto& c = w.add("VarHandleOp", "c", {}, "", {}, {}, of_size(1));
  CHECK(w.where(a) == "/job:ps/task:0/device:CPU:0 (greedy: the first of 2 tasks of 'ps', none holds more)");
  CHECK(w.where(slot) == "/job:ps/task:0/device:CPU:0 (colocated with 'a')");
  CHECK(w.where(b) == "/job:ps/task:1/device:CPU:0 (greedy: 1 of 2 tasks of 'ps' holds more bytes)");
  CHECK(w.where(c) == "/job:ps/task:1/device:CPU:0 (greedy: 1 of 2 tasks of 'ps' holds more bytes)");
  w.options.placer = weft::greedy_placer("ps", [](const weft::node& n) { return n.name() == "b" ? 100. : 1.; });
  CHECK(w.where(c) == "/job:ps/task:0/device:CPU:0 (greedy: 1 of 2 tasks of 'ps' holds more load)");
}

TEST_CASE("placer: a job without tasks has nothing to deal to") {
  world w;
  w.add("VarHandleOp", "a");
  w.options.placer = weft::greedy_placer("servers");
  CHECK(w.failure() == "INVALID_ARGUMENT: placer 'greedy': no task of job 'servers' has a device; name the job of the parameter servers");
}
