#ifndef WEFT_GRAPH_ATTR_HPP
#define WEFT_GRAPH_ATTR_HPP
// Attributes of a node: TensorFlow's AttrValue as a C++ value.

#include <weft/tensor/dtype.hpp>
#include <weft/tensor/shape.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

class attr_value;
/// Attributes by name, in the order of their names.
using attr_map = std::map<std::string, attr_value, std::less<>>;

/// A function's name with values for its attributes.
struct func_attr {
  std::string name;
  attr_map attrs;
  friend bool operator==(const func_attr& a, const func_attr& b);
};

/// Stands for an attribute of the enclosing function.
struct placeholder_attr {
  std::string name;
  friend bool operator==(const placeholder_attr& a, const placeholder_attr& b) { return a.name == b.name; }
};

/// One attribute's value: a scalar, a list, a function or a placeholder.
class attr_value {
 public:
  using storage = std::variant<std::monostate, std::string, std::int64_t, float, bool, dtype, partial_shape, tensor_value, std::shared_ptr<const func_attr>,
                               placeholder_attr, std::vector<std::string>, std::vector<std::int64_t>, std::vector<float>, std::vector<bool>,
                               std::vector<dtype>, std::vector<partial_shape>, std::vector<tensor_value>, std::vector<func_attr>>;

  attr_value() = default;
  attr_value(std::string v) : value_(std::move(v)) {}
  attr_value(const char* v) : value_(std::string(v)) {}
  attr_value(bool v) : value_(v) {}
  attr_value(int v) : value_(static_cast<std::int64_t>(v)) {}
  attr_value(std::int64_t v) : value_(v) {}
  attr_value(float v) : value_(v) {}
  attr_value(dtype v) : value_(v) {}
  attr_value(partial_shape v) : value_(std::move(v)) {}
  attr_value(tensor_value v) : value_(std::move(v)) {}
  attr_value(func_attr v) : value_(std::make_shared<const func_attr>(std::move(v))) {}
  attr_value(placeholder_attr v) : value_(std::move(v)) {}
  template <class T> attr_value(std::vector<T> v) : value_(std::move(v)) {}

  /// The value as T, or nullptr when it is of another kind.
  template <class T> const T* get() const noexcept { return std::get_if<T>(&value_); }
  const storage& value() const noexcept { return value_; }
  bool empty() const noexcept { return value_.index() == 0; }

  /// The kind as TensorFlow's op definitions write it: `string`, `int`, `float`, `bool`, `type`, `shape`, `tensor`, `func`, `list(int)`; the
  /// empty list has the kind of its element type.
  const char* kind() const noexcept {
    constexpr const char* kinds[] = {"none", "string", "int", "float", "bool", "type", "shape", "tensor", "func", "placeholder",
                                     "list(string)", "list(int)", "list(float)", "list(bool)", "list(type)", "list(shape)", "list(tensor)", "list(func)"};
    return kinds[value_.index()];
  }

  friend bool operator==(const attr_value& a, const attr_value& b) {
    if (a.value_.index() != b.value_.index()) return false;
    if (const auto* f = a.get<std::shared_ptr<const func_attr>>()) return **f == **b.get<std::shared_ptr<const func_attr>>();
    return a.value_ == b.value_;
  }
  friend bool operator!=(const attr_value& a, const attr_value& b) { return !(a == b); }

 private:
  storage value_;
};

inline bool operator==(const func_attr& a, const func_attr& b) { return a.name == b.name && a.attrs == b.attrs; }

namespace detail {
inline std::string attr_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
    else { out += "\\x"; out += "0123456789abcdef"[(c >> 4) & 15]; out += "0123456789abcdef"[c & 15]; }
  }
  return out + "\"";
}
inline std::string number_text(float v) {
  char text[32];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(v));
    if (std::strtof(text, nullptr) == v) break;
  }
  return text;
}
inline std::string text_of(const std::string& v) { return attr_quoted(v); }
inline std::string text_of(std::int64_t v) { return std::to_string(v); }
inline std::string text_of(float v) { return number_text(v); }
inline std::string text_of(bool v) { return v ? "true" : "false"; }
inline std::string text_of(dtype v) { return to_text(v); }
inline std::string text_of(const partial_shape& v) { return v.text(); }
inline std::string text_of(const tensor_value& v) { return std::string(to_text(v.dtype())) + v.shape().text(); }
inline std::string text_of(const func_attr& v) { return v.name; }
inline std::string text_of(const std::shared_ptr<const func_attr>& v) { return v->name; }
inline std::string text_of(const placeholder_attr& v) { return "$" + v.name; }
inline std::string text_of(std::monostate) { return "none"; }
template <class T> std::string text_of(const std::vector<T>& list) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + text_of(static_cast<T>(list[i]));
  return out + "]";
}
}  // namespace detail

/// One line for people: `true`, `float`, `[2,?]`, `"text"`, `float[2,3]` for a tensor.
inline std::string to_text(const attr_value& v) {
  return std::visit([](const auto& x) { return detail::text_of(x); }, v.value());
}

}  // namespace weft

#endif
