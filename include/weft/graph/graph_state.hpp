#ifndef WEFT_GRAPH_GRAPH_STATE_HPP
#define WEFT_GRAPH_GRAPH_STATE_HPP
// What graph handles, tensors and sessions share: the nodes of one graph, its names and its collections. Adding takes the
// lock; nodes never change afterwards, so they are read without it.

#include <weft/core/config.hpp>
#include <weft/graph/bind.hpp>
#include <weft/graph/function_def.hpp>
#include <weft/graph/name_index.hpp>
#include <weft/graph/op_registry.hpp>
#include <weft/graph/scope_stack.hpp>
#include <weft/graph/shape_context.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft::detail {

// Whether an exact name may be taken already. Who knows that it is not saves the graph the looking, and the memory to look into until somebody does.
enum class naming : unsigned char { checked, known_free };

// What another layer may keep with a graph.
class kept_object {
 public:
  virtual ~kept_object() = default;
};

// Ends a node that does not come into its graph.
class node_in_the_making {
 public:
  explicit node_in_the_making(node* n) noexcept : node_(n) {}
  node_in_the_making(const node_in_the_making&) = delete;
  node_in_the_making& operator=(const node_in_the_making&) = delete;
  ~node_in_the_making() {
    if (node_ != nullptr) node_->~node();
  }
  node* get() const noexcept { return node_; }
  node& operator*() const noexcept { return *node_; }
  node* operator->() const noexcept { return node_; }
  void keep() const noexcept { node_ = nullptr; }

 private:
  mutable node* node_;
};

class graph_state : public std::enable_shared_from_this<graph_state> {
 public:
  explicit graph_state(op_registry ops);
  graph_state(const graph_state&) = delete;
  graph_state& operator=(const graph_state&) = delete;
  ~graph_state();

  // `outputs_of` is a node with the same outputs, if any: the two share them.
  const node& add(node_spec spec, naming how = naming::checked, const node* outputs_of = nullptr);
  // A node that shares all but these with the original, a node of any graph.
  const node& add_copy(const node& original, array_view<output> inputs, array_view<const node*> control_inputs, const std::string& device, naming how = naming::checked);
  // Lets an input of a Merge, made with another output of the same dtype in that place, come from a node made after it: the one kind of edge that leads backward. Only while the loop is
  // being built, before anybody else reads it.
  void close_loop(const node& merge, std::size_t input, output from);
  // The name of a scope that nothing else has: `s`, `s_1`.
  std::string unique_scope(const std::string& wanted, call_site site);
  static void check_scope(std::string_view wanted, call_site site);

  std::vector<const node*> nodes() const;
  // Those from this one on.
  std::vector<const node*> nodes_from(std::size_t first) const;
  std::size_t size() const;
  // The node of this id. id < size().
  const node* node_at(std::size_t id) const;
  const node* find(std::string_view name) const;
  // The devices that nodes ask for, each once, in the order of their first use.
  std::vector<std::string> devices() const;
  const op_registry& ops() const noexcept { return ops_; }

  void add_to_collection(const std::string& name, const node* n);
  std::vector<const node*> collection(const std::string& name) const;
  std::map<std::string, std::vector<const node*>> collections() const;
  // Keeps something with the graph, found again by its number.
  std::size_t keep(std::shared_ptr<const kept_object> what);
  std::vector<std::shared_ptr<const kept_object>> kept() const;
  // Keeps a function; its signature is an op of the graph where the registry that the graph was made with has it.
  void add_function(std::shared_ptr<const function_def> f);
  std::vector<std::shared_ptr<const function_def>> functions() const;
  void set_seed(std::optional<std::int64_t> seed);
  std::optional<std::int64_t> seed() const;

