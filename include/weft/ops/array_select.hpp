#ifndef WEFT_OPS_ARRAY_SELECT_HPP
#define WEFT_OPS_ARRAY_SELECT_HPP
// Ops that choose, sort out or compare elements: where, select, one-hot, top k, unique, partitions.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array_rules.hpp>
#include <weft/ops/axis.hpp>
#include <weft/ops/op_input.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace weft {

namespace detail {

// The slices of x that the positions of what is true in the mask name.
output add_boolean_mask(const output& x, const output& mask, const op_name& name);

void select_shape(shape_context& c);
void select_v2_shape(shape_context& c);
void where_shape(shape_context& c);
void one_hot_shape(shape_context& c);
void top_k_shape(shape_context& c);
void unique_shape(shape_context& c);
void unique_v2_shape(shape_context& c);
void list_diff_shape(shape_context& c);
void dynamic_partition_shape(shape_context& c);
void dynamic_stitch_shape(shape_context& c);

#if WEFT_HAS_BODIES
// A condition has the shape of what it chooses from, or is a scalar, or a vector that chooses rows.
WEFT_DECL void select_shape(shape_context& c) {
  const partial_shape& condition = c.input(0);
  const auto data = merge_shapes(c.input(1), c.input(2));
  if (!data) c.fail("both choices must have one shape, found " + c.input(1).text() + " and " + c.input(2).text());
  if (!condition.known_rank() || !data->known_rank() || condition.rank() == 0) return c.set_output(0, *data);
  const bool rows = condition.rank() == 1 && data->rank() > 1;
  const auto both = merge_shapes(condition, rows ? partial_shape({(*data)[0]}) : *data);
  if (!both) c.fail("a condition of shape " + condition.text() + " cannot choose from shape " + data->text());
  c.set_output(0, rows ? *data : *both);
}

WEFT_DECL void select_v2_shape(shape_context& c) {
  const auto data = broadcast_shapes(c.input(1), c.input(2));
  const auto all = data ? broadcast_shapes(c.input(0), *data) : std::nullopt;
  if (!all) c.fail("shapes " + c.input(0).text() + " of the condition, " + c.input(1).text() + " and " + c.input(2).text() + " cannot be broadcast");
  c.set_output(0, *all);
}

WEFT_DECL void where_shape(shape_context& c) {
  if (c.running()) expect_dims_at_least(c, 0, 1, "the input");
  c.set_output(0, partial_shape({-1, c.input(0).known_rank() ? static_cast<std::int64_t>(c.input(0).rank()) : -1}));
}

WEFT_DECL void one_hot_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  const std::int64_t axis = c.attr<std::int64_t>("axis");
  if (axis < -1) c.fail("attribute 'axis' must be at least -1, found " + std::to_string(axis));
  const auto depth = scalar_input(c, 1, "depth");
  if (depth && *depth < 0) c.fail("depth must not be negative, found " + std::to_string(*depth));
  if (c.running()) {
    (void)c.with_rank(2, 0, "on_value");
    (void)c.with_rank(3, 0, "off_value");
  }
  if (!in.known_rank()) return;
  if (axis > in.rank()) c.fail("attribute 'axis' must be at most " + std::to_string(in.rank()) + ", the rank of the indices, found " + std::to_string(axis));
  size_list sizes = in.sizes();
  sizes.insert(axis < 0 ? sizes.end() : sizes.begin() + axis, depth.value_or(-1));
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void top_k_shape(shape_context& c) {
  const auto k = c.input_count() > 1 ? scalar_input(c, 1, "k") : std::optional<std::int64_t>(c.attr<std::int64_t>("k"));
  if (k && *k < 0) c.fail("k must not be negative, found " + std::to_string(*k));
  expect_dims_at_least(c, 0, 1, "the input");
  const partial_shape& in = c.input(0);
  if (!in.known_rank()) return;
  size_list sizes = in.sizes();
  if (k && sizes.back() >= 0 && sizes.back() < *k) c.fail("rows of " + std::to_string(sizes.back()) + " elements have no " + std::to_string(*k) + " largest");
  sizes.back() = k.value_or(-1);
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, partial_shape(sizes));
}

WEFT_DECL void unique_shape(shape_context& c) {
  const partial_shape in = c.with_rank(0, 1, "x");
  c.set_output(0, partial_shape({-1}));
  c.set_output(1, in);
  if (c.output_count() > 2) c.set_output(2, partial_shape({-1}));
}

