#ifndef WEFT_KERNELS_SIMD_HPP
#define WEFT_KERNELS_SIMD_HPP
// Run-time dispatch to instruction sets, so that loops are fast whatever flags a program is compiled with. A body is a type
// with a static, always inlined `run<S>(arguments...)`; `dispatch<Body>(set, arguments...)` calls it inside a function that is
// compiled for that set. Bodies hold plain arithmetic only: a library template called in one could be shared with code
// that is compiled for another processor. Bodies take and return scalars and pointers, vector types stay local to them.

#include <weft/core/config.hpp>

// Attributes and pragmas by compiler. Bodies keep IEEE semantics under -ffast-math; floating point exception flags and errno are
// not observed. Multiplications and additions are contracted only where a body asks for it, but for clang under -ffast-math, which
// has no way to forbid it. For simple loops g++ makes the same vector code at a low level of optimisation as at a high one, in half
// the time.
#if defined(__clang__)
#define WEFT_SIMD_INLINE __attribute__((always_inline)) inline
#define WEFT_SIMD_OPTIMIZED
#define WEFT_SIMD_CONTRACTED
#define WEFT_SIMD_CONTRACT _Pragma("clang fp contract(fast)")
#define WEFT_SIMD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define WEFT_SIMD_UNROLL _Pragma("clang loop unroll(full)")
#define WEFT_SIMD_BEGIN                                                                         \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wpass-failed\"")        \
  _Pragma("clang diagnostic ignored \"-Wunknown-pragmas\"") _Pragma("float_control(precise, on, push)")
#define WEFT_SIMD_END _Pragma("float_control(pop)") _Pragma("clang diagnostic pop")
#elif defined(__GNUC__)
#define WEFT_SIMD_FLAGS "no-fast-math", "no-finite-math-only", "no-math-errno", "no-trapping-math"
#define WEFT_SIMD_OPTIMIZED \
  __attribute__((optimize("O1", "tree-loop-vectorize", "vect-cost-model=dynamic", "fp-contract=off", WEFT_SIMD_FLAGS)))
#define WEFT_SIMD_CONTRACTED __attribute__((optimize("O3", "fp-contract=fast", WEFT_SIMD_FLAGS)))
#define WEFT_SIMD_CONTRACT
#define WEFT_SIMD_INLINE WEFT_SIMD_OPTIMIZED __attribute__((always_inline)) inline
#define WEFT_SIMD_INDEPENDENT _Pragma("GCC ivdep")
#define WEFT_SIMD_UNROLL _Pragma("GCC unroll 16")
#define WEFT_SIMD_BEGIN
#define WEFT_SIMD_END
#else
#if (defined(__FAST_MATH__) || defined(_M_FP_FAST)) && !defined(WEFT_ALLOW_FAST_MATH)
#error "weft cannot keep IEEE semantics under this compiler's fast math: switch it off, or define WEFT_ALLOW_FAST_MATH"
#endif
#define WEFT_SIMD_OPTIMIZED
#define WEFT_SIMD_CONTRACTED
#define WEFT_SIMD_CONTRACT
#define WEFT_SIMD_INLINE inline
#define WEFT_SIMD_INDEPENDENT
#define WEFT_SIMD_UNROLL
#define WEFT_SIMD_BEGIN
#define WEFT_SIMD_END
#endif

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define WEFT_SIMD_X86 1
#define WEFT_SIMD_AVX2 __attribute__((target("avx2,fma")))
#define WEFT_SIMD_AVX512 __attribute__((target("avx2,fma,avx512f,avx512vl,avx512bw,avx512dq")))
#else
#define WEFT_SIMD_X86 0
#endif

namespace weft::detail {

/// The instruction sets that bodies are compiled for; each includes those before it.
enum class instruction_set : unsigned char { portable, avx2, avx512 };

/// All instruction sets, for tests that run each one the processor has.
inline constexpr instruction_set all_instruction_sets[] = {instruction_set::portable, instruction_set::avx2, instruction_set::avx512};

/// Name of an instruction set as it stands in logs: 'portable', 'avx2', 'avx512'.
constexpr const char* name_of(instruction_set set) noexcept {
  return set == instruction_set::avx512 ? "avx512" : set == instruction_set::avx2 ? "avx2" : "portable";
}

#if WEFT_HAS_KERNEL_BODIES

/// Whether this processor runs bodies of `set`.
bool processor_has(instruction_set set) noexcept;

/// The best set of this processor, found once.
instruction_set best_instruction_set() noexcept;

#if WEFT_SIMD_X86
inline bool processor_has(instruction_set set) noexcept {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (set == instruction_set::avx512) {
    return avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  }
  return set == instruction_set::portable || avx2;
}
#else
inline bool processor_has(instruction_set set) noexcept { return set == instruction_set::portable; }
#endif

inline instruction_set best_instruction_set() noexcept {
  static const instruction_set best = processor_has(instruction_set::avx512) ? instruction_set::avx512
                                      : processor_has(instruction_set::avx2) ? instruction_set::avx2
                                                                             : instruction_set::portable;
  return best;
}

WEFT_SIMD_BEGIN

template <class Body, class... Arguments>
WEFT_SIMD_OPTIMIZED void run_portable(Arguments... arguments) {
  Body::template run<instruction_set::portable>(arguments...);
}

#if WEFT_SIMD_X86
template <class Body, class... Arguments>
WEFT_SIMD_OPTIMIZED WEFT_SIMD_AVX2 void run_avx2(Arguments... arguments) {
  Body::template run<instruction_set::avx2>(arguments...);
}

template <class Body, class... Arguments>
WEFT_SIMD_OPTIMIZED WEFT_SIMD_AVX512 void run_avx512(Arguments... arguments) {
  Body::template run<instruction_set::avx512>(arguments...);
}
#endif

/// The function that runs `Body` compiled for `set`, which the processor must have, or for `Highest` if that is less: bodies above it are
/// not compiled.
template <class Body, instruction_set Highest, class... Arguments>
auto select([[maybe_unused]] instruction_set set) noexcept -> void (*)(Arguments...) {
#if WEFT_SIMD_X86
  if constexpr (Highest == instruction_set::avx512) {
    if (set == instruction_set::avx512) return &run_avx512<Body, Arguments...>;
  }
  if constexpr (Highest != instruction_set::portable) {
    if (set != instruction_set::portable) return &run_avx2<Body, Arguments...>;
  }
#endif
  return &run_portable<Body, Arguments...>;
}

/// Runs `Body` as compiled for `set`.
template <class Body, instruction_set Highest = instruction_set::avx512, class... Arguments>
void dispatch(instruction_set set, Arguments... arguments) {
  select<Body, Highest, Arguments...>(set)(arguments...);
}

/// a * b + c, in one rounding where the instruction set has it.
template <instruction_set S>
WEFT_SIMD_INLINE float multiply_add(float a, float b, float c) {
#if WEFT_SIMD_X86
  if constexpr (S != instruction_set::portable) return __builtin_fmaf(a, b, c);
#endif
  return a * b + c;
}

/// a * b + c, in one rounding where the instruction set has it.
template <instruction_set S>
WEFT_SIMD_INLINE double multiply_add(double a, double b, double c) {
#if WEFT_SIMD_X86
  if constexpr (S != instruction_set::portable) return __builtin_fma(a, b, c);
#endif
  return a * b + c;
}

WEFT_SIMD_END
#endif

}  // namespace weft::detail

#endif
