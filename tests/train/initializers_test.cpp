#include <weft/train/initializers.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using weft::graph;
using weft::initializer;
using weft::initializer_request;
using weft::shape;
using weft::tensor;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
};
template <class T> std::vector<T> numbers(const initializer& from, const initializer_request& asked) {
  const tensor<T> made(from.make(asked));
  weft::local_session session;
  const auto v = session.run(made);
  return std::vector<T>(v.begin(), v.end());
}
std::string message(const initializer& from, const initializer_request& asked) {
  try {
    (void)from.make(asked);
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}
}  // namespace

TEST_CASE("initializers: numbers of every dtype") {
  fixture t;
  CHECK(numbers<float>(weft::zeros_initializer(), {{2}, weft::dtype::float32}) == std::vector<float>{0, 0});
  CHECK(numbers<std::int64_t>(weft::ones_initializer(), {{2}, weft::dtype::int64}) == std::vector<std::int64_t>{1, 1});
  CHECK(numbers<bool>(weft::ones_initializer(), {{1}, weft::dtype::boolean}) == std::vector<bool>{true});
  CHECK(numbers<std::string>(weft::zeros_initializer(), {{1}, weft::dtype::string}) == std::vector<std::string>{""});
  CHECK(numbers<double>(weft::constant_initializer(2.5), {{}, weft::dtype::float64}) == std::vector<double>{2.5});
  CHECK(numbers<std::int32_t>(weft::constant_initializer({1, 2}), {{2, 2}, weft::dtype::int32}) == std::vector<std::int32_t>{1, 2, 2, 2});
  CHECK(numbers<std::int64_t>(weft::constant_initializer(std::int64_t{9007199254740993}), {{1, 2}, weft::dtype::int64}) == std::vector<std::int64_t>{9007199254740993, 9007199254740993});
  CHECK(numbers<float>(weft::zeros_initializer(), {{0, 3}, weft::dtype::float32}).empty());
  CHECK(weft::zeros_initializer().make({{2}, weft::dtype::complex64}).from->op() == "Const");
}

TEST_CASE("initializers: a large constant is filled when it runs") {
  fixture t;
  CHECK(weft::ones_initializer().make({{999}}).from->op() == "Const");
  CHECK(weft::ones_initializer().make({{1000}}).from->op() == "Fill");
  CHECK(weft::constant_initializer(0.5).make({{40, 40}}).from->op() == "Fill");
}

TEST_CASE("initializers: what a variable cannot start with") {
  fixture t;
  CHECK(message(weft::constant_initializer({1., 2., 3.}), {{2}}) == "a variable of shape [2] takes at most 2 first values, found 3");
  CHECK(message(weft::constant_initializer(0.5), {{2}, weft::dtype::int32}) == "the first value 0.500000 of a variable is no int32");
  CHECK(message(weft::constant_initializer(300), {{2}, weft::dtype::uint8}) == "the first value 300.000000 of a variable is no uint8");
  CHECK(message(weft::constant_initializer(std::nan("")), {{2}, weft::dtype::int64}) == "the first value nan of a variable is no int64");
  CHECK(message(weft::ones_initializer(), {{2}, weft::dtype::string}) == "a variable of dtype string does not start as a number");
  CHECK(message(weft::constant_initializer(std::vector<double>()), {{2}}) == "a variable of shape [2] takes a first value, found none");
  CHECK(message(weft::truncated_normal_initializer(), {{2}, weft::dtype::int32}) == "normal numbers are float, double, half or bfloat16; the variable is int32");
  CHECK(message(weft::random_uniform_initializer(), {{2}, weft::dtype::string}) == "random numbers are float, double, half or bfloat16; the variable is string");
  CHECK(message(weft::orthogonal_initializer(), {{4}}) == "an orthogonal variable has at least two dimensions, found shape [4]");
  CHECK(message(weft::identity_initializer(), {{2, 2, 2}}) == "an identity is a matrix, found shape [2,2,2]");
  CHECK(message(initializer(), {{2}}) == "the initializer is empty");
  CHECK_THROWS_AS((void)weft::variance_scaling_initializer(0), weft::error);
}

