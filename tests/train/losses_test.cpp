#include <weft/train/losses.hpp>

#include <doctest/doctest.h>
#include <weft/gradients.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/regularizers.hpp>
#include <weft/train/variable_scope.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using weft::constant;
using weft::loss_reduction;
using weft::tensor;

namespace {
struct fixture {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
};
using rows = std::vector<std::vector<float>>;
template <class Call> std::string message(Call&& call) {
  try {
    (void)call();
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}
}  // namespace

TEST_CASE("losses: the reductions, by hand") {
  fixture t;
  // Squares 1, 4, 9, 16 with weights 1 and 0 for the rows.
  const auto labels = constant(rows{{0, 0}, {0, 0}}), predictions = constant(rows{{1, 2}, {3, 4}}), weights = constant(rows{{2}, {0}});
  const auto by_nonzero = weft::mean_squared_error(labels, predictions, weights);
  static_assert(std::is_same_v<decltype(by_nonzero), const tensor<float, 0>>);
  const auto sum = weft::mean_squared_error(labels, predictions, weights, loss_reduction::weighted_sum);
  const auto mean = weft::mean_squared_error(labels, predictions, weights, loss_reduction::weighted_mean);
  const auto over_all = weft::mean_squared_error(labels, predictions, weights, loss_reduction::sum_over_batch_size);
  const auto each = weft::mean_squared_error(labels, predictions, weights, weft::no_reduction);
  const auto none = weft::mean_squared_error(labels, predictions, 0);
  weft::local_session session;
  CHECK(session.run(by_nonzero) == 5.f);
  CHECK(session.run(sum) == 10.f);
  CHECK(session.run(mean) == 2.5f);
  CHECK(session.run(over_all) == 2.5f);
  CHECK(session.run(each)(0, 1) == 8.f);
  CHECK(session.run(none) == 0.f);
  CHECK(by_nonzero.name() == "mean_squared_error");
  CHECK(weft::get_losses().size() == 6);
}

TEST_CASE("losses: labels of other dtypes, predictions of double and half") {
  fixture t;
  const auto whole = constant(std::vector<std::int64_t>{1, 0});
  const tensor<double, 0> precise = weft::absolute_difference(whole, constant(std::vector<double>{1. / 3, 0}));
  const tensor<weft::half, 0> small = weft::huber_loss(whole, weft::cast<weft::half>(constant({3.f, 0.f})));
  const tensor<float, 0> binary = weft::sigmoid_cross_entropy(constant({true, false}), constant({0.f, 0.f}));
  weft::local_session session;
  CHECK(session.run(precise) == doctest::Approx(1. / 3).epsilon(1e-14));
  CHECK(static_cast<float>(session.run(small)) == 0.75f);
  CHECK(session.run(binary) == doctest::Approx(std::log(2.)));
}

TEST_CASE("losses: class numbers as a column, and their weights") {
  fixture t;
  const auto logits = constant(rows{{0, 0}, {std::log(3.f), 0}});
  const tensor<float, 1> each = weft::sparse_softmax_cross_entropy(constant(std::vector<std::vector<std::int32_t>>{{0}, {1}}), logits, constant(rows{{1}, {2}}), weft::no_reduction);
  weft::local_session session;
  const auto value = session.run(each);
  CHECK(value(0) == doctest::Approx(std::log(2.)));
  CHECK(value(1) == doctest::Approx(2 * std::log(4.)));
}

TEST_CASE("losses: what does not fit") {
  fixture t;
  const auto two = constant({1.f, 2.f}), three = constant({1.f, 2.f, 3.f});
  const auto matrix = constant(rows{{1, 2, 3}, {4, 5, 6}});
  CHECK(message([&] { return weft::mean_squared_error(two, three); }) == "mean_squared_error: labels and predictions must have one shape, found [2] and [3]");
  CHECK(message([&] { return weft::mean_squared_error(matrix, matrix, two); }) ==
        "mean_squared_error_1: weights of shape [2] do not fit losses of shape [2,3]: they must be a scalar or have as many dimensions");
  CHECK(message([&] { return weft::mean_squared_error(matrix, matrix, constant(rows{{1}, {2}, {3}})); }) ==
        "mean_squared_error_2: weights of shape [3,1] do not fit losses of shape [2,3]: each size must be 1 or the same");
  CHECK(message([&] { return weft::cosine_distance(matrix, matrix, 2); }) == "cosine_distance_loss: axis 2 is outside the dimensions of shape [2,3]");
  CHECK(message([&] { return weft::sparse_softmax_cross_entropy(constant(std::vector<std::vector<std::int32_t>>{{0, 1}}), constant(rows{{1, 2}})); }) ==
        "sparse_softmax_cross_entropy_loss: labels are one number for each row of logits, found shapes [1,2] and [1,2]");
  CHECK(message([&] { return weft::mean_pairwise_squared_error(constant(1.f), constant(1.f)); }) == "mean_pairwise_squared_error: the predictions must have a batch dimension, found a scalar");
}

TEST_CASE("losses: weights of unknown shape are checked when they are computed") {
  fixture t;
  const auto values = weft::placeholder<float>(), weights = weft::placeholder<float>();
  const auto loss = weft::compute_weighted_loss(values, weights);
  weft::local_session session;
  using value = weft::tensor_value;
  const auto matrix = value::from<float>({2, 2}, {1, 2, 3, 4});
  const auto run = [&](const value& w) { return session.run({{values, matrix}, {weights, w}}, loss); };
  CHECK(run(value::scalar(2.f)) == 5.f);
  CHECK(run(value::from<float>({2, 1}, {0, 1})) == 3.5f);
  CHECK_THROWS_AS((void)run(value::from<float>({3, 2}, {1, 1, 1, 1, 1, 1})), weft::error);
  CHECK_THROWS_AS((void)run(value::from<float>({2, 2, 1}, {1, 1, 1, 1})), weft::error);
}

TEST_CASE("losses: the total, with penalties") {
  fixture t;
  weft::local_session session;
  CHECK(session.run(weft::get_total_loss()) == 0.f);
  weft::variable_options options(weft::constant_initializer(2));
  options.regularizer = weft::l2_regularizer(1);
  const auto w = weft::get_variable<float>("w", {2}, options);
  (void)weft::mean_squared_error(constant({1.f, 2.f}), w);
  weft::loss_options aside;
  aside.collection = weft::loss_collection::left_out;
  (void)weft::mean_squared_error(constant({1.f, 2.f}), w, 1, aside);
  weft::add_loss(weft::reduce_sum(w));
  CHECK(weft::get_losses().size() == 2);
  CHECK(weft::get_regularization_losses().size() == 1);
  const auto total = weft::get_total_loss(), penalties = weft::get_regularization_loss();
  const auto gradient = weft::gradients(total, w);
  session.run(weft::global_variables_initializer());
  CHECK(session.run(total) == 0.5f + 4 + 4);
  CHECK(session.run(penalties) == 4.f);
  CHECK(session.run(gradient)(0) == 1 + 1 + 2.f);
  CHECK_THROWS_AS((void)weft::get_total_loss<double>(), weft::error);
  (void)weft::mean_squared_error(constant({1.f, 2.f}), w, 1, weft::no_reduction);
  CHECK(message([] { return weft::get_total_loss(); }).find("has shape [2] and cannot be added to others; reduce it") != std::string::npos);
}
