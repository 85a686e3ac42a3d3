#ifndef WEFT_TESTS_SESSION_SESSION_SUITE_HPP
#define WEFT_TESTS_SESSION_SESSION_SUITE_HPP
// What holds for every session on a cluster of one ps and two work tasks: in this process, on servers in this process, on other processes.

#include <weft/graph.hpp>

#include "../error_of.hpp"
#include <weft/core/step_trace.hpp>
#include <weft/ops/queue.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace session_suite {

using ::error_of;

/// Opens a session for the graph on the cluster under test.
using opener = std::function<std::unique_ptr<weft::session_interface>(const weft::session_options&, const weft::graph&)>;

inline void fetches_have_their_types(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto vector = weft::constant({1.f, 2.f, 3.f});
  const auto matrix = weft::constant({{1, 2}, {3, 4}});
  const auto session = open({}, g);
  const weft::tensor<float> any_rank = vector;

  CHECK(session->run(vector * 2.f + 1.f) == xt::xtensor<float, 1>{3.f, 5.f, 7.f});
  CHECK(session->run(weft::reduce_sum(vector)) == 6.f);
  CHECK(session->run(any_rank) == xt::xarray<float>{1.f, 2.f, 3.f});
  CHECK(session->run(weft::constant("text")) == "text");
  CHECK(session->run(weft::constant(true)));
  const auto [sum, doubled] = session->run(weft::reduce_sum(matrix), matrix + matrix);
  CHECK(sum == 10);
  CHECK(doubled == xt::xtensor<std::int32_t, 2>{{2, 4}, {6, 8}});
  static_assert(std::is_void_v<decltype(session->run(weft::no_op()))>);
  session->run(weft::no_op());
  const auto [twice, again] = session->run(vector, vector);
  CHECK(twice == again);
}

inline void work_is_spread_over_tasks(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x, y;
  weft::with_device("/job:ps/task:0", [&] { x = weft::constant({1.f, 2.f}); });
  weft::with_device("/job:work/task:1", [&] { y = x * 0.5f + 1.f; });
  const auto back = weft::with_device("/job:work/task:0", [&] { return weft::reduce_sum(y * y); });
  const auto session = open({}, g);

  CHECK(session->run(back) == doctest::Approx(1.5 * 1.5 + 4.0));
  const auto parts = session->partitions({{}, {back.raw()}, {}});
  CHECK(parts.transfers().size() == 2);
  CHECK(parts.transfers()[0].bytes == 8);
  for (int i = 0; i < 20; ++i) CHECK(session->run(y) == xt::xtensor<float, 1>{1.5f, 2.f});
}

inline void control_edges_cross_tasks(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 0> v;
  weft::with_device("/job:ps/task:0", [&] { v = weft::variable<float, 0>(weft::constant(1.f), "crossed"); });
  const auto session = open({}, g);
  session->run(weft::global_variables_initializer());
  weft::operation bump;
  weft::with_device("/job:ps/task:0", [&] { bump = v.assign_add(2.f); });
  weft::tensor<float, 0> after;
  {
    const auto device = weft::with_device("/job:work/task:1");
    const auto waits = weft::control_dependencies({bump});
    after = weft::identity(v) * 10.f;
  }
  CHECK(session->run(after) == 30.f);
  CHECK(session->run(after) == 50.f);
  CHECK(session->run(v) == 5.f);
}

