#include <weft/ops/nn_conv.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/standard.hpp>

#include <string>

using ops_test::message;
using ops_test::shape;
using weft::graph;
using weft::placeholder;
using weft::unknown;

TEST_CASE("conv2d: shapes for every padding, stride, dilation and order of axes") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({unknown, 7, 6, 3}, "x");
  const auto w = placeholder<float>({3, 2, 3, 4}, "w");
  CHECK(shape(weft::conv2d(x, w, 1, weft::same_padding)) == "[?,7,6,4]");
  CHECK(shape(weft::conv2d(x, w, 1, weft::valid_padding)) == "[?,5,5,4]");
  CHECK(shape(weft::conv2d(x, w, 2, weft::same_padding)) == "[?,4,3,4]");
  CHECK(shape(weft::conv2d(x, w, {1, 2, 3, 1}, weft::valid_padding)) == "[?,3,2,4]");
  CHECK(shape(weft::conv2d(x, w, {2, 1}, weft::explicit_padding(1, 2, 0, 1))) == "[?,4,6,4]");
  CHECK(shape(weft::conv2d(x, w, 1, weft::valid_padding, {weft::nhwc, {3, 2}})) == "[?,1,4,4]");
  CHECK(shape(weft::conv2d(placeholder<float>({2, 3, 7, 6}), w, 1, weft::valid_padding, {weft::nchw, 1})) == "[2,4,5,5]");
  CHECK(shape(weft::conv2d(placeholder<float>(), w, 1, weft::same_padding)) == "[?,?,?,4]");
  CHECK(shape(weft::conv2d(placeholder<float>({1, 7, 7, 1}), placeholder<float>({unknown, 3, 1, 2}), 1, weft::valid_padding)) == "[1,?,5,2]");
  CHECK(shape(weft::conv2d(placeholder<float>({1, 4, 4, 6}), placeholder<float>({1, 1, 2, 9}), 1, weft::valid_padding)) == "[1,4,4,9]");  // three groups
}

TEST_CASE("conv2d: its node says what TensorFlow's says") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({1, 4, 4, 1}, "x");
  const auto w = placeholder<float>({2, 2, 1, 1}, "w");
  const auto y = weft::conv2d(x, w, {1, 2, 2, 1}, weft::explicit_padding(1, 0, 2, 3), "y");
  const weft::node& n = *y.raw().from;
  CHECK(n.op() == "Conv2D");
  CHECK(n.attr<std::vector<std::int64_t>>("strides") == std::vector<std::int64_t>{1, 2, 2, 1});
  CHECK(n.attr<std::vector<std::int64_t>>("explicit_paddings") == std::vector<std::int64_t>{0, 0, 1, 0, 2, 3, 0, 0});
  CHECK(n.attr<std::string>("padding") == "EXPLICIT");
  CHECK(n.attr<std::string>("data_format") == "NHWC");
  CHECK(weft::conv2d(x, w, 1, weft::same_padding).raw().from->attr<std::vector<std::int64_t>>("dilations") == std::vector<std::int64_t>{1, 1, 1, 1});
}

TEST_CASE("conv2d: what does not fit is an error while building") {
  const graph g;
  const auto scope = g.as_default();
  CHECK(message([] { (void)weft::conv2d(placeholder<float>({1, 3, 3, 2}), placeholder<float>({2, 2, 3, 1}), 1, weft::valid_padding); }) ==
        "the depth 2 of the input is no multiple of the depth 3 of the filter");
  CHECK(message([] { (void)weft::conv2d(placeholder<float>({1, 3, 3, 2}), placeholder<float>({4, 2, 2, 1}), 1, weft::valid_padding); }) ==
        "a window that reaches over 4 elements has no place on an axis of 3 elements");
  CHECK(message([] { (void)weft::conv2d(placeholder<float>({1, 3, 3, 2}), placeholder<float>({2, 2, 2, 1}), 1, weft::valid_padding, {weft::nhwc, {1, 2147483647}}); }) ==
        "a window that reaches over 2147483648 elements has no place on an axis of 3 elements");
  CHECK(message([] { (void)weft::conv2d(placeholder<float>({1, 3, 3, 2}), placeholder<float>({2, 2, 2, 1}), 0, weft::valid_padding); }) ==
        "attribute 'strides' must contain values between 1 and 2147483647, found 0");
  CHECK(message([] { (void)weft::conv2d(placeholder<float>({1, 3, 3, 2}), placeholder<float>({0, 2, 2, 1}), 1, weft::same_padding); }) == "the filter must have rows and columns, found shape [0,2,2,1]");
  CHECK(message([] { (void)weft::conv2d(placeholder<float>({1, 3, 3, 4}), placeholder<float>({1, 1, 2, 3}), 1, weft::same_padding); }) == "a filter with 3 outputs cannot be cut into 2 groups");
  CHECK(message([] { (void)weft::conv2d(weft::tensor<float>(placeholder<float>({3, 3, 2})), placeholder<float>({2, 2, 2, 1}), 1, weft::same_padding); }) == "input must have rank 4, found shape [3,3,2]");
  CHECK(message([] { (void)weft::conv2d(placeholder<float>({1, 3, 3, 2}), placeholder<float>({2, 2, 2, 1}), 1, weft::explicit_padding(0, -1, 0, 0)); }) ==
        "attribute 'explicit_paddings' must contain values between 0 and 2147483647, found -1");
}

