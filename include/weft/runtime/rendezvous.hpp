#ifndef WEFT_RUNTIME_RENDEZVOUS_HPP
#define WEFT_RUNTIME_RENDEZVOUS_HPP
// Where a step's values are handed over between parts and devices: a send meets the receive of the same edge and iteration.

#include <weft/core/status.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <cstdint>
#include <functional>

namespace weft {

/// What crosses one edge in one iteration of a step.
struct rendezvous_key {
  /// Number of the edge in the partitioned graph (attribute `_edge` of `_Send` and `_Recv`).
  std::int64_t edge = 0;
  /// Iteration of the enclosing loop; 0 outside loops.
  std::int64_t iteration = 0;
  friend bool operator==(const rendezvous_key& a, const rendezvous_key& b) noexcept { return a.edge == b.edge && a.iteration == b.iteration; }
};

/// The rendezvous of one step on one task. Thread-safe; no call blocks.
class rendezvous {
 public:
  /// Called once, with the value or the reason why there is none; possibly before `receive` returns.
  using receiver = std::function<void(const status&, tensor_value value, bool is_dead)>;
  virtual ~rendezvous() = default;
  /// Hands over a value: keeps it for a local receiver, or sends it to the task that waits.
  virtual status send(const rendezvous_key& key, tensor_value value, bool is_dead) = 0;
  /// Asks for a value, which may have come already.
  virtual void receive(const rendezvous_key& key, receiver done) = 0;
  /// Fails every pending and future call with `why`. The first reason stays.
  virtual void abort(const status& why) = 0;
};

}  // namespace weft

#endif
