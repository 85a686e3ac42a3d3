#ifndef WEFT_KERNELS_RANDOM_HPP
#define WEFT_KERNELS_RANDOM_HPP
// Kernels of random numbers: TensorFlow's streams, one for each node of a session.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/philox.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft::detail {
/// The factory of a random op; nullptr for ops of other families.
kernel_factory random_kernel_of(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// The position of one node's stream in one session.
class random_state final : public resource {
 public:
  random_state(std::uint64_t seed, std::uint64_t seed2) : stream(seed, seed2) {}
  std::string describe() const override { return "a random number stream"; }
  philox_counter stream;
};

/// Random tensors of the shape in input 0: RandomUniform in [0, 1), RandomStandardNormal, RandomUniformInt in [input 1, input 2).
class random_kernel final : public kernel {
 public:
  explicit random_kernel(const node& n);
  void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override;

 private:
  enum class distribution { uniform, normal, integers };
  std::shared_ptr<random_state> state(kernel_context& context) const;
  template <class T> void fill(philox_random generator, tensor_value& out) const;
  template <class T> void fill_integers(const kernel_context& context, philox_random generator, tensor_value& out) const;
  distribution kind_;
  dtype type_;
  std::uint64_t seed_, seed2_;
};

inline random_kernel::random_kernel(const node& n)
    : kind_(n.op() == "RandomUniform" ? distribution::uniform : n.op() == "RandomStandardNormal" ? distribution::normal : distribution::integers),
      type_(type_attr(n, kind_ == distribution::integers ? "Tout" : "dtype")),
      seed_(static_cast<std::uint64_t>(n.attr<std::int64_t>("seed"))), seed2_(static_cast<std::uint64_t>(n.attr<std::int64_t>("seed2"))) {
  const bool fits = kind_ == distribution::integers ? type_ == dtype::int32 || type_ == dtype::int64 : is_floating(type_);
  if (!fits) n.fail_about(error_code::unimplemented, std::string("no kernel of this op gives elements of dtype ") + to_text(type_));
}

inline bool random_kernel::expensive(const kernel_context& context) const noexcept {
  if (context.input_count() == 0) return false;
  const tensor_value& sizes = context.input(0);
  double elements = 1;
  for (std::int64_t i = 0; i < sizes.elements(); ++i)
    elements *= sizes.dtype() == dtype::int64 ? static_cast<double>(sizes.data<std::int64_t>()[i]) : sizes.dtype() == dtype::int32 ? sizes.data<std::int32_t>()[i] : 0;
  return elements > 4096;
}

/// Box and Muller's transformation of two uniform numbers into two normal ones.
template <class T> void to_normal(T u, T v, T* out) {
  const T radius = std::sqrt(T(-2) * std::log(u < T(1e-7) ? T(1e-7) : u)), angle = T(6.283185307179586476925286766559) * v;
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

/// Turns uniform numbers, of which there is an even number, into normal ones in place, pair by pair.
template <class T> void make_normal(T* numbers, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 2) to_normal(numbers[i], numbers[i + 1], numbers + i);
}

template <class T> void random_kernel::fill(philox_random generator, tensor_value& out) const {
  const auto count = static_cast<std::size_t>(out.elements());
  T* to = out.mutable_data<T>();
  if (kind_ == distribution::uniform) return fill_uniform(to, count, generator);
  // 16-bit floats are drawn as float; an odd count takes one number more.
  using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr std::size_t block = 512;
  wide numbers[block];
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = std::min(count - begin, block), even = size + size % 2;
    fill_uniform(numbers, even, generator);
    generator.skip(block * sizeof(wide) / 4 / philox_random::block_words);
    make_normal(numbers, even);
    if constexpr (std::is_same_v<T, wide>) std::copy_n(numbers, size, to + begin);
    else cast_loop<T>(static_cast<const wide*>(numbers), to + begin, size);
  }
}

template <class T> void random_kernel::fill_integers(const kernel_context& context, philox_random generator, tensor_value& out) const {
  const T low = *context.input(1).data<T>(), high = *context.input(2).data<T>();
  if (low >= high) context.fail("minval must be less than maxval, found " + std::to_string(low) + " and " + std::to_string(high));
  fill_uniform_int(out.mutable_data<T>(), static_cast<std::size_t>(out.elements()), low, high, generator);
}

// Without seeds the stream is another in every session.
inline std::shared_ptr<random_state> random_kernel::state(kernel_context& context) const {
  resource_manager* session = context.environment().session_state;
  if (session == nullptr) context.fail(error_code::internal, "the step has no session state to keep the random number stream in");
  return session->find_or_make<random_state>("random", context.about().name(), [&] {
    if (seed_ != 0 || seed2_ != 0) return std::make_shared<random_state>(seed_, seed2_);
    std::random_device device;
    const auto draw = [&] { return std::uint64_t{device()} << 32 | device(); };
    const std::uint64_t first = draw();
    return std::make_shared<random_state>(first, draw());
  });
}

inline void random_kernel::compute(kernel_context& context) {
  const bool integers = kind_ == distribution::integers;
  expect_inputs(context, integers ? 3 : 1);
  for (int i = 1; integers && i < 3; ++i) {
    expect_dtype(context, i, type_);
    if (context.input(i).shape().rank() != 0) context.fail("minval and maxval must be scalars, found shape " + context.input(i).shape().text());
  }
  tensor_value& out = context.allocate_output(0, type_, wanted_shape(context, 0, "the wanted shape"));
  if (out.elements() == 0) return;
  const philox_random generator = state(context)->stream.reserve(static_cast<std::uint64_t>(out.elements()));
  switch (type_) {
    case dtype::int32: return fill_integers<std::int32_t>(context, generator, out);
    case dtype::int64: return fill_integers<std::int64_t>(context, generator, out);
    case dtype::float64: return fill<double>(generator, out);
    case dtype::half: return fill<half>(generator, out);
    case dtype::bfloat16: return fill<bfloat16>(generator, out);
    default: return fill<float>(generator, out);
  }
}

WEFT_DECL kernel_factory random_kernel_of(std::string_view op) {
  return op == "RandomUniform" || op == "RandomStandardNormal" || op == "RandomUniformInt" ? &make_kernel<random_kernel> : nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
