#ifndef WEFT_GRADIENTS_ARRAY_SELECT_HPP
#define WEFT_GRADIENTS_ARRAY_SELECT_HPP
// Gradients of ops that choose elements: gathers and scatters, select, partition and stitch, the largest.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/state.hpp>
#include <weft/gradients/term.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// The product of some sizes of a shape given as a vector; a constant where they are known.
inline output product_of_sizes(const gradient_context& c, output sizes, std::int64_t from, std::optional<std::int64_t> to) {
  if (const auto known = c.integers_of(sizes)) {
    std::int64_t n = 1;
    const auto end = to.value_or(static_cast<std::int64_t>(known->size()));
    for (std::int64_t i = from; i < end; ++i) n *= (*known)[static_cast<std::size_t>(i)];
    return c.integer(n);
  }
  const output part = c.add("StridedSlice", {sizes, c.integers({from}), c.integers({to.value_or(0)}), c.integers({1})}, {{"end_mask", to ? 0 : 1}});
  return c.add("Prod", {part, c.integers({0})});
}

inline void gather_gradient(gradient_context& c) { c.set(0, gathered_rows(c, c.shape_of(c.input(0)), c.input(1), c.gradient())); }

// The axis of a gather where its sizes are known, else how to find them when it runs.
class gathered_axis {
 public:
  gathered_axis(const gradient_context& c, output sizes, output axis, std::int64_t batch) : c_(c), sizes_(sizes), batch_(batch) {
    const auto known = c.integers_of(axis);
    const int rank = gradient_context::shape(c.input(0)).rank();
    if (known && ((*known)[0] >= 0 || rank != dynamic_rank)) at_ = (*known)[0] < 0 ? (*known)[0] + rank : (*known)[0];
    else open_ = c.add("FloorMod", {c.cast(axis, dtype::int32), c.rank_of(c.input(0))});
  }
  /// The number of elements over the axes of the batch, between them and the axis, along the axis, behind it.
  output groups() const { return product_of_sizes(c_, sizes_, 0, batch_); }
  output outer() const { return at_ ? product_of_sizes(c_, sizes_, batch_, *at_) : product(c_.integer(batch_), open_); }
  output length() const { return at_ ? product_of_sizes(c_, sizes_, *at_, *at_ + 1) : c_.gather(sizes_, open_); }
  output inner() const { return at_ ? product_of_sizes(c_, sizes_, *at_ + 1, std::nullopt) : product(c_.add("AddV2", {open_, c_.integer(1)}), c_.rank_of(c_.input(0))); }

 private:
  output vector(output scalar) const { return c_.add("ExpandDims", {scalar, c_.integer(0)}); }
  output product(output from, output to) const { return c_.add("Prod", {c_.add("StridedSlice", {sizes_, vector(from), vector(to), c_.integers({1})}), c_.integers({0})}); }
  const gradient_context& c_;
  output sizes_;
  std::int64_t batch_;
  std::optional<std::int64_t> at_;
  output open_;
};

