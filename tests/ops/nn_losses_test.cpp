#include <weft/ops/nn_losses.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session.hpp>

#include <cmath>
#include <string>
#include <vector>

using ops_test::message;
using ops_test::shape;
using weft::graph;
using weft::placeholder;
using weft::unknown;

namespace {
template <class T, int N> void check_values(const weft::tensor<T, N>& t, const std::vector<double>& wanted) { ops_test::check_values(t, wanted, 1e-9); }
}  // namespace

TEST_CASE("losses: values") {
  const graph g;
  const auto scope = g.as_default();
  const auto z = weft::constant({1.0, 0.0, 0.5}), x = weft::constant({2.0, -3.0, 0.0});
  // log(1 + e^-2), log(1 + e^-3), log 2
  check_values(weft::sigmoid_cross_entropy_with_logits(z, x), {0.1269280110429725, 0.04858735157374191, 0.6931471805599453});
  check_values(weft::weighted_cross_entropy_with_logits(z, x, 3.0), {0.3807840331289175, 0.04858735157374191, 1.3862943611198906});
  check_values(weft::weighted_cross_entropy_with_logits(z, x, weft::constant(1.0)), {0.1269280110429725, 0.04858735157374191, 0.6931471805599453});
  const auto counts = weft::constant({2.0, 0.5}), log_means = weft::constant({0.0, 1.0});
  check_values(weft::log_poisson_loss(counts, log_means), {1, 2.718281828459045 - 0.5});
  // Stirling's approximation of log 2! is 2 log 2 - 2 + log(4 pi) / 2.
  check_values(weft::log_poisson_loss(counts, log_means, weft::poisson_loss::full), {1.651806484604536, 2.718281828459045 - 0.5});
  const auto scores = weft::constant({{{0.0, 0.0, 0.0}, {1.0, 2.0, 3.0}}}), one_hot = weft::constant({{{0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}}});
  check_values(weft::softmax_cross_entropy_with_logits(one_hot, scores), {1.0986122886681098, 0.40760596444438});
  check_values(weft::sparse_softmax_cross_entropy_with_logits(weft::constant({{1, 2}}), scores), {1.0986122886681098, 0.40760596444438});
  check_values(weft::sparse_softmax_cross_entropy_with_logits(weft::tensor<int>(weft::constant({{1, 2}})), weft::tensor<double>(scores)), {1.0986122886681098, 0.40760596444438});
}

TEST_CASE("softmax cross entropies: one node for matrices") {
  const graph g;
  const auto scope = g.as_default();
  const auto logits = placeholder<float>({unknown, 3}, "logits"), labels = placeholder<float>({2, 3}, "labels");
  const auto classes = placeholder<std::int32_t>({2}, "classes");
  const auto a = weft::softmax_cross_entropy_with_logits_v2(labels, logits, "a");
  const auto b = weft::softmax_cross_entropy_with_logits(labels, logits, "b");
  const auto c = weft::sparse_softmax_cross_entropy_with_logits(classes, logits, "c");
  CHECK(to_text(g) ==
        "logits = Placeholder()  float[?,3]  {shape=[?,3]}\n"
        "labels = Placeholder()  float[2,3]  {shape=[2,3]}\n"
        "classes = Placeholder()  int32[2]  {shape=[2]}\n"
        "a = SoftmaxCrossEntropyWithLogits(logits, labels)  float[2], float[2,3]\n"
        "b/labels_stop_gradient = StopGradient(labels)  float[2,3]\n"
        "b = SoftmaxCrossEntropyWithLogits(logits, b/labels_stop_gradient)  float[2], float[2,3]\n"
        "c = SparseSoftmaxCrossEntropyWithLogits(logits, classes)  float[2], float[2,3]\n");
}

TEST_CASE("softmax cross entropies: other ranks go through matrices") {
  const graph g;
  const auto scope = g.as_default();
  CHECK(shape(weft::softmax_cross_entropy_with_logits(placeholder<float>({2, 4, 3}), placeholder<float>({2, 4, 3}))) == "[2,4]");
  CHECK(shape(weft::softmax_cross_entropy_with_logits(placeholder<float>({3}), placeholder<float>({3}))) == "[]");
  CHECK(shape(weft::sparse_softmax_cross_entropy_with_logits(placeholder<std::int64_t>({2, 4}), placeholder<float>({2, 4, 3}))) == "[2,4]");
  CHECK(weft::sparse_softmax_cross_entropy_with_logits(placeholder<std::int64_t>({unknown, 4}), placeholder<float>({unknown, 4, 3})).shape().rank() == 2);
  CHECK(message([] { (void)weft::softmax_cross_entropy_with_logits(placeholder<float>({2, 3}), placeholder<float>({2, 4})); }) == "the shapes [2,4] of logits and [2,3] of labels cannot be broadcast");
  CHECK(message([] { (void)weft::sparse_softmax_cross_entropy_with_logits(placeholder<std::int32_t>({3}), placeholder<float>({2, 4})); }) ==
        "the rows of logits and the labels must be equal, found 2 and 3");
}
