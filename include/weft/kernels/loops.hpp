#ifndef WEFT_KERNELS_LOOPS_HPP
#define WEFT_KERNELS_LOOPS_HPP
// Elementwise loops over contiguous arrays: unary, binary with broadcasting, and casts. `F` is one of the types in `element`.
// The output may be an input itself, if both have the same elements of the same size; it must not overlap one in any other way.
// Types and functions that gain by it run in the body of the processor's instruction set, the others in the portable one.

#include <weft/kernels/conversions.hpp>

#include <optional>

namespace weft::detail {

/// What a loop has to report.
enum class loop_status : unsigned char { ok, division_by_zero };

/// Two broadcast operands over two axes: the inner one is contiguous or, for an operand that does not vary there, one element.
struct binary_grid {
  std::size_t rows, columns;
  std::size_t a_row, b_row;  // distance between rows, in elements
  bool a_varies, b_varies;   // along a row
};

/// How two shapes broadcast, with axes that behave alike merged. Each axis that is left has at least two elements, so 63 are enough.
struct broadcast_plan {
  static constexpr std::size_t max_rank = 63;
  std::size_t count = 1;  // elements of the result
  std::size_t rank = 0;
  std::size_t extents[max_rank];
  std::size_t a_strides[max_rank], b_strides[max_rank];  // 0 where an operand does not vary

