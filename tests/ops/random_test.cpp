#include <weft/ops/random.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

using weft::graph;
using weft::node;

namespace {
std::pair<std::int64_t, std::int64_t> seeds(std::optional<std::int64_t> graph_seed, std::optional<std::int64_t> op_seed, int nodes_before) {
  const graph g;
  const auto scope = g.as_default();
  for (int i = 0; i < nodes_before; ++i) weft::no_op();
  if (graph_seed) weft::set_random_seed(*graph_seed);
  const node& n = *weft::random_uniform({2}, 0.f, 1.f, op_seed).raw().from;
  return {n.attr<std::int64_t>("seed"), n.attr<std::int64_t>("seed2")};
}
}  // namespace

TEST_CASE("random_uniform: seeds are joined by TensorFlow 1's rule") {
  using pair = std::pair<std::int64_t, std::int64_t>;
  const auto none = std::nullopt;
  CHECK(seeds(none, none, 0) == pair{0, 0});  // differs in each run
  CHECK(seeds(none, none, 5) == pair{0, 0});
  CHECK(seeds(none, 0, 3) == pair{87654321, 0});
  CHECK(seeds(none, 42, 3) == pair{87654321, 42});
  CHECK(seeds(none, -3, 0) == pair{87654321, 2147483644});
  CHECK(seeds(none, 2147483647, 3) == pair{87654321, 0});
  CHECK(seeds(none, 2147483653, 3) == pair{87654321, 6});
  CHECK(seeds(1234, none, 0) == pair{1234, 0});
  CHECK(seeds(1234, none, 5) == pair{1234, 5});
  CHECK(seeds(-7, none, 3) == pair{2147483640, 3});
  CHECK(seeds(1099511627776, none, 3) == pair{512, 3});
  CHECK(seeds(0, none, 0) == pair{0, 2147483647});  // (0, 0) would mean no seed
  CHECK(seeds(0, 0, 3) == pair{0, 2147483647});
  CHECK(seeds(0, none, 3) == pair{0, 3});
  CHECK(seeds(2147483647, none, 0) == pair{0, 2147483647});
}

TEST_CASE("random_uniform: the unit interval is drawn by one node") {
  const graph g;
  const auto scope = g.as_default();
  const auto r = weft::random_uniform({2, 3});
  CHECK(to_text(g) ==
        "random_uniform/shape = Const()  int64[2]  {value=[2, 3]}\n"
        "random_uniform = RandomUniform(random_uniform/shape)  float[2,3]\n");
  CHECK(r.raw().from->def()->stateful);
}

TEST_CASE("random_uniform: another interval is scaled and shifted") {
  const graph g;
  const auto scope = g.as_default();
  const auto r = weft::random_uniform({2}, -1.0, 3.0, 7, "r");
  CHECK(to_text(g) ==
        "r/shape = Const()  int64[1]  {value=[2]}\n"
        "r/RandomUniform = RandomUniform(r/shape)  double[2]  {seed=87654321, seed2=7}\n"
        "r/mul/y = Const()  double[]  {value=4}\n"
        "r/min = Const()  double[]  {value=-1}\n"
        "r/mul = Mul(r/RandomUniform, r/mul/y)  double[2]\n"
        "r = AddV2(r/mul, r/min)  double[2]\n");
}

TEST_CASE("random_uniform: a negative size is an error at that line") {
  const graph g;
  const auto scope = g.as_default();
  CHECK_THROWS_WITH_AS((void)weft::random_uniform({2, -1}, 0.f, 1.f, std::nullopt, {"r", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: RandomUniform 'r' (user.cpp:3): shape cannot have a dimension of -1", weft::error);
}

TEST_CASE("random_uniform of integers, random_normal, truncated_normal: nodes") {
  const graph g;
  const auto scope = g.as_default();
  const auto i = weft::random_uniform({2}, 0, 10, 3, "i");
  const auto n = weft::random_normal({2}, 1.f, 2.f, 4, "n");
  const auto t = weft::truncated_normal<double>({2, 3}, 0, 1, 5, "t");
  CHECK(to_text(g) ==
        "i/min = Const()  int32[]  {value=0}\n"
        "i/max = Const()  int32[]  {value=10}\n"
        "i/shape = Const()  int64[1]  {value=[2]}\n"
        "i = RandomUniformInt(i/shape, i/min, i/max)  int32[2]  {seed=87654321, seed2=3}\n"
        "n/shape = Const()  int64[1]  {value=[2]}\n"
        "n/RandomStandardNormal = RandomStandardNormal(n/shape)  float[2]  {seed=87654321, seed2=4}\n"
        "n/stddev = Const()  float[]  {value=2}\n"
        "n/mean = Const()  float[]  {value=1}\n"
        "n/mul = Mul(n/RandomStandardNormal, n/stddev)  float[2]\n"
        "n = AddV2(n/mul, n/mean)  float[2]\n"
        "t/shape = Const()  int64[2]  {value=[2, 3]}\n"
        "t = TruncatedNormal(t/shape)  double[2,3]  {seed=87654321, seed2=5}\n");
}

TEST_CASE("random_shuffle, multinomial, stateless numbers: shapes and seeds") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float>({4, 3}, "x");
  CHECK(weft::random_shuffle(x, 1).shape().text() == "[4,3]");
  const auto m = weft::multinomial<std::int32_t>(x, 5, 2);
  CHECK(m.shape().text() == "[4,5]");
  CHECK(m.raw().from->attr<std::int64_t>("seed2") == 2);
  CHECK(weft::random_uniform(weft::shape_of(x)).shape().text() == "[4,3]");
  const auto s = weft::stateless_random_uniform({2, 3}, {1, 2});
  CHECK(s.raw().from->op() == "StatelessRandomUniform");
  CHECK(!s.raw().from->def()->stateful);
  CHECK(weft::stateless_random_uniform({2}, {1, 2}, -5, 5).raw().from->op() == "StatelessRandomUniformInt");
  CHECK(weft::stateless_random_normal({2}, weft::placeholder<std::int64_t>({2}), 0.0, 1.0).shape().text() == "[2]");
  CHECK_THROWS_WITH_AS((void)weft::stateless_truncated_normal({2}, weft::placeholder<std::int64_t>({3}), 0.f, 1.f, {"t", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: StatelessTruncatedNormal 't' (user.cpp:3): seed must have shape [2], found [3]", weft::error);
  CHECK_THROWS_WITH_AS((void)weft::multinomial(x, -1, 2, {"m", {"user.cpp", 3}}), "INVALID_ARGUMENT: Multinomial 'm' (user.cpp:3): num_samples must not be negative, found -1", weft::error);
}
