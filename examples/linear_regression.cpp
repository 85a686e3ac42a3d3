// Fits a line: the smallest program that trains something.

#include <weft/weft.hpp>

#include <cmath>
#include <iostream>
#include <vector>

int main() {
  try {
    std::vector<float> xs, ys;  // points near y = 3 x + 2
    for (int i = 0; i < 100; ++i) {
      xs.push_back(static_cast<float>(i) / 50.f - 1.f);
      ys.push_back(3.f * xs.back() + 2.f + 0.1f * std::sin(static_cast<float>(i * i)));
    }

    auto x = weft::placeholder<float, 1>("x"), y = weft::placeholder<float, 1>("y");
    weft::variable<float, 0> slope(0.f, "slope"), offset(0.f, "offset");
    auto loss = weft::reduce_mean(weft::square(x * slope + offset - y));
    auto train = weft::gradient_descent_optimizer(0.1f).minimize(loss);

    weft::local_session session;
    session.run(weft::global_variables_initializer());
    for (int step = 0; step < 200; ++step) session.run({{x, xs}, {y, ys}}, train);
    const auto [a, b, left] = session.run({{x, xs}, {y, ys}}, slope, offset, loss);
    std::cout << "y = " << a << " x + " << b << ", mean squared error " << left << '\n';
    return std::abs(a - 3.f) < 0.05f && std::abs(b - 2.f) < 0.05f ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "linear_regression: " << e.what() << '\n';
    return 1;
  }
}
