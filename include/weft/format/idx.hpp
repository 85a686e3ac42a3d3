#ifndef WEFT_FORMAT_IDX_HPP
#define WEFT_FORMAT_IDX_HPP
// The IDX format of the MNIST family of data sets: one array, big-endian.

#include <weft/core/config.hpp>
#include <weft/format/tensor_file.hpp>

#include <string>

namespace weft {

/// The array in this file: uint8 (as images and labels are), int8, int16, int32, float or double. Throws NOT_FOUND, DATA_LOSS with the file and the fault, UNIMPLEMENTED for a file that is still compressed.
tensor_value read_idx(const std::string& path);

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
namespace weft {

WEFT_DECL tensor_value read_idx(const std::string& path) {
  const file_reader file(path);
  const auto number = [&file](std::uint64_t at) {
    const std::string bytes = file.text(at, 4);
    std::uint32_t out = 0;
    for (const char c : bytes) out = out << 8 | static_cast<unsigned char>(c);
    return out;
  };
  if (file.size() < 4) file.damaged("not an IDX file: it has " + std::to_string(file.size()) + " bytes");
  const std::uint32_t magic = number(0);
  if (magic >> 16 == 0x1f8b) fail(error_code::unimplemented, "'" + path + "' is compressed; run gunzip on it first");
  constexpr std::pair<std::uint32_t, dtype> types[] = {{0x08, dtype::uint8}, {0x09, dtype::int8}, {0x0b, dtype::int16}, {0x0c, dtype::int32}, {0x0d, dtype::float32}, {0x0e, dtype::float64}};
  tensor_entry entry;
  for (const auto& [code, type] : types)
    if (magic >> 8 == code) entry.dtype = type;
  if (entry.dtype == dtype::invalid) file.damaged("not an IDX file: it begins with " + std::to_string(magic) + ", expected 0x00000800 and the like");
  const std::uint64_t rank = magic & 0xffU;
  if (rank > static_cast<std::uint64_t>(max_rank)) file.damaged("it has " + std::to_string(rank) + " dimensions, at most " + std::to_string(max_rank) + " are allowed");
  std::vector<std::int64_t> sizes;
  for (std::uint64_t i = 0; i < rank; ++i) sizes.push_back(number(4 + 4 * i));
  const auto n = checked_elements(sizes.data(), sizes.size());
  const std::uint64_t found = file.size() - 4 - 4 * rank;
  if (!n || static_cast<std::uint64_t>(*n) > static_cast<std::uint64_t>(INT64_MAX) / 8 || static_cast<std::uint64_t>(*n) * size_of(entry.dtype) != found)
    file.damaged("an array of " + std::string(to_text(entry.dtype)) + shape(sizes).text() + " does not fit the " + std::to_string(found) + " bytes behind the header");
  entry.shape = shape(sizes);
  entry.position = 4 + 4 * rank;
  entry.bytes = found;
  tensor_value out = detail::read_plain(file, entry);
  if (size_of(entry.dtype) > 1) detail::swap_bytes(out.mutable_raw_data(), static_cast<std::size_t>(*n), size_of(entry.dtype));
  return out;
}

}  // namespace weft
#endif

#endif
