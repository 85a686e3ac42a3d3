#ifndef WEFT_FORMAT_TENSORFLOW_CHECKPOINT_HPP
#define WEFT_FORMAT_TENSORFLOW_CHECKPOINT_HPP
// TensorFlow's own checkpoints, read without TensorFlow: `prefix.index`, a table of sorted keys in LevelDB's layout, and `prefix.data-00000-of-00001`, the elements.

#include <weft/core/config.hpp>
#include <weft/format/npz.hpp>
#include <weft/format/tensor_file.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Whether a file ends as the index of a TensorFlow checkpoint does.
bool is_tensorflow_index(const file_reader& file);

/// An open checkpoint of TensorFlow (V2). Variables that were saved in pieces come as pieces, which `read_tensor` puts together; tensors of dtypes that weft has not are left out. Checksums of tables are
/// checked when it is opened, those of tensors when they are read.
class tensorflow_checkpoint final : public tensor_file {
 public:
  /// Opens `prefix.index`. Throws NOT_FOUND, DATA_LOSS with the file and the fault, UNIMPLEMENTED for compressed tables and big-endian data.
  explicit tensorflow_checkpoint(const std::string& index_path);
  WEFT_INLINE tensor_value read(const tensor_entry& entry) const override;
  using tensor_file::read;

 private:
  class table;
  struct bundle_entry;
  bundle_entry entry_of(const file_reader& index, std::string_view bytes) const;
  void add(const file_reader& index, std::string name, const bundle_entry& from);
  std::vector<std::unique_ptr<file_reader>> data_;
};

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <cstdio>
#include <map>

namespace weft {

namespace detail {

inline constexpr std::uint64_t table_magic = 0xdb4775248b80fb57ULL;

inline std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t n) {
  static const crc_table table(0x82f63b78U);
  return table.update(crc, data, n);
}

// How TensorFlow stores a checksum, so that one of data that holds checksums is no fixed point.
inline std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; }

// Reads numbers and pieces of a protocol buffer or a table's block. What is cut short makes it fail.
struct wire_cursor {
  std::string_view rest;
  bool failed = false;

  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest[0]);
      rest.remove_prefix(1);
      out |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return out;
    }
    failed = true;
    rest = {};
    return 0;
  }
  std::string_view take(std::uint64_t n) {
    if (n > rest.size()) {
      failed = true;
      n = rest.size();
    }
    const std::string_view out = rest.substr(0, static_cast<std::size_t>(n));
    rest.remove_prefix(out.size());
    return out;
  }
  // The next field of a message: its number, and its value as a number or as bytes. False at the end.
  bool field(unsigned& number, std::uint64_t& value, std::string_view& bytes) {
    if (rest.empty() || failed) return false;
    const std::uint64_t tag = varint();
    number = static_cast<unsigned>(tag >> 3 & 0x1fffffffU);
    bytes = {};
    value = 0;
    const unsigned kind = static_cast<unsigned>(tag & 7U);
    if (kind == 0) value = varint();
    else if (kind == 2) bytes = take(varint());
    else if (kind == 1 || kind == 5) {
      bytes = take(kind == 1 ? 8 : 4);
      if (!failed) value = get_little(bytes.data(), static_cast<int>(bytes.size()));
    } else {
      failed = true;
    }
    return !failed;
  }
};

// An integer in the order-preserving code of the keys of pieces.
inline std::string ordered_integer(std::int64_t v) {
  const std::uint64_t x = v < 0 ? ~static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  int length = 1;
  while (length < 10 && length * 7 - 1 < 64 && x >> (length * 7 - 1) != 0) ++length;
  std::string out;
  for (int i = length; i-- > 0;) out += static_cast<char>(i >= 8 ? (v < 0 ? 0xffU : 0U) : static_cast<std::uint64_t>(v) >> (8 * i) & 0xffU);
  // The first `length` bits are ones and then a zero, or all that inverted for a negative one.
  const unsigned head = 0xffff0000U >> length & 0xffffU;
  out[0] = static_cast<char>(static_cast<unsigned char>(out[0]) ^ (head >> 8));
  if (length > 1) out[1] = static_cast<char>(static_cast<unsigned char>(out[1]) ^ (head & 0xffU));
  return out;
}

