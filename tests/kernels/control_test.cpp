#include <weft/kernels/control.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

using weft_test::kernel_bench;

TEST_CASE("no op: does nothing and has no outputs") {
  kernel_bench bench;
  CHECK(bench.run(bench.add("NoOp", {}), {}).empty());
  CHECK(!bench.expensive);
}

TEST_CASE("executor's ops: their kernels are never run") {
  kernel_bench bench;
  const auto message = bench.error("_Arg", {}, {{"T", weft::dtype::float32}, {"index", std::int64_t{0}}});
  CHECK(message == "INTERNAL: this op is carried out by the executor, its kernel was called");
}
