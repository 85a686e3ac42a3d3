#ifndef WEFT_KERNELS_MATH_HPP
#define WEFT_KERNELS_MATH_HPP
// Elementwise kernels: arithmetic, comparisons, logic, functions of one argument, sums of many tensors.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/element_types.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/loops.hpp>
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

/// The best instruction set for which a loop is compiled. Each costs every program compile time: only arithmetic on floats gets wide vectors.
template <class F, class T> inline constexpr instruction_set kernel_limit_v =
    !std::is_floating_point_v<T> || F::compares ? instruction_set::portable : std::is_same_v<T, float> ? loop_limit_v<F, T> : instruction_set::avx2;

template <class F, class T> void pair_array(const void* a, const void* b, void* out, std::size_t count) {
  using R = loop_result_t<F, T>;
  dispatch<binary_body<F, T, R>, kernel_limit_v<F, T>>(best_instruction_set(), static_cast<const T*>(a), static_cast<const T*>(b), static_cast<R*>(out), count);
}
template <class F, class T> void single_array(const void* in, void* out, std::size_t count) {
  dispatch<unary_body<F, T, T>, kernel_limit_v<F, T>>(best_instruction_set(), static_cast<const T*>(in), static_cast<T*>(out), count);
}

/// A binary op: its loops, and what is peculiar to it.
struct pair_op {
  std::string_view name;
  wide_functions<pair_function> loops;
  bool gives_bool = false;
  bool swapped = false;  // a > b is b < a
  bool divides = false;
  bool strings = false;
};

template <class F> constexpr wide_functions<pair_function> pair_loops() {
  using integer = std::conditional_t<F::wraps, std::uint64_t, std::int64_t>;
  return {pair_array<F, float>, pair_array<F, double>, pair_array<F, integer>, pair_array<F, std::uint64_t>, nullptr};
}

