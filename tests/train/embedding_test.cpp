#include <weft/train/embedding.hpp>

#include <doctest/doctest.h>
#include <weft/gradients.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using weft::constant;
using weft::embedding_lookup;
using weft::partition_strategy;
using weft::variable;

namespace {
struct fixture {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
};
using rows = std::vector<std::vector<float>>;
using ids = std::vector<std::int64_t>;
// A table whose row i is {i, 10 i}, in three pieces; by mod and by div.
std::vector<variable<float, 2>> by_mod() { return {variable(rows{{0, 0}, {3, 30}, {6, 60}}, "m0"), variable(rows{{1, 10}, {4, 40}}, "m1"), variable(rows{{2, 20}, {5, 50}}, "m2")}; }
std::vector<variable<float, 2>> by_div() { return {variable(rows{{0, 0}, {1, 10}, {2, 20}}, "d0"), variable(rows{{3, 30}, {4, 40}}, "d1"), variable(rows{{5, 50}, {6, 60}}, "d2")}; }
}  // namespace

TEST_CASE("embedding_lookup: rows by either strategy") {
  fixture t;
  const auto wanted = constant(ids{6, 0, 3, 3, 5});
  const auto mod = embedding_lookup(by_mod(), wanted);
  const auto div = embedding_lookup(by_div(), wanted, partition_strategy::div);
  const auto matrix = embedding_lookup(by_div(), constant(std::vector<std::vector<std::int32_t>>{{1, 2}, {4, 6}}), partition_strategy::div);
  const auto none = embedding_lookup(by_mod(), constant(ids{}));
  static_assert(decltype(matrix)::rank == 3);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  for (const auto& found : {session.run(mod), session.run(div)})
    for (std::size_t i = 0; i < 5; ++i) {
      const float id[] = {6, 0, 3, 3, 5};
      CHECK(found(i, 0) == id[i]);
      CHECK(found(i, 1) == 10 * id[i]);
    }
  CHECK(session.run(matrix)(1, 1, 1) == 60.f);
  CHECK(session.run(none).size() == 0);
}

TEST_CASE("embedding_lookup: ids without a row fail the step") {
  fixture t;
  const auto id = weft::placeholder<std::int64_t, 1>({-1});
  const auto mod = embedding_lookup(by_mod(), id), div = embedding_lookup(by_div(), id, partition_strategy::div);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{7}, std::int64_t{1} << 40, -(std::int64_t{1} << 62)}) {
    CAPTURE(bad);
    CHECK_THROWS_AS((void)session.run({{id, ids{bad}}}, mod), weft::error);
    CHECK_THROWS_AS((void)session.run({{id, ids{bad}}}, div), weft::error);
  }
}

