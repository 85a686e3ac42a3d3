#include <weft/kernels/accumulator.hpp>

#include "../error_of.hpp"

#include <weft/ops/accumulator.hpp>
#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

}  // namespace

TEST_CASE("accumulator: many threads push, the mean is of all of them") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::conditional_accumulator<double, 1> a({2});
  const auto x = weft::placeholder<double, 1>();
  const auto push = a.apply(x, 0);
  const auto mean = a.take(40);
  weft::local_session session({}, g);
  auto taken = std::async(std::launch::async, [&] { return session.run(mean); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) session.run({{x, {1.0 * (10 * t + i), -2.0 * (10 * t + i)}}}, push);
    });
  for (auto& t : threads) t.join();
  CHECK(taken.get() == xt::xtensor<double, 1>{19.5, -39.0});
  CHECK(session.run(a.num_accumulated()) == 0);
}

TEST_CASE("accumulator: a gradient that somebody else holds is not written") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::conditional_accumulator<float, 1> a({2}, {weft::accumulator_reduction::sum});
  const auto x = weft::constant({1.f, 2.f});
  const auto push = a.apply(x, 0);
  weft::local_session session({}, g);
  for (int i = 0; i < 3; ++i) session.run(push);
  CHECK(session.run(a.take(3)) == xt::xtensor<float, 1>{3.f, 6.f});
  CHECK(session.run(x) == xt::xtensor<float, 1>{1.f, 2.f});
}

TEST_CASE("accumulator: half and bfloat16, rows and means of rows") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::local_session session({}, g);
  const weft::conditional_accumulator<weft::bfloat16, 1> a({2});
  for (const float v : {1.f, 2.f}) session.run(a.apply(weft::cast<weft::bfloat16>(weft::constant({v, 3 * v})), 0));
  CHECK(session.run(weft::cast<float>(a.take(2))) == xt::xtensor<float, 1>{1.5f, 4.5f});
  const weft::sparse_conditional_accumulator<weft::half, 2> s({9, 2});
  session.run(s.apply(weft::constant({std::int64_t{1}, std::int64_t{4}}), weft::cast<weft::half>(weft::constant({{1.f, 2.f}, {3.f, 4.f}})), 0));
  session.run(s.apply(weft::constant({std::int64_t{4}}), weft::cast<weft::half>(weft::constant({{5.f, 6.f}})), 0));
  session.run(s.apply(weft::constant(xt::xtensor<std::int64_t, 1>(xt::zeros<std::int64_t>({0}))), weft::cast<weft::half>(weft::constant(xt::xtensor<float, 2>(xt::zeros<float>({0, 2})))), 0));
  const auto [indices, rows, whole] = s.take(3);
  const auto [i, r, w] = session.run(indices, weft::cast<float>(rows), whole);
  CHECK(i == xt::xtensor<std::int64_t, 1>{1, 4});
  CHECK(r == xt::xtensor<float, 2>{{1.f, 2.f}, {4.f, 5.f}});
  CHECK(w == xt::xtensor<std::int64_t, 1>{9, 2});
}

TEST_CASE("accumulator: hostile pushes are errors that say what was expected") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::local_session session({}, g);
  const weft::conditional_accumulator<float> a({2}, {}, "a");
  const weft::sparse_conditional_accumulator<float> s({4, 2}, {}, "s");
  const auto x = weft::placeholder<float>();
  const auto i = weft::placeholder<std::int64_t, 1>();
  const auto n = weft::placeholder<std::int64_t>();
  const auto push = a.apply(x, 0), push_rows = s.apply(i, x, 0);
  CHECK(error_of([&] { session.run({{x, xt::xarray<float>{1.f}}}, push); }).message == "ConditionalAccumulator 'a': expected a gradient of shape [2], found [1]");
  const xt::xarray<float> row = xt::ones<float>({1, 2}), wide = xt::ones<float>({1, 3});
  CHECK(error_of([&] { session.run({{i, {1, 2}}, {x, row}}, push_rows); }).message == "SparseConditionalAccumulator 's': expected a row for each of 2 indices, found rows of shape [1,2]");
  CHECK(error_of([&] { session.run({{i, {1}}, {x, wide}}, push_rows); }).message == "SparseConditionalAccumulator 's': expected rows of a variable of shape [4,2], found rows of shape [1,3]");
  CHECK(error_of([&] { session.run({{i, {4}}, {x, row}}, push_rows); }).message == "SparseConditionalAccumulator 's': index 4 is not in [0, 4)");
  CHECK(error_of([&] { session.run({{i, {1}}, {x, 1.f}}, push_rows); }).code == weft::error_code::invalid_argument);
  CHECK(error_of([&] { session.run({{n, xt::xarray<std::int64_t>{1, 2}}}, a.set_global_step(n)); }).code == weft::error_code::invalid_argument);
  CHECK(error_of([&] { session.run(a.take(0)); }).message == "the number of gradients must be positive, found 0");
  CHECK(session.run(a.num_accumulated()) == 0);
  // A handle of another kind.
  const weft::fifo_queue<float> q(1);
  CHECK(error_of([&] { session.run(weft::conditional_accumulator<float>().num_accumulated()); }).code == weft::error_code::invalid_argument);
  const auto& wrong = weft::detail::add_node("ResourceAccumulatorNumAccumulated", {q.raw()}, {});
  const auto mixed = error_of([&] { session.run({}, {}, {{&wrong, 0}}); });
  CHECK(mixed.code == weft::error_code::invalid_argument);
}

TEST_CASE("accumulator: those who wait end by cancellation, and the next is served") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::conditional_accumulator<float, 0> a(weft::shape(), {});
  const auto push = a.apply(weft::constant(4.f), 0);
  const auto three = a.take(3), one = a.take(1);
  weft::local_session session({}, g);
  weft::run_options limit;
  limit.timeout = 60ms;
  auto first = std::async(std::launch::async, [&] { return error_of([&] { session.run(limit, three); }).code; });
  CHECK(first.wait_for(20ms) == std::future_status::timeout);
  auto second = std::async(std::launch::async, [&] { return session.run(one); });
  session.run(push);
  CHECK(first.get() == weft::error_code::deadline_exceeded);
  CHECK(second.get() == 4.f);
  auto last = std::async(std::launch::async, [&] { return error_of([&] { session.run(one); }).code; });
  CHECK(last.wait_for(50ms) == std::future_status::timeout);
  session.close();
  const auto ended = last.get();
  CHECK((ended == weft::error_code::cancelled || ended == weft::error_code::failed_precondition));
}
