#ifndef WEFT_KERNELS_NN_HPP
#define WEFT_KERNELS_NN_HPP
// Kernels of biases, softmax, cross entropies and accuracy.

#include <weft/kernels/nn_inputs.hpp>
#include <weft/kernels/reduce_loops.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/runtime/kernel.hpp>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of a kernel of this file; nullptr for other ops.
kernel_factory nn_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// out = in + addend over rows, the addend being a row.
template <class T> struct add_row_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, const T* addend, T* out, std::size_t rows, std::size_t columns) {
    for (std::size_t r = 0; r < rows; ++r, in += columns, out += columns) {
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < columns; ++i) out[i] = element::add::apply<S, T>(in[i], addend[i]);
    }
  }
};

/// out = in + addend over rows, row r having the addend of index r mod `period`.
template <class T> struct add_scalar_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, const T* addends, T* out, std::size_t rows, std::size_t columns, std::size_t period) {
    for (std::size_t r = 0; r < rows; ++r, in += columns, out += columns) {
      const T addend = addends[r % period];
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < columns; ++i) out[i] = element::add::apply<S, T>(in[i], addend);
    }
  }
};

// An array [outer, channels, inner] plus one bias for each channel.
using bias_function = void (*)(const void* in, const void* bias, void* out, std::size_t outer, std::size_t channels, std::size_t inner);
template <class T> void add_bias(const void* in_data, const void* bias_data, void* out_data, std::size_t outer, std::size_t channels, std::size_t inner) {
  const auto *in = static_cast<const T*>(in_data), *bias = static_cast<const T*>(bias_data);
  auto* out = static_cast<T*>(out_data);
  const instruction_set set = best_instruction_set();
  if (inner != 1) return dispatch<add_scalar_body<T>, instruction_set::avx2>(set, in, bias, out, outer * channels, inner, channels);
  // Few channels are repeated, so that loops are long.
  const std::size_t repeat = channels < 256 ? 512 / channels : 1, together = outer / repeat, width = repeat * channels;
  std::vector<T> repeated(bias, bias + channels);
  for (std::size_t i = channels; i < width; ++i) repeated.push_back(bias[i % channels]);
  dispatch<add_row_body<T>, instruction_set::avx2>(set, in, static_cast<const T*>(repeated.data()), out, together, width);
  const std::size_t done = together * width, rest = outer * channels - done;
  dispatch<add_row_body<T>, instruction_set::avx2>(set, in + done, static_cast<const T*>(repeated.data()), out + done, std::size_t{1}, rest);
}

/// Sums an array [outer, channels, inner] over all but the channels.
using bias_gradient_function = void (*)(const void* in, void* out, std::size_t outer, std::size_t channels, std::size_t inner);
template <class T> void sum_channels(const void* in, void* out, std::size_t outer, std::size_t channels, std::size_t inner) {
  const std::int64_t sizes[] = {static_cast<std::int64_t>(outer), static_cast<std::int64_t>(channels), static_cast<std::int64_t>(inner)};
  constexpr bool reduced[] = {true, false, true};
  reduce_loop<reduction::sum>(static_cast<const T*>(in), static_cast<T*>(out), plan_reduction(sizes, reduced, 3));
}

/// An array as [outer, channels, inner], the channels being those of attribute data_format.
struct channel_extents {
  std::size_t outer = 1, channels = 1, inner = 1;

