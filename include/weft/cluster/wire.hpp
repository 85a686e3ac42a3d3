#ifndef WEFT_CLUSTER_WIRE_HPP
#define WEFT_CLUSTER_WIRE_HPP
// The control part of a message: little-endian numbers and counted strings, written without and read with checks.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
inline constexpr bool is_little_endian = true;
#else
inline constexpr bool is_little_endian = false;
#endif

// The bytes of a number, least significant first.
template <class T> void store_little_endian(T value, char* to) noexcept {
  static_assert(std::is_unsigned_v<T>, "signed numbers are stored as unsigned ones of their width");
  if constexpr (is_little_endian) std::memcpy(to, &value, sizeof value);
  else
    for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
}

template <class T> T load_little_endian(const char* from) noexcept {
  static_assert(std::is_unsigned_v<T>, "signed numbers are stored as unsigned ones of their width");
  T value = 0;
  if constexpr (is_little_endian) std::memcpy(&value, from, sizeof value);
  else
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(from[i])) << (8 * i)));
  return value;
}

}  // namespace detail

/// Appends little-endian numbers and counted strings to a string of bytes.
class wire_writer {
 public:
  wire_writer() = default;
  /// Continues behind the bytes that `start` already holds.
  explicit wire_writer(std::string start) : bytes_(std::move(start)) {}

  wire_writer& u8(std::uint8_t value) { return number(value); }
  wire_writer& u16(std::uint16_t value) { return number(value); }
  wire_writer& u32(std::uint32_t value) { return number(value); }
  wire_writer& u64(std::uint64_t value) { return number(value); }
  wire_writer& i32(std::int32_t value) { return number(static_cast<std::uint32_t>(value)); }
  wire_writer& i64(std::int64_t value) { return number(static_cast<std::uint64_t>(value)); }
  /// The bits of a double, NaN and -0 included.
  wire_writer& f64(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return number(bits);
  }
  wire_writer& boolean(bool value) { return number(static_cast<std::uint8_t>(value ? 1 : 0)); }
  /// An enumerator, as its number in 8 bits.
  template <class E, class = std::enable_if_t<std::is_enum_v<E>>> wire_writer& enumerator(E value) {
    return number(static_cast<std::uint8_t>(value));
  }
  /// How many elements follow, in 32 bits. Throws INVALID_ARGUMENT for more than fit.
  wire_writer& count(std::size_t elements) {
    if (elements > UINT32_MAX) fail(error_code::invalid_argument, "a message cannot hold a list of " + std::to_string(elements) + " elements");
    return number(static_cast<std::uint32_t>(elements));
  }
  /// The length in 32 bits, and the bytes.
  wire_writer& string(std::string_view text) {
    count(text.size());
    bytes_.append(text);
    return *this;
  }
  /// Bytes without their length.
  wire_writer& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }

  /// Makes room for so many bytes in all.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  std::size_t size() const noexcept { return bytes_.size(); }
  const std::string& bytes() const noexcept { return bytes_; }
  /// The bytes; the writer is empty afterwards.
  std::string take() { return std::exchange(bytes_, std::string()); }

 private:
  template <class T> wire_writer& number(T value) {
    char bytes[sizeof(T)];
    detail::store_little_endian(value, bytes);
    bytes_.append(bytes, sizeof bytes);
    return *this;
  }
  std::string bytes_;
};

