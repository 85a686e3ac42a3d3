#ifndef WEFT_GRAPH_GRAPH_STATE_HPP
#define WEFT_GRAPH_GRAPH_STATE_HPP
// What graph handles, tensors and sessions share: the nodes of one graph, its names and its collections. Adding takes the
// lock; nodes never change afterwards, so they are read without it.

#include <weft/core/config.hpp>
#include <weft/graph/bind.hpp>
#include <weft/graph/function_def.hpp>
#include <weft/graph/op_registry.hpp>
#include <weft/graph/scope_stack.hpp>
#include <weft/graph/shape_context.hpp>

#include <cctype>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft::detail {

// What another layer may keep with a graph.
class kept_object {
 public:
  virtual ~kept_object() = default;
};

class graph_state : public std::enable_shared_from_this<graph_state> {
 public:
  explicit graph_state(op_registry ops) : ops_(std::move(ops)) {}
  graph_state(const graph_state&) = delete;
  graph_state& operator=(const graph_state&) = delete;
  ~graph_state();

  const node& add(node_spec spec);
  // Lets an input of a Merge, made with another output of the same dtype in that place, come from a node made after it: the one kind of edge that leads backward. Only while the loop is
  // being built, before anybody else reads it.
  void close_loop(const node& merge, std::size_t input, output from);
  // The name of a scope that nothing else has: `s`, `s_1`.
  std::string unique_scope(const std::string& wanted, call_site site);
  static void check_scope(std::string_view wanted, call_site site);

  std::vector<const node*> nodes() const;
  std::size_t size() const;
  const node* find(std::string_view name) const;
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
  struct name_entry {
    const node* owner = nullptr;
    int used = 0;
  };
  static std::string lower(std::string text);
  static bool valid_name(std::string_view name, bool generated) noexcept;
  void check_owner(const node& made) const;
  void apply_devices(node& made, const scope_context& scope) const;
  void apply_colocation(node& made, const scope_context& scope) const;
  void apply_control(node& made, const scope_context& scope) const;
  std::string take_name(const std::string& wanted);
  std::string take_exact(const std::string& name, const node& about);
  void insert(std::unique_ptr<node> made, const std::string& wanted, bool exact);

  mutable std::mutex mutex_;
  op_registry ops_;
  // Owned here; one vector type less than of unique_ptr, and handed out as it is.
  std::vector<const node*> nodes_;
  // Nodes by their name, and how often each name was asked for, in small letters.
  std::unordered_map<std::string, name_entry> by_name_, names_in_use_;
  std::map<std::string, std::vector<const node*>> collections_;
  std::vector<std::shared_ptr<const kept_object>> kept_;
  std::vector<std::shared_ptr<const function_def>> functions_;
  std::optional<std::int64_t> seed_;
};

}  // namespace weft::detail

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL graph_state::~graph_state() {
  for (const node* n : nodes_) delete n;
}
WEFT_DECL std::vector<const node*> graph_state::nodes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return nodes_;
}
WEFT_DECL std::size_t graph_state::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return nodes_.size();
}
WEFT_DECL const node* graph_state::find(std::string_view name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : it->second.owner;
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

WEFT_DECL std::string graph_state::lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The first character is a letter, digit or '.', that of a generated node also '_'; then also '_', '/', '\', '-', '>'.
WEFT_DECL bool graph_state::valid_name(std::string_view name, bool generated) noexcept {
  if (name.empty() || name.size() > 1024 || (name[0] == '_' && !generated)) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '_')) continue;
    if (i == 0 || (c != '/' && c != '\\' && c != '-' && c != '>')) return false;
  }
  return true;
}

WEFT_DECL void graph_state::check_owner(const node& made) const {
  for (const output& in : made.inputs_) {
    if (in.from == nullptr) made.fail_about(error_code::invalid_argument, "an input is an empty tensor, not made by any op");
    if (in.from->owner_ != this)
      made.fail_about(error_code::invalid_argument, "input '" + in.from->name() + "' belongs to another graph; all inputs of an op must be in one graph");
    if (in.index < 0 || in.index >= in.from->output_count())
      made.fail_about(error_code::invalid_argument, "'" + in.from->name() + "' has " + std::to_string(in.from->output_count()) + " outputs, asked for number " + std::to_string(in.index));
  }
  for (const node* n : made.control_inputs_)
    if (n == nullptr || n->owner_ != this)
      made.fail_about(error_code::invalid_argument, "a control dependency " + (n ? "'" + n->name() + "' belongs to another graph" : std::string("is an empty operation")));
}

WEFT_DECL void graph_state::close_loop(const node& merge, std::size_t input, output from) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (merge.op_ != "Merge" || merge.owner_ != this || input >= merge.inputs_.size()) merge.fail_about(error_code::internal, "is no Merge of this graph with an input " + std::to_string(input));
  if (from.from == nullptr || from.from->owner_ != this || from.index < 0 || from.index >= from.from->output_count() ||
      from.from->output_dtype(from.index) != merge.output_dtype(0))
    merge.fail_about(error_code::invalid_argument, "the loop edge from '" + to_text(from) + "' must carry " + to_text(merge.output_dtype(0)));
  const_cast<node&>(merge).inputs_[input] = from;
}