inline void values_are_fed(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 2>({weft::unknown, 2}, "x");
  const auto rate = weft::placeholder<float, 0>("rate");
  weft::tensor<float, 2> y;
  weft::with_device("/job:work/task:1", [&] { y = x * rate; });
  const auto session = open({}, g);

  CHECK(session->run({{x, {{1, 2}, {3, 4}}}, {rate, 2}}, y) == xt::xtensor<float, 2>{{2, 4}, {6, 8}});
  CHECK(session->run({{y, {{7.f, 8.f}}}}, y) == xt::xtensor<float, 2>{{7, 8}});
  const auto inner = weft::reduce_sum(y);
  CHECK(session->run({{y, {{7.f, 8.f}}}}, inner) == 15.f);
  const auto step = session->make_callable(weft::feeds(x, rate), inner);
  CHECK(step({{1.f, 1.f}}, 3) == 6.f);
  CHECK(step({{1.f, 2.f}}, 0.5f) == 1.5f);

  const auto wrong_shape = error_of([&] { session->run({{x, {{1, 2, 3}}}, {rate, 1}}, y); });
  CHECK(wrong_shape.code == weft::error_code::invalid_argument);
  CHECK(wrong_shape.message.find("has shape [?,2], the value fed has shape [1,3]") == 0);
  CHECK(error_of([&] { session->run({{rate, 1}, {rate, 2}}, rate); }).message == "'rate' is fed twice");
  const auto unfed = error_of([&] { session->run({{rate, 1}}, y); });
  CHECK(unfed.code == weft::error_code::invalid_argument);
  CHECK(unfed.node == "x");
  CHECK(unfed.site.find("session_suite.hpp:") == 0);
  CHECK(session->run({{x, {{1, 2}}}, {rate, 1}}, y) == xt::xtensor<float, 2>{{1, 2}});
  // Nobody has to do anything for what is fed.
  session->run({{rate, 2}}, weft::operation(rate));
  CHECK(session->run({{rate, 2}}, rate) == 2.f);
  CHECK(session->make_callable(weft::feeds(rate), rate)(3) == 3.f);
  session->make_callable(weft::feeds(rate), weft::operation(rate))(3);
  weft::step_signature nothing;
  nothing.feeds = {rate.raw()};
  nothing.targets = {rate.raw().from};
  CHECK(session->partitions(nothing).parts().empty());
}

inline void variables_keep_their_values(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> w;
  weft::with_device("/job:ps/task:0", [&] { w = weft::variable<float, 1>(weft::constant({1.f, 2.f}), "kept"); });
  const auto session = open({}, g);

  const auto early = error_of([&] { session->run(w); });
  CHECK(early.code == weft::error_code::failed_precondition);
  CHECK(early.message.find("'kept' is not initialized") != std::string::npos);
  session->run(weft::global_variables_initializer());
  CHECK(session->run(w) == xt::xtensor<float, 1>{1.f, 2.f});
  const auto add = w.assign_add(weft::constant({10.f, 20.f}));
  session->run(add);
  session->run(add);
  CHECK(session->run(w) == xt::xtensor<float, 1>{21.f, 42.f});
  session->run(w.assign_sub(weft::constant({1.f, 2.f})));
  session->run(w.assign(weft::tensor<float, 1>(w) * 2.f));
  CHECK(session->run(w * 1.f) == xt::xtensor<float, 1>{40.f, 80.f});
  CHECK(session->run({{w, {5.f, 6.f}}}, w * 2.f) == xt::xtensor<float, 1>{10.f, 12.f});
}

inline void errors_say_what_and_where(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto a = weft::placeholder<float, 2>("a"), b = weft::placeholder<float, 2>("b");
  weft::tensor<float, 2> product;
  weft::with_device("/job:work/task:1", [&] { product = weft::matmul(a, b, "product"); });
  const auto session = open({}, g);

  const auto differ = error_of([&] { session->run({{a, {{1, 2, 3}, {4, 5, 6}}}, {b, {{1}, {2}}}}, product); });
  CHECK(differ.code == weft::error_code::invalid_argument);
  CHECK(differ.message == "inner dimensions 3 and 2 differ ([2,3] x [2,1])");
  CHECK(differ.node == "product");
  CHECK(differ.op == "MatMul");
  CHECK(differ.device == "/job:work/task:1/device:CPU:0");
  CHECK(differ.site.find("session_suite.hpp:") == 0);
  CHECK(differ.task.find("/job:work/task:1") == 0);
  CHECK(session->run({{a, {{1, 2}}}, {b, {{3}, {4}}}}, product) == xt::xtensor<float, 2>{{11.f}});

  const weft::graph other;
  weft::tensor<float, 0> stranger;
  {
    const auto inner = other.as_default();
    stranger = weft::constant(1.f);
  }
  CHECK(error_of([&] { session->run(stranger); }).message.find("another graph") != std::string::npos);
  CHECK(error_of([&] { session->run(weft::tensor<float, 0>()); }).code == weft::error_code::invalid_argument);
  CHECK(error_of([&] { session->run({{a, {{1, 2}}}}); }).message.find("nothing to run") == 0);
}

