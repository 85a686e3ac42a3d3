#include <weft/runtime/cancellation.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using weft::cancellation_source;
using weft::cancellation_token;
using weft::error_code;
using weft::status;

TEST_CASE("cancellation: a default token is never cancelled") {
  const cancellation_token none;
  CHECK_FALSE(none.cancelled());
  CHECK(none.why().ok());
  CHECK(none.on_cancel([](const status&) {}) == 0);
  CHECK_FALSE(none.forget(0));
}

TEST_CASE("cancellation: the first reason stays and each callback is called once") {
  const cancellation_source source;
  const cancellation_token token = source.token();
  std::vector<std::string> told;
  CHECK(token.on_cancel([&](const status& s) { told.push_back(s.message); }) != 0);
  CHECK(source.cancel(status(error_code::cancelled, "first")));
  CHECK_FALSE(source.cancel(status(error_code::cancelled, "second")));
  CHECK(token.cancelled());
  CHECK(token.why().message == "first");
  CHECK(token.on_cancel([&](const status& s) { told.push_back("late " + s.message); }) == 0);
  CHECK(told == std::vector<std::string>{"first", "late first"});
}

TEST_CASE("cancellation: a callback that was taken back is not called") {
  const cancellation_source source;
  const cancellation_token token = source.token();
  bool called = false;
  const auto number = token.on_cancel([&](const status&) { called = true; });
  CHECK(token.forget(number));
  CHECK_FALSE(token.forget(number));
  source.cancel(status(error_code::cancelled, "now"));
  CHECK_FALSE(called);
}
