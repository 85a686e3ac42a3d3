#ifndef WEFT_GRAPH_GRAPH_HPP
#define WEFT_GRAPH_GRAPH_HPP
// A dataflow graph: a handle to shared state that tensors and sessions keep alive. Moving keeps handles valid, a copy is independent.

#include <weft/core/config.hpp>
#include <weft/graph/graph_state.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

namespace detail {
// Makes `state` the thread's default graph, with fresh scopes, until the end of the block.
class graph_scope {
 public:
  explicit graph_scope(std::shared_ptr<graph_state> state);
  graph_scope(const graph_scope&) = delete;
  graph_scope& operator=(const graph_scope&) = delete;
  ~graph_scope();
};
}  // namespace detail

/// A graph of nodes. Adding nodes and reading or running the graph at the same time from several threads is safe.
class graph {
 public:
  /// An empty graph of TensorFlow's ops.
  graph() : graph(standard_ops()) {}
  /// An empty graph of these ops.
  explicit graph(op_registry ops);
  explicit graph(std::shared_ptr<detail::graph_state> state) : state_(std::move(state)) {}
  graph(graph&&) noexcept = default;
  graph& operator=(graph&&) noexcept = default;
  /// An independent graph with equal nodes; `copy.find(handle)` leads from a node of the original to its twin.
  graph(const graph& other);
  graph& operator=(const graph& other) {
    if (this != &other) *this = graph(other);
    return *this;
  }

  /// Makes this the thread's default graph until the returned object ends.
  [[nodiscard]] detail::graph_scope as_default() const { return detail::graph_scope(state_); }

  /// Adds a node: binds its inputs to the op's definition, applies the thread's scopes, infers shapes. Throws about the node.
  const node& add(node_spec spec) const { return state_->add(std::move(spec)); }
  /// Adds a copy of a node (of any graph) with other inputs, keeping name, attributes, output types and call site.
  const node& add_copy(const node& original, std::vector<output> inputs, std::vector<const node*> control_inputs, const std::string& device) const;
  /// As above, with the twins of the inputs and of the control inputs, which are found by the ids of theirs.
  const node& add_copy(const node& original, const std::vector<const node*>& twins, const std::string& device) const;
  /// As above, with the same device.
  const node& add_copy(const node& original, const std::vector<const node*>& twins) const { return add_copy(original, twins, original.device()); }

  /// The nodes so far, in the order of creation. Later additions do not appear in the result.
  std::vector<const node*> nodes() const { return state_->nodes(); }
  std::size_t size() const { return state_->size(); }
  /// The node of this name, or nullptr.
  const node* find(std::string_view name) const { return state_->find(name); }
  /// The node here that has the name of `other`, a node of a graph that this one was copied from; nullptr when there is none.
  const node* find(const node& other) const { return state_->find(other.name()); }
  /// The output named `x`, `x:0` or `x:1`. Throws NOT_FOUND, INVALID_ARGUMENT.
  output find_output(std::string_view name, call_site where = call_site::here()) const;

  /// The tensor of this name (`x:0`), checked against dtype T and rank N. Throws NOT_FOUND, INVALID_ARGUMENT.
  template <class T, int N = dynamic_rank> weft::tensor<T, N> tensor(std::string_view name, call_site where = call_site::here()) const;
  /// The operation of this name. Throws NOT_FOUND.
  weft::operation operation(std::string_view name, call_site where = call_site::here()) const;

  /// Sets the graph-level seed from which ops without a seed of their own derive theirs.
  void set_random_seed(std::int64_t seed) const { state_->set_seed(seed); }

  /// The functions that the graph carries, in the order in which a file had them.
  std::vector<std::shared_ptr<const function_def>> functions() const { return state_->functions(); }

  const op_registry& ops() const noexcept { return state_->ops(); }
  /// Whether both are handles to the same graph.
  bool same(const graph& other) const noexcept { return state_ == other.state_; }
  const std::shared_ptr<detail::graph_state>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<detail::graph_state> state_;
};

namespace detail {
const std::shared_ptr<graph_state>& current_graph();
std::string claim_name(graph_state& to, const op_name& name, const char* otherwise);
const node& add_node(const char* op, std::vector<output> inputs, const op_name& name, attr_map attrs = {});
output add_node_at(const char* op, std::vector<output> inputs, const std::string& full_name, call_site site, attr_map attrs = {});
}  // namespace detail

/// The graph that new nodes join: that of the innermost `as_default()`, else the thread's own.
inline graph default_graph() { return graph(detail::current_graph()); }
/// Gives the thread a new, empty default graph. Handles to the old one stay valid.
void reset_default_graph();

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL graph_scope::graph_scope(std::shared_ptr<graph_state> state) {
  scope_context fresh;
  fresh.graph = std::move(state);
  thread_scopes().contexts.push_back(std::move(fresh));
}
WEFT_DECL graph_scope::~graph_scope() { thread_scopes().contexts.pop_back(); }

