#ifndef WEFT_CLUSTER_FRAME_READER_HPP
#define WEFT_CLUSTER_FRAME_READER_HPP
// Bytes on their way in: where to put them, and the messages they make up. Plain elements go straight to their tensors. No sockets.

#include <weft/cluster/frame.hpp>
#include <weft/cluster/tensor_codec.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/uio.h>

namespace weft {

/// Puts frames together. Memory for a tensor is reserved, not touched, when its checked size is known; memory for head and table grows with what
/// has arrived. The budget pays for what has arrived, not for what was claimed: whoever claims much and sends little takes little from others.
class frame_reader {
 public:
  /// The most pieces that `space` names.
  static constexpr std::size_t max_parts = 16;
  /// Bytes of the buffer through which small frames come.
  static constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

  explicit frame_reader(const connection_options& options);

  /// Where the next bytes go, in order: at most `max_parts` pieces, at least one byte. Only after `next` has returned false.
  std::size_t space(iovec* parts) noexcept;
  /// `bytes` were put there.
  void filled(std::size_t bytes) noexcept;
  /// The next whole message, if there is one. Throws what `decode_header` throws, or INVALID_ARGUMENT for a bad tensor; nothing can be read
  /// afterwards.
  bool next(message& into);
  /// Whether a frame has begun that is not whole.
  bool inside_frame() const noexcept { return phase_ != phase::header || begin_ != end_; }

 private:
  enum class phase : std::uint8_t { header, table, head, body };

  std::size_t buffered() const noexcept { return end_ - begin_; }
  frame_limits limits() const noexcept;
  std::uint64_t head_and_table() const noexcept { return std::uint64_t{header_.head_bytes} + header_.table_bytes; }
  [[noreturn]] void fail_for_head(std::uint64_t bytes) const;
  bool read_header();
  bool collect(std::string& into, std::size_t bytes);
  void pay_for_head();
  void begin_body();
  void make_tensors();
  bool take(std::uint64_t bytes);
  bool pay(std::uint64_t arrived, std::uint64_t of);
  void refuse() noexcept;
  bool read_body();
  bool fill_tensors();
  void pass(std::size_t bytes) noexcept;
  void finish_objects();
  void finish(message& into);

  const frame_limits limits_;
  // Not zero before the first message.
  std::uint32_t max_first_head_;
  std::shared_ptr<receive_budget> budget_;
  std::shared_ptr<traffic_counters> traffic_;
  std::shared_ptr<weft::memory> memory_;
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  // How much is read before it is known what it is: little where large tensors come, which would be copied; more where small frames follow
  // each other.
  static constexpr std::size_t least_ahead = 4096;
  std::size_t ahead_ = least_ahead;

