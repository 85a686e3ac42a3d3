#ifndef WEFT_KERNELS_FUNCTION_KERNEL_HPP
#define WEFT_KERNELS_FUNCTION_KERNEL_HPP
// Kernels that are one function each, listed in tables; and the shapes of a running node's outputs, found by the op's own shape rule.

#include <weft/graph/shape_context.hpp>
#include <weft/kernels/inputs.hpp>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// How long a function may take: some microseconds, as long as its inputs are large, or as long as values say.
enum class kernel_cost : unsigned char { cheap, by_inputs, by_values };

/// One row of a table of kernels. `inputs` is their number, or the least number when negative; `outputs` is theirs, or any when negative.
struct kernel_function {
  std::string_view op;
  void (*compute)(kernel_context&);
  int inputs = 1, outputs = 1;
  kernel_cost cost = kernel_cost::by_inputs;
};

/// A kernel that calls the function of its row.
class function_kernel final : public kernel {
 public:
  explicit function_kernel(const kernel_function& function) : function_(function) {}
  void compute(kernel_context& context) override {
    const bool fits = function_.inputs < 0 ? context.input_count() >= -function_.inputs : context.input_count() == function_.inputs;
    if (!fits) context.fail("expected " + std::to_string(std::abs(function_.inputs)) + (function_.inputs < 0 ? " or more" : "") + " inputs, found " + std::to_string(context.input_count()));
    if (function_.outputs >= 0 && context.about().output_count() != function_.outputs) context.fail("expected " + std::to_string(function_.outputs) + " outputs, found " + std::to_string(context.about().output_count()));
    function_.compute(context);
  }
  bool expensive(const kernel_context& context) const noexcept override {
    return function_.cost == kernel_cost::by_values || (function_.cost == kernel_cost::by_inputs && input_elements(context) > expensive_elements);
  }

 private:
  kernel_function function_;
};

/// The row of an op, or nullptr.
template <std::size_t N> const kernel_function* find_function(const kernel_function (&rows)[N], std::string_view op) noexcept {
  for (const kernel_function& row : rows)
    if (row.op == op) return &row;
  return nullptr;
}

/// What the op's shape rule says of the outputs, now that all inputs have values. Throws as the rule does.
inline std::vector<output_type> outputs_now(const kernel_context& context, shape_function rule) {
  std::vector<output_type> out(static_cast<std::size_t>(context.about().output_count()));
  shape_context shapes(context.about(), &context.input(0), static_cast<std::size_t>(context.input_count()), out);
  rule(shapes);
  return out;
}
/// A shape that a rule found. Fails when the rule could not tell, or when memory cannot hold so many elements.
inline shape found_shape(const kernel_context& context, const output_type& found) {
  if (!found.shape.fully_known()) context.fail("the shape of the result " + found.shape.text() + " cannot be told from these inputs");
  const shape out = found.shape.to_shape();
  if (!checked_elements(out.data(), static_cast<std::size_t>(out.rank()))) context.fail("a result of shape " + out.text() + " has more elements than memory can address");
  return out;
}
inline shape output_shape_now(const kernel_context& context, shape_function rule) { return found_shape(context, outputs_now(context, rule)[0]); }

/// Fails unless input i has the dtype of input `like`.
inline void expect_same_dtype(const kernel_context& context, int i, int like) { expect_dtype(context, i, context.input(like).dtype()); }

}  // namespace weft::detail
#endif

#endif
