#ifndef WEFT_CLUSTER_SEND_GAUGE_HPP
#define WEFT_CLUSTER_SEND_GAUGE_HPP
// How much waits to be sent on a connection, and whether reading has to wait for it.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::detail {

/// Thread-safe, but for what is said to be the reader's.
class send_gauge {
 public:
  std::size_t bytes() const noexcept { return bytes_.load(); }
  /// The same with what the messages take beside their bytes.
  std::size_t pending() const noexcept { return bytes_.load() + around * messages_.load(); }
  void add(std::uint64_t bytes) noexcept { bytes_.fetch_add(static_cast<std::size_t>(bytes)); }
  /// Bytes have gone. True when the reader waits and should see whether it still has to.
  bool take(std::uint64_t bytes) noexcept {
    bytes_.fetch_sub(static_cast<std::size_t>(bytes));
    return paused();
  }
  /// The messages that wait; each costs memory beside its bytes.
  void set_messages(std::size_t count) noexcept { messages_.store(count); }
  void clear() noexcept {
    bytes_.store(0);
    messages_.store(0);
  }

  /// For the reader: from now on it has to wait above so many bytes.
  void limit(std::size_t bytes) noexcept { limit_ = bytes < least ? least : bytes; }
  /// For the reader: whether it has to wait, until `release` says that half of the bytes are gone.
  bool hold() noexcept {
    if (limit_ == SIZE_MAX || pending() <= limit_) return false;
    paused_.store(true);
    return !release();  // some may have gone in the meantime
  }
  /// For the reader that waits: whether it may go on.
  bool release() noexcept {
    if (!paused() || pending() > limit_ / 2) return false;
    paused_.store(false);
    return true;
  }
  bool paused() const noexcept { return paused_.load(); }

 private:
  static constexpr std::size_t around = 512, least = 4096;

  std::atomic<std::size_t> bytes_{0}, messages_{0};
  std::atomic<bool> paused_{false};
  std::size_t limit_ = SIZE_MAX;
};

}  // namespace weft::detail

#endif
