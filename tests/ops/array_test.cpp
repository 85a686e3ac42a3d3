#include <weft/ops/array.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using weft::attr_map;
using weft::constant;
using weft::dtype;
using weft::graph;
using weft::node;
using weft::output;
using weft::partial_shape;
using weft::placeholder;
using weft::tensor_value;

namespace {

struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
};
const node& add(const char* op, std::vector<output> inputs, attr_map attrs = {}) { return weft::detail::add_node(op, std::move(inputs), {"n", {"user.cpp", 1}}, std::move(attrs)); }
std::string shape_of_node(const char* op, std::vector<output> inputs, attr_map attrs = {}) { return add(op, std::move(inputs), std::move(attrs)).output_shape(0).text(); }
std::string failure(const char* op, std::vector<output> inputs, attr_map attrs = {}) {
  try {
    add(op, std::move(inputs), std::move(attrs));
  } catch (const weft::error& e) {
    return e.what();
  }
  return "no error";
}
output of(std::vector<std::int64_t> sizes) {
  return {&weft::detail::add_node("Placeholder", {}, "p", {{"dtype", dtype::float32}, {"shape", partial_shape(std::move(sizes))}}), 0};
}
output numbers(const std::vector<std::int32_t>& values) { return constant(values).raw(); }

}  // namespace

TEST_CASE("constant: a Const node with value, dtype and shape") {
  fixture t;
  const auto x = constant({{1.f, 2.f}}, "x");
  CHECK(x.raw().from->op() == "Const");
  CHECK(x.raw().from->attr<dtype>("dtype") == dtype::float32);
  CHECK(x.raw().from->attr<tensor_value>("value") == tensor_value::from<float>({1, 2}, {1, 2}));
  CHECK(x.shape() == partial_shape{1, 2});
  CHECK(constant(3).name() == "Const");
}

TEST_CASE("constant: rows of different lengths are an error at that line") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)constant({{1, 2}, {3}}, {"c", {"user.cpp", 8}}), "INVALID_ARGUMENT: user.cpp:8: rows of different lengths: 2 and 1", weft::error);
  const std::vector<std::vector<float>> ragged{{1}, {2, 3}};
  CHECK_THROWS_WITH_AS((void)constant(ragged, {"c", {"user.cpp", 9}}), "INVALID_ARGUMENT: user.cpp:9: rows of different lengths: 1 and 2", weft::error);
  CHECK(t.g.size() == 0);
}

TEST_CASE("Const: its value must have the dtype that it says") {
  fixture t;
  CHECK(failure("Const", {}, {{"value", tensor_value::scalar(1.f)}, {"dtype", dtype::float64}}) ==
        "INVALID_ARGUMENT: Const 'n' (user.cpp:1): the value is float, attribute 'dtype' says double");
}

TEST_CASE("placeholder: dtype and shape are attributes") {
  fixture t;
  const auto x = placeholder<std::int64_t, 2>({weft::unknown, 3}, "x");
  CHECK(x.raw().from->attr<dtype>("dtype") == dtype::int64);
  CHECK(x.raw().from->attr<partial_shape>("shape") == partial_shape{-1, 3});
  CHECK_FALSE(placeholder<float>().raw().from->attr<partial_shape>("shape").known_rank());
}

TEST_CASE("identities keep dtype and shape") {
  fixture t;
  const auto x = placeholder<float>({2, weft::unknown}, "x");
  for (const auto& [y, op] : {std::pair<weft::tensor<float, 2>, std::string>(identity(x), "Identity"), {stop_gradient(x), "StopGradient"}, {zeros_like(x), "ZerosLike"}, {ones_like(x), "OnesLike"}}) {
    CHECK(y.raw().from->op() == op);
    CHECK(y.shape() == partial_shape{2, -1});
    CHECK(y.raw().from->inputs()[0] == x.raw());
  }
  const node& both = add("IdentityN", {x.raw(), constant(1).raw()});
  CHECK(both.output_shape(0) == partial_shape{2, -1});
  CHECK(both.output_dtype(1) == dtype::int32);
  CHECK_THROWS_WITH_AS((void)identity(weft::tensor<float, 1>(), {"i", {"user.cpp", 2}}), "INVALID_ARGUMENT: user.cpp:2: Identity: the operand is an empty tensor, not made by any op", weft::error);
}

TEST_CASE("shape, size and rank of a tensor") {
  fixture t;
  const output x = of({2, -1, 4});
  CHECK(shape_of_node("Shape", {x}) == "[3]");
  CHECK(add("Shape", {x}).output_dtype(0) == dtype::int32);
  CHECK(add("Shape", {x}, {{"out_type", dtype::int64}}).output_dtype(0) == dtype::int64);
  CHECK(shape_of_node("Size", {x}) == "[]");
  CHECK(shape_of_node("Rank", {x}) == "[]");
  CHECK(shape_of_node("Shape", {placeholder<float>().raw()}) == "[?]");
}

