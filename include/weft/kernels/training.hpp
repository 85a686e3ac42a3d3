#ifndef WEFT_KERNELS_TRAINING_HPP
#define WEFT_KERNELS_TRAINING_HPP
// Kernels of optimizers' updates. A rule is a line of text, read when the kernel is made into a block program: one pass over the variable, its slots and the gradient.

#include <weft/runtime/kernel.hpp>
#include <weft/kernels/block_program.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/parallel.hpp>
#include <weft/kernels/state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an optimizer's update; nullptr for ops of other families.
kernel_factory training_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// What an optimizer does, in the names of its op's inputs (the gradient is `grad`): statements `x = ...`, `x += ...`, `x -= ...` of + - * / and functions of <math>, and `root(x)` for
/// x to the power of -lr_power. `otherwise` holds when `flag` is set, or, for update_slots, when it is not.
struct training_rule {
  std::string_view name, text, flag, otherwise;
};

/// The rule of ResourceApply`name` and ResourceSparseApply`name`, or nullptr. After TensorFlow's kernels.
inline const training_rule* find_training_rule(std::string_view name) {
#define WEFT_SHRINK "shrunk = moved - min(max(moved, -limit), limit);"
#define WEFT_FTRL_END "accum = squares; var = (min(max(linear, -limit), limit) - linear) / (root(squares) * scale + 2 * l2 * step)"
#define WEFT_BY_LR "step = lr; scale = 1; limit = l1 * lr;"
#define WEFT_OVER_LR "step = 1; scale = 1 / lr; limit = l1;"
#define WEFT_FTRL "squares = accum + grad * grad; linear += grad * step - (root(squares) - root(accum)) * scale * var;" WEFT_FTRL_END
#define WEFT_FTRL_V2 "squares = accum + grad * grad; linear += (grad + 2 * l2_shrinkage * var) * step - (root(squares) - root(accum)) * scale * var;" WEFT_FTRL_END
#define WEFT_ADAM "m += (grad - m) * (1 - beta1); v += (grad * grad - v) * (1 - beta2); rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power);"
  static constexpr training_rule rules[] = {
      {"GradientDescent", "var -= grad * alpha", "", ""},
      {"ProximalGradientDescent", "moved = var - grad * alpha; limit = max(l1, 0) * alpha;" WEFT_SHRINK "var = shrunk / (1 + l2 * alpha)", "", ""},
      {"Momentum", "accum = accum * momentum + grad; var -= accum * lr", "use_nesterov", "accum = accum * momentum + grad; var -= grad * lr + accum * momentum * lr"},
      {"KerasMomentum", "accum = accum * momentum - grad * lr; var += accum", "use_nesterov", "accum = accum * momentum - grad * lr; var += accum * momentum - grad * lr"},
      {"Adagrad", "accum += grad * grad; var -= grad * lr / sqrt(accum)", "update_slots", "var -= grad * lr / sqrt(accum)"},
      {"AdagradV2", "accum += grad * grad; var -= grad * lr / (sqrt(accum) + epsilon)", "update_slots", "var -= grad * lr / (sqrt(accum) + epsilon)"},
      {"AdagradDA",
       "gradient_accumulator += grad; gradient_squared_accumulator += grad * grad; moved = gradient_accumulator; limit = max(l1, 0) * global_step;" WEFT_SHRINK
       "var = -lr * shrunk / (l2 * global_step * lr + sqrt(gradient_squared_accumulator))", "", ""},
      {"ProximalAdagrad", "accum += grad * grad; rate = lr / sqrt(accum); moved = var - grad * rate; limit = max(l1, 0) * rate;" WEFT_SHRINK "var = shrunk / (1 + l2 * rate)", "", ""},
      {"Adadelta",
       "accum = accum * rho + grad * grad * (1 - rho); change = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad;"
       "accum_update = accum_update * rho + change * change * (1 - rho); var -= change * lr", "", ""},
      {"RMSProp", "ms += (grad * grad - ms) * (1 - rho); mom = mom * momentum + grad * lr / sqrt(ms + epsilon); var -= mom", "", ""},
      {"CenteredRMSProp",
       "ms += (grad * grad - ms) * (1 - rho); mg += (grad - mg) * (1 - rho); mom = mom * momentum + grad * lr / sqrt(ms - mg * mg + epsilon); var -= mom", "", ""},
      {"Adam", WEFT_ADAM "var -= m * rate / (sqrt(v) + epsilon)", "use_nesterov", WEFT_ADAM "var -= (grad * (1 - beta1) + beta1 * m) * rate / (sqrt(v) + epsilon)"},
      {"AdamWithAmsgrad", WEFT_ADAM "vhat = max(vhat, v); var -= m * rate / (sqrt(vhat) + epsilon)", "", ""},
      {"AdaMax", "m += (grad - m) * (1 - beta1); v = max(beta2 * v, abs(grad)); var -= lr / (1 - beta1_power) * (m / (v + epsilon))", "", ""},
      {"AddSign", "m = m * beta + grad * (1 - beta); var -= lr * (alpha + sign_decay * (sign(grad) * sign(m))) * grad", "", ""},
      {"PowerSign", "m = m * beta + grad * (1 - beta); var -= lr * exp(logbase * sign_decay * (sign(grad) * sign(m))) * grad", "", ""},
      {"Ftrl", WEFT_OVER_LR WEFT_FTRL, "multiply_linear_by_lr", WEFT_BY_LR WEFT_FTRL},
      {"FtrlV2", WEFT_OVER_LR WEFT_FTRL_V2, "multiply_linear_by_lr", WEFT_BY_LR WEFT_FTRL_V2},
  };
#undef WEFT_SHRINK
#undef WEFT_FTRL_END
#undef WEFT_BY_LR
#undef WEFT_OVER_LR
#undef WEFT_FTRL
#undef WEFT_FTRL_V2
#undef WEFT_ADAM
  for (const training_rule& rule : rules)
    if (rule.name == name) return &rule;
  return nullptr;
}

