#ifndef WEFT_KERNELS_STRIDED_COPY_HPP
#define WEFT_KERNELS_STRIDED_COPY_HPP
// Copies between two regular arrangements of elements, whatever the elements are: what slices, joins, tiles, paddings, reversals and
// transpositions have in common. Rows of elements by index are here as well.

#include <weft/kernels/inputs.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// Where the elements of a value lie, how large one is, and whether they are strings.
struct element_source {
  const std::byte* data;
  std::ptrdiff_t size;
  bool strings;
};
struct element_target {
  std::byte* data;
  std::ptrdiff_t size;
  bool strings;
};
inline element_source source_of(const tensor_value& v) { return {static_cast<const std::byte*>(elements_of(v)), static_cast<std::ptrdiff_t>(object_size(v.dtype())), v.dtype() == dtype::string}; }
inline element_target target_of(tensor_value& v) { return {static_cast<std::byte*>(elements_of(v)), static_cast<std::ptrdiff_t>(object_size(v.dtype())), v.dtype() == dtype::string}; }

/// Elements that follow each other, or the same one again and again.
template <std::size_t Size> WEFT_SIMD_OPTIMIZED void copy_plain(const std::byte* from, std::ptrdiff_t from_step, std::byte* to, std::ptrdiff_t to_step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, Size);
}
inline void copy_strings(const std::byte* from, std::ptrdiff_t from_step, std::byte* to, std::ptrdiff_t to_step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) *reinterpret_cast<std::string*>(to + i * to_step) = *reinterpret_cast<const std::string*>(from + i * from_step);
}
inline void copy_blocks(const std::byte* from, std::ptrdiff_t from_step, std::byte* to, std::ptrdiff_t to_step, std::int64_t count, std::size_t size) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, size);
}

/// `count` units of `size` bytes; steps are bytes.
inline void copy_units(const std::byte* from, std::ptrdiff_t from_step, std::byte* to, std::ptrdiff_t to_step, std::int64_t count, std::size_t size, bool strings) {
  if (strings) return copy_strings(from, from_step, to, to_step, count);
  const auto whole = static_cast<std::ptrdiff_t>(size);
  if (from_step == whole && to_step == whole) {
    std::memcpy(to, from, size * static_cast<std::size_t>(count));
    return;
  }
  switch (size) {
    case 1: return copy_plain<1>(from, from_step, to, to_step, count);
    case 2: return copy_plain<2>(from, from_step, to, to_step, count);
    case 4: return copy_plain<4>(from, from_step, to, to_step, count);
    case 8: return copy_plain<8>(from, from_step, to, to_step, count);
    case 16: return copy_plain<16>(from, from_step, to, to_step, count);
    default: return copy_blocks(from, from_step, to, to_step, count, size);
  }
}

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define WEFT_HAS_SHUFFLES 1
#else
#define WEFT_HAS_SHUFFLES 0
#endif

/// A matrix with rows and columns exchanged, element by element.
template <std::size_t Size> WEFT_SIMD_INLINE void exchange_plain(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t size = static_cast<std::int64_t>(Size);
  for (std::int64_t k = 0; k < columns; ++k)
    for (std::int64_t i = 0; i < rows; ++i) std::memcpy(to + k * to_row + i * size, from + i * from_row + k * size, Size);
}

#if WEFT_HAS_SHUFFLES
/// `Chunks` squares of elements that lie below each other, as wide as 16 bytes, with rows and columns exchanged: one register holds a row of each, and then a column of all. Interleaving
/// the rows of the upper half with those of the lower one, as often as it takes to halve them down to one, exchanges both.
template <std::size_t Size, std::size_t Chunks> struct exchanged_block {
  static constexpr std::size_t lanes = 16 / Size, whole = lanes * Chunks;
  using element = std::conditional_t<Size == 1, std::uint8_t, std::conditional_t<Size == 2, std::uint16_t, std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;
  typedef element part __attribute__((vector_size(16)));
  typedef element vector __attribute__((vector_size(16 * Chunks)));

  template <std::size_t... I, std::size_t... Half>
  WEFT_SIMD_INLINE static void run(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row, std::index_sequence<I...>, std::index_sequence<Half...>) {
    vector rows[lanes], next[lanes];
    WEFT_SIMD_UNROLL
    for (std::size_t i = 0; i < lanes; ++i) {
      part parts[Chunks];
      WEFT_SIMD_UNROLL
      for (std::size_t k = 0; k < Chunks; ++k) std::memcpy(&parts[k], from + static_cast<std::ptrdiff_t>(i + k * lanes) * from_row, 16);
      if constexpr (Chunks == 1) {
        rows[i] = parts[0];
      } else if constexpr (Chunks == 2) {
        rows[i] = __builtin_shufflevector(parts[0], parts[1], static_cast<int>(I)...);
      } else {
        typedef element half __attribute__((vector_size(32)));
        const half upper = __builtin_shufflevector(parts[0], parts[1], static_cast<int>(Half)...), lower = __builtin_shufflevector(parts[2], parts[3], static_cast<int>(Half)...);
        rows[i] = __builtin_shufflevector(upper, lower, static_cast<int>(I)...);
      }
    }
    WEFT_SIMD_UNROLL
    for (std::size_t step = 1; step < lanes; step *= 2) {
      WEFT_SIMD_UNROLL
      for (std::size_t i = 0; i < lanes / 2; ++i) {
        next[2 * i] = __builtin_shufflevector(rows[i], rows[i + lanes / 2], static_cast<int>((I % 2) * whole + I / lanes * lanes + I % lanes / 2)...);
        next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + lanes / 2], static_cast<int>((I % 2) * whole + I / lanes * lanes + lanes / 2 + I % lanes / 2)...);
      }
      WEFT_SIMD_UNROLL
      for (std::size_t i = 0; i < lanes; ++i) rows[i] = next[i];
    }
    WEFT_SIMD_UNROLL
    for (std::size_t i = 0; i < lanes; ++i) std::memcpy(to + static_cast<std::ptrdiff_t>(i) * to_row, &rows[i], 16 * Chunks);
  }
};

