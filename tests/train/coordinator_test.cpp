#include <weft/train/coordinator.hpp>

#include "../error_of.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

using namespace std::chrono_literals;

TEST_CASE("coordinator: an error in one thread stops all and is thrown once") {
  weft::coordinator together;
  std::atomic<int> rounds{0};
  for (int i = 0; i < 3; ++i) together.start_loop("counts", 0ms, [&] { ++rounds; });
  together.start("fails", [] { weft::fail(weft::error_code::data_loss, "a record is torn"); });
  const auto why = error_of([&] { together.join(); });
  CHECK(why.code == weft::error_code::data_loss);
  CHECK(why.message == "a record is torn");
  CHECK(together.should_stop());
  CHECK(error_of([&] { together.join(); }).ok());
}

TEST_CASE("coordinator: the first reason counts, and what follows a stop is none") {
  weft::coordinator together;
  together.request_stop(weft::status(weft::error_code::unavailable, "first"));
  together.request_stop(weft::status(weft::error_code::internal, "second"));
  CHECK(together.reason().message == "first");
  CHECK(error_of([&] { together.join(); }).message == "first");
  together.clear_stop();
  CHECK_FALSE(together.should_stop());
  together.request_stop();
  together.request_stop(weft::status(weft::error_code::internal, "after a clean stop"));
  CHECK(error_of([&] { together.join(); }).ok());
}

TEST_CASE("coordinator: OUT_OF_RANGE and CANCELLED stop without an error") {
  for (const auto code : {weft::error_code::out_of_range, weft::error_code::cancelled}) {
    weft::coordinator together;
    std::atomic<bool> stopped{false};
    together.start("waits", [&] { stopped = together.wait_for_stop(20s); });
    together.start("ends", [code] { weft::fail(code, "no more"); });
    CHECK(error_of([&] { together.join(); }).ok());
    CHECK(stopped);
  }
}

TEST_CASE("coordinator: threads that end by themselves are joined without a stop") {
  weft::coordinator together;
  std::atomic<int> ended{0};
  for (int i = 0; i < 3; ++i) together.start("short", [&] { ++ended; });
  together.join();
  CHECK(ended == 3);
  CHECK_FALSE(together.should_stop());
}

TEST_CASE("coordinator: threads that do not stop are named after the grace period") {
  weft::coordinator_options options;
  options.stop_grace_period = 30ms;
  std::atomic<bool> go{false};
  weft::coordinator together(options);
  together.start("the deaf one", [&] {
    while (!go) std::this_thread::yield();
  });
  together.request_stop();
  const auto late = error_of([&] { together.join(); });
  CHECK(late.code == weft::error_code::deadline_exceeded);
  CHECK(late.message == "threads did not stop within 30 ms: 'the deaf one'");
  CHECK(error_of([&] { together.clear_stop(); }).code == weft::error_code::failed_precondition);
  go = true;
  together.join();
}

TEST_CASE("coordinator: what must be woken is woken, also when it comes late") {
  weft::coordinator together;
  int woken = 0;
  together.on_stop([&] { ++woken; });
  CHECK(woken == 0);
  together.request_stop();
  together.request_stop();
  together.on_stop([&] { woken += 10; });
  CHECK(woken == 11);
}

TEST_CASE("coordinator: any exception is a reason") {
  weft::coordinator together;
  together.start("throws", [] { throw std::runtime_error("not weft's"); });
  const auto why = error_of([&] { together.join(); });
  CHECK(why.code == weft::error_code::unknown);
  CHECK(why.message == "not weft's");
}
