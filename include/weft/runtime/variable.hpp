#ifndef WEFT_RUNTIME_VARIABLE_HPP
#define WEFT_RUNTIME_VARIABLE_HPP
// A variable's value in its task, and the exclusive use of several at once. Readers share the elements, so an update writes in place only while nobody else holds them.

#include <weft/core/config.hpp>
#include <weft/runtime/buffer_pool.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/tensor/shape.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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

  /// Calls `look(const tensor_value& value)` while nobody can update the variable, and returns what it returns. For reads of some elements, which so never make an update copy the
  /// others. Throws FAILED_PRECONDITION when there is no value.
  template <class F> decltype(auto) inspect(F&& look) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_initialized();
    return std::forward<F>(look)(value_);
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
    tensor_value written = next();
    std::forward<F>(compute)(static_cast<const tensor_value&>(value_), written);
    value_ = std::move(written);
  }

 private:
  friend class variables_lock;
  void check_initialized() const {
    if (value_.empty()) fail(error_code::failed_precondition, "variable '" + name_ + "' is not initialized; run its initializer first");
  }

  std::shared_ptr<memory> source() const { return buffers_ == nullptr || !is_plain(type_) ? nullptr : buffers_->for_bytes(value_.bytes()); }
  // What becomes the next value once every element is written.
  tensor_value next() const { return value_.writable() ? value_ : tensor_value(type_, value_.shape(), source()); }

  const std::string name_;
  const weft::dtype type_;
  const partial_shape shape_;
  const std::shared_ptr<buffer_pool> buffers_;
  mutable std::mutex mutex_;
  tensor_value value_;
};

/// The exclusive use of several variables at once: nobody else reads or updates them as long as this lives. Locks are taken in one order, whatever the order of
/// the variables, so that two such users never wait for each other. Variables are known by their position.
class variables_lock {
 public:
  /// Throws INVALID_ARGUMENT when a variable is there twice, FAILED_PRECONDITION when one has no value.
  explicit variables_lock(std::vector<std::shared_ptr<variable_resource>> variables);
  variables_lock(const variables_lock&) = delete;
  variables_lock& operator=(const variables_lock&) = delete;
  ~variables_lock() {
    for (const variable_resource* v : locked_) v->mutex_.unlock();
  }

  std::size_t size() const noexcept { return variables_.size(); }
  const std::string& name(std::size_t i) const noexcept { return variables_[i]->name(); }
  const tensor_value& value(std::size_t i) const noexcept { return variables_[i]->value_; }
  /// The value, some elements of which may be written: they are copied first if anybody else holds them.
  tensor_value& change(std::size_t i) {
    variable_resource& v = *variables_[i];
    if (!v.value_.writable()) v.value_ = deep_copy(v.value_, v.source());
    return v.value_;
  }
  /// A value for all elements to be written, then given to `set`: in the storage of the current one if nobody else holds that, else new.
  tensor_value next(std::size_t i) const { return variables_[i]->next(); }
  void set(std::size_t i, tensor_value v) noexcept { variables_[i]->value_ = std::move(v); }

 private:
  std::vector<std::shared_ptr<variable_resource>> variables_;
  std::vector<const variable_resource*> locked_;
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

WEFT_DECL variables_lock::variables_lock(std::vector<std::shared_ptr<variable_resource>> variables) : variables_(std::move(variables)) {
  std::vector<const variable_resource*> order;
  for (const auto& v : variables_) {
    const auto at = std::lower_bound(order.begin(), order.end(), v.get(), std::less<const variable_resource*>());
    if (at != order.end() && *at == v.get()) fail(error_code::invalid_argument, "variable '" + v->name() + "' is given twice");
    order.insert(at, v.get());
  }
  for (const variable_resource* v : order) v->mutex_.lock();
  locked_ = std::move(order);
  try {
    for (const variable_resource* v : locked_) v->check_initialized();
  } catch (...) {
    for (const variable_resource* v : locked_) v->mutex_.unlock();
    throw;
  }
}
#endif

}  // namespace weft

#endif