// The axis is a vector of one element, or of none for the only axis of a vector.
WEFT_DECL void unique_v2_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  const auto axis = c.input_integers(1);
  (void)c.with_rank(1, 1, "axis");
  if (axis && axis->size() > 1) c.fail("axis may have one element, found " + std::to_string(axis->size()));
  if (axis && axis->empty() && in.known_rank() && in.rank() != 1) c.fail("x must be a vector when no axis is given, found shape " + in.text());
  size_list values, index{-1};
  if (in.known_rank()) {
    values.assign(in.sizes().size(), -1);
    if (axis) {
      const int at = axis->empty() ? 0 : axis_in_rank(c, axis->front(), in.rank());
      values = in.sizes();
      index[0] = values[static_cast<std::size_t>(at)];
      values[static_cast<std::size_t>(at)] = -1;
    }
    c.set_output(0, partial_shape(values));
  }
  c.set_output(1, partial_shape(index));
  if (c.output_count() > 2) c.set_output(2, partial_shape({-1}));
}

WEFT_DECL void list_diff_shape(shape_context& c) {
  (void)c.with_rank(0, 1, "x");
  (void)c.with_rank(1, 1, "y");
  c.set_output(0, partial_shape({-1}));
  c.set_output(1, partial_shape({-1}));
}

// What is left of the shape of `data` behind that of `indices`, with which it begins; unknown when either rank is.
inline partial_shape rest_behind(const shape_context& c, const partial_shape& data, const partial_shape& indices, const char* what) {
  if (!data.known_rank() || !indices.known_rank()) return partial_shape();
  bool fits = data.rank() >= indices.rank();
  for (int i = 0; fits && i < indices.rank(); ++i) fits = data[i] < 0 || indices[i] < 0 || data[i] == indices[i];
  if (!fits) c.fail("data of shape " + data.text() + " must begin with the shape " + indices.text() + " of its " + what);
  return partial_shape(sizes_between(data, indices.rank(), data.rank()));
}

WEFT_DECL void dynamic_partition_shape(shape_context& c) {
  const partial_shape rest = rest_behind(c, c.input(0), c.input(1), "partitions");
  if (!rest.known_rank()) return;
  size_list sizes{-1};
  append(sizes, rest.sizes());
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, partial_shape(sizes));
}

// As many rows as the largest index says; inputs are all indices, then all data.
WEFT_DECL void dynamic_stitch_shape(shape_context& c) {
  const int count = c.input_count() / 2;
  partial_shape rest;
  std::int64_t rows = 0;
  for (int i = 0; i < count; ++i) {
    const partial_shape found = rest_behind(c, c.input(count + i), c.input(i), "indices");
    const auto both = merge_shapes(rest, found);
    if (!both) c.fail("behind their indices all data must have one shape, found " + rest.text() + " and " + found.text());
    rest = *both;
    const auto indices = c.input_integers(i);
    if (!indices) rows = -1;
    for (std::size_t k = 0; rows >= 0 && k < indices->size(); ++k) rows = std::max(rows, (*indices)[k] + 1);
  }
  if (!rest.known_rank()) return;
  size_list sizes{rows};
  append(sizes, rest.sizes());
  c.set_output(0, partial_shape(std::move(sizes)));
}

inline constexpr op_row array_select_ops[] = {
    {"Select(condition: bool, t: T, e: T) -> output: T", "T: type", select_shape},
    {"SelectV2(condition: bool, t: T, e: T) -> output: T", "T: type", select_v2_shape},
    {"Where(input: T) -> index: int64", "T: {numbers, complex, bool} = bool", where_shape},
    {"OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> output: T", "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64", one_hot_shape},
    {"TopK(input: T) -> values: T, indices: int32", "k: int >= 0; sorted: bool = true; T: {numbers}", top_k_shape},
    {"TopKV2(input: T, k: Tk) -> values: T, indices: index_type", "sorted: bool = true; T: {numbers}; Tk: {int16, int32, int64} = int32; index_type: {int16, int32, int64} = int32", top_k_shape},
    {"Unique(x: T) -> y: T, idx: out_idx", "T: type; out_idx: {int32, int64} = int32", unique_shape},
    {"UniqueWithCounts(x: T) -> y: T, idx: out_idx, count: out_idx", "T: type; out_idx: {int32, int64} = int32", unique_shape},
    {"UniqueV2(x: T, axis: Taxis) -> y: T, idx: out_idx", "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32", unique_v2_shape},
    {"UniqueWithCountsV2(x: T, axis: Taxis) -> y: T, idx: out_idx, count: out_idx", "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32", unique_v2_shape},
    {"ListDiff(x: T, y: T) -> out: T, idx: out_idx", "T: type; out_idx: {int32, int64} = int32", list_diff_shape},
    {"DynamicPartition(data: T, partitions: int32) -> outputs: num_partitions * T", "num_partitions: int >= 1; T: type", dynamic_partition_shape},
    {"DynamicStitch ParallelDynamicStitch(indices: N * int32, data: N * T) -> merged: T", "N: int >= 1; T: type", dynamic_stitch_shape},
};

