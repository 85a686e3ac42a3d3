#ifndef WEFT_OPS_ARRAY_JOIN_HPP
#define WEFT_OPS_ARRAY_JOIN_HPP
// Ops that put tensors together or take them apart along an axis, and those that repeat or surround one.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array_rules.hpp>
#include <weft/ops/axis.hpp>
#include <weft/ops/op_input.hpp>

#include <string>
#include <vector>

namespace weft {

/// What is put before and behind a dimension.
struct padding {
  std::int64_t before, after;
  constexpr padding(std::int64_t b, std::int64_t a) : before(b), after(a) {}
};

namespace detail {

// Paddings as a matrix of two columns.
tensor_value paddings_value(std::initializer_list<padding> paddings);

void concat_shape(shape_context& c);
void concat_v2_shape(shape_context& c);
void concat_offset_shape(shape_context& c);
void pack_shape(shape_context& c);
void unpack_shape(shape_context& c);
void split_shape(shape_context& c);
void split_v_shape(shape_context& c);
void tile_shape(shape_context& c);
void pad_shape(shape_context& c);
void mirror_pad_shape(shape_context& c);
void mirror_pad_grad_shape(shape_context& c);

#if WEFT_HAS_BODIES
// `count` tensors from input `first` on, joined along the axis in input `axis_input`.
inline void joined_shape(shape_context& c, int first, int count, int axis_input) {
  const auto wanted = scalar_input(c, axis_input, "the axis");
  int rank = dynamic_rank;
  for (int i = first; i < first + count; ++i) {
    const partial_shape& s = c.input(i);
    if (!s.known_rank()) continue;
    if (rank != dynamic_rank && s.rank() != rank) c.fail("the shapes must have one rank, found " + std::to_string(rank) + " dimensions and shape " + s.text() + " of input " + std::to_string(i - first));
    rank = s.rank();
  }
  if (rank == 0) c.fail("scalars have no axis to join along; stack them with Pack");
  if (rank == dynamic_rank || !wanted) return c.set_output(0, partial_shape::of_rank(rank));
  const int axis = axis_in_rank(c, *wanted, rank);
  size_list sizes(static_cast<std::size_t>(rank), -1);
  sizes[static_cast<std::size_t>(axis)] = 0;
  int decided_by = first;
  for (int i = first; i < first + count; ++i) {
    const partial_shape& s = c.input(i);
    if (s.known_rank() && !c.input(decided_by).known_rank()) decided_by = i;
    for (int d = 0; d < rank; ++d) {
      std::int64_t& size = sizes[static_cast<std::size_t>(d)];
      const std::int64_t found = s.known_rank() ? s[d] : -1;
      if (d == axis) {
        size = size_sum(c, size, found);
        continue;
      }
      if (size >= 0 && found >= 0 && size != found)
        c.fail("shapes " + c.input(decided_by).text() + " of input " + std::to_string(decided_by - first) + " and " + s.text() + " of input " + std::to_string(i - first) +
               " differ in another dimension than " + std::to_string(axis));
      if (size < 0) size = found;
    }
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void concat_shape(shape_context& c) { joined_shape(c, 1, c.input_count() - 1, 0); }
WEFT_DECL void concat_v2_shape(shape_context& c) { joined_shape(c, 0, c.input_count() - 1, c.input_count() - 1); }

WEFT_DECL void concat_offset_shape(shape_context& c) {
  (void)c.with_rank(0, 0, "concat_dim");
  for (int i = 1; i < c.input_count() && i <= c.output_count(); ++i) c.set_output(i - 1, c.with_rank(i, 1, "a shape"));
}

WEFT_DECL void pack_shape(shape_context& c) {
  partial_shape all = c.input(0);
  for (int i = 1; i < c.input_count(); ++i) {
    const auto both = merge_shapes(all, c.input(i));
    if (!both) c.fail("shapes " + all.text() + " of input 0 and " + c.input(i).text() + " of input " + std::to_string(i) + " differ");
    all = *both;
  }
  if (!all.known_rank()) return;
  size_list sizes = all.sizes();
  sizes.insert(sizes.begin() + axis_in_rank(c, c.attr<std::int64_t>("axis"), all.rank() + 1), c.input_count());
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void unpack_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  if (!in.known_rank()) return;
  const int axis = axis_in_rank(c, c.attr<std::int64_t>("axis"), in.rank());
  if (in[axis] >= 0 && in[axis] != c.output_count())
    c.fail("dimension " + std::to_string(axis) + " of shape " + in.text() + " must be " + std::to_string(c.output_count()) + ", as attribute 'num' says");
  size_list sizes = in.sizes();
  sizes.erase(sizes.begin() + axis);
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, partial_shape(sizes));
}

WEFT_DECL void split_shape(shape_context& c) {
  const auto wanted = scalar_input(c, 0, "split_dim");
  const partial_shape& in = c.input(1);
  partial_shape part = partial_shape::of_rank(in.rank());
  if (in.known_rank() && wanted) {
    const int axis = axis_in_rank(c, *wanted, in.rank(), "split_dim");
    size_list sizes = in.sizes();
    sizes[static_cast<std::size_t>(axis)] = size_quotient(c, in[axis], c.output_count(), "dimension " + std::to_string(axis) + " of size");
    part = partial_shape(std::move(sizes));
  }
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, part);
}

// The sizes of SplitV's parts of a dimension, the open one filled in where it can be.
inline size_list split_sizes(const shape_context& c, size_list parts, std::int64_t whole) {
  std::int64_t sum = 0, *open = nullptr;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] >= 0) {
      sum = size_sum(c, sum, parts[i]);
      continue;
    }
    if (parts[i] != -1) c.fail("size_splits[" + std::to_string(i) + "] cannot be " + std::to_string(parts[i]));
    if (open != nullptr) c.fail("only one of size_splits may be -1");
    open = &parts[i];
  }
  if (whole < 0) return parts;
  if (open != nullptr ? sum > whole : sum != whole)
    c.fail("a dimension of size " + std::to_string(whole) + " cannot be split into " + (open != nullptr ? "parts of which the known ones are " : "parts that together are ") + std::to_string(sum));
  if (open != nullptr) *open = whole - sum;
  return parts;
}

