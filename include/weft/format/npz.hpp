#ifndef WEFT_FORMAT_NPZ_HPP
#define WEFT_FORMAT_NPZ_HPP
// numpy's .npz format: a zip archive of .npy arrays, not compressed, as numpy.savez writes it.

#include <weft/core/config.hpp>
#include <weft/format/npy.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// Writes these arrays under their names, so that `numpy.load(path)[name]` gives them; archives above 4 GiB are zip64. The file takes its name when it is complete. Throws as `write_npy`.
void write_npz(const std::string& path, const std::vector<named_tensor>& tensors);

/// An open .npz file. Opening reads the directory and the arrays' headers; the checksum of an array is checked when it is read.
class npz_file final : public tensor_file {
 public:
  /// Throws NOT_FOUND, DATA_LOSS with the file and the fault, UNIMPLEMENTED for compressed archives and for dtypes that weft has not.
  explicit npz_file(const std::string& path);
  WEFT_INLINE tensor_value read(const tensor_entry& entry) const override;
  using tensor_file::read;

 private:
  struct directory;
  directory find_directory() const;
  std::size_t read_member(const std::string& listing, std::size_t at, std::uint64_t members_end);
  file_reader file_;
  // Where the member of each entry begins and how long it is, by `tensor_entry::file`.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> members_;
};

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <array>

namespace weft {

namespace detail {

// A table-driven checksum, eight bytes a turn; `polynomial` is reflected.
class crc_table {
 public:
  explicit crc_table(std::uint32_t polynomial) {
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t v = i;
      for (int bit = 0; bit < 8; ++bit) v = v >> 1 ^ ((v & 1U) != 0 ? polynomial : 0U);
      rows_[0][i] = v;
    }
    for (std::size_t row = 1; row < 8; ++row)
      for (std::size_t i = 0; i < 256; ++i) rows_[row][i] = rows_[row - 1][i] >> 8 ^ rows_[0][rows_[row - 1][i] & 0xffU];
  }
  std::uint32_t update(std::uint32_t crc, const void* data, std::size_t n) const {
    const auto* p = static_cast<const unsigned char*>(data);
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
      crc ^= static_cast<std::uint32_t>(p[0]) | static_cast<std::uint32_t>(p[1]) << 8 | static_cast<std::uint32_t>(p[2]) << 16 | static_cast<std::uint32_t>(p[3]) << 24;
      crc = rows_[7][crc & 0xffU] ^ rows_[6][crc >> 8 & 0xffU] ^ rows_[5][crc >> 16 & 0xffU] ^ rows_[4][crc >> 24] ^ rows_[3][p[4]] ^ rows_[2][p[5]] ^ rows_[1][p[6]] ^ rows_[0][p[7]];
    }
    for (; n > 0; --n, ++p) crc = crc >> 8 ^ rows_[0][(crc ^ *p) & 0xffU];
    return ~crc;
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 8> rows_;
};

// The checksum of zip archives.
inline std::uint32_t crc32(std::uint32_t crc, const void* data, std::size_t n) {
  static const crc_table table(0xedb88320U);
  return table.update(crc, data, n);
}

inline constexpr std::uint64_t zip_limit = 0xffffffffU;
// 1980-01-01, the first day a zip archive can name: equal tensors give equal files.
inline constexpr std::uint64_t zip_day = 0x21;

struct zip_member {
  std::string name;
  std::uint64_t begin, size;
  std::uint32_t crc;
};

// The fields that the local header and the directory share; the sizes go into `extra` where 32 bits do not hold them.
inline std::string zip_fields(const zip_member& m, std::string& extra, bool with_place) {
  const bool large = m.size >= zip_limit, far = with_place && m.begin >= zip_limit;
  if (large || far) {
    put_little(extra, 1, 2);
    put_little(extra, (large ? 16U : 0U) + (far ? 8U : 0U), 2);
    if (large) put_little(extra, m.size, 8);
    if (large) put_little(extra, m.size, 8);
    if (far) put_little(extra, m.begin, 8);
  }
  std::string out;
  put_little(out, large || far ? 45 : 20, 2);
  put_little(out, 0x800, 2);  // the name is UTF-8
  put_little(out, 0, 2);
  put_little(out, zip_day << 16, 4);
  put_little(out, m.crc, 4);
  put_little(out, large ? zip_limit : m.size, 4);
  put_little(out, large ? zip_limit : m.size, 4);
  put_little(out, m.name.size(), 2);
  put_little(out, extra.size(), 2);
  return out;
}

inline std::string zip_local(const zip_member& m) {
  std::string extra;
  const std::string fields = zip_fields(m, extra, false);
  return "PK\3\4" + fields + m.name + extra;
}

inline std::string zip_listed(const zip_member& m) {
  std::string extra, out = "PK\1\2";
  const std::string fields = zip_fields(m, extra, true);
  put_little(out, 3 << 8 | 45, 2);
  out += fields;
  put_little(out, 0, 2);  // comment
  put_little(out, 0, 2);  // disk
  put_little(out, 0, 2);  // attributes
  put_little(out, 0600ULL << 16 | 1ULL << 31, 4);
  put_little(out, std::min(m.begin, zip_limit), 4);
  return out + m.name + extra;
}

inline std::string zip_end(std::uint64_t count, std::uint64_t begin, std::uint64_t size) {
  std::string out;
  if (count >= 0xffff || begin >= zip_limit || size >= zip_limit) {
    out += "PK\6\6";
    put_little(out, 44, 8);
    put_little(out, 3 << 8 | 45, 2);
    put_little(out, 45, 2);
    put_little(out, 0, 8);
    put_little(out, count, 8);
    put_little(out, count, 8);
    put_little(out, size, 8);
    put_little(out, begin, 8);
    out += "PK\6\7";
    put_little(out, 0, 4);
    put_little(out, begin + size, 8);
    put_little(out, 1, 4);
  }
  out += "PK\5\6";
  put_little(out, 0, 4);
  put_little(out, std::min<std::uint64_t>(count, 0xffff), 2);
  put_little(out, std::min<std::uint64_t>(count, 0xffff), 2);
  put_little(out, std::min(size, zip_limit), 4);
  put_little(out, std::min(begin, zip_limit), 4);
  put_little(out, 0, 2);
  return out;
}

}  // namespace detail

