#ifndef WEFT_KERNELS_STATE_ROWS_HPP
#define WEFT_KERNELS_STATE_ROWS_HPP
// Kernels that read or update a part of a variable: rows by index, and slices by index tuples.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/math.hpp>
#include <weft/kernels/state.hpp>
#include <weft/runtime/variable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an op on parts of variables; nullptr for ops of other families.
kernel_factory state_rows_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Copies elements, strings and handles included.
inline void copy_elements(dtype type, const void* from, void* to, std::size_t count) {
  if (type == dtype::string) std::copy_n(static_cast<const std::string*>(from), count, static_cast<std::string*>(to));
  else if (type == dtype::resource) std::copy_n(static_cast<const resource_handle*>(from), count, static_cast<resource_handle*>(to));
  else if (count != 0) std::memcpy(to, from, count * size_of(type));
}

/// Elements of a part of a shape, from dimension `from` up to `to`.
inline std::int64_t row_elements(const shape& s, int from, int to) noexcept {
  std::int64_t out = 1;
  for (int i = from; i < to; ++i) out *= s[i];
  return out;
}

/// A shape from parts of two others. Fails when it has too many elements or dimensions.
inline shape joined(const kernel_context& context, const shape& first, int first_count, const shape& second, int second_from) {
  std::vector<std::int64_t> sizes(first.begin(), first.begin() + first_count);
  sizes.insert(sizes.end(), second.begin() + second_from, second.end());
  if (sizes.size() > static_cast<std::size_t>(max_rank) || !checked_elements(sizes.data(), sizes.size()))
    context.fail("indices of shape " + first.text() + " into a variable of shape " + second.text() + " give too many elements or dimensions");
  return shape(sizes);
}

[[noreturn]] inline void fail_outside(const kernel_context& context, std::size_t i, std::int64_t index, std::int64_t rows) {
  context.fail("indices[" + std::to_string(i) + "] = " + std::to_string(index) + " is not in [0, " + std::to_string(rows) + ")");
}

/// The rows of a variable that indices name, after `batch_dims` dimensions that both share.
class gather_variable_kernel final : public kernel {
 public:
  explicit gather_variable_kernel(const node& n) : type_(type_attr(n, "dtype")) {
    const auto* batch = n.find_attr<std::int64_t>("batch_dims");
    batch_dims_ = batch == nullptr ? 0 : *batch;
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, 2);
    const std::vector<std::int64_t> indices = integers_of(context, 1, "indices");
    variable_of(context, type_)->inspect([&](const tensor_value& held) { gather(context, indices, held); });
  }

 private:
  void gather(kernel_context& context, const std::vector<std::int64_t>& indices, const tensor_value& held) const;
  dtype type_;
  std::int64_t batch_dims_;
};

inline void gather_variable_kernel::gather(kernel_context& context, const std::vector<std::int64_t>& indices, const tensor_value& held) const {
  const shape &from = held.shape(), &which = context.input(1).shape();
  if (from.rank() == 0) context.fail("a scalar variable has no rows to gather");
  if (batch_dims_ < 0 || batch_dims_ >= from.rank() || batch_dims_ > which.rank())
    context.fail("batch_dims " + std::to_string(batch_dims_) + " does not fit a variable of shape " + from.text() + " and indices of shape " + which.text());
  const int batch = static_cast<int>(batch_dims_);
  for (int i = 0; i < batch; ++i)
    if (from[i] != which[i]) context.fail("the first " + std::to_string(batch) + " dimensions of the variable, " + from.text() + ", and of the indices, " + which.text() + ", must be equal");
  const std::int64_t rows = from[batch];
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= rows) fail_outside(context, i, indices[i], rows);
  tensor_value& out = context.allocate_output(0, type_, joined(context, which, which.rank(), from, batch + 1));
  const auto width = static_cast<std::size_t>(row_elements(from, batch + 1, from.rank())), bytes = width * object_size(type_);
  if (width == 0 || indices.empty()) return;
  const std::size_t per_batch = indices.size() / static_cast<std::size_t>(row_elements(from, 0, batch));
  const auto* data = static_cast<const unsigned char*>(elements_of(held));
  auto* to = static_cast<unsigned char*>(elements_of(out));
  for (std::size_t i = 0; i < indices.size(); ++i)
    copy_elements(type_, data + (i / per_batch * static_cast<std::size_t>(rows) + static_cast<std::size_t>(indices[i])) * bytes, to + i * bytes, width);
}

