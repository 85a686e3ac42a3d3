#ifndef WEFT_KERNELS_FUSED_HPP
#define WEFT_KERNELS_FUSED_HPP
// Elementwise nodes that feed one another, run as one: a pass over a part that finds them, and the kernel of the node that takes their place. Results are those of the single
// nodes bit for bit; what does not fit the one pass over arrays, and errors, come from the nodes' own kernels.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/kernels/block_program.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/math.hpp>
#include <weft/kernels/nn.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// What may be fused.
struct fuse_options {
  /// How many nodes become one at most.
  std::size_t most_nodes = 24;
};

/// The part with one `_Fused` node in place of elementwise nodes of float or double on one device that only feed one another; it has the name of the last of them. Nodes that something waits for
/// or that wait, those that several others read, and those whose kernel is not the standard one, stay as they are.
graph fuse_elementwise(const graph& part, const kernel_registry& kernels, const fuse_options& options = {});

namespace detail {
/// The factory of `_Fused`; nullptr for other ops.
kernel_factory fused_kernel_of(std::string_view op);
}  // namespace detail

}  // namespace weft

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// An elementwise op that can be a step of a block program, and what it asks of its operands.
struct fusible_op {
  std::string_view step;
  bool same_shape = false, bias = false;
};

/// The step that computes an op on elements of a dtype; without a name when there is none.
inline fusible_op find_fusible(std::string_view op, dtype type) {
  if (type != dtype::float32 && type != dtype::float64) return {};
  if (op == "BiasAdd") return {"Add", false, true};
  if (const pair_op* pair = find_pair_op(op))
    return pair->loops.of(type) == nullptr || (pair->traits & pair_traits::gives_bool) ? fusible_op() : fusible_op{pair->name, pair->traits & pair_traits::same_shape, false};
  const single_op* single = find_single_op(op);
  return single == nullptr || single->loops.of(type) == nullptr || single->gives_bool ? fusible_op() : fusible_op{single->name};
}

/// One of the nodes behind a `_Fused`: its operands are inputs of that or results of nodes before, by number; b is -1 for an op of one operand.
struct fused_step {
  std::string op, name;
  int a, b;
  bool same_shape, bias;
};

/// The node of `_Fused`. Operands that have the result's shape, its last dimensions, or a single element are read in one pass; else the steps run one by one.
class fused_kernel final : public kernel {
 public:
  explicit fused_kernel(const node& n);
  WEFT_INLINE void compute(kernel_context& context) override;
  bool expensive(const kernel_context& context) const noexcept override { return input_elements(context) > expensive_elements; }

 private:
  // How an operand lies to the result: all of it, its last dimensions, one element.
  enum class layout : unsigned char { whole, rows, single };
  // Kernels of the single nodes, made when they are needed first.
  struct single_nodes {
    graph nodes;
    std::vector<const node*> about;
    std::vector<std::unique_ptr<kernel>> kernels;
  };
  bool lay_out(const kernel_context& context, const shape& s, std::vector<layout>& layouts, std::size_t& row) const;
  bool steps_fit(const kernel_context& context, const shape& s, std::vector<layout>& layouts) const;
  void run(kernel_context& context, const shape& s, const std::vector<layout>& layouts, std::size_t row) const;
  void make_single_nodes(const node& n);
  void run_one_by_one(kernel_context& context);

  dtype type_;
  std::size_t inputs_;
  std::vector<fused_step> steps_;
  block_program program_;
  std::once_flag made_single_nodes_;
  std::unique_ptr<single_nodes> single_nodes_;
};

inline fused_kernel::fused_kernel(const node& n) : type_(type_attr(n, "T")), inputs_(n.inputs().size()), program_(type_) {
  const auto &ops = n.attr<std::vector<std::string>>("ops"), &names = n.attr<std::vector<std::string>>("names");
  const auto& operands = n.attr<std::vector<std::int64_t>>("operands");
  const auto refuse = [&n] { n.fail_about(error_code::invalid_argument, "the steps of the fused node do not fit together"); };
  if (ops.empty() || names.size() != ops.size() || operands.size() != 2 * ops.size() || inputs_ == 0) refuse();
  for (std::size_t i = 0; i < inputs_; ++i) (void)program_.input();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::int64_t a = operands[2 * i], b = operands[2 * i + 1], made = static_cast<std::int64_t>(inputs_ + i);
    const fusible_op found = find_fusible(ops[i], type_);
    if (found.step.empty() || a < 0 || a >= made || b < -1 || b >= made) refuse();
    steps_.push_back({ops[i], names[i], static_cast<int>(a), static_cast<int>(b), found.same_shape, found.bias});
    if (program_.step(found.step, steps_[i].a, steps_[i].b) != static_cast<int>(made)) refuse();
  }
  program_.output(static_cast<int>(inputs_ + ops.size() - 1));
}