  /// Elements of the second operand, 0 if the result has none.
  std::size_t b_count() const noexcept;
};

#if WEFT_HAS_KERNEL_BODIES

/// Plans the broadcast of two shapes, nothing if they do not fit; `out_dims`, if given, receives max(a_rank, b_rank) extents.
std::optional<broadcast_plan> plan_broadcast(const std::int64_t* a_dims, std::size_t a_rank, const std::int64_t* b_dims, std::size_t b_rank,
                                             std::int64_t* out_dims = nullptr);

// 1. Align the shapes at their last axis and find each axis' extent. 2. Drop axes of one element. 3. Merge an axis into the one after
// it if the same operands vary along both. Strides follow from which operand varies.
inline std::optional<broadcast_plan> plan_broadcast(const std::int64_t* a_dims, std::size_t a_rank, const std::int64_t* b_dims,
                                                    std::size_t b_rank, std::int64_t* out_dims) {
  broadcast_plan plan;
  const std::size_t rank = a_rank > b_rank ? a_rank : b_rank;
  std::size_t a_stride = 1, b_stride = 1;
  bool a_before = false, b_before = false, empty = false;
  for (std::size_t i = 0; i < a_rank; ++i) empty = empty || a_dims[i] == 0;
  for (std::size_t i = 0; i < b_rank; ++i) empty = empty || b_dims[i] == 0;
  for (std::size_t back = 1; back <= rank; ++back) {
    const std::int64_t a = back <= a_rank ? a_dims[a_rank - back] : 1, b = back <= b_rank ? b_dims[b_rank - back] : 1;
    if (a != b && a != 1 && b != 1) return std::nullopt;
    const auto extent = static_cast<std::size_t>(a == 1 ? b : a);
    if (out_dims) out_dims[rank - back] = static_cast<std::int64_t>(extent);
    if (extent == 1 || empty) continue;
    const bool a_varies = a != 1, b_varies = b != 1;
    if (plan.rank > 0 && a_varies == a_before && b_varies == b_before) {
      plan.extents[plan.rank - 1] *= extent;
    } else if (plan.rank == broadcast_plan::max_rank) {
      return std::nullopt;  // more than 2^63 elements
    } else {
      plan.extents[plan.rank] = extent;
      plan.a_strides[plan.rank] = a_varies ? a_stride : 0;
      plan.b_strides[plan.rank] = b_varies ? b_stride : 0;
      ++plan.rank;
    }
    a_stride *= a_varies ? extent : 1;
    b_stride *= b_varies ? extent : 1;
    plan.count *= extent;
    a_before = a_varies;
    b_before = b_varies;
  }
  if (empty) plan.count = 0;
  return plan;
}

inline std::size_t broadcast_plan::b_count() const noexcept {
  std::size_t elements = count > 0 ? 1 : 0;
  for (std::size_t axis = 0; axis < rank; ++axis) elements *= b_strides[axis] != 0 ? extents[axis] : 1;
  return elements;
}

/// The same with the operands exchanged.
inline binary_grid turned(const binary_grid& grid) noexcept {
  return {grid.rows, grid.columns, grid.b_row, grid.a_row, grid.b_varies, grid.a_varies};
}
inline broadcast_plan turned(const broadcast_plan& plan) noexcept {
  broadcast_plan result = plan;
  for (std::size_t axis = 0; axis < plan.rank; ++axis) {
    result.a_strides[axis] = plan.b_strides[axis];
    result.b_strides[axis] = plan.a_strides[axis];
  }
  return result;
}

/// Calls `visit(grid, a_offset, b_offset, out_offset)` for each grid of a plan; the plan's axes run from the innermost outward.
template <class Visit>
void for_each_grid(const broadcast_plan& plan, Visit visit) {
  if (plan.count == 0) return;
  binary_grid grid{1, 1, 0, 0, true, true};
  if (plan.rank > 0) {
    grid.columns = plan.extents[0];
    grid.a_varies = plan.a_strides[0] != 0;
    grid.b_varies = plan.b_strides[0] != 0;
  }
  if (plan.rank > 1) {
    grid.rows = plan.extents[1];
    grid.a_row = plan.a_strides[1];
    grid.b_row = plan.b_strides[1];
  }
  std::size_t index[broadcast_plan::max_rank] = {};
  std::size_t a = 0, b = 0;
  for (std::size_t out = 0; out < plan.count; out += grid.rows * grid.columns) {
    visit(grid, a, b, out);
    for (std::size_t axis = 2; axis < plan.rank; ++axis) {
      a += plan.a_strides[axis];
      b += plan.b_strides[axis];
      if (++index[axis] < plan.extents[axis]) break;
      a -= plan.a_strides[axis] * plan.extents[axis];
      b -= plan.b_strides[axis] * plan.extents[axis];
      index[axis] = 0;
    }
  }
}

/// The type in which F computes on arrays of T, so that few loops serve all: float for 16-bit floats, int32 for narrower integers, int64
/// for uint32 where the sign makes a difference.
template <class F, class T> constexpr auto loop_type() {
  if constexpr (is_float16_v<T>) return float();
  else if constexpr (std::is_same_v<T, bool> && F::logical) return bool();
  else if constexpr (is_small_integer_v<T>) return std::int32_t();
  else if constexpr (std::is_same_v<T, std::uint32_t> && !F::wraps) return std::int64_t();
  else return T();
}
template <class F, class T> using loop_type_t = decltype(loop_type<F, T>());

/// The type with which a loop of F over T is compiled once for signed and unsigned.
template <class F, class T> using loop_bits_t =
    std::conditional_t<F::wraps && std::is_integral_v<T> && (sizeof(T) >= 4), unsigned_of<T>, T>;

/// The best set for which loops of F are compiled: wide vectors pay for long formulas only, and division of integers has none.
template <class F, class T>
inline constexpr instruction_set loop_limit_v = F::heavy && std::is_floating_point_v<T>          ? instruction_set::avx512
                                                : sizeof(T) >= 4 && !(F::divides && std::is_integral_v<T>) ? instruction_set::avx2
                                                                                                   : instruction_set::portable;

WEFT_SIMD_BEGIN

template <class F, class T, class R> struct binary_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* a, const T* b, R* out, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] = F::template apply<S>(a[i], b[i]);
  }
};

template <class T> struct spread_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(T value, T* out, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] = value;
  }
};

template <class T> struct zero_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, std::size_t count, bool* found) {
    unsigned zeros = 0;
    for (std::size_t i = 0; i < count; ++i) zeros |= in[i] == T(0);
    *found = zeros != 0;
  }
};

/// in * scale + offset, the product being rounded before the addition.
template <class T> struct scale_and_add_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const T* in, T scale, T offset, T* out, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
      const T product = in[i] * scale;
      out[i] = product + offset;
    }
  }
};

WEFT_SIMD_END

/// out[i] = in[i] * scale + offset in one pass, for float and double, with the bits of two passes (but for clang under -ffast-math).
template <class T>
void scale_and_add_loop(const T* in, T scale, T offset, T* out, std::size_t count, instruction_set set = best_instruction_set()) {
  static_assert(std::is_floating_point_v<T>, "scale_and_add_loop takes float or double");
  dispatch<scale_and_add_body<T>, instruction_set::avx2>(set, in, scale, offset, out, count);
}