/// What a scatter does to the elements it meets.
class slice_update {
 public:
  /// `op` is what follows ResourceScatter or ResourceScatterNd in the name of the op.
  slice_update(const node& n, std::string_view op, dtype type) : type_(type) {
    if (op == "Update") return;
    for (const auto& [name, math] : {std::pair("Add", "Add"), std::pair("Sub", "Sub"), std::pair("Mul", "Mul"), std::pair("Div", "Div"), std::pair("Min", "Minimum"), std::pair("Max", "Maximum")})
      if (op == name) op_ = find_pair_op(math);
    if (op_ == nullptr || !pair_rows(*op_, type).exists()) fail_without_loop(n, type);
  }
  /// Whether zeros among the updates of an integer variable are an error.
  bool refuses(const tensor_value& updates) const { return op_ != nullptr && (op_->traits & pair_traits::zero_fails) && is_integer(type_) && any_zero(updates); }
  /// Changes `count` elements by as many updates, or by one that stands for all.
  void operator()(unsigned char* elements, const unsigned char* updates, bool varies, std::size_t count) const {
    if (op_ != nullptr) return pair_rows(*op_, type_).run({elements, true}, {updates, varies}, elements, count);
    if (varies) return copy_elements(type_, updates, elements, count);
    for (std::size_t i = 0; i < count; ++i) copy_elements(type_, updates, elements + i * object_size(type_), 1);
  }

 private:
  dtype type_;
  const pair_op* op_ = nullptr;
};

/// Updates the rows of a variable that indices name, one after the other, each by a row of the updates or all by one number.
class scatter_variable_kernel final : public kernel {
 public:
  explicit scatter_variable_kernel(const node& n) : type_(type_attr(n, "dtype")), update_(n, std::string_view(n.op()).substr(std::string_view("ResourceScatter").size()), type_) {}
  WEFT_INLINE void compute(kernel_context& context) override;

 private:
  dtype type_;
  slice_update update_;
};

// As in TensorFlow an index that does not exist fails the op when it is met: the rows before it have changed then.
inline void scatter_variable_kernel::compute(kernel_context& context) {
  expect_inputs(context, 3);
  expect_dtype(context, 2, type_);
  const std::vector<std::int64_t> indices = integers_of(context, 1, "indices");
  const tensor_value& updates = context.input(2);
  const bool varies = updates.shape().rank() != 0;
  if (update_.refuses(updates)) context.fail("integer division by zero");
  variable_of(context, type_)->update([&](tensor_value& held) {
    const shape &to = held.shape(), &which = context.input(1).shape();
    if (to.rank() == 0) context.fail("a scalar variable has no rows to update");
    if (varies && updates.shape() != joined(context, which, which.rank(), to, 1))
      context.fail("updates must have shape " + joined(context, which, which.rank(), to, 1).text() + " to fit indices of shape " + which.text() + " into a variable of shape " + to.text() + ", found " +
                   updates.shape().text());
    const auto width = static_cast<std::size_t>(row_elements(to, 1, to.rank())), bytes = width * object_size(type_);
    auto* data = static_cast<unsigned char*>(elements_of(held));
    const auto* from = static_cast<const unsigned char*>(elements_of(updates));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= to[0]) fail_outside(context, i, indices[i], to[0]);
      if (width != 0) update_(data + static_cast<std::size_t>(indices[i]) * bytes, varies ? from + i * bytes : from, varies, width);
    }
  });
}

/// Index tuples into a variable: where each slice begins, and how many elements it has. Empty tuples all pick the whole variable.
struct slice_list {
  std::vector<std::size_t> begins;
  std::size_t count, width;
  shape result;
  std::size_t begin(std::size_t i) const noexcept { return begins.empty() ? 0 : begins[i]; }
};

/// The slices that indices `[..., depth]` pick, all of which exist.
inline slice_list slices_of(const kernel_context& context, const shape& held) {
  const shape& which = context.input(1).shape();
  if (which.rank() == 0) context.fail("the indices must be at least a vector, found a scalar");
  const std::int64_t depth = which[which.rank() - 1];
  if (depth > held.rank()) context.fail("an index of " + std::to_string(depth) + " numbers cannot pick from a variable of shape " + held.text());
  const int taken = static_cast<int>(depth);
  const std::int64_t count = row_elements(which, 0, which.rank() - 1);
  slice_list out{{}, static_cast<std::size_t>(count), static_cast<std::size_t>(row_elements(held, taken, held.rank())), joined(context, which, which.rank() - 1, held, taken)};
  if (depth == 0) return out;
  const std::vector<std::int64_t> indices = integers_of(context, 1, "indices");
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t* tuple = indices.data() + i * depth;
    std::size_t at = 0;
    for (int d = 0; d < taken; ++d) {
      if (tuple[d] < 0 || tuple[d] >= held[d])
        context.fail("indices[" + std::to_string(i) + "] = " + shape_text({tuple, tuple + depth}) + " does not index into a variable of shape " + held.text());
      at = at * static_cast<std::size_t>(held[d]) + static_cast<std::size_t>(tuple[d]);
    }
    out.begins.push_back(at * out.width);
  }
  return out;
}

/// The slices of a variable that index tuples pick.
class gather_nd_variable_kernel final : public kernel {
 public:
  explicit gather_nd_variable_kernel(const node& n) : type_(type_attr(n, "dtype")) {}
  void compute(kernel_context& context) override {
    expect_inputs(context, 2);
    variable_of(context, type_)->inspect([&](const tensor_value& held) {
      const slice_list slices = slices_of(context, held.shape());
      tensor_value& out = context.allocate_output(0, type_, slices.result);
      if (out.elements() == 0) return;
      const auto* data = static_cast<const unsigned char*>(elements_of(held));
      auto* to = static_cast<unsigned char*>(elements_of(out));
      const std::size_t size = object_size(type_);
      for (std::size_t i = 0; i < slices.count; ++i) copy_elements(type_, data + slices.begin(i) * size, to + i * slices.width * size, slices.width);
    });
  }