WEFT_DECL void write_npz(const std::string& path, const std::vector<named_tensor>& tensors) {
  detail::expect_writable(path, tensors);
  for (const named_tensor& t : tensors)
    if (t.name.size() > 0xf000) fail(error_code::invalid_argument, "cannot write '" + path + "': the name of a tensor has " + std::to_string(t.name.size()) + " characters");
  file_writer out(path);
  std::vector<detail::zip_member> members;
  for (const named_tensor& t : tensors) {
    const std::string head = detail::npy_head(path, t.name, t.value);
    detail::zip_member m{t.name + ".npy", out.position(), head.size() + detail::npy_bytes(t.value), detail::crc32(0, head.data(), head.size())};
    detail::npy_elements(t.value, &m.crc, [](void* to, const void* data, std::size_t n) {
      auto& crc = *static_cast<std::uint32_t*>(to);
      crc = detail::crc32(crc, data, n);
    });
    out.write(detail::zip_local(m));
    out.write(head);
    detail::npy_elements(t.value, &out, [](void* to, const void* data, std::size_t n) { static_cast<file_writer*>(to)->write(data, n); });
    members.push_back(std::move(m));
  }
  const std::uint64_t begin = out.position();
  for (const detail::zip_member& m : members) out.write(detail::zip_listed(m));
  out.write(detail::zip_end(members.size(), begin, out.position() - begin));
  out.commit();
}

struct npz_file::directory {
  std::uint64_t count, begin, size;
};

// The record at the end of the archive, behind which there may be a comment; the one of zip64 before it, where its numbers do not fit.
WEFT_DECL npz_file::directory npz_file::find_directory() const {
  const std::size_t tail_size = static_cast<std::size_t>(std::min<std::uint64_t>(file_.size(), 22 + 0xffff + 20));
  const std::string tail = file_.text(file_.size() - tail_size, tail_size);
  std::size_t at = std::string::npos;
  for (std::size_t i = tail.size() < 22 ? 0 : tail.size() - 21; i-- > 0;)
    if (tail.compare(i, 4, "PK\5\6") == 0 && detail::get_little(&tail[i + 20], 2) == tail.size() - i - 22) {
      at = i;
      break;
    }
  if (at == std::string::npos) file_.damaged("not an .npz file: it is no zip archive, or its end is missing");
  const auto number = [&](std::size_t from, int bytes) { return detail::get_little(&tail[at + from], bytes); };
  directory out{number(10, 2), number(16, 4), number(12, 4)};
  if (number(4, 2) != 0 && number(4, 2) != 0xffff) file_.damaged("the zip archive is in several files");
  const bool wide = out.count == 0xffff || out.begin == detail::zip_limit || out.size == detail::zip_limit;
  if (wide && at >= 20 && tail.compare(at - 20, 4, "PK\6\7") == 0) {
    const std::uint64_t place = detail::get_little(&tail[at - 12], 8);
    if (place > file_.size() || file_.size() - place < 56) file_.damaged("the zip64 record is not within the file");
    const std::string record = file_.text(place, 56);
    if (record.compare(0, 4, "PK\6\6") != 0) file_.damaged("the zip64 record is not where its locator says");
    out = {detail::get_little(&record[32], 8), detail::get_little(&record[48], 8), detail::get_little(&record[40], 8)};
  }
  if (out.begin > file_.size() || out.size > file_.size() - out.begin) file_.damaged("the zip directory is not within the file");
  // A member takes 46 bytes of the directory at least.
  if (out.count > out.size / 46) file_.damaged("the zip directory claims " + std::to_string(out.count) + " members in " + std::to_string(out.size) + " bytes");
  return out;
}

