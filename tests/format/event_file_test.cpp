#include <weft/format/event_file.hpp>

#include "file_test_support.hpp"

#include <doctest/doctest.h>

#include <string>

using file_test::bytes;

TEST_CASE("event file: the records are those that TensorBoard expects") {
  CHECK(weft::detail::event_record(weft::detail::version_event(1500000000)) == bytes("1800000000000000a37f4b2209000000c00b5ad6411a0d627261696e2e4576656e743a324ca9a464"));
  CHECK(weft::detail::event_record(weft::detail::scalars_event(1500000001.5, 7, {{"loss", 0.25}})) == bytes("1a00000000000000129bd82d09000060c00b5ad64110072a0d0a0b0a046c6f7373150000803e272fa2a6"));
}

TEST_CASE("event file: each writer has a file of its own, named as TensorBoard looks for it") {
  const file_test::folder dir;
  weft::event_writer one(dir / "a/b"), two(dir / "a/b");
  CHECK(one.path() != two.path());
  CHECK(one.path().find("/events.out.tfevents.") != std::string::npos);
  one.add(300, {{"loss", 1}, {"rate", 0.5}});
  // The version takes 40 bytes; then 12 bytes of head, 9 of time, 3 of step, 2 and twice 13 of scalars, 4 of checksum.
  CHECK(file_test::get(one.path()).size() == 40 + 12 + 9 + 3 + 2 + 26 + 4);
  CHECK(file_test::error_of([&] { weft::event_writer(one.path()); }).code == weft::error_code::not_found);
}
