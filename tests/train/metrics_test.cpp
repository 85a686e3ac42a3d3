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

TEST_CASE("metrics: shapes that do not fit") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)weft::streaming_accuracy(constant({1, 2}), constant({1, 2, 3}), {"a", {"user.cpp", 3}}), "INVALID_ARGUMENT: user.cpp:3: a: labels and predictions must have one shape, found [2] and [3]",
                       weft::error);
  CHECK_THROWS_AS((void)weft::streaming_mean(constant({1, 2}), constant({1, 2, 3})), weft::error);
}
