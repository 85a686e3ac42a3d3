#ifndef WEFT_TRAIN_INITIALIZERS_HPP
#define WEFT_TRAIN_INITIALIZERS_HPP
// First values of variables, made from the variable's shape and dtype. The same seeds give TensorFlow's numbers.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/tensor/value_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// What an initializer is asked for.
struct initializer_request {
  weft::shape shape;
  weft::dtype dtype = weft::dtype::float32;
  /// For a piece of a partitioned variable: the shape of the whole, from which fans are counted, and where the piece begins; both empty otherwise.
  std::optional<weft::shape> whole{};
  std::vector<std::int64_t> offset{};
  /// The user's line.
  call_site site{};

  const weft::shape& full() const noexcept { return whole ? *whole : shape; }
};

namespace detail {
class initializer_base {
 public:
  virtual ~initializer_base() = default;
  virtual output make(const initializer_request& asked) const = 0;
};
template <class Make> class made_by final : public initializer_base {
 public:
  explicit made_by(Make make) : make_(std::move(make)) {}
  output make(const initializer_request& asked) const override { return make_(asked); }

 private:
  Make make_;
};
}  // namespace detail

/// Makes the nodes of a variable's first value. A value; copies share what they do.
class initializer {
 public:
  /// None: whoever takes it falls back to its own default.
  initializer() = default;
  explicit initializer(std::shared_ptr<const detail::initializer_base> what) : what_(std::move(what)) {}
  /// One of your own: a callable that takes an `initializer_request` and returns an `output` of that dtype and shape.
  template <class Make, class = std::enable_if_t<std::is_invocable_r_v<output, const Make&, const initializer_request&>>>
  initializer(Make make) : what_(std::make_shared<detail::made_by<Make>>(std::move(make))) {}

  bool empty() const noexcept { return what_ == nullptr; }
  /// Adds the nodes. Throws INVALID_ARGUMENT when the shape or dtype is none for this initializer.
  output make(const initializer_request& asked) const;
  /// The same as a tensor, `variable w(glorot_uniform_initializer()({784, 256}), "w")`.
  template <class T = float, std::size_t M> tensor<T, static_cast<int>(M)> operator()(const std::int64_t (&dims)[M], call_site where = call_site::here()) const {
    return tensor<T, static_cast<int>(M)>(make({shape(std::vector<std::int64_t>(dims, dims + M)), dtype_of<T>, {}, {}, where}));
  }

 private:
  std::shared_ptr<const detail::initializer_base> what_;
};

/// What the numbers of a variance scaling are divided by: the number of inputs of a unit, of its outputs, or their mean.
enum class scaling_mode { fan_in, fan_out, fan_avg };
/// What they are drawn from; `truncated_normal` draws again what is more than two standard deviations away.
enum class scaling_distribution { truncated_normal, untruncated_normal, uniform };

/// Zeros, of any dtype; empty strings.
initializer zeros_initializer();
/// Ones.
initializer ones_initializer();
namespace detail {
initializer constant_initializer_of(tensor_value v);
}
/// A number, or numbers in C order, whatever their shape; the last one fills what is left over. Too many are INVALID_ARGUMENT when the variable is made.
template <class V> initializer constant_initializer(const V& value) { return detail::constant_initializer_of(value_traits<V>::make(value)); }
template <class V> initializer constant_initializer(std::initializer_list<V> values) { return constant_initializer(std::vector<V>(values)); }
/// Numbers in [low, high) (RandomUniform).
initializer random_uniform_initializer(double low = 0, double high = 1, std::optional<std::int64_t> seed = std::nullopt);
/// Normal numbers (RandomStandardNormal).
initializer random_normal_initializer(double mean = 0, double stddev = 1, std::optional<std::int64_t> seed = std::nullopt);
/// Normal numbers, those more than two standard deviations away drawn again (TruncatedNormal).
initializer truncated_normal_initializer(double mean = 0, double stddev = 1, std::optional<std::int64_t> seed = std::nullopt);
/// Numbers of variance scale / n, n being what `mode` counts.
initializer variance_scaling_initializer(double scale = 1, scaling_mode mode = scaling_mode::fan_in, scaling_distribution distribution = scaling_distribution::truncated_normal,
                                         std::optional<std::int64_t> seed = std::nullopt);
