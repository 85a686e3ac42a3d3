#include <weft/kernels/step_barrier.hpp>

#include "../error_of.hpp"

#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <thread>

namespace {

using namespace std::chrono_literals;
using pair = std::pair<std::int64_t, std::int64_t>;

// A barrier for `aggregate` of `total` replicas; arriving and waiting are steps of their own here.
struct bench {
  bench(std::int64_t aggregate, std::int64_t total) : scope(graph.as_default()) {
    number = weft::placeholder<std::int64_t, 0>("number");
    const weft::output barrier{&weft::detail::add_node("_StepBarrier", {}, weft::op_name("barrier"), {{"replicas_to_aggregate", aggregate}, {"total_num_replicas", total}}), 0};
    const auto use = [&](const char* op, const char* name, weft::attr_map attrs = {}) { return &weft::detail::add_node(op, {barrier, number.raw()}, weft::op_name(name), std::move(attrs)); };
    arrive_node = use("_StepBarrierArrive", "arrive");
    wait_node = use("_StepBarrierWait", "wait");
    advance_node = use("_StepBarrierAdvance", "advance");
    reset_node = use("_StepBarrierAdvance", "reset", {{"reset", true}});
    ready_node = &weft::detail::add_node("_StepBarrierReady", {barrier}, weft::op_name("ready"));
    interrupt_node = &weft::detail::add_node("_StepBarrierInterrupt", {barrier}, weft::op_name("interrupt"));
    begun_node = &weft::detail::add_node("_StepBarrierReady", {barrier}, weft::op_name("begun"), {{"begun", true}});
    leave_node = &weft::detail::add_node("_StepBarrierLeave", {barrier}, weft::op_name("leave"));
    chief_leave_node = &weft::detail::add_node("_StepBarrierLeave", {barrier}, weft::op_name("chief_leave"), {{"chief", true}});
    session = std::make_unique<weft::local_session>(weft::session_options(), graph);
    advance(0);
  }
  // Stamp and ticket.
  pair arrive(std::int64_t step) {
    const auto out = session->run(limit(20s), {{number, step}}, {{arrive_node, 0}, {arrive_node, 1}});
    return {out[0].item<std::int64_t>(), out[1].item<std::int64_t>()};
  }
  // Step, and whether the pass counted.
  pair wait(std::int64_t ticket) {
    const auto out = session->run(limit(20s), {{number, ticket}}, {{wait_node, 0}, {wait_node, 1}});
    return {out[0].item<std::int64_t>(), out[1].item<bool>() ? 1 : 0};
  }
  std::future<pair> waiting(std::int64_t ticket) {
    return std::async(std::launch::async, [this, ticket] { return wait(ticket); });
  }
  void advance(std::int64_t step) { session->run({}, {{number, step}}, std::vector<weft::output>(), {weft::operation(*advance_node)}); }
  void reset(std::int64_t step) { session->run({}, {{number, step}}, std::vector<weft::output>(), {weft::operation(*reset_node)}); }
  void leave(bool chief = false) { session->run(weft::operation(chief ? *chief_leave_node : *leave_node)); }
  bool begun(std::chrono::milliseconds within) { return ready(within, begun_node); }
  bool ready(std::chrono::milliseconds within, const weft::node* what = nullptr) {
    try {
      session->run(limit(within), weft::operation(what == nullptr ? *ready_node : *what));
      return true;
    } catch (const weft::error& e) {
      CHECK(e.code() == weft::error_code::deadline_exceeded);
      return false;
    }
  }
  static weft::run_options limit(std::chrono::milliseconds t) {
    weft::run_options out;
    out.timeout = t;
    return out;
  }
  weft::graph graph;
  decltype(graph.as_default()) scope;
  weft::tensor<std::int64_t, 0> number;
  const weft::node *arrive_node, *wait_node, *advance_node, *reset_node, *ready_node, *interrupt_node, *begun_node, *leave_node, *chief_leave_node;
  std::unique_ptr<weft::local_session> session;
};

}  // namespace

TEST_CASE("step_barrier: as many passes count as are aggregated, and all wait for the update") {
  bench b(2, 3);
  const pair one = b.arrive(0), two = b.arrive(0), late = b.arrive(0);
  CHECK(one.first == 0);
  CHECK(two.first == 0);
  CHECK(late.first == -1);
  auto first = b.waiting(one.second);
  CHECK_FALSE(b.ready(30ms));
  auto second = b.waiting(two.second), third = b.waiting(late.second);
  CHECK(b.ready(20s));
  CHECK(first.wait_for(20ms) == std::future_status::timeout);
  b.advance(1);
  CHECK(first.get() == pair{1, 1});
  CHECK(second.get() == pair{1, 1});
  CHECK(third.get() == pair{1, 0});
  CHECK_FALSE(b.ready(10ms));
}

