#ifndef WEFT_KERNELS_ARRAY_SELECT_HPP
#define WEFT_KERNELS_ARRAY_SELECT_HPP
// Kernels that choose elements or sort them out: select, where, one-hot, top k, partitions.

#include <weft/kernels/array_slice.hpp>
#include <weft/kernels/array_unique.hpp>
#include <weft/kernels/function_kernel.hpp>
#include <weft/kernels/strided_copy.hpp>
#include <weft/ops/array_select.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an op that chooses elements; nullptr for other ops.
kernel_factory array_select_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// A row of choices: steps are 1 or 0, in elements.
struct select_row {
  const bool* condition;
  const std::byte *yes, *no;
  std::ptrdiff_t condition_step, yes_step, no_step;
  std::byte* out;
  std::size_t count;
};

template <class Bits> struct select_body {
  template <instruction_set S> WEFT_SIMD_INLINE static void run(const std::uint8_t* condition, const std::byte* yes, const std::byte* no, std::byte* out, std::size_t count) {
    WEFT_SIMD_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
      Bits a, b;
      std::memcpy(&a, yes + i * sizeof(Bits), sizeof(Bits));
      std::memcpy(&b, no + i * sizeof(Bits), sizeof(Bits));
      const Bits chosen = condition[i] != 0 ? a : b;
      std::memcpy(out + i * sizeof(Bits), &chosen, sizeof(Bits));
    }
  }
};

template <std::size_t Size> WEFT_SIMD_OPTIMIZED void select_plain(const select_row& row) {
  for (std::size_t i = 0; i < row.count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i), size = static_cast<std::ptrdiff_t>(Size);
    std::memcpy(row.out + at * size, row.condition[at * row.condition_step] ? row.yes + at * row.yes_step * size : row.no + at * row.no_step * size, Size);
  }
}
template <class Bits> void select_bits(const select_row& row) {
  if (row.condition_step != 1 || row.yes_step != 1 || row.no_step != 1) return select_plain<sizeof(Bits)>(row);
  dispatch<select_body<Bits>>(best_instruction_set(), reinterpret_cast<const std::uint8_t*>(row.condition), row.yes, row.no, row.out, row.count);
}
inline void select_strings(const select_row& row) {
  const auto *yes = reinterpret_cast<const std::string*>(row.yes), *no = reinterpret_cast<const std::string*>(row.no);
  auto* out = reinterpret_cast<std::string*>(row.out);
  for (std::size_t i = 0; i < row.count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    out[i] = row.condition[at * row.condition_step] ? yes[at * row.yes_step] : no[at * row.no_step];
  }
}
inline void select_elements(const select_row& row, std::ptrdiff_t size, bool strings) {
  if (strings) return select_strings(row);
  switch (size) {
    case 1: return select_bits<std::uint8_t>(row);
    case 2: return select_bits<std::uint16_t>(row);
    case 4: return select_bits<std::uint32_t>(row);
    case 8: return select_bits<std::uint64_t>(row);
    default: return select_plain<16>(row);
  }
}

