#ifndef WEFT_GRAPH_INDEXING_HPP
#define WEFT_GRAPH_INDEXING_HPP
// What stands between the parentheses of `x(slice(1, 5), newaxis, ellipsis, 0)`: one entry for each dimension, as in Python's x[1:5, newaxis, ..., 0].

#include <weft/core/call_site.hpp>
#include <weft/fwd.hpp>
#include <weft/graph/node.hpp>
#include <weft/tensor/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft {

/// A new dimension of size 1.
struct newaxis_t {};
inline constexpr newaxis_t newaxis{};
/// As many whole dimensions as the other entries leave.
struct ellipsis_t {};
inline constexpr ellipsis_t ellipsis{};
/// A whole dimension: `all` or `all()`. (A function, so that variables of this name hide no other.)
struct all_t {};
constexpr all_t all() { return {}; }
/// In a slice: from the first element in the direction of the step.
struct from_start_t {};
inline constexpr from_start_t from_start{};
/// In a slice: up to and with the last element in the direction of the step.
struct to_end_t {};
inline constexpr to_end_t to_end{};

/// Elements from `begin` up to, not with, `end`; negative positions count from the last element, steps may be negative. Positions outside are moved to the nearest end.
struct slice {
  std::int64_t begin = 0, end = 0, step = 1;
  bool open_begin = false, open_end = false;
  constexpr slice(std::int64_t b, std::int64_t e, std::int64_t s = 1) : begin(b), end(e), step(s) {}
  constexpr slice(std::int64_t b, to_end_t, std::int64_t s = 1) : begin(b), step(s), open_end(true) {}
  constexpr slice(from_start_t, std::int64_t e, std::int64_t s = 1) : end(e), step(s), open_begin(true) {}
  constexpr slice(from_start_t, to_end_t, std::int64_t s = 1) : step(s), open_begin(true), open_end(true) {}
};

namespace detail {

// One entry with its type erased; a single position may be computed by the graph.
struct index_item {
  enum class kind : unsigned char { position, range, new_axis, ellipsis };
  kind what = kind::position;
  slice bounds{0, 1};
  output computed;
};

// How many dimensions an entry takes and gives.
template <class I, class = void> struct index_traits {
  static_assert(always_false<I>::value, "weft: an index is an integer, slice(...), newaxis, ellipsis, all, or an integer tensor of rank 0");
  static constexpr int in = 0, out = 0;
  static index_item item(const I&, call_site) { return {}; }
};
template <> struct index_traits<newaxis_t> {
  static constexpr int in = 0, out = 1;
  static index_item item(newaxis_t, call_site) { return {index_item::kind::new_axis, {0, 1}, {}}; }
};
template <> struct index_traits<ellipsis_t> {
  static constexpr int in = 0, out = 0;
  static index_item item(ellipsis_t, call_site) { return {index_item::kind::ellipsis, {0, 1}, {}}; }
};
template <> struct index_traits<all_t> {
  static constexpr int in = 1, out = 1;
  static index_item item(all_t, call_site) { return {index_item::kind::range, {from_start, to_end}, {}}; }
};
template <> struct index_traits<all_t()> : index_traits<all_t> {
  static index_item item(all_t (&)(), call_site where) { return index_traits<all_t>::item({}, where); }
};
template <> struct index_traits<slice> {
  static constexpr int in = 1, out = 1;
  static index_item item(const slice& s, call_site) { return {index_item::kind::range, s, {}}; }
};
template <class I> struct index_traits<I, std::enable_if_t<is_integer_v<I>>> {
  static constexpr int in = 1, out = 0;
  static index_item item(I at, call_site) { return {index_item::kind::position, {static_cast<std::int64_t>(at), 0}, {}}; }
};
template <class T, int N> struct index_traits<tensor<T, N>> {
  static_assert(N == 0 && is_integer_v<T>, "weft: a tensor that stands for an index is an integer of rank 0");
  static constexpr int in = 1, out = 0;
  static index_item item(const tensor<T, N>& at, call_site where) { return {index_item::kind::position, {0, 0}, at.as_input(where)}; }
};

template <class... I> constexpr int index_rank(int n) { return n == -1 ? n : n - (0 + ... + index_traits<I>::in) + (0 + ... + index_traits<I>::out); }
template <class... I> constexpr int indexed_dims() { return (0 + ... + index_traits<I>::in); }
template <class... I> constexpr int ellipses() { return (0 + ... + (std::is_same_v<I, ellipsis_t> ? 1 : 0)); }

// The StridedSlice that the entries ask for. Defined in <weft/ops/array_slice.hpp>.
output add_strided_slice(const output& x, const index_item* items, std::size_t count, call_site where);

}  // namespace detail
}  // namespace weft

#endif
