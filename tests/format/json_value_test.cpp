#include <weft/format/json_value.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <string_view>

using namespace weft::detail;

namespace {

// What reading says of a text: "" when it is read.
std::string fault(std::string_view text) {
  try {
    (void)parse_json(text);
  } catch (const weft::error& e) {
    CHECK(e.code() == weft::error_code::invalid_argument);
    return e.message();
  }
  return "";
}

template <class Read> std::string fault_of(std::string_view text, Read read) {
  const json_value v = parse_json(text);
  try {
    (void)read(json_at(v));
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("json: what is not JSON is refused with line and column") {
  CHECK(fault("") == "not JSON at line 1, column 1");
  CHECK(fault("{\n  \"a\": 1,\n  b}") == "not JSON at line 3, column 3");
  CHECK(fault("{\"a\": 1") == "not JSON at line 1, column 8");
  CHECK(fault("[1,]") == "not JSON at line 1, column 4");
  CHECK(fault("[1] 2") == "not JSON at line 1, column 5");
  CHECK(fault("\"\xff\"") == "not JSON at line 1, column 2");
  CHECK(fault("[1e400]") == "not JSON at line 1, column 6");
  CHECK(fault("nul") == "not JSON at line 1, column 4");
  CHECK(fault("{\"a\": 1, \"b\": 2, \"a\": 3}") == "an object has two members 'a'");
}

TEST_CASE("json: nesting is read up to 64 levels, however deep the text goes") {
  CHECK(fault(nested(64)).empty());
  CHECK(fault(nested(65)) == "nested more than 64 levels deep");
  CHECK(fault(std::string(1000000, '[')) == "nested more than 64 levels deep");
  CHECK(fault("{\"a\":" + std::string(200000, '[')) == "nested more than 64 levels deep");
}

TEST_CASE("json: numbers are read exactly or not at all") {
  const auto integer = [](const json_at& at) { return integer_at(at); };
  CHECK(integer_at(json_at(parse_json("\"-9223372036854775808\""))) == std::numeric_limits<std::int64_t>::min());
  CHECK(integer_at(json_at(parse_json("9223372036854775807"))) == std::numeric_limits<std::int64_t>::max());
  CHECK(integer_at(json_at(parse_json("3.0"))) == 3);
  CHECK(natural_at(json_at(parse_json("\"18446744073709551615\""))) == std::numeric_limits<std::uint64_t>::max());
  CHECK(fault_of("2.5", integer) == "expected an integer");
  CHECK(fault_of("1e300", integer) == "expected an integer");
  CHECK(fault_of("18446744073709551616", integer) == "expected an integer");
  CHECK(fault_of("\"\"", integer) == "expected a number, found \"\"");
  CHECK(fault_of("\"3x\"", integer) == "expected a number, found \"3x\"");
  CHECK(fault_of("\"[1]\"", integer) == "expected a number, found \"[1]\"");
  CHECK(fault_of("null", integer) == "expected a number, found null");
  CHECK(fault_of("true", integer) == "expected a number, found a bool");
  CHECK(fault_of("9223372036854775808", integer) == "expected an integer from -9223372036854775808 to 9223372036854775807, found 9223372036854775808");
  CHECK(fault_of("-1", [](const json_at& at) { return natural_at(at); }) == "expected an integer from 0 to 9223372036854775807, found -1");
  CHECK(fault_of("300", [](const json_at& at) { return integer_at(at, 0, 255); }) == "expected an integer from 0 to 255, found 300");
  CHECK(real_at(json_at(parse_json("\"-Infinity\""))) == -std::numeric_limits<double>::infinity());
  CHECK(real_at(json_at(parse_json("\"1.5\""))) == 1.5);
  CHECK(float_at(json_at(parse_json("3.4028235e38"))) == std::numeric_limits<float>::max());
  CHECK(fault_of("1e39", [](const json_at& at) { return float_at(at); }) == "the number is too large for a float");
}

TEST_CASE("json: base64 of either alphabet, with or without padding") {
  const auto bytes = [](const char* text) { return bytes_at(json_at(parse_json("\"" + std::string(text) + "\""))); };
  CHECK(bytes("") == "");
  CHECK(bytes("Zg==") == "f");
  CHECK(bytes("Zg") == "f");
  CHECK(bytes("Zm8=") == "fo");
  CHECK(bytes("Zm9v") == "foo");
  CHECK(bytes("+/+/") == bytes("-_-_"));
  CHECK(bytes("+/+/") == "\xfb\xff\xbf");
  for (const char* bad : {"Z", "Zm9vZ", "Zm 9", "====", "Zg=", "Zm9v=", "Z\xc3\xbc", "Zg==Zg=="})
    CHECK(fault_of("\"" + std::string(bad) + "\"", [](const json_at& at) { return bytes_at(at); }) == "not base64");
}

TEST_CASE("json: fields have two spellings, and their faults are named by the way there") {
  const json_value v = parse_json(R"({"tensorShape": {"dim": [{"size": 1}, {"size": "x"}]}, "null_field": null})");
  const json_at top(v);
  const json_value* shape = find_field(top, "tensor_shape");
  REQUIRE(shape != nullptr);
  CHECK(find_field(top, "null_field") == nullptr);
  CHECK(find_field(top, "tensorShape") == shape);
  const json_at shape_at(*shape, top, "tensor_shape"), dims(*find_field(shape_at, "dim"), shape_at, "dim"), second(dims.value.items[1], dims, 1), size(*find_field(second, "size"), second, "size");
  CHECK(path_of(size) == "tensor_shape.dim[1].size");
  const json_value both = parse_json(R"({"tensorShape": {}, "tensor_shape": {}})");
  CHECK_THROWS_WITH_AS(find_field(json_at(both), "tensor_shape"), "INVALID_ARGUMENT: the field 'tensor_shape' is given twice, in both spellings", weft::error);
  CHECK_THROWS_WITH_AS(expect_fields(top, {"tensor_shape"}), "INVALID_ARGUMENT: there is no field 'null_field' here", weft::error);
  CHECK_THROWS_WITH_AS(elements_at(top), "INVALID_ARGUMENT: expected an array, found an object", weft::error);
}