// 1. The largest operand has the result's shape. 2. How the others lie to it. 3. One pass, or the nodes one by one.
inline void fused_kernel::compute(kernel_context& context) {
  expect_inputs(context, static_cast<int>(inputs_));
  int largest = 0;
  for (int i = 0; i < context.input_count(); ++i) {
    expect_dtype(context, i, type_);
    const shape &s = context.input(i).shape(), &best = context.input(largest).shape();
    if (s.rank() > best.rank() || (s.rank() == best.rank() && s.elements() > best.elements())) largest = i;
  }
  const shape s = context.input(largest).shape();
  std::vector<layout> layouts;
  std::size_t row = 0;
  if (lay_out(context, s, layouts, row) && steps_fit(context, s, layouts)) run(context, s, layouts, row);
  else run_one_by_one(context);
}

inline bool fused_kernel::lay_out(const kernel_context& context, const shape& s, std::vector<layout>& layouts, std::size_t& row) const {
  for (int i = 0; i < context.input_count(); ++i) {
    const shape& in = context.input(i).shape();
    int leading = 0;
    while (leading < in.rank() && in[leading] == 1) ++leading;
    if (in == s) {
      layouts.push_back(layout::whole);
    } else if (leading == in.rank()) {
      layouts.push_back(layout::single);
    } else {
      const int kept = in.rank() - leading;
      if (!std::equal(in.begin() + leading, in.end(), s.end() - kept)) return false;
      const auto elements = static_cast<std::size_t>(in.elements());
      if (elements == 0 || (row != 0 && row != elements)) return false;
      row = elements;
      layouts.push_back(layout::rows);
    }
  }
  return true;
}

// Ops that do not broadcast, and biases, are more particular. The layouts of the steps' results follow those of the inputs.
inline bool fused_kernel::steps_fit(const kernel_context& context, const shape& s, std::vector<layout>& layouts) const {
  for (const fused_step& step : steps_) {
    const layout a = layouts[static_cast<std::size_t>(step.a)], b = step.b < 0 ? a : layouts[static_cast<std::size_t>(step.b)];
    if (step.same_shape && (a != layout::whole || b != layout::whole)) return false;
    if (step.bias) {
      const bool vector = step.b >= 0 && static_cast<std::size_t>(step.b) < inputs_ && context.input(step.b).shape().rank() == 1;
      if (!vector || a != layout::whole || s.rank() < 2 || context.input(step.b).shape()[0] != s[s.rank() - 1]) return false;
    }
    layouts.push_back(std::min(a, b));
  }
  return layouts.back() == layout::whole;
}

inline void fused_kernel::run(kernel_context& context, const shape& s, const std::vector<layout>& layouts, std::size_t row) const {
  const auto count = static_cast<std::size_t>(s.elements()), size = size_of(type_);
  std::vector<block_input> inputs;
  int reused = -1;
  for (std::size_t i = 0; i < inputs_; ++i) {
    const tensor_value& in = context.input(static_cast<int>(i));
    inputs.push_back({in.raw_data(), layouts[i] != layout::single});
    if (layouts[i] == layout::whole && (reused < 0 || in.writable())) reused = static_cast<int>(i);
  }
  void* out = context.forward_or_allocate(reused, 0, type_, s).mutable_raw_data();
  if (count == 0) return;
  // Short rows are repeated, so that as many as go into a block are run at once.
  const std::size_t repeated = row != 0 && row < block_storage::elements ? block_storage::elements / row : 1;
  const std::size_t length = row == 0 ? count : std::min(count, repeated * row);
  std::vector<std::vector<unsigned char>> copies;
  for (std::size_t i = 0; i < inputs_; ++i) {
    if (layouts[i] != layout::rows || repeated == 1) continue;
    copies.emplace_back(length * size);
    for (std::size_t at = 0; at < length; at += row) std::memcpy(copies.back().data() + at * size, inputs[i].data, row * size);
    inputs[i].data = copies.back().data();
  }
  const block_run pass(program_, inputs, {out}, length);
  std::vector<const void*> from(inputs_);
  for (std::size_t at = 0; at < count; at += length) {
    for (std::size_t i = 0; i < inputs_; ++i) from[i] = static_cast<const unsigned char*>(inputs[i].data) + (layouts[i] == layout::whole ? at * size : 0);
    void* to = static_cast<unsigned char*>(out) + at * size;
    pass(from.data(), &to, std::min(length, count - at));
  }
}

