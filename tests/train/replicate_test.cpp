#include <weft/train/replicate.hpp>

#include <weft/graph.hpp>
#include <weft/gradients.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/device_setter.hpp>
#include <weft/train/optimizers.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace {

using weft::gradient_averaging;
using weft::tower_variables;

const weft::cluster_spec cluster{{"ps", 1}, {"worker", 4}};

std::vector<std::string> workers(int n) {
  std::vector<std::string> out;
  for (int i = 0; i < n; ++i) out.push_back("/job:worker/task:" + std::to_string(i));
  return out;
}

// A small model with a dense and a sparse gradient; the loss is a mean over rows.
struct model {
  weft::variable<double, 2> w{xt::xtensor<double, 2>{{0.5, -0.25}, {1, 0.75}, {-0.5, 0.1}}, "w"}, table{xt::xtensor<double, 2>{{1, 2, 3}, {-1, 0.5, 0}, {2, 1, -1}, {0.1, 0.2, 0.3}}, "table"};
  weft::tensor<double, 0> loss(const weft::tensor<std::int64_t, 1>& rows, const weft::tensor<double, 2>& wanted) const {
    return weft::reduce_mean(weft::square(weft::matmul(weft::gather(table, rows), w) - wanted));
  }
};

const xt::xtensor<std::int64_t, 1> all_rows{0, 1, 1, 3, 2, 1};
const xt::xtensor<double, 2> all_wanted{{1, 0}, {0, 1}, {2, 2}, {-1, 0.5}, {0, 0}, {1, -1}};

template <class Optimizer> std::unique_ptr<weft::optimizer> make(double rate) { return std::make_unique<Optimizer>(rate); }

}  // namespace

TEST_CASE("replicate: towers of equal shards train as one of the full batch") {
  const std::map<std::string, std::function<std::unique_ptr<weft::optimizer>()>> optimizers = {
      {"descent", [] { return make<weft::gradient_descent_optimizer>(0.1); }},
      {"momentum", [] { return std::make_unique<weft::momentum_optimizer>(0.1, 0.9); }},
      {"adam", [] { return make<weft::adam_optimizer>(0.05); }},
      {"adagrad", [] { return make<weft::adagrad_optimizer>(0.1); }}};
  for (const auto& entry : optimizers) {
    const std::string& name = entry.first;
    // 1. One tower, all rows.
    xt::xtensor<double, 2> w, table;
    double loss = 0;
    const auto train = [&](int towers, gradient_averaging averaging, tower_variables how) {
      const weft::graph g;
      const auto scope = g.as_default();
      std::unique_ptr<model> shared, first;
      if (how == tower_variables::shared) shared = std::make_unique<model>();
      weft::replicate_options options;
      options.averaging = averaging;
      options.variables = how;
      const auto rows = weft::constant(all_rows);
      const auto wanted = weft::constant(all_wanted);
      const auto built = weft::replicate(towers, {"/device:CPU:0"}, [&](int i) {
        std::unique_ptr<model> own;
        if (shared == nullptr) own = std::make_unique<model>();
        const auto part = weft::split(rows, towers)[static_cast<std::size_t>(i)];
        const auto result = (shared == nullptr ? *own : *shared).loss(part, weft::split(wanted, towers)[static_cast<std::size_t>(i)]);
        if (own != nullptr && i == towers - 1) first = std::move(own);
        return result;
      }, options);
      const auto trainer = entry.second();
      const auto step = trainer->apply_gradients(built.gradients);
      weft::local_session session({}, g);
      session.run(weft::global_variables_initializer());
      if (how == tower_variables::mirrored) session.run(built.synchronize);
      for (int i = 0; i < 5; ++i) session.run(step);
      const model& m = shared != nullptr ? *shared : *first;
      return session.run(m.w, m.table, built.loss);
    };
    std::tie(w, table, loss) = train(1, gradient_averaging::on_variables, tower_variables::shared);
    // 2. The same with two and three towers, however they average.
    for (const int towers : {2, 3})
      for (const auto averaging : {gradient_averaging::on_variables, gradient_averaging::on_first_tower, gradient_averaging::ring})
        for (const auto how : {tower_variables::shared, tower_variables::mirrored}) {
          CAPTURE(name);
          CAPTURE(towers);
          CAPTURE(static_cast<int>(averaging));
          CAPTURE(static_cast<int>(how));
          const auto [w_now, table_now, loss_now] = train(towers, averaging, how);
          CHECK(xt::allclose(w_now, w, 1e-12, 1e-14));
          CHECK(xt::allclose(table_now, table, 1e-12, 1e-14));
          CHECK(loss_now == doctest::Approx(loss).epsilon(1e-12));
        }
  }
}

namespace {

// The bytes of a training step of a linear model of 12 weights over these towers, by link `worker:0 ps:0`.
std::map<std::string, std::int64_t> bytes_by_link(int towers, const weft::replicate_options& options) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> w;
  if (options.variables == tower_variables::shared) {
    const auto device = weft::with_device(weft::replica_device_setter(cluster));
    w = weft::variable<float, 1>(xt::xtensor<float, 1>(xt::ones<float>({12})), "w");
  }
  const auto built = weft::replicate(towers, workers(towers), [&](int) {
    const auto weights = options.variables == tower_variables::shared ? w : weft::variable<float, 1>(xt::xtensor<float, 1>(xt::ones<float>({12})), "w");
    return weft::reduce_sum(weft::square(weights));
  }, options);
  weft::gradient_descent_optimizer descent(0.1f);
  weft::partition_options cut;
  const auto step = descent.apply_gradients(built.gradients);
  cut.targets = {step.get()};
  const weft::partitioned_graph parts = weft::partition(g, cluster, cut);
  std::map<std::string, std::int64_t> out;
  const auto task = [](const std::string& device) {
    const weft::device_name name = weft::parse_device_name(device);
    return *name.job + ":" + std::to_string(*name.task);
  };
  for (const weft::transfer& t : parts.transfers())
    if (t.source[0] != '^') out[task(t.from) + " " + task(t.to)] += t.bytes.value_or(-1000000);
  return out;
}

}  // namespace

