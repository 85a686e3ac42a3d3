#ifndef WEFT_FORMAT_NPY_HPP
#define WEFT_FORMAT_NPY_HPP
// numpy's .npy format: one array with a header that is a Python literal.

#include <weft/core/config.hpp>
#include <weft/format/tensor_file.hpp>

#include <cstdint>
#include <string>

namespace weft {

/// The array in this file. Numbers of either byte order, in C or Fortran order; bytes and Unicode texts become strings; two bytes of raw data (`|V2`) are bfloat16. Throws NOT_FOUND, DATA_LOSS,
/// UNIMPLEMENTED for other dtypes (objects, records, dates).
tensor_value read_npy(const std::string& path);
/// Writes this value as numpy.save does. Strings are written as bytes of the longest one's length; bfloat16 as `|V2`. The file takes its name when it is complete. Throws UNIMPLEMENTED for resources and for
/// strings that end in a zero byte, which numpy would lose.
void write_npy(const std::string& path, const tensor_value& value);

namespace detail {
// The head of an .npy file for this value.
std::string npy_head(const std::string& path, const std::string& name, const tensor_value& v);
// How many bytes of elements follow it.
std::uint64_t npy_bytes(const tensor_value& v);
// Passes those bytes on in pieces.
void npy_elements(const tensor_value& v, void* to, void (*put)(void* to, const void* data, std::size_t n));
// Reads a head of a file that has `room` bytes from `position` on. `layout` keeps what `read_npy_elements` needs.
tensor_entry read_npy_head(const file_reader& file, std::string name, std::uint64_t position, std::uint64_t room);
tensor_value read_npy_elements(const file_reader& file, const tensor_entry& entry);
}  // namespace detail

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <cstring>

namespace weft {

namespace detail {

// Of `tensor_entry::layout`: the bytes of one element, and these.
inline constexpr std::uint32_t npy_swapped = 1U << 31, npy_fortran = 1U << 30, npy_unicode = 1U << 29, npy_width = npy_unicode - 1;
inline constexpr std::uint32_t max_npy_header = std::uint32_t(1) << 20;

struct npy_type {
  char kind;
  std::uint32_t size;
  dtype type;
};
inline constexpr npy_type npy_types[] = {{'b', 1, dtype::boolean}, {'i', 1, dtype::int8}, {'i', 2, dtype::int16}, {'i', 4, dtype::int32}, {'i', 8, dtype::int64}, {'u', 1, dtype::uint8}, {'u', 2, dtype::uint16},
                                        {'u', 4, dtype::uint32}, {'u', 8, dtype::uint64}, {'f', 2, dtype::half}, {'f', 4, dtype::float32}, {'f', 8, dtype::float64}, {'c', 8, dtype::complex64},
                                        {'c', 16, dtype::complex128}, {'V', 2, dtype::bfloat16}};

// Reads the Python literal of a header: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
class npy_literal {
 public:
  npy_literal(const file_reader& file, const std::string& name, const std::string& text) : file_(file), name_(name), text_(text) {}
  tensor_entry read() {
    bool seen[3] = {false, false, false};
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0) bad("there is no key '" + key.substr(0, 80) + "'");
      if (seen[which]) bad("the key '" + key + "' is there twice");
      seen[which] = true;
      if (which == 0) descr();
      else if (which == 1) fortran();
      else sizes();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) bad("there is something behind the '}'");
    if (!seen[0] || !seen[1] || !seen[2]) bad("it needs 'descr', 'fortran_order' and 'shape'");
    finish();
    return std::move(out_);
  }