inline void unknown_devices_are_named(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> lost;
  weft::with_device("/job:nosuch/task:0", [&] { lost = weft::constant(1.f, "lost"); });
  const auto session = open({}, g);
  const auto unknown = error_of([&] { session->run(lost); });
  CHECK(unknown.code == weft::error_code::invalid_argument);
  CHECK(unknown.node == "lost");
  CHECK(unknown.message.find("/job:nosuch/task:0") != std::string::npos);
  CHECK(unknown.message.find("/job:work/task:1") != std::string::npos);
  CHECK(unknown.site.find("session_suite.hpp:") == 0);
}

inline void soft_placement_falls_back(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> x;
  weft::with_device("/job:work/task:1/device:GPU:3", [&] { x = weft::constant(1.f, "soft") + 1.f; });
  CHECK(error_of([&] { open({}, g)->run(x); }).code == weft::error_code::invalid_argument);
  weft::session_options options;
  options.allow_soft_placement = true;
  options.log_device_placement = true;
  std::vector<std::string> lines;
  options.log = [&lines](std::string_view line) { lines.emplace_back(line); };
  CHECK(open(options, g)->run(x) == 2.f);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].find("soft (Const): /job:work/task:1/device:CPU:0 (") == 0);
  CHECK(lines[0].find("soft") != std::string::npos);
}

inline void later_nodes_are_seen(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  const auto session = open({}, g);
  CHECK(session->run(x) == 1.f);
  auto y = x + 1.f;
  CHECK(session->run(y) == 2.f);
  for (int i = 0; i < 50; ++i) y = y + 1.f;
  CHECK(session->run(y) == 52.f);
}

inline void threads_run_at_once(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<std::int64_t, 0> count;
  weft::with_device("/job:ps/task:0", [&] { count = weft::variable<std::int64_t, 0>(weft::constant(std::int64_t{0}), "count"); });
  const auto session = open({}, g);
  session->run(weft::global_variables_initializer());
  weft::operation add;
  weft::with_device("/job:work/task:1", [&] { add = count.assign_add(1); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const auto inner = g.as_default();
      for (int i = 0; i < 25; ++i) session->run(add);
      const auto mine = weft::constant(2.f) * 3.f;
      if (session->run(mine) != 6.f) session->run(weft::placeholder<float, 0>());
    });
  for (auto& t : threads) t.join();
  CHECK(session->run(count) == 100);
}

inline void reads_follow_control_edges(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const char *here = "/job:work/task:0", *there = "/job:work/task:1";
  weft::variable<float, 0> v;
  weft::tensor<float, 0> slow, before, after, beside;
  weft::operation modify;
  weft::with_device(there, [&] {
    v = weft::variable<float, 0>(weft::constant(0.f), "ordered");
    slow = weft::reduce_sum(weft::random_uniform<float>({64, 64})) * 0.f + 100.f;
  });
  // The first read comes before the assignment, the others after it.
  weft::with_device(here, [&] { before = weft::identity(v) + 1.f; });
  {
    const auto first = weft::control_dependencies({weft::operation(before)});
    const auto device = weft::with_device(there);
    modify = v.assign(slow);
  }
  {
    const auto then = weft::control_dependencies({modify});
    weft::with_device(here, [&] { after = weft::identity(v) + 2.f; });
    weft::with_device(there, [&] { beside = weft::identity(v) + 3.f; });
  }
  // A variable that is given its first value in the same step.
  weft::tensor<float, 0> fresh;
  {
    weft::variable<float, 0> made;
    weft::with_device("/job:ps/task:0", [&] { made = weft::variable<float, 0>(weft::constant(2.f), "made_in_step"); });
    const auto then = weft::control_dependencies({made.initializer()});
    const auto device = weft::with_device(here);
    fresh = weft::identity(made) * 1.f;
  }
  const auto session = open({}, g);
  CHECK(session->run(fresh) == 2.f);
  for (int i = 0; i < 10; ++i) {
    session->run(v.initializer());
    const auto [a, b, c] = session->run(before, after, beside);
    CHECK(a == 1.f);
    CHECK(b == 102.f);
    CHECK(c == 103.f);
  }
}

