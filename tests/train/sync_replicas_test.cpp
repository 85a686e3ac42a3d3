#include <weft/train/sync_replicas.hpp>

#include "../cluster/process_counts.hpp"
#include "../error_of.hpp"
#include "../format/file_test_support.hpp"
#include "../long_tests.hpp"

#include <weft/train/monitored_session.hpp>
#include <weft/train/sync_replica.hpp>

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/hooks.hpp>
#include <weft/train/optimizers.hpp>
#include <weft/train/saver.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

// The graph that every worker builds: v and its counter on the parameter server, gradients that are fed.
struct replica {
  replica(int task, std::int64_t aggregate, weft::sync_replicas_options options = {}) : scope(graph.as_default()), sgd(1.f) {
    {
      const auto device = weft::with_device("/job:ps/task:0");
      v = weft::variable<float, 0>(weft::constant(0.f), "v");
      table = weft::variable<float, 2>(weft::constant({{0.f}, {0.f}, {0.f}}), "table");
      step = weft::get_or_create_global_step();
    }
    const auto device = weft::with_device("/job:work/task:" + std::to_string(task));
    gradient = weft::placeholder<float, 0>("gradient");
    rows = weft::placeholder<std::int32_t, 1>("rows");
    values = weft::placeholder<float, 2>("values");
    sync = std::make_unique<weft::sync_replicas_optimizer>(sgd, aggregate, options);
    pass = sync->apply_gradients({{gradient, v}, {weft::indexed_slices{values.raw(), rows.raw(), {}}, table}}, step);
    if (options.order == weft::sync_order::exact) counted = sync->counted();
    init = weft::global_variables_initializer(graph);
  }
  // One pass; whether it counted.
  bool run(weft::session_interface& session, float g, std::chrono::milliseconds limit = 20s) {
    weft::run_options options;
    options.timeout = limit;
    return session.run(options, {{gradient, g}, {rows, {1}}, {values, {{g}}}}, pass, counted);
  }
  weft::graph graph;
  decltype(graph.as_default()) scope;
  weft::gradient_descent_optimizer sgd;
  weft::variable<float, 0> v;
  weft::variable<float, 2> table;
  weft::variable<std::int64_t, 0> step;
  weft::tensor<float, 0> gradient;
  weft::tensor<std::int32_t, 1> rows;
  weft::tensor<float, 2> values;
  std::unique_ptr<weft::sync_replicas_optimizer> sync;
  weft::operation pass, init;
  weft::tensor<bool, 0> counted;
};

}  // namespace

TEST_CASE("sync_replicas: every pass counts, dense and sparse means are of the gradients taken") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  replica one(0, 2), two(1, 2);
  weft::session first(cluster.target("work", 0), {}, one.graph), second(cluster.target("work", 1), {}, two.graph);
  first.run(one.init);
  weft::sync_replica chief(*one.sync, first, weft::replica_role::chief), worker(*two.sync, second, weft::replica_role::worker);
  for (int k = 0; k < 5; ++k) {
    auto other = std::async(std::launch::async, [&] { return two.run(second, 3.f); });
    CHECK(one.run(first, 1.f));
    CHECK(other.get());
    CHECK(first.run(one.step) == k + 1);
    CHECK(first.run(one.v) == -2.f * static_cast<float>(k + 1));
  }
  CHECK(first.run(one.table) == xt::xtensor<float, 2>{{0.f}, {-10.f}, {0.f}});
  CHECK(chief.updates() == 5);
  chief.stop();
}

TEST_CASE("sync_replicas: one replica alone is the wrapped optimizer") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}});
  replica one(0, 1);
  weft::session session(cluster.target("work", 0), {}, one.graph);
  session.run(one.init);
  weft::sync_replica chief(*one.sync, session, weft::replica_role::chief);
  for (int k = 1; k <= 4; ++k) {
    CHECK(one.run(session, 1.f));
    CHECK(session.run(one.v) == -static_cast<float>(k));
  }
}

