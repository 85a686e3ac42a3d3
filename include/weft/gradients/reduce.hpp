#ifndef WEFT_GRADIENTS_REDUCE_HPP
#define WEFT_GRADIENTS_REDUCE_HPP
// Gradients of reductions, cumulative sums and products, and segment ops.

#include <weft/gradients/gradient_registry.hpp>
#include <weft/gradients/term.hpp>

#if WEFT_HAS_BODIES
namespace weft::detail::gradient_rules {

// The axes of a reduction counted from 0, where they are known.
inline std::optional<std::vector<std::int64_t>> reduced_axes(const gradient_context& c) {
  auto axes = c.integers_of(c.input(1));
  const int rank = gradient_context::shape(c.input(0)).rank();
  if (!axes || rank == dynamic_rank) return std::nullopt;
  for (std::int64_t& a : *axes)
    if (a < 0) a += rank;
  return axes;
}
// The same at run time, as a vector of int32.
inline output reduced_axes_vector(const gradient_context& c, output rank) {
  const output axes = c.cast(c.reshape(c.input(1), c.integers({-1})), dtype::int32);
  return c.add("FloorMod", {c.add("AddV2", {axes, rank}), rank});
}

// The shape of the result with its reduced axes kept as 1.
inline output kept_shape(const gradient_context& c) {
  const output x = c.input(0);
  if (const auto axes = reduced_axes(c)) {
    std::vector<std::int64_t> sizes = gradient_context::shape(x).sizes();
    for (const std::int64_t a : *axes) sizes[static_cast<std::size_t>(a)] = 1;
    if (std::count(sizes.begin(), sizes.end(), -1) <= 1) return c.integers(sizes);
  }
  const output rank = c.rank_of(x), axes = reduced_axes_vector(c, rank);
  const output all = c.add("Range", {c.integer(0), rank, c.integer(1)}), ones = c.add("Fill", {c.shape_of(axes), c.integer(1)});
  return c.add_list("DynamicStitch", {all, axes, c.shape_of(x), ones}, {{"N", 2}});
}
inline bool keeps_dims(const gradient_context& c) {
  const bool* keeps = c.find_attr<bool>("keep_dims");
  return keeps != nullptr && *keeps;
}
inline term with_kept_dims(const gradient_context& c, const term& t) { return keeps_dims(c) ? t : term{&c, c.reshape(t, kept_shape(c))}; }
// What belongs to a result, repeated along the reduced axes.
inline term spread(const gradient_context& c, const term& t) {
  const output x = c.input(0);
  if (gradient_context::shape(t).rank() == 0) return {&c, c.add("Fill", {c.shape_of(x), t})};
  return {&c, c.add("BroadcastTo", {with_kept_dims(c, t), c.shape_of(x)})};
}

inline void sum_gradient(gradient_context& c) { c.set(0, spread(c, gradient_term(c))); }
inline void mean_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  const auto many = gradient_context::shape(c.input(0)).elements(), few = gradient_context::shape(c.result()).elements();
  term factor{&c, {}};
  if (many && few) {
    factor.value = c.number(static_cast<double>(*many / std::max<std::int64_t>(*few, 1)), g.dtype());
  } else {
    const output results = c.add("Maximum", {c.size_of(c.result(), dtype::int64), c.integer(1, dtype::int64)});
    factor.value = c.cast(c.add("FloorDiv", {c.size_of(c.input(0), dtype::int64), results}), g.dtype());
  }
  c.set(0, spread(c, g / factor));
}
// Ties share equally.
inline void extreme_gradient(gradient_context& c) {
  const term x = input(c, 0), g = gradient_term(c), y = with_kept_dims(c, result(c));
  const term chosen{&c, c.cast(apply("Equal", y, x), g.dtype())}, count{&c, c.sum(chosen, c.input(1), true)};
  c.set(0, chosen / count * with_kept_dims(c, g));
}
inline void euclidean_norm_gradient(gradient_context& c) { c.set(0, input(c, 0) / (with_kept_dims(c, result(c)) / with_kept_dims(c, gradient_term(c)))); }
inline void l2_loss_gradient(gradient_context& c) { c.set(0, input(c, 0) * gradient_term(c)); }