TEST_CASE("initializers: one of your own must fit") {
  fixture t;
  const initializer twos = [](const initializer_request& asked) { return weft::constant(std::vector<float>(static_cast<std::size_t>(asked.shape.elements()), 2.f)).raw(); };
  CHECK(numbers<float>(twos, {{3}}) == std::vector<float>{2, 2, 2});
  CHECK(message(twos, {{3}, weft::dtype::float64}) == "the initializer made float for a variable of dtype double");
  CHECK(message(twos, {{3, 1}}) == "the initializer made shape [3] for a variable of shape [3,1]");
  CHECK(message(initializer([](const initializer_request&) { return weft::output(); }), {{3}}) == "the initializer made no node");
}

TEST_CASE("initializers: limits follow the fans of the whole variable") {
  fixture t;
  // 3 x 3 x 2 x 4: 18 inputs and 36 outputs.
  const auto limit = [](const std::vector<float>& all) { return *std::max_element(all.begin(), all.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }); };
  const float glorot = std::abs(limit(numbers<float>(weft::glorot_uniform_initializer(7), {{3, 3, 2, 4}})));
  CHECK(glorot <= std::sqrt(3.f / 27));
  CHECK(glorot > 0.9f * std::sqrt(3.f / 27));
  // A piece of two rows of a variable with 300 inputs draws no larger numbers than the whole.
  const float piece = std::abs(limit(numbers<float>(weft::he_uniform_initializer(7), {{2, 50}, weft::dtype::float32, shape{300, 50}, {4, 0}})));
  CHECK(piece <= std::sqrt(6.f / 300));
  CHECK(piece > 0.9f * std::sqrt(6.f / 300));
}

TEST_CASE("initializers: orthogonal rows, of any shape and also as half") {
  fixture t;
  const std::vector<float> q = numbers<float>(weft::orthogonal_initializer(2, 5), {{3, 40}});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 40; ++k) sum += q[i * 40 + k] * q[j * 40 + k];
      CHECK(sum == doctest::Approx(i == j ? 4 : 0).epsilon(1e-5));
    }
  CHECK(numbers<weft::half>(weft::orthogonal_initializer(), {{2, 2, 3}, weft::dtype::half}).size() == 12);
  CHECK(numbers<float>(weft::orthogonal_initializer(), {{0, 3}}).empty());
}

TEST_CASE("initializers: a large identity, and pieces of one") {
  fixture t;
  const std::vector<float> all = numbers<float>(weft::identity_initializer(3), {{50, 40}});
  bool right = all.size() == 2000;
  for (std::size_t i = 0; i < all.size(); ++i) right = right && all[i] == (i / 40 == i % 40 ? 3.f : 0.f);
  CHECK(right);
  CHECK(numbers<float>(weft::identity_initializer(), {{1, 3}, weft::dtype::float32, shape{3, 3}, {2, 0}}) == std::vector<float>{0, 0, 1});
  const std::vector<float> piece = numbers<float>(weft::identity_initializer(), {{40, 30}, weft::dtype::float32, shape{80, 30}, {10, 0}});
  CHECK(std::count(piece.begin(), piece.end(), 1.f) == 20);
  CHECK(piece[10] == 1.f);
}

TEST_CASE("initializers: the same seeds give the same numbers, and a tensor of a known rank") {
  fixture t;
  const tensor<double, 2> a = weft::random_normal_initializer(0, 1, 3).operator()<double>({2, 3}), b = weft::random_normal_initializer(0, 1, 3).operator()<double>({2, 3});
  const tensor<float, 1> c = weft::glorot_normal_initializer()({4});
  CHECK(c.shape().text() == "[4]");
  weft::local_session session;
  CHECK(session.run(a) == session.run(b));
  CHECK(numbers<std::int32_t>(weft::random_uniform_initializer(5, 6), {{3}, weft::dtype::int32}) == std::vector<std::int32_t>{5, 5, 5});
}
