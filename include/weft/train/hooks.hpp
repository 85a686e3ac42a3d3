#ifndef WEFT_TRAIN_HOOKS_HPP
#define WEFT_TRAIN_HOOKS_HPP
// Hooks of monitored sessions: when to stop, when to save, what to count, watch, feed and log.

#include <weft/core/config.hpp>
#include <weft/core/step_trace.hpp>
#include <weft/format/chrome_trace.hpp>
#include <weft/format/event_file.hpp>
#include <weft/train/collections.hpp>
#include <weft/train/saver.hpp>
#include <weft/train/session_hook.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
// Says when something is to be done: each so many steps, or each so many seconds, or never.
class step_timer {
 public:
  step_timer(std::int64_t steps, std::chrono::milliseconds time) : steps_(steps), time_(time) {}
  bool due(std::int64_t step) const;
  void done(std::int64_t step) {
    last_step_ = step;
    last_time_ = std::chrono::steady_clock::now();
    begun_ = true;
  }
  bool begun() const noexcept { return begun_; }
  std::int64_t last_step() const noexcept { return last_step_; }
  // Since it was last done.
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - last_time_).count(); }

 private:
  std::int64_t steps_, last_step_ = 0;
  std::chrono::milliseconds time_;
  std::chrono::steady_clock::time_point last_time_{};
  bool begun_ = false;
};
}  // namespace detail

/// Where hooks write lines; standard error when empty.
using line_function = std::function<void(std::string_view line)>;

/// Stops the training when the global step has reached a number, all sessions together.
class stop_at_step_hook final : public session_hook {
 public:
  explicit stop_at_step_hook(std::int64_t last_step) : last_(last_step) {}
  /// Stops so many steps after the one at which this session begins.
  static std::shared_ptr<stop_at_step_hook> after(std::int64_t steps);
  WEFT_INLINE void begin(const graph& g) override;
  WEFT_INLINE void after_create_session(hook_context& context) override;
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>&) override;

 private:
  std::int64_t last_, steps_ = 0;
};

/// When checkpoints are saved.
struct checkpoint_hook_options {
  /// The path that the saver is given.
  std::string path = "model";
  /// After so many steps, or so much time; 0 means not for this reason.
  std::int64_t steps = 0;
  std::chrono::seconds seconds{600};
};

/// Saves before the first step, in between, and at the end. A chief whose session is given a checkpoint directory has one already.
class checkpoint_hook final : public session_hook {
 public:
  checkpoint_hook(saver& with, checkpoint_hook_options options = {}) : saver_(&with), options_(std::move(options)), timer_(options_.steps, options_.seconds) {}
  WEFT_INLINE void after_create_session(hook_context& context) override;
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>&) override;
  WEFT_INLINE void end(hook_context& context) override;

 private:
  void save(hook_context& context, std::int64_t step);
  saver* saver_;
  checkpoint_hook_options options_;
  detail::step_timer timer_;
  std::int64_t own_steps_ = 0;
};

/// Reports how many global steps were made in a second, each so many of them: `steps/s: 812.5 (step 1200)`.
class step_counter_hook final : public session_hook {
 public:
  explicit step_counter_hook(std::int64_t every_steps = 100, line_function log = {}) : timer_(every_steps, {}), log_(std::move(log)) {}
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>&) override;
  /// The last one reported; 0 before.
  double steps_per_second() const noexcept { return rate_; }

 private:
  detail::step_timer timer_;
  line_function log_;
  double rate_ = 0;
};

/// What becomes of a loss that is not a number.
enum class nan_loss { fail, stop };

/// Watches a loss: when it is NaN, `run` throws INVALID_ARGUMENT, or the training stops.
class nan_hook final : public session_hook {
 public:
  explicit nan_hook(output loss, nan_loss then = nan_loss::fail) : loss_(loss), then_(then) {}
  template <class T, int N> explicit nan_hook(const tensor<T, N>& loss, nan_loss then = nan_loss::fail) : nan_hook(loss.raw(), then) {}
  void before_run(hook_context&, hook_request& request) override { request.fetches.push_back(loss_); }
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>& values) override;

 private:
  output loss_;
  nan_loss then_;
};

/// Adds to each step what a function says is to be fed: `feed_hook([&] { auto b = data.next(); return b.feeds(x, y); })`.
class feed_hook final : public session_hook {
 public:
  explicit feed_hook(std::function<std::vector<feed>()> next) : next_(std::move(next)) {}
  void before_run(hook_context&, hook_request& request) override { request.feeds = next_(); }

 private:
  std::function<std::vector<feed>()> next_;
};