TEST_CASE("sync_replicas: the slowest of a step is stale, and is up to date after that") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 3}});
  weft::sync_replicas_options options;
  options.total_num_replicas = 3;
  replica one(0, 2, options), two(1, 2, options), three(2, 2, options);
  weft::session a(cluster.target("work", 0), {}, one.graph), b(cluster.target("work", 1), {}, two.graph), c(cluster.target("work", 2), {}, three.graph);
  a.run(one.init);
  weft::sync_replica chief(*one.sync, a, weft::replica_role::chief), second(*two.sync, b, weft::replica_role::worker), third(*three.sync, c, weft::replica_role::worker);
  auto other = std::async(std::launch::async, [&] { return two.run(b, 3.f); });
  CHECK(one.run(a, 1.f));
  CHECK(other.get());
  CHECK_FALSE(three.run(c, 100.f));
  CHECK(a.run(one.v) == -2.f);
  other = std::async(std::launch::async, [&] { return three.run(c, 5.f); });
  CHECK(one.run(a, 1.f));
  CHECK(other.get());
  CHECK(a.run(one.v) == -5.f);
  CHECK(a.run(one.step) == 2);
}

TEST_CASE("sync_replicas: fewer workers than passes make several passes for an update") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}});
  weft::sync_replicas_options options;
  options.total_num_replicas = 1;
  replica one(0, 3, options);
  weft::session session(cluster.target("work", 0), {}, one.graph);
  session.run(one.init);
  weft::sync_replica chief(*one.sync, session, weft::replica_role::chief);
  for (const float g : {1.f, 2.f, 6.f}) CHECK(one.run(session, g));
  CHECK(session.run(one.v) == -3.f);
  CHECK(session.run(one.step) == 1);
  for (const float g : {1.f, 2.f, 6.f}) CHECK(one.run(session, g));
  CHECK(session.run(one.step) == 2);
}

TEST_CASE("sync_replicas: a worker that is killed while it waits is replaced") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  replica one(0, 2), two(1, 2);
  weft::session first(cluster.target("work", 0), {}, one.graph);
  first.run(one.init);
  weft::sync_replica chief(*one.sync, first, weft::replica_role::chief);
  {
    weft::session second(cluster.target("work", 1), {}, two.graph);
    weft::sync_replica worker(*two.sync, second, weft::replica_role::worker);
    auto lost = std::async(std::launch::async, [&] { return error_of([&] { two.run(second, 3.f); }).code; });
    const auto count = two.sync->accumulators()[0].num_accumulated();
    while (second.run(count) != 1) std::this_thread::yield();
    CHECK(lost.wait_for(20ms) == std::future_status::timeout);
    cluster.stop("work", 1);
    CHECK(lost.get() != weft::error_code::ok);
  }
  // Its gradients had all arrived: they count, as the update shows.
  CHECK(one.run(first, 1.f));
  CHECK(first.run(one.v) == -2.f);
  cluster.start("work", 1);
  replica again(1, 2);
  weft::session third(cluster.target("work", 1), {}, again.graph);
  weft::sync_replica worker(*again.sync, third, weft::replica_role::worker);
  auto other = std::async(std::launch::async, [&] { return again.run(third, 3.f); });
  CHECK(one.run(first, 1.f));
  CHECK(other.get());
  CHECK(first.run(one.v) == -4.f);
}

TEST_CASE("sync_replicas: a pass that is given up in the middle can be made again") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  replica one(0, 2), two(1, 2);
  weft::session first(cluster.target("work", 0), {}, one.graph), second(cluster.target("work", 1), {}, two.graph);
  first.run(one.init);
  weft::sync_replica worker_first(*one.sync, first, weft::replica_role::chief), worker(*two.sync, second, weft::replica_role::worker);
  // Times out while it waits: it counts, once.
  CHECK(error_of([&] { one.run(first, 1.f, 100ms); }).code == weft::error_code::deadline_exceeded);
  CHECK(two.run(second, 3.f));
  CHECK(first.run(one.v) == -2.f);
  // It is a step behind, learns that its pass is stale, and goes on.
  CHECK_FALSE(one.run(first, 100.f));
  auto other = std::async(std::launch::async, [&] { return two.run(second, 3.f); });
  CHECK(one.run(first, 1.f));
  CHECK(other.get());
  CHECK(first.run(one.v) == -4.f);
}

