#ifndef WEFT_TESTS_OPS_TYPED_EDGE_HPP
#define WEFT_TESTS_OPS_TYPED_EDGE_HPP
// What tests of builders ask: the type of an expression, the shape that is known, what a mistake says, the values of a step.

#include <weft/graph/tensor.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#define IS(expression, ...) static_assert(std::is_same_v<std::decay_t<decltype(expression)>, __VA_ARGS__>, #expression)

namespace ops_test {

template <class T, int N> std::string shape(const weft::tensor<T, N>& t) { return t.shape().text(); }

/// The message of the error that building ends with.
template <class Build> std::string message(Build build) {
  try {
    build();
  } catch (const weft::error& e) {
    return e.message();
  }
  return "no error";
}

template <class T, int N> void check_values(const weft::tensor<T, N>& t, const std::vector<double>& wanted, double tolerance) {
  weft::local_session session;
  const auto found = session.run(t);
  std::size_t i = 0;
  for (const T x : found) {
    CAPTURE(i);
    REQUIRE(i < wanted.size());
    CHECK(std::abs(static_cast<double>(x) - wanted[i++]) < tolerance);
  }
  CHECK(i == wanted.size());
}

}  // namespace ops_test

#endif