WEFT_DECL const node& graph_state::add(node_spec spec) {
  // 1. The node as asked for; what is found wrong from here on is reported about it.
  std::unique_ptr<node> made(new node());
  made->op_ = std::move(spec.op);
  made->owner_ = this;
  made->site_ = spec.site;
  made->inputs_ = std::move(spec.inputs);
  made->control_inputs_ = std::move(spec.control_inputs);
  made->attrs_ = std::move(spec.attrs);
  made->device_ = std::move(spec.device);
  const bool generated = !spec.scoped || spec.name.empty();
  std::string wanted = spec.name.empty() ? made->op_ : std::move(spec.name);
  bool exact = spec.exact_name;
  if (wanted.size() > 1 && wanted.back() == '/') {
    wanted.pop_back();
    exact = true;
  }
  scope_context& scope = thread_scopes().top();
  if (!exact && spec.scoped && !scope.name_scope.empty()) wanted = scope.name_scope + "/" + wanted;
  made->name_ = wanted;
  if (!valid_name(wanted, generated)) made->fail_about(error_code::invalid_argument, "the name must match [A-Za-z0-9.][A-Za-z0-9._/\\->]* and have at most 1024 characters");
  check_owner(*made);

  // 2. Its definition: attributes, dtypes, shapes.
  made->def_ = ops_.find(made->op_);
  if (spec.outputs) {
    made->outputs_ = std::move(*spec.outputs);
  } else {
    if (made->def_ == nullptr) made->fail_about(error_code::not_found, "no op '" + made->op_ + "' is defined; add its definition to the graph's op_registry");
    binder bound(*made->def_, made->inputs_, made->attrs_, *made);
    bound.run();
    made->outputs_ = bound.outputs();
  }

  // 3. The thread's scopes: devices, then colocation (whose device wins), then control dependencies.
  if (spec.scoped) {
    apply_devices(*made, scope);
    apply_colocation(*made, scope);
    apply_control(*made, scope);
  }
  if (!spec.outputs && made->def_->shapes != nullptr) {
    shape_context context(*made, made->outputs_);
    made->def_->shapes(context);
  }

  // 4. Into the graph.
  const node& out = *made;
  insert(std::move(made), wanted, exact);
  if (spec.scoped)
    for (auto& frame : scope.control) frame->made_inside.push_back(&out);
  return out;
}

WEFT_DECL void graph_state::apply_devices(node& made, const scope_context& scope) const {
  // Innermost first, as TensorFlow: a name fills in what is open, a function's answer replaces what is there.
  device_name current;
  for (auto it = scope.devices.rbegin(); it != scope.devices.rend(); ++it) {
    if (it->what == device_entry::kind::reset) break;
    if (it->what == device_entry::kind::name) {
      current = merge_override(it->name, current);
    } else {
      made.device_ = to_text(current);
      current = parse_device_name(it->choose(made), made.site_);
    }
  }
  made.device_ = to_text(current);
}

WEFT_DECL void graph_state::apply_colocation(node& made, const scope_context& scope) const {
  if (scope.colocation.empty()) {
    if (!scope.group.empty()) made.attrs_["_class"] = std::vector<std::string>{scope.group};
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
      made.device_ = with.device();
      device_taken = true;
    }
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  made.attrs_["_class"] = std::move(groups);
}

WEFT_DECL void graph_state::apply_control(node& made, const scope_context& scope) const {
  for (const auto& frame : scope.control) {
    // An input made inside the same scope waits already.
    const bool dominated = std::any_of(made.inputs_.begin(), made.inputs_.end(), [&](const output& in) { return frame->made(in.from); });
    if (dominated) continue;
    for (const node* n : frame->inputs) {
      const bool is_input = std::any_of(made.inputs_.begin(), made.inputs_.end(), [&](const output& in) { return in.from == n; });
      if (n->owner_ != this) made.fail_about(error_code::invalid_argument, "the control dependency '" + n->name() + "' belongs to another graph");
      if (!is_input && std::find(made.control_inputs_.begin(), made.control_inputs_.end(), n) == made.control_inputs_.end()) made.control_inputs_.push_back(n);
    }
  }
  std::sort(made.control_inputs_.begin(), made.control_inputs_.end(), [](const node* a, const node* b) { return a->name() < b->name(); });
}

// Names are unique without regard to case, as in TensorFlow: x, x_1, x_2. The lock is held.
WEFT_DECL std::string graph_state::take_name(const std::string& wanted) {
  const std::string key = lower(wanted);
  int& used = names_in_use_[key].used;
  int i = used++;
  if (i == 0) return wanted;
  std::string unique_key, name;
  do {
    name = wanted + "_" + std::to_string(i);
    unique_key = key + "_" + std::to_string(i++);
  } while (names_in_use_.count(unique_key) != 0);
  names_in_use_[key].used = i;
  names_in_use_[unique_key].used = 1;
  return name;
}

WEFT_DECL std::string graph_state::take_exact(const std::string& name, const node& about) {
  if (by_name_.count(name) != 0) about.fail_about(error_code::already_exists, "the graph already has a node of this name");
  if (int& used = names_in_use_[lower(name)].used; used == 0) used = 1;
  return name;
}

WEFT_DECL void graph_state::check_scope(std::string_view wanted, call_site site) {
  if (!valid_name(wanted, false))
    throw error(error_code::invalid_argument, "name scope '" + std::string(wanted) + "' must match [A-Za-z0-9.][A-Za-z0-9._/\\->]* and have at most 1024 characters", site);
}

WEFT_DECL std::string graph_state::unique_scope(const std::string& wanted, call_site site) {
  check_scope(wanted, site);
  const std::lock_guard<std::mutex> lock(mutex_);
  return take_name(wanted);
}

WEFT_DECL void graph_state::insert(std::unique_ptr<node> made, const std::string& wanted, bool exact) {
  const std::lock_guard<std::mutex> lock(mutex_);
  made->name_ = exact ? take_exact(wanted, *made) : take_name(wanted);
  made->id_ = static_cast<int>(nodes_.size());
  nodes_.push_back(made.get());
  const node* owned = made.release();
  by_name_[owned->name()].owner = owned;
}

}  // namespace weft::detail
#endif

#endif
