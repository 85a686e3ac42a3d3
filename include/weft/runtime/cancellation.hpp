#ifndef WEFT_RUNTIME_CANCELLATION_HPP
#define WEFT_RUNTIME_CANCELLATION_HPP
// Cancelling what waits: a source that is cancelled once, tokens that ask and are told.

#include <weft/core/status.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace weft {

namespace detail {
struct cancellation_state {
  std::mutex mutex;
  std::atomic<bool> cancelled{false};
  status why;
  std::uint64_t next = 1;
  std::map<std::uint64_t, std::function<void(const status&)>> callbacks;
};
}  // namespace detail

/// Asks whether something is cancelled, and is told when it becomes so. Copies are cheap; a default token is never cancelled.
class cancellation_token {
 public:
  cancellation_token() = default;
  bool cancelled() const noexcept { return state_ != nullptr && state_->cancelled.load(std::memory_order_acquire); }
  /// The reason; ok while not cancelled.
  status why() const {
    if (!cancelled()) return status();
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->why;
  }
  /// Has `callback` called once on cancellation, at once if that has happened. The number is for `forget`; 0 when called at once.
  std::uint64_t on_cancel(std::function<void(const status&)> callback) const {
    if (state_ == nullptr) return 0;
    status reason;
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      if (!state_->cancelled) {
        state_->callbacks.emplace(state_->next, std::move(callback));
        return state_->next++;
      }
      reason = state_->why;
    }
    callback(reason);
    return 0;
  }
  /// Takes a callback back. True when it will not be called any more; false when it was or is being called.
  bool forget(std::uint64_t number) const {
    if (state_ == nullptr || number == 0) return false;
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->callbacks.erase(number) != 0;
  }

 private:
  friend class cancellation_source;
  explicit cancellation_token(std::shared_ptr<detail::cancellation_state> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::cancellation_state> state_;
};

/// Cancels, once; the first reason stays.
class cancellation_source {
 public:
  cancellation_source() : state_(std::make_shared<detail::cancellation_state>()) {}
  cancellation_token token() const { return cancellation_token(state_); }
  /// Calls every callback on this thread. False when it was cancelled before.
  bool cancel(status why) const {
    std::map<std::uint64_t, std::function<void(const status&)>> callbacks;
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      if (state_->cancelled) return false;
      state_->why = why;
      state_->cancelled.store(true, std::memory_order_release);
      callbacks.swap(state_->callbacks);
    }
    for (auto& entry : callbacks) entry.second(why);
    return true;
  }

 private:
  std::shared_ptr<detail::cancellation_state> state_;
};

}  // namespace weft

#endif
