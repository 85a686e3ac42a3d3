#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are tested
#include <weft/kernels/sine_loops.hpp>

#include "accuracy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace element = weft::detail::element;
using weft_test::all_magnitudes;
using weft_test::check_accuracy;

TEST_CASE("sine, cosine, error function: within one unit in the last place over the whole range") {
  std::vector<float> values = all_magnitudes();
  for (int i = -20000; i < 20000; ++i) values.push_back(static_cast<float>(i) * 1.5707964f);  // beside the zeros
  check_accuracy<element::sin>(values, 1, [](float x) { return std::sin(static_cast<double>(x)); });
  check_accuracy<element::cos>(values, 1, [](float x) { return std::cos(static_cast<double>(x)); });
  check_accuracy<element::erf>(values, 1, [](float x) { return std::erf(static_cast<double>(x)); });
}

TEST_CASE("sine, error function: infinity, NaN, and the sign of zero") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float in[] = {infinity, -infinity, nan, -0.f};
  float out[4];
  weft::detail::unary_loop<element::sin>(in, out, 4);
  CHECK(std::isnan(out[0]));
  CHECK(std::isnan(out[1]));
  CHECK(std::isnan(out[2]));
  CHECK(std::signbit(out[3]));
  weft::detail::unary_loop<element::erf>(in, out, 4);
  CHECK(out[0] == 1.f);
  CHECK(out[1] == -1.f);
  CHECK(std::isnan(out[2]));
  CHECK(std::signbit(out[3]));
}
