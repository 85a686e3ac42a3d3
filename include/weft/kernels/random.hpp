#ifndef WEFT_KERNELS_RANDOM_HPP
#define WEFT_KERNELS_RANDOM_HPP
// Kernels of random numbers: TensorFlow's streams, one for each node of a session, or made of seeds that are inputs.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/philox.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of a random op; nullptr for ops of other families.
kernel_factory random_kernel_of(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// The position of one node's stream in one session.
class random_state final : public resource {
 public:
  random_state(std::uint64_t seed, std::uint64_t seed2) : stream(seed, seed2) {}
  std::string describe() const override { return "a random number stream"; }
  philox_counter stream;
};

/// The attributes seed and seed2 of a node.
struct random_seeds {
  std::uint64_t seed = 0, seed2 = 0;

  static random_seeds of(const node& n) { return {static_cast<std::uint64_t>(n.attr<std::int64_t>("seed")), static_cast<std::uint64_t>(n.attr<std::int64_t>("seed2"))}; }
  /// Where the node's stream stands in the step's session. Without seeds it is another in every session.
  std::shared_ptr<random_state> state(kernel_context& context) const;
};

inline std::shared_ptr<random_state> random_seeds::state(kernel_context& context) const {
  resource_manager* session = context.environment().session_state;
  if (session == nullptr) context.fail(error_code::internal, "the step has no session state to keep the random number stream in");
  return session->find_or_make<random_state>("random", context.about().name(), [this] {
    if (seed != 0 || seed2 != 0) return std::make_shared<random_state>(seed, seed2);
    std::random_device device;
    const auto draw = [&] { return std::uint64_t{device()} << 32 | device(); };
    const std::uint64_t first = draw();
    return std::make_shared<random_state>(first, draw());
  });
}

/// How random numbers are spread.
enum class distribution : unsigned char { uniform, normal, truncated, integers, all_integers };

/// Box and Muller's transformation of two uniform numbers into two normal ones.
template <class T> void to_normal(T u, T v, T* out) {
  const T radius = std::sqrt(T(-2) * std::log(u < T(1e-7) ? T(1e-7) : u)), angle = T(6.283185307179586476925286766559) * v;
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

/// Turns uniform numbers, of which there is an even number, into normal ones in place, pair by pair.
template <class T> void make_normal(T* numbers, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 2) to_normal(numbers[i], numbers[i + 1], numbers + i);
}

/// Words of a stream one by one.
class word_reader {
 public:
  explicit word_reader(philox_random generator) : generator_(generator) {}
  std::uint32_t next() {
    if (at_ == philox_random::block_words) {
      philox_block(generator_, words_);
      at_ = 0;
    }
    return words_[at_++];
  }
  /// A number in [0, 1).
  template <class T> T uniform() {
    const std::uint32_t first = next();
    if constexpr (std::is_same_v<T, double>) return element::uniform_from_words(first, next());
    else return element::uniform_from_word::apply<instruction_set::portable>(first);
  }

 private:
  philox_random generator_;
  std::uint32_t words_[philox_random::block_words];
  std::size_t at_ = philox_random::block_words;
};

/// Normal numbers between -2 and 2: those outside are drawn again. Each group of 4 (double: 2) has 256 (128) blocks of the stream for itself.
template <class T> void fill_truncated(T* out, std::size_t count, const philox_random& generator) {
  constexpr std::size_t group = std::is_same_v<T, double> ? 2 : 4, blocks = group * philox_counter::blocks_per_element / philox_random::block_words;
  for (std::size_t begin = 0; begin < count; begin += group) {
    philox_random own = generator;
    own.skip(begin / group * blocks);
    word_reader words(own);
    const std::size_t size = std::min(count - begin, group);
    for (std::size_t i = 0; i < size;) {
      T pair[2];
      const T u = words.uniform<T>();
      to_normal(u, words.uniform<T>(), pair);
      for (const T x : pair)
        if (i < size && std::abs(x) < T(2)) out[begin + i++] = x;
    }
  }
}

template <class T> void fill_floats(distribution kind, philox_random generator, tensor_value& out) {
  const auto count = static_cast<std::size_t>(out.elements());
  T* to = out.mutable_data<T>();
  if (kind == distribution::uniform) return fill_uniform(to, count, generator);
  // 16-bit floats are drawn as float; an odd count takes one number more.
  using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr std::size_t block = 512;
  wide numbers[block];
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = std::min(count - begin, block), even = size + size % 2;
    if (kind == distribution::truncated) {
      fill_truncated(numbers, size, generator);
      generator.skip(block * philox_counter::blocks_per_element / philox_random::block_words);
    } else {
      fill_uniform(numbers, even, generator);
      generator.skip(block * sizeof(wide) / 4 / philox_random::block_words);
      make_normal(numbers, even);
    }
    if constexpr (std::is_same_v<T, wide>) std::copy_n(numbers, size, to + begin);
    else cast_loop<T>(static_cast<const wide*>(numbers), to + begin, size);
  }
}

