#include <weft/tensor/value_traits.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using weft::shape;
using weft::tensor_value;
using weft::value_traits;

namespace {
// A user's own container: two rows of three numbers.
struct grid {
  std::array<float, 6> cells{1, 2, 3, 4, 5, 6};
};
struct unknown_type {};

template <class V> tensor_value make(const V& v) { return value_traits<V>::make(v); }
template <class V, class T, int N> constexpr bool gives = std::is_same_v<typename value_traits<V>::dtype, T> && value_traits<V>::rank == N;
}  // namespace

namespace weft {
template <> struct value_traits<grid> {
  using dtype = float;
  static constexpr int rank = 2;
  static tensor_value make(const grid& g) { return tensor_value::from<float>({2, 3}, {g.cells.begin(), g.cells.end()}); }
};
}  // namespace weft

static_assert(gives<float, float, 0> && gives<bool, bool, 0> && gives<long long, std::int64_t, 0> && gives<weft::half, weft::half, 0>);
static_assert(gives<std::string, std::string, 0> && gives<std::string_view, std::string, 0> && gives<const char*, std::string, 0> && gives<char[4], std::string, 0>);
static_assert(gives<std::vector<float>, float, 1> && gives<std::vector<std::vector<int>>, std::int32_t, 2> && gives<std::vector<bool>, bool, 1>);
static_assert(gives<std::array<double, 3>, double, 1> && gives<std::vector<std::array<unsigned char, 2>>, std::uint8_t, 2>);
static_assert(gives<std::vector<grid>, float, 3>);
static_assert(std::is_void_v<value_traits<char>::dtype> && std::is_void_v<value_traits<unknown_type>::dtype> && std::is_void_v<value_traits<std::vector<unknown_type>>::dtype>);

TEST_CASE("value_traits: numbers and strings have rank 0") {
  CHECK(make(1.5f) == tensor_value::from<float>({}, {1.5f}));
  CHECK(make(7LL) == tensor_value::from<std::int64_t>({}, {7}));
  CHECK(make(true) == tensor_value::from<bool>({}, {true}));
  CHECK(make(std::string("a")) == tensor_value::from<std::string>({}, {"a"}));
  CHECK(make(std::string_view("bc")) == tensor_value::from<std::string>({}, {"bc"}));
  CHECK(value_traits<char[4]>::make("abc") == tensor_value::from<std::string>({}, {"abc"}));
}

TEST_CASE("value_traits: std containers, nested") {
  CHECK(make(std::vector<float>{1, 2}) == tensor_value::from<float>({2}, {1, 2}));
  CHECK(make(std::vector<bool>{true, false, true}) == tensor_value::from<bool>({3}, {true, false, true}));
  CHECK(make(std::vector<std::vector<int>>{{1, 2, 3}, {4, 5, 6}}) == tensor_value::from<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(make(std::vector<std::vector<bool>>{{true}, {false}}) == tensor_value::from<bool>({2, 1}, {true, false}));
  CHECK(make(std::array<std::array<std::int64_t, 2>, 2>{{{1, 2}, {3, 4}}}) == tensor_value::from<std::int64_t>({2, 2}, {1, 2, 3, 4}));
  CHECK(make(std::vector<std::array<double, 2>>{{1, 2}}) == tensor_value::from<double>({1, 2}, {1, 2}));
  CHECK(make(std::vector<const char*>{"a", "b"}) == tensor_value::from<std::string>({2}, {"a", "b"}));
  CHECK(make(std::vector<weft::bfloat16>{weft::bfloat16(2.f)}) == tensor_value::from<weft::bfloat16>({1}, {weft::bfloat16(2.f)}));
  CHECK(make(std::vector<std::vector<std::vector<float>>>{{{1}, {2}}, {{3}, {4}}}) == tensor_value::from<float>({2, 2, 1}, {1, 2, 3, 4}));
}

TEST_CASE("value_traits: empty lists have size 0 there and below") {
  CHECK(make(std::vector<float>{}).shape() == shape{0});
  CHECK(make(std::vector<std::vector<double>>{}).shape() == shape{0, 0});
  CHECK(make(std::vector<std::vector<double>>{{}, {}}).shape() == shape{2, 0});
  CHECK(make(std::vector<std::vector<std::vector<float>>>{{}, {}}).shape() == shape{2, 0, 0});
  CHECK(make(std::array<int, 0>{}).shape() == shape{0});
}

TEST_CASE("value_traits: rows must have one length") {
  CHECK_THROWS_WITH_AS(make(std::vector<std::vector<int>>{{1, 2}, {3}}), "INVALID_ARGUMENT: rows of different lengths: 2 and 1", weft::error);
  CHECK_THROWS_WITH_AS(make(std::vector<std::vector<int>>{{}, {3}}), "INVALID_ARGUMENT: rows of different lengths: 0 and 1", weft::error);
  CHECK_THROWS_WITH_AS(make(std::vector<std::vector<std::vector<int>>>{{{1}}, {{1, 2}}}), "INVALID_ARGUMENT: rows of different lengths: 1 and 2", weft::error);
}

TEST_CASE("value_traits: own types, alone and in lists") {
  CHECK(make(grid()) == tensor_value::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(make(std::vector<grid>(2)) == tensor_value::from<float>({2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST_CASE("scalar: an integer beside a tensor must be exactly what it is there") {
  using weft::detail::exact_integer;
  const weft::call_site where{"user.cpp", 7};
  CHECK(exact_integer<std::uint8_t>(255, where) == 255);
  CHECK(exact_integer<float>(16777216, where) == 16777216.f);
  CHECK(exact_integer<std::int64_t>(5U, where) == 5);
  CHECK(exact_integer<weft::half>(2048, where).bits == 0x6800);
  CHECK(exact_integer<double>(std::uint64_t{1} << 63, where) == 9223372036854775808.0);
  CHECK_THROWS_WITH_AS(exact_integer<std::uint8_t>(256, where), "INVALID_ARGUMENT: user.cpp:7: the number 256 does not fit into uint8", weft::error);
  CHECK_THROWS_WITH_AS(exact_integer<std::int8_t>(-129, where), "INVALID_ARGUMENT: user.cpp:7: the number -129 does not fit into int8", weft::error);
  CHECK_THROWS_WITH_AS(exact_integer<std::uint64_t>(-1, where), "INVALID_ARGUMENT: user.cpp:7: the number -1 does not fit into uint64", weft::error);
  CHECK_THROWS_WITH_AS(exact_integer<std::int64_t>(std::uint64_t{1} << 63, where), "INVALID_ARGUMENT: user.cpp:7: the number 9223372036854775808 does not fit into int64", weft::error);
  CHECK_THROWS_WITH_AS(exact_integer<float>(16777217, where), "INVALID_ARGUMENT: user.cpp:7: the number 16777217 does not fit into float", weft::error);
  CHECK_THROWS_WITH_AS(exact_integer<weft::half>(2049, where), "INVALID_ARGUMENT: user.cpp:7: the number 2049 does not fit into half", weft::error);
  CHECK_THROWS_WITH_AS(exact_integer<weft::half>(65536, where), "INVALID_ARGUMENT: user.cpp:7: the number 65536 does not fit into half", weft::error);
}
