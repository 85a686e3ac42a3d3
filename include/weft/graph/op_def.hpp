#ifndef WEFT_GRAPH_OP_DEF_HPP
#define WEFT_GRAPH_OP_DEF_HPP
// The definition of an op: its inputs, outputs, attributes and shape rule, written the way TensorFlow registers them.

#include <weft/graph/attr.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class shape_context;
/// Finds the shapes of a node's outputs; throws through `shape_context::fail` when the inputs do not fit.
using shape_function = void (*)(shape_context&);

/// One input or output: a single tensor, `number_attr` tensors of one dtype, or a list with the dtypes of `type_list_attr`.
struct arg_def {
  std::string name;
  /// The dtype when it is fixed; `invalid` when an attribute says it.
  dtype type = dtype::invalid;
  std::string type_attr, number_attr, type_list_attr;
  /// A reference (TensorFlow's old variables); such graphs are loaded and printed, not run.
  bool is_ref = false;
};

/// One attribute: kind (`type`, `int`, `list(shape)`, …), default, and what it may be.
struct attr_def {
  std::string name, kind;
  std::optional<attr_value> default_value;
  std::vector<dtype> allowed_types;
  std::vector<std::string> allowed_strings;
  std::optional<std::int64_t> minimum;
};

/// An op: what a node of it takes, gives and may say.
struct op_def {
  std::string name;
  std::vector<arg_def> inputs, outputs;
  std::vector<attr_def> attrs;
  /// Has state or side effects: never merged, folded or moved.
  bool stateful = false;
  bool commutative = false;
  shape_function shapes = nullptr;

  const attr_def* find_attr(std::string_view attr) const noexcept {
    for (const auto& a : attrs)
      if (a.name == attr) return &a;
    return nullptr;
  }
};

/// Builds an op_def from TensorFlow's notation: `op("MatMul").input("a: T").attr("T: {float, double}").attr("transpose_a: bool = false")`.
class op {
 public:
  explicit op(std::string_view name) { def_.name = std::string(name); }
  op& input(std::string_view spec) { def_.inputs.push_back(parse_arg(spec)); return *this; }
  op& output(std::string_view spec) { def_.outputs.push_back(parse_arg(spec)); return *this; }
  /// `N: int >= 1`, `T: type`, `T: {float, int32} = float`, `shape: shape`, `data_format: {"NHWC", "NCHW"} = "NHWC"`, `types: list(type) >= 1`.
  op& attr(std::string_view spec);
  op& stateful() { def_.stateful = true; return *this; }
  op& commutative() { def_.commutative = true; return *this; }
  op& shapes(shape_function f) { def_.shapes = f; return *this; }
  operator op_def() const { return def_; }

 private:
  arg_def parse_arg(std::string_view spec) const;
  static std::string_view trim(std::string_view s) noexcept {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  }
  static std::vector<std::string_view> split(std::string_view list) {
    std::vector<std::string_view> out;
    while (!trim(list).empty()) {
      const auto comma = list.find(',');
      out.push_back(trim(list.substr(0, comma)));
      list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    }
    return out;
  }
  attr_value parse_default(const std::string& kind, std::string_view text, std::string_view spec) const;
  template <class T, class Parse> attr_value parse_list(std::string_view text, Parse parse) const;
  [[noreturn]] void bad(std::string_view spec) const {
    fail(error_code::invalid_argument, "op '" + def_.name + "': cannot read '" + std::string(spec) + "'");
  }
  op_def def_;
};

inline arg_def op::parse_arg(std::string_view spec) const {
  const auto colon = spec.find(':');
  if (colon == std::string_view::npos) bad(spec);
  arg_def out;
  out.name = std::string(trim(spec.substr(0, colon)));
  std::string_view type = trim(spec.substr(colon + 1));
  if (type.substr(0, 4) == "Ref(" && type.back() == ')') {
    out.is_ref = true;
    type = type.substr(4, type.size() - 5);
  }
  if (const auto star = type.find('*'); star != std::string_view::npos) {
    out.number_attr = std::string(trim(type.substr(0, star)));
    type = trim(type.substr(star + 1));
  }
  out.type = parse_dtype(type);
  if (out.type == dtype::invalid) out.type_attr = std::string(type);
  return out;
}

