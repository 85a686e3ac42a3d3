#include <weft/simulate/training.hpp>

#include <doctest/doctest.h>

namespace {

// One byte a second, so that sizes are seconds.
weft::training_setup seconds() {
  weft::training_setup s;
  s.parameter_bytes = 10;
  s.gradient_bytes = 20;
  s.compute_seconds = 5;
  s.seconds_per_message = 1;
  s.apply_bytes_per_second = 10;
  s.link = {0.5, 1};
  s.steps = 50;
  return s;
}

}  // namespace

TEST_CASE("simulate_training: one worker and one server add up") {
  // request 0.5, message 1, parameters 10 and 0.5, computing 5, gradients 20 and 0.5, message 1, applying 2
  const double step = 0.5 + 1 + 10.5 + 5 + 20.5 + 1 + 2;
  CHECK(simulate_training(seconds()).median == doctest::Approx(step + 0.5));  // and the word that the next step begins
  weft::training_setup alone = seconds();
  alone.mode = weft::training_mode::asynchronous;
  const auto p = simulate_training(alone);
  CHECK(p.median == doctest::Approx(step));
  CHECK(p.steps_per_second == doctest::Approx(1 / step));
  CHECK(p.computing == doctest::Approx(5 / step));
}

TEST_CASE("simulate_training: many workers are bound by the servers' network, more servers lift the bound") {
  weft::training_setup s = seconds();
  s.mode = weft::training_mode::asynchronous;
  s.workers = 40;
  s.seconds_per_message = 0;
  s.apply_bytes_per_second = 1e9;
  CHECK(simulate_training(s).steps_per_second == doctest::Approx(1.0 / 20).epsilon(0.05));  // the gradients go in one after the other
  s.parameter_servers = 4;
  CHECK(simulate_training(s).steps_per_second == doctest::Approx(4.0 / 20).epsilon(0.1));
}

TEST_CASE("simulate_training: a synchronous step waits for the slowest, and a backup worker saves that wait") {
  weft::training_setup s = seconds();
  s.link = {0, 1e9};
  s.seconds_per_message = 0;
  s.apply_bytes_per_second = 1e9;
  s.workers = 20;
  s.straggler_chance = 0.05;
  s.straggler_factor = 10;
  s.steps = 500;
  const auto all = simulate_training(s);
  CHECK(all.median == doctest::Approx(50).epsilon(0.01));  // 1 - 0.95^20 = 64 % of the steps meet a straggler
  s.workers = 23;
  s.backup_workers = 3;
  const auto backed = simulate_training(s);
  CHECK(backed.median == doctest::Approx(5).epsilon(0.01));
  CHECK(backed.high == doctest::Approx(5).epsilon(0.01));
  CHECK(simulate_training(s).steps_per_second == backed.steps_per_second);  // the same seed
  s.seed = 2;
  CHECK(simulate_training(s).steps_per_second != backed.steps_per_second);
}

TEST_CASE("simulate_training: ten thousand workers are played") {
  weft::training_setup s = seconds();
  s.workers = 10000;
  s.parameter_servers = 16;
  s.steps = 2;
  s.straggler_sigma = 0.2;
  const auto p = simulate_training(s);
  CHECK(p.median > 10000.0 * 20 / 16);
  CHECK(p.server_network <= 1);
}

TEST_CASE("simulate_training: what cannot be is refused") {
  const auto code = [](auto change) {
    weft::training_setup s = seconds();
    change(s);
    try {
      simulate_training(s);
    } catch (const weft::error& e) {
      return e.status().code;
    }
    return weft::error_code::ok;
  };
  CHECK(code([](auto& s) { s.workers = 0; }) == weft::error_code::invalid_argument);
  CHECK(code([](auto& s) { s.backup_workers = 1; }) == weft::error_code::invalid_argument);
  CHECK(code([](auto& s) { s.compute_seconds = -1; }) == weft::error_code::invalid_argument);
  CHECK(code([](auto& s) { s.link.bytes_per_second = 0; }) == weft::error_code::invalid_argument);
  CHECK(code([](auto& s) { s.steps = 0; }) == weft::error_code::invalid_argument);
}
