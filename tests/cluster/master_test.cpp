#include <weft/cluster/master.hpp>

#include <weft/cluster/server.hpp>

#include "master_with_fake.hpp"
#include "process_counts.hpp"
#include "test_ops.hpp"

#include <future>

using fake::with_deaf_worker;
using test_ops::error_of;
using weft::error_code;

TEST_CASE("master: an abort overtakes a large feed that the task does not take") {
  with_deaf_worker cluster;
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>("x");
  weft::tensor<float, 0> total;
  weft::with_device("/job:far/task:0", [&] { total = weft::reduce_sum(x); });
  weft::session session(cluster.server->target(), {}, g);
  const xt::xtensor<float, 1> large = xt::zeros<float>({std::size_t{64} << 20});
  const auto late = error_of([&] { session.run(weft::run_options{std::chrono::milliseconds(500)}, {{x, large}}, total); });
  CHECK(late.code == error_code::deadline_exceeded);
  CHECK(cluster.worker.aborts() == 1);
  CHECK(session.run(weft::constant(1.f) + 1.f) == 2.f);
}

TEST_CASE("master: a task that never answers costs the abort's grace, not more") {
  with_deaf_worker cluster;
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> y;
  weft::with_device("/job:far/task:0", [&] { y = weft::constant(1.f) + 1.f; });
  weft::session session(cluster.server->target(), {}, g);
  for (int i = 1; i <= 3; ++i) {
    CHECK(error_of([&] { session.run(weft::run_options{std::chrono::milliseconds(20)}, y); }).code == error_code::deadline_exceeded);
    CHECK(cluster.worker.aborts() == i);
  }
}

TEST_CASE("master: a step is one message to each task and one back") {
  with_deaf_worker cluster([](fake::deaf_worker& worker) { worker.answers = [](const weft::run_part_message& r) { return std::vector<weft::message>{weft::part_done_message{r.step, {}, true}.encode({})}; }; });
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>("x");
  weft::operation two;
  weft::with_device("/job:far/task:0", [&] { two = weft::group({weft::operation(x + 1.f), weft::operation(x * 2.f)}); });
  weft::session session(cluster.server->target(), {}, g);
  for (int i = 1; i <= 5; ++i) {
    session.run({{x, {1.f, 2.f}}}, two);
    CHECK(cluster.worker.messages() == 1 + i);  // the registration comes before the first
  }
}

TEST_CASE("master: only the tasks that a step needs are contacted") {
  // far:0 does not exist; nothing asks for it.
  weft::server server({{"far", {"127.0.0.1:1"}}, {"work", {"127.0.0.1:0"}}}, "work", 0, with_deaf_worker::quiet());
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> unreachable, y;
  weft::with_device("/job:far/task:0", [&] { unreachable = weft::constant(1.f) + 1.f; });
  y = weft::constant(2.f) + 1.f;
  weft::session session(server.target(), {}, g);
  CHECK(session.run(y) == 3.f);
  const auto why = error_of([&] { session.run(unreachable); });
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message == "task /job:far/task:0 at 127.0.0.1:1: connection refused: no server is listening at 127.0.0.1:1");
  CHECK_FALSE(why.may_have_run);
  CHECK(session.run(y) == 3.f);
}

TEST_CASE("master: a task that accepts and says nothing is given up after connect_timeout") {
  const fake::deaf_worker silent;
  auto options = with_deaf_worker::quiet();
  options.connect_timeout = std::chrono::milliseconds(200);
  weft::server server({{"far", {silent.address()}}, {"work", {"127.0.0.1:0"}}}, "work", 0, options);
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> y;
  weft::with_device("/job:far/task:0", [&] { y = weft::constant(1.f) + 1.f; });
  weft::session session(server.target(), {}, g);
  const auto why = error_of([&] { session.run(y); });
  CHECK(why.code == error_code::deadline_exceeded);
  CHECK(why.message == "task /job:far/task:0 at " + silent.address() + ": no greeting within 200 ms");
  CHECK_FALSE(why.may_have_run);

  weft::session_options client;
  client.connect_timeout = std::chrono::milliseconds(200);
  const auto lost = error_of([&] { weft::session other("weft://" + silent.address(), client); });
  CHECK(lost.code == error_code::deadline_exceeded);
  CHECK(lost.message == "session at weft://" + silent.address() + ": the server did not answer the greeting in time");
}

