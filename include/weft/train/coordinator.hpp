#ifndef WEFT_TRAIN_COORDINATOR_HPP
#define WEFT_TRAIN_COORDINATOR_HPP
// Threads that stop together: each asks whether it should stop, any may ask all to stop and say why, and whoever joins them learns the first reason.

#include <weft/core/bounded_wait.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weft {

/// Options of a coordinator.
struct coordinator_options {
  /// How long `join` waits, after a stop was asked for, until all threads have ended.
  std::chrono::milliseconds stop_grace_period = std::chrono::seconds(120);
};

/// Lets threads of this process stop together. A thread asks `should_stop()` from time to time; an error in one (`request_stop(status)`, or what a thread run by it throws) stops all. OUT_OF_RANGE
/// (an input has ended) and CANCELLED (the reason is elsewhere) stop without being errors. Thread-safe.
class coordinator {
 public:
  explicit coordinator(coordinator_options options = {});
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;
  /// Asks its threads to stop and waits for them without limit: they use what it refers to.
  ~coordinator();

  /// Runs `body` on a thread of its own; what it throws is the reason for a stop. `name` is for messages.
  void start(std::string name, std::function<void()> body);
  /// Calls `body` each `interval`, or without a pause when that is 0, until a stop is asked for.
  void start_loop(std::string name, std::chrono::milliseconds interval, std::function<void()> body);

  /// Asks all threads to stop. The first reason that is an error is kept; others are dropped.
  void request_stop(status why = status());
  /// Asks all threads to stop because of the exception that is being handled.
  void request_stop_of_exception();
  bool should_stop() const;
  /// Waits until a stop is asked for; false when it was not within `limit`.
  bool wait_for_stop(std::chrono::milliseconds limit) const;
  /// Calls `wake` once when a stop is asked for, at once if it was: for what must be ended from outside, such as a step that waits.
  void on_stop(std::function<void()> wake);

  /// Waits for the threads: without limit until a stop is asked for, then for the grace period. Throws the error that was the first reason, once: a second `join` returns. Throws
  /// DEADLINE_EXCEEDED, naming them, when threads are left after the grace period.
  void join();
  /// The first reason that is an error; ok when there is none, also after it was thrown.
  status reason() const;
  /// Makes it ready to be used again, once all threads have ended. Throws FAILED_PRECONDITION when one has not.
  void clear_stop();

  /// Whether a status ends a thread without being an error: ok, OUT_OF_RANGE, CANCELLED.
  static bool is_clean(const status& s) noexcept { return s.ok() || s.code == error_code::out_of_range || s.code == error_code::cancelled; }

 private:
  struct member {
    std::string name;
    std::thread thread;
    bool ended = false;
  };
  bool all_ended() const;
  std::string left() const;

  const coordinator_options options_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::unique_ptr<member>> members_;
  std::vector<std::function<void()>> wakes_;
  bool stopping_ = false;
  status reason_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <utility>

namespace weft {

namespace detail {
// The exception that is being handled, as a status.
WEFT_DECL status status_of_handled() {
  try {
    throw;
  } catch (const error& e) {
    return e.status();
  } catch (const std::exception& e) {
    return status(error_code::unknown, e.what());
  } catch (...) {
    return status(error_code::unknown, "a thread threw something that is not a std::exception");
  }
}
}  // namespace detail

WEFT_DECL coordinator::coordinator(coordinator_options options) : options_(options) {}

WEFT_DECL coordinator::~coordinator() {
  request_stop();
  for (const auto& m : members_)
    if (m->thread.joinable()) m->thread.join();
}

WEFT_DECL void coordinator::start(std::string name, std::function<void()> body) {
  auto made = std::make_unique<member>();
  member* const m = made.get();
  m->name = std::move(name);
  const std::lock_guard<std::mutex> lock(mutex_);
  members_.push_back(std::move(made));
  m->thread = std::thread([this, m, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      request_stop_of_exception();
    }
    const std::lock_guard<std::mutex> inner(mutex_);
    m->ended = true;
    changed_.notify_all();
  });
}

WEFT_DECL void coordinator::start_loop(std::string name, std::chrono::milliseconds interval, std::function<void()> body) {
  start(std::move(name), [this, interval, body = std::move(body)] {
    while (!should_stop()) {
      body();
      if (interval.count() > 0 && wait_for_stop(interval)) return;
    }
  });
}

WEFT_DECL void coordinator::request_stop(status why) {
  std::vector<std::function<void()>> wakes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // What follows from a stop is no reason for it.
    if (!is_clean(why) && reason_.ok() && !stopping_) reason_ = std::move(why);
    stopping_ = true;
    wakes.swap(wakes_);
    changed_.notify_all();
  }
  for (const auto& wake : wakes) wake();
}

WEFT_DECL void coordinator::request_stop_of_exception() { request_stop(detail::status_of_handled()); }

WEFT_DECL bool coordinator::should_stop() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopping_;
}

WEFT_DECL bool coordinator::wait_for_stop(std::chrono::milliseconds limit) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, detail::bounded(limit), [this] { return stopping_; });
}

WEFT_DECL void coordinator::on_stop(std::function<void()> wake) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!stopping_) return wakes_.push_back(std::move(wake));
  }
  wake();
}

WEFT_DECL bool coordinator::all_ended() const {
  for (const auto& m : members_)
    if (!m->ended) return false;
  return true;
}

WEFT_DECL std::string coordinator::left() const {
  std::string out;
  for (const auto& m : members_)
    if (!m->ended) out += (out.empty() ? "'" : ", '") + m->name + "'";
  return out;
}

WEFT_DECL void coordinator::join() {
  std::vector<std::unique_ptr<member>> ended;
  status why;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || all_ended(); });
    if (!changed_.wait_for(lock, options_.stop_grace_period, [this] { return all_ended(); }) && reason_.ok())
      why = status(error_code::deadline_exceeded, "threads did not stop within " + std::to_string(options_.stop_grace_period.count()) + " ms: " + left());
    for (auto it = members_.begin(); it != members_.end();) {
      if ((*it)->ended) {
        ended.push_back(std::move(*it));
        it = members_.erase(it);
      } else {
        ++it;
      }
    }
    if (why.ok()) why = std::exchange(reason_, status());
    if (members_.empty()) wakes_.clear();
  }
  for (const auto& m : ended) m->thread.join();
  if (!why.ok()) throw error(why);
}

WEFT_DECL status coordinator::reason() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

WEFT_DECL void coordinator::clear_stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!all_ended()) fail(error_code::failed_precondition, "threads have not ended: " + left() + "; join them first");
  stopping_ = false;
  reason_ = status();
}

}  // namespace weft
#endif

#endif
