#ifndef WEFT_CLUSTER_FRAME_HPP
#define WEFT_CLUSTER_FRAME_HPP
// Messages between tasks, the memory that they may take, and the fixed header with which each begins on the wire.
//
//   offset  bytes  header, little-endian
//        0      4  magic 'WEFT'
//        4      1  version of the protocol
//        5      1  type of the message
//        6      1  flags of the message
//        7      1  zero
//        8      4  number of tensors
//       12      4  bytes of the tensor table
//       16      4  bytes of the head
//       20      4  zero
//       24      8  bytes of the body
//
// Then come the tensor table (tensor_codec.hpp), the head, and the body: the elements of one tensor after the other.

#include <weft/cluster/fair_share.hpp>
#include <weft/cluster/wire.hpp>
#include <weft/core/config.hpp>
#include <weft/core/frame_limits.hpp>
#include <weft/fwd.hpp>
#include <weft/core/status.hpp>
#include <weft/runtime/buffer_pool.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// The version of the protocol that this header speaks.
inline constexpr std::uint8_t wire_version = 1;

/// A number of bytes that several connections share. Thread-safe.
class receive_budget {
 public:
  explicit receive_budget(std::uint64_t limit) noexcept : limit_(limit) {}
  /// At most `limit` bytes of a whole that others take from, too, who get their share of it.
  receive_budget(std::uint64_t limit, std::shared_ptr<receive_budget> whole) noexcept : limit_(std::min(limit, detail::most_of_one(whole->limit()))), whole_(std::move(whole)) {}
  receive_budget(const receive_budget&) = delete;
  receive_budget& operator=(const receive_budget&) = delete;

  /// Takes bytes if so many are left.
  bool try_take(std::uint64_t bytes) noexcept {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (whole_ == nullptr || whole_->try_take_for(used, bytes)) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  /// Returns bytes that were taken.
  void give_back(std::uint64_t bytes) noexcept {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (whole_ != nullptr) whole_->give_back(bytes);
  }
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const noexcept { return limit_; }

 private:
  // For somebody who has `own` already.
  bool try_take_for(std::uint64_t own, std::uint64_t bytes) noexcept {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (!detail::may_take(own, used, limit_, bytes)) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }

  const std::uint64_t limit_;
  const std::shared_ptr<receive_budget> whole_;
  std::atomic<std::uint64_t> used_{0};
};

/// Bytes of a budget, given back by the destructor.
class receive_lease {
 public:
  /// Holds `bytes` that the caller took from the budget.
  receive_lease(std::shared_ptr<receive_budget> budget, std::uint64_t bytes) noexcept : budget_(std::move(budget)), bytes_(bytes) {}
  receive_lease(const receive_lease&) = delete;
  receive_lease& operator=(const receive_lease&) = delete;
  ~receive_lease() { budget_->give_back(bytes_); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Holds bytes of the same budget that the caller has taken, too.
  void add(std::uint64_t bytes) noexcept { bytes_ += bytes; }

 private:
  std::shared_ptr<receive_budget> budget_;
  std::uint64_t bytes_;
};

/// One message: a control part and tensors. Copies share the tensors' elements.
struct message {
  /// What it is; the transport does not look at it.
  std::uint8_t type = 0;
  /// Marks of the type; the transport does not look at them.
  std::uint8_t flags = 0;
  /// The control part, made with `wire_writer`.
  std::string head;
  /// Values in host memory, none of them empty.
  std::vector<tensor_value> tensors;
  /// Set by the receiver: the tensors did not fit into its budget, or memory, and were thrown away. Fail the step with RESOURCE_EXHAUSTED.
  bool refused = false;
  /// Set by the receiver: the budget's bytes that the tensors take, given back when the last holder is gone. Whoever keeps the
  /// tensors waiting keeps this too; whoever has used them drops it.
  std::shared_ptr<const receive_lease> lease = nullptr;
};

/// Bytes that all connections with the same options have received and sent.
struct traffic_counters {
  std::atomic<std::uint64_t> received{0}, sent{0};
  /// Messages whose tensors did not fit.
  std::atomic<std::uint64_t> refused{0};
};

/// How a connection behaves.
struct connection_options {
  frame_limits limits;
  /// Limits of the first message, which comes from somebody unknown and has no tensors: bytes of its head. Zero: the same as of any other.
  std::uint32_t max_first_head = 0;
  /// Bytes of received tensors that may be held at once by all connections with this budget; none means no limit.
  std::shared_ptr<receive_budget> budget = nullptr;
  /// The most of the budget that one connection may take, which then leaves some for others; by default it may take all.
  std::uint64_t budget_share = UINT64_MAX;
  /// Where its bytes are counted, if anywhere.
  std::shared_ptr<traffic_counters> traffic = nullptr;
  /// Where large tensors are received; copies of the options share it. Plain host memory when null.
  std::shared_ptr<weft::memory> memory = std::make_shared<buffer_pool>();
  /// What secures the connection; it is plain when null.
  std::shared_ptr<const transport_security> transport = nullptr;
  /// How long a thread that waits at a blocking connection looks for bytes before it sleeps. Zero: it sleeps at once.
  std::chrono::microseconds spin_time{0};
  /// The longest pause inside a frame that has begun to arrive; past it the connection is closed with DEADLINE_EXCEEDED. Zero: none.
  std::chrono::milliseconds frame_timeout{30000};
  /// Bytes of a frame that have to come within each `frame_timeout`, unless its end comes; with fewer the connection is closed with DEADLINE_EXCEEDED.
  /// Zero: one is enough.
  std::uint64_t frame_pace = std::uint64_t{256} << 10;
  /// How long after its start a connection may take to deliver its first whole message. Zero: for ever.
  std::chrono::milliseconds first_message_timeout{0};
};

/// The fixed part of a frame.
struct frame_header {
  static constexpr std::size_t size = 32;
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t tensors = 0;
  std::uint32_t table_bytes = 0;
  std::uint32_t head_bytes = 0;
  std::uint64_t body_bytes = 0;
};

/// Bytes of a tensor's entry in the table, without its dimensions: dtype, rank, two zeros, bytes in the body.
inline constexpr std::size_t tensor_entry_bytes = 12;

/// Writes `frame_header::size` bytes.
void encode_header(const frame_header& header, char* to) noexcept;

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void encode_header(const frame_header& header, char* to) noexcept {
  std::memset(to, 0, frame_header::size);
  std::memcpy(to, "WEFT", 4);
  to[4] = static_cast<char>(wire_version);
  to[5] = static_cast<char>(header.type);
  to[6] = static_cast<char>(header.flags);
  detail::store_little_endian(header.tensors, to + 8);
  detail::store_little_endian(header.table_bytes, to + 12);
  detail::store_little_endian(header.head_bytes, to + 16);
  detail::store_little_endian(header.body_bytes, to + 24);
}

#endif

namespace detail {

// Bytes for an error message, `47 45 54 20`.
std::string hex_bytes(std::string_view bytes);

// An incarnation as people see it.
inline std::string hex(std::uint64_t number) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(number >> shift) & 15U];
  return out;
}

inline void check_limit(std::uint64_t found, std::uint64_t most, const char* what, const char* option) {
  if (found > most)
    fail(error_code::resource_exhausted, std::string("frame with ") + std::to_string(found) + " " + what + ", at most " +
                                             std::to_string(most) + " are accepted (frame_limits::" + option + ")");
}

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::string hex_bytes(std::string_view bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string out;
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!out.empty()) out += ' ';
    out += digits[byte >> 4];
    out += digits[byte & 15U];
  }
  return out;
}