TEST_CASE("sync_replicas: optimizers of one graph do not meet") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 0> v(weft::constant(0.f), "v");
  const auto step = weft::get_or_create_global_step();
  weft::gradient_descent_optimizer sgd(1.f);
  weft::sync_replicas_optimizer a(sgd, 1), b(sgd, 1);
  const auto pass_a = a.apply_gradients({{weft::constant(1.f), v}}, step), pass_b = b.apply_gradients({{weft::constant(10.f), v}}, step);
  weft::local_session session({}, g);
  session.run(weft::global_variables_initializer());
  weft::sync_replica chief_a(a, session, weft::replica_role::chief);
  session.run(pass_a);
  CHECK(session.run(v) == -1.f);
  CHECK(session.run(b.accumulators()[0].num_accumulated()) == 0);
  CHECK(a.accumulators()[0].raw().from->attr<std::string>("shared_name") == "sync_replicas/v/grad_accum");
  CHECK(b.accumulators()[0].raw().from->attr<std::string>("shared_name") == "sync_replicas_1/v/grad_accum");
}

TEST_CASE("sync_replicas: a worker says for what it waits, and a chief that fails ends the passes") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  replica one(0, 2), two(1, 2);
  weft::session first(cluster.target("work", 0), {}, one.graph), second(cluster.target("work", 1), {}, two.graph);
  weft::sync_replica_options hurry;
  hurry.ready_timeout = 50ms;
  const auto early = error_of([&] { weft::sync_replica worker(*two.sync, second, weft::replica_role::worker, hurry); });
  CHECK(early.code == weft::error_code::deadline_exceeded);
  CHECK(early.message.find("the chief has not initialised the variables within 50 ms") == 0);
  first.run(one.init);
  weft::sync_replica chief(*one.sync, first, weft::replica_role::chief);
  auto waits = std::async(std::launch::async, [&] { return error_of([&] { one.run(first, 1.f); }).code; });
  CHECK(waits.wait_for(50ms) == std::future_status::timeout);
  cluster.stop("ps", 0);
  CHECK(waits.get() != weft::error_code::ok);
  CHECK_FALSE(error_of([&] {
                // The thread that makes the updates closes the session when it fails.
                while (error_of([&] { first.run(one.step); }).code != weft::error_code::failed_precondition) std::this_thread::yield();
                chief.stop();
              }).ok());
}

TEST_CASE("sync_replicas: a monitored session keeps its replica through a recovery") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  replica one(0, 1);
  weft::monitored_session_options options;
  options.hooks = {std::make_shared<weft::sync_replicas_hook>(*one.sync)};
  weft::monitored_session session([&] { return std::make_unique<weft::session>(cluster.target("work", 0), weft::session_options(), one.graph); }, options, one.graph);
  CHECK(one.run(session, 1.f));
  CHECK(session.run(one.v) == -1.f);
  cluster.stop("ps", 0);
  cluster.start("ps", 0);
  // Without a checkpoint the variables begin again.
  bool counted = false;
  for (int i = 0; i < 20 && !counted; ++i) error_of([&] { counted = one.run(session, 1.f); });
  CHECK(counted);
  CHECK(session.recoveries() == 1);
  CHECK(session.run(one.v) == -1.f);
  session.close();
}

