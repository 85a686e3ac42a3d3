#include <weft/tensor/dtype.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

using weft::bfloat16;
using weft::dtype;
using weft::half;

namespace {

half half_of(unsigned bits) {
  half h;
  h.bits = static_cast<std::uint16_t>(bits);
  return h;
}
bfloat16 bfloat16_of(unsigned bits) {
  bfloat16 b;
  b.bits = static_cast<std::uint16_t>(bits);
  return b;
}
float float_of(std::uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}
// The value of a finite half by the definition of binary16.
double value_of(unsigned bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31U), mantissa = static_cast<int>(bits & 1023U);
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

struct row {
  dtype type;
  unsigned number;
  const char* name;
  std::size_t size;
};
// Numbers and names of TensorFlow's DataType.
constexpr row rows[] = {
    {dtype::float32, 1, "float", 4},    {dtype::float64, 2, "double", 8},   {dtype::int32, 3, "int32", 4},        {dtype::uint8, 4, "uint8", 1},
    {dtype::int16, 5, "int16", 2},      {dtype::int8, 6, "int8", 1},        {dtype::string, 7, "string", 0},      {dtype::complex64, 8, "complex64", 8},
    {dtype::int64, 9, "int64", 8},      {dtype::boolean, 10, "bool", 1},    {dtype::bfloat16, 14, "bfloat16", 2}, {dtype::uint16, 17, "uint16", 2},
    {dtype::complex128, 18, "complex128", 16}, {dtype::half, 19, "half", 2}, {dtype::resource, 20, "resource", 0}, {dtype::variant, 21, "variant", 0},
    {dtype::uint32, 22, "uint32", 4},   {dtype::uint64, 23, "uint64", 8}};

static_assert(std::is_same_v<weft::dtype_t<long long>, std::int64_t> && std::is_same_v<weft::dtype_t<long>, std::int64_t>);
static_assert(std::is_same_v<weft::dtype_t<unsigned long long>, std::uint64_t> && std::is_same_v<weft::dtype_t<int>, std::int32_t>);
static_assert(std::is_same_v<weft::dtype_t<signed char>, std::int8_t> && std::is_same_v<weft::dtype_t<unsigned char>, std::uint8_t>);
static_assert(std::is_same_v<weft::dtype_t<const char*>, std::string> && std::is_same_v<weft::dtype_t<char[4]>, std::string>);
static_assert(std::is_same_v<weft::dtype_t<std::string_view>, std::string> && std::is_same_v<weft::dtype_t<const bool&>, bool>);
static_assert(std::is_void_v<weft::dtype_t<char>> && std::is_void_v<weft::dtype_t<wchar_t>> && std::is_void_v<weft::dtype_t<long double>>);
static_assert(weft::is_dtype_v<float> && weft::is_dtype_v<half> && !weft::is_dtype_v<long long> && !weft::is_dtype_v<const float>);
static_assert(weft::dtype_of<double> == dtype::float64 && weft::dtype_of<bool> == dtype::boolean && weft::dtype_of<bfloat16> == dtype::bfloat16);
static_assert(weft::dtype_of<std::string> == dtype::string && weft::dtype_of<weft::resource_handle> == dtype::resource);
}  // namespace

TEST_CASE("dtype: numbers, names and sizes are TensorFlow's") {
  for (const row& r : rows) {
    CAPTURE(r.name);
    CHECK(static_cast<unsigned>(r.type) == r.number);
    CHECK(std::string(to_text(r.type)) == r.name);
    CHECK(weft::parse_dtype(r.name) == r.type);
    CHECK(weft::size_of(r.type) == r.size);
    CHECK(weft::is_plain(r.type) == (r.size != 0));
    CHECK(weft::is_known_dtype(r.number));
  }
}

TEST_CASE("dtype: every other number and name is unknown") {
  for (const unsigned number : {0U, 11U, 12U, 13U, 15U, 16U, 24U, 101U, 255U, 256U, 4294967295U}) CHECK_FALSE(weft::is_known_dtype(number));
  for (const char* name : {"", "invalid", "Float", "float32", "int", "DT_FLOAT", "float "}) CHECK(weft::parse_dtype(name) == dtype::invalid);
  CHECK(std::string(to_text(dtype::invalid)) == "invalid");
  CHECK(std::string(to_text(static_cast<dtype>(200))) == "invalid");
}

TEST_CASE("dtype: which are floating and which are integers") {
  std::string floating, integers;
  for (const row& r : rows) {
    if (weft::is_floating(r.type)) floating += std::string(r.name) + " ";
    if (weft::is_integer(r.type)) integers += std::string(r.name) + " ";
  }
  CHECK(floating == "float double bfloat16 half ");
  CHECK(integers == "int32 uint8 int16 int8 int64 uint16 uint32 uint64 ");
}

