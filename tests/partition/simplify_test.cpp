#include <weft/partition/simplify.hpp>

#include "letters.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using letters::out;
using letters::world;

namespace {

weft::placement placed(const world& w) {
  return weft::place(w.graph, weft::device_set::of_cluster(letters::cluster, {{"CPU", 2}}));
}

weft::substitution equal_nodes(const world& w, std::vector<const weft::node*> keep = {}) {
  weft::simplify_options options;
  options.merge_equal_nodes = true;
  options.keep = std::move(keep);
  return simplify(w.graph, placed(w), options);
}

weft::substitution identities(const world& w, std::vector<const weft::node*> keep = {}) {
  weft::simplify_options options;
  options.skip_identities = true;
  options.keep = std::move(keep);
  return simplify(w.graph, placed(w), options);
}

}  // namespace

TEST_CASE("simplify: equal nodes with equal inputs merge, and what reads them follows") {
  world w;
  const auto& x = w.add("FloatInput", "A1");
  const auto& y = w.add("Combine", "A2", {out(x), out(x)});
  const auto& z = w.add("Combine", "A3", {out(x), out(x)});
  const auto& y2 = w.add("Combine", "A4", {out(y), out(x)});
  const auto& z2 = w.add("Combine", "A5", {out(z), out(x)});
  const auto same = equal_nodes(w);
  CHECK(same.size() == 2);
  CHECK(same.resolve(&z) == &y);
  CHECK(same.resolve(out(z2)) == out(y2));
  CHECK(same.resolve(out(y2)) == out(y2));
}

TEST_CASE("simplify: the order of inputs counts unless the op is commutative") {
  world w;
  const auto& x = w.add("Combine", "A2", {out(w.add("RandomInput", "A0")), out(w.add("RandomInput", "A1"))});
  const auto& a = *w.graph.find("A0");
  w.add("Combine", "A3", {out(*w.graph.find("A1")), out(a)});
  CHECK(equal_nodes(w).size() == 0);
  const auto& s = w.add("Sum", "A4", {out(x), out(a)});
  const auto& t = w.add("Sum", "A5", {out(a), out(x)});
  CHECK(equal_nodes(w).resolve(&t) == &s);
}

TEST_CASE("simplify: state, placeholders, other devices, attributes and control inputs keep nodes apart") {
  world w;
  w.add("RandomInput", "A1");
  w.add("RandomInput", "A2");
  w.add("Placeholder", "A3");
  w.add("Placeholder", "A4");
  const auto& x = w.add("FloatInput", "A5");
  w.add("FloatInput", "B1");
  w.add("FloatInput", "A6", {}, {&x});
  w.constant("A7", weft::tensor_value::scalar(1.0F));
  w.constant("A8", weft::tensor_value::scalar(2.0F));
  CHECK(equal_nodes(w).size() == 0);
}

TEST_CASE("simplify: constants with equal values merge") {
  world w;
  const auto& x = w.constant("A1", weft::tensor_value::from(weft::shape{2}, std::vector<std::string>{"a", "b"}));
  const auto& y = w.constant("A2", weft::tensor_value::from(weft::shape{2}, std::vector<std::string>{"a", "b"}));
  w.constant("A3", weft::tensor_value::from(weft::shape{2}, std::vector<std::string>{"a", "c"}));
  const auto same = equal_nodes(w);
  CHECK(same.size() == 1);
  CHECK(same.resolve(&y) == &x);
}

TEST_CASE("simplify: an identity gives way to its input on its own device only") {
  world w;
  const auto& x = w.add("FloatInput", "A1");
  const auto& i = w.add("Identity", "A2", {out(x)});
  const auto& j = w.add("Identity", "A3", {out(i)});
  const auto& far = w.add("Identity", "B1", {out(x)});
  const auto& waits = w.add("Identity", "A4", {out(x)}, {&far});
  const auto& half = w.add("Identity", "A5", {out(w.add("Split", "A6", {out(x)}), 1)});
  const auto same = identities(w);
  CHECK(same.resolve(out(j)) == out(x));
  CHECK(same.resolve(&i) == &x);
  CHECK_FALSE(same.replaces(far));
  CHECK_FALSE(same.replaces(waits));
  CHECK_FALSE(same.replaces(half));
}

TEST_CASE("simplify: what is kept takes no part") {
  world w;
  const auto& x = w.add("FloatInput", "A1");
  const auto& y = w.add("FloatInput", "A2");
  CHECK(equal_nodes(w, {&x}).size() == 0);
  CHECK(equal_nodes(w, {&y}).size() == 0);
  const auto& i = w.add("Identity", "A3", {out(x)});
  CHECK(identities(w, {&i}).size() == 0);
}

TEST_CASE("partition: equal nodes and identities are dropped when asked for") {
  world w;
  const auto& x = w.add("RandomInput", "A1");
  const auto& i = w.add("Identity", "A2", {out(x)});
  const auto& y = w.add("Combine", "A3", {out(i), out(x)});
  const auto& z = w.add("Combine", "A4", {out(x), out(i)});
  w.add("Combine", "C1", {out(y), out(z)}, {&i});
  CHECK(w.parts().transfers().size() == 3);
  w.options.merge_equal_nodes = w.options.skip_identities = true;
  const auto parts = w.parts();
  CHECK(to_text(parts.transfers()) ==
        "data 0: A3  float<unknown>  /job:a/task:0/device:CPU:0 -> /job:a/task:1/device:CPU:0  for C1\n"
        "control 1: ^A1  /job:a/task:0/device:CPU:0 -> /job:a/task:1/device:CPU:0  for ^C1\n");
  CHECK(to_text(*parts.at("/job:a/task:0").graph.find("A3")) == "A3 = Combine(A1, A1)  float<unknown>  /job:a/task:0/device:CPU:0");
  CHECK(parts.at("/job:a/task:0").graph.find("A4") == nullptr);
}

TEST_CASE("partition: a fetched node stays even when it equals another") {
  world w;
  const auto& x = w.add("RandomInput", "A1");
  const auto& y = w.add("Combine", "A2", {out(x), out(x)});
  const auto& z = w.add("Combine", "A3", {out(x), out(x)});
  w.options.fetches = {out(y), out(z)};
  w.options.merge_equal_nodes = true;
  CHECK(w.parts().at("/job:a/task:0").fetches == std::vector<std::string>{"A2:0", "A3:0"});
}

TEST_CASE("partition: a fed node does not stand for an equal one") {
  world w;
  const auto& x = w.constant("A1", weft::tensor_value::scalar(1.0F));
  const auto& y = w.constant("A2", weft::tensor_value::scalar(1.0F));
  const auto& z = w.add("Combine", "A3", {out(x), out(y)});
  w.options.feeds = {out(x)};
  w.options.fetches = {out(z)};
  w.options.merge_equal_nodes = true;
  const auto parts = w.parts();
  CHECK(to_text(*parts.at("/job:a/task:0").graph.find("A3")) == "A3 = Combine(A1/_feed_0, A2)  float<unknown>  /job:a/task:0/device:CPU:0");
}
