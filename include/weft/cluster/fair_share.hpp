#ifndef WEFT_CLUSTER_FAIR_SHARE_HPP
#define WEFT_CLUSTER_FAIR_SHARE_HPP
// How several share what a server may hold, so that nobody takes all of it.

#include <cstdint>

namespace weft::detail {

/// Whether somebody who holds `own` of the `used` part of `limit` may take `more`: nobody may hold more than four times of what is then left free. One alone gets four fifths, and
/// however many take what they can, something is left for those who hold little. (Dynamic thresholds: Choudhury and Hahne, 1998.)
constexpr bool may_take(std::uint64_t own, std::uint64_t used, std::uint64_t limit, std::uint64_t more) noexcept {
  if (used > limit || more > limit - used) return false;
  const std::uint64_t mine = own + more, quarter = mine / 4 + (mine % 4 != 0 ? 1 : 0);
  return quarter <= limit - used - more;
}

/// The same of things that are counted, and taken one by one: who has none gets the last one, too.
constexpr bool may_take_one(std::uint64_t own, std::uint64_t used, std::uint64_t limit) noexcept { return used < limit && (own == 0 || may_take(own, used, limit, 1)); }

/// The most that one alone may hold.
constexpr std::uint64_t most_of_one(std::uint64_t limit) noexcept { return limit - (limit / 5 + (limit % 5 != 0 ? 1 : 0)); }

}  // namespace weft::detail

#endif