/// Random tensors of the shape in input 0: RandomUniform in [0, 1), RandomStandardNormal, TruncatedNormal, RandomUniformInt in [minval, maxval), and those whose name begins
/// with Stateless, which take their seeds from input 1 and give the same numbers each time.
class random_kernel final : public kernel {
 public:
  explicit random_kernel(const node& n);
  WEFT_INLINE void compute(kernel_context& context) override;
  WEFT_INLINE bool expensive(const kernel_context& context) const noexcept override;

 private:
  philox_random stateless_stream(const kernel_context& context) const;
  template <class T> void fill_integers(const kernel_context& context, philox_random generator, tensor_value& out) const;
  void check_inputs(const kernel_context& context) const;
  distribution kind_;
  bool stateless_;
  dtype type_;
  random_seeds seeds_;
};

inline distribution distribution_of(std::string_view op) noexcept {
  if (op.substr(0, 9) == "Stateless") op.remove_prefix(9);
  if (op == "RandomUniform") return distribution::uniform;
  if (op == "RandomUniformInt") return distribution::integers;
  if (op == "RandomUniformFullInt") return distribution::all_integers;
  return op == "TruncatedNormal" ? distribution::truncated : distribution::normal;
}

inline random_kernel::random_kernel(const node& n) : kind_(distribution_of(n.op())), stateless_(n.op().compare(0, 9, "Stateless") == 0), type_(type_attr(n, n.op() == "RandomUniformInt" ? "Tout" : "dtype")) {
  if (!stateless_) seeds_ = random_seeds::of(n);
  const bool signed_integer = type_ == dtype::int32 || type_ == dtype::int64;
  const bool fits = kind_ == distribution::integers ? signed_integer : kind_ == distribution::all_integers ? signed_integer || type_ == dtype::uint32 || type_ == dtype::uint64 : is_floating(type_);
  if (!fits) n.fail_about(error_code::unimplemented, std::string("no kernel of this op gives elements of dtype ") + to_text(type_));
}

inline bool random_kernel::expensive(const kernel_context& context) const noexcept {
  if (context.input_count() == 0) return false;
  const tensor_value& sizes = context.input(0);
  double elements = 1;
  for (std::int64_t i = 0; i < sizes.elements(); ++i)
    elements *= sizes.dtype() == dtype::int64 ? static_cast<double>(sizes.data<std::int64_t>()[i]) : sizes.dtype() == dtype::int32 ? sizes.data<std::int32_t>()[i] : 0;
  return elements > 4096;
}

template <class T> void random_kernel::fill_integers(const kernel_context& context, philox_random generator, tensor_value& out) const {
  const auto count = static_cast<std::size_t>(out.elements());
  if (kind_ == distribution::all_integers) return fill_all_integers(reinterpret_cast<std::make_unsigned_t<T>*>(out.mutable_raw_data()), count, generator);
  const int last = context.input_count() - 1;
  fill_uniform_int(out.mutable_data<T>(), count, *context.input(last - 1).data<T>(), *context.input(last).data<T>(), generator);
}

