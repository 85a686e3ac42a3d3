#include <weft/train/monitored_session.hpp>

#include "../format/file_test_support.hpp"

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/dataset.hpp>
#include <weft/train/hooks.hpp>
#include <weft/train/queue_runner.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <string>
#include <thread>
#include <vector>

using file_test::error_of;
using weft::error_code;
using weft::monitored_session;
using weft::monitored_session_options;

namespace {

// A weight on ps:0, which each step increments together with the global step, by what is fed to `by`.
struct model {
  explicit model(const std::string& device = "/job:ps/task:0") {
    const auto scope = graph.as_default();
    const auto place = weft::with_device(device);
    w = weft::variable<float, 0>(weft::constant(1.f), "w");
    step = weft::create_global_step();
    by = weft::placeholder<float, 0>();
    train = weft::group({w.assign_add(by), step.assign_add(weft::constant(std::int64_t(1)))});
    loss = w * 2.f;
  }
  weft::graph graph;
  weft::variable<float, 0> w;
  weft::variable<std::int64_t, 0> step;
  weft::tensor<float, 0> by, loss;
  weft::operation train;
};

weft::session_factory local(const weft::graph& g) {
  return [&g] { return std::make_unique<weft::local_session>(weft::session_options(), g); };
}
weft::session_factory to(const weft::local_cluster& cluster, const weft::graph& g, const std::string& job = "work", int task = 0) {
  return [&g, target = cluster.target(job, task)] {
    weft::session_options options;
    options.connect_timeout = std::chrono::seconds(5);
    return std::make_unique<weft::session>(target, options, g);
  };
}

monitored_session_options quick() {
  monitored_session_options out;
  out.patience = std::chrono::seconds(60);
  out.look_every = std::chrono::milliseconds(50);
  return out;
}

// Writes down what a session calls.
struct recording_hook final : weft::session_hook {
  std::vector<std::string> calls;
  weft::output watched;
  void begin(const weft::graph&) override { calls.push_back("begin"); }
  void after_create_session(weft::hook_context& c) override { calls.push_back("create " + std::to_string(c.read_step())); }
  void before_run(weft::hook_context&, weft::hook_request& r) override {
    calls.push_back("before");
    if (watched.from != nullptr) r.fetches.push_back(watched);
  }
  void after_run(weft::hook_context&, const std::vector<weft::tensor_value>& v) override { calls.push_back("after " + std::to_string(v.size())); }
  void end(weft::hook_context&) override { calls.push_back("end"); }
};

}  // namespace

TEST_CASE("monitored session: the chief initializes, hooks are called, steps are counted, all stops at a step") {
  model m("");
  auto options = quick();
  auto seen = std::make_shared<recording_hook>();
  seen->watched = m.loss.raw();
  options.hooks = {seen, std::make_shared<weft::stop_at_step_hook>(2)};
  monitored_session session(local(m.graph), options, m.graph);
  CHECK(session.last_step() == -1);
  int steps = 0;
  while (!session.should_stop()) {
    session.run({{m.by, 2.f}}, m.train);
    ++steps;
  }
  CHECK(steps == 2);
  CHECK(session.run({{m.by, 0.f}}, m.w) == 5.f);
  session.close();
  session.close();
  CHECK(seen->calls == std::vector<std::string>{"begin", "create 0", "before", "after 1", "before", "after 1", "before", "after 1", "end"});
  CHECK(error_of([&] { session.run({{m.by, 0.f}}, m.train); }).message == "the monitored session is closed");
  CHECK(session.should_stop());
  weft::graph none;
  CHECK(error_of([&] {
    auto with = quick();
    with.hooks = {std::make_shared<weft::stop_at_step_hook>(2)};
    monitored_session(local(none), with, none);
  }).message == "stop_at_step_hook needs a global step; make it with create_global_step() and give it to minimize()");
}