WEFT_DECL const std::shared_ptr<graph_state>& current_graph() {
  scope_context& top = thread_scopes().top();
  if (top.graph == nullptr) top.graph = std::make_shared<graph_state>(standard_ops());
  return top.graph;
}

// The graph of the first input, else the thread's default.
WEFT_DECL graph_state& graph_for(const std::vector<output>& inputs) {
  for (const output& in : inputs)
    if (in.from != nullptr) return in.from->owner();
  return *current_graph();
}

// The full name of an op that makes nodes for its own inputs, which are named below it: unique, unless the asked name ends in '/'.
WEFT_DECL std::string claim_name(graph_state& to, const op_name& name, const char* otherwise) {
  std::string wanted = name.text.empty() ? otherwise : std::string(name.text);
  if (wanted.size() > 1 && wanted.back() == '/') {
    wanted.pop_back();
    return wanted;
  }
  const std::string& outer = thread_scopes().top().name_scope;
  return to.unique_scope(outer.empty() ? wanted : outer + "/" + wanted, name.site);
}

// Adds a node the way every op does.
WEFT_DECL const node& add_node(const char* op, std::vector<output> inputs, const op_name& name, attr_map attrs) {
  node_spec spec;
  spec.op = op;
  spec.name = std::string(name.text);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.site = name.site;
  graph_state& to = graph_for(spec.inputs);
  return to.add(std::move(spec));
}

// The same with exactly this name (from claim_name); the first output of the node.
WEFT_DECL output add_node_at(const char* op, std::vector<output> inputs, const std::string& full_name, call_site site, attr_map attrs) {
  const std::string exact = full_name + "/";
  return {&add_node(op, std::move(inputs), op_name(std::string_view(exact), site), std::move(attrs)), 0};
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL graph::graph(op_registry ops) : state_(std::make_shared<detail::graph_state>(std::move(ops))) {}

WEFT_DECL void reset_default_graph() { detail::thread_scopes().top().graph = std::make_shared<detail::graph_state>(standard_ops()); }

WEFT_DECL const node& graph::add_copy(const node& original, std::vector<output> inputs, std::vector<const node*> control_inputs, const std::string& device) const {
  return state_->add_copy(original, inputs, control_inputs, device);
}

// An edge that closes a loop comes from a node that has no twin yet: the first input stands in for it.
WEFT_DECL const node& graph::add_copy(const node& original, const std::vector<const node*>& twins, const std::string& device) const {
  const auto twin_of = [&twins](const node& n) { return twins[static_cast<std::size_t>(n.id())]; };
  std::vector<output> inputs;
  for (std::size_t i = 0; i < original.inputs().size(); ++i) {
    const output& in = original.inputs()[detail::is_loop_edge(original, i) ? 0 : i];
    inputs.push_back({twin_of(*in.from), in.index});
  }
  std::vector<const node*> control;
  for (const node* before : original.control_inputs()) control.push_back(twin_of(*before));
  return add_copy(original, std::move(inputs), std::move(control), device);
}

WEFT_DECL graph::graph(const graph& other) : graph(other.ops()) {
  std::vector<const node*> twins;
  const auto nodes = other.nodes();
  twins.reserve(nodes.size());
  const auto twin_of = [&twins](const node& n) { return twins[static_cast<std::size_t>(n.id())]; };
  for (const node* n : nodes) twins.push_back(&add_copy(*n, twins));
  for (const node* n : nodes)
    for (std::size_t i = 0; i < n->inputs().size(); ++i)
      if (detail::is_loop_edge(*n, i)) state_->close_loop(*twin_of(*n), i, {twin_of(*n->inputs()[i].from), n->inputs()[i].index});
  for (const auto& [name, members] : other.state_->collections())
    for (const node* n : members) state_->add_to_collection(name, twin_of(*n));
  for (auto& what : other.state_->kept()) state_->keep(std::move(what));
  for (auto& f : other.functions()) state_->add_function(std::move(f));
  state_->set_seed(other.state_->seed());
}

WEFT_DECL output graph::find_output(std::string_view name, call_site where) const {
  int index = 0;
  std::string_view base = name;
  if (const auto colon = name.rfind(':'); colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    base = name.substr(0, colon);
    if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string_view::npos)
      throw error(error_code::invalid_argument, "'" + std::string(name) + "' is not the name of a tensor; write 'node' or 'node:0'", where);
    index = std::stoi(std::string(digits));
  }
  const node* n = find(base);
  if (n == nullptr) throw error(error_code::not_found, "the graph has no node '" + std::string(base) + "'", where);
  if (index >= n->output_count())
    throw error(error_code::invalid_argument, "'" + n->name() + "' has " + std::to_string(n->output_count()) + " outputs, asked for number " + std::to_string(index), where);
  return {n, index};
}

}  // namespace weft
#endif

#endif