TEST_CASE("master: prepared steps beyond the limit are dropped and made again when they are run") {
  auto options = with_deaf_worker::quiet();
  options.max_signatures = 4;
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, options);
  const weft::graph g;
  const auto scope = g.as_default();
  std::vector<weft::tensor<float, 0>> many;
  for (int i = 0; i < 10; ++i) {
    const auto device = weft::with_device("/job:ps/task:0");
    many.push_back(weft::constant(static_cast<float>(i)) + 1.f);
  }
  weft::session session(cluster.target(), {}, g);
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 10; ++i) CHECK(session.run(many[static_cast<std::size_t>(i)]) == static_cast<float>(i + 1));
}

TEST_CASE("master: a task that keeps too many graphs makes its master drop one") {
  auto options = with_deaf_worker::quiet();
  options.max_registrations = 3;
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, options);
  const weft::graph g;
  const auto scope = g.as_default();
  std::vector<weft::tensor<float, 0>> many;
  for (int i = 0; i < 8; ++i) {
    const auto device = weft::with_device("/job:ps/task:0");
    many.push_back(weft::constant(static_cast<float>(i)) + 1.f);
  }
  weft::session session(cluster.target(), {}, g);
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 8; ++i) CHECK(session.run(many[static_cast<std::size_t>(i)]) == static_cast<float>(i + 1));
}

TEST_CASE("master: more sessions than the limit are refused until one is closed") {
  auto options = with_deaf_worker::quiet();
  options.max_sessions = 2;
  weft::local_cluster cluster({{"work", 1}}, options);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  weft::session first(cluster.target(), {}, g), second(cluster.target(), {}, g), third(cluster.target(), {}, g);
  CHECK(first.run(x) == 1.f);
  CHECK(second.run(x) == 1.f);
  const auto refused = error_of([&] { third.run(x); });
  CHECK(refused.code == error_code::resource_exhausted);
  CHECK(refused.message == "task /job:work/task:0 at " + cluster.spec().task_address("work", 0) + " has 2 open sessions, 0 of this client, no more are accepted (server_options::max_sessions)");
  CHECK_FALSE(refused.may_have_run);
  first.close();
  CHECK(third.run(x) == 1.f);
}

TEST_CASE("master: large graphs are read in the order in which they were sent") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, with_deaf_worker::quiet());
  const weft::graph g;
  const auto scope = g.as_default();
  weft::session session(cluster.target(), {}, g);
  auto sum = weft::constant(0.f);
  std::vector<std::thread> threads;
  for (int round = 0; round < 3; ++round) {
    const int nodes = round % 2 == 0 ? 6000 : 1;
    for (int i = 0; i < nodes; ++i) {
      const auto device = weft::with_device(i % 2 == 0 ? "/job:ps/task:0" : "/job:work/task:0");
      sum = sum + 1.f;
    }
    threads.emplace_back([&session, sum, expected = static_cast<float>(6000 * (round / 2 + 1) + (round + 1) / 2)] { CHECK(session.run(sum) == expected); });
  }
  for (auto& t : threads) t.join();
}

