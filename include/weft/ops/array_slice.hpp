#ifndef WEFT_OPS_ARRAY_SLICE_HPP
#define WEFT_OPS_ARRAY_SLICE_HPP
// Ops that read or write parts of a tensor: by bounds, strides or indices.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array_rules.hpp>
#include <weft/ops/axis.hpp>
#include <weft/ops/op_input.hpp>
#include <weft/ops/strided_slice.hpp>

#include <string>
#include <vector>

namespace weft {

namespace detail {

// A list as int32 when both lists fit, else as int64.
tensor_value same_width(const int_list& list, const int_list& a, const int_list& b);

void slice_shape(shape_context& c);
void strided_slice_shape(shape_context& c);
void strided_slice_grad_shape(shape_context& c);
void gather_shape(shape_context& c);
void gather_v2_shape(shape_context& c);
void gather_nd_shape(shape_context& c);
void scatter_nd_shape(shape_context& c);
void tensor_scatter_shape(shape_context& c);
void reverse_v2_shape(shape_context& c);
void reverse_sequence_shape(shape_context& c);

#if WEFT_HAS_BODIES
WEFT_DECL void slice_shape(shape_context& c) {
  const std::int64_t length = size_merged(c, c.with_rank(1, 1, "begin")[0], c.with_rank(2, 1, "size")[0], "the lengths of begin and size");
  const partial_shape sizes = shape_from_input(c, 2, "size", -1), in = length >= 0 && length <= max_rank ? c.with_rank(0, static_cast<int>(length), "a tensor with so many begins") : c.input(0);
  if (!in.known_rank()) return;
  if (!sizes.known_rank()) return c.set_output(0, partial_shape::of_rank(in.rank()));
  const auto begin = c.input_integers(1), asked = c.input_integers(2);
  size_list out = sizes.sizes();
  for (int i = 0; i < in.rank(); ++i) {
    std::int64_t& size = out[static_cast<std::size_t>(i)];
    if (c.running() && ((*begin)[static_cast<std::size_t>(i)] < 0 || (*begin)[static_cast<std::size_t>(i)] > in[i]))
      c.fail("begin[" + std::to_string(i) + "] = " + std::to_string((*begin)[static_cast<std::size_t>(i)]) + " is not in [0, " + std::to_string(in[i]) + "]");
    // A size of -1 asks for the rest.
    if (size < 0 && asked && begin && in[i] >= 0) {
      size = in[i] - (*begin)[static_cast<std::size_t>(i)];
      if ((*begin)[static_cast<std::size_t>(i)] < 0 || size < 0)
        c.fail("begin[" + std::to_string(i) + "] = " + std::to_string((*begin)[static_cast<std::size_t>(i)]) + " is not in [0, " + std::to_string(in[i]) + "]");
    }
    if (c.running() && size > in[i] - (*begin)[static_cast<std::size_t>(i)])
      c.fail("size[" + std::to_string(i) + "] = " + std::to_string(size) + " is not in [0, " + std::to_string(in[i] - (*begin)[static_cast<std::size_t>(i)]) + "]");
  }
  c.set_output(0, partial_shape(std::move(out)));
}

WEFT_DECL void strided_slice_shape(shape_context& c) {
  if (auto plan = plan_strided_slice(c, c.input(0), 1)) c.set_output(0, partial_shape(std::move(plan->result)));
}

WEFT_DECL void strided_slice_grad_shape(shape_context& c) {
  const partial_shape whole = shape_from_input(c, 0, "shape");
  const auto plan = plan_strided_slice(c, whole, 1);
  if (c.running() && plan && partial_shape(plan->result) != c.input(4)) c.fail("dy must have shape " + partial_shape(plan->result).text() + ", found " + c.input(4).text());
  c.set_output(0, whole);
}

// params[..., indices, ...] at an axis; the first `batch` dimensions of both go together.
inline void gathered_shape(shape_context& c, int axis, int batch) {
  const partial_shape &params = c.input(0), &indices = c.input(1);
  for (int i = 0; i < batch; ++i) (void)size_merged(c, params[i], indices[i], "batch dimension " + std::to_string(i) + " of params and indices");
  size_list sizes = sizes_between(params, 0, axis);
  append(sizes, sizes_between(indices, batch, indices.rank()));
  append(sizes, sizes_between(params, axis + 1, params.rank()));
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void gather_shape(shape_context& c) {
  expect_dims_at_least(c, 0, 1, "params");
  if (c.input(0).known_rank() && c.input(1).known_rank()) gathered_shape(c, 0, 0);
}

WEFT_DECL void gather_v2_shape(shape_context& c) {
  expect_dims_at_least(c, 0, 1, "params");
  const auto wanted = scalar_input(c, 2, "axis");
  const partial_shape &params = c.input(0), &indices = c.input(1);
  if (!params.known_rank() || !indices.known_rank()) return;
  std::int64_t batch = c.attr<std::int64_t>("batch_dims");
  if (batch < -indices.rank() || batch > indices.rank() || batch > params.rank())
    c.fail("attribute 'batch_dims' is " + std::to_string(batch) + ", params have shape " + params.text() + " and indices " + indices.text());
  if (batch < 0) batch += indices.rank();
  if (!wanted) {
    const std::int64_t rank = params.rank() - 1 + indices.rank() - batch;
    return c.set_output(0, rank >= 0 && rank <= max_rank ? partial_shape::of_rank(static_cast<int>(rank)) : partial_shape());
  }
  const int axis = axis_in_rank(c, *wanted, params.rank());
  if (batch > axis) c.fail("attribute 'batch_dims' is " + std::to_string(batch) + ", it cannot be more than the axis " + std::to_string(axis));
  gathered_shape(c, axis, static_cast<int>(batch));
}

WEFT_DECL void gather_nd_shape(shape_context& c) {
  expect_dims_at_least(c, 1, 1, "indices");
  const partial_shape &params = c.input(0), &indices = c.input(1);
  if (!params.known_rank() || !indices.known_rank()) return;
  const std::int64_t depth = indices[indices.rank() - 1];
  if (depth < 0) return;
  if (depth > params.rank()) c.fail("indices of shape " + indices.text() + " name " + std::to_string(depth) + " dimensions, params of shape " + params.text() + " have " + std::to_string(params.rank()));
  size_list sizes = sizes_between(indices, 0, indices.rank() - 1);
  append(sizes, sizes_between(params, static_cast<int>(depth), params.rank()));
  c.set_output(0, partial_shape(std::move(sizes)));
}

// Updates are one slice of the output for each index: indices.shape[:-1] + output.shape[depth:].
inline void expect_updates(const shape_context& c, const partial_shape& indices, const partial_shape& updates, const partial_shape& out) {
  if (indices.known_rank() && indices.rank() == 0) c.fail("indices must have at least 1 dimension, found shape []");
  if (!indices.known_rank() || !updates.known_rank()) return;
  const int outer = indices.rank() - 1;
  const std::int64_t depth = indices[outer];
  if (depth > out.rank() && out.known_rank()) c.fail("indices of shape " + indices.text() + " name " + std::to_string(depth) + " dimensions, the output of shape " + out.text() + " has " + std::to_string(out.rank()));
  size_list wanted = sizes_between(indices, 0, outer);
  const bool all = depth >= 0 && out.known_rank();
  if (all) append(wanted, sizes_between(out, static_cast<int>(depth), out.rank()));
  bool fits = all ? updates.rank() == static_cast<int>(wanted.size()) : updates.rank() >= outer;
  for (std::size_t i = 0; fits && i < wanted.size(); ++i) fits = wanted[i] < 0 || updates.sizes()[i] < 0 || wanted[i] == updates.sizes()[i];
  if (!fits) c.fail("updates must have shape " + partial_shape(wanted).text() + (all ? "" : " and more") + " (indices " + indices.text() + ", output " + out.text() + "), found " + updates.text());
}

WEFT_DECL void scatter_nd_shape(shape_context& c) {
  const partial_shape out = shape_from_input(c, 2, "shape");
  expect_updates(c, c.input(0), c.input(1), out);
  c.set_output(0, out);
}

WEFT_DECL void tensor_scatter_shape(shape_context& c) {
  expect_dims_at_least(c, 0, 1, "tensor");
  expect_updates(c, c.input(1), c.input(2), c.input(0));
  c.set_output(0, c.input(0));
}

WEFT_DECL void reverse_v2_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  (void)c.with_rank(1, 1, "axis");
  if (const auto axes = c.input_integers(1); axes && in.known_rank()) {
    std::vector<bool> seen(static_cast<std::size_t>(in.rank()), false);
    for (const std::int64_t wanted : *axes) {
      const int axis = axis_in_rank(c, wanted, in.rank());
      if (seen[static_cast<std::size_t>(axis)]) c.fail("axis " + std::to_string(axis) + " is named twice");
      seen[static_cast<std::size_t>(axis)] = true;
    }
  }
  c.set_output(0, in);
}

WEFT_DECL void reverse_sequence_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  const std::int64_t count = c.with_rank(1, 1, "seq_lengths")[0], seq = c.attr<std::int64_t>("seq_dim"), batch = c.attr<std::int64_t>("batch_dim");
  if (seq < 0 || batch < 0) c.fail("attributes 'seq_dim' and 'batch_dim' must not be negative, found " + std::to_string(seq) + " and " + std::to_string(batch));
  if (!in.known_rank()) return;
  if (seq >= in.rank() || batch >= in.rank()) c.fail("attributes 'seq_dim' " + std::to_string(seq) + " and 'batch_dim' " + std::to_string(batch) + " must be dimensions of shape " + in.text());
  if (c.running() && seq == batch) c.fail("attributes 'seq_dim' and 'batch_dim' must differ, both are " + std::to_string(seq));
  size_list sizes = in.sizes();
  std::int64_t& size = sizes[static_cast<std::size_t>(batch)];
  size = size_merged(c, size, count, "the batch dimension " + std::to_string(batch) + " and the number of seq_lengths");
  c.set_output(0, partial_shape(std::move(sizes)));
}

#define WEFT_SLICE_MASKS "; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0"
inline constexpr op_row array_slice_ops[] = {
    {"Slice(input: T, begin: Index, size: Index) -> output: T", "T: type; Index: {int32, int64}", slice_shape},
    {"StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> output: T", "T: type; Index: {int16, int32, int64}" WEFT_SLICE_MASKS, strided_slice_shape},
    {"StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> output: T", "T: type; Index: {int32, int64}" WEFT_SLICE_MASKS, strided_slice_grad_shape},
    {"Gather(params: Tparams, indices: Tindices) -> output: Tparams", "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}", gather_shape},
    {"GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> output: Tparams", "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}", gather_v2_shape},
    {"GatherNd(params: Tparams, indices: Tindices) -> output: Tparams", "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''", gather_nd_shape},
    {"ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> output: T", "T: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''", scatter_nd_shape},
    {"TensorScatterUpdate(tensor: T, indices: Tindices, updates: T) -> output: T", "T: type; Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = ''", tensor_scatter_shape},
    {"TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin(tensor: T, indices: Tindices, updates: T) -> output: T",
     "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''", tensor_scatter_shape},
    {"ReverseV2(tensor: T, axis: Tidx) -> output: T", "Tidx: {int32, int64} = int32; T: {numbers, bool, complex, string}", reverse_v2_shape},
    {"ReverseSequence(input: T, seq_lengths: Tlen) -> output: T", "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = int64", reverse_sequence_shape},
};
#undef WEFT_SLICE_MASKS

WEFT_DECL tensor_value same_width(const int_list& list, const int_list& a, const int_list& b) {
  size_list both = a.values;
  append(both, b.values);
  tensor_value all = op_input::integers_value(both, shape{static_cast<std::int64_t>(both.size())});
  const shape length{static_cast<std::int64_t>(list.values.size())};
  return all.dtype() == dtype::int64 ? tensor_value::from<std::int64_t>(length, list.values) : op_input::integers_value(list.values, length);
}

// The inputs and masks of the StridedSlice that a list of entries asks for.
class strided_slice_builder {
 public:
  strided_slice_builder(const output& x, const index_item* items, std::size_t count, call_site where) : x_(x), items_(items), count_(count), site_(where) {}
  output build();