/// Reads a rule into a block program. Names are inputs of the program or what statements before have set.
class rule_reader {
 public:
  /// How `root` is computed: as the square root, or with `lr_power`.
  enum class roots : unsigned char { square, any };
  rule_reader(std::string_view text, block_program& to, std::vector<std::string> inputs, roots how) : rest_(text), program_(to), how_(how) {
    for (std::string& name : inputs) set(std::move(name), program_.input());
  }
  void read() {
    while (!next().empty()) statement();
  }
  /// The value that a name stands for now; -1 when it stands for none.
  int find(std::string_view name) const noexcept {
    for (std::size_t i = names_.size(); i-- > 0;)
      if (names_[i].first == name) return names_[i].second;
    return -1;
  }

 private:
  // The next word, number or sign, not taken away.
  std::string_view next() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    std::size_t length = 0;
    while (length < rest_.size() && is_part(rest_[length])) ++length;
    return rest_.substr(0, rest_.empty() ? 0 : std::max<std::size_t>(length, 1));
  }
  std::string_view take() {
    const std::string_view out = next();
    rest_.remove_prefix(out.size());
    return out;
  }
  bool take_if(std::string_view sign) {
    if (next() != sign) return false;
    take();
    return true;
  }
  [[noreturn]] void bad() const { fail(error_code::internal, "cannot read the rule of an optimizer at '" + std::string(rest_) + "'"); }
  int step(std::string_view op, int a, int b = -1) {
    const int out = a < 0 ? -1 : program_.step(op, a, b);
    if (out < 0) bad();
    return out;
  }
  void set(std::string name, int value) { names_.emplace_back(std::move(name), value); }

  void statement() {
    const std::string name(take());
    const std::string_view sign = take();
    if (sign != "=" && !take_if("=")) bad();
    const int right = sum();
    set(name, sign == "=" ? right : step(sign == "+" ? "Add" : "Sub", find(name), right));
    take_if(";");
  }
  int sum() {
    int left = product();
    for (;;) {
      if (take_if("+")) left = step("Add", left, product());
      else if (take_if("-")) left = step("Sub", left, product());
      else return left;
    }
  }
  int product() {
    int left = factor();
    for (;;) {
      if (take_if("*")) left = step("Mul", left, factor());
      else if (take_if("/")) left = step("RealDiv", left, factor());
      else return left;
    }
  }
  int factor() {
    const std::string_view word = take();
    if (word == "-") return step("Neg", factor());
    if (word == "(") {
      const int inside = sum();
      if (!take_if(")")) bad();
      return inside;
    }
    if (!word.empty() && word.front() >= '0' && word.front() <= '9') return program_.constant(word.front() - '0');
    if (next() != "(") return find(word) < 0 ? (bad(), -1) : find(word);
    take();
    const int first = sum(), second = take_if(",") ? sum() : -1;
    if (!take_if(")")) bad();
    return call(word, first, second);
  }
  int call(std::string_view function, int a, int b) {
    if (function == "root") return how_ == roots::square ? step("Sqrt", a) : step("Pow", a, step("Neg", find("lr_power")));
    for (const auto& [name, op] : {std::pair("sqrt", "Sqrt"), std::pair("abs", "Abs"), std::pair("exp", "Exp"), std::pair("sign", "Sign"), std::pair("max", "Maximum"), std::pair("min", "Minimum")})
      if (function == name) return step(op, a, b);
    bad();
  }

  std::string_view rest_;
  block_program& program_;
  roots how_;
  std::vector<std::pair<std::string, int>> names_;
};

