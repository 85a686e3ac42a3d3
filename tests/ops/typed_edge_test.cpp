#include <weft/ops/standard.hpp>

#include "typed_edge.hpp"

#include <doctest/doctest.h>
#include <weft/graph/scope.hpp>
#include <weft/tensor/xtensor.hpp>
#include <xtensor/xadapt.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xrandom.hpp>
#include <xtensor/xview.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

// What dtype and rank the compiler gives to everything that a user can write. The checks run as well, so that each form also builds its node.
using namespace weft;
using std::int32_t;
using std::int64_t;
using std::uint8_t;

namespace {

// The operands of most checks, in a graph of their own.
struct operands {
  graph g;
  detail::graph_scope scope = g.as_default();
  tensor<float, 2> x2 = placeholder<float, 2>({unknown, 784}, "x2");
  tensor<float, 1> x1 = placeholder<float, 1>();
  tensor<float, 0> x0 = placeholder<float, 0>("x0");
  tensor<float> xd = placeholder<float>();
};

tensor_value value_of(const output& o) { return o.from->attr<tensor_value>("value"); }
template <class T, int N> tensor_value value_of(const tensor<T, N>& t) { return value_of(t.raw()); }

}  // namespace

TEST_CASE("typed edge: constants from numbers, strings and braces") {
  const graph g;
  const auto scope = g.as_default();
  IS(constant(1.f), tensor<float, 0>);
  IS(constant(true), tensor<bool, 0>);
  IS(constant("abc"), tensor<std::string, 0>);
  IS(constant(std::string("abc")), tensor<std::string, 0>);
  IS(constant(1LL), tensor<int64_t, 0>);
  IS(constant(half(1.f)), tensor<half, 0>);
  IS(constant({1.f, 2.f}), tensor<float, 1>);
  IS(constant({1.f}), tensor<float, 1>);
  IS(constant({1LL, 2LL}), tensor<int64_t, 1>);
  IS(constant({"a", "b"}), tensor<std::string, 1>);
  IS(constant({{1, 2}, {3, 4}}), tensor<int32_t, 2>);
  IS(constant({{1}, {3}}), tensor<int32_t, 2>);
  IS(constant({{"a", "b"}, {"c", "d"}}), tensor<std::string, 2>);
  IS(constant({{"a", "b"}}), tensor<std::string, 2>);
  IS(constant({{{1, 2}}, {{3, 4}}}), tensor<int32_t, 3>);
  IS(constant({{{{1.f}}}}), tensor<float, 4>);
  IS(constant({true, false}), tensor<bool, 1>);
  IS(constant({1, 2}, "name"), tensor<int32_t, 1>);

  CHECK(value_of(constant("abc")) == tensor_value::from<std::string>({}, {"abc"}));
  CHECK(value_of(constant({"a", "b"})) == tensor_value::from<std::string>({2}, {"a", "b"}));
  CHECK(value_of(constant({{"a", "b"}})) == tensor_value::from<std::string>({1, 2}, {"a", "b"}));
  CHECK(value_of(constant({{1, 2}, {3, 4}})) == tensor_value::from<int32_t>({2, 2}, {1, 2, 3, 4}));
  CHECK(value_of(constant({{{1, 2}}, {{3, 4}}})) == tensor_value::from<int32_t>({2, 1, 2}, {1, 2, 3, 4}));
  CHECK(value_of(constant({true, false})) == tensor_value::from<bool>({2}, {true, false}));
  CHECK(constant({1, 2}, "name").name() == "name");
}