 private:
  output bounds(const char* name, std::vector<std::int64_t> values);
  const output& x_;
  const index_item* items_;
  std::size_t count_;
  call_site site_;
  bool computed_ = false;
  dtype type_ = dtype::int32;
  std::string full_;
};

// A constant, or a Pack of constants and what the graph computes.
inline output strided_slice_builder::bounds(const char* name, std::vector<std::int64_t> values) {
  graph_state& to = x_.from->owner();
  const auto number = [&](const std::vector<std::int64_t>& list, shape s, const std::string& below) {
    tensor_value v(type_, std::move(s));
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (type_ == dtype::int64) v.mutable_data<std::int64_t>()[i] = list[i];
      else v.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(list[i]);
    }
    return add_const_at(std::move(v), full_ + "/" + below, site_, to);
  };
  if (!computed_) return number(values, shape{static_cast<std::int64_t>(count_)}, name);
  std::vector<output> parts;
  for (std::size_t i = 0; i < count_; ++i) {
    const output& at = items_[i].computed;
    const std::string below = std::string(name) + "/" + std::to_string(i);
    if (at.from == nullptr) parts.push_back(number({values[i]}, shape(), below));
    else if (at.from->output_dtype(at.index) == type_) parts.push_back(at);
    else parts.push_back(add_node_at("Cast", {at}, full_ + "/" + below, site_, {{"DstT", type_}}));
  }
  return add_node_at("Pack", std::move(parts), full_ + "/" + name, site_);
}

