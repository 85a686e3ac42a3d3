#ifndef WEFT_KERNELS_PHILOX_HPP
#define WEFT_KERNELS_PHILOX_HPP
// Random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011) with the streams of
// TensorFlow's CPU kernels. A block is four 32-bit words, a function of a key and a counter, so any part of a stream can be
// computed by itself. Seeds of 0 and 0, which mean "not deterministic" in a graph, are the caller's to replace.

#include <weft/kernels/loops.hpp>

#include <atomic>

namespace weft::detail {

/// A position in a Philox stream: the key, and the counter of the next block.
class philox_random {
 public:
  /// Words of a block.
  static constexpr std::size_t block_words = 4;

  /// TensorFlow's set-up: the key is `seed`, the counter starts at `seed2` in its upper half.
  philox_random(std::uint64_t seed, std::uint64_t seed2) noexcept : key_(seed), high_(seed2) {}

  /// Moves on by `blocks` blocks.
  void skip(std::uint64_t blocks) noexcept {
    low_ += blocks;
    high_ += low_ < blocks ? 1 : 0;
  }

  std::uint64_t key() const noexcept { return key_; }
  std::uint64_t counter_low() const noexcept { return low_; }
  std::uint64_t counter_high() const noexcept { return high_; }

 private:
  std::uint64_t key_, low_ = 0, high_;
};

/// The stream of one random node: each run takes a part of it. Runs may be concurrent.
class philox_counter {
 public:
  /// Blocks that TensorFlow sets aside for each element of an output.
  static constexpr std::uint64_t blocks_per_element = 256;

  philox_counter(std::uint64_t seed, std::uint64_t seed2) noexcept : start_(seed, seed2) {}

  /// Where a run that needs `blocks` blocks begins; the next one begins after them.
  philox_random reserve_blocks(std::uint64_t blocks) noexcept {
    philox_random generator = start_;
    generator.skip(used_.fetch_add(blocks, std::memory_order_relaxed));
    return generator;
  }

  /// The same for a run with `elements` results, as RandomUniform, RandomUniformInt and RandomStandardNormal reserve.
  philox_random reserve(std::uint64_t elements) noexcept { return reserve_blocks(elements * blocks_per_element); }

 private:
  philox_random start_;
  std::atomic<std::uint64_t> used_{0};
};

#if WEFT_HAS_KERNEL_BODIES

WEFT_SIMD_BEGIN

/// Writes the words of `blocks` blocks, in the order of their counters.
struct philox_body {
  static constexpr std::size_t lanes = 32;  // more than a compiler unrolls instead of making vectors

  template <instruction_set S>
  WEFT_SIMD_INLINE static void run(std::uint64_t key, std::uint64_t low, std::uint64_t high, std::uint32_t* out, std::size_t blocks) {
    for (std::size_t begin = 0; begin < blocks; begin += lanes) {
      std::uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
      for (std::size_t i = 0; i < lanes; ++i) {
        const std::uint64_t counter = low + begin + i, upper = high + (counter < low ? 1 : 0);
        c0[i] = static_cast<std::uint32_t>(counter);
        c1[i] = static_cast<std::uint32_t>(counter >> 32);
        c2[i] = static_cast<std::uint32_t>(upper);
        c3[i] = static_cast<std::uint32_t>(upper >> 32);
      }
      auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
      for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9U, k1 += 0xbb67ae85U) {
        WEFT_SIMD_INDEPENDENT
        for (std::size_t i = 0; i < lanes; ++i) {
          const std::uint64_t p0 = std::uint64_t{0xd2511f53U} * c0[i], p1 = std::uint64_t{0xcd9e8d57U} * c2[i];
          const std::uint32_t next0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
          const std::uint32_t next2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
          c0[i] = next0;
          c1[i] = static_cast<std::uint32_t>(p1);
          c2[i] = next2;
          c3[i] = static_cast<std::uint32_t>(p0);
        }
      }
      const std::size_t size = blocks - begin < lanes ? blocks - begin : lanes;
      for (std::size_t i = 0; i < size; ++i) {
        std::uint32_t* words = out + (begin + i) * philox_random::block_words;
        words[0] = c0[i];
        words[1] = c1[i];
        words[2] = c2[i];
        words[3] = c3[i];
      }
    }
  }
};

namespace element {

/// A word to a number in [0, 1): its low bits as the mantissa of a number in [1, 2), minus 1.
struct uniform_from_word {
  template <instruction_set S> WEFT_SIMD_INLINE static float apply(std::uint32_t word) {
    return from_bits((word & 0x7fffffU) | 0x3f800000U) - 1.0f;
  }
};
struct uniform_half_from_word {
  template <instruction_set S> WEFT_SIMD_INLINE static std::uint16_t apply(std::uint32_t word) {
    return float_to_half(half_to_float(static_cast<std::uint16_t>((word & 0x3ffU) | 0x3c00U)) - 1.0f);
  }
};
struct uniform_bfloat16_from_word {
  template <instruction_set S> WEFT_SIMD_INLINE static std::uint16_t apply(std::uint32_t word) {
    return float_to_bfloat16(bfloat16_to_float(static_cast<std::uint16_t>((word & 0x7fU) | 0x3f80U)) - 1.0f);
  }
};

/// Two words to a number in [0, 1) of double precision.
WEFT_SIMD_INLINE double uniform_from_words(std::uint32_t first, std::uint32_t second) {
  return from_bits((std::uint64_t{first & 0xfffffU} << 32) | second | (std::uint64_t{1023} << 52)) - 1.0;
}

}  // namespace element

