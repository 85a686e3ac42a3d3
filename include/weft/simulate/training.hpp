#ifndef WEFT_SIMULATE_TRAINING_HPP
#define WEFT_SIMULATE_TRAINING_HPP
// Training with parameter servers played through for any number of workers: asynchronous or synchronous, with stragglers and backup workers.

#include <weft/core/config.hpp>
#include <weft/core/split_mix.hpp>
#include <weft/core/status.hpp>
#include <weft/simulate/cost_model.hpp>

#include <cstdint>
#include <vector>
#if WEFT_HAS_BODIES
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <queue>
#include <string>
#endif

namespace weft {

/// How the workers' updates are applied.
enum class training_mode {
  /// Each as it comes; nobody waits.
  asynchronous,
  /// Once per step for all; the step ends with the update that is still needed.
  synchronous
};

/// A cluster that trains one model between-graph: each worker fetches its parameters from all servers, computes, and sends gradients back.
struct training_setup {
  int workers = 1, parameter_servers = 1;
  training_mode mode = training_mode::synchronous;
  /// Synchronous: a step takes the gradients of the first `workers - backup_workers`; those that come later are dropped.
  int backup_workers = 0;
  /// Bytes of parameters that one worker fetches per step, and of gradients that it sends, spread evenly over the servers.
  double parameter_bytes = 0, gradient_bytes = 0;
  /// Seconds that one worker computes, without stragglers.
  double compute_seconds = 0;
  /// Spread of the computing time: it is multiplied by exp(sigma x), x normal. 0 for none.
  double straggler_sigma = 0;
  /// A chance that a worker is that much slower in a step.
  double straggler_chance = 0, straggler_factor = 1;
  /// A server's processor: seconds per message (a fetch or an update), and the speed of applying gradients.
  double seconds_per_message = 2e-5, apply_bytes_per_second = 5e9;
  /// The network of each task: what it sends and what it receives do not hinder each other.
  link_speed link;
  /// Steps to play, of each worker (asynchronous) or of all together (synchronous), and the seed of the stragglers.
  int steps = 100;
  std::uint64_t seed = 1;
};

/// How training is expected to go.
struct training_prediction {
  /// Steps of all workers together (asynchronous), or of the model (synchronous).
  double steps_per_second = 0;
  /// Seconds of a step: the median, and the 10th and 90th percentile.
  double median = 0, low = 0, high = 0;
  /// The share of their time that workers compute.
  double computing = 0;
  /// The busiest server's share of time in which it sends or receives.
  double server_network = 0;
};

/// Plays training. Deterministic for a seed. Throws INVALID_ARGUMENT when there is no worker, server or step, when all workers are backups, or when a number is negative.
training_prediction simulate_training(const training_setup& setup);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

class training_player {
 public:
  explicit training_player(const training_setup& setup) : s_(setup), random_(setup.seed) {
    const double numbers[] = {s_.parameter_bytes, s_.gradient_bytes, s_.compute_seconds, s_.straggler_sigma, s_.straggler_chance, s_.straggler_factor, s_.seconds_per_message, s_.link.latency};
    if (s_.workers < 1 || s_.parameter_servers < 1 || s_.steps < 1) fail(error_code::invalid_argument, "training needs at least one worker, one parameter server and one step");
    if (s_.backup_workers < 0 || s_.backup_workers >= s_.workers) fail(error_code::invalid_argument, "of " + std::to_string(s_.workers) + " workers, " + std::to_string(s_.backup_workers) + " cannot be backups");
    if (!std::all_of(std::begin(numbers), std::end(numbers), [](double x) { return x >= 0 && std::isfinite(x); }) || !(s_.apply_bytes_per_second > 0) || !(s_.link.bytes_per_second > 0))
      fail(error_code::invalid_argument, "sizes, times and chances of training are not negative, and rates are above 0");
    workers_.resize(static_cast<std::size_t>(s_.workers));
    servers_.resize(static_cast<std::size_t>(s_.parameter_servers));
  }

  training_prediction play() {
    for (std::size_t w = 0; w < workers_.size(); ++w) begin_step(w, 0);
    while (!events_.empty() && !over()) {
      const event e = events_.top();
      events_.pop();
      now_ = e.time;
      switch (e.what) {
        case stage::fetch_asked: serve_fetch(e); break;
        case stage::fetched: fetched(e); break;
        case stage::computed: push(e); break;
        case stage::pushed: apply(e); break;
        case stage::applied: applied(e); break;
      }
    }
    return result();
  }

 private:
  enum class stage : unsigned char { fetch_asked, fetched, computed, pushed, applied };
  struct event {
    double time;
    std::uint64_t order;
    std::uint32_t worker, server, step;
    stage what;
    friend bool operator<(const event& a, const event& b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }
  };
  struct worker {
    double began = 0, receives_until = 0, sends_until = 0;
    std::uint32_t step = 0;
    int open = 0;  // messages of its step that it waits for
  };
  struct server {
    double sends_until = 0, receives_until = 0, busy_until = 0, network = 0;
  };