// The key of a piece of a tensor.
inline std::string piece_key(const std::string& name, const std::vector<std::pair<std::int64_t, std::int64_t>>& extents) {
  std::string out(1, '\0');
  for (const char c : name) {
    out += c;
    if (c == '\0') out += '\xff';
    if (c == '\xff') out += '\0';
  }
  out += std::string("\0\1", 2);
  if (extents.empty()) out += '\0';
  else out += std::string("\1", 1) + static_cast<char>(extents.size());
  for (const auto& [start, length] : extents) out += ordered_integer(start) + ordered_integer(length);
  return out;
}

}  // namespace detail

WEFT_DECL bool is_tensorflow_index(const file_reader& file) { return file.size() >= 48 && detail::get_little(file.text(file.size() - 8, 8).data(), 8) == detail::table_magic; }

// The keys and values of a table, block by block.
class tensorflow_checkpoint::table {
 public:
  explicit table(const file_reader& file) : file_(file) {
    if (!is_tensorflow_index(file)) file.damaged("not the index of a TensorFlow checkpoint: its end is not that of a table");
    const std::string footer = file.text(file.size() - 48, 40);
    detail::wire_cursor at{footer};
    (void)at.varint();
    (void)at.varint();
    const std::uint64_t begin = at.varint(), size = at.varint();
    if (at.failed) file.damaged("the table's footer is damaged");
    for (const auto& [key, handle] : block(begin, size)) {
      detail::wire_cursor place{handle};
      const std::uint64_t from = place.varint(), bytes = place.varint();
      if (place.failed) file.damaged("the table's index is damaged");
      for (auto& [name, value] : block(from, bytes))
        if (!values.emplace(name, value).second) file.damaged("the table has a key twice");
    }
  }
  std::map<std::string, std::string> values;

 private:
  std::vector<std::pair<std::string, std::string>> block(std::uint64_t begin, std::uint64_t size) {
    if (begin > file_.size() || size > file_.size() - begin || file_.size() - begin - size < 5) file_.damaged("a block of the table is not within the file");
    // Blocks that a damaged file names again and again would take more than the file has.
    if ((read_ += size + 5) > file_.size()) file_.damaged("the table names a block twice");
    const std::string text = file_.text(begin, static_cast<std::size_t>(size) + 5);
    if (text[text.size() - 5] != '\0') fail(error_code::unimplemented, "'" + file_.path() + "': a block of the table is compressed, which is not read");
    if (detail::masked(detail::crc32c(0, text.data(), text.size() - 4)) != detail::get_little(&text[text.size() - 4], 4)) file_.damaged("the checksum of a block of the table is wrong");
    if (size < 4) file_.damaged("a block of the table is too short");
    const std::uint64_t restarts = detail::get_little(&text[static_cast<std::size_t>(size) - 4], 4);
    if (restarts > (size - 4) / 4) file_.damaged("a block of the table is damaged");
    detail::wire_cursor at{std::string_view(text).substr(0, static_cast<std::size_t>(size - 4 - 4 * restarts))};
    std::vector<std::pair<std::string, std::string>> out;
    std::string key;
    std::uint64_t keys = 0;
    while (!at.rest.empty()) {
      const std::uint64_t shared = at.varint(), rest = at.varint(), length = at.varint();
      if (shared > key.size()) file_.damaged("a block of the table is damaged");
      key.resize(static_cast<std::size_t>(shared));
      key += at.take(rest);
      const std::string_view value = at.take(length);
      if (at.failed) file_.damaged("a block of the table is damaged");
      // A key may share all of the one before it: their sum is bounded too.
      if ((keys += key.size()) > max_keys) fail(error_code::resource_exhausted, "'" + file_.path() + "': the keys of a block of the table take more than " + std::to_string(max_keys) + " bytes");
      out.emplace_back(key, value);
    }
    return out;
  }
  static constexpr std::uint64_t max_keys = std::uint64_t(1) << 28;
  const file_reader& file_;
  std::uint64_t read_ = 0;
};

