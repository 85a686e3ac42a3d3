#ifndef WEFT_KERNELS_NN_INPUTS_HPP
#define WEFT_KERNELS_NN_INPUTS_HPP
// What kernels of neural networks check of their inputs, in the words of the shape rules, and images as they lie in memory.

#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/ops/nn_window.hpp>

#include <cstdint>
#include <string>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Fails unless input i has this rank.
inline void expect_rank(const kernel_context& context, int i, int rank, const char* what) {
  const shape& s = context.input(i).shape();
  if (s.rank() != rank) context.fail(std::string(what) + " must have rank " + std::to_string(rank) + ", found shape " + s.text());
}

/// Fails unless two sizes are equal.
inline void expect_same(const kernel_context& context, std::int64_t a, std::int64_t b, const std::string& what) {
  if (a != b) context.fail(what + " must be equal, found " + std::to_string(a) + " and " + std::to_string(b));
}

/// Fails about the node when no kernel of its op takes elements of this dtype.
template <class Function> Function expect_function(const node& n, const wide_functions<Function>& functions, dtype type) {
  const Function found = functions.of(type);
  if (found == nullptr) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
  return found;
}

/// A new value for elements of `type` in the dtype in which they are computed.
inline tensor_value allocate_wide(const kernel_context& context, dtype type, shape s) { return context.allocate(wide_dtype(type), std::move(s)); }

/// Axes of images: batch, rows, columns and channels.
struct image_extents {
  std::int64_t batch, rows, columns, channels;

  static image_extents of(const shape& s, bool channels_first) noexcept {
    if (channels_first) return {s[0], s[2], s[3], s[1]};
    return {s[0], s[1], s[2], s[3]};
  }
  weft::shape shape(bool channels_first) const {
    if (channels_first) return {batch, channels, rows, columns};
    return {batch, rows, columns, channels};
  }
};

/// Copies `count` matrices of `rows` x `columns` elements of `Bytes` bytes, each transposed.
template <std::size_t Bytes> void transpose_matrices(const std::byte* in, std::byte* out, std::size_t count, std::size_t rows, std::size_t columns) {
  constexpr std::size_t block = 16;
  for (std::size_t m = 0; m < count; ++m, in += rows * columns * Bytes, out += rows * columns * Bytes)
    for (std::size_t i0 = 0; i0 < rows; i0 += block)
      for (std::size_t j0 = 0; j0 < columns; j0 += block)
        for (std::size_t i = i0; i < std::min(rows, i0 + block); ++i)
          for (std::size_t j = j0; j < std::min(columns, j0 + block); ++j) std::memcpy(out + (j * rows + i) * Bytes, in + (i * columns + j) * Bytes, Bytes);
}

/// Images whose channels come first, or last, stored the other way round; elements have 4 or 8 bytes.
inline tensor_value channels_moved(const tensor_value& images, bool to_last) {
  const shape& s = images.shape();
  const image_extents e = image_extents::of(s, to_last);
  tensor_value out(images.dtype(), e.shape(!to_last));
  if (images.elements() == 0) return out;
  const auto pixels = static_cast<std::size_t>(e.rows * e.columns), channels = static_cast<std::size_t>(e.channels), count = static_cast<std::size_t>(e.batch);
  const auto move = size_of(images.dtype()) == 4 ? &transpose_matrices<4> : &transpose_matrices<8>;
  move(images.raw_data(), out.mutable_raw_data(), count, to_last ? channels : pixels, to_last ? pixels : channels);
  return out;
}

/// An input of images in the dtype in which they are computed, channels last.
inline tensor_value images_of(const kernel_context& context, int i, bool channels_first) {
  const tensor_value wide = widened(context.input(i));
  return channels_first ? channels_moved(wide, true) : wide;
}

/// Sets an output to images that were computed channels last in the wide dtype of `type`.
inline void set_images(kernel_context& context, tensor_value images, bool channels_first, dtype type) {
  if (channels_first) images = channels_moved(images, false);
  context.set_output(0, narrowed(std::move(images), type));
}

}  // namespace weft::detail
#endif

#endif