inline void equal_assignments_both_run(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto device = weft::with_device("/job:ps/task:0");
  const weft::variable<float, 0> v(weft::constant(1.f), "assigned_twice");
  const auto one = v.assign(weft::tensor<float, 0>(v) * 2.f), two = v.assign(weft::tensor<float, 0>(v) * 2.f);
  const auto add_one = v.assign_add(1.f), add_two = v.assign_add(1.f), add_hundred = v.assign_add(100.f);
  const auto session = open({}, g);
  for (int i = 0; i < 20; ++i) {
    session->run(v.initializer());
    session->run(one, two);
    const float got = session->run(v);
    CHECK((got == 2.f || got == 4.f));  // without an order each may read before the other assigns
    session->run(v.initializer());
    session->run(add_one, add_two, add_hundred);
    CHECK(session->run(v) == 103.f);
  }
}

inline void values_come_from_other_tasks(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 2> p0, p1, whole;
  weft::variable<float, 0> w, b;
  weft::with_device("/job:ps/task:0", [&] {
    p0 = weft::variable<float, 2>(weft::constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}), "p0");
    w = weft::variable<float, 0>(weft::constant(1.f), "w");
    b = weft::variable<float, 0>(weft::constant(10.f), "b");
  });
  weft::with_device("/job:work/task:0", [&] { p1 = weft::variable<float, 2>(weft::constant({{7.f, 8.f, 9.f}, {0.f, 1.f, 2.f}}), "p1"); });
  const auto x = weft::placeholder<float, 0>("x");
  weft::tensor<float, 0> y;
  weft::with_device("/job:work/task:1", [&] {
    whole = weft::variable<float, 2>(weft::concat({weft::identity(p0), weft::identity(p1)}, 0), weft::local_variable, "whole");
    y = w * x + b;
  });
  const auto session = open({}, g);
  session->run(p0.initializer(), p1.initializer(), w.initializer(), b.initializer());
  session->run(whole.initializer());
  CHECK(session->run(whole) == xt::xtensor<float, 2>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {0, 1, 2}});
  CHECK(session->run({{x, 2}}, y) == 12.f);
  const auto parts = session->partitions({{x.raw()}, {y.raw()}, {}});
  for (const weft::node* n : parts.at("/job:work/task:1").graph.nodes())
    if (n->op() == "Mul" || n->op() == "AddV2" || n->op() == "Add") CHECK(n->device() == "/job:work/task:1/device:CPU:0");
}

inline void empty_dimensions_are_values(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 3>("x");
  weft::tensor<float, 0> sum;
  weft::tensor<float, 3> back;
  weft::with_device("/job:work/task:1", [&] { sum = weft::reduce_sum(x); });
  weft::with_device("/job:ps/task:0", [&] { back = x * 2.f; });
  const auto session = open({}, g);
  const xt::xtensor<float, 3> none = xt::zeros<float>({3, 0, 2});
  const auto [total, doubled] = session->run({{x, none}}, sum, back);
  CHECK(total == 0.f);
  CHECK(doubled.shape() == none.shape());
}

inline void placement_is_logged_once(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> x = weft::constant(1.f);
  for (int i = 0; i < 200; ++i) x = x + 1.f;
  weft::session_options options;
  options.log_device_placement = true;
  std::vector<std::string> lines;
  options.log = [&lines](std::string_view line) { lines.emplace_back(line); };
  const auto session = open(options, g);
  for (int i = 0; i < 3; ++i) CHECK(session->run(x) == 201.f);
  CHECK(lines.size() == g.size());
  const std::size_t before = g.size();
  const auto y = x * 2.f;
  CHECK(session->run(y) == 402.f);
  CHECK(lines.size() == g.size());
  for (std::size_t i = before; i < lines.size(); ++i) CHECK(lines[i].find(g.nodes()[i]->name() + " (") == 0);
}

