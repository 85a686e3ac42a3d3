#ifndef WEFT_TESTING_TOY_GRAPHS_HPP
#define WEFT_TESTING_TOY_GRAPHS_HPP
// Small graphs of the shapes that partitioning is tested with. They are made in the thread's default graph; every tensor is float[n].

#include <weft/graph/scope.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::testing {

/// A source of values that is not a constant, so that nothing folds it: `float[elements]`, fed by whoever runs the graph.
inline tensor<float, 1> toy_source(const std::string& device, std::int64_t elements = 4, const std::string& name = "source") {
  const auto scope = with_device(device);
  return placeholder<float, 1>({dim(elements)}, name);
}

/// `length` negations of a source, one on each device in turn; returns the last. Named `chain`, `chain_1`, ...
inline tensor<float, 1> chain(int length, const std::vector<std::string>& devices, std::int64_t elements = 4) {
  tensor<float, 1> x = toy_source(devices.empty() ? std::string() : devices.front(), elements);
  for (int i = 0; i < length; ++i) {
    const auto scope = with_device(devices.empty() ? std::string() : devices[static_cast<std::size_t>(i) % devices.size()]);
    x = -x;
  }
  return x;
}

/// A source on `from` that a negation on each of `to` reads.
inline std::vector<tensor<float, 1>> fan_out(const std::string& from, const std::vector<std::string>& to, std::int64_t elements = 4) {
  const tensor<float, 1> x = toy_source(from, elements);
  std::vector<tensor<float, 1>> out;
  for (const std::string& device : to) {
    const auto scope = with_device(device);
    out.push_back(-x);
  }
  return out;
}

/// A source on `top` that both sides read, whose values are added on `bottom`.
inline tensor<float, 1> diamond(const std::string& top, const std::string& left, const std::string& right, const std::string& bottom, std::int64_t elements = 4) {
  const std::vector<tensor<float, 1>> sides = fan_out(top, {left, right}, elements);
  const auto scope = with_device(bottom);
  return sides[0] + sides[1];
}

/// A value that goes to and fro between two devices `hops` times.
inline tensor<float, 1> ping_pong(const std::string& one, const std::string& other, int hops, std::int64_t elements = 4) {
  return chain(hops + 1, {one, other}, elements);
}

/// One tower per device: each reads the variable of `holder` and a source of its own; their sums are added on `holder`.
inline tensor<float, 1> towers(const std::string& holder, const std::vector<std::string>& devices, std::int64_t elements = 4) {
  variable<float, 1> weights;
  with_device(holder, [&] { weights = variable<float, 1>(fill({elements}, 1.f), "weights"); });
  std::vector<tensor<float, 1>> parts;
  for (const std::string& device : devices) {
    const tensor<float, 1> x = toy_source(device, elements);
    const auto scope = with_device(device);
    parts.push_back(x * weights);
  }
  const auto scope = with_device(holder);
  return add_n(parts);
}

}  // namespace weft::testing

#endif