TEST_CASE("sync_replicas: replicas may begin and end in any order, with as many passes each or not") {
  struct story {
    int aggregate, total;
    std::vector<int> passes, order;
    // Of each replica; those who cannot make their last passes learn why.
    std::vector<bool> complete;
  };
  std::vector<story> stories{
      {3, 3, {5, 5, 5}, {0, 1, 2}, {true, true, true}},
      {3, 3, {5, 5, 5}, {2, 1, 0}, {true, true, true}},
      {2, 2, {6, 4}, {1, 0}, {false, true}},
      {2, 2, {4, 6}, {0, 1}, {true, false}},
  };
  if (takes_long()) {
    std::vector<int> order{0, 1, 2};
    do stories.push_back({3, 3, {5, 5, 5}, order, {true, true, true}});
    while (std::next_permutation(order.begin(), order.end()));
  }
  for (const story& s : stories) {
    const int count = static_cast<int>(s.passes.size());
    weft::local_cluster cluster({{"ps", 1}, {"work", count}});
    std::vector<std::future<weft::status>> replicas(s.passes.size());
    for (const int index : s.order) {
      replicas[static_cast<std::size_t>(index)] = std::async(std::launch::async, [&, index] {
        return error_of([&] {
          weft::sync_replicas_options options;
          options.total_num_replicas = s.total;
          replica mine(index, s.aggregate, options);
          weft::session session(cluster.target("work", index), {}, mine.graph);
          if (index == 0) session.run(mine.init);
          weft::sync_replica runs(*mine.sync, session, index == 0 ? weft::replica_role::chief : weft::replica_role::worker);
          for (int i = 0; i < s.passes[static_cast<std::size_t>(index)]; ++i) mine.run(session, 1.f);
        });
      });
    }
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      CAPTURE(i);
      const weft::status end = replicas[i].get();
      if (s.complete[i]) CHECK_MESSAGE(end.ok(), end.text());
      else CHECK_MESSAGE(end.code == weft::error_code::out_of_range, end.text());
    }
  }
}

TEST_CASE("sync_replicas: a parameter server and three workers may be started in any order") {
  static constexpr int ps = 3, last = 4;
  std::vector<int> order{0, 1, 2, ps};
  int number = 0;
  do {
    if (!takes_long() && number++ % 11 != 0) continue;
    const std::string places{static_cast<char>('0' + order[0]), static_cast<char>('0' + order[1]), static_cast<char>('0' + order[2]), static_cast<char>('0' + order[3])};
    CAPTURE(places);
    weft::local_cluster cluster({{"ps", 1}, {"work", 3}});
    const auto job = [](int index) { return index == ps ? "ps" : "work"; };
    for (const int index : order) cluster.stop(job(index), index % ps);
    std::vector<std::future<weft::status>> replicas(3);
    for (const int index : order) {
      cluster.start(job(index), index % ps);
      if (index == ps) continue;
      replicas[static_cast<std::size_t>(index)] = std::async(std::launch::async, [&cluster, index] {
        return error_of([&] {
          replica mine(index, 3);
          weft::monitored_session_options options;
          options.role = index == 0 ? weft::session_role::chief : weft::session_role::worker;
          options.look_every = 10ms;
          options.patience = 60s;
          options.hooks = {std::make_shared<weft::sync_replicas_hook>(*mine.sync)};
          if (index == 0) options.hooks.push_back(std::make_shared<weft::stop_at_step_hook>(last));
          weft::monitored_session session([&] { return std::make_unique<weft::session>(cluster.target("work", index), weft::session_options(), mine.graph); }, options, mine.graph);
          session.loop([&] { mine.run(session, 1.f, 60s); });
        });
      });
      // The next one comes when this one is at work, or waits.
      CHECK(process_counts::soon([&] { return cluster.at("work", index).statistics().sessions_opened > 0; }));
    }
    for (auto& each : replicas) {
      REQUIRE(each.wait_for(120s) == std::future_status::ready);
      const weft::status end = each.get();
      CHECK_MESSAGE(end.ok(), end.text());
    }
    replica reads(0, 3);
    weft::session session(cluster.target("work", 0), {}, reads.graph);
    CHECK(session.run(reads.step) == last);
    CHECK(session.run(reads.v) == -static_cast<float>(last));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("sync_replicas: a worker says when nobody makes the updates") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  replica one(0, 2), two(1, 2);
  weft::session first(cluster.target("work", 0), {}, one.graph), second(cluster.target("work", 1), {}, two.graph);
  first.run(one.init);
  weft::sync_replica_options hurry;
  hurry.ready_timeout = 100ms;
  const auto why = error_of([&] { weft::sync_replica worker(*two.sync, second, weft::replica_role::worker, hurry); });
  CHECK(why.code == weft::error_code::deadline_exceeded);
  CHECK(why.message == "sync_replicas: the variables are initialised, but within 100 ms no chief began to make updates; exactly one worker makes its sync_replica with replica_role::chief");
}

TEST_CASE("sync_replicas: a worker whose hook was forgotten is told so by its first pass") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  replica one(0, 1), two(1, 1);
  weft::session first(cluster.target("work", 0), {}, one.graph), second(cluster.target("work", 1), {}, two.graph);
  first.run(one.init);
  weft::sync_replica chief(*one.sync, first, weft::replica_role::chief);
  const auto why = error_of([&] { two.run(second, 1.f); });
  CHECK(why.code == weft::error_code::failed_precondition);
  CHECK_MESSAGE(why.message.find("local_step") != std::string::npos, why.message);
}

