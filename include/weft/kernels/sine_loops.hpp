#ifndef WEFT_KERNELS_SINE_LOOPS_HPP
#define WEFT_KERNELS_SINE_LOOPS_HPP
// Sine, cosine and the error function of floats, computed in double without branches so that loops over them become vector code; within one unit in the last place.

#include <weft/kernels/conversions.hpp>
#include <weft/kernels/real_functions.hpp>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {
namespace element {

WEFT_SIMD_BEGIN

/// sin(x + Quarters pi / 2) for |x| below `limit`, by the Taylor series of sine and cosine on [-pi/4, pi/4].
template <unsigned Quarters> struct sine : traits {
  /// Below it the multiple of pi / 2 that is taken off is exact.
  static constexpr float limit = 0x1p19f;

  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    const double wide = static_cast<double>(x), shifted = multiply_add<S>(wide, 0x1.45f306dc9c883p-1, 0x1.8p52), n = shifted - 0x1.8p52;
    const double r = multiply_add<S>(n, -0x1.0b4611a626331p-34, multiply_add<S>(n, -0x1.921fb544p0, wide)), z = r * r;
    double s = multiply_add<S>(z, -1. / 39916800, 1. / 362880);
    s = multiply_add<S>(s, z, -1. / 5040);
    s = multiply_add<S>(s, z, 1. / 120);
    s = multiply_add<S>(s, z, -1. / 6);
    s = multiply_add<S>(s * z, r, r);
    double c = multiply_add<S>(z, 1. / 479001600, -1. / 3628800);
    c = multiply_add<S>(c, z, 1. / 40320);
    c = multiply_add<S>(c, z, -1. / 720);
    c = multiply_add<S>(c, z, 1. / 24);
    c = multiply_add<S>(c, z, -0.5);
    c = multiply_add<S>(c, z, 1.);
    const std::uint64_t quarter = to_bits(shifted) + Quarters;
    const double size = (quarter & 1U) != 0 ? c : s;
    return static_cast<T>(from_bits(to_bits(size) ^ (quarter & 2U) << 62));
  }
};
using sin = sine<0>;
using cos = sine<1>;

/// The error function, by polynomials on [-1, 1] and [1, 4]: erf(x) / x in x^2, and erf in |x| - 2.5. Beyond 4 it is 1 to the last place.
struct erf : traits {
  template <instruction_set S, class T> WEFT_SIMD_INLINE static T apply(T x) {
    const double wide = static_cast<double>(x), size = magnitude(wide), near = size > 1 ? 1 : size, z = near * near;
    double p = 0x1.1c6a41c18c4d7p-20;
    p = multiply_add<S>(p, z, -0x1.d2cca216c626cp-17);
    p = multiply_add<S>(p, z, 0x1.f582be125b731p-14);
    p = multiply_add<S>(p, z, -0x1.bfe1c88c37d65p-11);
    p = multiply_add<S>(p, z, 0x1.565891c121c8dp-8);
    p = multiply_add<S>(p, z, -0x1.b82cbb52224ffp-6);
    p = multiply_add<S>(p, z, 0x1.ce2f20aa957b8p-4);
    p = multiply_add<S>(p, z, -0x1.812746adedce2p-2);
    p = multiply_add<S>(p, z, 0x1.20dd750428d06p+0);
    const double far = size > 4 ? 1.5 : size - 2.5;
    double q = -0x1.79345f5e99079p-22;
    q = multiply_add<S>(q, far, 0x1.dde3845f2900dp-21);
    q = multiply_add<S>(q, far, 0x1.d0bfdffbf043fp-19);
    q = multiply_add<S>(q, far, -0x1.07b9c1023437ap-16);
    q = multiply_add<S>(q, far, 0x1.04435be0ff2b5p-17);
    q = multiply_add<S>(q, far, 0x1.5428f8381f376p-14);
    q = multiply_add<S>(q, far, -0x1.09bc08e878286p-12);
    q = multiply_add<S>(q, far, 0x1.0f4c564999710p-12);
    q = multiply_add<S>(q, far, 0x1.1d7e17f27dce1p-11);
    q = multiply_add<S>(q, far, -0x1.6eae5bca4c5f9p-9);
    q = multiply_add<S>(q, far, 0x1.90db4f883d185p-8);
    q = multiply_add<S>(q, far, -0x1.1a8ba5bb7de16p-7);
    q = multiply_add<S>(q, far, 0x1.119ea73e27dcep-7);
    q = multiply_add<S>(q, far, -0x1.64e37eaa9d735p-8);
    q = multiply_add<S>(q, far, 0x1.1d82e5df7a0c7p-9);
    q = multiply_add<S>(q, far, 0x1.ffcaa8f1c77a7p-1);
    const double result = size > 1 ? from_bits(to_bits(q) | (to_bits(wide) & float_constants<double>::sign)) : p * wide;
    return static_cast<T>(result);
  }
};

WEFT_SIMD_END

}  // namespace element

WEFT_SIMD_BEGIN

/// Sines of large numbers, and of what is not finite, are left to the library, a block at a time.
template <unsigned Quarters> struct unary_body<element::sine<Quarters>, float, float> {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const float* in, float* out, std::size_t count) {
    constexpr std::size_t block = 128;
    for (std::size_t begin = 0; begin < count; begin += block, in += block, out += block) {
      const std::size_t size = count - begin < block ? count - begin : block;
      unsigned large = 0;
      for (std::size_t i = 0; i < size; ++i) large |= element::magnitude(in[i]) < element::sine<Quarters>::limit ? 0U : 1U;
      if (large != 0) {
        for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<float>(Quarters == 0 ? real::sin(static_cast<double>(in[i])) : real::cos(static_cast<double>(in[i])));
        continue;
      }
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < size; ++i) out[i] = element::sine<Quarters>::template apply<S>(in[i]);
    }
  }
};

WEFT_SIMD_END

}  // namespace weft::detail
#endif

#endif