/// Uniform numbers that keep the scale of a product's input: below sqrt(3 / inputs) * factor.
initializer uniform_unit_scaling_initializer(double factor = 1, std::optional<std::int64_t> seed = std::nullopt);
/// Glorot and Bengio 2010: scale 1 over the mean of inputs and outputs.
initializer glorot_uniform_initializer(std::optional<std::int64_t> seed = std::nullopt);
initializer glorot_normal_initializer(std::optional<std::int64_t> seed = std::nullopt);
/// He et al. 2015, for rectifiers: scale 2 over the inputs.
initializer he_uniform_initializer(std::optional<std::int64_t> seed = std::nullopt);
initializer he_normal_initializer(std::optional<std::int64_t> seed = std::nullopt);
/// LeCun et al. 1998: scale 1 over the inputs.
initializer lecun_uniform_initializer(std::optional<std::int64_t> seed = std::nullopt);
initializer lecun_normal_initializer(std::optional<std::int64_t> seed = std::nullopt);
/// A matrix with orthogonal rows or columns (whichever are fewer), times `gain`: Q of the QR decomposition of normal numbers, its signs those of R's diagonal made positive. More than two
/// dimensions are a matrix of their last one by the rest; fewer are INVALID_ARGUMENT.
initializer orthogonal_initializer(double gain = 1, std::optional<std::int64_t> seed = std::nullopt);
/// `gain` on the diagonal of a matrix, else zeros. Anything but a matrix is INVALID_ARGUMENT.
initializer identity_initializer(double gain = 1);

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/graph/scope.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/node_group.hpp>
#include <weft/ops/random.hpp>

#include <algorithm>
#include <cmath>

namespace weft::detail::initial {

[[noreturn]] inline void refuse(const initializer_request& asked, const std::string& what) { throw error(error_code::invalid_argument, what, asked.site); }

template <class T> void put_numbers(tensor_value& v, const std::vector<double>& from) {
  T* to = v.mutable_data<T>();
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(from[i]);
}
template <class T> void put_small(tensor_value& v, const std::vector<double>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) v.mutable_data<T>()[i] = T(static_cast<float>(from[i]));
}
template <class T> void put_integers(tensor_value& v, const std::vector<double>& from, const initializer_request& asked) {
  for (const double x : from)
    if (!(x >= static_cast<double>(std::numeric_limits<T>::min()) && x < std::ldexp(1., std::numeric_limits<T>::digits) && x == std::floor(x)))
      refuse(asked, "the first value " + std::to_string(x) + " of a variable is no " + to_text(dtype_of<T>));
  put_numbers<T>(v, from);
}

// Numbers as a value of the dtype that is asked for.
WEFT_DECL tensor_value numbers(const std::vector<double>& from, shape s, const initializer_request& asked) {
  tensor_value out(asked.dtype, std::move(s));
  switch (asked.dtype) {
    case dtype::float32: put_numbers<float>(out, from); break;
    case dtype::float64: put_numbers<double>(out, from); break;
    case dtype::half: put_small<half>(out, from); break;
    case dtype::bfloat16: put_small<bfloat16>(out, from); break;
    case dtype::boolean:
      for (std::size_t i = 0; i < from.size(); ++i) out.mutable_data<bool>()[i] = from[i] != 0;
      break;
    case dtype::int8: put_integers<std::int8_t>(out, from, asked); break;
    case dtype::int16: put_integers<std::int16_t>(out, from, asked); break;
    case dtype::int32: put_integers<std::int32_t>(out, from, asked); break;
    case dtype::int64: put_integers<std::int64_t>(out, from, asked); break;
    case dtype::uint8: put_integers<std::uint8_t>(out, from, asked); break;
    case dtype::uint16: put_integers<std::uint16_t>(out, from, asked); break;
    case dtype::uint32: put_integers<std::uint32_t>(out, from, asked); break;
    case dtype::uint64: put_integers<std::uint64_t>(out, from, asked); break;
    default: refuse(asked, std::string("a variable of dtype ") + to_text(asked.dtype) + " does not start as a number");
  }
  return out;
}
inline tensor_value number(double x, const initializer_request& asked) { return numbers({x}, shape(), asked); }

