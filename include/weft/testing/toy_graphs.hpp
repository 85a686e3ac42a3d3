#ifndef WEFT_TESTING_TOY_GRAPHS_HPP
#define WEFT_TESTING_TOY_GRAPHS_HPP
// Small graphs of the shapes that partitioning is tested with. They are made in the thread's default graph; every tensor is float[n].

#include <weft/core/config.hpp>
#include <weft/graph/scope.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::testing {

/// A source of values that is not a constant, so that nothing folds it: `float[elements]`, fed by whoever runs the graph.
tensor<float, 1> toy_source(const std::string& device, std::int64_t elements = 4, const std::string& name = "source");

/// `length` negations of a source, one on each device in turn; returns the last. Named `chain`, `chain_1`, ...
tensor<float, 1> chain(int length, const std::vector<std::string>& devices, std::int64_t elements = 4);

/// A source on `from` that a negation on each of `to` reads.
std::vector<tensor<float, 1>> fan_out(const std::string& from, const std::vector<std::string>& to, std::int64_t elements = 4);

/// A source on `top` that both sides read, whose values are added on `bottom`.
tensor<float, 1> diamond(const std::string& top, const std::string& left, const std::string& right, const std::string& bottom, std::int64_t elements = 4);

/// A value that goes to and fro between two devices `hops` times.
tensor<float, 1> ping_pong(const std::string& one, const std::string& other, int hops, std::int64_t elements = 4);

/// One tower per device: each reads the variable of `holder` and a source of its own; their sums are added on `holder`.
tensor<float, 1> towers(const std::string& holder, const std::vector<std::string>& devices, std::int64_t elements = 4);

}  // namespace weft::testing

#if WEFT_HAS_BODIES
namespace weft::testing {

WEFT_DECL tensor<float, 1> toy_source(const std::string& device, std::int64_t elements, const std::string& name) {
  const auto scope = with_device(device);
  return placeholder<float, 1>({dim(elements)}, name);
}

WEFT_DECL tensor<float, 1> chain(int length, const std::vector<std::string>& devices, std::int64_t elements) {
  tensor<float, 1> x = toy_source(devices.empty() ? std::string() : devices.front(), elements);
  for (int i = 0; i < length; ++i) {
    const auto scope = with_device(devices.empty() ? std::string() : devices[static_cast<std::size_t>(i) % devices.size()]);
    x = -x;
  }
  return x;
}

WEFT_DECL std::vector<tensor<float, 1>> fan_out(const std::string& from, const std::vector<std::string>& to, std::int64_t elements) {
  const tensor<float, 1> x = toy_source(from, elements);
  std::vector<tensor<float, 1>> out;
  for (const std::string& device : to) {
    const auto scope = with_device(device);
    out.push_back(-x);
  }
  return out;
}

WEFT_DECL tensor<float, 1> diamond(const std::string& top, const std::string& left, const std::string& right, const std::string& bottom, std::int64_t elements) {
  const std::vector<tensor<float, 1>> sides = fan_out(top, {left, right}, elements);
  const auto scope = with_device(bottom);
  return sides[0] + sides[1];
}

WEFT_DECL tensor<float, 1> ping_pong(const std::string& one, const std::string& other, int hops, std::int64_t elements) {
  return chain(hops + 1, {one, other}, elements);
}

WEFT_DECL tensor<float, 1> towers(const std::string& holder, const std::vector<std::string>& devices, std::int64_t elements) {
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

#endif
