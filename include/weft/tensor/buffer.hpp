#ifndef WEFT_TENSOR_BUFFER_HPP
#define WEFT_TENSOR_BUFFER_HPP
// Shared, reference-counted storage of a tensor's elements, and the memory it comes from.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#if WEFT_HAS_BODIES && defined(__unix__)
#include <unistd.h>
#endif

namespace weft {

namespace detail {
// Bytes of memory that this machine has. A larger tensor is refused, since asking the system for it may succeed, and writing it would then end the process.
std::size_t machine_memory() noexcept;
}  // namespace detail

/// Where buffers live and come from. A device other than the CPU has its own; its buffers cannot be read by the host.
class memory {
 public:
  virtual ~memory() = default;
  /// Uninitialised storage, aligned to 64 bytes, or nullptr when there is none.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* data, std::size_t bytes) noexcept = 0;
  /// Whether the host may read and write the storage.
  virtual bool host() const noexcept = 0;
  /// For messages: `host`, `GPU:0`.
  virtual std::string_view name() const noexcept = 0;
};

/// One allocation of element storage. Made by the functions below, owned through `buffer_ptr`.
class buffer {
 public:
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Whether the one holder that asks is the only one, so that it may write.
  bool unique() const noexcept { return holders_.load(std::memory_order_acquire) == 1; }
  /// The memory it lives in; nullptr for plain host memory.
  const weft::memory* memory() const noexcept { return memory_.get(); }
  bool host() const noexcept { return memory_ == nullptr || memory_->host(); }

  void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

 private:
  friend class buffer_ptr;
  using destructor = void (*)(void* data, std::size_t count);
  buffer() = default;
  ~buffer() = default;
  void destroy() noexcept {
    if (destructor_ != nullptr) destructor_(data_, count_);
    if (memory_ != nullptr) memory_->deallocate(data_, bytes_);
    this->~buffer();
    std::free(static_cast<void*>(this));
  }
  std::atomic<std::uint32_t> holders_{1};
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<weft::memory> memory_;
  std::shared_ptr<void> owner_;
  destructor destructor_ = nullptr;
  std::size_t count_ = 0;
};

/// Shared ownership of a buffer; one word.
class buffer_ptr {
 public:
  buffer_ptr() noexcept = default;
  buffer_ptr(const buffer_ptr& other) noexcept : to_(other.to_) {
    if (to_ != nullptr) to_->hold();
  }
  buffer_ptr(buffer_ptr&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
  buffer_ptr& operator=(buffer_ptr other) noexcept {
    std::swap(to_, other.to_);
    return *this;
  }
  ~buffer_ptr() {
    if (to_ != nullptr) to_->drop();
  }

  /// Uninitialised bytes from `source`, plain host memory when that is null. Throws RESOURCE_EXHAUSTED.
  static buffer_ptr allocate(std::size_t bytes, const std::shared_ptr<weft::memory>& source = nullptr);
  /// `count` default-constructed objects of type T in host memory.
  template <class T> static buffer_ptr of_objects(std::size_t count);
  /// Bytes that something else owns; `owner` is kept until the last holder is gone.
  static buffer_ptr wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner);

  buffer* get() const noexcept { return to_; }
  buffer* operator->() const noexcept { return to_; }
  explicit operator bool() const noexcept { return to_ != nullptr; }

 private:
  static constexpr std::size_t alignment = 64;
  explicit buffer_ptr(buffer* b) noexcept : to_(b) {}
  static buffer* make(std::size_t extra);
  buffer* to_ = nullptr;
};

template <class T> buffer_ptr buffer_ptr::of_objects(std::size_t count) {
  if (count > SIZE_MAX / 4 / sizeof(T)) fail(error_code::resource_exhausted, "cannot allocate " + std::to_string(count) + " elements");
  buffer_ptr out = allocate(count * sizeof(T));
  T* objects = static_cast<T*>(out.to_->data_);
  std::uninitialized_value_construct_n(objects, count);
  out.to_->count_ = count;
  out.to_->destructor_ = [](void* data, std::size_t n) { std::destroy_n(static_cast<T*>(data), n); };
  return out;
}

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL std::size_t detail::machine_memory() noexcept {
#if defined(__unix__)
  static const std::size_t bytes = [] {
    const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(size) : SIZE_MAX / 2;
  }();
  return bytes;
#else
  return SIZE_MAX / 2;
#endif
}

// The header and `extra` bytes behind it in one block of malloc, whose small sizes are cached per thread.
WEFT_DECL buffer* buffer_ptr::make(std::size_t extra) {
  void* block = extra > detail::machine_memory() ? nullptr : std::malloc(sizeof(buffer) + extra);
  if (block == nullptr) fail(error_code::resource_exhausted, "cannot allocate " + std::to_string(extra) + " bytes for a tensor");
  return new (block) buffer();
}

WEFT_DECL buffer_ptr buffer_ptr::allocate(std::size_t bytes, const std::shared_ptr<weft::memory>& source) {
  if (source != nullptr) {
    buffer_ptr out(make(0));
    void* data = source->allocate(bytes);
    if (data == nullptr)
      fail(error_code::resource_exhausted, "cannot allocate " + std::to_string(bytes) + " bytes of " + std::string(source->name()) + " memory");
    out.to_->data_ = data;
    out.to_->bytes_ = bytes;
    out.to_->memory_ = source;
    return out;
  }
  buffer_ptr out(make(bytes > SIZE_MAX / 4 ? bytes : bytes + alignment));
  const auto after = reinterpret_cast<std::uintptr_t>(out.to_) + sizeof(buffer);
  out.to_->data_ = reinterpret_cast<void*>((after + alignment - 1) / alignment * alignment);
  out.to_->bytes_ = bytes;
  return out;
}

WEFT_DECL buffer_ptr buffer_ptr::wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner) {
  buffer_ptr out(make(0));
  out.to_->data_ = data;
  out.to_->bytes_ = bytes;
  out.to_->owner_ = std::move(owner);
  return out;
}

}  // namespace weft
#endif

#endif
