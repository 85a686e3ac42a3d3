#include <weft/cluster/wire.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

using namespace std::string_literals;

namespace {

// The message of the error that reading throws; empty when it throws none.
template <class Read> std::string fault(const std::string& bytes, Read read) {
  weft::wire_reader from(bytes, "run message");
  try {
    read(from);
  } catch (const weft::error& e) {
    CHECK(e.code() == weft::error_code::invalid_argument);
    return e.message();
  }
  return "";
}

enum class color : std::uint8_t { red, green, blue };

}  // namespace

TEST_CASE("wire: numbers are little-endian") {
  weft::wire_writer to;
  to.u8(0x12).u16(0x3456).u32(0x789abcde).u64(0x0123456789abcdef).i32(-2).i64(-3).boolean(true).enumerator(color::blue);
  CHECK(to.bytes() ==
        "\x12\x56\x34\xde\xbc\x9a\x78\xef\xcd\xab\x89\x67\x45\x23\x01\xfe\xff\xff\xff\xfd\xff\xff\xff\xff\xff\xff\xff\x01\x02"s);
  weft::wire_reader from(to.bytes());
  CHECK(from.u8() == 0x12);
  CHECK(from.u16() == 0x3456);
  CHECK(from.u32() == 0x789abcde);
  CHECK(from.u64() == 0x0123456789abcdef);
  CHECK(from.i32() == -2);
  CHECK(from.i64() == -3);
  CHECK(from.boolean());
  CHECK(from.enumerator(color::blue) == color::blue);
  CHECK(from.done());
}

TEST_CASE("wire: doubles keep their bits") {
  weft::wire_writer to;
  to.f64(1.5).f64(-0.0).f64(std::numeric_limits<double>::quiet_NaN()).f64(-std::numeric_limits<double>::infinity());
  CHECK(to.bytes().substr(0, 8) == "\0\0\0\0\0\0\xf8\x3f"s);
  weft::wire_reader from(to.bytes());
  CHECK(from.f64() == 1.5);
  CHECK(std::signbit(from.f64()));
  CHECK(std::isnan(from.f64()));
  CHECK(from.f64() == -std::numeric_limits<double>::infinity());
}

TEST_CASE("wire: strings are counted and may hold anything") {
  weft::wire_writer to;
  to.string("a\0\xff"s).string("").raw("tail");
  CHECK(to.bytes() == "\x03\0\0\0a\0\xff\0\0\0\0tail"s);
  weft::wire_reader from(to.bytes());
  CHECK(from.string() == "a\0\xff"s);
  CHECK(from.view().empty());
  CHECK(from.remaining() == 4);
  CHECK(from.raw(4) == "tail");
  CHECK(to.take().size() == 15);
  CHECK(to.size() == 0);
}

TEST_CASE("wire: a writer continues what it is given") {
  weft::wire_writer to("ab");
  to.u8('c');
  CHECK(to.bytes() == "abc");
}

TEST_CASE("wire: reading past the end names the place") {
  CHECK(fault("\x01\x02\x03"s, [](weft::wire_reader& from) { from.u16(); from.u32(); }) ==
        "run message: expected 4 more bytes, found 1 (before byte 2 of 3)");
  CHECK(fault("", [](weft::wire_reader& from) { from.u8(); }) == "run message: expected 1 more bytes, found 0 (before byte 0 of 0)");
  CHECK(fault("\x05\0\0\0abcd"s, [](weft::wire_reader& from) { from.string(); }) ==
        "run message: a string of 5 bytes does not fit into the 4 bytes that follow (before byte 4 of 8)");
  CHECK(fault("\xff\xff\xff\xff"s, [](weft::wire_reader& from) { from.string(); }) ==
        "run message: a string of 4294967295 bytes does not fit into the 0 bytes that follow (before byte 4 of 4)");
}

TEST_CASE("wire: a count that the message cannot hold is refused before memory is taken") {
  CHECK(fault("\x03\0\0\0abcdefgh"s, [](weft::wire_reader& from) { CHECK(from.count(2) == 3); }).empty());
  CHECK(fault("\xff\xff\xff\xff""abcdefgh"s, [](weft::wire_reader& from) { from.count(4); }) ==
        "run message: a list of 4294967295 elements does not fit into the 8 bytes that follow (before byte 4 of 12)");
  CHECK(fault("\x03\0\0\0abcdefgh"s, [](weft::wire_reader& from) { from.count(3); }) ==
        "run message: a list of 3 elements does not fit into the 8 bytes that follow (before byte 4 of 12)");
}

TEST_CASE("wire: booleans and enumerators are closed") {
  CHECK(fault("\x02", [](weft::wire_reader& from) { from.boolean(); }) == "run message: expected 0 or 1, found 2 (before byte 1 of 1)");
  CHECK(fault("\x03", [](weft::wire_reader& from) { from.enumerator(color::blue); }) == "run message: value 3 is not one of 0 to 2 (before byte 1 of 1)");
}

TEST_CASE("wire: bytes that are left over are a fault") {
  CHECK(fault("ab", [](weft::wire_reader& from) { from.u8(); from.finish(); }) == "run message: 1 bytes are left over (before byte 1 of 2)");
}

TEST_CASE("wire: a status crosses with all its fields") {
  weft::status s(weft::error_code::aborted, "restarted");
  s.node = "mul";
  s.op = "MatMul";
  s.device = "/job:work/task:1/device:CPU:0";
  s.task = "/job:work/task:1 (127.0.0.1:33334)";
  s.site = "train.cpp:42";
  for (const bool derived : {false, true})
    for (const bool may_have_run : {false, true}) {
      s.derived = derived;
      s.may_have_run = may_have_run;
      weft::wire_writer to;
      encode_status(to, s);
      weft::wire_reader from(to.bytes());
      CHECK(decode_status(from) == s);
      CHECK(from.done());
    }
}

TEST_CASE("wire: a status with an unknown code or flag is refused") {
  const std::string rest(6 * 4, '\0');
  CHECK(fault("\x11\0"s + rest, [](weft::wire_reader& from) { decode_status(from); }) == "run message: value 17 is not one of 0 to 16 (before byte 1 of 26)");
  CHECK(fault("\x03\x04"s + rest, [](weft::wire_reader& from) { decode_status(from); }) == "run message: a status has the unknown flags 4 (before byte 2 of 26)");
  CHECK(fault("\x03\x03"s + rest.substr(1), [](weft::wire_reader& from) { decode_status(from); }) ==
        "run message: expected 4 more bytes, found 3 (before byte 22 of 25)");
}
