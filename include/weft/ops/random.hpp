#ifndef WEFT_OPS_RANDOM_HPP
#define WEFT_OPS_RANDOM_HPP
// Random tensors, with TensorFlow's generator and its rules for seeds.

#include <weft/graph/tensor.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

inline void define_random_ops(op_registry& ops) {
  const auto from_shape = [](shape_context& c) { c.set_output(0, shape_from_input(c, 0)); };
  for (const char* name : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"})
    ops.add(op(name).input("shape: T").output("output: dtype").attr("seed: int = 0").attr("seed2: int = 0").attr("dtype: {half, bfloat16, float, double}").attr("T: {int32, int64}").stateful().shapes(from_shape));
  ops.add(op("RandomUniformInt").input("shape: T").input("minval: Tout").input("maxval: Tout").output("output: Tout").attr("seed: int = 0").attr("seed2: int = 0").attr("Tout: {int32, int64}").attr("T: {int32, int64}").stateful().shapes(from_shape));
}

// TensorFlow's rule: without any seed both are 0 and each run differs; a graph seed is joined by the number of nodes so far; an op's seed
// without a graph seed is joined by 87654321.
inline std::pair<std::int64_t, std::int64_t> op_seeds(graph_state& g, std::optional<std::int64_t> seed) {
  const auto graph_seed = g.seed();
  if (!graph_seed && !seed) return {0, 0};
  const std::int64_t first = graph_seed.value_or(87654321), second = seed.value_or(static_cast<std::int64_t>(g.size()));
  return first == 0 && second == 0 ? std::make_pair(std::int64_t{0}, std::int64_t{0x7fffffff}) : std::make_pair(first, second);
}

}  // namespace detail

/// Numbers in [low, high) drawn anew in each step (RandomUniform). The same seeds give TensorFlow's numbers; without seeds each run differs.
template <class T = float, std::size_t M>
tensor<T, static_cast<int>(M)> random_uniform(const std::int64_t (&dims)[M], T low = T(0), T high = T(1), std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "weft: random_uniform<T> draws float or double");
  detail::graph_state& to = *detail::current_graph();
  const auto seeds = detail::op_seeds(to, seed);
  const std::string& outer = detail::thread_scopes().top().name_scope;
  const std::string wanted = name.text.empty() ? "random_uniform" : std::string(name.text);
  const std::string base = to.unique_scope(outer.empty() ? wanted : outer + "/" + wanted, name.site);
  const auto named = [&](const std::string& text) { return op_name(std::string_view(text), name.site); };
  const std::string shape_name = base + "/shape/", draw_name = base + "/RandomUniform/", range_name = base + "/mul/", range_const = base + "/mul/y/", low_const = base + "/min/", exact = base + "/";
  const output sizes{&detail::add_const(tensor_value::from<std::int64_t>({static_cast<std::int64_t>(M)}, std::vector<std::int64_t>(dims, dims + M)), named(shape_name)), 0};
  const attr_map attrs{{"dtype", dtype_of<T>}, {"seed", seeds.first}, {"seed2", seeds.second}};
  const bool plain = low == T(0) && high == T(1);
  output drawn{&detail::add_node("RandomUniform", {sizes}, named(plain ? exact : draw_name), attrs), 0};
  if (plain) return tensor<T, static_cast<int>(M)>(drawn);
  const output range{&detail::add_const(tensor_value::scalar<T>(high - low), named(range_const)), 0}, least{&detail::add_const(tensor_value::scalar<T>(low), named(low_const)), 0};
  drawn = {&detail::add_node("Mul", {drawn, range}, named(range_name)), 0};
  return tensor<T, static_cast<int>(M)>(output{&detail::add_node("AddV2", {drawn, least}, named(exact)), 0});
}

/// Sets the seed of the thread's default graph, from which random ops without a seed of their own derive theirs.
inline void set_random_seed(std::int64_t seed) { default_graph().set_random_seed(seed); }

}  // namespace weft

#endif
