#ifndef WEFT_KERNELS_NN_CONV_HPP
#define WEFT_KERNELS_NN_CONV_HPP
// Convolutions and their gradients as matrix products: an output pixel is a row of the elements that its window reads, times the filter.
// Short windows of floats are packed into the panels of the product's micro-kernel as they are read; else rows are written out first, so
// many that they stay in the cache.

#include <weft/kernels/gemm.hpp>
#include <weft/kernels/nn_convolution.hpp>
#include <weft/kernels/parallel.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace weft::detail {
/// The factory of a convolution or one of its gradients; nullptr for other ops.
kernel_factory nn_conv_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// Extents of a convolution as matrix products, one for each group, over rows that are output pixels.
struct convolution_extents {
  std::size_t pixels, window, outputs, stride;  // pixels and window elements of an image's product, outputs of a group, of all groups

  explicit convolution_extents(const convolution& c)
      : pixels(static_cast<std::size_t>(c.out.rows * c.out.columns)), window(static_cast<std::size_t>(c.window())), outputs(static_cast<std::size_t>(c.outputs / c.groups)),
        stride(static_cast<std::size_t>(c.outputs)) {}
};

/// Pixels whose windows are written out at a time.
inline std::size_t pixels_at_once(std::size_t window) noexcept { return window >= 65536 ? 1 : 65536 / window; }

/// Memory for windows; each thread keeps its own from call to call.
inline void* thread_window_scratch(std::size_t bytes) {
  thread_local gemm_scratch scratch;
  return scratch.reserve(bytes);
}

/// Where the window of an output pixel begins: its image, and the row and column, which may lie before the image.
struct window_start {
  std::int64_t image, row, column;
};

/// Goes through output pixels in their order.
class window_walk {
 public:
  window_walk(const convolution& c, std::size_t pixel) : c_(c) {
    const auto at = static_cast<std::int64_t>(pixel);
    column_ = at % c.out.columns;
    row_ = at / c.out.columns % c.out.rows;
    image_ = at / c.out.columns / c.out.rows;
  }
  window_start start() const noexcept { return {image_, c_.first_row(row_), c_.first_column(column_)}; }
  void next() noexcept {
    if (++column_ < c_.out.columns) return;
    column_ = 0;
    if (++row_ < c_.out.rows) return;
    row_ = 0;
    ++image_;
  }

 private:
  const convolution& c_;
  std::int64_t image_, row_, column_;
};

/// Where the rows of windows lie in memory; what lies outside of the images is zero.
template <class T> class window_reader {
 public:
  window_reader(const convolution& c, const T* images, std::int64_t group) : c_(c), images_(images + group * c.depth), run_(static_cast<std::size_t>(c.columns.size * c.depth)) {}

  const convolution& about() const noexcept { return c_; }
  /// Elements of a window's row.
  std::size_t run() const noexcept { return run_; }

  /// Row `row` of an image.
  const T* row(std::int64_t image, std::int64_t row) const noexcept { return images_ + (image * c_.in.rows + row) * c_.in.columns * c_.in.channels; }

  /// Row `row` of a window, in the image itself where it lies there in one piece, else copied to `copy`.
  const T* find(const window_start& start, std::int64_t row, T* copy) const {
    const std::int64_t in_row = start.row + row * c_.rows.dilation, first = start.column;
    if (in_row < 0 || in_row >= c_.in.rows) {
      for (std::size_t i = 0; i < run_; ++i) copy[i] = T(0);
      return copy;
    }
    const T* from = this->row(start.image, in_row);
    if (c_.columns.dilation == 1 && c_.groups == 1 && first >= 0 && first + c_.columns.size <= c_.in.columns) return from + first * c_.in.channels;
    const auto depth = static_cast<std::size_t>(c_.depth);
    T* to = copy;
    for (std::int64_t column = 0; column < c_.columns.size; ++column, to += depth) {
      const std::int64_t at = first + column * c_.columns.dilation;
      const T* elements = at >= 0 && at < c_.in.columns ? from + at * c_.in.channels : nullptr;
      for (std::size_t i = 0; i < depth; ++i) to[i] = elements == nullptr ? T(0) : elements[i];
    }
    return copy;
  }

  /// Writes the windows of `count` pixels, one after the other.
  void write(std::size_t first, std::size_t count, T* out) const {
    window_walk walk(c_, first);
    for (std::size_t i = 0; i < count; ++i, walk.next()) {
      const window_start start = walk.start();
      for (std::int64_t row = 0; row < c_.rows.size; ++row, out += run_) {
        const T* from = find(start, row, out);
        if (from != out) std::memcpy(out, from, run_ * sizeof(T));
      }
    }
  }

 private:
  const convolution& c_;
  const T* images_;
  std::size_t run_;
};