 private:
  static bool valid_name(std::string_view name, bool generated) noexcept;
  void check_owner(const node& made) const;
  void apply_devices(node& made, const scope_context& scope);
  static void apply_container(const node& made, node_facts& facts, const scope_context& scope);
  void apply_colocation(node& made, node_facts& facts, const scope_context& scope) const;
  void apply_control(const node& made, std::vector<const node*>& control, const scope_context& scope) const;
  const kept_device* keep_device(const std::string& device);
  const node& insert(const node_in_the_making& made, node_facts* named, bool exact, naming how);
  unsigned char* room(std::size_t bytes);
  static void set_inputs(node& made, unsigned char* room, array_view<output> inputs) noexcept;
  static void set_control(node& made, unsigned char* room, array_view<const node*> control) noexcept;
  static void look_at_control(node& made, array_view<const node*> control) noexcept {
    made.control_inputs_ = control.data();
    made.control_count_ = static_cast<std::uint32_t>(control.size());
  }

  mutable std::mutex mutex_;
  op_registry ops_;
  // The memory of the nodes and their edges, and what is free of the last block.
  std::vector<std::unique_ptr<unsigned char[]>> blocks_;
  unsigned char* room_ = nullptr;
  std::size_t free_room_ = 0;
  // Owned here; one vector type less than of unique_ptr, and handed out as it is.
  std::vector<const node*> nodes_;
  mutable name_index names_;
  // Requested devices: many nodes ask for few.
  std::unordered_map<std::string, bool> devices_;
  kept_device* last_device_ = nullptr;
  std::vector<const kept_device*> used_devices_;
  std::map<std::string, std::vector<const node*>> collections_;
  std::vector<std::shared_ptr<const kept_object>> kept_;
  std::vector<std::shared_ptr<const function_def>> functions_;
  std::optional<std::int64_t> seed_;
};

}  // namespace weft::detail

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL graph_state::graph_state(op_registry ops) : ops_(std::move(ops)) {}
WEFT_DECL graph_state::~graph_state() {
  for (const node* n : nodes_) n->~node();
}
WEFT_DECL std::vector<const node*> graph_state::nodes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return nodes_;
}
WEFT_DECL std::vector<const node*> graph_state::nodes_from(std::size_t first) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::vector<const node*>(nodes_.begin() + static_cast<std::ptrdiff_t>(std::min(first, nodes_.size())), nodes_.end());
}
WEFT_DECL std::size_t graph_state::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return nodes_.size();
}
WEFT_DECL const node* graph_state::node_at(std::size_t id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return nodes_[id];
}
WEFT_DECL const node* graph_state::find(std::string_view name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return names_.find(name, nodes_);
}
WEFT_DECL std::vector<std::string> graph_state::devices() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> out;
  for (const kept_device* device : used_devices_) out.push_back(device->first);
  return out;
}
WEFT_DECL void graph_state::add_to_collection(const std::string& name, const node* n) {
  const std::lock_guard<std::mutex> lock(mutex_);
  collections_[name].push_back(n);
}
WEFT_DECL std::vector<const node*> graph_state::collection(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = collections_.find(name);
  return it == collections_.end() ? std::vector<const node*>() : it->second;
}
WEFT_DECL std::map<std::string, std::vector<const node*>> graph_state::collections() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return collections_;
}
WEFT_DECL std::shared_ptr<graph_state> hold_for_handle(graph_state& of) {
  return thread_scopes().kept_functions > 0 ? std::shared_ptr<graph_state>(std::shared_ptr<void>(), &of) : of.shared_from_this();
}

WEFT_DECL std::size_t graph_state::keep(std::shared_ptr<const kept_object> what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.push_back(std::move(what));
  return kept_.size() - 1;
}
WEFT_DECL void graph_state::add_function(std::shared_ptr<const function_def> f) {
  const std::lock_guard<std::mutex> lock(mutex_);
  functions_.push_back(std::move(f));
}
WEFT_DECL std::vector<std::shared_ptr<const function_def>> graph_state::functions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return functions_;
}
WEFT_DECL std::vector<std::shared_ptr<const kept_object>> graph_state::kept() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kept_;
}
WEFT_DECL void graph_state::set_seed(std::optional<std::int64_t> seed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  seed_ = seed;
}
WEFT_DECL std::optional<std::int64_t> graph_state::seed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return seed_;
}

