#include <weft/cluster/task_wait.hpp>

#include "listening_socket.hpp"
#include "test_ops.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using test_ops::error_of;
using weft::error_code;

namespace {

weft::server_options small() {
  weft::server_options out;
  out.kernel_threads = 1;
  out.log = [](const char*, const std::string&) {};
  return out;
}

// 1 + index of the task, computed there.
weft::tensor<float, 0> on_task(const std::string& job, int index) {
  const auto on = weft::with_device("/job:" + job + "/task:" + std::to_string(index));
  return weft::constant(static_cast<float>(index)) + 1.f;
}

std::string refused(const weft::local_cluster& cluster, const char* job, int index) {
  const std::string& address = cluster.spec().task_address(job, index);
  return "task /job:" + std::string(job) + "/task:" + std::to_string(index) + " at " + address + ": connection refused: no server is listening at " + address;
}

}  // namespace

TEST_CASE("partial cluster: a step needs the tasks that it uses, and no others") {
  weft::local_cluster cluster({{"ps", 1}, {"worker", 20}}, small());
  cluster.stop("worker", 12);
  cluster.stop("worker", 17);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto here = on_task("ps", 0) + on_task("worker", 0), far = on_task("worker", 12);
  weft::session session(cluster.target("worker", 0));
  CHECK(session.run(here) == 2.f);
  const auto begin = std::chrono::steady_clock::now();
  const weft::status why = error_of([&] { (void)session.run(far); });
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message == refused(cluster, "worker", 12));
  CHECK(std::chrono::steady_clock::now() - begin < test_ops::patience);
  // It may come later.
  cluster.start("worker", 12);
  CHECK(session.run(far) == 13.f);
  CHECK(error_of([&] { (void)session.list_devices(); }).message == refused(cluster, "worker", 17));
}