WEFT_DECL void split_v_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  const std::int64_t length = c.with_rank(1, 1, "size_splits")[0];
  if (length >= 0 && length != c.output_count())
    c.fail("size_splits must have " + std::to_string(c.output_count()) + " elements, one for each output, found " + std::to_string(length));
  const auto wanted = scalar_input(c, 2, "split_dim");
  const auto parts = c.input_integers(1);
  if (!in.known_rank()) return;
  const int axis = wanted ? axis_in_rank(c, *wanted, in.rank(), "split_dim") : -1;
  const size_list sizes = parts && axis >= 0 ? split_sizes(c, *parts, in[axis]) : size_list(static_cast<std::size_t>(c.output_count()), -1);
  for (int i = 0; i < c.output_count(); ++i) {
    size_list part = axis >= 0 ? size_list(in.sizes()) : size_list(in.sizes().size(), -1);
    if (axis >= 0) part[static_cast<std::size_t>(axis)] = sizes[static_cast<std::size_t>(i)];
    c.set_output(i, partial_shape(std::move(part)));
  }
}

WEFT_DECL void tile_shape(shape_context& c) {
  const std::int64_t count = c.with_rank(1, 1, "multiples")[0];
  const partial_shape in = c.input(0).known_rank() || count < 0 || count > max_rank ? c.input(0) : partial_shape::of_rank(static_cast<int>(count));
  if (!in.known_rank()) return;
  if (count >= 0 && count != in.rank()) c.fail("multiples must have " + std::to_string(in.rank()) + " elements, one for each dimension of shape " + in.text() + ", found " + std::to_string(count));
  const auto multiples = c.input_integers(1);
  size_list sizes(in.sizes().size(), -1);
  for (std::size_t i = 0; multiples && i < sizes.size(); ++i) {
    if ((*multiples)[i] < 0) c.fail("multiples[" + std::to_string(i) + "] cannot be " + std::to_string((*multiples)[i]));
    sizes[i] = size_product(c, in.sizes()[i], (*multiples)[i]);
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

// The rank that the input and the paddings, a matrix of two columns, agree on; unknown when neither says it.
inline int padded_rank(const shape_context& c) {
  const partial_shape paddings = c.with_rank(1, 2, "paddings");
  const partial_shape& in = c.input(0);
  if (paddings[1] >= 0 && paddings[1] != 2) c.fail("paddings must have two columns, before and after, found shape " + paddings.text());
  if (paddings[0] > max_rank || (in.known_rank() && paddings[0] >= 0 && paddings[0] != in.rank()))
    c.fail("paddings must have one row for each dimension of shape " + in.text() + ", found shape " + paddings.text());
  return in.known_rank() ? in.rank() : static_cast<int>(paddings[0]);
}

// Paddings of dimension i, before and after.
struct pad_pair {
  std::int64_t before, after;
};
inline pad_pair pad_of(const shape_context& c, const size_list& paddings, std::size_t i) {
  const pad_pair out{paddings[2 * i], paddings[2 * i + 1]};
  if (out.before < 0 || out.after < 0) c.fail("paddings must not be negative, found " + std::to_string(out.before) + " and " + std::to_string(out.after) + " for dimension " + std::to_string(i));
  return out;
}

WEFT_DECL void pad_shape(shape_context& c) {
  const int rank = padded_rank(c);
  if (rank < 0) return;
  if (c.input_count() > 2) (void)c.with_rank(2, 0, "constant_values");
  const auto paddings = c.input_integers(1);
  size_list sizes(static_cast<std::size_t>(rank), -1);
  for (std::size_t i = 0; paddings && i < sizes.size(); ++i) {
    const pad_pair pad = pad_of(c, *paddings, i);
    sizes[i] = size_sum(c, size_sum(c, pad.before, pad.after), c.input(0).known_rank() ? c.input(0).sizes()[i] : -1);
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

// A mirrored border may be as wide as what it mirrors, without the edge itself under REFLECT.
inline void expect_mirrored(const shape_context& c, const pad_pair& pad, std::int64_t size, std::size_t i) {
  const bool reflect = c.attr<std::string>("mode") == "REFLECT";
  const std::int64_t most = reflect ? size - 1 : size;
  if (pad.before > std::max<std::int64_t>(most, 0) || pad.after > std::max<std::int64_t>(most, 0))
    c.fail("paddings " + std::to_string(pad.before) + " and " + std::to_string(pad.after) + " of dimension " + std::to_string(i) + " must " + (reflect ? "be less than" : "not exceed") + " its size " + std::to_string(size));
}

WEFT_DECL void mirror_pad_shape(shape_context& c) {
  pad_shape(c);
  if (!c.running()) return;
  const auto paddings = c.input_integers(1);
  for (std::size_t i = 0; paddings && i < c.input(0).sizes().size(); ++i) expect_mirrored(c, pad_of(c, *paddings, i), c.input(0).sizes()[i], i);
}

WEFT_DECL void mirror_pad_grad_shape(shape_context& c) {
  const int rank = padded_rank(c);
  if (rank < 0) return;
  const auto paddings = c.input_integers(1);
  size_list sizes(static_cast<std::size_t>(rank), -1);
  for (std::size_t i = 0; paddings && i < sizes.size(); ++i) {
    const pad_pair pad = pad_of(c, *paddings, i);
    const std::int64_t size = c.input(0).known_rank() ? c.input(0).sizes()[i] : -1, border = size_sum(c, pad.before, pad.after);
    if (size < 0) continue;
    if (border > size) c.fail("dimension " + std::to_string(i) + " of size " + std::to_string(size) + " cannot hold paddings of together " + std::to_string(border));
    sizes[i] = size - border;
    if (c.running()) expect_mirrored(c, pad, sizes[i], i);
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

inline constexpr op_row array_join_ops[] = {
    {"Concat(concat_dim: int32, values: N * T) -> output: T", "N: int >= 2; T: type", concat_shape},
    {"ConcatV2(values: N * T, axis: Tidx) -> output: T", "N: int >= 2; T: type; Tidx: {int32, int64} = int32", concat_v2_shape},
    {"ConcatOffset(concat_dim: int32, shape: N * shape_type) -> offset: N * shape_type", "N: int >= 2; shape_type: {int32, int64} = int32", concat_offset_shape},
    {"Pack(values: N * T) -> output: T", "N: int >= 1; T: type; axis: int = 0", pack_shape},
    {"Unpack(value: T) -> output: num * T", "num: int >= 0; T: type; axis: int = 0", unpack_shape},
    {"Split(split_dim: int32, value: T) -> output: num_split * T", "num_split: int >= 1; T: type", split_shape},
    {"SplitV(value: T, size_splits: Tlen, split_dim: int32) -> output: num_split * T", "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64", split_v_shape},
    {"Tile(input: T, multiples: Tmultiples) -> output: T", "T: type; Tmultiples: {int32, int64} = int32", tile_shape},
    {"Pad(input: T, paddings: Tpaddings) -> output: T", "T: type; Tpaddings: {int32, int64} = int32", pad_shape},
    {"PadV2(input: T, paddings: Tpaddings, constant_values: T) -> output: T", "T: type; Tpaddings: {int32, int64} = int32", pad_shape},
    {"MirrorPad(input: T, paddings: Tpaddings) -> output: T", "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}", mirror_pad_shape},
    {"MirrorPadGrad(input: T, paddings: Tpaddings) -> output: T", "T: type; Tpaddings: {int32, int64} = int32; mode: {'REFLECT', 'SYMMETRIC'}", mirror_pad_grad_shape},
};

WEFT_DECL tensor_value paddings_value(std::initializer_list<padding> paddings) {
  std::vector<std::int64_t> values;
  for (const padding& p : paddings) values.insert(values.end(), {p.before, p.after});
  return op_input::integers_value(values, shape{static_cast<std::int64_t>(paddings.size()), 2});
}
#endif

}  // namespace detail

/// Tensors one after the other along an axis that they have, all other sizes equal (ConcatV2). A single tensor is passed on (Identity). Throws INVALID_ARGUMENT for an empty list.
template <class T, int N> tensor<T, N> concat(const std::vector<tensor<T, N>>& values, int axis, op_name name = {}) {
  if (values.empty()) detail::fail_builder("concat", "there is nothing to join", name);
  std::vector<detail::op_input> inputs = detail::inputs_of(values, name.site);
  if (values.size() == 1) return tensor<T, N>(output{&detail::add_op("Identity", "concat", inputs, name), 0});
  inputs.push_back({"axis", std::int64_t{axis}});
  return tensor<T, N>(output{&detail::add_op("ConcatV2", "concat", inputs, name), 0});
}
template <class T, int N> tensor<T, N> concat(std::initializer_list<tensor<T, N>> values, int axis, op_name name = {}) { return concat(std::vector<tensor<T, N>>(values), axis, name); }

/// Tensors of one shape side by side along a new axis (Pack). Throws INVALID_ARGUMENT for an empty list.
template <class T, int N> tensor<T, detail::more_rank(N, 1)> stack(const std::vector<tensor<T, N>>& values, int axis = 0, op_name name = {}) {
  if (values.empty()) detail::fail_builder("stack", "there is nothing to join", name);
  return tensor<T, detail::more_rank(N, 1)>(output{&detail::add_op("Pack", "stack", detail::inputs_of(values, name.site), name, {{"axis", std::int64_t{axis}}}), 0});
}
template <class T, int N> tensor<T, detail::more_rank(N, 1)> stack(std::initializer_list<tensor<T, N>> values, int axis = 0, op_name name = {}) { return stack(std::vector<tensor<T, N>>(values), axis, name); }

/// The `count` slices of x along an axis of that size, without the axis (Unpack).
template <class T, int N> std::vector<tensor<T, detail::less_rank(N, 1)>> unstack(const operand<T, N>& x, int count, int axis = 0, op_name name = {}) {
  static_assert(N != 0, "weft: a tensor of rank 0 has no axis to take apart");
  const node& n = detail::add_op("Unpack", "unstack", {x.as_input(name.site)}, name, {{"num", std::int64_t{count}}, {"axis", std::int64_t{axis}}});
  return detail::outputs_of<T, detail::less_rank(N, 1)>(n, 0, n.output_count());
}

/// `count` parts of equal size along an axis (Split).
template <class T, int N> std::vector<tensor<T, N>> split(const operand<T, N>& x, int count, int axis = 0, op_name name = {}) {
  const node& n = detail::add_op("Split", "split", {{"split_dim", std::int64_t{axis}}, x.as_input(name.site)}, name, {{"num_split", std::int64_t{count}}});
  return detail::outputs_of<T, N>(n, 0, n.output_count());
}
/// Parts of these sizes along an axis, of which one may be -1 (SplitV).
template <class T, int N> std::vector<tensor<T, N>> split(const operand<T, N>& x, std::initializer_list<std::int64_t> sizes, int axis = 0, op_name name = {}) {
  const node& n = detail::add_op("SplitV", "split", {x.as_input(name.site), {"size_splits", detail::int_list(sizes)}, {"split_dim", std::int64_t{axis}}}, name, {{"num_split", static_cast<std::int64_t>(sizes.size())}});
  return detail::outputs_of<T, N>(n, 0, n.output_count());
}

/// x repeated so often along each dimension (Tile).
template <class T, int N> tensor<T, N> tile(const operand<T, N>& x, std::initializer_list<std::int64_t> multiples, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("Tile", "Tile", {x.as_input(name.site), {"multiples", detail::int_list(multiples)}}, name), 0});
}
template <class T, int N, class I, int M, std::enable_if_t<detail::is_integer_v<I>, int> = 0> tensor<T, N> tile(const operand<T, N>& x, const operand<I, M>& multiples, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("Tile", "Tile", {x.as_input(name.site), multiples.as_input(name.site)}, name), 0});
}

/// How a mirrored border begins: with the element beside the edge, or with that at the edge again.
enum class mirror_mode { reflect, symmetric };

/// x inside a border of zeros, one padding for each dimension (Pad).
template <class T, int N> tensor<T, N> pad(const operand<T, N>& x, std::initializer_list<padding> paddings, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("Pad", "Pad", {x.as_input(name.site), {"paddings", detail::paddings_value(paddings)}}, name), 0});
}
/// x inside a border of one value (PadV2).
template <class T, int N> tensor<T, N> pad(const operand<T, N>& x, std::initializer_list<padding> paddings, std::common_type_t<detail::scalar<T>> value, op_name name = {}) {
  return tensor<T, N>(
      output{&detail::add_op("PadV2", "PadV2", {x.as_input(name.site), {"paddings", detail::paddings_value(paddings)}, {"constant_values", tensor_value::scalar(value.value)}}, name), 0});
}
/// x inside a border that mirrors it (MirrorPad).
template <class T, int N> tensor<T, N> mirror_pad(const operand<T, N>& x, std::initializer_list<padding> paddings, mirror_mode mode, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("MirrorPad", "MirrorPad", {x.as_input(name.site), {"paddings", detail::paddings_value(paddings)}}, name,
                                             {{"mode", mode == mirror_mode::reflect ? "REFLECT" : "SYMMETRIC"}}), 0});
}

}  // namespace weft

#endif
