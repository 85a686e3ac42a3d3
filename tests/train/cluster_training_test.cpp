// Training over servers: towers in one graph, and workers with a graph each.
#include <weft/train.hpp>

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

weft::run_options within_seconds() {
  weft::run_options limit;
  limit.timeout = std::chrono::seconds(60);
  return limit;
}

}  // namespace

TEST_CASE("cluster training: towers on three workers train as one of the full batch, however they average") {
  weft::local_cluster servers({{"ps", 2}, {"worker", 3}});
  const xt::xtensor<double, 2> x{{1, 2}, {0, -1}, {0.5, 1}, {-2, 0.25}, {1, 1}, {3, -1}}, y{{1}, {0}, {2}, {-1}, {0.5}, {1}};
  const auto train = [&](int towers, weft::gradient_averaging averaging, weft::tower_variables how) {
    const weft::graph g;
    const auto scope = g.as_default();
    weft::replicate_options options;
    options.averaging = averaging;
    options.variables = how;
    if (towers > 1 && how == weft::tower_variables::shared) options.variables_on = weft::replica_device_setter(servers.spec());
    const auto xs = weft::split(weft::constant(x), towers), ys = weft::split(weft::constant(y), towers);
    std::vector<std::string> devices{""};
    if (towers > 1) devices = {"/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"};
    weft::variable<double, 2> w;
    weft::variable<double, 1> b;
    const auto built = weft::replicate(towers, devices, [&](int i) {
      w = weft::get_variable<double>("w", {2, 1}, weft::constant_initializer(0.5));
      b = weft::get_variable<double>("b", {1}, weft::constant_initializer(-0.25));
      return weft::reduce_mean(weft::square(weft::matmul(xs[static_cast<std::size_t>(i)], w) + b - ys[static_cast<std::size_t>(i)]));
    }, options);
    weft::adam_optimizer adam(0.1);
    const auto step = adam.apply_gradients(built.gradients, weft::get_or_create_global_step());
    weft::session session(towers > 1 ? servers.target("worker", 0) : "", {}, g);
    session.run(within_seconds(), weft::global_variables_initializer());
    for (int i = 0; i < 10; ++i) session.run(within_seconds(), step);
    return session.run(within_seconds(), w, b, built.loss, weft::get_global_step());
  };
  const auto [w, b, loss, steps] = train(1, weft::gradient_averaging::on_variables, weft::tower_variables::shared);
  CHECK(steps == 10);
  for (const auto how : {weft::tower_variables::shared, weft::tower_variables::mirrored})
    for (const auto averaging : {weft::gradient_averaging::on_variables, weft::gradient_averaging::on_first_tower, weft::gradient_averaging::ring}) {
      CAPTURE(static_cast<int>(how));
      CAPTURE(static_cast<int>(averaging));
      const auto [w_now, b_now, loss_now, steps_now] = train(3, averaging, how);
      CHECK(xt::allclose(w_now, w, 1e-12, 1e-14));
      CHECK(xt::allclose(b_now, b, 1e-12, 1e-14));
      CHECK(loss_now == doctest::Approx(loss).epsilon(1e-12));
      CHECK(steps_now == 10);
    }
}

TEST_CASE("cluster training: the line of progress says how many tasks are alive") {
  weft::local_cluster servers({{"ps", 1}, {"worker", 3}});
  servers.stop("worker", 2);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto on = weft::with_device("/job:worker/task:0");
  const auto step = weft::create_global_step();
  const auto train = weft::group({step.assign_add(weft::constant(std::int64_t(1)))});
  std::vector<std::string> lines;
  weft::monitored_session_options options;
  options.hooks = {std::make_shared<weft::progress_hook>(3, weft::output(), [&](std::string_view l) { lines.emplace_back(l); })};
  weft::monitored_session session([&] { return std::make_unique<weft::session>(servers.target("worker", 0), weft::session_options(), g); }, options, g);
  for (int i = 0; i < 3; ++i) session.run(within_seconds(), train);
  REQUIRE(!lines.empty());
  CHECK(lines.back().find("step 3/3") == 0);
  CHECK(lines.back().find("  3/4 tasks alive") != std::string::npos);
}

TEST_CASE("cluster training: asynchronous workers lose no update") {
  weft::local_cluster servers({{"ps", 2}, {"worker", 2}});
  constexpr int steps = 50;
  std::vector<std::thread> workers;
  // The optimizers' steps do not depend on who takes them: gradients are constant and each update is atomic.
  const auto worker = [&](int index, bool initialize, const std::function<void(weft::session&, const weft::operation&, const weft::variable<double, 1>&, const weft::variable<double, 2>&)>& body) {
    const weft::graph g;
    const auto scope = g.as_default();
    weft::replica_device_options options;
    options.worker_device = "/job:worker/task:" + std::to_string(index);
    const auto device = weft::with_device(weft::replica_device_setter(servers.spec(), options));
    const weft::variable<double, 1> w(xt::xtensor<double, 1>{0, 0}, "w");
    const weft::variable<double, 2> table(xt::xtensor<double, 2>{{0}, {0}, {0}}, "table");
    const auto global_step = weft::get_or_create_global_step();
    const auto loss = weft::reduce_sum(w * weft::constant({1., 2.})) + weft::reduce_sum(weft::gather(table, weft::constant({2, 0, 2})));
    weft::momentum_optimizer momentum(1., 0.5);
    const auto step = momentum.minimize(loss, global_step);
    const auto init = weft::global_variables_initializer();
    weft::session session(servers.target("worker", index), {}, g);
    if (initialize) session.run(within_seconds(), init);
    body(session, step, w, table);
    if (initialize) CHECK(session.run(within_seconds(), global_step) == 0);
  };
  worker(0, true, [](weft::session&, const weft::operation&, const auto&, const auto&) {});
  for (int index = 0; index < 2; ++index)
    workers.emplace_back([&, index] {
      worker(index, false, [](weft::session& session, const weft::operation& step, const auto&, const auto&) {
        for (int i = 0; i < steps; ++i) session.run(within_seconds(), step);
      });
    });
  for (std::thread& t : workers) t.join();
  // Momentum m is 1, 1.5, 1.75, ...: 2 - 0.5^(t-1) at step t; the sum over n steps is 2 n - 2 + 0.5^(n-1).
  const double moved = 2. * 2 * steps - 2;
  worker(1, false, [&](weft::session& session, const weft::operation&, const weft::variable<double, 1>& w, const weft::variable<double, 2>& table) {
    const auto [w_now, table_now] = session.run(within_seconds(), w, table);
    CHECK(xt::allclose(w_now, xt::xtensor<double, 1>{-moved, -2 * moved}));
    CHECK(xt::allclose(table_now, xt::xtensor<double, 2>{{-moved}, {0}, {-2 * moved}}));
    CHECK(session.run(within_seconds(), weft::get_global_step()) == 2 * steps);
  });
}
