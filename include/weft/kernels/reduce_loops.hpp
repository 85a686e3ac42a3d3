#ifndef WEFT_KERNELS_REDUCE_LOOPS_HPP
#define WEFT_KERNELS_REDUCE_LOOPS_HPP
// Reductions over any axes of a contiguous array: sum, mean, product, maximum, minimum, all, any. Integers wrap; sums of floats are as
// exact as pairwise summation. Axes that behave alike are merged, then the reduced ones go from the innermost outward, each as a view
// [outer, reduced, inner]: neighbouring elements are kept as lanes, whole rows of them are added up, and lanes that belong to the same
// result are folded in halves.

#include <weft/kernels/loops.hpp>

#include <memory>

namespace weft::detail {

/// One axis group of an array: how many elements, and whether they are reduced.
struct reduced_axis {
  std::size_t extent;
  bool reduced;
};

/// An array as alternating groups of kept and reduced axes, outermost first; axes of one element are dropped. `extents` holds at most 63.
struct reduce_plan {
  static constexpr std::size_t max_rank = 63;
  std::size_t rank = 0, in_count = 1, out_count = 1, reduced_count = 1;
  reduced_axis axes[max_rank];
};

#if WEFT_HAS_KERNEL_BODIES

/// Plans the reduction of an array of the given extents over the axes whose flag in `reduced` is set.
reduce_plan plan_reduction(const std::int64_t* dims, const bool* reduced, std::size_t rank);

inline reduce_plan plan_reduction(const std::int64_t* dims, const bool* reduced, std::size_t rank) {
  reduce_plan plan;
  bool empty = false;
  for (std::size_t axis = 0; axis < rank; ++axis) empty = empty || dims[axis] == 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto extent = static_cast<std::size_t>(dims[axis]);
    // An array without elements may have huge extents: they are not multiplied, but for the results that it can still have.
    (reduced[axis] ? plan.reduced_count : plan.out_count) *= extent;
    if (extent == 1 || empty) continue;
    if (plan.rank > 0 && plan.axes[plan.rank - 1].reduced == reduced[axis]) {
      plan.axes[plan.rank - 1].extent *= extent;
    } else {
      plan.axes[plan.rank++] = {extent, reduced[axis]};
    }
  }
  plan.in_count = empty ? 0 : plan.out_count * plan.reduced_count;
  if (empty) plan.rank = 0;
  return plan;
}

/// How two partial results become one, and the result of nothing.
namespace reduction {
struct sum {
  using function = element::add;
  static constexpr bool pairwise = true, divided = false;
  template <class T> static T identity() noexcept { return T(0); }
};
struct mean {  // of integers truncated toward zero; of nothing NaN, or 0 for integers
  using function = element::add;
  static constexpr bool pairwise = true, divided = true;
  template <class T> static T identity() noexcept { return std::numeric_limits<T>::quiet_NaN(); }
};
struct prod {
  using function = element::mul;
  static constexpr bool pairwise = false, divided = false;
  template <class T> static T identity() noexcept { return T(1); }
};
struct max {
  using function = element::maximum;
  static constexpr bool pairwise = false, divided = false;
  template <class T> static T identity() noexcept {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::lowest();
  }
};
struct min {
  using function = element::minimum;
  static constexpr bool pairwise = false, divided = false;
  template <class T> static T identity() noexcept {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::max();
  }
};
struct all {
  using function = element::logical_and;
  static constexpr bool pairwise = false, divided = false;
  template <class T> static T identity() noexcept { return T(true); }
};
struct any {
  using function = element::logical_or;
  static constexpr bool pairwise = false, divided = false;
  template <class T> static T identity() noexcept { return T(false); }
};
}  // namespace reduction

/// Lanes in which a reduction runs, and rows that are added before their sum joins the tree of partial sums.
inline constexpr std::size_t reduce_width = 1024, reduce_block_rows = 64;

WEFT_SIMD_BEGIN

