#ifndef WEFT_PLACEMENT_RANDOM_STRATEGY_HPP
#define WEFT_PLACEMENT_RANDOM_STRATEGY_HPP
// A parameter server drawn from the name of a variable: the same in every program and run, as TensorFlow's tf.contrib.training.RandomStrategy.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

namespace detail {
// The MD5 digest (RFC 1321), which draws and protects nothing.
inline std::array<std::uint8_t, 16> md5(std::string_view text);
}  // namespace detail

/// Gives a node to the task that its name and the seed draw: the MD5 digest of `name_seed`, read as one number, modulo the number of tasks. A variable stays where it is when others are added.
class random_strategy {
 public:
  explicit random_strategy(int num_tasks, std::int64_t seed = 0) : num_tasks_(num_tasks), seed_(seed) {}
  int operator()(const node& n) const { return choose(n.name()); }
  /// What a node of this name gets.
  int choose(std::string_view name) const;

 private:
  int num_tasks_;
  std::int64_t seed_;
};

namespace detail {

// One block of 64 bytes into the four words of the state.
inline void md5_block(std::array<std::uint32_t, 4>& state, const char* bytes) {
  constexpr unsigned turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::uint32_t words[16];
  for (std::size_t i = 0; i < 16; ++i) {
    words[i] = 0;
    for (std::size_t k = 4; k-- > 0;) words[i] = words[i] << 8 | static_cast<std::uint8_t>(bytes[4 * i + k]);
  }
  auto [a, b, c, d] = state;
  for (std::uint32_t i = 0; i < 64; ++i) {
    const std::uint32_t round = i / 16;
    const std::uint32_t mixed = round == 0 ? (b & c) | (~b & d) : round == 1 ? (d & b) | (~d & c) : round == 2 ? b ^ c ^ d : c ^ (b | ~d);
    const std::uint32_t word = round == 0 ? i : round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i;
    const auto sine = static_cast<std::uint32_t>(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.);
    const std::uint32_t sum = a + mixed + sine + words[word % 16];
    const unsigned turn = turns[round][i % 4];
    a = d;
    d = c;
    c = b;
    b += sum << turn | sum >> (32 - turn);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

inline std::array<std::uint8_t, 16> md5(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (unsigned i = 0; i < 8; ++i) padded += static_cast<char>(static_cast<std::uint64_t>(text.size()) * 8 >> (8 * i) & 0xff);
  std::array<std::uint32_t, 4> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t at = 0; at < padded.size(); at += 64) md5_block(state, padded.data() + at);
  std::array<std::uint8_t, 16> out{};
  for (std::size_t i = 0; i < 16; ++i) out[i] = static_cast<std::uint8_t>(state[i / 4] >> (8 * (i % 4)) & 0xff);
  return out;
}

}  // namespace detail

inline int random_strategy::choose(std::string_view name) const {
  if (num_tasks_ < 1) fail(error_code::invalid_argument, "random_strategy: the number of tasks must be positive, found " + std::to_string(num_tasks_));
  std::uint64_t rest = 0;
  for (const std::uint8_t byte : detail::md5(std::string(name) + "_" + std::to_string(seed_))) rest = (rest << 8 | byte) % static_cast<std::uint64_t>(num_tasks_);
  return static_cast<int>(rest);
}

}  // namespace weft

#endif
