#ifndef WEFT_CLUSTER_FRAME_PACE_HPP
#define WEFT_CLUSTER_FRAME_PACE_HPP
// Whether the rest of a message that has begun comes fast enough.

#include <weft/cluster/socket.hpp>
#include <weft/core/bounded_wait.hpp>
#include <weft/core/status.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::detail {

/// Counts what has come of a message, and the time that it was waited for: in each `window` at least `bytes`, or its end. It has no clock: its owner tells it the
/// time. A long step of that time counts as a quarter of the window only, since then this program stood still and not the other end.
class frame_pace {
 public:
  using duration = std::chrono::steady_clock::duration;

  /// Either may be zero: then nothing is too slow.
  frame_pace(std::chrono::milliseconds window, std::uint64_t bytes) : window_(bounded(window)), said_(window), least_(window.count() <= 0 ? 0 : bytes) {}

  bool counts() const noexcept { return least_ != 0; }
  /// A message is whole, or nobody reads: what follows is counted anew.
  void restart() noexcept {
    waited_ = {};
    came_ = 0;
  }
  void came(std::uint64_t bytes) noexcept { came_ += bytes; }
  void waited(duration time) noexcept { waited_ += std::min(time, window_ / 4); }
  /// When to look again.
  duration next() const noexcept { return std::min(window_ - waited_, window_ / 4); }
  /// To be asked when all that is there was read: DEADLINE_EXCEEDED when a window is over in which too little came; another one begins when enough did.
  std::optional<status> look(const std::string& remote) {
    if (!counts() || waited_ < window_) return std::nullopt;
    const std::uint64_t came = came_;
    restart();
    if (came >= least_) return std::nullopt;
    return status(error_code::deadline_exceeded, "in the middle of a message only " + std::to_string(came) + " bytes came from " + remote + " within " + duration_text(said_) + ", at least " +
                                                     std::to_string(least_) + " have to (frame_pace)");
  }

 private:
  duration window_;
  std::chrono::milliseconds said_;
  std::uint64_t least_;
  duration waited_{};
  std::uint64_t came_ = 0;
};

}  // namespace weft::detail

#endif