// The two seeds, mixed by a block of the generator, make key and counter, so that no bit of them matters more than another.
inline philox_random random_kernel::stateless_stream(const kernel_context& context) const {
  const tensor_value& seed = context.input(1);
  if (seed.shape() != shape{2}) context.fail("seed must have shape [2], found " + seed.shape().text());
  std::uint64_t seeds[2] = {};
  for (int i = 0; i < 2; ++i) switch (seed.dtype()) {
      case dtype::int32: seeds[i] = static_cast<std::uint64_t>(seed.data<std::int32_t>()[i]); break;
      case dtype::uint32: seeds[i] = seed.data<std::uint32_t>()[i]; break;
      case dtype::int64: seeds[i] = static_cast<std::uint64_t>(seed.data<std::int64_t>()[i]); break;
      case dtype::uint64: seeds[i] = seed.data<std::uint64_t>()[i]; break;
      default: context.fail(std::string("seed must be int32 or int64, found ") + to_text(seed.dtype()));
    }
  philox_random mixer(0x02461e293ec8f720U, seeds[1]);
  mixer.skip(seeds[0]);
  std::uint32_t words[philox_random::block_words];
  philox_block(mixer, words);
  return philox_random(std::uint64_t{words[1]} << 32 | words[0], std::uint64_t{words[3]} << 32 | words[2]);
}

inline void random_kernel::check_inputs(const kernel_context& context) const {
  const int limits = kind_ == distribution::integers ? 2 : 0, first = stateless_ ? 2 : 1;
  expect_inputs(context, first + limits);
  if (limits == 0) return;
  for (int i = first; i < first + 2; ++i) {
    expect_dtype(context, i, type_);
    if (context.input(i).shape().rank() != 0) context.fail("minval and maxval must be scalars, found shape " + context.input(i).shape().text());
  }
  const std::int64_t low = integers_of(context, first, "minval")[0], high = integers_of(context, first + 1, "maxval")[0];
  if (low >= high) context.fail("minval must be less than maxval, found " + std::to_string(low) + " and " + std::to_string(high));
}

inline void random_kernel::compute(kernel_context& context) {
  check_inputs(context);
  const shape wanted = wanted_shape(context, 0, "the wanted shape");
  philox_random generator = stateless_ ? stateless_stream(context) : philox_random(0, 0);
  tensor_value& out = context.allocate_output(0, type_, wanted);
  if (out.elements() == 0) return;
  if (!stateless_) generator = seeds_.state(context)->stream.reserve(static_cast<std::uint64_t>(out.elements()));
  switch (type_) {
    case dtype::int32: case dtype::uint32: return fill_integers<std::int32_t>(context, generator, out);
    case dtype::int64: case dtype::uint64: return fill_integers<std::int64_t>(context, generator, out);
    case dtype::float64: return fill_floats<double>(kind_, generator, out);
    case dtype::half: return fill_floats<half>(kind_, generator, out);
    case dtype::bfloat16: return fill_floats<bfloat16>(kind_, generator, out);
    default: return fill_floats<float>(kind_, generator, out);
  }
}

/// RandomShuffle: the rows of a tensor in another order.
class shuffle_kernel final : public kernel {
 public:
  explicit shuffle_kernel(const node& n) : type_(type_attr(n, "T")), seeds_(random_seeds::of(n)) {}
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 4096; }

 private:
  dtype type_;
  random_seeds seeds_;
};

inline void shuffle_kernel::compute(kernel_context& context) {
  expect_inputs(context, 1);
  expect_dtype(context, 0, type_);
  const shape s = context.input(0).shape();
  if (s.elements() <= 1 || s[0] <= 1) return context.set_output(0, context.take_input(0));
  const auto rows = static_cast<std::size_t>(s[0]), width = static_cast<std::size_t>(s.elements()) / rows;
  if (rows > 0xffffffffU) context.fail(error_code::resource_exhausted, "cannot shuffle " + std::to_string(rows) + " rows, at most " + std::to_string(0xffffffffU));
  word_reader words(seeds_.state(context)->stream.reserve_blocks((rows + 2) / philox_random::block_words));
  std::vector<std::uint32_t> order(rows);
  for (std::size_t i = 0; i < rows; ++i) order[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i + 1 < rows; ++i) std::swap(order[i], order[i + words.next() % (rows - i)]);
  const tensor_value& in = context.input(0);
  tensor_value& out = context.allocate_output(0, type_, s);
  if (type_ == dtype::string) {
    for (std::size_t i = 0; i < rows; ++i) std::copy_n(in.data<std::string>() + order[i] * width, width, out.mutable_data<std::string>() + i * width);
    return;
  }
  const std::size_t bytes = width * size_of(type_);
  for (std::size_t i = 0; i < rows; ++i) std::memcpy(out.mutable_raw_data() + i * bytes, in.raw_data() + order[i] * bytes, bytes);
}

