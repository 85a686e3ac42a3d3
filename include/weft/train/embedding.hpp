#ifndef WEFT_TRAIN_EMBEDDING_HPP
#define WEFT_TRAIN_EMBEDDING_HPP
// Rows of a table whose rows are spread over several variables, and sums of rows. Gradients stay sparse: each variable gets those of its rows. Follows TensorFlow's embedding_lookup.

#include <weft/core/config.hpp>
#include <weft/ops/state.hpp>
#include <weft/train/partitioned_variable.hpp>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace weft {

/// Where row `id` of a table in p pieces is: `mod`, in piece id % p at id / p; `div`, one after the other, the first pieces being longer by one where it does not come out even, as a partitioned variable is split.
enum class partition_strategy { mod, div };
/// How the rows of one example become one: their sum, their mean (over the sum of the weights), or their sum over the root of the sum of squared weights.
enum class embedding_combiner { sum, mean, sqrtn };

/// The ids of examples that have several, or none: TensorFlow's SparseTensor. `indices` `[ids, 2]` are (example, place), sorted by example.
template <class I> struct sparse_ids {
  tensor<std::int64_t, 2> indices;
  tensor<I, 1> values;
  tensor<std::int64_t, 1> dense_shape;
};

namespace detail {
output add_embedding_lookup(const std::vector<output>& handles, const output& ids, partition_strategy strategy, std::optional<double> max_norm, const op_name& name);
output add_embedding_lookup_sparse(const std::vector<output>& handles, const output& indices, const output& values, const output& weights, partition_strategy strategy, embedding_combiner combiner,
                                   std::optional<double> max_norm, const op_name& name);
template <class T, int N> std::vector<output> handles_of(const std::vector<variable<T, N>>& table) {
  std::vector<output> out;
  for (const auto& piece : table) out.push_back(piece.raw());
  return out;
}
constexpr int looked_up_rank(int table, int ids) { return table == dynamic_rank || ids == dynamic_rank ? dynamic_rank : table + ids - 1; }
template <class I> constexpr bool is_id_v = std::is_same_v<I, std::int32_t> || std::is_same_v<I, std::int64_t>;
}  // namespace detail

/// The rows of a table that `ids` name: `ids.shape + row.shape`. With `max_norm` rows are scaled down to at most this length. An id that has no row fails the step. Each piece is gathered from where it lives.
/// Throws INVALID_ARGUMENT when the pieces' sizes are not those of the strategy.
template <class T, int N, class I, int R>
tensor<T, detail::looked_up_rank(N, R)> embedding_lookup(const std::vector<variable<T, N>>& table, const operand<I, R>& ids, partition_strategy strategy = partition_strategy::mod,
                                                         std::optional<double> max_norm = std::nullopt, op_name name = {}) {
  static_assert(detail::is_id_v<I>, "weft: ids must be int32 or int64");
  static_assert(N != 0, "weft: scalar variables have no rows");
  return tensor<T, detail::looked_up_rank(N, R)>(detail::add_embedding_lookup(detail::handles_of(table), ids.as_input(name.site), strategy, max_norm, name));
}
/// The same rows of a partitioned variable as of its whole value, unless `strategy` says that ids are spread in another way.
template <class T, int N, class I, int R>
tensor<T, detail::looked_up_rank(N, R)> embedding_lookup(const partitioned_variable<T, N>& table, const operand<I, R>& ids, partition_strategy strategy = partition_strategy::div,
                                                         std::optional<double> max_norm = std::nullopt, op_name name = {}) {
  if (table.axis() != 0) throw error(error_code::invalid_argument, "embedding_lookup: the table '" + table.name() + "' is split along axis " + std::to_string(table.axis()) + ", not by rows", name.site);
  return embedding_lookup(table.pieces(), ids, strategy, max_norm, name);
}
/// The rows of one variable.
template <class T, int N, class I, int R>
tensor<T, detail::looked_up_rank(N, R)> embedding_lookup(const variable<T, N>& table, const operand<I, R>& ids, std::optional<double> max_norm = std::nullopt, op_name name = {}) {
  return embedding_lookup(std::vector<variable<T, N>>{table}, ids, partition_strategy::mod, max_norm, name);
}

