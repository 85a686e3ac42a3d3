#ifndef WEFT_GRAPH_OP_DEF_HPP
#define WEFT_GRAPH_OP_DEF_HPP
// The definition of an op: its inputs, outputs, attributes and shape rule, written the way TensorFlow registers them.

#include <weft/core/config.hpp>
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

/// What an op_row says besides its text.
enum class op_flags : unsigned char { none = 0, stateful = 1, commutative = 2 };

/// One or several ops in a table: `{"Less LessEqual(x: T, y: T) -> z: bool", "T: {numbers}; …", rule}`. Inputs and outputs are separated by commas, attributes by semicolons, each as `op`
/// reads them; names before the parenthesis share everything else. Tables cost a program no compile time.
struct op_row {
  const char* signature;
  const char* attrs = "";
  shape_function shapes = nullptr;
  op_flags flags = op_flags::none;
};

/// Builds an op_def from TensorFlow's notation: `op("MatMul").input("a: T").attr("T: {float, double}").attr("transpose_a: bool = false")`.
class op {
 public:
  explicit op(std::string_view name) { def_.name = std::string(name); }
  /// `x: T`, `x: float`, `values: N * T`, `data: types` for a list of the dtypes in attribute `types`, `ref: Ref(T)`.
  op& input(std::string_view spec);
  op& output(std::string_view spec);
  /// `N: int >= 1`, `T: type`, `T: {numbers}` (sets of dtypes: floats, integers, numbers, complex), `T: {float, int32} = float`, `shape: shape`, `data_format: {"NHWC", "NCHW"} = "NHWC"`,
  /// `types: list(type) >= 1`.
  op& attr(std::string_view spec);
  op& stateful() { def_.stateful = true; return *this; }
  op& commutative() { def_.commutative = true; return *this; }
  op& shapes(shape_function f) { def_.shapes = f; return *this; }
  operator op_def() const { return def_; }

 private:
  op_def def_;
};

#if WEFT_HAS_BODIES
namespace detail {

/// Reads the notation of op definitions.
class op_reader {
 public:
  explicit op_reader(const std::string& op) : op_(op) {}
  arg_def arg(std::string_view spec) const;
  attr_def attr(std::string_view spec) const;
  static std::string_view trim(std::string_view s) noexcept {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  }
  static std::vector<std::string_view> split(std::string_view list, char separator = ',');