// Reads the member at `at` of the directory; returns where the next one is.
WEFT_DECL std::size_t npz_file::read_member(const std::string& listing, std::size_t at, std::uint64_t members_end) {
  const auto number = [&](std::size_t from, int bytes) { return detail::get_little(&listing[at + from], bytes); };
  if (listing.size() - at < 46 || listing.compare(at, 4, "PK\1\2") != 0) file_.damaged("the zip directory is damaged");
  const std::size_t name_size = number(28, 2), extra_size = number(30, 2), comment_size = number(32, 2);
  if (listing.size() - at - 46 < name_size + extra_size + comment_size) file_.damaged("the zip directory is damaged");
  std::string name = listing.substr(at + 46, name_size);
  const std::string shown = "'" + name.substr(0, 200) + "'";
  std::uint64_t size = number(24, 4), stored = number(20, 4), begin = number(42, 4);
  for (std::size_t e = at + 46 + name_size, end = e + extra_size; end - e >= 4;) {
    const std::size_t tag = detail::get_little(&listing[e], 2), length = detail::get_little(&listing[e + 2], 2);
    if (length > end - e - 4) file_.damaged("the zip directory is damaged at " + shown);
    std::size_t field = e + 4;
    for (std::uint64_t* wide : {&size, &stored, &begin})
      if (tag == 1 && *wide == detail::zip_limit) {
        if (e + 4 + length - field < 8) file_.damaged("the zip64 field of " + shown + " is too short");
        *wide = detail::get_little(&listing[field], 8);
        field += 8;
      }
    e += 4 + length;
  }
  if ((number(8, 2) & 1U) != 0) fail(error_code::unimplemented, "'" + path_ + "': member " + shown + " is encrypted");
  if (number(10, 2) != 0)
    fail(error_code::unimplemented, "'" + path_ + "': member " + shown + " is compressed; write the file with numpy.savez instead of numpy.savez_compressed");
  if (size != stored) file_.damaged("member " + shown + " is not compressed, but has two sizes");
  if (begin > members_end || members_end - begin < 30) file_.damaged("member " + shown + " is not within the file");
  const std::string local = file_.text(begin, 30);
  if (local.compare(0, 4, "PK\3\4") != 0 || detail::get_little(&local[26], 2) != name_size) file_.damaged("member " + shown + " is not where the zip directory says");
  const std::uint64_t head = 30 + detail::get_little(&local[26], 2) + detail::get_little(&local[28], 2);
  if (head > members_end - begin || size > members_end - begin - head) file_.damaged("member " + shown + " is not within the file");
  if (file_.text(begin + 30, name_size) != name) file_.damaged("member " + shown + " has another name in the zip directory");
  if (name.size() < 5 || name.compare(name.size() - 4, 4, ".npy") != 0) file_.damaged("member " + shown + " is no .npy array");
  name.resize(name.size() - 4);
  tensor_entry entry = detail::read_npy_head(file_, std::move(name), begin + head, size);
  entry.checksum = static_cast<std::uint32_t>(number(16, 4));
  entry.file = static_cast<int>(members_.size());
  members_.emplace_back(begin + head, size);
  entries_.push_back(std::move(entry));
  return at + 46 + name_size + extra_size + comment_size;
}

WEFT_DECL npz_file::npz_file(const std::string& path) : tensor_file(path), file_(path) {
  const directory found = find_directory();
  const std::string listing = file_.text(found.begin, static_cast<std::size_t>(found.size));
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < found.count; ++i) at = read_member(listing, at, found.begin);
  index();
}

WEFT_DECL tensor_value npz_file::read(const tensor_entry& entry) const {
  const auto& [begin, size] = members_[static_cast<std::size_t>(entry.file)];
  std::uint32_t crc = 0;
  std::string piece;
  for (std::uint64_t done = 0; done < size; done += piece.size()) {
    piece = file_.text(begin + done, static_cast<std::size_t>(std::min<std::uint64_t>(size - done, 1U << 18)));
    crc = detail::crc32(crc, piece.data(), piece.size());
  }
  if (crc != entry.checksum) file_.damaged("the checksum of tensor '" + entry.name.substr(0, 200) + "' is wrong; the file is damaged");
  return detail::read_npy_elements(file_, entry);
}

}  // namespace weft
#endif

#endif
