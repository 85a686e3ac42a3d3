#include <weft/gradients/linear.hpp>

#include "../error_of.hpp"

#include <weft/gradients.hpp>
#include <weft/session.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using rows = std::vector<std::vector<double>>;

/// sum(i q_i^2) + sum(r_i^2 / i) over the elements of Q and R, counted from 1 row by row: the signs of their columns and rows do not matter.
template <class T> weft::tensor<T, 0> weighed_squares(const weft::tensor<T, 2>& a) {
  const auto [q, r] = weft::qr(a);
  const auto count = [](const weft::tensor<T, 2>& x) {
    const std::int64_t height = x.shape()[0], width = x.shape()[1];
    return weft::cast<T>(weft::reshape(weft::range(1.f, static_cast<float>(height * width + 1), 1.f), {height, width}));
  };
  return weft::reduce_sum(count(q) * weft::square(q)) + weft::reduce_sum(weft::square(r) / count(r));
}

/// What asking for the gradient of the R of x, of this dtype and shape, ends with.
std::string gradient_error(const weft::partial_shape& shape, bool full = false, weft::dtype type = weft::dtype::float32) {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto placeholder = [&](const weft::partial_shape& s) {
    weft::node_spec spec;
    spec.op = "Placeholder";
    spec.attrs = {{"dtype", type}, {"shape", s}};
    return weft::output{&graph.add(std::move(spec)), 0};
  };
  const weft::output x = placeholder(shape);
  const weft::node& made = weft::detail::add_node("Qr", {x}, {"q", {"user.cpp", 3}}, {{"full_matrices", full}});
  weft::gradient_options options;
  options.grad_ys = {placeholder(made.output_shape(1))};
  return error_of([&] { (void)weft::gradients(std::vector<weft::output>{{&made, 1}}, {x}, options); }).text();
}

}  // namespace

TEST_CASE("gradients of qr: of one column, by hand") {
  weft::graph graph;
  const auto scope = graph.as_default();
  // R is the norm, with the sign s that makes it -5, and Q = a / R: dR = s a / 5, dQ_0 = (1 - q_0^2, -q_0 q_1) / R.
  const auto a = weft::constant(rows{{3}, {4}});
  const auto [q, r] = weft::qr(a);
  const auto from_r = weft::gradients(r, a), from_q = weft::gradients(q * weft::constant(rows{{1}, {0}}), a);
  weft::session session;
  const auto [dr, dq] = session.run(from_r, from_q);
  CHECK(dr(0, 0) == doctest::Approx(-0.6));
  CHECK(dr(1, 0) == doctest::Approx(-0.8));
  CHECK(dq(0, 0) == doctest::Approx(-0.128));
  CHECK(dq(1, 0) == doctest::Approx(0.096));
}

TEST_CASE("gradients of qr: as those of Gram and Schmidt's method in 60 digits") {
  weft::graph graph;
  const auto scope = graph.as_default();
  weft::session session;
  const rows matrices[] = {{{2, -1}, {1, 3}}, {{1, 2, 0}, {3, -1, 1}, {2, 2, -2}, {0, 1, 4}}};
  const rows expected[] = {{{3.86, -0.3}, {2.28, 1.6}},
                           {{1.8913802438562608, -0.5034774745535477, -0.42518145753248576},
                            {5.703194002158914, -0.23882538858475424, 0.0857956639582769},
                            {4.499518874833498, 2.1099768201539053, -0.2494361005045058},
                            {0.14316447226238863, 0.9338902059288166, 1.0302688752703553}}};
  for (std::size_t k = 0; k < 2; ++k) {
    const auto a = weft::constant(matrices[k]);
    const auto single = weft::cast<float>(a);
    const auto small = weft::cast<weft::half>(a);
    const auto [d, f, h] = session.run(weft::gradients(weighed_squares<double>(a), a), weft::gradients(weighed_squares<float>(single), single), weft::gradients(weighed_squares<weft::half>(small), small));
    for (std::size_t i = 0; i < matrices[k].size(); ++i)
      for (std::size_t j = 0; j < matrices[k][i].size(); ++j) {
        const double value = expected[k][i][j];
        CHECK(std::abs(d(i, j) - value) < 1e-12);
        CHECK(std::abs(static_cast<double>(f(i, j)) - value) < 1e-5);
        CHECK(std::abs(static_cast<double>(static_cast<float>(h(i, j))) - value) < 0.1);
      }
  }
}

TEST_CASE("gradients of qr: of batches whose size is not known, and of both outputs together") {
  weft::graph graph;
  const auto scope = graph.as_default();
  // Q R is the matrix itself, so that the gradient is what came.
  const auto x = weft::placeholder<double, 3>({weft::unknown, 3, 2});
  const auto [q, r] = weft::qr(x);
  const auto g = weft::gradients(weft::square(weft::batch_matmul(q, r)), x);
  weft::session session;
  xt::xtensor<double, 3> value = xt::zeros<double>({4, 3, 2});
  for (std::size_t i = 0; i < value.size(); ++i) value.data()[i] = std::cos(static_cast<double>(i * i));
  const auto found = session.run({{x, value}}, g);
  REQUIRE(found.size() == value.size());
  for (std::size_t i = 0; i < value.size(); ++i) CHECK(found.data()[i] == doctest::Approx(2 * value.data()[i]).epsilon(1e-10));
}

TEST_CASE("gradients of qr: keep float's digits for matrices of some size") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto a = weft::random_normal({60, 37}, 0.f, 1.f, 3);
  const auto wide = weft::cast<double>(a);
  const auto size = weft::gradients(weighed_squares<double>(wide), wide);
  const auto difference = weft::cast<double>(weft::gradients(weighed_squares<float>(a), a)) - size;
  weft::session session;
  const auto [off, largest] = session.run(weft::reduce_max(weft::abs(difference)), weft::reduce_max(weft::abs(size)));
  CHECK(largest > 10);
  CHECK(off < 1e-5 * largest);
}

TEST_CASE("gradients of qr: what has none is an error that says why") {
  CHECK(gradient_error({2, 3, 5}) == "UNIMPLEMENTED: Qr 'q' (user.cpp:3): the gradient needs matrices with at least as many rows as columns, found shape [2,3,5]");
  CHECK(gradient_error({5, 3}, true) == "UNIMPLEMENTED: Qr 'q' (user.cpp:3): the gradient with full_matrices needs square matrices, found shape [5,3]; leave full_matrices false");
  CHECK(gradient_error({-1, 3}) == "UNIMPLEMENTED: Qr 'q' (user.cpp:3): the gradient needs matrices whose numbers of rows and columns are known while the graph is built, found shape [?,3]; give the input its shape, for example with ensure_shape");
  CHECK(gradient_error(weft::partial_shape()) == "UNIMPLEMENTED: Qr 'q' (user.cpp:3): the gradient needs matrices whose numbers of rows and columns are known while the graph is built, found shape <unknown>; give the input its shape, for example with ensure_shape");
  CHECK(gradient_error({3, 3}, false, weft::dtype::complex64) == "UNIMPLEMENTED: Qr 'q' (user.cpp:3): the gradient needs a real dtype, found complex64");
  CHECK(gradient_error({-1, 5, 3}) == "OK");
  CHECK(gradient_error({3, 3}, true) == "OK");
}
