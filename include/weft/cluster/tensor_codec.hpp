#ifndef WEFT_CLUSTER_TENSOR_CODEC_HPP
#define WEFT_CLUSTER_TENSOR_CODEC_HPP
// Tensors in a frame. The table has one entry each: dtype (1 byte), rank (1), zero (2), bytes in the body (8), and 8 bytes for every
// dimension. Plain elements are the body's bytes as they are; strings follow a list of their 64-bit lengths; a resource handle is its
// four strings, each behind its 32-bit length.

#include <weft/cluster/frame.hpp>
#include <weft/cluster/wire.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace weft::detail {

// One checked row of a tensor table.
struct tensor_entry {
  weft::dtype dtype = weft::dtype::invalid;
  weft::shape shape;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
};

// The least that an element takes in the body.
inline std::uint64_t least_element_bytes(dtype type) noexcept {
  if (type == dtype::string) return 8;
  if (type == dtype::resource) return 16;
  return size_of(type);
}

// What a received tensor takes in memory, with the objects around its elements.
inline std::uint64_t memory_bytes(const tensor_entry& entry) noexcept {
  std::uint64_t objects = 0;
  if (entry.dtype == dtype::string) objects = entry.elements * sizeof(std::string);
  if (entry.dtype == dtype::resource) objects = entry.elements * sizeof(resource_handle);
  return entry.bytes + objects + sizeof(tensor_value) + sizeof(buffer) + 64;
}

// Walks over a tensor table, checking each entry. Every fault throws INVALID_ARGUMENT that names the tensor by its number.
class tensor_table_reader {
 public:
  tensor_table_reader(std::string_view table, const frame_header& header, const frame_limits& limits) noexcept
      : from_(table, "tensor table"), header_(header), limits_(limits) {}

  // The next entry; false, and the sums checked, behind the last.
  bool next(tensor_entry& entry);

 private:
  [[noreturn]] void bad(const std::string& fault) const { from_.bad("tensor " + std::to_string(index_) + " " + fault); }
  void read_shape(tensor_entry& entry, std::size_t rank);
  void check_bytes(const tensor_entry& entry);

  wire_reader from_;
  const frame_header& header_;
  const frame_limits& limits_;
  std::uint32_t index_ = 0;
  std::uint64_t body_ = 0;
};

// Strings or handles as the bytes of a body.
std::string encode_objects(const tensor_value& value);

// The value of an entry whose elements are objects. Throws INVALID_ARGUMENT if the lengths do not add up to the body.
tensor_value decode_objects(const tensor_entry& entry, std::string_view body);

// Appends the table's row of a value that takes `bytes` in the body. Throws INVALID_ARGUMENT for what no receiver accepts.
void encode_entry(wire_writer& table, const tensor_value& value, std::uint64_t bytes, const frame_limits& limits);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL bool tensor_table_reader::next(tensor_entry& entry) {
  if (index_ == header_.tensors) {
    from_.finish();
    if (body_ != header_.body_bytes)
      from_.bad("the tensors have " + std::to_string(body_) + " bytes, the body " + std::to_string(header_.body_bytes));
    return false;
  }
  const unsigned type = from_.u8();
  const std::size_t rank = from_.u8();
  if (from_.u16() != 0) bad("has reserved bytes that are not zero");
  entry.bytes = from_.u64();
  entry.dtype = static_cast<dtype>(type);
  if (least_element_bytes(entry.dtype) == 0)
    bad(is_known_dtype(type) ? std::string("has dtype ") + to_text(entry.dtype) + ", whose values cannot be sent" : "has the unknown dtype " + std::to_string(type));
  if (rank > limits_.max_rank) bad("has " + std::to_string(rank) + " dimensions, at most " + std::to_string(limits_.max_rank) + " are accepted");
  read_shape(entry, rank);
  check_bytes(entry);
  ++index_;
  return true;
}

