#include <weft/kernels/state_rows.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <thread>

using weft::dtype;
using weft::partial_shape;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
struct variable_bench : kernel_bench {
  tensor_value handle(const char* name, dtype type) { return (*this)("VarHandleOp", {}, {{"dtype", type}, {"shape", partial_shape()}, {"shared_name", name}}); }
  tensor_value set(const char* name, tensor_value v) {
    const dtype type = v.dtype();
    const tensor_value out = handle(name, type);
    (*this)("AssignVariableOp", {out, std::move(v)}, {{"dtype", type}});
    return out;
  }
  tensor_value get(const tensor_value& handle, dtype type) { return (*this)("ReadVariableOp", {handle}, {{"dtype", type}}); }
  tensor_value rows(const tensor_value& handle, tensor_value indices, dtype type, std::int64_t batch = 0) { return (*this)("ResourceGather", {handle, std::move(indices)}, {{"dtype", type}, {"batch_dims", batch}}); }
};
const weft::attr_map of_float{{"dtype", dtype::float32}};
tensor_value i32(shape s, std::initializer_list<std::int32_t> v) { return make<std::int32_t>(std::move(s), v); }
}  // namespace

TEST_CASE("resource gather: rows, matrices of rows, batches, nothing, strings") {
  variable_bench bench;
  const auto w = bench.set("w", make<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  CHECK(elements<float>(bench.rows(w, i32({3}, {2, 0, 2}), dtype::float32)) == std::vector<float>{5, 6, 1, 2, 5, 6});
  CHECK(bench.rows(w, i32({}, {1}), dtype::float32).shape() == shape{2});
  CHECK(bench.rows(w, i32({2, 2}, {0, 1, 2, 2}), dtype::float32).shape() == shape{2, 2, 2});
  CHECK(bench.rows(w, tensor_value(dtype::int64, shape{0}), dtype::float32).shape() == shape{0, 2});
  CHECK(elements<float>(bench.rows(w, i32({3}, {1, 0, 1}), dtype::float32, 1)) == std::vector<float>{2, 3, 6});
  CHECK(elements<float>(bench.rows(w, i32({3, 1}, {0, 0, 1}), dtype::float32, 1)) == std::vector<float>{1, 3, 6});
  const auto words = bench.set("words", make<std::string>({2}, {"a", "b"}));
  CHECK(elements<std::string>(bench.rows(words, i32({3}, {1, 1, 0}), dtype::string)) == std::vector<std::string>{"b", "b", "a"});
  const auto empty = bench.set("empty", tensor_value(dtype::float32, shape{4, 0}));
  CHECK(bench.rows(empty, i32({2}, {3, 0}), dtype::float32).shape() == shape{2, 0});
}

TEST_CASE("resource gather: errors") {
  variable_bench bench;
  const auto w = bench.set("w", make<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})), one = bench.set("one", tensor_value::scalar(1.f));
  const auto gather = [&](const tensor_value& v, tensor_value indices, std::int64_t batch = 0) { return bench.error("ResourceGather", {v, std::move(indices)}, {{"dtype", dtype::float32}, {"batch_dims", batch}}); };
  CHECK(gather(w, i32({1}, {4})) == "INVALID_ARGUMENT: indices[0] = 4 is not in [0, 4)");
  CHECK(gather(w, i32({2}, {0, -1})) == "INVALID_ARGUMENT: indices[1] = -1 is not in [0, 4)");
  CHECK(gather(w, make<std::int64_t>({1}, {std::numeric_limits<std::int64_t>::min()})) == "INVALID_ARGUMENT: indices[0] = -9223372036854775808 is not in [0, 4)");
  CHECK(gather(one, i32({1}, {0})) == "INVALID_ARGUMENT: a scalar variable has no rows to gather");
  CHECK(gather(w, i32({3, 1}, {0, 0, 0}), 1) == "INVALID_ARGUMENT: the first 1 dimensions of the variable, [4,2], and of the indices, [3,1], must be equal");
  CHECK(gather(w, i32({4}, {0, 0, 0, 0}), 2) == "INVALID_ARGUMENT: batch_dims 2 does not fit a variable of shape [4,2] and indices of shape [4]");
  CHECK(gather(bench.handle("none", dtype::float32), i32({1}, {0})).substr(0, 20) == "FAILED_PRECONDITION:");
  CHECK(bench.error("ResourceGather", {w, i32({1}, {0})}, {{"dtype", dtype::float64}}) == "INVALID_ARGUMENT: variable 'w' is float, this op expects double");
}

