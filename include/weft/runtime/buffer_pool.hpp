#ifndef WEFT_RUNTIME_BUFFER_POOL_HPP
#define WEFT_RUNTIME_BUFFER_POOL_HPP
// Storage of large tensors, kept between steps: fresh pages of the operating system cost more than many kernels.

#include <weft/core/config.hpp>
#include <weft/tensor/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace weft {

/// Host memory that keeps freed blocks of at least `smallest` bytes for later, up to a bound. Owned by a shared_ptr; thread-safe.
class buffer_pool final : public memory, public std::enable_shared_from_this<buffer_pool> {
 public:
  /// Smaller tensors are left to malloc, which is good at them.
  static constexpr std::size_t smallest = std::size_t{64} << 10;

  explicit buffer_pool(std::size_t bound = std::size_t{512} << 20) : bound_(bound) {}
  buffer_pool(const buffer_pool&) = delete;
  buffer_pool& operator=(const buffer_pool&) = delete;
  ~buffer_pool() override { trim(0); }

  WEFT_INLINE void* allocate(std::size_t bytes) override;
  WEFT_INLINE void deallocate(void* data, std::size_t bytes) noexcept override;
  bool host() const noexcept override { return true; }
  std::string_view name() const noexcept override { return "host"; }

  /// This pool as a buffer keeps it.
  std::shared_ptr<memory> shared() { return shared_from_this(); }
  /// The memory for a tensor of so many bytes: this pool, or nullptr, which means malloc.
  std::shared_ptr<memory> for_bytes(std::size_t bytes) { return bytes < smallest ? nullptr : shared(); }
  /// Bytes that are kept and not in use.
  std::size_t kept() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return kept_;
  }
  /// Gives back what is kept beyond `bytes`.
  void trim(std::size_t bytes) noexcept;

 private:
  static constexpr std::size_t alignment = 64;
  // Sizes are rounded up to an eighth of their power of two, so that similar tensors share blocks and at most 12 % are lost.
  static std::size_t block_size(std::size_t bytes) noexcept {
    std::size_t step = alignment;
    while (step <= bytes / 16) step *= 2;
    return bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) / step * step;
  }

  mutable std::mutex mutex_;
  std::size_t bound_, kept_ = 0;
  // Free blocks by size. The vectors stay, so that giving a block back seldom allocates.
  std::map<std::size_t, std::vector<void*>> free_;
};

#if WEFT_HAS_BODIES

WEFT_DECL void* buffer_pool::allocate(std::size_t bytes) {
  const std::size_t size = block_size(bytes);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = free_.find(size);
    if (it != free_.end() && !it->second.empty()) {
      void* out = it->second.back();
      it->second.pop_back();
      kept_ -= size;
      return out;
    }
  }
  return size > detail::machine_memory() ? nullptr : std::aligned_alloc(alignment, size == 0 ? alignment : size);
}

WEFT_DECL void buffer_pool::deallocate(void* data, std::size_t bytes) noexcept {
  const std::size_t size = block_size(bytes);
  if (size >= smallest && size <= bound_) {
    trim(bound_ - size);
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (kept_ + size <= bound_) {
        free_[size].push_back(data);
        kept_ += size;
        return;
      }
    } catch (...) {
      // No memory for the list: the block is freed instead.
    }
  }
  std::free(data);
}

WEFT_DECL void buffer_pool::trim(std::size_t bytes) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = free_.rbegin(); it != free_.rend() && kept_ > bytes; ++it)
    while (!it->second.empty() && kept_ > bytes) {
      std::free(it->second.back());
      it->second.pop_back();
      kept_ -= it->first;
    }
}

#endif

}  // namespace weft

#endif