// Dimensions of the result whose operands vary alike, as one; steps in elements, 0 where an operand does not vary.
struct select_axis {
  std::int64_t extent, condition, yes, no;
};
inline std::vector<select_axis> select_axes(const shape& out, const shape& condition, const shape& yes, const shape& no) {
  const std::vector<std::int64_t> steps[3] = {steps_of(condition), steps_of(yes), steps_of(no)};
  const shape* shapes[3] = {&condition, &yes, &no};
  std::vector<select_axis> axes;
  for (int i = 0; i < out.rank(); ++i) {
    std::int64_t step[3];
    for (int k = 0; k < 3; ++k) {
      const int d = i - (out.rank() - shapes[k]->rank());
      step[k] = d < 0 || (*shapes[k])[d] == 1 ? 0 : steps[k][static_cast<std::size_t>(d)];
    }
    if (out[i] == 1) continue;
    const select_axis axis{out[i], step[0], step[1], step[2]};
    if (!axes.empty() && axes.back().condition == axis.extent * axis.condition && axes.back().yes == axis.extent * axis.yes && axes.back().no == axis.extent * axis.no)
      axes.back() = {axes.back().extent * axis.extent, axis.condition, axis.yes, axis.no};
    else
      axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back({1, 0, 0, 0});
  return axes;
}

inline void select_broadcast(kernel_context& context, const shape& s) {
  const tensor_value &condition = context.input(0), &yes = context.input(1), &no = context.input(2);
  tensor_value& out = context.allocate_output(0, yes.dtype(), s);
  if (out.elements() == 0) return;
  const auto axes = select_axes(s, condition.shape(), yes.shape(), no.shape());
  const element_source a = source_of(yes), b = source_of(no);
  const element_target to = target_of(out);
  const select_axis& inner = axes.back();
  select_row row{condition.data<bool>(), a.data, b.data, static_cast<std::ptrdiff_t>(inner.condition), static_cast<std::ptrdiff_t>(inner.yes), static_cast<std::ptrdiff_t>(inner.no), to.data, static_cast<std::size_t>(inner.extent)};
  std::vector<std::int64_t> index(axes.size(), 0);
  for (;;) {
    select_elements(row, a.size, a.strings);
    row.out += inner.extent * to.size;
    std::size_t i = axes.size() - 1;
    for (; i > 0; --i) {
      const select_axis& axis = axes[i - 1];
      const bool more = ++index[i - 1] < axis.extent;
      const std::int64_t moved = more ? 1 : 1 - axis.extent;
      row.condition += moved * axis.condition;
      row.yes += moved * axis.yes * a.size;
      row.no += moved * axis.no * b.size;
      if (more) break;
      index[i - 1] = 0;
    }
    if (i == 0) return;
  }
}

// A single condition passes one choice on.
inline bool select_whole(kernel_context& context, const shape& s) {
  expect_dtype(context, 0, dtype::boolean);
  expect_same_dtype(context, 2, 1);
  if (context.input(0).elements() != 1) return false;
  const int chosen = *context.input(0).data<bool>() ? 1 : 2;
  if (context.input(chosen).shape() != s) return false;
  context.set_output(0, context.take_input(chosen));
  return true;
}

inline void compute_select(kernel_context& context) {
  const shape s = output_shape_now(context, select_shape);
  if (select_whole(context, s)) return;
  if (context.input(0).shape() == s) return select_broadcast(context, s);
  // A vector chooses rows.
  const tensor_value &condition = context.input(0), &yes = context.input(1);
  tensor_value& out = context.allocate_output(0, yes.dtype(), s);
  if (out.elements() == 0) return;
  const std::int64_t rows = s[0], length = out.elements() / rows;
  for (std::int64_t r = 0; r < rows; ++r) copy_elements(context.input(condition.data<bool>()[r] ? 1 : 2), r * length, out, r * length, length);
}
inline void compute_select_v2(kernel_context& context) {
  const shape s = output_shape_now(context, select_v2_shape);
  if (!select_whole(context, s)) select_broadcast(context, s);
}

// Bits of an element that are set in every number but 0: all of them, without the signs of floating ones.
inline std::uint64_t value_bits(dtype type) noexcept {
  switch (type) {
    case dtype::half: case dtype::bfloat16: return 0x7fff;
    case dtype::float32: return 0x7fffffff;
    case dtype::complex64: return 0x7fffffff7fffffff;
    case dtype::float64: case dtype::complex128: return 0x7fffffffffffffff;
    default: return ~std::uint64_t{0};
  }
}
template <class Bits> void find_nonzero(const std::byte* in, std::uint64_t mask, std::int64_t count, std::vector<std::int64_t>& out) {
  for (std::int64_t i = 0; i < count; ++i) {
    Bits value;
    std::memcpy(&value, in + i * static_cast<std::int64_t>(sizeof(Bits)), sizeof(Bits));
    if ((value & static_cast<Bits>(mask)) != 0) out.push_back(i);
  }
}
// Positions of the elements that are not zero.
inline std::vector<std::int64_t> nonzero_positions(const kernel_context& context, const tensor_value& v) {
  std::vector<std::int64_t> out;
  const std::uint64_t mask = value_bits(v.dtype());
  switch (size_of(v.dtype())) {
    case 1: find_nonzero<std::uint8_t>(v.raw_data(), mask, v.elements(), out); break;
    case 2: find_nonzero<std::uint16_t>(v.raw_data(), mask, v.elements(), out); break;
    case 4: find_nonzero<std::uint32_t>(v.raw_data(), mask, v.elements(), out); break;
    case 8: find_nonzero<std::uint64_t>(v.raw_data(), mask, v.elements(), out); break;
    case 16:
      find_nonzero<std::uint64_t>(v.raw_data(), mask, 2 * v.elements(), out);
      for (auto& at : out) at /= 2;
      out.erase(std::unique(out.begin(), out.end()), out.end());
      break;
    default: context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(v.dtype()));
  }
  return out;
}

