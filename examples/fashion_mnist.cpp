// Learns to tell ten kinds of clothes apart, in one process or as one task of a cluster: parameter servers hold the variables, each worker trains on its share of the pictures,
// all at their own pace or in step.
//
//   fashion_mnist --data=FOLDER [--model=cnn]                      in this process
//   fashion_mnist --data=FOLDER --job_name=ps --task_index=0       a task; start one process for each task of --cluster
//   fashion_mnist --data=FOLDER --job_name=work --task_index=1 --sync
//
// FOLDER has the four files of the data set, uncompressed. tools/train_fashion_mnist does all of it.

#include <weft/weft.hpp>

#include <CLI/CLI.hpp>

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

struct flags {
  std::string data, job, model = "mlp", checkpoints, cluster = "ps=127.0.0.1:33341,127.0.0.1:33342;work=127.0.0.1:33343,127.0.0.1:33344";
  int task = 0;
  bool sync = false;
  std::int64_t epochs = 10, batch = 64;
  double expect = 0;
};

constexpr std::int64_t training_pictures = 60000;

// A product with new weights, and a bias.
weft::tensor<float, 2> dense(const weft::tensor<float, 2>& x, std::int64_t in, std::int64_t out, const std::string& name) {
  const auto scope = weft::variable_scope(name);
  const auto weights = weft::get_variable<float>("weights", {in, out}, weft::glorot_uniform_initializer(1));
  const auto bias = weft::get_variable<float>("bias", {out}, weft::zeros_initializer());
  return weft::matmul(x, weights) + bias;
}

// 5 x 5 filters, then the largest of each 2 x 2.
weft::tensor<float, 4> convolution(const weft::tensor<float, 4>& x, std::int64_t in, std::int64_t out, const std::string& name) {
  const auto scope = weft::variable_scope(name);
  const auto filters = weft::get_variable<float>("filters", {5, 5, in, out}, weft::glorot_uniform_initializer(1));
  const auto bias = weft::get_variable<float>("bias", {out}, weft::zeros_initializer());
  return weft::max_pool(weft::relu(weft::conv2d(x, filters, 1, weft::same_padding) + bias), 2, 2, weft::same_padding);
}

struct network {
  weft::tensor<std::uint8_t, 3> images = weft::placeholder<std::uint8_t, 3>({weft::unknown, 28, 28}, "images");
  weft::tensor<std::uint8_t, 1> labels = weft::placeholder<std::uint8_t, 1>({weft::unknown}, "labels");
  weft::tensor<float, 0> loss, accuracy;

  explicit network(const std::string& kind) {
    const auto pixels = weft::cast<float>(images) * (1.f / 255.f);
    weft::tensor<float, 2> out;
    if (kind == "cnn") {
      const auto features = convolution(convolution(weft::reshape(pixels, {-1, 28, 28, 1}), 1, 16, "first"), 16, 32, "second");
      out = dense(weft::relu(dense(weft::reshape(features, {-1, 7 * 7 * 32}), 7 * 7 * 32, 64, "third")), 64, 10, "last");
    } else {
      const auto hidden = weft::relu(dense(weft::reshape(pixels, {-1, 784}), 784, 256, "first"));
      out = dense(weft::relu(dense(hidden, 256, 128, "second")), 128, 10, "last");
    }
    const auto wanted = weft::cast<std::int64_t>(labels);
    loss = weft::reduce_mean(weft::sparse_softmax_cross_entropy_with_logits(wanted, out), "loss");
    accuracy = weft::reduce_mean(weft::cast<float>(weft::equal(weft::argmax(out, weft::axis<1>), wanted)), "accuracy");
  }
};

weft::dataset read(const flags& f, const std::string& which, const weft::dataset_options& options) {
  return weft::dataset({weft::read_idx(f.data + "/" + which + "-images-idx3-ubyte"), weft::read_idx(f.data + "/" + which + "-labels-idx1-ubyte")}, options);
}

double test_accuracy(const flags& f, weft::session_interface& session, const network& net) {
  weft::dataset_options options;
  options.batch_size = 1000;
  weft::dataset test = read(f, "t10k", options);
  double sum = 0;
  for (const weft::batch& b : test.epoch(0)) sum += static_cast<double>(session.run(b.feeds(net.images, net.labels), net.accuracy)) * static_cast<double>(b.size());
  return sum / static_cast<double>(test.examples());
}

int report(const flags& f, double accuracy) {
  std::cout << "accuracy on the test pictures: " << 100 * accuracy << " %\n";
  return accuracy >= f.expect ? 0 : 1;
}

