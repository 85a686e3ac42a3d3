#ifndef WEFT_TESTING_SNAPSHOT_HPP
#define WEFT_TESTING_SNAPSHOT_HPP
// Expected texts that stand in the test itself, and that a run can write anew.

#include <weft/core/config.hpp>
#include <weft/testing/verdict.hpp>

#include <string_view>
#if WEFT_HAS_BODIES
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#endif

namespace weft::testing {

/// What changed from one text to another, a line each: `- ` was expected only, `+ ` was found only, two spaces are in both. Empty when they are equal.
std::string line_difference(std::string_view expected, std::string_view found);

/// Whether a text is the one that stands in the test, a raw string `R"(...)"` whose first line may begin below the parenthesis. If not, says what differs. With the
/// environment variable WEFT_UPDATE_SNAPSHOTS set, the string in the test's source is replaced by the text instead, and the answer is yes.
verdict matches_snapshot(std::string_view text, std::string_view expected, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace weft::testing

#if WEFT_HAS_BODIES
namespace weft::testing::detail {

WEFT_DECL std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// A test file whose snapshots are written anew. Lines move while that happens, so where each call stood is counted from the first version.
class snapshot_file {
 public:
  // Replaces the raw string that begins at or after `line`; whether one was found.
  bool replace(const std::string& path, int line, std::string_view actual) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream whole;
    whole << in.rdbuf();
    std::string text = whole.str();
    int moved = 0;
    for (const auto& [at, by] : moves_)
      if (at < line) moved += by;
    std::size_t from = 0;
    for (int i = 1; i < line + moved && from != std::string::npos; ++i) {
      from = text.find('\n', from);
      if (from != std::string::npos) ++from;
    }
    const std::size_t begin = from == std::string::npos ? from : text.find("R\"(", from);
    const std::size_t end = begin == std::string::npos ? begin : text.find(")\"", begin);
    if (end == std::string::npos) return false;
    const std::string old = text.substr(begin + 3, end - begin - 3), fresh = "\n" + std::string(actual);
    text.replace(begin + 3, old.size(), fresh);
    moves_.emplace_back(line, static_cast<int>(std::count(fresh.begin(), fresh.end(), '\n') - std::count(old.begin(), old.end(), '\n')));
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    return out.good();
  }

 private:
  std::vector<std::pair<int, int>> moves_;
};

WEFT_DECL bool write_snapshot(const std::string& path, int line, std::string_view actual) {
  static std::mutex mutex;
  static std::map<std::string, snapshot_file> files;
  const std::lock_guard<std::mutex> lock(mutex);
  return files[path].replace(path, line, actual);
}

}  // namespace weft::testing::detail

namespace weft::testing {

WEFT_DECL std::string line_difference(std::string_view expected, std::string_view found) {
  if (expected == found) return "";
  const std::vector<std::string> a = detail::lines_of(expected), b = detail::lines_of(found);
  // 1. What both have in common, from the end: lengths of the longest common sequences.
  std::vector<std::vector<std::size_t>> common(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;) common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  // 2. The lines, in order.
  std::string out;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) out += "  " + a[i++] + "\n", ++j;
    else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) out += "- " + a[i++] + "\n";
    else out += "+ " + b[j++] + "\n";
  }
  return out;
}

WEFT_DECL verdict matches_snapshot(std::string_view text, std::string_view expected, const char* file, int line) {
  if (!expected.empty() && expected.front() == '\n') expected.remove_prefix(1);
  if (text == expected) return verdict::yes(std::string(text));
  const std::string changes = line_difference(expected, text);
  const char* update = std::getenv("WEFT_UPDATE_SNAPSHOTS");
  if (update == nullptr || *update == '\0' || std::string_view(update) == "0")
    return verdict::no("the text differs from the expected one (WEFT_UPDATE_SNAPSHOTS=1 writes it anew):\n" + (changes.empty() ? "only in the end of its last line\n" : changes));
  if (!detail::write_snapshot(file, line, text)) return verdict::no("no raw string R\"(...)\" was found at or after " + std::string(file) + ":" + std::to_string(line) + ", or the file cannot be written");
  return verdict::yes("written anew:\n" + changes);
}

}  // namespace weft::testing
#endif

#endif
