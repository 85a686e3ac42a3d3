// A pipeline: each layer of a network lives on a task of its own, and what goes from task to task is one batch of activations, and on the way back their gradient.
//
//   pipeline                               every task in this process
//   pipeline weft://127.0.0.1:33335        on the cluster of task_server's default

#include <weft/weft.hpp>

#include <cmath>
#include <exception>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  try {
    constexpr int stages = 3, width = 16;
    auto on = [](int stage) { return weft::with_device("/job:work/task:" + std::to_string(stage)); };
    weft::tensor<float, 2> x, y;
    {
      auto first = on(0);
      x = weft::placeholder<float, 2>({32, width}, "x");
    }
    weft::tensor<float, 2> h = x;
    for (int stage = 0; stage < stages; ++stage) {
      auto device = on(stage);
      weft::variable<float, 2> w(weft::glorot_uniform_initializer(stage + 1)({width, width}), "w" + std::to_string(stage));
      h = weft::matmul(h, w);
      if (stage + 1 < stages) h = weft::tanh(h);
    }
    weft::tensor<float, 0> loss;
    weft::operation train;
    {
      auto last = on(stages - 1);
      y = weft::placeholder<float, 2>({32, width}, "y");
      loss = weft::reduce_mean(weft::square(h - y));
      weft::compute_gradients_options backward;
      backward.colocate_with_ops = true;  // each layer's gradient is computed where the layer is
      train = weft::gradient_descent_optimizer(0.5f).minimize(loss, {}, backward);
    }
    auto initialize = weft::global_variables_initializer();

    weft::session_options options;
    if (argc < 2) options.cluster = {{"work", stages}};
    weft::session session(argc > 1 ? argv[1] : "", options);
    for (const weft::transfer& t : session.partitions({{x.raw(), y.raw()}, {loss.raw()}, {train.get()}}).transfers())
      if (t.kind == weft::transfer_kind::data) std::cout << t << '\n';

    session.run(initialize);
    xt::xtensor<float, 2> xs = xt::zeros<float>({32, width}), ys = xs;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      xs.flat(i) = std::sin(static_cast<float>(i));
      ys.flat(i) = 0.5f * std::sin(static_cast<float>(i) + 1.f);
    }
    const float before = session.run({{x, xs}, {y, ys}}, loss);
    for (int step = 0; step < 500; ++step) session.run({{x, xs}, {y, ys}}, train);
    const float after = session.run({{x, xs}, {y, ys}}, loss);
    std::cout << "loss " << before << " before, " << after << " after 500 steps\n";
    return after < 0.1f * before ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "pipeline: " << e.what() << '\n';
    return 1;
  }
}
