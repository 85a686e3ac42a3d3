#ifndef WEFT_RUNTIME_FOLD_CONSTANTS_HPP
#define WEFT_RUNTIME_FOLD_CONSTANTS_HPP
// A pass over a part: what is computed from constants alone is computed once, when the part is made ready, and becomes a constant.

#include <weft/core/config.hpp>
#include <weft/core/device_name.hpp>
#include <weft/graph/graph.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// What may be folded.
struct fold_options {
  /// Nodes whose operands or result have more bytes stay to be computed in each step.
  std::size_t largest = std::size_t{1} << 20;
  /// Bytes of all results together.
  std::size_t total = std::size_t{1} << 26;
};

/// The part with constants in place of nodes that are computed from constants alone; each keeps its name and device. Nodes with state, side effects, control inputs or several outputs,
/// those whose result is too large or of unknown shape, and those whose kernel is missing or fails, stay as they are; so do transfers, feeds and fetches.
graph fold_constants(const graph& part, const kernel_registry& kernels, const fold_options& options = {});

#if WEFT_HAS_BODIES
namespace detail {

class constant_folder {
 public:
  constant_folder(const graph& part, const kernel_registry& kernels, const fold_options& options) : part_(part), nodes_(part.nodes()), kernels_(kernels), options_(options) {}
  graph run();

 private:
  void find();
  bool may_fold(const node& n) const;
  tensor_value evaluate(const node& n) const;
  static std::size_t bytes_of(dtype type, std::uint64_t elements) noexcept { return elements > SIZE_MAX / 64 ? SIZE_MAX : elements * (type == dtype::string ? sizeof(std::string) : size_of(type)); }
  void count_readers();
  bool is_known(const node& n) const noexcept { return !known_[static_cast<std::size_t>(n.id())].empty(); }

  const graph& part_;
  const std::vector<const node*> nodes_;
  const kernel_registry& kernels_;
  const fold_options options_;
  // By id: the value of a constant, of the part or folded; how many nodes read or wait for it, before and after.
  std::vector<tensor_value> known_;
  std::vector<std::size_t> readers_before_, readers_after_;
  bool folds_ = false;
  std::size_t spent_ = 0;
};

// 1. Values, in the order of creation. 2. Constants, old and new, that only folded nodes read are no longer needed. 3. The new part.
WEFT_DECL graph constant_folder::run() {
  find();
  if (!folds_) return part_;
  count_readers();
  graph out(part_.ops());
  std::vector<const node*> twins(nodes_.size(), nullptr);
  for (const node* n : nodes_) {
    const auto id = static_cast<std::size_t>(n->id());
    if (is_known(*n) && readers_before_[id] != 0 && readers_after_[id] == 0) continue;
    if (is_known(*n) && n->op() != "Const") {
      node_spec spec;
      spec.op = "Const";
      spec.name = n->name();
      spec.exact_name = true;
      spec.attrs = {{"dtype", known_[id].dtype()}, {"value", known_[id]}};
      spec.site = n->site();
      spec.scoped = false;
      spec.device = n->device();
      spec.outputs = std::vector<output_type>{{known_[id].dtype(), known_[id].shape()}};
      twins[id] = &out.add(std::move(spec));
      continue;
    }
    twins[id] = &out.add_copy(*n, twins);
  }
  return out;
}

WEFT_DECL void constant_folder::find() {
  known_.resize(nodes_.size());
  for (const node* n : nodes_) {
    tensor_value& value = known_[static_cast<std::size_t>(n->id())];
    if (n->op() == "Const") {
      const tensor_value* held = n->control_inputs().empty() ? n->find_attr<tensor_value>("value") : nullptr;
      if (held != nullptr && held->buffer() && held->buffer()->host()) value = *held;
    } else if (may_fold(*n)) {
      value = evaluate(*n);
      folds_ = folds_ || !value.empty();
      spent_ += value.bytes();
    }
  }
}

WEFT_DECL bool constant_folder::may_fold(const node& n) const {
  if (n.stateful() || n.inputs().empty() || !n.control_inputs().empty() || n.output_count() != 1 || n.outputs()[0].is_ref) return false;
  for (const char* op : {"Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "PlaceholderWithDefault"})
    if (n.op() == op) return false;
  std::size_t read = 0;
  for (const output& in : n.inputs()) {
    if (!is_known(*in.from) || in.from->device() != n.device()) return false;
    read += known_[static_cast<std::size_t>(in.from->id())].bytes();
  }
  const dtype type = n.output_dtype(0);
  const auto elements = n.output_shape(0).elements();
  if (!elements || (!is_plain(type) && type != dtype::string)) return false;
  const std::size_t made = bytes_of(type, static_cast<std::uint64_t>(*elements));
  return read <= options_.largest && made <= options_.largest && made <= options_.total - std::min(spent_, options_.total);
}

WEFT_DECL tensor_value constant_folder::evaluate(const node& n) const {
  try {
    const std::string type = parse_device_name(n.device(), n.site()).type.value_or("CPU");
    if (type != "CPU" || kernels_.catalogue().find(n.op(), type, n.attrs()) == nullptr) return tensor_value();
    const auto made = kernels_.make({n, n.device()}, type);
    if (made->asynchronous()) return tensor_value();
    std::vector<tensor_value> inputs;
    for (const output& in : n.inputs()) inputs.push_back(known_[static_cast<std::size_t>(in.from->id())]);
    resource_manager resources, session_state;
    step_environment environment;
    environment.resources = &resources;
    environment.session_state = &session_state;
    tensor_value out;
    // All inputs are kept: a kernel gets shares of them and cannot write their elements.
    kernel_context context(n, environment, inputs.data(), inputs.size(), &out, ~std::uint64_t{0});
    made->compute(context);
    if (out.dtype() != n.output_dtype(0) || !n.output_shape(0).accepts(out.shape())) return tensor_value();
    return out;
  } catch (const std::exception&) {
    // What fails now fails in the step that runs it, with its text.
    return tensor_value();
  }
}

WEFT_DECL void constant_folder::count_readers() {
  readers_before_.assign(nodes_.size(), 0);
  readers_after_.assign(nodes_.size(), 0);
  for (const node* n : nodes_) {
    const bool folded = is_known(*n) && n->op() != "Const";
    const auto count = [&](const node* from) {
      ++readers_before_[static_cast<std::size_t>(from->id())];
      if (!folded) ++readers_after_[static_cast<std::size_t>(from->id())];
    };
    for (const output& in : n->inputs()) count(in.from);
    for (const node* before : n->control_inputs()) count(before);
  }
}
}  // namespace detail

WEFT_DECL graph fold_constants(const graph& part, const kernel_registry& kernels, const fold_options& options) { return detail::constant_folder(part, kernels, options).run(); }
#endif

}  // namespace weft

#endif
