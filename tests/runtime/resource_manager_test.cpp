#include <weft/runtime/resource_manager.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace {

struct thing : weft::resource {
  std::string describe() const override { return "a thing"; }
};
struct other_thing : weft::resource {
  std::string describe() const override { return "another thing"; }
};

}  // namespace

TEST_CASE("resource_manager: what could not be made is not there") {
  weft::resource_manager all("work");
  const auto failing = []() -> std::shared_ptr<thing> { throw weft::error(weft::status(weft::error_code::invalid_argument, "no")); };
  CHECK_THROWS_AS(all.find_or_make<thing>("", "x", failing), weft::error);
  CHECK(all.list().empty());
  CHECK(all.find<thing>("work", "x") == nullptr);
  const auto made = all.find_or_make<thing>("", "x", [] { return std::make_shared<thing>(); });
  CHECK(all.find_or_make<thing>("work", "x", failing) == made);
  CHECK_THROWS_AS(all.find<other_thing>("", "x"), weft::error);
  CHECK_THROWS_AS(all.find_or_make<other_thing>("", "x", [] { return std::make_shared<other_thing>(); }), weft::error);
  CHECK(all.erase("work", "x"));
  CHECK_FALSE(all.erase("work", "x"));
}
