#ifndef WEFT_TENSOR_TENSOR_VALUE_HPP
#define WEFT_TENSOR_TENSOR_VALUE_HPP
// A tensor's value with its dtype erased: dtype, shape, and a shared buffer of elements in C order.

#include <weft/core/config.hpp>
#include <weft/tensor/buffer.hpp>
#include <weft/tensor/dtype.hpp>
#include <weft/tensor/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// A value: copies share the elements. An empty value (dtype invalid) stands for none.
class tensor_value {
 public:
  tensor_value() = default;
  /// Uninitialised elements (strings and handles are default-constructed). Throws INVALID_ARGUMENT for a bad shape, RESOURCE_EXHAUSTED.
  tensor_value(weft::dtype type, weft::shape s, const std::shared_ptr<weft::memory>& source = nullptr);
  /// Elements that `data` already holds.
  tensor_value(weft::dtype type, weft::shape s, buffer_ptr data) : data_(std::move(data)), shape_(std::move(s)), type_(type) {}
  /// A value of rank 0.
  template <class T, class = std::enable_if_t<is_dtype_v<T>>> static tensor_value scalar(const T& v) {
    tensor_value out(dtype_of<T>, weft::shape());
    *out.mutable_data<T>() = v;
    return out;
  }
  /// A value from elements in C order; their number must fit the shape.
  template <class T> static tensor_value from(weft::shape s, const std::vector<T>& elements);

  weft::dtype dtype() const noexcept { return type_; }
  const weft::shape& shape() const noexcept { return shape_; }
  /// Gives the same elements another shape. Throws INVALID_ARGUMENT when it has another number of elements.
  void reshape(weft::shape s) {
    if (checked_elements(s.data(), static_cast<std::size_t>(s.rank())) != elements())
      fail(error_code::invalid_argument, "a value of shape " + shape_.text() + " cannot be given shape " + s.text());
    shape_ = std::move(s);
  }
  std::int64_t elements() const noexcept { return shape_.elements(); }
  bool empty() const noexcept { return type_ == weft::dtype::invalid; }
  /// Bytes of the elements; for strings and handles the size of the objects without what they point to.
  std::size_t bytes() const noexcept;
  const buffer_ptr& buffer() const noexcept { return data_; }
  /// Whether nobody else holds the elements, so that they may be written in place.
  bool writable() const noexcept { return data_ && data_->unique() && data_->host(); }

  /// The elements, in C order. T must be the dtype; the memory must be the host's (FAILED_PRECONDITION otherwise).
  template <class T> const T* data() const { return static_cast<const T*>(raw(dtype_of<T>)); }
  template <class T> T* mutable_data() { return static_cast<T*>(raw(dtype_of<T>)); }
  /// The bytes of plain elements in host memory.
  const std::byte* raw_data() const { return static_cast<const std::byte*>(raw(type_)); }
  std::byte* mutable_raw_data() { return static_cast<std::byte*>(raw(type_)); }

  /// The element of a value of rank 0 (or with a single element).
  template <class T> const T& item() const {
    if (elements() != 1) fail(error_code::invalid_argument, "expected a single element, found shape " + shape_.text());
    return *data<T>();
  }

  /// Same dtype, shape and elements (bit for bit, so NaN equals itself and 0 differs from -0).
  friend bool operator==(const tensor_value& a, const tensor_value& b);
  friend bool operator!=(const tensor_value& a, const tensor_value& b) { return !(a == b); }

 private:
  void* raw(weft::dtype asked) const {
    if (asked != type_)
      fail(error_code::internal, std::string("a value of dtype ") + to_text(type_) + " was read as " + to_text(asked));
    if (!data_) return nullptr;
    if (!data_->host())
      fail(error_code::failed_precondition, "the value is in " + std::string(data_->memory()->name()) + " memory, which the host cannot read; copy it first");
    return data_->data();
  }
  buffer_ptr data_;
  weft::shape shape_;
  weft::dtype type_ = weft::dtype::invalid;
};

template <class T> tensor_value tensor_value::from(weft::shape s, const std::vector<T>& elements) {
  tensor_value out(dtype_of<T>, std::move(s));
  if (out.elements() != static_cast<std::int64_t>(elements.size()))
    fail(error_code::invalid_argument, "shape " + out.shape().text() + " needs " + std::to_string(out.elements()) + " elements, found " + std::to_string(elements.size()));
  T* to = out.mutable_data<T>();
  for (std::size_t i = 0; i < elements.size(); ++i) to[i] = elements[i];
  return out;
}

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL tensor_value::tensor_value(weft::dtype type, weft::shape s, const std::shared_ptr<weft::memory>& source)
    : shape_(std::move(s)), type_(type) {
  const auto n = checked_elements(shape_.data(), static_cast<std::size_t>(shape_.rank()));
  if (!n || static_cast<std::uint64_t>(*n) > SIZE_MAX / 32)
    fail(error_code::invalid_argument, "shape " + shape_.text() + " has a negative size or more elements than memory can address");
  const auto count = static_cast<std::size_t>(*n);
  if (type == weft::dtype::string) data_ = buffer_ptr::of_objects<std::string>(count);
  else if (type == weft::dtype::resource) data_ = buffer_ptr::of_objects<resource_handle>(count);
  else if (!is_plain(type)) fail(error_code::unimplemented, std::string("values of dtype ") + to_text(type) + " cannot be held");
  else data_ = buffer_ptr::allocate(count * size_of(type), source);
}

WEFT_DECL std::size_t tensor_value::bytes() const noexcept {
  const auto n = static_cast<std::size_t>(elements());
  if (type_ == weft::dtype::string) return n * sizeof(std::string);
  if (type_ == weft::dtype::resource) return n * sizeof(resource_handle);
  return n * size_of(type_);
}

WEFT_DECL bool operator==(const tensor_value& a, const tensor_value& b) {
  if (a.type_ != b.type_ || a.shape_ != b.shape_) return false;
  if (a.data_.get() == b.data_.get() || a.elements() == 0) return true;
  const auto n = static_cast<std::size_t>(a.elements());
  if (a.type_ == weft::dtype::string) return std::equal(a.data<std::string>(), a.data<std::string>() + n, b.data<std::string>());
  if (a.type_ == weft::dtype::resource) return std::equal(a.data<resource_handle>(), a.data<resource_handle>() + n, b.data<resource_handle>());
  return std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

}  // namespace weft
#endif

#endif
