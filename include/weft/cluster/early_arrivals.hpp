#ifndef WEFT_CLUSTER_EARLY_ARRIVALS_HPP
#define WEFT_CLUSTER_EARLY_ARRIVALS_HPP
// What comes for a step before its master has announced it: tensors, and who is ready for them. Each task that sends pays for what it leaves here.

#include <weft/cluster/frame.hpp>
#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/remote_rendezvous.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// What one task sent early for one step.
struct early_messages {
  struct tensor {
    tensor_message about;
    tensor_value value;
    receive_lease_ptr lease;
  };
  std::vector<tensor> tensors;
  bool ready = false;
  /// Why its tensors were thrown away.
  std::optional<status> refused;
  std::size_t bytes = 0;
};

/// See the head of this file. Lives on the event loop.
class early_arrivals {
 public:
  using by_sender = std::map<task_id, early_messages>;

  /// What one task may leave here: bytes (`parked_bytes_per_peer`), and the steps that it is for (`parked_steps_per_peer`).
  early_arrivals(std::size_t most_bytes, std::size_t most_steps) : most_bytes_(most_bytes), most_steps_(most_steps) {}

  /// Keeps a tensor for its step. Past the bytes of its sender the step is refused; past the steps it throws RESOURCE_EXHAUSTED.
  void park(const task_id& from, const tensor_message& about, message m);
  /// Notes that a task has begun a step. Throws like `park`.
  void ready(const task_id& from, const step_id& step) { messages_of(step, from).ready = true; }
  /// What came for a step, which is not kept any longer, nor what came for earlier ones of the same master.
  by_sender claim(const step_id& step);
  /// Forgets what came for a master's steps up to this one.
  void drop(std::uint64_t master, std::int64_t up_to);
  /// Bytes of all tasks.
  std::size_t bytes() const noexcept;

 private:
  struct account {
    std::size_t bytes = 0, steps = 0;
  };
  early_messages& messages_of(const step_id& step, const task_id& from);
  void free(const by_sender& messages);

  const std::size_t most_bytes_, most_steps_;
  std::map<step_id, by_sender> steps_;
  std::map<task_id, account> accounts_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL early_messages& early_arrivals::messages_of(const step_id& step, const task_id& from) {
  const auto known = steps_.find(step);
  if (known != steps_.end())
    if (const auto mine = known->second.find(from); mine != known->second.end()) return mine->second;
  account& pays = accounts_[from];
  if (pays.steps >= most_steps_)
    fail(error_code::resource_exhausted, "messages came from " + to_text(from) + " for " + std::to_string(pays.steps) + " steps that are not known yet, no more may wait (server_options::parked_steps_per_peer)");
  ++pays.steps;
  return steps_[step][from];
}

WEFT_DECL void early_arrivals::park(const task_id& from, const tensor_message& about, message m) {
  constexpr std::size_t overhead = 256;
  early_messages& mine = messages_of(about.step, from);
  if (mine.refused) return;
  account& pays = accounts_[from];
  const std::size_t bytes = overhead + (m.tensors.empty() ? 0 : m.tensors[0].bytes());
  if (m.refused || pays.bytes + bytes > most_bytes_) {
    mine.refused = status(error_code::resource_exhausted, "tensors from " + to_text(from) + " came before their step and do not fit: " + std::to_string(pays.bytes + bytes) + " bytes, at most " +
                                                              std::to_string(most_bytes_) + " may wait (server_options::parked_bytes_per_peer)");
    pays.bytes -= mine.bytes;
    mine.bytes = 0;
    return mine.tensors.clear();
  }
  pays.bytes += bytes;
  mine.bytes += bytes;
  mine.tensors.push_back({about, m.tensors.empty() ? tensor_value() : std::move(m.tensors[0]), std::move(m.lease)});
}

WEFT_DECL void early_arrivals::free(const by_sender& messages) {
  for (const auto& [from, sent] : messages) {
    const auto pays = accounts_.find(from);
    pays->second.bytes -= sent.bytes;
    if (--pays->second.steps == 0) accounts_.erase(pays);
  }
}

WEFT_DECL early_arrivals::by_sender early_arrivals::claim(const step_id& step) {
  by_sender out;
  if (const auto it = steps_.find(step); it != steps_.end()) {
    out = std::move(it->second);
    steps_.erase(it);
    free(out);
  }
  drop(step.master, step.number);
  return out;
}

WEFT_DECL void early_arrivals::drop(std::uint64_t master, std::int64_t up_to) {
  const auto first = steps_.lower_bound({master, std::numeric_limits<std::int64_t>::min()}), end = steps_.upper_bound({master, up_to});
  for (auto it = first; it != end; ++it) free(it->second);
  steps_.erase(first, end);
}

WEFT_DECL std::size_t early_arrivals::bytes() const noexcept {
  std::size_t out = 0;
  for (const auto& entry : accounts_) out += entry.second.bytes;
  return out;
}

#endif

}  // namespace weft::detail

#endif
