// A translation unit that runs a graph on servers.
#include <weft/weft.hpp>

bool cluster_unit();

bool cluster_unit() {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}});
  weft::tensor<float, 1> x;
  {
    auto device = weft::with_device("/job:ps/task:0");
    x = weft::constant({1.f, 2.f, 3.f});
  }
  auto device = weft::with_device("/job:work/task:0");
  weft::session session(cluster.target());
  return session.run(weft::reduce_sum(x * 2.f)) == 12.f;
}
