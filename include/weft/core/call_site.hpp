#ifndef WEFT_CORE_CALL_SITE_HPP
#define WEFT_CORE_CALL_SITE_HPP
// Where in the user's program something was written: the file, without its folders, and the line.

#include <string>
#include <string_view>
#include <tuple>

namespace weft {

/// A file and a line of the user's program. Empty when unknown (imported graphs, generated nodes).
struct call_site {
  /// Base name of the file; refers to a string literal, so it lives as long as the program.
  const char* file = "";
  /// Line number, from 1; 0 when unknown.
  int line = 0;

  /// The place of the call, when used as a default argument.
  static constexpr call_site here(const char* path = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
    const char* base = path;
    for (const char* c = path; *c != '\0'; ++c)
      if (*c == '/' || *c == '\\') base = c + 1;
    return {base, line};
  }

  /// Whether the place is known.
  constexpr bool known() const noexcept { return line > 0; }

  /// `train.cpp:42`, or an empty string when unknown.
  std::string text() const { return known() ? std::string(file) + ":" + std::to_string(line) : std::string(); }

  friend bool operator==(const call_site& a, const call_site& b) noexcept {
    return a.line == b.line && std::string_view(a.file) == std::string_view(b.file);
  }
  friend bool operator!=(const call_site& a, const call_site& b) noexcept { return !(a == b); }
};

/// The last parameter of every op: an optional name for the node, and the line that made it.
/// The name is made unique in its graph; a name that ends in '/' is taken exactly (without the slash).
struct op_name {
  /// The wanted name; empty means the op's own.
  std::string_view text;
  /// The caller's line.
  call_site site;

  op_name(call_site where = call_site::here()) : site(where) {}
  op_name(const char* name, call_site where = call_site::here()) : text(name), site(where) {}
  op_name(const std::string& name, call_site where = call_site::here()) : text(name), site(where) {}
  op_name(std::string_view name, call_site where) : text(name), site(where) {}
};

}  // namespace weft

#endif
