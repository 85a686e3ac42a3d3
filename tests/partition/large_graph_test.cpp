#include <weft/partition/partition.hpp>

#include "letters.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

constexpr int size = 100000;

// A chain that changes its device every `stretch` nodes, over four devices on two tasks.
weft::graph chain(int stretch, const weft::node*& last) {
  weft::graph g(letters::ops());
  for (int i = 0; i < size; ++i) {
    weft::node_spec spec;
    spec.op = i == 0 ? "RandomInput" : "Combine";
    spec.name = std::string(1, "ABCD"[i / stretch % 4]) + std::to_string(i);
    if (i > 0) spec.inputs = {{last, 0}, {last, 0}};
    spec.scoped = false;
    spec.device = letters::device_of(spec.name);
    last = &g.add(std::move(spec));
  }
  return g;
}

}  // namespace

TEST_CASE("partition: a chain of a hundred thousand nodes is placed and cut without recursion") {
  const weft::node* last = nullptr;
  const weft::graph g = chain(1000, last);
  weft::partition_options options;
  options.devices = {{"CPU", 2}};
  options.fetches = {{last, 0}};
  const auto parts = weft::partition(g, letters::cluster, options);
  CHECK(parts.transfers().size() == 99);
  CHECK(letters::all_meet(parts));
  CHECK(parts.at("/job:a/task:0").graph.size() + parts.at("/job:a/task:1").graph.size() == size + 2 * 99 + 1);
}

TEST_CASE("partition: a colocation chain of a hundred thousand nodes is one group") {
  weft::graph g(letters::ops());
  const weft::node* last = nullptr;
  for (int i = 0; i < size; ++i) {
    weft::node_spec spec;
    spec.op = "NoOp";
    spec.name = "n" + std::to_string(i);
    spec.scoped = false;
    if (last != nullptr) spec.attrs["_class"] = std::vector<std::string>{"loc:@" + last->name()};
    if (i == size - 1) spec.device = "/job:a/task:1";
    last = &g.add(std::move(spec));
  }
  const auto placed = weft::place(g, weft::device_set::of_cluster(letters::cluster));
  CHECK(placed.device_of(*g.find("n0")) == "/job:a/task:1/device:CPU:0");
  CHECK(placed.reason_of(*g.find("n0")) == "colocated with 'n99999'");
}

TEST_CASE("partition: one value for a thousand tasks is sent a thousand times") {
  weft::graph g(letters::ops());
  const weft::cluster_spec many{{"work", 1000}};
  weft::node_spec spec;
  spec.op = "RandomInput";
  spec.scoped = false;
  spec.device = "/job:work/task:0";
  const weft::node& x = g.add(std::move(spec));
  for (int i = 0; i < 1000; ++i)
    for (int copy = 0; copy < 3; ++copy) {
      weft::node_spec reader;
      reader.op = "Combine";
      reader.inputs = {{&x, 0}, {&x, 0}};
      reader.scoped = false;
      reader.device = "/job:work/task:" + std::to_string(i);
      g.add(std::move(reader));
    }
  const auto parts = weft::partition(g, many);
  CHECK(parts.parts().size() == 1000);
  CHECK(parts.transfers().size() == 999);
}