 private:
  dtype type_;
};

/// Updates the slices of a variable that index tuples pick, one after the other. All of them exist, or nothing changes.
class scatter_nd_variable_kernel final : public kernel {
 public:
  explicit scatter_nd_variable_kernel(const node& n) : type_(type_attr(n, "T")), update_(n, std::string_view(n.op()).substr(std::string_view("ResourceScatterNd").size()), type_) {}
  WEFT_INLINE void compute(kernel_context& context) override;

 private:
  dtype type_;
  slice_update update_;
};

inline void scatter_nd_variable_kernel::compute(kernel_context& context) {
  expect_inputs(context, 3);
  expect_dtype(context, 2, type_);
  const tensor_value& updates = context.input(2);
  variable_of(context, type_)->update([&](tensor_value& held) {
    const slice_list slices = slices_of(context, held.shape());
    if (updates.shape() != slices.result)
      context.fail("updates must have shape " + slices.result.text() + " to fit indices of shape " + context.input(1).shape().text() + " into a variable of shape " + held.shape().text() + ", found " +
                   updates.shape().text());
    if (updates.elements() == 0) return;
    auto* data = static_cast<unsigned char*>(elements_of(held));
    const auto* from = static_cast<const unsigned char*>(elements_of(updates));
    const std::size_t size = object_size(type_);
    for (std::size_t i = 0; i < slices.count; ++i) update_(data + slices.begin(i) * size, from + i * slices.width * size, true, slices.width);
  });
}

/// The sizes of a variable's value.
class variable_shape_kernel final : public cheap_kernel {
 public:
  explicit variable_shape_kernel(const node& n) : type_(type_attr(n, "out_type")) {}
  WEFT_INLINE void compute(kernel_context& context) override;

 private:
  dtype type_;
};

inline void variable_shape_kernel::compute(kernel_context& context) {
  expect_inputs(context, 1);
  const resource_handle& handle = handle_of(context);
  const auto found = context.resources().find<variable_resource>(handle.container, handle.name);
  if (found == nullptr || !found->initialized()) fail_uninitialized(context, handle.name);
  const shape s = found->read().shape();
  tensor_value& out = context.allocate_output(0, type_, shape{s.rank()});
  for (int i = 0; i < s.rank(); ++i) {
    if (type_ == dtype::int64) out.mutable_data<std::int64_t>()[i] = s[i];
    else if (s[i] > INT32_MAX) context.fail("dimension " + std::to_string(i) + " of shape " + s.text() + " does not fit into int32; ask for int64");
    else out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(s[i]);
  }
}

/// Adds one to a scalar variable and gives the value before; at the limit it fails.
class count_up_kernel final : public cheap_kernel {
 public:
  explicit count_up_kernel(const node& n) : type_(type_attr(n, "T")) {
    const auto* limit = n.find_attr<std::int64_t>("limit");
    limit_ = limit == nullptr ? 0 : *limit;
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, 1);
    variable_of(context, type_)->replace([&](const tensor_value& current, tensor_value& next) {
      if (current.shape().rank() != 0) context.fail("the variable must be a scalar, found shape " + current.shape().text());
      const std::int64_t before = type_ == dtype::int64 ? *current.data<std::int64_t>() : *current.data<std::int32_t>();
      if (before >= limit_) context.fail(error_code::out_of_range, "reached the limit of " + std::to_string(limit_));
      tensor_value& out = context.allocate_output(0, type_, shape());
      if (type_ == dtype::int64) {
        *out.mutable_data<std::int64_t>() = before;
        *next.mutable_data<std::int64_t>() = before + 1;
      } else {
        *out.mutable_data<std::int32_t>() = static_cast<std::int32_t>(before);
        if (before == INT32_MAX) context.fail(error_code::out_of_range, "the largest int32 cannot be counted up");
        *next.mutable_data<std::int32_t>() = static_cast<std::int32_t>(before + 1);
      }
    });
  }

 private:
  dtype type_;
  std::int64_t limit_;
};

WEFT_DECL kernel_factory state_rows_kernel(std::string_view op) {
  if (op == "ResourceGather") return &make_kernel<gather_variable_kernel>;
  if (op == "ResourceGatherNd") return &make_kernel<gather_nd_variable_kernel>;
  if (op == "VariableShape") return &make_kernel<variable_shape_kernel>;
  if (op == "ResourceCountUpTo") return &make_kernel<count_up_kernel>;
  if (op.substr(0, 17) == "ResourceScatterNd") return &make_kernel<scatter_nd_variable_kernel>;
  return op.substr(0, 15) == "ResourceScatter" ? &make_kernel<scatter_variable_kernel> : nullptr;
}

}  // namespace weft::detail
#endif

#endif
