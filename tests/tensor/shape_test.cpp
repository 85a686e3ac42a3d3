#include <weft/tensor/shape.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

using weft::broadcast_shapes;
using weft::checked_elements;
using weft::merge_shapes;
using weft::partial_shape;
using weft::shape;

namespace {
std::optional<std::int64_t> count(const std::vector<std::int64_t>& sizes) { return checked_elements(sizes.data(), sizes.size()); }
constexpr std::int64_t huge = std::int64_t{1} << 62;
}  // namespace

TEST_CASE("shape: sizes, rank, elements and text") {
  CHECK(shape().rank() == 0);
  CHECK(shape().elements() == 1);
  CHECK(shape().text() == "[]");
  const shape s{2, 3};
  CHECK(s.rank() == 2);
  CHECK(s[0] == 2);
  CHECK(s[1] == 3);
  CHECK(s.elements() == 6);
  CHECK(s.text() == "[2,3]");
  CHECK(s.vector() == std::vector<std::int64_t>{2, 3});
  CHECK(shape{4, 0}.elements() == 0);
}

TEST_CASE("shape: four sizes are held inside, more on the heap, with one behaviour") {
  for (std::int64_t rank = 0; rank <= 9; ++rank) {
    CAPTURE(rank);
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = 0; i < rank; ++i) sizes.push_back(i + 2);
    shape s(sizes);
    CHECK(s.rank() == rank);
    CHECK(s.vector() == sizes);
    shape copied = s;
    CHECK(copied == s);
    if (rank > 0) {
      copied.set(0, 7);
      CHECK(copied != s);
      CHECK(copied[0] == 7);
      CHECK(s[0] == 2);
    }
    shape moved = std::move(s);
    CHECK(moved.vector() == sizes);
  }
}

TEST_CASE("shape: copy and move assignment between short and long ones") {
  const shape few{1, 2}, many{1, 2, 3, 4, 5, 6};
  shape s = few;
  s = many;
  CHECK(s == many);
  const shape& same = s;
  s = same;
  CHECK(s == many);
  s = few;
  CHECK(s == few);
  shape from = many;
  s = std::move(from);
  CHECK(s == many);
  from = few;  // a moved-from shape can be given a value
  CHECK(from == few);
  s = std::move(from);
  CHECK(s == few);
}

TEST_CASE("shape: equality needs equal ranks") {
  CHECK(shape{1} != shape{});
  CHECK(shape{2, 3} != shape{2, 3, 1});
  CHECK(shape{2, 3} != shape{3, 2});
}

TEST_CASE("shape: at most 254 dimensions") {
  CHECK(shape(std::vector<std::int64_t>(254, 1)).rank() == 254);
  CHECK_THROWS_WITH_AS(shape(std::vector<std::int64_t>(255, 1)), "INVALID_ARGUMENT: a shape has 255 dimensions, at most 254", weft::error);
  CHECK(partial_shape(std::vector<std::int64_t>(254, -1)).rank() == 254);
  CHECK_THROWS_WITH_AS(partial_shape(std::vector<std::int64_t>(255, -1)), "INVALID_ARGUMENT: a shape has 255 dimensions, at most 254", weft::error);
}

TEST_CASE("checked_elements: counts, and refuses what does not fit") {
  CHECK(count({}) == 1);
  CHECK(count({2, 3, 4}) == 24);
  CHECK(count({huge, 1}) == huge);
  CHECK(count({huge, 2}) == std::nullopt);
  CHECK(count({3037000500, 3037000500}) == std::nullopt);
  CHECK(count({std::numeric_limits<std::int64_t>::max()}) == std::numeric_limits<std::int64_t>::max());
  CHECK(count({0, huge, huge}) == 0);
  CHECK(count({huge, huge, 0}) == 0);
  CHECK(count({-1}) == std::nullopt);
  CHECK(count({-1, 0}) == std::nullopt);
}

TEST_CASE("partial_shape: unknown rank, unknown sizes, all known") {
  const partial_shape none;
  CHECK_FALSE(none.known_rank());
  CHECK(none.rank() == weft::dynamic_rank);
  CHECK(none.text() == "<unknown>");
  CHECK_FALSE(none.fully_known());
  CHECK(none.elements() == std::nullopt);

  const partial_shape some{2, -1};
  CHECK(some.rank() == 2);
  CHECK(some[1] == -1);
  CHECK(some.text() == "[2,?]");
  CHECK_FALSE(some.fully_known());
  CHECK(some.elements() == std::nullopt);

  const partial_shape all{2, 5};
  CHECK(all.fully_known());
  CHECK(all.elements() == 10);
  CHECK(all.to_shape() == shape{2, 5});
  CHECK(partial_shape(shape{2, 5}) == all);
  CHECK(partial_shape(std::vector<std::int64_t>{}).text() == "[]");
  CHECK(partial_shape(std::vector<std::int64_t>{}).elements() == 1);
  CHECK(partial_shape{huge, huge}.elements() == std::nullopt);
}

