#ifndef WEFT_TRAIN_PARTITIONED_VARIABLE_HPP
#define WEFT_TRAIN_PARTITIONED_VARIABLE_HPP
// Variables in pieces, each of which may live on a parameter server of its own: `v/part_0`, `v/part_1`, ... Follows TensorFlow's partitioned variables.

#include <weft/core/config.hpp>
#include <weft/ops/array_join.hpp>
#include <weft/train/variable_scope.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
// The pieces of a variable, and where along which axis they begin.
struct pieces {
  std::vector<variable_nodes> nodes;
  std::vector<std::int64_t> offsets;
  int axis = 0;
};
pieces get_pieces(std::string_view name, const shape& s, dtype type, const variable_options& options, const weft::partitioner& split, call_site where);
output join_pieces(const std::vector<output>& reads, int axis, const op_name& name);
std::vector<operation> assign_pieces(const std::vector<output>& handles, int axis, const output& value, const op_name& name);
}  // namespace detail

/// A variable in pieces along one axis. A handle.
template <class T, int N = dynamic_rank> class partitioned_variable {
 public:
  using dtype = T;
  static constexpr int rank = N;

  partitioned_variable() = default;
  partitioned_variable(std::string name, weft::shape whole, const detail::pieces& made) : name_(std::move(name)), shape_(std::move(whole)), offsets_(made.offsets), axis_(made.axis) {
    for (const detail::variable_nodes& one : made.nodes) pieces_.push_back(variable<T, N>(one));
  }

  const std::string& name() const noexcept { return name_; }
  /// The shape of the whole.
  const weft::shape& shape() const noexcept { return shape_; }
  /// The axis that is split; 0 where there is one piece.
  int axis() const noexcept { return axis_; }
  /// The pieces in their order, for optimizers and `embedding_lookup`.
  const std::vector<variable<T, N>>& pieces() const noexcept { return pieces_; }
  /// Where each piece begins along the axis.
  const std::vector<std::int64_t>& offsets() const noexcept { return offsets_; }

  /// The whole at the time this is computed (ConcatV2 of the pieces' values).
  tensor<T, N> read(op_name name = {}) const {
    std::vector<output> reads;
    for (const auto& piece : pieces_) reads.push_back(piece.as_input(name.site));
    return tensor<T, N>(detail::join_pieces(reads, axis_, name));
  }
  /// The same where an op takes a tensor.
  operator tensor<T, N>() const { return read(); }
  /// Replaces the value of each piece by its part of `value`.
  template <int M> operation assign(const operand<T, M>& value, op_name name = {}) const {
    static_assert(N == dynamic_rank || M == dynamic_rank || N == M, "weft: the value has another rank than the variable");
    std::vector<output> handles;
    for (const auto& piece : pieces_) handles.push_back(piece.raw());
    return group(detail::assign_pieces(handles, axis_, value.as_input(name.site), name), name);
  }
  /// Runs the initial values into all pieces.
  operation initializer(op_name name = {}) const {
    std::vector<operation> all;
    for (const auto& piece : pieces_) all.push_back(piece.initializer());
    return group(all, name);
  }

 private:
  std::string name_;
  weft::shape shape_;
  std::vector<variable<T, N>> pieces_;
  std::vector<std::int64_t> offsets_;
  int axis_ = 0;
};

/// As `get_variable`, in the pieces that a partitioner says, or the scope's if this one is empty. Fans and identities are those of the whole. Throws INVALID_ARGUMENT too when neither says anything, and when what is
/// reused has been split in another way.
template <class T, std::size_t M>
partitioned_variable<T, static_cast<int>(M)> get_partitioned_variable(std::string_view name, const std::int64_t (&dims)[M], const weft::partitioner& split = {}, const variable_options& options = {},
                                                                      call_site where = call_site::here()) {
  const shape whole(std::vector<std::int64_t>(dims, dims + M));
  return {detail::full_variable_name(name, where), whole, detail::get_pieces(name, whole, dtype_of<T>, options, split, where)};
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft::detail {

// The sizes of the pieces of an axis: the first ones are longer by one where it does not come out even.
WEFT_DECL std::vector<std::int64_t> piece_sizes(std::int64_t length, std::int64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count), length / count);
  for (std::int64_t i = 0; i < length % count; ++i) ++out[static_cast<std::size_t>(i)];
  return out;
}