struct tensorflow_checkpoint::bundle_entry {
  unsigned type = 0;
  std::vector<std::int64_t> sizes;
  std::uint64_t shard = 0, offset = 0, size = 0;
  std::uint32_t checksum = 0;
  // Of a tensor saved in pieces: begin and length of each dimension, -1 for all of it.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
};

WEFT_DECL tensorflow_checkpoint::bundle_entry tensorflow_checkpoint::entry_of(const file_reader& index, std::string_view bytes) const {
  bundle_entry out;
  unsigned number = 0;
  std::uint64_t value = 0;
  std::string_view inner, deeper;
  detail::wire_cursor at{bytes};
  bool failed = false;
  while (at.field(number, value, inner)) {
    detail::wire_cursor message{inner};
    if (number == 1) out.type = static_cast<unsigned>(std::min<std::uint64_t>(value, 1000));
    if (number == 3) out.shard = value;
    if (number == 4) out.offset = value;
    if (number == 5) out.size = value;
    if (number == 6) out.checksum = static_cast<std::uint32_t>(value);
    if (number == 7) out.slices.emplace_back();
    while ((number == 2 || number == 7) && !message.rest.empty()) {
      unsigned which = 0;
      if (!message.field(which, value, deeper)) break;
      detail::wire_cursor dimension{deeper};
      unsigned part = 0;
      std::string_view ignored;
      std::int64_t first = 0, second = -1;
      const bool wanted = which == (number == 2 ? 2U : 1U);
      while (wanted && dimension.field(part, value, ignored)) (part == 1 ? first : second) = static_cast<std::int64_t>(value);
      failed = failed || dimension.failed;
      if (wanted && number == 2) out.sizes.push_back(first);
      if (wanted && number == 7) out.slices.back().emplace_back(first, second);
    }
    failed = failed || message.failed;
  }
  if (at.failed || failed) index.damaged("an entry of the index is damaged");
  return out;
}

WEFT_DECL void tensorflow_checkpoint::add(const file_reader& index, std::string name, const bundle_entry& from) {
  if (!is_known_dtype(from.type) || (!is_plain(static_cast<dtype>(from.type)) && static_cast<dtype>(from.type) != dtype::string)) return;
  tensor_entry out;
  out.name = std::move(name);
  out.dtype = static_cast<dtype>(from.type);
  const std::string shown = "tensor '" + out.name.substr(0, 200) + "'";
  if (from.shard >= data_.size()) index.damaged(shown + " is in file " + std::to_string(from.shard) + " of " + std::to_string(data_.size()));
  const std::uint64_t file_size = data_[static_cast<std::size_t>(from.shard)]->size();
  if (from.offset > file_size || from.size > file_size - from.offset) index.damaged(shown + " is not within '" + data_[static_cast<std::size_t>(from.shard)]->path() + "'");
  const auto n = checked_elements(from.sizes.data(), from.sizes.size());
  if (from.sizes.size() > static_cast<std::size_t>(max_rank) || !n) index.damaged(shown + " has a shape with more elements than memory can address");
  if (out.dtype == dtype::string ? static_cast<std::uint64_t>(*n) > from.size : detail::plain_bytes(index, out.name, out.dtype, from.sizes.data(), from.sizes.size()) != from.size)
    index.damaged(shown + " of shape " + weft::shape(from.sizes).text() + " cannot be " + std::to_string(from.size) + " bytes");
  out.shape = weft::shape(from.sizes);
  out.position = from.offset;
  out.bytes = from.size;
  out.file = static_cast<int>(from.shard);
  out.checksum = from.checksum;
  entries_.push_back(std::move(out));
}

