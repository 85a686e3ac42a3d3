#include <weft/cluster/fair_share.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using weft::detail::may_take;
using weft::detail::may_take_one;
using weft::detail::most_of_one;

TEST_CASE("fair share: one alone gets four fifths, in one piece or in many") {
  CHECK(may_take(0, 0, 100, 80));
  CHECK_FALSE(may_take(0, 0, 100, 81));
  CHECK(may_take(79, 79, 100, 1));
  CHECK_FALSE(may_take(80, 80, 100, 1));
  for (const std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{99}, std::uint64_t{101}, UINT64_MAX - 1, UINT64_MAX}) {
    CHECK(may_take(0, 0, limit, most_of_one(limit)));
    CHECK_FALSE(may_take(0, 0, limit, most_of_one(limit) + 1));
  }
  CHECK_FALSE(may_take(0, 7, 5, 0));
}

TEST_CASE("fair share: however many take all that they can, something is left for the next") {
  constexpr std::uint64_t limit = 1000000;
  std::uint64_t used = 0;
  std::vector<std::uint64_t> own(50);
  for (bool taken = true; taken;) {
    taken = false;
    for (std::uint64_t& mine : own)
      if (may_take(mine, used, limit, 100)) {
        mine += 100;
        used += 100;
        taken = true;
      }
  }
  // 50 of them have 4/201 each, and as much as a quarter of that is left.
  for (const std::uint64_t mine : own) CHECK(mine == 19900);
  CHECK(limit - used == 5000);
  CHECK(may_take(0, used, limit, 4000));
  CHECK_FALSE(may_take(0, used, limit, 4001));
}

TEST_CASE("fair share: of things that are counted, who has none gets the last one") {
  CHECK(may_take_one(0, 0, 1));
  CHECK_FALSE(may_take_one(0, 1, 1));
  CHECK_FALSE(may_take_one(1, 1, 2));
  CHECK(may_take_one(0, 1, 2));
  CHECK(may_take_one(1, 1, 3));
  CHECK_FALSE(may_take_one(2, 2, 3));
  CHECK(may_take_one(3, 3, 5));
  CHECK_FALSE(may_take_one(4, 4, 5));
}
