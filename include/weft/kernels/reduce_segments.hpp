#ifndef WEFT_KERNELS_REDUCE_SEGMENTS_HPP
#define WEFT_KERNELS_REDUCE_SEGMENTS_HPP
// Kernels that combine rows by segment: sorted ids, ids in any order with a given number of segments, and rows chosen by index.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/loops.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of the Segment, UnsortedSegment and SparseSegment ops; nullptr for other ops.
kernel_factory segment_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// What becomes of the rows of a segment.
enum class segment_rule : unsigned char { sum, mean, root_mean, product, largest, smallest };

inline segment_rule rule_of_segment_op(std::string_view op) {
  const std::string_view rule = op.substr(op.find("Segment") + 7);
  return rule == "Mean" ? segment_rule::mean : rule == "SqrtN" ? segment_rule::root_mean : rule == "Prod" ? segment_rule::product : rule == "Max" ? segment_rule::largest
         : rule == "Min" ? segment_rule::smallest : segment_rule::sum;
}

/// row[i] = F(row[i], next[i]).
template <class F, class T> void join_rows(void* row, const void* next, std::size_t count) {
  auto* out = static_cast<T*>(row);
  const auto* in = static_cast<const T*>(next);
  if (count == 1) *out = F::template apply<instruction_set::portable, T>(*out, *in);
  else run_portable<binary_body<F, T, T>>(static_cast<const T*>(out), in, out, count);
}
using join_function = void (*)(void* row, const void* next, std::size_t count);

template <class F> constexpr wide_functions<join_function> join_functions() {
  using integer = std::conditional_t<F::wraps, std::uint64_t, std::int64_t>;
  return {join_rows<F, float>, join_rows<F, double>, join_rows<F, integer>, join_rows<F, std::uint64_t>, nullptr};
}

/// row[i] /= divisor.
template <class T> void divide_row(void* row, std::size_t count, double divisor) {
  const T by = static_cast<T>(divisor);
  for (std::size_t i = 0; i < count; ++i) static_cast<T*>(row)[i] = static_cast<T>(static_cast<T*>(row)[i] / by);
}
using divide_function = void (*)(void* row, std::size_t count, double divisor);

/// Rows of `bytes` bytes of an output in its wide dtype, and how they are combined.
class segment_rows {
 public:
  segment_rows(segment_rule rule, dtype type);
  bool exists() const noexcept { return join_ != nullptr; }
  void join(std::byte* row, const std::byte* next, std::size_t count) const { join_(row, next, count); }
  void divide(std::byte* row, std::size_t count, double divisor) const { divide_(row, count, divisor); }
  /// Fills a value in the wide dtype with what a segment without rows holds: 0, or 1 for products; the finite limits of the dtype for extremes that `limited` says.
  void fill_empty(tensor_value& out, bool limited) const;

 private:
  segment_rule rule_;
  dtype type_;
  join_function join_;
  divide_function divide_;
};

inline segment_rows::segment_rows(segment_rule rule, dtype type) : rule_(rule), type_(type) {
  static constexpr auto sums = join_functions<element::add>(), products = join_functions<element::mul>(), largest = join_functions<element::maximum>(),
                        smallest = join_functions<element::minimum>();
  static constexpr wide_functions<divide_function> quotients{divide_row<float>, divide_row<double>, divide_row<std::int64_t>, divide_row<std::uint64_t>, nullptr};
  join_ = (rule == segment_rule::product ? products : rule == segment_rule::largest ? largest : rule == segment_rule::smallest ? smallest : sums).of(type);
  divide_ = quotients.of(type);
}

