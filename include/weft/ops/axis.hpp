#ifndef WEFT_OPS_AXIS_HPP
#define WEFT_OPS_AXIS_HPP
// Axes that the compiler knows, and the ranks that follow from them.

#include <weft/tensor/shape.hpp>

#include <cstddef>

namespace weft {

/// Axes known at compile time: `reduce_sum(x, axis<1>)`. Negative ones count from the last.
template <int... A> struct axis_t {};
template <int... A> inline constexpr axis_t<A...> axis{};

namespace detail {
template <int... A> constexpr bool axes_in_range(int n) { return n == dynamic_rank || (true && ... && (A >= -n && A < n)); }
template <int... A> constexpr bool axes_distinct(int n) {
  constexpr int a[] = {A..., 0};
  for (std::size_t i = 0; i < sizeof...(A); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((a[i] + (a[i] < 0 ? n : 0)) == (a[j] + (a[j] < 0 ? n : 0))) return false;
  return true;
}
constexpr int less_rank(int n, int k) { return n == dynamic_rank || n < k ? dynamic_rank : n - k; }
constexpr int more_rank(int n, int k) { return n == dynamic_rank ? dynamic_rank : n + k; }
// params[indices] along one axis, and data whose first m dimensions become one.
constexpr int gathered_rank(int n, int m) { return n == dynamic_rank || m == dynamic_rank ? dynamic_rank : n - 1 + m; }
constexpr int masked_rank(int n, int m) { return n == dynamic_rank || m == dynamic_rank || m > n ? dynamic_rank : n - m + 1; }
}  // namespace detail

}  // namespace weft

#endif
