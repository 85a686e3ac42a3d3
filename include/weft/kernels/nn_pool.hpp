#ifndef WEFT_KERNELS_NN_POOL_HPP
#define WEFT_KERNELS_NN_POOL_HPP
// Pools over images, and the ops of their gradients. Channels lie together, so that a window's pixels are compared or added as rows.

#include <weft/kernels/nn_inputs.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/runtime/kernel.hpp>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace weft::detail {
/// The factory of a pool or of an op of its gradient; nullptr for other ops.
kernel_factory nn_pool_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// Windows over rows, columns and, of largest elements only, channels.
struct pool_plan {
  image_extents in, out;
  window_axis rows, columns, depth;
  std::int64_t rows_before = 0, columns_before = 0;
};

/// The part of a window inside of an axis: [begin, end).
struct window_part {
  std::int64_t begin, end;

  window_part(const window_axis& axis, std::int64_t before, std::int64_t place, std::int64_t size) : begin(place * axis.stride - before), end(std::min(begin + axis.size, size)) {
    begin = std::max<std::int64_t>(begin, 0);
  }
  std::int64_t size() const noexcept { return std::max<std::int64_t>(end - begin, 0); }
};

/// Calls visit(pixel of the output, first input pixel of its image, rows, columns) for each place of a window.
template <class Visit> void for_each_window(const pool_plan& p, Visit visit) {
  std::int64_t at = 0;
  for (std::int64_t image = 0; image < p.out.batch; ++image)
    for (std::int64_t y = 0; y < p.out.rows; ++y) {
      const window_part rows(p.rows, p.rows_before, y, p.in.rows);
      for (std::int64_t x = 0; x < p.out.columns; ++x, ++at) visit(at, image * p.in.rows * p.in.columns, rows, window_part(p.columns, p.columns_before, x, p.in.columns));
    }
}

template <class T> struct larger_row_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, T* out, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] = element::maximum::apply<S, T>(out[i], in[i]);
  }
};
template <class T> struct add_scaled_row_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, T scale, T* out, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] += in[i] * scale;
  }
};

/// The lowest value of elements that are computed in T, where a window lies in the padding altogether.
template <class T> T lowest_of(dtype type) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return type == dtype::half ? T(-65504) : type == dtype::bfloat16 ? T(-0x1.fep127) : std::numeric_limits<T>::lowest();
  } else {
    switch (type) {
      case dtype::int8: return static_cast<T>(std::numeric_limits<std::int8_t>::min());
      case dtype::int16: return static_cast<T>(std::numeric_limits<std::int16_t>::min());
      case dtype::int32: return static_cast<T>(std::numeric_limits<std::int32_t>::min());
      default: return std::numeric_limits<T>::min();
    }
  }
}

// The arrays of a pool and its gradients: images, the output's gradient (or, for a second derivative, the images'), the result.
using pool_function = void (*)(const pool_plan&, dtype type, const void* images, const void* gradient, void* result);

template <class T> void max_pool(const pool_plan& p, dtype type, const void* images, const void*, void* result) {
  const auto* in = static_cast<const T*>(images);
  auto* out = static_cast<T*>(result);
  const auto larger = select<larger_row_body<T>, std::is_floating_point_v<T> ? instruction_set::avx2 : instruction_set::portable, const T*, T*, std::size_t>(best_instruction_set());
  const auto channels = static_cast<std::size_t>(p.in.channels);
  if (p.depth.size > 1) {  // windows lie side by side in the channels
    const auto window = static_cast<std::size_t>(p.depth.size);
    for (std::int64_t i = 0; i < p.out.batch * p.out.rows * p.out.columns * p.out.channels; ++i, in += window) {
      out[i] = in[0];
      for (std::size_t j = 1; j < window; ++j) out[i] = element::maximum::apply<instruction_set::portable, T>(out[i], in[j]);
    }
    return;
  }
  for_each_window(p, [&](std::int64_t at, std::int64_t image, const window_part& rows, const window_part& columns) {
    T* to = out + at * p.in.channels;
    if (rows.size() == 0 || columns.size() == 0) {
      for (std::size_t i = 0; i < channels; ++i) to[i] = lowest_of<T>(type);
      return;
    }
    std::memcpy(to, in + (image + rows.begin * p.in.columns + columns.begin) * p.in.channels, channels * sizeof(T));
    for (std::int64_t y = rows.begin; y < rows.end; ++y)
      for (std::int64_t x = columns.begin; x < columns.end; ++x) larger(in + (image + y * p.in.columns + x) * p.in.channels, to, channels);
  });
}

