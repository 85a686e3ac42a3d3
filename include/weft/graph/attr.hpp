#ifndef WEFT_GRAPH_ATTR_HPP
#define WEFT_GRAPH_ATTR_HPP
// Attributes of a node: TensorFlow's AttrValue as a C++ value.

#include <weft/core/config.hpp>
#include <weft/graph/word.hpp>
#include <weft/tensor/dtype.hpp>
#include <weft/tensor/shape.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
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
}  // namespace detail

/// One attribute's value: a scalar, a list, a function or a placeholder. Immutable; copies share what is large. (A variant of so many
/// types would cost each program a second of compile time.)
class attr_value {
 public:
  attr_value() noexcept = default;
  attr_value(const attr_value& other) noexcept : kind_(other.kind_), held_(other.held_) {
    if (boxed()) held_.box->holders.fetch_add(1, std::memory_order_relaxed);
  }
  attr_value(attr_value&& other) noexcept : kind_(std::exchange(other.kind_, detail::attr_kind::none)), held_(other.held_) {}
  attr_value& operator=(attr_value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~attr_value() {
    if (boxed() && held_.box->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) held_.box->destroy(held_.box);
  }
  attr_value(std::string v) : attr_value(share(std::move(v))) {}
  attr_value(const char* v) : attr_value(std::string(v)) {}
  attr_value(bool v) : kind_(detail::attr_kind::boolean) { held_.boolean = v; }
  attr_value(int v) : attr_value(static_cast<std::int64_t>(v)) {}
  attr_value(std::int64_t v) : kind_(detail::attr_kind::integer) { held_.integer = v; }
  attr_value(float v) : kind_(detail::attr_kind::real) { held_.real = v; }
  attr_value(dtype v) : kind_(detail::attr_kind::type) { held_.type = v; }
  attr_value(partial_shape v) : attr_value(share(std::move(v))) {}
  attr_value(tensor_value v) : attr_value(share(std::move(v))) {}
  attr_value(func_attr v);
  attr_value(placeholder_attr v) : attr_value(share(std::move(v))) {}
  template <class T> attr_value(std::vector<T> v) : attr_value(share(std::move(v))) {}

  /// The value as T, or nullptr when it is of another kind.
  template <class T> const T* get() const noexcept {
    if (kind_ != detail::attr_kind_of<T>::value) return nullptr;
    if constexpr (std::is_same_v<T, bool>) return &held_.boolean;
    else if constexpr (std::is_same_v<T, std::int64_t>) return &held_.integer;
    else if constexpr (std::is_same_v<T, float>) return &held_.real;
    else if constexpr (std::is_same_v<T, dtype>) return &held_.type;
    else return &static_cast<const detail::attr_box_of<T>*>(held_.box)->value;
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
  attr_value(shared s) noexcept : kind_(s.kind) { held_.box = s.box; }
  // Whether the value is too large to stand here.
  bool boxed() const noexcept {
    using detail::attr_kind;
    return kind_ == attr_kind::string || kind_ >= attr_kind::shape;
  }

  detail::attr_kind kind_ = detail::attr_kind::none;
  union {
    std::int64_t integer;
    float real;
    bool boolean;
    dtype type;
    detail::attr_box* box;
  } held_ = {0};
};

/// An attribute: its name and its value.
struct attr_entry {
  attr_entry(std::string_view name, attr_value value) : first(detail::take_word(name)), second(std::move(value)) {}
  attr_entry(const attr_entry& other) noexcept : first(detail::hold(other.name())), second(other.second) {}
  attr_entry(attr_entry&& other) noexcept : first(detail::hold(other.name())), second(std::move(other.second)) {}
  attr_entry& operator=(const attr_entry&) = delete;
  ~attr_entry() { detail::let_go(name()); }

  const std::string& first;
  attr_value second;

 private:
  const detail::word_text& name() const noexcept { return static_cast<const detail::word_text&>(first); }
};

/// Attributes by name, in the order of their names: a map in one piece of memory, for there are few. Copies share it until one of them changes. What changes a map ends its iterators.
class attr_map {
 public:
  using value_type = attr_entry;
  class const_iterator;
  using iterator = const_iterator;

  attr_map() noexcept = default;
  /// Of several with one name the first counts.
  attr_map(std::initializer_list<std::pair<std::string_view, attr_value>> attrs);
  attr_map(const attr_map& other) noexcept : own_(hold(other.own_)), base_(hold(other.base_)) {}
  attr_map(attr_map&& other) noexcept : own_(std::exchange(other.own_, nullptr)), base_(std::exchange(other.base_, nullptr)) {}
  attr_map& operator=(attr_map other) noexcept {
    std::swap(own_, other.own_);
    std::swap(base_, other.base_);
    return *this;
  }
  ~attr_map() { clear(); }
  /// The attributes of both, whose memory it shares: for many maps that have most of theirs in common. Of two with one name that of `own` counts.
  static attr_map joined(const attr_map& own, const attr_map& base);

  const_iterator begin() const noexcept;
  const_iterator end() const noexcept;
  std::size_t size() const noexcept { return count_of(own_) + count_of(base_); }
  bool empty() const noexcept { return size() == 0; }
  /// Makes room for as many.
  void reserve(std::size_t count) { make_own(count); }
  const_iterator find(std::string_view name) const noexcept;
  /// The attribute of this name, or nullptr.
  const attr_value* get(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept { return get(name) == nullptr ? 0 : 1; }
  /// Adds an attribute unless there is one of this name. Which there is then, and whether it was added.
  std::pair<const_iterator, bool> emplace(std::string_view name, attr_value value);
  /// The attribute of this name, empty at first.
  attr_value& operator[](std::string_view name);
  /// Throws std::out_of_range when there is none of this name.
  const attr_value& at(std::string_view name) const;
  std::size_t erase(std::string_view name);
  void clear() noexcept;

  friend bool operator==(const attr_map& a, const attr_map& b);
  friend bool operator!=(const attr_map& a, const attr_map& b) { return !(a == b); }

 private:
  // Entries, behind how many maps hold them, how many there are and how many have room.
  struct alignas(attr_entry) block {
    std::atomic<std::uint32_t> holders{1};
    std::uint32_t count = 0, room = 0;
    attr_entry* begin() noexcept { return reinterpret_cast<attr_entry*>(this + 1); }
    attr_entry* end() noexcept { return begin() + count; }
  };
  static block* hold(block* of) noexcept {
    if (of != nullptr) of->holders.fetch_add(1, std::memory_order_relaxed);
    return of;
  }
  static void let_go(block* of) noexcept;
  static std::size_t count_of(const block* of) noexcept { return of == nullptr ? 0 : of->count; }
  static attr_entry* find_in(block* of, std::string_view name) noexcept;
  void make_own(std::size_t room);
  bool add(std::string_view name, attr_value value);

  block* own_ = nullptr;
  // Shared with others from the start, and with no name of `own_`.
  block* base_ = nullptr;
};

/// Goes through both pieces of a map as one.
class attr_map::const_iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = attr_entry;
  using difference_type = std::ptrdiff_t;
  using pointer = const attr_entry*;
  using reference = const attr_entry&;

  const_iterator() noexcept = default;
  reference operator*() const noexcept { return *(own_is_next() ? own_ : base_); }
  pointer operator->() const noexcept { return &**this; }
  const_iterator& operator++() noexcept {
    ++(own_is_next() ? own_ : base_);
    return *this;
  }
  const_iterator operator++(int) noexcept {
    const_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const const_iterator& a, const const_iterator& b) noexcept { return a.own_ == b.own_ && a.base_ == b.base_; }
  friend bool operator!=(const const_iterator& a, const const_iterator& b) noexcept { return !(a == b); }

 private:
  friend class attr_map;
  bool own_is_next() const noexcept { return base_ == base_end_ || (own_ != own_end_ && own_->first < base_->first); }
  const attr_entry *own_ = nullptr, *own_end_ = nullptr, *base_ = nullptr, *base_end_ = nullptr;
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

inline attr_map::const_iterator attr_map::begin() const noexcept {
  const_iterator out;
  if (own_ != nullptr) out.own_ = own_->begin(), out.own_end_ = own_->end();
  if (base_ != nullptr) out.base_ = base_->begin(), out.base_end_ = base_->end();
  return out;
}

inline attr_map::const_iterator attr_map::end() const noexcept {
  const_iterator out = begin();
  out.own_ = out.own_end_;
  out.base_ = out.base_end_;
  return out;
}

inline attr_map::const_iterator attr_map::find(std::string_view name) const noexcept {
  const const_iterator last = end();
  const_iterator it = begin();
  while (it != last && it->first != name) ++it;
  return it;
}

inline std::pair<attr_map::const_iterator, bool> attr_map::emplace(std::string_view name, attr_value value) {
  const bool added = add(name, std::move(value));
  return {find(name), added};
}

inline attr_entry* attr_map::find_in(block* of, std::string_view name) noexcept {
  if (of == nullptr) return nullptr;
  for (attr_entry& each : *of)
    if (each.first == name) return &each;
  return nullptr;
}

inline const attr_value* attr_map::get(std::string_view name) const noexcept {
  const attr_entry* found = find_in(own_, name);
  if (found == nullptr) found = find_in(base_, name);
  return found == nullptr ? nullptr : &found->second;
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

WEFT_DECL attr_map::attr_map(std::initializer_list<std::pair<std::string_view, attr_value>> attrs) {
  reserve(attrs.size());
  for (const auto& each : attrs) add(each.first, each.second);
}

WEFT_DECL attr_map attr_map::joined(const attr_map& own, const attr_map& base) {
  attr_map out(own);
  const bool can_share = own.base_ == nullptr && base.base_ == nullptr && std::none_of(base.begin(), base.end(), [&](const attr_entry& each) { return own.count(each.first) != 0; });
  if (can_share) out.base_ = hold(base.own_);
  else for (const attr_entry& each : base) out.add(each.first, each.second);
  return out;
}

WEFT_DECL void attr_map::let_go(block* of) noexcept {
  if (of == nullptr || of->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (attr_entry& each : *of) each.~attr_entry();
  of->~block();
  ::operator delete(static_cast<void*>(of));
}

WEFT_DECL void attr_map::clear() noexcept {
  let_go(std::exchange(own_, nullptr));
  let_go(std::exchange(base_, nullptr));
}

// Before a change: all attributes in one piece of memory that no other map holds, with room for as many.
WEFT_DECL void attr_map::make_own(std::size_t room) {
  if (base_ == nullptr && (own_ == nullptr ? room == 0 : own_->room >= room && own_->holders.load(std::memory_order_acquire) == 1)) return;
  room = std::max(room, size());
  block* const fresh = new (::operator new(sizeof(block) + room * sizeof(attr_entry))) block;
  fresh->room = static_cast<std::uint32_t>(room);
  for (const attr_entry& each : *this) new (fresh->begin() + fresh->count++) attr_entry(each);
  clear();
  own_ = fresh;
}

WEFT_DECL bool attr_map::add(std::string_view name, attr_value value) {
  if (get(name) != nullptr) return false;
  const std::size_t count = size();
  attr_entry added(name, std::move(value));
  make_own(own_ != nullptr && own_->room > count ? count + 1 : count + 1 + count / 2);
  attr_entry* place = own_->end();
  for (; place != own_->begin() && name < place[-1].first; --place) {
    new (place) attr_entry(std::move(place[-1]));
    place[-1].~attr_entry();
  }
  new (place) attr_entry(std::move(added));
  ++own_->count;
  return true;
}

WEFT_DECL attr_value& attr_map::operator[](std::string_view name) {
  if (!add(name, attr_value())) make_own(size());
  return find_in(own_, name)->second;
}

WEFT_DECL const attr_value& attr_map::at(std::string_view name) const {
  const attr_value* found = get(name);
  if (found == nullptr) throw std::out_of_range("there is no attribute '" + std::string(name) + "'");
  return *found;
}

WEFT_DECL std::size_t attr_map::erase(std::string_view name) {
  if (get(name) == nullptr) return 0;
  make_own(size());
  attr_entry* const place = find_in(own_, name);
  place->~attr_entry();
  for (attr_entry* next = place + 1; next != own_->end(); ++next) {
    new (next - 1) attr_entry(std::move(*next));
    next->~attr_entry();
  }
  --own_->count;
  return 1;
}

WEFT_DECL bool operator==(const attr_map& a, const attr_map& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const attr_entry& one, const attr_entry& other) { return one.first == other.first && one.second == other.second; });
}

WEFT_DECL bool operator==(const func_attr& a, const func_attr& b) { return a.name == b.name && a.attrs == b.attrs; }

WEFT_DECL bool operator==(const attr_value& a, const attr_value& b) {
  if (a.kind_ != b.kind_) return false;
  if (a.empty()) return true;
  return a.visit([&b](const auto& v) { return v == *b.get<std::decay_t<decltype(v)>>(); });
}

}  // namespace weft
#endif

#endif
