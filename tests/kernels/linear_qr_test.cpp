#include <weft/kernels/linear_qr.hpp>

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

using weft::tensor;

namespace {
struct fixture {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
};
using rows = std::vector<std::vector<double>>;
}  // namespace

TEST_CASE("qr: a matrix whose decomposition is known") {
  fixture t;
  const auto a = weft::constant(rows{{12, -51, 4}, {6, 167, -68}, {-4, 24, -41}});
  const auto [q, r] = weft::qr(a);
  weft::local_session session;
  const auto [q_value, r_value] = session.run(q, r);
  // Up to the sign of each column of Q and row of R: Q R = A, by hand.
  const double known_q[3][3] = {{6. / 7, -69. / 175, -58. / 175}, {3. / 7, 158. / 175, 6. / 175}, {-2. / 7, 6. / 35, -33. / 35}}, known_r[3][3] = {{14, 21, -14}, {0, 175, -70}, {0, 0, 35}};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK(q_value(i, j) * (r_value(j, j) < 0 ? -1 : 1) == doctest::Approx(known_q[i][j]).epsilon(1e-12));
      CHECK(r_value(i, j) * (r_value(i, i) < 0 ? -1 : 1) == doctest::Approx(known_r[i][j]).epsilon(1e-12));
    }
  CHECK(r_value(0, 0) < 0);
}

TEST_CASE("qr: batches, wide and tall matrices, full Q, float and half") {
  fixture t;
  weft::local_session session;
  const auto a = weft::random_normal({2, 5, 3}, 0.f, 1.f, 11);
  const auto wide = weft::random_normal({2, 3, 5}, 0.f, 1.f, 12);
  for (const tensor<float, 3>& x : {a, wide}) {
    const auto [q, r] = weft::qr(x);
    CHECK(q.shape()[2] == 3);
    CHECK(r.shape()[1] == 3);
    const auto off = weft::reduce_max(weft::abs(weft::batch_matmul(q, r) - x));
    const auto product = weft::batch_matmul(q, q, weft::transpose_a);
    const auto [far, unit] = session.run(off, product);
    CHECK(far < 1e-5f);
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) CHECK(std::abs(unit(1, i, j) - (i == j ? 1 : 0)) < 1e-5f);
  }
  const weft::node& full = weft::detail::add_node("Qr", {a.raw()}, weft::op_name(), {{"full_matrices", true}});
  CHECK(full.output_shape(0).text() == "[2,5,5]");
  CHECK(full.output_shape(1).text() == "[2,5,3]");
  const tensor<float, 3> q(weft::output{&full, 0}), r(weft::output{&full, 1});
  CHECK(session.run(weft::reduce_max(weft::abs(weft::batch_matmul(q, r)) - weft::abs(a)) < 1e-5f));
  const auto small = weft::qr(weft::cast<weft::half>(weft::constant(rows{{1, 2}, {3, 4}})));
  CHECK(std::abs(static_cast<float>(session.run(std::get<1>(small))(0, 0)) + std::sqrt(10.f)) < 0.01f);
}

TEST_CASE("qr: empty, zero, huge and broken matrices") {
  fixture t;
  weft::local_session session;
  for (const auto& x : {weft::zeros<double>({0, 3}), weft::zeros<double>({3, 0}), weft::zeros<double>({2, 2})}) {
    const auto [q, r] = weft::qr(x);
    const auto [q_value, r_value] = session.run(q, r);
    CHECK(q_value.shape()[0] == static_cast<std::size_t>(x.shape()[0]));
    CHECK(r_value.shape()[1] == static_cast<std::size_t>(x.shape()[1]));
  }
  const auto huge = weft::qr(weft::constant(rows{{3e300, 0}, {4e300, 1}}));
  CHECK(session.run(std::get<1>(huge))(0, 0) == doctest::Approx(-5e300));
  const auto broken = weft::qr(weft::constant(rows{{std::numeric_limits<double>::quiet_NaN(), 1}, {1, 2}}));
  CHECK(std::isnan(session.run(std::get<0>(broken))(0, 0)));
  CHECK_THROWS_WITH_AS((void)weft::qr(tensor<double>(weft::constant(1.)), {"q", {"user.cpp", 3}}), "INVALID_ARGUMENT: Qr 'q' (user.cpp:3): the input must have at least two dimensions, found shape []",
                       weft::error);
}
