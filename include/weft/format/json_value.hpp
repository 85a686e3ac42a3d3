#ifndef WEFT_FORMAT_JSON_VALUE_HPP
#define WEFT_FORMAT_JSON_VALUE_HPP
// JSON as protobuf writes it: a parsed text as a tree, at most 64 levels deep, and readers that name the way to what they refuse, as in
// `node[3].attr.dtype.type`. Nothing that was read is ever copied or printed as a whole.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {

enum class json_kind : std::uint8_t { null, boolean, integer, natural, real, string, array, object };

// One value of a parsed text. An integer is a `natural` only where it is too large for the other.
struct json_value {
  json_kind kind = json_kind::null;
  union {
    bool boolean;
    std::int64_t integer = 0;
    std::uint64_t natural;
    double real;
  };
  // Of a string; the key of a member of an object.
  std::string text, key;
  // Elements or members, in the order of the text.
  std::vector<json_value> items;
};

// The deepest nesting that is read.
inline constexpr std::size_t max_json_depth = 64;

// Parses a text. Throws INVALID_ARGUMENT with line and column: what is not JSON, nested too deeply, or names a member twice.
json_value parse_json(std::string_view text);

// The bytes of a file. Throws NOT_FOUND, UNAVAILABLE.
std::string read_whole_file(const std::string& path);

// A value and the way to it from the top.
struct json_at {
  const json_value& value;
  const json_at* up = nullptr;
  std::string_view name;
  std::size_t index = 0;

  json_at(const json_value& top) : value(top) {}
  // A member of an object, by the field's name in the .proto file; an element of an array.
  json_at(const json_value& v, const json_at& parent, std::string_view member) : value(v), up(&parent), name(member) {}
  json_at(const json_value& v, const json_at& parent, std::size_t element) : value(v), up(&parent), index(element) {}
};

std::string path_of(const json_at& at);
[[noreturn]] void bad_json(const json_at& at, const std::string& fault, error_code code = error_code::invalid_argument);
// Refuses what is not an object, and members that are none of these fields.
void expect_fields(const json_at& at, std::initializer_list<std::string_view> fields);
// The member of this name in either spelling (`tensor_shape`, `tensorShape`), or nullptr; null counts as absent.
const json_value* find_field(const json_at& at, std::string_view field);
// The elements of an array.
const std::vector<json_value>& elements_at(const json_at& at);
const std::string& string_at(const json_at& at);
bool bool_at(const json_at& at);
// An integer in these bounds, as a number or in quotes.
std::int64_t integer_at(const json_at& at, std::int64_t least = INT64_MIN, std::int64_t most = INT64_MAX);
std::uint64_t natural_at(const json_at& at);
// A number, also in quotes; `"NaN"`, `"Infinity"`, `"-Infinity"`.
double real_at(const json_at& at);
float float_at(const json_at& at);
// Bytes in base64, of either alphabet, with or without padding.
std::string bytes_at(const json_at& at);

}  // namespace weft::detail