inline void queues_wait_and_go_on(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::queue_options named;
  weft::fifo_queue<weft::tensor<int, 0>> one, two;
  weft::with_device("/job:ps/task:0", [&] { one = weft::fifo_queue<weft::tensor<int, 0>>(1, named, "one"); });
  weft::with_device("/job:work/task:1", [&] { two = weft::fifo_queue<weft::tensor<int, 0>>(1, named, "two"); });
  const auto put = one.enqueue(2);
  const auto take = one.dequeue();
  // Each of two steps takes from one queue and puts into the other, which has room for one element.
  const auto forth = two.enqueue(one.dequeue()), back = one.enqueue(two.dequeue());
  const auto session = open({}, g);
  weft::run_options soon, later;
  soon.timeout = std::chrono::milliseconds(30);
  later.timeout = std::chrono::seconds(20);
  for (int i = 0; i < 2; ++i) {
    CHECK(error_of([&] { session->run(soon, take); }).code == weft::error_code::deadline_exceeded);
    session->run(later, put);
    CHECK(error_of([&] { session->run(soon, put); }).code == weft::error_code::deadline_exceeded);
    CHECK(session->run(later, take) == 2);
  }
  session->run(put);
  std::thread other([&] {
    for (int i = 0; i < 10; ++i) session->run(later, forth);
  });
  for (int i = 0; i < 10; ++i) session->run(later, back);
  other.join();
  CHECK(session->run(later, take) == 2);
}

inline void steps_are_traced(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>("x");
  weft::tensor<float, 1> a, b;
  weft::tensor<float, 0> c;
  weft::with_device("/job:ps/task:0", [&] { a = weft::add(x, 1.f, "a"); });
  weft::with_device("/job:work/task:1", [&] { b = weft::multiply(a, 2.f, "b"); });
  weft::with_device("/job:work/task:0", [&] { c = weft::reduce_sum(b, "c"); });
  const auto session = open({}, g);
  weft::step_trace trace;
  weft::run_options traced;
  traced.trace = &trace;
  const xt::xtensor<float, 1> ones = xt::ones<float>({100000});
  for (int i = 0; i < 2; ++i) {
    CHECK(session->run(traced, {{x, ones}}, c) == 400000.f);
    std::set<std::string> tasks, nodes;
    for (const weft::task_trace& t : trace.tasks) {
      tasks.insert(t.task);
      CHECK(t.left_out == 0);
      for (const weft::traced_node& n : t.nodes) {
        CHECK(n.begin <= n.end);
        CHECK(n.device.find(t.task + "/device:CPU:0") == 0);
        if (n.edge < 0) nodes.insert(n.name);
      }
    }
    CHECK(tasks == std::set<std::string>{"/job:ps/task:0", "/job:work/task:0", "/job:work/task:1"});
    CHECK(nodes == std::set<std::string>{"a", "b", "c"});
    const auto transfers = weft::transfers_of(trace);
    REQUIRE(transfers.size() == 2);
    CHECK(transfers[0].value == "a");
    CHECK(transfers[0].from == "/job:ps/task:0/device:CPU:0");
    CHECK(transfers[0].to == "/job:work/task:1/device:CPU:0");
    CHECK(transfers[1].value == "b");
    for (const weft::traced_transfer& t : transfers) {
      CHECK(t.bytes == 400000);
      CHECK(t.given <= t.sent);
      CHECK(t.wanted <= t.taken);
      CHECK(t.arrived <= t.taken);
    }
  }
  CHECK(session->run({{x, ones}}, c) == 400000.f);
  // A step that fails leaves the trace alone.
  const std::int64_t last = trace.step;
  CHECK_FALSE(error_of([&] { session->run(traced, c); }).ok());
  CHECK(trace.step == last);
}

inline void closed_sessions_refuse(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f);
  const auto session = open({}, g);
  CHECK(session->run(x) == 1.f);
  session->close();
  session->close();
  const auto refused = error_of([&] { session->run(x); });
  CHECK(refused.code == weft::error_code::failed_precondition);
  CHECK(refused.message == "the session is closed");
}

inline void devices_are_listed(const opener& open) {
  const weft::graph g;
  const auto session = open({}, g);
  std::vector<std::string> names;
  for (const auto& d : session->list_devices()) names.push_back(d.name);
  CHECK(names == std::vector<std::string>{"/job:ps/task:0/device:CPU:0", "/job:work/task:0/device:CPU:0", "/job:work/task:1/device:CPU:0"});
}

