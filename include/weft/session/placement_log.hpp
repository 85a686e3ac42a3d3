#ifndef WEFT_SESSION_PLACEMENT_LOG_HPP
#define WEFT_SESSION_PLACEMENT_LOG_HPP
// What `log_device_placement` prints.

#include <weft/placement/placement.hpp>

#include <cstddef>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

namespace weft::detail {

// One line per node from number `from` on: `y (Mul): /job:work/task:1/device:CPU:0 (pinned at train.cpp:42)`.
inline void log_placement(const graph& g, const placement& where, std::size_t from, const std::function<void(std::string_view)>& log) {
  for (const node* n : g.nodes()) {
    if (static_cast<std::size_t>(n->id()) < from || !where.has(*n)) continue;
    const std::string line = n->name() + " (" + n->op() + "): " + where.device_of(*n) + " (" + where.reason_of(*n) + ")";
    if (log) log(line);
    else std::clog << line + "\n" << std::flush;
  }
}

}  // namespace weft::detail

#endif
