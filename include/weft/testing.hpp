#ifndef WEFT_TESTING_HPP
#define WEFT_TESTING_HPP
// Unit tests of placed and partitioned graphs: predicates that explain themselves, snapshots, toy and random graphs. Needs nothing but the standard library; works with
// doctest, Catch2 and GoogleTest. What must run a graph is in <weft/testing_run.hpp>.

#include <weft/graph.hpp>
#include <weft/testing/predicates.hpp>
#include <weft/testing/random_graph.hpp>
#include <weft/testing/snapshot.hpp>
#include <weft/testing/toy_graphs.hpp>
#include <weft/testing/verdict.hpp>

#endif