/// Writes values, each so many global steps or so much time: `step 100: loss = 0.25, accuracy = 0.9`.
class logging_hook final : public session_hook {
 public:
  logging_hook(std::vector<std::pair<std::string, output>> values, std::int64_t every_steps = 100, line_function log = {}, std::chrono::milliseconds every = std::chrono::milliseconds(0))
      : values_(std::move(values)), timer_(every_steps, every), log_(std::move(log)) {}
  WEFT_INLINE void before_run(hook_context& context, hook_request& request) override;
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>& values) override;

 private:
  std::vector<std::pair<std::string, output>> values_;
  detail::step_timer timer_;
  line_function log_;
  std::int64_t own_steps_ = 0;
  bool asked_ = false;
};

/// Writes scalars to an event file, which TensorBoard shows, each so many global steps or so much time.
class summary_hook final : public session_hook {
 public:
  summary_hook(std::string directory, std::vector<std::pair<std::string, output>> scalars, std::int64_t every_steps = 100, std::chrono::milliseconds every = std::chrono::milliseconds(0))
      : directory_(std::move(directory)), scalars_(std::move(scalars)), timer_(every_steps, every) {}
  WEFT_INLINE ~summary_hook() override;
  WEFT_INLINE void before_run(hook_context& context, hook_request& request) override;
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>& values) override;

 private:
  std::string directory_;
  std::vector<std::pair<std::string, output>> scalars_;
  detail::step_timer timer_;
  std::unique_ptr<event_writer> to_;
  std::int64_t own_steps_ = 0;
  bool asked_ = false;
};

/// Writes how a step went, each so many global steps or so much time, to a file `timeline-<step>.json` of a folder: what ran on each task and what crossed between them, for chrome://tracing or Perfetto.
class profile_hook final : public session_hook {
 public:
  explicit profile_hook(std::string directory, std::int64_t every_steps = 100, std::chrono::milliseconds every = std::chrono::milliseconds(0))
      : directory_(std::move(directory)), timer_(every_steps, every) {}
  WEFT_INLINE void before_run(hook_context& context, hook_request& request) override;
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>& values) override;

 private:
  std::string directory_;
  detail::step_timer timer_;
  step_trace trace_;
  std::int64_t own_steps_ = 0;
  bool asked_ = false;
};

/// Shows one line on a terminal that is written anew: step, loss, steps a second, how many tasks of the cluster answer, the time left. Writes nothing where standard error is no terminal.
class progress_hook final : public session_hook {
 public:
  /// `last_step` is where the training ends, 0 when that is not known; `loss` may be an empty output.
  explicit progress_hook(std::int64_t last_step = 0, output loss = {}, line_function write = {});
  WEFT_INLINE ~progress_hook() override;
  template <class T, int N> progress_hook(std::int64_t last_step, const tensor<T, N>& loss) : progress_hook(last_step, loss.raw()) {}
  WEFT_INLINE void before_run(hook_context&, hook_request& request) override;
  WEFT_INLINE void after_run(hook_context& context, const std::vector<tensor_value>& values) override;
  WEFT_INLINE void end(hook_context&) override;

 private:
  std::int64_t last_step_, first_step_ = 0, own_steps_ = 0;
  output loss_;
  line_function write_;
  bool shown_ = false, open_line_ = false;
  detail::step_timer timer_;
  std::chrono::steady_clock::time_point begun_{}, ask_at_{};
  task_count tasks_;

