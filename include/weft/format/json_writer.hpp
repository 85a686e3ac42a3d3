#ifndef WEFT_FORMAT_JSON_WRITER_HPP
#define WEFT_FORMAT_JSON_WRITER_HPP
// Writes JSON the way protobuf does: 64-bit integers in quotes, bytes in base64, the shortest numbers that read back. Equal calls give
// equal bytes.

#include <weft/core/config.hpp>

#if WEFT_HAS_FORMAT_BODIES
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::detail {

/// Text of nested objects and arrays. Members are named by the field's name in the .proto file, in either spelling.
class json_writer {
 public:
  json_writer(int indent, bool proto_names) : indent_(indent), proto_names_(proto_names) {}

  json_writer& begin(char bracket) {
    separate();
    out_ += bracket;
    ++depth_;
    first_ = true;
    return *this;
  }
  json_writer& end(char bracket) {
    --depth_;
    if (!first_) line();
    out_ += bracket;
    first_ = false;
    return *this;
  }
  /// A member of a message.
  json_writer& field(std::string_view name) {
    std::string text;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const bool upper = !proto_names_ && name[i] == '_' && i + 1 < name.size();
      text += upper ? static_cast<char>(name[++i] - 'a' + 'A') : name[i];
    }
    return key(text);
  }
  /// A member of a map, whose keys stay as they are.
  json_writer& key(std::string_view name) {
    separate();
    quote(name);
    out_ += indent_ > 0 ? ": " : ":";
    after_key_ = true;
    return *this;
  }
  json_writer& string(std::string_view text) {
    separate();
    quote(text);
    return *this;
  }
  json_writer& null() { return word("null"); }
  json_writer& boolean(bool v) { return word(v ? "true" : "false"); }
  /// A number without quotes, for those of at most 32 bits and for texts that protobuf does not write.
  json_writer& small(std::int64_t v) { return word(std::to_string(v)); }
  json_writer& integer(std::int64_t v) { return word("\"" + std::to_string(v) + "\""); }
  json_writer& natural(std::uint64_t v) { return word("\"" + std::to_string(v) + "\""); }
  json_writer& real(double v) {
    if (!std::isfinite(v)) return special(v);
    if (v == 0 && std::signbit(v)) return word("-0.0");  // readers take "-0" for an integer
    char text[32];
    return word(std::string_view(text, static_cast<std::size_t>(std::to_chars(text, text + sizeof text, v).ptr - text)));
  }
  json_writer& real(float v) {
    if (!std::isfinite(v) || v == 0) return real(static_cast<double>(v));
    char text[32];
    const char* end = std::to_chars(text, text + sizeof text, v).ptr;
    // Readers take the nearest double and then the nearest float, which is not always the float that these digits are meant for.
    double wide = 0;
    std::from_chars(text, end, wide);
    if (static_cast<float>(wide) != v) return real(static_cast<double>(v));
    return word(std::string_view(text, static_cast<std::size_t>(end - text)));
  }
  json_writer& bytes(std::string_view data);
  std::string take() {
    if (indent_ > 0) out_ += '\n';
    return std::move(out_);
  }

 private:
  json_writer& word(std::string_view text) {
    separate();
    out_ += text;
    return *this;
  }
  json_writer& special(double v) { return word(std::isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\""); }
  void line() {
    if (indent_ <= 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * depth_), ' ');
  }
  void separate() {
    if (after_key_) {
      after_key_ = false;
      return;
    }
    if (!first_) out_ += ',';
    if (depth_ > 0) line();
    first_ = false;
  }
  void quote(std::string_view text);

  std::string out_;
  int indent_, depth_ = 0;
  bool proto_names_, first_ = true, after_key_ = false;
};

inline json_writer& json_writer::bytes(std::string_view data) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  separate();
  out_ += '"';
  for (std::size_t i = 0; i < data.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) bits = bits << 8 | (i + j < data.size() ? static_cast<unsigned char>(data[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) out_ += i + j > data.size() ? '=' : digits[bits >> (18 - 6 * j) & 63U];
  }
  out_ += '"';
  return *this;
}

// How many bytes the UTF-8 character here has; 0 where there is none.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  const unsigned lead = byte(0);
  const std::size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (n > text.size()) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  if (n == 3 && ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f))) return 0;
  if (n == 4 && ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))) return 0;
  return n;
}

// What is not UTF-8 becomes the replacement character.
inline void json_writer::quote(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  out_ += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    std::size_t n = utf8_length(text);
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += text[0];
    } else if (c < 0x20) {
      out_ += "\\u00";
      out_ += digits[c >> 4];
      out_ += digits[c & 15U];
    } else if (n == 0) {
      out_ += "\\ufffd";
      n = 1;
    } else {
      out_ += text.substr(0, n);
    }
    text.remove_prefix(n);
  }
  out_ += '"';
}

}  // namespace weft::detail
#endif

#endif
