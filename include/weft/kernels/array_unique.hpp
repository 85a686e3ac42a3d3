#ifndef WEFT_KERNELS_ARRAY_UNIQUE_HPP
#define WEFT_KERNELS_ARRAY_UNIQUE_HPP
// Which elements, or slices, are equal to earlier ones; and keys that order as numbers do.

#include <weft/kernels/function_kernel.hpp>
#include <weft/kernels/strided_copy.hpp>
#include <weft/ops/array_select.hpp>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// The bits of a floating type: where the sign is, and the greatest that is a number.
struct floating_bits {
  std::uint64_t sign, infinity;
};
inline floating_bits floating_bits_of(dtype type) noexcept {
  switch (type) {
    case dtype::half: return {0x8000, 0x7c00};
    case dtype::bfloat16: return {0x8000, 0x7f80};
    case dtype::float32: case dtype::complex64: return {0x80000000, 0x7f800000};
    case dtype::float64: case dtype::complex128: return {0x8000000000000000, 0x7ff0000000000000};
    default: return {0, 0};
  }
}

template <class Bits> std::uint64_t load_bits(const std::byte* from) {
  Bits out;
  std::memcpy(&out, from, sizeof out);
  return static_cast<std::uint64_t>(out);
}

/// An unsigned number for an element that orders as the elements do; the zeros are equal.
using ordered_keys = std::uint64_t (*)(const std::byte*);
template <class Bits, std::uint64_t Sign> std::uint64_t floating_key(const std::byte* from) {
  const std::uint64_t bits = load_bits<Bits>(from), size = bits & (Sign - 1);
  return (bits & Sign) != 0 && size != 0 ? Sign - size : Sign + size;
}
template <class Int> std::uint64_t signed_key(const std::byte* from) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Int>(load_bits<Int>(from)))) ^ 0x8000000000000000;
}
/// The keys of a number dtype, nullptr for others.
inline ordered_keys ordered_keys_of(dtype type) noexcept {
  switch (type) {
    case dtype::half: case dtype::bfloat16: return &floating_key<std::uint16_t, 0x8000>;
    case dtype::float32: return &floating_key<std::uint32_t, 0x80000000>;
    case dtype::float64: return &floating_key<std::uint64_t, 0x8000000000000000>;
    case dtype::int8: return &signed_key<std::int8_t>;
    case dtype::int16: return &signed_key<std::int16_t>;
    case dtype::int32: return &signed_key<std::int32_t>;
    case dtype::int64: return &signed_key<std::int64_t>;
    case dtype::uint8: return &load_bits<std::uint8_t>;
    case dtype::uint16: return &load_bits<std::uint16_t>;
    case dtype::uint32: return &load_bits<std::uint32_t>;
    case dtype::uint64: return &load_bits<std::uint64_t>;
    default: return nullptr;
  }
}

/// A value as a list of items of `length` elements each, numbered by the first item that is equal. Negative zeros equal positive ones, what is no number equals nothing.
class unique_items {
 public:
  unique_items(const tensor_value& v, std::int64_t length);
  /// By item, the number of its kind.
  std::vector<std::int64_t> kinds;
  /// By kind, its first item and how many there are.
  std::vector<std::int64_t> firsts, counts;

 private:
  std::size_t hash_of(std::int64_t item) const;
  bool equal(std::int64_t a, std::int64_t b) const;
  void canonise();
  void add(std::int64_t item);

  tensor_value values_;
  std::int64_t length_;
  std::size_t item_bytes_ = 0;
  std::vector<bool> never_equal_;
  std::vector<std::int64_t> slots_;  // kinds, -1 where free
};

inline unique_items::unique_items(const tensor_value& v, std::int64_t length) : values_(v), length_(length) {
  const std::int64_t count = length == 0 ? 0 : v.elements() / length;
  item_bytes_ = static_cast<std::size_t>(length) * object_size(v.dtype());
  if (floating_bits_of(v.dtype()).sign != 0) canonise();
  std::size_t size = 16;
  while (size < 2 * static_cast<std::size_t>(count)) size *= 2;
  slots_.assign(size, -1);
  for (std::int64_t i = 0; i < count; ++i) add(i);
}

