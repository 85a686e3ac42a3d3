#include <weft/simulate/step.hpp>

#include <weft/testing.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

const weft::cluster_spec cluster{{"ps", 1}, {"work", 2}};
const std::string ps = "/job:ps/task:0", one = "/job:work/task:0", other = "/job:work/task:1";

// A second for each node, 100 seconds for a step, 10 bytes a second, half a second on the way.
weft::cost_model slow() {
  weft::cost_model out;
  out.task = {1e12, 1e12, 1, 100, 1};
  out.link = {0.5, 10};
  return out;
}

weft::partitioned_graph cut(const weft::graph& g, const std::vector<weft::output>& fetches) {
  weft::partition_options options;
  options.fetches = fetches;
  options.master = ps;
  return weft::partition(g, cluster, options);
}

}  // namespace

TEST_CASE("simulate_step: nodes of one task run one after the other, and on two processors side by side") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto ends = weft::testing::fan_out(ps, {ps, ps, ps, ps});
  const auto parts = cut(g, {ends[0].raw(), ends[1].raw(), ends[2].raw(), ends[3].raw()});
  const std::size_t nodes = parts.parts()[0].graph.size();  // the source, four negations, four returned values
  REQUIRE(nodes == 9);
  CHECK(simulate_step(parts, slow()).seconds == doctest::Approx(109));
  weft::cost_model two = slow();
  two.task.processors = 2;
  CHECK(simulate_step(parts, two).seconds == doctest::Approx(105));  // the source alone, then two at a time
  CHECK(simulate_step(parts, two).tasks[0].busy == doctest::Approx(9));
}

TEST_CASE("simulate_step: a value takes its bytes and the latency of the link") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto end = weft::testing::chain(2, {ps, one}, 25);  // 100 bytes cross
  const auto p = simulate_step(cut(g, {end.raw()}), slow());
  // ps: source and negation until 102, Send until 103; 10 s for the bytes and 0.5 s on the way; work: Recv, negation, the returned value.
  CHECK(p.seconds == doctest::Approx(103 + 10.5 + 3));
  CHECK(p.bytes == 100);
  REQUIRE(p.tasks.size() == 2);
  CHECK(p.tasks[0].bytes_sent == 100);
  CHECK(p.tasks[1].bytes_received == 100);
  std::string path;
  for (const weft::critical_event& e : p.critical_path) path += e.what + "; ";
  CHECK_MESSAGE(path == "source; Neg; Neg -> /job:work/task:0; Neg_1; Neg_1/_fetch_0; ", path);
  CHECK(to_text(p).find("critical path:\n  100.000 s to 101.000 s  source on /job:ps/task:0\n") != std::string::npos);
}

TEST_CASE("simulate_step: one task sends one value after the other") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto a = weft::testing::toy_source(ps, 25, "a"), b = weft::testing::toy_source(ps, 25, "b");
  weft::tensor<float, 1> x, y;
  weft::with_device(one, [&] { x = -a; });
  weft::with_device(other, [&] { y = -b; });
  const auto p = simulate_step(cut(g, {x.raw(), y.raw()}), slow());
  // Two sources until 102 and two Sends until 104; the first 100 bytes go from 103 to 113, the others until 123.
  CHECK(p.seconds == doctest::Approx(123 + 0.5 + 3));
}

TEST_CASE("simulate_step: a control edge has no bytes, and an empty graph takes no time") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto a = weft::testing::toy_source(ps, 25, "a");
  weft::tensor<float, 1> y;
  {
    const auto device = weft::with_device(one);
    const auto after = weft::control_dependencies({a});
    y = weft::constant({1.f});
  }
  CHECK(simulate_step(cut(g, {y.raw()}), slow()).bytes == 0);
  CHECK(simulate_step(weft::partitioned_graph(), slow()).seconds == 0);
}