/// Adds the windows of `count` pixels of one group to the places of the images that they were read from.
template <class T> void add_windows(const convolution& c, std::int64_t group, std::size_t first, std::size_t count, const T* windows, T* images) {
  const auto depth = static_cast<std::size_t>(c.depth), run = static_cast<std::size_t>(c.columns.size) * depth;
  const bool together = c.columns.dilation == 1 && c.groups == 1;
  window_walk walk(c, first);
  images += group * c.depth;
  for (std::size_t pixel = 0; pixel < count; ++pixel, walk.next()) {
    const window_start start = walk.start();
    for (std::int64_t row = 0; row < c.rows.size; ++row, windows += run) {
      const std::int64_t in_row = start.row + row * c.rows.dilation;
      if (in_row < 0 || in_row >= c.in.rows) continue;
      T* to = images + (start.image * c.in.rows + in_row) * c.in.columns * c.in.channels;
      if (together && start.column >= 0 && start.column + c.columns.size <= c.in.columns) {
        to += start.column * c.in.channels;
        for (std::size_t i = 0; i < run; ++i) to[i] += windows[i];
        continue;
      }
      for (std::int64_t column = 0; column < c.columns.size; ++column) {
        const std::int64_t in_column = start.column + column * c.columns.dilation;
        if (in_column < 0 || in_column >= c.in.columns) continue;
        for (std::size_t i = 0; i < depth; ++i) to[static_cast<std::size_t>(in_column * c.in.channels) + i] += windows[static_cast<std::size_t>(column) * depth + i];
      }
    }
  }
}

/// out[p * padded + i] = rows[i][p] for four rows.
template <class T> WEFT_SIMD_CONTRACTED void interleave_rows(const T* const* rows, std::size_t length, std::size_t padded, T* out) {
  std::size_t p = 0;
#if defined(WEFT_GEMM_SHUFFLE)
  if constexpr (std::is_same_v<T, float>) {
    typedef float vector __attribute__((vector_size(16)));
    for (; p + 4 <= length; p += 4) {
      vector r[4];
      for (std::size_t i = 0; i < 4; ++i) std::memcpy(&r[i], rows[i] + p, sizeof r[i]);
      const vector low02 = __builtin_shufflevector(r[0], r[2], 0, 4, 1, 5), high02 = __builtin_shufflevector(r[0], r[2], 2, 6, 3, 7);
      const vector low13 = __builtin_shufflevector(r[1], r[3], 0, 4, 1, 5), high13 = __builtin_shufflevector(r[1], r[3], 2, 6, 3, 7);
      const vector columns[4] = {__builtin_shufflevector(low02, low13, 0, 4, 1, 5), __builtin_shufflevector(low02, low13, 2, 6, 3, 7),
                                 __builtin_shufflevector(high02, high13, 0, 4, 1, 5), __builtin_shufflevector(high02, high13, 2, 6, 3, 7)};
      for (std::size_t j = 0; j < 4; ++j) std::memcpy(out + (p + j) * padded, &columns[j], sizeof columns[j]);
    }
  }
#endif
  for (; p < length; ++p)
    for (std::size_t i = 0; i < 4; ++i) out[p * padded + i] = rows[i][p];
}

