#ifndef WEFT_RUNTIME_PLAN_HPP
#define WEFT_RUNTIME_PLAN_HPP
// What the executor computes once per part: nodes in the order in which one thread would run them, where their values lie,
// and whom they wake. Everything is an index into an array, so that a step touches memory from front to back.

#include <weft/core/config.hpp>
#include <weft/core/device_name.hpp>
#include <weft/graph/graph.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// No node, no slot.
inline constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();

/// What a node needs from the executor.
enum class plan_kind : std::uint8_t { compute, asynchronous, identity, no_op, arg, retval, send, receive };

/// One node of the plan. Its inputs are consecutive slots; so are its outputs.
struct plan_node {
  weft::kernel* kernel = nullptr;
  const node* about = nullptr;
  std::uint32_t inputs = 0, input_count = 0, outputs = 0, output_count = 0;
  /// Ranges in `plan::copies` and `plan::wakes`.
  std::uint32_t copies = 0, copies_end = 0, wakes = 0, wakes_end = 0;
  /// Index of the feed, fetch or asynchronous node.
  std::uint32_t number = 0;
  plan_kind kind = plan_kind::no_op;
  /// Bit i: input i is a constant, whose slot keeps its value between steps; the last bit stands for all further inputs.
  std::uint64_t kept = 0;
};

/// An output that goes to a further slot; `last` moves it there. `to` is `nothing` for an output that nobody reads.
struct plan_copy {
  std::uint32_t from, to;
  bool last;
};

/// A node that waits, and for how many others in all.
struct plan_wake {
  std::uint32_t node, predecessors;
};

/// The plan of a part; never changes once made, and keeps the part's nodes and kernels alive.
struct plan {
  plan(graph part, const kernel_registry& kernels, std::string task);
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;

  graph part;
  std::string task;
  std::vector<plan_node> nodes;
  std::vector<plan_copy> copies;
  std::vector<plan_wake> wakes;
  /// Nodes that wait for nobody; the last one runs first.
  std::vector<std::uint32_t> roots;
  /// By node: how many nodes it waits for.
  std::vector<std::uint32_t> predecessors;
  /// By slot: which of `constants` lies there, or `nothing`.
  std::vector<std::uint32_t> constant_of;
  std::vector<tensor_value> constants;
  /// By node of kind `send` or `receive`, through `number`: the edge.
  std::vector<std::int64_t> edges;
  /// Nodes of kind `asynchronous`, by `number`.
  std::vector<std::uint32_t> asynchronous;
  std::uint32_t slots = 0, feeds = 0, fetches = 0;
  /// By feed: whether a single node reads it, which may then take it.
  std::vector<bool> feed_read_once;
  std::vector<std::unique_ptr<kernel>> kernels;
};

#if WEFT_HAS_BODIES

/// Lists of numbers, one list per owner, in one array: filled by counting, then placing.
class grouped_lists {
 public:
  explicit grouped_lists(std::size_t owners) : starts_(owners + 1, 0) {}
  void count(std::size_t owner) { ++starts_[owner + 1]; }
  void counted() {
    for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
    items_.resize(starts_.back());
    fill_ = starts_;
  }
  void place(std::size_t owner, std::uint32_t item) { items_[fill_[owner]++] = item; }
  std::uint32_t* begin(std::size_t owner) { return items_.data() + starts_[owner]; }
  std::uint32_t* end(std::size_t owner) { return items_.data() + starts_[owner + 1]; }

 private:
  std::vector<std::uint32_t> starts_, fill_, items_;
};

/// Makes a plan, pass by pass. Nodes of the graph are known by their id, nodes of the plan by their position.
class plan_builder {
 public:
  plan_builder(plan& to, const kernel_registry& registry) : plan_(to), registry_(registry), nodes_(to.part.nodes()) {}
  void run() {
    find_constants();
    link();
    make_nodes();
    order();
    place_inputs();
    place_outputs();
    number_wakes();
  }

 private:
  // An edge from an output to an input slot.
  struct reader {
    std::uint32_t producer, output, slot;
  };

