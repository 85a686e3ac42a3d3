#ifndef WEFT_GRAPH_ATTR_HPP
#define WEFT_GRAPH_ATTR_HPP
// Attributes of a node: TensorFlow's AttrValue as a C++ value.

#include <weft/core/config.hpp>
#include <weft/tensor/dtype.hpp>
#include <weft/tensor/shape.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

struct func_attr;

/// Stands for an attribute of the enclosing function.
struct placeholder_attr {
  std::string name;
  friend bool operator==(const placeholder_attr& a, const placeholder_attr& b) { return a.name == b.name; }
};

namespace detail {
// Kinds in the order of `attr_value::kind()`.
enum class attr_kind : std::uint8_t {
  none, string, integer, real, boolean, type, shape, tensor, func, placeholder, strings, integers, reals, booleans, types, shapes, tensors, funcs
};
template <class T> struct attr_kind_of;
template <> struct attr_kind_of<std::string> { static constexpr attr_kind value = attr_kind::string; };
template <> struct attr_kind_of<std::int64_t> { static constexpr attr_kind value = attr_kind::integer; };
template <> struct attr_kind_of<float> { static constexpr attr_kind value = attr_kind::real; };
template <> struct attr_kind_of<bool> { static constexpr attr_kind value = attr_kind::boolean; };
template <> struct attr_kind_of<dtype> { static constexpr attr_kind value = attr_kind::type; };
template <> struct attr_kind_of<partial_shape> { static constexpr attr_kind value = attr_kind::shape; };
template <> struct attr_kind_of<tensor_value> { static constexpr attr_kind value = attr_kind::tensor; };
template <> struct attr_kind_of<func_attr> { static constexpr attr_kind value = attr_kind::func; };
template <> struct attr_kind_of<placeholder_attr> { static constexpr attr_kind value = attr_kind::placeholder; };
template <> struct attr_kind_of<std::vector<std::string>> { static constexpr attr_kind value = attr_kind::strings; };
template <> struct attr_kind_of<std::vector<std::int64_t>> { static constexpr attr_kind value = attr_kind::integers; };
template <> struct attr_kind_of<std::vector<float>> { static constexpr attr_kind value = attr_kind::reals; };
template <> struct attr_kind_of<std::vector<bool>> { static constexpr attr_kind value = attr_kind::booleans; };
template <> struct attr_kind_of<std::vector<dtype>> { static constexpr attr_kind value = attr_kind::types; };
template <> struct attr_kind_of<std::vector<partial_shape>> { static constexpr attr_kind value = attr_kind::shapes; };
template <> struct attr_kind_of<std::vector<tensor_value>> { static constexpr attr_kind value = attr_kind::tensors; };
template <> struct attr_kind_of<std::vector<func_attr>> { static constexpr attr_kind value = attr_kind::funcs; };

// A shared value, whose type the attribute's kind says. (std::make_shared would cost every program thirty functions for each type.)
struct attr_box {
  void (*destroy)(attr_box*);
  std::atomic<std::uint32_t> holders{1};
};
template <class T> struct attr_box_of : attr_box {
  T value;
  explicit attr_box_of(T v) : attr_box{[](attr_box* box) { delete static_cast<attr_box_of*>(box); }}, value(std::move(v)) {}
};
class attr_ptr {
 public:
  attr_ptr() noexcept = default;
  explicit attr_ptr(attr_box* box) noexcept : box_(box) {}
  attr_ptr(const attr_ptr& other) noexcept : box_(other.box_) {
    if (box_ != nullptr) box_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  attr_ptr(attr_ptr&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  attr_ptr& operator=(attr_ptr other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~attr_ptr() {
    if (box_ != nullptr && box_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) box_->destroy(box_);
  }
  const attr_box* get() const noexcept { return box_; }

 private:
  attr_box* box_ = nullptr;
};
}  // namespace detail

/// One attribute's value: a scalar, a list, a function or a placeholder. Immutable; copies share what is large. (A variant of so many
/// types would cost each program a second of compile time.)
class attr_value {
 public:
  attr_value() = default;
  attr_value(std::string v) : attr_value(share(std::move(v))) {}
  attr_value(const char* v) : attr_value(std::string(v)) {}
  attr_value(bool v) : kind_(detail::attr_kind::boolean) { small_.boolean = v; }
  attr_value(int v) : attr_value(static_cast<std::int64_t>(v)) {}
  attr_value(std::int64_t v) : kind_(detail::attr_kind::integer) { small_.integer = v; }
  attr_value(float v) : kind_(detail::attr_kind::real) { small_.real = v; }
  attr_value(dtype v) : kind_(detail::attr_kind::type) { small_.type = v; }
  attr_value(partial_shape v) : attr_value(share(std::move(v))) {}
  attr_value(tensor_value v) : attr_value(share(std::move(v))) {}
  attr_value(func_attr v);
  attr_value(placeholder_attr v) : attr_value(share(std::move(v))) {}
  template <class T> attr_value(std::vector<T> v) : attr_value(share(std::move(v))) {}

  /// The value as T, or nullptr when it is of another kind.
  template <class T> const T* get() const noexcept {
    if (kind_ != detail::attr_kind_of<T>::value) return nullptr;
    if constexpr (std::is_same_v<T, bool>) return &small_.boolean;
    else if constexpr (std::is_same_v<T, std::int64_t>) return &small_.integer;
    else if constexpr (std::is_same_v<T, float>) return &small_.real;
    else if constexpr (std::is_same_v<T, dtype>) return &small_.type;
    else return &static_cast<const detail::attr_box_of<T>*>(large_.get())->value;
  }
  bool empty() const noexcept { return kind_ == detail::attr_kind::none; }

  /// The kind as TensorFlow's op definitions write it: `string`, `int`, `float`, `bool`, `type`, `shape`, `tensor`, `func`, `list(int)`; the
  /// empty list has the kind of its element type.
  const char* kind() const noexcept {
    constexpr const char* kinds[] = {"none", "string", "int", "float", "bool", "type", "shape", "tensor", "func", "placeholder",
                                     "list(string)", "list(int)", "list(float)", "list(bool)", "list(type)", "list(shape)", "list(tensor)", "list(func)"};
    return kinds[static_cast<std::size_t>(kind_)];
  }
  /// The kind as a number, from 0 for an empty attribute.
  detail::attr_kind number() const noexcept { return kind_; }
  /// Calls `f` with the value in its own type; not for an empty attribute. All results must have one type.
  template <class F> auto visit(F&& f) const {
    using detail::attr_kind;
    switch (kind_) {
      case attr_kind::integer: return f(*get<std::int64_t>());
      case attr_kind::real: return f(*get<float>());
      case attr_kind::boolean: return f(*get<bool>());
      case attr_kind::type: return f(*get<dtype>());
      case attr_kind::shape: return f(*get<partial_shape>());
      case attr_kind::tensor: return f(*get<tensor_value>());
      case attr_kind::func: return f(*get<func_attr>());
      case attr_kind::placeholder: return f(*get<placeholder_attr>());
      case attr_kind::strings: return f(*get<std::vector<std::string>>());
      case attr_kind::integers: return f(*get<std::vector<std::int64_t>>());
      case attr_kind::reals: return f(*get<std::vector<float>>());
      case attr_kind::booleans: return f(*get<std::vector<bool>>());
      case attr_kind::types: return f(*get<std::vector<dtype>>());
      case attr_kind::shapes: return f(*get<std::vector<partial_shape>>());
      case attr_kind::tensors: return f(*get<std::vector<tensor_value>>());
      case attr_kind::funcs: return f(*get<std::vector<func_attr>>());
      default: return f(*get<std::string>());
    }
  }

  friend bool operator==(const attr_value& a, const attr_value& b);
  friend bool operator!=(const attr_value& a, const attr_value& b) { return !(a == b); }

 private:
  struct shared {
    detail::attr_kind kind;
    detail::attr_box* box;
  };
  template <class T> static shared share(T v) { return {detail::attr_kind_of<T>::value, new detail::attr_box_of<T>(std::move(v))}; }
  attr_value(shared s) : kind_(s.kind), large_(s.box) {}

  detail::attr_kind kind_ = detail::attr_kind::none;
  union {
    std::int64_t integer;
    float real;
    bool boolean;
    dtype type;
  } small_ = {0};
  detail::attr_ptr large_;
};

/// Attributes by name, in the order of their names: a map in one piece of memory, for there are few. What is added moves the others.
class attr_map {
 public:
  using value_type = std::pair<std::string, attr_value>;
  using iterator = std::vector<value_type>::iterator;
  using const_iterator = std::vector<value_type>::const_iterator;

  attr_map() noexcept = default;
  /// Of several with one name the first counts.
  attr_map(std::initializer_list<value_type> attrs);

  iterator begin() noexcept { return list_.begin(); }
  iterator end() noexcept { return list_.end(); }
  const_iterator begin() const noexcept { return list_.begin(); }
  const_iterator end() const noexcept { return list_.end(); }
  std::size_t size() const noexcept { return list_.size(); }
  bool empty() const noexcept { return list_.empty(); }
  /// Makes room for as many.
  void reserve(std::size_t count);
  iterator find(std::string_view name) noexcept { return begin() + (static_cast<const attr_map*>(this)->find(name) - list_.cbegin()); }
  const_iterator find(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept { return find(name) == end() ? 0 : 1; }
  /// Adds an attribute unless there is one of this name.
  std::pair<iterator, bool> emplace(std::string_view name, attr_value value);
  /// The attribute of this name, empty at first.
  attr_value& operator[](std::string_view name);
  /// Throws std::out_of_range when there is none of this name.
  const attr_value& at(std::string_view name) const;
  std::size_t erase(std::string_view name);

  friend bool operator==(const attr_map& a, const attr_map& b);
  friend bool operator!=(const attr_map& a, const attr_map& b) { return !(a == b); }

 private:
  std::vector<value_type> list_;
};

/// A function's name with values for its attributes.
struct func_attr {
  std::string name;
  attr_map attrs;
  friend bool operator==(const func_attr& a, const func_attr& b);
};

inline attr_value::attr_value(func_attr v) : attr_value(share(std::move(v))) {}

namespace detail {
std::string attr_quoted(std::string_view text);
std::string number_text(float v);
inline std::string text_of(const std::string& v) { return attr_quoted(v); }
inline std::string text_of(std::int64_t v) { return std::to_string(v); }
inline std::string text_of(float v) { return number_text(v); }
inline std::string text_of(bool v) { return v ? "true" : "false"; }
inline std::string text_of(dtype v) { return to_text(v); }
inline std::string text_of(const partial_shape& v) { return v.text(); }
inline std::string text_of(const tensor_value& v) { return std::string(to_text(v.dtype())) + v.shape().text(); }
inline std::string text_of(const func_attr& v) { return v.name; }
inline std::string text_of(const placeholder_attr& v) { return "$" + v.name; }
template <class T> std::string text_of(const std::vector<T>& list) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + text_of(static_cast<T>(list[i]));
  return out + "]";
}
}  // namespace detail

inline attr_map::const_iterator attr_map::find(std::string_view name) const noexcept {
  auto it = list_.begin();
  while (it != list_.end() && it->first != name) ++it;
  return it;
}

/// One line for people: `true`, `float`, `[2,?]`, `"text"`, `float[2,3]` for a tensor.
std::string to_text(const attr_value& v);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL std::string attr_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
    else { out += "\\x"; out += "0123456789abcdef"[(c >> 4) & 15]; out += "0123456789abcdef"[c & 15]; }
  }
  return out + "\"";
}

WEFT_DECL std::string number_text(float v) {
  char text[32];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(v));
    if (std::strtof(text, nullptr) == v) break;
  }
  return text;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_text(const attr_value& v) {
  if (v.empty()) return "none";
  return v.visit([](const auto& x) { return detail::text_of(x); });
}

