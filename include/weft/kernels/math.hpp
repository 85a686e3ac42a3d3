#ifndef WEFT_KERNELS_MATH_HPP
#define WEFT_KERNELS_MATH_HPP
// Elementwise kernels: arithmetic, comparisons, logic, functions of one argument, sums of many tensors.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/loops.hpp>
#include <weft/kernels/math_table.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {
/// The factory of an elementwise op; nullptr for ops of other families.
kernel_factory math_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

[[noreturn]] inline void fail_without_loop(const node& n, dtype type) {
  n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
}
/// Attribute T; bool for the ops that have none.
inline dtype element_type(const node& n) noexcept {
  const dtype* type = n.find_attr<dtype>("T");
  return type == nullptr ? dtype::boolean : *type;
}
/// The last argument of an op's function: an attribute, or for shifts the largest count.
inline double last_argument(const node& n, dtype type) noexcept {
  for (const char* name : {"alpha", "tolerance"})
    if (const float* value = n.find_attr<float>(name)) return static_cast<double>(*value);
  return static_cast<double>(8 * size_of(type)) - 1;
}

/// Whether any integer of a value is negative.
inline bool any_negative(const tensor_value& v) {
  if (wide_dtype(v.dtype()) != dtype::int64) return false;
  const tensor_value wide = widened(v);
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < wide.elements(); ++i) all |= wide.data<std::int64_t>()[i];
  return all < 0;
}
/// Whether any integer of a value is zero.
inline bool any_zero(const tensor_value& v) {
  const std::byte* data = v.raw_data();
  const auto count = static_cast<std::size_t>(v.elements());
  switch (size_of(v.dtype())) {
    case 1: return contains_zero(reinterpret_cast<const std::uint8_t*>(data), count);
    case 2: return contains_zero(reinterpret_cast<const std::uint16_t*>(data), count);
    case 4: return contains_zero(reinterpret_cast<const std::uint32_t*>(data), count);
    default: return contains_zero(reinterpret_cast<const std::uint64_t*>(data), count);
  }
}

/// An operand along a row of the result: its elements, or the one that stands for all of them.
struct row_operand {
  const void* data;
  bool varies;
};

/// Runs a binary op over rows of elements of one dtype.
class pair_rows {
 public:
  pair_rows(const pair_op& op, dtype type, double last = 0)
      : function_(op.loops.of(type)), widen_(widening(type)), narrow_(op.traits & pair_traits::gives_bool ? nullptr : narrowing(type)), size_(size_of(type)),
        wide_size_(size_of(wide_dtype(type))), out_size_(op.traits & pair_traits::gives_bool ? 1 : size_of(type)), last_(last) {}
  bool exists() const noexcept { return function_ != nullptr; }
  void run(row_operand a, row_operand b, void* out, std::size_t count) const;

 private:
  void prepare(const row_operand& x, block_storage& block, std::size_t count) const;
  const void* part(const row_operand& x, block_storage& block, std::size_t at, std::size_t count) const {
    if (!x.varies) return block.bytes;
    const void* from = static_cast<const unsigned char*>(x.data) + at * size_;
    if (widen_ == nullptr) return from;
    widen_(from, block.bytes, count);
    return block.bytes;
  }
  pair_loop function_;
  array_function widen_, narrow_;
  std::size_t size_, wide_size_, out_size_;
  double last_;
};

inline void pair_rows::prepare(const row_operand& x, block_storage& block, std::size_t count) const {
  if (x.varies || count == 0) return;
  if (widen_ != nullptr) widen_(x.data, block.bytes, 1);
  else std::memcpy(block.bytes, x.data, size_);
  block.repeat_first(wide_size_, std::min(count, block_storage::elements));
}