// The numbers of a value, to convert it.
template <class T> std::vector<double> doubles(const tensor_value& v) { return std::vector<double>(v.data<T>(), v.data<T>() + v.elements()); }
WEFT_DECL std::vector<double> doubles_of(const tensor_value& v, const initializer_request& asked) {
  switch (v.dtype()) {
    case dtype::float32: return doubles<float>(v);
    case dtype::float64: return doubles<double>(v);
    case dtype::int32: return doubles<std::int32_t>(v);
    case dtype::int64: return doubles<std::int64_t>(v);
    default: refuse(asked, std::string("the first value of a variable of dtype ") + to_text(asked.dtype) + " cannot come from " + to_text(v.dtype()));
  }
}

// Below this many elements a constant holds them all; above, it is filled when it runs.
inline constexpr std::int64_t small = 1000;

inline op_name named(const char* name, const initializer_request& asked) { return op_name(name, asked.site); }
WEFT_DECL output filled(tensor_value element, const char* name, const initializer_request& asked) { return add_fill(asked.shape.begin(), static_cast<std::size_t>(asked.shape.rank()), std::move(element), named(name, asked)); }

WEFT_DECL output same_number(double x, const char* name, const initializer_request& asked) {
  if (asked.dtype == dtype::string) {
    if (x != 0) refuse(asked, "a variable of dtype string does not start as a number");
    return {&add_const(tensor_value(dtype::string, asked.shape), named(name, asked)), 0};
  }
  const bool complex = asked.dtype == dtype::complex64 || asked.dtype == dtype::complex128;
  if (complex && x != 0) refuse(asked, std::string("a variable of dtype ") + to_text(asked.dtype) + " does not start as a number");
  if (complex) {
    tensor_value zeros(asked.dtype, asked.shape);
    std::fill_n(zeros.mutable_raw_data(), static_cast<std::size_t>(zeros.elements()) * size_of(asked.dtype), std::byte{});
    return {&add_const(std::move(zeros), named(name, asked)), 0};
  }
  if (asked.shape.elements() >= small) return filled(number(x, asked), name, asked);
  return {&add_const(numbers(std::vector<double>(static_cast<std::size_t>(asked.shape.elements()), x), asked.shape, asked), named(name, asked)), 0};
}

WEFT_DECL output given_numbers(const tensor_value& given, const initializer_request& asked) {
  const std::int64_t wanted = asked.shape.elements(), have = given.elements();
  if (asked.whole && have > 1) refuse(asked, "a list of first values is not split over the pieces of a variable; give one number, or assign the whole");
  if (have > wanted && have > 1) refuse(asked, "a variable of shape " + asked.shape.text() + " takes at most " + std::to_string(wanted) + " first values, found " + std::to_string(have));
  if (given.dtype() == asked.dtype && (have == wanted || have == 1)) {
    tensor_value same = given;
    same.reshape(have == wanted ? asked.shape : shape());
    return have == wanted ? output{&add_const(std::move(same), named("Const", asked)), 0} : filled(std::move(same), "Const", asked);
  }
  std::vector<double> all = doubles_of(given, asked);
  if (have == 1 && wanted >= small) return filled(number(all[0], asked), "Const", asked);
  if (have == 0 && wanted > 0) refuse(asked, "a variable of shape " + asked.shape.text() + " takes a first value, found none");
  all.resize(static_cast<std::size_t>(wanted), all.empty() ? 0 : all.back());
  return {&add_const(numbers(all, asked.shape, asked), named("Const", asked)), 0};
}