TEST_CASE("partial cluster: a task that cannot be reached fails its step in bounded time, and the error says why it cannot") {
  // A socket whose queue of connections is full drops the next ones, as a firewall does.
  const fake::listening_socket full(0);
  const fake::reserved_port nobody;
  const std::string silent = to_text(full.address()), closed = to_text(nobody.address()), unknown = "no-such-host.invalid:1";
  std::vector<weft::detail::descriptor> waiting;
  for (int i = 0; i < 10; ++i) {
    const sockaddr_in to = fake::loopback(full.address().port);
    waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    weft::detail::lend_port(waiting.back().get());
    static_cast<void>(::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }
  auto options = small();
  options.connect_timeout = std::chrono::milliseconds(200);
  weft::server server({{"ps", {silent, closed, unknown}}, {"worker", {"127.0.0.1:0"}}}, "worker", 0, options);
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::tensor<float, 0> far[] = {on_task("ps", 0), on_task("ps", 1), on_task("ps", 2)};
  const auto near = on_task("worker", 0);
  weft::session session(server.target(), {}, g);
  const auto why = [&](int index) {
    const weft::status out = error_of([&] { (void)session.run(far[index]); });
    CHECK_FALSE(out.may_have_run);
    return out;
  };
  const weft::status timed_out = why(0), refusal = why(1), no_name = why(2);
  CHECK(timed_out.code == error_code::deadline_exceeded);
  CHECK(timed_out.message.find("task /job:ps/task:0 at " + silent + ": ") == 0);
  CHECK(timed_out.message.find(" 200 ms") != std::string::npos);
  CHECK(refusal.code == error_code::unavailable);
  CHECK(refusal.message == "task /job:ps/task:1 at " + closed + ": connection refused: no server is listening at " + closed);
  CHECK(no_name.message.find("task /job:ps/task:2 at " + unknown + ": ") == 0);
  CHECK(session.run(near) == 1.f);
}

TEST_CASE("device filters: only these tasks are contacted and used") {
  weft::local_cluster cluster({{"ps", 2}, {"worker", 4}}, small());
  cluster.stop("ps", 1);
  cluster.stop("worker", 0);
  cluster.stop("worker", 2);
  weft::session_options options;
  options.device_filters = {"/job:ps/task:0", "/job:worker/task:1"};
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> any_worker;
  {
    const auto on = weft::with_device("/job:worker");
    any_worker = weft::constant(5.f) * 2.f;
  }
  const auto ps = on_task("ps", 0), present = on_task("worker", 1);
  weft::session session(cluster.target("worker", 3), options);
  std::vector<std::string> devices;
  for (const weft::device& d : session.list_devices()) devices.push_back(d.name);
  std::sort(devices.begin(), devices.end());
  CHECK(devices == std::vector<std::string>{"/job:ps/task:0/device:CPU:0", "/job:worker/task:1/device:CPU:0", "/job:worker/task:3/device:CPU:0"});
  session.wait_for_tasks(std::chrono::seconds(20));
  CHECK(session.run(ps + any_worker) == 11.f);
  CHECK(session.run(present) == 2.f);
  const weft::graph other;
  const auto other_scope = other.as_default();
  const auto away = on_task("worker", 2);
  weft::session elsewhere(cluster.target("worker", 3), options, other);
  const weft::status hidden = error_of([&] { (void)elsewhere.run(away); });
  CHECK(hidden.code == error_code::invalid_argument);
  CHECK(hidden.message.find("it is placed on '/job:worker/task:2', which the session does not see (session_options::device_filters)") != std::string::npos);

  // Whole graphs are placed, as in TensorFlow: also what a step does not need.
  const auto near = on_task("worker", 1);
  const weft::status unused = error_of([&] { (void)elsewhere.run(near); });
  CHECK(unused.code == error_code::invalid_argument);
  CHECK(unused.message.find("asks for device '/job:worker/task:2', but the session sees only the tasks /job:ps/task:0, /job:worker/task:1, /job:worker/task:3 (session_options::device_filters)") == 0);

  options.device_filters = {"/job:ps", "worker:1"};
  weft::session wrong(cluster.target("worker", 3), options, g);
  const weft::status bad = error_of([&] { (void)wrong.run(ps); });
  CHECK(bad.code == error_code::invalid_argument);
  CHECK(bad.message.find("session_options::device_filters: ") == 0);
  CHECK(bad.message.find("worker:1") != std::string::npos);
}

TEST_CASE("device filters: a placer of one's own chooses among the tasks that the session sees") {
  weft::local_cluster cluster({{"ps", 4}, {"worker", 2}}, small());
  cluster.stop("ps", 0);
  cluster.stop("ps", 2);
  weft::session_options options;
  options.device_filters = {"/job:ps/task:1", "/job:ps/task:3"};
  options.placer = weft::round_robin_placer();
  const weft::graph g;
  const auto scope = g.as_default();
  std::vector<weft::variable<float, 0>> all;
  for (int i = 0; i < 4; ++i) all.emplace_back(static_cast<float>(i), "v" + std::to_string(i));
  weft::session session(cluster.target("worker", 1), options);
  for (const auto& v : all) session.run(v.initializer());
  CHECK(session.run(all[0] + all[1] + all[2] + all[3]) == 6.f);
  weft::step_signature reads;
  for (const auto& v : all) reads.fetches.push_back(weft::tensor<float, 0>(v).raw());
  std::vector<std::string> places;
  for (const auto& v : all) places.push_back(session.partitions(reads).placement().device_of(*v.raw().from));
  const std::string one = "/job:ps/task:1/device:CPU:0", three = "/job:ps/task:3/device:CPU:0";
  CHECK(places == std::vector<std::string>{one, three, one, three});

  const weft::graph other;
  const auto other_scope = other.as_default();
  const auto away = on_task("ps", 2);
  weft::session elsewhere(cluster.target("worker", 1), options, other);
  const weft::status hidden = error_of([&] { (void)elsewhere.run(away); });
  CHECK(hidden.code == error_code::invalid_argument);
  CHECK(hidden.message.find("asks for device '/job:ps/task:2', but the session sees only the tasks /job:ps/task:1, /job:ps/task:3, /job:worker/task:1 (session_options::device_filters)") == 0);
}

TEST_CASE("wait_for_tasks: says who is missing, where, and why; ends when all are there") {
  weft::local_cluster cluster({{"ps", 1}, {"worker", 3}}, small());
  cluster.stop("worker", 1);
  cluster.stop("worker", 2);
  weft::session session(cluster.target("ps", 0));
  const weft::status missing = error_of([&] { session.wait_for_tasks(std::chrono::milliseconds(250)); });
  CHECK(missing.text() == "UNAVAILABLE: 2 of 4 tasks did not answer within 250 ms: " + refused(cluster, "worker", 1) + "; " + refused(cluster, "worker", 2));
  CHECK(error_of([&] { session.wait_for_tasks(std::chrono::milliseconds(0)); }).code == error_code::unavailable);
  std::thread later([&] {
    cluster.start("worker", 2);
    cluster.start("worker", 1);
  });
  session.wait_for_tasks(std::chrono::seconds(20));
  later.join();

  // A name that means nothing, a server that goes meanwhile.
  weft::cluster_spec odd{{"ps", {"127.0.0.1:0"}}, {"worker", {"no-such-host.invalid:1"}}};
  auto alone = std::make_unique<weft::server>(odd, "ps", 0, small());
  weft::session lonely(alone->target());
  const weft::status unknown = error_of([&] { lonely.wait_for_tasks(std::chrono::milliseconds(1000)); });
  CHECK(unknown.code == error_code::unavailable);
  CHECK(unknown.message.find("1 of 2 tasks did not answer within 1 s: task /job:worker/task:0 at no-such-host.invalid:1: ") == 0);
  std::thread stopper([&] { alone->stop(); });
  CHECK(!error_of([&] { lonely.wait_for_tasks(std::chrono::seconds(60)); }).ok());
  stopper.join();
}

TEST_CASE("count_tasks: each task that the session sees is asked once") {
  weft::local_cluster cluster({{"ps", 1}, {"worker", 3}}, small());
  cluster.stop("worker", 1);
  // A task that has just been stopped may be taken for alive until its connection is seen to be closed.
  const auto counts = [](weft::session& session, std::size_t alive, std::size_t all) {
    for (const auto until = std::chrono::steady_clock::now() + test_ops::patience; std::chrono::steady_clock::now() < until; std::this_thread::yield())
      if (const weft::task_count n = session.count_tasks(std::chrono::minutes(1)); n.all != all || n.alive == alive) return n.all == all;
    return false;
  };
  weft::session session(cluster.target("ps", 0));
  CHECK(counts(session, 3, 4));
  cluster.stop("worker", 2);
  CHECK(counts(session, 2, 4));
  weft::session_options options;
  options.device_filters = {"/job:worker/task:0", "/job:worker/task:1"};
  weft::session narrow(cluster.target("ps", 0), options);
  CHECK(counts(narrow, 2, 3));
  cluster.stop("worker", 0);
  CHECK(counts(session, 1, 4));
  for (int i = 0; i < 3; ++i) cluster.start("worker", i);
  CHECK(counts(session, 4, 4));
  CHECK(counts(narrow, 3, 3));
  // Nobody has time to answer, but the task itself.
  CHECK(session.count_tasks(std::chrono::milliseconds(0)).all == 4);
  weft::session local;
  CHECK(counts(local, 0, 0));
}

TEST_CASE("wait_for_tasks: a session of this process has its tasks") {
  const weft::graph g;
  weft::session session(g);
  session.wait_for_tasks(std::chrono::milliseconds(0));
}

TEST_CASE("update_cluster: a task that died is replaced at another address, and training goes on") {
  weft::local_cluster cluster({{"ps", 1}, {"worker", 2}}, small());
  const weft::cluster_spec before = cluster.spec();
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 0> total, kept;
  weft::with_device("/job:ps/task:0", [&] { total = weft::variable<float, 0>(0.f, "total"); });
  weft::with_device("/job:worker/task:1", [&] { kept = weft::variable<float, 0>(1.f, "kept"); });
  weft::operation step;
  weft::with_device("/job:worker/task:1", [&] { step = total.assign_add(kept * 2.f); });
  weft::session session(cluster.target("worker", 0));
  session.run(total.initializer(), kept.initializer());
  const auto train = [&] {
    session.run(step);
    return session.run(total);
  };
  CHECK(train() == 2.f);

  cluster.stop("worker", 1);
  weft::cluster_spec next = before.with_address("worker", 1, "127.0.0.1:0");
  weft::server replacement(next, "worker", 1, small());
  next = replacement.cluster();
  CHECK(next != before);
  const weft::status lost = error_of([&] { session.run(step); });
  CHECK(lost.code == error_code::unavailable);
  // Nobody talks to a task of another cluster before it is told.
  session.update_cluster(next);
  CHECK(cluster.at("ps", 0).cluster() == next);
  CHECK(cluster.at("worker", 0).cluster() == next);
  weft::status once = error_of([&] { session.run(kept.initializer()); });
  if (once.code == error_code::aborted) once = error_of([&] { session.run(kept.initializer()); });  // it was restarted, which is said once
  CHECK(once.text() == weft::status().text());
  CHECK(train() == 4.f);
  CHECK(train() == 6.f);

  // A task that lives and is said to be elsewhere does not believe it; the others do.
  const weft::cluster_spec wrong = next.with_address("worker", 0, "127.0.0.1:1");
  CHECK(error_of([&] { cluster.at("worker", 0).update_cluster(wrong); }).message ==
        "task /job:worker/task:0 at " + next.task_address("worker", 0) + " runs, and the new cluster has it at 127.0.0.1:1; stop it, and start it anew there");
  const weft::status partly = error_of([&] { session.update_cluster(wrong); });
  CHECK(partly.code == error_code::unavailable);
  CHECK(partly.message.find("these tasks do not know the new cluster: /job:worker/task:0: session at weft://127.0.0.1:1: connection refused") == 0);
  session.update_cluster(next);
  const weft::status again = error_of([&] { session.run(step); });
  CHECK((again.ok() || again.code == error_code::unavailable || again.code == error_code::aborted));
}

TEST_CASE("update_cluster: the session of a task that was itself replaced says where to open a new one") {
  weft::local_cluster cluster({{"ps", 1}, {"worker", 2}}, small());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto two = on_task("ps", 0) + 1.f;
  weft::session session(cluster.target("worker", 0));
  CHECK(session.run(two) == 2.f);
  const std::string old = cluster.spec().task_address("worker", 0);
  cluster.stop("worker", 0);
  const weft::server replacement(cluster.spec().with_address("worker", 0, "127.0.0.1:0"), "worker", 0, small());
  const weft::cluster_spec next = replacement.cluster();
  const std::string now = next.task_address("worker", 0);
  const std::string expected = "FAILED_PRECONDITION: every task knows the new cluster, but /job:worker/task:0, which led this session at " + old + ", is now at " + now +
                               "; open a new session with the target 'weft://" + now + "'";
  CHECK(error_of([&] { session.update_cluster(next); }).text() == expected);
  CHECK(cluster.at("ps", 0).cluster() == next);
  CHECK(error_of([&] { (void)session.run(two); }).text() == expected);
  weft::session anew("weft://" + now);
  CHECK(anew.run(two) == 2.f);
  // A server goes by several names.
  weft::session by_name("weft://localhost" + now.substr(now.find(':')));
  by_name.update_cluster(next);
  CHECK(by_name.run(two) == 2.f);
}

TEST_CASE("update_cluster: a task that does not answer holds up no other") {
  weft::local_cluster cluster({{"worker", 1}}, small());
  // Two ports where nobody answers a greeting until both have been called.
  asio::io_context io;
  using tcp = asio::ip::tcp;
  tcp::acceptor first(io, {asio::ip::address_v4::loopback(), 0}), second(io, {asio::ip::address_v4::loopback(), 0});
  const auto address = [](const tcp::acceptor& at) { return "127.0.0.1:" + std::to_string(at.local_endpoint().port()); };
  weft::session_options options;
  options.connect_timeout = std::chrono::minutes(10);
  weft::session session(cluster.target("worker", 0), options);
  auto result = test_ops::error_later([&] {
    session.update_cluster(weft::cluster_spec{{"late", {address(first), address(second)}}, {"worker", {cluster.spec().task_address("worker", 0)}}});
  });
  std::vector<tcp::socket> callers;
  for (tcp::acceptor* each : {&first, &second})
    each->async_accept([&](const std::error_code& error, tcp::socket from) {
      if (!error) callers.push_back(std::move(from));
    });
  io.run_for(test_ops::patience);
  CHECK(callers.size() == 2);
  first.close();
  second.close();
  callers.clear();
  const weft::status why = test_ops::get(result);
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message.find("these tasks do not know the new cluster: /job:late/task:0: ") == 0);
  CHECK(why.message.find("; /job:late/task:1: ") != std::string::npos);
  CHECK(why.message.find("/job:worker") == std::string::npos);
}