TEST_CASE("partial_shape: any negative size means unknown") { CHECK(partial_shape{-7, 3} == partial_shape{-1, 3}); }

TEST_CASE("partial_shape: of_rank") {
  CHECK(partial_shape::of_rank(2) == partial_shape{-1, -1});
  CHECK(partial_shape::of_rank(0) == partial_shape(std::vector<std::int64_t>{}));
  CHECK(partial_shape::of_rank(weft::dynamic_rank) == partial_shape());
  CHECK(partial_shape::of_rank(0) != partial_shape());
}

TEST_CASE("partial_shape: which values it accepts") {
  CHECK(partial_shape().accepts(shape{}));
  CHECK(partial_shape().accepts(shape{3, 4}));
  CHECK(partial_shape{-1, 4}.accepts(shape{3, 4}));
  CHECK(partial_shape{-1, 4}.accepts(shape{0, 4}));
  CHECK_FALSE(partial_shape{-1, 4}.accepts(shape{3, 5}));
  CHECK_FALSE(partial_shape{-1, 4}.accepts(shape{4}));
  CHECK_FALSE(partial_shape{-1}.accepts(shape{}));
}

TEST_CASE("merge_shapes: what both say together") {
  struct {
    partial_shape a, b;
    std::optional<partial_shape> merged;
  } const rows[] = {
      {{}, {}, partial_shape()},
      {{}, {2, -1}, partial_shape{2, -1}},
      {{2, -1}, {-1, 3}, partial_shape{2, 3}},
      {{-1, -1}, {-1, -1}, partial_shape{-1, -1}},
      {{2, 3}, {2, 3}, partial_shape{2, 3}},
      {{0}, {-1}, partial_shape{0}},
      {{2}, {3}, std::nullopt},
      {{0}, {1}, std::nullopt},
      {{2}, {2, 1}, std::nullopt},
      {partial_shape::of_rank(0), {1}, std::nullopt},
  };
  for (const auto& row : rows) {
    CAPTURE(row.a.text());
    CAPTURE(row.b.text());
    CHECK(merge_shapes(row.a, row.b) == row.merged);
    CHECK(merge_shapes(row.b, row.a) == row.merged);
  }
}

TEST_CASE("broadcast_shapes: NumPy's rules, with 0 and with unknown sizes") {
  struct {
    partial_shape a, b;
    std::optional<partial_shape> result;
  } const rows[] = {
      {{2, 3}, {2, 3}, partial_shape{2, 3}},
      {{2, 3}, {3}, partial_shape{2, 3}},
      {{2, 3}, partial_shape::of_rank(0), partial_shape{2, 3}},
      {{2, 1}, {1, 3}, partial_shape{2, 3}},
      {{5, 1, 3}, {2, 1}, partial_shape{5, 2, 3}},
      {{2, 3}, {2}, std::nullopt},
      {{4}, {3}, std::nullopt},
      // nothing at all: 0 goes with 0 and 1
      {{0}, {1}, partial_shape{0}},
      {{0}, {0}, partial_shape{0}},
      {{0}, {2}, std::nullopt},
      {{0, 1}, {3}, partial_shape{0, 3}},
      // an unknown size is the other one if that is above 1, as TensorFlow infers it
      {{-1}, {3}, partial_shape{3}},
      {{-1}, {1}, partial_shape{-1}},
      {{-1}, {-1}, partial_shape{-1}},
      {{-1}, {0}, partial_shape{-1}},
      {{-1, 3}, {2, 1}, partial_shape{2, 3}},
      {{2, -1}, {3}, partial_shape{2, 3}},
      {{-1, 2}, {3}, std::nullopt},
      // an unknown rank says nothing
      {{}, {2, 3}, partial_shape()},
      {{}, partial_shape::of_rank(0), partial_shape()},
      {{}, {}, partial_shape()},
  };
  for (const auto& row : rows) {
    CAPTURE(row.a.text());
    CAPTURE(row.b.text());
    CHECK(broadcast_shapes(row.a, row.b) == row.result);
    CHECK(broadcast_shapes(row.b, row.a) == row.result);
  }
}

TEST_CASE("partial_shape: copies, moves and assignments keep every rank") {
  CHECK(sizeof(weft::partial_shape) == 24);
  std::vector<std::int64_t> sizes;
  weft::partial_shape last;
  for (std::int64_t rank = 0; rank < 6; ++rank) {
    const weft::partial_shape one(sizes);
    weft::partial_shape copy = one, other{7, 8, 9};
    CHECK(copy == one);
    CHECK(copy.sizes() == sizes);
    CHECK(copy.rank() == static_cast<int>(rank));
    CHECK(copy != last);
    other = copy;
    CHECK(other == one);
    last = std::move(copy);
    CHECK(last == one);
    other = weft::partial_shape{1};
    CHECK(other == weft::partial_shape{1});
    other = weft::partial_shape();
    CHECK_FALSE(other.known_rank());
    CHECK(other.sizes().empty());
    sizes.push_back(rank == 2 ? -1 : rank);
  }
  CHECK(last.text() == "[0,1,?,3,4]");
}
