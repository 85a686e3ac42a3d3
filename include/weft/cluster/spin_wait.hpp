#ifndef WEFT_CLUSTER_SPIN_WAIT_HPP
#define WEFT_CLUSTER_SPIN_WAIT_HPP
// How a thread waits for the next message of a step: it looks again for some microseconds before it sleeps, because to be woken takes longer
// than a message does. Where that does not pay, it soon stops.

#include <weft/core/config.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace weft::detail {

/// Decides, look after look, whether to look again or to sleep. For one thread; between two looks it lets others run. No more threads of the
/// process look at once than there are processors.
class spin_wait {
 public:
  /// Looks for at most `window` before each sleep; zero never looks twice.
  explicit spin_wait(std::chrono::microseconds window) noexcept : window_(window) {}
  spin_wait(const spin_wait&) = delete;
  spin_wait& operator=(const spin_wait&) = delete;
  ~spin_wait() { leave(); }

  /// A look found something.
  void found() noexcept {
    if (!spinning_) return;
    leave();
    penalty_ = 0;
  }
  /// A look found nothing: true when it is time for the next one, false when it is time to sleep.
  bool again() noexcept;

 private:
  using clock = std::chrono::steady_clock;
  static std::atomic<int>& spinners() noexcept {
    static std::atomic<int> count{0};
    return count;
  }
  bool enter() noexcept;
  void leave() noexcept {
    if (spinning_) spinners().fetch_sub(1, std::memory_order_relaxed);
    spinning_ = false;
  }
  void give_up(int least) noexcept;

  const std::chrono::microseconds window_;
  clock::time_point until_{}, last_{};
  bool spinning_ = false;
  // Waits that go to sleep at once, because looking was in vain; and how many the next failure adds.
  int skip_ = 0, penalty_ = 0;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL bool spin_wait::enter() noexcept {
  static const int most = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (spinners().fetch_add(1, std::memory_order_relaxed) < most) return true;
  spinners().fetch_sub(1, std::memory_order_relaxed);
  return false;
}

WEFT_DECL void spin_wait::give_up(int least) noexcept {
  constexpr int most_skipped = 16383;
  leave();
  skip_ = penalty_ = std::max(least, std::min(2 * penalty_ + 1, most_skipped));
}

WEFT_DECL bool spin_wait::again() noexcept {
  if (!spinning_) {
    if (window_.count() <= 0) return false;
    if (skip_ > 0) return --skip_, false;
    if (!enter()) return false;
    spinning_ = true;
    last_ = clock::now();
    until_ = last_ + window_;
  }
  std::this_thread::yield();
  const auto before = std::exchange(last_, clock::now());
  // While others need the processor, a thread that yields waits longer for its turn than one that is woken.
  if (last_ - before > window_ / 2) return give_up(31), false;
  if (last_ < until_) return true;
  return give_up(1), false;
}

#endif

}  // namespace weft::detail

#endif