/// An optimizer's update: of all of a variable, or of the rows that `indices` names, one after the other. The variable and its slots are locked together.
class training_update_kernel final : public kernel {
 public:
  explicit training_update_kernel(const node& n);
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements / 4; }

 private:
  enum class role : unsigned char { variable, scalar, gradient, indices };
  struct argument {
    std::string name;
    role is;
  };
  // A program for each way to compute roots, and by output the variable that it changes.
  struct program {
    block_program steps;
    std::vector<std::size_t> changes;
  };
  program read_rule(std::string_view text, rule_reader::roots how) const;
  int position(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i].name == name) return static_cast<int>(i);
    return -1;
  }
  double number(const kernel_context& context, std::string_view name) const;
  void check_scalars(const kernel_context& context) const;
  void check_shapes(const kernel_context& context, const variables_lock& held) const;
  std::vector<std::int64_t> rows(const kernel_context& context, const shape& held) const;
  void update_all(const program& p, const std::vector<block_input>& inputs, variables_lock& held, thread_pool* pool) const;
  void update_rows(const program& p, std::vector<block_input> inputs, const std::vector<std::int64_t>& rows, variables_lock& held) const;

  dtype type_;
  std::vector<argument> arguments_;
  int gradient_ = -1, indices_ = -1;
  bool checks_signs_ = false, by_lr_ = false;
  std::vector<program> programs_;
};

inline training_update_kernel::training_update_kernel(const node& n) : type_(type_attr(n, "T")) {
  constexpr std::string_view dense = "ResourceApply", sparse = "ResourceSparseApply";
  const bool is_sparse = std::string_view(n.op()).substr(0, sparse.size()) == sparse;
  const training_rule* rule = find_training_rule(std::string_view(n.op()).substr(is_sparse ? sparse.size() : dense.size()));
  if (rule == nullptr || n.def() == nullptr) n.fail_about(error_code::internal, "there is no rule for this op");
  for (const arg_def& arg : n.def()->inputs) {
    const bool grad = arg.name == "grad" || arg.name == "delta";
    if (grad) gradient_ = static_cast<int>(arguments_.size());
    if (arg.name == "indices") indices_ = static_cast<int>(arguments_.size());
    arguments_.push_back({grad ? "grad" : arg.name, arg.type == dtype::resource ? role::variable : grad ? role::gradient : arg.name == "indices" ? role::indices : role::scalar});
  }
  const bool* flag = n.find_attr<bool>(rule->flag);
  const bool is_set = flag != nullptr && *flag, otherwise = flag != nullptr && is_set != (rule->flag == "update_slots");
  by_lr_ = is_set && rule->flag == "multiply_linear_by_lr";
  checks_signs_ = position("l1") >= 0 && (is_sparse || position("lr_power") >= 0);
  programs_.push_back(read_rule(otherwise ? rule->otherwise : rule->text, rule_reader::roots::square));
  if (position("lr_power") >= 0) programs_.push_back(read_rule(otherwise ? rule->otherwise : rule->text, rule_reader::roots::any));
}

