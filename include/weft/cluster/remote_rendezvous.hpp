#ifndef WEFT_CLUSTER_REMOTE_RENDEZVOUS_HPP
#define WEFT_CLUSTER_REMOTE_RENDEZVOUS_HPP
// The rendezvous of one step on one task of a cluster: what the task's devices send each other meets here, what other
// tasks wait for is pushed to them. Small tensors go at once, large ones when the receiver has said that it runs the step.

#include <weft/cluster/frame.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/runtime/rendezvous.hpp>
#include <weft/runtime/step_statistics.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace weft {

/// A step of a cluster: who leads it, and its number there.
struct step_id {
  /// Incarnation of the server that is the step's master.
  std::uint64_t master = 0;
  std::int64_t number = 0;
  friend bool operator==(const step_id& a, const step_id& b) noexcept { return a.master == b.master && a.number == b.number; }
  friend bool operator<(const step_id& a, const step_id& b) noexcept { return std::tie(a.master, a.number) < std::tie(b.master, b.number); }
};

/// An edge of a registered part as its task sees it.
struct part_edge {
  enum class direction : std::uint8_t { inside, incoming, outgoing };
  std::int64_t edge = 0;
  direction way = direction::inside;
  /// The task at the other end.
  task_id peer;
  weft::dtype dtype = weft::dtype::invalid;
  /// Its tensor may be larger than what is pushed without asking.
  bool may_be_large = false;
};

/// The road from a task to another one; sending never blocks and may be done from any thread.
class tensor_outlet {
 public:
  virtual ~tensor_outlet() = default;
  /// Sends a tensor of a step, on the connection for large ones if `bulk`.
  virtual void push(const step_id& step, const rendezvous_key& key, tensor_value value, bool is_dead, bool bulk) = 0;
  /// Room for a value that waits until the task has begun the step, as long as the result lives. Throws RESOURCE_EXHAUSTED when there is none.
  virtual std::shared_ptr<const void> hold(const step_id& step, std::size_t bytes) = 0;
};

/// The bytes of a received tensor that is not used yet, taken from the server's budget.
using receive_lease_ptr = std::shared_ptr<const receive_lease>;

/// See the head of this file. Thread-safe; calls receivers without holding its lock.
class remote_rendezvous final : public rendezvous {
 public:
  /// Edges in rising order of their numbers, and the outlets to the tasks of the outgoing ones. `on_abort` is called once,
  /// with the first reason, by whatever aborts. `statistics`, if any, learn when values go and come.
  remote_rendezvous(step_id step, const std::vector<part_edge>& edges, std::map<task_id, std::shared_ptr<tensor_outlet>> outlets,
                    std::function<void(const status&)> on_abort, step_statistics* statistics = nullptr);

  WEFT_INLINE status send(const rendezvous_key& key, tensor_value value, bool is_dead) override;
  WEFT_INLINE void receive(const rendezvous_key& key, receiver done) override;
  WEFT_INLINE void abort(const status& why) override;

  /// Takes a tensor that came from `from`, with the lease on its bytes. Aborts the step when it does not belong here.
  void deliver(const task_id& from, const rendezvous_key& key, tensor_value value, bool is_dead, receive_lease_ptr lease);
  /// The task has begun the step: sends it the large tensors that wait, and later ones at once.
  void peer_ready(const task_id& peer);
  /// Whether large tensors wait for their receivers.
  bool holds_back() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !held_back_.empty();
  }
  /// Whether something that the task owes has not come, or something that it wants was not sent.
  bool open_with(const task_id& peer) const;

 private:
  enum class phase : std::uint8_t { empty, waiting, full, done };
  struct slot {
    const part_edge* about = nullptr;
    phase state = phase::empty;
    bool is_dead = false;
    tensor_value value;
    receive_lease_ptr lease;
    receiver done;
  };
  struct held_back {
    rendezvous_key key;
    tensor_value value;
    bool is_dead;
    std::shared_ptr<const void> room;
  };

  // The slot of a key, nullptr for an edge that the part does not have. The lock is held.
  slot* find(const rendezvous_key& key);
  status unknown_edge(const rendezvous_key& key) const {
    return status(error_code::internal, "step " + std::to_string(step_.number) + " has no edge " + std::to_string(key.edge) + " here");
  }
  status hold(const part_edge& about, const rendezvous_key& key, tensor_value value, bool is_dead);
  status push(const part_edge& about, const rendezvous_key& key, tensor_value value, bool is_dead);
  status place(std::unique_lock<std::mutex> lock, slot& at, const rendezvous_key& key, tensor_value value, bool is_dead, receive_lease_ptr lease);
  void drop_values() noexcept;

  // Values of this many iterations may be on their way at once.
  static constexpr std::size_t most_iterations = std::size_t{1} << 20;

  const step_id step_;
  const std::vector<part_edge>& edges_;
  const std::map<task_id, std::shared_ptr<tensor_outlet>> outlets_;
  mutable std::mutex mutex_;
  std::vector<slot> slots_;
  std::map<std::pair<std::int64_t, std::int64_t>, slot> later_iterations_;
  std::map<task_id, std::vector<held_back>> held_back_;
  std::vector<task_id> ready_;
  std::optional<status> aborted_;
  std::function<void(const status&)> on_abort_;
  step_statistics* const statistics_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL remote_rendezvous::remote_rendezvous(step_id step, const std::vector<part_edge>& edges, std::map<task_id, std::shared_ptr<tensor_outlet>> outlets,
                                            std::function<void(const status&)> on_abort, step_statistics* statistics)
    : step_(step), edges_(edges), outlets_(std::move(outlets)), slots_(edges.size()), on_abort_(std::move(on_abort)), statistics_(statistics) {
  for (std::size_t i = 0; i < edges.size(); ++i) slots_[i].about = &edges[i];
}

