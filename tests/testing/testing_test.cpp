#include <weft/testing.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace weft::testing;

namespace {

const weft::cluster_spec cluster{{"ps", 1}, {"work", 2}};

weft::partitioned_graph cut(const weft::graph& g, const weft::tensor<float, 1>& fetched) {
  weft::partition_options options;
  options.fetches = {fetched.raw()};
  options.master = "/job:work/task:0";
  return weft::partition(g, cluster, options);
}

// What a true GoogleTest result offers, as far as a verdict needs it.
class assertion_result {
 public:
  explicit assertion_result(bool ok) : ok_(ok) {}
  assertion_result& operator<<(const std::string& text) {
    text_ += text;
    return *this;
  }
  explicit operator bool() const { return ok_; }
  const char* failure_message() const { return text_.c_str(); }

 private:
  bool ok_;
  std::string text_;
};

}  // namespace

TEST_CASE("testing: a fan-out sends once to each task, and says what it sends") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto ends = fan_out("/job:ps/task:0", {"/job:work/task:0", "/job:work/task:0", "/job:work/task:1"}, 100);
  weft::tensor<float, 1> sum;
  weft::with_device("/job:work/task:0", [&] { sum = weft::add_n(ends); });
  const auto parts = cut(g, sum);
  CHECK(sends_once(parts));
  CHECK(sends_meet_receives(parts));
  CHECK(local(parts));
  CHECK(local(parts.at("/job:work/task:1")));
  CHECK(transfers_at_most(parts, 3, 1200));
  CHECK(colocated(parts, ends[0], ends[1]));
  CHECK(on_device(parts, "source", "/job:ps"));
  CHECK(no_path(parts, "/job:work/task:0", "/job:ps"));
}

TEST_CASE("testing: a predicate that does not hold names the culprits") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto end = ping_pong("/job:ps/task:0", "/job:work/task:1", 2, 10);
  const auto parts = cut(g, end);
  CHECK(no_path(parts, "/job:work/task:1", "/job:ps").text() == "from /job:work/task:1 to /job:ps: Neg_1 -> (/job:ps/task:0) -> Neg_2");
  CHECK_FALSE(no_path(parts, "/job:work/task:1", "/job:ps"));
  CHECK(colocated(parts, "source", "Neg_1").text() == "'source' is on /job:ps/task:0/device:CPU:0, 'Neg_1' on /job:work/task:1/device:CPU:0");
  CHECK_FALSE(colocated(parts, "source", "Neg_1"));
  CHECK(colocated(parts, "source", "nothing").text() == "'nothing' is in no part; the step does not need it, or another node stands for it");
  CHECK(transfers_at_most(parts, 1, 1000).text() ==
        "2 transfers of 80 bytes between tasks; at most 1 of 1000 bytes were expected\n"
        "  data 0: Neg  float[10]  40 bytes  /job:ps/task:0/device:CPU:0 -> /job:work/task:1/device:CPU:0  for Neg_1\n"
        "  data 1: Neg_1  float[10]  40 bytes  /job:work/task:1/device:CPU:0 -> /job:ps/task:0/device:CPU:0  for Neg_2");
  CHECK(transfers_at_most(parts, 2, 80));
  CHECK_FALSE(transfers_at_most(parts, 2, 79));
  CHECK_THROWS_WITH_AS(static_cast<void>(no_path(parts, "job:x", "/job:ps", {"t.cpp", 3})), doctest::Contains("t.cpp:3"), weft::error);
  const assertion_result as_googletest = no_path(parts, "/job:work/task:1", "/job:ps");
  CHECK_FALSE(as_googletest);
  CHECK(std::string(as_googletest.failure_message()) == "from /job:work/task:1 to /job:ps: Neg_1 -> (/job:ps/task:0) -> Neg_2");
}

TEST_CASE("testing: a value of unknown size breaks a bound on bytes") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x, y;
  weft::with_device("/job:ps/task:0", [&] { x = weft::placeholder<float, 1>("x"); });
  weft::with_device("/job:work/task:1", [&] { y = -x; });
  CHECK(transfers_at_most(cut(g, y), 5, 1000).text().find("the size of 'x' is not known") != std::string::npos);
}