inline training_update_kernel::program training_update_kernel::read_rule(std::string_view text, rule_reader::roots how) const {
  program out{block_program(type_), {}};
  std::vector<std::string> names;
  for (const argument& arg : arguments_)
    if (arg.is != role::indices) names.push_back(arg.name);
  rule_reader reader(text, out.steps, std::move(names), how);
  reader.read();
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].is != role::variable) break;
    const int value = reader.find(arguments_[i].name);
    if (value == static_cast<int>(i)) continue;
    out.steps.output(value);
    out.changes.push_back(i);
  }
  return out;
}

// A scalar input as a number.
inline double training_update_kernel::number(const kernel_context& context, std::string_view name) const {
  const tensor_value& v = context.input(position(name));
  if (v.dtype() == dtype::int64) return static_cast<double>(*v.data<std::int64_t>());
  const tensor_value wide = widened(v);
  return wide.dtype() == dtype::float64 ? *wide.data<double>() : static_cast<double>(*wide.data<float>());
}

inline void training_update_kernel::check_scalars(const kernel_context& context) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].is != role::scalar) continue;
    const tensor_value& v = context.input(static_cast<int>(i));
    expect_dtype(context, static_cast<int>(i), arguments_[i].name == "global_step" ? dtype::int64 : type_);
    if (v.shape().rank() != 0) context.fail("'" + arguments_[i].name + "' must be a scalar, found shape " + v.shape().text());
  }
  if (!checks_signs_) return;
  const auto expect = [&](const char* name, bool holds, const char* what) {
    if (!holds) context.fail(std::string("'") + name + "' must " + what + ", found " + std::to_string(number(context, name)));
  };
  const char* rate = position("lr") >= 0 ? "lr" : "alpha";
  expect(rate, number(context, rate) > 0 || (by_lr_ && number(context, rate) == 0), "be positive");
  for (const char* name : {"l1", "l2"}) expect(name, number(context, name) >= 0, "not be negative");
  if (position("lr_power") >= 0) expect("lr_power", number(context, "lr_power") <= 0, "not be positive");
}

inline void training_update_kernel::check_shapes(const kernel_context& context, const variables_lock& held) const {
  const shape& s = held.value(0).shape();
  for (std::size_t i = 1; i < held.size(); ++i)
    if (held.value(i).shape() != s)
      context.fail("variable '" + held.name(0) + "' has shape " + s.text() + ", variable '" + held.name(i) + "' has shape " + held.value(i).shape().text() + "; they must be equal");
  const shape& grad = context.input(gradient_).shape();
  if (indices_ < 0 && grad != s) context.fail("variable '" + held.name(0) + "' has shape " + s.text() + ", the gradient has shape " + grad.text() + "; they must be equal");
}

// The rows to update, all of which exist.
inline std::vector<std::int64_t> training_update_kernel::rows(const kernel_context& context, const shape& held) const {
  const shape &which = context.input(indices_).shape(), &grad = context.input(gradient_).shape();
  if (held.rank() == 0) context.fail("a scalar variable has no rows to update");
  if (which.rank() != 1) context.fail("indices must be a vector, found shape " + which.text());
  std::vector<std::int64_t> expected = held.vector();
  expected[0] = which[0];
  if (grad != shape(expected)) context.fail("the gradient must have a row for each index, shape " + shape(expected).text() + ", found " + grad.text());
  std::vector<std::int64_t> out = integers_of(context, indices_, "indices");
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] < 0 || out[i] >= held[0]) context.fail("indices[" + std::to_string(i) + "] = " + std::to_string(out[i]) + " is not in [0, " + std::to_string(held[0]) + ")");
  return out;
}