// Blocks go through the stack when elements are widened or one stands for many; otherwise the row is one call.
inline void pair_rows::run(row_operand a, row_operand b, void* out, std::size_t count) const {
  if (a.varies && b.varies && widen_ == nullptr) return function_(a.data, b.data, out, count, last_);
  block_storage a_block, b_block, result;
  prepare(a, a_block, count);
  prepare(b, b_block, count);
  for (std::size_t at = 0; at < count; at += block_storage::elements) {
    const std::size_t some = std::min(count - at, block_storage::elements);
    const void *left = part(a, a_block, at, some), *right = part(b, b_block, at, some);
    unsigned char* to = static_cast<unsigned char*>(out) + at * out_size_;
    function_(left, right, narrow_ == nullptr ? to : result.bytes, some, last_);
    if (narrow_ != nullptr) narrow_(result.bytes, to, some);
  }
}

/// One operand of a grid of narrow rows: several rows next to each other, as they lie or copied into a block.
class row_block {
 public:
  /// Rows of more elements are not put together.
  static constexpr std::size_t most_columns = block_storage::elements / 4;

  row_block(const unsigned char* data, bool varies, std::size_t stride, std::size_t columns, std::size_t size)
      : data_(data), stride_(stride), columns_(columns), size_(size), varies_(varies) {}

  /// `count` rows from `row` on; columns * count elements fit a block.
  const void* rows(std::size_t row, std::size_t count) {
    if (varies_ && stride_ == columns_) return data_ + row * stride_ * size_;
    if (stride_ == 0 && filled_ >= count) return block_.bytes;
    for (std::size_t r = 0; r < count; ++r) fill(data_ + (row + r) * stride_ * size_, block_.bytes + r * columns_ * size_);
    filled_ = count;
    return block_.bytes;
  }

 private:
  template <class T> void spread(const unsigned char* from, unsigned char* to) const {
    T value;
    std::memcpy(&value, from, sizeof value);
    for (std::size_t i = 0; i < columns_; ++i) std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
  void fill(const unsigned char* from, unsigned char* to) const {
    if (varies_) std::memcpy(to, from, columns_ * size_);
    else if (size_ == 1) spread<std::uint8_t>(from, to);
    else if (size_ == 2) spread<std::uint16_t>(from, to);
    else if (size_ == 4) spread<std::uint32_t>(from, to);
    else spread<std::uint64_t>(from, to);
  }
  const unsigned char* data_;
  std::size_t stride_, columns_, size_, filled_ = 0;
  bool varies_;
  block_storage block_;
};

// Strings are joined and compared one by one.
inline void string_row(std::string_view op, row_operand a, row_operand b, void* out, std::size_t count) {
  const auto *left = static_cast<const std::string*>(a.data), *right = static_cast<const std::string*>(b.data);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string &x = left[a.varies ? i : 0], &y = right[b.varies ? i : 0];
    if (op == "Equal") static_cast<bool*>(out)[i] = x == y;
    else if (op == "NotEqual") static_cast<bool*>(out)[i] = x != y;
    else static_cast<std::string*>(out)[i] = x + y;
  }
}

/// Two operands under broadcasting.
class binary_kernel final : public kernel {
 public:
  explicit binary_kernel(const node& n) : op_(*find_pair_op(n.op())), type_(element_type(n)), rows_(op_, type_, last_argument(n, type_)) {
    if (type_ == dtype::string ? !has(pair_traits::strings) : !rows_.exists()) fail_without_loop(n, type_);
    const bool* strict = n.find_attr<bool>("incompatible_shape_error");
    lenient_ = strict != nullptr && !*strict;
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 2 * expensive_elements; }

 private:
  bool has(pair_traits trait) const noexcept { return op_.traits & trait; }
  void broadcast(kernel_context& context) const;
  void narrow_rows(const binary_grid& grid, const unsigned char* a, const unsigned char* b, unsigned char* out) const;
  void check_right(const kernel_context& context) const;
  tensor_value& make_output(kernel_context& context, const shape& s) const {
    const tensor_value& a = context.input(0);
    return context.forward_or_allocate(a.writable() && a.shape() == s ? 0 : 1, 0, has(pair_traits::gives_bool) ? dtype::boolean : type_, s);
  }
  void row(row_operand a, row_operand b, void* out, std::size_t count) const {
    if (type_ == dtype::string) string_row(op_.name, a, b, out, count);
    else if (has(pair_traits::swapped)) rows_.run(b, a, out, count);
    else rows_.run(a, b, out, count);
  }
  const pair_op& op_;
  dtype type_;
  bool lenient_ = false;
  pair_rows rows_;
};