// 1. The width that all positions need. 2. Bounds and masks. An index that the graph computes stands in begin and end: shrinking looks at begin only. 3. The nodes.
inline output strided_slice_builder::build() {
  if (x_.from == nullptr) throw error(error_code::invalid_argument, "StridedSlice: the operand is an empty tensor, not made by any op", site_);
  std::vector<std::int64_t> begin, end, strides;
  std::int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
  const auto wide = [](std::int64_t v) { return v != static_cast<std::int32_t>(v); };
  for (std::size_t i = 0; i < count_; ++i) {
    const index_item& item = items_[i];
    const std::int64_t bit = std::int64_t{1} << i;
    const bool position = item.what == index_item::kind::position;
    if (item.computed.from != nullptr) {
      computed_ = true;
      if (item.computed.from->output_dtype(item.computed.index) != dtype::int32) type_ = dtype::int64;
    }
    begin.push_back(item.bounds.begin);
    // The end of a single position is the next one; behind the last one lies none, but it is not looked at.
    end.push_back(position ? (item.bounds.begin == std::numeric_limits<std::int64_t>::max() ? item.bounds.begin : item.bounds.begin + 1) : item.bounds.end);
    strides.push_back(item.bounds.step);
    if (wide(begin.back()) || wide(end.back()) || wide(strides.back())) type_ = dtype::int64;
    if (item.what == index_item::kind::range && item.bounds.open_begin) begin_mask |= bit;
    if (item.what == index_item::kind::range && item.bounds.open_end) end_mask |= bit;
    if (item.what == index_item::kind::ellipsis) ellipsis_mask |= bit;
    if (item.what == index_item::kind::new_axis) new_axis_mask |= bit;
    if (position) shrink_axis_mask |= bit;
  }
  full_ = claim_name(x_.from->owner(), op_name(site_), "strided_slice");
  const output first = bounds("stack", begin), last = bounds("stack_1", end);
  computed_ = false;
  const output steps = bounds("stack_2", strides);
  return add_node_at("StridedSlice", {x_, first, last, steps}, full_, site_,
                     {{"begin_mask", begin_mask}, {"end_mask", end_mask}, {"ellipsis_mask", ellipsis_mask}, {"new_axis_mask", new_axis_mask}, {"shrink_axis_mask", shrink_axis_mask}});
}

