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