 private:
  [[noreturn]] void bad(const std::string& fault) const { file_.damaged((name_.empty() ? "" : "tensor '" + name_.substr(0, 200) + "': ") + "header: " + fault); }
  [[noreturn]] void unsupported(const std::string& descr) const {
    fail(error_code::unimplemented, "'" + file_.path() + "': " + (name_.empty() ? "the array" : "tensor '" + name_.substr(0, 200) + "'") + " has dtype '" + descr.substr(0, 80) + "', which cannot be read");
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(std::string("expected '") + c + "' at character " + std::to_string(at_));
  }
  std::string quoted() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') bad("expected a string at character " + std::to_string(at_));
    const auto end = text_.find(quote, ++at_);
    if (end == std::string::npos || text_.find('\\', at_) < end) bad("a string does not end, or has an escape");
    std::string out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  void descr() {
    skip();
    if (at_ < text_.size() && text_[at_] == '[') unsupported("a record");
    const std::string text = quoted();
    if (text.size() < 2 || text.size() > 12 || std::strchr("<>|=", text[0]) == nullptr || text[0] == '\0') unsupported(text);
    std::uint64_t size = 0;
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') unsupported(text);
      size = size * 10 + static_cast<std::uint64_t>(text[i] - '0');
    }
    const bool unicode = text[1] == 'U';
    if (unicode) size *= 4;
    if (size > npy_width) unsupported(text);
    out_.layout = static_cast<std::uint32_t>(size) | (unicode ? npy_unicode : 0U) | (text[0] == '>' && text[1] != 'V' && text[1] != 'S' ? npy_swapped : 0U);
    if (unicode || text[1] == 'S') out_.dtype = dtype::string;
    for (const npy_type& t : npy_types)
      if (t.kind == text[1] && t.size == size) out_.dtype = t.type;
    if (out_.dtype == dtype::invalid) unsupported(text);
  }
  void fortran() {
    skip();
    const bool yes = text_.compare(at_, 4, "True") == 0;
    if (!yes && text_.compare(at_, 5, "False") != 0) bad("'fortran_order' must be True or False");
    if (yes) fortran_ = true;
    at_ += yes ? 4 : 5;
  }
  void sizes() {
    expect('(');
    while (!accept(')')) {
      skip();
      std::uint64_t size = 0;
      const std::size_t begin = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (size > static_cast<std::uint64_t>(INT64_MAX) / 10 - 1) bad("a size of the shape is too large");
        size = size * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
      }
      if (at_ == begin) bad("expected a size at character " + std::to_string(at_));
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;
      sizes_.push_back(static_cast<std::int64_t>(size));
      if (sizes_.size() > static_cast<std::size_t>(max_rank)) bad("the shape has more than " + std::to_string(max_rank) + " dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  void finish() {
    const auto n = checked_elements(sizes_.data(), sizes_.size());
    const std::uint64_t width = std::max<std::uint64_t>(out_.layout & npy_width, 1);
    if (!n || static_cast<std::uint64_t>(*n) > static_cast<std::uint64_t>(INT64_MAX) / width) bad("shape " + weft::shape(sizes_).text() + " has more elements than memory can address");
    out_.bytes = static_cast<std::uint64_t>(*n) * (out_.layout & npy_width);
    out_.shape = weft::shape(sizes_);
    if (fortran_ && out_.shape.rank() > 1) out_.layout |= npy_fortran;
  }

  const file_reader& file_;
  const std::string& name_;
  const std::string& text_;
  std::size_t at_ = 0;
  std::vector<std::int64_t> sizes_;
  bool fortran_ = false;
  tensor_entry out_;
};

// The bytes of the longest string.
inline std::size_t longest_string(const tensor_value& v) {
  std::size_t out = 1;
  for (std::int64_t i = 0; i < v.elements(); ++i) out = std::max(out, v.data<std::string>()[i].size());
  return out;
}

WEFT_DECL std::uint64_t npy_bytes(const tensor_value& v) {
  if (v.dtype() != dtype::string) return v.bytes();
  const std::uint64_t n = static_cast<std::uint64_t>(v.elements()), width = longest_string(v);
  if (n > static_cast<std::uint64_t>(INT64_MAX) / width) fail(error_code::resource_exhausted, "strings of " + std::to_string(width) + " bytes each take more than a file can hold");
  return n * width;
}

WEFT_DECL std::string npy_head(const std::string& path, const std::string& name, const tensor_value& v) {
  std::string descr;
  for (const npy_type& t : npy_types)
    if (t.type == v.dtype()) descr = (t.size == 1 || t.kind == 'V' ? "|" : "<") + std::string(1, t.kind) + std::to_string(t.size);
  if (v.dtype() == dtype::string) {
    for (std::int64_t i = 0; i < v.elements(); ++i)
      if (const std::string& s = v.data<std::string>()[i]; !s.empty() && s.back() == '\0')
        fail(error_code::unimplemented, "cannot write '" + path + "': a string of '" + name + "' ends in a zero byte, which numpy's format does not keep");
    descr = "|S" + std::to_string(longest_string(v));
  }
  if (descr.empty()) fail(error_code::unimplemented, "cannot write '" + path + "': numpy's format has no dtype for " + std::string(to_text(v.dtype())) + ", which '" + name + "' has");
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < v.shape().rank(); ++i) text += (i > 0 ? ", " : "") + std::to_string(v.shape()[i]);
  text += v.shape().rank() == 1 ? ",), }" : "), }";
  const bool wide = text.size() + 11 + 63 > 0xffff;
  const std::size_t before = wide ? 12 : 10;
  while ((before + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string out = std::string("\x93NUMPY", 6) + (wide ? '\2' : '\1') + '\0';
  put_little(out, text.size(), wide ? 4 : 2);
  return out + text;
}

WEFT_DECL void npy_elements(const tensor_value& v, void* to, void (*put)(void* to, const void* data, std::size_t n)) {
  if (v.elements() == 0) return;
  if (v.dtype() != dtype::string) return put(to, v.raw_data(), v.bytes());
  std::string padded;
  const std::size_t width = longest_string(v);
  for (std::int64_t i = 0; i < v.elements(); ++i) {
    padded = v.data<std::string>()[i];
    padded.resize(width, '\0');
    put(to, padded.data(), width);
  }
}

WEFT_DECL tensor_entry read_npy_head(const file_reader& file, std::string name, std::uint64_t position, std::uint64_t room) {
  const auto bad = [&](const std::string& what) { file.damaged((name.empty() ? "" : "tensor '" + name.substr(0, 200) + "': ") + what); };
  if (room < 10) bad("not an .npy array: it has " + std::to_string(room) + " bytes");
  const std::string magic = file.text(position, 10);
  if (magic.compare(0, 6, "\x93NUMPY") != 0) bad("not an .npy array: it does not begin with '\\x93NUMPY'");
  const int version = static_cast<unsigned char>(magic[6]);
  if (version < 1 || version > 3) bad("version " + std::to_string(version) + " of the .npy format is not known");
  const std::uint64_t before = version == 1 ? 10 : 12;
  if (room < before) bad("not an .npy array: it has " + std::to_string(room) + " bytes");
  const std::uint64_t length = version == 1 ? get_little(magic.data() + 8, 2) : get_little(file.text(position + 8, 4).data(), 4);
  if (length > max_npy_header || length > room - before) bad("the header claims " + std::to_string(length) + " bytes, there are " + std::to_string(room - before));
  const std::string text = file.text(position + before, static_cast<std::size_t>(length));
  tensor_entry out = npy_literal(file, name, text).read();
  out.position = position + before + length;
  if (out.bytes != room - before - length)
    bad("shape " + out.shape.text() + " needs " + std::to_string(out.bytes) + " bytes of elements, found " + std::to_string(room - before - length));
  // Elements without bytes are empty strings; as many as a file of this size could name.
  if (out.layout << 3 == 0 && static_cast<std::uint64_t>(out.shape.elements()) > (std::uint64_t(1) << 24)) bad("shape " + out.shape.text() + " of empty strings is too large");
  out.name = std::move(name);
  return out;
}

// The text of a numpy string: UTF-32 without the zeros behind it, or bytes without them.
inline std::string npy_string(const file_reader& file, const std::byte* from, std::uint32_t layout) {
  const std::size_t width = layout & npy_width;
  std::string out;
  if ((layout & npy_unicode) == 0) {
    out.assign(reinterpret_cast<const char*>(from), width);
    out.resize(out.find_last_not_of('\0') + 1);
    return out;
  }
  std::size_t pending = 0;
  for (std::size_t i = 0; i + 4 <= width; i += 4) {
    std::uint32_t c = 0;
    for (std::size_t b = 0; b < 4; ++b) c |= static_cast<std::uint32_t>(from[i + b]) << (8 * ((layout & npy_swapped) != 0 ? 3 - b : b));
    if (c == 0) {
      ++pending;
      continue;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) file.damaged("a text has a character that does not exist");
    out.append(pending, '\0');
    pending = 0;
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
      out += static_cast<char>((more == 1 ? 0xc0U : more == 2 ? 0xe0U : 0xf0U) | c >> (6 * more));
      for (int k = more; k-- > 0;) out += static_cast<char>(0x80U | (c >> (6 * k) & 0x3fU));
    }
  }
  return out;
}

// The elements in C order of what lies in Fortran order.
inline void from_fortran(const std::byte* from, std::byte* to, const weft::shape& s, std::size_t size) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(s.rank()), 0), step(at.size(), 1);
  for (std::size_t d = 1; d < step.size(); ++d) step[d] = step[d - 1] * s[static_cast<int>(d) - 1];
  std::int64_t source = 0;
  for (std::int64_t i = 0; i < s.elements(); ++i) {
    std::memcpy(to + static_cast<std::size_t>(i) * size, from + static_cast<std::size_t>(source) * size, size);
    for (std::size_t d = at.size(); d-- > 0;) {
      source += step[d];
      if (++at[d] < s[static_cast<int>(d)]) break;
      source -= step[d] * at[d];
      at[d] = 0;
    }
  }
}