TEST_CASE("monitored session: checkpoints are saved and training goes on from the newest") {
  const file_test::folder dir;
  for (int round = 0; round < 2; ++round) {
    model m("");
    auto options = quick();
    options.checkpoint_directory = dir / "run";
    options.save_every_steps = 2;
    options.hooks = {weft::stop_at_step_hook::after(5)};
    monitored_session session(local(m.graph), options, m.graph);
    CHECK(session.run({{m.by, 0.f}}, m.step) == (round == 0 ? 0 : 5));
    session.loop([&] { session.run({{m.by, 1.f}}, m.train); });
    CHECK(*weft::latest_checkpoint(dir / "run") == dir / (round == 0 ? "run/model-5" : "run/model-10"));
  }
  CHECK(weft::open_checkpoint(*weft::latest_checkpoint(dir / "run"))->read("w") == weft::tensor_value::scalar(11.f));
  CHECK(std::filesystem::exists(dir / "run/model-2.safetensors") == false);
  CHECK(std::filesystem::exists(dir / "run/model-9.safetensors"));
}

TEST_CASE("monitored session: a worker waits for the chief, and says for what") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  model of_worker;
  auto options = quick();
  options.role = weft::session_role::worker;
  options.patience = std::chrono::milliseconds(300);
  const auto why = error_of([&] { monitored_session(to(cluster, of_worker.graph, "work", 1), options, of_worker.graph); });
  CHECK(why.code == error_code::deadline_exceeded);
  CHECK(why.message == "after 300 ms this worker still waits for the chief, who should initialize variables that are not initialized: 'w', 'global_step', 'monitored_session/stop'");
  cluster.stop("ps", 0);
  const auto down = error_of([&] { monitored_session(to(cluster, of_worker.graph, "work", 1), options, of_worker.graph); });
  CHECK(down.code == error_code::deadline_exceeded);
  CHECK_MESSAGE(down.message.find("after 300 ms this worker still waits for a task: task /job:ps/task:0 at ") == 0, down.message);
  cluster.start("ps", 0);
  options.patience = std::chrono::milliseconds::max();
  model again;
  auto waiting = std::async(std::launch::async, [&] { return monitored_session(to(cluster, again.graph, "work", 1), options, again.graph).run({{again.by, 0.f}}, again.w); });
  model of_chief;
  monitored_session chief(to(cluster, of_chief.graph), quick(), of_chief.graph);
  CHECK(waiting.get() == 1.f);
}

TEST_CASE("monitored session: a chief that takes another one's place restores, or keeps what is there") {
  const file_test::folder dir;
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  const auto chief = [&](weft::live_variables at_start, float expected) {
    model m;
    auto options = quick();
    options.checkpoint_directory = dir.path();
    options.save_every_steps = 2;
    options.at_start = at_start;
    try {
      monitored_session session(to(cluster, m.graph), options, m.graph);
      CHECK(session.run({{m.by, 0.f}}, m.w) == expected);
      for (int i = 0; i < 3; ++i) session.run({{m.by, 1.f}}, m.train);
      throw 0;  // it never closes its session: nothing is saved at the end
    } catch (int) {
    }
  };
  model of_worker;
  auto worker_options = quick();
  worker_options.role = weft::session_role::worker;
  chief(weft::live_variables::replace, 1);
  monitored_session worker(to(cluster, of_worker.graph, "work", 1), worker_options, of_worker.graph);
  CHECK(worker.run({{of_worker.by, 0.f}}, of_worker.w) == 4.f);
  // The checkpoint of step 2.
  chief(weft::live_variables::replace, 3);
  CHECK(worker.run({{of_worker.by, 0.f}}, of_worker.w) == 6.f);
  chief(weft::live_variables::keep, 6);
  CHECK(worker.run({{of_worker.by, 0.f}}, of_worker.w) == 9.f);
}