/// Reads what `wire_writer` wrote. Whatever the bytes are, nothing is read past their end and no more memory is taken than
/// they themselves have; every fault throws INVALID_ARGUMENT that begins with `what` and names the offset.
class wire_reader {
 public:
  /// Reads `bytes`, which must outlive the reader; `what` names them in errors (`run message`) and must be a literal.
  explicit wire_reader(std::string_view bytes, const char* what = "message") noexcept : bytes_(bytes), what_(what) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::int32_t i32() { return static_cast<std::int32_t>(number<std::uint32_t>()); }
  std::int64_t i64() { return static_cast<std::int64_t>(number<std::uint64_t>()); }
  double f64() {
    const std::uint64_t bits = number<std::uint64_t>();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  /// 0 or 1; anything else is a fault.
  bool boolean();
  /// An enumerator that is at most `last`.
  template <class E, class = std::enable_if_t<std::is_enum_v<E>>> E enumerator(E last) {
    const std::uint8_t value = u8();
    if (value > static_cast<std::uint8_t>(last))
      bad("value " + std::to_string(value) + " is not one of 0 to " + std::to_string(static_cast<unsigned>(last)));
    return static_cast<E>(value);
  }
  /// The number of elements that follow, each of at least `least_bytes` bytes: a number that the rest of the message cannot
  /// hold is a fault, so memory may be reserved for what this returns.
  std::size_t count(std::size_t least_bytes = 1);
  std::string string() { return std::string(view()); }
  /// A counted string, in place.
  std::string_view view();
  /// The next bytes, in place.
  std::string_view raw(std::size_t length);

  /// Bytes not read yet.
  std::size_t remaining() const noexcept { return bytes_.size() - at_; }
  bool done() const noexcept { return remaining() == 0; }
  /// Throws if anything is left.
  void finish() const {
    if (!done()) bad(std::to_string(remaining()) + " bytes are left over");
  }
  /// Throws INVALID_ARGUMENT about the bytes before this place.
  [[noreturn]] void bad(const std::string& fault) const {
    fail(error_code::invalid_argument, std::string(what_) + ": " + fault + " (before byte " + std::to_string(at_) + " of " + std::to_string(bytes_.size()) + ")");
  }

 private:
  template <class T> T number() { return detail::load_little_endian<T>(raw(sizeof(T)).data()); }
  std::string_view bytes_;
  const char* what_;
  std::size_t at_ = 0;
};

/// Writes a status with all its fields.
inline void encode_status(wire_writer& to, const status& s) {
  const unsigned flags = (s.derived ? 1U : 0U) | (s.may_have_run ? 2U : 0U);
  to.enumerator(s.code).u8(static_cast<std::uint8_t>(flags));
  to.string(s.message).string(s.node).string(s.op).string(s.device).string(s.task).string(s.site);
}

/// Reads a status. Throws INVALID_ARGUMENT for a code or flag that does not exist.
status decode_status(wire_reader& from);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL bool wire_reader::boolean() {
  const std::uint8_t value = u8();
  if (value > 1) bad("expected 0 or 1, found " + std::to_string(value));
  return value == 1;
}

WEFT_DECL std::size_t wire_reader::count(std::size_t least_bytes) {
  const std::size_t elements = u32();
  if (least_bytes != 0 && elements > remaining() / least_bytes)
    bad("a list of " + std::to_string(elements) + " elements does not fit into the " + std::to_string(remaining()) + " bytes that follow");
  return elements;
}

WEFT_DECL std::string_view wire_reader::view() {
  const std::size_t length = u32();
  if (length > remaining()) bad("a string of " + std::to_string(length) + " bytes does not fit into the " + std::to_string(remaining()) + " bytes that follow");
  return raw(length);
}

WEFT_DECL std::string_view wire_reader::raw(std::size_t length) {
  if (length > remaining()) bad("expected " + std::to_string(length) + " more bytes, found " + std::to_string(remaining()));
  const std::string_view out = bytes_.substr(at_, length);
  at_ += length;
  return out;
}

WEFT_DECL status decode_status(wire_reader& from) {
  status s;
  s.code = from.enumerator(error_code::unauthenticated);
  const std::uint8_t flags = from.u8();
  if (flags > 3) from.bad("a status has the unknown flags " + std::to_string(flags));
  s.derived = (flags & 1U) != 0;
  s.may_have_run = (flags & 2U) != 0;
  for (std::string* field : {&s.message, &s.node, &s.op, &s.device, &s.task, &s.site}) *field = from.string();
  return s;
}

#endif

}  // namespace weft

#endif
