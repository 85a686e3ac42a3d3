#ifndef WEFT_GRAPH_NODE_HPP
#define WEFT_GRAPH_NODE_HPP
// A node: one use of an op in a graph. Nodes never change once they are in a graph (but for the Merge of a loop in the making, whose input is made after it), and live as long as its state.

#include <weft/core/config.hpp>
#include <weft/core/array_view.hpp>
#include <weft/core/call_site.hpp>
#include <weft/fwd.hpp>
#include <weft/graph/attr.hpp>
#include <weft/graph/op_def.hpp>
#include <weft/graph/word.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// One output of a node: a data edge starts here.
struct output {
  const node* from = nullptr;
  int index = 0;
  friend bool operator==(const output& a, const output& b) noexcept { return a.from == b.from && a.index == b.index; }
  friend bool operator!=(const output& a, const output& b) noexcept { return !(a == b); }
};

/// What is known of one output before running: dtype and shape.
struct output_type {
  weft::dtype dtype = weft::dtype::invalid;
  partial_shape shape;
  bool is_ref = false;
};

namespace detail {
// The outputs of a node, in one piece of memory that copies share.
class output_list {
 public:
  output_list() noexcept = default;
  output_list(array_view<output_type> outputs);
  output_list(const output_list& other) noexcept : held_(other.held_) {
    if (held_ != nullptr) held_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  output_list& operator=(output_list other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~output_list();
  std::size_t size() const noexcept { return held_ == nullptr ? 0 : held_->count; }
  // For who shares it with nobody yet.
  output_type* data() const noexcept { return held_ == nullptr ? nullptr : reinterpret_cast<output_type*>(held_ + 1); }

 private:
  struct alignas(output_type) head {
    std::atomic<std::uint32_t> holders{1};
    std::uint32_t count = 0;
  };
  head* held_ = nullptr;
};

// What a node has in common with its copies in other graphs, which is most of it: they share it.
struct node_facts {
  explicit node_facts(std::string_view of_op) : op(of_op) {}
  std::string name;
  word op;
  attr_map attrs;
  output_list outputs;
  call_site site;
  std::atomic<std::uint32_t> holders{1};
};
void let_go(const node_facts* facts) noexcept;

// A requested device as a graph keeps it, and whether one of its nodes asks for it.
using kept_device = std::pair<const std::string, bool>;
}  // namespace detail

/// A use of an op: its name, op, inputs, control inputs, attributes, requested device, and the user's line that made it.
class node {
 public:
  node(const node&) = delete;
  node& operator=(const node&) = delete;
  ~node() { detail::let_go(facts_); }

  /// Position in its graph, from 0 in the order of creation.
  int id() const noexcept { return id_; }
  const std::string& name() const noexcept { return facts_->name; }
  const std::string& op() const noexcept { return facts_->op.text(); }
  /// The op's definition; nullptr for an op that the graph's registry does not know (imported graphs).
  const op_def* def() const noexcept { return def_; }
  array_view<output> inputs() const noexcept { return {inputs_, input_count_}; }
  array_view<const node*> control_inputs() const noexcept { return {control_inputs_, control_count_}; }
  const attr_map& attrs() const noexcept { return facts_->attrs; }
  /// The device asked for, short form, possibly partial or empty.
  const std::string& device() const noexcept { return device_->first; }
  call_site site() const noexcept { return facts_->site; }

  int output_count() const noexcept { return static_cast<int>(facts_->outputs.size()); }
  array_view<output_type> outputs() const noexcept { return {facts_->outputs.data(), facts_->outputs.size()}; }
  weft::dtype output_dtype(int index) const noexcept { return facts_->outputs.data()[index].dtype; }
  const partial_shape& output_shape(int index) const noexcept { return facts_->outputs.data()[index].shape; }

  /// The attribute, or nullptr when it is absent or of another kind.
  template <class T> const T* find_attr(std::string_view name) const noexcept {
    const attr_value* found = facts_->attrs.get(name);
    return found == nullptr ? nullptr : found->get<T>();
  }
  /// The attribute. Throws INVALID_ARGUMENT when it is absent or of another kind.
  template <class T> const T& attr(std::string_view name) const {
    if (const T* found = find_attr<T>(name)) return *found;
    fail_about(error_code::invalid_argument, "attribute '" + std::string(name) + "' is missing or of another kind");
  }
  /// Whether it has state or side effects (true for unknown ops).
  bool stateful() const noexcept { return def_ == nullptr || def_->stateful; }
  /// The state of the graph it belongs to.
  detail::graph_state& owner() const noexcept { return *owner_; }

  /// A status about this node, with its name, op and call site.
  weft::status status_about(error_code code, std::string message) const {
    weft::status s(code, std::move(message));
    s.node = facts_->name;
    s.op = op();
    s.site = facts_->site.text();
    return s;
  }
  [[noreturn]] void fail_about(error_code code, std::string message) const { throw error(status_about(code, std::move(message))); }

 private:
  friend class detail::graph_state;
  explicit node(const detail::node_facts* facts) noexcept : facts_(facts) {}
  int id_ = -1;
  std::uint32_t input_count_ = 0, control_count_ = 0;
  const detail::node_facts* facts_;
  // Kept by the owner, as the node itself.
  const output* inputs_ = nullptr;
  const node* const* control_inputs_ = nullptr;
  const detail::kept_device* device_ = nullptr;
  const op_def* def_ = nullptr;
  detail::graph_state* owner_ = nullptr;
};

/// `x` for the first output of x, `x:1` for the second.
std::string to_text(const output& o);

namespace detail {
// Whether input i leads backward: from a NextIteration, made later, to the Merge of its loop. Its first input never does.
inline bool is_loop_edge(const node& n, std::size_t i) noexcept { return n.inputs()[i].from->id() >= n.id(); }
}  // namespace detail

/// A request for a node; what `graph::add` takes.
struct node_spec {
  std::string op;
  /// The wanted name; empty means the op's.
  std::string name;
  /// Take the name as it is, without scopes; throw ALREADY_EXISTS when it is taken.
  bool exact_name = false;
  std::vector<output> inputs;
  std::vector<const node*> control_inputs;
  attr_map attrs;
  call_site site;
  /// Apply the thread's scopes (device, name, control dependencies, colocation).
  bool scoped = true;
  /// Requested device when not scoped.
  std::string device;
  /// The outputs, for a node whose op need not be defined or whose types are known already; empty means infer them.
  std::optional<std::vector<output_type>> outputs;
};

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

namespace detail {
WEFT_DECL output_list::output_list(array_view<output_type> outputs) {
  if (outputs.empty()) return;
  held_ = new (::operator new(sizeof(head) + outputs.size() * sizeof(output_type))) head;
  for (const output_type& each : outputs) new (data() + held_->count++) output_type(each);
}

WEFT_DECL output_list::~output_list() {
  if (held_ == nullptr || held_->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::destroy_n(data(), held_->count);
  held_->~head();
  ::operator delete(static_cast<void*>(held_));
}

WEFT_DECL void let_go(const node_facts* facts) noexcept {
  node_facts* mine = const_cast<node_facts*>(facts);
  if (mine->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete mine;
}
}  // namespace detail

WEFT_DECL std::string to_text(const output& o) {
  return o.from == nullptr ? std::string("(none)") : o.index == 0 ? o.from->name() : o.from->name() + ":" + std::to_string(o.index);
}

}  // namespace weft
#endif

#endif
