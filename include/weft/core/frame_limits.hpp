#ifndef WEFT_CORE_FRAME_LIMITS_HPP
#define WEFT_CORE_FRAME_LIMITS_HPP
// What one end of a connection accepts of a single message of the other.

#include <cstdint>

namespace weft {

/// What a receiver accepts of one frame. A frame past a limit closes its connection before memory is taken for it.
struct frame_limits {
  /// Bytes of the head, which holds registered graphs too: some 80 for each of their nodes.
  std::uint32_t max_head = 512U << 20;
  /// Bytes of all tensors together.
  std::uint64_t max_body = std::uint64_t{4} << 30;
  /// Tensors.
  std::uint32_t max_tensors = 1U << 20;
  /// Dimensions of a tensor.
  std::uint32_t max_rank = 32;
};

}  // namespace weft

#endif