/// The binary op of this name, or nullptr. Bools are compared as the bytes they are.
inline const pair_op* find_pair_op(std::string_view name) {
  using namespace element;
  static constexpr auto less_loops = pair_loops<less>(), at_most_loops = pair_loops<less_equal>(), add_loops = pair_loops<add>(), divide_loops = pair_loops<div>();
  static constexpr wide_functions<pair_function> equal_loops = {pair_array<equal, float>, pair_array<equal, double>, pair_array<equal, std::uint64_t>,
                                                                pair_array<equal, std::uint64_t>, pair_array<equal, std::uint8_t>};
  static constexpr wide_functions<pair_function> not_equal_loops = {pair_array<not_equal, float>, pair_array<not_equal, double>, pair_array<not_equal, std::uint64_t>,
                                                                    pair_array<not_equal, std::uint64_t>, pair_array<not_equal, std::uint8_t>};
  static constexpr pair_op table[] = {
      {"AddV2", add_loops, false, false, false, true},
      {"Add", add_loops, false, false, false, true},
      {"Sub", pair_loops<sub>()},
      {"Mul", pair_loops<mul>()},
      {"RealDiv", divide_loops, false, false, true},
      {"Div", divide_loops, false, false, true},
      {"Maximum", pair_loops<maximum>()},
      {"Minimum", pair_loops<minimum>()},
      {"Less", less_loops, true},
      {"LessEqual", at_most_loops, true},
      {"Greater", less_loops, true, true},
      {"GreaterEqual", at_most_loops, true, true},
      {"Equal", equal_loops, true, false, false, true},
      {"NotEqual", not_equal_loops, true, false, false, true},
      {"LogicalAnd", {nullptr, nullptr, nullptr, nullptr, pair_array<logical_and, bool>}, true},
      {"LogicalOr", {nullptr, nullptr, nullptr, nullptr, pair_array<logical_or, bool>}, true},
  };
  for (const pair_op& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

/// A unary op and its loops.
struct single_op {
  std::string_view name;
  wide_functions<array_function> loops;
};

/// The unary op of this name, or nullptr.
inline const single_op* find_single_op(std::string_view name) {
  using namespace element;
  using i64 = std::int64_t;
  using u64 = std::uint64_t;
  static constexpr single_op table[] = {
      {"Neg", {single_array<neg, float>, single_array<neg, double>, single_array<neg, u64>, nullptr, nullptr}},
      {"Abs", {single_array<element::abs, float>, single_array<element::abs, double>, single_array<element::abs, i64>, nullptr, nullptr}},
      {"Square", {single_array<square, float>, single_array<square, double>, single_array<square, u64>, single_array<square, u64>, nullptr}},
      {"Sqrt", {single_array<element::sqrt, float>, single_array<element::sqrt, double>, nullptr, nullptr, nullptr}},
      {"Exp", {single_array<element::exp, float>, single_array<element::exp, double>, nullptr, nullptr, nullptr}},
      {"Log", {single_array<element::log, float>, single_array<element::log, double>, nullptr, nullptr, nullptr}},
      {"Tanh", {single_array<element::tanh, float>, single_array<element::tanh, double>, nullptr, nullptr, nullptr}},
      {"Sigmoid", {single_array<sigmoid, float>, single_array<sigmoid, double>, nullptr, nullptr, nullptr}},
      {"LogicalNot", {nullptr, nullptr, nullptr, nullptr, single_array<logical_not, bool>}},
  };
  for (const single_op& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

[[noreturn]] inline void fail_without_loop(const node& n, dtype type) {
  n.fail_about(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
}
/// Attribute T; bool for the ops that have none.
inline dtype element_type(const node& n) noexcept {
  const dtype* type = n.find_attr<dtype>("T");
  return type == nullptr ? dtype::boolean : *type;
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
  pair_rows(const pair_op& op, dtype type)
      : function_(op.loops.of(type)), widen_(widening(type)), narrow_(op.gives_bool ? nullptr : narrowing(type)), size_(size_of(type)),
        wide_size_(size_of(wide_dtype(type))), out_size_(op.gives_bool ? 1 : size_of(type)) {}
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
  pair_function function_;
  array_function widen_, narrow_;
  std::size_t size_, wide_size_, out_size_;
};

inline void pair_rows::prepare(const row_operand& x, block_storage& block, std::size_t count) const {
  if (x.varies || count == 0) return;
  if (widen_ != nullptr) widen_(x.data, block.bytes, 1);
  else std::memcpy(block.bytes, x.data, size_);
  block.repeat_first(wide_size_, std::min(count, block_storage::elements));
}

// Blocks go through the stack when elements are widened or one stands for many; otherwise the row is one call.
inline void pair_rows::run(row_operand a, row_operand b, void* out, std::size_t count) const {
  if (a.varies && b.varies && widen_ == nullptr) return function_(a.data, b.data, out, count);
  block_storage a_block, b_block, result;
  prepare(a, a_block, count);
  prepare(b, b_block, count);
  for (std::size_t at = 0; at < count; at += block_storage::elements) {
    const std::size_t some = std::min(count - at, block_storage::elements);
    const void *left = part(a, a_block, at, some), *right = part(b, b_block, at, some);
    unsigned char* to = static_cast<unsigned char*>(out) + at * out_size_;
    function_(left, right, narrow_ == nullptr ? to : result.bytes, some);
    if (narrow_ != nullptr) narrow_(result.bytes, to, some);
  }
}

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
  explicit binary_kernel(const node& n) : op_(*find_pair_op(n.op())), type_(element_type(n)), rows_(op_, type_) {
    if (type_ == dtype::string ? !op_.strings : !rows_.exists()) fail_without_loop(n, type_);
  }
  void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > 2 * expensive_elements; }

 private:
  void broadcast(kernel_context& context) const;
  tensor_value& make_output(kernel_context& context, const shape& s) const {
    const tensor_value& a = context.input(0);
    return context.forward_or_allocate(a.writable() && a.shape() == s ? 0 : 1, 0, op_.gives_bool ? dtype::boolean : type_, s);
  }
  void row(row_operand a, row_operand b, void* out, std::size_t count) const {
    if (type_ == dtype::string) string_row(op_.name, a, b, out, count);
    else if (op_.swapped) rows_.run(b, a, out, count);
    else rows_.run(a, b, out, count);
  }
  const pair_op& op_;
  dtype type_;
  pair_rows rows_;
};

// Equal shapes and single elements need no plan.
inline void binary_kernel::compute(kernel_context& context) {
  expect_inputs(context, 2);
  expect_dtype(context, 0, type_);
  expect_dtype(context, 1, type_);
  const tensor_value &a = context.input(0), &b = context.input(1);
  const bool same = a.shape() == b.shape();
  const bool b_alone = !same && b.elements() == 1 && b.shape().rank() <= a.shape().rank();
  const bool a_alone = !same && !b_alone && a.elements() == 1 && a.shape().rank() <= b.shape().rank();
  if (!same && !a_alone && !b_alone) return broadcast(context);
  if (op_.divides && is_integer(type_) && a.elements() != 0 && any_zero(b)) context.fail("integer division by zero");
  tensor_value& out = make_output(context, a_alone ? b.shape() : a.shape());
  row({elements_of(a), !a_alone}, {elements_of(b), !b_alone}, elements_of(out), static_cast<std::size_t>(out.elements()));
}

inline void binary_kernel::broadcast(kernel_context& context) const {
  const tensor_value &a = context.input(0), &b = context.input(1);
  const auto a_rank = static_cast<std::size_t>(a.shape().rank()), b_rank = static_cast<std::size_t>(b.shape().rank());
  std::vector<std::int64_t> sizes(std::max(a_rank, b_rank));
  const auto plan = plan_broadcast(a.shape().data(), a_rank, b.shape().data(), b_rank, sizes.data());
  if (!plan) context.fail("shapes " + a.shape().text() + " and " + b.shape().text() + " cannot be broadcast");
  if (!checked_elements(sizes.data(), sizes.size())) context.fail("shapes " + a.shape().text() + " and " + b.shape().text() + " give too many elements");
  if (op_.divides && is_integer(type_) && plan->count != 0 && any_zero(b)) context.fail("integer division by zero");
  tensor_value& out = make_output(context, shape(sizes));
  const auto *left = static_cast<const unsigned char*>(elements_of(a)), *right = static_cast<const unsigned char*>(elements_of(b));
  auto* result = static_cast<unsigned char*>(elements_of(out));
  const std::size_t in_size = object_size(type_), out_size = object_size(out.dtype());
  for_each_grid(*plan, [&](const binary_grid& grid, std::size_t a_at, std::size_t b_at, std::size_t out_at) {
    for (std::size_t i = 0; i < grid.rows; ++i)
      row({left + (a_at + i * grid.a_row) * in_size, grid.a_varies}, {right + (b_at + i * grid.b_row) * in_size, grid.b_varies},
          result + (out_at + i * grid.columns) * out_size, grid.columns);
  });
}

/// A function of one operand.
class unary_kernel final : public kernel {
 public:
  explicit unary_kernel(const node& n)
      : type_(element_type(n)), function_(find_single_op(n.op())->loops.of(type_)), widen_(widening(type_)), narrow_(narrowing(type_)) {
    if (function_ == nullptr) fail_without_loop(n, type_);
  }
  void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
  array_function function_, widen_, narrow_;
};

inline void unary_kernel::compute(kernel_context& context) {
  expect_inputs(context, 1);
  expect_dtype(context, 0, type_);
  const tensor_value& in = context.input(0);
  tensor_value& out = context.forward_or_allocate(0, 0, type_, in.shape());
  const auto count = static_cast<std::size_t>(in.elements());
  const std::byte* from = in.raw_data();
  std::byte* to = out.mutable_raw_data();
  if (widen_ == nullptr) return function_(from, to, count);
  block_storage block;
  for (std::size_t at = 0; at < count; at += block_storage::elements) {
    const std::size_t some = std::min(count - at, block_storage::elements);
    widen_(from + at * size_of(type_), block.bytes, some);
    function_(block.bytes, block.bytes, some);
    narrow_(block.bytes, to + at * size_of(type_), some);
  }
}

/// The sum of N tensors of one shape, added in their order.
class add_n_kernel final : public kernel {
 public:
  explicit add_n_kernel(const node& n) : type_(type_attr(n, "T")), add_(*find_pair_op("Add"), type_) {
    if (!add_.exists()) fail_without_loop(n, type_);
  }
  void compute(kernel_context& context) override;
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
  if (op == "AddN") return &make_kernel<add_n_kernel>;
  if (find_single_op(op) != nullptr) return &make_kernel<unary_kernel>;
  if (find_pair_op(op) != nullptr) return &make_kernel<binary_kernel>;
  return nullptr;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