TEST_CASE("conv2d_transpose, depthwise_conv2d, separable_conv2d: shapes and nodes") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({2, 4, 4, 5}, "x");
  const auto up = weft::conv2d_transpose(x, placeholder<float>({3, 3, 2, 5}), {2, 8, 8, 2}, 2, weft::same_padding, weft::nhwc, "up");
  CHECK(shape(up) == "[2,8,8,2]");
  CHECK(up.raw().from->op() == "Conv2DBackpropInput");
  CHECK(g.find("up/output_shape") != nullptr);
  CHECK(shape(weft::conv2d_transpose(x, placeholder<float>({3, 3, 2, 5}), placeholder<std::int32_t, 1>(), 2)) == "[2,?,?,?]");
  CHECK(shape(weft::depthwise_conv2d(x, placeholder<float>({3, 3, 5, 2}), 2, weft::same_padding)) == "[2,2,2,10]");
  CHECK(shape(weft::depthwise_conv2d(placeholder<float, 4>(), placeholder<float>({3, 3, 5, 2}), 1, weft::valid_padding)) == "[?,?,?,10]");
  CHECK(shape(weft::separable_conv2d(x, placeholder<float>({3, 3, 5, 2}), placeholder<float>({1, 1, 10, 3}), 1, weft::valid_padding)) == "[2,2,2,3]");
  CHECK(message([] { (void)weft::depthwise_conv2d(placeholder<float>({1, 3, 3, 2}), placeholder<float>({2, 2, 3, 1}), 1, weft::same_padding); }) == "input and filter must have the same depth, found 2 and 3");
  CHECK(message([] { (void)weft::conv2d_transpose(placeholder<float>({2, 4, 4, 5}), placeholder<float>({3, 3, 2, 4}), {2, 8, 8, 2}, 2); }) ==
        "the depth 5 of out_backprop and the outputs 4 of the filter differ");
  CHECK(message([] { (void)weft::conv2d_transpose(placeholder<float>({2, 4, 4, 5}), placeholder<float>({3, 3, 2, 5}), {3, 8, 8, 2}, 2); }) == "input_sizes say a batch of 3, out_backprop has 2");
}

TEST_CASE("max_pool, avg_pool: shapes") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = placeholder<float>({unknown, 7, 6, 4}, "x");
  CHECK(shape(weft::max_pool(x, 2, 2, weft::same_padding)) == "[?,4,3,4]");
  CHECK(shape(weft::avg_pool(x, {3, 2}, 1, weft::valid_padding)) == "[?,5,5,4]");
  CHECK(shape(weft::max_pool(x, {1, 1, 1, 2}, {1, 1, 1, 2}, weft::valid_padding)) == "[?,7,6,2]");
  CHECK(shape(weft::max_pool(placeholder<std::int32_t>({1, 2, 6, 6}), 2, 2, weft::valid_padding, weft::nchw)) == "[1,2,3,3]");
  CHECK(shape(weft::max_pool(placeholder<float>({1, 3, 3, 1}), 2, 1, weft::explicit_padding(1, 1, 0, 0))) == "[1,4,2,1]");
  CHECK(message([] { (void)weft::avg_pool(placeholder<float>({1, 2, 2, 1}), 3, 1, weft::valid_padding); }) == "a window that reaches over 3 elements has no place on an axis of 2 elements");
  CHECK(message([] { (void)weft::max_pool(placeholder<float>({1, 2, 2, 1}), 1, {1, 0}, weft::valid_padding); }) == "attribute 'strides' must contain values between 1 and 2147483647, found 0");
}