  channel_extents(const shape& s, int axis) {
    channels = static_cast<std::size_t>(s[axis]);
    if (s.elements() == 0) {
      outer = 0;
      return;
    }
    for (int i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(s[i]);
    for (int i = axis + 1; i < s.rank(); ++i) inner *= static_cast<std::size_t>(s[i]);
  }
};

/// BiasAdd, BiasAddV1 and BiasAddGrad.
class bias_kernel final : public kernel {
 public:
  explicit bias_kernel(const node& n) : type_(type_attr(n, "T")), gradient_(n.op() == "BiasAddGrad") {
    const std::string* format = n.find_attr<std::string>("data_format");
    first_ = format != nullptr && *format == "NCHW";
    constexpr wide_functions<bias_function> adds{add_bias<float>, add_bias<double>, add_bias<std::uint64_t>, add_bias<std::uint64_t>, nullptr};
    constexpr wide_functions<bias_gradient_function> sums{sum_channels<float>, sum_channels<double>, sum_channels<std::uint64_t>, sum_channels<std::uint64_t>, nullptr};
    add_ = expect_function(n, adds, type_);
    sum_ = expect_function(n, sums, type_);
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
  bool gradient_, first_ = false;
  bias_function add_;
  bias_gradient_function sum_;
};

inline void bias_kernel::compute(kernel_context& context) {
  expect_inputs(context, gradient_ ? 1 : 2);
  const shape s = context.input(0).shape();
  const int least = first_ ? 3 : 2, axis = first_ ? 1 : s.rank() - 1;
  expect_dtype(context, 0, type_);
  if (s.rank() < least) context.fail(std::string(gradient_ ? "out_backprop" : "value") + " must have at least rank " + std::to_string(least) + ", found shape " + s.text());
  const channel_extents e(s, axis);
  if (gradient_) {
    tensor_value out = allocate_wide(context, type_, shape{s[axis]});
    sum_(widened(context.input(0)).raw_data(), out.mutable_raw_data(), e.outer, e.channels, e.inner);
    return context.set_output(0, narrowed(std::move(out), type_));
  }
  expect_dtype(context, 1, type_);
  expect_rank(context, 1, 1, "bias");
  expect_same(context, s[axis], context.input(1).shape()[0], "the channels of value and bias");
  const tensor_value bias = widened(context.input(1));
  if (wide_dtype(type_) == type_) {
    const std::byte* from = context.input(0).raw_data();
    tensor_value& out = context.forward_or_allocate(0, 0, type_, s);
    if (e.outer != 0) add_(from, bias.raw_data(), out.mutable_raw_data(), e.outer, e.channels, e.inner);
    return;
  }
  tensor_value wide = widened(context.input(0));
  if (e.outer != 0) add_(wide.raw_data(), bias.raw_data(), wide.mutable_raw_data(), e.outer, e.channels, e.inner);
  context.set_output(0, narrowed(std::move(wide), type_));
}

/// A row of numbers relative to the largest of them. Sums run in lanes that are folded in halves, as exact as pairwise summation for rows of common lengths.
template <class T> struct softmax_row {
  static constexpr std::size_t most = 64;

  /// The lanes that a row of this length needs: a power of two.
  WEFT_SIMD_INLINE static std::size_t lanes_for(std::size_t columns) {
    std::size_t lanes = 1;
    while (lanes < columns && lanes < most) lanes *= 2;
    return lanes;
  }
  template <instruction_set S> WEFT_SIMD_INLINE static T largest(const T* in, std::size_t columns, std::size_t lanes) {
    T best[most];
    for (std::size_t i = 0; i < lanes; ++i) best[i] = -std::numeric_limits<T>::infinity();
    for (std::size_t begin = 0; begin < columns; begin += lanes) {
      const std::size_t size = columns - begin < lanes ? columns - begin : lanes;
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < size; ++i) best[i] = best[i] < in[begin + i] ? in[begin + i] : best[i];
    }
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < half; ++i) best[i] = best[i] < best[half + i] ? best[half + i] : best[i];
    }
    return best[0];
  }
  template <instruction_set S> WEFT_SIMD_INLINE static T folded(T* sums, std::size_t lanes) {
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[half + i];
    }
    return sums[0];
  }
  /// The sum of exp(in - top), whose terms are also written to `out` unless that is null.
  template <instruction_set S> WEFT_SIMD_INLINE static T exponentials(const T* in, T* out, std::size_t columns, std::size_t lanes, T top) {
    T sums[most];
    for (std::size_t i = 0; i < lanes; ++i) sums[i] = T(0);
    for (std::size_t begin = 0; begin < columns; begin += lanes) {
      const std::size_t size = columns - begin < lanes ? columns - begin : lanes;
      const T* from = in + begin;
      T terms[most];
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < size; ++i) {
        terms[i] = element::exp::apply<S>(from[i] - top);
        sums[i] += terms[i];
      }
      if (out == nullptr) continue;
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < size; ++i) out[begin + i] = terms[i];
    }
    return folded<S>(sums, lanes);
  }
};