/// The images that some pixels read, channel by channel and with their padding, for windows that move by one column over few channels: what the same element of neighbouring windows reads
/// lies side by side then.
template <class T> class window_planes {
 public:
  static constexpr std::int64_t most_channels = 4;
  static constexpr std::size_t most_rows = 12;  // of any tile; also how far `pack` reads and writes beyond what it needs

  window_planes(const window_reader<T>& reader, std::size_t first, std::size_t count) : reader_(reader), c_(reader.about()) {
    if (c_.columns.stride != 1 || c_.depth > most_channels || c_.out.columns < 4 || c_.columns.size * c_.columns.dilation > 64) return;
    first_row_ = static_cast<std::int64_t>(first) / c_.out.columns;
    const std::int64_t last_row = (static_cast<std::int64_t>(first + count) - 1) / c_.out.columns;
    width_ = static_cast<std::size_t>(c_.out.columns + (c_.columns.size - 1) * c_.columns.dilation);
    row_ = width_ * static_cast<std::size_t>(c_.depth);
    rows_ = static_cast<std::size_t>((last_row - first_row_ + 1) * c_.rows.size);
    if (rows_ * row_ <= 65536) size_ = rows_ * row_ + most_rows;
  }
  /// Elements of the planes; 0 where they would not pay.
  std::size_t size() const noexcept { return size_; }

  /// Writes the planes: for each row of pixels the rows that its windows read, of each the channels.
  void fill(T* planes) const {
    const auto channels = static_cast<std::size_t>(c_.depth);
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::int64_t out_row = first_row_ + static_cast<std::int64_t>(i) / c_.rows.size;
      const std::int64_t row = c_.first_row(out_row % c_.out.rows) + static_cast<std::int64_t>(i) % c_.rows.size * c_.rows.dilation;
      const T* from = row >= 0 && row < c_.in.rows ? reader_.row(out_row / c_.out.rows, row) : nullptr;
      T* to = planes + i * row_;
      for (std::size_t at = 0; at < row_; ++at) to[at] = T(0);
      const std::int64_t begin = std::max<std::int64_t>(0, -c_.columns_before), end = std::min(c_.in.columns, static_cast<std::int64_t>(width_) - c_.columns_before);
      for (std::size_t k = 0; from != nullptr && k < channels; ++k)
        for (std::int64_t column = begin; column < end; ++column) to[k * width_ + static_cast<std::size_t>(column + c_.columns_before)] = from[static_cast<std::size_t>(column) * channels + k];
    }
  }

  // 1. The pixels are cut at the ends of rows. 2. Each piece is copied in the largest size; what is too much is written over by what comes behind it.
  void pack(const T* planes, std::size_t first, std::size_t count, std::size_t padded, T* panel) const {
    const T* pieces[most_rows];
    std::size_t places[most_rows], found = 0;
    const auto columns = static_cast<std::size_t>(c_.out.columns);
    for (std::size_t i = 0; i < count;) {
      const std::size_t row = (first + i) / columns - static_cast<std::size_t>(first_row_), column = (first + i) % columns;
      pieces[found] = planes + row * static_cast<std::size_t>(c_.rows.size) * row_ + column;
      places[found++] = i;
      i += columns - column;
    }
    for (std::int64_t row = 0; row < c_.rows.size; ++row)
      for (std::int64_t column = 0; column < c_.columns.size; ++column)
        for (std::int64_t k = 0; k < c_.depth; ++k, panel += padded) {
          const std::size_t at = static_cast<std::size_t>(row) * row_ + static_cast<std::size_t>(k) * width_ + static_cast<std::size_t>(column * c_.columns.dilation);
          for (std::size_t i = 0; i < found; ++i) std::memcpy(panel + places[i], pieces[i] + at, most_rows * sizeof(T));
        }
  }

 private:
  const window_reader<T>& reader_;
  const convolution& c_;
  std::int64_t first_row_ = 0;
  std::size_t width_ = 0, row_ = 0, rows_ = 0, size_ = 0;
};

