#include <weft/train/partitioned_variable.hpp>

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::dtype;
using weft::get_partitioned_variable;
using weft::shape;
using weft::tensor;

namespace {
struct fixture {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
};
template <class Call> std::string message(Call&& call) {
  try {
    (void)call();
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}
using numbers = std::vector<std::int64_t>;
using rows = std::vector<std::vector<float>>;
}  // namespace

TEST_CASE("partitioners: how many pieces") {
  CHECK(weft::fixed_size_partitioner(3)(shape{10, 2}, dtype::float32) == numbers{3, 1});
  CHECK(weft::fixed_size_partitioner(3, 1)(shape{10, 2}, dtype::float32) == numbers{1, 2});
  CHECK(weft::fixed_size_partitioner(3)(shape{0, 2}, dtype::float32) == numbers{1, 1});
  // 10 rows of 8 bytes, at most 20 bytes a piece: 2 rows each.
  CHECK(weft::variable_axis_size_partitioner(20)(shape{10, 2}, dtype::float32) == numbers{5, 1});
  CHECK(weft::variable_axis_size_partitioner(4)(shape{10, 2}, dtype::float32) == numbers{10, 1});
  CHECK(weft::variable_axis_size_partitioner(20, 0, 3)(shape{10, 2}, dtype::float32) == numbers{3, 1});
  CHECK(weft::variable_axis_size_partitioner()(shape{1 << 20, 32}, dtype::float32) == numbers{3, 1});
  CHECK(weft::variable_axis_size_partitioner(32)(shape{4, 1}, dtype::string) == numbers{2, 1});
  CHECK(weft::variable_axis_size_partitioner(32)(shape{0, 1}, dtype::float32) == numbers{1, 1});
  // 80 bytes, at least 30 a piece: 3 pieces.
  CHECK(weft::min_max_variable_partitioner(8, 0, 30)(shape{10, 2}, dtype::float32) == numbers{3, 1});
  CHECK(weft::min_max_variable_partitioner(2, 0, 30)(shape{10, 2}, dtype::float32) == numbers{2, 1});
  CHECK(weft::min_max_variable_partitioner(8)(shape{10, 2}, dtype::float32) == numbers{1, 1});
}

TEST_CASE("partitioners: misuse") {
  CHECK(message([] { return weft::fixed_size_partitioner(0); }) == "fixed_size_partitioner: the number of pieces must be positive, found 0");
  CHECK(message([] { return weft::fixed_size_partitioner(2, 2)(shape{4, 4}, dtype::float32); }) == "fixed_size_partitioner: a variable of shape [4,4] has no axis 2");
  CHECK(message([] { return weft::partitioner([](const shape&, dtype) { return numbers{2, 2}; })(shape{4, 4}, dtype::float32); }) == "a variable is split along one axis, [2,2] are several");
  CHECK(message([] { return weft::partitioner([](const shape&, dtype) { return numbers{5, 1}; })(shape{4, 4}, dtype::float32); }) == "a variable of shape [4,4] cannot be split into [5,1] pieces");
  CHECK(message([] { return weft::partitioner()(shape{4}, dtype::float32); }) == "the partitioner is empty");
}

TEST_CASE("partitioned variable: its pieces, read and assigned as a whole") {
  fixture t;
  const auto w = get_partitioned_variable<float>("w", {5, 2}, weft::fixed_size_partitioner(2), weft::ones_initializer());
  REQUIRE(w.pieces().size() == 2);
  CHECK(w.pieces()[0].name() == "w/part_0");
  CHECK(w.pieces()[0].shape().text() == "[3,2]");
  CHECK(w.pieces()[1].shape().text() == "[2,2]");
  CHECK(w.offsets() == numbers{0, 3});
  CHECK(weft::trainable_variables().size() == 2);
  const auto whole = w.read();
  const tensor<float, 2> same = w;
  const auto set = w.assign(weft::constant(rows{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}}));
  const auto across = get_partitioned_variable<float>("across", {2, 4}, weft::fixed_size_partitioner(4, 1), weft::identity_initializer(2));
  const auto alone = get_partitioned_variable<float>("alone", {3}, weft::fixed_size_partitioner(1), weft::zeros_initializer());
  const auto set_alone = alone.assign(weft::constant({1.f, 2.f, 3.f}));
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  CHECK(session.run(whole)(4, 1) == 1.f);
  session.run(set);
  session.run(set_alone);
  CHECK(session.run(whole)(4, 1) == 10.f);
  CHECK(session.run(same)(3, 0) == 7.f);
  CHECK(session.run(w.pieces()[1])(0, 0) == 7.f);
  const auto eye = session.run(across.read());
  CHECK(eye(0, 0) == 2.f);
  CHECK(eye(1, 1) == 2.f);
  CHECK(eye(1, 0) + eye(1, 2) + eye(0, 3) == 0.f);
  CHECK(session.run(alone.read())(2) == 3.f);
  session.run(w.initializer());
  CHECK(session.run(whole)(0, 1) == 1.f);
}

TEST_CASE("partitioned variable: each piece on its device, by the scope's partitioner, and shared") {
  fixture t;
  weft::variable_scope_options options;
  options.partitioner = weft::fixed_size_partitioner(3);
  options.reuse = weft::auto_reuse;
  const weft::variable_scope scope("net", options);
  int made = 0;
  const auto place = weft::with_device([&](const weft::node& n) { return n.op() == "VarHandleOp" ? "/job:ps/task:" + std::to_string(made++ % 2) : n.device(); });
  const auto w = get_partitioned_variable<float>("w", {6, 2});
  CHECK(w.pieces()[0].raw().from->device() == "/job:ps/task:0");
  CHECK(w.pieces()[1].raw().from->device() == "/job:ps/task:1");
  const auto again = get_partitioned_variable<float>("w", {6, 2});
  CHECK(again.pieces()[2].raw() == w.pieces()[2].raw());
  CHECK(weft::global_variables().size() == 3);
  CHECK(message([] { return get_partitioned_variable<float>("w", {6, 2}, weft::fixed_size_partitioner(2)); }).find("has shape [2,2], it is to be reused as a piece of shape [3,2]") != std::string::npos);
  CHECK(message([] { return get_partitioned_variable<float>("w", {4, 2}, weft::fixed_size_partitioner(2)); }).find("has more than the 2 pieces as which it is to be reused") != std::string::npos);
}

TEST_CASE("partitioned variable: misuse") {
  fixture t;
  CHECK(message([] { return get_partitioned_variable<float>("w", {6, 2}); }) == "get_partitioned_variable: 'w' has no partitioner, nor has its variable scope");
  CHECK(message([] { return get_partitioned_variable<float>("v", {4}, weft::fixed_size_partitioner(2), weft::constant_initializer({1, 2, 3, 4})); }) ==
        "a list of first values is not split over the pieces of a variable; give one number, or assign the whole");
  CHECK_THROWS_AS((void)(weft::partitioned_variable<float, 1>().read()), weft::error);
}