/// Softmax of each row, or its logarithm. The output may be the input.
template <class T> struct softmax_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, T* out, std::size_t rows, std::size_t columns, bool logarithm) {
    const std::size_t lanes = softmax_row<T>::lanes_for(columns);
    for (std::size_t r = 0; r < rows; ++r, in += columns, out += columns) {
      const T top = softmax_row<T>::template largest<S>(in, columns, lanes);
      const T sum = softmax_row<T>::template exponentials<S>(in, logarithm ? nullptr : out, columns, lanes, top);
      if (logarithm) {
        const T shift = element::log::apply<S>(sum);
        WEFT_SIMD_INDEPENDENT
        for (std::size_t i = 0; i < columns; ++i) out[i] = (in[i] - top) - shift;
      } else {
        const T scale = T(1) / sum;
        WEFT_SIMD_INDEPENDENT
        for (std::size_t i = 0; i < columns; ++i) out[i] *= scale;
      }
    }
  }
};

/// Cross entropies of rows of logits with rows of labels, and their derivatives by the logits.
template <class T> struct cross_entropy_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* logits, const T* labels, T* loss, T* gradient, std::size_t rows, std::size_t columns) {
    const std::size_t lanes = softmax_row<T>::lanes_for(columns);
    for (std::size_t r = 0; r < rows; ++r, logits += columns, labels += columns, gradient += columns) {
      const T top = softmax_row<T>::template largest<S>(logits, columns, lanes);
      const T sum = softmax_row<T>::template exponentials<S>(logits, gradient, columns, lanes, top), shift = element::log::apply<S>(sum), scale = T(1) / sum;
      T sums[softmax_row<T>::most];
      for (std::size_t i = 0; i < lanes; ++i) sums[i] = T(0);
      for (std::size_t begin = 0; begin < columns; begin += lanes) {
        const std::size_t size = columns - begin < lanes ? columns - begin : lanes;
        WEFT_SIMD_INDEPENDENT
        for (std::size_t i = 0; i < size; ++i) sums[i] += labels[begin + i] * (shift - (logits[begin + i] - top));
      }
      loss[r] = softmax_row<T>::template folded<S>(sums, lanes);
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < columns; ++i) gradient[i] = gradient[i] * scale - labels[i];
    }
  }
};

/// The same where each row has one label, which is valid.
template <class T> struct sparse_cross_entropy_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* logits, const std::int64_t* labels, T* loss, T* gradient, std::size_t rows, std::size_t columns) {
    const std::size_t lanes = softmax_row<T>::lanes_for(columns);
    for (std::size_t r = 0; r < rows; ++r, logits += columns, gradient += columns) {
      const T top = softmax_row<T>::template largest<S>(logits, columns, lanes);
      const T sum = softmax_row<T>::template exponentials<S>(logits, gradient, columns, lanes, top), scale = T(1) / sum;
      loss[r] = element::log::apply<S>(sum) - (logits[labels[r]] - top);
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < columns; ++i) gradient[i] *= scale;
      gradient[labels[r]] -= T(1);
    }
  }
};

using softmax_function = void (*)(const void* in, void* out, std::size_t rows, std::size_t columns, bool logarithm);
template <class T> void softmax_rows(const void* in, void* out, std::size_t rows, std::size_t columns, bool logarithm) {
  dispatch<softmax_body<T>>(best_instruction_set(), static_cast<const T*>(in), static_cast<T*>(out), rows, columns, logarithm);
}
using cross_entropy_function = void (*)(const void* logits, const void* labels, void* loss, void* gradient, std::size_t rows, std::size_t columns);
template <class T> void cross_entropy_rows(const void* logits, const void* labels, void* loss, void* gradient, std::size_t rows, std::size_t columns) {
  dispatch<cross_entropy_body<T>>(best_instruction_set(), static_cast<const T*>(logits), static_cast<const T*>(labels), static_cast<T*>(loss), static_cast<T*>(gradient), rows, columns);
}
template <class T> void sparse_cross_entropy_rows(const void* logits, const void* labels, void* loss, void* gradient, std::size_t rows, std::size_t columns) {
  dispatch<sparse_cross_entropy_body<T>>(best_instruction_set(), static_cast<const T*>(logits), static_cast<const std::int64_t*>(labels), static_cast<T*>(loss), static_cast<T*>(gradient),
                                         rows, columns);
}