TEST_CASE("typed edge: constants from std containers and xtensor") {
  const graph g;
  const auto scope = g.as_default();
  IS(constant(std::vector<float>{1, 2}), tensor<float, 1>);
  IS(constant(std::vector<std::vector<double>>{}), tensor<double, 2>);
  IS(constant(std::array<int, 3>{}), tensor<int32_t, 1>);
  IS(constant(xt::xtensor<float, 2>{{1.f, 2.f}}), tensor<float, 2>);
  IS(constant(xt::xarray<double>{1.}), tensor<double>);
  IS(constant(xt::random::rand<float>({100})), tensor<float, 1>);
  IS(constant(xt::random::rand<float>({10, 20})), tensor<float, 2>);
  IS(constant(xt::random::rand<float>(std::vector<int>{10, 20})), tensor<float>);
  IS(constant(xt::zeros<int>({3})), tensor<int32_t, 1>);
  IS(constant(xt::arange<float>(5)), tensor<float, 1>);
  IS(constant(xt::linspace<float>(0, 1, 5)), tensor<float, 1>);
  IS(constant(xt::xtensor_fixed<float, xt::xshape<2, 3>>{}), tensor<float, 2>);
  const xt::xtensor<float, 2> m = xt::ones<float>({4, 4});
  IS(constant(m * 2.f + 1.f), tensor<float, 2>);
  IS(constant(m * 2), tensor<float, 2>);
  IS(constant(m * 2.0), tensor<double, 2>);
  IS(constant(xt::view(m, 0)), tensor<float, 1>);
  IS(constant(xt::view(m, xt::all(), xt::newaxis(), 0)), tensor<float, 2>);
  IS(constant(xt::sum(m)), tensor<float, 0>);
  IS(constant(xt::sum(m, {0})), tensor<float, 1>);
  IS(constant(xt::transpose(m)), tensor<float, 2>);
  IS(constant(m > 0.f), tensor<bool, 2>);
  const std::vector<float> raw(12);
  IS(constant(xt::adapt(raw, {3, 4})), tensor<float, 2>);

  CHECK(constant(std::vector<std::vector<double>>{}).shape().text() == "[0,0]");
  CHECK(constant(xt::random::rand<float>(std::vector<int>{10, 20})).shape().text() == "[10,20]");
  CHECK(value_of(constant(m * 2.f + 1.f)) == tensor_value::from<float>({4, 4}, std::vector<float>(16, 3.f)));
  CHECK(value_of(constant(xt::sum(m))) == tensor_value::scalar(16.f));
}

TEST_CASE("typed edge: placeholders") {
  operands t;
  IS((placeholder<float>({2, 3})), tensor<float, 2>);
  IS((placeholder<float, 2>({unknown, 3})), tensor<float, 2>);
  IS((placeholder<std::string>()), tensor<std::string>);
  CHECK(t.x2.shape().text() == "[?,784]");
  CHECK(t.x1.shape().text() == "[?]");
  CHECK(t.x0.shape().text() == "[]");
  CHECK(t.xd.shape().text() == "<unknown>");
  CHECK(t.x1.name() == "Placeholder");
}

TEST_CASE("typed edge: operators between tensors") {
  operands t;
  const auto &x2 = t.x2;
  const auto &x1 = t.x1;
  const auto &x0 = t.x0;
  const auto &xd = t.xd;
  IS(x2 + x1, tensor<float, 2>);
  IS(x1 + x2, tensor<float, 2>);
  IS(x0 * x1, tensor<float, 1>);
  IS(x1 * xd, tensor<float>);
  IS(xd - x2, tensor<float>);
  IS(-x1, tensor<float, 1>);
  IS(x1 > x2, tensor<bool, 2>);
  IS(x0 <= x0, tensor<bool, 0>);
  IS(x1 >= x0, tensor<bool, 1>);
  CHECK((x1 + x2).shape().text() == "[?,784]");
  CHECK((x1 * xd).shape().text() == "<unknown>");
  CHECK((x0 * x1).shape().text() == "[?]");
}

TEST_CASE("typed edge: operators with numbers of the same dtype, and exact integers") {
  operands t;
  const auto &x1 = t.x1;
  IS(x1 * 2, tensor<float, 1>);
  IS(1 - x1, tensor<float, 1>);
  IS(x1 / 2.f, tensor<float, 1>);
  IS(x1 < 0.f, tensor<bool, 1>);
  IS(0 < x1, tensor<bool, 1>);
  const auto step = constant(int64_t{0});
  IS(step + 1, tensor<int64_t, 0>);
  IS(step + 1u, tensor<int64_t, 0>);
  IS(step - 1LL, tensor<int64_t, 0>);
  const auto bytes = constant({uint8_t{1}, uint8_t{2}});
  IS(bytes / 2, tensor<uint8_t, 1>);
  const auto s = constant("a");
  IS(s + "b", tensor<std::string, 0>);
  IS("b" + s, tensor<std::string, 0>);
  IS(s + std::string("b"), tensor<std::string, 0>);
  const auto h = constant(half(1.f));
  IS(h * half(2.f), tensor<half, 0>);
  IS(h * 2, tensor<half, 0>);

  const output y = (step + 7u).raw().from->inputs()[1];
  CHECK(value_of(y) == tensor_value::from<int64_t>({}, {7}));
  CHECK(value_of((1 - x1).raw().from->inputs()[0]) == tensor_value::scalar(1.f));
  CHECK(value_of((h * 2).raw().from->inputs()[1]) == tensor_value::scalar(half(2.f)));
}

