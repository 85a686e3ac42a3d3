#ifndef WEFT_KERNELS_NN_NORM_HPP
#define WEFT_KERNELS_NN_NORM_HPP
// Batch normalisation and local response normalisation of images, and their gradients. All of it in float; sums over a batch in double.

#include <weft/kernels/nn_inputs.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/runtime/kernel.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of a normalisation; nullptr for other ops.
kernel_factory nn_norm_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// Images as rows of channels, channels last, with numbers for each channel. Few channels are repeated, so that loops over rows are long.
class channel_rows {
 public:
  channel_rows(std::size_t elements, std::size_t channels)
      : channels_(channels), repeat_(channels != 0 && channels < 64 ? 64 / channels : 1), width_(channels * repeat_), rows_(width_ == 0 ? 0 : elements / width_),
        rest_(width_ == 0 ? 0 : elements % width_) {}

  std::size_t width() const noexcept { return width_; }
  std::size_t rows() const noexcept { return rows_; }
  /// Elements after the last whole row.
  std::size_t rest() const noexcept { return rest_; }
  template <class T> std::vector<T> repeated(const T* numbers) const {
    std::vector<T> out;
    out.reserve(width_);
    for (std::size_t i = 0; i < width_; ++i) out.push_back(numbers[i % channels_]);
    return out;
  }

 private:
  std::size_t channels_, repeat_, width_, rows_, rest_;
};

/// sums[i] += (a[i] - a_shift[i]) * (b[i] - b_shift[i]) over rows; without b, a[i] alone.
struct channel_sum_body {
  template <instruction_set S>
  WEFT_SIMD_INLINE static void run(const float* a, const float* b, const float* a_shift, const float* b_shift, double* sums, std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r, a += width) {
      if (b == nullptr) {
        WEFT_SIMD_INDEPENDENT
        for (std::size_t i = 0; i < width; ++i) sums[i] += static_cast<double>(a[i]);
        continue;
      }
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < width; ++i) sums[i] += static_cast<double>((a[i] - a_shift[i]) * (b[i] - b_shift[i]));
      b += width;
    }
  }
};

/// out = (x - shift) * factor + offset over rows.
struct normalise_body {
  template <instruction_set S>
  WEFT_SIMD_INLINE static void run(const float* x, const float* shift, const float* factor, const float* offset, float* out, std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r, x += width, out += width) {
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < width; ++i) out[i] = (x[i] - shift[i]) * factor[i] + offset[i];
    }
  }
};

/// out = (dy - mean_dy - (x - mean) * slope) * factor over rows.
struct normalise_back_body {
  template <instruction_set S>
  WEFT_SIMD_INLINE static void run(const float* dy, const float* x, const float* mean_dy, const float* mean, const float* slope, const float* factor, float* out, std::size_t rows, std::size_t width) {
    for (std::size_t r = 0; r < rows; ++r, dy += width, x += width, out += width) {
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < width; ++i) out[i] = (dy[i] - mean_dy[i] - (x[i] - mean[i]) * slope[i]) * factor[i];
    }
  }
};

/// For each channel the sum over rows of (a - a_shift) * (b - b_shift), or of a where b is null.
inline std::vector<double> channel_sums(const channel_rows& layout, std::size_t channels, const float* a, const float* b, const std::vector<float>& a_shift, const std::vector<float>& b_shift) {
  const std::vector<float> left = layout.repeated(a_shift.data()), right = layout.repeated(b_shift.data());
  std::vector<double> wide(layout.width(), 0.0), out(channels, 0.0);
  const std::size_t done = layout.rows() * layout.width();
  const auto add = select<channel_sum_body, instruction_set::avx2, const float*, const float*, const float*, const float*, double*, std::size_t, std::size_t>(best_instruction_set());
  add(a, b, left.data(), right.data(), wide.data(), layout.rows(), layout.width());
  add(a + done, b == nullptr ? nullptr : b + done, left.data(), right.data(), wide.data(), 1, layout.rest());
  for (std::size_t i = 0; i < wide.size(); ++i) out[i % channels] += wide[i];
  return out;
}