WEFT_DECL output add_boolean_mask(const output& x, const output& mask, const op_name& name) {
  if (x.from == nullptr || mask.from == nullptr) fail_builder("boolean_mask", "an operand is an empty tensor, not made by any op", name);
  const std::string full = claim_name(x.from->owner(), name, "boolean_mask");
  const output positions = add_node_at("Where", {mask}, full + "/Where", name.site);
  return add_node_at("GatherNd", {x, positions}, full, name.site);
}
#endif

}  // namespace detail

/// Elements of x where the condition holds, of y elsewhere, with broadcasting (SelectV2).
template <int C, class T, int N, class U, int M>
tensor<T, detail::wider_rank(C, detail::wider_rank(N, M))> where(const operand<bool, C>& condition, const operand<T, N>& x, const operand<U, M>& y, op_name name = {}) {
  static_assert(std::is_same_v<T, U>, "weft: where needs two tensors of one dtype; convert one with weft::cast<T>(...)");
  return tensor<T, detail::wider_rank(C, detail::wider_rank(N, M))>(output{&detail::add_op("SelectV2", "Select", {condition.as_input(name.site), x.as_input(name.site), y.as_input(name.site)}, name), 0});
}
template <int C, class T, int N> tensor<T, detail::wider_rank(C, N)> where(const operand<bool, C>& condition, const operand<T, N>& x, std::common_type_t<detail::scalar<T>> y, op_name name = {}) {
  return tensor<T, detail::wider_rank(C, N)>(output{&detail::add_op("SelectV2", "Select", {condition.as_input(name.site), x.as_input(name.site), {"e", tensor_value::scalar(y.value)}}, name), 0});
}
template <int C, class T, int N> tensor<T, detail::wider_rank(C, N)> where(const operand<bool, C>& condition, std::common_type_t<detail::scalar<T>> x, const operand<T, N>& y, op_name name = {}) {
  return tensor<T, detail::wider_rank(C, N)>(output{&detail::add_op("SelectV2", "Select", {condition.as_input(name.site), {"t", tensor_value::scalar(x.value)}, y.as_input(name.site)}, name), 0});
}
/// The positions of what is not false or 0, in C order: `[count, rank]` (Where).
template <class T, int N> tensor<std::int64_t, 2> where(const operand<T, N>& x, op_name name = {}) {
  static_assert(N != 0, "weft: a tensor of rank 0 has no positions");
  return tensor<std::int64_t, 2>(output{&detail::add_op("Where", "Where", {x.as_input(name.site)}, name), 0});
}
/// Elements of x or y, which have one shape; a vector as the condition chooses rows (Select).
template <int C, class T, int N> tensor<T, N> select(const operand<bool, C>& condition, const operand<T, N>& x, const operand<T, N>& y, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("Select", "Select", {condition.as_input(name.site), x.as_input(name.site), y.as_input(name.site)}, name), 0});
}
/// The slices of x whose place in the mask, a tensor over its first dimensions, is true: `[count] + x.shape[mask.rank:]` (Where, GatherNd).
template <class T, int N, int M> tensor<T, detail::masked_rank(N, M)> boolean_mask(const operand<T, N>& x, const operand<bool, M>& mask, op_name name = {}) {
  static_assert(M != 0, "weft: a mask has at least one dimension");
  static_assert(N == dynamic_rank || M <= N, "weft: the mask has more dimensions than the tensor");
  return tensor<T, detail::masked_rank(N, M)>(detail::add_boolean_mask(x.as_input(name.site), mask.as_input(name.site), name));
}