WEFT_DECL void tensor_table_reader::read_shape(tensor_entry& entry, std::size_t rank) {
  static constexpr std::int64_t unset[256] = {};
  entry.shape = weft::shape(unset, rank);
  for (int i = 0; i < entry.shape.rank(); ++i) {
    const std::int64_t size = from_.i64();
    if (size < 0) bad("has the negative size " + std::to_string(size) + " in dimension " + std::to_string(i));
    entry.shape.set(i, size);
  }
  const auto elements = checked_elements(entry.shape.data(), rank);
  if (!elements) bad("has shape " + entry.shape.text() + ", which has too many elements");
  entry.elements = static_cast<std::uint64_t>(*elements);
}

// Plain elements fill their bytes exactly; objects have at least room for their lengths.
WEFT_DECL void tensor_table_reader::check_bytes(const tensor_entry& entry) {
  const std::uint64_t each = least_element_bytes(entry.dtype);
  const bool overflow = entry.elements > UINT64_MAX / each;
  const bool wrong = is_plain(entry.dtype) ? entry.elements * each != entry.bytes : entry.elements * each > entry.bytes;
  if (overflow || wrong || (entry.elements == 0 && entry.bytes != 0))
    bad(std::string("claims ") + std::to_string(entry.bytes) + " bytes for shape " + entry.shape.text() + " of " + to_text(entry.dtype));
  if (entry.bytes > header_.body_bytes - body_)
    bad("claims " + std::to_string(entry.bytes) + " bytes, the body has " + std::to_string(header_.body_bytes - body_) + " left");
  body_ += entry.bytes;
}

WEFT_DECL std::string encode_objects(const tensor_value& value) {
  wire_writer out;
  const auto n = static_cast<std::size_t>(value.elements());
  if (value.dtype() == dtype::string) {
    const std::string* strings = value.data<std::string>();
    for (std::size_t i = 0; i < n; ++i) out.u64(strings[i].size());
    for (std::size_t i = 0; i < n; ++i) out.raw(strings[i]);
  } else {
    const resource_handle* handles = value.data<resource_handle>();
    for (std::size_t i = 0; i < n; ++i) out.string(handles[i].device).string(handles[i].container).string(handles[i].name).string(handles[i].kind);
  }
  return out.take();
}

WEFT_DECL tensor_value decode_objects(const tensor_entry& entry, std::string_view body) {
  wire_reader from(body, to_text(entry.dtype));
  tensor_value out(entry.dtype, entry.shape);
  const auto n = static_cast<std::size_t>(entry.elements);
  if (entry.dtype == dtype::string) {
    wire_reader lengths(from.raw(n * 8), "string lengths");
    std::string* strings = out.mutable_data<std::string>();
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t length = lengths.u64();
      if (length > from.remaining()) from.bad("element " + std::to_string(i) + " claims " + std::to_string(length) + " bytes, " + std::to_string(from.remaining()) + " are left");
      strings[i].assign(from.raw(static_cast<std::size_t>(length)));
    }
  } else {
    resource_handle* handles = out.mutable_data<resource_handle>();
    for (std::size_t i = 0; i < n; ++i)
      for (std::string* field : {&handles[i].device, &handles[i].container, &handles[i].name, &handles[i].kind}) *field = from.string();
  }
  from.finish();
  return out;
}

WEFT_DECL void encode_entry(wire_writer& table, const tensor_value& value, std::uint64_t bytes, const frame_limits& limits) {
  const auto rank = static_cast<std::uint32_t>(value.shape().rank());
  if (rank > limits.max_rank)
    fail(error_code::invalid_argument, "a tensor of shape " + value.shape().text() + " cannot be sent: at most " + std::to_string(limits.max_rank) + " dimensions");
  table.u8(static_cast<std::uint8_t>(value.dtype())).u8(static_cast<std::uint8_t>(rank)).u16(0).u64(bytes);
  for (std::int64_t size : value.shape()) table.i64(size);
}

#endif

}  // namespace weft::detail

#endif
