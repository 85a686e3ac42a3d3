#ifndef WEFT_TENSOR_XTENSOR_IO_HPP
#define WEFT_TENSOR_XTENSOR_IO_HPP
// Printing of xtensor arrays and its random numbers, which <weft/weft.hpp> includes for convenience.

#include <weft/tensor/xtensor.hpp>

#if __has_include(<xtensor/io/xio.hpp>)
#include <xtensor/generators/xrandom.hpp>
#include <xtensor/io/xio.hpp>
#else
#include <xtensor/xio.hpp>
#include <xtensor/xrandom.hpp>
#endif

#endif
