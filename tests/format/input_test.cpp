#include <weft/format/csv.hpp>
#include <weft/format/idx.hpp>

#include "file_test_support.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using file_test::bytes;
using file_test::error_of;
using file_test::put;
using weft::dtype;
using weft::error_code;
using weft::tensor_value;

TEST_CASE("idx: every dtype, any rank") {
  const file_test::folder dir;
  const auto read = [&](const char* hex) {
    put(dir / "x", bytes(hex));
    return weft::read_idx(dir / "x");
  };
  CHECK(read("00000803 00000002 00000001 00000003 010203fdfeff") == tensor_value::from<std::uint8_t>({2, 1, 3}, {1, 2, 3, 253, 254, 255}));
  CHECK(read("00000901 00000002 01ff") == tensor_value::from<std::int8_t>({2}, {1, -1}));
  CHECK(read("00000b01 00000002 0102fffe") == tensor_value::from<std::int16_t>({2}, {0x102, -2}));
  CHECK(read("00000c01 00000001 00010203") == tensor_value::from<std::int32_t>({1}, {0x10203}));
  CHECK(read("00000d01 00000001 3fc00000") == tensor_value::from<float>({1}, {1.5f}));
  CHECK(read("00000e01 00000001 3ff8000000000000") == tensor_value::from<double>({1}, {1.5}));
  CHECK(read("00000800 07") == tensor_value::scalar(std::uint8_t(7)));
  CHECK(read("00000802 00000000 00000005") == tensor_value(dtype::uint8, weft::shape{0, 5}));
}

TEST_CASE("idx: a damaged file is refused, with its name and the fault") {
  const file_test::folder dir;
  const std::string path = dir / "x";
  const struct {
    const char *bytes, *fault;
  } cases[] = {
      {"0000", "': not an IDX file: it has 2 bytes"},
      {"1f8b0800 00000000", "' is compressed; run gunzip on it first"},
      {"00000701 00000000", "': not an IDX file: it begins with 1793, expected 0x00000800 and the like"},
      {"000008ff", "': it has 255 dimensions, at most 254 are allowed"},
      {"00000802 00000001", "': the file has 8 bytes, expected 4 more at 8"},
      {"00000801 00000003 0102", "': an array of uint8[3] does not fit the 2 bytes behind the header"},
      {"00000e01 00000001 0102", "': an array of double[1] does not fit the 2 bytes behind the header"},
      {"00000803 ffffffff ffffffff ffffffff 01", "': an array of uint8[4294967295,4294967295,4294967295] does not fit the 1 bytes behind the header"},
  };
  for (const auto& c : cases) {
    put(path, bytes(c.bytes));
    CHECK(error_of([&] { (void)weft::read_idx(path); }).message == "'" + path + c.fault);
  }
}

TEST_CASE("csv: numbers, labels and texts, quoted fields, line ends of all kinds") {
  weft::csv_options named;
  named.header = weft::csv_header::first_row;
  const auto t = weft::csv_table::parse("\xef\xbb\xbfx,y,\"kind, of\"\r\n1, -2.5 ,red\r\n\r\n+3,4e2,\"a \"\"blue\"\" one\nin two lines\"\n-7,nan,red", named, "t.csv");
  CHECK(t.rows() == 3);
  CHECK(t.names() == std::vector<std::string>{"x", "y", "kind, of"});
  CHECK(t.numbers(t.column("x"), dtype::int32) == tensor_value::from<std::int32_t>({3}, {1, 3, -7}));
  const auto xy = t.numbers(0, 2);
  CHECK(xy.shape() == weft::shape{3, 2});
  CHECK(xy.data<float>()[1] == -2.5f);
  CHECK(xy.data<float>()[3] == 400.f);
  CHECK(t.texts(2) == tensor_value::from<std::string>({3}, {"red", "a \"blue\" one\nin two lines", "red"}));
  CHECK(t.classes(2) == std::vector<std::string>{"a \"blue\" one\nin two lines", "red"});
  CHECK(t.labels(2, {"red", "a \"blue\" one\nin two lines"}) == tensor_value::from<std::int32_t>({3}, {0, 1, 0}));
  CHECK(weft::csv_table::parse("1;;3\n4;5;").texts(0).elements() == 2);
  weft::csv_options semicolon;
  semicolon.separator = ';';
  const auto s = weft::csv_table::parse("1;;3\n4;5;", semicolon);
  CHECK(s.columns() == 3);
  CHECK(s.field(0, 1).empty());
  CHECK(s.field(1, 2).empty());
  CHECK(weft::csv_table::parse("").rows() == 0);
  CHECK(weft::csv_table::parse("a,b\n", named).rows() == 0);
}

TEST_CASE("csv: faults name file, line and column") {
  const auto fault = [](const char* text, auto use) {
    return error_of([&] { use(weft::csv_table::parse(text, {}, "t.csv")); }).message;
  };
  const auto parse = [](const weft::csv_table&) {};
  CHECK(fault("1,2\n3\n", parse) == "'t.csv' line 2: expected 2 fields, found 1");
  CHECK(fault("1,2\n3,4,5\n", parse) == "'t.csv' line 2: expected 2 fields, found 3");
  CHECK(fault("1,\"2\n3", parse) == "'t.csv' line 1, column 3: the quote is not closed");
  CHECK(fault("1,\"2\"x\n", parse) == "'t.csv' line 1, column 3: there is something behind the closing quote");
  CHECK(fault("1,2\n\n3,abc\n", [](const auto& t) { (void)t.numbers(0, 2); }) == "'t.csv' line 3, column 3: expected a number, found 'abc'");
  CHECK(fault("1,\n", [](const auto& t) { (void)t.numbers(0, 2); }) == "'t.csv' line 1, column 3: expected a number, found ''");
  CHECK(fault("1.5\n", [](const auto& t) { (void)t.numbers(0, dtype::int32); }) == "'t.csv' line 1, column 1: expected an integer, found '1.5'");
  CHECK(fault("256\n", [](const auto& t) { (void)t.numbers(0, dtype::uint8); }) == "'t.csv' line 1, column 1: '256' does not fit uint8");
  CHECK(fault("1e39\n", [](const auto& t) { (void)t.numbers(0); }) == "'t.csv' line 1, column 1: '1e39' does not fit float");
  CHECK(fault("9999999999999999999\n", [](const auto& t) { (void)t.numbers(0, dtype::int64); }) == "'t.csv' line 1, column 1: '9999999999999999999' does not fit int64");
  CHECK(fault("a\n", [](const auto& t) { (void)t.labels(0, {"b"}); }) == "'t.csv' line 1, column 1: 'a' is none of the 1 classes");
  CHECK(fault("a\n", [](const auto& t) { (void)t.numbers(0, 2); }) == "'t.csv' has 1 columns, asked for 2 from number 0");
  CHECK(fault("a\n", [](const auto& t) { (void)t.column("x"); }) == "'t.csv' has no column 'x'");
  CHECK(fault("a\n", [](const auto& t) { (void)t.field(1, 0); }) == "'t.csv' has 1 rows, asked for number 1");
}
