#include <weft/ops/queue.hpp>

#include "../session/session_suite.hpp"

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>

#include <weft/tensor/xtensor.hpp>

#include "process_counts.hpp"

#include <algorithm>
#include <atomic>
#include <future>

namespace {

using namespace std::chrono_literals;

// A client's view of the queue on the parameter server.
struct client {
  explicit client(const std::string& target) : scope(graph.as_default()) {
    weft::queue_options options;
    options.shared_name = "work";
    weft::with_device("/job:ps/task:0", [&] { queue = weft::fifo_queue<weft::tensor<std::int64_t, 0>>(3, options, "q"); });
    put = queue.enqueue(7);
    take = queue.dequeue();
    take_two = queue.dequeue_many(2);
    size = queue.size();
    close = queue.close();
    session = std::make_unique<weft::session>(target, weft::session_options(), graph);
  }
  weft::graph graph;
  decltype(graph.as_default()) scope;
  weft::fifo_queue<weft::tensor<std::int64_t, 0>> queue;
  weft::operation put, close;
  weft::tensor<std::int64_t, 0> take;
  weft::tensor<std::int64_t, 1> take_two;
  weft::tensor<std::int32_t, 0> size;
  std::unique_ptr<weft::session> session;
};

}  // namespace

TEST_CASE("queue: clients share one, and the loss of a client gives back what its step had taken") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  client one(cluster.target("work", 0)), two(cluster.target("work", 1));
  one.session->run(one.put);
  CHECK(two.session->run(two.size) == 1);
  CHECK(two.session->run(two.take) == 7);
  one.session->run(one.put);
  // It holds the element while it waits for the second one; the task of its master dies.
  auto waiting = std::async(std::launch::async, [&] { return session_suite::error_of([&] { two.session->run(two.take_two); }).code; });
  while (one.session->run(one.size) != 0) std::this_thread::yield();
  cluster.stop("work", 1);
  CHECK(waiting.get() != weft::error_code::ok);
  weft::run_options limit;
  limit.timeout = 20s;
  CHECK(one.session->run(limit, one.take) == 7);
  // A client that closes it tells the others.
  auto last = std::async(std::launch::async, [&] { return session_suite::error_of([&] { one.session->run(one.take); }).code; });
  CHECK(last.wait_for(20ms) == std::future_status::timeout);
  client three(cluster.target("ps", 0));
  three.session->run(three.close);
  CHECK(last.get() == weft::error_code::out_of_range);
}

TEST_CASE("queue: the death of its task ends those who wait") {
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}});
  client one(cluster.target("work", 0));
  auto waiting = std::async(std::launch::async, [&] { return session_suite::error_of([&] { one.session->run(one.take); }).code; });
  CHECK(waiting.wait_for(50ms) == std::future_status::timeout);
  cluster.stop("ps", 0);
  CHECK(waiting.get() != weft::error_code::ok);
}

TEST_CASE("queue: a producer that is faster than its consumer waits, and no more than the capacity is held") {
  constexpr int all = 40, capacity = 3;
  constexpr std::size_t floats = std::size_t{1} << 14;
  weft::local_cluster cluster({{"ps", 1}, {"work", 2}});
  const weft::graph g;
  const auto scope = g.as_default();
  weft::queue_options options;
  options.shared_name = "examples";
  weft::fifo_queue<weft::tensor<float, 1>> queue;
  weft::with_device("/job:ps/task:0", [&] { queue = weft::fifo_queue<weft::tensor<float, 1>>(capacity, options, "examples"); });
  const auto example = weft::placeholder<float, 1>("example");
  const auto put = queue.enqueue(example);
  const auto take = queue.dequeue();
  const auto size = queue.size();
  std::atomic<int> produced{0};
  auto producer = std::async(std::launch::async, [&] {
    return session_suite::error_of([&] {
      weft::session session(cluster.target("work", 0), {}, weft::graph(g.state()));
      for (int i = 0; i < all; ++i, ++produced) session.run({{example, xt::xtensor<float, 1>(static_cast<float>(i) * xt::ones<float>({floats}))}}, put);
    });
  });
  weft::session session(cluster.target("work", 1), {}, weft::graph(g.state()));
  for (int taken = 0; taken < all; ++taken) {
    const int most = std::min(all, taken + capacity);
    CHECK(process_counts::soon([&] { return produced == most; }));
    CHECK(session.run(size) == most - taken);
    CHECK(produced == most);
    // Of the one that waits, and of whatever goes by.
    CHECK(cluster.at("ps", 0).statistics().received_bytes <= 2 * floats * sizeof(float));
    CHECK(session.run(take)(floats - 1) == static_cast<float>(taken));
  }
  CHECK(producer.get().ok());
}