TEST_CASE("master: a variable that is updated while a slow task takes it arrives as one value each time") {
  constexpr std::size_t size = std::size_t{4} << 20;
  std::mutex mutex;
  std::condition_variable changed;
  int updates = 0, seen = 0;
  std::atomic<int> uniform{0};
  float last = 0.f;
  with_deaf_worker cluster([&](fake::deaf_worker& slow) {
    // Between two times that it takes some of the tensor there is an update.
    slow.pause = [&] {
      std::unique_lock<std::mutex> lock(mutex);
      const int before = std::max(updates, seen);
      CHECK(changed.wait_for(lock, fake::patience, [&] { return updates > before; }));
      seen = updates;
    };
    slow.taken = [&](const weft::tensor_value& v) {
      const float* values = v.data<float>();
      uniform += v.elements() == static_cast<std::int64_t>(size) && values[0] >= last && std::all_of(values, values + size, [values](float x) { return x == values[0]; }) ? 1 : 0;
      last = values[0];
    };
  });
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> v;
  weft::operation bump, taken;
  weft::with_device("/job:work/task:0", [&] {
    v = weft::variable<float, 1>(weft::fill({static_cast<std::int64_t>(size)}, 0.f), "taken_slowly");
    bump = v.assign_add(weft::fill({static_cast<std::int64_t>(size)}, 1.f));
  });
  {
    const auto device = weft::with_device("/job:far/task:0");
    const auto after = weft::control_dependencies({weft::identity(v)});
    taken = weft::no_op();
  }
  weft::session writer(cluster.server->target(), {}, g), reader(cluster.server->target(), {}, g);
  writer.run(v.initializer());
  std::atomic<bool> done{false};
  std::thread updating([&] {
    while (!done) {
      writer.run(bump);
      const std::lock_guard<std::mutex> lock(mutex);
      ++updates;
      changed.notify_all();
    }
  });
  for (int i = 0; i < 3; ++i) CHECK_NOTHROW(reader.run(weft::run_options{fake::patience}, taken));
  done = true;
  updating.join();
  CHECK(uniform == 3);
}

TEST_CASE("master: what a session registers while it is closed is taken back") {
  std::promise<void> asked, closed;
  with_deaf_worker cluster([&](fake::deaf_worker& slow) {
    slow.before_registered = [&] {
      asked.set_value();
      closed.get_future().wait_for(fake::patience);
    };
  });
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> y;
  weft::with_device("/job:far/task:0", [&] { y = weft::constant(1.f) + 1.f; });
  weft::session session(cluster.server->target(), {}, g);
  weft::status outcome;
  std::thread running([&] { outcome = error_of([&] { session.run(weft::run_options{fake::patience}, y); }); });
  CHECK(asked.get_future().wait_for(fake::patience) == std::future_status::ready);
  session.close();
  closed.set_value();
  running.join();
  CHECK(outcome.code == error_code::cancelled);
  CHECK(process_counts::soon([&] { return cluster.worker.unregistered() == 1; }));
  CHECK(cluster.server->statistics().registrations == 0);
  CHECK(cluster.server->statistics().sessions == 0);
}

TEST_CASE("master: for a task that does not take its feeds few of them wait, later steps say so") {
  auto options = with_deaf_worker::quiet();
  options.queued_bytes_per_task = std::size_t{4} << 20;
  const auto at_once = [](fake::deaf_worker& worker) {
    worker.answers = [](const weft::run_part_message& r) { return std::vector<weft::message>{weft::part_done_message{r.step, {}, true}.encode({weft::tensor_value::scalar(2.f)})}; };
  };
  with_deaf_worker cluster(at_once, options);
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x;
  weft::tensor<float, 0> y;
  weft::with_device("/job:far/task:0", [&] {
    x = weft::placeholder<float, 1>("x");
    y = weft::reduce_sum(x);
  });
  const auto here = weft::constant(3.f) + 4.f;
  weft::session session(cluster.server->target(), {}, g);
  const xt::xtensor<float, 1> mebibyte = xt::ones<float>({std::size_t{1} << 18});
  weft::status why;
  for (int i = 0; i < 40 && why.ok(); ++i) why = error_of([&] { session.run({{x, mebibyte}}, y); });
  CHECK(why.code == error_code::resource_exhausted);
  CHECK(why.message.find("task /job:far/task:0 at " + cluster.worker.address() + " does not take what it is sent: ") == 0);
  CHECK(why.message.find(" more do not fit (server_options::queued_bytes_per_task)") != std::string::npos);
  CHECK(cluster.server->statistics().queued_bytes <= (4 << 20));
  CHECK(session.run(here) == 7.f);
}
