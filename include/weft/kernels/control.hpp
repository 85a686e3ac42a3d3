#ifndef WEFT_KERNELS_CONTROL_HPP
#define WEFT_KERNELS_CONTROL_HPP
// Kernels that compute nothing: points to wait at, checks, printing, and ops that the executor carries out itself.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/inputs.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weft::detail {
/// The factory of an op that only orders others; nullptr for ops of other families.
kernel_factory control_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Does nothing once everything it waits for is done.
class no_op_kernel final : public cheap_kernel {
 public:
  explicit no_op_kernel(const node&) {}
  void compute(kernel_context&) override {}
};

/// Feeds, fetches and transfers are the executor's own work; their kernels exist so that they are placed like all others.
class executor_kernel final : public cheap_kernel {
 public:
  explicit executor_kernel(const node&) {}
  void compute(kernel_context& context) override { context.fail(error_code::internal, "this op is carried out by the executor, its kernel was called"); }
};

/// One element for people: texts as they are, but for control characters.
inline std::string element_summary(const tensor_value& v, std::int64_t i) {
  switch (v.dtype()) {
    case dtype::string: {
      const std::string quoted = attr_quoted(v.data<std::string>()[i]);
      return quoted.substr(1, quoted.size() - 2);
    }
    case dtype::resource: return v.data<resource_handle>()[i].name;
    case dtype::boolean: return v.data<bool>()[i] ? "1" : "0";
    case dtype::float32: return number_text(v.data<float>()[i]);
    case dtype::half: return number_text(static_cast<float>(v.data<half>()[i]));
    case dtype::bfloat16: return number_text(static_cast<float>(v.data<bfloat16>()[i]));
    case dtype::int8: return std::to_string(v.data<std::int8_t>()[i]);
    case dtype::int16: return std::to_string(v.data<std::int16_t>()[i]);
    case dtype::int32: return std::to_string(v.data<std::int32_t>()[i]);
    case dtype::int64: return std::to_string(v.data<std::int64_t>()[i]);
    case dtype::uint8: return std::to_string(v.data<std::uint8_t>()[i]);
    case dtype::uint16: return std::to_string(v.data<std::uint16_t>()[i]);
    case dtype::uint32: return std::to_string(v.data<std::uint32_t>()[i]);
    case dtype::uint64: return std::to_string(v.data<std::uint64_t>()[i]);
    case dtype::float64: {
      char text[32];
      for (int digits = 6; digits <= 17; digits += 11) {
        std::snprintf(text, sizeof text, "%.*g", digits, v.data<double>()[i]);
        if (std::strtod(text, nullptr) == v.data<double>()[i]) break;
      }
      return text;
    }
    default: return to_text(v.dtype());
  }
}

/// The first elements of a value as TensorFlow writes them: `1 2 3...`, rows in brackets; all of them when `most` is negative.
inline std::string summary_of(const tensor_value& v, std::int64_t most) {
  const shape& s = v.shape();
  const std::int64_t count = v.elements(), shown = most < 0 ? count : std::min(most, count);
  std::string out;
  // How many dimensions, from the last one, begin or end between two elements: their rows are closed and opened.
  const auto rows_between = [&s](std::int64_t element) {
    int rows = 0;
    for (int d = s.rank() - 1; d > 0 && element % s[d] == 0; --d) {
      element /= s[d];
      ++rows;
    }
    return static_cast<std::size_t>(rows);
  };
  const std::size_t all = s.rank() > 1 ? static_cast<std::size_t>(s.rank() - 1) : 0;
  for (std::int64_t i = 0; i < shown; ++i) {
    const std::size_t rows = i == 0 ? all : rows_between(i);
    if (i != 0) out += rows == 0 ? std::string(" ") : std::string(rows, ']');
    out += std::string(rows, '[') + element_summary(v, i);
  }
  if (shown < count) out += "...";
  return out + std::string(shown == 0 ? 0 : all, ']');
}

