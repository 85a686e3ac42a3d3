// A program that uses the whole library; with second.cpp it is two translation units that both do.
#ifndef HEADER
#define HEADER <weft/weft.hpp>
#endif
#include HEADER

float second_unit();

int main() {
  weft::tensor<float, 1> x = weft::constant({1.f, 2.f, 3.f});
  weft::session session;
  const auto y = session.run(x * 2.f + 1.f);
  const bool right = y(0) == 3.f && y(1) == 5.f && y(2) == 7.f;
  return right && second_unit() == 12.f ? 0 : 1;
}
