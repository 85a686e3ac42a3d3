#ifndef WEFT_OPS_ARRAY_SLICE_HPP
#define WEFT_OPS_ARRAY_SLICE_HPP
// Ops that read or write parts of a tensor: by bounds, strides or indices.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array_rules.hpp>
#include <weft/ops/strided_slice.hpp>

#include <string>
#include <vector>

namespace weft::detail {

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
#endif

}  // namespace weft::detail

#endif