#if WEFT_HAS_FORMAT_BODIES
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace weft::detail {

inline const char* kind_name(json_kind kind) {
  constexpr const char* names[] = {"null", "a bool", "a number", "a number", "a number", "a string", "an array", "an object"};
  return names[static_cast<std::size_t>(kind)];
}

// Builds the tree from the parser's events. The values that are open lie in vectors that do not grow until they are closed.
class json_builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  json_builder(json_value& top, std::string_view text) : top_(top), text_(text) {}
  const std::string& fault() const noexcept { return fault_; }

  bool null() override { return add(json_kind::null) != nullptr; }
  bool boolean(bool v) override {
    add(json_kind::boolean)->boolean = v;
    return true;
  }
  bool number_integer(number_integer_t v) override {
    add(json_kind::integer)->integer = v;
    return true;
  }
  bool number_unsigned(number_unsigned_t v) override {
    if (v <= static_cast<std::uint64_t>(INT64_MAX)) return number_integer(static_cast<std::int64_t>(v));
    add(json_kind::natural)->natural = v;
    return true;
  }
  bool number_float(number_float_t v, const string_t&) override {
    add(json_kind::real)->real = v;
    return true;
  }
  bool string(string_t& v) override {
    add(json_kind::string)->text = std::move(v);
    return true;
  }
  bool binary(binary_t&) override { return stop("binary data"); }
  bool start_object(std::size_t) override { return open(json_kind::object); }
  bool start_array(std::size_t) override { return open(json_kind::array); }
  bool key(string_t& v) override {
    key_ = std::move(v);
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool end_object() override {
    std::vector<const std::string*> keys;
    for (const json_value& member : open_.back()->items) keys.push_back(&member.key);
    std::sort(keys.begin(), keys.end(), [](const std::string* a, const std::string* b) { return *a < *b; });
    for (std::size_t i = 1; i < keys.size(); ++i)
      if (*keys[i - 1] == *keys[i]) return stop("an object has two members '" + keys[i]->substr(0, 80) + "'");
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    const std::string_view before = text_.substr(0, position == 0 ? 0 : position - 1);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto column = before.size() - (before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1) + 1;
    return stop("not JSON at line " + std::to_string(line) + ", column " + std::to_string(column));
  }

 private:
  json_value* add(json_kind kind) {
    json_value* v = &top_;
    if (!open_.empty()) {
      v = &open_.back()->items.emplace_back();
      if (open_.back()->kind == json_kind::object) v->key = std::move(key_);
    }
    v->kind = kind;
    return v;
  }
  bool open(json_kind kind) {
    if (open_.size() == max_json_depth) return stop("nested more than " + std::to_string(max_json_depth) + " levels deep");
    open_.push_back(add(kind));
    return true;
  }
  bool stop(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  json_value& top_;
  std::string_view text_;
  std::vector<json_value*> open_;
  std::string key_, fault_;
};

WEFT_DECL json_value parse_json(std::string_view text) {
  json_value out;
  json_builder builder(out, text);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) fail(error_code::invalid_argument, builder.fault());
  return out;
}

WEFT_DECL std::string read_whole_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) fail(error_code::not_found, "cannot open '" + path + "'");
  std::string out;
  char block[1 << 14];
  while (const std::size_t n = std::fread(block, 1, sizeof block, file)) out.append(block, n);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) fail(error_code::unavailable, "cannot read '" + path + "'");
  return out;
}

WEFT_DECL std::string path_of(const json_at& at) {
  std::vector<const json_at*> way;
  for (const json_at* a = &at; a->up != nullptr; a = a->up) way.push_back(a);
  std::string out;
  for (auto a = way.rbegin(); a != way.rend(); ++a)
    if ((*a)->name.data() == nullptr) out += "[" + std::to_string((*a)->index) + "]";
    else out += (out.empty() ? "" : ".") + std::string((*a)->name.substr(0, 80));
  return out;
}

WEFT_DECL void bad_json(const json_at& at, const std::string& fault, error_code code) {
  const std::string path = path_of(at);
  fail(code, path.empty() ? fault : path + ": " + fault);
}

inline void expect_kind(const json_at& at, json_kind kind) {
  if (at.value.kind != kind) bad_json(at, std::string("expected ") + kind_name(kind) + ", found " + kind_name(at.value.kind));
}

