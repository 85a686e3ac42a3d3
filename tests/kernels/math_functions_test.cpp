#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are tested
#include <weft/kernels/math_functions.hpp>

#include "accuracy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace element = weft::detail::element;
using weft_test::all_magnitudes;
using weft_test::check_accuracy;

namespace {
template <class T> T softplus(T x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
}  // namespace

TEST_CASE("expm1, log1p, softplus, elu, selu, rsqrt: within 4 units in the last place over the whole range") {
  const std::vector<float> all = all_magnitudes();
  check_accuracy<element::expm1>(all, 4, [](float x) { return std::expm1(static_cast<double>(x)); });
  check_accuracy<element::log1p>(all, 4, [](float x) { return std::log1p(static_cast<double>(x)); });
  check_accuracy<element::softplus>(all, 4, [](float x) { return softplus(static_cast<double>(x)); });
  check_accuracy<element::elu>(all, 4, [](float x) { return x < 0 ? std::expm1(static_cast<double>(x)) : static_cast<double>(x); });
  check_accuracy<element::selu>(all, 4, [](float x) { return x < 0 ? 1.7580993408473768 * std::expm1(static_cast<double>(x)) : 1.0507009873554805 * static_cast<double>(x); });
  check_accuracy<element::rsqrt>(all, 4, [](float x) { return 1 / std::sqrt(static_cast<double>(x)); });
}

TEST_CASE("double: expm1, log1p and softplus within 4 units in the last place") {
  std::vector<double> values;
  for (int i = -30000; i <= 30000; ++i) {
    values.push_back(i * 0x1.23456789abcdep-12);
    values.push_back(i * 0.0249123456789);
    values.push_back(i * 1e-12);
  }
  check_accuracy<element::expm1>(values, 4, [](double x) { return std::expm1(static_cast<long double>(x)); });
  check_accuracy<element::log1p>(values, 4, [](double x) { return std::log1p(static_cast<long double>(x)); });
  check_accuracy<element::softplus>(values, 4, [](double x) { return softplus(static_cast<long double>(x)); });
}