/// Multinomial: for each row of logits, classes drawn with probabilities in proportion to exp(logit). Logits that are not finite count as no probability.
class multinomial_kernel final : public kernel {
 public:
  explicit multinomial_kernel(const node& n) : type_(type_attr(n, "T")), out_type_(type_attr(n, "output_dtype")), seeds_(random_seeds::of(n)) {
    if (wide_dtype(type_) == dtype::invalid || wide_dtype(type_) == dtype::boolean || (out_type_ != dtype::int32 && out_type_ != dtype::int64))
      n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes logits of dtype ") + to_text(type_) + " and gives " + to_text(out_type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context&) const noexcept override { return true; }

 private:
  std::vector<double> logits(const tensor_value& v) const;
  static void accumulate(double* row, std::size_t classes);
  dtype type_, out_type_;
  random_seeds seeds_;
};

inline std::vector<double> multinomial_kernel::logits(const tensor_value& v) const {
  const tensor_value wide = widened(v);
  std::vector<double> out(static_cast<std::size_t>(v.elements()));
  for (std::size_t i = 0; i < out.size(); ++i) switch (wide.dtype()) {
      case dtype::float32: out[i] = static_cast<double>(wide.data<float>()[i]); break;
      case dtype::float64: out[i] = wide.data<double>()[i]; break;
      case dtype::int64: out[i] = static_cast<double>(wide.data<std::int64_t>()[i]); break;
      default: out[i] = static_cast<double>(wide.data<std::uint64_t>()[i]);
    }
  return out;
}

// Turns logits into sums of probabilities up to each class, which are not scaled to 1.
inline void multinomial_kernel::accumulate(double* row, std::size_t classes) {
  double largest = std::numeric_limits<double>::lowest(), total = 0;
  for (std::size_t i = 0; i < classes; ++i)
    if (std::isfinite(row[i])) largest = std::max(largest, row[i]);
  for (std::size_t i = 0; i < classes; ++i) row[i] = total += std::isfinite(row[i]) ? std::exp(row[i] - largest) : 0;
}

inline void multinomial_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  expect_dtype(context, 1, dtype::int32);
  const shape& s = context.input(0).shape();
  if (s.rank() != 2) context.fail("logits must have rank 2, found shape " + s.text());
  if (context.input(1).shape().rank() != 0) context.fail("num_samples must have rank 0, found shape " + context.input(1).shape().text());
  const std::int64_t samples = *context.input(1).data<std::int32_t>();
  if (samples < 0) context.fail("num_samples must not be negative, found " + std::to_string(samples));
  if (s[1] == 0) context.fail("there must be at least one class, found logits of shape " + s.text());
  const std::int64_t sizes[] = {s[0], samples};
  if (!checked_elements(sizes, 2)) context.fail(std::to_string(samples) + " samples for logits of shape " + s.text() + " are too many elements");
  tensor_value& out = context.allocate_output(0, out_type_, shape(sizes, 2));
  if (out.elements() == 0) return;
  // Each sample is a double, of two words; TensorFlow sets aside samples in fours.
  const std::uint64_t elements = static_cast<std::uint64_t>(s[0]) * ((static_cast<std::uint64_t>(samples) + 3) / 4 * 4) * 2;
  word_reader words(seeds_.state(context)->stream.reserve(elements));
  std::vector<double> sums = logits(context.input(0));
  const auto classes = static_cast<std::size_t>(s[1]);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    double* row = sums.data() + static_cast<std::size_t>(i / samples) * classes;
    if (i % samples == 0) accumulate(row, classes);
    const double wanted = words.uniform<double>() * row[classes - 1];
    const std::int64_t found = std::upper_bound(row, row + classes, wanted) - row;
    if (out_type_ == dtype::int64) out.mutable_data<std::int64_t>()[i] = found;
    else out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(found);
  }
}

WEFT_DECL kernel_factory random_kernel_of(std::string_view op) {
  if (op == "RandomShuffle") return &make_kernel<shuffle_kernel>;
  if (op == "Multinomial") return &make_kernel<multinomial_kernel>;
  for (const std::string_view name : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal",
                                      "StatelessRandomUniformInt", "StatelessRandomUniformFullInt"})
    if (op == name) return &make_kernel<random_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
