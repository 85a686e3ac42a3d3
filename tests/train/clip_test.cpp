#include <weft/train/clip.hpp>

#include <weft/graph.hpp>
#include <weft/gradients.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/optimizers.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

TEST_CASE("clip: by value, by norm, by average norm") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant({{3.f, -4.f}, {0.f, 0.f}});
  weft::local_session session;
  CHECK(session.run(weft::clip_by_value(x, -1, 2)) == xt::xtensor<float, 2>{{2, -1}, {0, 0}});
  CHECK(session.run(weft::clip_by_value(x, weft::constant({-2.f, 0.f}), weft::constant(1.f))) == xt::xtensor<float, 2>{{1, 0}, {0, 0}});
  CHECK(xt::allclose(session.run(weft::clip_by_norm(x, 1.f)), xt::xtensor<float, 2>{{0.6f, -0.8f}, {0, 0}}));
  CHECK(session.run(weft::clip_by_norm(x, 6.f)) == xt::xtensor<float, 2>{{3, -4}, {0, 0}});
  // Along axis 1 the second row has norm zero and stays.
  CHECK(xt::allclose(session.run(weft::clip_by_norm(x, 10.f, {1})), xt::xtensor<float, 2>{{3, -4}, {0, 0}}));
  // The average norm is 5 / 4.
  CHECK(xt::allclose(session.run(weft::clip_by_average_norm(x, 0.25f)), xt::xtensor<float, 2>{{0.6f, -0.8f}, {0, 0}}));
}

TEST_CASE("clip: the norm of all gradients, dense and sparse, scales all") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 1> w(xt::xtensor<float, 1>{1, 2}, "w");
  const weft::variable<float, 2> table(xt::xtensor<float, 2>{{1, 1}, {1, 1}}, "table");
  const weft::variable<float, 0> other(0.f, "other");
  weft::gradient_descent_optimizer descent(1.f);
  // The gradients are [3, 0] and one row [0, 4].
  const auto loss = weft::reduce_sum(w * weft::constant({3.f, 0.f})) + weft::reduce_sum(weft::gather(table, weft::constant({1})) * weft::constant({{0.f, 4.f}}));
  const auto gradients = descent.compute_gradients(loss);
  const auto [clipped, norm] = weft::clip_by_global_norm(gradients, 1.f);
  CHECK(clipped[1].gradient.is_sparse());
  CHECK(clipped[2].gradient.empty());
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  CHECK(session.run(norm) == 5.f);
  session.run(descent.apply_gradients(clipped));
  CHECK(xt::allclose(session.run(w), xt::xtensor<float, 1>{0.4f, 2}));
  CHECK(xt::allclose(session.run(table), xt::xtensor<float, 2>{{1, 1}, {1, 0.2f}}));
}

TEST_CASE("clip: misuse") {
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
  const auto x = weft::constant({{1.f, 2.f}}, "x");
  CHECK(message_of([&] { weft::clip_by_value(x, weft::constant({0.f, 0.f, 0.f}), weft::constant(1.f)); }) == "clip_by_value: a bound of shape [3] does not broadcast to the shape [1,2] of x");
  CHECK(message_of([&] { weft::global_norm(std::vector<weft::gradient_output>(2)); }) == "global_norm: there are no gradients");
  CHECK(message_of([&] { weft::global_norm<double>(std::vector<weft::gradient_output>{x}); }) == "global_norm: the gradient 'x' is float, not double; name the dtype, as in global_norm<double>(...)");
}
