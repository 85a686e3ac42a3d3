#ifndef WEFT_OPS_ARRAY_LAYOUT_HPP
#define WEFT_OPS_ARRAY_LAYOUT_HPP
// Ops that move dimensions: transpositions, blocks between space, batch and depth, and diagonals.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array_rules.hpp>
#include <weft/ops/array_join.hpp>
#include <weft/ops/axis.hpp>
#include <weft/ops/op_input.hpp>

#include <string>
#include <vector>

namespace weft {

namespace detail {

// A transposition that turns the order of the dimensions around.
output add_transpose(const output& x, const op_name& name);

void transpose_shape(shape_context& c);
void invert_permutation_shape(shape_context& c);
void space_to_depth_shape(shape_context& c);
void depth_to_space_shape(shape_context& c);
void space_to_batch_nd_shape(shape_context& c);
void batch_to_space_nd_shape(shape_context& c);
void space_to_batch_shape(shape_context& c);
void batch_to_space_shape(shape_context& c);
void diag_shape(shape_context& c);
void diag_part_shape(shape_context& c);
void matrix_diag_shape(shape_context& c);
void matrix_diag_part_shape(shape_context& c);
void matrix_set_diag_shape(shape_context& c);
void matrix_band_part_shape(shape_context& c);

#if WEFT_HAS_BODIES
WEFT_DECL void transpose_shape(shape_context& c) {
  const std::int64_t length = c.with_rank(1, 1, "perm")[0];
  const partial_shape& in = c.input(0);
  if (in.known_rank() && length >= 0 && length != in.rank()) c.fail("perm must have " + std::to_string(in.rank()) + " elements, one for each dimension of shape " + in.text() + ", found " + std::to_string(length));
  const std::int64_t rank = in.known_rank() ? in.rank() : length;
  if (rank < 0 || rank > max_rank) return;
  const auto perm = c.input_integers(1);
  if (!perm) return c.set_output(0, partial_shape::of_rank(static_cast<int>(rank)));
  size_list sizes;
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  for (const std::int64_t wanted : *perm) {
    const int axis = axis_in_rank(c, wanted, static_cast<int>(rank), "perm");
    if (c.running() && seen[static_cast<std::size_t>(axis)]) c.fail("perm names dimension " + std::to_string(axis) + " twice");
    seen[static_cast<std::size_t>(axis)] = true;
    sizes.push_back(in.known_rank() ? in[axis] : -1);
  }
  // What has no order to change is passed on as it is.
  c.set_output(0, rank < 2 ? in : partial_shape(std::move(sizes)));
}

WEFT_DECL void invert_permutation_shape(shape_context& c) { c.set_output(0, c.with_rank(0, 1, "x")); }

// Dimensions of an image by data format; NCHW_VECT_C has four channels in a fifth dimension.
struct image_dims {
  explicit image_dims(const shape_context& c) {
    const std::string& format = c.attr<std::string>("data_format");
    rank = format == "NCHW_VECT_C" ? 5 : 4;
    if (format == "NHWC") height = 1, width = 2, depth = 3;
  }
  int rank, height = 2, width = 3, depth = 1;
};

WEFT_DECL void space_to_depth_shape(shape_context& c) {
  const image_dims at(c);
  const partial_shape in = c.with_rank(0, at.rank, "input");
  const std::int64_t block = c.attr<std::int64_t>("block_size");
  if (block < 1) c.fail("attribute 'block_size' must be at least 1, found " + std::to_string(block));
  size_list sizes = in.sizes();
  sizes[static_cast<std::size_t>(at.height)] = size_quotient(c, in[at.height], block, "height");
  sizes[static_cast<std::size_t>(at.width)] = size_quotient(c, in[at.width], block, "width");
  sizes[static_cast<std::size_t>(at.depth)] = size_product(c, in[at.depth], size_product(c, block, block));
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void depth_to_space_shape(shape_context& c) {
  const image_dims at(c);
  const partial_shape in = c.with_rank(0, at.rank, "input");
  const std::int64_t block = c.attr<std::int64_t>("block_size");
  if (block < 1) c.fail("attribute 'block_size' must be at least 1, found " + std::to_string(block));
  size_list sizes = in.sizes();
  sizes[static_cast<std::size_t>(at.height)] = size_product(c, in[at.height], block);
  sizes[static_cast<std::size_t>(at.width)] = size_product(c, in[at.width], block);
  sizes[static_cast<std::size_t>(at.depth)] = size_quotient(c, in[at.depth], size_product(c, block, block), "depth");
  c.set_output(0, partial_shape(std::move(sizes)));
}

// What moves between batch and space: sizes of the blocks and, before and after, what is added to each dimension or cut from it. Values that are not known are absent.
struct space_blocks {
  int dims = -1;
  std::optional<size_list> blocks, borders;
};

// `blocks` and `borders` are inputs, the block size an attribute where there is no such input; `name` is that of the borders.
inline space_blocks space_blocks_of(const shape_context& c, const char* name) {
  space_blocks out;
  const bool fixed = c.input_count() == 2;
  const int borders = fixed ? 1 : 2;
  std::int64_t length = fixed ? 2 : c.with_rank(1, 1, "block_shape")[0];
  const partial_shape border_shape = c.with_rank(borders, 2, name);
  if (border_shape[1] >= 0 && border_shape[1] != 2) c.fail(std::string(name) + " must have two columns, found shape " + border_shape.text());
  length = size_merged(c, length, border_shape[0], std::string("the number of block sizes and of rows of ") + name);
  if (length < 0) return out;
  if (length > max_rank) c.fail("at most " + std::to_string(max_rank) + " dimensions can be divided into blocks, found " + std::to_string(length));
  out.dims = static_cast<int>(length);
  out.blocks = fixed ? size_list(2, c.attr<std::int64_t>("block_size")) : c.input_integers(1);
  out.borders = c.input_integers(borders);
  for (std::size_t i = 0; out.blocks && i < out.blocks->size(); ++i)
    if ((*out.blocks)[i] < 1) c.fail("block size " + std::to_string(i) + " must be at least 1, found " + std::to_string((*out.blocks)[i]));
  for (std::size_t i = 0; out.borders && i < out.borders->size(); ++i)
    if ((*out.borders)[i] < 0) c.fail(std::string(name) + " must not be negative, found " + std::to_string((*out.borders)[i]));
  if (c.input(0).known_rank() && c.input(0).rank() <= out.dims) c.fail("a tensor of shape " + c.input(0).text() + " must have a batch dimension and " + std::to_string(out.dims) + " more");
  return out;
}

inline void space_to_batch_rule(shape_context& c) {
  const space_blocks space = space_blocks_of(c, "paddings");
  const partial_shape& in = c.input(0);
  if (space.dims < 0 || !in.known_rank()) return;
  size_list sizes = in.sizes();
  for (std::size_t i = 0; i < static_cast<std::size_t>(space.dims); ++i) {
    sizes[0] = size_product(c, sizes[0], space.blocks ? (*space.blocks)[i] : -1);
    std::int64_t& size = sizes[i + 1];
    if (!space.borders) size = -1;
    else size = size_sum(c, size, size_sum(c, (*space.borders)[2 * i], (*space.borders)[2 * i + 1]));
    size = size_quotient(c, size, space.blocks ? (*space.blocks)[i] : -1, "padded dimension " + std::to_string(i + 1) + " of size");
  }
  c.set_output(0, partial_shape(std::move(sizes)));
}

inline void batch_to_space_rule(shape_context& c) {
  const space_blocks space = space_blocks_of(c, "crops");
  const partial_shape& in = c.input(0);
  if (space.dims < 0 || !in.known_rank()) return;
  size_list sizes = in.sizes();
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(space.dims); ++i) {
    blocks = size_product(c, blocks, space.blocks ? (*space.blocks)[i] : -1);
    std::int64_t& size = sizes[i + 1];
    size = size_product(c, size, space.blocks ? (*space.blocks)[i] : -1);
    const std::int64_t cut = space.borders ? size_sum(c, (*space.borders)[2 * i], (*space.borders)[2 * i + 1]) : -1;
    if (size >= 0 && cut > size) c.fail("dimension " + std::to_string(i + 1) + " of size " + std::to_string(size) + " cannot lose " + std::to_string(cut) + " to crops");
    size = size < 0 || cut < 0 ? -1 : size - cut;
  }
  sizes[0] = size_quotient(c, sizes[0], blocks, "the batch of size");
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void space_to_batch_nd_shape(shape_context& c) { space_to_batch_rule(c); }
WEFT_DECL void batch_to_space_nd_shape(shape_context& c) { batch_to_space_rule(c); }
WEFT_DECL void space_to_batch_shape(shape_context& c) {
  c.set_output(0, c.with_rank(0, 4, "input"));
  space_to_batch_rule(c);
}
WEFT_DECL void batch_to_space_shape(shape_context& c) {
  c.set_output(0, c.with_rank(0, 4, "input"));
  batch_to_space_rule(c);
}

WEFT_DECL void diag_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  expect_dims_at_least(c, 0, 1, "the diagonal");
  if (!in.known_rank()) return;
  size_list sizes = in.sizes();
  append(sizes, in.sizes());
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void diag_part_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  if (!in.known_rank()) return;
  if (in.rank() == 0 || in.rank() % 2 != 0) c.fail("the input must have an even number of dimensions, found shape " + in.text());
  size_list sizes;
  for (int i = 0; i < in.rank() / 2; ++i) sizes.push_back(size_merged(c, in[i], in[i + in.rank() / 2], "dimensions " + std::to_string(i) + " and " + std::to_string(i + in.rank() / 2)));
  c.set_output(0, partial_shape(std::move(sizes)));
}

WEFT_DECL void matrix_diag_shape(shape_context& c) {
  const partial_shape& in = c.input(0);
  expect_dims_at_least(c, 0, 1, "the diagonal");
  if (!in.known_rank()) return;
  size_list sizes = in.sizes();
  sizes.push_back(sizes.back());
  c.set_output(0, partial_shape(std::move(sizes)));
}

// The shape without its last two dimensions, then the smaller of the two.
inline partial_shape diagonal_shape(const partial_shape& in) {
  size_list sizes = in.sizes();
  const std::int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  sizes.pop_back();
  sizes.back() = rows == 0 || columns == 0 ? 0 : rows < 0 || columns < 0 ? -1 : std::min(rows, columns);
  return partial_shape(std::move(sizes));
}

WEFT_DECL void matrix_diag_part_shape(shape_context& c) {
  expect_dims_at_least(c, 0, 2, "the input");
  if (c.input(0).known_rank()) c.set_output(0, diagonal_shape(c.input(0)));
}

WEFT_DECL void matrix_set_diag_shape(shape_context& c) {
  expect_dims_at_least(c, 0, 2, "the input");
  expect_dims_at_least(c, 1, 1, "the diagonal");
  const partial_shape &in = c.input(0), &diagonal = c.input(1);
  if (in.known_rank() && !merge_shapes(diagonal_shape(in), diagonal)) c.fail("the diagonal of shape " + in.text() + " must have shape " + diagonal_shape(in).text() + ", found " + diagonal.text());
  c.set_output(0, in);
}

WEFT_DECL void matrix_band_part_shape(shape_context& c) {
  (void)c.with_rank(1, 0, "num_lower");
  (void)c.with_rank(2, 0, "num_upper");
  if (c.running()) expect_dims_at_least(c, 0, 2, "the input");
  c.set_output(0, c.input(0));
}

inline constexpr op_row array_layout_ops[] = {
    {"Transpose(x: T, perm: Tperm) -> y: T", "T: type; Tperm: {int32, int64} = int32", transpose_shape},
    {"InvertPermutation(x: T) -> y: T", "T: {int32, int64} = int32", invert_permutation_shape},
    {"SpaceToDepth(input: T) -> output: T", "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", space_to_depth_shape},
    {"DepthToSpace(input: T) -> output: T", "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", depth_to_space_shape},
    {"SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings) -> output: T", "T: type; Tblock_shape: {int32, int64} = int32; Tpaddings: {int32, int64} = int32", space_to_batch_nd_shape},
    {"BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops) -> output: T", "T: type; Tblock_shape: {int32, int64} = int32; Tcrops: {int32, int64} = int32", batch_to_space_nd_shape},
    {"SpaceToBatch(input: T, paddings: Tpaddings) -> output: T", "T: type; Tpaddings: {int32, int64} = int32; block_size: int >= 2", space_to_batch_shape},
    {"BatchToSpace(input: T, crops: Tidx) -> output: T", "T: type; block_size: int >= 2; Tidx: {int32, int64} = int32", batch_to_space_shape},
    {"Diag(diagonal: T) -> output: T", "T: {floats, int32, int64, complex}", diag_shape},
    {"DiagPart(input: T) -> diagonal: T", "T: {floats, int32, int64, complex}", diag_part_shape},
    {"MatrixDiag(diagonal: T) -> output: T", "T: type", matrix_diag_shape},
    {"MatrixDiagPart(input: T) -> diagonal: T", "T: type", matrix_diag_part_shape},
    {"MatrixSetDiag(input: T, diagonal: T) -> output: T", "T: type", matrix_set_diag_shape},
    {"MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> band: T", "T: type; Tindex: {int32, int64} = int64", matrix_band_part_shape},
};

// Where the rank is known only when running, the permutation is computed: rank - 1 - range(rank).
WEFT_DECL output add_transpose(const output& x, const op_name& name) {
  if (x.from == nullptr) fail_builder("Transpose", "the operand is an empty tensor, not made by any op", name);
  const partial_shape& s = x.from->output_shape(x.index);
  if (s.known_rank()) {
    std::vector<std::int64_t> perm;
    for (int i = s.rank() - 1; i >= 0; --i) perm.push_back(i);
    return {&add_op("Transpose", "transpose", {x, {"perm", int_list(perm)}}, name), 0};
  }
  graph_state& to = x.from->owner();
  const std::string full = claim_name(to, name, "transpose");
  const auto number = [&](std::int32_t v, const char* below) { return add_const_at(tensor_value::scalar<std::int32_t>(v), full + below, name.site, to); };
  const output rank = add_node_at("Rank", {x}, full + "/Rank", name.site);
  const output start = number(0, "/Range/start"), delta = number(1, "/Range/delta"), one = number(1, "/sub/y");
  const output last = add_node_at("Sub", {rank, one}, full + "/sub", name.site);
  const output order = add_node_at("Range", {start, rank, delta}, full + "/Range", name.site);
  const output perm = add_node_at("Sub", {last, order}, full + "/sub_1", name.site);
  return add_node_at("Transpose", {x, perm}, full, name.site);
}
#endif

}  // namespace detail

/// x with its dimensions in reverse order (Transpose).
template <class T, int N> tensor<T, N> transpose(const operand<T, N>& x, op_name name = {}) { return tensor<T, N>(detail::add_transpose(x.as_input(name.site), name)); }
/// x whose dimension i is dimension `perm[i]` of x (Transpose).
template <class T, int N> tensor<T, N> transpose(const operand<T, N>& x, std::initializer_list<std::int64_t> perm, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("Transpose", "transpose", {x.as_input(name.site), {"perm", detail::int_list(perm)}}, name), 0});
}
template <class T, int N, class I, int M, std::enable_if_t<detail::is_integer_v<I>, int> = 0> tensor<T, N> transpose(const operand<T, N>& x, const operand<I, M>& perm, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("Transpose", "transpose", {x.as_input(name.site), perm.as_input(name.site)}, name), 0});
}
/// y with `y[x[i]] = i` (InvertPermutation).
template <class T, int N> tensor<T, 1> invert_permutation(const operand<T, N>& x, op_name name = {}) {
  static_assert(N == 1 || N == dynamic_rank, "weft: a permutation is a vector");
  return tensor<T, 1>(output{&detail::add_op("InvertPermutation", "InvertPermutation", {x.as_input(name.site)}, name), 0});
}

