#ifndef WEFT_CLUSTER_TASK_WAIT_HPP
#define WEFT_CLUSTER_TASK_WAIT_HPP
// Waits for tasks that may come later: asks each of them again until all answer or the time is over.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/peers.hpp>
#include <weft/cluster/socket.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace weft::detail {

/// Waits for tasks that may come later. Lives on the io thread, as long as something is waited for.
class task_wait : public std::enable_shared_from_this<task_wait> {
 public:
  using handler = std::function<void(reply_message)>;
  /// Until all have answered, asking again and again, or only until each has been asked once.
  enum class kind : std::uint8_t { wait, count };

  task_wait(task_context& own, peers& roads, std::chrono::milliseconds time, kind what, handler done)
      : own_(own), roads_(roads), time_(time), kind_(what), done_(std::move(done)), end_(own.io) {}

  /// Begins; `done` is called once. A wait ends with ok when all have answered, UNAVAILABLE with those that have not when the time is over, or the reason of `cancel`; a count with how many
  /// have answered, and how many were asked.
  void start(const std::set<task_id>& tasks);
  void cancel(const status& why) { finish(why); }

 private:
  // A task that has not answered yet.
  struct missing_task {
    std::optional<status> why;
    std::unique_ptr<asio::steady_timer> again;
  };
  void ask(const task_id& task);
  bool all_failed() const;
  status report() const;
  void finish(const status& result);

  task_context& own_;
  peers& roads_;
  const std::chrono::milliseconds time_;
  const kind kind_;
  handler done_;
  asio::steady_timer end_;
  std::size_t all_ = 0;
  std::map<task_id, missing_task> missing_;
};

/// All waits of a master.
class task_waits {
 public:
  task_waits(task_context& own, peers& roads) : own_(own), roads_(roads) {}
  /// See `task_wait`.
  void start(const std::set<task_id>& tasks, std::chrono::milliseconds time, task_wait::kind what, task_wait::handler done);
  void cancel(const status& why);

 private:
  task_context& own_;
  peers& roads_;
  std::vector<std::weak_ptr<task_wait>> all_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void task_waits::start(const std::set<task_id>& tasks, std::chrono::milliseconds time, task_wait::kind what, task_wait::handler done) {
  all_.erase(std::remove_if(all_.begin(), all_.end(), [](const std::weak_ptr<task_wait>& each) { return each.expired(); }), all_.end());
  const auto wait = std::make_shared<task_wait>(own_, roads_, time, what, std::move(done));
  all_.push_back(wait);
  wait->start(tasks);
}

WEFT_DECL void task_waits::cancel(const status& why) {
  for (const auto& each : all_)
    if (const auto wait = each.lock()) wait->cancel(why);
}

WEFT_DECL void task_wait::start(const std::set<task_id>& tasks) {
  all_ = tasks.size();
  for (const task_id& task : tasks)
    if (task != own_.self) missing_[task];
  if (missing_.empty()) return finish(status());
  end_.expires_after(bounded(time_));
  end_.async_wait([self = shared_from_this()](const std::error_code& stopped) {
    if (!stopped && self->done_) self->finish(self->report());
  });
  for (const task_id& task : tasks)
    if (missing_.count(task) != 0) ask(task);
}

WEFT_DECL void task_wait::ask(const task_id& task) {
  roads_.open(task, [self = shared_from_this(), task](const status& result, const std::shared_ptr<peer_link>&) {
    if (!self->done_) return;
    if (result.ok()) {
      self->missing_.erase(task);
      if (self->missing_.empty() || self->all_failed()) self->finish(status());
      return;
    }
    constexpr std::chrono::milliseconds pause(100);
    missing_task& here = self->missing_[task];
    here.why = result;
    if (self->kind_ == kind::count) return self->all_failed() ? self->finish(status()) : void();
    here.again = std::make_unique<asio::steady_timer>(self->own_.io, pause);
    here.again->async_wait([self, task](const std::error_code& stopped) {
      if (!stopped && self->done_) self->ask(task);
    });
  });
}

// Whether a count knows of every task that is missing that it does not answer.
WEFT_DECL bool task_wait::all_failed() const {
  return kind_ == kind::count && std::all_of(missing_.begin(), missing_.end(), [](const auto& one) { return one.second.why.has_value(); });
}

WEFT_DECL status task_wait::report() const {
  std::string text = std::to_string(missing_.size()) + " of " + std::to_string(all_) + " tasks did not answer within " + duration_text(time_);
  const char* before = ": ";
  for (const auto& [task, how] : missing_) {
    text += before + (how.why ? how.why->message : "task " + own_.describe(task) + ": nothing was heard yet");
    before = "; ";
  }
  return {error_code::unavailable, std::move(text)};
}

WEFT_DECL void task_wait::finish(const status& result) {
  const handler done = std::exchange(done_, nullptr);
  end_.cancel();
  reply_message reply;
  if (kind_ == kind::count) {
    wire_writer body;
    body.u64(all_ - missing_.size()).u64(all_);
    reply.body = body.take();
  } else {
    reply.result = result;
  }
  missing_.clear();
  if (done) done(std::move(reply));
}

#endif

}  // namespace weft::detail

#endif