// Numbers drawn from [0, 1), or normal ones, times `scale` plus `shift`.
WEFT_DECL output drawn(const wanted_numbers& what, const shape& s, std::optional<std::int64_t> seed, const initializer_request& asked) {
  return add_random({s.begin(), static_cast<std::size_t>(s.rank()), nullptr}, what, {seed, nullptr, nullptr}, op_name(asked.site));
}
WEFT_DECL void expect_floating(const char* what, const initializer_request& asked) {
  if (!is_floating(asked.dtype)) refuse(asked, std::string(what) + " are float, double, half or bfloat16; the variable is " + to_text(asked.dtype));
}
WEFT_DECL output uniform(double low, double high, std::optional<std::int64_t> seed, const initializer_request& asked) {
  if (asked.dtype == dtype::int32 || asked.dtype == dtype::int64)
    return add_random_integers({asked.shape.begin(), static_cast<std::size_t>(asked.shape.rank()), nullptr}, number(low, asked), number(high, asked), {seed, nullptr, nullptr}, op_name(asked.site));
  expect_floating("random numbers", asked);
  const bool plain = low == 0 && high == 1;
  // The width is rounded as the dtype rounds it.
  const auto rounded = [&](double x) { return asked.dtype == dtype::float32 ? static_cast<double>(static_cast<float>(x)) : x; };
  return drawn({"RandomUniform", "random_uniform", "mul/y", "min", asked.dtype, plain ? tensor_value() : number(rounded(high) - rounded(low), asked), plain ? tensor_value() : number(low, asked)},
               asked.shape, seed, asked);
}
WEFT_DECL output normal(const char* op, const char* scope, double mean, double stddev, std::optional<std::int64_t> seed, const initializer_request& asked, const shape& s) {
  expect_floating("normal numbers", asked);
  const bool plain = mean == 0 && stddev == 1;
  return drawn({op, scope, "stddev", "mean", asked.dtype, plain ? tensor_value() : number(stddev, asked), plain ? tensor_value() : number(mean, asked)}, s, seed, asked);
}
inline output truncated_normal(double mean, double stddev, std::optional<std::int64_t> seed, const initializer_request& asked) {
  return normal("TruncatedNormal", "truncated_normal", mean, stddev, seed, asked, asked.shape);
}
inline output standard_normal(double mean, double stddev, std::optional<std::int64_t> seed, const initializer_request& asked) {
  return normal("RandomStandardNormal", "random_normal", mean, stddev, seed, asked, asked.shape);
}

// The numbers of inputs and outputs of a unit: all but the last dimensions of a convolution's filter count for both.
WEFT_DECL std::pair<double, double> fans(const shape& s) {
  if (s.rank() == 0) return {1, 1};
  const auto size = [&s](int i) { return static_cast<double>(s[i]); };
  if (s.rank() == 1) return {size(0), size(0)};
  double field = 1;
  for (int i = 0; i + 2 < s.rank(); ++i) field *= size(i);
  return {field * size(s.rank() - 2), field * size(s.rank() - 1)};
}

struct scaling {
  double scale;
  scaling_mode mode;
  scaling_distribution distribution;
  std::optional<std::int64_t> seed;
  output operator()(const initializer_request& asked) const {
    const auto [in, out] = fans(asked.full());
    const double n = mode == scaling_mode::fan_in ? in : mode == scaling_mode::fan_out ? out : (in + out) / 2, variance = scale / std::max(1., n);
    if (distribution == scaling_distribution::uniform) return uniform(-std::sqrt(3 * variance), std::sqrt(3 * variance), seed, asked);
    if (distribution == scaling_distribution::untruncated_normal) return standard_normal(0, std::sqrt(variance), seed, asked);
    // The standard deviation of a normal distribution cut at two of them.
    return truncated_normal(0, std::sqrt(variance) / .87962566103423978, seed, asked);
  }
};

