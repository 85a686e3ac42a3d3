// A translation unit that runs a graph in this process.
#include <weft/weft.hpp>

bool local_unit();

bool local_unit() {
  weft::tensor<float, 1> x = weft::constant({1.f, 2.f, 3.f});
  weft::session session;
  const auto y = session.run(x * 2.f + 1.f);
  return y(0) == 3.f && y(1) == 5.f && y(2) == 7.f;
}
