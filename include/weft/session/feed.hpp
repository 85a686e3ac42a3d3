#ifndef WEFT_SESSION_FEED_HPP
#define WEFT_SESSION_FEED_HPP
// Values given to a step: `{placeholder, value}`, checked against the tensor's dtype and rank at compile time, evaluated once when made.

#include <weft/graph/tensor.hpp>
#include <weft/ops/state.hpp>
#include <weft/tensor/value_traits.hpp>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weft {

/// One tensor and the value that stands in its place during a step. Any tensor may be fed; feeding a variable replaces every read of it.
class feed {
 public:
  /// A number, a string, a std container, or an xtensor container or expression.
  template <class T, int N, class V> feed(const operand<T, N>& t, const V& v, call_site where = call_site::here()) : to_(t.raw()), site_(where) {
    if constexpr (std::is_same_v<V, tensor_value>) {
      value_ = v;
    } else if constexpr (detail::is_operand<V>::value) {
      static_assert(detail::always_false<V>::value, "weft: a value is fed, not a tensor of the graph; use session.run to get a value first");
    } else {
      using traits = value_traits<V>;
      constexpr bool known = !std::is_void_v<typename traits::dtype>;
      constexpr bool integer = detail::is_integer_v<V> && (detail::is_number_v<T> || detail::is_small_float_v<T>);
      constexpr bool dtype_ok = !known || std::is_same_v<typename traits::dtype, T> || integer;
      constexpr bool rank_ok = !known || N == dynamic_rank || traits::rank == dynamic_rank || traits::rank == N;
      static_assert(known, "weft: this value cannot be fed; feed a number, a string, nested braces, std::vector, std::array, or an xtensor container or expression");
      static_assert(dtype_ok, "weft: the value fed has another dtype than the tensor it is fed to");
      static_assert(rank_ok, "weft: the value fed has another rank than the tensor it is fed to");
      if constexpr (known && dtype_ok && rank_ok) {
        if constexpr (integer) value_ = tensor_value::scalar<T>(detail::exact_integer<T>(v, where));
        else value_ = traits::make(v);
      }
    }
  }
  /// Braces for rank 1 and 2.
  template <class T> feed(const operand<T, 1>& t, std::initializer_list<std::common_type_t<T>> v, call_site where = call_site::here())
      : to_(t.raw()), value_(detail::flatten<T>(v, 1)), site_(where) {}
  template <class T> feed(const operand<T, 2>& t, std::initializer_list<std::initializer_list<std::common_type_t<T>>> v, call_site where = call_site::here())
      : to_(t.raw()), value_(detail::flatten<T>(v, 2)), site_(where) {}
  template <class T, int N, class U, std::enable_if_t<N != 1 && !std::is_void_v<dtype_t<U>>, int> = 0> feed(const operand<T, N>&, std::initializer_list<U>) {
    static_assert(detail::always_false<U>::value, "weft: the braces fed have another rank than the tensor they are fed to");
  }
  template <class T, int N, class U, std::enable_if_t<N != 2 && !std::is_void_v<dtype_t<U>>, int> = 0>
  feed(const operand<T, N>&, std::initializer_list<std::initializer_list<U>>) {
    static_assert(detail::always_false<U>::value, "weft: the braces fed have another rank than the tensor they are fed to");
  }
  /// A string literal.
  template <std::size_t Size> feed(const operand<std::string, 0>& t, const char (&v)[Size], call_site where = call_site::here())
      : to_(t.raw()), value_(tensor_value::scalar(std::string(v))), site_(where) {}
  /// A tensor found by name, checked when the step runs.
  feed(output to, tensor_value value, call_site where = call_site::here()) : to_(to), value_(std::move(value)), site_(where) {}

  const output& to() const noexcept { return to_; }
  const tensor_value& value() const noexcept { return value_; }
  call_site site() const noexcept { return site_; }

 private:
  output to_;
  tensor_value value_;
  call_site site_;
};

/// The placeholders of a prepared step, in the order of its parameters.
template <class... P> struct feeds_t {
  std::tuple<P...> placeholders;
};
/// `session.make_callable(feeds(images, labels), loss, train_op)`.
template <class... P> feeds_t<P...> feeds(const P&... placeholders) { return {std::tuple<P...>(placeholders...)}; }

/// One parameter of a prepared step: whatever may be fed to a tensor<T, N>.
template <class T, int N> struct feed_value {
  tensor_value value;
  template <class V> feed_value(const V& v) : value(feed(tensor<T, N>(), v).value()) {}
  template <int M = N, std::enable_if_t<M == 1, int> = 0> feed_value(std::initializer_list<T> v) : value(feed(tensor<T, 1>(), v).value()) {}
  template <int M = N, std::enable_if_t<M == 2, int> = 0> feed_value(std::initializer_list<std::initializer_list<T>> v) : value(feed(tensor<T, 2>(), v).value()) {}
};

}  // namespace weft

#endif