// Whether a key is the field in lowerCamelCase.
inline bool is_camel(std::string_view key, std::string_view field) {
  std::size_t k = 0;
  for (std::size_t f = 0; f < field.size(); ++f, ++k) {
    char c = field[f];
    if (c == '_' && f + 1 < field.size()) {
      c = field[++f];
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    if (k >= key.size() || key[k] != c) return false;
  }
  return k == key.size();
}

inline bool names_field(std::string_view key, std::string_view field) { return key == field || is_camel(key, field); }

WEFT_DECL void expect_fields(const json_at& at, std::initializer_list<std::string_view> fields) {
  expect_kind(at, json_kind::object);
  for (const json_value& member : at.value.items)
    if (std::none_of(fields.begin(), fields.end(), [&](std::string_view f) { return names_field(member.key, f); }))
      bad_json(at, "there is no field '" + member.key.substr(0, 80) + "' here");
}

WEFT_DECL const json_value* find_field(const json_at& at, std::string_view field) {
  const json_value* found = nullptr;
  for (const json_value& member : at.value.items)
    if (names_field(member.key, field)) {
      if (found != nullptr) bad_json(at, "the field '" + std::string(field) + "' is given twice, in both spellings");
      found = &member;
    }
  return found == nullptr || found->kind == json_kind::null ? nullptr : found;
}

WEFT_DECL const std::vector<json_value>& elements_at(const json_at& at) {
  expect_kind(at, json_kind::array);
  return at.value.items;
}

WEFT_DECL const std::string& string_at(const json_at& at) {
  expect_kind(at, json_kind::string);
  return at.value.text;
}

WEFT_DECL bool bool_at(const json_at& at) {
  expect_kind(at, json_kind::boolean);
  return at.value.boolean;
}

// The number in a string; anything else as it is.
inline json_value unquoted(const json_at& at) {
  json_value out;
  if (at.value.kind == json_kind::string && at.value.text.size() <= 64 && !at.value.text.empty()) {
    json_builder builder(out, at.value.text);
    if (!nlohmann::json::sax_parse(at.value.text, &builder)) out.kind = json_kind::null;
  } else {
    out.kind = at.value.kind;
    out.natural = at.value.natural;
  }
  const bool number = out.kind == json_kind::integer || out.kind == json_kind::natural || out.kind == json_kind::real;
  if (!number) bad_json(at, "expected a number, found " + (at.value.kind == json_kind::string ? "\"" + at.value.text.substr(0, 80) + "\"" : std::string(kind_name(at.value.kind))));
  return out;
}

WEFT_DECL std::int64_t integer_at(const json_at& at, std::int64_t least, std::int64_t most) {
  const json_value v = unquoted(at);
  std::int64_t out = v.integer;
  if (v.kind == json_kind::real) {
    if (!(std::abs(v.real) <= 0x1p53) || v.real != std::floor(v.real)) bad_json(at, "expected an integer");
    out = static_cast<std::int64_t>(v.real);
  }
  if (v.kind == json_kind::natural || out < least || out > most)
    bad_json(at, "expected an integer from " + std::to_string(least) + " to " + std::to_string(most) + ", found " +
                     (v.kind == json_kind::natural ? std::to_string(v.natural) : std::to_string(out)));
  return out;
}

WEFT_DECL std::uint64_t natural_at(const json_at& at) {
  if (const json_value v = unquoted(at); v.kind == json_kind::natural) return v.natural;
  return static_cast<std::uint64_t>(integer_at(at, 0));
}

WEFT_DECL double real_at(const json_at& at) {
  if (at.value.kind == json_kind::string) {
    if (at.value.text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (at.value.text == "Infinity") return std::numeric_limits<double>::infinity();
    if (at.value.text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  const json_value v = unquoted(at);
  return v.kind == json_kind::real ? v.real : v.kind == json_kind::natural ? static_cast<double>(v.natural) : static_cast<double>(v.integer);
}

WEFT_DECL float float_at(const json_at& at) {
  const double v = real_at(at);
  // Halfway beyond the largest float; what lies below rounds to it.
  if (std::isfinite(v) && std::abs(v) >= 0x1.ffffffp127) bad_json(at, "the number is too large for a float");
  return static_cast<float>(v);
}

WEFT_DECL std::string bytes_at(const json_at& at) {
  std::string_view text = string_at(at);
  if (text.size() % 4 == 0)
    for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    std::uint32_t digit = 64;
    if (c >= 'A' && c <= 'Z') digit = static_cast<std::uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z') digit = static_cast<std::uint32_t>(c - 'a') + 26;
    else if (c >= '0' && c <= '9') digit = static_cast<std::uint32_t>(c - '0') + 52;
    else if (c == '+' || c == '-') digit = 62;
    else if (c == '/' || c == '_') digit = 63;
    if (digit == 64) bad_json(at, "not base64");
    bits = bits << 6 | digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xffU);
    }
  }
  if (count == 6) bad_json(at, "not base64");
  return out;
}

}  // namespace weft::detail
#endif

#endif
