#include <weft/train/metrics.hpp>

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/collections.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using weft::constant;

namespace {
struct fixture {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
};
}  // namespace

TEST_CASE("metrics: a mean over batches, weighted, and started anew") {
  fixture t;
  const auto x = weft::placeholder<std::int32_t, 1>({-1}), w = weft::placeholder<std::int32_t, 1>({-1});
  const auto [mean, update] = weft::streaming_mean(x);
  const auto weighted = weft::streaming_mean(x, w, "weighted");
  weft::local_session session;
  const auto reset = weft::local_variables_initializer();
  session.run(reset);
  using list = std::vector<std::int32_t>;
  CHECK(session.run(mean) == 0.f);
  CHECK(session.run({{x, list{1, 2}}}, update) == 1.5f);
  CHECK(session.run({{x, list{6}}}, update) == 3.f);
  CHECK(session.run(mean) == 3.f);
  CHECK(session.run({{x, list{1, 5}}, {w, list{3, 1}}}, weighted.update) == 2.f);
  CHECK(session.run(weighted.value) == 2.f);
  session.run(reset);
  CHECK(session.run(mean) == 0.f);
  CHECK(weft::global_variables().empty());
  CHECK(weft::local_variables()[2].name() == "weighted/total");
}

TEST_CASE("metrics: what labels and predictions say") {
  fixture t;
  const auto labels = constant(std::vector<std::int64_t>{1, 0, 1, 0}), predictions = constant(std::vector<std::int64_t>{1, 1, 0, 0});
  const auto accuracy = weft::streaming_accuracy(labels, predictions), precision = weft::streaming_precision(labels, predictions);
  const auto recall = weft::streaming_recall(labels, predictions, constant({1.f, 1.f, 3.f, 1.f}));
  const auto words = weft::streaming_accuracy(constant(std::vector<std::string>{"a", "b"}), constant(std::vector<std::string>{"a", "c"}));
  const auto error = weft::streaming_mean_absolute_error(constant({1.f, 2.f}), constant({2.f, 5.f})), squares = weft::streaming_mean_squared_error(constant({1.f, 2.f}), constant({2.f, 5.f}));
  const auto root = weft::streaming_root_mean_squared_error(constant({1.f, 2.f}), constant({2.f, 5.f}));
  weft::local_session session;
  session.run(weft::local_variables_initializer());
  CHECK(session.run(precision.value) == 0.f);
  CHECK(session.run(accuracy.update) == 0.5f);
  CHECK(session.run(precision.update) == 0.5f);
  CHECK(session.run(recall.update) == 0.25f);
  CHECK(session.run(words.update) == 0.5f);
  CHECK(session.run(error.update) == 2.f);
  CHECK(session.run(squares.update) == 5.f);
  CHECK(session.run(root.update) == doctest::Approx(std::sqrt(5.)));
}

// Expected values: areas of these points as the papers and other libraries give them, to the accuracy of 200 thresholds.
TEST_CASE("metrics: the area under a curve says how predictions rank") {
  fixture t;
  const auto area = [](const std::vector<std::int32_t>& labels, const std::vector<float>& predictions, weft::auc_options options = {}) {
    const auto made = weft::streaming_auc(constant(labels), constant(predictions), options);
    weft::local_session session;
    session.run(weft::local_variables_initializer());
    CHECK(session.run(made.value) == 0.f);
    const float after = session.run(made.update);
    CHECK(session.run(made.value) == after);
    return after;
  };
  const auto near = [](double x) { return doctest::Approx(x).epsilon(2e-3); };
  const std::vector<std::int32_t> labels{0, 0, 1, 1};
  CHECK(area(labels, {0.1f, 0.4f, 0.35f, 0.8f}) == near(0.75));
  CHECK(area(labels, {0.f, 0.2f, 0.9f, 1.f}) == near(1));
  CHECK(area(labels, {1.f, 0.9f, 0.2f, 0.f}) == doctest::Approx(0).epsilon(1e-3));
  CHECK(area({0, 1, 1, 0}, {1.f, 0.f, 1.f, 0.f}) == near(0.5));
  CHECK(area({1, 1, 1}, {1.f, 1.f, 1.f}) == near(0));
  const weft::auc_options precision{200, weft::auc_curve::precision_recall};
  CHECK(area(labels, {0.1f, 0.4f, 0.35f, 0.8f}, precision) == near(0.7917));
  CHECK(area({0, 0, 1, 0, 1, 0, 1}, {0.1f, 0.4f, 0.35f, 0.8f, 0.1f, 0.135f, 0.81f}, precision) == near(0.6103));
  CHECK(area({0, 0, 0, 0, 1, 1, 1}, {0.f, 0.1f, 0.2f, 0.33f, 0.3f, 0.4f, 0.5f}, precision) == near(0.9028));
  CHECK(area(labels, {0.1f, 0.4f, 0.35f, 0.8f}, {2, weft::auc_curve::roc}) == near(0.5));  // all are said to be positive, or none
}

TEST_CASE("metrics: an area is taken over batches, with weights, of probabilities") {
  fixture t;
  const auto predictions = weft::placeholder<float, 2>({-1, -1});
  const auto labels = weft::placeholder<bool, 2>({-1, -1});
  const auto plain = weft::streaming_auc(labels, predictions), weighted = weft::streaming_auc(labels, predictions, constant(xt::xtensor<float, 2>{{1.f, 2.f}, {3.f, 4.f}}));
  weft::local_session session;
  session.run(weft::local_variables_initializer());
  using values = xt::xtensor<float, 2>;
  using flags = xt::xtensor<bool, 2>;
  const auto both = session.run({{predictions, values{{1.f, 0.f}, {1.f, 0.f}}}, {labels, flags{{false, true}, {true, false}}}}, plain.update, weighted.update);
  CHECK(std::get<0>(both) == doctest::Approx(0.5).epsilon(1e-3));
  CHECK(std::get<1>(both) == doctest::Approx(0.7).epsilon(1e-3));
  session.run(weft::local_variables_initializer());
  session.run({{predictions, values{{0.1f, 0.35f}}}, {labels, flags{{false, true}}}}, plain.update);
  CHECK(session.run({{predictions, values{{0.4f}, {0.8f}}}, {labels, flags{{false}, {true}}}}, plain.update) == doctest::Approx(0.75).epsilon(2e-3));
  for (const float wrong : {-0.1f, 1.1f, std::nanf("")})
    CHECK_THROWS_WITH_AS(session.run({{predictions, values{{wrong}}}, {labels, flags{{true}}}}, plain.update), doctest::Contains("predictions must be in [0, 1]"), weft::error);
  CHECK(session.run(plain.value) == doctest::Approx(0.75).epsilon(2e-3));
  CHECK_THROWS_WITH_AS((void)weft::streaming_auc(labels, predictions, {1}, {"a", {"user.cpp", 3}}), "INVALID_ARGUMENT: user.cpp:3: a: expected at least 2 thresholds, found 1", weft::error);
}

TEST_CASE("metrics: shapes that do not fit") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)weft::streaming_accuracy(constant({1, 2}), constant({1, 2, 3}), {"a", {"user.cpp", 3}}), "INVALID_ARGUMENT: user.cpp:3: a: labels and predictions must have one shape, found [2] and [3]",
                       weft::error);
  CHECK_THROWS_AS((void)weft::streaming_mean(constant({1, 2}), constant({1, 2, 3})), weft::error);
}