/// A square as wide as 64 bytes with rows and columns exchanged: every cache line is read and written once, which matters where rows at distances of a power of two drive each other out of the cache.
template <std::size_t Size> struct exchanged_lines {
  static constexpr std::size_t side = 64 / Size;
  using element = std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>;
  typedef element vector __attribute__((vector_size(64)));

  template <std::size_t... I> WEFT_SIMD_INLINE static void run(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row, std::index_sequence<I...>) {
    vector rows[side], next[side];
    WEFT_SIMD_UNROLL
    for (std::size_t i = 0; i < side; ++i) std::memcpy(&rows[i], from + static_cast<std::ptrdiff_t>(i) * from_row, 64);
    WEFT_SIMD_UNROLL
    for (std::size_t step = 1; step < side; step *= 2) {
      WEFT_SIMD_UNROLL
      for (std::size_t i = 0; i < side / 2; ++i) {
        next[2 * i] = __builtin_shufflevector(rows[i], rows[i + side / 2], static_cast<int>((I % 2) * side + I / 2)...);
        next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + side / 2], static_cast<int>((I % 2) * side + side / 2 + I / 2)...);
      }
      WEFT_SIMD_UNROLL
      for (std::size_t i = 0; i < side; ++i) rows[i] = next[i];
    }
    WEFT_SIMD_UNROLL
    for (std::size_t i = 0; i < side; ++i) std::memcpy(to + static_cast<std::ptrdiff_t>(i) * to_row, &rows[i], 64);
  }
};
#endif

/// Squares of `side` elements with rows and columns exchanged: as wide as a cache line, or as 16 bytes.
template <instruction_set S, std::size_t Size> struct exchanged_square {
  static constexpr std::int64_t side = static_cast<std::int64_t>(64 / Size);
  WEFT_SIMD_INLINE static void run(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row) {
#if WEFT_HAS_SHUFFLES
    if constexpr (S == instruction_set::avx512 && Size >= 4) {
      exchanged_lines<Size>::run(from, from_row, to, to_row, std::make_index_sequence<64 / Size>());
    } else {
      using block = exchanged_block<Size, S == instruction_set::avx512 ? 4 : S == instruction_set::avx2 ? 2 : 1>;
      constexpr auto size = static_cast<std::int64_t>(Size);
      for (std::int64_t i = 0; i < side; i += static_cast<std::int64_t>(block::whole))
        for (std::int64_t k = 0; k < side; k += static_cast<std::int64_t>(block::lanes))
          block::run(from + i * from_row + k * size, from_row, to + k * to_row + i * size, to_row, std::make_index_sequence<block::whole>(), std::make_index_sequence<block::lanes * 2>());
    }
#else
    exchange_plain<Size>(from, from_row, to, to_row, side, side);
#endif
  }
};
template <std::size_t Size> struct exchanged_small_square {
  static constexpr std::int64_t side = static_cast<std::int64_t>(16 / Size);
  WEFT_SIMD_INLINE static void run(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row) {
#if WEFT_HAS_SHUFFLES
    exchanged_block<Size, 1>::run(from, from_row, to, to_row, std::make_index_sequence<16 / Size>(), std::make_index_sequence<32 / Size>());
#else
    exchange_plain<Size>(from, from_row, to, to_row, side, side);
#endif
  }
};

