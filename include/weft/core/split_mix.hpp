#ifndef WEFT_CORE_SPLIT_MIX_HPP
#define WEFT_CORE_SPLIT_MIX_HPP
// SplitMix64: numbers that are the same with every compiler and library. For orders and simulations; tensors have TensorFlow's Philox.

#include <cstdint>

namespace weft::detail {

class split_mix {
 public:
  explicit split_mix(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace weft::detail

#endif
