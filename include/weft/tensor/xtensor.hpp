#ifndef WEFT_TENSOR_XTENSOR_HPP
#define WEFT_TENSOR_XTENSOR_HPP
// The door to xtensor: its containers and expressions as constants and feeds, and the arrays that `run` returns.

#include <weft/fwd.hpp>
#include <weft/tensor/host_value.hpp>
#include <weft/tensor/value_traits.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>
#endif

namespace weft {

namespace detail {
template <class Shape> struct static_rank { static constexpr int value = dynamic_rank; };
template <class I, std::size_t N> struct static_rank<std::array<I, N>> { static constexpr int value = static_cast<int>(N); };
template <std::size_t... X> struct static_rank<xt::fixed_shape<X...>> { static constexpr int value = static_cast<int>(sizeof...(X)); };
}  // namespace detail

/// xtensor containers and expressions: evaluated once, in C order.
template <class E> struct value_traits<E, std::enable_if_t<xt::is_xexpression<E>::value>> {
  using dtype = dtype_t<typename E::value_type>;
  static constexpr int rank = detail::static_rank<typename E::shape_type>::value;
  static tensor_value make(const E& e) {
    std::vector<std::int64_t> sizes;
    for (const auto size : e.shape()) sizes.push_back(static_cast<std::int64_t>(size));
    tensor_value out(dtype_of<dtype>, shape(sizes));
    std::transform(e.template begin<xt::layout_type::row_major>(), e.template end<xt::layout_type::row_major>(), out.template mutable_data<dtype>(),
                   [](const auto& x) { return static_cast<dtype>(x); });
    return out;
  }
};

/// What `run` returns for a tensor of rank N > 0.
template <class T, int N> struct host_value {
  using type = xt::xtensor<T, static_cast<std::size_t>(N)>;
  static type take(const tensor_value& v) {
    detail::expect_host_value(v, dtype_of<T>, N);
    typename type::shape_type sizes{};
    for (int i = 0; i < N; ++i) sizes[static_cast<std::size_t>(i)] = static_cast<std::size_t>(v.shape()[i]);
    type out = type::from_shape(sizes);
    std::copy(v.data<T>(), v.data<T>() + v.elements(), out.storage().begin());
    return out;
  }
};
/// What `run` returns for a tensor whose rank is not known at compile time.
template <class T> struct host_value<T, dynamic_rank> {
  using type = xt::xarray<T>;
  static type take(const tensor_value& v) {
    detail::expect_host_value(v, dtype_of<T>, dynamic_rank);
    type out = type::from_shape(std::vector<std::size_t>(v.shape().begin(), v.shape().end()));
    std::copy(v.data<T>(), v.data<T>() + v.elements(), out.storage().begin());
    return out;
  }
};

namespace detail {
template <class A, class E> A beside_xtensor(const A& a, const E&) {
  static_assert(always_false<E>::value, "weft: an xtensor value stands beside a tensor of the graph; write weft::constant(value)");
  return a;
}
template <class Handle, class T, int N, class E>
using if_beside = std::enable_if_t<xt::is_xexpression<std::decay_t<E>>::value && std::is_base_of_v<operand<T, N>, Handle>>;
}  // namespace detail

// xtensor's own operators take anything beside one of its expressions; these are more specialised, so they win and explain.
#define WEFT_BESIDE(OP, QUALIFIER, REFERENCE)                                                                                            \
  template <template <class, int> class H, class T, int N, class E, class = detail::if_beside<H<T, N>, T, N, E>>                         \
  auto operator OP(QUALIFIER H<T, N> REFERENCE a, E&& e) { return detail::beside_xtensor(a, e); }                                         \
  template <template <class, int> class H, class T, int N, class E, class = detail::if_beside<H<T, N>, T, N, E>>                         \
  auto operator OP(E&& e, QUALIFIER H<T, N> REFERENCE a) { return detail::beside_xtensor(a, e); }
#define WEFT_BESIDE_XTENSOR(OP) WEFT_BESIDE(OP, , &) WEFT_BESIDE(OP, const, &) WEFT_BESIDE(OP, , &&)
WEFT_BESIDE_XTENSOR(+)
WEFT_BESIDE_XTENSOR(-)
WEFT_BESIDE_XTENSOR(*)
WEFT_BESIDE_XTENSOR(/)
WEFT_BESIDE_XTENSOR(<)
WEFT_BESIDE_XTENSOR(>)
WEFT_BESIDE_XTENSOR(<=)
WEFT_BESIDE_XTENSOR(>=)
#undef WEFT_BESIDE_XTENSOR
#undef WEFT_BESIDE

}  // namespace weft

#endif