TEST_CASE("sync_replicas: a checkpoint of three workers is restored with four") {
  const file_test::folder dir;
  std::string saved;
  for (const int workers : {3, 4}) {
    weft::local_cluster cluster({{"ps", 1}, {"work", workers}});
    std::vector<std::unique_ptr<replica>> all;
    for (int i = 0; i < workers; ++i) all.push_back(std::make_unique<replica>(i, 1));
    weft::session session(cluster.target("work", 0), {}, all[0]->graph);
    weft::saver keeper(weft::saver_options(), all[0]->graph);
    session.run(all[0]->init);
    if (workers == 4) keeper.restore(session, saved);
    weft::sync_replica chief(*all[0]->sync, session, weft::replica_role::chief);
    for (int i = 0; i < workers; ++i) {
      auto& mine = *all[static_cast<std::size_t>(i)];
      weft::session of_worker(cluster.target("work", i), {}, mine.graph);
      weft::sync_replica worker(*mine.sync, of_worker, weft::replica_role::worker);
      CHECK(mine.run(of_worker, 1.f));
    }
    CHECK(session.run(all[0]->v) == (workers == 3 ? -3.f : -7.f));
    CHECK(session.run(all[0]->step) == (workers == 3 ? 3 : 7));
    if (workers == 3) saved = keeper.save(session, dir / "m");
  }
}

TEST_CASE("sync_replicas: misuse is refused at once") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 0> v(weft::constant(0.f), "v");
  const auto step = weft::get_or_create_global_step();
  weft::gradient_descent_optimizer sgd(1.f);
  CHECK(error_of([&] { weft::sync_replicas_optimizer(sgd, 0); }).message == "the numbers of replicas must be positive, found 0 to aggregate of 0");
  weft::sync_replicas_optimizer sync(sgd, 2);
  CHECK(error_of([&] { sync.chief_step(); }).message == "sync_replicas: call apply_gradients first");
  CHECK(error_of([&] { sync.apply_gradients({}, step); }).message == "sync_replicas: no variable has a gradient");
  CHECK(error_of([&] { sync.apply_gradients({{weft::constant(1.f), v}}); }).message == "sync_replicas: a global step is needed to tell which gradients are stale");
  sync.apply_gradients({{weft::constant(1.f), v}}, step);
  CHECK(error_of([&] { sync.apply_gradients({{weft::constant(1.f), v}}, step); }).code == weft::error_code::failed_precondition);
  CHECK(error_of([&] { sync.init_tokens(); }).message == "sync_replicas: the exact order has no tokens");
  weft::sync_replicas_options options;
  options.order = weft::sync_order::tensorflow;
  options.total_num_replicas = 1;
  weft::sync_replicas_optimizer few(sgd, 3, options);
  few.apply_gradients({{weft::constant(1.f), v}}, step);
  CHECK(error_of([&] { few.init_tokens(1); }).message == "sync_replicas: the first update needs at least 2 tokens, found 1");
  CHECK(error_of([&] { few.init_tokens(-2); }).code == weft::error_code::invalid_argument);
  CHECK(few.init_tokens(2).get()->op() == "QueueEnqueueManyV2");
  CHECK(error_of([&] { few.counted(); }).code == weft::error_code::failed_precondition);
}
