#ifndef WEFT_KERNELS_ACCUMULATOR_HPP
#define WEFT_KERNELS_ACCUMULATOR_HPP
// Kernels of conditional accumulators. Taking waits without a thread: the accumulator answers when enough gradients have come.

#include <weft/kernels/accumulator_state.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/state_handle.hpp>
#include <weft/runtime/kernel.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an op on accumulators; nullptr for ops of other families.
kernel_factory accumulator_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Makes the accumulator where there is none yet, and names it.
class accumulator_handle_kernel final : public cheap_kernel {
 public:
  explicit accumulator_handle_kernel(const kernel_construction& what) : handle_(what, "accumulator") {
    const node& n = what.about;
    spec_.name = handle_.name();
    spec_.type = type_attr(n, "dtype");
    spec_.shape = n.attr<partial_shape>("shape");
    const auto* reduction = n.find_attr<std::string>("reduction_type");
    spec_.sum = reduction != nullptr && *reduction == "SUM";
    spec_.sparse = n.op() == "SparseConditionalAccumulator";
  }
  static std::unique_ptr<kernel> make(const kernel_construction& what) { return std::make_unique<accumulator_handle_kernel>(what); }
  void compute(kernel_context& context) override {
    const auto made = handle_.find_or_make<accumulator_resource>(context, [this] { return std::make_shared<accumulator_resource>(spec_); });
    const auto differ = [&](const char* what, const std::string& has, const std::string& wanted) {
      if (has != wanted) context.fail("the shared accumulator '" + spec_.name + "' has " + what + " " + has + ", found " + wanted);
    };
    const auto reduction = [](const accumulator_spec& s) { return std::string(s.sum ? "SUM" : "MEAN"); };
    const auto kind = [](const accumulator_spec& s) { return std::string(s.sparse ? "sparse" : "dense"); };
    differ("kind", kind(made->spec()), kind(spec_));
    differ("dtype", to_text(made->spec().type), to_text(spec_.type));
    differ("shape", made->spec().shape.text(), spec_.shape.text());
    differ("reduction", reduction(made->spec()), reduction(spec_));
    handle_.set_output(context);
  }

 private:
  resource_name handle_;
  accumulator_spec spec_;
};

// The accumulator of a kernel that works on gradients of dtype `type`.
inline std::shared_ptr<accumulator_resource> accumulator_of(kernel_context& context, bool sparse, dtype type) {
  auto found = resource_of<accumulator_resource>(context, "accumulator");
  if (found->spec().sparse != sparse) context.fail(found->describe() + " is for " + (sparse ? "dense" : "sparse") + " gradients, this op is for " + (sparse ? "sparse" : "dense") + " ones");
  if (found->spec().type != type) context.fail(found->describe() + " is " + to_text(found->spec().type) + ", this op expects " + to_text(type));
  return found;
}

// The number in input i, an int64 or int32 scalar.
inline std::int64_t step_input(const kernel_context& context, int i, const char* what) {
  const tensor_value& v = context.input(i);
  if (v.elements() != 1) context.fail(std::string(what) + " must be a scalar, found shape " + v.shape().text());
  return integers_of(context, i, what)[0];
}

/// Adds a gradient.
class accumulator_apply_kernel final : public kernel {
 public:
  explicit accumulator_apply_kernel(const node& n) : type_(type_attr(n, "dtype")), sparse_(n.op() == "SparseAccumulatorApplyGradient") {
    const bool* known = n.find_attr<bool>("has_known_shape");
    known_shape_ = known != nullptr && *known;
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, sparse_ ? 5 : 3);
    const auto accumulator = accumulator_of(context, sparse_, type_);
    const std::int64_t step = step_input(context, 1, "the local step");
    expect_dtype(context, sparse_ ? 3 : 2, type_);
    try {
      if (!sparse_) return accumulator->push(step, context.take_input(2));
      for (const int i : {2, 4})
        if (context.input(i).shape().rank() != 1) context.fail(std::string(i == 2 ? "the indices" : "the shape") + " must be a vector, found shape " + context.input(i).shape().text());
      std::vector<std::int64_t> sizes = integers_of(context, 4, "the shape");
      const bool known = known_shape_ && !sizes.empty();
      accumulator->push(step, integers_of(context, 2, "the indices"), context.take_input(3), known ? partial_shape(std::move(sizes)) : partial_shape());
    } catch (const error& e) {
      if (!e.node().empty()) throw;
      context.fail(e.code(), e.message());
    }
  }
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  dtype type_;
  bool sparse_, known_shape_;
};