WEFT_DECL tensorflow_checkpoint::tensorflow_checkpoint(const std::string& index_path) : tensor_file(index_path) {
  const file_reader index(index_path);
  const table all(index);
  const auto header = all.values.find("");
  if (header == all.values.end()) index.damaged("the index has no header");
  std::uint64_t shards = 0, value = 0;
  unsigned number = 0;
  std::string_view ignored;
  detail::wire_cursor at{header->second};
  while (at.field(number, value, ignored)) {
    if (number == 1) shards = value;
    if (number == 2 && value != 0) fail(error_code::unimplemented, "'" + index_path + "': the data are big-endian, which is not read");
  }
  if (at.failed || shards > 99999) index.damaged("the index has a damaged header");
  const std::string prefix = index_path.size() > 6 && index_path.compare(index_path.size() - 6, 6, ".index") == 0 ? index_path.substr(0, index_path.size() - 6) : index_path;
  for (std::uint64_t i = 0; i < shards; ++i) {
    char end[40];
    std::snprintf(end, sizeof end, ".data-%05u-of-%05u", static_cast<unsigned>(i), static_cast<unsigned>(shards));
    data_.push_back(std::make_unique<file_reader>(prefix + end));
  }
  for (const auto& [name, bytes] : all.values) {
    if (name.empty() || name[0] == '\0') continue;
    const bundle_entry entry = entry_of(index, bytes);
    if (entry.slices.empty()) add(index, name, entry);
    for (const auto& slice : entry.slices) {
      const auto piece = all.values.find(detail::piece_key(name, slice));
      if (slice.size() != entry.sizes.size() || piece == all.values.end()) index.damaged("a piece of tensor '" + name.substr(0, 200) + "' is missing");
      std::string spec;
      for (const std::int64_t size : entry.sizes) spec += std::to_string(size) + " ";
      for (std::size_t d = 0; d < slice.size(); ++d)
        spec += (d == 0 ? "" : ":") + (slice[d].second < 0 ? std::string("-") : std::to_string(slice[d].first) + "," + std::to_string(slice[d].second));
      add(index, name + " " + spec, entry_of(index, piece->second));
    }
  }
  this->index();
}

WEFT_DECL tensor_value tensorflow_checkpoint::read(const tensor_entry& entry) const {
  const file_reader& file = *data_[static_cast<std::size_t>(entry.file)];
  const auto check = [&](std::uint32_t crc) {
    if (detail::masked(crc) != entry.checksum) file.damaged("the checksum of tensor '" + entry.name.substr(0, 200) + "' is wrong; the file is damaged");
  };
  tensor_value out(entry.dtype, entry.shape);
  if (entry.dtype != dtype::string) {
    if (entry.bytes > 0) file.read(entry.position, out.mutable_raw_data(), static_cast<std::size_t>(entry.bytes));
    check(detail::crc32c(0, entry.bytes > 0 ? out.raw_data() : nullptr, static_cast<std::size_t>(entry.bytes)));
    detail::normalize_bools(out);
    return out;
  }
  // The lengths, a checksum of them, the texts.
  const std::string text = file.text(entry.position, static_cast<std::size_t>(entry.bytes));
  detail::wire_cursor at{text};
  std::vector<std::uint64_t> lengths;
  std::uint32_t crc = 0;
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    lengths.push_back(at.varint());
    std::string bytes;
    detail::put_little(bytes, lengths.back(), lengths.back() <= UINT32_MAX ? 4 : 8);
    crc = detail::crc32c(crc, bytes.data(), bytes.size());
  }
  const std::string_view sum = at.take(4);
  if (at.failed || detail::get_little(sum.data(), 4) != detail::masked(crc)) file.damaged("the lengths of the strings of tensor '" + entry.name.substr(0, 200) + "' are damaged");
  crc = detail::crc32c(crc, sum.data(), sum.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string_view s = at.take(lengths[i]);
    crc = detail::crc32c(crc, s.data(), s.size());
    out.mutable_data<std::string>()[i] = std::string(s);
  }
  if (at.failed || !at.rest.empty()) file.damaged("the strings of tensor '" + entry.name.substr(0, 200) + "' are damaged");
  check(crc);
  return out;
}

}  // namespace weft
#endif

#endif
