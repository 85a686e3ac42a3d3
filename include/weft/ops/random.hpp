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

// The shape that a random builder is asked for: numbers, or a vector of the graph.
struct wanted_sizes {
  const std::int64_t* numbers = nullptr;
  std::size_t count = 0;
  const side* vector = nullptr;
};
// What a random builder draws: the op, the dtype, and what scales and shifts the numbers drawn, empty where nothing does.
struct wanted_numbers {
  const char *op, *scope, *scale_name, *shift_name;
  dtype type;
  tensor_value scale, shift;
};
// Seeds of an op: one of its own, or (stateless) two as numbers or a vector of the graph.
struct wanted_seeds {
  std::optional<std::int64_t> own;
  const std::int64_t* two = nullptr;
  const side* vector = nullptr;
};
output add_random(const wanted_sizes& sizes, const wanted_numbers& numbers, const wanted_seeds& seeds, const op_name& name);
// Integers in [low, high).
output add_random_integers(const wanted_sizes& sizes, tensor_value low, tensor_value high, const wanted_seeds& seeds, const op_name& name);
output add_multinomial(const side& logits, std::int32_t samples, dtype type, std::optional<std::int64_t> seed, const op_name& name);
output add_random_shuffle(const side& value, std::optional<std::int64_t> seed, const op_name& name);

template <std::size_t M> wanted_sizes sizes_of(const std::int64_t (&dims)[M]) { return {dims, M, nullptr}; }
template <class T> wanted_numbers scaled(const char* op, const char* scope, const char* scale_name, const char* shift_name, T scale, T shift) {
  const bool plain = scale == T(1) && shift == T(0);
  return {op, scope, scale_name, shift_name, dtype_of<T>, plain ? tensor_value() : tensor_value::scalar<T>(scale), plain ? tensor_value() : tensor_value::scalar<T>(shift)};
}
template <class T> inline constexpr bool is_random_float_v = std::is_floating_point_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
template <class T> inline constexpr bool is_random_integer_v = std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;

template <class T> output random_between(const wanted_sizes& sizes, T low, T high, const wanted_seeds& seeds, const op_name& name) {
  static_assert(is_random_float_v<T> || is_random_integer_v<T>, "weft: random_uniform<T> draws float, double, half, bfloat16, int32 or int64");
  if constexpr (is_random_integer_v<T>) return add_random_integers(sizes, tensor_value::scalar<T>(low), tensor_value::scalar<T>(high), seeds, name);
  else return add_random(sizes, scaled<T>("RandomUniform", "random_uniform", "mul/y", "min", static_cast<T>(high - low), low), seeds, name);
}
template <class T> output random_spread(const char* op, const char* scope, const wanted_sizes& sizes, T mean, T stddev, const wanted_seeds& seeds, const op_name& name) {
  static_assert(is_random_float_v<T>, "weft: normal numbers are float, double, half or bfloat16");
  return add_random(sizes, scaled<T>(op, scope, "stddev", "mean", stddev, mean), seeds, name);
}
template <class T> output stateless_normal(const wanted_sizes& sizes, T mean, T stddev, const wanted_seeds& seeds, const op_name& name) {
  return random_spread<T>("RandomNormal", "random_normal", sizes, mean, stddev, seeds, name);
}
template <class T> output stateless_truncated(const wanted_sizes& sizes, T mean, T stddev, const wanted_seeds& seeds, const op_name& name) {
  return random_spread<T>("TruncatedNormal", "truncated_normal", sizes, mean, stddev, seeds, name);
}

#if WEFT_HAS_BODIES
// The op's first inputs, its attributes and the name of a builder's node.
struct random_node {
  graph_state& to;
  std::string full;
  call_site site;
  bool stateless;
  std::pair<std::int64_t, std::int64_t> numbers;  // attributes seed and seed2

