// In-graph replication: one graph with a tower per worker, whose gradients are averaged where the variables are. Trains a small network and checks that two towers
// learn exactly what one tower learns from the whole batch.
//
//   towers                                 every task in this process
//   towers weft://127.0.0.1:33335          on the cluster of task_server's default

#include <weft/weft.hpp>

#include <cmath>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

// The mean squared error of a network with one hidden layer. Its variables are made by the first tower and found by the others.
weft::tensor<float, 0> loss_of(const weft::tensor<float, 2>& x, const weft::tensor<float, 2>& y) {
  const auto w1 = weft::get_variable<float>("hidden/weights", {1, 32}, weft::glorot_uniform_initializer(7));
  const auto w2 = weft::get_variable<float>("output/weights", {32, 1}, weft::glorot_uniform_initializer(8));
  const auto b1 = weft::get_variable<float>("hidden/bias", {32}, weft::zeros_initializer());
  return weft::reduce_mean(weft::square(weft::matmul(weft::tanh(weft::matmul(x, w1) + b1), w2) - y));
}

// The loss after some steps with so many towers.
float train(const std::string& target, int towers, const xt::xtensor<float, 2>& xs, const xt::xtensor<float, 2>& ys) {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::cluster_spec cluster{{"ps", 2}, {"work", 3}};
  const auto on_chief = weft::with_device("/job:work/task:0");
  auto x = weft::placeholder<float, 2>({64, 1}, "x"), y = weft::placeholder<float, 2>({64, 1}, "y");
  std::vector<weft::tensor<float, 2>> x_shards = weft::split(x, towers), y_shards = weft::split(y, towers);

  std::vector<std::string> devices;
  for (int i = 0; i < towers; ++i) devices.push_back("/job:work/task:" + std::to_string(i));
  weft::replicate_options options;
  options.variables_on = weft::replica_device_setter(cluster);
  const auto shared = weft::variable_scope("net", weft::variable_reuse::automatic);
  auto replicas = weft::replicate(towers, devices, [&](int i) { return loss_of(x_shards[static_cast<std::size_t>(i)], y_shards[static_cast<std::size_t>(i)]); }, options);
  auto step = weft::adam_optimizer(0.02f).apply_gradients(replicas.gradients);
  auto initialize = weft::global_variables_initializer();

  weft::session_options local;
  if (target.empty()) local.cluster = cluster;
  weft::session session(target, local, g);
  session.run(initialize);
  for (int i = 0; i < 300; ++i) session.run({{x, xs}, {y, ys}}, step);
  std::cout << towers << (towers == 1 ? " tower:  " : " towers: ") << session.partitions({{x.raw(), y.raw()}, {}, {step.get()}}).transfers().size() << " transfers per step, ";
  const float loss = session.run({{x, xs}, {y, ys}}, replicas.loss);
  std::cout << "loss " << loss << '\n';
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    xt::xtensor<float, 2> xs = xt::zeros<float>({64, 1}), ys = xs;
    for (std::size_t i = 0; i < 64; ++i) {
      xs(i, 0) = static_cast<float>(i) / 32.f - 1.f;
      ys(i, 0) = std::sin(3.f * xs(i, 0));
    }
    const std::string target = argc > 1 ? argv[1] : "";
    const float one = train(target, 1, xs, ys), two = train(target, 2, xs, ys);
    return std::abs(one - two) < 1e-4f && two < 0.02f ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "towers: " << e.what() << '\n';
    return 1;
  }
}
