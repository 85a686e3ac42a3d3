#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>
#include <xtensor/xadapt.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xview.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using weft::shape;
using weft::tensor_value;
using weft::value_traits;

namespace {
template <class E> tensor_value make(const E& e) { return value_traits<E>::make(e); }
template <class E> constexpr int rank_of(const E&) { return value_traits<E>::rank; }
template <class T, int N> auto take(const tensor_value& v) { return weft::host_value<T, N>::take(v); }
const tensor_value two_by_three = tensor_value::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
}  // namespace

static_assert(value_traits<xt::xtensor<float, 3>>::rank == 3 && value_traits<xt::xarray<float>>::rank == weft::dynamic_rank);
static_assert(value_traits<xt::xtensor_fixed<float, xt::xshape<2, 3>>>::rank == 2);
static_assert(std::is_same_v<value_traits<xt::xtensor<long long, 1>>::dtype, std::int64_t>);
static_assert(std::is_same_v<weft::host_value<float, 0>::type, float> && std::is_same_v<weft::host_value<float, 2>::type, xt::xtensor<float, 2>>);
static_assert(std::is_same_v<weft::host_value<float, weft::dynamic_rank>::type, xt::xarray<float>>);

TEST_CASE("xtensor: containers become values in C order") {
  CHECK(make(xt::xtensor<float, 2>{{1, 2, 3}, {4, 5, 6}}) == two_by_three);
  CHECK(make(xt::xarray<float>{{1, 2, 3}, {4, 5, 6}}) == two_by_three);
  CHECK(make(xt::xtensor_fixed<float, xt::xshape<2, 3>>{{1, 2, 3}, {4, 5, 6}}) == two_by_three);
  const xt::xtensor<float, 2, xt::layout_type::column_major> by_columns{{1, 2, 3}, {4, 5, 6}};
  CHECK(make(by_columns) == two_by_three);
  const xt::xarray<float, xt::layout_type::column_major> dynamic_by_columns{{1, 2, 3}, {4, 5, 6}};
  CHECK(make(dynamic_by_columns) == two_by_three);
  const std::vector<float> flat{1, 2, 3, 4, 5, 6};
  CHECK(make(xt::adapt(flat, {2, 3})) == two_by_three);
  CHECK(make(xt::xtensor<bool, 1>{true, false}) == tensor_value::from<bool>({2}, {true, false}));
  CHECK(make(xt::xtensor<std::string, 1>{"a", "b"}) == tensor_value::from<std::string>({2}, {"a", "b"}));
}

TEST_CASE("xtensor: views and expressions are evaluated") {
  const xt::xtensor<float, 2> m{{1, 2, 3}, {4, 5, 6}};
  CHECK(make(xt::transpose(m)) == tensor_value::from<float>({3, 2}, {1, 4, 2, 5, 3, 6}));
  CHECK(make(xt::transpose(xt::xtensor<float, 2>{{1, 4}, {2, 5}, {3, 6}})) == two_by_three);
  CHECK(make(xt::view(m, 1)) == tensor_value::from<float>({3}, {4, 5, 6}));
  CHECK(make(xt::view(m, xt::all(), 1)) == tensor_value::from<float>({2}, {2, 5}));
  CHECK(make(xt::view(m, xt::all(), xt::range(0, 3, 2))) == tensor_value::from<float>({2, 2}, {1, 3, 4, 6}));
  CHECK(make(xt::view(m, xt::newaxis(), 0)) == tensor_value::from<float>({1, 3}, {1, 2, 3}));
  CHECK(make(m * 2.f + 1.f) == tensor_value::from<float>({2, 3}, {3, 5, 7, 9, 11, 13}));
  CHECK(make(m > 3.f) == tensor_value::from<bool>({2, 3}, {false, false, false, true, true, true}));
  CHECK(make(m * 2.0) == tensor_value::from<double>({2, 3}, {2, 4, 6, 8, 10, 12}));  // xtensor promotes
  CHECK(make(m + xt::xtensor<float, 1>{10, 20, 30}) == tensor_value::from<float>({2, 3}, {11, 22, 33, 14, 25, 36}));
  CHECK(make(xt::sum(m, {0})) == tensor_value::from<float>({3}, {5, 7, 9}));
  CHECK(make(xt::arange<std::int32_t>(4)) == tensor_value::from<std::int32_t>({4}, {0, 1, 2, 3}));
  CHECK(make(xt::zeros<std::uint8_t>({2})) == tensor_value::from<std::uint8_t>({2}, {0, 0}));
  CHECK(rank_of(xt::view(m, 1)) == 1);
  CHECK(rank_of(m > 3.f) == 2);
}

