#ifndef WEFT_RUNTIME_SEEDED_STEP_HPP
#define WEFT_RUNTIME_SEEDED_STEP_HPP
// A step whose parts all run on the calling thread, in an order that a seed draws among the ready nodes: the same seed, the same order. What depends on the order is found by trying seeds, and found again
// by its seed.

#include <weft/core/bounded_wait.hpp>
#include <weft/core/config.hpp>
#include <weft/core/split_mix.hpp>
#include <weft/runtime/executor.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// A part of the step, what it is run with, and what it gives back.
struct seeded_part {
  executor* runs = nullptr;
  executor::step_args args;
  std::vector<tensor_value> fetches;
};

/// Runs the parts of one step. Where nothing is ready any more and nodes wait that only other nodes could end, it fails with FAILED_PRECONDITION that names them. A node that answers by itself, on a thread
/// of its own, is waited for before the next one starts. Each step draws an order of its own. The parts must have no thread pool, and `on_error` must cancel them all.
status run_in_seeded_order(std::vector<seeded_part>& parts, std::uint64_t seed, std::int64_t step, std::chrono::milliseconds timeout);

#if WEFT_HAS_BODIES

class seeded_step final : private answer_listener {
 public:
  seeded_step(std::vector<seeded_part>& parts, std::uint64_t seed, std::int64_t step) : parts_(parts), random_(split_mix(seed).next() + split_mix(static_cast<std::uint64_t>(step)).next()), seed_(seed), step_(step) {}
  seeded_step(const seeded_step&) = delete;
  seeded_step& operator=(const seeded_step&) = delete;

  status run(std::chrono::milliseconds timeout);

 private:
  using clock = std::chrono::steady_clock;
  struct place {
    std::size_t part;
    std::uint32_t node;
    friend bool operator==(const place& a, const place& b) noexcept { return a.part == b.part && a.node == b.node; }
  };
  struct answer {
    place from;
    status outcome;
  };

  WEFT_INLINE void answered_elsewhere(step_state& state, std::uint32_t node, const status& s) override;
  WEFT_INLINE void settled(step_state& state, std::uint32_t node) override;
  const plan_node& node_at(const place& p) const { return states_[p.part]->plan.nodes[p.node]; }
  std::size_t part_of(const step_state& state) const { return static_cast<std::size_t>(std::find(states_.begin(), states_.end(), &state) - states_.begin()); }
  bool waits(const place& p) const { return std::find(waiting_.begin(), waiting_.end(), p) != waiting_.end(); }
  bool is_failed() const;
  void begin();
  void start();
  void collect();
  void run_next();
  void take_answers();
  void wait_for_answer();
  void give_up(const status& why) { states_.front()->fail(why); }
  status deadlock() const;
  status finish();

  std::vector<seeded_part>& parts_;
  split_mix random_;
  const std::uint64_t seed_;
  const std::int64_t step_;
  clock::time_point deadline_ = clock::time_point::max();
  std::vector<step_state*> states_;
  std::vector<std::unique_ptr<step_worker>> workers_;  // each inside the one before
  std::vector<place> ready_, waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<answer> answers_;
};

WEFT_DECL void seeded_step::answered_elsewhere(step_state& state, std::uint32_t node, const status& s) {
  const std::lock_guard<std::mutex> lock(mutex_);
  answers_.push_back({{part_of(state), node}, s});
  changed_.notify_one();
}

WEFT_DECL void seeded_step::settled(step_state& state, std::uint32_t node) {
  const auto found = std::find(waiting_.begin(), waiting_.end(), place{part_of(state), node});
  if (found != waiting_.end()) waiting_.erase(found);
}

WEFT_DECL bool seeded_step::is_failed() const {
  return std::any_of(states_.begin(), states_.end(), [](const step_state* s) { return s->failed.load(std::memory_order_relaxed); });
}

WEFT_DECL void seeded_step::begin() {
  for (seeded_part& p : parts_) {
    step_state& state = p.runs->states_.acquire();
    states_.push_back(&state);
    state.has_caller = true;
    state.listener = this;
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    std::vector<tensor_value> feeds = std::move(parts_[i].args.feeds);
    states_[i]->begin(std::move(parts_[i].args), feeds.data(), feeds.size());
  }
}

