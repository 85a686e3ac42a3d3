// What happens to users of a cluster, from beginning to end.
#include <weft/cluster/local_cluster.hpp>

#include "../long_tests.hpp"
#include "process_counts.hpp"
#include "test_ops.hpp"

#include <weft/cluster/session.hpp>
#include <weft/ops/queue.hpp>
#include <weft/ops/state.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using test_ops::error_later;
using test_ops::error_of;
using test_ops::gate;
using test_ops::get;
using weft::error_code;

namespace {

weft::run_options within(std::chrono::milliseconds limit) {
  weft::run_options out;
  out.timeout = limit;
  return out;
}

double resident_megabytes() {
  std::ifstream pages("/proc/self/statm");
  double size = 0, resident = 0;
  pages >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

weft::server_options one_thread() {
  weft::server_options out;
  out.kernel_threads = 1;
  return out;
}

}  // namespace

TEST_CASE("stories: of twenty workers two never come, and only a step that needs one of them fails") {
  weft::local_cluster cluster({{"ps", 1}, {"worker", 20}}, one_thread());
  cluster.stop("worker", 12);
  cluster.stop("worker", 17);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::with_device("/job:ps/task:0", [] { return weft::constant(2.f) + 1.f; });
  const auto near = weft::with_device("/job:worker/task:0", [&] { return x * 2.f; });
  const auto far = weft::with_device("/job:worker/task:12", [&] { return x * 3.f; });
  weft::session session(cluster.target("worker", 0), {}, g);
  CHECK(session.run(near) == 6.f);
  const std::string address = cluster.spec().task_address("worker", 12);
  const auto why = error_of([&] { session.run(far); });
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message == "task /job:worker/task:12 at " + address + ": connection refused: no server is listening at " + address);
  CHECK_FALSE(why.may_have_run);
  CHECK(session.run(near) == 6.f);
  // Somebody who leaves when its work is done is missed by nobody who does not need it.
  cluster.stop("worker", 1);
  weft::session late(cluster.target("worker", 2), {}, g);
  CHECK(late.run(near) == 6.f);
  cluster.start("worker", 12);
  CHECK(session.run(far) == 9.f);
}

TEST_CASE("stories: what proxies the environment names is of no matter") {
  const char* names[] = {"http_proxy", "https_proxy", "all_proxy"};
  for (const char* name : names) ::setenv(name, "http://192.0.2.1:3128", 1);
  {
    weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, one_thread());
    const weft::graph g;
    const auto scope = g.as_default();
    const auto x = weft::with_device("/job:ps/task:0", [] { return weft::constant(2.f) + 1.f; });
    CHECK(weft::session(cluster.target("work", 0), {}, g).run(x * 2.f) == 6.f);
  }
  for (const char* name : names) ::unsetenv(name);
}

TEST_CASE("stories: a parameter server serves until the workers say that they are done") {
  weft::local_cluster cluster({{"ps", 2}, {"work", 2}}, one_thread());
  const auto done_queue = [](int ps) {
    const auto device = weft::with_device("/job:ps/task:" + std::to_string(ps));
    weft::queue_options shared;
    shared.shared_name = "done";
    return weft::fifo_queue<weft::tensor<int, 0>>(2, shared, "done");
  };
  std::vector<std::thread> servers;
  for (int ps = 0; ps < 2; ++ps)
    servers.emplace_back([&, ps] {
      weft::server& server = cluster.at("ps", ps);
      std::thread end([&, ps] {
        const weft::graph g;
        const auto scope = g.as_default();
        const auto both = done_queue(ps).dequeue_many(2);
        weft::session(server.target(), {}, g).run(within(test_ops::patience), both);
        server.stop();
      });
      server.join();
      end.join();
    });
  for (int worker = 0; worker < 2; ++worker) {
    const weft::graph g;
    const auto scope = g.as_default();
    const auto first = done_queue(0).enqueue(worker), second = done_queue(1).enqueue(worker);
    weft::session(cluster.target("work", worker), {}, g).run(first, second);
  }
  for (std::thread& t : servers) t.join();
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::with_device("/job:ps/task:1", [] { return weft::constant(1.f); });
  CHECK(error_of([&] { weft::session(cluster.target("work", 0), {}, g).run(x * 2.f); }).code == error_code::unavailable);
}

TEST_CASE("stories: a session whose task is gone is closed in no time") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, one_thread());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::with_device("/job:ps/task:0", [] { return weft::constant(1.f) + 1.f; });
  weft::session ours(cluster.target("work", 0), {}, g), its_own(cluster.target("ps", 0), {}, g);
  CHECK(ours.run(x) + its_own.run(x) == 4.f);
  cluster.stop("ps", 0);
  const auto begun = std::chrono::steady_clock::now();
  ours.close();
  its_own.close();
  CHECK(std::chrono::steady_clock::now() - begun < test_ops::patience);
}

