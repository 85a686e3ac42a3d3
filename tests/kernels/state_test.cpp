#include <weft/kernels/state.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>

using weft::dtype;
using weft::partial_shape;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
const weft::attr_map of_float{{"dtype", dtype::float32}};
tensor_value handle_to(kernel_bench& bench, const char* name, dtype type = dtype::float32) {
  return bench("VarHandleOp", {}, {{"dtype", type}, {"shape", partial_shape()}, {"shared_name", name}});
}
}  // namespace

TEST_CASE("variable handle: named by shared_name, else by the node") {
  kernel_bench bench;
  const weft::attr_map attrs{{"dtype", dtype::float32}, {"shape", partial_shape{2}}};
  const auto plain = bench("VarHandleOp", {}, attrs, "scope/w").item<weft::resource_handle>();
  CHECK(plain.name == "scope/w");
  CHECK(plain.container == "localhost");
  CHECK(plain.device == "/job:localhost/task:0/device:CPU:0");
  weft::attr_map named = attrs;
  named["shared_name"] = "shared";
  named["container"] = "mine";
  const auto shared = bench("VarHandleOp", {}, named).item<weft::resource_handle>();
  CHECK(shared.name == "shared");
  CHECK(shared.container == "mine");
}

TEST_CASE("variable: assign, read, add, subtract") {
  kernel_bench bench;
  const auto w = handle_to(bench, "w");
  CHECK(!bench("VarIsInitializedOp", {w}).item<bool>());
  bench("AssignVariableOp", {w, make<float>({2}, {1, 2})}, of_float);
  CHECK(bench("VarIsInitializedOp", {w}).item<bool>());
  bench("AssignAddVariableOp", {w, make<float>({2}, {10, 20})}, of_float);
  CHECK(elements<float>(bench("ReadVariableOp", {w}, of_float)) == std::vector<float>{11, 22});
  bench("AssignSubVariableOp", {w, make<float>({2}, {1, 2})}, of_float);
  CHECK(elements<float>(bench("ReadVariableOp", {w}, of_float)) == std::vector<float>{10, 20});
  bench("AssignVariableOp", {w, make<float>({3}, {1, 2, 3})}, of_float);
  CHECK(bench("ReadVariableOp", {w}, of_float).shape() == shape{3});
}

TEST_CASE("variable: a value that was read never changes") {
  kernel_bench bench;
  const auto w = handle_to(bench, "w");
  const auto initial = make<float>({2}, {1, 2});
  bench("AssignVariableOp", {w, initial}, of_float);
  const auto before = bench("ReadVariableOp", {w}, of_float);
  bench("AssignAddVariableOp", {w, make<float>({2}, {1, 1})}, of_float);
  CHECK(elements<float>(before) == std::vector<float>{1, 2});
  CHECK(elements<float>(initial) == std::vector<float>{1, 2});
  CHECK(elements<float>(bench("ReadVariableOp", {w}, of_float)) == std::vector<float>{2, 3});
}

TEST_CASE("variable: an update that nobody watches happens in place") {
  kernel_bench bench;
  const auto w = handle_to(bench, "w");
  std::vector<tensor_value> inputs{w, make<float>({2}, {1, 2})};
  bench("AssignVariableOp", std::move(inputs), of_float);
  const void* storage = bench("ReadVariableOp", {w}, of_float).raw_data();
  bench("AssignAddVariableOp", {w, make<float>({2}, {1, 1})}, of_float);
  CHECK(bench("ReadVariableOp", {w}, of_float).raw_data() == storage);
}

TEST_CASE("variable: other dtypes") {
  kernel_bench bench;
  const auto words = handle_to(bench, "words", dtype::string), count = handle_to(bench, "count", dtype::int64), small = handle_to(bench, "small", dtype::half);
  bench("AssignVariableOp", {words, make<std::string>({1}, {"a"})}, {{"dtype", dtype::string}});
  CHECK(elements<std::string>(bench("ReadVariableOp", {words}, {{"dtype", dtype::string}})) == std::vector<std::string>{"a"});
  bench("AssignVariableOp", {count, tensor_value::scalar(std::int64_t{5})}, {{"dtype", dtype::int64}});
  bench("AssignAddVariableOp", {count, tensor_value::scalar(std::int64_t{-7})}, {{"dtype", dtype::int64}});
  CHECK(bench("ReadVariableOp", {count}, {{"dtype", dtype::int64}}).item<std::int64_t>() == -2);
  bench("AssignVariableOp", {small, tensor_value::scalar(weft::half(1.5f))}, {{"dtype", dtype::half}});
  bench("AssignSubVariableOp", {small, tensor_value::scalar(weft::half(0.5f))}, {{"dtype", dtype::half}});
  CHECK(bench("ReadVariableOp", {small}, {{"dtype", dtype::half}}).item<weft::half>() == weft::half(1.f));
}

