#ifndef WEFT_FORMAT_TENSOR_PROTO_HPP
#define WEFT_FORMAT_TENSOR_PROTO_HPP
// TensorProto, TensorShapeProto and DataType read from protobuf-JSON, with the rules of TensorFlow's runtime: content fits exactly, a
// list that is too short repeats its last value, one that is too long is cut, lists of other dtypes are ignored.

#include <weft/format/json_value.hpp>
#include <weft/tensor/tensor_value.hpp>

namespace weft::detail {

// `DT_FLOAT`, `DT_BFLOAT16`.
std::string proto_name(dtype type);
// A DataType, by name or number. Throws INVALID_ARGUMENT for none and for references, UNIMPLEMENTED for those that weft has not.
dtype dtype_at(const json_at& at);
partial_shape shape_at(const json_at& at);
// `room` is how many bytes the values may still take that the text does not spell out (a few characters may repeat one value any number of
// times); what this value takes is subtracted. Throws RESOURCE_EXHAUSTED.
tensor_value tensor_at(const json_at& at, std::uint64_t& room);
// Room for one value.
inline constexpr std::uint64_t usual_room = std::uint64_t(1) << 30;

}  // namespace weft::detail

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <cstring>

namespace weft::detail {

WEFT_DECL std::string proto_name(dtype type) {
  std::string out = "DT_";
  for (const char* c = to_text(type); *c != '\0'; ++c) out += *c >= 'a' && *c <= 'z' ? static_cast<char>(*c - 'a' + 'A') : *c;
  return out;
}

WEFT_DECL dtype dtype_at(const json_at& at) {
  constexpr std::pair<std::string_view, unsigned> others[] = {{"DT_QINT8", 11}, {"DT_QUINT8", 12}, {"DT_QINT32", 13}, {"DT_QINT16", 15}, {"DT_QUINT16", 16}, {"DT_FLOAT8_E5M2", 24}, {"DT_FLOAT8_E4M3FN", 25}, {"DT_INT4", 29}, {"DT_UINT4", 30}};
  if (at.value.kind != json_kind::string) {
    const auto number = static_cast<unsigned>(integer_at(at, 0, 255));
    if (is_known_dtype(number)) return static_cast<dtype>(number);
    for (const auto& [name, other] : others)
      if (number == other) bad_json(at, "values of dtype " + std::string(name) + " are not supported", error_code::unimplemented);
    if (number > 100 && is_known_dtype(number - 100)) bad_json(at, "a reference dtype cannot stand here, found number " + std::to_string(number));
    bad_json(at, "there is no dtype of number " + std::to_string(number));
  }
  const std::string& name = string_at(at);
  for (unsigned number = 1; number <= 23; ++number)
    if (is_known_dtype(number) && name == proto_name(static_cast<dtype>(number))) return static_cast<dtype>(number);
  for (const auto& other : others)
    if (name == other.first) bad_json(at, "values of dtype " + name + " are not supported", error_code::unimplemented);
  if (name.size() > 4 && name.size() < 40 && name.compare(name.size() - 4, 4, "_REF") == 0) bad_json(at, "a reference dtype cannot stand here, found '" + name + "'");
  bad_json(at, "there is no dtype '" + name.substr(0, 80) + "'");
}

inline std::vector<std::int64_t> sizes_at(const json_at& at, const json_value* dims, std::int64_t least) {
  std::vector<std::int64_t> out;
  if (dims == nullptr) return out;
  const json_at list(*dims, at, "dim");
  for (const json_value& dim : elements_at(list)) {
    const json_at one(dim, list, out.size());
    expect_fields(one, {"size", "name"});
    const json_value* size = find_field(one, "size");
    out.push_back(size == nullptr ? 0 : integer_at(json_at(*size, one, "size"), least));
    if (out.size() > static_cast<std::size_t>(max_rank)) bad_json(list, "a shape has at most " + std::to_string(max_rank) + " dimensions, found " + std::to_string(dims->items.size()));
  }
  return out;
}

WEFT_DECL partial_shape shape_at(const json_at& at) {
  expect_fields(at, {"dim", "unknown_rank"});
  const json_value* dims = find_field(at, "dim");
  if (const json_value* unknown = find_field(at, "unknown_rank"); unknown != nullptr && bool_at(json_at(*unknown, at, "unknown_rank"))) {
    if (dims != nullptr && !dims->items.empty()) bad_json(at, "the rank cannot be unknown where there are dimensions");
    return partial_shape();
  }
  return partial_shape(sizes_at(at, dims, -1));
}

// Fills the elements from a list, whose last value is repeated; `put` writes one element at its place.
template <class Put> void fill_elements(const json_at& at, const json_value* list, std::string_view field, std::byte* to, std::size_t size, std::size_t count, std::size_t numbers, Put put) {
  std::memset(to, 0, size * count);
  if (list == nullptr) return;
  const json_at where(*list, at, field);
  const auto& items = elements_at(where);
  const std::size_t given = std::min(count, items.size() / numbers);
  for (std::size_t i = 0; i < given * numbers; ++i) put(json_at(items[i], where, i), to + i * (size / numbers));
  for (std::size_t i = given; i < count && given > 0; ++i) std::memcpy(to + i * size, to + (given - 1) * size, size);
}

template <class T> void put_bits(std::byte* to, T v) { std::memcpy(to, &v, sizeof v); }

inline void fill_integers(const json_at& at, dtype type, std::byte* to, std::size_t count) {
  const std::size_t size = size_of(type);
  const bool bits = type == dtype::half || type == dtype::bfloat16;
  const char* field = bits ? "half_val" : type == dtype::int64 ? "int64_val" : type == dtype::uint64 ? "uint64_val" : type == dtype::uint32 ? "uint32_val" : "int_val";
  fill_elements(at, find_field(at, field), field, to, size, count, 1, [type, size](const json_at& item, std::byte* place) {
    // What is too wide is cut, as TensorFlow does: the bytes are little-endian.
    std::uint64_t v;
    if (type == dtype::uint64) v = natural_at(item);
    else if (type == dtype::int64) v = static_cast<std::uint64_t>(integer_at(item));
    else if (type == dtype::uint32) v = static_cast<std::uint64_t>(integer_at(item, 0, UINT32_MAX));
    else v = static_cast<std::uint64_t>(integer_at(item, INT32_MIN, INT32_MAX));
    for (std::size_t i = 0; i < size; ++i) place[i] = static_cast<std::byte>(v >> (8 * i) & 0xffU);
  });
}

inline void fill_plain(const json_at& at, tensor_value& v) {
  std::byte* to = v.mutable_raw_data();
  const auto count = static_cast<std::size_t>(v.elements());
  const std::size_t size = size_of(v.dtype());
  switch (v.dtype()) {
    case dtype::float32: case dtype::complex64: {
      const bool complex = v.dtype() == dtype::complex64;
      const char* field = complex ? "scomplex_val" : "float_val";
      return fill_elements(at, find_field(at, field), field, to, size, count, complex ? 2 : 1, [](const json_at& item, std::byte* place) { put_bits(place, float_at(item)); });
    }
    case dtype::float64: case dtype::complex128: {
      const bool complex = v.dtype() == dtype::complex128;
      const char* field = complex ? "dcomplex_val" : "double_val";
      return fill_elements(at, find_field(at, field), field, to, size, count, complex ? 2 : 1, [](const json_at& item, std::byte* place) { put_bits(place, real_at(item)); });
    }
    case dtype::boolean:
      return fill_elements(at, find_field(at, "bool_val"), "bool_val", to, size, count, 1, [](const json_at& item, std::byte* place) { put_bits(place, bool_at(item)); });
    default: return fill_integers(at, v.dtype(), to, count);
  }
}

inline resource_handle handle_at(const json_at& at) {
  expect_fields(at, {"device", "container", "name", "hash_code", "maybe_type_name", "dtypes_and_shapes"});
  const auto text = [&at](const char* field) {
    const json_value* v = find_field(at, field);
    return v == nullptr ? std::string() : string_at(json_at(*v, at, field));
  };
  return {text("device"), text("container"), text("name"), text("maybe_type_name")};
}

template <class T, class Read> void fill_objects(const json_at& at, tensor_value& v, const char* field, Read read) {
  const json_value* list = find_field(at, field);
  const auto count = static_cast<std::size_t>(v.elements());
  if (list == nullptr || count == 0) return;
  const json_at where(*list, at, field);
  const auto& items = elements_at(where);
  T* to = v.mutable_data<T>();
  for (std::size_t i = 0; i < count && !items.empty(); ++i) to[i] = i < items.size() ? read(json_at(items[i], where, i)) : to[items.size() - 1];
}

// String content: the lengths as varints, then the bytes.
inline void fill_string_content(const json_at& at, const std::string& content, tensor_value& v) {
  const auto count = static_cast<std::size_t>(v.elements());
  const auto fits = [&](bool ok) {
    if (!ok) bad_json(at, "the content does not hold " + std::to_string(count) + " strings");
  };
  std::size_t position = 0;
  std::vector<std::size_t> sizes(count);
  for (std::size_t& size : sizes) {
    for (unsigned shift = 0;; shift += 7) {
      fits(position < content.size() && shift < 35);
      const auto byte = static_cast<unsigned char>(content[position++]);
      size |= static_cast<std::size_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) break;
    }
  }
  std::string* to = v.mutable_data<std::string>();
  for (std::size_t i = 0; i < count; ++i) {
    fits(sizes[i] <= content.size() - position);
    to[i] = content.substr(position, sizes[i]);
    position += sizes[i];
  }
  fits(position == content.size());
}

