#include <weft/ops/nn.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/standard.hpp>

#include <string>

using ops_test::message;
using ops_test::shape;
using weft::axis;
using weft::graph;
using weft::placeholder;
using weft::unknown;

TEST_CASE("bias_add: channels last or first") {
  const graph g;
  const auto scope = g.as_default();
  const auto b = placeholder<float>({3}, "b");
  CHECK(shape(weft::bias_add(placeholder<float>({2, 3}), b)) == "[2,3]");
  CHECK(shape(weft::bias_add(placeholder<float>({2, unknown}), b)) == "[2,3]");
  CHECK(shape(weft::bias_add(placeholder<float>({2, 3, 4, 5}), b, weft::nchw)) == "[2,3,4,5]");
  CHECK(shape(weft::bias_add(placeholder<float>(), b)) == "<unknown>");
  CHECK(message([&] { (void)weft::bias_add(placeholder<float>({2, 4}), b); }) == "the channels of value and bias must be equal, found 4 and 3");
  CHECK(message([&] { (void)weft::bias_add(weft::tensor<float>(placeholder<float>({3})), b); }) == "value must have at least rank 2, found shape [3]");
  CHECK(message([&] { (void)weft::bias_add(placeholder<float>({2, 3}), weft::tensor<float>(placeholder<float>({1, 3}))); }) == "bias must have rank 1, found shape [1,3]");
  CHECK(message([&] { (void)weft::bias_add(placeholder<float>({2, 3}), b, weft::nchw); }) == "value must have at least rank 3, found shape [2,3]");
}

TEST_CASE("softmax: over another axis than the last that axis changes places") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, 3, 4}, "x");
  const auto last = weft::softmax(x);
  const auto same = weft::softmax(x, axis<2>, "same");
  const auto middle = weft::log_softmax(x, 1, "middle");
  CHECK(to_text(g) ==
        "x = Placeholder()  float[2,3,4]  {shape=[2,3,4]}\n"
        "Softmax = Softmax(x)  float[2,3,4]\n"
        "same = Softmax(x)  float[2,3,4]\n"
        "middle/perm = Const()  int32[3]  {value=[0, 2, 1]}\n"
        "middle/transpose = Transpose(x, middle/perm)  float[2,4,3]\n"
        "middle/LogSoftmax = LogSoftmax(middle/transpose)  float[2,4,3]\n"
        "middle = Transpose(middle/LogSoftmax, middle/perm)  float[2,3,4]\n");
  CHECK(message([&] { (void)weft::softmax(x, 3); }) == "Softmax_1: axis 3 is outside the 3 dimensions of shape [2,3,4]");
  CHECK(message([&] { (void)weft::softmax(placeholder<float>(), 0); }) == "Softmax_2: the rank must be known to find axis 0");
  CHECK(message([&] { (void)weft::softmax(weft::tensor<float>(placeholder<float, 0>())); }) == "logits must have at least rank 1, found shape []");
}

TEST_CASE("in_top_k: one flag for each row") {
  const graph g;
  const auto scope = g.as_default();
  CHECK(shape(weft::in_top_k(placeholder<float>({unknown, 5}), placeholder<std::int32_t>({3}), 2)) == "[3]");
  CHECK(shape(weft::in_top_k(placeholder<float>({unknown, 5}), placeholder<std::int64_t>({unknown}), 2)) == "[?]");
  CHECK(message([] { (void)weft::in_top_k(placeholder<float>({3, 4}), placeholder<std::int32_t>({2}), 1); }) == "the rows of predictions and the targets must be equal, found 3 and 2");
}