WEFT_DECL remote_rendezvous::slot* remote_rendezvous::find(const rendezvous_key& key) {
  const auto at = std::lower_bound(edges_.begin(), edges_.end(), key.edge, [](const part_edge& e, std::int64_t n) { return e.edge < n; });
  if (at == edges_.end() || at->edge != key.edge) return nullptr;
  if (key.iteration == 0) return &slots_[static_cast<std::size_t>(at - edges_.begin())];
  if (const auto known = later_iterations_.find({key.edge, key.iteration}); known != later_iterations_.end()) return &known->second;
  if (key.iteration < 0 || later_iterations_.size() >= most_iterations) return nullptr;
  slot& out = later_iterations_[{key.edge, key.iteration}];
  out.about = &*at;
  return &out;
}

WEFT_DECL status remote_rendezvous::send(const rendezvous_key& key, tensor_value value, bool is_dead) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (aborted_) return *aborted_;
  slot* at = find(key);
  if (at == nullptr) return unknown_edge(key);
  if (at->about->way == part_edge::direction::inside) return place(std::move(lock), *at, key, std::move(value), is_dead, nullptr);
  if (at->about->way == part_edge::direction::incoming || at->state == phase::done)
    return status(error_code::internal, "edge " + std::to_string(key.edge) + " is not for this task to send, or was sent before");
  const part_edge& about = *at->about;
  if (about.may_be_large && std::find(ready_.begin(), ready_.end(), about.peer) == ready_.end()) return hold(about, key, std::move(value), is_dead);
  at->state = phase::done;
  lock.unlock();
  return push(about, key, std::move(value), is_dead);
}

// The lock is held.
WEFT_DECL status remote_rendezvous::hold(const part_edge& about, const rendezvous_key& key, tensor_value value, bool is_dead) {
  const auto outlet = outlets_.find(about.peer);
  if (outlet == outlets_.end()) return status(error_code::internal, "there is no road to " + to_text(about.peer));
  try {
    auto room = outlet->second->hold(step_, value.bytes());
    held_back_[about.peer].push_back({key, std::move(value), is_dead, std::move(room)});
  } catch (const error& e) {
    return e.status();
  }
  return status();
}

WEFT_DECL status remote_rendezvous::push(const part_edge& about, const rendezvous_key& key, tensor_value value, bool is_dead) {
  const auto outlet = outlets_.find(about.peer);
  if (outlet == outlets_.end()) return status(error_code::internal, "there is no road to " + to_text(about.peer));
  if (statistics_ != nullptr) statistics_->passes(key.edge);
  try {
    outlet->second->push(step_, key, std::move(value), is_dead, about.may_be_large);
  } catch (const error& e) {
    return e.status();
  }
  return status();
}

