// What the mistakes in this folder are made with.
#ifndef WEFT_TESTS_COMPILE_FAIL_TENSORS_HPP
#define WEFT_TESTS_COMPILE_FAIL_TENSORS_HPP

#include <weft/session.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace weft;

extern tensor<float, 0> loss;
extern tensor<float, 1> x;
extern tensor<float, 2> m;
extern tensor<float> any_rank;
extern tensor<double, 1> d;
extern tensor<bool, 1> b;
extern variable<float, 1> w;
extern xt::xtensor<float, 1> x_value;
extern xt::xtensor<float, 2> m_value;
extern xt::xtensor<double, 2> double_value;
extern session_interface& running;

#endif
