#ifndef WEFT_GRAPH_WORD_HPP
#define WEFT_GRAPH_WORD_HPP
// Names of ops and attributes: many nodes say few of them, so that each is there once.

#include <weft/core/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#if WEFT_HAS_BODIES
#include <cstring>
#endif

namespace weft::detail {

// A text and how many hold it; 0 for one that is kept to the end of the program.
struct word_text : std::string {
  word_text(std::string_view text, std::uint32_t first_holders) : std::string(text), holders(first_holders) {}
  mutable std::atomic<std::uint32_t> holders;
};

// Spreads texts over 32 bits.
std::uint32_t hash_text(std::string_view text) noexcept;

// The word of this text, held once more. The first thousand short ones of a program are kept; others, which a graph from anywhere may bring, end with their holders.
const word_text& take_word(std::string_view text);
void end_word(const word_text& w) noexcept;
inline const word_text& hold(const word_text& w) noexcept {
  if (w.holders.load(std::memory_order_relaxed) != 0) w.holders.fetch_add(1, std::memory_order_relaxed);
  return w;
}
inline void let_go(const word_text& w) noexcept {
  if (w.holders.load(std::memory_order_relaxed) != 0 && w.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) end_word(w);
}

// Holds a word, in eight bytes.
class word {
 public:
  explicit word(std::string_view text) : text_(&take_word(text)) {}
  word(const word& other) noexcept : text_(&hold(*other.text_)) {}
  word& operator=(word other) noexcept {
    std::swap(text_, other.text_);
    return *this;
  }
  ~word() { let_go(*text_); }
  const std::string& text() const noexcept { return *text_; }

 private:
  const word_text* text_;
};

}  // namespace weft::detail

#if WEFT_HAS_BODIES
namespace weft::detail {

inline constexpr std::size_t most_kept_words = 1024, longest_kept_word = 64;
// An open table, at most half full, that nothing leaves.
inline std::atomic<const word_text*> kept_words[2 * most_kept_words];
inline std::atomic<std::size_t> kept_word_count;

WEFT_DECL std::uint32_t hash_text(std::string_view text) noexcept {
  std::uint64_t h = text.size();
  std::size_t i = 0;
  const auto mix = [&h](std::uint64_t part) {
    h = (h ^ part) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  };
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t part;
    std::memcpy(&part, text.data() + i, 8);
    mix(part);
  }
  std::uint64_t rest = 0;
  for (; i < text.size(); ++i) rest = rest << 8 | static_cast<unsigned char>(text[i]);
  mix(rest);
  mix(h >> 32);
  return static_cast<std::uint32_t>(h >> 32);
}

WEFT_DECL const word_text& take_word(std::string_view text) {
  if (text.size() > longest_kept_word) return *new word_text(text, 1);
  constexpr std::size_t mask = 2 * most_kept_words - 1;
  for (std::size_t i = hash_text(text) & mask;; i = (i + 1) & mask) {
    const word_text* found = kept_words[i].load(std::memory_order_acquire);
    if (found == nullptr) {
      if (kept_word_count.fetch_add(1, std::memory_order_relaxed) >= most_kept_words) {
        kept_word_count.fetch_sub(1, std::memory_order_relaxed);
        return *new word_text(text, 1);
      }
      const word_text* fresh = new word_text(text, 0);
      if (kept_words[i].compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return *fresh;
      delete fresh;
      kept_word_count.fetch_sub(1, std::memory_order_relaxed);
    }
    if (*found == text) return hold(*found);
  }
}

WEFT_DECL void end_word(const word_text& w) noexcept { delete &w; }

}  // namespace weft::detail
#endif

#endif