  phase phase_ = phase::header;
  frame_header header_;
  std::string table_;
  message message_;
  // The message's, while it may still grow, and how much of the head and table, later of the body, it has paid for.
  std::shared_ptr<receive_lease> lease_;
  std::uint64_t paid_ = 0;
  // Tensors of objects: their number and what they will be; until the body is there, raw bytes stand in their place.
  std::vector<std::pair<std::size_t, detail::tensor_entry>> objects_;
  // The tensor that is being filled, and how far; the bytes of the body that have come; those of a refused one that are still to come.
  std::size_t tensor_ = 0, offset_ = 0;
  std::uint64_t arrived_ = 0, discard_ = 0;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL frame_reader::frame_reader(const connection_options& options)
    : limits_(options.limits), max_first_head_(options.max_first_head), budget_(options.budget), traffic_(options.traffic), memory_(options.memory), buffer_(new char[buffer_bytes]) {
  if (budget_ != nullptr && options.budget_share != UINT64_MAX) budget_ = std::make_shared<receive_budget>(options.budget_share, budget_);
}

// What is accepted now: before the first message, of somebody who is not known yet, little.
WEFT_DECL frame_limits frame_reader::limits() const noexcept {
  frame_limits out = limits_;
  if (max_first_head_ == 0) return out;
  out.max_head = std::min(out.max_head, max_first_head_);
  out.max_body = out.max_tensors = 0;
  return out;
}

WEFT_DECL std::size_t frame_reader::space(iovec* parts) noexcept {
  // 1. A body that is not in the buffer goes to its tensors, in pieces that do not hold up other connections.
  std::size_t count = 0, most = std::size_t{2} << 20;
  if (phase_ == phase::body && discard_ == 0) {
    std::size_t offset = offset_;
    for (std::size_t i = tensor_; i < message_.tensors.size(); ++i, offset = 0) {
      tensor_value& tensor = message_.tensors[i];
      const std::size_t left = tensor.bytes() - offset;
      if (left == 0) continue;
      if (count == max_parts - 1 || most == 0) return count;
      parts[count] = {static_cast<char*>(tensor.buffer()->data()) + offset, std::min(left, most)};
      most -= parts[count].iov_len;
      if (parts[count++].iov_len < left) return count;
    }
  }
  // 2. What follows goes to the buffer, which holds less than a header now.
  if (begin_ != 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  parts[count++] = {buffer_.get() + end_, std::min(buffer_bytes - end_, ahead_)};
  return count;
}

WEFT_DECL void frame_reader::filled(std::size_t bytes) noexcept {
  if (phase_ == phase::body && discard_ == 0) {
    while (tensor_ < message_.tensors.size() && bytes > 0) {
      const std::size_t step = std::min(bytes, message_.tensors[tensor_].bytes() - offset_);
      pass(step);
      bytes -= step;
    }
  }
  end_ += bytes;
  if (bytes >= ahead_) ahead_ = std::min(2 * ahead_, buffer_bytes);
}

WEFT_DECL bool frame_reader::next(message& into) {
  for (;;) {
    switch (phase_) {
      case phase::header:
        if (!read_header()) return false;
        phase_ = phase::table;
        break;
      case phase::table:
        if (!collect(table_, header_.table_bytes)) return false;
        phase_ = phase::head;
        break;
      case phase::head:
        if (!collect(message_.head, header_.head_bytes)) return false;
        begin_body();
        phase_ = phase::body;
        break;
      case phase::body:
        if (!read_body()) return false;
        finish(into);
        phase_ = phase::header;
        return true;
    }
  }
}

// Something that is no frame is known by its first bytes, so that it need not be 32 bytes long.
WEFT_DECL bool frame_reader::read_header() {
  const char* at = buffer_.get() + begin_;
  if (buffered() < frame_header::size) {
    char padded[frame_header::size] = {};
    encode_header(frame_header(), padded);
    std::memcpy(padded, at, std::min<std::size_t>(buffered(), 5));
    if (buffered() > 0) static_cast<void>(decode_header(padded, limits_));
    return false;
  }
  header_ = decode_header(at, limits());
  paid_ = 0;
  if (const std::uint64_t bytes = head_and_table(); budget_ != nullptr && bytes > buffer_bytes && bytes > budget_->limit()) fail_for_head(bytes);
  begin_ += frame_header::size;
  message_.type = header_.type;
  message_.flags = header_.flags;
  message_.refused = false;
  return true;
}

// Without head and table nobody could be told that the message does not fit, so the connection ends.
WEFT_DECL void frame_reader::fail_for_head(std::uint64_t bytes) const {
  fail(error_code::resource_exhausted, "frame with " + std::to_string(bytes) + " bytes of head and table does not fit: " + std::to_string(budget_->used()) + " bytes are received and not used yet, at most " +
                                           std::to_string(budget_->limit()) + " may be (received_bytes and received_bytes_per_peer in the options)");
}

// The budget pays for heads and tables too, unless they are small.
WEFT_DECL void frame_reader::pay_for_head() {
  const std::uint64_t bytes = head_and_table();
  if (bytes > buffer_bytes && !pay(table_.size() + message_.head.size(), bytes)) fail_for_head(bytes);
}

// Takes from the budget what has arrived of so many bytes, and a little more, so that it need not be asked for each piece. False when it does not have that.
WEFT_DECL bool frame_reader::pay(std::uint64_t arrived, std::uint64_t of) {
  if (budget_ == nullptr || arrived <= paid_) return true;
  const std::uint64_t due = std::min(of, (arrived + buffer_bytes - 1) / buffer_bytes * buffer_bytes);
  if (!take(due - paid_)) return false;
  paid_ = due;
  return true;
}

// Takes bytes from the budget, for as long as anybody holds the message's lease.
WEFT_DECL bool frame_reader::take(std::uint64_t bytes) {
  if (lease_ == nullptr) message_.lease = lease_ = std::make_shared<receive_lease>(budget_, 0);
  if (!budget_->try_take(bytes)) return false;
  lease_->add(bytes);
  return true;
}

// Moves bytes from the buffer until `into` has so many. Capacity grows with what is there, whatever was claimed.
WEFT_DECL bool frame_reader::collect(std::string& into, std::size_t bytes) {
  const std::size_t step = std::min(buffered(), bytes - into.size());
  into.append(buffer_.get() + begin_, step);
  begin_ += step;
  pay_for_head();
  return into.size() == bytes;
}

WEFT_DECL void frame_reader::begin_body() {
  tensor_ = offset_ = 0;
  arrived_ = paid_ = 0;
  if (header_.body_bytes > buffer_bytes) ahead_ = least_ahead;
  // 1. Check the whole table before anything is taken.
  std::uint64_t memory = 0;
  detail::tensor_entry entry;
  for (detail::tensor_table_reader table(table_, header_, limits_); table.next(entry);) memory += detail::memory_bytes(entry);
  if (header_.tensors == 0) return;
  // 2. Take the budget for what is around the elements, then the memory; a body for which there is none, or that can never fit, is read and thrown away.
  if (budget_ != nullptr && (memory > budget_->limit() || !take(memory - header_.body_bytes))) return refuse();
  try {
    make_tensors();
  } catch (const error& e) {
    if (e.code() != error_code::resource_exhausted) throw;
    refuse();
  } catch (const std::bad_alloc&) {
    refuse();
  }
}

WEFT_DECL void frame_reader::make_tensors() {
  message_.tensors.reserve(header_.tensors);
  detail::tensor_entry entry;
  for (detail::tensor_table_reader table(table_, header_, limits_); table.next(entry);) {
    if (is_plain(entry.dtype)) {
      const bool large = entry.bytes >= buffer_pool::smallest;
      message_.tensors.emplace_back(entry.dtype, std::move(entry.shape), large ? memory_ : nullptr);
    } else {
      objects_.emplace_back(message_.tensors.size(), entry);
      message_.tensors.emplace_back(dtype::uint8, weft::shape{static_cast<std::int64_t>(entry.bytes)});
    }
  }
}

WEFT_DECL void frame_reader::refuse() noexcept {
  message_.tensors.clear();
  message_.lease.reset();
  lease_.reset();
  message_.refused = true;
  objects_.clear();
  discard_ = header_.body_bytes - arrived_;
}

WEFT_DECL bool frame_reader::read_body() {
  bool whole = false;
  if (discard_ == 0) {
    whole = fill_tensors();
    if (!pay(arrived_, header_.body_bytes)) refuse();
  }
  if (discard_ == 0) return whole || message_.refused;
  const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(buffered(), discard_));
  begin_ += step;
  discard_ -= step;
  return discard_ == 0;
}

WEFT_DECL bool frame_reader::fill_tensors() {
  while (tensor_ < message_.tensors.size()) {
    tensor_value& tensor = message_.tensors[tensor_];
    const std::size_t step = std::min(buffered(), tensor.bytes() - offset_);
    if (step != 0) std::memcpy(static_cast<char*>(tensor.buffer()->data()) + offset_, buffer_.get() + begin_, step);
    begin_ += step;
    const std::size_t before = tensor_;
    pass(step);
    if (tensor_ == before) return false;
  }
  return true;
}

// Counts bytes of the current tensor, and goes to the next behind its last one.
WEFT_DECL void frame_reader::pass(std::size_t bytes) noexcept {
  offset_ += bytes;
  arrived_ += bytes;
  if (offset_ < message_.tensors[tensor_].bytes()) return;
  offset_ = 0;
  ++tensor_;
}

WEFT_DECL void frame_reader::finish_objects() {
  for (const auto& [index, entry] : objects_) {
    const tensor_value& raw = message_.tensors[index];
    message_.tensors[index] = detail::decode_objects(entry, {reinterpret_cast<const char*>(raw.raw_data()), raw.bytes()});
  }
  objects_.clear();
}

WEFT_DECL void frame_reader::finish(message& into) {
  try {
    finish_objects();
  } catch (const error& e) {
    if (e.code() != error_code::resource_exhausted) throw;
    refuse();
  } catch (const std::bad_alloc&) {
    refuse();
  }
  discard_ = 0;
  max_first_head_ = 0;
  lease_.reset();
  if (message_.refused && traffic_ != nullptr) traffic_->refused.fetch_add(1, std::memory_order_relaxed);
  table_.clear();
  if (table_.capacity() > buffer_bytes) table_.shrink_to_fit();
  into = std::move(message_);
  message_.head.clear();
  message_.tensors.clear();
}

#endif

}  // namespace weft

#endif
