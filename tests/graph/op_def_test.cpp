#include <weft/graph/op_def.hpp>

#include <doctest/doctest.h>
#include <weft/graph/shape_context.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::attr_def;
using weft::dtype;
using weft::op;
using weft::op_def;

namespace {
attr_def attr(const char* spec) { return op_def(op("X").attr(spec)).attrs.at(0); }
}  // namespace

TEST_CASE("op: inputs and outputs") {
  const op_def def = op("X").input("a: T").input("b: N * T").input("c: int64").input("d: types").input("e: Ref(T)").input("f: N*float").output("y: string").attr("T: type").attr("N: int").attr("types: list(type)");
  REQUIRE(def.inputs.size() == 6);
  CHECK(def.name == "X");
  CHECK(def.inputs[0].name == "a");
  CHECK(def.inputs[0].type_attr == "T");
  CHECK(def.inputs[0].type == dtype::invalid);
  CHECK(def.inputs[1].number_attr == "N");
  CHECK(def.inputs[1].type_attr == "T");
  CHECK(def.inputs[2].type == dtype::int64);
  CHECK(def.inputs[2].type_attr.empty());
  CHECK(def.inputs[3].type_list_attr == "types");
  CHECK(def.inputs[3].type_attr.empty());
  CHECK(def.inputs[4].is_ref);
  CHECK(def.inputs[4].type_attr == "T");
  CHECK(def.inputs[5].number_attr == "N");
  CHECK(def.inputs[5].type == dtype::float32);
  CHECK(def.outputs.at(0).type == dtype::string);
}

TEST_CASE("op: kinds of attributes, with and without a default") {
  CHECK(attr("T: type").kind == "type");
  CHECK_FALSE(attr("T: type").default_value);
  CHECK(*attr("T: type = float").default_value == weft::attr_value(dtype::float32));
  CHECK(*attr("b: bool = true").default_value == weft::attr_value(true));
  CHECK(*attr("b: bool = false").default_value == weft::attr_value(false));
  CHECK(*attr("i: int = -5").default_value == weft::attr_value(-5));
  CHECK(*attr("f: float = 0.001").default_value == weft::attr_value(0.001f));
  CHECK(*attr("s: string = 'NHWC'").default_value == weft::attr_value("NHWC"));
  CHECK(*attr("s: string = ''").default_value == weft::attr_value(""));
  CHECK(*attr("l: list(int) = [1, -2]").default_value == weft::attr_value(std::vector<std::int64_t>{1, -2}));
  CHECK(*attr("l: list(float) = [0.5]").default_value == weft::attr_value(std::vector<float>{0.5f}));
  CHECK(*attr("l: list(string) = ['a', 'b']").default_value == weft::attr_value(std::vector<std::string>{"a", "b"}));
  CHECK(*attr("l: list(type) = [float, int32]").default_value == weft::attr_value(std::vector<dtype>{dtype::float32, dtype::int32}));
  CHECK(*attr("l: list(int) = []").default_value == weft::attr_value(std::vector<std::int64_t>()));
  CHECK(attr("s: shape").kind == "shape");
  CHECK(*attr("s: shape = {}").default_value == weft::attr_value(weft::partial_shape()));
}

TEST_CASE("op: what attributes may be") {
  const attr_def types = attr("T: {float, int32} = int32");
  CHECK(types.kind == "type");
  CHECK(types.allowed_types == std::vector<dtype>{dtype::float32, dtype::int32});
  CHECK(*types.default_value == weft::attr_value(dtype::int32));
  const attr_def texts = attr("mode: {'a', \"b\"} = 'a'");
  CHECK(texts.kind == "string");
  CHECK(texts.allowed_strings == std::vector<std::string>{"a", "b"});
  const attr_def number = attr("N: int >= 2 = 3");
  CHECK(number.kind == "int");
  CHECK(number.minimum == 2);
  CHECK(*number.default_value == weft::attr_value(3));
  CHECK(attr("N: int >= 0").minimum == 0);
  const attr_def list = attr("types: list({float, half}) >= 1");
  CHECK(list.kind == "list(type)");
  CHECK(list.minimum == 1);
  CHECK(list.allowed_types == std::vector<dtype>{dtype::float32, dtype::half});
}

TEST_CASE("op: a definition that cannot be read says which and where") {
  CHECK_THROWS_WITH_AS(op("X").input("no colon"), "INVALID_ARGUMENT: op 'X': cannot read 'no colon'", weft::error);
  CHECK_THROWS_WITH_AS(op("X").attr("T"), "INVALID_ARGUMENT: op 'X': cannot read 'T'", weft::error);
  CHECK_THROWS_WITH_AS(op("X").attr("T: {flaot}"), "INVALID_ARGUMENT: op 'X': cannot read 'T: {flaot}'", weft::error);
  CHECK_THROWS_WITH_AS(op("X").attr("T: tpye"), "INVALID_ARGUMENT: op 'X': cannot read 'T: tpye'", weft::error);
  CHECK_THROWS_WITH_AS(op("X").attr("T: type = flaot"), "INVALID_ARGUMENT: op 'X': cannot read 'T: type = flaot'", weft::error);
  CHECK_THROWS_AS(op("X").attr("N: int = three"), weft::error);
  CHECK_THROWS_AS(op("X").attr("b: bool = yes"), weft::error);
}

TEST_CASE("op_def: flags and lookup") {
  const op_def def = op("X").attr("T: type").stateful().commutative().shapes([](weft::shape_context&) {});
  CHECK(def.stateful);
  CHECK(def.commutative);
  CHECK((def.shapes != nullptr));
  CHECK(def.find_attr("T") == &def.attrs[0]);
  CHECK(def.find_attr("U") == nullptr);
}