/// FusedBatchNorm, its younger versions, and the ops of their gradients.
class batch_norm_kernel final : public kernel {
 public:
  explicit batch_norm_kernel(const node& n)
      : type_(type_attr(n, "T")), epsilon_(n.attr<float>("epsilon")), training_(n.attr<bool>("is_training")), gradient_(n.op().find("Grad") != std::string::npos), third_(n.op().back() == '3') {
    const std::string& format = n.attr<std::string>("data_format");
    rank_ = static_cast<int>(format.size());
    first_ = rank_ > 1 && format[1] == 'C';
    const dtype* own = n.find_attr<dtype>("U");
    numbers_ = own == nullptr ? type_ : *own;
    if (!gradient_) factor_ = n.attr<float>("exponential_avg_factor");
    if (wide_dtype(type_) != dtype::float32 || wide_dtype(numbers_) != dtype::float32)
      n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_) + " and numbers of dtype " + to_text(numbers_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements / 8; }

 private:
  using numbers = std::vector<float>;
  shape images(const kernel_context& context, int i, const char* what) const;
  numbers channel_numbers(const kernel_context& context, int i, const char* what, std::int64_t channels) const;
  tensor_value moved(const tensor_value& wide, const shape& s, bool to_last) const;
  void set_numbers(kernel_context& context, int i, const numbers& values) const {
    context.set_output(i, narrowed(tensor_value::from<float>({static_cast<std::int64_t>(values.size())}, values), numbers_));
  }
  void forward(kernel_context& context) const;
  void backward(kernel_context& context) const;
  std::size_t channels_of(const shape& s) const { return static_cast<std::size_t>(s[first_ ? 1 : rank_ - 1]); }

  dtype type_, numbers_ = dtype::float32;
  float epsilon_, factor_ = 1;
  bool training_, gradient_, third_, first_ = false;
  int rank_ = 4;
};

inline shape batch_norm_kernel::images(const kernel_context& context, int i, const char* what) const {
  expect_dtype(context, i, type_);
  expect_rank(context, i, rank_, what);
  return context.input(i).shape();
}

// One number for each channel.
inline batch_norm_kernel::numbers batch_norm_kernel::channel_numbers(const kernel_context& context, int i, const char* what, std::int64_t channels) const {
  expect_rank(context, i, 1, what);
  expect_same(context, channels, context.input(i).shape()[0], std::string("the channels of x and the size of ") + what);
  const tensor_value wide = widened(context.input(i));
  return {wide.data<float>(), wide.data<float>() + wide.elements()};
}

// Channels moved to the end of rows, or back before the pixels of each image; nothing where they are stored last.
inline tensor_value batch_norm_kernel::moved(const tensor_value& wide, const shape& s, bool to_last) const {
  if (!first_ || wide.elements() == 0) return wide;
  const std::size_t batch = static_cast<std::size_t>(s[0]), channels = channels_of(s), pixels = static_cast<std::size_t>(wide.elements()) / batch / channels;
  tensor_value out(dtype::float32, s);
  transpose_matrices<4>(wide.raw_data(), out.mutable_raw_data(), batch, to_last ? channels : pixels, to_last ? pixels : channels);
  return out;
}

inline void batch_norm_kernel::compute(kernel_context& context) {
  expect_inputs(context, gradient_ && third_ ? 6 : 5);
  if (gradient_) backward(context);
  else forward(context);
}

