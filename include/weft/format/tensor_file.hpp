#ifndef WEFT_FORMAT_TENSOR_FILE_HPP
#define WEFT_FORMAT_TENSOR_FILE_HPP
// Files of named tensors, whatever their format: what is in one, and its values one at a time. `open_tensor_file` (checkpoint.hpp) finds out the format.

#include <weft/core/config.hpp>
#include <weft/format/file_access.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A value and its name, for writers. The value's elements are shared, not copied.
struct named_tensor {
  std::string name;
  tensor_value value;
};

/// What a file says about one of its tensors.
struct tensor_entry {
  std::string name;
  weft::dtype dtype = weft::dtype::invalid;
  weft::shape shape;
  /// Where its bytes are, and in which file of several.
  std::uint64_t position = 0, bytes = 0;
  int file = 0;
  /// What the format needs besides: a checksum, the way elements are written.
  std::uint32_t checksum = 0, layout = 0;
};

/// An open file of named tensors. Reading is thread-safe.
class tensor_file {
 public:
  virtual ~tensor_file() = default;
  tensor_file(const tensor_file&) = delete;
  tensor_file& operator=(const tensor_file&) = delete;

  /// The file's name, for messages.
  const std::string& path() const noexcept { return path_; }
  /// What is in it, sorted by name; names are unique.
  const std::vector<tensor_entry>& entries() const noexcept { return entries_; }
  /// The tensor of this name, or nullptr.
  const tensor_entry* find(std::string_view name) const noexcept;
  /// The value of one of its entries. Throws DATA_LOSS, RESOURCE_EXHAUSTED, UNIMPLEMENTED.
  virtual tensor_value read(const tensor_entry& entry) const = 0;
  /// The value of this name. Throws NOT_FOUND.
  tensor_value read(std::string_view name) const;

 protected:
  explicit tensor_file(std::string path) : path_(std::move(path)) {}
  // Sorts the entries. Throws DATA_LOSS where two have one name.
  void index();
  std::string path_;
  std::vector<tensor_entry> entries_;
};

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <cstring>

namespace weft {

namespace detail {

// Turns the bytes of numbers of `size` bytes around.
inline void swap_bytes(std::byte* data, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

// How many bytes a value takes in a file; fails for what no memory holds.
inline std::uint64_t plain_bytes(const file_reader& file, const std::string& name, dtype type, const std::int64_t* sizes, std::size_t rank) {
  const auto n = checked_elements(sizes, rank);
  if (rank > static_cast<std::size_t>(max_rank)) file.damaged("tensor '" + name.substr(0, 200) + "' has " + std::to_string(rank) + " dimensions, at most " + std::to_string(max_rank) + " are allowed");
  if (!n || static_cast<std::uint64_t>(*n) > static_cast<std::uint64_t>(INT64_MAX) / size_of(type))
    file.damaged("tensor '" + name.substr(0, 200) + "' has a shape with more elements than memory can address");
  return static_cast<std::uint64_t>(*n) * size_of(type);
}

// Any byte but 0 is true.
inline void normalize_bools(tensor_value& v) {
  if (v.dtype() != dtype::boolean) return;
  std::byte* data = v.mutable_raw_data();
  for (std::int64_t i = 0; i < v.elements(); ++i) data[i] = data[i] == std::byte{0} ? std::byte{0} : std::byte{1};
}

// A value as it lies in the file, little-endian.
inline tensor_value read_plain(const file_reader& file, const tensor_entry& entry) {
  tensor_value out(entry.dtype, entry.shape);
  if (entry.bytes > 0) file.read(entry.position, out.mutable_raw_data(), static_cast<std::size_t>(entry.bytes));
  normalize_bools(out);
  return out;
}

inline std::string unique_names_fault(const std::vector<named_tensor>& tensors) {
  std::vector<const std::string*> names;
  for (const named_tensor& t : tensors) names.push_back(&t.name);
  std::sort(names.begin(), names.end(), [](const std::string* a, const std::string* b) { return *a < *b; });
  for (std::size_t i = 1; i < names.size(); ++i)
    if (*names[i] == *names[i - 1]) return *names[i];
  return "";
}

// Refuses what no format can hold.
inline void expect_writable(const std::string& path, const std::vector<named_tensor>& tensors) {
  for (const named_tensor& t : tensors) {
    if (t.name.empty()) fail(error_code::invalid_argument, "cannot write '" + path + "': a tensor has no name");
    if (t.value.empty()) fail(error_code::invalid_argument, "cannot write '" + path + "': tensor '" + t.name + "' has no value");
  }
  if (const std::string twice = unique_names_fault(tensors); !twice.empty()) fail(error_code::invalid_argument, "cannot write '" + path + "': there are two tensors '" + twice + "'");
}

}  // namespace detail

WEFT_DECL void tensor_file::index() {
  std::sort(entries_.begin(), entries_.end(), [](const tensor_entry& a, const tensor_entry& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].name == entries_[i - 1].name) fail(error_code::data_loss, "'" + path_ + "': there are two tensors '" + entries_[i].name.substr(0, 200) + "'");
}

WEFT_DECL const tensor_entry* tensor_file::find(std::string_view name) const noexcept {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, [](const tensor_entry& e, std::string_view n) { return e.name < n; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

WEFT_DECL tensor_value tensor_file::read(std::string_view name) const {
  const tensor_entry* entry = find(name);
  if (entry == nullptr) fail(error_code::not_found, "'" + path_ + "' has no tensor '" + std::string(name) + "'");
  return read(*entry);
}

}  // namespace weft
#endif

#endif