inline void compute_where(kernel_context& context) {
  (void)outputs_now(context, where_shape);
  const shape& s = context.input(0).shape();
  const auto found = nonzero_positions(context, context.input(0));
  const int rank = s.rank();
  tensor_value& out = context.allocate_output(0, dtype::int64, shape{static_cast<std::int64_t>(found.size()), rank});
  std::int64_t* to = out.mutable_data<std::int64_t>();
  for (const std::int64_t at : found) {
    std::int64_t rest = at;
    for (int d = rank - 1; d > 0; --d) {
      to[d] = rest % s[d];
      rest /= s[d];
    }
    to[0] = rest;
    to += rank;
  }
}

inline void compute_one_hot(kernel_context& context) {
  const shape s = output_shape_now(context, one_hot_shape);
  expect_same_dtype(context, 3, 2);
  const tensor_value& on = context.input(2);
  const auto indices = integers_of(context, 0, "indices");
  tensor_value& out = context.allocate_output(0, on.dtype(), s);
  if (out.elements() == 0) return;
  fill_elements(out, context.input(3));
  const std::int64_t axis = context.about().attr<std::int64_t>("axis");
  const int at = axis < 0 ? s.rank() - 1 : static_cast<int>(axis);
  const std::int64_t depth = s[at], inner = elements_between(s, at + 1, s.rank());
  const element_source from = source_of(on);
  const element_target to = target_of(out);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= depth) continue;
    const auto position = static_cast<std::int64_t>(i);
    const std::int64_t target = (position / inner * depth + indices[i]) * inner + position % inner;
    copy_units(from.data, from.size, to.data + target * to.size, to.size, 1, static_cast<std::size_t>(from.size), from.strings);
  }
}

// Positions of the largest `k` keys, the lower position first among equals. Keys that order as the numbers do, turned around so that the largest comes first.
inline void largest_keys(std::vector<std::pair<std::uint64_t, std::int64_t>>& keys, std::int64_t k, bool sorted) {
  std::partial_sort(keys.begin(), keys.begin() + k, keys.end());
  if (!sorted) std::sort(keys.begin(), keys.begin() + k, [](const auto& a, const auto& b) { return a.second < b.second; });
}

template <class T> void store_positions(const kernel_context& context, tensor_value& to, std::int64_t at, const std::vector<std::pair<std::uint64_t, std::int64_t>>& keys, std::int64_t k) {
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t position = keys[static_cast<std::size_t>(i)].second;
    if (position > std::numeric_limits<T>::max()) context.fail("position " + std::to_string(position) + " does not fit into " + to_text(to.dtype()) + "; ask for another index_type");
    to.mutable_data<T>()[at + i] = static_cast<T>(position);
  }
}

inline void compute_top_k(kernel_context& context) {
  const auto found = outputs_now(context, top_k_shape);
  const tensor_value& in = context.input(0);
  const dtype* index_type = context.about().find_attr<dtype>("index_type");
  const dtype index = index_type == nullptr ? dtype::int32 : *index_type;
  const bool sorted = context.about().attr<bool>("sorted");
  tensor_value& values = context.allocate_output(0, in.dtype(), found_shape(context, found[0]));
  tensor_value& positions = context.allocate_output(1, index, values.shape());
  if (values.elements() == 0) return;
  const ordered_keys key_of = ordered_keys_of(in.dtype());
  if (key_of == nullptr || (index != dtype::int16 && index != dtype::int32 && index != dtype::int64))
    context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(in.dtype()) + " and gives positions of dtype " + to_text(index));
  const std::int64_t k = values.shape()[values.shape().rank() - 1], columns = in.shape()[in.shape().rank() - 1], rows = values.elements() / k;
  std::vector<std::pair<std::uint64_t, std::int64_t>> keys(static_cast<std::size_t>(columns));
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(k));
  const element_target to = target_of(values);
  for (std::int64_t r = 0; r < rows; ++r) {
    element_source row = source_of(in);
    row.data += r * columns * row.size;
    for (std::int64_t c = 0; c < columns; ++c) keys[static_cast<std::size_t>(c)] = {~key_of(row.data + c * row.size), c};
    largest_keys(keys, k, sorted);
    for (std::int64_t i = 0; i < k; ++i) chosen[static_cast<std::size_t>(i)] = keys[static_cast<std::size_t>(i)].second;
    gather_rows(row, chosen.data(), chosen.size(), 1, to.data + r * k * to.size);
    if (index == dtype::int16) store_positions<std::int16_t>(context, positions, r * k, keys, k);
    else if (index == dtype::int32) store_positions<std::int32_t>(context, positions, r * k, keys, k);
    else store_positions<std::int64_t>(context, positions, r * k, keys, k);
  }
}