inline void training_update_kernel::compute(kernel_context& context) {
  expect_inputs(context, static_cast<int>(arguments_.size()));
  expect_dtype(context, gradient_, type_);
  check_scalars(context);
  // 1. Everything the update reads; the step's number as an element like the others.
  std::vector<std::shared_ptr<variable_resource>> variables;
  std::vector<block_input> inputs;
  tensor_value step_number;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const role is = arguments_[i].is;
    if (is == role::variable) variables.push_back(variable_of(context, type_, static_cast<int>(i)));
    if (is == role::indices) continue;
    const tensor_value* v = is == role::variable ? nullptr : &context.input(static_cast<int>(i));
    if (is == role::scalar && v->dtype() != type_) {
      const double exact = number(context, arguments_[i].name);
      step_number = narrowed(wide_dtype(type_) == dtype::float64 ? tensor_value::scalar(exact) : tensor_value::scalar(static_cast<float>(exact)), type_);
      v = &step_number;
    }
    inputs.push_back({v == nullptr ? nullptr : v->raw_data(), is != role::scalar});
  }
  const program& p = programs_[programs_.size() > 1 && number(context, "lr_power") != -0.5 ? 1 : 0];
  // 2. The update, while nobody else can see the variables.
  variables_lock held(std::move(variables));
  check_shapes(context, held);
  if (indices_ < 0) return update_all(p, inputs, held, context.pool());
  update_rows(p, std::move(inputs), rows(context, held.value(0).shape()), held);
}

// Long arrays are divided among the threads of the pool.
inline void training_update_kernel::update_all(const program& p, const std::vector<block_input>& inputs, variables_lock& held, thread_pool* pool) const {
  const auto count = static_cast<std::size_t>(held.value(0).elements());
  std::vector<tensor_value> next;
  std::vector<void*> to;
  for (const std::size_t i : p.changes) {
    next.push_back(held.next(i));
    to.push_back(next.back().mutable_raw_data());
  }
  std::vector<block_input> from = inputs;
  for (std::size_t i = 0; i < held.size(); ++i) from[i].data = held.value(i).raw_data();
  const auto update_part = [&](std::size_t begin, std::size_t end) {
    std::vector<block_input> part = from;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (block_input& one : part) {
      if (one.varies) one.data = static_cast<const unsigned char*>(one.data) + begin * size_of(type_);
      in.push_back(one.data);
    }
    for (void* one : to) out.push_back(static_cast<unsigned char*>(one) + begin * size_of(type_));
    block_run(p.steps, part, out, end - begin)(in.data(), out.data(), end - begin);
  };
  constexpr std::size_t least = std::size_t{1} << 16;
  const std::size_t parts = pool == nullptr ? 1 : std::min(pool->size(), count / least);
  if (parts < 2) update_part(0, count);
  else parallel_for(*pool, parts, [&](std::size_t i) { update_part(count * i / parts, count * (i + 1) / parts); });
  for (std::size_t i = 0; i < next.size(); ++i) held.set(p.changes[i], std::move(next[i]));
}

inline void training_update_kernel::update_rows(const program& p, std::vector<block_input> inputs, const std::vector<std::int64_t>& rows, variables_lock& held) const {
  if (rows.empty()) return;
  const auto width = static_cast<std::size_t>(held.value(0).elements() / held.value(0).shape()[0]), row_bytes = width * size_of(type_);
  for (const std::size_t i : p.changes) (void)held.change(i);
  std::vector<void*> to(p.changes.size());
  for (std::size_t o = 0; o < to.size(); ++o) to[o] = held.change(p.changes[o]).mutable_raw_data();
  for (std::size_t i = 0; i < held.size(); ++i) inputs[i].data = held.value(i).raw_data();
  const block_run run(p.steps, inputs, to, width);
  std::vector<const void*> from(inputs.size());
  const auto gradient = static_cast<std::size_t>(gradient_ - (indices_ < gradient_ ? 1 : 0));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::size_t at = static_cast<std::size_t>(rows[r]) * row_bytes;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      from[i] = inputs[i].data == nullptr ? nullptr : static_cast<const unsigned char*>(inputs[i].data) + (i < held.size() ? at : i == gradient ? r * row_bytes : 0);
    for (std::size_t o = 0; o < to.size(); ++o) to[o] = held.change(p.changes[o]).mutable_raw_data() + at;
    run(from.data(), to.data(), width);
  }
}

WEFT_DECL kernel_factory training_kernel(std::string_view op) {
  for (const std::string_view family : {"ResourceApply", "ResourceSparseApply"})
    if (op.substr(0, family.size()) == family && find_training_rule(op.substr(family.size())) != nullptr) return &make_kernel<training_update_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