// The first character is a letter, digit or '.', that of a generated node also '_'; then also '_', '/', '\', '-', '>'.
WEFT_DECL bool graph_state::valid_name(std::string_view name, bool generated) noexcept {
  if (name.empty() || name.size() > 1024 || (name[0] == '_' && !generated)) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_') continue;
    if (i == 0 || (c != '/' && c != '\\' && c != '-' && c != '>')) return false;
  }
  return true;
}

WEFT_DECL void graph_state::check_owner(const node& made) const {
  for (const output& in : made.inputs()) {
    if (in.from == nullptr) made.fail_about(error_code::invalid_argument, "an input is an empty tensor, not made by any op");
    if (in.from->owner_ != this)
      made.fail_about(error_code::invalid_argument, "input '" + in.from->name() + "' belongs to another graph; all inputs of an op must be in one graph");
    if (in.index < 0 || in.index >= in.from->output_count())
      made.fail_about(error_code::invalid_argument, "'" + in.from->name() + "' has " + std::to_string(in.from->output_count()) + " outputs, asked for number " + std::to_string(in.index));
  }
  for (const node* n : made.control_inputs())
    if (n == nullptr || n->owner_ != this)
      made.fail_about(error_code::invalid_argument, "a control dependency " + (n ? "'" + n->name() + "' belongs to another graph" : std::string("is an empty operation")));
}

WEFT_DECL void graph_state::close_loop(const node& merge, std::size_t input, output from) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (merge.op() != "Merge" || merge.owner_ != this || input >= merge.input_count_) merge.fail_about(error_code::internal, "is no Merge of this graph with an input " + std::to_string(input));
  if (from.from == nullptr || from.from->owner_ != this || from.index < 0 || from.index >= from.from->output_count() ||
      from.from->output_dtype(from.index) != merge.output_dtype(0))
    merge.fail_about(error_code::invalid_argument, "the loop edge from '" + to_text(from) + "' must carry " + to_text(merge.output_dtype(0)));
  const_cast<output*>(merge.inputs_)[input] = from;
}

WEFT_DECL const node& graph_state::add(node_spec spec, naming how, const node* outputs_of) {
  // 1. The node as asked for; what is found wrong from here on is reported about it.
  node_facts* const facts = new node_facts(spec.op);
  unsigned char* const place = room(sizeof(node) + spec.inputs.size() * sizeof(output));
  const node_in_the_making made(new (place) node(facts));
  facts->site = spec.site;
  facts->attrs = std::move(spec.attrs);
  made->owner_ = this;
  set_inputs(*made, place + sizeof(node), spec.inputs);
  std::vector<const node*> control = std::move(spec.control_inputs);
  look_at_control(*made, control);
  made->device_ = keep_device(spec.device);
  const bool generated = !spec.scoped || spec.name.empty();
  facts->name = spec.name.empty() ? std::move(spec.op) : std::move(spec.name);
  bool exact = spec.exact_name;
  if (facts->name.size() > 1 && facts->name.back() == '/') {
    facts->name.pop_back();
    exact = true;
  }
  scope_context& scope = thread_scopes().top();
  if (!exact && spec.scoped && !scope.name_scope.empty()) facts->name = scope.name_scope + "/" + facts->name;
  if (!valid_name(facts->name, generated)) made->fail_about(error_code::invalid_argument, "the name must match [A-Za-z0-9.][A-Za-z0-9._/\\->]* and have at most 1024 characters");
  check_owner(*made);

  // 2. Its definition: attributes, dtypes, shapes.
  made->def_ = ops_.find(made->op()).get();
  const bool inferred = outputs_of == nullptr && !spec.outputs;
  if (outputs_of != nullptr) {
    facts->outputs = outputs_of->facts_->outputs;
  } else if (spec.outputs) {
    facts->outputs = output_list(*spec.outputs);
  } else {
    if (made->def_ == nullptr) made->fail_about(error_code::not_found, "no op '" + made->op() + "' is defined; add its definition to the graph's op_registry");
    binder bound(*made->def_, made->inputs(), facts->attrs, *made);
    bound.run();
    facts->outputs = output_list(bound.outputs());
  }

  // 3. The thread's scopes: container, devices, then colocation (whose device wins), then control dependencies.
  if (spec.scoped) {
    apply_container(*made, *facts, scope);
    apply_devices(*made, scope);
    apply_colocation(*made, *facts, scope);
    apply_control(*made, control, scope);
    look_at_control(*made, control);
  }
  if (inferred && made->def_->shapes != nullptr) {
    shape_context context(*made, facts->outputs);
    made->def_->shapes(context);
  }

  // 4. Into the graph.
  set_control(*made, control.empty() ? nullptr : room(control.size() * sizeof(const node*)), control);
  const node& out = insert(made, facts, exact, how);
  if (spec.scoped)
    for (auto& frame : scope.control) frame->made_inside.push_back(&out);
  return out;
}