TEST_CASE("testing: a part whose node is elsewhere is not local") {
  weft::part p;
  p.task = "/job:ps/task:0";
  weft::node_spec spec;
  spec.op = "NoOp";
  spec.name = "lost";
  spec.scoped = false;
  spec.device = "/job:work/task:0/device:CPU:0";
  p.graph.add(std::move(spec));
  CHECK(local(p).text() == "'lost' is on /job:work/task:0/device:CPU:0, in the part of /job:ps/task:0");
  CHECK_FALSE(local(p));
}

TEST_CASE("testing: a snapshot that differs shows the lines, and is written anew on request") {
  CHECK(matches_snapshot("a\nb\n", "a\nb\n"));
  CHECK(matches_snapshot("a\nb\n", R"(
a
b
)"));
  const verdict no = matches_snapshot("a\nc\nd\n", "\na\nb\nd\n");
  CHECK_FALSE(no);
  CHECK(no.text() == "the text differs from the expected one (WEFT_UPDATE_SNAPSHOTS=1 writes it anew):\n  a\n- b\n+ c\n  d\n");

  const std::string file = "snapshot_" + std::to_string(reinterpret_cast<std::uintptr_t>(&no)) + ".txt";
  std::ofstream(file) << "one\nCHECK(matches_snapshot(x, R\"(\nold\n)\"));\nCHECK(matches_snapshot(y, R\"()\"));\nlast\n";
  setenv("WEFT_UPDATE_SNAPSHOTS", "1", 1);
  CHECK(matches_snapshot("first\nsecond\n", "\nold\n", file.c_str(), 2));
  CHECK(matches_snapshot("third\n", "", file.c_str(), 5));
  CHECK_FALSE(matches_snapshot("fourth\n", "", file.c_str(), 7));
  unsetenv("WEFT_UPDATE_SNAPSHOTS");
  std::ostringstream written;
  written << std::ifstream(file).rdbuf();
  std::remove(file.c_str());
  CHECK(written.str() == "one\nCHECK(matches_snapshot(x, R\"(\nfirst\nsecond\n)\"));\nCHECK(matches_snapshot(y, R\"(\nthird\n)\"));\nlast\n");
}

TEST_CASE("testing: a recipe is the same for the same seed, and other seeds give others") {
  CHECK(to_text(build(random_recipe(7)).graph) == to_text(build(random_recipe(7)).graph));
  CHECK(to_text(build(random_recipe(7)).graph) != to_text(build(random_recipe(8)).graph));
  random_graph_options options;
  options.nodes = 200;
  CHECK(build(random_recipe(1, options)).graph.size() == 200);
}

TEST_CASE("testing: a broken property is shown by the smallest graph that breaks it") {
  // "No AddV2 reads a Mul" is broken by three nodes at the least.
  const graph_property property = [](const built_graph& built) {
    for (const weft::node* n : built.graph.nodes())
      for (const weft::output& in : n->inputs())
        if (n->op() == "AddV2" && in.from->op() == "Mul") return verdict::no("'" + n->name() + "' reads '" + in.from->name() + "'");
    return verdict::yes("no AddV2 reads a Mul");
  };
  const verdict found = holds_for_random_graphs(1000, 1, property);
  CHECK_FALSE(found);
  CHECK_MESSAGE(found.text().find("'n2' reads 'n1'\nin the graph\nn0 = Const()") != std::string::npos, found.text());
  CHECK(found.text().find("n3") == std::string::npos);
}

TEST_CASE("testing: toy graphs have the transfers that their shapes say") {
  const auto count = [](const weft::tensor<float, 1>& end, const weft::graph& g) { return cut(g, end).transfers().size(); };
  const std::string ps = "/job:ps/task:0", one = "/job:work/task:0", other = "/job:work/task:1";
  {
    const weft::graph g;
    const auto scope = g.as_default();
    CHECK(count(diamond(ps, one, other, one), g) == 3);
  }
  {
    const weft::graph g;
    const auto scope = g.as_default();
    CHECK(count(chain(6, {ps, one, other}), g) == 5);
  }
  {
    const weft::graph g;
    const auto scope = g.as_default();
    CHECK(count(ping_pong(one, other, 5), g) == 5);
  }
  {
    const weft::graph g;
    const auto scope = g.as_default();
    CHECK(count(towers(ps, {one, other}), g) == 4);  // the weights to each tower, and a sum back from each
  }
}
