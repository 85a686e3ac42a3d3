#include <weft/placement/random_strategy.hpp>

#include <doctest/doctest.h>
#include <weft/core/status.hpp>

#include <string>

namespace {

std::string digest(const std::string& text) {
  std::string out;
  for (const unsigned byte : weft::detail::md5(text)) {
    out += "0123456789abcdef"[byte / 16];
    out += "0123456789abcdef"[byte % 16];
  }
  return out;
}

}  // namespace

TEST_CASE("random_strategy: the digests of RFC 1321") {
  CHECK(digest("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(digest("a") == "0cc175b9c0f1b6a831c399e269772661");
  CHECK(digest("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK(digest("12345678901234567890123456789012345678901234567890123456789012345678901234567890") == "57edf4a22be3c955ac49da2e2107b67a");
}

// Expected: Python's int(hashlib.md5(b"name_seed").hexdigest(), 16) % tasks.
TEST_CASE("random_strategy: the name and the seed draw the task") {
  CHECK(weft::random_strategy(2).choose("v0") == 1);
  CHECK(weft::random_strategy(3).choose("weights") == 0);
  CHECK(weft::random_strategy(5, 7).choose("tower_1/bias") == 4);
  CHECK(weft::random_strategy(4).choose("") == 1);
  CHECK(weft::random_strategy(6, 1).choose(std::string(60, 'a')) == 0);
  CHECK_THROWS_WITH_AS((void)weft::random_strategy(0).choose("v"), "INVALID_ARGUMENT: random_strategy: the number of tasks must be positive, found 0", weft::error);
}