/// Whether any element is zero.
template <class T>
bool contains_zero(const T* in, std::size_t count) {
  bool found = false;
  run_portable<zero_body<unsigned_of<T>>>(reinterpret_cast<const unsigned_of<T>*>(in), count, &found);
  return found;
}

/// What F makes of elements of T: bool for comparisons, T itself otherwise.
template <class F, class T> using loop_result_t = std::conditional_t<F::compares, bool, T>;

/// A loop over an array, or two, and the result.
template <class T, class R> using unary_function = void (*)(const T*, R*, std::size_t);
template <class T, class R> using binary_function = void (*)(const T*, const T*, R*, std::size_t);

/// Applies a loop over L to arrays of T, block by block.
template <class T, class L>
void convert_unary(unary_function<L, L> function, const T* in, T* out, std::size_t count, instruction_set set) {
  L block[block_size];
  for (std::size_t begin = 0; begin < count; begin += block_size) {
    const std::size_t size = count - begin < block_size ? count - begin : block_size;
    cast_loop<L>(in + begin, block, size, set);
    function(block, block, size);
    cast_loop<T>(static_cast<const L*>(block), out + begin, size, set);
  }
}

/// Applies a loop over two arrays of L to arrays of T, block by block; the result is bool or becomes T again.
template <class T, class L, class R> struct converting_function {
  binary_function<L, R> function;
  instruction_set set;

  void operator()(const T* a, const T* b, std::conditional_t<std::is_same_v<R, bool>, bool, T>* out, std::size_t count) const {
    L left[block_size], right[block_size];
    for (std::size_t begin = 0; begin < count; begin += block_size) {
      const std::size_t size = count - begin < block_size ? count - begin : block_size;
      cast_loop<L>(a + begin, left, size, set);
      cast_loop<L>(b + begin, right, size, set);
      if constexpr (std::is_same_v<R, bool> && !std::is_same_v<L, bool>) {
        function(left, right, out + begin, size);
      } else {
        function(left, right, left, size);
        cast_loop<T>(static_cast<const L*>(left), out + begin, size, set);
      }
    }
  }
};

/// Columns of a row over which an operand that does not vary is spread.
inline constexpr std::size_t spread_size = block_size / 2;

/// One operand of a grid as rows that lie next to each other: the operand itself if it is so, else a block that holds some rows of it.
template <class T> class row_source {
 public:
  row_source(const T* data, bool varies, std::size_t stride, std::size_t columns, std::size_t rows_at_once) noexcept
      : data_(data), stride_(stride), columns_(columns), varies_(varies), direct_(varies && (rows_at_once == 1 || stride == columns)) {}

  /// `rows` rows from `row` on, each from column `begin` on.
  const T* at(std::size_t row, std::size_t rows, std::size_t begin) noexcept {
    if (direct_) return data_ + row * stride_ + begin;
    if (!filled_ || (stride_ != 0 && row != filled_row_)) fill(row, rows);
    return block_;
  }

 private:
  void fill(std::size_t row, std::size_t rows) noexcept {
    const std::size_t size = columns_ < spread_size ? columns_ : spread_size;
    T* out = block_;
    for (std::size_t r = 0; r < rows; ++r, out += size) {
      const T* from = data_ + (row + r) * stride_;
      if (varies_) std::memcpy(static_cast<void*>(out), from, size * sizeof(T));
      else dispatch<spread_body<T>, instruction_set::avx2>(best_instruction_set(), *from, out, size);
    }
    filled_ = true;
    filled_row_ = row;
  }

  const T* data_;
  std::size_t stride_, columns_, filled_row_ = 0;
  bool varies_, direct_, filled_ = false;
  alignas(64) T block_[block_size];
};