TEST_CASE("replicate: what crosses is the least that can") {
  weft::replicate_options options;
  // Weights of 48 bytes to each tower, a gradient back from each.
  CHECK(bytes_by_link(3, options) == std::map<std::string, std::int64_t>{{"ps:0 worker:0", 48},
                                                                         {"ps:0 worker:1", 48},
                                                                         {"ps:0 worker:2", 48},
                                                                         {"worker:0 ps:0", 48},
                                                                         {"worker:1 ps:0", 48},
                                                                         {"worker:2 ps:0", 48}});
  options.averaging = gradient_averaging::on_first_tower;
  CHECK(bytes_by_link(3, options) == std::map<std::string, std::int64_t>{{"ps:0 worker:0", 48},
                                                                         {"ps:0 worker:1", 48},
                                                                         {"ps:0 worker:2", 48},
                                                                         {"worker:1 worker:0", 48},
                                                                         {"worker:2 worker:0", 48},
                                                                         {"worker:0 ps:0", 48}});
  // A ring of four sends 2 * 3 slices of 12 bytes over each of its links, and no others.
  options.averaging = gradient_averaging::ring;
  options.variables = tower_variables::mirrored;
  CHECK(bytes_by_link(4, options) == std::map<std::string, std::int64_t>{{"worker:0 worker:1", 72}, {"worker:1 worker:2", 72}, {"worker:2 worker:3", 72}, {"worker:3 worker:0", 72}});
  // With shared variables the slices, 16 bytes of three towers, are summed around the ring and meet on the first tower.
  options.variables = tower_variables::shared;
  CHECK(bytes_by_link(3, options) == std::map<std::string, std::int64_t>{{"ps:0 worker:0", 48}, {"ps:0 worker:1", 48}, {"ps:0 worker:2", 48}, {"worker:0 worker:1", 32}, {"worker:1 worker:2", 32},
                                                                          {"worker:2 worker:0", 48}, {"worker:1 worker:0", 16}, {"worker:0 ps:0", 48}});
}

TEST_CASE("replicate: names, devices, variables of towers") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::replicate_options options;
  options.variables = tower_variables::mirrored;
  options.variables_on = [](const weft::node&) { return std::string("/job:ps/task:0"); };
  const auto built = weft::replicate(2, workers(2), [&](int) { return weft::square(weft::variable<float, 0>(1.f, "w")); }, options);
  CHECK(built.losses[1].name() == "tower_1/Square");
  CHECK(built.losses[1].raw().from->device() == "/job:worker/task:1");
  CHECK(built.gradients.size() == 2);
  CHECK(built.gradients[1].variable.name() == "tower_1/w");
  CHECK(built.gradients[1].variable.device() == "/job:ps/task:0");
  CHECK(built.gradients[1].gradient.values().from->name().compare(0, 14, "mean_gradients") == 0);
  for (const weft::node* n : g.nodes())
    if (n->name().compare(0, 18, "tower_1/gradients/") == 0) CHECK(n->device() == "/job:worker/task:1");
}

TEST_CASE("replicate: variables by name are shared, or each tower has its own") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto body = [](int) { return weft::reduce_sum(weft::get_variable<float>("w", {3})); };
  weft::replicate_options options;
  options.variables_on = weft::replica_device_setter(cluster);
  CHECK(weft::replicate(2, workers(2), body, options).gradients.size() == 1);
  CHECK(weft::trainable_variables().size() == 1);
  CHECK(weft::trainable_variables()[0].name() == "w");
  CHECK(weft::trainable_variables()[0].device() == "/job:ps/task:0");
  options.variables = tower_variables::mirrored;
  CHECK(weft::replicate(2, workers(2), body, options).gradients.size() == 2);
  CHECK(weft::trainable_variables()[2].name() == "tower_1_1/w");
}

TEST_CASE("replicate: misuse") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto message_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const weft::error& e) {
      return e.status().message;
    }
    return std::string();
  };
  const auto own = [](int i) { return weft::reduce_sum(weft::variable<float, 1>(weft::constant(std::vector<float>(static_cast<std::size_t>(i + 1), 1.f)), "w")); };
  CHECK(message_of([&] { weft::replicate(0, workers(1), own); }) == "replicate: there must be at least one tower, found 0");
  CHECK(message_of([&] { weft::replicate(1, {}, own); }) == "replicate: there must be at least one device");
  CHECK(message_of([&] { weft::replicate(2, workers(1), own); }) ==
        "replicate: tower 1 made the variable 'tower_1/w', but towers share their variables; make them before or by get_variable, or ask for mirrored variables");
  weft::replicate_options options;
  options.variables = tower_variables::mirrored;
  CHECK(message_of([&] { weft::replicate(2, workers(1), own, options); }) == "replicate: 'tower_1_1/w' of shape [2] cannot mirror 'tower_0_1/w' of shape [1]");
  CHECK(message_of([&] { weft::replicate(2, workers(1), [](int) { return weft::constant(1.f); }, options); }) == "replicate: tower 0 made no trainable variables to mirror");
}