inline void fused_kernel::make_single_nodes(const node& n) {
  single_nodes_ = std::make_unique<single_nodes>();
  for (const fused_step& step : steps_) {
    node_spec spec;
    spec.op = step.op;
    spec.name = step.name;
    spec.attrs = {{"T", type_}};
    if (step.bias) spec.attrs["data_format"] = "NHWC";
    spec.scoped = false;
    spec.device = n.device();
    spec.outputs = std::vector<output_type>{{type_, partial_shape()}};
    single_nodes_->about.push_back(&single_nodes_->nodes.add(std::move(spec)));
    const node& made = *single_nodes_->about.back();
    const kernel_factory factory = step.bias ? nn_kernel(step.op) : math_kernel(step.op);
    single_nodes_->kernels.push_back(factory({made, n.device()}));
  }
}

// The kernels see inputs that are kept, so that what a later step reads stays as it is.
inline void fused_kernel::run_one_by_one(kernel_context& context) {
  std::call_once(made_single_nodes_, [&] { make_single_nodes(context.about()); });
  std::vector<tensor_value> values(inputs_ + steps_.size());
  for (std::size_t i = 0; i < inputs_; ++i) values[i] = context.input(static_cast<int>(i));
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const fused_step& step = steps_[i];
    tensor_value operands[2] = {values[static_cast<std::size_t>(step.a)], step.b < 0 ? tensor_value() : values[static_cast<std::size_t>(step.b)]};
    kernel_context inner(*single_nodes_->about[i], context.environment(), operands, step.b < 0 ? 1 : 2, &values[inputs_ + i], ~std::uint64_t{0});
    try {
      single_nodes_->kernels[i]->compute(inner);
    } catch (const error& e) {
      status s = e.status();
      if (s.device.empty()) s.device = context.about().device();
      throw error(std::move(s));
    }
  }
  context.set_output(0, std::move(values.back()));
}

WEFT_DECL kernel_factory fused_kernel_of(std::string_view op) { return op == "_Fused" ? &make_kernel<fused_kernel> : nullptr; }

/// Finds groups of nodes to fuse and makes the new part.
class elementwise_fuser {
 public:
  elementwise_fuser(const graph& part, const kernel_registry& kernels, const fuse_options& options) : part_(part), nodes_(part.nodes()), kernels_(kernels), options_(options) {}
  graph run();

 private:
  bool may_fuse(const node& n);
  bool fits(const output& operand, const partial_shape& s) const noexcept;
  bool takes(const node& n, const node& root) const;
  void grow(const node& root);
  const node& add_fused(const graph& out, const node& root, const std::vector<const node*>& twins) const;

  const graph& part_;
  const std::vector<const node*> nodes_;
  const kernel_registry& kernels_;
  const fuse_options options_;
  // By id: whether it can be part of a group at all, whether something waits for it, who reads it, and the last node of its group.
  std::vector<char> fusible_, waited_for_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> root_of_;
  std::vector<std::vector<const node*>> group_of_root_;
};

// 1. What is known of each node. 2. Groups, from the last node backwards. 3. The new part.
inline graph elementwise_fuser::run() {
  const std::size_t count = nodes_.size();
  fusible_.assign(count, 0);
  waited_for_.assign(count, 0);
  readers_.resize(count);
  root_of_.assign(count, -1);
  group_of_root_.resize(count);
  for (const node* n : nodes_) {
    fusible_[static_cast<std::size_t>(n->id())] = may_fuse(*n);
    for (const output& in : n->inputs()) readers_[static_cast<std::size_t>(in.from->id())].push_back(n->id());
    for (const node* before : n->control_inputs()) waited_for_[static_cast<std::size_t>(before->id())] = 1;
  }
  bool any = false;
  for (std::size_t id = count; id-- > 0;) {
    if (!fusible_[id] || root_of_[id] >= 0) continue;
    grow(*nodes_[id]);
    any = any || group_of_root_[id].size() > 1;
  }
  if (!any) return part_;
  op_registry ops = part_.ops();
  if (ops.find("_Fused") == nullptr) return part_;
  graph out(std::move(ops));
  std::vector<const node*> twins(count, nullptr);
  for (const node* n : nodes_) {
    const auto id = static_cast<std::size_t>(n->id());
    const bool grouped = root_of_[id] >= 0 && group_of_root_[static_cast<std::size_t>(root_of_[id])].size() > 1;
    if (grouped && root_of_[id] != n->id()) continue;
    if (grouped) {
      twins[id] = &add_fused(out, *n, twins);
      continue;
    }
    twins[id] = &out.add_copy(*n, twins);
  }
  return out;
}

inline bool elementwise_fuser::may_fuse(const node& n) {
  const dtype* type = n.find_attr<dtype>("T");
  if (type == nullptr || n.def() == nullptr || n.output_count() != 1 || n.inputs().empty() || n.inputs().size() > 2) return false;
  const fusible_op found = find_fusible(n.op(), *type);
  if (found.step.empty()) return false;
  const std::string* format = n.find_attr<std::string>("data_format");
  if (found.bias ? format != nullptr && *format != "NHWC" : n.def()->attrs.size() != 1) return false;
  const std::string device = parse_device_name(n.device(), n.site()).type.value_or("CPU");
  return device == "CPU" && kernels_.find(n, device) == (found.bias ? nn_kernel(n.op()) : math_kernel(n.op())) && kernels_.catalogue().kernels_of("_Fused").size() == 1;
}

