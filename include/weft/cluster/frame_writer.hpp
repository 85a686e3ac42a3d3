#ifndef WEFT_CLUSTER_FRAME_WRITER_HPP
#define WEFT_CLUSTER_FRAME_WRITER_HPP
// A message on its way out: the pieces of memory that make up its frame, and how far they have been written. No sockets.

#include <weft/cluster/frame.hpp>
#include <weft/cluster/tensor_codec.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sys/uio.h>

namespace weft {

/// The frame of one message. Holds the message's tensors; their elements are copied only into the smallest frames (and encoded, if they
/// are strings or handles).
class frame_writer {
 public:
  /// Throws INVALID_ARGUMENT for an empty value or one that no receiver accepts, RESOURCE_EXHAUSTED past the limits.
  frame_writer(message m, const frame_limits& limits);

  /// Bytes not written yet.
  std::uint64_t remaining() const noexcept { return remaining_; }
  /// The next pieces, at most `most_parts` with at most `most_bytes`; returns how many.
  std::size_t gather(iovec* parts, std::size_t most_parts, std::size_t most_bytes) const noexcept;
  /// `bytes` more of the pieces have been written.
  void advance(std::size_t bytes) noexcept;

 private:
  // A frame of at most so many bytes is one piece: copying them costs less than telling the system about several pieces.
  static constexpr std::uint64_t small_frame = 2048;
  // The pieces in order: header and table, head, tensors.
  std::size_t pieces() const noexcept { return is_small_ ? 1 : 2 + message_.tensors.size(); }
  void join_pieces();
  iovec piece(std::size_t i) const noexcept;
  std::uint64_t encode_tensor(wire_writer& prefix, std::size_t i, const frame_limits& limits);

  message message_;
  std::string prefix_;
  // The encoded elements of strings and handles, by the tensor's number; no entry behind the last such tensor.
  std::vector<std::string> objects_;
  std::size_t piece_ = 0, offset_ = 0;
  std::uint64_t remaining_ = 0;
  bool is_small_ = false;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL frame_writer::frame_writer(message m, const frame_limits& limits) : message_(std::move(m)) {
  detail::check_limit(message_.head.size(), limits.max_head, "bytes of head", "max_head");
  detail::check_limit(message_.tensors.size(), limits.max_tensors, "tensors", "max_tensors");
  constexpr char header_place[frame_header::size] = {};
  wire_writer prefix;
  prefix.reserve(frame_header::size + message_.tensors.size() * (tensor_entry_bytes + 4 * 8));
  prefix.raw({header_place, frame_header::size});
  frame_header header;
  header.type = message_.type;
  header.flags = message_.flags;
  header.tensors = static_cast<std::uint32_t>(message_.tensors.size());
  header.head_bytes = static_cast<std::uint32_t>(message_.head.size());
  for (std::size_t i = 0; i < message_.tensors.size(); ++i) header.body_bytes += encode_tensor(prefix, i, limits);
  detail::check_limit(header.body_bytes, limits.max_body, "bytes of body", "max_body");
  detail::check_limit(prefix.size(), UINT32_MAX, "bytes of tensor table", "max_tensors");
  header.table_bytes = static_cast<std::uint32_t>(prefix.size() - frame_header::size);
  prefix_ = prefix.take();
  encode_header(header, prefix_.data());
  remaining_ = prefix_.size() + message_.head.size() + header.body_bytes;
  if (remaining_ <= small_frame) join_pieces();
}

WEFT_DECL void frame_writer::join_pieces() {
  prefix_.reserve(static_cast<std::size_t>(remaining_));
  for (std::size_t i = 1; i < pieces(); ++i) {
    const iovec part = piece(i);
    if (part.iov_len > 0) prefix_.append(static_cast<const char*>(part.iov_base), part.iov_len);
  }
  is_small_ = true;
  message_.tensors.clear();
}

WEFT_DECL std::uint64_t frame_writer::encode_tensor(wire_writer& prefix, std::size_t i, const frame_limits& limits) {
  const tensor_value& value = message_.tensors[i];
  if (detail::least_element_bytes(value.dtype()) == 0)
    fail(error_code::invalid_argument, "tensor " + std::to_string(i) + " of a message has dtype " + to_text(value.dtype()) + " and cannot be sent");
  std::uint64_t bytes = value.bytes();
  if (is_plain(value.dtype())) {
    if (bytes != 0) static_cast<void>(value.raw_data());  // refuses memory that the host cannot read
  } else {
    objects_.resize(i + 1);
    objects_[i] = detail::encode_objects(value);
    bytes = objects_[i].size();
  }
  detail::encode_entry(prefix, value, bytes, limits);
  return bytes;
}

WEFT_DECL iovec frame_writer::piece(std::size_t i) const noexcept {
  const auto part = [](const void* data, std::size_t bytes) { return iovec{const_cast<void*>(data), bytes}; };
  if (i == 0) return part(prefix_.data(), prefix_.size());
  if (i == 1) return part(message_.head.data(), message_.head.size());
  const tensor_value& value = message_.tensors[i - 2];
  if (!is_plain(value.dtype())) return part(objects_[i - 2].data(), objects_[i - 2].size());
  return value.buffer() ? part(value.buffer()->data(), value.bytes()) : part(nullptr, 0);
}

WEFT_DECL std::size_t frame_writer::gather(iovec* parts, std::size_t most_parts, std::size_t most_bytes) const noexcept {
  std::size_t count = 0, offset = offset_;
  for (std::size_t i = piece_; i < pieces() && count < most_parts && most_bytes > 0; ++i, offset = 0) {
    const iovec whole = piece(i);
    if (whole.iov_len == offset) continue;
    parts[count] = {static_cast<char*>(whole.iov_base) + offset, std::min(whole.iov_len - offset, most_bytes)};
    most_bytes -= parts[count++].iov_len;
  }
  return count;
}

WEFT_DECL void frame_writer::advance(std::size_t bytes) noexcept {
  remaining_ -= bytes;
  while (piece_ < pieces()) {
    const std::size_t left = piece(piece_).iov_len - offset_;
    if (bytes < left) break;
    bytes -= left;
    offset_ = 0;
    ++piece_;
  }
  offset_ += bytes;
}

#endif

}  // namespace weft

#endif
