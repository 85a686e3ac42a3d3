#ifndef WEFT_CLUSTER_HELD_VALUES_HPP
#define WEFT_CLUSTER_HELD_VALUES_HPP
// Room for the large values that steps hold back until another task has begun them.

#include <weft/cluster/fair_share.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace weft::detail {

/// What is held back for one task, by the master whose steps hold it. Thread-safe.
class held_values : public std::enable_shared_from_this<held_values> {
 public:
  /// Keeps its bytes taken as long as it lives.
  using room = std::shared_ptr<const void>;
  struct amounts {
    std::size_t all = 0, of_master = 0;
  };

  /// Takes room for a value, where `queued` bytes wait already and `limit` may; nullptr when there is none left, or no share of it for this master, and then `now` is what is held.
  room take(std::uint64_t master, std::size_t bytes, std::size_t queued, std::size_t limit, amounts& now) {
    bytes += around;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = of_master_.find(master);
    now = {all_, known == of_master_.end() ? 0 : known->second};
    if (queued > limit - all_ || !may_take(now.of_master, all_ + queued, limit, bytes)) return nullptr;
    all_ += bytes;
    of_master_[master] += bytes;
    return room(this, [self = shared_from_this(), master, bytes](const void*) { self->give_back(master, bytes); });
  }
  std::size_t bytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_;
  }

 private:
  // What a value takes beside its bytes.
  static constexpr std::size_t around = 256;

  void give_back(std::uint64_t master, std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_ -= bytes;
    const auto mine = of_master_.find(master);
    if ((mine->second -= bytes) == 0) of_master_.erase(mine);
  }

  mutable std::mutex mutex_;
  std::size_t all_ = 0;
  std::map<std::uint64_t, std::size_t> of_master_;
};

}  // namespace weft::detail

#endif
