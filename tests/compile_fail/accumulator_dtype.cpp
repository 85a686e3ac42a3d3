// expect: weft: the gradient has another dtype than the accumulator; convert it with weft::cast<T>(...)
#include "tensors.hpp"

const conditional_accumulator<double> a({3});
const operation push = a.apply(constant(1.f), 0);