/// For each index a vector of `depth` elements, 1 at its place and 0 elsewhere, along a new axis, the last by default; indices outside have no place (OneHot).
template <class T = float, class I, int N> tensor<T, detail::more_rank(N, 1)> one_hot(const operand<I, N>& indices, int depth, int axis = -1, op_name name = {}) {
  return tensor<T, detail::more_rank(N, 1)>(
      output{&detail::add_op("OneHot", "one_hot", {indices.as_input(name.site), {"depth", std::int64_t{depth}}, {"on_value", tensor_value::scalar(static_cast<T>(1))}, {"off_value", tensor_value::scalar(static_cast<T>(0))}},
                             name, {{"axis", std::int64_t{axis}}}), 0});
}
/// The same with other values than 1 and 0.
template <class I, int N, class V, class T = dtype_t<V>> tensor<T, detail::more_rank(N, 1)> one_hot_values(const operand<I, N>& indices, int depth, const V& on, const V& off, int axis = -1, op_name name = {}) {
  return tensor<T, detail::more_rank(N, 1)>(
      output{&detail::add_op("OneHot", "one_hot", {indices.as_input(name.site), {"depth", std::int64_t{depth}}, {"on_value", tensor_value::scalar<T>(T(on))}, {"off_value", tensor_value::scalar<T>(T(off))}}, name,
                             {{"axis", std::int64_t{axis}}}), 0});
}

/// Values and their positions in the last dimension.
template <class T, int N> struct top_k_result {
  tensor<T, N> values;
  tensor<std::int32_t, N> indices;
};
/// The `k` largest elements of each row, the largest first, the lower position first among equals (TopKV2).
template <class T, int N> top_k_result<T, N> top_k(const operand<T, N>& x, int k = 1, op_name name = {}) {
  static_assert(N != 0, "weft: a tensor of rank 0 has no rows");
  const node& n = detail::add_op("TopKV2", "TopKV2", {x.as_input(name.site), {"k", std::int64_t{k}}}, name);
  return {tensor<T, N>(output{&n, 0}), tensor<std::int32_t, N>(output{&n, 1})};
}

/// Elements without repetition, for each element of x its position in them, and how often each occurs.
template <class T> struct unique_result {
  tensor<T, 1> values;
  tensor<std::int32_t, 1> indices;
};
template <class T> struct counted_unique_result {
  tensor<T, 1> values;
  tensor<std::int32_t, 1> indices, counts;
};
/// The elements of a vector in the order in which they occur first (Unique).
template <class T, int N> unique_result<T> unique(const operand<T, N>& x, op_name name = {}) {
  static_assert(N == 1 || N == dynamic_rank, "weft: unique takes a vector");
  const node& n = detail::add_op("Unique", "Unique", {x.as_input(name.site)}, name);
  return {tensor<T, 1>(output{&n, 0}), tensor<std::int32_t, 1>(output{&n, 1})};
}
/// The same with counts (UniqueWithCounts).
template <class T, int N> counted_unique_result<T> unique_with_counts(const operand<T, N>& x, op_name name = {}) {
  static_assert(N == 1 || N == dynamic_rank, "weft: unique_with_counts takes a vector");
  const node& n = detail::add_op("UniqueWithCounts", "UniqueWithCounts", {x.as_input(name.site)}, name);
  return {tensor<T, 1>(output{&n, 0}), tensor<std::int32_t, 1>(output{&n, 1}), tensor<std::int32_t, 1>(output{&n, 2})};
}

/// Slices of data by the number, from 0 to below `count`, that partitions give them (DynamicPartition).
template <class T, int N, int M> std::vector<tensor<T, detail::masked_rank(N, M)>> dynamic_partition(const operand<T, N>& data, const operand<std::int32_t, M>& partitions, int count, op_name name = {}) {
  static_assert(N == dynamic_rank || M <= N, "weft: partitions have more dimensions than the data");
  const node& n = detail::add_op("DynamicPartition", "DynamicPartition", {data.as_input(name.site), partitions.as_input(name.site)}, name, {{"num_partitions", std::int64_t{count}}});
  return detail::outputs_of<T, detail::masked_rank(N, M)>(n, 0, n.output_count());
}
/// Slices of data at the rows that their indices name, later ones over earlier ones (DynamicStitch).
template <class T, int N, int M> tensor<T, detail::masked_rank(N, M)> dynamic_stitch(const std::vector<tensor<std::int32_t, M>>& indices, const std::vector<tensor<T, N>>& data, op_name name = {}) {
  if (indices.size() != data.size()) detail::fail_builder("dynamic_stitch", "there are " + std::to_string(indices.size()) + " indices for " + std::to_string(data.size()) + " tensors", name);
  std::vector<detail::op_input> inputs = detail::inputs_of(indices, name.site);
  for (const auto& t : data) inputs.push_back(t.as_input(name.site));
  return tensor<T, detail::masked_rank(N, M)>(output{&detail::add_op("DynamicStitch", "DynamicStitch", inputs, name), 0});
}

}  // namespace weft

#endif