/// Where the largest element of one channel of a window lies, the first of equals, in elements of the images; -1 in the padding.
template <class T> std::int64_t find_largest(const pool_plan& p, const T* in, std::int64_t image, const window_part& rows, const window_part& columns, std::int64_t channel) {
  std::int64_t best = -1;
  for (std::int64_t y = rows.begin; y < rows.end; ++y)
    for (std::int64_t x = columns.begin; x < columns.end; ++x) {
      const std::int64_t at = (image + y * p.in.columns + x) * p.in.channels + channel;
      if (best < 0 || in[at] > in[best] || (element::is_nan(in[at]) && !element::is_nan(in[best]))) best = at;
    }
  return best;
}

// Gives each window's gradient to its largest element, or (second derivative) fetches it from there.
template <class T, bool Second> void max_pool_gradient(const pool_plan& p, dtype, const void* images, const void* gradient_data, void* result) {
  const auto *in = static_cast<const T*>(images), *gradient = static_cast<const T*>(gradient_data);
  auto* out = static_cast<T*>(result);
  const auto pass = [&](std::int64_t window, std::int64_t element) {
    if constexpr (Second) out[window] = element < 0 ? T(0) : gradient[element];
    else if (element >= 0) out[element] = static_cast<T>(out[element] + gradient[window]);
  };
  if (p.depth.size > 1) {
    for (std::int64_t i = 0; i < p.out.batch * p.out.rows * p.out.columns * p.out.channels; ++i) {
      std::int64_t best = i * p.depth.size;
      for (std::int64_t at = best + 1; at < (i + 1) * p.depth.size; ++at)
        if (in[at] > in[best] || (element::is_nan(in[at]) && !element::is_nan(in[best]))) best = at;
      pass(i, best);
    }
    return;
  }
  for_each_window(p, [&](std::int64_t at, std::int64_t image, const window_part& rows, const window_part& columns) {
    for (std::int64_t channel = 0; channel < p.in.channels; ++channel) pass(at * p.in.channels + channel, find_largest(p, in, image, rows, columns, channel));
  });
}

// The mean of what lies inside of the images, or its gradient.
template <class T, bool Gradient> void average_pool(const pool_plan& p, dtype, const void* from_data, const void*, void* result) {
  const auto* from = static_cast<const T*>(from_data);
  auto* to = static_cast<T*>(result);
  const auto add = select<add_scaled_row_body<T>, instruction_set::avx2, const T*, T, T*, std::size_t>(best_instruction_set());
  const auto channels = static_cast<std::size_t>(p.in.channels);
  for_each_window(p, [&](std::int64_t at, std::int64_t image, const window_part& rows, const window_part& columns) {
    const T count = static_cast<T>(rows.size() * columns.size());
    for (std::int64_t y = rows.begin; y < rows.end; ++y)
      for (std::int64_t x = columns.begin; x < columns.end; ++x) {
        const std::int64_t pixel = (image + y * p.in.columns + x) * p.in.channels, window = at * p.in.channels;
        if constexpr (Gradient) add(from + window, T(1) / count, to + pixel, channels);
        else add(from + pixel, T(1), to + window, channels);
      }
    if constexpr (!Gradient)
      for (std::size_t i = 0; i < channels; ++i) to[at * p.in.channels + static_cast<std::int64_t>(i)] /= count;
  });
}

/// MaxPool, AvgPool, MaxPoolGrad, AvgPoolGrad and MaxPoolGradGrad.
class pool_kernel final : public kernel {
 public:
  explicit pool_kernel(const node& n);
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 4096; }

 private:
  pool_plan plan(const kernel_context& context, const shape& images) const;
  dtype type_;
  window_attrs attrs_;
  bool average_, gradient_, second_;
  pool_function function_;
};

