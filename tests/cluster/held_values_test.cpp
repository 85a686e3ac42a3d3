#include <weft/cluster/held_values.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <ostream>
#include <vector>

using weft::detail::held_values;

namespace {

// Values of 744 bytes, each of which takes 1000 with what is around it.
struct fixture {
  std::shared_ptr<held_values> held = std::make_shared<held_values>();
  held_values::amounts now;
  held_values::room take(std::uint64_t master, std::size_t queued = 0, std::size_t limit = 10000) { return held->take(master, 744, queued, limit, now); }
};

}  // namespace

TEST_CASE_FIXTURE(fixture, "held values: one master gets four fifths of what may wait, the next one some of the rest, and what is given back may be taken") {
  std::vector<held_values::room> greedy;
  while (auto one = take(1)) greedy.push_back(one);
  CHECK(greedy.size() == 8);
  CHECK(now.all == 8000);
  CHECK(now.of_master == 8000);
  auto other = take(2);
  CHECK(other != nullptr);
  CHECK(take(2) == nullptr);
  CHECK(now.all == 9000);
  CHECK(now.of_master == 1000);
  greedy.clear();
  CHECK(held->bytes() == 1000);
  CHECK(take(1) != nullptr);
  other = nullptr;
  CHECK(held->bytes() == 0);
}

TEST_CASE_FIXTURE(fixture, "held values: what is queued for the task counts, and a limit below it leaves no room") {
  CHECK(take(1, 5000) != nullptr);
  CHECK(take(1, 9500) == nullptr);
  CHECK(take(1, 20000) == nullptr);
  CHECK(take(1, 0, 500) == nullptr);
  CHECK(held->bytes() == 0);
}

TEST_CASE_FIXTURE(fixture, "held values: values without bytes take room, too, which may outlive what they are held for") {
  auto first = held->take(1, 0, 0, 1000, now), second = held->take(1, 0, 0, 1000, now);
  CHECK(held->bytes() == 512);
  first = nullptr;
  CHECK(held->bytes() == 256);
  const std::weak_ptr<held_values> gone = held;
  held = nullptr;
  second = nullptr;
  CHECK(gone.expired());
}
