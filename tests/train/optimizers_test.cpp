#include <weft/train/optimizers.hpp>

#include <weft/graph.hpp>
#include <weft/gradients.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
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

struct case_of {
  const char* name;
  std::function<std::unique_ptr<weft::optimizer>()> make;
  // The slots by name with their first values.
  std::vector<std::pair<std::string, double>> slots;
  // w = [1, 1] after two steps with the gradient [1, 0], then the same of a sparse gradient.
  double after[2];
};

}  // namespace

TEST_CASE("optimizers: slots and two steps by hand") {
  const double root = std::sqrt(1.1);
  const std::vector<case_of> cases = {
      {"descent", [] { return std::make_unique<weft::gradient_descent_optimizer>(0.25); }, {}, {0.75, 0.5}},
      // The momentum is 1, then 1.5.
      {"momentum", [] { return std::make_unique<weft::momentum_optimizer>(0.1, 0.5); }, {{"momentum", 0}}, {0.9, 0.75}},
      // Looking ahead: 1 + 0.5 * 1, then 1 + 0.5 * 1.5.
      {"nesterov", [] { return std::make_unique<weft::momentum_optimizer>(0.1, 0.5, weft::nesterov::on); }, {{"momentum", 0}}, {0.85, 0.675}},
      {"adagrad", [] { return std::make_unique<weft::adagrad_optimizer>(0.5); }, {{"accumulator", 0.1}}, {1 - 0.5 / root, 1 - 0.5 / root - 0.5 / std::sqrt(2.1)}},
      // Steps of lr * m / sqrt(v) with both bias corrections: of a constant gradient each is lr.
      {"adam", [] { return std::make_unique<weft::adam_optimizer>(0.125, 0.5, 0.75, 0); }, {{"m", 0}, {"v", 0}}, {0.875, 0.75}},
      // rms is 1, then stays 1.
      {"rms_prop", [] { return std::make_unique<weft::rms_prop_optimizer>(0.5, weft::rms_prop_options{0.5, 0, 0, false}); }, {{"rms", 1}, {"momentum", 0}}, {0.5, 0}},
      // mean of gradients 0.5, then 0.75: the variance is 1 - 1/4, then 1 - 9/16.
      {"centered", [] { return std::make_unique<weft::rms_prop_optimizer>(0.5, weft::rms_prop_options{0.5, 0, 0, true}); }, {{"rms", 1}, {"mg", 0}, {"momentum", 0}},
       {1 - 0.5 / std::sqrt(0.75), 1 - 0.5 / std::sqrt(0.75) - 0.5 / std::sqrt(0.4375)}},
      // sqrt(epsilon) / sqrt(accum + epsilon) with accum 0.5: sqrt(0.5 / 1); then sqrt(0.25 * ... + 0.5) / sqrt(0.75 + 0.5).
      {"adadelta", [] { return std::make_unique<weft::adadelta_optimizer>(1., 0.5, 0.5); }, {{"accum", 0}, {"accum_update", 0}}, {1 - std::sqrt(0.5), 1 - std::sqrt(0.5) - std::sqrt(0.75) / std::sqrt(1.25)}},
      // A step of 0.5, then 0.25 nearer to zero for l1, then divided by 1 + 0.5 * 1 for l2.
      {"proximal", [] { return std::make_unique<weft::proximal_gradient_descent_optimizer>(0.5, 0.5, 1.); }, {}, {0.25 / 1.5, -1. / 18}},
  };
  for (const case_of& c : cases)
    for (const bool sparse : {false, true}) {
      CAPTURE(c.name);
      CAPTURE(sparse);
      const weft::graph g;
      const auto scope = g.as_default();
      const weft::variable<double, 1> w(xt::xtensor<double, 1>{1, 1}, "w");
      const auto optimizer = c.make();
      // The row comes in two halves, which are summed.
      const auto loss = sparse ? weft::reduce_sum(weft::gather(w, weft::constant({0, 0}))) * 0.5 : weft::reduce_sum(w * weft::constant({1., 0.}));
      const auto step = optimizer->minimize(loss);
      CHECK(optimizer->slot_names().size() == c.slots.size());
      weft::local_session session;
      session.run(weft::global_variables_initializer());
      for (const auto& [name, first] : c.slots) {
        const auto slot = optimizer->slot(w, name);
        REQUIRE(!slot.empty());
        CHECK(xt::allclose(session.run(slot), xt::xtensor<double, 1>{first, first}));
      }
      for (const double expected : c.after) {
        session.run(step);
        CHECK(session.run(w)(0) == doctest::Approx(expected).epsilon(1e-12));
      }
    }
}