inline pool_kernel::pool_kernel(const node& n)
    : type_(type_attr(n, "T")), attrs_(read_window(n, true)), average_(n.op().compare(0, 3, "Avg") == 0), gradient_(n.op() == "MaxPoolGrad" || n.op() == "AvgPoolGrad"), second_(n.op() == "MaxPoolGradGrad") {
  if (attrs_.batch_size != 1 || attrs_.batch_stride != 1) n.fail_about(error_code::unimplemented, "no kernel of this op pools over the batch");
  const bool deep = attrs_.depth.size != 1 || attrs_.depth.stride != 1;
  if (deep && average_) n.fail_about(error_code::unimplemented, "no kernel of this op pools over the depth");
  if (deep && (attrs_.rows.size != 1 || attrs_.columns.size != 1 || attrs_.rows.stride != 1 || attrs_.columns.stride != 1))
    n.fail_about(error_code::unimplemented, "no kernel of this op pools over the depth and over rows or columns at once");
  if (deep && attrs_.depth.size != attrs_.depth.stride) n.fail_about(error_code::unimplemented, "windows over the depth must lie side by side: their size and stride must be equal");
  using i64 = std::int64_t;
  using u64 = std::uint64_t;
  constexpr wide_functions<pool_function> averages{average_pool<float, false>, average_pool<double, false>, nullptr, nullptr, nullptr};
  constexpr wide_functions<pool_function> average_gradients{average_pool<float, true>, average_pool<double, true>, nullptr, nullptr, nullptr};
  constexpr wide_functions<pool_function> largest{max_pool<float>, max_pool<double>, max_pool<i64>, max_pool<u64>, nullptr};
  constexpr wide_functions<pool_function> gradients{max_pool_gradient<float, false>, max_pool_gradient<double, false>, max_pool_gradient<i64, false>, max_pool_gradient<u64, false>, nullptr};
  constexpr wide_functions<pool_function> seconds{max_pool_gradient<float, true>, max_pool_gradient<double, true>, max_pool_gradient<i64, true>, max_pool_gradient<u64, true>, nullptr};
  function_ = expect_function(n, average_ ? (gradient_ ? average_gradients : averages) : gradient_ ? gradients : second_ ? seconds : largest, type_);
}

inline pool_plan pool_kernel::plan(const kernel_context& context, const shape& images) const {
  if (images.rank() != 4) context.fail("input must have rank 4, found shape " + images.text());
  pool_plan p;
  p.in = image_extents::of(images, attrs_.channels_first);
  p.rows = attrs_.rows;
  p.columns = attrs_.columns;
  p.depth = attrs_.depth;
  const window_places rows = place_window(context.about(), p.rows, p.in.rows), columns = place_window(context.about(), p.columns, p.in.columns);
  p.rows_before = rows.before;
  p.columns_before = columns.before;
  if (p.in.channels % p.depth.size != 0)
    context.fail("windows over " + std::to_string(p.depth.size) + " channels do not divide a depth of " + std::to_string(p.in.channels));
  const std::int64_t sizes[] = {p.in.batch, rows.count, columns.count, p.in.channels / p.depth.size};
  if (!checked_elements(sizes, 4)) context.fail("the pool of " + images.text() + " has too many elements");
  p.out = {sizes[0], sizes[1], sizes[2], sizes[3]};
  return p;
}

// 1. The windows; 2. that a gradient fits them; 3. the result, from zeros where it is summed.
inline void pool_kernel::compute(kernel_context& context) {
  const bool first = attrs_.channels_first, sized = average_ && gradient_;
  expect_inputs(context, sized ? 2 : gradient_ || second_ ? 3 : 1);
  const int gradient_input = context.input_count() - 1;
  for (int i = sized ? 1 : 0; i < context.input_count(); ++i) expect_dtype(context, i, type_);
  shape images = context.input(0).shape();
  if (sized) {
    images = wanted_shape(context, 0, "orig_input_shape");
    if (images.rank() != 4) context.fail("orig_input_shape must contain 4 values, found " + std::to_string(images.rank()));
  }
  const pool_plan p = plan(context, images);
  const shape out = p.out.shape(first);
  if (gradient_ || second_) {
    const shape wanted = second_ ? images : out;
    if (!sized && context.input(1).shape() != out) context.fail("orig_output must have shape " + out.text() + ", found " + context.input(1).shape().text());
    if (context.input(gradient_input).shape() != wanted) context.fail("grad must have shape " + wanted.text() + ", found " + context.input(gradient_input).shape().text());
  }
  tensor_value result = allocate_wide(context, type_, gradient_ ? p.in.shape(false) : p.out.shape(false));
  if (result.elements() != 0) {
    if (gradient_ || average_) std::memset(result.mutable_raw_data(), 0, static_cast<std::size_t>(result.elements()) * size_of(result.dtype()));
    const tensor_value in = images_of(context, sized ? 1 : 0, first), gradient = gradient_ || second_ ? images_of(context, gradient_input, first) : tensor_value();
    function_(p, type_, in.raw_data(), gradient.empty() ? nullptr : gradient.raw_data(), result.mutable_raw_data());
  }
  set_images(context, std::move(result), first, type_);
}

WEFT_DECL kernel_factory nn_pool_kernel(std::string_view op) {
  for (const std::string_view name : {"MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad", "MaxPoolGradGrad"})
    if (op == name) return &make_kernel<pool_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