  void find_constants();
  void link();
  void make_nodes();
  void make_node(const node& n, plan_node& made);
  void make_kernel(const node& n, plan_node& made);
  void order();
  void place_inputs();
  void place_outputs();
  void number_wakes();
  std::uint32_t index_attr(const node& n, std::uint32_t& count) const;
  const std::string& device_type(const node& n);
  template <class F> void each_predecessor(const node& n, F&& found);

  plan& plan_;
  const kernel_registry& registry_;
  std::vector<const node*> nodes_;
  // By id: which constant the node is, whether it runs at all, its plan node, its position.
  std::vector<std::uint32_t> constant_, position_, waiting_, seen_;
  std::vector<bool> runs_;
  std::vector<plan_node> made_;
  std::unique_ptr<grouped_lists> successors_;
  std::vector<reader> readers_;
  std::string last_device_, last_type_;
  // Fetches that a node returns.
  std::set<std::uint32_t> returned_;
};

template <class F> void plan_builder::each_predecessor(const node& n, F&& found) {
  const auto id = static_cast<std::uint32_t>(n.id());
  const auto visit = [&](const node* from) {
    const auto before = static_cast<std::size_t>(from->id());
    if (!runs_[before] || seen_[before] == id) return;
    seen_[before] = id;
    found(before);
  };
  for (const output& in : n.inputs()) visit(in.from);
  for (const node* c : n.control_inputs()) visit(c);
}

WEFT_DECL plan::plan(graph p, const kernel_registry& registry, std::string where) : part(std::move(p)), task(std::move(where)) {
  if (part.size() >= nothing / 2) fail(error_code::resource_exhausted, "a part has " + std::to_string(part.size()) + " nodes, which is too many");
  plan_builder(*this, registry).run();
}

// 1. A constant in host memory is a value in its readers' slots. It runs only if it has to wait for something.
WEFT_DECL void plan_builder::find_constants() {
  constant_.assign(nodes_.size(), nothing);
  runs_.assign(nodes_.size(), true);
  for (const node* n : nodes_) {
    if (n->op() != "Const" || device_type(*n) != "CPU") continue;
    const auto id = static_cast<std::size_t>(n->id());
    constant_[id] = static_cast<std::uint32_t>(plan_.constants.size());
    plan_.constants.push_back(n->attr<tensor_value>("value"));
    runs_[id] = std::any_of(n->control_inputs().begin(), n->control_inputs().end(), [this](const node* c) { return runs_[static_cast<std::size_t>(c->id())]; });
  }
}

// 2. Who waits for whom, each pair once.
WEFT_DECL void plan_builder::link() {
  waiting_.assign(nodes_.size(), 0);
  successors_ = std::make_unique<grouped_lists>(nodes_.size());
  seen_.assign(nodes_.size(), nothing);
  for (const node* n : nodes_)
    if (runs_[static_cast<std::size_t>(n->id())])
      each_predecessor(*n, [&](std::size_t before) {
        successors_->count(before);
        ++waiting_[static_cast<std::size_t>(n->id())];
      });
  successors_->counted();
  seen_.assign(nodes_.size(), nothing);
  for (const node* n : nodes_)
    if (runs_[static_cast<std::size_t>(n->id())])
      each_predecessor(*n, [&](std::size_t before) { successors_->place(before, static_cast<std::uint32_t>(n->id())); });
}

// 3. Kinds and kernels.
WEFT_DECL void plan_builder::make_nodes() {
  made_.resize(nodes_.size());
  for (const node* n : nodes_) {
    const auto id = static_cast<std::size_t>(n->id());
    if (!runs_[id]) continue;
    try {
      make_node(*n, made_[id]);
    } catch (const error& e) {
      status s = e.status();
      if (s.device.empty()) s.device = n->device();
      if (s.task.empty()) s.task = plan_.task;
      throw error(std::move(s));
    }
  }
}

