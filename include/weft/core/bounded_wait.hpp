#ifndef WEFT_CORE_BOUNDED_WAIT_HPP
#define WEFT_CORE_BOUNDED_WAIT_HPP
// Durations that a user gives, made fit for arithmetic.

#include <algorithm>
#include <chrono>

namespace weft::detail {

/// From 0 to a year: a wait that can be added to any point of time and to others, also where the user says `milliseconds::max()`.
inline std::chrono::milliseconds bounded(std::chrono::milliseconds time) noexcept {
  return std::min<std::chrono::milliseconds>(std::max(time, std::chrono::milliseconds(0)), std::chrono::hours(24 * 365));
}

}  // namespace weft::detail

#endif
