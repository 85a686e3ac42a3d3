#include <weft/graph/attr.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using weft::attr_value;
using weft::dtype;
using weft::partial_shape;
using weft::tensor_value;

namespace {
struct row {
  attr_value value;
  const char* kind;
  const char* text;
};
std::vector<row> rows() {
  return {{attr_value(), "none", "none"},
          {attr_value("a\"b\\\n"), "string", "\"a\\\"b\\\\\\x0a\""},
          {attr_value(-5), "int", "-5"},
          {attr_value(std::int64_t{1} << 40), "int", "1099511627776"},
          {attr_value(0.1f), "float", "0.1"},
          {attr_value(true), "bool", "true"},
          {attr_value(dtype::half), "type", "half"},
          {attr_value(partial_shape{2, -1}), "shape", "[2,?]"},
          {attr_value(tensor_value::from<float>({2}, {1, 2})), "tensor", "float[2]"},
          {attr_value(weft::func_attr{"f", {{"T", attr_value(dtype::float32)}}}), "func", "f"},
          {attr_value(weft::placeholder_attr{"T"}), "placeholder", "$T"},
          {attr_value(std::vector<std::string>{"a", "b"}), "list(string)", "[\"a\", \"b\"]"},
          {attr_value(std::vector<std::int64_t>{1, 2}), "list(int)", "[1, 2]"},
          {attr_value(std::vector<float>{0.5f}), "list(float)", "[0.5]"},
          {attr_value(std::vector<bool>{true, false}), "list(bool)", "[true, false]"},
          {attr_value(std::vector<dtype>{dtype::int32}), "list(type)", "[int32]"},
          {attr_value(std::vector<partial_shape>{partial_shape()}), "list(shape)", "[<unknown>]"},
          {attr_value(std::vector<tensor_value>{tensor_value::scalar(1)}), "list(tensor)", "[int32[]]"},
          {attr_value(std::vector<weft::func_attr>{{"g", {}}}), "list(func)", "[g]"},
          {attr_value(std::vector<std::int64_t>()), "list(int)", "[]"}};
}
}  // namespace

TEST_CASE("attr_value: kinds and texts") {
  for (const row& r : rows()) {
    CHECK(std::string(r.value.kind()) == r.kind);
    CHECK(to_text(r.value) == r.text);
  }
}

TEST_CASE("attr_value: equal when kind and value are") {
  const auto all = rows(), again = rows();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j) CHECK((all[i].value == again[j].value) == (i == j));
  CHECK(attr_value(weft::func_attr{"f", {{"T", attr_value(1)}}}) != attr_value(weft::func_attr{"f", {{"T", attr_value(2)}}}));
}

TEST_CASE("attr_value: read only as what it is") {
  const attr_value n(7);
  REQUIRE(n.get<std::int64_t>() != nullptr);
  CHECK(*n.get<std::int64_t>() == 7);
  CHECK(n.get<float>() == nullptr);
  CHECK(n.get<bool>() == nullptr);
  CHECK(attr_value().get<std::string>() == nullptr);
  CHECK(attr_value(std::vector<bool>{true}).get<std::vector<bool>>()->at(0));
  CHECK(attr_value("text").visit([](const auto& v) { return weft::detail::text_of(v); }) == "\"text\"");
}

TEST_CASE("attr_value: copies share, and outlive the first") {
  attr_value copy;
  {
    const attr_value first(std::string(100, 'x'));
    copy = first;
  }
  CHECK(copy.get<std::string>()->size() == 100);
}

TEST_CASE("attr_map: attributes stand in the order of their names, the first of several counts") {
  weft::attr_map attrs{{"b", 2}, {"a", 1}, {"c", 3}, {"a", 4}};
  std::string names;
  for (const auto& [name, value] : attrs) names += name + "=" + to_text(value) + " ";
  CHECK(names == "a=1 b=2 c=3 ");
  CHECK_FALSE(attrs.emplace("b", 5).second);
  CHECK(attrs.emplace("aa", 6).second);
  CHECK(attrs.at("aa") == weft::attr_value(6));
  attrs["z"] = true;
  CHECK(attrs.size() == 5);
  CHECK(attrs.erase("a") == 1);
  CHECK(attrs.erase("a") == 0);
  CHECK(attrs.count("a") == 0);
  CHECK(attrs.find("b")->second == weft::attr_value(2));
  CHECK(attrs.find("y") == attrs.end());
  CHECK_THROWS_AS(attrs.at("y"), std::out_of_range);
  CHECK(attrs == weft::attr_map{{"z", true}, {"c", 3}, {"b", 2}, {"aa", 6}});
  CHECK(attrs != weft::attr_map{});
}