/// Softmax and LogSoftmax over the last axis.
class softmax_kernel final : public kernel {
 public:
  explicit softmax_kernel(const node& n) : type_(type_attr(n, "T")), logarithm_(n.op() == "LogSoftmax") {
    constexpr wide_functions<softmax_function> functions{softmax_rows<float>, softmax_rows<double>, nullptr, nullptr, nullptr};
    function_ = expect_function(n, functions, type_);
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, 1);
    expect_dtype(context, 0, type_);
    const shape s = context.input(0).shape();
    if (s.rank() < 1) context.fail("logits must have at least rank 1, found shape " + s.text());
    const auto elements = static_cast<std::size_t>(s.elements()), columns = static_cast<std::size_t>(s[s.rank() - 1]);
    const tensor_value in = widened(context.input(0));
    tensor_value out = allocate_wide(context, type_, s);
    if (elements != 0) function_(in.raw_data(), out.mutable_raw_data(), elements / columns, columns, logarithm_);
    context.set_output(0, narrowed(std::move(out), type_));
  }
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements / 4; }

 private:
  dtype type_;
  bool logarithm_;
  softmax_function function_;
};

/// SoftmaxCrossEntropyWithLogits and SparseSoftmaxCrossEntropyWithLogits.
class cross_entropy_kernel final : public kernel {
 public:
  explicit cross_entropy_kernel(const node& n) : type_(type_attr(n, "T")), sparse_(n.op() != "SoftmaxCrossEntropyWithLogits") {
    constexpr wide_functions<cross_entropy_function> dense{cross_entropy_rows<float>, cross_entropy_rows<double>, nullptr, nullptr, nullptr};
    constexpr wide_functions<cross_entropy_function> sparse{sparse_cross_entropy_rows<float>, sparse_cross_entropy_rows<double>, nullptr, nullptr, nullptr};
    function_ = expect_function(n, sparse_ ? sparse : dense, type_);
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements / 4; }

 private:
  tensor_value labels_of(const kernel_context& context) const;
  tensor_value broadcast(const tensor_value& matrix, std::int64_t rows, std::int64_t columns) const;
  shape broadcast_shape(const kernel_context& context) const;
  dtype type_;
  bool sparse_;
  cross_entropy_function function_;
};

// One label for each row of logits, checked, as int64.
inline tensor_value cross_entropy_kernel::labels_of(const kernel_context& context) const {
  expect_rank(context, 0, 2, "logits");
  expect_rank(context, 1, 1, "labels");
  const shape& s = context.input(0).shape();
  expect_same(context, s[0], context.input(1).shape()[0], "the rows of logits and the labels");
  if (s[0] != 0 && s[1] == 0) context.fail("there must be at least one class, found logits of shape " + s.text());
  const auto labels = integers_of(context, 1, "labels");
  for (const std::int64_t label : labels)
    if (label < 0 || label >= s[1]) context.fail("label " + std::to_string(label) + " is not in [0, " + std::to_string(s[1]) + ")");
  return tensor_value::from<std::int64_t>({s[0]}, labels);
}

inline shape cross_entropy_kernel::broadcast_shape(const kernel_context& context) const {
  const shape &a = context.input(0).shape(), &b = context.input(1).shape();
  const auto both = broadcast_shapes(a, b);
  if (!both) context.fail("the shapes " + a.text() + " of logits and " + b.text() + " of labels cannot be broadcast");
  if (both->rank() != 2) context.fail("logits and labels must be broadcast to rank 2, found shapes " + a.text() + " and " + b.text());
  if (!both->elements()) context.fail("logits of shape " + a.text() + " and labels of shape " + b.text() + " give too many elements");
  return both->to_shape();
}

