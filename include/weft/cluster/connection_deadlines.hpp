#ifndef WEFT_CLUSTER_CONNECTION_DEADLINES_HPP
#define WEFT_CLUSTER_CONNECTION_DEADLINES_HPP
// What a connection waits for with a bound: a whole message, the rest of a frame at some pace, and at its end that what is queued is taken.

#include <weft/cluster/frame_pace.hpp>
#include <weft/cluster/socket.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::detail {

/// See the head of this file. It has no clock and no timer: its owner says what time it is, and comes back when it is told to.
class connection_deadlines {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr time_point never = time_point::max();

  /// How far the connection is.
  struct progress {
    time_point now;
    // Whether a part of a frame was received and more of it may come, and when the last byte came.
    bool inside_frame = false;
    time_point last_received;
    std::uint64_t bytes_sent = 0, bytes_received = 0;
  };

  /// `pace`: bytes of a frame that have to come within each `frame_timeout`, and at the end have to be taken.
  explicit connection_deadlines(std::chrono::milliseconds frame_timeout, std::uint64_t pace = 0) : frame_timeout_(frame_timeout), reading_(frame_timeout, pace), ending_(frame_timeout, pace) {}

  /// A whole message has to come within this time; zero takes that back.
  void expect_message(std::chrono::milliseconds within, time_point now) {
    expect_within_ = within;
    expect_by_ = within.count() == 0 ? never : now + bounded(within);
  }
  void message_came() noexcept {
    expect_by_ = never;
    read_again();
  }
  /// For a while nothing was read.
  void read_again() noexcept { reading_.restart(); }
  /// The connection ends as soon as what is queued is sent, which has to go on.
  void expect_end(time_point now, std::uint64_t bytes_sent) noexcept {
    send_by_ = now;
    sent_by_then_ = bytes_sent + 1;  // as if there had been progress before
  }
  bool ending() const noexcept { return send_by_ != never; }

  /// Why the connection has to be closed now: DEADLINE_EXCEEDED, or ok when it was to end anyway. If it has not, `next` is when to ask again, `never` for not at all.
  std::optional<status> look(const progress& at, const std::string& remote, time_point& next);

 private:
  // A pace, and when it was looked at last, and how many bytes there were.
  struct watched {
    watched(std::chrono::milliseconds window, std::uint64_t least) : pace(window, least) {}
    void restart() noexcept {
      at = never;
      pace.restart();
    }
    std::optional<status> look(time_point now, std::uint64_t all, const std::string& remote, time_point& next);

    frame_pace pace;
    time_point at = never;
    std::uint64_t bytes = 0;
  };

  const std::chrono::milliseconds frame_timeout_;
  time_point expect_by_ = never, send_by_ = never;
  std::chrono::milliseconds expect_within_{0};
  std::uint64_t sent_by_then_ = 0;
  watched reading_, ending_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::optional<status> connection_deadlines::look(const progress& at, const std::string& remote, time_point& next) {
  next = expect_by_;
  if (expect_by_ <= at.now) return status(error_code::deadline_exceeded, "no message came from " + remote + " within " + duration_text(expect_within_));
  if (frame_timeout_.count() <= 0) return std::nullopt;
  const auto pause = bounded(frame_timeout_);
  if (at.inside_frame) {
    if (at.last_received + pause <= at.now) return silent_connection(remote, frame_timeout_);
    next = std::min(next, at.last_received + pause);
    if (auto slow = reading_.look(at.now, at.bytes_received, remote, next)) return slow;
  } else read_again();
  if (ending()) {
    if (at.bytes_sent != sent_by_then_) send_by_ = at.now + pause;
    sent_by_then_ = at.bytes_sent;
    if (send_by_ <= at.now || ending_.look(at.now, at.bytes_sent, remote, next)) return status();
    next = std::min(next, send_by_);
  }
  return std::nullopt;
}

WEFT_DECL std::optional<status> connection_deadlines::watched::look(time_point now, std::uint64_t all, const std::string& remote, time_point& next) {
  if (!pace.counts()) return std::nullopt;
  if (at != never) {
    pace.waited(now - at);
    pace.came(all - bytes);
  }
  at = now;
  bytes = all;
  if (auto slow = pace.look(remote)) return slow;
  next = std::min(next, now + pace.next());
  return std::nullopt;
}

#endif

}  // namespace weft::detail

#endif