  std::string tasks_text(session_interface& session);
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <unistd.h>

namespace weft {

namespace detail {

WEFT_DECL bool step_timer::due(std::int64_t step) const {
  if (!begun_) return true;
  if (steps_ > 0 && step >= last_step_ + steps_) return true;
  return time_.count() > 0 && std::chrono::steady_clock::now() - last_time_ >= time_;
}

WEFT_DECL void write_line(const line_function& to, const std::string& line) {
  if (to) to(line);
  else std::fprintf(stderr, "%s\n", line.c_str());
}

// A scalar as a number, of whatever dtype; NaN for what is none.
WEFT_DECL double logged_number(const tensor_value& v) {
  if (v.elements() != 1) return std::nan("");
  switch (v.dtype()) {
    case dtype::float32: return static_cast<double>(*v.data<float>());
    case dtype::float64: return *v.data<double>();
    case dtype::half: return static_cast<double>(static_cast<float>(*v.data<half>()));
    case dtype::bfloat16: return static_cast<double>(static_cast<float>(*v.data<bfloat16>()));
    case dtype::int32: return static_cast<double>(*v.data<std::int32_t>());
    case dtype::int64: return static_cast<double>(*v.data<std::int64_t>());
    case dtype::boolean: return *v.data<bool>() ? 1 : 0;
    default: return std::nan("");
  }
}

WEFT_DECL std::string short_number(double v) {
  char out[40];
  std::snprintf(out, sizeof out, "%.6g", v);
  return out;
}

WEFT_DECL std::string logged_text(const tensor_value& v) {
  if (v.dtype() == dtype::string && v.elements() == 1) return *v.data<std::string>();
  if (v.elements() != 1) return std::string(to_text(v.dtype())) + v.shape().text();
  return short_number(logged_number(v));
}

WEFT_DECL std::string clock_text(double seconds) {
  const auto s = static_cast<long long>(std::min(seconds, 3.6e6));
  char out[40];
  if (s >= 3600) std::snprintf(out, sizeof out, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else std::snprintf(out, sizeof out, "%lld:%02lld", s / 60, s % 60);
  return out;
}

}  // namespace detail

WEFT_DECL std::shared_ptr<stop_at_step_hook> stop_at_step_hook::after(std::int64_t steps) {
  auto out = std::make_shared<stop_at_step_hook>(-1);
  out->steps_ = steps;
  return out;
}
WEFT_DECL void stop_at_step_hook::begin(const graph& g) {
  if (detail::find_global_step(g, call_site()).empty())
    fail(error_code::failed_precondition, "stop_at_step_hook needs a global step; make it with create_global_step() and give it to minimize()");
}
WEFT_DECL void stop_at_step_hook::after_create_session(hook_context& context) {
  const std::int64_t now = context.read_step();
  if (last_ < 0) last_ = now + steps_;
  if (now >= last_) context.request_stop();
}
// The step may have read the counter before or after it was incremented: near the end it is read once more.
WEFT_DECL void stop_at_step_hook::after_run(hook_context& context, const std::vector<tensor_value>&) {
  if (context.last_step() + 1 >= last_ && context.read_step() >= last_) context.request_stop();
}

WEFT_DECL void checkpoint_hook::save(hook_context& context, std::int64_t step) {
  saver_->save(context.session(), options_.path, step);
  timer_.done(step);
}
WEFT_DECL void checkpoint_hook::after_create_session(hook_context& context) {
  const std::int64_t step = context.read_step();
  // After a recovery the newest checkpoint is there.
  if (!timer_.begun()) save(context, std::max<std::int64_t>(step, 0));
}
WEFT_DECL void checkpoint_hook::after_run(hook_context& context, const std::vector<tensor_value>&) {
  ++own_steps_;
  const bool counted = context.last_step() >= 0;
  if (!timer_.due(counted ? context.last_step() + 1 : own_steps_)) return;
  const std::int64_t step = counted ? context.read_step() : own_steps_;
  if (timer_.due(step)) save(context, step);
}
WEFT_DECL void checkpoint_hook::end(hook_context& context) {
  const std::int64_t step = context.read_step() >= 0 ? context.read_step() : own_steps_;
  if (step != timer_.last_step()) save(context, step);
}

WEFT_DECL void step_counter_hook::after_run(hook_context& context, const std::vector<tensor_value>&) {
  const std::int64_t step = context.last_step();
  if (step < 0) return;
  if (!timer_.begun() || step < timer_.last_step()) return timer_.done(step);
  if (!timer_.due(step)) return;
  const double seconds = timer_.seconds();
  rate_ = seconds > 0 ? static_cast<double>(step - timer_.last_step()) / seconds : 0;
  timer_.done(step);
  detail::write_line(log_, "steps/s: " + detail::short_number(rate_) + " (step " + std::to_string(step) + ")");
}

WEFT_DECL void nan_hook::after_run(hook_context& context, const std::vector<tensor_value>& values) {
  if (!std::isnan(detail::logged_number(values[0]))) return;
  if (then_ == nan_loss::stop) return context.request_stop();
  throw error(loss_.from->status_about(error_code::invalid_argument, "the loss is not a number" + (context.last_step() >= 0 ? " at step " + std::to_string(context.last_step()) : std::string())));
}

WEFT_DECL void logging_hook::before_run(hook_context& context, hook_request& request) {
  ++own_steps_;
  asked_ = timer_.due(context.last_step() >= 0 ? context.last_step() + 1 : own_steps_);
  for (const auto& value : values_)
    if (asked_) request.fetches.push_back(value.second);
}
WEFT_DECL void logging_hook::after_run(hook_context& context, const std::vector<tensor_value>& values) {
  if (!asked_) return;
  const std::int64_t step = context.last_step() >= 0 ? context.last_step() : own_steps_;
  std::string line = "step " + std::to_string(step) + ":";
  for (std::size_t i = 0; i < values.size(); ++i) line += (i == 0 ? " " : ", ") + values_[i].first + " = " + detail::logged_text(values[i]);
  detail::write_line(log_, line);
  timer_.done(step);
}

WEFT_DECL summary_hook::~summary_hook() = default;
WEFT_DECL void summary_hook::before_run(hook_context& context, hook_request& request) {
  ++own_steps_;
  asked_ = timer_.due(context.last_step() >= 0 ? context.last_step() + 1 : own_steps_);
  for (const auto& scalar : scalars_)
    if (asked_) request.fetches.push_back(scalar.second);
}
WEFT_DECL void summary_hook::after_run(hook_context& context, const std::vector<tensor_value>& values) {
  if (!asked_) return;
  const std::int64_t step = context.last_step() >= 0 ? context.last_step() : own_steps_;
  std::vector<std::pair<std::string, double>> named;
  for (std::size_t i = 0; i < values.size(); ++i) named.emplace_back(scalars_[i].first, detail::logged_number(values[i]));
  if (to_ == nullptr) to_ = std::make_unique<event_writer>(directory_);
  to_->add(step, named);
  timer_.done(step);
}

WEFT_DECL void profile_hook::before_run(hook_context& context, hook_request& request) {
  ++own_steps_;
  asked_ = timer_.due(context.last_step() >= 0 ? context.last_step() + 1 : own_steps_);
  if (asked_) request.trace = &trace_;
}
WEFT_DECL void profile_hook::after_run(hook_context& context, const std::vector<tensor_value>&) {
  if (!asked_) return;
  const std::int64_t step = context.last_step() >= 0 ? context.last_step() : own_steps_;
  write_chrome_trace(directory_ + "/timeline-" + std::to_string(step) + ".json", trace_);
  timer_.done(step);
}

WEFT_DECL progress_hook::progress_hook(std::int64_t last_step, output loss, line_function write)
    : last_step_(last_step), loss_(loss), write_(std::move(write)), timer_(0, std::chrono::milliseconds(200)) {
  shown_ = write_ ? true : ::isatty(STDERR_FILENO) == 1;
}
WEFT_DECL progress_hook::~progress_hook() {
  if (open_line_ && !write_) std::fputc('\n', stderr);
}
WEFT_DECL void progress_hook::before_run(hook_context&, hook_request& request) {
  if (shown_ && loss_.from != nullptr) request.fetches.push_back(loss_);
}
WEFT_DECL void progress_hook::after_run(hook_context& context, const std::vector<tensor_value>& values) {
  if (!shown_) return;
  const std::int64_t step = context.last_step() >= 0 ? context.last_step() + 1 : ++own_steps_;
  if (!timer_.begun()) {
    first_step_ = step;
    begun_ = std::chrono::steady_clock::now();
  }
  if (!timer_.due(step) && (last_step_ == 0 || step < last_step_)) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  const double rate = seconds > 0 && step > first_step_ ? static_cast<double>(step - first_step_) / seconds : 0;
  timer_.done(step);
  std::string line = "step " + std::to_string(step) + (last_step_ > 0 ? "/" + std::to_string(last_step_) : std::string());
  if (!values.empty()) line += "  loss " + detail::short_number(detail::logged_number(values[0]));
  if (rate > 0) line += "  " + detail::short_number(rate) + " steps/s";
  line += tasks_text(context.session());
  if (rate > 0 && last_step_ > step) line += "  " + detail::clock_text(static_cast<double>(last_step_ - step) / rate) + " left";
  if (write_) return write_(line);
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
  open_line_ = true;
}
// The tasks are asked now and then, the less often the longer they take. What is wrong with the session, its next step says.
WEFT_DECL std::string progress_hook::tasks_text(session_interface& session) {
  using clock = std::chrono::steady_clock;
  if (const auto begin = clock::now(); begin >= ask_at_) {
    try {
      tasks_ = session.count_tasks(std::chrono::milliseconds(500));
    } catch (const error&) {
      tasks_ = {};
    }
    const auto end = clock::now();
    ask_at_ = end + std::max<clock::duration>(std::chrono::seconds(5), 20 * (end - begin));
  }
  return tasks_.all == 0 ? std::string() : "  " + std::to_string(tasks_.alive) + "/" + std::to_string(tasks_.all) + " tasks alive";
}
WEFT_DECL void progress_hook::end(hook_context&) {
  if (open_line_ && !write_) std::fputc('\n', stderr);
  open_line_ = false;
}

}  // namespace weft
#endif

#endif