// Along an axis behind others: [batch, outer, axis, inner] are gathered to [batch, outer, indices, inner]; the rows of a batch are numbered through.
inline void gather_along_axis(gradient_context& c, std::int64_t batch) {
  const output x = c.input(0), indices = c.input(1), sizes = c.shape_of(x);
  const gathered_axis along(c, sizes, c.input(2), batch);
  const output groups = along.groups(), outer = along.outer(), length = along.length(), inner = along.inner();
  const output count = product_of_sizes(c, c.shape_of(indices), batch, std::nullopt);
  const auto shaped = [&](output value, std::vector<output> to) {
    const auto n = static_cast<std::int64_t>(to.size());
    return c.reshape(value, c.add_list("Pack", std::move(to), {{"N", n}}));
  };
  const output order = c.integers({0, 2, 1, 3});
  const output moved = c.add("Transpose", {shaped(c.gradient(), {groups, outer, count, inner}), order});
  const output values = shaped(moved, {c.add("Mul", {groups, count}), outer, inner});
  output rows = c.reshape(indices, c.integers({-1})), total = length;
  if (batch > 0) {
    total = c.add("Mul", {groups, length});
    const output starts = c.add("ExpandDims", {c.add("Mul", {c.add("Range", {c.integer(0), groups, c.integer(1)}), length}), c.integer(1)});
    rows = c.reshape(c.add("AddV2", {shaped(indices, {groups, count}), c.cast(starts, gradient_context::dtype_of(indices))}), c.integers({-1}));
  }
  const output sums = c.add("UnsortedSegmentSum", {values, rows, total});
  c.set(0, c.reshape(c.add("Transpose", {shaped(sums, {groups, length, outer, inner}), order}), sizes));
}
inline void gather_v2_gradient(gradient_context& c) {
  const auto axis = c.integers_of(c.input(2));
  const int index_rank = gradient_context::shape(c.input(1)).rank();
  const auto* attr = c.find_attr<std::int64_t>("batch_dims");
  std::int64_t batch = attr != nullptr ? *attr : 0;
  if (batch < 0 && index_rank == dynamic_rank) c.fail(error_code::unimplemented, "the gradient of a gather with negative batch_dims needs indices of known rank");
  if (batch < 0) batch += index_rank;
  if (axis && (*axis)[0] == 0 && batch == 0) gather_gradient(c);
  else gather_along_axis(c, batch);
}

inline void gather_nd_gradient(gradient_context& c) {
  const output x = c.input(0), indices = c.input(1), g = c.gradient();
  const dtype type = gradient_context::dtype_of(indices);
  const partial_shape& s = gradient_context::shape(indices);
  if (s.rank() == 2 && s[1] == 1) {
    const output rows = c.add("Squeeze", {indices}, {{"squeeze_dims", std::vector<std::int64_t>{-1}}});
    return c.set(0, indexed_slices{g, rows, c.shape_of(x, type)});
  }
  c.set(0, c.add("ScatterNd", {indices, g, c.shape_of(x, type)}));
}
inline void scatter_nd_gradient(gradient_context& c) { c.set(1, c.add("GatherNd", {c.gradient(), c.input(0)})); }
inline void tensor_scatter_update_gradient(gradient_context& c) {
  const output g = c.gradient(), indices = c.input(1);
  if (c.wants(0)) c.set(0, c.add("TensorScatterUpdate", {g, indices, c.zeros_like(c.input(2))}));
  if (c.wants(2)) c.set(2, c.add("GatherNd", {g, indices}));
}
inline void tensor_scatter_add_gradient(gradient_context& c) {
  const output g = c.gradient();
  c.set(0, g);
  if (c.wants(2)) c.set(2, c.add("GatherNd", {g, c.input(1)}));
}
inline void tensor_scatter_sub_gradient(gradient_context& c) {
  const output g = c.gradient();
  c.set(0, g);
  if (c.wants(2)) c.set(2, c.add("Neg", {c.add("GatherNd", {g, c.input(1)})}));
}
// Ties share equally.
inline void tensor_scatter_extreme_gradient(gradient_context& c) {
  const term g = gradient_term(c), x = input(c, 0), updates = input(c, 2), y = result(c);
  const output indices = c.input(1);
  const auto at = [&](const term& t) { return term{&c, c.add("GatherNd", {t, indices})}; };
  const auto equal = [&](const term& a, const term& b) { return term{&c, c.cast(apply("Equal", a, b), g.dtype())}; };
  const term kept = equal(x, y), put = equal(updates, at(y));
  const term shared = kept + term{&c, c.add("ScatterNd", {indices, put, c.shape_of(x, gradient_context::dtype_of(indices))})};
  if (c.wants(0)) c.set(0, g * kept / shared);
  if (c.wants(2)) c.set(2, at(g / shared) * put);
}

