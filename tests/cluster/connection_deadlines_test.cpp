#include <weft/cluster/connection_deadlines.hpp>

#include <doctest/doctest.h>

using weft::error_code;
using weft::detail::connection_deadlines;
using namespace std::chrono_literals;

namespace {
using time_point = connection_deadlines::time_point;
constexpr time_point begin{};
}  // namespace

TEST_CASE("connection deadlines: without any there is nothing to look for") {
  connection_deadlines all(10s);
  time_point next;
  CHECK_FALSE(all.look({begin + 1h, false, begin, 0}, "peer", next));
  CHECK(next == connection_deadlines::never);
}

TEST_CASE("connection deadlines: a message is awaited until it comes or the time is up") {
  connection_deadlines all(0ms);
  all.expect_message(5s, begin);
  time_point next;
  CHECK_FALSE(all.look({begin + 4s, false, begin, 0}, "peer", next));
  CHECK(next == begin + 5s);
  const auto why = all.look({begin + 5s, false, begin, 0}, "peer", next);
  REQUIRE(why);
  CHECK(why->text() == "DEADLINE_EXCEEDED: no message came from peer within 5 s");
  all.message_came();
  CHECK_FALSE(all.look({begin + 6s, false, begin, 0}, "peer", next));
  all.expect_message(5s, begin);
  all.expect_message(0ms, begin);
  CHECK_FALSE(all.look({begin + 6s, false, begin, 0}, "peer", next));
  CHECK(next == connection_deadlines::never);
}

TEST_CASE("connection deadlines: the rest of a frame has to go on coming, from the last byte on") {
  connection_deadlines all(10s);
  time_point next;
  CHECK_FALSE(all.look({begin + 9s, true, begin, 0}, "peer", next));
  CHECK(next == begin + 10s);
  CHECK_FALSE(all.look({begin + 12s, true, begin + 3s, 0}, "peer", next));
  CHECK(next == begin + 13s);
  const auto why = all.look({begin + 13s, true, begin + 3s, 0}, "peer", next);
  REQUIRE(why);
  CHECK(why->text() == "DEADLINE_EXCEEDED: no byte came from peer for 10 s in the middle of a message");
}

TEST_CASE("connection deadlines: a frame comes at some pace or is over, whoever sends a byte now and then") {
  connection_deadlines all(8s, 1000);
  time_point next, now = begin;
  std::uint64_t bytes = 0;
  const auto later = [&](std::chrono::seconds time, std::uint64_t more, bool inside = true) {
    now += time;
    bytes += more;
    return all.look({now, inside, now, 0, bytes}, "peer", next);
  };
  CHECK_FALSE(later(0s, 40));  // what came with its beginning is not of a window yet
  CHECK(next == begin + 2s);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(later(2s, 250));
  CHECK_FALSE(later(2s, 250));  // just enough: the next window begins
  for (int i = 0; i < 3; ++i) CHECK_FALSE(later(2s, 1));
  CHECK_FALSE(later(0s, 0));
  SUBCASE("too little") {
    const auto why = later(2s, 996);
    REQUIRE(why);
    CHECK(why->text() == "DEADLINE_EXCEEDED: in the middle of a message only 999 bytes came from peer within 8 s, at least 1000 have to (frame_pace)");
  }
  SUBCASE("enough at the last moment") { CHECK_FALSE(later(2s, 997)); }
  SUBCASE("its end, with another one behind it") {
    all.message_came();
    CHECK_FALSE(later(7s, 1));
    CHECK_FALSE(later(2s, 1));
  }
  SUBCASE("nothing was read for a while") {
    CHECK_FALSE(later(2s, 0, false));
    CHECK_FALSE(later(7s, 1));
    CHECK_FALSE(later(2s, 1));
  }
}

TEST_CASE("connection deadlines: the time in which this program stood still is not the other end's") {
  connection_deadlines all(8s, 1000);
  time_point next;
  CHECK_FALSE(all.look({begin, true, begin, 0, 40}, "peer", next));
  CHECK_FALSE(all.look({begin + 1h, true, begin + 1h, 0, 41}, "peer", next));
  CHECK(next == begin + 1h + 2s);
}

TEST_CASE("connection deadlines: an end waits for bytes that are taken at some pace, not for one now and then") {
  connection_deadlines all(8s, 1000);
  all.expect_end(begin, 5000);
  time_point next, now = begin;
  std::uint64_t sent = 5000;
  const auto later = [&](std::chrono::seconds time, std::uint64_t more) {
    now += time;
    sent += more;
    return all.look({now, false, begin, sent}, "peer", next);
  };
  CHECK_FALSE(later(0s, 0));
  CHECK(next == begin + 2s);
  for (int i = 0; i < 4; ++i) CHECK_FALSE(later(2s, 250));  // just enough: the next window begins
  for (int i = 0; i < 3; ++i) CHECK_FALSE(later(2s, 1));
  const auto why = later(2s, 996);
  REQUIRE(why);
  CHECK(why->ok());
}

TEST_CASE("connection deadlines: an end waits as long as bytes are taken") {
  connection_deadlines all(10s);
  CHECK_FALSE(all.ending());
  all.expect_end(begin, 100);
  CHECK(all.ending());
  time_point next;
  CHECK_FALSE(all.look({begin, false, begin, 100}, "peer", next));
  CHECK(next == begin + 10s);
  CHECK_FALSE(all.look({begin + 9s, false, begin, 101}, "peer", next));
  CHECK(next == begin + 19s);
  const auto why = all.look({begin + 19s, false, begin, 101}, "peer", next);
  REQUIRE(why);
  CHECK(why->ok());  // whoever ended it has said why
}
