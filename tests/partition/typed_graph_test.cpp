// The cheap include for people who only build and cut graphs: no server, no socket, no array library.
#include <weft/graph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {
const weft::cluster_spec cluster{{"ps", 1}, {"work", 2}};
}

TEST_CASE("partition: the product is sent to the worker once") {
  weft::graph graph;
  const auto scope = graph.as_default();
  weft::tensor<float, 1> x, y;
  {
    const auto device = weft::with_device("/job:ps/task:0");
    x = weft::constant(std::vector<float>(100, 1.0F), "x");
  }
  {
    const auto device = weft::with_device("/job:work/task:1");
    y = x * 0.5F;
    y = y + x;
  }
  const weft::partitioned_graph parts = weft::partition(graph, cluster);
  CHECK(parts.transfers().size() == 1);
  CHECK(parts.transfers()[0].bytes == 400);
  CHECK(to_text(parts.at("/job:work/task:1")) == R"(mul/y = Const()  float[]  /job:work/task:1/device:CPU:0  {value=0.5}
x/_recv_0 = _Recv()  float[100]  /job:work/task:1/device:CPU:0  {edge_0_x from /job:ps/task:0/device:CPU:0}
mul = Mul(x/_recv_0, mul/y)  float[100]  /job:work/task:1/device:CPU:0
add = AddV2(mul, x/_recv_0)  float[100]  /job:work/task:1/device:CPU:0
)");
}

TEST_CASE("partition: why a transfer happens names the line that pinned its consumer") {
  weft::graph graph;
  const auto scope = graph.as_default();
  weft::tensor<float, 0> x;
  {
    const auto device = weft::with_device("/job:ps/task:0");
    x = weft::constant(1.0F, "x");
  }
  const int line = __LINE__ + 2;
  const auto device = weft::with_device("/job:work/task:1");
  const auto y = weft::identity(x, "y");
  const auto parts = weft::partition(graph, cluster);
  REQUIRE(parts.transfers().size() == 1);
  CHECK(parts.transfers()[0].reason == "'y' is pinned at typed_graph_test.cpp:" + std::to_string(line));
}

TEST_CASE("partition: an unknown job is reported with the line of the node") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto device = weft::with_device("/job:nosuch/task:0");
  const int line = __LINE__ + 1;
  weft::constant(1.0F, "x");
  try {
    weft::partition(graph, cluster);
    FAIL("the job does not exist");
  } catch (const weft::error& e) {
    CHECK(std::string(e.what()) == "INVALID_ARGUMENT: Const 'x' (typed_graph_test.cpp:" + std::to_string(line) +
                                       "): asks for device '/job:nosuch/task:0', but the cluster has the tasks /job:ps/task:0, /job:work/task:0, /job:work/task:1");
  }
}

TEST_CASE("partition: a variable's reads and updates stay with it, its value crosses") {
  weft::graph graph;
  const auto scope = graph.as_default();
  weft::partition_options options;
  options.master = "/job:work/task:0";
  {
    const auto device = weft::with_device("/job:ps/task:0");
    const weft::variable<float, 1> w(std::vector<float>(10, 0.0F), "w");
    const auto worker = weft::with_device("/job:work/task:0");
    const auto y = w * 2.0F;
    options.fetches = {y.raw()};
  }
  const auto parts = weft::partition(graph, cluster, options);
  REQUIRE(parts.transfers().size() == 1);
  CHECK(parts.transfers()[0].from == "/job:ps/task:0/device:CPU:0");
  CHECK(parts.transfers()[0].bytes == 40);
  CHECK(parts.at("/job:ps").graph.size() == 3);  // the handle, the read and the send
}