/// For each example its rows combined into one: `[examples, ...]`, examples up to the last one that has an id; one without ids before it is 0. Each row that occurs several times is fetched once.
template <class T, int N, class I>
tensor<T, N> embedding_lookup_sparse(const std::vector<variable<T, N>>& table, const sparse_ids<I>& ids, embedding_combiner combiner = embedding_combiner::mean,
                                     partition_strategy strategy = partition_strategy::mod, std::optional<double> max_norm = std::nullopt, op_name name = {}) {
  static_assert(detail::is_id_v<I>, "weft: ids must be int32 or int64");
  static_assert(N != 0, "weft: scalar variables have no rows");
  return tensor<T, N>(detail::add_embedding_lookup_sparse(detail::handles_of(table), ids.indices.raw(), ids.values.raw(), output(), strategy, combiner, max_norm, name));
}
/// The same with a weight for each id.
template <class T, int N, class I, int W>
tensor<T, N> embedding_lookup_sparse(const std::vector<variable<T, N>>& table, const sparse_ids<I>& ids, const operand<T, W>& weights, embedding_combiner combiner = embedding_combiner::mean,
                                     partition_strategy strategy = partition_strategy::mod, std::optional<double> max_norm = std::nullopt, op_name name = {}) {
  static_assert(detail::is_id_v<I>, "weft: ids must be int32 or int64");
  static_assert(W == 1 || W == dynamic_rank, "weft: there is one weight for each id, a vector");
  return tensor<T, N>(detail::add_embedding_lookup_sparse(detail::handles_of(table), ids.indices.raw(), ids.values.raw(), weights.as_input(name.site), strategy, combiner, max_norm, name));
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/graph/scope.hpp>
#include <weft/ops/node_group.hpp>
#include <weft/train/clip.hpp>

#include <algorithm>

namespace weft::detail {

// Nodes of a lookup; integers are constants of the ids' dtype.
struct lookup_nodes {
  const node_group& g;
  dtype id_type;

  output add(const char* op, std::vector<output> inputs, const std::string& below, attr_map attrs = {}) const { return g.add(op, std::move(inputs), below.c_str(), std::move(attrs)); }
  output id(std::int64_t v, const std::string& below) const {
    return add_const_at(id_type == dtype::int64 ? tensor_value::scalar(v) : tensor_value::scalar(static_cast<std::int32_t>(v)), g.name() + "/" + below, g.site(), g.graph());
  }
  output ints(const std::vector<std::int32_t>& v, const std::string& below) const { return g.integers(v, below.c_str()); }
  // Rows of a variable, fetched where it lives, no longer than max_norm.
  output rows(const output& handle, const output& ids, std::optional<double> max_norm, const std::string& below) const {
    const partial_shape held = any_variable(handle, g.site()).shape();
    const auto beside = colocate_with(operation(*handle.from), g.site());
    const output picked = add("ResourceGather", {handle, ids}, below, {{"dtype", handle.from->attr<dtype>("dtype")}});
    if (!max_norm) return picked;
    if (!held.known_rank() || !picked.from->output_shape(0).known_rank()) g.fail("max_norm needs a table and ids of known ranks");
    std::vector<int> axes;
    for (int i = picked.from->output_shape(0).rank() - held.rank() + 1; i < picked.from->output_shape(0).rank(); ++i) axes.push_back(i);
    if (axes.empty()) g.fail("max_norm needs rows that are at least vectors, found a table of shape " + held.text());
    const std::string scope = g.name() + "/" + below + "/clip_by_norm/";
    return add_clip_by_norm({picked, false, tensor_value()}, *max_norm, axes, op_name(std::string_view(scope), g.site()));
  }
};

// The sizes of the pieces, as far as the strategy needs them, are checked.
WEFT_DECL std::int64_t rows_of_pieces(const node_group& g, const std::vector<output>& handles) {
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;
  for (const output& handle : handles) {
    const partial_shape s = any_variable(handle, g.site()).shape();
    if (!s.known_rank() || s.rank() == 0 || s[0] < 0) g.fail("the number of rows of '" + handle.from->name() + "' must be known, found shape " + s.text());
    sizes.push_back(s[0]);
    total += s[0];
  }
  if (sizes != piece_sizes(total, static_cast<std::int64_t>(sizes.size()))) g.fail("with strategy div the pieces' rows must be " + list_text(piece_sizes(total, static_cast<std::int64_t>(sizes.size()))) + ", found " + list_text(sizes));
  return total;
}

WEFT_DECL output add_embedding_lookup(const std::vector<output>& handles, const output& ids, partition_strategy strategy, std::optional<double> max_norm, const op_name& name) {
  if (handles.empty()) fail_builder("embedding_lookup", "there are no variables to look in", name);
  for (const output& handle : handles) (void)any_variable(handle, name.site);
  if (max_norm && !(*max_norm > 0)) fail_builder("embedding_lookup", "max_norm must be positive, found " + std::to_string(*max_norm), name);
  const node_group g({ids, false, tensor_value()}, name, "embedding_lookup");
  const lookup_nodes n{g, ids.from->output_dtype(ids.index)};
  if (handles.size() == 1) return g.last("Identity", {n.rows(handles[0], ids, max_norm, "gather")});
  // 1. For each id the piece, and the row there.
  const auto count = static_cast<std::int64_t>(handles.size());
  const output flat = n.add("Reshape", {ids, n.ints({-1}, "Reshape/shape")}, "Reshape");
  output piece, row;
  if (strategy == partition_strategy::mod) {
    piece = n.add("FloorMod", {flat, n.id(count, "count")}, "mod");
    row = n.add("FloorDiv", {flat, n.id(count, "count_1")}, "div");
  } else {
    // The first `longer` pieces have one row more than the `least` of the others.
    const std::int64_t total = rows_of_pieces(g, handles), least = total / count, longer = total % count;
    const output beyond = n.add("Sub", {flat, n.id(longer, "longer")}, "sub"), one_more = n.id(least + 1, "least_and_one"), divisor = n.id(std::max<std::int64_t>(least, 1), "least");
    const output of_longer = n.add("FloorDiv", {flat, one_more}, "div"), of_others = n.add("FloorDiv", {beyond, divisor}, "div_1");
    piece = n.add("Maximum", {of_longer, of_others}, "piece");
    const output early = n.add("Less", {piece, n.id(longer, "longer_1")}, "Less");
    row = n.add("SelectV2", {early, n.add("FloorMod", {flat, one_more}, "mod"), n.add("FloorMod", {beyond, divisor}, "mod_1")}, "row");
  }
  const output pieces = n.id_type == dtype::int32 ? piece : n.add("Cast", {piece}, "Cast", {{"DstT", dtype::int32}});
  // 2. The rows and the places of each piece, gathered where it lives.
  const output zero = g.integer(0, "range/start"), one = g.integer(1, "range/delta");
  const output places = n.add("Range", {zero, n.add("Size", {flat}, "Size"), one}, "range");
  const node& row_parts = *n.add("DynamicPartition", {row, pieces}, "DynamicPartition", {{"num_partitions", count}}).from;
  const node& place_parts = *n.add("DynamicPartition", {places, pieces}, "DynamicPartition_1", {{"num_partitions", count}}).from;
  std::vector<output> stitched;
  for (int i = 0; i < count; ++i) stitched.push_back({&place_parts, i});
  for (int i = 0; i < count; ++i) stitched.push_back(n.rows(handles[static_cast<std::size_t>(i)], {&row_parts, i}, max_norm, "gather_" + std::to_string(i)));
  const output all = n.add("ParallelDynamicStitch", std::move(stitched), "stitch", {{"N", count}});
  // 3. In the shape of the ids.
  const partial_shape held = any_variable(handles[0], g.site()).shape(), &asked = ids.from->output_shape(ids.index);
  if (held.known_rank() && asked.known_rank() && asked.rank() == 1) return g.last("Identity", {all});
  const output row_shape = n.add("StridedSlice", {n.add("VariableShape", {handles[0]}, "row/VariableShape"), n.ints({1}, "row/begin"), n.ints({0}, "row/end"), n.ints({1}, "row/strides")}, "row_shape",
                                 {{"end_mask", std::int64_t{1}}});
  const output wanted = n.add("ConcatV2", {n.add("Shape", {ids}, "Shape"), row_shape, g.integer(0, "concat/axis")}, "concat", {{"N", std::int64_t{2}}});
  const output made = g.last("Reshape", {all, wanted});
  return made;
}

WEFT_DECL output add_embedding_lookup_sparse(const std::vector<output>& handles, const output& indices, const output& values, const output& weights, partition_strategy strategy,
                                             embedding_combiner combiner, std::optional<double> max_norm, const op_name& name) {
  if (handles.empty()) fail_builder("embedding_lookup_sparse", "there are no variables to look in", name);
  if (indices.from == nullptr || values.from == nullptr) fail_builder("embedding_lookup_sparse", "the ids are empty tensors, not made by any op", name);
  const node_group g({values, false, tensor_value()}, name, "embedding_lookup_sparse");
  const lookup_nodes n{g, values.from->output_dtype(values.index)};
  const dtype type = any_variable(handles[0], name.site).dtype();
  // 1. The example of each id, and each row once.
  const output examples = n.add("StridedSlice", {indices, n.ints({0, 0}, "examples/begin"), n.ints({0, 1}, "examples/end"), n.ints({1, 1}, "examples/strides")}, "examples",
                                {{"begin_mask", std::int64_t{1}}, {"end_mask", std::int64_t{1}}, {"shrink_axis_mask", std::int64_t{2}}});
  const node& unique = *n.add("Unique", {values}, "Unique").from;
  const std::string below = g.name() + "/embedding_lookup/";
  const output rows = add_embedding_lookup(handles, {&unique, 0}, strategy, max_norm, op_name(std::string_view(below), g.site()));
  output each = n.add("GatherV2", {rows, {&unique, 1}, g.integer(0, "gather/axis")}, "gather");
  // 2. Weighted: weights `[ids]` in front of the rows' dimensions.
  const partial_shape held = any_variable(handles[0], name.site).shape();
  if (!held.known_rank()) g.fail("the rank of the table must be known");
  const auto beside_rows = [&](const output& x, const std::string& at) {
    if (held.rank() == 1) return x;
    std::vector<std::int32_t> sizes(static_cast<std::size_t>(held.rank()), 1);
    sizes[0] = -1;
    return n.add("Reshape", {x, n.ints(sizes, at + "/shape")}, at);
  };
  const output weight = weights.from != nullptr ? weights : n.add("Cast", {n.add("OnesLike", {values}, "ones_like")}, "ones", {{"DstT", type}});
  if (weights.from != nullptr) each = n.add("Mul", {each, beside_rows(weight, "weights/Reshape")}, "mul");
  // 3. Combined by example.
  const output sums = n.add("SegmentSum", {each, examples}, "SegmentSum");
  if (combiner == embedding_combiner::sum) return g.last("Identity", {sums});
  const bool mean = combiner == embedding_combiner::mean;
  const output total = n.add("SegmentSum", {mean ? weight : n.add("Square", {weight}, "Square"), examples}, "weight_sum");
  return g.last("DivNoNan", {sums, beside_rows(mean ? total : n.add("Sqrt", {total}, "Sqrt"), "weight_sum/Reshape")});
}

}  // namespace weft::detail
#endif

#endif