/// Takes the mean or the sum of the gradients once there are enough.
class accumulator_take_kernel final : public kernel {
 public:
  explicit accumulator_take_kernel(const node& n) : type_(type_attr(n, "dtype")), sparse_(n.op() == "SparseAccumulatorTakeGradient") {}
  bool asynchronous() const noexcept override { return true; }
  bool waits_for_others() const noexcept override { return true; }
  void compute(kernel_context& context) override { context.fail(error_code::internal, "this kernel answers later, it was called as if it answered at once"); }
  void compute_async(kernel_context& context, kernel_done done) override {
    expect_inputs(context, 2);
    const auto accumulator = accumulator_of(context, sparse_, type_);
    const std::int64_t required = step_input(context, 1, "the number of gradients");
    if (required <= 0) context.fail("the number of gradients must be positive, found " + std::to_string(required));
    accumulator->take(required, context.environment().cancellation, [&context, accumulator, done = std::move(done)](const status& s, accumulated taken) { done(s.ok() ? deliver(context, *accumulator, taken) : s); });
  }

 private:
  static status deliver(kernel_context& context, const accumulator_resource& accumulator, const accumulated& taken) {
    try {
      tensor_value values = accumulator.reduced(taken);
      if (!accumulator.spec().sparse) {
        context.set_output(0, std::move(values));
        return status();
      }
      // The first size is that of the variable, where it is known.
      std::vector<std::int64_t> whole(values.shape().begin(), values.shape().end());
      const partial_shape& declared = accumulator.spec().shape;
      whole[0] = declared.known_rank() && declared.rank() > 0 ? declared[0] : -1;
      context.set_output(0, tensor_value::from(shape{static_cast<std::int64_t>(taken.indices.size())}, taken.indices));
      context.set_output(1, std::move(values));
      context.set_output(2, tensor_value::from(shape{static_cast<std::int64_t>(whole.size())}, whole));
      return status();
    } catch (const error& e) {
      return e.status();
    } catch (const std::bad_alloc&) {
      return status(error_code::resource_exhausted, "out of memory");
    }
  }
  dtype type_;
  bool sparse_;
};

/// How many gradients there are.
class accumulator_count_kernel final : public cheap_kernel {
 public:
  explicit accumulator_count_kernel(const node&) {}
  void compute(kernel_context& context) override {
    const std::int64_t count = resource_of<accumulator_resource>(context, "accumulator")->count();
    context.set_output(0, tensor_value::scalar(static_cast<std::int32_t>(std::min<std::int64_t>(count, std::numeric_limits<std::int32_t>::max()))));
  }
};

/// Sets the step before which gradients are stale.
class accumulator_step_kernel final : public cheap_kernel {
 public:
  explicit accumulator_step_kernel(const node&) {}
  void compute(kernel_context& context) override {
    expect_inputs(context, 2);
    resource_of<accumulator_resource>(context, "accumulator")->set_step(step_input(context, 1, "the step"));
  }
};

WEFT_DECL kernel_factory accumulator_kernel(std::string_view op) {
  if (op == "ConditionalAccumulator" || op == "ResourceConditionalAccumulator" || op == "SparseConditionalAccumulator") return &accumulator_handle_kernel::make;
  if (op == "AccumulatorApplyGradient" || op == "ResourceAccumulatorApplyGradient" || op == "SparseAccumulatorApplyGradient") return &make_kernel<accumulator_apply_kernel>;
  if (op == "AccumulatorTakeGradient" || op == "ResourceAccumulatorTakeGradient" || op == "SparseAccumulatorTakeGradient") return &make_kernel<accumulator_take_kernel>;
  if (op == "AccumulatorNumAccumulated" || op == "ResourceAccumulatorNumAccumulated") return &make_kernel<accumulator_count_kernel>;
  if (op == "AccumulatorSetGlobalStep" || op == "ResourceAccumulatorSetGlobalStep") return &make_kernel<accumulator_step_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