TEST_CASE("stories: the next job on long-lived servers has a variable of the same name and another shape") {
  weft::local_cluster cluster({{"ps", 1}}, one_thread());
  const auto job = [&](int size, bool init) {
    const weft::graph g;
    const auto scope = g.as_default();
    const weft::variable<float, 1> a(xt::xtensor<float, 1>(xt::ones<float>({size})), "a");
    const auto add = a.assign_add(weft::constant(xt::xtensor<float, 1>(xt::ones<float>({size}))));
    weft::session session(cluster.target(), {}, g);
    if (init) session.run(a.initializer());
    session.run(add);
    return session.run(a);
  };
  CHECK(job(3, true) == xt::xtensor<float, 1>{2.f, 2.f, 2.f});
  CHECK(job(3, false) == xt::xtensor<float, 1>{3.f, 3.f, 3.f});
  // What was left is told, and an initializer makes it this job's own.
  CHECK(error_of([&] { job(2, false); }).message == "variable 'a' has shape [3], the change has shape [2]; they must be equal");
  CHECK(job(2, true) == xt::xtensor<float, 1>{2.f, 2.f});
}

TEST_CASE("stories: a shared queue outlives the graph and the session that filled it") {
  weft::local_cluster cluster({{"ps", 1}}, one_thread());
  const auto with_queue = [&](const char* shared_name, const auto& use) {
    const weft::graph g;
    const auto scope = g.as_default();
    weft::queue_options options;
    options.shared_name = shared_name;
    const weft::fifo_queue<weft::tensor<int, 0>> q(10, options, "q");
    weft::session session(cluster.target(), {}, g);
    return use(session, q);
  };
  const auto fill = [](weft::session& session, const auto& q) {
    session.run(q.enqueue_many(weft::constant({1, 2, 3})));
    return session.run(q.size());
  };
  const auto count = [](weft::session& session, const auto& q) { return session.run(q.size()); };
  CHECK(with_queue("kept", fill) == 3);
  CHECK(with_queue("kept", count) == 3);
  CHECK(with_queue("other", count) == 0);
}

TEST_CASE("stories: of four tasks one goes down, and what does not need it is still computed") {
  weft::local_cluster cluster({{"local", 4}}, one_thread());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto on = [](int task, const auto& make) { return weft::with_device("/job:local/task:" + std::to_string(task), make); };
  const auto x = weft::constant(2);
  const auto y1 = on(1, [&] { return x + 300; }), y2 = on(2, [&] { return x * x; }), y3 = on(3, [&] { return x * 5 - 0; });
  const auto y0 = on(0, [&] { return x - 66; }), y = on(0, [&] { return y0 + y1 + y2 + y3; });
  weft::session session(cluster.target("local", 0), {}, g);
  CHECK(session.run(y0, y1, y2, y3, y) == std::tuple(-64, 302, 4, 10, 252));
  cluster.stop("local", 3);
  const auto why = error_of([&] { session.run(y); });
  CHECK(why.code == error_code::unavailable);
  CHECK(why.message.find("task /job:local/task:3 at ") == 0);
  CHECK(session.run(y1) == 302);
  CHECK(session.run(y0, y2) == std::tuple(-64, 4));
}

TEST_CASE("stories: a variable that no memory can hold fails its step and nothing else") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, one_thread());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto device = weft::with_device("/job:ps/task:0");
  const weft::variable<float, 2> large(weft::zeros<float>({1 << 17, 1 << 19}), "large"), huge(weft::zeros<float>({1 << 30, 1 << 20}), "huge");
  const weft::variable<float, 2> small(weft::zeros<float>({2, 2}), "small");
  weft::session session(cluster.target("work", 0), {}, g);
  for (const auto& v : {large, huge}) {
    const auto why = error_of([&] { session.run(v.initializer()); });
    CHECK_MESSAGE(why.code == error_code::resource_exhausted, why.text());
    CHECK(why.task.find("/job:ps/task:0 (") == 0);
  }
  session.run(small.initializer());
  weft::session other(cluster.target("ps", 0), {}, g);
  CHECK(other.run(weft::constant(1.f) + 1.f) == 2.f);
}

