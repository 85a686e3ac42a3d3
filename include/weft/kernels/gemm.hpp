#ifndef WEFT_KERNELS_GEMM_HPP
#define WEFT_KERNELS_GEMM_HPP
// Matrix product C = op(A) op(B) of row-major matrices. Float and double go through packed panels and a micro-kernel in vector
// registers, compiled per instruction set; integers wrap and take a plain blocked loop; 16-bit floats are computed in float.

#include <weft/kernels/loops.hpp>

#include <memory>
#include <new>
#include <utility>

namespace weft::detail {

/// Whether a matrix enters a product as it is stored or transposed.
enum class transposition : unsigned char { none, transposed };

/// A stored matrix: rows lie `stride` elements apart.
template <class T> struct matrix_view {
  T* data;
  std::size_t stride;
  transposition order = transposition::none;
};

/// The extents of a product, op(A) being [m, k], op(B) [k, n] and C [m, n].
struct gemm_extents {
  std::size_t m, n, k;
};

#if WEFT_HAS_KERNEL_BODIES

WEFT_SIMD_BEGIN

/// Register tile of a micro-kernel: `rows` rows, or `few_rows` where no more are left, and `columns` columns in two vectors of `bytes`
/// bytes.
template <instruction_set S, class T> struct gemm_tile {
  static constexpr std::size_t bytes = S == instruction_set::avx512 ? 64 : S == instruction_set::avx2 ? 32 : 16;
  static constexpr std::size_t rows = S == instruction_set::avx512 ? 12 : S == instruction_set::avx2 ? 6 : 4;
  static constexpr std::size_t few_rows = S == instruction_set::avx2 ? 2 : 4;
  static constexpr std::size_t lanes = bytes / sizeof(T), columns = 2 * lanes;
};

/// One tile of C: a packed panel of A (`Rows` values for each k) times a panel of B whose rows lie b_stride apart.
template <class T> struct gemm_step {
  const T* a;
  const T* b;
  T* c;
  std::size_t k, b_stride, c_stride, rows, columns;
  bool accumulate;
};

#if defined(__GNUC__) || defined(__clang__)
template <instruction_set S, class T, std::size_t Rows>
WEFT_SIMD_CONTRACTED __attribute__((always_inline)) inline void gemm_micro_kernel(const gemm_step<T>& step) {
  WEFT_SIMD_CONTRACT
  using tile = gemm_tile<S, T>;
  typedef T vector __attribute__((vector_size(tile::bytes)));
  for (std::size_t i = 0; i < step.rows; ++i) {  // C is wanted after the loop only: it comes meanwhile
    __builtin_prefetch(step.c + i * step.c_stride, 1);
    __builtin_prefetch(step.c + i * step.c_stride + step.columns - 1, 1);
  }
  vector sums[Rows][2] = {};
  const T* a = step.a;
  const T* b = step.b;
  for (std::size_t p = 0; p < step.k; ++p, a += Rows, b += step.b_stride) {
    vector b0, b1;
    std::memcpy(&b0, b, sizeof b0);
    std::memcpy(&b1, b + tile::lanes, sizeof b1);
    WEFT_SIMD_UNROLL
    for (std::size_t i = 0; i < Rows; ++i) {
      sums[i][0] += a[i] * b0;
      sums[i][1] += a[i] * b1;
    }
  }
  if (step.rows == Rows && step.columns == tile::columns) {
    WEFT_SIMD_UNROLL
    for (std::size_t i = 0; i < Rows; ++i) {
      vector c0, c1;
      T* c = step.c + i * step.c_stride;
      if (step.accumulate) {
        std::memcpy(&c0, c, sizeof c0);
        std::memcpy(&c1, c + tile::lanes, sizeof c1);
        sums[i][0] += c0;
        sums[i][1] += c1;
      }
      std::memcpy(c, &sums[i][0], sizeof c0);
      std::memcpy(c + tile::lanes, &sums[i][1], sizeof c1);
    }
    return;
  }
  T edge[Rows * tile::columns];
  WEFT_SIMD_UNROLL
  for (std::size_t i = 0; i < Rows; ++i) std::memcpy(edge + i * tile::columns, sums[i], sizeof sums[i]);
  for (std::size_t i = 0; i < step.rows; ++i) {
    T* c = step.c + i * step.c_stride;
    const T* from = edge + i * tile::columns;
    for (std::size_t j = 0; j < step.columns; ++j) c[j] = step.accumulate ? c[j] + from[j] : from[j];
  }
}

/// The same for a panel of B of which no more than the first vector is wanted.
template <instruction_set S, class T, std::size_t Rows>
WEFT_SIMD_CONTRACTED __attribute__((always_inline)) inline void gemm_narrow_kernel(const gemm_step<T>& step) {
  WEFT_SIMD_CONTRACT
  constexpr std::size_t lanes = gemm_tile<S, T>::lanes;
  typedef T vector __attribute__((vector_size(gemm_tile<S, T>::bytes)));
  vector sums[Rows] = {};
  const T* a = step.a;
  const T* b = step.b;
  for (std::size_t p = 0; p < step.k; ++p, a += Rows, b += step.b_stride) {
    vector row;
    std::memcpy(&row, b, sizeof row);
    WEFT_SIMD_UNROLL
    for (std::size_t i = 0; i < Rows; ++i) sums[i] += a[i] * row;
  }
  T all[Rows * lanes];
  WEFT_SIMD_UNROLL
  for (std::size_t i = 0; i < Rows; ++i) std::memcpy(all + i * lanes, &sums[i], sizeof sums[i]);
  for (std::size_t i = 0; i < step.rows; ++i) {
    T* c = step.c + i * step.c_stride;
    const T* from = all + i * lanes;
    if (!step.accumulate && step.columns == lanes) std::memcpy(c, from, sizeof(vector));
    else
      for (std::size_t j = 0; j < step.columns; ++j) c[j] = step.accumulate ? c[j] + from[j] : from[j];
  }
}
#else
template <instruction_set S, class T, std::size_t Rows>
inline void gemm_micro_kernel(const gemm_step<T>& step) {
  constexpr std::size_t columns = gemm_tile<S, T>::columns;
  T sums[Rows][columns] = {};
  for (std::size_t p = 0; p < step.k; ++p) {
    for (std::size_t i = 0; i < Rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) sums[i][j] += step.a[p * Rows + i] * step.b[p * step.b_stride + j];
    }
  }
  for (std::size_t i = 0; i < step.rows; ++i) {
    T* c = step.c + i * step.c_stride;
    for (std::size_t j = 0; j < step.columns; ++j) c[j] = step.accumulate ? c[j] + sums[i][j] : sums[i][j];
  }
}
#endif

