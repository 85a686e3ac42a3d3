#include <weft/ops/accumulator.hpp>

#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

namespace {

template <class F> std::string message_of(F&& call) {
  try {
    call();
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}

}  // namespace

TEST_CASE("accumulator: shapes and names") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::conditional_accumulator<float, 2> dense({3, 2}, {}, "dense");
  CHECK(dense.take(2).shape() == weft::partial_shape({3, 2}));
  CHECK(dense.num_accumulated().shape() == weft::partial_shape({}));
  CHECK(dense.take(1).raw().from->op() == "ResourceAccumulatorTakeGradient");
  const weft::sparse_conditional_accumulator<double, 2> sparse({7, 2}, {weft::accumulator_reduction::sum}, "sparse");
  const auto [indices, rows, whole] = sparse.take(2);
  CHECK(indices.shape() == weft::partial_shape({-1}));
  CHECK(rows.shape() == weft::partial_shape({-1, 2}));
  CHECK(whole.shape() == weft::partial_shape({2}));
  CHECK(sparse.raw().from->attr<std::string>("reduction_type") == "SUM");
  CHECK(sparse.set_global_step(3).get()->op() == "AccumulatorSetGlobalStep");
}

TEST_CASE("accumulator: what cannot be right is refused when the graph is built") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::conditional_accumulator<float> a({3}, {}, "a");
  CHECK(message_of([&] { a.apply(weft::constant({1.f, 2.f}), 0); }) == "expected a gradient of shape [3], found [2]");
  CHECK(message_of([&] { a.apply(weft::constant({1.f, 2.f, 3.f}), weft::constant({std::int64_t{1}})); }) == "the local step must have rank 0, found shape [1]");
  const weft::sparse_conditional_accumulator<float> s({3, 2}, {}, "s");
  CHECK(message_of([&] { s.apply(weft::constant({std::int64_t{1}}), weft::constant({{1.f, 2.f}, {3.f, 4.f}}), 0); }) ==
        "expected a row for each index, found indices of shape [1] and rows of shape [2,2]");
  CHECK(message_of([&] { weft::conditional_accumulator<float>().take(1); }) == "TakeGradient: the accumulator is empty, not made by any op");
}
