#ifndef WEFT_PLACEMENT_COLOCATION_HPP
#define WEFT_PLACEMENT_COLOCATION_HPP
// Which nodes must share a device, as groups that grow: over reference and resource edges, and by `loc:@` classes. Follows
// TensorFlow's ColocationGraph.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>
#include <weft/placement/kernel_support.hpp>
#include <weft/placement/placement.hpp>

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

class colocation {
 public:
  colocation(const std::vector<const node*>& nodes, const device_set& devices, const placement_options& options)
      : nodes_(nodes), devices_(devices), options_(options), support_(devices), members_(nodes.size()) {}

  // 1. What each node asks for and which kernels it has; 2. reference and resource edges; 3. `loc:@` classes.
  void run() {
    for (const node* n : nodes_) read(*n);
    for (const node* n : nodes_) join_resources(*n);
    for (const node* n : nodes_) note_classes(*n);
    for (const node* n : nodes_) join_classes(*n);
  }

  int root(int id) {
    while (members_[at(id)].parent != id) {
      int& parent = members_[at(id)].parent;
      parent = members_[at(parent)].parent;
      id = parent;
    }
    return id;
  }
  const colocation_member& group(int id) { return members_[at(root(id))]; }
  const device_name& constraint(int number) const noexcept { return constraints_[number]; }
  constraint_table& constraints() noexcept { return constraints_; }
  support_table& support() noexcept { return support_; }
  // What the node itself asked for, and the kernels it has itself, by number.
  int own_request(int id) const noexcept { return own_[at(id)]; }
  int own_support(int id) const noexcept { return own_support_[at(id)]; }
  // Hands over what is known of the groups, when no more is asked.
  std::vector<colocation_member> take_members() { return std::move(members_); }
  std::vector<int> take_own_support() { return std::move(own_support_); }

 private:
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
  void read(const node& n);
  void read_assigned(const node& n, const std::string& device, colocation_member& m);
  void join_resources(const node& n);
  void join_over_edge(const node& from, const node& to);
  void note_classes(const node& n);
  void join_classes(const node& n);
  void join_class(int& first, const node& n);
  std::string join(int a, int b);
  std::string said(const node& n) const;

  const std::vector<const node*>& nodes_;
  const device_set& devices_;
  const placement_options& options_;
  constraint_table constraints_;
  support_table support_;
  std::vector<colocation_member> members_;
  std::vector<int> own_, own_support_;
  std::unordered_map<std::string, int> classes_;  // the first node of each class that somebody names, -1 before it is known
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
  if (options.earlier != nullptr && id < options.earlier->size()) return options.earlier->nodes()[id].device;
  return id < options.assigned.size() ? options.assigned[id] : none;
}

WEFT_DECL void colocation::read(const node& n) {
  colocation_member& m = members_[at(n.id())];
  m.parent = m.first = n.id();
  m.support = support_.of_node(n);
  own_support_.push_back(m.support);
  own_.push_back(constraints_.of_text(n.device(), n));
  if (const std::string& device = assigned_device(options_, n); !device.empty()) return read_assigned(n, device, m);
  m.requested = own_.back();
  if (is_resource_generator(n)) m.resource = m.requested;
  if (m.requested != 0) m.anchor = n.id();
}

WEFT_DECL void colocation::read_assigned(const node& n, const std::string& device, colocation_member& m) {
  const weft::device* d = devices_.find(device);
  if (d == nullptr) n.fail_about(error_code::internal, "assigned device '" + device + "' is not the name of one device of the cluster");
  m.assigned = m.requested = constraints_.of_text(d->name, n);
  m.anchor = n.id();
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

WEFT_DECL void colocation::join_resources(const node& n) {
  for (std::size_t i = 0; i < n.inputs().size(); ++i)
    if (shares_resource(n, i)) join_over_edge(*n.inputs()[i].from, n);
}

WEFT_DECL std::string colocation::said(const node& n) const {
  const std::string& device = own_[at(n.id())] == 0 ? n.device() : to_text(constraints_[own_[at(n.id())]]);
  return "'" + n.name() + "'" + (n.site().known() ? " (" + n.site().text() + ")" : "") + (device.empty() ? "" : " on '" + device + "'");
}

// The creator's request wins over the user's; two creators on different devices cannot meet in one op.
WEFT_DECL void colocation::join_over_edge(const node& from, const node& to) {
  const colocation_member& source = members_[at(root(from.id()))];
  colocation_member& user = members_[at(root(to.id()))];
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
  const std::string why = join(from.id(), to.id());
  if (!why.empty()) to.fail_about(error_code::invalid_argument, "must be on the device of " + said(from) + ", whose resource it uses: " + why);
}

inline constexpr std::string_view class_prefix = "loc:@";

// A node is of the class of its own name, too, but that matters to few.
WEFT_DECL void colocation::note_classes(const node& n) {
  if (const auto* list = n.find_attr<std::vector<std::string>>("_class"))
    for (const std::string& entry : *list)
      if (entry.compare(0, class_prefix.size(), class_prefix) == 0) classes_.emplace(entry.substr(class_prefix.size()), -1);
}

WEFT_DECL void colocation::join_classes(const node& n) {
  if (classes_.empty()) return;
  if (const auto* list = n.find_attr<std::vector<std::string>>("_class"))
    for (const std::string& entry : *list)
      if (entry.compare(0, class_prefix.size(), class_prefix) == 0) join_class(classes_.find(entry.substr(class_prefix.size()))->second, n);
  if (const auto own = classes_.find(n.name()); own != classes_.end()) join_class(own->second, n);
}

WEFT_DECL void colocation::join_class(int& first, const node& n) {
  if (first < 0) {
    first = n.id();
    return;
  }
  const int mine = group(n.id()).anchor, theirs = group(first).anchor;
  const std::string why = join(n.id(), first);
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
