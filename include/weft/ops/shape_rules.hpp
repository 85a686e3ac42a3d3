#ifndef WEFT_OPS_SHAPE_RULES_HPP
#define WEFT_OPS_SHAPE_RULES_HPP
// Shape rules that several ops share.

#include <weft/graph/shape_context.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace weft::detail {

inline void scalar_shape(shape_context& c) { c.set_output(0, partial_shape({})); }
inline void unchanged_shape(shape_context& c) { c.set_output(0, c.input(0)); }

inline void broadcast_shape(shape_context& c) {
  const auto result = broadcast_shapes(c.input(0), c.input(1));
  if (!result) c.fail("shapes " + c.input(0).text() + " and " + c.input(1).text() + " cannot be broadcast");
  c.set_output(0, *result);
}

// The shape that input i, a vector named `what`, holds; of known rank when only its length is known. `least` is -1 where a size may be open.
inline partial_shape shape_from_input(const shape_context& c, int i, const char* what, std::int64_t least = 0) {
  (void)c.with_rank(i, 1, what);
  const auto sizes = c.input_sizes(i);
  if (!sizes) return partial_shape();
  if (sizes->size() > static_cast<std::size_t>(max_rank)) c.fail(std::string(what) + " has " + std::to_string(sizes->size()) + " dimensions, at most " + std::to_string(max_rank) + " are possible");
  // Where a size is open, -1 stands for it: only a value that is wholly known has negative ones.
  const auto low = std::find_if(sizes->begin(), sizes->end(), [least](std::int64_t size) { return size < least; });
  if (low != sizes->end() && c.input_integers(i)) c.fail(std::string(what) + " cannot have a dimension of " + std::to_string(*low));
  return partial_shape(*sizes);
}

// The output of a reduction over the axes that input 1 names; attribute keep_dims.
inline void reduction_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  const bool* keep = c.find_attr<bool>("keep_dims");
  const partial_shape& named = c.input(1);
  if (named.known_rank() && named.rank() > 1) c.fail("the axes must be a number or a vector, found shape " + named.text());
  const auto axes = c.input_integers(1);
  if (!in.known_rank()) return;
  if (!axes) {
    if (keep != nullptr && *keep) c.set_output(0, partial_shape::of_rank(in.rank()));
    return;
  }
  std::vector<bool> reduced(static_cast<std::size_t>(in.rank()), false);
  for (const std::int64_t axis : *axes) {
    if (axis < -in.rank() || axis >= in.rank())
      c.fail("axis " + std::to_string(axis) + " is outside the " + std::to_string(in.rank()) + " dimensions of shape " + in.text());
    reduced[static_cast<std::size_t>(axis < 0 ? axis + in.rank() : axis)] = true;
  }
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[static_cast<std::size_t>(i)]) sizes.push_back(in[i]);
    else if (keep != nullptr && *keep) sizes.push_back(1);
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

}  // namespace weft::detail

#endif
