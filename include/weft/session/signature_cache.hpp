#ifndef WEFT_SESSION_SIGNATURE_CACHE_HPP
#define WEFT_SESSION_SIGNATURE_CACHE_HPP
// The plans that a session keeps, by signature.

#include <weft/session/signature.hpp>

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace weft::detail {

struct signature_hash {
  std::size_t operator()(const step_signature& s) const noexcept {
    std::size_t h = 0x9e3779b97f4a7c15ULL;
    const auto mix = [&h](std::size_t v) { h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2); };
    for (const output& o : s.feeds) mix(std::hash<const void*>()(o.from) + static_cast<std::size_t>(o.index));
    mix(s.feeds.size());
    for (const output& o : s.fetches) mix(std::hash<const void*>()(o.from) + static_cast<std::size_t>(o.index));
    mix(s.fetches.size());
    for (const node* n : s.targets) mix(std::hash<const void*>()(n));
    return h;
  }
};

// The most recently used plans by signature. Thread-safe; a signature that two threads ask for at once is made once.
template <class Plan> class signature_cache {
 public:
  explicit signature_cache(std::size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}

  // The plan, made by `make(signature)` (a shared_ptr<Plan>) when there is none yet; what make throws is thrown to whoever waited.
  template <class Make> std::shared_ptr<Plan> find_or_make(const step_signature& signature, Make&& make) {
    std::shared_ptr<entry> found;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto it = entries_.find(signature);
      if (it != entries_.end()) {
        order_.splice(order_.begin(), order_, it->second);
        found = order_.front().second;
      } else {
        found = std::make_shared<entry>();
        order_.emplace_front(signature, found);
        entries_.emplace(signature, order_.begin());
        if (order_.size() > capacity_) {
          entries_.erase(order_.back().first);
          order_.pop_back();
        }
      }
    }
    const std::lock_guard<std::mutex> lock(found->mutex);
    if (found->plan == nullptr) found->plan = make(signature);
    return found->plan;
  }
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.clear();
    order_.clear();
  }

 private:
  struct entry {
    std::mutex mutex;
    std::shared_ptr<Plan> plan;
  };
  using order = std::list<std::pair<step_signature, std::shared_ptr<entry>>>;
  std::mutex mutex_;
  std::size_t capacity_;
  order order_;
  std::unordered_map<step_signature, typename order::iterator, signature_hash> entries_;
};

}  // namespace weft::detail

#endif