inline void placers_choose(const opener& open) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::exp(weft::constant({0.f, 1.f}), "x");
  const auto y = weft::exp(x, "y");
  std::vector<std::string> lines;
  weft::session_options options;
  options.optimizer = weft::optimizer_options::none();
  options.placer = weft::place_by([](const weft::node& n, const std::vector<std::string>&) { return std::string(n.name() == "y" || n.name() == "z" ? "/job:work/task:1" : "/job:ps/task:0"); }, "mine");
  options.log_device_placement = true;
  options.log = [&](std::string_view line) { lines.emplace_back(line); };
  const auto session = open(options, g);
  CHECK(session->run(y)(0) == doctest::Approx(2.718282));
  const auto parts = session->partitions({{}, {y.raw()}, {}});
  CHECK(parts.placement().device_of(*x.raw().from) == "/job:ps/task:0/device:CPU:0");
  CHECK(parts.placement().device_of(*y.raw().from) == "/job:work/task:1/device:CPU:0");
  CHECK(parts.explain(*y.raw().from).find("decided by: placer 'mine': chosen by 'mine'") != std::string::npos);
  REQUIRE(parts.transfers().size() == 1);
  CHECK(parts.transfers()[0].source == "x");
  CHECK(parts.transfers()[0].reason == "'y' is chosen by 'mine'");
  CHECK(std::count(lines.begin(), lines.end(), "y (Exp): /job:work/task:1/device:CPU:0 (chosen by 'mine')") == 1);

  const auto z = weft::exp(weft::negative(y), "z");
  CHECK(session->run(z)(0) == doctest::Approx(0.06598804));
  const auto later = session->partitions({{}, {z.raw()}, {}});
  CHECK(later.placement().device_of(*x.raw().from) == "/job:ps/task:0/device:CPU:0");
  CHECK(later.placement().device_of(*z.raw().from) == "/job:work/task:1/device:CPU:0");
  CHECK(later.transfers().size() == 3);  // x, y back to the ps, -y

  options.placer = weft::place_by([](const weft::node& n, const std::vector<std::string>&) { return std::string(n.name() == "y" ? "/job:nosuch" : ""); }, "wrong");
  const auto refused = error_of([&] { open(options, g)->run(y); });
  CHECK(refused.code == weft::error_code::invalid_argument);
  CHECK(refused.message.find("placer 'wrong': cannot go to '/job:nosuch'; open to it are /job:") == 0);
  CHECK(refused.site.find("session_suite.hpp:") == 0);
}

/// Runs every case; call it inside a TEST_CASE.
inline void run(const opener& open) {
  SUBCASE("fetches have their types") { fetches_have_their_types(open); }
  SUBCASE("work is spread over tasks") { work_is_spread_over_tasks(open); }
  SUBCASE("control edges cross tasks") { control_edges_cross_tasks(open); }
  SUBCASE("values are fed") { values_are_fed(open); }
  SUBCASE("variables keep their values") { variables_keep_their_values(open); }
  SUBCASE("errors say what and where") { errors_say_what_and_where(open); }
  SUBCASE("unknown devices are named") { unknown_devices_are_named(open); }
  SUBCASE("soft placement falls back") { soft_placement_falls_back(open); }
  SUBCASE("later nodes are seen") { later_nodes_are_seen(open); }
  SUBCASE("threads run at once") { threads_run_at_once(open); }
  SUBCASE("reads follow control edges") { reads_follow_control_edges(open); }
  SUBCASE("equal assignments both run") { equal_assignments_both_run(open); }
  SUBCASE("values come from other tasks") { values_come_from_other_tasks(open); }
  SUBCASE("empty dimensions are values") { empty_dimensions_are_values(open); }
  SUBCASE("placement is logged once") { placement_is_logged_once(open); }
  SUBCASE("queues wait and go on") { queues_wait_and_go_on(open); }
  SUBCASE("steps are traced") { steps_are_traced(open); }
  SUBCASE("closed sessions refuse") { closed_sessions_refuse(open); }
  SUBCASE("devices are listed") { devices_are_listed(open); }
  SUBCASE("placers choose") { placers_choose(open); }
}

}  // namespace session_suite

#endif