/// A matrix with rows and columns exchanged; rows of both are contiguous, their distances are bytes. The last squares of a row or column overlap those before them.
template <std::size_t Size> struct exchange_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row, std::int64_t rows, std::int64_t columns) {
    using square = exchanged_square<S, Size>;
    using small_square = exchanged_small_square<Size>;
    if (rows >= square::side && columns >= square::side) cover<square>(from, from_row, to, to_row, rows, columns);
    else if (rows >= small_square::side && columns >= small_square::side) cover<small_square>(from, from_row, to, to_row, rows, columns);
    else exchange_plain<Size>(from, from_row, to, to_row, rows, columns);
  }

 private:
  // Squares follow each other along long rows, which the processor then fetches ahead, or down long columns.
  template <class Square> WEFT_SIMD_INLINE static void cover(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row, std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t side = Square::side, size = static_cast<std::int64_t>(Size);
    const bool along_rows = columns >= rows;
    const std::int64_t outer = along_rows ? rows : columns, inner = along_rows ? columns : rows;
    for (std::int64_t i = 0; i < outer; i += side)
      for (std::int64_t k = 0; k < inner; k += side) {
        const std::int64_t first = i < outer - side ? i : outer - side, second = k < inner - side ? k : inner - side;
        const std::int64_t row = along_rows ? first : second, column = along_rows ? second : first;
        Square::run(from + row * from_row + column * size, from_row, to + column * to_row + row * size, to_row);
      }
  }
};
#undef WEFT_HAS_SHUFFLES

/// What is copied: axes from the outermost to the innermost, each with its steps in elements through source and target. Axes of one element vanish, those that
/// continue each other become one, so 63 are enough. Steps may be negative, those of the source 0.
class strided_copy {
 public:
  void add(std::int64_t extent, std::int64_t from_step, std::int64_t to_step) noexcept {
    if (extent == 1 || empty_) return;
    empty_ = extent == 0;
    if (rank_ > 0 && !empty_ && axes_[rank_ - 1].from == extent * from_step && axes_[rank_ - 1].to == extent * to_step) {
      axes_[rank_ - 1] = {axes_[rank_ - 1].extent * extent, static_cast<std::ptrdiff_t>(from_step), static_cast<std::ptrdiff_t>(to_step)};
    } else if (!empty_) {
      axes_[rank_++] = {extent, static_cast<std::ptrdiff_t>(from_step), static_cast<std::ptrdiff_t>(to_step)};
    }
  }
  /// Copies from element `from_at` of the source to element `to_at` of the target on; both have the same dtype.
  void run(element_source from, std::int64_t from_at, element_target to, std::int64_t to_at) const;

 private:
  struct axis {
    std::int64_t extent;
    std::ptrdiff_t from, to;
  };
  static constexpr std::size_t most = 64;
  void run_rows(const axis* axes, std::size_t rank, const std::byte* from, std::byte* to, std::size_t unit, bool strings) const;
  axis axes_[most];
  std::size_t rank_ = 0;
  bool empty_ = false;
};

// 1. Steps become bytes; a contiguous innermost axis of plain elements becomes part of the unit. 2. Where the target's innermost axis strides through the source and another axis is
// contiguous there, the two are exchanged as matrices. 3. Everything else goes row by row.
inline void strided_copy::run(element_source from, std::int64_t from_at, element_target to, std::int64_t to_at) const {
  if (empty_) return;
  axis axes[most];
  std::size_t rank = rank_;
  for (std::size_t i = 0; i < rank; ++i) axes[i] = {axes_[i].extent, axes_[i].from * from.size, axes_[i].to * to.size};
  auto unit = static_cast<std::size_t>(from.size);
  const std::byte* source = from.data + from_at * from.size;
  std::byte* target = to.data + to_at * to.size;
  if (!from.strings && rank > 0 && axes[rank - 1].from == from.size && axes[rank - 1].to == from.size) unit *= static_cast<std::size_t>(axes[--rank].extent);
  if (rank > 1 && !from.strings && unit <= 8 && axes[rank - 1].to == static_cast<std::ptrdiff_t>(unit)) {
    for (std::size_t i = 0; i + 1 < rank; ++i)
      if (axes[i].from == static_cast<std::ptrdiff_t>(unit)) {
        std::swap(axes[i], axes[rank - 2]);
        break;
      }
  }
  run_rows(axes, rank, source, target, unit, from.strings);
}

inline void exchange_units(std::size_t unit, const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row, std::int64_t rows, std::int64_t columns) {
  const instruction_set set = best_instruction_set();
  switch (unit) {
    case 1: return dispatch<exchange_body<1>>(set, from, from_row, to, to_row, rows, columns);
    case 2: return dispatch<exchange_body<2>>(set, from, from_row, to, to_row, rows, columns);
    case 4: return dispatch<exchange_body<4>>(set, from, from_row, to, to_row, rows, columns);
    default: return dispatch<exchange_body<8>>(set, from, from_row, to, to_row, rows, columns);
  }
}