TEST_CASE("monitored session: a parameter server that comes back empty gets the newest checkpoint") {
  const file_test::folder dir;
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}});
  model m;
  auto options = quick();
  options.checkpoint_directory = dir.path();
  options.save_every_steps = 3;
  auto seen = std::make_shared<recording_hook>();
  options.hooks = {seen};
  std::atomic<int> opened{0};
  const auto open = to(cluster, m.graph);
  monitored_session session([&] { return ++opened, open(); }, options, m.graph);
  for (int i = 0; i < 5; ++i) session.run({{m.by, 1.f}}, m.train);
  CHECK(session.run({{m.by, 0.f}}, m.w) == 6.f);
  cluster.stop("ps", 0);
  std::thread later([&] {
    while (opened < 3) std::this_thread::yield();  // it has tried in vain
    cluster.start("ps", 0);
  });
  // Steps 4 and 5 are lost with the server, this one is made once.
  session.run({{m.by, 10.f}}, m.train);
  later.join();
  CHECK(session.recoveries() >= 1);
  CHECK(session.run({{m.by, 0.f}}, m.w) == 14.f);
  CHECK(session.run({{m.by, 0.f}}, m.step) == 4);
  CHECK(std::count(seen->calls.begin(), seen->calls.end(), "create 3") >= 1);
  // A server that was restarted between steps.
  cluster.stop("ps", 0);
  cluster.start("ps", 0);
  session.run({{m.by, 1.f}}, m.train);
  CHECK(session.run({{m.by, 0.f}}, m.step) >= 4);
  // Other errors are the user's.
  CHECK(error_of([&] { session.run(m.train); }).code == error_code::invalid_argument);
}

TEST_CASE("monitored session: a task that never comes back ends the training when patience is over, and is named") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}});
  model m;
  auto options = quick();
  std::atomic<int> opened{0};
  const auto open = to(cluster, m.graph);
  options.patience = std::chrono::milliseconds(400);
  monitored_session session([&] { return ++opened, open(); }, options, m.graph);
  for (int i = 0; i < 3; ++i) session.run({{m.by, 1.f}}, m.train);
  const std::string address = cluster.spec().task_address("ps", 0);
  const int before = opened;
  cluster.stop("ps", 0);
  const auto lost = error_of([&] { session.run({{m.by, 1.f}}, m.train); });
  INFO(lost.text());
  CHECK((lost.code == error_code::unavailable || lost.code == error_code::deadline_exceeded));
  CHECK(lost.text().find("/job:ps/task:0 at " + address) != std::string::npos);
  CHECK(opened >= before);
}

TEST_CASE("monitored session: a step that may have run is not repeated where nothing was set back") {
  // A session whose next step fails as if the connection was lost, after it ran.
  struct failing final : weft::session_interface {
    failing(const weft::graph& g, weft::session_interface& under, int& failures) : g_(g), under_(under), failures_(failures) {}
    struct step final : weft::prepared_step {
      step(std::shared_ptr<weft::prepared_step> under, int& failures) : under_(std::move(under)), failures_(failures) {}
      void run(weft::tensor_value* feeds, weft::tensor_value* fetches, const weft::run_options& options) override {
        under_->run(feeds, fetches, options);
        if (failures_ == 0) return;
        weft::status why(error_code::unavailable, "the connection was lost");
        why.may_have_run = failures_-- % 2 == 1;
        throw weft::error(why);
      }
      std::shared_ptr<weft::prepared_step> under_;
      int& failures_;
    };
    const weft::graph& graph() const override { return g_; }
    std::shared_ptr<weft::prepared_step> prepare(const weft::step_signature& s) override { return std::make_shared<step>(under_.prepare(s), failures_); }
    weft::partitioned_graph partitions(const weft::step_signature& s) override { return under_.partitions(s); }
    std::vector<weft::device> list_devices() override { return under_.list_devices(); }
    void close() override {}
    const weft::graph& g_;
    weft::session_interface& under_;
    int& failures_;
  };
  model m("");
  int failures = 0;
  weft::local_session under(weft::session_options(), m.graph);
  auto options = quick();
  options.at_start = weft::live_variables::keep;
  under.run(m.w.initializer());
  under.run(m.step.initializer());
  monitored_session session([&] { return std::make_unique<failing>(m.graph, under, failures); }, options, m.graph);
  session.run({{m.by, 1.f}}, m.train);
  failures = 1;
  const auto why = error_of([&] { session.run({{m.by, 10.f}}, m.train); });
  CHECK(why.code == error_code::aborted);
  CHECK(why.may_have_run);
  CHECK(why.message == "the step was interrupted and may have run, so it was not repeated; the session has recovered and goes on with the next one. It failed with: UNAVAILABLE: the connection was lost");
  CHECK(under.run(m.w) == 12.f);
  CHECK_FALSE(session.should_stop());
  // `loop` goes on.
  int calls = 0;
  session.loop([&] {
    if (++calls == 2) failures = 1;
    session.run({{m.by, 1.f}}, m.train);
    if (calls == 3) session.request_stop();
  });
  CHECK(calls == 3);
  CHECK(under.run(m.w) == 15.f);
}