#endif

}  // namespace detail

/// Reads and checks `frame_header::size` bytes. Throws INVALID_ARGUMENT (no weft frame, lengths that contradict each other),
/// UNIMPLEMENTED (another version) or RESOURCE_EXHAUSTED (past a limit).
frame_header decode_header(const char* from, const frame_limits& limits);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL frame_header decode_header(const char* from, const frame_limits& limits) {
  // 1. Is this ours?
  const bool tls = (from[0] == 0x15 || from[0] == 0x16) && from[1] == 0x03;
  if (std::memcmp(from, "WEFT", 4) != 0)
    fail(error_code::invalid_argument, "not a weft frame: expected 'WEFT' (57 45 46 54), found " + detail::hex_bytes({from, 4}) +
                                           (tls ? ", which is TLS: the other end has a secured transport and this one has none (server_options::transport, session_options::transport)" : ""));
  const auto version = static_cast<std::uint8_t>(from[4]);
  if (version != wire_version)
    fail(error_code::unimplemented, "frame of protocol version " + std::to_string(version) + ", this program speaks version " + std::to_string(wire_version));
  if (from[7] != 0 || detail::load_little_endian<std::uint32_t>(from + 20) != 0)
    fail(error_code::invalid_argument, "frame header with reserved bytes that are not zero: " + detail::hex_bytes({from, frame_header::size}));

  // 2. The numbers, each within its limit.
  frame_header header;
  header.type = static_cast<std::uint8_t>(from[5]);
  header.flags = static_cast<std::uint8_t>(from[6]);
  header.tensors = detail::load_little_endian<std::uint32_t>(from + 8);
  header.table_bytes = detail::load_little_endian<std::uint32_t>(from + 12);
  header.head_bytes = detail::load_little_endian<std::uint32_t>(from + 16);
  header.body_bytes = detail::load_little_endian<std::uint64_t>(from + 24);
  detail::check_limit(header.tensors, limits.max_tensors, "tensors", "max_tensors");
  detail::check_limit(header.head_bytes, limits.max_head, "bytes of head", "max_head");
  detail::check_limit(header.body_bytes, limits.max_body, "bytes of body", "max_body");

  // 3. The table has room for every tensor and no more; without tensors there is no body.
  const std::uint64_t least = std::uint64_t{header.tensors} * tensor_entry_bytes;
  const std::uint64_t most = least + std::uint64_t{header.tensors} * limits.max_rank * 8;
  if (header.table_bytes < least || header.table_bytes > most)
    fail(error_code::invalid_argument, "frame with a table of " + std::to_string(header.table_bytes) + " bytes for " + std::to_string(header.tensors) +
                                           " tensors of at most " + std::to_string(limits.max_rank) + " dimensions, expected " + std::to_string(least) + " to " + std::to_string(most));
  if (header.tensors == 0 && header.body_bytes != 0)
    fail(error_code::invalid_argument, "frame with a body of " + std::to_string(header.body_bytes) + " bytes and no tensor");
  return header;
}

#endif

}  // namespace weft

#endif