  random_node(const wanted_sizes& sizes, const wanted_seeds& seeds, const op_name& name, const char* scope)
      : to(sizes.vector != nullptr && sizes.vector->out.from != nullptr ? sizes.vector->out.from->owner() : *current_graph()), site(name.site), stateless(seeds.two != nullptr || seeds.vector != nullptr) {
    full = claim_name(to, name, stateless ? ("stateless_" + std::string(scope)).c_str() : scope);
    if (!stateless) numbers = op_seeds(to, seeds.own);
  }
  output draw(const std::string& op, const std::string& at, const wanted_sizes& sizes, const wanted_seeds& seeds, const char* type_name, dtype type, const std::vector<output>& limits) const {
    attr_map attrs{{type_name, type}};
    if (!stateless) {
      attrs["seed"] = numbers.first;
      attrs["seed2"] = numbers.second;
    }
    std::vector<output> inputs{sizes.vector != nullptr ? input_of(op.c_str(), *sizes.vector, op_name(site)) : add_sizes(sizes.numbers, sizes.count, full + "/shape", site, to)};
    if (seeds.two != nullptr) inputs.push_back(add_sizes(seeds.two, 2, full + "/seed", site, to));
    else if (seeds.vector != nullptr) inputs.push_back(input_of(op.c_str(), *seeds.vector, op_name(site)));
    inputs.insert(inputs.end(), limits.begin(), limits.end());
    return add_node_at(((stateless ? "Stateless" : "") + op).c_str(), inputs, at, site, std::move(attrs));
  }
};

WEFT_DECL output add_random(const wanted_sizes& sizes, const wanted_numbers& numbers, const wanted_seeds& seeds, const op_name& name) {
  const random_node n(sizes, seeds, name, numbers.scope);
  if (numbers.scale.empty()) return n.draw(numbers.op, n.full, sizes, seeds, "dtype", numbers.type, {});
  const output drawn = n.draw(numbers.op, n.full + "/" + numbers.op, sizes, seeds, "dtype", numbers.type, {});
  const output scale = add_const_at(numbers.scale, n.full + "/" + numbers.scale_name, n.site, n.to), shift = add_const_at(numbers.shift, n.full + "/" + numbers.shift_name, n.site, n.to);
  return add_node_at("AddV2", {add_node_at("Mul", {drawn, scale}, n.full + "/mul", n.site), shift}, n.full, n.site);
}

WEFT_DECL output add_random_integers(const wanted_sizes& sizes, tensor_value low, tensor_value high, const wanted_seeds& seeds, const op_name& name) {
  const random_node n(sizes, seeds, name, "random_uniform");
  const dtype type = low.dtype();
  const output least = add_const_at(std::move(low), n.full + "/min", n.site, n.to), above = add_const_at(std::move(high), n.full + "/max", n.site, n.to);
  return n.draw("RandomUniformInt", n.full, sizes, seeds, n.stateless ? "dtype" : "Tout", type, {least, above});
}

WEFT_DECL output add_multinomial(const side& logits, std::int32_t samples, dtype type, std::optional<std::int64_t> seed, const op_name& name) {
  const output in = input_of("Multinomial", logits, name);
  graph_state& to = in.from->owner();
  const auto seeds = op_seeds(to, seed);
  const std::string full = claim_name(to, name, "multinomial");
  const output count = add_const_at(tensor_value::scalar(samples), full + "/num_samples", name.site, to);
  return add_node_at("Multinomial", {in, count}, full, name.site, {{"seed", seeds.first}, {"seed2", seeds.second}, {"output_dtype", type}});
}

WEFT_DECL output add_random_shuffle(const side& value, std::optional<std::int64_t> seed, const op_name& name) {
  const output in = input_of("RandomShuffle", value, name);
  const auto seeds = op_seeds(in.from->owner(), seed);
  return {&add_node("RandomShuffle", {in}, name, {{"seed", seeds.first}, {"seed2", seeds.second}}), 0};
}
#endif

}  // namespace detail

/// Numbers in [low, high) drawn anew in each step (RandomUniform; RandomUniformInt for int32 and int64). The same seeds give TensorFlow's numbers; without seeds each run differs.
template <class T = float, std::size_t M>
tensor<T, static_cast<int>(M)> random_uniform(const std::int64_t (&dims)[M], T low = T(0), T high = T(1), std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  return tensor<T, static_cast<int>(M)>(detail::random_between<T>(detail::sizes_of(dims), low, high, {seed}, name));
}
/// The same in a shape that is a vector of the graph.
template <class T = float, class I, int K> tensor<T> random_uniform(const operand<I, K>& dims, T low = T(0), T high = T(1), std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  const detail::side sizes = detail::side_of(dims);
  return tensor<T>(detail::random_between<T>({nullptr, 0, &sizes}, low, high, {seed}, name));
}

