#include <weft/runtime/fold_constants.hpp>

#include <weft/kernels/standard.hpp>
#include <weft/ops/standard.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::constant;
using weft::fold_constants;
using weft::graph;
using weft::standard_kernels;

TEST_CASE("constant folding: chains of constants become one, and what nobody needs any more goes") {
  const graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>({2}, "x");
  const auto a = constant({1.f, 2.f}, "a"), b = constant({10.f, 20.f}, "b");
  const auto sum = weft::add(a, b, "sum");
  const auto twice = weft::multiply(sum, constant(2.f, "two"), "twice");
  const auto y = weft::add(x, twice, "y");
  const auto z = weft::multiply(x, a, "z");
  const graph folded = fold_constants(g, standard_kernels());
  CHECK(to_text(folded) ==
        "x = Placeholder()  float[2]  {shape=[2]}\n"
        "a = Const()  float[2]  {value=[1, 2]}\n"
        "twice = Const()  float[2]  {value=[22, 44]}\n"
        "y = AddV2(x, twice)  float[2]\n"
        "z = Mul(x, a)  float[2]\n");
  CHECK(to_text(g).find("sum = AddV2(a, b)") != std::string::npos);
}

TEST_CASE("constant folding: what stays as it is") {
  const graph g;
  const auto scope = g.as_default();
  const auto one = constant({1, 2}, "one");
  const weft::operation first = weft::no_op("first");
  // Behind a control input, with state, failing, too large, and on another device than its operand.
  {
    const auto wait = weft::control_dependencies({first});
    (void)weft::add(one, one, "waits");
  }
  (void)weft::random_uniform<float>({2});
  (void)weft::divide(one, constant({0, 1}, "zero"), "fails");
  (void)weft::fill({1000, 1000}, 1.f, "large");
  const weft::variable<float, 0> v(1.f, "v");
  {
    const auto there = weft::with_device("/device:CPU:1");
    (void)weft::add(one, one, "elsewhere");
  }
  CHECK(to_text(fold_constants(g, standard_kernels())) == to_text(g));
}

TEST_CASE("constant folding: a limit for results, and missing kernels") {
  const graph g;
  const auto scope = g.as_default();
  const auto one = constant({1.f, 2.f}, "one");
  const auto sum = weft::add(one, one, "sum");
  CHECK(fold_constants(g, standard_kernels()).find("sum")->op() == "Const");
  CHECK(fold_constants(g, standard_kernels(), {7}).find("sum")->op() == "AddV2");
  CHECK(fold_constants(g, standard_kernels(), {8, 7}).find("sum")->op() == "AddV2");
  CHECK(fold_constants(g, standard_kernels(), {8, 8}).find("sum")->op() == "AddV2");  // it reads 16 bytes
  CHECK(fold_constants(g, standard_kernels(), {16, 8}).find("sum")->op() == "Const");
  CHECK(fold_constants(g, weft::kernel_registry()).find("sum")->op() == "AddV2");
}

TEST_CASE("constant folding: nodes that wait for a folded one wait for its constant") {
  const graph g;
  const auto scope = g.as_default();
  const auto one = constant(1.f, "one");
  const auto sum = weft::add(one, one, "sum");
  const auto x = weft::placeholder<float, 0>("x");
  const auto wait = weft::control_dependencies({sum});
  (void)weft::identity(x, "y");
  const graph folded = fold_constants(g, standard_kernels());
  REQUIRE(folded.find("y")->control_inputs().size() == 1);
  CHECK(folded.find("y")->control_inputs()[0] == folded.find("sum"));
  CHECK(folded.find("sum")->op() == "Const");
}