WEFT_DECL attr_map::attr_map(std::initializer_list<value_type> attrs) {
  list_.reserve(attrs.size());
  for (const value_type& each : attrs) emplace(each.first, each.second);
}

WEFT_DECL void attr_map::reserve(std::size_t count) { list_.reserve(count); }

WEFT_DECL std::pair<attr_map::iterator, bool> attr_map::emplace(std::string_view name, attr_value value) {
  auto it = list_.end();
  while (it != list_.begin() && name <= std::prev(it)->first) --it;
  if (it != list_.end() && it->first == name) return {it, false};
  return {list_.emplace(it, std::string(name), std::move(value)), true};
}

WEFT_DECL attr_value& attr_map::operator[](std::string_view name) { return emplace(name, attr_value()).first->second; }

WEFT_DECL const attr_value& attr_map::at(std::string_view name) const {
  const auto it = find(name);
  if (it == end()) throw std::out_of_range("there is no attribute '" + std::string(name) + "'");
  return it->second;
}

WEFT_DECL std::size_t attr_map::erase(std::string_view name) {
  const auto it = find(name);
  if (it == end()) return 0;
  list_.erase(it);
  return 1;
}

WEFT_DECL bool operator==(const attr_map& a, const attr_map& b) { return a.list_ == b.list_; }

WEFT_DECL bool operator==(const func_attr& a, const func_attr& b) { return a.name == b.name && a.attrs == b.attrs; }

WEFT_DECL bool operator==(const attr_value& a, const attr_value& b) {
  if (a.kind_ != b.kind_) return false;
  if (a.empty()) return true;
  return a.visit([&b](const auto& v) { return v == *b.get<std::decay_t<decltype(v)>>(); });
}

}  // namespace weft
#endif

#endif
