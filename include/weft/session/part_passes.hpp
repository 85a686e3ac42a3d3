#ifndef WEFT_SESSION_PART_PASSES_HPP
#define WEFT_SESSION_PART_PASSES_HPP
// The passes that a task runs over its part of a step before it makes an executor. They never change what crosses between devices and tasks, nor feeds and fetches.

#include <weft/kernels/fused.hpp>
#include <weft/runtime/fold_constants.hpp>
#include <weft/session/options.hpp>

namespace weft::detail {

/// The part as it is run. Folding comes first: what is constant need not be computed, fused or not.
inline graph optimized_part(const graph& part, const kernel_registry& kernels, const optimizer_options& options) {
  const graph folded = options.fold_constants ? fold_constants(part, kernels) : part;
  return options.fuse_elementwise ? fuse_elementwise(folded, kernels) : folded;
}

}  // namespace weft::detail

#endif