// The product of all other elements along an axis.
inline term product_of_others(const gradient_context& c, const term& x, output axis) {
  const term before{&c, c.add("Cumprod", {x, axis}, {{"exclusive", true}})}, after{&c, c.add("Cumprod", {x, axis}, {{"exclusive", true}, {"reverse", true}})};
  return conjugate(before) * conjugate(after);
}
inline void prod_gradient(gradient_context& c) {
  const term x = input(c, 0), g = with_kept_dims(c, gradient_term(c));
  const auto axes = reduced_axes(c);
  if (axes && axes->size() == 1) return c.set(0, g * product_of_others(c, x, c.integer((*axes)[0])));
  // 1. The reduced axes first, in an order that is found when it runs where they are not known: ties of the largest keep their order.
  output order;
  if (axes) {
    std::vector<std::int64_t> first = *axes;
    for (std::int64_t i = 0; i < gradient_context::shape(x).rank(); ++i)
      if (std::find(axes->begin(), axes->end(), i) == axes->end()) first.push_back(i);
    order = c.integers(first);
  } else {
    const output rank = c.rank_of(x), reduced = reduced_axes_vector(c, rank);
    const output all = c.add("Range", {c.integer(0), rank, c.integer(1)}), none = c.add("ZerosLike", {all}), ones = c.add("Fill", {c.shape_of(reduced), c.integer(1)});
    const output flags = c.add_list("DynamicStitch", {all, reduced, none, ones}, {{"N", 2}});
    order = c.add("TopKV2", {flags, rank}, {}, 1);
  }
  // 2. As a matrix: one row for each element that goes into a product.
  const output moved = c.add("Transpose", {x, order}), moved_shape = c.shape_of(moved);
  const output sizes = c.gather(c.shape_of(x), reduced_axes_vector(c, c.rank_of(x)));
  const output rows = c.add("Prod", {sizes, c.integers({0})}), columns = c.add("FloorDiv", {c.size_of(x), c.add("Maximum", {rows, c.integer(1)})});
  const term matrix{&c, c.reshape(moved, c.add_list("Pack", {rows, columns}, {{"N", 2}}))};
  const output others = c.reshape(product_of_others(c, matrix, c.integer(0)), moved_shape);
  c.set(0, g * term{&c, c.add("Transpose", {others, c.add("InvertPermutation", {order})})});
}

inline void cumsum_gradient(gradient_context& c) {
  c.set(0, c.add("Cumsum", {c.gradient(), c.input(1)}, {{"exclusive", c.attr<bool>("exclusive")}, {"reverse", !c.attr<bool>("reverse")}}));
}
// 0 where an input is 0, as TensorFlow.
inline void cumprod_gradient(gradient_context& c) {
  const output sum = c.add("Cumsum", {result(c) * gradient_term(c), c.input(1)}, {{"exclusive", c.attr<bool>("exclusive")}, {"reverse", !c.attr<bool>("reverse")}});
  c.set(0, c.add("DivNoNan", {sum, c.input(0)}));
}

inline term gather_term(const gradient_context& c, const term& rows, output ids) { return {&c, c.gather(rows, ids)}; }
// How many rows each segment has, with as many axes as the rows.
inline term rows_per_segment(const gradient_context& c, output ids, const term& like) {
  const term ones{&c, c.add("Fill", {c.shape_of(ids), c.number(1, like.dtype())})};
  const term counts{&c, c.add("SegmentSum", {ones, ids})};
  const output outer = c.add("Fill", {c.add("Sub", {c.add("ExpandDims", {c.rank_of(like), c.integer(0)}), c.integers({1})}), c.integer(1)});
  return {&c, c.reshape(counts, c.add_list("ConcatV2", {c.integers({-1}), outer, c.integer(0)}, {{"N", 2}}))};
}
inline void segment_sum_gradient(gradient_context& c) { c.set(0, c.gather(c.gradient(), c.input(1))); }
inline void segment_mean_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  c.set(0, gather_term(c, g / rows_per_segment(c, c.input(1), g), c.input(1)));
}
inline void segment_extreme_gradient(gradient_context& c) {
  const term x = input(c, 0), g = gradient_term(c), chosen = apply("Equal", x, gather_term(c, result(c), c.input(1)));
  const term count{&c, c.add("SegmentSum", {c.cast(chosen, g.dtype()), c.input(1)})};
  c.set(0, select(chosen, gather_term(c, g / count, c.input(1)), zero(x)));
}

// Products of segments: an element's derivative is the product of the others, which a division gives unless there are zeros.
inline void product_of_segments_gradient(gradient_context& c, const char* sum, const char* product, output ids, output safe_ids, std::vector<output> rest) {
  const auto reduce = [&](const char* op, output x) {
    std::vector<output> inputs{x, ids};
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    return term{&c, c.add_list(op, inputs)};
  };
  const term x = input(c, 0), g = gradient_term(c), is_zero = apply("Equal", x, zero(x)), nonzero = select(is_zero, number_like(1, x), x);
  const term zeros = reduce(sum, c.cast(is_zero, dtype::int32)), several = apply("Greater", zeros, number_like(1, zeros));
  const term others = select(is_zero, gather_term(c, reduce(product, nonzero), safe_ids), gather_term(c, result(c), safe_ids) / nonzero);
  c.set(0, gather_term(c, select(several, zero(g), g), safe_ids) * others);
}
inline void segment_prod_gradient(gradient_context& c) { product_of_segments_gradient(c, "SegmentSum", "SegmentProd", c.input(1), c.input(1), {}); }