TEST_CASE("resource gather_nd and scatter_nd: elements, rows, the whole, errors") {
  variable_bench bench;
  const auto w = bench.set("w", make<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto pick = [&](tensor_value indices) { return bench("ResourceGatherNd", {w, std::move(indices)}, of_float); };
  CHECK(elements<float>(pick(i32({2, 2}, {0, 1, 2, 0}))) == std::vector<float>{2, 5});
  CHECK(elements<float>(pick(i32({1, 1}, {1}))) == std::vector<float>{3, 4});
  CHECK(pick(tensor_value(dtype::int32, shape{2, 0})).shape() == shape{2, 3, 2});
  CHECK(pick(tensor_value(dtype::int32, shape{0, 2})).shape() == shape{0});
  CHECK(bench.error("ResourceGatherNd", {w, i32({1, 2}, {0, 2})}, of_float) == "INVALID_ARGUMENT: indices[0] = [0,2] does not index into a variable of shape [3,2]");
  CHECK(bench.error("ResourceGatherNd", {w, i32({1, 3}, {0, 0, 0})}, of_float) == "INVALID_ARGUMENT: an index of 3 numbers cannot pick from a variable of shape [3,2]");
  CHECK(bench.error("ResourceGatherNd", {w, i32({}, {0})}, of_float) == "INVALID_ARGUMENT: the indices must be at least a vector, found a scalar");
  CHECK(bench.error("ResourceGatherNd", {w, tensor_value(dtype::int32, shape{std::int64_t{1} << 50, 0})}, of_float) != "");
  CHECK(bench.error("ResourceGatherNd", {w, tensor_value(dtype::int32, shape{std::int64_t{1} << 62, 0})}, of_float) ==
        "INVALID_ARGUMENT: indices of shape [4611686018427387904,0] into a variable of shape [3,2] give too many elements or dimensions");

  bench("ResourceScatterNdAdd", {w, i32({3, 2}, {0, 1, 2, 0, 0, 1}), make<float>({3}, {10, 20, 30})});
  CHECK(elements<float>(bench.get(w, dtype::float32)) == std::vector<float>{1, 42, 3, 4, 25, 6});
  bench("ResourceScatterNdSub", {w, i32({1, 1}, {0}), make<float>({1, 2}, {1, 40})});
  bench("ResourceScatterNdUpdate", {w, i32({1, 2}, {2, 1}), make<float>({1}, {-6})});
  CHECK(elements<float>(bench.get(w, dtype::float32)) == std::vector<float>{0, 2, 3, 4, 25, -6});
  bench("ResourceScatterNdMax", {w, i32({1, 1}, {2}), make<float>({1, 2}, {0, 0})});
  CHECK(elements<float>(bench.get(w, dtype::float32)) == std::vector<float>{0, 2, 3, 4, 25, 0});
  CHECK(bench.error("ResourceScatterNdAdd", {w, i32({2, 2}, {0, 0, 3, 0}), make<float>({2}, {1, 1})}) == "INVALID_ARGUMENT: indices[1] = [3,0] does not index into a variable of shape [3,2]");
  CHECK(bench.error("ResourceScatterNdAdd", {w, i32({1, 1}, {0}), make<float>({2}, {1, 1})}) ==
        "INVALID_ARGUMENT: updates must have shape [1,2] to fit indices of shape [1,1] into a variable of shape [3,2], found [2]");
  CHECK(elements<float>(bench.get(w, dtype::float32)) == std::vector<float>{0, 2, 3, 4, 25, 0});
}

TEST_CASE("resource scatter: each op and dtype, one number for all, repeated rows") {
  variable_bench bench;
  const std::pair<const char*, std::vector<std::int32_t>> results[] = {{"Update", {2, 4, 2, 3}}, {"Add", {12, 26, 2, 3}}, {"Sub", {8, 14, 2, 3}}, {"Mul", {20, 80, 2, 3}}, {"Div", {5, 5, 2, 3}},
                                                                      {"Min", {2, 4, 2, 3}},    {"Max", {10, 20, 2, 3}}};
  for (const auto& result : results) {
    const std::string op = result.first;
    CAPTURE(op);
    const auto w = bench.set("integers", make<std::int32_t>({2, 2}, {10, 20, 2, 3}));
    bench("ResourceScatter" + op, {w, i32({1}, {0}), make<std::int32_t>({1, 2}, {2, op == "Add" || op == "Sub" ? 6 : 4})}, {{"dtype", dtype::int32}});
    CHECK(elements<std::int32_t>(bench.get(w, dtype::int32)) == result.second);
  }
  const auto small = bench.set("small", make<std::uint8_t>({3}, {250, 1, 2}));
  bench("ResourceScatterAdd", {small, i32({2}, {0, 0}), make<std::uint8_t>({2}, {5, 5})}, {{"dtype", dtype::uint8}});
  CHECK(elements<std::uint8_t>(bench.get(small, dtype::uint8)) == std::vector<std::uint8_t>{4, 1, 2});
  const auto w = bench.set("w", make<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  bench("ResourceScatterMul", {w, i32({2, 1}, {2, 0}), tensor_value::scalar(10.f)}, of_float);
  CHECK(elements<float>(bench.get(w, dtype::float32)) == std::vector<float>{10, 20, 3, 4, 50, 60});
  bench("ResourceScatterUpdate", {w, i32({}, {1}), tensor_value::scalar(-1.f)}, of_float);
  CHECK(elements<float>(bench.get(w, dtype::float32)) == std::vector<float>{10, 20, -1, -1, 50, 60});
  const auto words = bench.set("words", make<std::string>({2}, {"a", "b"}));
  bench("ResourceScatterUpdate", {words, i32({1}, {1}), make<std::string>({1}, {"longer than a short string"})}, {{"dtype", dtype::string}});
  CHECK(elements<std::string>(bench.get(words, dtype::string)) == std::vector<std::string>{"a", "longer than a short string"});
}

TEST_CASE("resource scatter: errors; rows before a bad index have changed, and what was read has not") {
  variable_bench bench;
  const auto w = bench.set("w", make<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto before = bench.get(w, dtype::float32);
  CHECK(bench.error("ResourceScatterAdd", {w, i32({2}, {0, -1}), make<float>({2, 2}, {1, 1, 1, 1})}, of_float) == "INVALID_ARGUMENT: indices[1] = -1 is not in [0, 3)");
  CHECK(elements<float>(bench.get(w, dtype::float32)) == std::vector<float>{2, 3, 3, 4, 5, 6});
  CHECK(elements<float>(before) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(bench.error("ResourceScatterAdd", {w, i32({2}, {0, 1}), make<float>({3, 2}, {1, 1, 1, 1, 1, 1})}, of_float) ==
        "INVALID_ARGUMENT: updates must have shape [2,2] to fit indices of shape [2] into a variable of shape [3,2], found [3,2]");
  CHECK(bench.error("ResourceScatterAdd", {w, i32({1}, {0}), make<float>({1, 1}, {1})}, of_float) ==
        "INVALID_ARGUMENT: updates must have shape [1,2] to fit indices of shape [1] into a variable of shape [3,2], found [1,1]");
  const auto n = bench.set("n", make<std::int32_t>({2}, {1, 2})), one = bench.set("one", tensor_value::scalar(1.f));
  CHECK(bench.error("ResourceScatterDiv", {n, i32({2}, {0, 1}), make<std::int32_t>({2}, {1, 0})}, {{"dtype", dtype::int32}}) == "INVALID_ARGUMENT: integer division by zero");
  CHECK(bench.error("ResourceScatterAdd", {one, i32({}, {0}), tensor_value::scalar(1.f)}, of_float) == "INVALID_ARGUMENT: a scalar variable has no rows to update");
}

TEST_CASE("variable shape, counting up") {
  variable_bench bench;
  const auto w = bench.set("w", make<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  CHECK(elements<std::int32_t>(bench("VariableShape", {w})) == std::vector<std::int32_t>{3, 2});
  CHECK(elements<std::int64_t>(bench("VariableShape", {w}, {{"out_type", dtype::int64}})) == std::vector<std::int64_t>{3, 2});
  const auto large = bench.set("large", tensor_value(dtype::float32, shape{0, std::int64_t{1} << 40}));
  CHECK(bench.error("VariableShape", {large}) == "INVALID_ARGUMENT: dimension 1 of shape [0,1099511627776] does not fit into int32; ask for int64");
  const auto n = bench.set("n", tensor_value::scalar<std::int32_t>(1));
  const weft::attr_map to_three{{"T", dtype::int32}, {"limit", std::int64_t{3}}};
  CHECK(bench("ResourceCountUpTo", {n}, to_three).item<std::int32_t>() == 1);
  CHECK(bench("ResourceCountUpTo", {n}, to_three).item<std::int32_t>() == 2);
  CHECK(bench.error("ResourceCountUpTo", {n}, to_three) == "OUT_OF_RANGE: reached the limit of 3");
  CHECK(bench.get(n, dtype::int32).item<std::int32_t>() == 3);
}

TEST_CASE("resource rows: hostile shapes and indices end in an error or a result") {
  variable_bench bench;
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto any_shape = [&](int most) {
    std::vector<std::int64_t> sizes;
    for (int i = pick(most + 1); i > 0; --i) sizes.push_back(pick(4));
    return shape(sizes);
  };
  int fine = 0;
  for (int round = 0; round < 600; ++round) {
    const shape held = any_shape(3);
    tensor_value value(dtype::float32, held), indices(dtype::int64, any_shape(3)), updates(dtype::float32, any_shape(4));
    for (std::int64_t i = 0; i < value.elements(); ++i) value.mutable_data<float>()[i] = 1.f;
    for (std::int64_t i = 0; i < updates.elements(); ++i) updates.mutable_data<float>()[i] = 2.f;
    for (std::int64_t i = 0; i < indices.elements(); ++i)
      indices.mutable_data<std::int64_t>()[i] = pick(20) == 0 ? (pick(2) == 0 ? std::numeric_limits<std::int64_t>::max() : -pick(3)) : pick(3);
    const auto w = bench.set("w", value);
    for (const char* op : {"ResourceScatterAdd", "ResourceScatterUpdate"}) fine += bench.error(op, {w, indices, updates}, of_float).empty();
    for (const char* op : {"ResourceScatterNdAdd", "ResourceScatterNdUpdate"}) fine += bench.error(op, {w, indices, updates}).empty();
    fine += bench.error("ResourceGather", {w, indices}, {{"dtype", dtype::float32}, {"batch_dims", std::int64_t{pick(3)}}}).empty();
    fine += bench.error("ResourceGatherNd", {w, indices}, of_float).empty();
    CHECK(bench.get(w, dtype::float32).shape() == held);
  }
  CHECK(fine > 100);
}