template <class T, class Parse> attr_value op::parse_list(std::string_view text, Parse parse) const {
  std::vector<T> out;
  for (const auto item : split(text.substr(1, text.size() - 2))) out.push_back(parse(item));
  return out;
}

inline attr_value op::parse_default(const std::string& kind, std::string_view text, std::string_view spec) const {
  const auto whole = [&](const char* end, const std::string& word) {
    if (word.empty() || *end != '\0') bad(spec);
  };
  const auto integer = [&](std::string_view item) {
    const std::string word(item);
    char* end = nullptr;
    const std::int64_t value = std::strtoll(word.c_str(), &end, 10);
    whole(end, word);
    return value;
  };
  const auto real = [&](std::string_view item) {
    const std::string word(item);
    char* end = nullptr;
    const float value = std::strtof(word.c_str(), &end);
    whole(end, word);
    return value;
  };
  const auto type = [&](std::string_view item) {
    const dtype value = parse_dtype(item);
    if (value == dtype::invalid) bad(spec);
    return value;
  };
  const auto quoted = [&](std::string_view item) {
    if (item.size() < 2 || item.front() != item.back() || (item.front() != '\'' && item.front() != '"')) bad(spec);
    return std::string(item.substr(1, item.size() - 2));
  };
  const bool listed = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (kind == "bool" && (text == "true" || text == "false")) return text == "true";
  if (kind == "int") return integer(text);
  if (kind == "float") return real(text);
  if (kind == "type") return type(text);
  if (kind == "shape" && text == "{}") return partial_shape();
  if (kind == "string") return quoted(text);
  if (kind == "list(int)" && listed) return parse_list<std::int64_t>(text, integer);
  if (kind == "list(float)" && listed) return parse_list<float>(text, real);
  if (kind == "list(type)" && listed) return parse_list<dtype>(text, type);
  if (kind == "list(string)" && listed) return parse_list<std::string>(text, quoted);
  if (kind == "list(shape)" && text == "[]") return std::vector<partial_shape>();
  bad(spec);
}

inline op& op::attr(std::string_view spec) {
  attr_def out;
  const auto colon = spec.find(':');
  if (colon == std::string_view::npos) bad(spec);
  out.name = std::string(trim(spec.substr(0, colon)));
  std::string_view rest = trim(spec.substr(colon + 1)), default_text;
  const bool is_list = rest.substr(0, 5) == "list(";
  const bool is_set = rest.find('{') < rest.find('=');
  const auto equals = rest.find('=', is_set ? rest.find('}') : 0);
  if (const auto least = rest.find(">="); least != std::string_view::npos) {
    out.minimum = std::strtoll(std::string(rest.substr(least + 2)).c_str(), nullptr, 10);
    const auto second = rest.find('=', least + 2);
    if (second != std::string_view::npos) default_text = trim(rest.substr(second + 1));
    rest = trim(rest.substr(0, least));
  } else if (equals != std::string_view::npos) {
    default_text = trim(rest.substr(equals + 1));
    rest = trim(rest.substr(0, equals));
  }
  std::string_view kind = is_list ? rest.substr(5, rest.size() - 6) : rest;
  if (!kind.empty() && kind.front() == '{') {
    for (const auto item : split(kind.substr(1, kind.size() - 2))) {
      if (item.front() == '"' || item.front() == '\'') out.allowed_strings.emplace_back(item.substr(1, item.size() - 2));
      else if (const dtype type = parse_dtype(item); type != dtype::invalid) out.allowed_types.push_back(type);
      else bad(spec);
    }
    kind = out.allowed_strings.empty() ? "type" : "string";
  }
  static constexpr std::string_view kinds[] = {"string", "int", "float", "bool", "type", "shape", "tensor", "func"};
  if (std::find(std::begin(kinds), std::end(kinds), kind) == std::end(kinds)) bad(spec);
  out.kind = is_list ? "list(" + std::string(kind) + ")" : std::string(kind);
  if (!default_text.empty()) out.default_value = parse_default(out.kind, default_text, spec);
  // An argument named after a list(type) attribute is a list of tensors.
  if (out.kind == "list(type)")
    for (auto* args : {&def_.inputs, &def_.outputs})
      for (auto& arg : *args)
        if (arg.type_attr == out.name) {
          arg.type_list_attr = out.name;
          arg.type_attr.clear();
        }
  def_.attrs.push_back(std::move(out));
  return *this;
}

}  // namespace weft

#endif