// `5 2 0,3:0,2`: the part of a tensor of shape [5,2] that begins there, as savers name it.
WEFT_DECL std::string slice_text(const shape& whole, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& sizes) {
  std::string out;
  for (const std::int64_t size : whole) out += std::to_string(size) + " ";
  for (std::size_t d = 0; d < sizes.size(); ++d) out += (d == 0 ? "" : ":") + std::to_string(begin[d]) + "," + std::to_string(sizes[d]);
  return out;
}

WEFT_DECL pieces get_pieces(std::string_view name, const shape& s, dtype type, const variable_options& options, const weft::partitioner& split, call_site where) {
  const variable_scope_value scope = get_variable_scope();
  const weft::partitioner& by = split.empty() ? scope.options.partitioner : split;
  const std::string full = full_variable_name(name, where);
  if (by.empty()) throw error(error_code::invalid_argument, "get_partitioned_variable: '" + full + "' has no partitioner, nor has its variable scope", where);
  if (s.rank() == 0) throw error(error_code::invalid_argument, "get_partitioned_variable: the scalar '" + full + "' has no axis to split", where);
  // 1. The axis and the pieces' sizes.
  std::vector<std::int64_t> counts;
  try {
    counts = by(s, type);
  } catch (const error& e) {
    throw error(e.code(), e.message(), where);
  }
  pieces out;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 1) out.axis = static_cast<int>(i);
  const std::vector<std::int64_t> sizes = piece_sizes(s[out.axis], counts[static_cast<std::size_t>(out.axis)]);
  // 2. Each piece is made, or found.
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::int64_t> dims(s.begin(), s.end()), begin(dims.size(), 0);
    dims[static_cast<std::size_t>(out.axis)] = sizes[i];
    begin[static_cast<std::size_t>(out.axis)] = offset;
    const std::string part = full + "/part_" + std::to_string(i);
    const node* there = find_named_variable(part, scope.options.reuse, where);
    if (there == nullptr) {
      out.nodes.push_back(make_named_variable(part, {shape(dims), type, s, begin, where}, with_scope(options)));
      current_graph()->add_to_collection("saved_slice:" + full + " " + slice_text(s, begin, dims), out.nodes.back().handle.from);
    } else {
      const any_variable found(output{there, 0}, where);
      if (!merge_shapes(found.shape(), partial_shape(dims)))
        throw error(error_code::invalid_argument, "the variable '" + part + "' made at " + found.site().text() + " has shape " + found.shape().text() + ", it is to be reused as a piece of shape " + shape(dims).text(), where);
      out.nodes.push_back(found.nodes_as(type, dynamic_rank, where));
    }
    out.offsets.push_back(offset);
    offset += sizes[i];
  }
  // 3. No piece is left over.
  const std::string next = full + "/part_" + std::to_string(sizes.size());
  if (const auto more = current_graph()->collection("variable_store:" + next); !more.empty())
    throw error(error_code::invalid_argument, "the variable '" + full + "' made at " + more[0]->site().text() + " has more than the " + std::to_string(sizes.size()) + " pieces as which it is to be reused", where);
  return out;
}

WEFT_DECL output join_pieces(const std::vector<output>& reads, int axis, const op_name& name) {
  if (reads.empty()) throw error(error_code::invalid_argument, "the partitioned variable is empty", name.site);
  if (reads.size() == 1) return reads[0];
  std::vector<op_input> inputs(reads.begin(), reads.end());
  inputs.push_back({"axis", std::int64_t{axis}});
  return {&add_op("ConcatV2", "concat", inputs, name), 0};
}

WEFT_DECL std::vector<operation> assign_pieces(const std::vector<output>& handles, int axis, const output& value, const op_name& name) {
  if (handles.empty()) throw error(error_code::invalid_argument, "the partitioned variable is empty", name.site);
  std::vector<operation> out;
  const auto assign = [&](const output& handle, const output& part) { out.push_back(any_variable(handle, name.site).assign(part, op_name(name.site))); };
  if (handles.size() == 1) {
    assign(handles[0], value);
    return out;
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < handles.size(); ++i) sizes.push_back(any_variable(handles[i], name.site).shape()[axis]);
  const node& parts = add_op("SplitV", "split", {value, {"size_splits", int_list(sizes)}, {"split_dim", std::int64_t{axis}}}, op_name(name.site), {{"num_split", static_cast<std::int64_t>(handles.size())}});
  for (std::size_t i = 0; i < handles.size(); ++i) assign(handles[i], {&parts, static_cast<int>(i)});
  return out;
}

}  // namespace weft::detail
#endif

#endif