WEFT_SIMD_END

/// Writes the words of the next block and moves on.
inline void philox_block(philox_random& generator, std::uint32_t* out) {
  auto k0 = static_cast<std::uint32_t>(generator.key()), k1 = static_cast<std::uint32_t>(generator.key() >> 32);
  out[0] = static_cast<std::uint32_t>(generator.counter_low());
  out[1] = static_cast<std::uint32_t>(generator.counter_low() >> 32);
  out[2] = static_cast<std::uint32_t>(generator.counter_high());
  out[3] = static_cast<std::uint32_t>(generator.counter_high() >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9U, k1 += 0xbb67ae85U) {
    const std::uint64_t p0 = std::uint64_t{0xd2511f53U} * out[0], p1 = std::uint64_t{0xcd9e8d57U} * out[2];
    out[0] = static_cast<std::uint32_t>(p1 >> 32) ^ out[1] ^ k0;
    out[2] = static_cast<std::uint32_t>(p0 >> 32) ^ out[3] ^ k1;
    out[1] = static_cast<std::uint32_t>(p1);
    out[3] = static_cast<std::uint32_t>(p0);
  }
  generator.skip(1);
}

/// Writes the words of the next `blocks` blocks and moves on.
inline void philox_words(philox_random& generator, std::uint32_t* out, std::size_t blocks, instruction_set set = best_instruction_set()) {
  dispatch<philox_body>(set, generator.key(), generator.counter_low(), generator.counter_high(), out, blocks);
  generator.skip(blocks);
}

/// Calls `write(words, begin, size)` for consecutive parts of `count` results of `words_each` words, results that share a block together.
template <class Write>
void for_each_words(philox_random& generator, std::size_t count, std::size_t words_each, instruction_set set, Write write) {
  constexpr std::size_t words_at_once = 1024;
  std::uint32_t words[words_at_once];
  const std::size_t at_once = words_at_once / words_each, in_block = philox_random::block_words / words_each;
  for (std::size_t begin = 0; begin < count; begin += at_once) {
    const std::size_t size = count - begin < at_once ? count - begin : at_once;
    philox_words(generator, words, (size + in_block - 1) / in_block, set);
    write(static_cast<const std::uint32_t*>(words), begin, size);
  }
}

/// Fills with numbers uniform in [0, 1) as TensorFlow's RandomUniform: T is float, double or a 16-bit floating type.
template <class T>
void fill_uniform(T* out, std::size_t count, philox_random generator, instruction_set set = best_instruction_set()) {
  if constexpr (std::is_same_v<T, double>) {
    for_each_words(generator, count, 2, set, [out](const std::uint32_t* words, std::size_t begin, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) out[begin + i] = element::uniform_from_words(words[2 * i], words[2 * i + 1]);
    });
  } else {
    using R = std::conditional_t<is_float16_v<T>, std::uint16_t, T>;
    using F = std::conditional_t<float16_format_v<T> == float16_format::ieee, element::uniform_half_from_word,
                                 std::conditional_t<is_float16_v<T>, element::uniform_bfloat16_from_word, element::uniform_from_word>>;
    static_assert(std::is_same_v<T, float> || is_float16_v<T>, "uniform numbers are float, double, half or bfloat16");
    for_each_words(generator, count, 1, set, [out, set](const std::uint32_t* words, std::size_t begin, std::size_t size) {
      dispatch<unary_body<F, std::uint32_t, R>, instruction_set::avx2>(set, words, reinterpret_cast<R*>(out + begin), size);
    });
  }
}

/// Fills with integers from [lowest, above) as TensorFlow's RandomUniformInt: lowest + word mod range. `lowest` must be less than `above`.
template <class T>
void fill_uniform_int(T* out, std::size_t count, T lowest, T above, philox_random generator, instruction_set set = best_instruction_set()) {
  static_assert(std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>, "uniform integers are int32 or int64");
  using U = std::make_unsigned_t<T>;
  const U range = static_cast<U>(static_cast<U>(above) - static_cast<U>(lowest));
  for_each_words(generator, count, sizeof(T) / 4, set, [=](const std::uint32_t* words, std::size_t begin, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      U word;
      if constexpr (sizeof(T) == 4) word = words[i];
      else word = (std::uint64_t{words[2 * i + 1]} << 32) | words[2 * i];
      out[begin + i] = static_cast<T>(static_cast<U>(lowest) + word % range);
    }
  });
}

/// Fills with integers of 32 or 64 random bits.
template <class U>
void fill_all_integers(U* out, std::size_t count, philox_random generator, instruction_set set = best_instruction_set()) {
  static_assert(std::is_same_v<U, std::uint32_t> || std::is_same_v<U, std::uint64_t>, "integers of all bits are uint32 or uint64");
  for_each_words(generator, count, sizeof(U) / 4, set, [=](const std::uint32_t* words, std::size_t begin, std::size_t size) {
    if constexpr (sizeof(U) == 4) std::memcpy(out + begin, words, size * sizeof(U));
    else
      for (std::size_t i = 0; i < size; ++i) out[begin + i] = (std::uint64_t{words[2 * i + 1]} << 32) | words[2 * i];
  });
}

#endif

}  // namespace weft::detail

#endif
