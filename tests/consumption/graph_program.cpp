// A program that only builds and partitions a graph: needs the standard library alone.
#include <weft/graph.hpp>

int main() {
  const weft::cluster_spec cluster{{"ps", {"127.0.0.1:1"}}, {"work", {"127.0.0.1:2"}}};
  weft::graph graph;
  auto scope = graph.as_default();
  weft::tensor<float, 1> x;
  {
    auto device = weft::with_device("/job:ps/task:0");
    x = weft::constant({1.f, 2.f, 3.f});
  }
  {
    auto device = weft::with_device("/job:work/task:0");
    (void)(x * 2.f);
  }
  const weft::partitioned_graph parts = weft::partition(graph, cluster);
  return parts.transfers().size() == 1 && parts.transfers()[0].bytes == 12 ? 0 : 1;
}