WEFT_DECL tensor_value read_npy_elements(const file_reader& file, const tensor_entry& entry) {
  const std::size_t width = entry.layout & npy_width;
  const bool plain = entry.dtype != dtype::string, fortran = (entry.layout & npy_fortran) != 0;
  if (plain && !fortran) {
    tensor_value out = read_plain(file, entry);
    const bool complex = entry.dtype == dtype::complex64 || entry.dtype == dtype::complex128;
    if ((entry.layout & npy_swapped) != 0) swap_bytes(out.mutable_raw_data(), static_cast<std::size_t>(out.elements()) * (complex ? 2 : 1), complex ? width / 2 : width);
    return out;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
  if (!bytes.empty()) file.read(entry.position, bytes.data(), bytes.size());
  if (fortran && !bytes.empty()) {
    std::vector<std::byte> turned(bytes.size());
    from_fortran(bytes.data(), turned.data(), entry.shape, width);
    bytes.swap(turned);
  }
  tensor_value out(entry.dtype, entry.shape);
  if (plain) {
    if (!bytes.empty()) std::memcpy(out.mutable_raw_data(), bytes.data(), bytes.size());
    const bool complex = entry.dtype == dtype::complex64 || entry.dtype == dtype::complex128;
    if ((entry.layout & npy_swapped) != 0) swap_bytes(out.mutable_raw_data(), static_cast<std::size_t>(out.elements()) * (complex ? 2 : 1), complex ? width / 2 : width);
    normalize_bools(out);
    return out;
  }
  std::string* to = out.mutable_data<std::string>();
  for (std::int64_t i = 0; i < out.elements(); ++i) to[i] = npy_string(file, bytes.data() + static_cast<std::size_t>(i) * width, entry.layout);
  return out;
}

}  // namespace detail

WEFT_DECL tensor_value read_npy(const std::string& path) {
  const file_reader file(path);
  return detail::read_npy_elements(file, detail::read_npy_head(file, "", 0, file.size()));
}

WEFT_DECL void write_npy(const std::string& path, const tensor_value& value) {
  if (value.empty()) fail(error_code::invalid_argument, "cannot write '" + path + "': there is no value");
  const std::string head = detail::npy_head(path, "the array", value);
  file_writer out(path);
  out.write(head);
  detail::npy_elements(value, &out, [](void* to, const void* data, std::size_t n) { static_cast<file_writer*>(to)->write(data, n); });
  out.commit();
}

}  // namespace weft
#endif

#endif