inline void segment_rows::fill_empty(tensor_value& out, bool limited) const {
  const auto count = static_cast<std::size_t>(out.elements());
  double real = rule_ == segment_rule::product ? 1 : 0;
  std::uint64_t whole = rule_ == segment_rule::product ? 1 : 0;
  if (limited && (rule_ == segment_rule::largest || rule_ == segment_rule::smallest)) {
    const double most = type_ == dtype::float64 ? std::numeric_limits<double>::max() : type_ == dtype::half ? 65504.0 : type_ == dtype::bfloat16 ? 0x1.fep127 : 0x1.fffffep127;
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * size_of(type_));
    const bool is_signed = wide_dtype(type_) == dtype::int64, low = rule_ == segment_rule::largest;
    real = low ? -most : most;
    whole = low ? (is_signed ? ~(all >> 1) : 0) : (is_signed ? all >> 1 : all);
  }
  if (out.dtype() == dtype::float32) std::fill_n(out.mutable_data<float>(), count, static_cast<float>(real));
  else if (out.dtype() == dtype::float64) std::fill_n(out.mutable_data<double>(), count, real);
  else for (std::size_t i = 0; i < count; ++i) std::memcpy(out.mutable_raw_data() + i * sizeof whole, &whole, sizeof whole);
}

/// The ids of segments, or row numbers, in an input.
inline std::vector<std::int64_t> ids_of(const kernel_context& context, int i, const char* what) {
  const tensor_value& v = context.input(i);
  if (v.dtype() != dtype::int16) return integers_of(context, i, what);
  return {v.data<std::int16_t>(), v.data<std::int16_t>() + v.elements()};
}

/// Shape of a result with `rows` rows of the shape that the input's dimensions from `from` on have; fails when it is too large.
inline shape rows_shape(const kernel_context& context, std::int64_t rows, int from) {
  const shape& data = context.input(0).shape();
  std::vector<std::int64_t> sizes{rows};
  sizes.insert(sizes.end(), data.begin() + from, data.end());
  if (!checked_elements(sizes.data(), sizes.size())) context.fail("a result of shape " + shape_text(sizes) + " has too many elements");
  return shape(sizes);
}

/// Sorted ids: row i of the data, or of the rows that an index chooses, belongs to segment ids[i].
class segment_kernel_of final : public kernel {
 public:
  explicit segment_kernel_of(const node& n) : sparse_(n.op()[1] == 'p'), rule_(rule_of_segment_op(n.op())), type_(type_attr(n, "T")), rows_(rule_, type_) {
    if (!rows_.exists()) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  void check(const kernel_context& context, const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& chosen) const;
  void divide(std::byte* row, std::size_t count, std::size_t parts) const;
  bool sparse_;
  segment_rule rule_;
  dtype type_;
  segment_rows rows_;
};

inline void segment_kernel_of::check(const kernel_context& context, const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& chosen) const {
  const shape& data = context.input(0).shape();
  const std::int64_t rows = data[0];
  if (sparse_ && chosen.size() != ids.size())
    context.fail("indices and segment_ids must have the same size, found shapes " + context.input(1).shape().text() + " and " + context.input(2).shape().text());
  if (!sparse_ && static_cast<std::int64_t>(ids.size()) != rows)
    context.fail("segment_ids has " + std::to_string(ids.size()) + " elements for the " + std::to_string(rows) + " rows of the data " + data.text());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) context.fail("segment_ids[" + std::to_string(i) + "] is " + std::to_string(ids[i]) + ", expected 0 or more");
    if (i != 0 && ids[i] < ids[i - 1]) context.fail("segment_ids must not decrease, found " + std::to_string(ids[i - 1]) + " before " + std::to_string(ids[i]));
  }
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i] < 0 || chosen[i] >= rows) context.fail("indices[" + std::to_string(i) + "] is " + std::to_string(chosen[i]) + ", which is not in [0, " + std::to_string(rows) + ")");
}

inline void segment_kernel_of::divide(std::byte* row, std::size_t count, std::size_t parts) const {
  if (rule_ == segment_rule::mean) rows_.divide(row, count, static_cast<double>(parts));
  if (rule_ == segment_rule::root_mean) rows_.divide(row, count, std::sqrt(static_cast<double>(parts)));
}