  void at(double time, stage what, std::size_t w, std::size_t p, std::uint32_t step) {
    events_.push({time, order_++, static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(p), step, what});
  }
  double share(double bytes) const { return bytes / s_.parameter_servers; }
  // One message between two tasks, each of which sends one after the other and receives one after the other; the time at which it is there.
  double cross(double from, double bytes, double& sends_until, double& receives_until, server& counted) {
    const double takes = bytes / s_.link.bytes_per_second;
    sends_until = std::max(from, sends_until) + takes;
    receives_until = std::max(sends_until, receives_until + takes);
    counted.network += takes;
    return receives_until + s_.link.latency;
  }
  double number() {
    return (static_cast<double>(random_.next() >> 11) + 0.5) * 0x1p-53;
  }
  double compute_time() {
    double out = s_.compute_seconds;
    if (s_.straggler_sigma > 0) out *= std::exp(s_.straggler_sigma * std::sqrt(-2 * std::log(number())) * std::cos(6.283185307179586 * number()));
    if (s_.straggler_chance > 0 && number() < s_.straggler_chance) out *= s_.straggler_factor;
    return out;
  }

  void begin_step(std::size_t w, double time) {
    workers_[w].began = time;
    workers_[w].open = s_.parameter_servers;
    // Each worker begins with another server, as programs do that do not want to meet at the first.
    for (std::size_t k = 0; k < servers_.size(); ++k) at(time + s_.link.latency, stage::fetch_asked, w, (w + k) % servers_.size(), workers_[w].step);
  }
  bool current(const event& e) const { return s_.mode == training_mode::asynchronous || e.step == model_step_; }

  void serve_fetch(const event& e) {
    server& p = servers_[e.server];
    p.busy_until = std::max(p.busy_until, now_) + s_.seconds_per_message;
    at(cross(p.busy_until, share(s_.parameter_bytes), p.sends_until, workers_[e.worker].receives_until, p), stage::fetched, e.worker, e.server, e.step);
  }
  void fetched(const event& e) {
    worker& w = workers_[e.worker];
    if (w.step != e.step || --w.open > 0) return;
    const double takes = compute_time();
    computed_ += takes;
    at(now_ + takes, stage::computed, e.worker, 0, e.step);
  }
  void push(const event& e) {
    worker& w = workers_[e.worker];
    if (w.step != e.step) return;  // too late: the model went on without it
    w.open = s_.parameter_servers;
    for (std::size_t k = 0; k < servers_.size(); ++k) {
      const std::size_t to = (e.worker + k) % servers_.size();
      at(cross(now_, share(s_.gradient_bytes), w.sends_until, servers_[to].receives_until, servers_[to]), stage::pushed, e.worker, to, e.step);
    }
  }
  void apply(const event& e) {
    server& p = servers_[e.server];
    p.busy_until = std::max(p.busy_until, now_) + s_.seconds_per_message + share(s_.gradient_bytes) / s_.apply_bytes_per_second;
    at(p.busy_until, stage::applied, e.worker, e.server, e.step);
  }
  void applied(const event& e) {
    worker& w = workers_[e.worker];
    if (!current(e) || w.step != e.step || --w.open > 0) return;
    if (s_.mode == training_mode::asynchronous) {
      times_.push_back(now_ - w.began);
      ++w.step;
      ++done_;
      if (w.step < static_cast<std::uint32_t>(s_.steps)) begin_step(e.worker, now_);
      return;
    }
    if (++arrived_ < s_.workers - s_.backup_workers) return;
    times_.push_back(now_ - step_began_);
    step_began_ = now_;
    arrived_ = 0;
    ++done_;
    ++model_step_;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i].step = model_step_;
      if (!over()) begin_step(i, now_ + s_.link.latency);
    }
  }
  bool over() const { return s_.mode == training_mode::synchronous && done_ >= s_.steps; }

  training_prediction result() {
    std::sort(times_.begin(), times_.end());
    training_prediction out;
    out.steps_per_second = done_ / now_;
    out.median = times_[times_.size() / 2];
    out.low = times_[times_.size() / 10];
    out.high = times_[times_.size() * 9 / 10];
    out.computing = std::min(1.0, computed_ / (now_ * s_.workers));
    for (const server& p : servers_) out.server_network = std::max(out.server_network, p.network / (2 * now_));
    return out;
  }

  const training_setup& s_;
  split_mix random_;
  std::vector<worker> workers_;
  std::vector<server> servers_;
  std::priority_queue<event> events_;
  std::uint64_t order_ = 0;
  std::uint32_t model_step_ = 0;
  int arrived_ = 0, done_ = 0;
  double now_ = 0, step_began_ = 0, computed_ = 0;
  std::vector<double> times_;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL training_prediction simulate_training(const training_setup& setup) { return detail::training_player(setup).play(); }

}  // namespace weft
#endif

#endif
