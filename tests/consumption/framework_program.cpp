// A test of a partition, by whichever framework is asked for, with the two small single headers.
#include <weft/graph.hpp>
#include <weft/testing.hpp>

#include <cstdlib>

#if defined(WITH_CATCH2)
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
#define PARTITION_TEST TEST_CASE("what a worker needs is sent once")
#define HOLDS(...) CHECK(__VA_ARGS__)
#elif defined(WITH_GOOGLETEST)
#include <gtest/gtest.h>
#define PARTITION_TEST TEST(partition, sends_once)
#define HOLDS(...) EXPECT_TRUE(__VA_ARGS__)
#else
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#define PARTITION_TEST TEST_CASE("what a worker needs is sent once")
#define HOLDS(...) CHECK(__VA_ARGS__)
#endif

PARTITION_TEST {
  const weft::graph graph;
  const auto scope = graph.as_default();
  const auto ends = weft::testing::fan_out("/job:ps/task:0", {"/job:work/task:0", "/job:work/task:0", "/job:work/task:1"}, 100);
  const weft::partitioned_graph parts = weft::partition(graph, {{"ps", 1}, {"work", 2}});
  HOLDS(weft::testing::sends_once(parts));
  HOLDS(weft::testing::transfers_at_most(parts, 2, 800));
  if (std::getenv("MUST_FAIL") != nullptr) {
    HOLDS(weft::testing::no_path(parts, "/job:ps", "/job:work/task:1"));
  }
}
