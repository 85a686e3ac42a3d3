#ifndef WEFT_PLACEMENT_STORY_HPP
#define WEFT_PLACEMENT_STORY_HPP
// What a placement remembers of how it came about, and the story that it tells of a node.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>
#include <weft/placement/colocation.hpp>
#include <weft/placement/placement.hpp>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

class graph_state;

// How the device of a group came about.
struct group_choice {
  int device = -1;
  // Whether a placer chose it, and where among the open devices of all groups its own stand.
  bool by_placer = false;
  int open = -1;
  placed_reason reason{};
};

// Devices that meet a request and have the kernels, best first; soft when a part of the request had to be dropped, and then `request` is what is left of it.
struct open_devices {
  std::vector<int> devices;
  bool soft = false;
  device_name request;
};

// What a placement went on from.
struct resumed_placement {
  placement_options options;
  placement earlier;
  std::size_t size = 0;
};

// What is known when a graph has been placed. Vectors of groups are read at the id of a group's root.
struct placement_record {
  std::shared_ptr<graph_state> graph;
  std::shared_ptr<const placed_words> words;
  // How many nodes it took.
  std::size_t looked_at = 0;
  device_set devices;
  // Classes that are named by these, and are no node's name.
  std::map<std::string, const node*> classes_without_owner;
  // Of a placement that went on from an earlier one the rest is found when somebody asks.
  std::shared_ptr<const resumed_placement> resumed;
  std::vector<const node*> nodes;
  std::vector<colocation_member> groups;
  std::vector<group_choice> chosen;
  std::deque<open_devices> open;
  std::vector<int> own_support;                // by node
  std::vector<std::vector<char>> has_kernels;  // by number of a support, by device
  std::vector<char> fixed;                     // by node; empty when none is
  std::string placer;

  std::size_t root(int id) const noexcept {
    while (groups[static_cast<std::size_t>(id)].parent != id) id = groups[static_cast<std::size_t>(id)].parent;
    return static_cast<std::size_t>(id);
  }
};

// The placement of all nodes at once.
placement place_anew(const std::shared_ptr<graph_state>& g, const resumed_placement& what, const device_set& devices);

WEFT_DECL bool same_graph(const placement_record& record, const graph_state& g) noexcept { return record.graph.get() == &g; }

class placement_story {
 public:
  placement_story(const placement_record& record, const node& n) : record_(record), node_(n), root_(record.root(n.id())), group_(record.groups[root_]), made_(record.chosen[root_]) {}

  std::string tell(const placed_node& where) {
    read_members();
    std::string out = described(node_) + " runs on " + where.device + "\n  because: " + where.reason + "\n  asks for: " + (node_.device().empty() ? "nothing" : "'" + node_.device() + "'") + "\n";
    if (members_.size() > 1) out += "  shares its device with: " + others() + "\n";
    out += "  open to it: " + list(record_.open[at(made_.open)].devices) + "\n" + left_out();
    return out + "  decided by: " + decision() + "\n";
  }

 private:
  static constexpr std::size_t most = 8;
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

  void read_members() {
    for (const node* n : record_.nodes)
      if (record_.root(n->id()) == root_) members_.push_back(n);
  }
  static std::string described(const node& n) { return "'" + n.name() + "' (" + n.op() + (n.site().known() ? ", " + n.site().text() : "") + ")"; }
  bool is_fixed(const node& n) const { return !record_.fixed.empty() && record_.fixed[at(n.id())] != 0; }

  // The other members, first the one whose request counts.
  std::string others() const {
    const int anchor = group_.anchor;
    std::vector<const node*> order;
    if (anchor >= 0 && anchor != node_.id()) order.push_back(record_.nodes[at(anchor)]);
    for (const node* n : members_)
      if (n != &node_ && n->id() != anchor) order.push_back(n);
    std::string out;
    for (std::size_t i = 0; i < order.size() && i < most; ++i) {
      out += (i ? ", " : "") + described(*order[i]);
      if (is_fixed(*order[i])) out += " placed before";
      else if (!order[i]->device().empty()) out += " asking for '" + order[i]->device() + "'";
      if (order[i]->id() == anchor) out += ", whose request counts";
    }
    if (order.size() > most) out += " and " + std::to_string(order.size() - most) + " more";
    return out;
  }

  std::string list(const std::vector<int>& devices) const {
    std::string out;
    for (std::size_t i = 0; i < devices.size() && i < most; ++i) out += (i ? ", " : "") + record_.devices.devices()[at(devices[i])].name;
    return devices.size() > most ? out + " and " + std::to_string(devices.size() - most) + " more" : out;
  }

  // The first member that has no kernel on the device.
  std::string without_kernel(std::size_t device) const {
    for (const node* n : members_)
      if (record_.has_kernels[at(record_.own_support[at(n->id())])][device] == 0) return "no kernel for op '" + n->op() + "'" + (n == &node_ ? "" : " of '" + n->name() + "'");
    return "no kernels for all that share it";
  }

  // One line per reason.
  std::string left_out() const {
    const open_devices& open = record_.open[at(made_.open)];
    std::vector<char> is_open(record_.devices.size(), 0);
    for (const int device : open.devices) is_open[at(device)] = 1;
    std::vector<std::pair<std::string, std::vector<int>>> reasons;
    for (std::size_t i = 0; i < is_open.size(); ++i) {
      if (is_open[i] != 0) continue;
      const std::string why = matches(open.request, record_.devices.names()[i]) ? without_kernel(i) : "not in '" + to_text(open.request) + "'";
      std::size_t k = 0;
      while (k < reasons.size() && reasons[k].first != why) ++k;
      if (k == reasons.size()) reasons.emplace_back(why, std::vector<int>());
      reasons[k].second.push_back(static_cast<int>(i));
    }
    std::string out;
    for (const auto& [why, devices] : reasons) out += "  left out: " + list(devices) + " (" + why + ")\n";
    return out;
  }

  std::string decision() const {
    for (const node* n : members_)
      if (is_fixed(*n)) return n == &node_ ? "an earlier placement, or whoever assigned it" : "'" + n->name() + "', which was placed before";
    if (made_.by_placer) return "placer '" + record_.placer + "': " + record_.words->text_of(made_.reason);
    const open_devices& open = record_.open[at(made_.open)];
    if (open.devices.size() == 1) return std::string("only one device is open") + (open.soft ? ", after soft placement has dropped what cannot be had" : "");
    return "TensorFlow's rules: " + record_.words->text_of(made_.reason) + (open.soft ? ", after soft placement has dropped what cannot be had" : "");
  }

  const placement_record& record_;
  const node& node_;
  const std::size_t root_;
  const colocation_member& group_;
  const group_choice& made_;
  std::vector<const node*> members_;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::size_t placement::looked_at() const noexcept { return record_ == nullptr ? 0 : record_->looked_at; }

WEFT_DECL std::string placement::explain(const node& n) const {
  const placed_node where = (*this)[checked(n)];
  if (record_ == nullptr) return "'" + n.name() + "' (" + n.op() + (n.site().known() ? ", " + n.site().text() : "") + ") runs on " + where.device + "\n  because: " + where.reason + "\n";
  if (record_->resumed == nullptr) return detail::placement_story(*record_, n).tell(where);
  return detail::placement_story(*detail::place_anew(record_->graph, *record_->resumed, record_->devices).record(), n).tell(where);
}

}  // namespace weft
#endif

#endif
