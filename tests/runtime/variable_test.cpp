#include <weft/runtime/variable.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using weft::dtype;
using weft::error;
using weft::partial_shape;
using weft::tensor_value;
using weft::variable_resource;

namespace {

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.status().text();
  }
  return "no error";
}

void add_one(const tensor_value& current, tensor_value& next) {
  for (std::int64_t i = 0; i < current.elements(); ++i) next.mutable_data<float>()[i] = current.data<float>()[i] + 1;
}

}  // namespace

TEST_CASE("variable: reading before a value was assigned fails") {
  variable_resource v("w", dtype::float32, partial_shape{2});
  CHECK_FALSE(v.initialized());
  const std::string expected = "FAILED_PRECONDITION: variable 'w' is not initialized; run its initializer first";
  CHECK(message_of([&] { v.read(); }) == expected);
  CHECK(message_of([&] { v.replace(add_one); }) == expected);
  CHECK(message_of([&] { v.update([](tensor_value&) {}); }) == expected);
}

TEST_CASE("variable: dtype and shape are checked") {
  variable_resource v("w", dtype::float32, partial_shape{2, -1});
  CHECK(v.describe() == "variable 'w' of float[2,?]");
  CHECK(message_of([&] { v.assign(tensor_value::scalar(1)); }) == "INVALID_ARGUMENT: variable 'w' of float[2,?] cannot hold a value of dtype int32");
  CHECK(message_of([&] { v.assign(tensor_value::scalar(1.0f)); }) == "INVALID_ARGUMENT: variable 'w' of float[2,?] cannot hold a value of shape []");
  v.assign(tensor_value::from<float>({2, 1}, {1, 2}));
  CHECK(v.initialized());
  v.clear();
  CHECK_FALSE(v.initialized());
}

TEST_CASE("variable: an update writes in place while nobody else holds the elements") {
  variable_resource v("w", dtype::float32, partial_shape{2});
  v.assign(tensor_value::from<float>({2}, {1, 2}));
  const auto* storage = v.read().buffer().get();
  v.replace(add_one);
  v.update([](tensor_value& value) { value.mutable_data<float>()[0] = 7; });
  CHECK(v.read().buffer().get() == storage);
  CHECK(v.read() == tensor_value::from<float>({2}, {7, 3}));
}

TEST_CASE("variable: a value that was read never changes") {
  variable_resource v("w", dtype::float32, partial_shape{2});
  const tensor_value assigned = tensor_value::from<float>({2}, {1, 2});
  v.assign(assigned);
  v.replace(add_one);
  const tensor_value first = v.read();
  v.update([](tensor_value& value) { value.mutable_data<float>()[0] = 7; });
  const tensor_value second = v.read();
  v.replace(add_one);
  CHECK(assigned == tensor_value::from<float>({2}, {1, 2}));
  CHECK(first == tensor_value::from<float>({2}, {2, 3}));
  CHECK(second == tensor_value::from<float>({2}, {7, 3}));
  CHECK(v.read() == tensor_value::from<float>({2}, {8, 4}));
}

TEST_CASE("variable: strings are copied as objects") {
  variable_resource v("names", dtype::string, partial_shape{2});
  v.assign(tensor_value::from<std::string>({2}, {"a string too long to be stored in place", "b"}));
  const tensor_value before = v.read();
  v.update([](tensor_value& value) { value.mutable_data<std::string>()[1] = "c"; });
  CHECK(before == tensor_value::from<std::string>({2}, {"a string too long to be stored in place", "b"}));
  CHECK(v.read() == tensor_value::from<std::string>({2}, {"a string too long to be stored in place", "c"}));
}

TEST_CASE("variable: the old value stays when an update of a shared value throws") {
  variable_resource v("w", dtype::float32, partial_shape());
  v.assign(tensor_value::scalar(1.0f));
  const tensor_value held = v.read();
  CHECK_THROWS_AS(v.replace([](const tensor_value&, tensor_value&) { throw std::runtime_error("x"); }), std::runtime_error);
  CHECK(v.read() == tensor_value::scalar(1.0f));
}

TEST_CASE("variable: readers beside updates see whole values") {
  variable_resource v("w", dtype::float32, partial_shape{1000});
  v.assign(tensor_value::from<float>({1000}, std::vector<float>(1000, 0.0f)));
  std::atomic<bool> torn{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < 500; ++i) v.replace(add_one);
  });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const tensor_value seen = v.read();
        const float* x = seen.data<float>();
        for (int k = 1; k < 1000; ++k)
          if (x[k] != x[0]) torn = true;
      }
    });
  for (auto& t : threads) t.join();
  CHECK_FALSE(torn);
  CHECK(v.read().data<float>()[999] == 500.0f);
}

TEST_CASE("variable: large new storage comes from the pool it was given") {
  const auto pool = std::make_shared<weft::buffer_pool>();
  variable_resource v("w", dtype::float32, partial_shape(), pool);
  v.assign(tensor_value::scalar(1.0f));
  tensor_value held = v.read();
  v.replace(add_one);
  CHECK(v.read().buffer()->memory() == nullptr);
  v.assign(tensor_value::from<float>({1 << 18}, std::vector<float>(1 << 18, 1.0f)));
  held = v.read();
  v.replace(add_one);
  CHECK(v.read().buffer()->memory() == pool.get());
  CHECK(v.read().data<float>()[(1 << 18) - 1] == 2.0f);
  CHECK(held.data<float>()[(1 << 18) - 1] == 1.0f);
}