TEST_CASE("attr_map: copies, moves and assignments leave each with its own") {
  weft::attr_map first{{"b", std::string(50, 'b')}, {"a", 1}};
  weft::attr_map second = first;
  second["c"] = 3;
  second.erase("a");
  CHECK(first == weft::attr_map{{"a", 1}, {"b", std::string(50, 'b')}});
  CHECK(second == weft::attr_map{{"b", std::string(50, 'b')}, {"c", 3}});
  const weft::attr_map moved = std::move(second);
  second = first;
  second = weft::attr_map(second);
  CHECK(second == first);
  CHECK(moved.size() == 2);
  first.clear();
  CHECK(first.empty());
  CHECK(first.begin() == first.end());
  CHECK(second.at("a") == weft::attr_value(1));
}

TEST_CASE("attr_map: what is joined reads as one map, and a change to it leaves both alone") {
  const weft::attr_map own{{"b", std::string(50, 'b')}, {"e", 5}}, base{{"a", 1}, {"c", 3}, {"d", 4}, {"f", 6}};
  weft::attr_map joined = weft::attr_map::joined(own, base);
  const weft::attr_map flat{{"a", 1}, {"b", std::string(50, 'b')}, {"c", 3}, {"d", 4}, {"e", 5}, {"f", 6}};
  const auto names_of = [](const weft::attr_map& attrs) {
    std::string out;
    for (const auto& [name, value] : attrs) out += name;
    return out;
  };
  CHECK(names_of(joined) == "abcdef");
  CHECK(joined == flat);
  CHECK(flat == joined);
  CHECK(joined != own);
  CHECK(joined.size() == 6);
  CHECK(joined.at("c") == attr_value(3));
  CHECK(joined.get("e") != nullptr);
  CHECK(joined.get("g") == nullptr);
  CHECK(joined.find("d")->second == attr_value(4));
  CHECK(std::distance(joined.find("d"), joined.end()) == 3);
  CHECK(joined.find("g") == joined.end());
  CHECK(joined.count("f") == 1);
  const weft::attr_map copy = joined;
  CHECK_FALSE(joined.emplace("a", 7).second);
  CHECK(joined == flat);
  CHECK(joined.emplace("bb", 7).first->second == attr_value(7));
  joined["c"] = 8;
  CHECK(joined.erase("f") == 1);
  CHECK(names_of(joined) == "abbbcde");
  CHECK(copy == flat);
  CHECK(names_of(own) == "be");
  CHECK(base.at("c") == attr_value(3));
  // Of two with one name the own counts; what is joined already may be joined again.
  CHECK(weft::attr_map::joined(own, {{"e", 9}, {"z", 1}}) == weft::attr_map{{"b", std::string(50, 'b')}, {"e", 5}, {"z", 1}});
  CHECK(names_of(weft::attr_map::joined(copy, {{"g", 1}})) == "abcdefg");
  CHECK(names_of(weft::attr_map::joined({{"g", 1}}, copy)) == "abcdefg");
  CHECK(weft::attr_map::joined({}, base) == base);
  CHECK(weft::attr_map::joined(own, {}) == own);
  weft::attr_map one = weft::attr_map::joined({}, base);
  one["c"] = 0;
  CHECK(base.at("c") == attr_value(3));
}

TEST_CASE("attr_map: an attribute takes 24 bytes, and what many maps have in common none") {
  CHECK(sizeof(attr_value) == 16);
  CHECK(sizeof(weft::attr_map::value_type) == 24);
  CHECK(sizeof(weft::attr_map) == 16);
}