WEFT_DECL const node& graph_state::add_copy(const node& original, array_view<output> inputs, array_view<const node*> control_inputs, const std::string& device, naming how) {
  unsigned char* const place = room(sizeof(node) + inputs.size() * sizeof(output) + control_inputs.size() * sizeof(const node*));
  const_cast<node_facts*>(original.facts_)->holders.fetch_add(1, std::memory_order_relaxed);
  const node_in_the_making made(new (place) node(original.facts_));
  made->owner_ = this;
  set_inputs(*made, place + sizeof(node), inputs);
  set_control(*made, place + sizeof(node) + inputs.size() * sizeof(output), control_inputs);
  check_owner(*made);
  made->device_ = keep_device(device);
  made->def_ = ops_.shares(original.owner_->ops_) ? original.def_ : ops_.find(original.op()).get();
  return insert(made, nullptr, true, how);
}

// Nodes and their edges lie side by side in the order of their creation, so that a pass over them reads memory from front to back. All sizes are multiples of that of a pointer.
WEFT_DECL unsigned char* graph_state::room(std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > free_room_) {
    const std::size_t usual = std::size_t{2048} << std::min<std::size_t>(blocks_.size(), 5);
    free_room_ = std::max(bytes, usual);
    blocks_.emplace_back(new unsigned char[free_room_]);
    room_ = blocks_.back().get();
  }
  free_room_ -= bytes;
  return std::exchange(room_, room_ + bytes);
}

WEFT_DECL void graph_state::set_inputs(node& made, unsigned char* room, array_view<output> inputs) noexcept {
  auto* const to = reinterpret_cast<output*>(room);
  std::uninitialized_copy(inputs.begin(), inputs.end(), to);
  made.inputs_ = to;
  made.input_count_ = static_cast<std::uint32_t>(inputs.size());
}

WEFT_DECL void graph_state::set_control(node& made, unsigned char* room, array_view<const node*> control) noexcept {
  auto* const to = reinterpret_cast<const node**>(room);
  std::uninitialized_copy(control.begin(), control.end(), to);
  look_at_control(made, {to, control.size()});
}

// The text as the graph keeps it, for as long as it lives.
WEFT_DECL const kept_device* graph_state::keep_device(const std::string& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (last_device_ == nullptr || last_device_->first != device) last_device_ = &*devices_.emplace(device, false).first;
  return last_device_;
}

// As TensorFlow: where the op keeps state and was not told a container.
WEFT_DECL void graph_state::apply_container(const node& made, node_facts& facts, const scope_context& scope) {
  if (scope.container.empty() || made.def_ == nullptr || made.def_->find_attr("container") == nullptr) return;
  attr_value& own = facts.attrs["container"];
  const std::string* told = own.get<std::string>();
  if (told == nullptr || told->empty()) own = scope.container;
}

