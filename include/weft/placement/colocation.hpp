#ifndef WEFT_PLACEMENT_COLOCATION_HPP
#define WEFT_PLACEMENT_COLOCATION_HPP
// Which nodes must share a device, as groups that grow: over reference and resource edges, and by `loc:@` classes. Follows
// TensorFlow's ColocationGraph.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>
#include <weft/placement/kernel_support.hpp>
#include <weft/placement/placement.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

// One node before groups grow; afterwards the root of a group speaks for all its members.
struct colocation_member {
  int parent = 0, rank = 0, size = 1;
  // Constraints, by number: what was asked for; what a resource's creator asked for; what an earlier placement fixed.
  int requested = 0, resource = 0, assigned = 0;
  int support = 0;
  // The member whose request is in force, -1 when nobody asked.
  int anchor = -1;
  // Member that the group began with.
  int first = 0;
};

// The nodes that a placement looks at, numbered from 0: all of a graph by their ids; or, when others were placed before, those that are new, behind the placed ones that they share a device with.
class numbered_nodes {
 public:
  explicit numbered_nodes(std::vector<const node*> all) : all_(std::move(all)) {}
  // `placed` in the order of their ids.
  numbered_nodes(std::vector<const node*> placed, const std::vector<const node*>& fresh, std::size_t first_fresh)
      : all_(std::move(placed)), placed_(static_cast<int>(all_.size())), first_(static_cast<int>(first_fresh)) {
    all_.insert(all_.end(), fresh.begin(), fresh.end());
  }
  // A node's number; -1 for one that is not looked at.
  int operator()(const node& n) const noexcept {
    if (n.id() >= first_) return n.id() - first_ + placed_;
    const auto end = all_.begin() + placed_;
    const auto it = std::lower_bound(all_.begin(), end, &n, [](const node* a, const node* b) { return a->id() < b->id(); });
    return it != end && *it == &n ? static_cast<int>(it - all_.begin()) : -1;
  }
  const node* operator[](std::size_t number) const noexcept { return all_[number]; }
  std::vector<const node*>::const_iterator begin() const noexcept { return all_.begin(); }
  std::vector<const node*>::const_iterator end() const noexcept { return all_.end(); }
  std::size_t size() const noexcept { return all_.size(); }
  // How many were placed before and are only neighbours of the others.
  int placed() const noexcept { return placed_; }
  std::vector<const node*> take() { return std::move(all_); }

 private:
  std::vector<const node*> all_;
  int placed_ = 0, first_ = 0;
};

// Nodes by their numbers.
class colocation {
 public:
  colocation(const numbered_nodes& nodes, const device_set& devices, const placement_options& options)
      : nodes_(nodes), devices_(devices), options_(options), support_(devices), members_(nodes.size()) {}

  // 1. What each node asks for and which kernels it has; 2. reference and resource edges; 3. `loc:@` classes.
  void run() {
    marks_.reserve(nodes_.size());
    own_.reserve(nodes_.size());
    own_support_.reserve(nodes_.size());
    for (const node* n : nodes_) read(*n);
    for (const node* n : nodes_)
      if (nodes_(*n) >= nodes_.placed()) read_edges(*n);
    find_owners();
    if (classes_.empty()) return;
    for (const node* n : nodes_)
      if (has(*n, names_class | owns_class)) join_classes(*n);
  }

  // What passes ask of every node again and again, so that they need not look into it: no inputs, one output that is no reference; tells of its input's form; whether it names a colocation class, or
  // is one; whether an output is a resource or a reference, and an input takes one; whether that is of a variable.
  enum mark : unsigned char { generator = 1, metadata = 2, names_class = 4, owns_class = 8, gives_resource = 16, takes_resource = 32, variable = 64 };
  bool has(const node& n, int marks) const noexcept { return (marks_[at(nodes_(n))] & marks) != 0; }
  // Each use of a generator by a later node: its number and the user's, in the order of the users.
  const std::vector<std::pair<int, int>>& generator_uses() const noexcept { return generator_uses_; }

  int root(int number) {
    while (members_[at(number)].parent != number) {
      int& parent = members_[at(number)].parent;
      parent = members_[at(parent)].parent;
      number = parent;
    }
    return number;
  }
  int root(const node& n) { return root(nodes_(n)); }
  const colocation_member& group(int number) { return members_[at(root(number))]; }
  const colocation_member& group(const node& n) { return group(nodes_(n)); }
  // Classes that somebody names, and no node so far: the first one that names them.
  std::map<std::string, const node*> classes_without_owner() const {
    std::map<std::string, const node*> out;
    for (const auto& [name, known] : classes_)
      if (!known.has_owner && known.first >= 0) out.emplace(name, nodes_[at(known.first)]);
    return out;
  }
  const device_name& constraint(int number) const noexcept { return constraints_[number]; }
  constraint_table& constraints() noexcept { return constraints_; }
  support_table& support() noexcept { return support_; }
  // What the node itself asked for, and the kernels it has itself, by number.
  int own_request(const node& n) const noexcept { return own_[at(nodes_(n))]; }
  // Hands over what is known of the groups, when no more is asked.
  std::vector<colocation_member> take_members() { return std::move(members_); }
  std::vector<int> take_own_support() { return std::move(own_support_); }

