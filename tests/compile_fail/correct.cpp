// expect-success
#include "tensors.hpp"

void correct() {
  tensor<float, 1> y = x * 0.1f + 0.3f;
  tensor<double, 1> cast_first = cast<double>(x) * d;
  tensor<float, 2> product = matmul(m, m) + w;
  tensor<float, 1> sums = reduce_sum(product, axis<1>);
  tensor<bool, 1> smaller = y < 0.f;
  tensor<float> erased = sums;
  auto scope = with_device("/job:ps");
  running.run({{m, m_value}, {x, x_value}}, loss, erased);
  running.run({x, {1.f, 2.f}}, loss);
  running.make_callable(feeds(m, x), loss)(m_value, x_value);
  (void)cast_first, (void)smaller;
}