WEFT_DECL void graph_state::apply_devices(node& made, const scope_context& scope) {
  // Innermost first, as TensorFlow: a name fills in what is open, a function's answer replaces what is there.
  device_name current;
  for (auto it = scope.devices.rbegin(); it != scope.devices.rend(); ++it) {
    if (it->what == device_entry::kind::reset) break;
    if (it->what == device_entry::kind::name) {
      current = merge_override(it->name, current);
    } else {
      made.device_ = keep_device(to_text(current));
      current = parse_device_name(it->choose(made), made.site());
    }
  }
  made.device_ = keep_device(to_text(current));
}

WEFT_DECL void graph_state::apply_colocation(node& made, node_facts& facts, const scope_context& scope) const {
  if (scope.colocation.empty()) {
    if (!scope.group.empty()) facts.attrs["_class"] = std::vector<std::string>{scope.group};
    return;
  }
  std::vector<std::string> groups;
  bool device_taken = false;
  for (auto it = scope.colocation.rbegin(); it != scope.colocation.rend(); ++it) {
    const node& with = **it;
    if (with.owner_ != this) made.fail_about(error_code::invalid_argument, "is to be colocated with '" + with.name() + "', which belongs to another graph");
    const auto* own = with.find_attr<std::vector<std::string>>("_class");
    bool found = false;
    if (own != nullptr)
      for (const auto& group : *own)
        if (group.compare(0, 5, "loc:@") == 0) {
          groups.push_back(group);
          found = true;
        }
    if (!found) groups.push_back("loc:@" + with.name());
    if (!with.device().empty() && !device_taken) {
      made.device_ = with.device_;
      device_taken = true;
    }
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  facts.attrs["_class"] = std::move(groups);
}

WEFT_DECL void graph_state::apply_control(const node& made, std::vector<const node*>& control, const scope_context& scope) const {
  const auto inputs = made.inputs();
  for (const auto& frame : scope.control) {
    // An input made inside the same scope waits already.
    const bool dominated = std::any_of(inputs.begin(), inputs.end(), [&](const output& in) { return frame->made(in.from); });
    if (dominated) continue;
    for (const node* n : frame->inputs) {
      const bool is_input = std::any_of(inputs.begin(), inputs.end(), [&](const output& in) { return in.from == n; });
      if (n->owner_ != this) made.fail_about(error_code::invalid_argument, "the control dependency '" + n->name() + "' belongs to another graph");
      if (!is_input && std::find(control.begin(), control.end(), n) == control.end()) control.push_back(n);
    }
  }
  std::sort(control.begin(), control.end(), [](const node* a, const node* b) { return a->name() < b->name(); });
}

WEFT_DECL void graph_state::check_scope(std::string_view wanted, call_site site) {
  if (!valid_name(wanted, false))
    throw error(error_code::invalid_argument, "name scope '" + std::string(wanted) + "' must match [A-Za-z0-9.][A-Za-z0-9._/\\->]* and have at most 1024 characters", site);
}

WEFT_DECL std::string graph_state::unique_scope(const std::string& wanted, call_site site) {
  check_scope(wanted, site);
  const std::lock_guard<std::mutex> lock(mutex_);
  return names_.take(wanted, true, nodes_);
}

// `named` is where the name stands that may change, for a node that is no copy. Names are unique without regard to case, as in TensorFlow, but for those that are given exactly.
WEFT_DECL const node& graph_state::insert(const node_in_the_making& made, node_facts* named, bool exact, naming how) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!exact) named->name = names_.take(named->name, false, nodes_);
  else if (how == naming::checked && names_.find(made->name(), nodes_) != nullptr) made->fail_about(error_code::already_exists, "the graph already has a node of this name");
  made->id_ = static_cast<int>(nodes_.size());
  auto* const device = const_cast<kept_device*>(made->device_);
  if (!device->second) {
    used_devices_.push_back(device);
    device->second = true;
  }
  nodes_.push_back(made.get());
  const node& out = *made.get();
  made.keep();
  return out;
}

}  // namespace weft::detail
#endif

#endif