/// Fails, with what it was given to report, unless its condition holds.
class assert_kernel final : public cheap_kernel {
 public:
  explicit assert_kernel(const node& n) {
    const auto* most = n.find_attr<std::int64_t>("summarize");
    summarize_ = most == nullptr ? 3 : *most;
  }
  void compute(kernel_context& context) override {
    if (context.input_count() == 0) context.fail("expected a condition, found no input");
    expect_dtype(context, 0, dtype::boolean);
    if (context.input(0).shape().rank() != 0) context.fail("the condition must be a scalar, found shape " + context.input(0).shape().text());
    if (*context.input(0).data<bool>()) return;
    std::string text = "assertion failed:";
    for (int i = 1; i < context.input_count(); ++i) text += " [" + summary_of(context.input(i), summarize_) + "]";
    context.fail(std::move(text));
  }

 private:
  std::int64_t summarize_;
};

/// How often a node has printed in a session.
class print_count final : public resource {
 public:
  std::string describe() const override { return "the count of a node that prints"; }
  std::atomic<std::int64_t> printed{0};
};

/// Passes its first input on, and writes a line about the others to standard error.
class print_kernel final : public kernel {
 public:
  explicit print_kernel(const node& n) {
    if (const auto* most = n.find_attr<std::int64_t>("summarize")) summarize_ = *most;
    if (const auto* first = n.find_attr<std::int64_t>("first_n")) first_ = *first;
    if (const auto* text = n.find_attr<std::string>("message")) message_ = *text;
  }
  void compute(kernel_context& context) override {
    if (context.input_count() == 0) context.fail("expected an input, found none");
    if (first_ < 0 || times(context)++ < first_) {
      std::string line = message_;
      for (int i = 1; i < context.input_count(); ++i) line += "[" + summary_of(context.input(i), summarize_) + "]";
      line += '\n';
      std::fwrite(line.data(), 1, line.size(), stderr);
    }
    context.set_output(0, context.take_input(0));
  }

 private:
  std::atomic<std::int64_t>& times(kernel_context& context) const {
    resource_manager* session = context.environment().session_state;
    if (session == nullptr) context.fail(error_code::internal, "the step has no session state to count in");
    return session->find_or_make<print_count>("print", context.about().name(), [] { return std::make_shared<print_count>(); })->printed;
  }
  std::int64_t summarize_ = 3, first_ = -1;
  std::string message_;
};

/// Writes a text to standard output or standard error.
class print_text_kernel final : public kernel {
 public:
  explicit print_text_kernel(const node& n) {
    if (const auto* end = n.find_attr<std::string>("end")) end_ = *end;
    const auto* stream = n.find_attr<std::string>("output_stream");
    if (stream != nullptr) to_output_ = *stream == "stdout";
    if (stream != nullptr && *stream != "stdout" && *stream != "stderr")
      n.fail_about(error_code::unimplemented, "texts are printed to 'stdout' or 'stderr', not to '" + *stream + "'");
  }
  void compute(kernel_context& context) override {
    expect_inputs(context, 1);
    expect_dtype(context, 0, dtype::string);
    if (context.input(0).shape().rank() != 0) context.fail("the text must be a scalar, found shape " + context.input(0).shape().text());
    const std::string line = *context.input(0).data<std::string>() + end_;
    std::fwrite(line.data(), 1, line.size(), to_output_ ? stdout : stderr);
  }

 private:
  bool to_output_ = false;
  std::string end_ = "\n";
};

WEFT_DECL kernel_factory control_kernel(std::string_view op) {
  if (op == "Assert") return &make_kernel<assert_kernel>;
  if (op == "Print") return &make_kernel<print_kernel>;
  if (op == "PrintV2") return &make_kernel<print_text_kernel>;
  if (op == "NoOp" || op == "ControlTrigger") return &make_kernel<no_op_kernel>;
  if (op == "_Arg" || op == "_Retval" || op == "_Send" || op == "_Recv") return &make_kernel<executor_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