// A matrix of wide elements with rows and columns repeated.
inline tensor_value cross_entropy_kernel::broadcast(const tensor_value& matrix, std::int64_t rows, std::int64_t columns) const {
  const shape& s = matrix.shape();
  if (s.rank() == 2 && s[0] == rows && s[1] == columns) return matrix;
  tensor_value out(matrix.dtype(), shape{rows, columns});
  if (out.elements() == 0) return out;
  const std::size_t size = size_of(matrix.dtype());
  const std::int64_t own_columns = s.rank() > 0 ? s[s.rank() - 1] : 1, own_rows = s.rank() > 1 ? s[0] : 1;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < columns; ++i)
      std::memcpy(out.mutable_raw_data() + static_cast<std::size_t>(r * columns + i) * size,
                  matrix.raw_data() + static_cast<std::size_t>((own_rows == 1 ? 0 : r * own_columns) + (own_columns == 1 ? 0 : i)) * size, size);
  return out;
}

inline void cross_entropy_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  if (!sparse_) expect_dtype(context, 1, type_);
  const tensor_value sparse_labels = sparse_ ? labels_of(context) : tensor_value();
  const shape s = sparse_ ? context.input(0).shape() : broadcast_shape(context);
  const tensor_value logits = broadcast(widened(context.input(0)), s[0], s[1]), labels = sparse_ ? sparse_labels : broadcast(widened(context.input(1)), s[0], s[1]);
  tensor_value loss = allocate_wide(context, type_, shape{s[0]}), gradient = allocate_wide(context, type_, s);
  function_(logits.raw_data(), labels.raw_data(), loss.mutable_raw_data(), gradient.mutable_raw_data(), static_cast<std::size_t>(s[0]), static_cast<std::size_t>(s[1]));
  context.set_output(0, narrowed(std::move(loss), type_));
  context.set_output(1, narrowed(std::move(gradient), type_));
}

/// InTopK and InTopKV2: whether fewer than k predictions of a row exceed that of its target. False where a number that decides is not finite, or the target is no class.
class in_top_k_kernel final : public kernel {
 public:
  explicit in_top_k_kernel(const node& n) : type_(type_attr(n, "T")) {
    if (const auto* k = n.find_attr<std::int64_t>("k"); n.op() == "InTopK" && k != nullptr) k_ = *k;
    given_ = n.op() == "InTopKV2";
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, given_ ? 3 : 2);
    expect_dtype(context, 0, dtype::float32);
    expect_dtype(context, 1, type_);
    expect_rank(context, 0, 2, "predictions");
    expect_rank(context, 1, 1, "targets");
    if (given_) expect_rank(context, 2, 0, "k");
    const std::int64_t k = given_ ? integers_of(context, 2, "k")[0] : k_, rows = context.input(0).shape()[0], classes = context.input(0).shape()[1];
    expect_same(context, rows, context.input(1).shape()[0], "the rows of predictions and the targets");
    const auto targets = integers_of(context, 1, "targets");
    const float* row = context.input(0).data<float>();
    bool* out = context.allocate_output(0, dtype::boolean, shape{rows}).mutable_data<bool>();
    for (std::size_t r = 0; r < targets.size(); ++r, row += classes) out[r] = targets[r] >= 0 && targets[r] < classes && above(row, classes, row[targets[r]], k);
  }
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  static bool above(const float* row, std::int64_t classes, float wanted, std::int64_t k) {
    if (!std::isfinite(wanted)) return false;
    std::int64_t larger = 0;
    for (std::int64_t i = 0; i < classes && larger <= k; ++i) {
      if (!std::isfinite(row[i])) return false;
      larger += row[i] > wanted ? 1 : 0;
    }
    return larger < k;
  }
  dtype type_;
  bool given_ = false;
  std::int64_t k_ = 0;
};

WEFT_DECL kernel_factory nn_kernel(std::string_view op) {
  if (op == "BiasAdd" || op == "BiasAddV1" || op == "BiasAddGrad") return &make_kernel<bias_kernel>;
  if (op == "Softmax" || op == "LogSoftmax") return &make_kernel<softmax_kernel>;
  if (op == "SoftmaxCrossEntropyWithLogits" || op == "SparseSoftmaxCrossEntropyWithLogits") return &make_kernel<cross_entropy_kernel>;
  if (op == "InTopK" || op == "InTopKV2") return &make_kernel<in_top_k_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