TEST_CASE("reshape: the shape is computed where it can be") {
  fixture t;
  CHECK(shape_of_node("Reshape", {of({2, 3}), numbers({3, 2})}) == "[3,2]");
  CHECK(shape_of_node("Reshape", {of({2, 6}), numbers({3, -1})}) == "[3,4]");
  CHECK(shape_of_node("Reshape", {of({1, 1}), numbers({})}) == "[]");
  CHECK(shape_of_node("Reshape", {of({-1, 6}), numbers({3, -1})}) == "[3,?]");
  CHECK(shape_of_node("Reshape", {of({0, 2}), numbers({-1, 5})}) == "[0,5]");
  CHECK(shape_of_node("Reshape", {of({0, 2}), numbers({-1, 0})}) == "[?,0]");  // as TensorFlow says
  CHECK(shape_of_node("Reshape", {of({2, 3}), placeholder<std::int32_t>({2}).raw()}) == "[?,?]");
  CHECK(shape_of_node("Reshape", {of({2, 3}), placeholder<std::int32_t, 1>().raw()}) == "<unknown>");
}

TEST_CASE("reshape: what does not fit says so") {
  fixture t;
  const auto x = placeholder<float>({2, 3}, "x");
  CHECK_THROWS_WITH_AS((void)reshape(x, {4, 2}, {"r", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: Reshape 'r' (user.cpp:3): a tensor of shape [2,3] has 6 elements and cannot be given shape [4,2]", weft::error);
  CHECK_THROWS_WITH_AS((void)reshape(x, {-1, 4}, {"r", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: Reshape 'r_1' (user.cpp:3): a tensor of shape [2,3] has 6 elements and cannot be given shape [?,4]", weft::error);
  CHECK(shape_of_node("Reshape", {x.raw(), numbers({-1, -1})}) == "[?,?]");  // TensorFlow refuses it only when it runs
  CHECK(failure("Reshape", {x.raw(), numbers({-2, 3})}) == "INVALID_ARGUMENT: Reshape 'n' (user.cpp:1): the wanted shape cannot have a dimension of -2");
  CHECK(failure("Reshape", {x.raw(), numbers({0, -1})}) == "INVALID_ARGUMENT: Reshape 'n' (user.cpp:1): a tensor of shape [2,3] has 6 elements and cannot be given shape [0,?]");
  CHECK(failure("Reshape", {x.raw(), numbers({2147483647, 2147483647, 2147483647})}) ==
        "INVALID_ARGUMENT: Reshape 'n' (user.cpp:1): shape [2147483647,2147483647,2147483647] has more elements than memory can address");
  CHECK(failure("Reshape", {x.raw(), constant(6).raw()}) == "INVALID_ARGUMENT: Reshape 'n' (user.cpp:1): the wanted shape must have rank 1, found shape []");
  CHECK_THROWS_WITH_AS((void)reshape(weft::tensor<float, 1>(), {2}, {"r", {"user.cpp", 4}}), "INVALID_ARGUMENT: user.cpp:4: Reshape: the operand is an empty tensor, not made by any op", weft::error);
}

TEST_CASE("reshape: the wanted shape is a constant below it, once for each") {
  fixture t;
  const auto x = constant({1.f, 2.f}, "x");
  const auto a = reshape(x, {2, 1});
  const auto b = reshape(x, {1, 2});
  CHECK(to_text(t.g) ==
        "x = Const()  float[2]  {value=[1, 2]}\n"
        "Reshape/shape = Const()  int64[2]  {value=[2, 1]}\n"
        "Reshape = Reshape(x, Reshape/shape)  float[2,1]\n"
        "Reshape_1/shape = Const()  int64[2]  {value=[1, 2]}\n"
        "Reshape_1 = Reshape(x, Reshape_1/shape)  float[1,2]\n");
}

TEST_CASE("fill: shape and element are constants below it") {
  fixture t;
  const auto x = weft::fill({2, 3}, 7.f, "f");
  CHECK(x.shape() == partial_shape{2, 3});
  CHECK(to_text(t.g) ==
        "f/dims = Const()  int64[2]  {value=[2, 3]}\n"
        "f/value = Const()  float[]  {value=7}\n"
        "f = Fill(f/dims, f/value)  float[2,3]\n");
  CHECK(weft::zeros<std::int32_t>({4}).shape() == partial_shape{4});
  CHECK(weft::ones<double>({1, 1}).raw().from->output_dtype(0) == dtype::float64);
}

TEST_CASE("fill: sizes and element are checked") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)weft::fill({2, -3}, 1.f, {"f", {"user.cpp", 5}}), "INVALID_ARGUMENT: Fill 'f' (user.cpp:5): dims cannot have a dimension of -3", weft::error);
  CHECK(failure("Fill", {numbers({2}), constant({1.f}).raw()}) == "INVALID_ARGUMENT: Fill 'n' (user.cpp:1): value must have rank 0, found shape [1]");
  CHECK(failure("Fill", {constant({{1}}).raw(), constant(1.f).raw()}) == "INVALID_ARGUMENT: Fill 'n' (user.cpp:1): dims must have rank 1, found shape [1,1]");
}

TEST_CASE("range: its length is computed from constants") {
  fixture t;
  const auto length = [](auto start, auto limit, auto delta) { return shape_of_node("Range", {constant(start).raw(), constant(limit).raw(), constant(delta).raw()}); };
  CHECK(length(0, 10, 3) == "[4]");
  CHECK(length(10, 0, -3) == "[4]");
  CHECK(length(0.f, 1.f, 0.25f) == "[4]");
  CHECK(length(5, 5, 1) == "[0]");
  CHECK(length(std::int64_t{-9223372036854775807}, std::int64_t{9223372036854775807}, std::int64_t{4611686018427387904}) == "[4]");
  CHECK(shape_of_node("Range", {placeholder<std::int32_t, 0>().raw(), constant(3).raw(), constant(1).raw()}) == "[?]");
  CHECK(failure("Range", {constant(0).raw(), constant(5).raw(), constant(0).raw()}) == "INVALID_ARGUMENT: Range 'n' (user.cpp:1): delta must not be 0");
  CHECK(failure("Range", {constant(5).raw(), constant(0).raw(), constant(1).raw()}) == "INVALID_ARGUMENT: Range 'n' (user.cpp:1): from 5 there is no way to 0 in steps of 1");
  CHECK(failure("Range", {constant({0}).raw(), constant(5).raw(), constant(1).raw()}) == "INVALID_ARGUMENT: Range 'n' (user.cpp:1): start must have rank 0, found shape [1]");
}

TEST_CASE("builders that change or say shapes") {
  fixture t;
  const auto x = placeholder<float, 3>({1, weft::unknown, 4}, "x");
  CHECK(expand_dims(x, -1).shape() == partial_shape{1, -1, 4, 1});
  CHECK(squeeze(x, {0}).shape() == partial_shape{-1, 4});
  CHECK(weft::tensor<float, 2>(squeeze(x, weft::axis<0>)).shape() == partial_shape{-1, 4});
  CHECK_FALSE(squeeze(x).shape().known_rank());
  CHECK(reshape(x, shape_of(x)).shape() == partial_shape{1, -1, 4});
  CHECK(weft::size_of(x).shape() == partial_shape::of_rank(0));
  CHECK(weft::rank_of(x).raw().from->output_dtype(0) == dtype::int32);
  CHECK(ensure_shape(x, {1, 7, weft::unknown}).shape() == partial_shape{1, 7, 4});
  CHECK(weft::bitcast<std::int32_t>(x).shape() == partial_shape{1, -1, 4});
  CHECK(weft::bitcast<std::uint8_t>(x).shape() == partial_shape{1, -1, 4, 4});
  CHECK(weft::bitcast<double>(weft::zeros<float>({3, 2})).shape() == partial_shape{3});
  CHECK(check_numerics(x, "bad").raw().from->attr<std::string>("message") == "bad");
  CHECK(placeholder_with_default(x, {weft::unknown, weft::unknown, 4}).shape() == partial_shape{-1, -1, 4});
  CHECK(weft::range(2, 11, 3).shape() == partial_shape{3});
  CHECK(weft::range(5.0).raw().from->output_dtype(0) == dtype::float64);
  CHECK(weft::range(weft::rank_of(x)).shape() == partial_shape{3});
  CHECK(weft::lin_space(0.f, 1.f, 5).shape() == partial_shape{5});
  CHECK(broadcast_to(weft::zeros<float>({3, 1}), {2, 3, 4}).shape() == partial_shape{2, 3, 4});
  CHECK_THROWS_WITH_AS((void)ensure_shape(x, {2, 7, 4}, {"e", {"user.cpp", 3}}), "INVALID_ARGUMENT: EnsureShape 'e' (user.cpp:3): the input must have shape [2,7,4], found [1,?,4]", weft::error);
  CHECK_THROWS_WITH_AS((void)weft::lin_space(0.f, 1.f, 0, {"l", {"user.cpp", 3}}), "INVALID_ARGUMENT: LinSpace 'l' (user.cpp:3): num must be at least 1, found 0", weft::error);
}
