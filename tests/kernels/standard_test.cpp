#include <weft/kernels/standard.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

using weft::dtype;

TEST_CASE("standard kernels: their catalogue is the one that placement uses") {
  CHECK(weft::standard_kernels().catalogue() == weft::standard_catalogue());
  CHECK(!weft::standard_catalogue().empty());
}

TEST_CASE("standard kernels: the catalogue names what the executor carries out itself") {
  for (const char* op : {"_Arg", "_Retval", "_Send", "_Recv", "NoOp"}) CHECK(weft::standard_catalogue().kernels_of(op).size() == 1);
}

TEST_CASE("standard kernels: an op without a kernel for its dtype is refused by name") {
  weft_test::kernel_bench bench;
  const weft::node& n = bench.add("Sqrt", {dtype::complex64});
  try {
    weft::standard_kernels().make({n, ""}, "CPU");
    FAIL("made a kernel");
  } catch (const weft::error& e) {
    CHECK(e.message() == "no kernel of this op runs on CPU with these attributes; there is CPU T in [float, double, bfloat16, half]");
    CHECK(e.code() == weft::error_code::unimplemented);
  }
  CHECK_THROWS_AS(weft::standard_kernels().make({n, ""}, "GPU"), weft::error);
}

TEST_CASE("standard kernels: every entry makes a kernel for each of its dtypes") {
  for (const auto& [op, entries] : weft::standard_catalogue().entries()) {
    const weft::kernel_entry& entry = entries.at(0);
    if (entry.constraints.empty() || op == "_Fused") continue;
    for (const dtype type : entry.constraints.begin()->second) {
      weft::graph graph{weft::standard_ops()};
      weft::node_spec spec;
      spec.op = op;
      spec.scoped = false;
      spec.outputs = std::vector<weft::output_type>{};
      for (const auto& [attr, types] : entry.constraints) spec.attrs[attr] = type;
      // Other attributes have their defaults, or a value that every op takes.
      if (const auto def = weft::standard_ops().find(op))
        for (const auto& attr : def->attrs) {
          if (spec.attrs.find(attr.name) != spec.attrs.end()) continue;
          if (attr.default_value) spec.attrs[attr.name] = *attr.default_value;
          else if (attr.kind == "bool") spec.attrs[attr.name] = false;
          else if (attr.kind == "int") spec.attrs[attr.name] = attr.minimum.value_or(0);
          else if (attr.kind == "type") spec.attrs[attr.name] = type;
          else if (attr.kind == "string" && !attr.allowed_strings.empty()) spec.attrs[attr.name] = attr.allowed_strings[0];
          else if (attr.kind == "shape") spec.attrs[attr.name] = weft::partial_shape();
          else if (attr.kind == "list(int)") spec.attrs[attr.name] = std::vector<std::int64_t>{1, 1, 1, 1};
        }
      spec.attrs["value"] = weft::tensor_value(type == dtype::resource ? dtype::boolean : type, weft::shape());
      const weft::node& n = graph.add(std::move(spec));
      CHECK_NOTHROW(weft::standard_kernels().make({n, ""}, "CPU"));
    }
  }
}

TEST_CASE("standard kernels: a first look at each family") {
  weft_test::kernel_bench bench;
  using weft_test::elements;
  using weft_test::make;
  const auto x = make<float>({2, 2}, {1, 2, 3, 4});
  CHECK(elements<float>(bench("AddV2", {x, x})) == std::vector<float>{2, 4, 6, 8});
  CHECK(elements<float>(bench("MatMul", {x, x})) == std::vector<float>{7, 10, 15, 22});
  CHECK(elements<float>(bench("Sum", {x, make<std::int32_t>({1}, {0})})) == std::vector<float>{4, 6});
  CHECK(elements<std::int32_t>(bench("Cast", {x}, {{"DstT", dtype::int32}})) == std::vector<std::int32_t>{1, 2, 3, 4});
  CHECK(elements<std::int32_t>(bench("Shape", {x})) == std::vector<std::int32_t>{2, 2});
  CHECK(bench("RandomUniform", {make<std::int32_t>({1}, {100})}, {{"dtype", dtype::float32}}).shape() == weft::shape{100});
  const auto handle = bench("VarHandleOp", {}, {{"dtype", dtype::float32}, {"shape", weft::partial_shape{2, 2}}}, "w");
  bench("AssignVariableOp", {handle, x}, {{"dtype", dtype::float32}});
  CHECK(bench("ReadVariableOp", {handle}, {{"dtype", dtype::float32}}) == x);
}
