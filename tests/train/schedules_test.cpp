#include <weft/train/schedules.hpp>

#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/optimizers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>

TEST_CASE("schedules: a rate of each step drives an optimizer") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 0> w(0.f, "w");
  const weft::variable<std::int64_t, 0> step(std::int64_t{0}, weft::not_trainable, "step");
  const auto rate = weft::piecewise_constant(step, {1, 2}, {1.f, 10.f, 100.f});
  weft::gradient_descent_optimizer descent(rate);
  const auto train = descent.minimize(-w, step);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  // Steps 0 and 1 use 1, step 2 uses 10, step 3 uses 100.
  const float after[] = {1, 2, 12, 112};
  for (const float expected : after) {
    session.run(train);
    CHECK(session.run(w) == expected);
  }
}

TEST_CASE("schedules: values") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto step = weft::placeholder<std::int32_t, 0>();
  const auto whole = weft::exponential_decay(2.f, step, 4, 0.5f, weft::staircase::on);
  const auto fine = weft::exponential_decay<double>(2., step, 4, 0.25);
  const auto linear = weft::polynomial_decay(1.f, step, 4, 0.f), again = weft::polynomial_decay(1.f, step, 4, 0.f, 1.f, weft::cycle::on);
  const auto restarts = weft::cosine_decay_restarts(1.f, step, 2, 2, 0.5);
  weft::local_session session;
  const auto at = [&](std::int32_t n) { return session.run({step, n}, whole, fine, linear, again, restarts); };
  {
    const auto [w, f, l, a, r] = at(6);
    CHECK(w == 1.f);
    CHECK(f == doctest::Approx(0.25));
    CHECK(l == 0.f);
    CHECK(a == 0.25f);
    // Six steps are the first period of 2 and the second of 4: the third begins, a quarter as high.
    CHECK(r == doctest::Approx(0.25));
  }
  {
    const auto [w, f, l, a, r] = at(1);
    CHECK(w == 2.f);
    CHECK(f == doctest::Approx(2 / std::sqrt(2.)));
    CHECK(l == 0.75f);
    CHECK(a == 0.75f);
    CHECK(r == doctest::Approx(0.5));
  }
}

TEST_CASE("schedules: misuse") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto message_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const weft::error& e) {
      return e.status().message;
    }
    return std::string();
  };
  const auto step = weft::placeholder<std::int64_t, 0>();
  CHECK(message_of([&] { weft::exponential_decay(1.f, 3, 10, 0.5f); }) == "ExponentialDecay: the step must be a tensor or a variable of the graph");
  CHECK(message_of([&] { weft::piecewise_constant(step, {1, 2}, {1.f, 2.f}); }) ==
        "piecewise_constant: there must be one value more than there are boundaries, found 2 values and 2 boundaries");
  CHECK(message_of([&] { weft::cosine_decay_restarts(1.f, step, 2, 0); }) == "cosine_decay_restarts: t_mul must be positive, found 0.000000");
}

TEST_CASE("schedules: noise on a linear cosine decay") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto step = weft::placeholder<std::int32_t, 0>();
  const auto still = weft::noisy_linear_cosine_decay(0.1f, step, 10, 0., 0.55);
  const auto noisy = weft::noisy_linear_cosine_decay<double>(0.1, step, 10, 1., 0.55, 0.5, 0.25, 0.001, "noisy");
  const weft::node* draws = nullptr;
  for (const weft::node* n : g.nodes())
    if (n->op() == "RandomStandardNormal" && n->name().find("noisy") == 0) draws = n;
  REQUIRE(draws != nullptr);
  const weft::tensor<double, 0> drawn(weft::output{draws, 0});
  weft::local_session session;
  // 0.1 * (0.6 * 0.5 * (1 + cos(0.4 pi)) + 0.001), and nothing but beta after the end.
  CHECK(session.run({step, 4}, still) == doctest::Approx(0.0393705098).epsilon(1e-5));
  CHECK(session.run({step, 11}, still) == doctest::Approx(0.0001).epsilon(1e-5));
  double last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto [rate, normal] = session.run({step, 4}, noisy, drawn);
    CHECK(rate == doctest::Approx(0.1 * ((0.25 + 0.6 + normal * std::sqrt(1 / std::pow(5., 0.55))) * 0.5 * (1 + std::cos(0.4 * 3.14159265358979)) + 0.001)).epsilon(1e-9));
    CHECK(rate != last);
    last = rate;
  }
}
