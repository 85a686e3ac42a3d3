#include <weft/core/array_view.hpp>

#include <doctest/doctest.h>

#include <vector>

using view = weft::array_view<int>;

TEST_CASE("array_view: reads like the vector that it looks at") {
  const std::vector<int> of{3, 1, 2};
  const view all = of;
  CHECK(all.size() == 3);
  CHECK(all[1] == 1);
  CHECK(all.front() == 3);
  CHECK(all.back() == 2);
  CHECK(all.data() == of.data());
  int sum = 0;
  for (const int i : all) sum += i;
  CHECK(sum == 6);
  CHECK(view().empty());
  CHECK(view().begin() == view().end());
}

TEST_CASE("array_view: becomes a vector, and compares with one by its elements") {
  const std::vector<int> of{3, 1, 2}, same = of;
  const std::vector<int> copy = view(of);
  CHECK(copy == of);
  CHECK(view(of) == same);
  CHECK(same == view(of));
  CHECK(view(of) != std::vector<int>{3, 1});
}