// Rows by ids of which negative ones stand for no row: those that count, reshaped so that they broadcast against the rows.
struct positive_ids {
  output clipped;
  term valid;
};
inline positive_ids drop_negative(const gradient_context& c, output ids, const term& like) {
  const output none = c.integer(0, gradient_context::dtype_of(ids));
  const output clipped = c.add("Maximum", {ids, none}), valid = c.add("GreaterEqual", {ids, none});
  const partial_shape &inner = gradient_context::shape(ids), &outer = gradient_context::shape(like);
  if (inner.known_rank() && inner.rank() == outer.rank()) return {clipped, {&c, valid}};
  const output axes = c.add("ExpandDims", {c.add("Sub", {c.rank_of(like), c.rank_of(ids)}), c.integer(0)});
  const output shape = c.add_list("ConcatV2", {c.shape_of(ids), c.add("Fill", {axes, c.integer(1)}), c.integer(0)}, {{"N", 2}});
  return {clipped, {&c, c.reshape(valid, shape)}};
}
inline void unsorted_segment_sum_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  const positive_ids ids = drop_negative(c, c.input(1), input(c, 0));
  c.set(0, select(ids.valid, gather_term(c, g, ids.clipped), zero(g)));
}
inline void unsorted_segment_extreme_gradient(gradient_context& c) {
  const term x = input(c, 0), g = gradient_term(c);
  const positive_ids ids = drop_negative(c, c.input(1), x);
  const term chosen = apply("LogicalAnd", apply("Equal", x, gather_term(c, result(c), ids.clipped)), ids.valid);
  const term count{&c, c.add("UnsortedSegmentSum", {c.cast(chosen, g.dtype()), c.input(1), c.input(2)})};
  c.set(0, select(chosen, gather_term(c, g / count, ids.clipped), zero(x)));
}
inline void unsorted_segment_prod_gradient(gradient_context& c) {
  const positive_ids ids = drop_negative(c, c.input(1), input(c, 0));
  product_of_segments_gradient(c, "UnsortedSegmentSum", "UnsortedSegmentProd", c.input(1), ids.clipped, {c.input(2)});
  const term g{&c, c.results()[0].values()};
  c.set(0, select(ids.valid, g, zero(g)));
}

// Inputs data, indices, segment ids: each segment adds rows of the data, as they are, divided by their number, or by its root.
inline void sparse_segment_gradient(gradient_context& c, const term& g) {
  const output rows = c.add("StridedSlice", {c.shape_of(c.input(0)), c.integers({0}), c.integers({1}), c.integers({1})}, {{"shrink_axis_mask", 1}});
  c.set(0, c.add("UnsortedSegmentSum", {gather_term(c, g, c.input(2)), c.input(1), rows}));
}
inline void sparse_segment_sum_gradient(gradient_context& c) { sparse_segment_gradient(c, gradient_term(c)); }
inline void sparse_segment_mean_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  sparse_segment_gradient(c, g / rows_per_segment(c, c.input(2), g));
}
inline void sparse_segment_sqrt_n_gradient(gradient_context& c) {
  const term g = gradient_term(c);
  sparse_segment_gradient(c, g / apply("Sqrt", rows_per_segment(c, c.input(2), g)));
}

inline void add_reduce_gradients(gradient_registry& rules) {
  rules.add({{"Sum", sum_gradient}, {"Mean", mean_gradient}, {"Max", extreme_gradient}, {"Min", extreme_gradient}, {"Prod", prod_gradient},
             {"EuclideanNorm", euclidean_norm_gradient}, {"L2Loss", l2_loss_gradient}, {"Cumsum", cumsum_gradient}, {"Cumprod", cumprod_gradient},
             {"ArgMax", no_gradient}, {"ArgMin", no_gradient}});
  rules.add({{"SegmentSum", segment_sum_gradient}, {"SegmentMean", segment_mean_gradient}, {"SegmentMax", segment_extreme_gradient}, {"SegmentMin", segment_extreme_gradient},
             {"SegmentProd", segment_prod_gradient}, {"UnsortedSegmentSum", unsorted_segment_sum_gradient}, {"UnsortedSegmentMax", unsorted_segment_extreme_gradient},
             {"UnsortedSegmentMin", unsorted_segment_extreme_gradient}, {"UnsortedSegmentProd", unsorted_segment_prod_gradient},
             {"SparseSegmentSum", sparse_segment_sum_gradient}, {"SparseSegmentMean", sparse_segment_mean_gradient}, {"SparseSegmentSqrtN", sparse_segment_sqrt_n_gradient}});
}

}  // namespace weft::detail::gradient_rules
#endif

#endif