/// lanes[i] = F over `rows` rows of `width` elements that lie `stride` apart, joined to lanes[i] if `accumulate`.
template <class F, class T> struct reduce_rows_body {
  template <instruction_set S>
  WEFT_SIMD_INLINE static void run(const T* in, std::size_t stride, std::size_t rows, T* lanes, std::size_t width, bool accumulate) {
    std::size_t row = 0;
    if (!accumulate) {
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < width; ++i) lanes[i] = in[i];
      row = 1;
    }
    for (; row + 4 <= rows; row += 4) {
      const T* r0 = in + row * stride;
      const T* r1 = r0 + stride;
      const T* r2 = r1 + stride;
      const T* r3 = r2 + stride;
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < width; ++i) {
        const T left = F::template apply<S>(r0[i], r1[i]), right = F::template apply<S>(r2[i], r3[i]);
        lanes[i] = F::template apply<S>(lanes[i], F::template apply<S, T>(left, right));
      }
    }
    for (; row < rows; ++row) {
      const T* next = in + row * stride;
      WEFT_SIMD_INDEPENDENT
      for (std::size_t i = 0; i < width; ++i) lanes[i] = F::template apply<S>(lanes[i], next[i]);
    }
  }
};

/// The same for results of few elements each, one by one.
template <class F, class T> struct reduce_small_body {
  template <instruction_set S>
  WEFT_SIMD_INLINE static void run(const T* in, T* out, std::size_t outer, std::size_t reduced, std::size_t inner) {
    for (std::size_t o = 0; o < outer; ++o, in += reduced * inner, out += inner) {
      for (std::size_t i = 0; i < inner; ++i) {
        T result = in[i];
        for (std::size_t r = 1; r < reduced; ++r) result = F::template apply<S>(result, in[r * inner + i]);
        out[i] = result;
      }
    }
  }
};

WEFT_SIMD_END

/// Most elements of a result that reduce_small_body takes.
inline constexpr std::size_t reduce_small = 32;

template <class T> using reduce_rows_function = void (*)(const T*, std::size_t, std::size_t, T*, std::size_t, bool);
template <class T> using reduce_small_function = void (*)(const T*, T*, std::size_t, std::size_t, std::size_t);

/// Reduces rows to lanes; if pairwise, in blocks whose sums form a binary tree, of which one branch per level is held at a time.
template <class T, bool Pairwise> class lane_reducer {
 public:
  lane_reducer(reduce_rows_function<T> function, reduce_small_function<T> small) noexcept : function_(function), small_(small) {}

  /// `lanes` has room for reduce_width elements. At least one row.
  void run(const T* in, std::size_t stride, std::size_t rows, T* lanes, std::size_t width) {
    if (!Pairwise || rows <= reduce_block_rows) return function_(in, stride, rows, lanes, width, false);
    reserve_branches(rows / reduce_block_rows + 1);
    std::size_t blocks = 0;
    for (std::size_t row = 0; row < rows; row += reduce_block_rows, ++blocks) {
      const std::size_t size = rows - row < reduce_block_rows ? rows - row : reduce_block_rows;
      function_(in + row * stride, stride, size, lanes, width, false);
      std::size_t level = 0;
      for (; (blocks >> level & 1U) != 0; ++level) function_(branch(level), 0, 1, lanes, width, true);
      std::memcpy(branch(level), lanes, width * sizeof(T));
    }
    bool first = true;
    for (std::size_t level = 0; blocks >> level != 0; ++level) {
      if ((blocks >> level & 1U) == 0) continue;
      function_(branch(level), 0, 1, lanes, width, !first);
      first = false;
    }
  }

  /// Reduces the middle of [outer, reduced, inner], reduced * inner being at most reduce_small.
  void run_small(const T* in, T* out, std::size_t outer, std::size_t reduced, std::size_t inner) const {
    small_(in, out, outer, reduced, inner);
  }

  /// lanes[i] = F(lanes[i], other[i]).
  void join(T* lanes, const T* other, std::size_t width) const { function_(other, 0, 1, lanes, width, true); }

 private:
  T* branch(std::size_t level) const noexcept { return branches_.get() + level * reduce_width; }
  void reserve_branches(std::size_t blocks) {
    std::size_t levels = 1;
    while (blocks >> levels != 0) ++levels;
    if (levels > levels_) branches_.reset(new T[levels * reduce_width]);
    levels_ = levels > levels_ ? levels : levels_;
  }

  reduce_rows_function<T> function_;
  reduce_small_function<T> small_;
  std::unique_ptr<T[]> branches_;
  std::size_t levels_ = 0;
};