template <class T, std::size_t Rows>
WEFT_SIMD_CONTRACTED void gemm_portable(const gemm_step<T>& step) {
  gemm_micro_kernel<instruction_set::portable, T, Rows>(step);
}

#if WEFT_SIMD_X86
template <class T, std::size_t Rows>
WEFT_SIMD_CONTRACTED WEFT_SIMD_AVX2 void gemm_avx2(const gemm_step<T>& step) {
  gemm_micro_kernel<instruction_set::avx2, T, Rows>(step);
}

template <class T, std::size_t Rows>
WEFT_SIMD_CONTRACTED WEFT_SIMD_AVX512 void gemm_narrow_avx512(const gemm_step<T>& step) {
  gemm_narrow_kernel<instruction_set::avx512, T, Rows>(step);
}

template <class T, std::size_t Rows>
WEFT_SIMD_CONTRACTED WEFT_SIMD_AVX512 void gemm_avx512(const gemm_step<T>& step) {
  gemm_micro_kernel<instruction_set::avx512, T, Rows>(step);
}
#endif

WEFT_SIMD_END

/// The micro-kernels of a set: for whole panels of A, for a last panel of at most few_rows rows, and for whole panels of A where at most half of the columns are left.
template <class T> struct gemm_kernels {
  std::size_t rows, few_rows, columns;
  void (*whole)(const gemm_step<T>&);
  void (*few)(const gemm_step<T>&);
  void (*narrow)(const gemm_step<T>&);

  void run(const gemm_step<T>& step) const { (step.rows <= few_rows ? few : 2 * step.columns <= columns ? narrow : whole)(step); }

  std::size_t padded(std::size_t row_count) const noexcept { return row_count <= few_rows ? few_rows : rows; }
};