// A worker of a cluster.
int train(const flags& f, const weft::cluster_spec& cluster, const std::string& target) {
  const int workers = cluster.num_tasks("work");
  const bool chief = f.task == 0;
  weft::replica_device_options where;
  where.worker_device = "/job:work/task:" + std::to_string(f.task);
  const auto on_tasks = weft::with_device(weft::replica_device_setter(cluster, where));

  const network net(f.model);
  const auto global_step = weft::create_global_step();
  // In step, an update is made of all workers' batches; else each batch makes one. The rate falls to zero on the way.
  const std::int64_t last_step = f.epochs * training_pictures / f.batch / (f.sync ? workers : 1);
  weft::adam_optimizer adam(weft::polynomial_decay(0.001f, global_step, last_step, 0.f));
  std::optional<weft::sync_replicas_optimizer> in_step;
  if (f.sync) in_step.emplace(adam, workers);
  weft::optimizer& optimizer = f.sync ? static_cast<weft::optimizer&>(*in_step) : adam;
  const weft::operation step = optimizer.minimize(net.loss, global_step);

  weft::monitored_session_options options;
  options.role = chief ? weft::session_role::chief : weft::session_role::worker;
  options.checkpoint_directory = f.checkpoints;
  options.hooks = {std::make_shared<weft::stop_at_step_hook>(last_step)};
  if (f.sync) options.hooks.push_back(std::make_shared<weft::sync_replicas_hook>(*in_step));
  if (chief) {
    options.hooks.push_back(std::make_shared<weft::step_counter_hook>(last_step / 6));
    options.hooks.push_back(std::make_shared<weft::progress_hook>(last_step, net.loss.raw()));
  }
  weft::dataset_options shuffled;
  shuffled.batch_size = f.batch;
  shuffled.order = weft::example_order::shuffled;
  shuffled.remainder = weft::remainder::drop;
  shuffled.worker = f.task;
  shuffled.workers = workers;
  weft::dataset pictures = read(f, "train", shuffled);

  weft::monitored_session session([&] { return std::make_unique<weft::session>(target); }, options);
  session.loop([&] { session.run(pictures.next().feeds(net.images, net.labels), step); });
  std::cout << "worker " << f.task << ": " << session.last_step() << " steps by all" << (session.recoveries() > 0 ? ", came back " + std::to_string(session.recoveries()) + " times" : std::string()) << std::endl;
  if (!chief) return 0;
  weft::session afterwards(target);
  return report(f, test_accuracy(f, afterwards, net));
}

// Everything in this process: one session, whose variables go with it.
int train_here(const flags& f) {
  const network net(f.model);
  const auto global_step = weft::create_global_step();
  const auto rate = weft::polynomial_decay(0.001f, global_step, f.epochs * training_pictures / f.batch, 0.f);
  const weft::operation step = weft::adam_optimizer(rate).minimize(net.loss, global_step);
  weft::dataset_options shuffled;
  shuffled.batch_size = f.batch;
  shuffled.order = weft::example_order::shuffled;
  weft::dataset pictures = read(f, "train", shuffled);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  for (std::int64_t epoch = 0; epoch < f.epochs; ++epoch) {
    for (const weft::batch& b : pictures.epoch(epoch)) session.run(b.feeds(net.images, net.labels), step);
    std::cout << "epoch " << epoch + 1 << ": " << 100 * test_accuracy(f, session, net) << " %" << std::endl;
  }
  return report(f, test_accuracy(f, session, net));
}

// A task: serves until it is told to stop, a worker also trains.
int run_task(const flags& f, const sigset_t& signals) {
  const weft::cluster_spec cluster = weft::parse_cluster_spec(f.cluster);
  weft::server server(cluster, f.job, f.task);
  if (f.job == "work") return train(f, cluster, server.target());
  std::thread stopper([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    server.stop();
  });
  server.join();
  stopper.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  flags f;
  CLI::App app("Trains on Fashion-MNIST.");
  app.add_option("--data", f.data, "The folder of the data set's files")->required();
  app.add_option("--model", f.model, "mlp or cnn")->check(CLI::IsMember({"mlp", "cnn"}))->capture_default_str();
  app.add_option("--job_name", f.job, "This process is a task of this job: ps or work");
  app.add_option("--task_index", f.task, "Its number")->capture_default_str();
  app.add_option("--cluster", f.cluster, "Every job and the addresses of its tasks")->capture_default_str();
  app.add_option("--checkpoints", f.checkpoints, "Where the chief saves the variables, and from where training goes on after a failure");
  app.add_flag("--sync", f.sync, "Workers train in step");
  app.add_option("--epochs", f.epochs, "Passes over the training pictures, all workers together")->capture_default_str();
  app.add_option("--batch", f.batch, "Pictures per step of a worker")->capture_default_str();
  app.add_option("--expect", f.expect, "Fails when the accuracy is below this");
  CLI11_PARSE(app, argc, argv);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  try {
    if (f.job.empty()) return train_here(f);
    if (f.job == "ps") pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return run_task(f, signals);
  } catch (const std::exception& e) {
    std::cerr << "fashion_mnist: " << e.what() << '\n';
    return 1;
  }
}