// A copy in which zeros have no sign, and which items hold what is no number.
inline void unique_items::canonise() {
  const floating_bits bits = floating_bits_of(values_.dtype());
  const bool complex = values_.dtype() == dtype::complex64 || values_.dtype() == dtype::complex128;
  const std::size_t size = size_of(values_.dtype()) / (complex ? 2 : 1), parts = static_cast<std::size_t>(values_.elements()) * (complex ? 2 : 1), each = static_cast<std::size_t>(length_) * (complex ? 2 : 1);
  tensor_value copy(values_.dtype(), values_.shape());
  never_equal_.assign(each == 0 ? 0 : parts / each, false);
  for (std::size_t i = 0; i < parts; ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, values_.raw_data() + i * size, size);
    if ((value & ~bits.sign) == 0) value = 0;
    if ((value & ~bits.sign) > bits.infinity) never_equal_[i / each] = true;
    std::memcpy(copy.mutable_raw_data() + i * size, &value, size);
  }
  values_ = std::move(copy);
}

inline std::size_t unique_items::hash_of(std::int64_t item) const {
  const auto mixed = [](std::uint64_t h) { return static_cast<std::size_t>((h ^ h >> 29) * 0x9e3779b97f4a7c15U >> 16); };
  const std::hash<std::string_view> hash;
  if (values_.dtype() != dtype::string) {
    const auto* data = reinterpret_cast<const char*>(values_.raw_data()) + static_cast<std::size_t>(item) * item_bytes_;
    std::uint64_t bits = 0;
    if (item_bytes_ > 8) return mixed(hash({data, item_bytes_}));
    std::memcpy(&bits, data, item_bytes_);
    return mixed(bits * 0xff51afd7ed558ccdU);
  }
  std::uint64_t all = 0;
  for (std::int64_t e = 0; e < length_; ++e) all = all * 31 + hash(values_.data<std::string>()[item * length_ + e]);
  return mixed(all);
}

inline bool unique_items::equal(std::int64_t a, std::int64_t b) const {
  if (values_.dtype() == dtype::string) {
    const std::string* all = values_.data<std::string>();
    return std::equal(all + a * length_, all + (a + 1) * length_, all + b * length_);
  }
  const std::byte* data = values_.raw_data();
  return std::memcmp(data + static_cast<std::size_t>(a) * item_bytes_, data + static_cast<std::size_t>(b) * item_bytes_, item_bytes_) == 0;
}

inline void unique_items::add(std::int64_t item) {
  const bool alone = !never_equal_.empty() && never_equal_[static_cast<std::size_t>(item)];
  std::size_t slot = hash_of(item) & (slots_.size() - 1);
  for (; !alone && slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const auto kind = static_cast<std::size_t>(slots_[slot]);
    if (!equal(firsts[kind], item)) continue;
    ++counts[kind];
    kinds.push_back(slots_[slot]);
    return;
  }
  const auto kind = static_cast<std::int64_t>(firsts.size());
  if (!alone) slots_[slot] = kind;
  firsts.push_back(item);
  counts.push_back(1);
  kinds.push_back(kind);
}

// A vector of int32 or int64.
inline void set_integers(kernel_context& context, int output, dtype type, const std::vector<std::int64_t>& values) {
  tensor_value& out = context.allocate_output(output, type, shape{static_cast<std::int64_t>(values.size())});
  if (type == dtype::int64) std::copy(values.begin(), values.end(), out.mutable_data<std::int64_t>());
  else std::transform(values.begin(), values.end(), out.mutable_data<std::int32_t>(), [](std::int64_t v) { return static_cast<std::int32_t>(v); });
}
// The dtype in attribute out_idx, which can number `count` items.
inline dtype index_dtype(const kernel_context& context, std::int64_t count) {
  const dtype type = context.about().attr<dtype>("out_idx");
  if (type != dtype::int32 && type != dtype::int64) context.fail(std::string("attribute 'out_idx' must be int32 or int64, found ") + to_text(type));
  if (type == dtype::int32 && count > std::numeric_limits<std::int32_t>::max()) context.fail("positions of " + std::to_string(count) + " elements do not fit into int32; ask for out_idx int64");
  return type;
}
inline void expect_comparable(const kernel_context& context, dtype type) {
  if (type != dtype::string && !is_plain(type)) context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
}