/// out[i, j] = the reduction over r of in[i, r, j]; no extent is zero.
template <class T, bool Pairwise>
void reduce_middle(lane_reducer<T, Pairwise>& reducer, const T* in, T* out, std::size_t outer, std::size_t reduced, std::size_t inner) {
  if (reduced * inner <= reduce_small) return reducer.run_small(in, out, outer, reduced, inner);
  T lanes[reduce_width];
  for (std::size_t o = 0; o < outer; ++o, in += reduced * inner, out += inner) {
    if (inner * 2 > reduce_width) {
      for (std::size_t begin = 0; begin < inner; begin += reduce_width) {
        const std::size_t width = inner - begin < reduce_width ? inner - begin : reduce_width;
        reducer.run(in + begin, inner, reduced, lanes, width);
        std::memcpy(out + begin, lanes, width * sizeof(T));
      }
      continue;
    }
    // Narrow: several rows make one long row of lanes, which are folded at the end.
    std::size_t together = reduce_width / inner;
    while (together > 1 && together * 8 > reduced) together = (together + 1) / 2;
    const std::size_t width = together * inner, rows = reduced / together, rest = reduced % together * inner;
    reducer.run(in, width, rows, lanes, width);
    if (rest > 0) reducer.join(lanes, in + rows * width, rest);
    while (together > 1) {
      const std::size_t half = (together + 1) / 2;
      reducer.join(lanes, lanes + half * inner, (together - half) * inner);
      together = half;
    }
    std::memcpy(out, lanes, inner * sizeof(T));
  }
}

/// Reduces an array that has elements; T is what its reduction computes in.
template <class R, class T>
void reduce_planned(const T* in, T* out, const reduce_plan& plan, instruction_set set) {
  using F = typename R::function;
  lane_reducer<T, R::pairwise && std::is_floating_point_v<T>> reducer(
      select<reduce_rows_body<F, T>, loop_limit_v<F, T>, const T*, std::size_t, std::size_t, T*, std::size_t, bool>(set),
      &run_portable<reduce_small_body<F, T>, const T*, T*, std::size_t, std::size_t, std::size_t>);
  std::unique_ptr<T[]> parts;
  std::size_t outer = plan.in_count, inner = 1, groups = 0;
  for (std::size_t axis = 0; axis < plan.rank; ++axis) groups += plan.axes[axis].reduced ? 1 : 0;
  if (groups == 0) std::memmove(static_cast<void*>(out), in, plan.in_count * sizeof(T));
  for (std::size_t axis = plan.rank; axis-- > 0;) {
    const std::size_t extent = plan.axes[axis].extent;
    outer /= extent;
    if (!plan.axes[axis].reduced) {
      inner *= extent;
      continue;
    }
    std::unique_ptr<T[]> next(--groups > 0 ? new T[outer * inner] : nullptr);
    reduce_middle(reducer, in, next ? next.get() : out, outer, extent, inner);
    parts = std::move(next);
    in = parts.get();
  }
}

/// The same for the type that R computes in for an array's type: integers through their unsigned type where the sign makes no difference.
template <class R, class L>
void reduce_in_type(const L* in, L* out, const reduce_plan& plan, instruction_set set) {
  using B = loop_bits_t<typename R::function, L>;
  reduce_planned<R, B>(reinterpret_cast<const B*>(in), reinterpret_cast<B*>(out), plan, set);
  if constexpr (R::divided) {
    const auto count = static_cast<L>(plan.reduced_count);
    for (std::size_t i = 0; i < plan.out_count; ++i) out[i] = count == L(0) ? L(0) : static_cast<L>(out[i] / count);
  }
}

/// Reduces an array with R, one of the types in `reduction`; `out` receives plan.out_count elements in C order.
template <class R, class T>
void reduce_loop(const T* in, T* out, const reduce_plan& plan, instruction_set set = best_instruction_set()) {
  using L = loop_type_t<typename R::function, T>;
  if (plan.in_count == 0) {
    const auto nothing = R::template identity<std::conditional_t<is_float16_v<T>, float, T>>();
    for (std::size_t i = 0; i < plan.out_count; ++i) out[i] = element::cast<T>::template apply<instruction_set::portable>(nothing);
  } else if constexpr (std::is_same_v<L, T>) {
    reduce_in_type<R, L>(in, out, plan, set);
  } else {
    const std::unique_ptr<L[]> wide(new L[plan.in_count + plan.out_count]);
    L* const wide_out = wide.get() + plan.in_count;
    cast_loop<L>(in, wide.get(), plan.in_count, set);
    reduce_in_type<R, L>(wide.get(), wide_out, plan, set);
    cast_loop<T>(static_cast<const L*>(wide_out), out, plan.out_count, set);
  }
}

#endif

}  // namespace weft::detail

#endif
