#ifndef WEFT_OPS_FILE_HPP
#define WEFT_OPS_FILE_HPP
// Ops that write tensors to files of the task they run on and read them back. Their kernels are `file_kernels()`, which a server or session is given with the folder they may use.

#include <weft/graph/tensor.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/shape_rules.hpp>

#include <string>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

#if WEFT_HAS_BODIES
// A prefix, names, slices: the vectors must be equally long.
inline void expect_tensor_names(const shape_context& c, std::int64_t count) {
  (void)c.with_rank(0, 0, "prefix");
  for (const int i : {1, 2}) {
    const char* what = i == 1 ? "tensor_names" : "shape_and_slices";
    const partial_shape s = c.with_rank(i, 1, what);
    if (s[0] >= 0 && s[0] != count) c.fail(std::string(what) + " must have shape [" + std::to_string(count) + "], one for each tensor, found " + s.text());
  }
}
inline void save_shape(shape_context& c) { expect_tensor_names(c, c.input_count() - 3); }
inline void restore_shape(shape_context& c) { expect_tensor_names(c, c.output_count()); }
inline void sharded_filename_shape(shape_context& c) {
  (void)c.with_rank(0, 0, "basename");
  if (c.input_count() == 3) (void)c.with_rank(1, 0, "shard");
  (void)c.with_rank(c.input_count() - 1, 0, "num_shards");
  c.set_output(0, partial_shape({}));
}
inline void merge_checkpoints_shape(shape_context& c) {
  (void)c.with_rank(0, 1, "checkpoint_prefixes");
  (void)c.with_rank(1, 0, "destination_prefix");
}

inline constexpr op_row file_ops[] = {
    {"SaveV2(prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes)", "dtypes: list(type) >= 1", save_shape, op_flags::stateful},
    {"RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string) -> tensors: dtypes", "dtypes: list(type) >= 1", restore_shape, op_flags::stateful},
    {"MergeV2Checkpoints(checkpoint_prefixes: string, destination_prefix: string)", "delete_old_dirs: bool = true; allow_missing_files: bool = false", merge_checkpoints_shape, op_flags::stateful},
    {"ShardedFilename(basename: string, shard: int32, num_shards: int32) -> filename: string", "", sharded_filename_shape},
    {"ShardedFilespec(basename: string, num_shards: int32) -> filename: string", "", sharded_filename_shape},
};
#endif

inline output names_constant(const std::vector<std::string>& names, const char* what, const op_name& name, graph_state& to) {
  return output{&add_const(tensor_value::from(shape{static_cast<std::int64_t>(names.size())}, names), op_name(what, name.site), &to), 0};
}

}  // namespace detail

/// Writes tensors under these names to the file `prefix` of the task's folder (SaveV2). `slices` say which part of a larger tensor each is (`784 10 0,392:-`); empty, or as many as there are tensors.
inline operation save_tensors(const tensor<std::string, 0>& prefix, const std::vector<std::string>& names, const std::vector<output>& tensors, std::vector<std::string> slices = {}, op_name name = {}) {
  if (prefix.raw().from == nullptr) throw error(error_code::invalid_argument, "the prefix is an empty tensor, not made by any op", name.site);
  if (slices.empty()) slices.resize(names.size());
  detail::graph_state& to = prefix.raw().from->owner();
  std::vector<output> inputs{prefix.raw(), detail::names_constant(names, "tensor_names", name, to), detail::names_constant(slices, "shape_and_slices", name, to)};
  inputs.insert(inputs.end(), tensors.begin(), tensors.end());
  return operation(detail::add_node("SaveV2", std::move(inputs), name));
}

/// Reads the tensors of these names and dtypes from the checkpoint `prefix` of the task's folder, or slices of them (RestoreV2).
inline std::vector<output> restore_tensors(const tensor<std::string, 0>& prefix, const std::vector<std::string>& names, const std::vector<dtype>& types, std::vector<std::string> slices = {},
                                           op_name name = {}) {
  if (prefix.raw().from == nullptr) throw error(error_code::invalid_argument, "the prefix is an empty tensor, not made by any op", name.site);
  if (slices.empty()) slices.resize(names.size());
  detail::graph_state& to = prefix.raw().from->owner();
  const node& n = detail::add_node("RestoreV2", {prefix.raw(), detail::names_constant(names, "tensor_names", name, to), detail::names_constant(slices, "shape_and_slices", name, to)}, name, {{"dtypes", types}});
  std::vector<output> out;
  for (int i = 0; i < n.output_count(); ++i) out.push_back({&n, i});
  return out;
}

/// Makes one checkpoint of those that several tasks have written where this one sees them: it writes an index of them, whose appearance is what makes the checkpoint exist (MergeV2Checkpoints).
inline operation merge_checkpoints(const tensor<std::string, 1>& prefixes, const tensor<std::string, 0>& destination, op_name name = {}) {
  return operation(detail::add_node("MergeV2Checkpoints", {prefixes.as_input(name.site), destination.as_input(name.site)}, name));
}

/// `basename-00001-of-00003` (ShardedFilename).
inline tensor<std::string, 0> sharded_filename(const tensor<std::string, 0>& basename, const tensor<std::int32_t, 0>& shard, const tensor<std::int32_t, 0>& num_shards, op_name name = {}) {
  return tensor<std::string, 0>(output{&detail::add_node("ShardedFilename", {basename.as_input(name.site), shard.as_input(name.site), num_shards.as_input(name.site)}, name), 0});
}

}  // namespace weft

#endif