WEFT_DECL void plan_builder::make_node(const node& n, plan_node& made) {
  made.about = &n;
  made.input_count = static_cast<std::uint32_t>(n.inputs().size());
  made.output_count = static_cast<std::uint32_t>(n.output_count());
  const std::string& op = n.op();
  if (constant_[static_cast<std::size_t>(n.id())] != nothing) {
    made.output_count = 0;
  } else if (op == "_Arg") {
    made.kind = plan_kind::arg;
    made.number = index_attr(n, plan_.feeds);
    plan_.feed_read_once.resize(plan_.feeds, false);
  } else if (op == "_Retval") {
    made.kind = plan_kind::retval;
    made.number = index_attr(n, plan_.fetches);
    if (!returned_.insert(made.number).second) n.fail_about(error_code::invalid_argument, "another node returns fetch " + std::to_string(made.number) + " already");
  } else if (op == "_Send" || op == "_Recv") {
    made.kind = op == "_Send" ? plan_kind::send : plan_kind::receive;
    made.number = static_cast<std::uint32_t>(plan_.edges.size());
    plan_.edges.push_back(n.attr<std::int64_t>("_edge"));
  } else if (op == "Identity" && made.input_count == 1 && made.output_count == 1) {
    made.kind = plan_kind::identity;
  } else if (op != "NoOp") {
    make_kernel(n, made);
  }
  const auto expected = made.kind == plan_kind::retval || made.kind == plan_kind::send ? 1U : 0U;
  if (made.kind >= plan_kind::arg && (made.input_count != expected || made.output_count != 1 - expected))
    n.fail_about(error_code::invalid_argument, "expected " + std::to_string(expected) + " inputs and " + std::to_string(1 - expected) + " outputs, found " +
                                                   std::to_string(made.input_count) + " and " + std::to_string(made.output_count));
}

WEFT_DECL void plan_builder::make_kernel(const node& n, plan_node& made) {
  plan_.kernels.push_back(registry_.make({n, n.device()}, device_type(n)));
  made.kernel = plan_.kernels.back().get();
  made.kind = made.kernel->asynchronous() ? plan_kind::asynchronous : plan_kind::compute;
}

WEFT_DECL std::uint32_t plan_builder::index_attr(const node& n, std::uint32_t& count) const {
  const std::int64_t index = n.attr<std::int64_t>("index");
  // Memory is taken for all up to the highest, so that may not be far from how many there can be.
  constexpr std::int64_t few = 1 << 16;
  if (index < 0 || index > std::max(few, static_cast<std::int64_t>(nodes_.size()))) n.fail_about(error_code::invalid_argument, "expected an index of a feed or fetch, found " + std::to_string(index));
  count = std::max(count, static_cast<std::uint32_t>(index) + 1);
  return static_cast<std::uint32_t>(index);
}

WEFT_DECL const std::string& plan_builder::device_type(const node& n) {
  if (last_type_.empty() || n.device() != last_device_) {
    last_device_ = n.device();
    last_type_ = parse_device_name(last_device_, n.site()).type.value_or("CPU");
  }
  return last_type_;
}

// 4. The order in which a single thread that takes the newest ready node first would run them. Receives are asked for before anything else
//    starts, sends go out as soon as their value is there.
WEFT_DECL void plan_builder::order() {
  const auto is = [this](std::uint32_t id, plan_kind kind) { return made_[id].kind == kind; };
  std::vector<std::uint32_t> ready, left = waiting_;
  for (std::size_t id = nodes_.size(); id-- > 0;) {
    std::stable_partition(successors_->begin(id), successors_->end(id), [&](std::uint32_t s) { return !is(s, plan_kind::send); });
    if (runs_[id] && left[id] == 0) ready.push_back(static_cast<std::uint32_t>(id));
  }
  std::stable_partition(ready.begin(), ready.end(), [&](std::uint32_t s) { return !is(s, plan_kind::receive); });
  std::vector<std::uint32_t> roots = ready;
  position_.assign(nodes_.size(), nothing);
  while (!ready.empty()) {
    const std::uint32_t id = ready.back();
    ready.pop_back();
    position_[id] = static_cast<std::uint32_t>(plan_.nodes.size());
    plan_.nodes.push_back(made_[id]);
    for (const auto* s = successors_->begin(id); s != successors_->end(id); ++s)
      if (--left[*s] == 0) ready.push_back(*s);
  }
  for (std::size_t id = 0; id < nodes_.size(); ++id)
    if (runs_[id] && position_[id] == nothing) nodes_[id]->fail_about(error_code::invalid_argument, "the node waits for itself through a cycle");
  for (const std::uint32_t id : roots) plan_.roots.push_back(position_[id]);
}