template <class T>
gemm_kernels<T> select_gemm([[maybe_unused]] instruction_set set) noexcept {
#if WEFT_SIMD_X86
  if (set == instruction_set::avx512) {
    using tile = gemm_tile<instruction_set::avx512, T>;
    return {tile::rows, tile::few_rows, tile::columns, &gemm_avx512<T, tile::rows>, &gemm_avx512<T, tile::few_rows>, &gemm_narrow_avx512<T, tile::rows>};
  }
  if (set == instruction_set::avx2) {
    using tile = gemm_tile<instruction_set::avx2, T>;
    return {tile::rows, tile::few_rows, tile::columns, &gemm_avx2<T, tile::rows>, &gemm_avx2<T, tile::few_rows>, &gemm_avx2<T, tile::rows>};
  }
#endif
  using tile = gemm_tile<instruction_set::portable, T>;
  return {tile::rows, tile::few_rows, tile::columns, &gemm_portable<T, tile::rows>, &gemm_portable<T, tile::few_rows>, &gemm_portable<T, tile::rows>};
}

/// A matrix as op() presents it: element (i, j) is data[i * row + j * column].
template <class T> struct strided_matrix {
  const T* data;
  std::size_t row, column;

  explicit strided_matrix(const matrix_view<const T>& view) noexcept : data(view.data), row(view.stride), column(1) {
    if (view.order == transposition::transposed) std::swap(row, column);
  }
  const T* at(std::size_t i, std::size_t j) const noexcept { return data + i * row + j * column; }
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define WEFT_GEMM_SHUFFLE 1
#endif
#endif

#if defined(WEFT_GEMM_SHUFFLE)
/// out[j * stride + i] = from[i * step + j] for four rows and columns.
WEFT_SIMD_CONTRACTED inline void transpose_block(const float* from, std::size_t step, float* out, std::size_t stride) {
  typedef float vector __attribute__((vector_size(16)));
  vector rows[4];
  for (std::size_t i = 0; i < 4; ++i) std::memcpy(&rows[i], from + i * step, sizeof rows[i]);
  const vector low02 = __builtin_shufflevector(rows[0], rows[2], 0, 4, 1, 5);
  const vector high02 = __builtin_shufflevector(rows[0], rows[2], 2, 6, 3, 7);
  const vector low13 = __builtin_shufflevector(rows[1], rows[3], 0, 4, 1, 5);
  const vector high13 = __builtin_shufflevector(rows[1], rows[3], 2, 6, 3, 7);
  const vector columns[4] = {__builtin_shufflevector(low02, low13, 0, 4, 1, 5), __builtin_shufflevector(low02, low13, 2, 6, 3, 7),
                             __builtin_shufflevector(high02, high13, 0, 4, 1, 5), __builtin_shufflevector(high02, high13, 2, 6, 3, 7)};
  for (std::size_t j = 0; j < 4; ++j) std::memcpy(out + j * stride, &columns[j], sizeof columns[j]);
}
#endif

/// Copies rows of a size that the compiler knows to behind each other.
template <std::size_t Bytes, class T>
WEFT_SIMD_CONTRACTED void pack_rows(const T* from, std::size_t along, std::size_t rows, T* out) {
  for (std::size_t p = 0; p < rows; ++p) std::memcpy(out + p * (Bytes / sizeof(T)), from + p * along, Bytes);
}

/// Writes `size` vectors of `length` elements, `step` apart, so that their elements of one index lie together, padded with zeros to
/// `padded`.
template <class T>
WEFT_SIMD_CONTRACTED void pack_panel(const T* from, std::size_t step, std::size_t along, std::size_t size, std::size_t length,
                                     std::size_t padded, T* out) {
  if (step == 1) {
    if (size == padded && size * sizeof(T) == 48) return pack_rows<48>(from, along, length, out);
    if (size == padded && size * sizeof(T) == 128) return pack_rows<128>(from, along, length, out);
    for (std::size_t p = 0; p < length; ++p) {
      std::memcpy(out + p * padded, from + p * along, size * sizeof(T));
      if (size < padded) std::memset(static_cast<void*>(out + p * padded + size), 0, (padded - size) * sizeof(T));
    }
    return;
  }
  std::size_t i = 0;
#if defined(WEFT_GEMM_SHUFFLE)
  if constexpr (std::is_same_v<T, float>) {
    for (; along == 1 && i + 4 <= size; i += 4) {
      std::size_t p = 0;
      for (; p + 4 <= length; p += 4) transpose_block(from + i * step + p, step, out + p * padded + i, padded);
      for (; p < length; ++p) {
        for (std::size_t row = i; row < i + 4; ++row) out[p * padded + row] = from[row * step + p];
      }
    }
  }
#endif
  for (; i < padded; ++i) {
    for (std::size_t p = 0; p < length; ++p) out[p * padded + i] = i < size ? from[i * step + p * along] : T(0);
  }
}

/// Memory for panels, aligned to cache lines. Each thread keeps its own from call to call (at most 3 MiB), since the system takes as long
/// to hand out fresh pages as a small product takes.
class gemm_scratch {
 public:
  gemm_scratch() = default;
  gemm_scratch(const gemm_scratch&) = delete;
  gemm_scratch& operator=(const gemm_scratch&) = delete;
  ~gemm_scratch() { ::operator delete(data_, std::align_val_t(64)); }

  /// At least `bytes` of uninitialised memory, valid until the next call.
  void* reserve(std::size_t bytes) {
    if (bytes > size_) {
      ::operator delete(data_, std::align_val_t(64));
      data_ = nullptr;
      size_ = 0;
      data_ = ::operator new(bytes, std::align_val_t(64));
      size_ = bytes;
    }
    return data_;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

inline void* thread_gemm_scratch(std::size_t bytes) {
  thread_local gemm_scratch scratch;
  return scratch.reserve(bytes);
}

inline constexpr std::size_t smaller(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }
inline constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept { return (value + unit - 1) / unit * unit; }

/// Largest block extents: blocks of A and B fit the second-level cache together, and C is read and written once per 512 of k.
inline constexpr std::size_t gemm_k_block = 512, gemm_m_block = 180, gemm_n_block = 512;

/// The extent of the equal blocks, multiples of `unit` and at most `most`, into which `extent` is cut.
inline constexpr std::size_t block_extent(std::size_t extent, std::size_t most, std::size_t unit) noexcept {
  const std::size_t blocks = (extent + most - 1) / most;
  return blocks == 0 ? unit : round_up((extent + blocks - 1) / blocks, unit);
}

/// A product in blocks of columns, of k, and of rows. A block of B is packed once, a block of A once per block of columns; with few rows, B
/// is read where it lies, since packing would cost more than it saves.
template <class T> class packed_gemm {
 public:
  packed_gemm(const gemm_extents& extents, const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c,
              instruction_set set)
      : extents_(extents), a_(a), b_(b), c_(c), tile_(select_gemm<T>(set)) {
    m_block_ = block_extent(extents.m, gemm_m_block, tile_.rows);
    n_block_ = block_extent(extents.n, gemm_n_block, tile_.columns);
    k_block_ = block_extent(extents.k, gemm_k_block, 1);
    b_in_place_ = b_.column == 1 && extents.m <= 2 * tile_.rows;
    const std::size_t b_columns = b_in_place_ ? tile_.columns : n_block_;
    a_panels_ = static_cast<T*>(thread_gemm_scratch((m_block_ + b_columns) * k_block_ * sizeof(T)));
    b_panels_ = a_panels_ + m_block_ * k_block_;
  }

  void run() const {
    for (std::size_t jc = 0; jc < extents_.n; jc += n_block_) {
      const std::size_t n = smaller(extents_.n - jc, n_block_);
      for (std::size_t pc = 0; pc < extents_.k; pc += k_block_) {
        const std::size_t k = smaller(extents_.k - pc, k_block_);
        if (!b_in_place_) pack_b(pc, k, jc, n);
        for (std::size_t ic = 0; ic < extents_.m; ic += m_block_) {
          const std::size_t m = smaller(extents_.m - ic, m_block_);
          pack_a(ic, m, pc, k);
          for (std::size_t j = 0; j < n; j += tile_.columns) {
            run_panel(ic, m, pc, k, jc + j, smaller(n - j, tile_.columns), b_in_place_ ? 0 : j * k);
          }
        }
      }
    }
  }

 private:
  void pack_a(std::size_t ic, std::size_t m, std::size_t pc, std::size_t k) const {
    for (std::size_t i = 0; i < m; i += tile_.rows) {
      const std::size_t rows = smaller(m - i, tile_.rows);
      pack_panel(a_.at(ic + i, pc), a_.row, a_.column, rows, k, tile_.padded(rows), a_panels_ + i * k);
    }
  }
  void pack_b(std::size_t pc, std::size_t k, std::size_t jc, std::size_t n) const {
    for (std::size_t j = 0; j < n; j += tile_.columns) {
      pack_panel(b_.at(pc, jc + j), b_.column, b_.row, smaller(n - j, tile_.columns), k, tile_.columns, b_panels_ + j * k);
    }
  }
  // All panels of a block of A times one panel of B, which is packed at `offset` or lies in place.
  void run_panel(std::size_t ic, std::size_t m, std::size_t pc, std::size_t k, std::size_t j, std::size_t columns,
                 std::size_t offset) const {
    gemm_step<T> step{nullptr, b_panels_ + offset, nullptr, k, tile_.columns, c_.stride, 0, columns, pc > 0};
    if (b_in_place_ && columns == tile_.columns) {
      step.b = b_.at(pc, j);
      step.b_stride = b_.row;
    } else if (b_in_place_) {
      pack_b(pc, k, j, columns);
    }
    for (std::size_t i = 0; i < m; i += tile_.rows) {
      step.a = a_panels_ + i * k;
      step.c = c_.data + (ic + i) * c_.stride + j;
      step.rows = smaller(m - i, tile_.rows);
      tile_.run(step);
    }
  }

  gemm_extents extents_;
  strided_matrix<T> a_, b_;
  matrix_view<T> c_;
  gemm_kernels<T> tile_;
  std::size_t m_block_, n_block_, k_block_;
  bool b_in_place_;
  T* a_panels_;
  T* b_panels_;
};

WEFT_SIMD_BEGIN

/// row[j] += a * b[j].
template <class T> struct add_scaled_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(T a, const T* b, T* row, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) row[i] = element::add::apply<S, T>(row[i], element::mul::apply<S, T>(a, b[i]));
  }
};

WEFT_SIMD_END

/// A product of unsigned integers, row by row in blocks of k and of columns; a transposed B is first copied block by block.
template <class T>
void plain_gemm(const gemm_extents& extents, const matrix_view<const T>& a_view, const matrix_view<const T>& b_view,
                const matrix_view<T>& c, instruction_set set) {
  constexpr std::size_t n_block = 512, k_block = 64;
  const strided_matrix<T> a(a_view), b(b_view);
  const auto add_scaled = select<add_scaled_body<T>, instruction_set::avx2, T, const T*, T*, std::size_t>(set);
  T* panel = b.column == 1 ? nullptr : static_cast<T*>(thread_gemm_scratch(n_block * k_block * sizeof(T)));
  for (std::size_t i = 0; i < extents.m; ++i) std::memset(static_cast<void*>(c.data + i * c.stride), 0, extents.n * sizeof(T));
  for (std::size_t jc = 0; jc < extents.n; jc += n_block) {
    const std::size_t n = smaller(extents.n - jc, n_block);
    for (std::size_t pc = 0; pc < extents.k; pc += k_block) {
      const std::size_t k = smaller(extents.k - pc, k_block);
      for (std::size_t j = 0; j < n && panel; ++j) {
        for (std::size_t p = 0; p < k; ++p) panel[p * n + j] = *b.at(pc + p, jc + j);
      }
      for (std::size_t i = 0; i < extents.m; ++i) {
        T* row = c.data + i * c.stride + jc;
        for (std::size_t p = 0; p < k; ++p) add_scaled(*a.at(i, pc + p), panel ? panel + p * n : b.at(pc + p, jc), row, n);
      }
    }
  }
}

/// 16-bit floats: the operands are widened, the result is rounded once.
template <class T>
void float16_gemm(const gemm_extents& extents, const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c,
                  instruction_set set) {
  const auto widen = [set](const matrix_view<const T>& view, std::size_t rows, std::size_t columns, float* out) {
    if (view.order == transposition::transposed) std::swap(rows, columns);
    for (std::size_t i = 0; i < rows; ++i) cast_loop<float>(view.data + i * view.stride, out + i * columns, columns, set);
    return matrix_view<const float>{out, columns, view.order};
  };
  const std::unique_ptr<float[]> wide(new float[extents.m * extents.k + extents.k * extents.n + extents.m * extents.n]);
  float* const wide_b = wide.get() + extents.m * extents.k;
  float* const wide_c = wide_b + extents.k * extents.n;
  packed_gemm<float>(extents, widen(a, extents.m, extents.k, wide.get()), widen(b, extents.k, extents.n, wide_b),
                     matrix_view<float>{wide_c, extents.n}, set).run();
  for (std::size_t i = 0; i < extents.m; ++i) {
    cast_loop<T>(static_cast<const float*>(wide_c + i * extents.n), c.data + i * c.stride, extents.n, set);
  }
}

/// C = op(A) op(B) in the calling thread; C overlaps neither operand and is stored, not transposed. Extents may be zero: with k = 0, C
/// is 0.
template <class T>
void gemm(const gemm_extents& extents, const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c,
          instruction_set set = best_instruction_set()) {
  if (extents.m == 0 || extents.n == 0) return;
  if (extents.k == 0) {
    for (std::size_t i = 0; i < extents.m; ++i) std::memset(static_cast<void*>(c.data + i * c.stride), 0, extents.n * sizeof(T));
  } else if constexpr (is_float16_v<T>) {
    float16_gemm(extents, a, b, c, set);
  } else if constexpr (std::is_floating_point_v<T>) {
    packed_gemm<T>(extents, a, b, c, set).run();
  } else {
    using U = unsigned_of<T>;
    plain_gemm<U>(extents, {reinterpret_cast<const U*>(a.data), a.stride, a.order}, {reinterpret_cast<const U*>(b.data), b.stride, b.order},
                  {reinterpret_cast<U*>(c.data), c.stride}, set);
  }
}

/// The same, cut along the longer side of C into up to `threads` parts, which `parallel_for(count, function)` runs: it calls function(i)
/// once for each i below count, in any threads, and returns when all are done. Results do not depend on the number of threads.
template <class T, class ParallelFor>
void gemm(const gemm_extents& extents, const matrix_view<const T>& a, const matrix_view<const T>& b, const matrix_view<T>& c,
          std::size_t threads, ParallelFor&& parallel_for, instruction_set set = best_instruction_set()) {
  constexpr std::size_t unit = 48, least_work = 1U << 19;  // unit: a multiple of every tile's rows
  const bool by_rows = extents.m >= extents.n;
  const std::size_t side = by_rows ? extents.m : extents.n, work = extents.m * extents.n * (extents.k == 0 ? 1 : extents.k);
  const std::size_t wanted = smaller(threads, work / least_work);
  if (wanted < 2) return gemm(extents, a, b, c, set);
  const std::size_t part = round_up((side + wanted - 1) / wanted, by_rows ? unit : 64);
  parallel_for((side + part - 1) / part, [&](std::size_t index) {
    const std::size_t begin = index * part, size = smaller(side - begin, part);
    matrix_view<const T> a_part = a, b_part = b;
    if (by_rows) a_part.data = strided_matrix<T>(a).at(begin, 0);
    else b_part.data = strided_matrix<T>(b).at(0, begin);
    const gemm_extents extents_part{by_rows ? size : extents.m, by_rows ? extents.n : size, extents.k};
    gemm(extents_part, a_part, b_part, matrix_view<T>{c.data + begin * (by_rows ? c.stride : 1), c.stride}, set);
  });
}

#endif

}  // namespace weft::detail

#endif
