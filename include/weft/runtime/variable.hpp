#ifndef WEFT_RUNTIME_VARIABLE_HPP
#define WEFT_RUNTIME_VARIABLE_HPP
// A variable's value in its task. Readers share the elements, so an update writes in place only while nobody else holds them.

#include <weft/core/config.hpp>
#include <weft/runtime/buffer_pool.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/tensor/shape.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace weft {

/// An independent copy of a value in host memory, its storage taken from `source` (plain host memory when that is null).
inline tensor_value deep_copy(const tensor_value& v, const std::shared_ptr<memory>& source = nullptr) {
  if (v.empty()) return tensor_value();
  tensor_value out(v.dtype(), v.shape(), is_plain(v.dtype()) ? source : nullptr);
  const auto n = static_cast<std::size_t>(v.elements());
  if (v.dtype() == dtype::string) std::copy_n(v.data<std::string>(), n, out.mutable_data<std::string>());
  else if (v.dtype() == dtype::resource) std::copy_n(v.data<resource_handle>(), n, out.mutable_data<resource_handle>());
  else if (n != 0) std::memcpy(out.mutable_raw_data(), v.raw_data(), v.bytes());
  return out;
}

/// A variable: a value that steps read and update. Reads and updates are atomic to each other; a value that was read never changes.
class variable_resource final : public resource {
 public:
  variable_resource(std::string name, weft::dtype type, partial_shape shape, std::shared_ptr<buffer_pool> buffers = nullptr)
      : name_(std::move(name)), type_(type), shape_(std::move(shape)), buffers_(std::move(buffers)) {}

  std::string describe() const override { return "variable '" + name_ + "' of " + to_text(type_) + shape_.text(); }
  const std::string& name() const noexcept { return name_; }
  weft::dtype dtype() const noexcept { return type_; }
  /// What its values may look like.
  const partial_shape& shape() const noexcept { return shape_; }

  bool initialized() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !value_.empty();
  }
  /// The value, shared. Throws FAILED_PRECONDITION when there is none.
  tensor_value read() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_initialized();
    return value_;
  }
  /// Makes `v` the value, without a copy. Throws INVALID_ARGUMENT when its dtype or shape do not fit.
  void assign(tensor_value v);
  /// Forgets the value.
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_ = tensor_value();
  }

  /// Calls `change(tensor_value& value)`, which may write the elements: they are copied first if anybody else holds them. Returns what it returns.
  /// For updates that touch only some elements. Throws FAILED_PRECONDITION when there is no value.
  template <class F> decltype(auto) update(F&& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_initialized();
    if (!value_.writable()) value_ = deep_copy(value_, source());
    return std::forward<F>(change)(value_);
  }
  /// Calls `compute(const tensor_value& current, tensor_value& next)`, which must set every element of `next`, a value of the same dtype and shape;
  /// it is in the storage of `current` if nobody else holds that, else new and not initialised. When `compute` throws, the old value stays, as far
  /// as it was not overwritten.
  template <class F> void replace(F&& compute) {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_initialized();
    tensor_value next = value_.writable() ? value_ : tensor_value(type_, value_.shape(), is_plain(type_) ? source() : nullptr);
    std::forward<F>(compute)(static_cast<const tensor_value&>(value_), next);
    value_ = std::move(next);
  }

 private:
  void check_initialized() const {
    if (value_.empty()) fail(error_code::failed_precondition, "variable '" + name_ + "' is not initialized; run its initializer first");
  }

  std::shared_ptr<memory> source() const { return buffers_ == nullptr ? nullptr : buffers_->for_bytes(value_.bytes()); }

  const std::string name_;
  const weft::dtype type_;
  const partial_shape shape_;
  const std::shared_ptr<buffer_pool> buffers_;
  mutable std::mutex mutex_;
  tensor_value value_;
};

#if WEFT_HAS_BODIES

WEFT_DECL void variable_resource::assign(tensor_value v) {
  if (v.dtype() != type_)
    fail(error_code::invalid_argument, describe() + " cannot hold a value of dtype " + to_text(v.dtype()));
  if (!shape_.accepts(v.shape())) fail(error_code::invalid_argument, describe() + " cannot hold a value of shape " + v.shape().text());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(value_, v);
  }
  // The old value is released here, without the lock.
}

#endif

}  // namespace weft

#endif