inline void strided_copy::run_rows(const axis* axes, std::size_t rank, const std::byte* from, std::byte* to, std::size_t unit, bool strings) const {
  const auto size = static_cast<std::ptrdiff_t>(unit);
  const bool exchanges = rank > 1 && !strings && (unit == 1 || unit == 2 || unit == 4 || unit == 8) && axes[rank - 1].to == size && axes[rank - 2].from == size;
  const std::size_t outer = rank - (exchanges ? 2 : rank > 0 ? 1 : 0);
  std::int64_t index[most] = {};
  for (;;) {
    if (exchanges) exchange_units(unit, from, axes[rank - 1].from, to, axes[rank - 2].to, axes[rank - 1].extent, axes[rank - 2].extent);
    else if (rank > 0) copy_units(from, axes[rank - 1].from, to, axes[rank - 1].to, axes[rank - 1].extent, unit, strings);
    else copy_units(from, size, to, size, 1, unit, strings);
    std::size_t i = outer;
    for (; i > 0; --i) {
      const axis& a = axes[i - 1];
      from += a.from;
      to += a.to;
      if (++index[i - 1] < a.extent) break;
      from -= a.from * a.extent;
      to -= a.to * a.extent;
      index[i - 1] = 0;
    }
    if (i == 0) return;
  }
}

template <std::size_t Size> WEFT_SIMD_OPTIMIZED void gather_plain(const std::byte* from, const std::int64_t* rows, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * Size, from + rows[i] * static_cast<std::ptrdiff_t>(Size), Size);
}

/// Rows of `length` elements from where `rows` says, one behind the other.
inline void gather_rows(element_source from, const std::int64_t* rows, std::size_t count, std::int64_t length, std::byte* to) {
  const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(length) * from.size;
  if (!from.strings) {
    switch (bytes) {
      case 1: return gather_plain<1>(from.data, rows, count, to);
      case 2: return gather_plain<2>(from.data, rows, count, to);
      case 4: return gather_plain<4>(from.data, rows, count, to);
      case 8: return gather_plain<8>(from.data, rows, count, to);
      case 16: return gather_plain<16>(from.data, rows, count, to);
      default: break;
    }
  }
  for (std::size_t i = 0; i < count; ++i, to += bytes) copy_units(from.data + rows[i] * bytes, from.size, to, from.size, length, static_cast<std::size_t>(from.size), from.strings);
}
/// Rows of `length` elements to where `rows` says, in their order.
inline void scatter_rows(element_source from, const std::int64_t* rows, std::size_t count, std::int64_t length, std::byte* to) {
  const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(length) * from.size;
  for (std::size_t i = 0; i < count; ++i) copy_units(from.data + static_cast<std::ptrdiff_t>(i) * bytes, from.size, to + rows[i] * bytes, from.size, length, static_cast<std::size_t>(from.size), from.strings);
}

/// Steps in elements of a shape in C order. (Products wrap where a shape without elements has huge sizes; nothing is reached by such steps.)
inline std::vector<std::int64_t> steps_of(const shape& s) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(s.rank()), 1);
  for (int i = s.rank() - 2; i >= 0; --i)
    out[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(static_cast<std::uint64_t>(out[static_cast<std::size_t>(i) + 1]) * static_cast<std::uint64_t>(s[i + 1]));
  return out;
}
/// The product of the sizes from dimension `first` up to `last`, which wraps likewise.
inline std::int64_t elements_between(const shape& s, int first, int last) { return shape(s.data() + first, static_cast<std::size_t>(last - first)).elements(); }

/// Copies `count` elements from position `from_at` of one value to position `to_at` of another of the same dtype.
inline void copy_elements(const tensor_value& from, std::int64_t from_at, tensor_value& to, std::int64_t to_at, std::int64_t count) {
  strided_copy copy;
  copy.add(count, 1, 1);
  copy.run(source_of(from), from_at, target_of(to), to_at);
}

/// Gives every element of `out` the one of `value`, which has the same dtype.
inline void fill_elements(tensor_value& out, const tensor_value& value) {
  const auto count = static_cast<std::size_t>(out.elements());
  if (out.dtype() == dtype::string) {
    std::fill_n(out.mutable_data<std::string>(), count, *value.data<std::string>());
  } else if (count > 0) {
    const std::size_t size = size_of(out.dtype());
    std::byte* to = out.mutable_raw_data();
    std::memcpy(to, value.raw_data(), size);
    for (std::size_t filled = 1; filled < count; filled *= 2) std::memcpy(to + filled * size, to, std::min(filled, count - filled) * size);
  }
}

/// Zeros, or the empty strings that a new value has.
inline void clear_elements(tensor_value& out) {
  if (out.dtype() != dtype::string) std::memset(out.mutable_raw_data(), 0, out.bytes());
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