 private:
  struct colocation_class {
    int first = -1;  // the first node that names it or has the name
    bool has_owner = false;
  };
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
  void read(const node& n);
  unsigned char marks_of(const node& n);
  void read_edges(const node& n);
  void find_owners();
  void read_assigned(const node& n, const std::string& device, colocation_member& m);
  void join_over_edge(const node& from, const node& to);
  void join_classes(const node& n);
  void join_class(colocation_class& to, const node& n);
  std::string join(int a, int b);
  std::string said(const node& n) const;

  const numbered_nodes& nodes_;
  const device_set& devices_;
  const placement_options& options_;
  constraint_table constraints_;
  support_table support_;
  std::vector<colocation_member> members_;
  std::vector<unsigned char> marks_;
  std::vector<std::pair<int, int>> generator_uses_;
  std::vector<int> own_, own_support_;
  std::unordered_map<std::string, colocation_class> classes_;  // those that somebody names
};

const std::string& assigned_device(const placement_options& options, const node& n);

bool shares_resource(const node& n, std::size_t input) noexcept;

// No inputs and one output that is a reference or a resource: the request counts for whoever uses it.
WEFT_DECL bool is_resource_generator(const node& n) noexcept {
  return n.inputs().empty() && n.output_count() == 1 && (n.outputs()[0].is_ref || n.outputs()[0].dtype == dtype::resource);
}

// The device that an earlier placement chose; empty when the node is free.
WEFT_DECL const std::string& assigned_device(const placement_options& options, const node& n) {
  static const std::string none;
  const auto id = static_cast<std::size_t>(n.id());
  if (options.earlier != nullptr && id < options.earlier->size()) return options.earlier->device_at(id);
  return id < options.assigned.size() ? options.assigned[id] : none;
}

WEFT_DECL void colocation::read(const node& n) {
  const int number = nodes_(n);
  marks_.push_back(marks_of(n));
  colocation_member& m = members_[at(number)];
  m.parent = m.first = number;
  m.support = support_.of_node(n);
  own_support_.push_back(m.support);
  own_.push_back(constraints_.of_text(n.device(), n));
  if (const std::string& device = assigned_device(options_, n); !device.empty()) return read_assigned(n, device, m);
  m.requested = own_.back();
  if (is_resource_generator(n)) m.resource = m.requested;
  if (m.requested != 0) m.anchor = number;
}

WEFT_DECL void colocation::read_assigned(const node& n, const std::string& device, colocation_member& m) {
  const weft::device* d = devices_.find(device);
  if (d == nullptr) n.fail_about(error_code::internal, "assigned device '" + device + "' is not the name of one device of the cluster");
  m.assigned = m.requested = constraints_.of_text(d->name, n);
  m.anchor = nodes_(n);
}

// Whether an input takes a reference rather than its value.
WEFT_DECL bool takes_reference(const node& n, std::size_t input) noexcept {
  const output& in = n.inputs()[input];
  if (!in.from->outputs()[static_cast<std::size_t>(in.index)].is_ref || n.def() == nullptr) return false;
  return input < n.def()->inputs.size() && n.def()->inputs[input].is_ref;
}

WEFT_DECL bool shares_resource(const node& n, std::size_t input) noexcept {
  const output& in = n.inputs()[input];
  return in.from->output_dtype(in.index) == dtype::resource || takes_reference(n, input);
}

WEFT_DECL void colocation::read_edges(const node& n) {
  const int number = nodes_(n);
  const auto use = [&](int from) {
    if (from >= nodes_.placed() && (marks_[at(from)] & generator) != 0) generator_uses_.emplace_back(from, number);
  };
  for (std::size_t i = 0; i < n.inputs().size(); ++i) {
    const node& from = *n.inputs()[i].from;
    const int source = nodes_(from);
    use(source);
    if (source < 0 || (marks_[at(source)] & gives_resource) == 0 || !shares_resource(n, i)) continue;
    marks_[at(number)] |= takes_resource;
    join_over_edge(from, n);
  }
  for (const node* before : n.control_inputs()) use(nodes_(*before));
}

WEFT_DECL std::string colocation::said(const node& n) const {
  const std::string& device = own_[at(nodes_(n))] == 0 ? n.device() : to_text(constraints_[own_[at(nodes_(n))]]);
  return "'" + n.name() + "'" + (n.site().known() ? " (" + n.site().text() + ")" : "") + (device.empty() ? "" : " on '" + device + "'");
}

