#ifndef WEFT_CLUSTER_RECEIVE_POOL_HPP
#define WEFT_CLUSTER_RECEIVE_POOL_HPP
// Host memory that keeps the storage of large tensors for the next ones: fresh pages from the system cost as much as receiving into them.

#include <weft/tensor/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

namespace weft {

/// A source of host memory that keeps up to `limit` bytes of what comes back, and gives them out again for about the same size.
/// Memory that was never given out is not touched. Thread-safe.
class receive_pool final : public memory {
 public:
  /// Blocks smaller than this are not worth keeping; plain memory serves them well.
  static constexpr std::size_t least_bytes = std::size_t{64} << 10;

  explicit receive_pool(std::size_t limit = std::size_t{256} << 20) noexcept : limit_(limit) {}
  receive_pool(const receive_pool&) = delete;
  receive_pool& operator=(const receive_pool&) = delete;
  ~receive_pool() override { drop_oldest(0); }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* data, std::size_t bytes) noexcept override;
  bool host() const noexcept override { return true; }
  std::string_view name() const noexcept override { return "host"; }
  /// Bytes that are kept for later.
  std::size_t kept_bytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kept_bytes_;
  }

 private:
  // Stands in front of the storage, in its alignment.
  struct alignas(64) block {
    std::size_t bytes;
  };
  void drop_oldest(std::size_t limit) noexcept;

  const std::size_t limit_;
  mutable std::mutex mutex_;
  // Under the mutex: blocks that came back, the oldest first.
  std::vector<block*> kept_;
  std::size_t kept_bytes_ = 0;
};

inline void* receive_pool::allocate(std::size_t bytes) {
  // 1. The latest block that is large enough and not by far too large.
  if (bytes >= least_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = kept_.size(); i-- > 0;) {
      block* found = kept_[i];
      if (found->bytes < bytes || found->bytes - bytes > bytes / 4) continue;
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
      kept_bytes_ -= found->bytes;
      return found + 1;
    }
  }
  // 2. A new one.
  if (bytes > SIZE_MAX / 2) return nullptr;
  const std::size_t rounded = (bytes + sizeof(block) - 1) / sizeof(block) * sizeof(block);
  block* fresh = static_cast<block*>(std::aligned_alloc(alignof(block), sizeof(block) + rounded));
  if (fresh == nullptr) return nullptr;
  fresh->bytes = rounded;
  return fresh + 1;
}

inline void receive_pool::deallocate(void* data, std::size_t) noexcept {
  block* back = static_cast<block*>(data) - 1;
  const std::size_t bytes = back->bytes;
  if (bytes < least_bytes || bytes > limit_) return std::free(back);
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_oldest(limit_ - bytes);
  try {
    kept_.push_back(back);
  } catch (const std::bad_alloc&) {
    return std::free(back);
  }
  kept_bytes_ += bytes;
}

// Frees blocks until at most `limit` bytes are kept.
inline void receive_pool::drop_oldest(std::size_t limit) noexcept {
  std::size_t n = 0;
  for (; n < kept_.size() && kept_bytes_ > limit; ++n) {
    kept_bytes_ -= kept_[n]->bytes;
    std::free(kept_[n]);
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace weft

#endif
