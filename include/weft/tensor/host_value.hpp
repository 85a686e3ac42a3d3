#ifndef WEFT_TENSOR_HOST_VALUE_HPP
#define WEFT_TENSOR_HOST_VALUE_HPP
// What a fetched value becomes in the user's program: `host_value<T, N>`, a plain T for rank 0.

#include <weft/core/config.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <string>

namespace weft {

namespace detail {
void expect_host_value(const tensor_value& v, dtype type, int rank);
}  // namespace detail

/// The C++ type that `run` returns for a tensor<T, N>, and how it is taken from a value. Ranks other than 0 are defined in
/// <weft/tensor/xtensor.hpp>.
template <class T, int N> struct host_value;
template <class T> struct host_value<T, 0> {
  using type = T;
  static T take(const tensor_value& v) {
    detail::expect_host_value(v, dtype_of<T>, 0);
    return *v.data<T>();
  }
};

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL void expect_host_value(const tensor_value& v, dtype type, int rank) {
  if (v.dtype() != type || (rank != dynamic_rank && v.shape().rank() != rank))
    fail(error_code::invalid_argument, "the fetched value is " + std::string(to_text(v.dtype())) + v.shape().text() + ", the handle says " + to_text(type) +
                                           (rank == dynamic_rank ? std::string() : " of rank " + std::to_string(rank)));
}

}  // namespace weft::detail
#endif

#endif
