#include <weft/kernels/control.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::kernel_bench;
using weft_test::make;

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

namespace {
// What a call writes to a stream of C.
template <class F> std::string written_to(std::FILE* stream, F&& f) {
  std::fflush(stream);
  const int saved = dup(fileno(stream));
  std::FILE* file = std::tmpfile();
  dup2(fileno(file), fileno(stream));
  f();
  std::fflush(stream);
  dup2(saved, fileno(stream));
  close(saved);
  std::rewind(file);
  char text[1024];
  const std::size_t size = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  return std::string(text, size);
}
}  // namespace

TEST_CASE("assert: passes, or fails with a summary of what it was given") {
  kernel_bench bench;
  const auto yes = tensor_value::scalar(true), no = tensor_value::scalar(false);
  const auto text = tensor_value::scalar(std::string("x must be positive:"));
  CHECK(bench.error("Assert", {yes, text}) == "");
  const auto x = make<float>({2, 2}, {1, -2.5f, 3, 4});
  CHECK(bench.error("Assert", {no, text, x}) == "INVALID_ARGUMENT: assertion failed: [x must be positive:] [[1 -2.5][3...]]");
  CHECK(bench.error("Assert", {no, text, x}, {{"summarize", std::int64_t{-1}}}) == "INVALID_ARGUMENT: assertion failed: [x must be positive:] [[1 -2.5][3 4]]");
  CHECK(bench.error("Assert", {no, x}, {{"summarize", std::int64_t{0}}}) == "INVALID_ARGUMENT: assertion failed: [...]");
  CHECK(bench.error("Assert", {make<bool>({1}, {false}), x}) == "INVALID_ARGUMENT: the condition must be a scalar, found shape [1]");
  const std::pair<tensor_value, const char*> values[] = {
      {make<std::int32_t>({4}, {1, 2, 3, 4}), "1 2 3..."},
      {make<std::int64_t>({2, 1, 2}, {1, 2, 3, 4}), "[[1 2]][[3...]]"},
      {make<bool>({2}, {true, false}), "1 0"},
      {make<std::string>({2}, {"a\n", "b \"c\""}), "a\\x0a b \\\"c\\\""},
      {make<double>({3}, {0.1, 1e300, -std::numeric_limits<double>::infinity()}), "0.1 1e+300 -inf"},
      {make<std::uint8_t>({1}, {255}), "255"},
      {tensor_value(dtype::float32, shape{0, 3}), ""},
      {tensor_value(dtype::float32, shape{3, 0}), ""},
  };
  for (const auto& [value, expected] : values) CHECK(bench.error("Assert", {no, value}) == std::string("INVALID_ARGUMENT: assertion failed: [") + expected + "]");
}

TEST_CASE("print: passes its input on and writes a line") {
  kernel_bench bench;
  const auto x = make<float>({2}, {1, 2});
  CHECK(written_to(stderr, [&] { CHECK(bench("Print", {x, x, tensor_value::scalar<std::int32_t>(7)}, {{"message", "x = "}}) == x); }) == "x = [1 2][7]\n");
  CHECK(written_to(stderr, [&] { bench("PrintV2", {tensor_value::scalar(std::string("done"))}); }) == "done\n");
  CHECK(written_to(stdout, [&] { bench("PrintV2", {tensor_value::scalar(std::string("done"))}, {{"output_stream", "stdout"}, {"end", ""}}); }) == "done");
  CHECK(bench.error("PrintV2", {tensor_value::scalar(std::string("done"))}, {{"output_stream", "file:///etc/passwd"}}) ==
        "UNIMPLEMENTED: texts are printed to 'stdout' or 'stderr', not to 'file:///etc/passwd'");
  const weft::node& twice = bench.add("Print", {dtype::float32}, {{"first_n", std::int64_t{2}}, {"message", "!"}});
  CHECK(written_to(stderr, [&] { for (int i = 0; i < 4; ++i) bench.run(twice, {x}); }) == "!\n!\n");
}