// The number of elements; as in TensorFlow, sizes before a zero must not overflow although the value has no elements.
inline std::optional<std::int64_t> elements_in_order(const shape& s) {
  int before_zero = 0;
  while (before_zero < s.rank() && s[before_zero] != 0) ++before_zero;
  const auto front = checked_elements(s.data(), static_cast<std::size_t>(before_zero));
  return front && before_zero < s.rank() ? std::optional<std::int64_t>(0) : front;
}

// The memory is taken only when the claim has been checked.
inline void take_room(const json_at& at, const shape& s, std::uint64_t bytes, std::uint64_t& room) {
  if (bytes > room)
    bad_json(at, "shape " + s.text() + " would take " + std::to_string(bytes) + " bytes, more than import_options::max_repeated_bytes leaves (" + std::to_string(room) + ")", error_code::resource_exhausted);
  room -= bytes;
}

WEFT_DECL tensor_value tensor_at(const json_at& at, std::uint64_t& room) {
  expect_fields(at, {"dtype", "tensor_shape", "version_number", "tensor_content", "float_val", "double_val", "int_val", "string_val", "scomplex_val", "int64_val", "bool_val",
                     "dcomplex_val", "half_val", "resource_handle_val", "variant_val", "uint32_val", "uint64_val", "float8_val"});
  const json_value* type_field = find_field(at, "dtype");
  if (type_field == nullptr) bad_json(at, "a tensor needs a dtype");
  const dtype type = dtype_at(json_at(*type_field, at, "dtype"));
  shape s;
  if (const json_value* shape_field = find_field(at, "tensor_shape")) {
    const json_at where(*shape_field, at, "tensor_shape");
    expect_fields(where, {"dim", "unknown_rank"});
    s = shape(sizes_at(where, find_field(where, "dim"), 0));
  }
  const auto count = elements_in_order(s);
  const std::uint64_t size = is_plain(type) ? size_of(type) : sizeof(std::string);
  if (!count || static_cast<std::uint64_t>(*count) > static_cast<std::uint64_t>(INT64_MAX) / size)
    bad_json(at, "shape " + s.text() + " has more elements than memory can address");
  if (type == dtype::variant || type == dtype::invalid) bad_json(at, std::string("values of dtype ") + to_text(type) + " are not supported", error_code::unimplemented);
  std::string content;
  if (const json_value* bytes = find_field(at, "tensor_content")) content = bytes_at(json_at(*bytes, at, "tensor_content"));
  if (!content.empty() && type == dtype::string && static_cast<std::uint64_t>(*count) > content.size()) bad_json(at, "the content does not hold " + std::to_string(*count) + " strings");
  if (!content.empty() && *count > 0 && is_plain(type) && content.size() != static_cast<std::uint64_t>(*count) * size)
    bad_json(at, "shape " + s.text() + " of " + to_text(type) + " needs " + std::to_string(static_cast<std::uint64_t>(*count) * size) + " bytes of content, found " + std::to_string(content.size()));
  if (content.empty()) take_room(at, s, static_cast<std::uint64_t>(*count) * size, room);
  tensor_value out(type, std::move(s));
  if (*count == 0) return out;
  if (type == dtype::resource) fill_objects<resource_handle>(at, out, "resource_handle_val", handle_at);
  else if (type == dtype::string && !content.empty()) fill_string_content(at, content, out);
  else if (type == dtype::string) fill_objects<std::string>(at, out, "string_val", bytes_at);
  else if (content.empty()) fill_plain(at, out);
  else if (type == dtype::boolean) std::transform(content.begin(), content.end(), out.mutable_data<bool>(), [](char c) { return c != 0; });
  else std::memcpy(out.mutable_raw_data(), content.data(), content.size());
  return out;
}

}  // namespace weft::detail
#endif

#endif
