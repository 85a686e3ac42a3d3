#include <weft/train/optimizer.hpp>

#include <weft/graph.hpp>
#include <weft/gradients.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/optimizers.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const weft::error& e) {
    return e.status().message;
  }
  return "";
}

}  // namespace

TEST_CASE("optimizer: a step follows the gradient and counts") {
  for (const auto gate : {weft::gradient_gate::none, weft::gradient_gate::op, weft::gradient_gate::graph}) {
    const weft::graph g;
    const auto scope = g.as_default();
    const weft::variable<float, 0> a(1.f, "a"), b(2.f, "b");
    const weft::variable<std::int64_t, 0> global_step(std::int64_t{0}, "global_step");
    const auto loss = weft::square(3.f * a - b) + b * b;
    weft::compute_gradients_options options;
    options.gate = gate;
    weft::gradient_descent_optimizer descent(0.1f);
    const weft::operation train = descent.minimize(loss, global_step, options);
    CHECK(train.name() == "GradientDescent");
    CHECK(train.get()->op() == "AssignAddVariableOp");
    CHECK(g.find("GradientDescent/update_a/ResourceApplyGradientDescent") != nullptr);
    CHECK(g.find("GradientDescent/learning_rate") != nullptr);

    weft::local_session session;
    session.run(weft::global_variables_initializer());
    const float expected[3][3] = {{0.39999998f, 1.8f, 3.6f}, {0.76f, 1.3199999f, 2.6639998f}, {0.18399996f, 1.2479999f, 2.04192f}};
    for (int step = 0; step < 3; ++step) {
      session.run(train);
      const auto [av, bv, lv, count] = session.run(a, b, loss, global_step);
      CHECK(av == doctest::Approx(expected[step][0]).epsilon(1e-6));
      CHECK(bv == doctest::Approx(expected[step][1]).epsilon(1e-6));
      CHECK(lv == doctest::Approx(expected[step][2]).epsilon(1e-6));
      CHECK(count == step + 1);
    }
  }
}

TEST_CASE("optimizer: what cannot be trained is named") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::gradient_descent_optimizer descent(1.f);
  const auto number = weft::constant(2.f, "number");
  CHECK(message_of([&] { descent.minimize(number); }) == "GradientDescent: there are no variables to train; the graph has no trainable variable");
  const weft::variable<float, 0> a(1.f, "a"), b(1.f, "b");
  const weft::variable<std::int32_t, 0> whole(1, "whole");
  CHECK(message_of([&] { descent.minimize(number); }) ==
        "GradientDescent: no variable has a gradient: the loss does not depend on 'a', 'b', or only through ops that have no gradient");
  CHECK(message_of([&] { descent.apply_gradients({}); }) == "GradientDescent: no variables are given");
  CHECK(message_of([&] { descent.minimize(weft::cast<std::int32_t>(a)); }) == "GradientDescent: the loss 'Cast' must be float, double, half or bfloat16, found int32");
  weft::compute_gradients_options twice, constant;
  twice.variables = {a, b, a};
  CHECK(message_of([&] { descent.minimize(a * b, {}, twice); }) == "GradientDescent: variable 'a' is given twice");
  CHECK(message_of([&] { constant.variables.emplace_back(number.raw()); }) == "'number' is no variable but the output of a Const");
  CHECK(message_of([&] { descent.apply_gradients({{weft::constant(1.), a}}); }) == "GradientDescent: the gradient of 'a' is double, the variable is float");
  CHECK(message_of([&] { descent.apply_gradients({{weft::constant(1), whole}}); }) == "GradientDescent: the variable 'whole' must be float, double, half or bfloat16, found int32");
}

TEST_CASE("optimizer: one for each graph, which it keeps alive") {
  weft::gradient_descent_optimizer descent(1.f);
  {
    const weft::graph first;
    const auto scope = first.as_default();
    descent.minimize(weft::square(weft::variable<float, 0>(1.f, "a")));
  }
  const weft::graph second;
  const auto scope = second.as_default();
  const weft::variable<float, 0> b(1.f, "b");
  CHECK(message_of([&] { descent.minimize(weft::square(b)); }) ==
        "GradientDescent: the variable 'b' belongs to another graph than those that were trained before; use an optimizer for each graph");
}

TEST_CASE("optimizer: a variable may come twice, one without a gradient is left alone") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 0> a(0.f, "a"), b(5.f, "b");
  const auto one = weft::constant(1.f);
  weft::gradient_descent_optimizer descent(1.f);
  const auto step = descent.apply_gradients({{one, a}, {one, a}, {weft::gradient_output(), b}}, {}, "train");
  CHECK(step.name() == "train");
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  session.run(step);
  CHECK(session.run(a) == -2.f);
  CHECK(session.run(b) == 5.f);
}

TEST_CASE("optimizer: rows of a gather update only these rows, repeated ones as often as they come") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 2> table(xt::xtensor<float, 2>{{1, 1}, {2, 2}, {3, 3}}, "table");
  const auto rows = weft::gather(table, weft::constant({2, 0, 2}));
  weft::gradient_descent_optimizer descent(0.5f);
  const auto step = descent.minimize(weft::reduce_sum(rows));
  CHECK(g.find("GradientDescent/update_table/ResourceScatterAdd") != nullptr);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  session.run(step);
  CHECK(session.run(table) == xt::xtensor<float, 2>{{0.5f, 0.5f}, {2, 2}, {2, 2}});
}