// Rows of the data go to the output that their partition names, in their order.
inline void compute_dynamic_partition(kernel_context& context) {
  const auto found = outputs_now(context, dynamic_partition_shape);
  const tensor_value &data = context.input(0), &partitions = context.input(1);
  const auto numbers = integers_of(context, 1, "partitions");
  const auto parts = static_cast<std::int64_t>(found.size());
  std::vector<std::vector<std::int64_t>> rows(found.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= parts)
      context.fail("partitions" + position_text(partitions.shape(), static_cast<std::int64_t>(i)) + " = " + std::to_string(numbers[i]) + " is not in [0, " + std::to_string(parts) + ")");
    rows[static_cast<std::size_t>(numbers[i])].push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t p = 0; p < found.size(); ++p) {
    size_list sizes = found[p].shape.sizes();
    sizes[0] = static_cast<std::int64_t>(rows[p].size());
    tensor_value& out = context.allocate_output(static_cast<int>(p), data.dtype(), shape(sizes));
    if (out.elements() > 0) gather_rows(source_of(data), rows[p].data(), rows[p].size(), out.elements() / sizes[0], target_of(out).data);
  }
}

// Rows of the data go to where their indices say, later ones over earlier ones; rows that nothing names are zero.
inline void compute_dynamic_stitch(kernel_context& context) {
  if (context.input_count() % 2 != 0) context.fail("expected as many indices as data, found " + std::to_string(context.input_count()) + " inputs");
  const int count = context.input_count() / 2;
  const shape s = output_shape_now(context, dynamic_stitch_shape);
  std::vector<std::vector<std::int64_t>> rows;
  for (int i = 0; i < count; ++i) {
    expect_same_dtype(context, count + i, count);
    rows.push_back(integers_of(context, i, "indices"));
    for (std::size_t k = 0; k < rows.back().size(); ++k)
      if (rows.back()[k] < 0) context.fail("indices" + position_text(context.input(i).shape(), static_cast<std::int64_t>(k)) + " of input " + std::to_string(i) + " is negative: " + std::to_string(rows.back()[k]));
  }
  tensor_value& out = context.allocate_output(0, context.input(count).dtype(), s);
  clear_elements(out);
  if (out.elements() == 0) return;
  for (int i = 0; i < count; ++i) scatter_rows(source_of(context.input(count + i)), rows[static_cast<std::size_t>(i)].data(), rows[static_cast<std::size_t>(i)].size(), out.elements() / s[0], target_of(out).data);
}

inline constexpr kernel_function array_select_functions[] = {
    {"Select", compute_select, 3},
    {"SelectV2", compute_select_v2, 3, 1, kernel_cost::by_values},
    {"Where", compute_where, 1},
    {"OneHot", compute_one_hot, 4, 1, kernel_cost::by_values},
    {"TopK", compute_top_k, 1, 2},
    {"TopKV2", compute_top_k, 2, 2},
    {"Unique", compute_unique, 1, 2},
    {"UniqueWithCounts", compute_unique, 1, 3},
    {"UniqueV2", compute_unique_v2, 2, 2},
    {"UniqueWithCountsV2", compute_unique_v2, 2, 3},
    {"ListDiff", compute_list_diff, 2, 2},
    {"DynamicPartition", compute_dynamic_partition, 2, -1},
    {"DynamicStitch", compute_dynamic_stitch, -2, 1, kernel_cost::by_values},
    {"ParallelDynamicStitch", compute_dynamic_stitch, -2, 1, kernel_cost::by_values},
};

inline std::unique_ptr<kernel> make_array_select_kernel(const kernel_construction& what) {
  return std::make_unique<function_kernel>(*find_function(array_select_functions, what.about.op()));
}
WEFT_DECL kernel_factory array_select_kernel(std::string_view op) { return find_function(array_select_functions, op) != nullptr ? &make_array_select_kernel : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