TEST_CASE("typed edge: an integer that the dtype cannot hold is an error at that line") {
  operands t;
  const auto bytes = constant({uint8_t{1}, uint8_t{2}});
  const auto big = constant(std::uint64_t{1});
  const auto message = [](auto make) {
    try {
      make();
    } catch (const error& e) {
      return e.message() + " at " + e.site();
    }
    return std::string("no error");
  };
  const int line = __LINE__;
  CHECK(message([&] { (void)(bytes + 300); }) == "the number 300 does not fit into uint8 at typed_edge_test.cpp:" + std::to_string(line + 1));
  CHECK(message([&] { (void)(t.x1 * 16777217); }) == "the number 16777217 does not fit into float at typed_edge_test.cpp:" + std::to_string(line + 2));
  CHECK(message([&] { (void)(big - -1); }) == "the number -1 does not fit into uint64 at typed_edge_test.cpp:" + std::to_string(line + 3));
}

TEST_CASE("typed edge: variables stand where tensors do") {
  operands t;
  const auto &x1 = t.x1;
  variable w(constant({{1.f, 2.f}, {3.f, 4.f}}), "w");
  IS(w, variable<float, 2>);
  variable b(0.f);
  IS(b, variable<float, 0>);
  variable<float, 2> w2(xt::zeros<float>({784, 2}), "w2");
  variable named(std::vector<int>{1, 2}, "named");
  IS(named, variable<int32_t, 1>);
  variable counter(int64_t{0});
  IS(counter.assign_add(1), operation);
  IS(w.assign(constant({{0.f, 0.f}, {0.f, 0.f}})), operation);
  IS(w.assign_sub(w), operation);
  IS(b.assign(1.f), operation);
  IS(w.initializer(), operation);
  IS(w.is_initialized(), tensor<bool, 0>);
  IS(matmul(t.x2, w2), tensor<float, 2>);
  IS(matmul(t.x2, w2) + b, tensor<float, 2>);
  IS(w * x1, tensor<float, 2>);
  IS(x1 * w, tensor<float, 2>);
  IS(w * w, tensor<float, 2>);
  IS(w * 0.5f, tensor<float, 2>);
  IS(0.5f * w, tensor<float, 2>);
  IS(-w, tensor<float, 2>);
  IS(w < 1.f, tensor<bool, 2>);
  const tensor<float, 2> read = w;
  CHECK(read.raw().from->op() == "ReadVariableOp");
  IS(matmul(w, w, transpose_a | transpose_b, "mm"), tensor<float, 2>);
  const operation held = w;
  CHECK(held.name() == "w");
  CHECK((w * w).raw().from->inputs()[0] != (w * w).raw().from->inputs()[1]);
}

TEST_CASE("typed edge: ranks are forgotten freely and claimed with a check") {
  operands t;
  const tensor<float> any = t.x2;
  CHECK(any.raw() == t.x2.raw());
  const tensor<float, 2> again(any);
  CHECK(again.raw() == any.raw());
  CHECK_THROWS_WITH_AS((tensor<float, 1>(any, {"user.cpp", 3})), "INVALID_ARGUMENT: user.cpp:3: 'x2' has shape [?,784], not rank 1", error);
  static_assert(!std::is_convertible_v<tensor<float>, tensor<float, 2>> && !std::is_convertible_v<tensor<float, 1>, tensor<float, 2>>);
  static_assert(!std::is_convertible_v<tensor<double, 1>, tensor<float, 1>>);
}

TEST_CASE("typed edge: reductions") {
  operands t;
  const auto &x2 = t.x2;
  const auto &xd = t.xd;
  const variable w(constant({{1.f, 2.f}}), "w");
  IS(reduce_sum(x2), tensor<float, 0>);
  IS(reduce_sum(x2, axis<1>), tensor<float, 1>);
  IS(reduce_sum(x2, axis<0, -1>), tensor<float, 0>);
  IS(reduce_sum(x2, axis<-1>, keep_dims), tensor<float, 2>);
  IS(reduce_sum(x2, {0, -1}), tensor<float>);
  IS(reduce_sum(x2, {0}), tensor<float>);
  IS(reduce_sum(x2, {0, -1}, keep_dims), tensor<float, 2>);
  IS(reduce_sum(x2, 0), tensor<float, 1>);
  IS(reduce_sum(w, "total"), tensor<float, 0>);
  IS(reduce_sum(xd, axis<1>), tensor<float>);
  IS(reduce_sum(x2, keep_dims), tensor<float, 2>);
  IS(reduce_sum(x2, {0, -1}, "named"), tensor<float>);
  IS(reduce_mean(x2, axis<0>), tensor<float, 1>);
  IS(reduce_max(xd), tensor<float, 0>);
  CHECK(reduce_sum(x2, axis<1>).shape().text() == "[?]");
  CHECK(reduce_sum(x2, {0}).shape().text() == "[784]");
  CHECK(reduce_sum(x2, keep_dims).shape().text() == "[1,1]");
  CHECK(reduce_sum(w, "total").name() == "total");
}