TEST_CASE("monitored session: whoever stops stops all, and an ended input ends one") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 3}});
  std::vector<std::future<int>> sessions;
  for (int task = 0; task < 3; ++task)
    sessions.push_back(std::async(std::launch::async, [&, task] {
      model m;
      auto options = quick();
      options.role = task == 0 ? weft::session_role::chief : weft::session_role::worker;
      monitored_session session(to(cluster, m.graph, "work", task), options, m.graph);
      int steps = 0;
      session.loop([&] {
        session.run({{m.by, 1.f}}, m.train);
        ++steps;
        if (task == 2 && steps == 20) session.request_stop();
      });
      return steps;
    }));
  int all = 0;
  for (auto& s : sessions) {
    REQUIRE(s.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    all += s.get();
  }
  model m;
  weft::session look(cluster.target("work", 0), {}, m.graph);
  CHECK(look.run(m.w) == 1.f + static_cast<float>(all));
  CHECK(look.run(m.step) == all);

  model one("");
  weft::dataset_options few;
  few.batch_size = 1;
  few.epochs = 1;
  weft::dataset data({weft::tensor_value::from<float>({3}, {1, 2, 3})}, few);
  auto options = quick();
  options.hooks = {std::make_shared<weft::feed_hook>([&] {
    auto v = data.next()[0];
    v.reshape({});
    return std::vector<weft::feed>{{one.by.raw(), v}};
  })};
  monitored_session session(local(one.graph), options, one.graph);
  int steps = 0;
  session.loop([&] {
    session.run(one.train);
    ++steps;
  });
  CHECK(steps == 3);
}

TEST_CASE("monitored session: a step that finds its queue closed says what ended the one who filled it") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<std::int64_t, 0> count(weft::constant(std::int64_t{0}), "count");
  const weft::fifo_queue<weft::tensor<int, 0>> q(1);
  // The fourth element does not exist.
  weft::add_queue_runner(q, {q.enqueue(weft::gather(weft::constant({7, 8, 9}), count.count_up_to(10), 0, "pick"))});
  const auto take = q.dequeue();
  monitored_session session(local(g), quick(), g);
  std::vector<int> got;
  const auto why = error_of([&] { session.loop([&] { got.push_back(session.run(take)); }); });
  CHECK(why.code == error_code::invalid_argument);
  CHECK(why.node == "pick");
  CHECK(got.size() <= 3);
}

TEST_CASE("monitored session: a worker whose task is restarted goes on, and no update is made twice") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  model of_chief;
  monitored_session chief(to(cluster, of_chief.graph), quick(), of_chief.graph);
  std::atomic<int> made{0};
  std::thread restarts([&] {
    for (const int after : {5, 15, 25}) {
      while (made < after) std::this_thread::yield();
      cluster.stop("work", 1);
      cluster.start("work", 1);
    }
  });
  model m;
  auto options = quick();
  options.role = weft::session_role::worker;
  int lost = 0;
  {
    monitored_session session(to(cluster, m.graph, "work", 1), options, m.graph);
    while (made < 40) {
      const auto why = error_of([&] { session.run({{m.by, 1.f}}, m.train); });
      // A leader that is stopped in order says CANCELLED, which is a loss as any other.
      CHECK_MESSAGE((why.ok() || (why.may_have_run && why.code == error_code::aborted)), why.text());
      if (why.ok()) ++made;
      else ++lost;
      if (lost > 20) break;
    }
  }
  restarts.join();
  CHECK(made == 40);
  const float w = chief.run({{of_chief.by, 0.f}}, of_chief.w) - 1.f;
  CHECK(w >= 40.f);
  CHECK(w <= 40.f + static_cast<float>(lost));
}