TEST_CASE("optimizers: slots are named after variable and optimizer, stand with the variable and are not trained") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> w;
  weft::with_device("/job:ps/task:1", [&] { w = weft::variable<float, 1>(xt::xtensor<float, 1>{1}, "layer/w"); });
  weft::adam_optimizer adam;
  {
    const auto worker = weft::with_device("/job:worker/task:0");
    const auto names = weft::name_scope("train");
    const auto order = weft::control_dependencies({weft::no_op()});
    adam.minimize(weft::reduce_sum(w));
  }
  CHECK(adam.slot(w, "m").name() == "layer/w/Adam");
  CHECK(adam.slot(w, "v").name() == "layer/w/Adam_1");
  CHECK(adam.slot(w, "nothing").empty());
  for (const weft::any_variable& v : adam.variables()) {
    CHECK(v.device() == "/job:ps/task:1");
    CHECK(v.initializer().get()->control_inputs().empty());
  }
  CHECK(adam.variables().size() == 4);
  CHECK(weft::trainable_variables().size() == 1);
  CHECK(weft::global_variables().size() == 5);
  const weft::node* update = g.find("train/Adam/update_layer/w/ResourceApplyAdam");
  REQUIRE(update != nullptr);
  CHECK(update->device() == "/job:ps/task:1");
  // A second call uses the same slots.
  adam.minimize(weft::reduce_sum(w));
  CHECK(adam.variables().size() == 4);
}

TEST_CASE("optimizers: a variable whose shape is not known, small floats, tensors of another dtype as numbers") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto initial = weft::placeholder<weft::bfloat16, 1>("initial");
  const weft::variable<weft::bfloat16, 1> w(initial, "w");
  const auto rate = weft::constant(0.5);
  const weft::variable<float, 0> momentum_value(0.5f, weft::not_trainable, "momentum_value");
  weft::momentum_optimizer momentum(rate, momentum_value);
  const auto step = momentum.minimize(weft::reduce_sum(w));
  weft::local_session session;
  xt::xtensor<weft::bfloat16, 1> two(std::array<std::size_t, 1>{2});
  two.fill(weft::bfloat16(2.f));
  session.run({initial, two}, weft::global_variables_initializer());
  session.run(step);
  session.run(step);
  CHECK(static_cast<float>(session.run(w)(1)) == 0.75f);
}

TEST_CASE("optimizers: an update before its variable or its slots have values is refused by name") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 0> v(weft::constant(1.f), "v");
  weft::adam_optimizer adam(0.1f);
  const auto step = adam.minimize(v * 2.f);
  weft::local_session session({}, g);
  const auto message = [&] {
    try {
      session.run(step);
    } catch (const weft::error& e) {
      CHECK(e.code() == weft::error_code::failed_precondition);
      return e.status().message;
    }
    return std::string("ran");
  };
  CHECK_MESSAGE(message().find("is not initialized") != std::string::npos, message());
  session.run(v.initializer());
  CHECK_MESSAGE(message().find("is not initialized") != std::string::npos, message());
  session.run(weft::global_variables_initializer());
  CHECK(message() == "ran");
}

TEST_CASE("optimizers: numbers that cannot be") {
  CHECK(message_of([] { weft::adagrad_optimizer(1.f, 0); }) == "Adagrad: initial_accumulator_value must be positive, found 0.000000");
  CHECK(message_of([] { weft::proximal_adagrad_optimizer(1.f, 0.1, -1.f); }) == "ProximalAdagrad: l1_regularization_strength must be at least zero, found -1.000000");
  weft::ftrl_options options;
  options.learning_rate_power = 0.5;
  CHECK(message_of([&] { weft::ftrl_optimizer(1.f, options); }) == "Ftrl: learning_rate_power must be at most zero, found 0.500000");
  CHECK(message_of([] { weft::adagrad_da_optimizer(1.f, {}); }) == "AdagradDA: the counter of steps is an empty variable; give it an initial value");
}