TEST_CASE("typed edge: named ops") {
  operands t;
  const auto &x1 = t.x1;
  const auto &x2 = t.x2;
  IS(add(x1, 1.f), tensor<float, 1>);
  IS(add(1, x1), tensor<float, 1>);
  IS(add(x1, x2, "n"), tensor<float, 2>);
  IS(add(x1, 1.f, "n"), tensor<float, 1>);
  IS(equal(x1, x1), tensor<bool, 1>);
  IS(not_equal(x1, 0.f), tensor<bool, 1>);
  IS(maximum(x1, 0), tensor<float, 1>);
  IS(less(x1, x2), tensor<bool, 2>);
  IS(cast<double>(x2), tensor<double, 2>);
  IS(square(x1), tensor<float, 1>);
  IS(identity(t.xd, "same"), tensor<float>);
  IS(add_n({x1, x1}), tensor<float, 1>);
  IS(reshape(x2, {-1}), tensor<float, 1>);
  IS(fill({2, 3}, 1.f), tensor<float, 2>);
  IS(zeros<int64_t>({4}), tensor<int64_t, 1>);
  IS(shape_of(x2), tensor<int32_t, 1>);
  IS(random_uniform({2, 3}), tensor<float, 2>);
  IS(random_uniform<double>({2}, -1, 1, 7, "r"), tensor<double, 1>);
}

TEST_CASE("typed edge: scopes") {
  operands t;
  const auto &x1 = t.x1;
  const variable w(1.f, "w");
  const auto scoped = with_device("/job:ps/task:0", [&] { return x1 * 2.f; });
  IS(scoped, tensor<float, 1>);
  with_device("/job:ps", [&] { (void)(x1 + 1.f); });
  {
    const auto d = with_device(std::string("/job:ps"));
    const auto n = name_scope("tower");
    const auto c = control_dependencies({x1, w, operation()});
    const auto k = colocate_with(w);
    CHECK((x1 + 1.f).name() == "tower/add");
  }
  const auto v = control_dependencies({group({x1, w})}, [&] { return reduce_sum(x1); });
  IS(v, tensor<float, 0>);
  IS(no_op(), operation);
  IS(global_variables_initializer(), operation);
}

TEST_CASE("typed edge: every form records the line of the user's program") {
  operands t;
  const auto &x1 = t.x1;
  const auto &x2 = t.x2;
  const variable w(constant({{1.f}}), "w");
  const auto line_of = [](const operation& o) { return o.get()->site().line; };
  const int l = __LINE__;
  const auto a1 = x1 * x2;
  const auto a2 = -x1;
  const auto a3 = reduce_sum(x1);
  const auto a4 = constant(1);
  const auto a5 = constant({1, 2}, "foo");
  const auto a6 = [&] { return w * 0.5f; }();
  const auto a7 = x1 < 0.f;
  const auto a8 = 0.5f * x1;
  const auto a9 = add(x1, 1.f, "n");
  const auto a10 = placeholder<float, 2>({2, 2});
  const auto a11 = cast<double>(x1);
  const tensor<float, 2> a12 = w;
  const auto a13 = w.assign_add(constant({{1.f}}));
  const auto a14 = no_op();
  const auto a15 = group({x1, x2});
  const auto a16 = reshape(x2, {-1});
  const auto a17 = random_uniform({2});
  const variable a18(1.f);
  const auto a19 = global_variables_initializer();
  const auto a20 = matmul(x2, x2, transpose_b);
  const auto a21 = fill({1}, 2.f);
  const std::vector<operation> all{a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21};
  int expected = l;
  for (const operation& o : all) {
    CAPTURE(o.name());
    CHECK(line_of(o) == ++expected);
    CHECK(std::string(o.get()->site().file) == "typed_edge_test.cpp");
    for (const output& in : o.get()->inputs()) {  // what an op makes for itself carries the same line
      const bool own = in.from->name().compare(0, o.name().size() + 1, o.name() + "/") == 0;
      CHECK((!own || line_of(operation(*in.from)) == expected));
    }
  }
}

TEST_CASE("typed edge: names follow the order of statements") {
  const graph g;
  const auto scope = g.as_default();
  const auto z = constant(1.f, "z");
  const auto left = add(z, z, "left");
  const auto right = add(z, z, "right");
  const auto product = left * right;
  const auto half_of = product * 0.5f;
  std::string names;
  for (const node* n : g.nodes()) names += n->name() + " ";
  CHECK(names == "z left right mul mul_1/y mul_1 ");
}
