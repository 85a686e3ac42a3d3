#include <weft/train/moving_averages.hpp>

#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

TEST_CASE("moving averages: of a variable, beside it, from its initial value") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> w;
  weft::with_device("/job:localhost/task:0/device:CPU:0", [&] { w = weft::variable<float, 1>(xt::xtensor<float, 1>{4, 8}, "w"); });
  const weft::variable<float, 0> b(1.f, weft::not_trainable, "b");
  weft::exponential_moving_average averages(0.75f);
  const auto update = averages.apply();
  const auto average = averages.average(w);
  CHECK(average.name() == "w/ExponentialMovingAverage");
  CHECK(average.raw().from->device() == w.raw().from->device());
  CHECK(averages.average(b).empty());
  CHECK(averages.average_name(b) == "b/ExponentialMovingAverage");
  const auto set = w.assign(weft::constant({8.f, 0.f}));
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  CHECK(session.run(average) == xt::xtensor<float, 1>{4, 8});
  session.run(set);
  session.run(update);
  CHECK(session.run(average) == xt::xtensor<float, 1>{5, 6});

  const auto restored = averages.variables_to_restore();
  CHECK(restored.size() == 2);
  CHECK(restored.at("w/ExponentialMovingAverage").name() == "w");
  CHECK(restored.at("b").name() == "b");
}

TEST_CASE("moving averages: of a tensor, from zero, or without that bias") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  const auto unknown = weft::placeholder<float, 1>("unknown");
  weft::moving_average_options options;
  options.zero_debias = true;
  weft::exponential_moving_average plain(0.5f), debiased(0.5f, options);
  const auto update = plain.apply({x}), update_debiased = debiased.apply({x});
  const auto average = plain.average(x), average_debiased = debiased.average(x);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  session.run({x, 8.f}, weft::group({update, update_debiased}));
  CHECK(session.run(average) == 4.f);
  CHECK(session.run(average_debiased) == 8.f);
  session.run({x, 2.f}, weft::group({update, update_debiased}));
  CHECK(session.run(average) == 3.f);
  CHECK(session.run(average_debiased) == 4.f);
  CHECK_THROWS_WITH_AS(plain.apply({unknown}), doctest::Contains("the average of 'unknown' needs its shape"), weft::error);
  CHECK_THROWS_WITH_AS(plain.apply({weft::constant(1, "whole")}), doctest::Contains("'whole' must be float, double, half or bfloat16, found int32"), weft::error);
}