/// Runs a loop over a grid: over whole rows, or over several narrow rows at once. Operands that do not vary are spread over a block, so
/// that a loop is compiled for two arrays only.
template <class T, class R, class Function>
void run_grid(Function function, const T* a, const T* b, R* out, const binary_grid& grid) {
  const bool both_vary = grid.a_varies && grid.b_varies;
  if (grid.rows == 1 && both_vary) return function(a, b, out, grid.columns);
  const std::size_t rows_at_once = grid.columns * 2 <= spread_size && grid.columns > 0 ? block_size / grid.columns : 1;
  const std::size_t step = both_vary || grid.columns < spread_size ? grid.columns : spread_size;
  row_source<T> left(a, grid.a_varies, grid.a_row, grid.columns, rows_at_once);
  row_source<T> right(b, grid.b_varies, grid.b_row, grid.columns, rows_at_once);
  for (std::size_t row = 0; row < grid.rows; row += rows_at_once) {
    const std::size_t rows = grid.rows - row < rows_at_once ? grid.rows - row : rows_at_once;
    for (std::size_t begin = 0; begin < grid.columns; begin += step) {
      const std::size_t size = grid.columns - begin < step ? grid.columns - begin : step;
      function(left.at(row, rows, begin), right.at(row, rows, begin), out + row * grid.columns + begin, rows * size);
    }
  }
}

/// out[i] = F(in[i]).
template <class F, class T>
void unary_loop(const T* in, loop_result_t<F, T>* out, std::size_t count, instruction_set set = best_instruction_set()) {
  using L = loop_type_t<F, T>;
  using B = loop_bits_t<F, L>;
  const auto function = select<unary_body<F, B, B>, loop_limit_v<F, B>, const B*, B*, std::size_t>(set);
  if constexpr (std::is_same_v<L, T>) function(reinterpret_cast<const B*>(in), reinterpret_cast<B*>(out), count);
  else convert_unary<T, B>(function, in, out, count, set);
}

/// Runs a loop over all grids of a plan.
template <class T, class R, class Function>
void run_plan(Function function, const T* a, const T* b, R* out, const broadcast_plan& plan) {
  for_each_grid(plan, [&](const binary_grid& grid, std::size_t a_offset, std::size_t b_offset, std::size_t out_offset) {
    run_grid<T, R>(function, a + a_offset, b + b_offset, out + out_offset, grid);
  });
}

/// Runs F over a grid or a plan.
template <class F, class T, class Where>
void run_binary(const T* a, const T* b, loop_result_t<F, T>* out, const Where& where, instruction_set set) {
  using L = loop_type_t<F, T>;
  using B = loop_bits_t<F, L>;
  using R = loop_result_t<F, B>;
  const auto function = select<binary_body<F, B, R>, loop_limit_v<F, B>, const B*, const B*, R*, std::size_t>(set);
  const auto run = [&where](auto loop, auto* left, auto* right, auto* result) {
    if constexpr (std::is_same_v<Where, binary_grid>) run_grid(loop, left, right, result, where);
    else run_plan(loop, left, right, result, where);
  };
  if constexpr (std::is_same_v<L, T>) {
    run(function, reinterpret_cast<const B*>(a), reinterpret_cast<const B*>(b), reinterpret_cast<R*>(out));
  } else {
    run(converting_function<T, B, R>{function, set}, a, b, out);
  }
}

/// out = F(a, b) for operands of equal size, or of which one has a single element.
template <class F, class T>
loop_status binary_loop(const T* a, std::size_t a_count, const T* b, std::size_t b_count, loop_result_t<F, T>* out,
                        instruction_set set = best_instruction_set()) {
  if constexpr (F::divides && std::is_integral_v<T>) {
    if (a_count > 0 && contains_zero(b, b_count)) return loop_status::division_by_zero;
  }
  const bool same = a_count == b_count;
  const binary_grid grid{1, a_count == 1 ? b_count : a_count, 0, 0, same || a_count != 1, same || b_count != 1};
  if constexpr (std::is_base_of_v<element::swapped, F>) run_binary<typename F::other>(b, a, out, turned(grid), set);
  else run_binary<F>(a, b, out, grid, set);
  return loop_status::ok;
}

/// out = F(a, b) for operands of the plan's shapes, out in C order.
template <class F, class T>
loop_status binary_loop(const T* a, const T* b, loop_result_t<F, T>* out, const broadcast_plan& plan,
                        instruction_set set = best_instruction_set()) {
  if constexpr (F::divides && std::is_integral_v<T>) {
    if (contains_zero(b, plan.b_count())) return loop_status::division_by_zero;
  }
  if constexpr (std::is_base_of_v<element::swapped, F>) run_binary<typename F::other>(b, a, out, turned(plan), set);
  else run_binary<F>(a, b, out, plan, set);
  return loop_status::ok;
}

#endif

}  // namespace weft::detail

#endif
