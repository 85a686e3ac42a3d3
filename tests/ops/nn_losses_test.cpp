#include <weft/ops/nn_losses.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/standard.hpp>

#include <string>

using weft::graph;
using weft::placeholder;
using weft::unknown;

namespace {
template <class T, int N> std::string shape(const weft::tensor<T, N>& t) { return t.shape().text(); }
template <class Build> std::string message(Build build) {
  try {
    build();
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}
}  // namespace

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