/// Blocks of `[batch, height, width, channels]` as channels: `[batch, height / block, width / block, block * block * channels]` (SpaceToDepth).
template <class T, int N> tensor<T, 4> space_to_depth(const operand<T, N>& x, int block, op_name name = {}) {
  static_assert(N == 4 || N == dynamic_rank, "weft: images are [batch, height, width, channels]");
  return tensor<T, 4>(output{&detail::add_op("SpaceToDepth", "SpaceToDepth", {x.as_input(name.site)}, name, {{"block_size", std::int64_t{block}}}), 0});
}
/// The inverse of space_to_depth (DepthToSpace).
template <class T, int N> tensor<T, 4> depth_to_space(const operand<T, N>& x, int block, op_name name = {}) {
  static_assert(N == 4 || N == dynamic_rank, "weft: images are [batch, height, width, channels]");
  return tensor<T, 4>(output{&detail::add_op("DepthToSpace", "DepthToSpace", {x.as_input(name.site)}, name, {{"block_size", std::int64_t{block}}}), 0});
}
/// The dimensions behind the batch, padded, in blocks that become entries of the batch (SpaceToBatchND).
template <class T, int N> tensor<T, N> space_to_batch(const operand<T, N>& x, std::initializer_list<std::int64_t> blocks, std::initializer_list<padding> paddings, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("SpaceToBatchND", "SpaceToBatchND", {x.as_input(name.site), {"block_shape", detail::int_list(blocks)}, {"paddings", detail::paddings_value(paddings)}}, name), 0});
}
/// The inverse of space_to_batch, with `crops` cut from the result (BatchToSpaceND).
template <class T, int N> tensor<T, N> batch_to_space(const operand<T, N>& x, std::initializer_list<std::int64_t> blocks, std::initializer_list<padding> crops, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("BatchToSpaceND", "BatchToSpaceND", {x.as_input(name.site), {"block_shape", detail::int_list(blocks)}, {"crops", detail::paddings_value(crops)}}, name), 0});
}

