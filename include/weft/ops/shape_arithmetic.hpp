#ifndef WEFT_OPS_SHAPE_ARITHMETIC_HPP
#define WEFT_OPS_SHAPE_ARITHMETIC_HPP
// What shape rules do with sizes of which some are unknown (-1): sums and products that cannot overflow, axes, prefixes that must agree.

#include <weft/core/config.hpp>
#include <weft/graph/shape_context.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace weft::detail {

/// Sizes of dimensions in the making, -1 for an unknown one.
using size_list = std::vector<std::int64_t>;

/// a + b and a * b; unknown when one is, an error when the result cannot be held.
std::int64_t size_sum(const shape_context& c, std::int64_t a, std::int64_t b);
std::int64_t size_product(const shape_context& c, std::int64_t a, std::int64_t b);
/// a / b without a remainder; an error says that `what` cannot be divided.
std::int64_t size_quotient(const shape_context& c, std::int64_t a, std::int64_t b, const std::string& what);
/// What two sizes that must be equal are; an error names them as `what`.
std::int64_t size_merged(const shape_context& c, std::int64_t a, std::int64_t b, const std::string& what);

/// An axis of this rank, counted from the end when negative; an error outside [-rank, rank).
int axis_in_rank(const shape_context& c, std::int64_t axis, int rank, const char* what = "axis");
/// The value of input i, a scalar named `what`, when it is known; an error when it is no scalar.
std::optional<std::int64_t> scalar_input(const shape_context& c, int i, const char* what);
/// Fails when input i is known to have fewer dimensions.
void expect_dims_at_least(const shape_context& c, int i, int rank, const char* what);
/// The sizes from dimension `first` up to `last` of a shape of known rank.
size_list sizes_between(const partial_shape& s, int first, int last);
inline void append(size_list& to, const size_list& more) { to.insert(to.end(), more.begin(), more.end()); }

#if WEFT_HAS_BODIES
WEFT_DECL std::int64_t size_sum(const shape_context& c, std::int64_t a, std::int64_t b) {
  if (a < 0 || b < 0) return -1;
  if (a > std::numeric_limits<std::int64_t>::max() - b) c.fail("the sum of sizes " + std::to_string(a) + " and " + std::to_string(b) + " is larger than a dimension can be");
  return a + b;
}

WEFT_DECL std::int64_t size_product(const shape_context& c, std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a < 0 || b < 0) return -1;
  if (a > std::numeric_limits<std::int64_t>::max() / b) c.fail("the product of sizes " + std::to_string(a) + " and " + std::to_string(b) + " is larger than a dimension can be");
  return a * b;
}

WEFT_DECL std::int64_t size_quotient(const shape_context& c, std::int64_t a, std::int64_t b, const std::string& what) {
  if (a < 0 || b < 0) return -1;
  if (b == 0 || a % b != 0) c.fail(what + " " + std::to_string(a) + " cannot be divided by " + std::to_string(b));
  return a / b;
}

WEFT_DECL std::int64_t size_merged(const shape_context& c, std::int64_t a, std::int64_t b, const std::string& what) {
  if (a >= 0 && b >= 0 && a != b) c.fail(what + " must be equal, found " + std::to_string(a) + " and " + std::to_string(b));
  return a >= 0 ? a : b;
}

WEFT_DECL int axis_in_rank(const shape_context& c, std::int64_t axis, int rank, const char* what) {
  if (axis < -rank || axis >= rank) c.fail(std::string(what) + " " + std::to_string(axis) + " is not in [" + std::to_string(-rank) + ", " + std::to_string(rank) + ")");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

WEFT_DECL std::optional<std::int64_t> scalar_input(const shape_context& c, int i, const char* what) {
  (void)c.with_rank(i, 0, what);
  const auto values = c.input_integers(i);
  if (!values || values->size() != 1) return std::nullopt;
  return values->front();
}

WEFT_DECL void expect_dims_at_least(const shape_context& c, int i, int rank, const char* what) {
  const partial_shape& s = c.input(i);
  if (s.known_rank() && s.rank() < rank) c.fail(std::string(what) + " must have at least " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions") + ", found shape " + s.text());
}

WEFT_DECL size_list sizes_between(const partial_shape& s, int first, int last) {
  return size_list(s.sizes().begin() + first, s.sizes().begin() + last);
}
#endif

}  // namespace weft::detail

#endif