/// A convolution whose windows go straight into panels of the micro-kernel. The filter is packed once; parts of the pixels may run in several threads.
template <class T> class packed_convolution {
 public:
  /// The longest window for which the panels stay in the cache.
  static constexpr std::size_t longest = 1024;

  packed_convolution(const convolution& c, const T* images, const T* filter, T* out, instruction_set set)
      : reader_(c, images, 0), extents_(c), rows_(c.rows.size), out_(out), tile_(select_gemm<T>(set)) {
    const std::size_t panels = (extents_.outputs + tile_.columns - 1) / tile_.columns;
    filter_.reset(new T[panels * tile_.columns * extents_.window]);
    for (std::size_t j = 0; j < extents_.outputs; j += tile_.columns)
      pack_panel(filter + j, 1, extents_.stride, smaller(extents_.outputs - j, tile_.columns), extents_.window, tile_.columns, filter_.get() + j * extents_.window);
  }

  /// Pixels that are packed at a time.
  std::size_t block() const noexcept { return round_up(smaller(pixels_at_once(extents_.window), 1024), tile_.rows); }

  void run(std::size_t first, std::size_t count) const {
    const std::size_t panel = tile_.rows * extents_.window, packed = round_up(count, tile_.rows) * extents_.window;
    const window_planes<T> planes(reader_, first, count);
    T* panels = static_cast<T*>(thread_window_scratch((packed + most_rows + std::max(4 * reader_.run(), planes.size())) * sizeof(T)));
    T* const behind = panels + packed + most_rows;
    if (planes.size() > 0) planes.fill(behind);
    for (std::size_t i = 0; i < count; i += tile_.rows) {
      const std::size_t rows = smaller(count - i, tile_.rows);
      T* const to = panels + i / tile_.rows * panel;
      if (planes.size() > 0) planes.pack(behind, first + i, rows, tile_.padded(rows), to);
      else pack(first + i, rows, to, behind);
    }
    gemm_step<T> step{nullptr, nullptr, nullptr, extents_.window, tile_.columns, extents_.stride, 0, 0, false};
    for (std::size_t j = 0; j < extents_.outputs; j += tile_.columns) {
      step.b = filter_.get() + j * extents_.window;
      step.columns = smaller(extents_.outputs - j, tile_.columns);
      for (std::size_t i = 0; i < count; i += tile_.rows) {
        step.rows = smaller(count - i, tile_.rows);
        step.a = panels + i / tile_.rows * panel;
        step.c = out_ + (first + i) * extents_.stride + j;
        tile_.run(step);
      }
    }
  }

 private:
  // The windows of up to a panel's rows, element by element. Rows beyond `count` repeat the last: nobody reads what comes of them.
  void pack(std::size_t first, std::size_t count, T* panel, T* copies) const {
    const std::size_t padded = tile_.padded(count), run = reader_.run();
    window_start starts[most_rows];
    window_walk walk(reader_.about(), first);
    for (std::size_t i = 0; i < padded; ++i) {
      starts[i] = walk.start();
      if (i + 1 < count) walk.next();
    }
    for (std::int64_t row = 0; row < rows_; ++row, panel += run * padded)
      for (std::size_t i = 0; i < padded; i += 4) {
        const T* rows[4];
        const std::size_t width = smaller(padded - i, 4);
        for (std::size_t k = 0; k < width; ++k) rows[k] = reader_.find(starts[i + k], row, copies + k * run);
        if (width == 4) interleave_rows(rows, run, padded, panel + i);
        else
          for (std::size_t k = 0; k < width; ++k)
            for (std::size_t p = 0; p < run; ++p) panel[p * padded + i + k] = rows[k][p];
      }
  }

  static constexpr std::size_t most_rows = window_planes<T>::most_rows;
  window_reader<T> reader_;
  convolution_extents extents_;
  std::int64_t rows_;
  T* out_;
  gemm_kernels<T> tile_;
  std::unique_ptr<T[]> filter_;
};

/// Calls work(first, count) for parts of `total` pixels of at most `at_once`, on the pool's threads too when they are many.
template <class Work> void for_each_part(thread_pool* pool, std::size_t total, std::size_t at_once, const Work& work) {
  const std::size_t parts = (total + at_once - 1) / at_once;
  const auto part = [&](std::size_t i) { work(i * at_once, smaller(total - i * at_once, at_once)); };
  if (pool != nullptr && pool->size() > 1 && parts > 1) return parallel_for(*pool, parts, part);
  for (std::size_t i = 0; i < parts; ++i) part(i);
}

using convolution_function = void (*)(const convolution&, const void* a, const void* b, void* out, thread_pool* pool);