TEST_CASE("stories: an op that only some tasks have kernels for is refused where there is none, when it is placed") {
  // Ports that were free a moment ago.
  const weft::cluster_spec cluster = weft::local_cluster({{"a", 1}, {"b", 1}}, one_thread()).spec();
  weft::server_options without = test_ops::options(), with = test_ops::options();
  without.kernels = nullptr;
  without.log = with.log = [](const char*, const std::string&) {};
  weft::server a(cluster, "a", 0, with), b(cluster, "b", 0, without);
  gate::instance().reset();
  gate::instance().open();
  const weft::graph g(test_ops::ops());
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  const auto there = test_ops::node("TestWait", x, "/job:a/task:0"), nowhere = test_ops::node("TestWait", x, "/job:b/task:0");
  weft::session session(a.target(), {}, g);
  CHECK(session.run(there) == 1.f);
  const auto why = error_of([&] { session.run(nowhere); });
  CHECK(why.code == error_code::invalid_argument);
  CHECK(why.node == nowhere.raw().from->name());
  CHECK_MESSAGE(why.message.find("no kernel") != std::string::npos, why.text());
  CHECK_FALSE(why.may_have_run);
}

TEST_CASE("stories: steps that were aborted leave nothing to those after them") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}}, one_thread());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  const auto divisor = weft::placeholder<std::int32_t, 0>("divisor");
  weft::tensor<float, 1> large;
  weft::tensor<float, 0> one, sum;
  weft::tensor<std::int32_t, 0> may_fail;
  weft::with_device("/job:ps/task:0", [&] {
    large = weft::zeros<float>({100000}) + x;
    one = x * 1.f;
  });
  weft::with_device("/job:work/task:1", [&] { sum = weft::reduce_max(large) + one; });
  weft::with_device("/job:work/task:0", [&] { may_fail = weft::constant(6) / divisor; });
  const auto y = sum + 0.f;
  weft::session session(cluster.target("work", 0), {}, g);
  for (int i = 1; i <= 30; ++i) {
    const float value = static_cast<float>(i);
    if (i % 2 == 1) CHECK(error_of([&] { session.run({{x, value}, {divisor, 0}}, y, may_fail); }).code == error_code::invalid_argument);
    else CHECK(std::get<0>(session.run({{x, value}, {divisor, 2}}, y, may_fail)) == 2.f * value);
  }
}

