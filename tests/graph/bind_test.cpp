#include <weft/graph/bind.hpp>

#include <doctest/doctest.h>
#include <weft/graph/graph.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using weft::attr_map;
using weft::dtype;
using weft::graph;
using weft::node;
using weft::output;

namespace {

weft::op_registry test_ops() {
  weft::op_registry ops = weft::standard_ops();
  ops.add(weft::op("Pair").input("a: T").input("b: T").output("c: T").attr("T: {float, int32}"));
  ops.add(weft::op("Fixed").input("a: int32").output("c: string"));
  ops.add(weft::op("Many").input("values: N * T").output("sum: T").output("copies: N * T").attr("N: int >= 2").attr("T: type"));
  ops.add(weft::op("Parts").output("part: N * T").attr("N: int >= 1").attr("T: type"));
  ops.add(weft::op("Two").input("a: N * T").input("b: N * T").attr("N: int >= 1").attr("T: type"));
  ops.add(weft::op("Mixed").input("first: float").input("rest: types").output("out: types").attr("types: list(type) >= 1"));
  ops.add(weft::op("Options")
              .attr("mode: {'fast', 'exact'} = 'fast'").attr("count: int >= 1 = 3").attr("scale: float = 0.5").attr("flag: bool = true")
              .attr("type: type = int32").attr("sizes: list(int) = [1, 2]").attr("shape: shape = {}").attr("needed: string"));
  return ops;
}

struct fixture {
  graph g{test_ops()};
  weft::detail::graph_scope scope = g.as_default();
  output f = weft::constant(1.f, "f").raw(), i = weft::constant(1, "i").raw(), d = weft::constant(1.0, "d").raw();
  const node& add(const char* op, std::vector<output> inputs, attr_map attrs = {}) const { return weft::detail::add_node(op, std::move(inputs), {"n", {"user.cpp", 1}}, std::move(attrs)); }
  std::string failure(const char* op, std::vector<output> inputs, attr_map attrs = {}) const {
    try {
      add(op, std::move(inputs), std::move(attrs));
    } catch (const weft::error& e) {
      CHECK(e.code() == weft::error_code::invalid_argument);
      CHECK(e.node() == "n");
      return e.message();
    }
    return "no error";
  }
};

}  // namespace

TEST_CASE("bind: type attributes come from the inputs") {
  const fixture t;
  const node& n = t.add("Pair", {t.f, t.f});
  CHECK(n.attr<dtype>("T") == dtype::float32);
  CHECK(n.output_dtype(0) == dtype::float32);
  CHECK(t.add("Fixed", {t.i}).output_dtype(0) == dtype::string);
}

TEST_CASE("bind: wrong counts of inputs") {
  const fixture t;
  CHECK(t.failure("Pair", {t.f}) == "takes 2 inputs, found 1");
  CHECK(t.failure("Pair", {t.f, t.f, t.f}) == "takes 2 inputs, found 3");
  CHECK(t.failure("Two", {t.f, t.f, t.f}) == "takes 2 inputs, found 3");
  CHECK(t.failure("Many", {t.f, t.f, t.f}, {{"N", 2}}) == "takes 2 inputs, found 3");
  CHECK(t.failure("Mixed", {}) == "takes 1 inputs, found 0");
}

TEST_CASE("bind: wrong dtypes of inputs") {
  const fixture t;
  CHECK(t.failure("Pair", {t.f, t.i}) == "input 'b' must be float (attribute 'T'), found int32 from 'i'; convert it with weft::cast");
  CHECK(t.failure("Pair", {t.f, t.f}, {{"T", dtype::int32}}) == "input 'a' must be int32 (attribute 'T'), found float from 'f'; convert it with weft::cast");
  CHECK(t.failure("Fixed", {t.f}) == "input 'a' must be int32, found float from 'f'; convert it with weft::cast");
  CHECK(t.failure("Pair", {t.f, t.f}, {{"T", 1}}) == "attribute 'T' must be of kind type, found int");
  CHECK(t.failure("Pair", {t.d, t.d}) == "attribute 'T' must be one of [float, int32], found double");
}

TEST_CASE("bind: a number of tensors of one dtype") {
  const fixture t;
  const node& n = t.add("Many", {t.f, t.f, t.f});
  CHECK(n.attr<std::int64_t>("N") == 3);
  CHECK(n.output_count() == 4);
  CHECK(t.failure("Many", {t.f}) == "attribute 'N' must be at least 2, found 1");
  CHECK(t.failure("Many", {t.f, t.i}) == "input 'values' must be float (attribute 'T'), found int32 from 'i'; convert it with weft::cast");
  CHECK(t.add("Two", {t.f, t.f, t.f, t.f}).attr<std::int64_t>("N") == 2);
}

TEST_CASE("bind: a count of outputs is bounded") {
  const fixture t;
  CHECK(t.add("Parts", {}, {{"N", 3}, {"T", dtype::float32}}).output_count() == 3);
  CHECK(t.failure("Parts", {}, {{"N", std::int64_t{1} << 60}, {"T", dtype::float32}}) == "attribute 'N' must be from 0 to 65536, found 1152921504606846976");
}

TEST_CASE("bind: a list of tensors of any dtypes") {
  const fixture t;
  const node& n = t.add("Mixed", {t.f, t.i, t.d});
  CHECK(n.attr<std::vector<dtype>>("types") == std::vector<dtype>{dtype::int32, dtype::float64});
  REQUIRE(n.output_count() == 2);
  CHECK(n.output_dtype(1) == dtype::float64);
  CHECK(t.failure("Mixed", {t.f, t.i}, {{"types", std::vector<dtype>{dtype::float32}}}) == "the inputs of 'rest' have dtypes [int32], expected [float]");
  CHECK(t.failure("Mixed", {t.f}) == "attribute 'types' must list at least 1, found 0");
}

TEST_CASE("bind: defaults are filled in") {
  const fixture t;
  const node& n = t.add("Options", {}, {{"needed", "x"}});
  CHECK(n.attr<std::string>("mode") == "fast");
  CHECK(n.attr<std::int64_t>("count") == 3);
  CHECK(n.attr<float>("scale") == 0.5f);
  CHECK(n.attr<bool>("flag"));
  CHECK(n.attr<std::vector<std::int64_t>>("sizes") == std::vector<std::int64_t>{1, 2});
  CHECK_FALSE(n.attr<weft::partial_shape>("shape").known_rank());
  CHECK(t.add("Options", {}, {{"needed", "x"}, {"mode", "exact"}}).attr<std::string>("mode") == "exact");
}

TEST_CASE("bind: attributes that are missing or not allowed") {
  const fixture t;
  CHECK(t.failure("Options", {}) == "attribute 'needed' of kind string is missing");
  CHECK(t.failure("Options", {}, {{"needed", 1}}) == "attribute 'needed' must be of kind string, found int");
  CHECK(t.failure("Options", {}, {{"needed", "x"}, {"mode", "slow"}}) == "attribute 'mode' must be one of [\"fast\", \"exact\"], found \"slow\"");
  CHECK(t.failure("Options", {}, {{"needed", "x"}, {"count", 0}}) == "attribute 'count' must be at least 1, found 0");
  CHECK(t.failure("Options", {}, {{"needed", "x"}, {"flag", 1}}) == "attribute 'flag' must be of kind bool, found int");
}

TEST_CASE("bind: attributes that the definition does not know are kept") {
  const fixture t;
  const node& n = t.add("Options", {}, {{"needed", "x"}, {"_mark", true}, {"younger", 5}});
  CHECK(n.attr<bool>("_mark"));
  CHECK(n.attr<std::int64_t>("younger") == 5);
}