TEST_CASE("step_barrier: a stale pass is told at once, and waits for nothing") {
  bench b(1, 1);
  b.advance(5);
  const pair stale = b.arrive(3);
  CHECK(stale.first == -1);
  CHECK(b.wait(stale.second) == pair{5, 0});
  CHECK(b.arrive(5).first == 5);
}

TEST_CASE("step_barrier: fewer workers than passes go on until the last ones") {
  bench b(3, 2);
  CHECK(b.wait(b.arrive(0).second) == pair{0, 1});
  auto second = b.waiting(b.arrive(0).second), third = b.waiting(b.arrive(0).second);
  CHECK(b.ready(20s));
  b.advance(1);
  CHECK(second.get() == pair{1, 1});
  CHECK(third.get() == pair{1, 1});
}

TEST_CASE("step_barrier: a step that is cut between arriving and waiting gives its place back") {
  bench b(1, 1);
  // One step that arrives and then waits for ever for something else.
  const auto scope = b.graph.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> never(1);
  weft::operation stuck;
  {
    const auto after = weft::control_dependencies({weft::operation(*b.arrive_node)});
    stuck = weft::operation(never.dequeue());
  }
  try {
    b.session->run(bench::limit(50ms), {{b.number, std::int64_t{0}}}, stuck);
    FAIL("it should wait");
  } catch (const weft::error& e) {
    CHECK(e.code() == weft::error_code::deadline_exceeded);
  }
  CHECK(b.arrive(0).first == 0);
}

TEST_CASE("step_barrier: a new chief tells those who wait that they did not count") {
  bench b(2, 2);
  const pair pushes = b.arrive(0);
  auto waits = b.waiting(b.arrive(0).second);
  CHECK(waits.wait_for(20ms) == std::future_status::timeout);
  b.reset(0);
  CHECK(waits.get() == pair{0, 0});
  // One that was still pushing learns it when it comes to wait.
  CHECK(b.wait(pushes.second) == pair{0, 0});
  CHECK(b.arrive(0).first == 0);
  CHECK(b.arrive(0).first == 0);
  CHECK(b.arrive(0).first == -1);
}

TEST_CASE("step_barrier: a chief that stops ends its wait, also one that begins later, until there is a new chief") {
  bench b(1, 1);
  const auto why = [&] { return error_of([&] { b.session->run(bench::limit(20s), weft::operation(*b.ready_node)); }); };
  auto waiting = std::async(std::launch::async, why);
  b.session->run(weft::operation(*b.interrupt_node));
  for (const weft::status& s : {waiting.get(), why()}) {
    CHECK(s.code == weft::error_code::cancelled);
    CHECK(s.message.find("its chief stops") != std::string::npos);
  }
  b.reset(0);
  const pair first = b.arrive(0);
  auto pass = b.waiting(first.second);
  CHECK(b.ready(20s));
  b.advance(1);
  CHECK(pass.get() == pair{1, 1});
}

TEST_CASE("step_barrier: an unknown ticket is an error") {
  bench b(1, 1);
  try {
    b.wait(99);
    FAIL("there is no such ticket");
  } catch (const weft::error& e) {
    CHECK(e.code() == weft::error_code::aborted);
  }
}

TEST_CASE("step_barrier: when all who are left wait for too few passes, they are told") {
  bench b(2, 3);
  const auto ended = [&](std::int64_t ticket) {
    return std::async(std::launch::async, [&b, ticket] {
      try {
        b.wait(ticket);
        return weft::status();
      } catch (const weft::error& e) {
        return e.status();
      }
    });
  };
  const std::int64_t one = b.arrive(0).second;
  auto first = ended(one);
  b.leave();
  CHECK(first.wait_for(20ms) == std::future_status::timeout);  // the third can still come
  b.leave();
  const weft::status why = first.get();
  CHECK(why.code == weft::error_code::out_of_range);
  CHECK(why.message == "the barrier of steps 'barrier': an update needs the gradients of 2 passes, 1 are there, and of 3 workers 2 make no more");
  // With the one that was pushed another one is enough.
  const std::int64_t two = b.arrive(0).second;
  auto second = b.waiting(two);
  CHECK(b.ready(20s));
  b.advance(1);
  CHECK(second.get() == pair(1, 1));
  // A chief that begins anew begins with all of them.
  b.reset(1);
  auto third = ended(b.arrive(1).second);
  CHECK(third.wait_for(20ms) == std::future_status::timeout);
  CHECK(b.begun(20s));
  b.leave(true);
  CHECK(third.get().message == "the barrier of steps 'barrier': the chief has ended, there are no more updates");
  CHECK_FALSE(b.begun(20ms));
  CHECK(ended(b.arrive(1).second).get().code == weft::error_code::out_of_range);
  b.reset(1);
  CHECK(b.begun(20s));
}