TEST_CASE("stories: tasks that run steps on each other at the same time meet at the end") {
  weft::local_cluster cluster({{"work", 2}}, one_thread());
  std::vector<std::thread> threads;
  std::atomic<int> correct{0};
  for (int self = 0; self < 2; ++self)
    threads.emplace_back([&, self] {
      const weft::graph g;
      const auto scope = g.as_default();
      const auto x = weft::with_device("/job:work/task:" + std::to_string(1 - self), [&] { return weft::reduce_sum(weft::random_uniform<float>({32, 32}) * 0.f + 1.f); });
      const auto y = weft::with_device("/job:work/task:" + std::to_string(self), [&] { return x + 1.f; });
      std::vector<weft::fifo_queue<weft::tensor<int, 0>>> tokens;
      for (int of = 0; of < 2; ++of) {
        const auto device = weft::with_device("/job:work/task:" + std::to_string(of));
        weft::queue_options shared;
        shared.shared_name = "come to " + std::to_string(of);
        tokens.emplace_back(1, shared, "tokens");
      }
      const auto tell = tokens[static_cast<std::size_t>(1 - self)].enqueue(1);
      const auto hear = tokens[static_cast<std::size_t>(self)].dequeue();
      weft::session session(cluster.target("work", self), {}, g);
      for (int i = 0; i < 20; ++i) {
        if (session.run(within(test_ops::patience), y) == 1025.f) ++correct;
        session.run(within(test_ops::patience), tell);
        session.run(within(test_ops::patience), hear);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(correct == 40);
}

TEST_CASE("stories: whoever connects and stalls holds up nobody") {
  auto options = one_thread();
  options.handshake_timeout = std::chrono::minutes(10);  // so that only a server that does not wait for them answers
  weft::local_cluster cluster({{"work", 1}}, options);
  const auto address = weft::parse_host_port(cluster.spec().task_address("work", 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(address.port));
  int idle[2];
  for (int& each : idle) {
    each = ::socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(::connect(each, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  }
  // One says nothing, the other a part of a frame's header.
  CHECK(::send(idle[1], "WE", 2, MSG_NOSIGNAL) == 2);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f) + 1.f;
  const auto begun = std::chrono::steady_clock::now();
  weft::session session(cluster.target(), {}, g);
  for (int i = 0; i < 10; ++i) CHECK(session.run(x) == 2.f);
  CHECK(std::chrono::steady_clock::now() - begun < test_ops::patience);
  for (const int each : idle) ::close(each);
}

TEST_CASE("stories: servers and sessions that failed to start leave no trace") {
  auto quiet = one_thread();
  quiet.log = [](const char*, const std::string&) {};
  weft::server one({{"work", {"127.0.0.1:0"}}}, "work", 0, quiet);
  const auto closed = [] {
    weft::local_cluster cluster({{"work", 1}}, one_thread());
    return cluster.target();
  }();
  const weft::graph g;
  const auto scope = g.as_default();
  for (int i = 0; i < 20; ++i) {
    CHECK(error_of([&] { weft::server two(one.cluster(), "work", 0, quiet); }).code == error_code::unavailable);
    CHECK(error_of([&] { weft::session none(closed, {}, g); }).code == error_code::unavailable);
  }
  CHECK(weft::session(one.target(), {}, g).run(weft::constant(1.f) + 1.f) == 2.f);
}

TEST_CASE("stories: of two servers that were started as one task the first is told so, and what the second does counts once") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, test_ops::quiet());
  auto elsewhere = test_ops::quiet();
  elsewhere.listen_address = "127.0.0.1:0";
  weft::server twin(cluster.spec(), "work", 0, elsewhere);
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 0> v;
  weft::with_device("/job:ps/task:0", [&] { v = weft::variable<float, 0>(0.f, "v"); });
  const auto add = v.assign_add(1.f);
  weft::session first(cluster.target("work", 0), {}, weft::graph(g.state())), second("weft://" + twin.listen_address(), {}, weft::graph(g.state()));
  first.run(v.initializer());
  first.run(add);
  second.run(add);
  float made = 2;
  weft::status why;
  CHECK(process_counts::soon([&] {
    why = error_of([&] {
      first.run(add);
      ++made;
    });
    return why.code != error_code::unavailable;  // until it has seen that its road was closed
  }));
  CHECK(why.code == error_code::failed_precondition);
  CHECK(why.message.find("task /job:ps/task:0 at " + cluster.spec().task_address("ps", 0) + ": two servers say that they are /job:work/task:0: this one (incarnation ") == 0);
  CHECK_FALSE(why.may_have_run);
  for (int i = 0; i < 3; ++i, ++made) second.run(add);
  CHECK(second.run(v) == made);
  twin.stop();
  float seen = 0;
  CHECK(process_counts::soon([&] { return error_of([&] { seen = first.run(v); }).ok(); }));
  CHECK(seen == made);
}

TEST_CASE("stories: constants of more than two gigabytes are sent and run") {
  if (!may_take(14)) return;
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, one_thread());
  const weft::graph g;
  const auto scope = g.as_default();
  constexpr std::size_t size = 300000000;
  weft::tensor<float, 0> sum;
  weft::with_device("/job:ps/task:0", [&] {
    const auto ones = weft::constant(xt::xtensor<float, 1>(xt::ones<float>({size}))), twos = weft::constant(xt::xtensor<float, 1>(2.f * xt::ones<float>({size})));
    sum = weft::reduce_max(ones) + weft::reduce_max(twos);
  });
  CHECK(weft::session(cluster.target("work", 0), {}, g).run(sum) == 3.f);
}

TEST_CASE("stories: a variable of three gigabytes is filled, sent and fetched, or refused") {
  if (!may_take(16)) return;
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, one_thread());
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> v;
  weft::with_device("/job:ps/task:0", [&] { v = weft::variable<float, 1>(weft::zeros<float>({805306368}) + 1.f, "large"); });
  const auto there = weft::with_device("/job:work/task:0", [&] { return weft::reduce_max(v); });
  weft::session session(cluster.target("work", 0), {}, g);
  session.run(v.initializer());
  CHECK(session.run(there) == 1.f);
  const auto fetched = session.run(v);
  CHECK(fetched.size() == 805306368);
  CHECK(fetched(805306367) == 1.f);
}

TEST_CASE("stories: memory stays flat over many steps and many kinds of steps") {
  if (!may_take(2)) return;
  weft::local_cluster cluster({{"work", 1}}, one_thread());
  const weft::graph g;
  const auto scope = g.as_default();
  std::vector<weft::output> values;
  const auto x = weft::placeholder<float, 0>("x");
  for (int i = 0; i < 14; ++i) values.push_back((x + static_cast<float>(i)).raw());
  weft::session session(cluster.target(), {}, g);
  const auto run = [&](int set) {
    std::vector<weft::output> fetches;
    for (int i = 0; i < 14; ++i)
      if ((set >> i & 1) != 0) fetches.push_back(values[static_cast<std::size_t>(i)]);
    session.run(weft::run_options(), std::vector<weft::feed>{{x, 1.f}}, fetches);
  };
  for (int i = 0; i < 20000; ++i) run(1);
  const double before_steps = resident_megabytes();
  for (int i = 0; i < 100000; ++i) run(1);
  CHECK(resident_megabytes() - before_steps < 16);
  for (int set = 1; set <= 2000; ++set) run(set);
  const double before_sets = resident_megabytes();
  for (int set = 2001; set <= 12000; ++set) run(set);
  CHECK(resident_megabytes() - before_sets < 64);
}
