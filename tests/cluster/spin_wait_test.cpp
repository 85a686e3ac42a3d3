#include <weft/cluster/spin_wait.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

using weft::detail::spin_wait;

TEST_CASE("spin_wait: without a window it sleeps at once") {
  spin_wait never(std::chrono::microseconds(0));
  for (int i = 0; i < 10; ++i) CHECK_FALSE(never.again());
  never.found();
  CHECK_FALSE(never.again());
}

TEST_CASE("spin_wait: within its window it looks again, also after it has found something") {
  spin_wait patient(std::chrono::hours(100));
  for (int wait = 0; wait < 10; ++wait) {
    for (int i = 0; i < 10; ++i) CHECK(patient.again());
    patient.found();
  }
}

TEST_CASE("spin_wait: where looking is in vain it is soon given up") {
  spin_wait hasty(std::chrono::microseconds(1));
  int looks = 0;
  for (int i = 0; i < 10000; ++i) looks += hasty.again() ? 1 : 0;
  CHECK(looks < 100);
}

TEST_CASE("spin_wait: no more threads look at once than there are processors") {
  std::vector<std::unique_ptr<spin_wait>> all;
  unsigned looking = 0;
  for (unsigned i = 0; i < std::thread::hardware_concurrency() + 3; ++i) {
    all.push_back(std::make_unique<spin_wait>(std::chrono::hours(100)));
    looking += all.back()->again() ? 1 : 0;
  }
  CHECK(looking == std::max(1U, std::thread::hardware_concurrency()));
  all.clear();
  CHECK(spin_wait(std::chrono::hours(100)).again());
}