WEFT_DECL output add_strided_slice(const output& x, const index_item* items, std::size_t count, call_site where) { return strided_slice_builder(x, items, count, where).build(); }
#endif

}  // namespace detail

/// `size` elements of each dimension from `begin` on; a size of -1 asks for the rest (Slice). `x(slice(...), ...)` says the same by ends.
template <class T, int N> tensor<T, N> slice_of(const operand<T, N>& x, std::initializer_list<std::int64_t> begin, std::initializer_list<std::int64_t> size, op_name name = {}) {
  const detail::int_list from(begin), count(size);
  const auto value = [&](const detail::int_list& list) { return detail::same_width(list, from, count); };
  return tensor<T, N>(output{&detail::add_op("Slice", "Slice", {x.as_input(name.site), {"begin", value(from)}, {"size", value(count)}}, name), 0});
}

/// Slices of params along an axis, in the order of the indices: `params.shape[:axis] + indices.shape + params.shape[axis + 1:]` (GatherV2). An index outside fails the step.
template <class T, int N, class I, int M> tensor<T, detail::gathered_rank(N, M)> gather(const operand<T, N>& params, const operand<I, M>& indices, int axis = 0, op_name name = {}) {
  static_assert(detail::is_integer_v<I>, "weft: indices are int32 or int64");
  static_assert(N != 0, "weft: a tensor of rank 0 has nothing to gather from");
  return tensor<T, detail::gathered_rank(N, M)>(output{&detail::add_op("GatherV2", "GatherV2", {params.as_input(name.site), indices.as_input(name.site), {"axis", std::int64_t{axis}}}, name), 0});
}
template <class T, int N> tensor<T, N> gather(const operand<T, N>& params, std::initializer_list<std::int64_t> indices, int axis = 0, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("GatherV2", "GatherV2", {params.as_input(name.site), {"indices", detail::int_list(indices)}, {"axis", std::int64_t{axis}}}, name), 0});
}
/// The same for each entry of a batch: the first `batch_dims` dimensions of params and indices go together (GatherV2).
template <class T, int N, class I, int M> tensor<T> batch_gather(const operand<T, N>& params, const operand<I, M>& indices, int batch_dims, int axis, op_name name = {}) {
  static_assert(detail::is_integer_v<I>, "weft: indices are int32 or int64");
  return tensor<T>(output{&detail::add_op("GatherV2", "GatherV2", {params.as_input(name.site), indices.as_input(name.site), {"axis", std::int64_t{axis}}}, name, {{"batch_dims", std::int64_t{batch_dims}}}), 0});
}
/// The slices of params that the rows of indices name (GatherNd): `indices.shape[:-1] + params.shape[indices.shape[-1]:]`.
template <class T, int N, class I, int M> tensor<T> gather_nd(const operand<T, N>& params, const operand<I, M>& indices, op_name name = {}) {
  static_assert(detail::is_integer_v<I>, "weft: indices are int32 or int64");
  return tensor<T>(output{&detail::add_op("GatherNd", "GatherNd", {params.as_input(name.site), indices.as_input(name.site)}, name), 0});
}
/// Zeros of this shape with the updates added at the slices that the rows of indices name (ScatterNd).
template <class I, int M, class T, int N, std::size_t Rank> tensor<T, static_cast<int>(Rank)> scatter_nd(const operand<I, M>& indices, const operand<T, N>& updates, const std::int64_t (&dims)[Rank], op_name name = {}) {
  static_assert(detail::is_integer_v<I>, "weft: indices are int32 or int64");
  std::vector<I> sizes;
  for (const std::int64_t size : dims) sizes.push_back(detail::exact_integer<I>(size, name.site));
  return tensor<T, static_cast<int>(Rank)>(output{
      &detail::add_op("ScatterNd", "ScatterNd", {indices.as_input(name.site), updates.as_input(name.site), {"shape", tensor_value::from<I>({static_cast<std::int64_t>(Rank)}, sizes)}}, name), 0});
}

