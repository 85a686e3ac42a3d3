#ifndef WEFT_KERNELS_RANDOM_HPP
#define WEFT_KERNELS_RANDOM_HPP
// Kernels of random numbers: TensorFlow's streams, Philox4x32-10 with the key from `seed` and the counter's upper half from `seed2`.

#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>

#if WEFT_HAS_BODIES
namespace weft::detail {

/// The counter-based generator Philox4x32-10 (Salmon et al., 2011): four words a block.
class philox_stream {
 public:
  using block = std::array<std::uint32_t, 4>;
  philox_stream(std::uint64_t seed, std::uint64_t seed2) noexcept : key_{low(seed), high(seed)}, low_(0), high_(seed2) {}
  block next() noexcept;
  /// Leaves out this many blocks.
  void skip(std::uint64_t blocks) noexcept {
    low_ += blocks;
    if (low_ < blocks) ++high_;
  }

 private:
  static std::uint32_t low(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x); }
  static std::uint32_t high(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x >> 32); }
  std::array<std::uint32_t, 2> key_;
  std::uint64_t low_, high_;
};

inline philox_stream::block philox_stream::next() noexcept {
  block x{low(low_), high(low_), low(high_), high(high_)};
  std::uint32_t k0 = key_[0], k1 = key_[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x[0], p1 = std::uint64_t{0xCD9E8D57} * x[2];
    x = {high(p1) ^ x[1] ^ k0, low(p1), high(p0) ^ x[3] ^ k1, low(p0)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  skip(1);
  return x;
}

/// The position of one node's stream in one session.
class random_state final : public resource {
 public:
  random_state(std::uint64_t seed, std::uint64_t seed2) : stream_(seed, seed2) {}
  std::string describe() const override { return "a random number stream"; }
  /// The stream where it stands; the node's next run goes on `blocks` further.
  philox_stream reserve(std::uint64_t blocks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const philox_stream here = stream_;
    stream_.skip(blocks);
    return here;
  }

 private:
  std::mutex mutex_;
  philox_stream stream_;
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
  void fill(philox_stream stream, tensor_value& out) const;
  void fill_integers(const kernel_context& context, philox_stream stream, tensor_value& out) const;
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

// Numbers in [0, 1) whose mantissa is taken from a word's low bits; double takes 20 bits of the first word and all of the second.
inline float unit_float(std::uint32_t word) noexcept {
  const std::uint32_t bits = (std::uint32_t{127} << 23) | (word & 0x7fffffU);
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out - 1.f;
}
inline double unit_double(std::uint32_t first, std::uint32_t second) noexcept {
  const std::uint64_t bits = (std::uint64_t{1023} << 52) | (std::uint64_t{first & 0xfffffU} << 32) | second;
  double out;
  std::memcpy(&out, &bits, sizeof out);
  return out - 1.0;
}

/// Box and Muller's transformation of two uniform numbers into two normal ones.
template <class T> void to_normal(T u, T v, T* out) {
  const T radius = std::sqrt(T(-2) * std::log(u < T(1e-7) ? T(1e-7) : u)), angle = T(6.283185307179586476925286766559) * v;
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

inline void random_kernel::fill(philox_stream stream, tensor_value& out) const {
  const auto count = static_cast<std::size_t>(out.elements());
  const bool normal = kind_ == distribution::normal, wide = type_ == dtype::float64;
  const std::size_t at_once = wide ? 2 : 4;
  for (std::size_t at = 0; at < count; at += at_once) {
    const philox_stream::block words = stream.next();
    double doubles[2];
    float floats[4];
    if (wide) {
      doubles[0] = unit_double(words[0], words[1]);
      doubles[1] = unit_double(words[2], words[3]);
      if (normal) to_normal(doubles[0], doubles[1], doubles);
    } else {
      for (std::size_t i = 0; i < 4; ++i) floats[i] = unit_float(!normal && type_ == dtype::half ? words[i] << 13 : !normal && type_ == dtype::bfloat16 ? words[i] << 16 : words[i]);
      if (normal) {
        to_normal(floats[0], floats[1], floats);
        to_normal(floats[2], floats[3], floats + 2);
      }
    }
    for (std::size_t i = 0; i < at_once && at + i < count; ++i) {
      if (wide) out.mutable_data<double>()[at + i] = doubles[i];
      else if (type_ == dtype::float32) out.mutable_data<float>()[at + i] = floats[i];
      else if (type_ == dtype::half) out.mutable_data<half>()[at + i] = half(floats[i]);
      else out.mutable_data<bfloat16>()[at + i] = bfloat16(floats[i]);
    }
  }
}

// lowest + word modulo the size of the range; int64 takes two words, low first.
inline void random_kernel::fill_integers(const kernel_context& context, philox_stream stream, tensor_value& out) const {
  const auto count = static_cast<std::size_t>(out.elements());
  const std::int64_t low = integers_of(context, 1, "minval")[0], high = integers_of(context, 2, "maxval")[0];
  if (low >= high) context.fail("minval must be less than maxval, found " + std::to_string(low) + " and " + std::to_string(high));
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const bool wide = type_ == dtype::int64;
  for (std::size_t at = 0; at < count;) {
    const philox_stream::block words = stream.next();
    for (std::size_t i = 0; i < 4 && at < count; i += wide ? 2 : 1, ++at) {
      const std::uint64_t word = wide ? words[i] | std::uint64_t{words[i + 1]} << 32 : words[i];
      const auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + word % range);
      if (wide) out.mutable_data<std::int64_t>()[at] = value;
      else out.mutable_data<std::int32_t>()[at] = static_cast<std::int32_t>(value);
    }
  }
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
  // As many blocks as TensorFlow leaves between one run and the next.
  const philox_stream stream = state(context)->reserve(static_cast<std::uint64_t>(out.elements()) * 256);
  if (integers) fill_integers(context, stream, out);
  else fill(stream, out);
}

/// The factory of a random op; nullptr for ops of other families.
inline kernel_factory random_kernel_of(std::string_view op) {
  return op == "RandomUniform" || op == "RandomStandardNormal" || op == "RandomUniformInt" ? &make_kernel<random_kernel> : nullptr;
}

}  // namespace weft::detail
#endif

#endif