// Hands a value to the receiver that waits in the slot, or keeps it for one.
WEFT_DECL status remote_rendezvous::place(std::unique_lock<std::mutex> lock, slot& at, const rendezvous_key& key, tensor_value value, bool is_dead,
                                       receive_lease_ptr lease) {
  if (at.state == phase::full || at.state == phase::done)
    return status(error_code::internal, "edge " + std::to_string(key.edge) + " got a second value in iteration " + std::to_string(key.iteration));
  if (at.state == phase::empty) {
    at.state = phase::full;
    at.value = std::move(value);
    at.is_dead = is_dead;
    at.lease = std::move(lease);
    return status();
  }
  at.state = phase::done;
  const receiver done = std::move(at.done);
  at.done = nullptr;
  lock.unlock();
  lease = nullptr;
  done(status(), std::move(value), is_dead);
  return status();
}

WEFT_DECL void remote_rendezvous::receive(const rendezvous_key& key, receiver done) {
  std::unique_lock<std::mutex> lock(mutex_);
  slot* at = aborted_ ? nullptr : find(key);
  if (at == nullptr || at->about->way == part_edge::direction::outgoing || at->state == phase::waiting || at->state == phase::done) {
    const status why = aborted_ ? *aborted_ : unknown_edge(key);
    lock.unlock();
    return done(why, tensor_value(), false);
  }
  if (at->state == phase::empty) {
    at->state = phase::waiting;
    at->done = std::move(done);
    return;
  }
  at->state = phase::done;
  tensor_value value = std::move(at->value);
  const bool is_dead = at->is_dead;
  at->lease = nullptr;
  lock.unlock();
  done(status(), std::move(value), is_dead);
}

WEFT_DECL void remote_rendezvous::deliver(const task_id& from, const rendezvous_key& key, tensor_value value, bool is_dead, receive_lease_ptr lease) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (aborted_) return;
  slot* at = find(key);
  status problem;
  if (at == nullptr || at->about->way != part_edge::direction::incoming || at->about->peer != from) {
    problem = unknown_edge(key);
    problem.message += " that " + to_text(from) + " could send";
  } else if (!is_dead && value.dtype() != at->about->dtype) {
    problem = status(error_code::internal, "edge " + std::to_string(key.edge) + " carries " + to_text(at->about->dtype) + ", but " + to_text(from) + " sent " + to_text(value.dtype()));
  } else {
    if (statistics_ != nullptr) statistics_->passes(key.edge);
    problem = place(std::move(lock), *at, key, std::move(value), is_dead, std::move(lease));
  }
  if (problem.ok()) return;
  if (lock.owns_lock()) lock.unlock();
  abort(problem);
}

WEFT_DECL void remote_rendezvous::peer_ready(const task_id& peer) {
  std::vector<std::pair<const part_edge*, held_back>> now;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_ || std::find(ready_.begin(), ready_.end(), peer) != ready_.end()) return;
    ready_.push_back(peer);
    const auto waiting = held_back_.find(peer);
    if (waiting == held_back_.end()) return;
    for (held_back& each : waiting->second) {
      slot* at = find(each.key);
      at->state = phase::done;
      now.emplace_back(at->about, std::move(each));
    }
    held_back_.erase(waiting);
  }
  for (auto& [about, each] : now) {
    each.room = nullptr;
    if (const status problem = push(*about, each.key, std::move(each.value), each.is_dead); !problem.ok()) abort(problem);
  }
}

WEFT_DECL bool remote_rendezvous::open_with(const task_id& peer) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_) return false;
  return std::any_of(slots_.begin(), slots_.end(), [&](const slot& s) {
    return s.about->way != part_edge::direction::inside && s.about->peer == peer && (s.state == phase::empty || s.state == phase::waiting);
  });
}

WEFT_DECL void remote_rendezvous::abort(const status& why) {
  std::vector<receiver> waiting;
  std::function<void(const status&)> told;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) return;
    aborted_ = why;
    aborted_->derived = true;
    told = std::move(on_abort_);
    const auto collect = [&](slot& s) {
      if (s.state == phase::waiting) waiting.push_back(std::move(s.done));
      s.done = nullptr;
    };
    for (slot& s : slots_) collect(s);
    for (auto& entry : later_iterations_) collect(entry.second);
    drop_values();
  }
  if (told) told(why);
  status derived = why;
  derived.derived = true;
  for (const receiver& done : waiting) done(derived, tensor_value(), false);
}

// The lock is held.
WEFT_DECL void remote_rendezvous::drop_values() noexcept {
  const auto drop = [](slot& s) {
    s.value = tensor_value();
    s.lease = nullptr;
    s.state = phase::done;
  };
  for (slot& s : slots_) drop(s);
  for (auto& entry : later_iterations_) drop(entry.second);
  held_back_.clear();
}

#endif

}  // namespace weft

#endif