 private:
  void allow(attr_def& out, std::string_view item, std::string_view spec) const;
  attr_value default_of(const std::string& kind, std::string_view text, std::string_view spec) const;
  attr_value default_list(const std::string& kind, std::string_view text, std::string_view spec) const;
  std::int64_t integer(std::string_view item, std::string_view spec) const;
  float real(std::string_view item, std::string_view spec) const;
  dtype type(std::string_view item, std::string_view spec) const;
  std::string quoted(std::string_view item, std::string_view spec) const;
  [[noreturn]] void bad(std::string_view spec) const { fail(error_code::invalid_argument, "op '" + op_ + "': cannot read '" + std::string(spec) + "'"); }
  const std::string& op_;
};

WEFT_DECL std::vector<std::string_view> op_reader::split(std::string_view list, char separator) {
  std::vector<std::string_view> out;
  while (!trim(list).empty()) {
    const auto end = list.find(separator);
    out.push_back(trim(list.substr(0, end)));
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
  return out;
}

WEFT_DECL arg_def op_reader::arg(std::string_view spec) const {
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

WEFT_DECL std::int64_t op_reader::integer(std::string_view item, std::string_view spec) const {
  const std::string word(item);
  char* end = nullptr;
  const std::int64_t value = std::strtoll(word.c_str(), &end, 10);
  if (word.empty() || *end != '\0') bad(spec);
  return value;
}
WEFT_DECL float op_reader::real(std::string_view item, std::string_view spec) const {
  const std::string word(item);
  char* end = nullptr;
  const float value = std::strtof(word.c_str(), &end);
  if (word.empty() || *end != '\0') bad(spec);
  return value;
}
WEFT_DECL dtype op_reader::type(std::string_view item, std::string_view spec) const {
  const dtype value = parse_dtype(item);
  if (value == dtype::invalid) bad(spec);
  return value;
}
WEFT_DECL std::string op_reader::quoted(std::string_view item, std::string_view spec) const {
  if (item.size() < 2 || item.front() != item.back() || (item.front() != '\'' && item.front() != '"')) bad(spec);
  return std::string(item.substr(1, item.size() - 2));
}

WEFT_DECL attr_value op_reader::default_list(const std::string& kind, std::string_view text, std::string_view spec) const {
  const auto items = split(text.substr(1, text.size() - 2));
  std::vector<std::int64_t> integers;
  std::vector<float> reals;
  std::vector<dtype> types;
  std::vector<std::string> strings;
  for (const auto item : items) {
    if (kind == "list(int)") integers.push_back(integer(item, spec));
    else if (kind == "list(float)") reals.push_back(real(item, spec));
    else if (kind == "list(type)") types.push_back(type(item, spec));
    else if (kind == "list(string)") strings.push_back(quoted(item, spec));
    else bad(spec);
  }
  if (kind == "list(int)") return integers;
  if (kind == "list(float)") return reals;
  if (kind == "list(type)") return types;
  if (kind == "list(string)") return strings;
  if (kind == "list(shape)") return std::vector<partial_shape>();
  bad(spec);
}

WEFT_DECL attr_value op_reader::default_of(const std::string& kind, std::string_view text, std::string_view spec) const {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') return default_list(kind, text, spec);
  if (kind == "bool" && (text == "true" || text == "false")) return text == "true";
  if (kind == "int") return integer(text, spec);
  if (kind == "float") return real(text, spec);
  if (kind == "type") return type(text, spec);
  if (kind == "shape" && text == "{}") return partial_shape();
  if (kind == "string") return quoted(text, spec);
  bad(spec);
}

// A quoted string, a dtype, or a set of dtypes.
WEFT_DECL void op_reader::allow(attr_def& out, std::string_view item, std::string_view spec) const {
  static constexpr dtype numbers[] = {dtype::bfloat16, dtype::half, dtype::float32, dtype::float64, dtype::uint8, dtype::int8, dtype::uint16, dtype::int16, dtype::int32, dtype::uint32, dtype::uint64, dtype::int64};
  static constexpr dtype complex[] = {dtype::complex64, dtype::complex128};
  auto& types = out.allowed_types;
  if (item.front() == '"' || item.front() == '\'') out.allowed_strings.push_back(quoted(item, spec));
  else if (item == "floats") types.insert(types.end(), numbers, numbers + 4);
  else if (item == "integers") types.insert(types.end(), numbers + 4, std::end(numbers));
  else if (item == "numbers") types.insert(types.end(), numbers, std::end(numbers));
  else if (item == "complex") types.insert(types.end(), complex, std::end(complex));
  else types.push_back(type(item, spec));
}

WEFT_DECL attr_def op_reader::attr(std::string_view spec) const {
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
    for (const auto item : split(kind.substr(1, kind.size() - 2))) allow(out, item, spec);
    kind = out.allowed_strings.empty() ? "type" : "string";
  }
  static constexpr std::string_view kinds[] = {"string", "int", "float", "bool", "type", "shape", "tensor", "func"};
  if (std::find(std::begin(kinds), std::end(kinds), kind) == std::end(kinds)) bad(spec);
  out.kind = is_list ? "list(" + std::string(kind) + ")" : std::string(kind);
  if (!default_text.empty()) out.default_value = default_of(out.kind, default_text, spec);
  return out;
}

}  // namespace detail

WEFT_DECL op& op::input(std::string_view spec) {
  def_.inputs.push_back(detail::op_reader(def_.name).arg(spec));
  return *this;
}
WEFT_DECL op& op::output(std::string_view spec) {
  def_.outputs.push_back(detail::op_reader(def_.name).arg(spec));
  return *this;
}
WEFT_DECL op& op::attr(std::string_view spec) {
  attr_def out = detail::op_reader(def_.name).attr(spec);
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
#endif

}  // namespace weft

#endif
