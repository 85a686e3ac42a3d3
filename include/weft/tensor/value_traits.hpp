#ifndef WEFT_TENSOR_VALUE_TRAITS_HPP
#define WEFT_TENSOR_VALUE_TRAITS_HPP
// How C++ values become tensors: the customisation point `value_traits`, for numbers, strings, std containers and nested braces.

#include <weft/core/call_site.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace weft {

/// How a C++ type V becomes a tensor: `dtype` (an element type, void when there is none), `rank` (or `dynamic_rank`) and
/// `static tensor_value make(const V&)`, which evaluates and copies. Specialise it for own containers.
template <class V, class = void> struct value_traits {
  using dtype = void;
  static constexpr int rank = dynamic_rank;
};

namespace detail {

template <class V> struct is_list : std::false_type {};
template <class V> struct is_list<std::vector<V>> : std::true_type {};
template <class V, std::size_t Size> struct is_list<std::array<V, Size>> : std::true_type {};
template <class V> struct is_list<std::initializer_list<V>> : std::true_type {};

// Elements of nested lists, in C order, with the sizes met on the way; rows must have one length.
template <class T> struct flattened {
  std::vector<std::int64_t> sizes;
  std::vector<T> elements;

  template <class V> void add(const V& v, std::size_t depth) {
    if constexpr (is_list<V>::value) {
      add_size(static_cast<std::int64_t>(v.size()), depth);
      for (const auto& item : v) add(item, depth + 1);
    } else if constexpr (!std::is_void_v<dtype_t<V>>) {
      elements.push_back(static_cast<T>(v));
    } else {
      const tensor_value part = value_traits<V>::make(v);
      for (const std::int64_t size : part.shape()) add_size(size, depth++);
      elements.insert(elements.end(), part.template data<T>(), part.template data<T>() + part.elements());
    }
  }
  void add_size(std::int64_t n, std::size_t depth) {
    if (depth == sizes.size()) sizes.push_back(n);
    else if (sizes[depth] != n)
      fail(error_code::invalid_argument, "rows of different lengths: " + std::to_string(sizes[depth]) + " and " + std::to_string(n));
  }
  // Below an empty list the sizes are 0.
  tensor_value take(int rank) && {
    if (rank != dynamic_rank) sizes.resize(static_cast<std::size_t>(rank), 0);
    tensor_value out(dtype_of<T>, shape(sizes));
    std::move(elements.begin(), elements.end(), out.template mutable_data<T>());
    return out;
  }
};

// The elements of a list of lists, of a list of whatever value_traits knows, or of nested braces.
template <class T, class V> tensor_value flatten(const V& v, int rank) {
  flattened<T> flat;
  flat.add(v, 0);
  return std::move(flat).take(rank);
}

}  // namespace detail

/// Numbers, bool, std::string, std::string_view, C strings: rank 0.
template <class V> struct value_traits<V, std::enable_if_t<!std::is_void_v<dtype_t<V>> && !std::is_array_v<V>>> {
  using dtype = dtype_t<V>;
  static constexpr int rank = 0;
  static tensor_value make(const V& v) { return tensor_value::scalar(dtype(v)); }
};
/// String literals: rank 0.
template <std::size_t Size> struct value_traits<char[Size], void> {
  using dtype = std::string;
  static constexpr int rank = 0;
  static tensor_value make(const char (&v)[Size]) { return tensor_value::scalar(std::string(v)); }
};
/// std::vector, nested or of anything that value_traits knows: one rank more than its elements.
template <class V> struct value_traits<std::vector<V>> {
  using dtype = typename value_traits<V>::dtype;
  static constexpr int rank = value_traits<V>::rank == dynamic_rank ? dynamic_rank : value_traits<V>::rank + 1;
  static tensor_value make(const std::vector<V>& v) { return detail::flatten<dtype>(v, rank); }
};
/// std::array, likewise.
template <class V, std::size_t Size> struct value_traits<std::array<V, Size>> {
  using dtype = typename value_traits<V>::dtype;
  static constexpr int rank = value_traits<V>::rank == dynamic_rank ? dynamic_rank : value_traits<V>::rank + 1;
  static tensor_value make(const std::array<V, Size>& v) { return detail::flatten<dtype>(v, rank); }
};

namespace detail {

// Whether an integer can be held by T without loss.
template <class T, class U> constexpr bool exactly(U v) {
  if constexpr (std::is_same_v<T, U>) return true;
  else if constexpr (std::is_floating_point_v<T>) return static_cast<long double>(static_cast<T>(v)) == static_cast<long double>(v);
  else if constexpr (std::is_signed_v<U> && std::is_unsigned_v<T>)
    return v >= 0 && static_cast<std::make_unsigned_t<U>>(v) <= std::numeric_limits<T>::max();
  else if constexpr (std::is_unsigned_v<U> && std::is_signed_v<T>)
    return v <= static_cast<std::make_unsigned_t<T>>(std::numeric_limits<T>::max());
  else return v >= std::numeric_limits<T>::min() && v <= std::numeric_limits<T>::max();
}

template <class T> inline constexpr bool is_number_v = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T> inline constexpr bool is_small_float_v = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

// An integer as a T, or an error at `where` when it would change.
template <class T, class U> T exact_integer(U v, call_site where) {
  bool fits = false;
  T out{};
  if constexpr (is_small_float_v<T>) {
    out = T(static_cast<float>(v));
    fits = static_cast<long double>(static_cast<float>(out)) == static_cast<long double>(v);
  } else {
    fits = exactly<T>(v);
    if (fits) out = static_cast<T>(v);
  }
  if (!fits) throw error(error_code::invalid_argument, "the number " + std::to_string(v) + " does not fit into " + to_text(dtype_of<T>), where);
  return out;
}

// A C++ value that stands for a rank 0 tensor<T>, with the line where it stood.
template <class T> struct scalar {
  T value{};
  call_site where;
  template <class U, std::enable_if_t<std::is_arithmetic_v<U> || std::is_convertible_v<U, std::string> || is_small_float_v<U>, int> = 0>
  scalar(const U& v, call_site site = call_site::here()) : where(site) {
    using V = dtype_t<U>;
    constexpr bool same = std::is_same_v<V, T>;
    constexpr bool integer = is_integer_v<std::decay_t<U>> && (is_number_v<T> || is_small_float_v<T>);
    static_assert(same || integer,
                  "weft: this number has another dtype than the tensor beside it; write the literal in the tensor's dtype (0.1f for float), or convert with weft::cast<T>(...)");
    if constexpr (same) value = static_cast<T>(v);
    else if constexpr (integer) value = exact_integer<T>(v, site);
  }
};

}  // namespace detail
}  // namespace weft

#endif