WEFT_DECL void seeded_step::start() {
  for (step_state* state : states_) workers_.push_back(std::make_unique<step_worker>(*state, step_worker::unlimited));
  for (auto& worker : workers_) worker->start();
  collect();
}

WEFT_DECL void seeded_step::collect() {
  for (std::size_t i = 0; i < workers_.size(); ++i)
    for (std::uint32_t node = workers_[i]->take_ready(); node != nothing; node = workers_[i]->take_ready()) ready_.push_back({i, node});
}

// The chosen one's place is taken by the last, so that the list stays the same for the same choices.
WEFT_DECL void seeded_step::run_next() {
  const std::size_t chosen = static_cast<std::size_t>(random_.next() % ready_.size());
  const place next = ready_[chosen];
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  const plan_node& p = node_at(next);
  if (p.kind == plan_kind::receive || p.kind == plan_kind::asynchronous) waiting_.push_back(next);
  workers_[next.part]->run_one(next.node);
  while (p.kind == plan_kind::asynchronous && !p.kernel->waits_for_others() && waits(next)) wait_for_answer();
  collect();
}

WEFT_DECL void seeded_step::take_answers() {
  std::vector<answer> taken;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken.swap(answers_);
  }
  for (const answer& a : taken) workers_[a.from.part]->take_answer(a.from.node, a.outcome);
}

WEFT_DECL void seeded_step::wait_for_answer() {
  bool late = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto there = [this] { return !answers_.empty(); };
    if (is_failed() || deadline_ == clock::time_point::max()) changed_.wait(lock, there);
    else late = !changed_.wait_until(lock, deadline_, there);
  }
  if (late) give_up(status(error_code::deadline_exceeded, "the step did not end in its time"));
  take_answers();
}

WEFT_DECL status seeded_step::deadlock() const {
  std::string names;
  for (const place& p : waiting_) {
    const node& n = *node_at(p).about;
    names += (names.empty() ? "'" : ", '") + n.name() + "' (" + n.op() + (n.site().known() ? ", " + n.site().text() : std::string()) + ") on " + states_[p.part]->plan.task;
  }
  return status(error_code::failed_precondition, "the step cannot go on: " + names + (waiting_.size() == 1 ? " waits" : " wait") + ", and no node that could end that is left to run (schedule seed " +
                                                     std::to_string(seed_) + ", step " + std::to_string(step_) + ")");
}

// Whatever a failed step leaves undone is brought back to its beginning by `end`.
WEFT_DECL status seeded_step::finish() {
  status outcome;
  for (const step_state* s : states_)
    if (s->failed.load(std::memory_order_relaxed) && (outcome.ok() || (outcome.derived && !s->why.derived))) outcome = s->why;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (outcome.ok()) parts_[i].fetches = std::move(states_[i]->fetches);
    else if (!states_[i]->failed.load(std::memory_order_relaxed)) states_[i]->fail(outcome);
  }
  while (!workers_.empty()) workers_.pop_back();
  for (step_state* s : states_) {
    s->listener = nullptr;
    s->end();
  }
  return outcome;
}

WEFT_DECL status seeded_step::run(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) deadline_ = clock::now() + bounded(timeout);
  begin();
  start();
  for (;;) {
    take_answers();
    collect();
    if (is_failed()) ready_.clear();
    if (ready_.empty() && waiting_.empty()) break;
    if (!is_failed() && deadline_ != clock::time_point::max() && clock::now() >= deadline_) give_up(status(error_code::deadline_exceeded, "the step did not end in its time"));
    else if (!ready_.empty()) run_next();
    else if (!is_failed()) give_up(deadlock());
    else wait_for_answer();
  }
  return finish();
}

WEFT_DECL status run_in_seeded_order(std::vector<seeded_part>& parts, std::uint64_t seed, std::int64_t step, std::chrono::milliseconds timeout) {
  if (parts.empty()) return status();
  return seeded_step(parts, seed, step).run(timeout);
}

#endif

}  // namespace weft::detail

#endif