inline void select_gradient(gradient_context& c) {
  const output g = c.gradient(), none = c.zeros_like(g);
  if (c.wants(1)) c.set(1, c.add("Select", {c.input(0), g, none}));
  if (c.wants(2)) c.set(2, c.add("Select", {c.input(0), none, g}));
}
inline void select_v2_gradient(gradient_context& c) {
  const term g = gradient_term(c), condition = input(c, 0);
  if (c.wants(1)) c.set(1, c.sum_to(select(condition, g, zero(g)), c.input(1), c.result()));
  if (c.wants(2)) c.set(2, c.sum_to(select(condition, zero(g), g), c.input(2), c.result()));
}

inline void dynamic_partition_gradient(gradient_context& c) {
  const output data = c.input(0), partitions = c.input(1);
  const attr_value n = c.attr_of("num_partitions");
  const output numbers = c.reshape(c.add("Range", {c.integer(0), c.size_of(partitions), c.integer(1)}), c.shape_of(partitions));
  const node* places = c.add("DynamicPartition", {numbers, partitions}, {{"num_partitions", n}}).from;
  std::vector<output> inputs;
  for (int i = 0; i < c.output_count(); ++i) inputs.push_back({places, i});
  for (int i = 0; i < c.output_count(); ++i) inputs.push_back(c.gradient(i));
  c.set(0, c.reshape(c.add_list("DynamicStitch", std::move(inputs), {{"N", n}}), c.shape_of(data)));
}
// What was overwritten gets the gradient of what overwrote it, as TensorFlow.
inline void dynamic_stitch_gradient(gradient_context& c) {
  const int n = c.input_count() / 2;
  const output g = c.gradient();
  for (int i = 0; i < n; ++i)
    if (c.wants(n + i)) c.set(n + i, c.gather(g, c.input(i)));
}
inline void top_k_gradient(gradient_context& c) {
  const output x = c.input(0), found = c.result(1), sizes = c.shape_of(x);
  const output length = c.gather(sizes, c.add("Sub", {c.rank_of(x), c.integer(1)})), width = c.gather(c.shape_of(found), c.add("Sub", {c.rank_of(x), c.integer(1)}));
  // 1. Places among all elements: each row starts where the row before it ends.
  const output outer = c.add("StridedSlice", {sizes, c.integers({0}), c.integers({-1}), c.integers({1})}, {{"begin_mask", 1}});
  const output rows = c.add("Prod", {outer, c.integers({0})});
  const output starts = c.add("ExpandDims", {c.add("Mul", {c.add("Range", {c.integer(0), rows, c.integer(1)}), length}), c.integer(-1)});
  const output in_rows = c.reshape(found, c.add_list("Pack", {rows, width}, {{"N", 2}}));
  const output places = c.reshape(c.add("AddV2", {in_rows, starts}), c.integers({-1, 1}));
  // 2. Everything else is zero.
  const output all = c.add("ExpandDims", {c.size_of(x), c.integer(0)});
  c.set(0, c.reshape(c.add("ScatterNd", {places, c.reshape(c.gradient(), c.integers({-1})), all}), sizes));
  if (c.input_count() > 1 && c.wants(1)) c.set(1, c.zeros_like(c.input(1)));
}

inline void add_select_gradients(gradient_registry& rules) {
  rules.add({{"Gather", gather_gradient}, {"GatherV2", gather_v2_gradient}, {"GatherNd", gather_nd_gradient}, {"ScatterNd", scatter_nd_gradient},
             {"TensorScatterUpdate", tensor_scatter_update_gradient}, {"TensorScatterAdd", tensor_scatter_add_gradient}, {"TensorScatterSub", tensor_scatter_sub_gradient},
             {"TensorScatterMax", tensor_scatter_extreme_gradient}, {"TensorScatterMin", tensor_scatter_extreme_gradient}, {"Select", select_gradient},
             {"SelectV2", select_v2_gradient}, {"DynamicPartition", dynamic_partition_gradient}, {"DynamicStitch", dynamic_stitch_gradient},
             {"ParallelDynamicStitch", dynamic_stitch_gradient}, {"TopK", top_k_gradient}, {"TopKV2", top_k_gradient}});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
