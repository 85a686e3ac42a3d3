#include <weft/partition/prune.hpp>

#include "letters.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using letters::out;
using letters::world;

namespace {

std::string names(const std::vector<const weft::node*>& nodes) {
  std::string text;
  for (const weft::node* n : nodes) text += (text.empty() ? "" : " ") + n->name();
  return text;
}

// a -> b -> c -> d, and `side` that waits for b.
struct chain : world {
  const weft::node& a = add("Placeholder", "a");
  const weft::node& b = add("Combine", "b", {out(a), out(a)});
  const weft::node& c = add("Combine", "c", {out(b), out(b)});
  const weft::node& d = add("Combine", "d", {out(c), out(c)});
  const weft::node& side = add("NoOp", "side", {}, {&b});
};

}  // namespace

TEST_CASE("prune: what a fetch or a target needs, in the order of creation") {
  chain g;
  CHECK(names(prune(g.graph, {}, {out(g.c)}, {})) == "a b c");
  CHECK(names(prune(g.graph, {}, {}, {&g.side})) == "a b side");
  CHECK(names(prune(g.graph, {}, {out(g.d)}, {&g.side})) == "a b c d side");
}

TEST_CASE("prune: without fetches and targets everything is needed") {
  chain g;
  CHECK(names(prune(g.graph, {}, {}, {})) == "a b c d side");
  CHECK(names(prune(g.graph, {out(g.a)}, {}, {})) == "b c d side");
}

TEST_CASE("prune: nothing behind a feed is needed") {
  chain g;
  CHECK(names(prune(g.graph, {out(g.c)}, {out(g.d)}, {})) == "d");
  CHECK(names(prune(g.graph, {out(g.c)}, {out(g.c)}, {})).empty());
  CHECK(names(prune(g.graph, {out(g.b)}, {out(g.d)}, {&g.side})) == "a b c d side");
}

TEST_CASE("prune: a fed placeholder runs neither as a control input nor as a target") {
  chain g;
  const auto& after = g.add("NoOp", "after", {}, {&g.a});
  CHECK(names(prune(g.graph, {out(g.a)}, {}, {&after})) == "after");
  CHECK(names(prune(g.graph, {out(g.a)}, {}, {&g.a})).empty());
}

TEST_CASE("prune: one output of a node may be fed and another needed") {
  world w;
  const auto& split = w.add("Split", "split", {out(w.add("FloatInput", "x"))});
  const auto& y = w.add("Combine", "y", {out(split, 0), out(split, 1)});
  CHECK(names(prune(w.graph, {out(split, 0)}, {out(y)}, {})) == "x split y");
  CHECK(names(prune(w.graph, {out(split, 0), out(split, 1)}, {out(y)}, {})) == "y");
}

TEST_CASE("prune: an output that does not exist is refused") {
  chain g;
  CHECK_THROWS_WITH_AS(prune(g.graph, {}, {out(g.a, 2)}, {}), "INVALID_ARGUMENT: Placeholder 'a': has 1 outputs; asked for number 2 as a fetch", weft::error);
}