// Whether an operand may lie to a result of this shape as the kernel wants it, as far as that is known.
inline bool elementwise_fuser::fits(const output& operand, const partial_shape& s) const noexcept {
  const partial_shape& in = operand.from->output_shape(operand.index);
  if (!in.known_rank() || !s.known_rank()) return true;
  if (in.rank() > s.rank()) return false;
  int leading = 0;
  while (leading < in.rank() && in[leading] == 1) ++leading;
  for (int i = leading; i < in.rank(); ++i) {
    const std::int64_t size = s[s.rank() - in.rank() + i];
    if (in[i] != size && in[i] >= 0 && size >= 0) return false;
  }
  return true;
}

// Whether a node can join the group of a root: it has the same shape, its operands fit, and only nodes of the group read it.
inline bool elementwise_fuser::takes(const node& n, const node& root) const {
  const auto id = static_cast<std::size_t>(n.id());
  if (!fusible_[id] || root_of_[id] >= 0 || waited_for_[id] || !n.control_inputs().empty()) return false;
  if (n.device() != root.device() || n.output_dtype(0) != root.output_dtype(0) || n.output_shape(0) != root.output_shape(0)) return false;
  for (const output& in : n.inputs())
    if (!fits(in, root.output_shape(0))) return false;
  return std::all_of(readers_[id].begin(), readers_[id].end(), [&](int reader) { return root_of_[static_cast<std::size_t>(reader)] == root.id(); });
}

inline void elementwise_fuser::grow(const node& root) {
  auto& group = group_of_root_[static_cast<std::size_t>(root.id())];
  root_of_[static_cast<std::size_t>(root.id())] = root.id();
  group.push_back(&root);
  for (const output& in : root.inputs())
    if (!fits(in, root.output_shape(0))) return;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < group.size(); ++i)
      for (const output& in : group[i]->inputs())
        if (group.size() < options_.most_nodes && takes(*in.from, root)) {
          root_of_[static_cast<std::size_t>(in.from->id())] = root.id();
          group.push_back(in.from);
          changed = true;
        }
  }
  std::sort(group.begin(), group.end(), [](const node* a, const node* b) { return a->id() < b->id(); });
}

inline const node& elementwise_fuser::add_fused(const graph& out, const node& root, const std::vector<const node*>& twins) const {
  const auto& group = group_of_root_[static_cast<std::size_t>(root.id())];
  std::vector<output> from;
  const auto is_member = [&](const node* n) { return root_of_[static_cast<std::size_t>(n->id())] == root.id(); };
  for (const node* n : group)
    for (const output& in : n->inputs())
      if (!is_member(in.from) && std::find(from.begin(), from.end(), in) == from.end()) from.push_back(in);
  const auto number = [&](const output& in) {
    const auto member = std::find(group.begin(), group.end(), in.from);
    if (member != group.end()) return static_cast<std::int64_t>(from.size()) + (member - group.begin());
    return static_cast<std::int64_t>(std::find(from.begin(), from.end(), in) - from.begin());
  };
  std::vector<std::string> ops, names;
  std::vector<std::int64_t> operands;
  for (const node* n : group) {
    ops.push_back(n->op());
    names.push_back(n->name());
    operands.push_back(number(n->inputs()[0]));
    operands.push_back(n->inputs().size() > 1 ? number(n->inputs()[1]) : -1);
  }
  node_spec spec;
  spec.op = "_Fused";
  spec.name = root.name();
  spec.exact_name = true;
  for (const output& in : from) spec.inputs.push_back({twins[static_cast<std::size_t>(in.from->id())], in.index});
  for (const node* before : root.control_inputs()) spec.control_inputs.push_back(twins[static_cast<std::size_t>(before->id())]);
  spec.attrs = {{"T", root.output_dtype(0)}, {"N", static_cast<std::int64_t>(from.size())}, {"ops", std::move(ops)}, {"names", std::move(names)}, {"operands", std::move(operands)}};
  spec.site = root.site();
  spec.scoped = false;
  spec.device = root.device();
  spec.outputs = root.outputs();
  return out.add(std::move(spec));
}

}  // namespace weft::detail

namespace weft {
WEFT_DECL graph fuse_elementwise(const graph& part, const kernel_registry& kernels, const fuse_options& options) { return detail::elementwise_fuser(part, kernels, options).run(); }
}  // namespace weft
#endif

#endif
