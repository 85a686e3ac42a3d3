#include <weft/session/feed.hpp>

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>
#include <weft/tensor/xtensor.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xview.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

using weft::feed;
using weft::placeholder;
using weft::tensor;
using weft::tensor_value;

namespace {

struct fixture {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
  tensor<float, 2> x2 = placeholder<float, 2>("x2");
  tensor<float, 1> x1 = placeholder<float, 1>("x1");
  tensor<float> xd = placeholder<float>("xd");
  tensor<std::int64_t, 1> labels = placeholder<std::int64_t, 1>("labels");
  tensor<float, 0> rate = placeholder<float, 0>("rate");
  tensor<bool, 0> training = placeholder<bool, 0>("training");
  tensor<std::string, 0> text = placeholder<std::string, 0>("text");
  xt::xtensor<float, 2> batch{{1, 2}, {3, 4}};
};

const tensor_value two_by_two = tensor_value::from<float>({2, 2}, {1, 2, 3, 4});
tensor_value value(const feed& f) { return f.value(); }

// What a session's run takes: counts feeds given in braces.
std::size_t count(const std::vector<feed>& feeds) { return feeds.size(); }

}  // namespace

TEST_CASE("feed: numbers, also integers that the dtype holds exactly") {
  fixture t;
  CHECK(value({t.rate, 0.5f}) == tensor_value::scalar(0.5f));
  CHECK(value({t.rate, 1}) == tensor_value::scalar(1.f));
  CHECK(value({t.training, true}) == tensor_value::scalar(true));
  CHECK_THROWS_WITH_AS((feed(t.rate, 16777217, {"user.cpp", 3})), "INVALID_ARGUMENT: user.cpp:3: the number 16777217 does not fit into float", weft::error);
}

TEST_CASE("feed: strings") {
  fixture t;
  CHECK(value({t.text, "abc"}) == tensor_value::scalar(std::string("abc")));
  CHECK(value({t.text, std::string("abc")}) == tensor_value::scalar(std::string("abc")));
}

TEST_CASE("feed: std containers") {
  fixture t;
  CHECK(value({t.labels, std::vector<std::int64_t>{1, 2}}) == tensor_value::from<std::int64_t>({2}, {1, 2}));
  CHECK(value({t.x1, std::array<float, 2>{1, 2}}) == tensor_value::from<float>({2}, {1, 2}));
  CHECK(value({t.x2, std::vector<std::vector<float>>{{1, 2}, {3, 4}}}) == two_by_two);
  CHECK_THROWS_AS(value({t.x2, std::vector<std::vector<float>>{{1, 2}, {3}}}), weft::error);
}

TEST_CASE("feed: braces") {
  fixture t;
  CHECK(value({t.x1, {1.f, 2.f}}) == tensor_value::from<float>({2}, {1, 2}));
  CHECK(value({t.x1, {1, 2}}) == tensor_value::from<float>({2}, {1, 2}));
  CHECK(value({t.x2, {{1, 2}, {3, 4}}}) == two_by_two);
  CHECK(value({t.x2, {{1.f}, {2.f}}}) == tensor_value::from<float>({2, 1}, {1, 2}));
  CHECK(value({t.x2, {{1, 2}}}) == tensor_value::from<float>({1, 2}, {1, 2}));
}

TEST_CASE("feed: xtensor containers and expressions") {
  fixture t;
  CHECK(value({t.x2, t.batch}) == two_by_two);
  CHECK(value({t.x2, t.batch * 2.f}) == tensor_value::from<float>({2, 2}, {2, 4, 6, 8}));
  CHECK(value({t.x1, xt::view(t.batch, 1)}) == tensor_value::from<float>({2}, {3, 4}));
  CHECK(value({t.xd, t.batch}) == two_by_two);
  CHECK(value({t.xd, 1.f}) == tensor_value::scalar(1.f));
  CHECK(value({t.x2, xt::xarray<float>(t.batch)}) == two_by_two);
}

TEST_CASE("feed: is evaluated when it is made") {
  fixture t;
  const feed f(t.x2, t.batch * 1.f);
  t.batch(0, 0) = 100.f;
  CHECK(f.value() == two_by_two);
}

TEST_CASE("feed: to a variable, and by an output found by name") {
  fixture t;
  const weft::variable<float, 2> w(weft::constant({{0.f}}), "w");
  CHECK(feed(w, t.batch).to() == w.raw());
  CHECK(feed(t.g.find_output("x2"), two_by_two).to() == t.x2.raw());
  CHECK(feed(t.x2, two_by_two).value() == two_by_two);
}

TEST_CASE("feed: records the line of the user's program") {
  fixture t;
  const feed f(t.rate, 1.f);
  CHECK(std::string(f.site().file) == "feed_test.cpp");
  CHECK(f.site().line == __LINE__ - 2);
}

TEST_CASE("feed: lists of feeds in braces") {
  fixture t;
  const std::vector<std::int64_t> labels{1, 2};
  CHECK(count({{t.x2, t.batch}, {t.labels, labels}}) == 2);
  CHECK(count({{t.x1, {1.f, 2.f}}, {t.rate, 1}}) == 2);
  CHECK(count({{t.x2, {{1, 2}}}, {t.x1, {1}}}) == 2);
  CHECK(count({}) == 0);
  const std::vector<feed> many{{t.x2, t.batch}, {t.labels, labels}};
  CHECK(count(many) == 2);
}

TEST_CASE("feeds: the placeholders of a prepared step, and what each parameter takes") {
  fixture t;
  const auto prepared = weft::feeds(t.x2, t.labels, t.rate);
  CHECK(std::get<1>(prepared.placeholders).raw() == t.labels.raw());
  const weft::feed_value<float, 2> from_array = t.batch;
  CHECK(from_array.value == two_by_two);
  const weft::feed_value<std::int64_t, 1> from_braces = {1, 2};
  CHECK(from_braces.value == tensor_value::from<std::int64_t>({2}, {1, 2}));
  const weft::feed_value<float, 2> from_nested_braces = {{1.f, 2.f}, {3.f, 4.f}};
  CHECK(from_nested_braces.value == two_by_two);
  const weft::feed_value<float, 0> from_number = 1;
  CHECK(from_number.value == tensor_value::scalar(1.f));
}
