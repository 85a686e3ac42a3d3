#ifndef WEFT_KERNELS_NN_DEPTHWISE_HPP
#define WEFT_KERNELS_NN_DEPTHWISE_HPP
// Depthwise convolutions and their gradients: each channel has filters of its own, so that a pixel's channels are multiplied element by element.

#include <weft/kernels/nn_convolution.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/runtime/kernel.hpp>

#include <cstring>
#include <string_view>

namespace weft::detail {
/// The factory of a depthwise convolution or one of its gradients; nullptr for other ops.
kernel_factory nn_depthwise_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// to[c * multiplier + m] += from[c] * other[c * multiplier + m] over channels c.
template <class T> struct multiply_channels_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* from, const T* other, T* to, std::size_t channels, std::size_t multiplier) {
    if (multiplier == 1) {
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < channels; ++i) to[i] = multiply_add<S>(from[i], other[i], to[i]);
      return;
    }
    for (std::size_t c = 0; c < channels; ++c, other += multiplier, to += multiplier) {
      const T factor = from[c];
      WEFT_SIMD_INDEPENDENT
      for (std::size_t m = 0; m < multiplier; ++m) to[m] = multiply_add<S>(factor, other[m], to[m]);
    }
  }
};

/// to[c] += the sum over m of from[c * multiplier + m] * other[c * multiplier + m].
template <class T> struct gather_channels_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* from, const T* other, T* to, std::size_t channels, std::size_t multiplier) {
    if (multiplier == 1) return multiply_channels_body<T>::template run<S>(from, other, to, channels, multiplier);
    for (std::size_t c = 0; c < channels; ++c, from += multiplier, other += multiplier) {
      T sum = T(0);
      for (std::size_t m = 0; m < multiplier; ++m) sum = multiply_add<S>(from[m], other[m], sum);
      to[c] += sum;
    }
  }
};

/// What a depthwise convolution computes from two of images, filter and the output's gradient: the third.
enum class depthwise_result : unsigned char { output, input_gradient, filter_gradient };

using depthwise_function = void (*)(const convolution&, depthwise_result, const void* images, const void* filter, const void* out, void* result);

/// Visits each element of each window inside of the images; the result, one of the three arrays, is overwritten.
template <class T> void depthwise(const convolution& c, depthwise_result wanted, const void* images_data, const void* filter_data, const void* out_data, void* result_data) {
  const auto *images = static_cast<const T*>(images_data), *filter = static_cast<const T*>(filter_data), *out = static_cast<const T*>(out_data);
  auto* result = static_cast<T*>(result_data);
  const auto channels = static_cast<std::size_t>(c.depth), multiplier = static_cast<std::size_t>(c.outputs);
  const instruction_set set = best_instruction_set();
  using body = void (*)(const T*, const T*, T*, std::size_t, std::size_t);
  const body multiply = select<multiply_channels_body<T>, instruction_set::avx2, const T*, const T*, T*, std::size_t, std::size_t>(set);
  const body gather = select<gather_channels_body<T>, instruction_set::avx2, const T*, const T*, T*, std::size_t, std::size_t>(set);
  for (std::int64_t image = 0; image < c.out.batch; ++image)
    for (std::int64_t y = 0; y < c.out.rows; ++y)
      for (std::int64_t x = 0; x < c.out.columns; ++x)
        for (std::int64_t row = 0; row < c.rows.size; ++row) {
          const std::int64_t in_row = c.first_row(y) + row * c.rows.dilation;
          if (in_row < 0 || in_row >= c.in.rows) continue;
          for (std::int64_t column = 0; column < c.columns.size; ++column) {
            const std::int64_t in_column = c.first_column(x) + column * c.columns.dilation;
            if (in_column < 0 || in_column >= c.in.columns) continue;
            const std::int64_t in_at = ((image * c.in.rows + in_row) * c.in.columns + in_column) * c.in.channels;
            const std::int64_t out_at = ((image * c.out.rows + y) * c.out.columns + x) * c.out.channels, filter_at = (row * c.columns.size + column) * c.out.channels;
            if (wanted == depthwise_result::output) multiply(images + in_at, filter + filter_at, result + out_at, channels, multiplier);
            else if (wanted == depthwise_result::filter_gradient) multiply(images + in_at, out + out_at, result + filter_at, channels, multiplier);
            else gather(out + out_at, filter + filter_at, result + in_at, channels, multiplier);
          }
        }
}

/// DepthwiseConv2dNative and the two ops of its gradient.
class depthwise_kernel final : public kernel {
 public:
  explicit depthwise_kernel(const node& n)
      : type_(type_attr(n, "T")), attrs_(read_convolution(n, true)),
        result_(n.op() == "DepthwiseConv2dNative" ? depthwise_result::output : n.op() == "DepthwiseConv2dNativeBackpropInput" ? depthwise_result::input_gradient : depthwise_result::filter_gradient) {
    constexpr wide_functions<depthwise_function> functions{depthwise<float>, depthwise<double>, nullptr, nullptr, nullptr};
    function_ = expect_function(n, functions, type_);
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 1024; }

 private:
  dtype type_;
  window_attrs attrs_;
  depthwise_result result_;
  depthwise_function function_;
};

// 1. What is given: the node's inputs are the two of images, filter and gradient that are not wanted, with the wanted one's shape. 2. The result, from zeros.
inline void depthwise_kernel::compute(kernel_context& context) {
  const bool forward = result_ == depthwise_result::output, to_input = result_ == depthwise_result::input_gradient, first = attrs_.channels_first;
  expect_inputs(context, forward ? 2 : 3);
  for (int i = 0; i < context.input_count(); ++i)
    if (forward || i != (to_input ? 0 : 1)) expect_dtype(context, i, type_);
  const shape images = to_input ? wanted_images(context, 0, "input_sizes", first, nullptr, nullptr) : context.input(0).shape();
  const shape filter = forward || to_input ? context.input(1).shape() : wanted_images(context, 1, "filter_sizes", false, nullptr, nullptr);
  const convolution c = plan_convolution(context, attrs_, images, filter, true);
  if (!forward) expect_gradient(context, 2, c, first);
  const tensor_value image_values = to_input ? tensor_value() : images_of(context, 0, first), filter_values = forward || to_input ? widened(context.input(1)) : tensor_value();
  const tensor_value gradient = forward ? tensor_value() : images_of(context, 2, first);
  tensor_value out = allocate_wide(context, type_, forward ? c.out.shape(false) : to_input ? c.in.shape(false) : filter);
  if (out.elements() != 0) {
    std::memset(out.mutable_raw_data(), 0, static_cast<std::size_t>(out.elements()) * size_of(out.dtype()));
    const auto data = [](const tensor_value& v) { return v.empty() ? nullptr : v.raw_data(); };
    if (c.out.channels != 0) function_(c, result_, data(image_values), data(filter_values), data(gradient), out.mutable_raw_data());
  }
  if (forward || to_input) return set_images(context, std::move(out), first, type_);
  context.set_output(0, narrowed(std::move(out), type_));
}

WEFT_DECL kernel_factory nn_depthwise_kernel(std::string_view op) {
  return op == "DepthwiseConv2dNative" || op == "DepthwiseConv2dNativeBackpropInput" || op == "DepthwiseConv2dNativeBackpropFilter" ? &make_kernel<depthwise_kernel> : nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