// Integers that the op refuses on its right; only where there is a result.
inline void binary_kernel::check_right(const kernel_context& context) const {
  if (!is_integer(type_)) return;
  if (has(pair_traits::zero_fails) && any_zero(context.input(1))) {
    const bool truncates = op_.name.substr(0, 8) == "Truncate";  // the code is TensorFlow's
    context.fail(truncates ? error_code::internal : error_code::invalid_argument, "integer division by zero");
  }
  if (has(pair_traits::negative_fails) && any_negative(context.input(1))) context.fail("an integer to the power of a negative integer is not an integer");
}

// Equal shapes and single elements need no plan.
inline void binary_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  expect_dtype(context, 1, type_);
  const tensor_value &a = context.input(0), &b = context.input(1);
  const bool same = a.shape() == b.shape();
  if (!same && has(pair_traits::same_shape)) context.fail("shapes " + a.shape().text() + " and " + b.shape().text() + " differ");
  const bool b_alone = !same && b.elements() == 1 && b.shape().rank() <= a.shape().rank();
  const bool a_alone = !same && !b_alone && a.elements() == 1 && a.shape().rank() <= b.shape().rank();
  if (!same && !a_alone && !b_alone) return broadcast(context);
  if (a.elements() != 0) check_right(context);
  tensor_value& out = make_output(context, a_alone ? b.shape() : a.shape());
  row({elements_of(a), !a_alone}, {elements_of(b), !b_alone}, elements_of(out), static_cast<std::size_t>(out.elements()));
}

inline void binary_kernel::broadcast(kernel_context& context) const {
  const tensor_value &a = context.input(0), &b = context.input(1);
  const auto a_rank = static_cast<std::size_t>(a.shape().rank()), b_rank = static_cast<std::size_t>(b.shape().rank());
  std::vector<std::int64_t> sizes(std::max(a_rank, b_rank));
  const auto plan = plan_broadcast(a.shape().data(), a_rank, b.shape().data(), b_rank, sizes.data());
  if (!plan && lenient_) return context.set_output(0, tensor_value::scalar(op_.name == "NotEqual"));
  if (!plan) context.fail("shapes " + a.shape().text() + " and " + b.shape().text() + " cannot be broadcast");
  if (!checked_elements(sizes.data(), sizes.size())) context.fail("shapes " + a.shape().text() + " and " + b.shape().text() + " give too many elements");
  if (plan->count != 0) check_right(context);
  tensor_value& out = make_output(context, shape(sizes));
  const auto *left = static_cast<const unsigned char*>(elements_of(a)), *right = static_cast<const unsigned char*>(elements_of(b));
  auto* result = static_cast<unsigned char*>(elements_of(out));
  const std::size_t in_size = object_size(type_), out_size = object_size(out.dtype());
  for_each_grid(*plan, [&](const binary_grid& grid, std::size_t a_at, std::size_t b_at, std::size_t out_at) {
    if (grid.columns <= row_block::most_columns && grid.rows > 1 && type_ != dtype::string)
      return narrow_rows(grid, left + a_at * in_size, right + b_at * in_size, result + out_at * out_size);
    for (std::size_t i = 0; i < grid.rows; ++i)
      row({left + (a_at + i * grid.a_row) * in_size, grid.a_varies}, {right + (b_at + i * grid.b_row) * in_size, grid.b_varies},
          result + (out_at + i * grid.columns) * out_size, grid.columns);
  });
}

inline void binary_kernel::narrow_rows(const binary_grid& grid, const unsigned char* a, const unsigned char* b, unsigned char* out) const {
  const std::size_t in_size = size_of(type_), out_size = has(pair_traits::gives_bool) ? 1 : in_size, together = block_storage::elements / grid.columns;
  row_block left(a, grid.a_varies, grid.a_row, grid.columns, in_size), right(b, grid.b_varies, grid.b_row, grid.columns, in_size);
  for (std::size_t at = 0; at < grid.rows; at += together) {
    const std::size_t rows = std::min(together, grid.rows - at);
    row({left.rows(at, rows), true}, {right.rows(at, rows), true}, out + at * grid.columns * out_size, rows * grid.columns);
  }
}

