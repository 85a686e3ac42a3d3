#include <weft/ops/training.hpp>

#include <doctest/doctest.h>
#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <vector>

using weft::graph;
using weft::variable;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
  variable<float, 2> w{std::vector<std::vector<float>>{{1, 2}, {3, 4}}, "w"}, m{std::vector<std::vector<float>>{{0, 0}, {0, 0}}, "m"}, v{std::vector<std::vector<float>>{{0, 0}, {0, 0}}, "v"};
  variable<float, 0> rate{0.1f, "rate"};
  weft::tensor<float, 2> grad = weft::placeholder<float, 2>({2, 2}, "grad");
  weft::tensor<std::int64_t, 1> rows = weft::placeholder<std::int64_t, 1>({weft::unknown}, "rows");
  weft::tensor<float, 2> row_grads = weft::placeholder<float, 2>({weft::unknown, 2}, "row_grads");
};
std::string text(const weft::operation& op) { return to_text(*op.get()); }
}  // namespace

TEST_CASE("updates: variables by handle, numbers and reads named below the update") {
  fixture t;
  CHECK(text(weft::apply_gradient_descent(t.w, 0.5f, t.grad)) == "ResourceApplyGradientDescent = ResourceApplyGradientDescent(w, ResourceApplyGradientDescent/alpha, grad)");
  CHECK(text(weft::apply_momentum(t.w, t.m, t.rate, t.grad, 0.9f, weft::nesterov::on, "train")) == "train = ResourceApplyMomentum(w, m, train/lr, grad, train/momentum)  {use_nesterov=true}");
  CHECK(t.g.find("train/lr")->op() == "ReadVariableOp");
  CHECK(text(weft::apply_adam(t.w, t.m, t.v, 0.9f, 0.999f, t.rate, 0.9f, 0.999f, 1e-8f, t.grad, weft::nesterov::off, "adam")) ==
        "adam = ResourceApplyAdam(w, m, v, adam/beta1_power, adam/beta2_power, adam/lr, adam/beta1, adam/beta2, adam/epsilon, grad)");
  CHECK(text(weft::sparse_apply_adagrad(t.w, t.m, 1.f, t.row_grads, t.rows, "sparse")) == "sparse = ResourceSparseApplyAdagrad(w, m, sparse/lr, row_grads, rows)");
  CHECK(text(weft::apply_adagrad_da(t.w, t.m, t.v, t.grad, 1.f, 0.f, 0.f, 3, "da")) == "da = ResourceApplyAdagradDA(w, m, v, grad, da/lr, da/l1, da/l2, da/global_step)");
  CHECK(text(weft::sparse_apply_ftrl(t.w, t.m, t.v, t.row_grads, t.rows, 1.f, 0.f, 0.f, -0.5f, "ftrl")) == "ftrl = ResourceSparseApplyFtrl(w, m, v, row_grads, rows, ftrl/lr, ftrl/l1, ftrl/l2, ftrl/lr_power)");
  CHECK(text(weft::apply_rms_prop(t.w, t.m, t.v, 1.f, 0.9f, 0.f, 1e-7f, t.grad, "rms")) == "rms = ResourceApplyRMSProp(w, m, v, rms/lr, rms/rho, rms/momentum, rms/epsilon, grad)");
}

TEST_CASE("updates: shapes that do not fit are errors at the line") {
  fixture t;
  const auto error = [](auto&& make) {
    try {
      make();
    } catch (const weft::error& e) {
      return e.message();
    }
    return std::string();
  };
  const auto wide = weft::placeholder<float, 2>({2, 3}, "wide");
  const variable<float, 2> other(std::vector<std::vector<float>>{{1, 2, 3}}, "other");
  CHECK(error([&] { weft::apply_gradient_descent(t.w, 0.5f, wide); }) == "'var' has shape [2,2], 'delta' has shape [2,3]; they must be equal");
  CHECK(error([&] { weft::apply_adagrad(t.w, other, 0.5f, t.grad); }) == "'var' has shape [2,2], 'accum' has shape [1,3]; they must be equal");
  CHECK(error([&] { weft::sparse_apply_adagrad(t.w, t.m, 0.5f, wide, t.rows); }) == "'grad' must have a row for each index, shape [?,2], found [2,3]");
  CHECK(error([&] { weft::apply_gradient_descent(variable<float, 2>(), 0.5f, t.grad); }) == "ResourceApplyGradientDescent: the variable is empty; give it an initial value");
  CHECK(error([&] { weft::apply_gradient_descent(t.w, 0.5f, weft::tensor<float, 2>()); }) == "ResourceApplyGradientDescent: 'delta' is an empty tensor, not made by any op");
}