TEST_CASE("xtensor: rank 0 and nothing at all") {
  const xt::xtensor<float, 1> v{1, 2, 3};
  CHECK(make(xt::sum(v)) == tensor_value::scalar(6.f));
  CHECK(rank_of(xt::sum(v)) == 0);
  CHECK(make(xt::xtensor<float, 0>(4.f)) == tensor_value::scalar(4.f));
  CHECK(make(xt::xarray<float>(5.f)) == tensor_value::scalar(5.f));
  CHECK(make(xt::xtensor<float, 2>::from_shape({0, 3})).shape() == shape{0, 3});
}

TEST_CASE("xtensor: arrays in std containers have one rank more") {
  const std::vector<xt::xtensor<float, 1>> rows{{1, 2, 3}, {4, 5, 6}};
  CHECK(make(rows) == two_by_three);
  const std::vector<xt::xtensor<float, 2>> blocks{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
  CHECK(make(blocks) == tensor_value::from<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const std::vector<xt::xarray<float>> any{{1, 2, 3}, {4, 5, 6}};
  CHECK(make(any) == two_by_three);
  const std::vector<xt::xtensor<float, 1>> ragged{{1, 2}, {3}};
  CHECK_THROWS_WITH_AS(make(ragged), "INVALID_ARGUMENT: rows of different lengths: 2 and 1", weft::error);
}

TEST_CASE("host_value: a plain number or string for rank 0, an array for other ranks") {
  CHECK(take<float, 0>(tensor_value::scalar(2.f)) == 2.f);
  CHECK(take<std::string, 0>(tensor_value::scalar(std::string("s"))) == "s");
  CHECK(take<bool, 1>(tensor_value::from<bool>({2}, {true, false})) == xt::xtensor<bool, 1>{true, false});
  CHECK(take<float, 1>(tensor_value::from<float>({2}, {1, 2})) == xt::xtensor<float, 1>{1, 2});
  CHECK(take<float, 2>(two_by_three) == xt::xtensor<float, 2>{{1, 2, 3}, {4, 5, 6}});
  CHECK(take<float, 3>(tensor_value::from<float>({2, 1, 2}, {1, 2, 3, 4})) == xt::xtensor<float, 3>{{{1, 2}}, {{3, 4}}});
  CHECK(take<std::string, 1>(tensor_value::from<std::string>({2}, {"a", "b"})) == xt::xtensor<std::string, 1>{"a", "b"});
  CHECK(take<weft::half, 1>(tensor_value::from<weft::half>({1}, {weft::half(1.f)}))(0).bits == 0x3c00);
  const xt::xarray<float> any = take<float, weft::dynamic_rank>(two_by_three);
  CHECK(any == xt::xarray<float>{{1, 2, 3}, {4, 5, 6}});
  CHECK(take<float, weft::dynamic_rank>(tensor_value::scalar(3.f)).dimension() == 0);
  CHECK(take<float, 2>(tensor_value(weft::dtype::float32, {0, 3})).shape(1) == 3);
}

TEST_CASE("host_value: the value must be what the handle says") {
  CHECK_THROWS_WITH_AS((take<double, 2>(two_by_three)), "INVALID_ARGUMENT: the fetched value is float[2,3], the handle says double of rank 2", weft::error);
  CHECK_THROWS_WITH_AS((take<float, 1>(two_by_three)), "INVALID_ARGUMENT: the fetched value is float[2,3], the handle says float of rank 1", weft::error);
  CHECK_THROWS_WITH_AS((take<float, 0>(two_by_three)), "INVALID_ARGUMENT: the fetched value is float[2,3], the handle says float of rank 0", weft::error);
  CHECK_THROWS_WITH_AS((take<double, weft::dynamic_rank>(two_by_three)), "INVALID_ARGUMENT: the fetched value is float[2,3], the handle says double", weft::error);
}
