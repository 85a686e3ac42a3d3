#include <weft/train/regularizers.hpp>

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <vector>

TEST_CASE("regularizers: penalties by hand") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(std::vector<std::vector<double>>{{1, -2}, {3, 0}});
  const auto l1 = weft::l1_regularizer(0.5)(x), l2 = weft::l2_regularizer(0.1)(x), both = weft::l1_l2_regularizer(0.5, 0.1)(x);
  weft::local_session session;
  CHECK(session.run(l1) == doctest::Approx(3));
  CHECK(session.run(l2) == doctest::Approx(0.7));
  CHECK(session.run(both) == doctest::Approx(3.7));
  CHECK(weft::l2_regularizer(0).empty());
  CHECK(weft::regularizer([](const weft::output&, weft::call_site) { return weft::output(); })(x).empty());
}

TEST_CASE("regularizers: misuse") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::call_site here{"user.cpp", 2};
  CHECK_THROWS_WITH_AS((void)weft::l1_regularizer(-1, here), "INVALID_ARGUMENT: user.cpp:2: the scale of a regularizer must not be negative, found -1.000000", weft::error);
  CHECK_THROWS_WITH_AS((void)weft::l2_regularizer(1)(weft::constant(1), here), "INVALID_ARGUMENT: user.cpp:2: only values of floating dtypes are penalised, found int32", weft::error);
  CHECK_THROWS_WITH_AS((void)weft::regularizer()(weft::constant(1.f), here), "INVALID_ARGUMENT: user.cpp:2: the regularizer is empty", weft::error);
  const weft::regularizer same = [](const weft::output& x, weft::call_site) { return x; };
  CHECK_THROWS_WITH_AS((void)same(weft::constant({1.f}, "x"), here), "INVALID_ARGUMENT: user.cpp:2: a penalty is a scalar, the regularizer made 'x' of shape [1]", weft::error);
}