/// out = images * filter.
template <class T> void convolve(const convolution& c, const void* images_data, const void* filter_data, void* out_data, thread_pool* pool) {
  const auto *images = static_cast<const T*>(images_data), *filter = static_cast<const T*>(filter_data);
  auto* out = static_cast<T*>(out_data);
  const convolution_extents e(c);
  const std::size_t total = e.pixels * static_cast<std::size_t>(c.out.batch);
  if constexpr (std::is_floating_point_v<T>) {
    if (c.groups == 1 && e.window <= packed_convolution<T>::longest) {
      const packed_convolution<T> packed(c, images, filter, out, best_instruction_set());
      return for_each_part(pool, total, packed.block(), [&](std::size_t first, std::size_t count) { packed.run(first, count); });
    }
  }
  for (std::int64_t group = 0; group < c.groups; ++group) {
    const window_reader<T> reader(c, images, group);
    const std::size_t offset = static_cast<std::size_t>(group) * e.outputs;
    for_each_part(pool, total, pixels_at_once(e.window), [&](std::size_t first, std::size_t count) {
      T* windows = static_cast<T*>(thread_window_scratch(count * e.window * sizeof(T)));
      reader.write(first, count, windows);
      gemm<T>({count, e.outputs, e.window}, {windows, e.window}, {filter + offset, e.stride}, {out + first * e.stride + offset, e.stride});
    });
  }
}

/// The gradient of the images: windows of gradient * transposed filter, added where they came from. Images are independent of each other.
template <class T> void convolve_back_to_input(const convolution& c, const void* gradient_data, const void* filter_data, void* images_data, thread_pool* pool) {
  const auto *gradient = static_cast<const T*>(gradient_data), *filter = static_cast<const T*>(filter_data);
  auto* images = static_cast<T*>(images_data);
  const convolution_extents e(c);
  const std::size_t image = static_cast<std::size_t>(c.in.rows * c.in.columns * c.in.channels), at_once = pixels_at_once(e.window);
  for_each_part(pool, static_cast<std::size_t>(c.in.batch), 1, [&](std::size_t index, std::size_t) {
    std::memset(static_cast<void*>(images + index * image), 0, image * sizeof(T));
    for (std::int64_t group = 0; group < c.groups; ++group) {
      const std::size_t offset = static_cast<std::size_t>(group) * e.outputs;
      for (std::size_t begin = 0; begin < e.pixels; begin += at_once) {
        const std::size_t count = smaller(e.pixels - begin, at_once), first = index * e.pixels + begin;
        T* windows = static_cast<T*>(thread_window_scratch(count * e.window * sizeof(T)));
        gemm<T>({count, e.window, e.outputs}, {gradient + first * e.stride + offset, e.stride}, {filter + offset, e.stride, transposition::transposed}, {windows, e.window});
        add_windows(c, group, first, count, static_cast<const T*>(windows), images);
      }
    }
  });
}

/// The gradient of the filter: transposed windows * gradient, summed over parts of the pixels in their order.
template <class T> void convolve_back_to_filter(const convolution& c, const void* images_data, const void* gradient_data, void* filter_data, thread_pool*) {
  const auto *images = static_cast<const T*>(images_data), *gradient = static_cast<const T*>(gradient_data);
  auto* filter = static_cast<T*>(filter_data);
  const convolution_extents e(c);
  if (e.stride == 0) return;
  std::memset(filter_data, 0, e.window * e.stride * sizeof(T));
  const std::size_t total = e.pixels * static_cast<std::size_t>(c.out.batch), at_once = e.window > 65536 ? 1 : std::max<std::size_t>(pixels_at_once(e.window), 64);
  if (total == 0) return;
  const std::unique_ptr<T[]> sums(new T[e.window * e.outputs]);
  for (std::int64_t group = 0; group < c.groups; ++group) {
    const window_reader<T> reader(c, images, group);
    const std::size_t offset = static_cast<std::size_t>(group) * e.outputs;
    for (std::size_t first = 0; first < total; first += at_once) {
      const std::size_t count = smaller(total - first, at_once);
      T* windows = static_cast<T*>(thread_window_scratch(count * e.window * sizeof(T)));
      reader.write(first, count, windows);
      gemm<T>({e.window, e.outputs, count}, {windows, e.window, transposition::transposed}, {gradient + first * e.stride + offset, e.stride}, {sums.get(), e.outputs});
      for (std::size_t k = 0; k < e.window; ++k)
        for (std::size_t j = 0; j < e.outputs; ++j) filter[k * e.stride + offset + j] += sums[k * e.outputs + j];
    }
  }
}

