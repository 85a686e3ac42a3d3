#ifndef WEFT_TESTING_VERDICT_HPP
#define WEFT_TESTING_VERDICT_HPP
// The answer of a predicate about a graph: true or false, and what was found.

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

namespace weft::testing {

/// Converts to bool and prints what was found, so that `CHECK(sends_once(parts))` of doctest and Catch2 and `EXPECT_TRUE(sends_once(parts))` of GoogleTest explain
/// themselves when they fail.
class [[nodiscard]] verdict {
 public:
  /// True, and what was found.
  static verdict yes(std::string found) { return verdict(true, std::move(found)); }
  /// False, and what was found.
  static verdict no(std::string found) { return verdict(false, std::move(found)); }

  explicit operator bool() const noexcept { return holds_; }
  /// What was found: which nodes, which transfers.
  const std::string& text() const noexcept { return text_; }
  /// The opposite answer about the same finding.
  verdict operator!() const { return verdict(!holds_, text_); }

  /// GoogleTest's AssertionResult, which carries the text into its message.
  template <class Result, class = decltype(std::declval<const Result&>().failure_message()), class = std::enable_if_t<std::is_constructible_v<Result, bool>>> operator Result() const {
    Result out(holds_);
    out << text_;
    return out;
  }

 private:
  verdict(bool holds, std::string text) : holds_(holds), text_(std::move(text)) {}
  bool holds_;
  std::string text_;
};

inline std::ostream& operator<<(std::ostream& out, const verdict& v) { return out << v.text(); }

}  // namespace weft::testing

#endif