/// A tensor of twice the rank with x on its diagonal (Diag).
template <class T, int N> tensor<T, N == dynamic_rank ? dynamic_rank : 2 * N> diag(const operand<T, N>& x, op_name name = {}) {
  return tensor<T, N == dynamic_rank ? dynamic_rank : 2 * N>(output{&detail::add_op("Diag", "Diag", {x.as_input(name.site)}, name), 0});
}
/// The diagonal of a tensor of shape `[d1, ..., dn, d1, ..., dn]` (DiagPart).
template <class T, int N> tensor<T, N == dynamic_rank ? dynamic_rank : N / 2> diag_part(const operand<T, N>& x, op_name name = {}) {
  static_assert(N == dynamic_rank || (N > 0 && N % 2 == 0), "weft: diag_part needs a tensor of even rank");
  return tensor<T, N == dynamic_rank ? dynamic_rank : N / 2>(output{&detail::add_op("DiagPart", "DiagPart", {x.as_input(name.site)}, name), 0});
}
/// Square matrices with the rows of x on their diagonals: `[..., n, n]` (MatrixDiag).
template <class T, int N> tensor<T, detail::more_rank(N, 1)> matrix_diag(const operand<T, N>& x, op_name name = {}) {
  return tensor<T, detail::more_rank(N, 1)>(output{&detail::add_op("MatrixDiag", "MatrixDiag", {x.as_input(name.site)}, name), 0});
}
/// The diagonals of matrices: `[..., min(m, n)]` (MatrixDiagPart).
template <class T, int N> tensor<T, detail::less_rank(N, 1)> matrix_diag_part(const operand<T, N>& x, op_name name = {}) {
  static_assert(N == dynamic_rank || N >= 2, "weft: matrices have at least two dimensions");
  return tensor<T, detail::less_rank(N, 1)>(output{&detail::add_op("MatrixDiagPart", "MatrixDiagPart", {x.as_input(name.site)}, name), 0});
}
/// x with other diagonals (MatrixSetDiag).
template <class T, int N, int M> tensor<T, N> matrix_set_diag(const operand<T, N>& x, const operand<T, M>& diagonal, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("MatrixSetDiag", "MatrixSetDiag", {x.as_input(name.site), diagonal.as_input(name.site)}, name), 0});
}
/// Matrices with zeros further below the diagonal than `lower` and further above it than `upper`; negative numbers keep everything (MatrixBandPart).
template <class T, int N> tensor<T, N> matrix_band_part(const operand<T, N>& x, std::int64_t lower, std::int64_t upper, op_name name = {}) {
  return tensor<T, N>(output{&detail::add_op("MatrixBandPart", "MatrixBandPart", {x.as_input(name.site), {"num_lower", tensor_value::scalar(lower)}, {"num_upper", tensor_value::scalar(upper)}}, name), 0});
}

}  // namespace weft

#endif
