#ifndef WEFT_SESSION_PLACEMENT_LOG_HPP
#define WEFT_SESSION_PLACEMENT_LOG_HPP
// What `log_device_placement` prints: `y (Mul): /job:work/task:1/device:CPU:0 (pinned at train.cpp:42)`.

#include <weft/placement/placement.hpp>

#include <functional>
#include <iostream>
#include <string_view>

namespace weft::detail {

// The line of one node, to whoever wants it.
inline void log_placement(const node& n, const placed_node& where, const std::function<void(std::string_view)>& log) {
  if (log) log(to_text(where, n));
  else std::clog << to_text(where, n) + "\n" << std::flush;
}

}  // namespace weft::detail

#endif