TEST_CASE("variable: used before its initializer ran") {
  kernel_bench bench;
  const auto w = handle_to(bench, "w");
  const std::string wanted = "FAILED_PRECONDITION: variable 'w' is not initialized; run its initializer (global_variables_initializer) first";
  CHECK(bench.error("ReadVariableOp", {w}, of_float) == wanted);
  CHECK(bench.error("AssignAddVariableOp", {w, tensor_value::scalar(1.f)}, of_float) == wanted);
}

TEST_CASE("variable: dtypes and shapes that do not fit") {
  kernel_bench bench;
  const auto w = handle_to(bench, "w");
  bench("AssignVariableOp", {w, make<float>({2}, {1, 2})}, of_float);
  CHECK(bench.error("ReadVariableOp", {w}, {{"dtype", dtype::float64}}) == "INVALID_ARGUMENT: variable 'w' is float, this op expects double");
  CHECK(bench.error("AssignVariableOp", {w, make<double>({2}, {1, 2})}, {{"dtype", dtype::float64}}) == "INVALID_ARGUMENT: variable 'w' is float, the value is double");
  CHECK(bench.error("AssignAddVariableOp", {w, make<float>({3}, {1, 2, 3})}, of_float) ==
        "INVALID_ARGUMENT: variable 'w' has shape [2], the change has shape [3]; they must be equal");
  CHECK(bench.error("AssignSubVariableOp", {w, tensor_value::scalar(1.f)}, of_float) ==
        "INVALID_ARGUMENT: variable 'w' has shape [2], the change has shape []; they must be equal");
  CHECK(bench.error("AssignVariableOp", {w, make<float>({3}, {1, 2, 3})}, {{"dtype", dtype::float32}, {"validate_shape", true}}) ==
        "INVALID_ARGUMENT: variable 'w' has shape [2], the value has shape [3]");
  CHECK(elements<float>(bench("ReadVariableOp", {w}, of_float)) == std::vector<float>{1, 2});
}

TEST_CASE("destroy resource: forgets a variable, reports a missing one if asked to") {
  kernel_bench bench;
  const auto w = handle_to(bench, "w");
  bench("AssignVariableOp", {w, tensor_value::scalar(1.f)}, of_float);
  bench("DestroyResourceOp", {w});
  CHECK(!bench("VarIsInitializedOp", {w}).item<bool>());
  CHECK(bench.error("DestroyResourceOp", {w}) == "");
  CHECK(bench.error("DestroyResourceOp", {w}, {{"ignore_lookup_error", false}}) == "NOT_FOUND: there is no resource 'w' in container 'localhost'");
}

TEST_CASE("variable: updates from several threads are atomic, what is read in between is uniform") {
  kernel_bench bench;
  const auto w = handle_to(bench, "w", dtype::int32);
  const weft::attr_map attrs{{"dtype", dtype::int32}};
  tensor_value zeros(dtype::int32, {2000}), ones(dtype::int32, {2000});
  std::fill_n(zeros.mutable_data<std::int32_t>(), 2000, 0);
  std::fill_n(ones.mutable_data<std::int32_t>(), 2000, 1);
  bench("AssignVariableOp", {w, zeros}, attrs);
  const weft::node &add = bench.add("AssignAddVariableOp", {dtype::resource, dtype::int32}, attrs), &read = bench.add("ReadVariableOp", {dtype::resource}, attrs);
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        bench.run(add, {w, ones});
        const auto seen = bench.run(read, {w})[0];
        for (int j = 0; j < 2000; ++j) torn += seen.data<std::int32_t>()[j] != seen.data<std::int32_t>()[0] ? 1 : 0;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(torn == 0);
  CHECK(bench("ReadVariableOp", {w}, attrs).data<std::int32_t>()[1999] == 300);
}