#define WEFT_RANDOM_NORMAL(NAME, OPNAME)                                                                                                                                   \
  template <class T = float, std::size_t M>                                                                                                                                \
  tensor<T, static_cast<int>(M)> NAME(const std::int64_t (&dims)[M], T mean = T(0), T stddev = T(1), std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) { \
    return tensor<T, static_cast<int>(M)>(detail::random_spread<T>(OPNAME, #NAME, detail::sizes_of(dims), mean, stddev, {seed}, name));                                    \
  }                                                                                                                                                                        \
  template <class T = float, class I, int K>                                                                                                                               \
  tensor<T> NAME(const operand<I, K>& dims, T mean = T(0), T stddev = T(1), std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {                          \
    const detail::side sizes = detail::side_of(dims);                                                                                                                      \
    return tensor<T>(detail::random_spread<T>(OPNAME, #NAME, {nullptr, 0, &sizes}, mean, stddev, {seed}, name));                                                           \
  }
/// Normal numbers of this mean and standard deviation, drawn anew in each step (RandomStandardNormal), in a shape of numbers or a vector of the graph.
WEFT_RANDOM_NORMAL(random_normal, "RandomStandardNormal")
/// The same, those more than two standard deviations from the mean being drawn again (TruncatedNormal).
WEFT_RANDOM_NORMAL(truncated_normal, "TruncatedNormal")
#undef WEFT_RANDOM_NORMAL

/// The rows of a tensor in another order in each step (RandomShuffle).
template <class T, int N> tensor<T, N> random_shuffle(const operand<T, N>& value, std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  return tensor<T, N>(detail::add_random_shuffle(detail::side_of(value), seed, name));
}

/// For each row of logits `[batch, classes]` so many classes, drawn with probabilities in proportion to exp(logit): `[batch, num_samples]` (Multinomial).
template <class To = std::int64_t, class T, int N> tensor<To, 2> multinomial(const operand<T, N>& logits, std::int32_t num_samples, std::optional<std::int64_t> seed = std::nullopt, op_name name = {}) {
  static_assert(detail::is_random_integer_v<To>, "weft: multinomial<To> gives int32 or int64");
  static_assert(N == 2 || N == dynamic_rank, "weft: multinomial needs logits of rank 2");
  return tensor<To, 2>(detail::add_multinomial(detail::side_of(logits), num_samples, dtype_of<To>, seed, name));
}

#define WEFT_STATELESS(NAME, CALL, FIRST, SECOND)                                                                                                         \
  template <class T = float, std::size_t M>                                                                                                               \
  tensor<T, static_cast<int>(M)> NAME(const std::int64_t (&dims)[M], const std::int64_t (&seed)[2], T FIRST = T(0), T SECOND = T(1), op_name name = {}) { \
    return tensor<T, static_cast<int>(M)>(CALL(detail::sizes_of(dims), FIRST, SECOND, {std::nullopt, seed}, name));                                       \
  }                                                                                                                                                       \
  template <class T = float, class I, int K, std::size_t M>                                                                                               \
  tensor<T, static_cast<int>(M)> NAME(const std::int64_t (&dims)[M], const operand<I, K>& seed, T FIRST = T(0), T SECOND = T(1), op_name name = {}) {     \
    const detail::side two = detail::side_of(seed);                                                                                                       \
    return tensor<T, static_cast<int>(M)>(CALL(detail::sizes_of(dims), FIRST, SECOND, {std::nullopt, nullptr, &two}, name));                              \
  }
/// Numbers in [low, high) that two seeds, numbers or a vector of the graph, decide altogether (StatelessRandomUniform, StatelessRandomUniformInt).
WEFT_STATELESS(stateless_random_uniform, detail::random_between<T>, low, high)
/// Normal numbers that two seeds decide altogether (StatelessRandomNormal).
WEFT_STATELESS(stateless_random_normal, detail::stateless_normal<T>, mean, stddev)
/// The same between two standard deviations from the mean (StatelessTruncatedNormal).
WEFT_STATELESS(stateless_truncated_normal, detail::stateless_truncated<T>, mean, stddev)
#undef WEFT_STATELESS

/// Sets the seed of the thread's default graph, from which random ops without a seed of their own derive theirs.
inline void set_random_seed(std::int64_t seed) { default_graph().set_random_seed(seed); }

}  // namespace weft

#endif