// 1. Mean and variance: of the batch in training, else given. 2. The images. 3. What is handed on: moving averages, and for the gradient the batch's own.
inline void batch_norm_kernel::forward(kernel_context& context) const {
  const shape s = images(context, 0, "x");
  for (int i = 1; i < 5; ++i) expect_dtype(context, i, numbers_);
  const std::size_t channels = channels_of(s), elements = static_cast<std::size_t>(s.elements());
  const auto count = static_cast<std::int64_t>(channels);
  const numbers scale = channel_numbers(context, 1, "scale", count), offset = channel_numbers(context, 2, "offset", count);
  const bool averaged = factor_ != 1.f;
  numbers given_mean, given_variance;
  if (!training_ || averaged) {
    given_mean = channel_numbers(context, 3, "mean", count);
    given_variance = channel_numbers(context, 4, "variance", count);
  }
  if (third_) context.set_output(5, narrowed(tensor_value::scalar(0.f), numbers_));
  if (elements == 0) {
    context.set_output(0, tensor_value(type_, s));
    for (int i = 1; i < 5; ++i) set_numbers(context, i, numbers(channels, std::numeric_limits<float>::quiet_NaN()));
    return;
  }
  const tensor_value x = moved(widened(context.input(0)), s, true);
  const channel_rows layout(elements, channels);
  const double rows = static_cast<double>(elements / channels);
  numbers mean = given_mean, variance = given_variance;
  if (training_) {
    const numbers zeros(channels, 0.f);
    const auto sums = channel_sums(layout, channels, x.data<float>(), nullptr, zeros, zeros);
    mean.resize(channels);
    for (std::size_t i = 0; i < channels; ++i) mean[i] = static_cast<float>(sums[i] / rows);
    const auto squares = channel_sums(layout, channels, x.data<float>(), x.data<float>(), mean, mean);
    variance.resize(channels);
    for (std::size_t i = 0; i < channels; ++i) variance[i] = static_cast<float>(squares[i] / rows);
  }
  numbers factor(channels);
  for (std::size_t i = 0; i < channels; ++i) factor[i] = scale[i] / std::sqrt(variance[i] + epsilon_);
  const numbers shifts = layout.repeated(mean.data()), factors = layout.repeated(factor.data()), offsets = layout.repeated(offset.data());
  tensor_value y = context.allocate(dtype::float32, s);
  const auto normalise = select<normalise_body, instruction_set::avx2, const float*, const float*, const float*, const float*, float*, std::size_t, std::size_t>(best_instruction_set());
  const std::size_t done = layout.rows() * layout.width();
  normalise(x.data<float>(), shifts.data(), factors.data(), offsets.data(), y.mutable_data<float>(), layout.rows(), layout.width());
  normalise(x.data<float>() + done, shifts.data(), factors.data(), offsets.data(), y.mutable_data<float>() + done, 1, layout.rest());
  context.set_output(0, narrowed(moved(y, s, false), type_));
  numbers next_mean = mean, next_variance = variance;
  for (std::size_t i = 0; training_ && i < channels; ++i) {
    if (rows > 1) next_variance[i] = static_cast<float>(static_cast<double>(variance[i]) * rows / (rows - 1));
    if (!averaged) continue;
    next_mean[i] = (1 - factor_) * given_mean[i] + factor_ * mean[i];
    next_variance[i] = (1 - factor_) * given_variance[i] + factor_ * next_variance[i];
  }
  set_numbers(context, 1, next_mean);
  set_numbers(context, 2, next_variance);
  set_numbers(context, 3, mean);
  set_numbers(context, 4, variance);
}

// With n rows, c = 1 / sqrt(variance + epsilon) and sums over rows: the offset's gradient is the sum of dy, the scale's c * the sum of dy (x - mean). The images' is
// scale c dy where mean and variance were given; else these depend on the images, which takes away the mean of dy and (x - mean) c^2 times the mean of dy (x - mean).
inline void batch_norm_kernel::backward(kernel_context& context) const {
  const shape s = images(context, 0, "y_backprop");
  if (images(context, 1, "x") != s) context.fail("y_backprop and x must have one shape, found " + s.text() + " and " + context.input(1).shape().text());
  expect_dtype(context, 2, dtype::float32);
  for (int i = 3; i < 5; ++i) expect_dtype(context, i, numbers_);
  const std::size_t channels = channels_of(s), elements = static_cast<std::size_t>(s.elements());
  const auto count = static_cast<std::int64_t>(channels);
  const numbers scale = channel_numbers(context, 2, "scale", count), mean = channel_numbers(context, 3, "reserve_space_1", count), variance = channel_numbers(context, 4, "reserve_space_2", count);
  for (int i = 3; i < 5; ++i) set_numbers(context, i, {});
  if (elements == 0) {
    context.set_output(0, tensor_value(type_, s));
    for (int i = 1; i < 3; ++i) set_numbers(context, i, numbers(channels, 0.f));
    return;
  }
  const tensor_value dy = moved(widened(context.input(0)), s, true), x = moved(widened(context.input(1)), s, true);
  const channel_rows layout(elements, channels);
  const double rows = static_cast<double>(elements / channels);
  const numbers zeros(channels, 0.f);
  const auto sums = channel_sums(layout, channels, dy.data<float>(), nullptr, zeros, zeros), products = channel_sums(layout, channels, x.data<float>(), dy.data<float>(), mean, zeros);
  numbers factor(channels), mean_dy(channels), slope(channels), scale_gradient(channels), offset_gradient(channels);
  for (std::size_t i = 0; i < channels; ++i) {
    const double inverse = 1 / std::sqrt(static_cast<double>(variance[i]) + static_cast<double>(epsilon_));
    factor[i] = static_cast<float>(static_cast<double>(scale[i]) * inverse);
    mean_dy[i] = training_ ? static_cast<float>(sums[i] / rows) : 0.f;
    slope[i] = training_ ? static_cast<float>(products[i] / rows * inverse * inverse) : 0.f;
    scale_gradient[i] = static_cast<float>(products[i] * inverse);
    offset_gradient[i] = static_cast<float>(sums[i]);
  }
  const numbers factors = layout.repeated(factor.data()), means = layout.repeated(mean.data()), means_dy = layout.repeated(mean_dy.data()), slopes = layout.repeated(slope.data());
  tensor_value dx = context.allocate(dtype::float32, s);
  const auto back = select<normalise_back_body, instruction_set::avx2, const float*, const float*, const float*, const float*, const float*, const float*, float*, std::size_t, std::size_t>(
      best_instruction_set());
  const std::size_t done = layout.rows() * layout.width();
  back(dy.data<float>(), x.data<float>(), means_dy.data(), means.data(), slopes.data(), factors.data(), dx.mutable_data<float>(), layout.rows(), layout.width());
  back(dy.data<float>() + done, x.data<float>() + done, means_dy.data(), means.data(), slopes.data(), factors.data(), dx.mutable_data<float>() + done, 1, layout.rest());
  context.set_output(0, narrowed(moved(dx, s, false), type_));
  set_numbers(context, 1, scale_gradient);
  set_numbers(context, 2, offset_gradient);
}