// 5. Slots for the inputs, in that order.
WEFT_DECL void plan_builder::place_inputs() {
  std::vector<std::uint32_t> reads(plan_.feeds, 0);
  for (plan_node& p : plan_.nodes) {
    if (p.kind == plan_kind::arg) ++reads[p.number];
    if (p.kind == plan_kind::asynchronous) {
      p.number = static_cast<std::uint32_t>(plan_.asynchronous.size());
      plan_.asynchronous.push_back(static_cast<std::uint32_t>(&p - plan_.nodes.data()));
    }
    p.inputs = plan_.slots;
    for (const output& in : p.about->inputs()) {
      const std::uint32_t slot = plan_.slots++, constant = constant_[static_cast<std::size_t>(in.from->id())];
      plan_.constant_of.push_back(constant);
      if (constant != nothing) p.kept |= std::uint64_t{1} << std::min(slot - p.inputs, 63U);
      else readers_.push_back({position_[static_cast<std::size_t>(in.from->id())], static_cast<std::uint32_t>(in.index), slot});
    }
  }
  for (std::size_t i = 0; i < reads.size(); ++i) plan_.feed_read_once[i] = reads[i] <= 1;
  std::stable_sort(readers_.begin(), readers_.end(), [](const reader& a, const reader& b) { return std::pair(a.producer, a.output) < std::pair(b.producer, b.output); });
}

// 6. A single output is written straight into its first reader's slot. Several outputs, and those without readers, get slots of their own.
WEFT_DECL void plan_builder::place_outputs() {
  auto next = readers_.begin();
  for (std::uint32_t i = 0; i < plan_.nodes.size(); ++i) {
    plan_node& p = plan_.nodes[i];
    p.copies = static_cast<std::uint32_t>(plan_.copies.size());
    const bool in_place = p.output_count == 1 && next != readers_.end() && next->producer == i;
    p.outputs = in_place ? (next++)->slot : plan_.slots;
    for (std::uint32_t o = 0; o < p.output_count; ++o) {
      const std::uint32_t from = p.outputs + o;
      if (!in_place) {
        ++plan_.slots;
        plan_.constant_of.push_back(nothing);
      }
      const auto first = next;
      for (; next != readers_.end() && next->producer == i && next->output == o; ++next) plan_.copies.push_back({from, next->slot, false});
      if (in_place) continue;
      if (next == first) plan_.copies.push_back({from, nothing, true});
      else plan_.copies.back().last = true;
    }
    p.copies_end = static_cast<std::uint32_t>(plan_.copies.size());
  }
}

// 7. Whom each node wakes, by position.
WEFT_DECL void plan_builder::number_wakes() {
  plan_.predecessors.resize(plan_.nodes.size());
  for (std::uint32_t i = 0; i < plan_.nodes.size(); ++i) {
    plan_node& p = plan_.nodes[i];
    const auto id = static_cast<std::size_t>(p.about->id());
    plan_.predecessors[i] = waiting_[id];
    p.wakes = static_cast<std::uint32_t>(plan_.wakes.size());
    for (const auto* s = successors_->begin(id); s != successors_->end(id); ++s) plan_.wakes.push_back({position_[*s], waiting_[*s]});
    p.wakes_end = static_cast<std::uint32_t>(plan_.wakes.size());
  }
}

#endif

}  // namespace weft::detail

#endif