/// A function of one operand.
class unary_kernel final : public kernel {
 public:
  explicit unary_kernel(const node& n)
      : type_(element_type(n)), op_(*find_single_op(n.op())), loop_(op_.loops.of(type_)), widen_(widening(type_)), narrow_(narrowing(type_)), last_(last_argument(n, type_)) {
    if (loop_ == nullptr && (op_.function == nullptr || !is_floating(type_))) fail_without_loop(n, type_);
    if (op_.gives_bool) {
      out_type_ = dtype::boolean;
      narrow_ = nullptr;
    }
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > (loop_ == nullptr ? expensive_elements / 8 : expensive_elements); }

 private:
  void apply(const void* from, void* to, std::size_t count) const {
    if (loop_ != nullptr) loop_(from, to, count, last_);
    else if (type_ == dtype::float64) real::run<double>(op_.function, from, to, count);
    else real::run<float>(op_.function, from, to, count);
  }
  dtype type_, out_type_ = type_;
  const single_op& op_;
  single_loop loop_;
  array_function widen_, narrow_;
  double last_;
};

inline void unary_kernel::compute(kernel_context& context) {
  expect_inputs(context, 1);
  expect_dtype(context, 0, type_);
  const tensor_value& in = context.input(0);
  tensor_value& out = context.forward_or_allocate(0, 0, out_type_, in.shape());
  const auto count = static_cast<std::size_t>(in.elements());
  const std::byte* from = in.raw_data();
  std::byte* to = out.mutable_raw_data();
  if (widen_ == nullptr) return apply(from, to, count);
  block_storage block;
  for (std::size_t at = 0; at < count; at += block_storage::elements) {
    const std::size_t some = std::min(count - at, block_storage::elements);
    widen_(from + at * size_of(type_), block.bytes, some);
    std::byte* target = to + at * size_of(out_type_);
    if (narrow_ == nullptr) {
      apply(block.bytes, target, some);
    } else {
      apply(block.bytes, block.bytes, some);
      narrow_(block.bytes, target, some);
    }
  }
}

/// The sum of N tensors of one shape, added in their order.
class add_n_kernel final : public kernel {
 public:
  explicit add_n_kernel(const node& n) : type_(type_attr(n, "T")), add_(*find_pair_op("AddV2"), type_) {
    if (!add_.exists()) fail_without_loop(n, type_);
  }
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 2 * expensive_elements; }

 private:
  dtype type_;
  pair_rows add_;
};

inline void add_n_kernel::compute(kernel_context& context) {
  const int n = context.input_count();
  if (n == 0) context.fail("expected at least one input, found none");
  const shape s = context.input(0).shape();
  for (int i = 0; i < n; ++i) {
    expect_dtype(context, i, type_);
    if (context.input(i).shape() != s)
      context.fail("all inputs must have one shape, found " + s.text() + " for input 0 and " + context.input(i).shape().text() + " for input " + std::to_string(i));
  }
  if (n == 1) return context.set_output(0, context.take_input(0));
  tensor_value& out = context.forward_or_allocate(0, 0, type_, s);
  const auto count = static_cast<std::size_t>(s.elements());
  const std::byte* sum = context.input(0).raw_data();
  for (int i = 1; i < n; ++i) {
    add_.run({sum, true}, {context.input(i).raw_data(), true}, out.mutable_raw_data(), count);
    sum = out.raw_data();
  }
}

WEFT_DECL kernel_factory math_kernel(std::string_view op) {
  if (op == "AddN" || op == "AccumulateNV2") return &make_kernel<add_n_kernel>;
  if (find_single_op(op) != nullptr) return &make_kernel<unary_kernel>;
  if (find_pair_op(op) != nullptr) return &make_kernel<binary_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
