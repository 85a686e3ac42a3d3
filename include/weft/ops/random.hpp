#ifndef WEFT_OPS_RANDOM_HPP
#define WEFT_OPS_RANDOM_HPP
// Random tensors, with TensorFlow's generator and its rules for seeds.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

#if WEFT_HAS_BODIES
inline void random_shape(shape_context& c) { c.set_output(0, shape_from_input(c, 0, "shape")); }

inline void random_integers_shape(shape_context& c) {
  (void)c.with_rank(c.input_count() - 2, 0, "minval");
  (void)c.with_rank(c.input_count() - 1, 0, "maxval");
  random_shape(c);
}

inline void expect_seed(const shape_context& c) {
  const partial_shape seed = c.with_rank(1, 1, "seed");
  if (seed[0] >= 0 && seed[0] != 2) c.fail("seed must have shape [2], found " + seed.text());
}
inline void stateless_shape(shape_context& c) {
  expect_seed(c);
  random_shape(c);
}
inline void stateless_integers_shape(shape_context& c) {
  expect_seed(c);
  random_integers_shape(c);
}

inline void multinomial_shape(shape_context& c) {
  const partial_shape logits = c.with_rank(0, 2, "logits");
  (void)c.with_rank(1, 0, "num_samples");
  const auto wanted = c.input_integers(1);
  if (wanted && (*wanted)[0] < 0) c.fail("num_samples must not be negative, found " + std::to_string((*wanted)[0]));
  c.set_output(0, partial_shape({logits[0], wanted ? (*wanted)[0] : -1}));
}

#define WEFT_SEEDS "seed: int = 0; seed2: int = 0; "
#define WEFT_STATELESS "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64"
inline constexpr op_row random_ops[] = {
    {"RandomUniform RandomStandardNormal TruncatedNormal(shape: T) -> output: dtype", WEFT_SEEDS "dtype: {half, bfloat16, float, double}; T: {int32, int64}", random_shape, op_flags::stateful},
    {"RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> output: Tout", WEFT_SEEDS "Tout: {int32, int64}; T: {int32, int64}", random_integers_shape, op_flags::stateful},
    {"RandomShuffle(value: T) -> output: T", WEFT_SEEDS "T: type", unchanged_shape, op_flags::stateful},
    {"Multinomial(logits: T, num_samples: int32) -> output: output_dtype",
     WEFT_SEEDS "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; output_dtype: {int32, int64} = int64", multinomial_shape, op_flags::stateful},
    {"StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal(shape: T, seed: Tseed) -> output: dtype", WEFT_STATELESS, stateless_shape},
    {"StatelessRandomUniformInt(shape: T, seed: Tseed, minval: dtype, maxval: dtype) -> output: dtype", "dtype: {int32, int64}; T: {int32, int64}; Tseed: {int32, int64} = int64", stateless_integers_shape},
    {"StatelessRandomUniformFullInt(shape: T, seed: Tseed) -> output: dtype", "dtype: {int32, int64, uint32, uint64} = uint64; T: {int32, int64} = int32; Tseed: {int32, int64, uint32, uint64} = int64", stateless_shape},
};
#undef WEFT_SEEDS
#undef WEFT_STATELESS
#endif

// TensorFlow 1's rule: without any seed both are 0 and each run differs; a graph seed is joined by the number of nodes so far; an op's seed
// without a graph seed is joined by 87654321. Both are taken modulo 2^31 - 1, never negative.
inline std::pair<std::int64_t, std::int64_t> op_seeds(graph_state& g, std::optional<std::int64_t> seed) {
  const auto graph_seed = g.seed();
  if (!graph_seed && !seed) return {0, 0};
  constexpr std::int64_t modulus = 0x7fffffff;
  const auto reduced = [](std::int64_t n) { return n % modulus + (n % modulus < 0 ? modulus : 0); };
  const std::int64_t first = reduced(graph_seed.value_or(87654321)), second = reduced(seed.value_or(static_cast<std::int64_t>(g.size())));
  return {first, first == 0 && second == 0 ? modulus : second};
}

// Numbers in [0, 1), drawn by the node `full`.
inline output add_draw(const std::int64_t* sizes, std::size_t count, dtype type, std::optional<std::int64_t> seed, const std::string& full, const std::string& shape_name,
                       call_site site, graph_state& to) {
  const auto seeds = op_seeds(to, seed);
  const output dims = add_sizes(sizes, count, shape_name, site, to);
  return add_node_at("RandomUniform", {dims}, full, site, {{"dtype", type}, {"seed", seeds.first}, {"seed2", seeds.second}});
}
inline output add_random_uniform(const std::int64_t* sizes, std::size_t count, dtype type, std::optional<std::int64_t> seed, const op_name& name) {
  graph_state& to = *current_graph();
  const std::string full = claim_name(to, name, "random_uniform");
  return add_draw(sizes, count, type, seed, full, full + "/shape", name.site, to);
}
// The same, scaled to [low, low + range).
inline output add_random_uniform(const std::int64_t* sizes, std::size_t count, tensor_value range, tensor_value low, std::optional<std::int64_t> seed, const op_name& name) {
  graph_state& to = *current_graph();
  const std::string full = claim_name(to, name, "random_uniform");
  const output drawn = add_draw(sizes, count, range.dtype(), seed, full + "/RandomUniform", full + "/shape", name.site, to);
  const output width = add_const_at(std::move(range), full + "/mul/y", name.site, to), least = add_const_at(std::move(low), full + "/min", name.site, to);
  const output scaled = add_node_at("Mul", {drawn, width}, full + "/mul", name.site);
  return add_node_at("AddV2", {scaled, least}, full, name.site);
}

}  // namespace detail

/// Numbers in [low, high) drawn anew in each step (RandomUniform). The same seeds give TensorFlow's numbers; without seeds each run differs.
template <class T = float, std::size_t M>
tensor<T, static_cast<int>(M)> random_uniform(const std::int64_t (&dims)[M], T low = T(0), T high = T(1), std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "weft: random_uniform<T> draws float or double");
  const output drawn = low == T(0) && high == T(1)
                           ? detail::add_random_uniform(dims, M, dtype_of<T>, seed, name)
                           : detail::add_random_uniform(dims, M, tensor_value::scalar<T>(high - low), tensor_value::scalar<T>(low), seed, name);
  return tensor<T, static_cast<int>(M)>(drawn);
}

/// Sets the seed of the thread's default graph, from which random ops without a seed of their own derive theirs.
inline void set_random_seed(std::int64_t seed) { default_graph().set_random_seed(seed); }

}  // namespace weft

#endif