TEST_CASE("update_cluster: a step that runs at the replaced task ends, and the next one uses the new task") {
  auto options = test_ops::options();
  options.kernel_threads = 1;
  options.log = [](const char*, const std::string&) {};
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, options);
  test_ops::gate::instance().reset();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  weft::tensor<float, 0> x;
  weft::with_device("/job:ps/task:0", [&] { x = weft::constant(3.f); });
  const auto held = test_ops::node("TestWait", x, "/job:work/task:1");
  weft::session session(cluster.target("work", 0), {}, g);
  auto result = test_ops::error_later([&] { (void)session.run(held); });
  REQUIRE(test_ops::gate::instance().wait_entered(1));

  const std::string old = cluster.spec().task_address("work", 1);
  weft::server replacement(cluster.spec().with_address("work", 1, "127.0.0.1:0"), "work", 1, options);
  const weft::cluster_spec next = replacement.cluster();
  cluster.at("ps", 0).update_cluster(next);
  cluster.at("work", 0).update_cluster(next);
  const weft::status why = test_ops::get(result);
  CHECK((why.code == error_code::unavailable || why.code == error_code::aborted));
  CHECK(why.message.find("task /job:work/task:1 at ") == 0);
  test_ops::gate::instance().open();
  CHECK(session.run(held) == 3.f);
}