#define WEFT_TENSOR_SCATTER(NAME, OPNAME)                                                                                                                                                     \
  template <class T, int N, class I, int M, int K> tensor<T, N> NAME(const operand<T, N>& x, const operand<I, M>& indices, const operand<T, K>& updates, op_name name = {}) {                  \
    static_assert(detail::is_integer_v<I>, "weft: indices are int32 or int64");                                                                                                                \
    return tensor<T, N>(output{&detail::add_op(OPNAME, OPNAME, {x.as_input(name.site), indices.as_input(name.site), updates.as_input(name.site)}, name), 0});                                  \
  }
/// x with the slices that the rows of indices name replaced; of several updates of one the last one stays (TensorScatterUpdate).
WEFT_TENSOR_SCATTER(tensor_scatter_update, "TensorScatterUpdate")
/// x with the updates added (TensorScatterAdd).
WEFT_TENSOR_SCATTER(tensor_scatter_add, "TensorScatterAdd")
/// x with the updates subtracted (TensorScatterSub).
WEFT_TENSOR_SCATTER(tensor_scatter_sub, "TensorScatterSub")
/// The larger ones of x and the updates (TensorScatterMax).
WEFT_TENSOR_SCATTER(tensor_scatter_max, "TensorScatterMax")
/// The smaller ones of x and the updates (TensorScatterMin).
WEFT_TENSOR_SCATTER(tensor_scatter_min, "TensorScatterMin")
#undef WEFT_TENSOR_SCATTER

/// x with these dimensions in reverse (ReverseV2).
template <class T, int N> tensor<T, N> reverse(const operand<T, N>& x, std::initializer_list<std::int64_t> axes, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("ReverseV2", "ReverseV2", {x.as_input(name.site), {"axis", detail::int_list(axes)}}, name), 0});
}
/// x with, in each entry of the batch, the first `lengths` elements along `seq_axis` in reverse (ReverseSequence).
template <class T, int N, class I> tensor<T, N> reverse_sequence(const operand<T, N>& x, const operand<I, 1>& lengths, int seq_axis, int batch_axis = 0, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("ReverseSequence", "ReverseSequence", {x.as_input(name.site), lengths.as_input(name.site)}, name, {{"seq_dim", std::int64_t{seq_axis}}, {"batch_dim", std::int64_t{batch_axis}}}), 0});
}

}  // namespace weft

#endif