/// LRN divides each channel by a power of the squares of its neighbours; LRNGrad is its gradient.
class lrn_kernel final : public kernel {
 public:
  explicit lrn_kernel(const node& n)
      : type_(type_attr(n, "T")), radius_(n.attr<std::int64_t>("depth_radius")), bias_(n.attr<float>("bias")), alpha_(n.attr<float>("alpha")), beta_(n.attr<float>("beta")), gradient_(n.op() == "LRNGrad") {
    if (wide_dtype(type_) != dtype::float32) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
    if (radius_ < 0) n.fail_about(error_code::invalid_argument, "attribute 'depth_radius' must not be negative, found " + std::to_string(radius_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 1024; }

 private:
  // bias + alpha * the squares of channel i and its neighbours.
  float norm(const float* in, std::int64_t i, std::int64_t channels) const {
    float sum = 0;
    for (std::int64_t k = first(i); k < last(i, channels); ++k) sum += in[k] * in[k];
    return bias_ + alpha_ * sum;
  }
  std::int64_t first(std::int64_t i) const noexcept { return i > radius_ ? i - radius_ : 0; }
  std::int64_t last(std::int64_t i, std::int64_t channels) const noexcept { return radius_ < channels - i ? i + radius_ + 1 : channels; }
  dtype type_;
  std::int64_t radius_;
  float bias_, alpha_, beta_;
  bool gradient_;
};

inline void lrn_kernel::compute(kernel_context& context) {
  const int count = gradient_ ? 3 : 1;
  expect_inputs(context, count);
  const shape s = context.input(0).shape();
  for (int i = 0; i < count; ++i) {
    expect_dtype(context, i, type_);
    if (s.rank() != 4 || context.input(i).shape() != s)
      context.fail(gradient_ ? "input_grads, input_image and output_image must have one shape of rank 4, found " + s.text() + ", " + context.input(1).shape().text() + " and " + context.input(2).shape().text()
                             : "input must have rank 4, found shape " + s.text());
  }
  tensor_value result = context.allocate(dtype::float32, s);
  const std::int64_t channels = s[3], elements = s.elements();
  const tensor_value first_input = widened(context.input(0)), image = gradient_ ? widened(context.input(1)) : first_input, output = gradient_ ? widened(context.input(2)) : first_input;
  float* out = result.mutable_data<float>();
  for (std::int64_t at = 0; at < elements; at += channels) {
    const float* in = image.data<float>() + at;
    for (std::int64_t i = 0; gradient_ && i < channels; ++i) out[at + i] = 0;
    for (std::int64_t i = 0; i < channels; ++i) {
      const float n = norm(in, i, channels), power = std::pow(n, -beta_);
      if (!gradient_) {
        out[at + i] = in[i] * power;
        continue;
      }
      const float gradient = first_input.data<float>()[at + i], common = -2 * alpha_ * beta_ * output.data<float>()[at + i] / n;
      for (std::int64_t k = first(i); k < last(i, channels); ++k) out[at + k] += (common * in[k] + (k == i ? power : 0)) * gradient;
    }
  }
  context.set_output(0, narrowed(std::move(result), type_));
}

WEFT_DECL kernel_factory nn_norm_kernel(std::string_view op) {
  if (op == "LRN" || op == "LRNGrad") return &make_kernel<lrn_kernel>;
  for (const std::string_view name : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"})
    if (op == name) return &make_kernel<batch_norm_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