WEFT_DECL output orthogonal(double gain, std::optional<std::int64_t> seed, const initializer_request& asked) {
  const shape& s = asked.shape;
  if (s.rank() < 2) refuse(asked, "an orthogonal variable has at least two dimensions, found shape " + s.text());
  expect_floating("orthogonal variables", asked);
  // 1. Normal numbers as a matrix that has at least as many rows as columns.
  const std::int64_t columns = s[s.rank() - 1];
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < s.rank(); ++i) rows *= s[i];
  const output normals = normal("RandomStandardNormal", "random_normal", 0, 1, seed, asked, shape{std::max(rows, columns), std::min(rows, columns)});
  // 2. Q, each column with the sign that R's diagonal has.
  const node& qr = add_node("Qr", {normals}, op_name(asked.site), {{"full_matrices", false}});
  const output diagonal{&add_node("MatrixDiagPart", {{&qr, 1}}, named("DiagPart", asked)), 0}, sign{&add_node("Sign", {diagonal}, op_name(asked.site)), 0};
  output q{&add_node("Mul", {{&qr, 0}, sign}, named("mul", asked)), 0};
  // 3. The shape and the gain.
  if (rows < columns) {
    const output order{&add_const(tensor_value::from<std::int32_t>({2}, {1, 0}), named("transpose/perm", asked)), 0};
    q = {&add_node("Transpose", {q, order}, named("transpose", asked)), 0};
  }
  q = add_reshape({q, false, tensor_value()}, s.begin(), static_cast<std::size_t>(s.rank()), op_name(asked.site));
  const output by{&add_const(number(gain, asked), named("mul_1/x", asked)), 0};
  return {&add_node("Mul", {by, q}, named("mul_1", asked)), 0};
}

WEFT_DECL output identity(double gain, const initializer_request& asked) {
  if (asked.shape.rank() != 2) refuse(asked, "an identity is a matrix, found shape " + asked.shape.text());
  const std::int64_t rows = asked.shape[0], columns = asked.shape[1], first_row = asked.offset.size() == 2 ? asked.offset[0] : 0, first_column = asked.offset.size() == 2 ? asked.offset[1] : 0;
  // 1. A small one as it is.
  if (asked.shape.elements() < small) {
    std::vector<double> all(static_cast<std::size_t>(asked.shape.elements()));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) all[static_cast<std::size_t>(i * columns + j)] = i + first_row == j + first_column ? gain : 0;
    return {&add_const(numbers(all, asked.shape, asked), named("eye", asked)), 0};
  }
  // 2. A large one where the numbers of row and column are equal.
  const output by{&add_const(number(gain, asked), named("gain", asked)), 0};
  const node_group g({by, false, tensor_value()}, op_name(asked.site), "eye");
  const auto counted = [&](std::int64_t from, std::int64_t count, std::int32_t axis, const std::string& below) {
    const auto constant = [&](std::int64_t v, const char* name) { return add_const_at(tensor_value::scalar(v), g.name() + "/" + below + name, asked.site, g.graph()); };
    const output range = g.add("Range", {constant(from, "/start"), constant(from + count, "/limit"), constant(1, "/delta")}, below.c_str());
    return g.add("ExpandDims", {range, g.integer(axis, (below + "/axis").c_str())}, (below + "/ExpandDims").c_str());
  };
  const output same = g.add("Equal", {counted(first_row, rows, 1, "rows"), counted(first_column, columns, 0, "columns")}, "Equal");
  const output ones = g.add("Cast", {same}, "Cast", {{"DstT", asked.dtype}});
  return g.last("Mul", {ones, by});
}

}  // namespace weft::detail::initial