// 1. Check ids and indices; 2. make the result, gaps filled; 3. copy the first row of each segment, join the others, divide.
inline void segment_kernel_of::compute(kernel_context& context) {
  expect_inputs(context, sparse_ ? 3 : 2);
  expect_dtype(context, 0, type_);
  if (context.input(0).shape().rank() == 0) context.fail("the data must have at least one dimension, found shape []");
  for (int i = 1; i < context.input_count(); ++i)
    if (context.input(i).shape().rank() != 1)
      context.fail(std::string(sparse_ && i == 1 ? "indices" : "segment_ids") + " must be a vector, found shape " + context.input(i).shape().text());
  const auto ids = ids_of(context, sparse_ ? 2 : 1, "segment_ids"), chosen = sparse_ ? ids_of(context, 1, "indices") : std::vector<std::int64_t>();
  check(context, ids, chosen);
  if (!ids.empty() && ids.back() == std::numeric_limits<std::int64_t>::max()) context.fail("segment_ids[" + std::to_string(ids.size() - 1) + "] is too large");
  const shape out_shape = rows_shape(context, ids.empty() ? 0 : ids.back() + 1, 1);
  const tensor_value data = widened(context.input(0));
  tensor_value out = context.allocate(data.dtype(), out_shape);
  rows_.fill_empty(out, false);
  const std::size_t count = out_shape.elements() == 0 ? 0 : static_cast<std::size_t>(out_shape.elements() / out_shape[0]), bytes = count * size_of(data.dtype());
  const std::byte* from = data.raw_data();
  std::byte* to = out.mutable_raw_data();
  for (std::size_t begin = 0, end = 0; begin < ids.size() && count != 0; begin = end) {
    std::byte* row = to + static_cast<std::size_t>(ids[begin]) * bytes;
    for (end = begin; end < ids.size() && ids[end] == ids[begin]; ++end) {
      const std::byte* next = from + (sparse_ ? static_cast<std::size_t>(chosen[end]) : end) * bytes;
      if (end == begin) std::memcpy(row, next, bytes);
      else rows_.join(row, next, count);
    }
    divide(row, count, end - begin);
  }
  context.set_output(0, narrowed(std::move(out), type_));
}

/// Ids in any order, of any rank; the data's leading dimensions are theirs. Rows with negative ids are left out.
class unsorted_segment_kernel final : public kernel {
 public:
  explicit unsorted_segment_kernel(const node& n) : type_(type_attr(n, "T")), rows_(rule_of_segment_op(n.op()), type_) {
    if (!rows_.exists()) n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type_));
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
  segment_rows rows_;
};

inline void unsorted_segment_kernel::compute(kernel_context& context) {
  expect_inputs(context, 3);
  expect_dtype(context, 0, type_);
  if (context.input(2).shape().rank() != 0) context.fail("num_segments must be a scalar, found shape " + context.input(2).shape().text());
  const std::int64_t segments = integers_of(context, 2, "num_segments")[0];
  if (segments < 0) context.fail("num_segments must not be negative, found " + std::to_string(segments));
  const shape &in = context.input(0).shape(), &named = context.input(1).shape();
  if (named.rank() > in.rank() || !std::equal(named.begin(), named.end(), in.begin()))
    context.fail("the data's shape " + in.text() + " does not start with that of segment_ids, " + named.text());
  const auto ids = ids_of(context, 1, "segment_ids");
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= segments) context.fail("segment_ids[" + std::to_string(i) + "] is " + std::to_string(ids[i]) + ", which is not below num_segments, " + std::to_string(segments));
  const shape out_shape = rows_shape(context, segments, named.rank());
  const tensor_value data = widened(context.input(0));
  tensor_value out = context.allocate(data.dtype(), out_shape);
  rows_.fill_empty(out, true);
  const std::size_t count = out_shape.elements() == 0 ? 0 : static_cast<std::size_t>(out_shape.elements() / segments), bytes = count * size_of(data.dtype());
  for (std::size_t i = 0; i < ids.size() && count != 0; ++i)
    if (ids[i] >= 0) rows_.join(out.mutable_raw_data() + static_cast<std::size_t>(ids[i]) * bytes, data.raw_data() + i * bytes, count);
  context.set_output(0, narrowed(std::move(out), type_));
}

WEFT_DECL kernel_factory segment_kernel(std::string_view op) {
  if (op.substr(0, 15) == "UnsortedSegment") return &make_kernel<unsorted_segment_kernel>;
  return op.substr(0, 7) == "Segment" || op.substr(0, 13) == "SparseSegment" ? &make_kernel<segment_kernel_of> : nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