/// Conv2D and the two ops of its gradient.
class conv2d_kernel final : public kernel {
 public:
  explicit conv2d_kernel(const node& n) : type_(type_attr(n, "T")), attrs_(read_convolution(n, false)), to_input_(n.op() == "Conv2DBackpropInput"), to_filter_(n.op() == "Conv2DBackpropFilter") {
    constexpr wide_functions<convolution_function> forward{convolve<float>, convolve<double>, convolve<std::uint64_t>, nullptr, nullptr};
    constexpr wide_functions<convolution_function> to_input{convolve_back_to_input<float>, convolve_back_to_input<double>, convolve_back_to_input<std::uint64_t>, nullptr, nullptr};
    constexpr wide_functions<convolution_function> to_filter{convolve_back_to_filter<float>, convolve_back_to_filter<double>, nullptr, nullptr, nullptr};
    function_ = expect_function(n, to_input_ ? to_input : to_filter_ ? to_filter : forward, type_);
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 1024; }

 private:
  static void clear(tensor_value& out) {
    if (out.elements() != 0) std::memset(out.mutable_raw_data(), 0, static_cast<std::size_t>(out.elements()) * size_of(out.dtype()));
  }
  void input_gradient(kernel_context& context) const;
  void filter_gradient(kernel_context& context) const;
  dtype type_;
  window_attrs attrs_;
  bool to_input_, to_filter_;
  convolution_function function_;
};

inline void conv2d_kernel::compute(kernel_context& context) {
  expect_inputs(context, to_input_ || to_filter_ ? 3 : 2);
  if (to_input_) return input_gradient(context);
  if (to_filter_) return filter_gradient(context);
  expect_dtype(context, 0, type_);
  expect_dtype(context, 1, type_);
  const convolution c = plan_convolution(context, attrs_, context.input(0).shape(), context.input(1).shape(), false);
  tensor_value out = allocate_wide(context, type_, c.out.shape(false));
  if (context.input(0).elements() == 0) clear(out);  // all of it is padding
  else if (out.elements() != 0) function_(c, images_of(context, 0, attrs_.channels_first).raw_data(), widened(context.input(1)).raw_data(), out.mutable_raw_data(), context.pool());
  set_images(context, std::move(out), attrs_.channels_first, type_);
}

inline void conv2d_kernel::input_gradient(kernel_context& context) const {
  expect_dtype(context, 1, type_);
  expect_dtype(context, 2, type_);
  const shape filter = context.input(1).shape(), gradient = context.input(2).shape();
  const shape images = wanted_images(context, 0, "input_sizes", attrs_.channels_first, &gradient, &filter);
  const convolution c = plan_convolution(context, attrs_, images, filter, false);
  expect_gradient(context, 2, c, attrs_.channels_first);
  tensor_value out = allocate_wide(context, type_, c.in.shape(false));
  if (out.elements() != 0) function_(c, images_of(context, 2, attrs_.channels_first).raw_data(), widened(context.input(1)).raw_data(), out.mutable_raw_data(), context.pool());
  set_images(context, std::move(out), attrs_.channels_first, type_);
}

inline void conv2d_kernel::filter_gradient(kernel_context& context) const {
  expect_dtype(context, 0, type_);
  expect_dtype(context, 2, type_);
  const shape filter = wanted_images(context, 1, "filter_sizes", false, nullptr, nullptr);
  const convolution c = plan_convolution(context, attrs_, context.input(0).shape(), filter, false);
  expect_gradient(context, 2, c, attrs_.channels_first);
  tensor_value out = allocate_wide(context, type_, filter);
  if (context.input(0).elements() == 0) clear(out);
  else function_(c, images_of(context, 0, attrs_.channels_first).raw_data(), images_of(context, 2, attrs_.channels_first).raw_data(), out.mutable_raw_data(), context.pool());
  context.set_output(0, narrowed(std::move(out), type_));
}

WEFT_DECL kernel_factory nn_conv_kernel(std::string_view op) {
  return op == "Conv2D" || op == "Conv2DBackpropInput" || op == "Conv2DBackpropFilter" ? &make_kernel<conv2d_kernel> : nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