// The creator's request wins over the user's; two creators on different devices cannot meet in one op.
WEFT_DECL void colocation::join_over_edge(const node& from, const node& to) {
  const colocation_member& source = members_[at(root(from))];
  colocation_member& user = members_[at(root(to))];
  if (&source == &user) return;
  for (const bool fixed : {true, false}) {
    const int a = fixed ? source.assigned : source.resource, b = fixed ? user.assigned : user.resource;
    if (constraints_.merge(a, b, false)) continue;
    const node& other = *nodes_[at(user.anchor)];
    to.fail_about(error_code::invalid_argument, std::string("uses resources ") + (fixed ? "assigned to" : "on") + " different devices: " + said(from) +
                  " against " + said(other) + " ('" + to_text(constraints_[a]) + "' and '" + to_text(constraints_[b]) + "'); put both on one device");
  }
  if (!constraints_.merge(source.requested, user.requested, false)) {
    user.requested = constraints_.override_by(constraints_.override_by(source.requested, user.resource), user.assigned);
    user.anchor = source.anchor;
  }
  const std::string why = join(nodes_(from), nodes_(to));
  if (!why.empty()) to.fail_about(error_code::invalid_argument, "must be on the device of " + said(from) + ", whose resource it uses: " + why);
}

// Each colocation class that the node names, without the prefix.
template <class F> void for_each_class(const node& n, const F& f) {
  constexpr std::string_view prefix = "loc:@";
  if (const auto* list = n.find_attr<std::vector<std::string>>("_class"))
    for (const std::string& entry : *list)
      if (entry.compare(0, prefix.size(), prefix) == 0) f(entry.substr(prefix.size()));
}

WEFT_DECL unsigned char colocation::marks_of(const node& n) {
  int out = 0;
  for (const output_type& type : n.outputs())
    if (type.is_ref || type.dtype == dtype::resource) out |= gives_resource;
  if (n.inputs().empty() && n.output_count() == 1 && !n.outputs()[0].is_ref) out |= generator;
  if ((out & gives_resource) != 0 && (n.outputs()[0].is_ref || n.op() == "VarHandleOp")) out |= variable;
  if (n.op() == "Shape" || n.op() == "Size" || n.op() == "Rank") out |= metadata;
  for_each_class(n, [&](std::string name) {
    classes_.emplace(std::move(name), colocation_class());
    out |= names_class;
  });
  return static_cast<unsigned char>(out);
}

// A node is of the class of its own name, too, but that matters to few.
WEFT_DECL void colocation::find_owners() {
  for (const auto& entry : classes_) {
    const node* owner = nodes_[0]->owner().find(entry.first);
    if (owner == nullptr) continue;
    const int number = nodes_(*owner);
    if (number >= 0 && at(number) < marks_.size()) marks_[at(number)] |= owns_class;
  }
}

WEFT_DECL void colocation::join_classes(const node& n) {
  if (has(n, names_class)) for_each_class(n, [&](const std::string& name) { join_class(classes_.find(name)->second, n); });
  if (!has(n, owns_class)) return;
  colocation_class& own = classes_.find(n.name())->second;
  own.has_owner = true;
  join_class(own, n);
}

WEFT_DECL void colocation::join_class(colocation_class& to, const node& n) {
  int& first = to.first;
  if (first < 0) {
    first = nodes_(n);
    return;
  }
  const int mine = group(n).anchor, theirs = group(first).anchor;
  const std::string why = join(nodes_(n), first);
  if (why.empty() || options_.allow_soft_placement) return;
  const node &a = mine < 0 ? n : *nodes_[at(mine)], &b = theirs < 0 ? *nodes_[at(first)] : *nodes_[at(theirs)];
  n.fail_about(error_code::invalid_argument, "cannot be colocated with '" + std::string(nodes_[at(first)]->name()) + "': " + said(a) + " against " + said(b) +
               ": " + why + "; give both one device, or allow soft placement");
}

// Makes two groups one; or says why that cannot be, and changes nothing.
WEFT_DECL std::string colocation::join(int a, int b) {
  a = root(a);
  b = root(b);
  if (a == b) return {};
  if (members_[at(a)].rank < members_[at(b)].rank) std::swap(a, b);
  colocation_member &winner = members_[at(a)], &loser = members_[at(b)];
  std::string why;
  const auto assigned = constraints_.merge(winner.assigned, loser.assigned, false, &why);
  const auto resource = constraints_.merge(winner.resource, loser.resource, false, &why);
  const auto requested = constraints_.merge(winner.requested, loser.requested, options_.allow_soft_placement, &why);
  if (!requested || !resource || !assigned) return why;
  const auto support = support_.merge(winner.support, loser.support);
  if (!support)
    return "no device type has kernels for both (" + support_.text(winner.support) + " against " + support_.text(loser.support) + ")";
  loser.parent = a;
  if (winner.rank == loser.rank) ++winner.rank;
  winner.size += loser.size;
  winner.requested = constraints_.override_by(constraints_.override_by(*requested, *resource), *assigned);
  winner.resource = *resource;
  winner.assigned = *assigned;
  winner.support = *support;
  winner.first = std::min(winner.first, loser.first);
  if (winner.anchor < 0 || (loser.anchor >= 0 && loser.resource != 0 && winner.resource != 0 && loser.anchor < winner.anchor)) winner.anchor = loser.anchor;
  return {};
}

}  // namespace weft::detail
#endif

#endif