TEST_CASE("half: every value becomes the float it stands for, and comes back") {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const float f = static_cast<float>(half_of(bits));
    const bool special = (bits & 0x7c00U) == 0x7c00U, nan = special && (bits & 0x3ffU) != 0;
    if (nan) {
      REQUIRE(std::isnan(f));
      const half back(f);
      REQUIRE((back.bits & 0x7c00U) == 0x7c00U);
      REQUIRE((back.bits & 0x3ffU) != 0);
      continue;
    }
    if (special) REQUIRE(f == ((bits & 0x8000U) != 0 ? -HUGE_VALF : HUGE_VALF));
    else REQUIRE(static_cast<double>(f) == value_of(bits));
    REQUIRE(std::signbit(f) == ((bits & 0x8000U) != 0));
    REQUIRE(half(f).bits == bits);
  }
}

TEST_CASE("half: what lies between two values goes to the nearer, a tie to the even one") {
  for (unsigned bits = 0; bits < 0x7bffU; ++bits) {  // all pairs of finite neighbours
    const float middle = static_cast<float>((value_of(bits) + value_of(bits + 1)) / 2);
    const unsigned even = (bits & 1U) == 0 ? bits : bits + 1;
    REQUIRE(half(middle).bits == even);
    REQUIRE(half(-middle).bits == (even | 0x8000U));
    REQUIRE(half(std::nextafter(middle, 0.f)).bits == bits);
    REQUIRE(half(std::nextafter(middle, 1e6f)).bits == bits + 1);
  }
}

TEST_CASE("half: the ends of the range") {
  CHECK(half(65504.f).bits == 0x7bff);
  CHECK(half(65519.99f).bits == 0x7bff);
  CHECK(half(65520.f).bits == 0x7c00);   // the tie beyond the largest value is infinite
  CHECK(half(-1e30f).bits == 0xfc00);
  CHECK(half(HUGE_VALF).bits == 0x7c00);
  CHECK(half(0x1p-24f).bits == 0x0001);
  CHECK(half(0x1p-25f).bits == 0x0000);  // halfway to the smallest value
  CHECK(half(0x1.000002p-25f).bits == 0x0001);
  CHECK(half(1e-40f).bits == 0x0000);
  CHECK(half(-0.f).bits == 0x8000);
  CHECK((half(std::numeric_limits<float>::quiet_NaN()).bits & 0x7fffU) == 0x7e00U);
  CHECK((half(float_of(0xff800001U)).bits) == 0xfe00);  // a signalling NaN becomes a quiet one
  CHECK(half(1.f) == half_of(0x3c00));
  CHECK(half(1.f) != half(-1.f));
}

TEST_CASE("bfloat16: every value is the upper half of a float, and comes back") {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const float f = static_cast<float>(bfloat16_of(bits));
    std::uint32_t wide;
    std::memcpy(&wide, &f, sizeof wide);
    if ((bits & 0x7fffU) > 0x7f80U) {
      REQUIRE(std::isnan(f));
      REQUIRE(bfloat16(f).bits == (bits | 0x40U));
    } else {
      REQUIRE(wide == bits << 16);
      REQUIRE(bfloat16(f).bits == bits);
    }
  }
}

TEST_CASE("bfloat16: rounds to nearest, ties to even") {
  CHECK(bfloat16(1.f).bits == 0x3f80);
  CHECK(bfloat16(float_of(0x3f808000U)).bits == 0x3f80);
  CHECK(bfloat16(float_of(0x3f808001U)).bits == 0x3f81);
  CHECK(bfloat16(float_of(0x3f818000U)).bits == 0x3f82);
  CHECK(bfloat16(float_of(0x3f817fffU)).bits == 0x3f81);
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat16(float_of(0xff7f7fffU)).bits == 0xff7f);
  CHECK(bfloat16(float_of(0x00000001U)).bits == 0x0000);  // the smallest denormal float
  CHECK(bfloat16(float_of(0x00018000U)).bits == 0x0002);
  CHECK(bfloat16(-0.f).bits == 0x8000);
  CHECK(bfloat16(HUGE_VALF).bits == 0x7f80);
  CHECK(bfloat16(float_of(0x7f800001U)).bits == 0x7fc0);  // its payload would be lost: still a NaN
  CHECK(bfloat16(2.f) == bfloat16_of(0x4000));
  CHECK(bfloat16(2.f) != bfloat16(1.f));
}

TEST_CASE("resource_handle: equal when all four parts are") {
  const weft::resource_handle a{"/job:ps/task:0/device:CPU:0", "", "w", "variable"};
  weft::resource_handle b = a;
  CHECK(a == b);
  for (std::string weft::resource_handle::*part : {&weft::resource_handle::device, &weft::resource_handle::container, &weft::resource_handle::name, &weft::resource_handle::kind}) {
    b = a;
    b.*part += "x";
    CHECK(a != b);
  }
}
