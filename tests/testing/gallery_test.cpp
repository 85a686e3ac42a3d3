// The worked partitions of docs/partitioning.md, each pinned. With WEFT_WRITE_GALLERY=FOLDER set, writes them as FOLDER/name.dot, from which the pictures are made.
#include <weft/gradients.hpp>
#include <weft/testing.hpp>
#include <weft/train.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using namespace weft::testing;

namespace {

weft::partitioned_graph cut(const weft::graph& g, const weft::cluster_spec& cluster, const std::vector<weft::output>& fetches, const std::vector<const weft::node*>& targets, const std::string& master,
                            const char* name) {
  weft::partition_options options;
  options.fetches = fetches;
  options.targets = targets;
  options.master = master;
  options.merge_equal_nodes = options.skip_identities = true;
  weft::partitioned_graph parts = weft::partition(g, cluster, options);
  if (const char* folder = std::getenv("WEFT_WRITE_GALLERY")) std::ofstream(std::string(folder) + "/" + name + ".dot") << to_dot(parts);
  return parts;
}

// What crosses between tasks, a line each: value, size, from, to.
std::string crossings(const weft::partitioned_graph& parts) {
  std::string out;
  for (const weft::transfer& t : parts.transfers())
    if (t.between_tasks)
      out += t.source + "  " + (t.bytes ? std::to_string(*t.bytes) + " bytes  " : std::string()) + t.from.substr(0, t.from.find("/device")) + " -> " + t.to.substr(0, t.to.find("/device")) + "\n";
  return out;
}

// Layer `i` of a network of 100 inputs.
weft::tensor<float, 2> layer(const weft::tensor<float, 2>& x, std::int64_t in, std::int64_t out, const std::string& name) {
  return weft::matmul(x, weft::variable<float, 2>(weft::fill({in, out}, 0.1f), name));
}

}  // namespace

TEST_CASE("gallery: the first program") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x, y;
  weft::with_device("/job:ps/task:0", [&] { x = weft::constant(std::vector<float>(100, 1.f), "x"); });
  weft::with_device("/job:work/task:1", [&] { y = x * 0.1f + 0.3f; });
  const auto parts = cut(g, {{"ps", 2}, {"work", 3}}, {y.raw()}, {}, "/job:work/task:2", "seed");
  CHECK(transfers_at_most(parts, 1, 400));
  CHECK(matches_snapshot(crossings(parts), R"(
x  400 bytes  /job:ps/task:0 -> /job:work/task:1
)"));
}

TEST_CASE("gallery: towers") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto chief = weft::with_device("/job:work/task:0");
  weft::variable<float, 2> w;
  weft::with_device("/job:ps/task:0", [&] { w = weft::variable<float, 2>(weft::fill({100, 10}, 0.1f), "w"); });
  const auto towers = weft::replicate(2, {"/job:work/task:0", "/job:work/task:1"}, [&](int) {
    return weft::reduce_mean(weft::square(weft::matmul(weft::placeholder<float, 2>({32, 100}, "x"), w)));
  });
  const weft::operation step = weft::gradient_descent_optimizer(0.1f).apply_gradients(towers.gradients);
  const auto parts = cut(g, {{"ps", 1}, {"work", 2}}, {}, {step.get()}, "/job:work/task:0", "towers");
  // The weights go to each tower and a gradient comes back from each: that is the least that can be.
  CHECK(sends_once(parts));
  CHECK(transfers_at_most(parts, 4, 4 * 4000));
  CHECK(matches_snapshot(crossings(parts), R"(
tower_0/ReadVariableOp  4000 bytes  /job:ps/task:0 -> /job:work/task:0
tower_1/ReadVariableOp  4000 bytes  /job:ps/task:0 -> /job:work/task:1
tower_0/gradients/tower_0/MatMul_grad/MatMul  4000 bytes  /job:work/task:0 -> /job:ps/task:0
tower_1/gradients/tower_1/MatMul_grad/MatMul  4000 bytes  /job:work/task:1 -> /job:ps/task:0
)"));
}

TEST_CASE("gallery: parameter servers") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::cluster_spec cluster{{"ps", 2}, {"work", 2}};
  weft::replica_device_options options;
  options.worker_device = "/job:work/task:1";
  const auto devices = weft::with_device(weft::replica_device_setter(cluster, options));
  const auto x = weft::placeholder<float, 2>({32, 100}, "x");
  const auto loss = weft::reduce_mean(weft::square(layer(weft::relu(layer(x, 100, 50, "w0")), 50, 10, "w1")));
  const weft::operation step = weft::gradient_descent_optimizer(0.1f).minimize(loss);
  const auto parts = cut(g, cluster, {}, {step.get()}, "/job:work/task:1", "parameter_servers");
  CHECK(on_device(parts, "w0", "/job:ps/task:0"));
  CHECK(on_device(parts, "w1", "/job:ps/task:1"));
  CHECK(no_path(parts, "/job:ps/task:0", "/job:work/task:0"));
  CHECK(matches_snapshot(crossings(parts), R"(
ReadVariableOp  20000 bytes  /job:ps/task:0 -> /job:work/task:1
ReadVariableOp_1  2000 bytes  /job:ps/task:1 -> /job:work/task:1
gradients/MatMul_grad/MatMul  20000 bytes  /job:work/task:1 -> /job:ps/task:0
gradients/MatMul_1_grad/tuple/control_dependency_1  2000 bytes  /job:work/task:1 -> /job:ps/task:1
^GradientDescent/NoOp  0 bytes  /job:ps/task:0 -> /job:work/task:1
^GradientDescent/NoOp_1  0 bytes  /job:ps/task:1 -> /job:work/task:1
)"));
}

TEST_CASE("gallery: a pipeline") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 2> h;
  weft::with_device("/job:work/task:0", [&] { h = weft::placeholder<float, 2>({32, 100}, "x"); });
  for (int stage = 0; stage < 3; ++stage)
    weft::with_device("/job:work/task:" + std::to_string(stage), [&] { h = weft::tanh(layer(h, stage == 0 ? 100 : 50, 50, "w" + std::to_string(stage))); });
  weft::operation step;
  weft::with_device("/job:work/task:2", [&] {
    weft::compute_gradients_options backward;
    backward.colocate_with_ops = true;
    step = weft::gradient_descent_optimizer(0.1f).minimize(weft::reduce_mean(h), {}, backward);
  });
  const auto parts = cut(g, {{"work", 3}}, {}, {step.get()}, "/job:work/task:2", "pipeline");
  // Activations go forward, their gradients back; nothing passes a stage by.
  CHECK(matches_snapshot(crossings(parts), R"(
Tanh  6400 bytes  /job:work/task:0 -> /job:work/task:1
Tanh_1  6400 bytes  /job:work/task:1 -> /job:work/task:2
gradients/MatMul_2_grad/tuple/control_dependency  6400 bytes  /job:work/task:2 -> /job:work/task:1
gradients/MatMul_1_grad/tuple/control_dependency  6400 bytes  /job:work/task:1 -> /job:work/task:0
^GradientDescent/NoOp  0 bytes  /job:work/task:0 -> /job:work/task:2
^GradientDescent/NoOp_1  0 bytes  /job:work/task:1 -> /job:work/task:2
)"));
}