inline void compute_unique(kernel_context& context) {
  (void)outputs_now(context, unique_shape);
  const tensor_value& x = context.input(0);
  expect_comparable(context, x.dtype());
  const dtype index = index_dtype(context, x.elements());
  const unique_items items(x, 1);
  tensor_value& out = context.allocate_output(0, x.dtype(), shape{static_cast<std::int64_t>(items.firsts.size())});
  gather_rows(source_of(x), items.firsts.data(), items.firsts.size(), 1, target_of(out).data);
  set_integers(context, 1, index, items.kinds);
  if (context.about().output_count() > 2) set_integers(context, 2, index, items.counts);
}

// A copy with dimension `axis` first, or one with the first dimension at `axis`, where `s` is the shape with the axis in its place.
enum class axis_move : unsigned char { to_front, into_place };
inline void move_axis(const tensor_value& in, tensor_value& out, const shape& s, int axis, axis_move where) {
  const std::int64_t outer = elements_between(s, 0, axis), inner = elements_between(s, axis + 1, s.rank()), size = s[axis];
  if (outer == 0 || inner == 0 || size == 0) return;
  strided_copy copy;
  if (where == axis_move::to_front) {
    copy.add(size, inner, outer * inner);
    copy.add(outer, size * inner, inner);
  } else {
    copy.add(outer, inner, size * inner);
    copy.add(size, outer * inner, inner);
  }
  copy.add(inner, 1, 1);
  copy.run(source_of(in), 0, target_of(out), 0);
}

// Slices along an axis are compared as a whole.
inline void compute_unique_v2(kernel_context& context) {
  (void)outputs_now(context, unique_v2_shape);
  const tensor_value& x = context.input(0);
  expect_comparable(context, x.dtype());
  const auto wanted = integers_of(context, 1, "axis");
  const int axis = wanted.empty() ? 0 : axis_of(context, wanted[0], x.shape().rank(), "axis");
  const std::int64_t count = x.shape()[axis], length = count == 0 ? 0 : x.elements() / count;
  const dtype index = index_dtype(context, count);
  if (length == 0 && count > 0) context.fail("slices of shape " + x.shape().text() + " along dimension " + std::to_string(axis) + " have no elements to compare");
  tensor_value slices(x.dtype(), x.shape());
  move_axis(x, slices, x.shape(), axis, axis_move::to_front);
  const unique_items items(slices, length);
  tensor_value chosen(x.dtype(), shape{static_cast<std::int64_t>(items.firsts.size()), length});
  gather_rows(source_of(slices), items.firsts.data(), items.firsts.size(), length, target_of(chosen).data);
  size_list sizes = x.shape().vector();
  sizes[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(items.firsts.size());
  tensor_value& out = context.allocate_output(0, x.dtype(), shape(sizes));
  move_axis(chosen, out, out.shape(), axis, axis_move::into_place);
  set_integers(context, 1, index, items.kinds);
  if (context.about().output_count() > 2) set_integers(context, 2, index, items.counts);
}

// Elements of x that y has not, with their positions.
inline void compute_list_diff(kernel_context& context) {
  (void)outputs_now(context, list_diff_shape);
  expect_same_dtype(context, 1, 0);
  const tensor_value &x = context.input(0), &y = context.input(1);
  expect_comparable(context, x.dtype());
  tensor_value both(x.dtype(), shape{y.elements() + x.elements()});
  copy_elements(y, 0, both, 0, y.elements());
  copy_elements(x, 0, both, y.elements(), x.elements());
  const unique_items items(both, 1);
  std::vector<std::int64_t> left;
  for (std::int64_t i = 0; i < x.elements(); ++i)
    if (items.firsts[static_cast<std::size_t>(items.kinds[static_cast<std::size_t>(y.elements() + i)])] >= y.elements()) left.push_back(i);
  const dtype index = index_dtype(context, x.elements());
  tensor_value& out = context.allocate_output(0, x.dtype(), shape{static_cast<std::int64_t>(left.size())});
  gather_rows(source_of(x), left.data(), left.size(), 1, target_of(out).data);
  set_integers(context, 1, index, left);
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
