#ifndef WEFT_CORE_ARRAY_VIEW_HPP
#define WEFT_CORE_ARRAY_VIEW_HPP
// Elements that lie side by side and belong to somebody else.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace weft {

/// Reads like a vector that does not change, and becomes one where one is wanted. Holds no longer than what it looks at.
template <class T> class array_view {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;

  array_view() noexcept = default;
  array_view(const T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  array_view(const std::vector<T>& of) noexcept : data_(of.data()), size_(of.size()) {}

  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  const T& front() const noexcept { return data_[0]; }
  const T& back() const noexcept { return data_[size_ - 1]; }
  operator std::vector<T>() const { return std::vector<T>(begin(), end()); }

  friend bool operator==(array_view a, array_view b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend bool operator!=(array_view a, array_view b) { return !(a == b); }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft

#endif