namespace weft {

WEFT_DECL output initializer::make(const initializer_request& asked) const {
  if (what_ == nullptr) throw error(error_code::invalid_argument, "the initializer is empty", asked.site);
  const output made = what_->make(asked);
  if (made.from == nullptr) throw error(error_code::invalid_argument, "the initializer made no node", asked.site);
  if (made.from->output_dtype(made.index) != asked.dtype)
    throw error(error_code::invalid_argument, "the initializer made " + std::string(to_text(made.from->output_dtype(made.index))) + " for a variable of dtype " + to_text(asked.dtype), asked.site);
  const partial_shape& found = made.from->output_shape(made.index);
  if (!merge_shapes(found, partial_shape(std::vector<std::int64_t>(asked.shape.begin(), asked.shape.end()))))
    throw error(error_code::invalid_argument, "the initializer made shape " + found.text() + " for a variable of shape " + asked.shape.text(), asked.site);
  return made;
}

WEFT_DECL initializer zeros_initializer() {
  return initializer([](const initializer_request& asked) { return detail::initial::same_number(0, "zeros", asked); });
}
WEFT_DECL initializer ones_initializer() {
  return initializer([](const initializer_request& asked) { return detail::initial::same_number(1, "ones", asked); });
}
namespace detail {
WEFT_DECL initializer constant_initializer_of(tensor_value v) {
  return initializer([v = std::move(v)](const initializer_request& asked) { return initial::given_numbers(v, asked); });
}
}  // namespace detail
WEFT_DECL initializer random_uniform_initializer(double low, double high, std::optional<std::int64_t> seed) {
  return initializer([=](const initializer_request& asked) { return detail::initial::uniform(low, high, seed, asked); });
}
WEFT_DECL initializer random_normal_initializer(double mean, double stddev, std::optional<std::int64_t> seed) {
  return initializer([=](const initializer_request& asked) { return detail::initial::standard_normal(mean, stddev, seed, asked); });
}
WEFT_DECL initializer truncated_normal_initializer(double mean, double stddev, std::optional<std::int64_t> seed) {
  return initializer([=](const initializer_request& asked) { return detail::initial::truncated_normal(mean, stddev, seed, asked); });
}
WEFT_DECL initializer variance_scaling_initializer(double scale, scaling_mode mode, scaling_distribution distribution, std::optional<std::int64_t> seed) {
  if (!(scale > 0)) fail(error_code::invalid_argument, "the scale of a variance must be positive, found " + std::to_string(scale));
  return initializer(detail::initial::scaling{scale, mode, distribution, seed});
}
WEFT_DECL initializer uniform_unit_scaling_initializer(double factor, std::optional<std::int64_t> seed) {
  return initializer([=](const initializer_request& asked) {
    double inputs = 1;
    for (int i = 0; i + 1 < asked.full().rank(); ++i) inputs *= static_cast<double>(asked.full()[i]);
    const double limit = std::sqrt(3 / std::max(1., inputs)) * factor;
    return detail::initial::uniform(-limit, limit, seed, asked);
  });
}
WEFT_DECL initializer glorot_uniform_initializer(std::optional<std::int64_t> seed) { return variance_scaling_initializer(1, scaling_mode::fan_avg, scaling_distribution::uniform, seed); }
WEFT_DECL initializer glorot_normal_initializer(std::optional<std::int64_t> seed) { return variance_scaling_initializer(1, scaling_mode::fan_avg, scaling_distribution::truncated_normal, seed); }
WEFT_DECL initializer he_uniform_initializer(std::optional<std::int64_t> seed) { return variance_scaling_initializer(2, scaling_mode::fan_in, scaling_distribution::uniform, seed); }
WEFT_DECL initializer he_normal_initializer(std::optional<std::int64_t> seed) { return variance_scaling_initializer(2, scaling_mode::fan_in, scaling_distribution::truncated_normal, seed); }
WEFT_DECL initializer lecun_uniform_initializer(std::optional<std::int64_t> seed) { return variance_scaling_initializer(1, scaling_mode::fan_in, scaling_distribution::uniform, seed); }
WEFT_DECL initializer lecun_normal_initializer(std::optional<std::int64_t> seed) { return variance_scaling_initializer(1, scaling_mode::fan_in, scaling_distribution::truncated_normal, seed); }
WEFT_DECL initializer orthogonal_initializer(double gain, std::optional<std::int64_t> seed) {
  return initializer([=](const initializer_request& asked) { return detail::initial::orthogonal(gain, seed, asked); });
}
WEFT_DECL initializer identity_initializer(double gain) {
  return initializer([=](const initializer_request& asked) { return detail::initial::identity(gain, asked); });
}

}  // namespace weft
#endif

#endif