TEST_CASE("embedding_lookup: of a partitioned variable as of the whole; gradients stay rows") {
  fixture t;
  const auto w = weft::get_partitioned_variable<float>("w", {5, 2}, weft::fixed_size_partitioner(2), weft::zeros_initializer());
  const auto set = w.assign(constant(rows{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}}));
  const auto found = embedding_lookup(w, constant(ids{4, 2, 4}));
  const auto gradients = weft::gradients(weft::reduce_sum(weft::square(found)), std::vector<weft::output>{w.pieces()[0].raw(), w.pieces()[1].raw()});
  REQUIRE(gradients[1].is_sparse());
  REQUIRE(gradients[0].is_sparse());
  const weft::tensor<float, 2> values(weft::tensor<float>(gradients[1].slices().values));
  const weft::tensor<std::int64_t, 1> indices(weft::tensor<std::int64_t>(gradients[1].slices().indices));
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  session.run(set);
  CHECK(session.run(found)(0, 1) == 9.f);
  CHECK(session.run(found)(1, 0) == 4.f);
  const auto [v, i] = session.run(values, indices);
  REQUIRE(i.size() == 2);
  CHECK(i(0) == 1);
  CHECK(i(1) == 1);
  CHECK(v(0, 1) == 18.f);
  const auto across = weft::get_partitioned_variable<float>("across", {4, 4}, weft::fixed_size_partitioner(2, 1));
  CHECK_THROWS_WITH_AS((void)embedding_lookup(across, constant(ids{1}), partition_strategy::div, {}, {"e", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: user.cpp:3: embedding_lookup: the table 'across' is split along axis 1, not by rows", weft::error);
}

TEST_CASE("embedding_lookup: rows no longer than a norm, gathered where they live") {
  fixture t;
  std::vector<variable<float, 2>> table;
  for (int i = 0; i < 2; ++i) {
    const auto place = weft::with_device("/job:ps/task:" + std::to_string(i));
    table.emplace_back(rows{{3, 4}, {0.3f, 0.4f}}, "t" + std::to_string(i));
  }
  const auto found = embedding_lookup(table, constant(ids{0, 2, 1}), partition_strategy::mod, 1., "look");
  CHECK(t.g.find("look/gather_1")->device() == "/job:ps/task:1");
  const variable single(rows{{3, 4}}, "single");
  const auto one = embedding_lookup(single, constant(std::int64_t{0}), 2.5);
  weft::local_session session(weft::cluster_spec{{"ps", {"127.0.0.1:1", "127.0.0.1:2"}}});
  session.run(weft::global_variables_initializer());
  const auto value = session.run(found);
  CHECK(value(0, 0) == doctest::Approx(0.6));
  CHECK(value(1, 1) == doctest::Approx(0.4));
  CHECK(value(2, 1) == doctest::Approx(0.8));
  CHECK(session.run(one)(1) == doctest::Approx(2));
  CHECK_THROWS_AS((void)embedding_lookup(table, constant(ids{0}), partition_strategy::mod, 0.), weft::error);
}

TEST_CASE("embedding_lookup: pieces that no strategy makes, and no pieces") {
  fixture t;
  const std::vector<variable<float, 2>> uneven = {variable(rows{{0, 0}}, "a"), variable(rows{{0, 0}, {1, 1}}, "b")};
  CHECK_THROWS_WITH_AS((void)embedding_lookup(uneven, constant(ids{0}), partition_strategy::div, {}, {"e", {"user.cpp", 3}}),
                       "INVALID_ARGUMENT: user.cpp:3: e: with strategy div the pieces' rows must be [2,1], found [1,2]", weft::error);
  CHECK_THROWS_AS((void)embedding_lookup(std::vector<variable<float, 2>>(), constant(ids{0})), weft::error);
}

TEST_CASE("embedding_lookup_sparse: combined by example") {
  fixture t;
  // Example 0 has rows 1 and 3, example 1 none, example 2 row 1 twice.
  const weft::sparse_ids<std::int64_t> which{constant(std::vector<std::vector<std::int64_t>>{{0, 0}, {0, 1}, {2, 0}, {2, 1}}), constant(ids{1, 3, 1, 1}), constant(ids{3, 2})};
  const auto table = by_mod();
  const auto weights = constant({1.f, 3.f, 2.f, 2.f});
  const auto mean = weft::embedding_lookup_sparse(table, which);
  const auto sum = weft::embedding_lookup_sparse(table, which, weights, weft::embedding_combiner::sum);
  const auto weighted = weft::embedding_lookup_sparse(table, which, weights);
  const auto root = weft::embedding_lookup_sparse(table, which, weights, weft::embedding_combiner::sqrtn);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  const auto m = session.run(mean), s = session.run(sum), w = session.run(weighted), r = session.run(root);
  CHECK(m.shape()[0] == 3);
  CHECK(m(0, 0) == 2.f);
  CHECK(m(1, 1) == 0.f);
  CHECK(m(2, 1) == 10.f);
  CHECK(s(0, 0) == 10.f);
  CHECK(s(2, 0) == 4.f);
  CHECK(w(0, 0) == 2.5f);
  CHECK(r(0, 0) == doctest::Approx(10 / std::sqrt(10.)));
}
