#include <weft/ops/queue.hpp>

#include "../session/session_suite.hpp"

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>

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
