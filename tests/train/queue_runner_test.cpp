#include <weft/train/queue_runner.hpp>

#include "../error_of.hpp"

#include <weft/ops/state.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace {
using namespace std::chrono_literals;

}  // namespace

TEST_CASE("queue_runner: the end of the input closes the queue behind the last element") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<std::int64_t, 0> count(weft::constant(std::int64_t{0}), "count");
  const weft::fifo_queue<weft::tensor<std::int64_t, 0>> q(2);
  const auto put = q.enqueue(count.count_up_to(20));
  weft::add_queue_runner(q, {put, put, put});
  const auto take = q.dequeue();
  weft::local_session session({}, g);
  session.run(count.initializer());
  weft::coordinator together;
  CHECK(weft::start_queue_runners(session, together) == 3);
  std::vector<std::int64_t> got;
  weft::status end;
  while (end.ok()) end = error_of([&] { got.push_back(session.run(take)); });
  CHECK(end.code == weft::error_code::out_of_range);
  std::sort(got.begin(), got.end());
  REQUIRE(got.size() == 20);
  for (int i = 0; i < 20; ++i) CHECK(got[static_cast<std::size_t>(i)] == i);
  CHECK_FALSE(together.should_stop());
  together.request_stop();
  together.join();
}

TEST_CASE("queue_runner: a stop ends those that wait for room") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> q(1);
  weft::add_queue_runner(q, {q.enqueue(1), q.enqueue(2)});
  const auto size = q.size();
  weft::local_session session({}, g);
  weft::coordinator together;
  weft::start_queue_runners(session, together);
  while (session.run(size) != 1) std::this_thread::yield();
  together.request_stop();
  together.join();
  CHECK(session.run(q.is_closed()));
}

TEST_CASE("queue_runner: an error of the input is the reason for the stop") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> q(10);
  const weft::variable<int, 0> never(weft::constant(0), "never");
  weft::add_queue_runner(q, {q.enqueue(never)});
  weft::local_session session({}, g);
  weft::coordinator together;
  weft::start_queue_runners(session, together);
  const auto why = error_of([&] { together.join(); });
  CHECK(why.code == weft::error_code::failed_precondition);
  CHECK(why.message.find("'never' is not initialized") != std::string::npos);
}

TEST_CASE("queue_runner: runners are kept by their graph, and need something to run") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> a(1, {}, "a"), b(1, {}, "b");
  weft::add_queue_runner(a, {a.enqueue(1)});
  const auto put = b.enqueue(1);
  weft::add_queue_runner(b, {put, put});
  const auto kept = weft::queue_runners(g);
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].name == "a");
  CHECK(kept[0].enqueue_ops.size() == 1);
  CHECK(kept[1].queue.raw() == b.raw());
  CHECK(kept[1].enqueue_ops.size() == 2);
  CHECK(kept[1].cancel.get()->attr<bool>("cancel_pending_enqueues"));
  CHECK(error_of([&] { weft::make_queue_runner(a, {}); }).message == "a queue runner needs at least one operation that puts something into 'a'");
}
