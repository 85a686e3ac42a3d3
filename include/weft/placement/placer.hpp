#ifndef WEFT_PLACEMENT_PLACER_HPP
#define WEFT_PLACEMENT_PLACER_HPP
// Chooses a device for every node of a graph: a pure function in numbered passes, in time linear in the graph.

#include <weft/core/config.hpp>
#include <weft/placement/colocation.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/placement/placement.hpp>

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft {

/// Places every node of the graph. Requests come from device scopes and colocation; users of a variable or another resource follow it;
/// constants follow their consumers if those agree. A node that asks for nothing goes to the first device of the session's task.
/// Throws INVALID_ARGUMENT about the node when a request cannot be met. Follows TensorFlow's Placer.
placement place(const graph& g, const device_set& devices, const placement_options& options = {});

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

class placer {
 public:
  placer(std::vector<const node*> nodes, const device_set& devices, const placement_options& options)
      : nodes_(std::move(nodes)), devices_(devices), options_(options), groups_(nodes_, devices_, options_) {}

  placement run();

 private:
  // How the device of a group came about.
  struct choice {
    int device = -1;
    bool soft = false;
    std::string reason;
  };
  struct candidates {
    std::vector<int> devices;
    bool soft = false;
  };

  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
  static bool is_generator(const node& n) noexcept { return n.inputs().empty() && n.output_count() == 1 && !n.outputs()[0].is_ref; }
  static bool is_metadata(const node& n) noexcept { return n.op() == "Shape" || n.op() == "Size" || n.op() == "Rank"; }

  void rank_devices();
  void place(const node& n);
  void place_generator(const node& n);
  void settle(const node& n, int device, bool soft, std::string reason);
  const candidates& candidates_of(const node& n);
  std::vector<int> matching(int request, int support);
  bool can_run(const candidates& c, int device) const { return std::find(c.devices.begin(), c.devices.end(), device) != c.devices.end(); }
  std::string reason_of(const node& n);
  std::string soft_reason(const device_name& asked) const;
  [[noreturn]] void refuse(const node& n);
  [[noreturn]] void refuse_task(const node& n, const device_name& asked) const;
  std::string device_list() const;

  const std::vector<const node*> nodes_;
  const device_set& devices_;
  const placement_options& options_;
  colocation groups_;
  std::vector<int> rank_;  // by device: its place when only types, tasks and names count
  std::vector<choice> chosen_;  // by root of a group
  std::deque<candidates> candidates_;
  std::unordered_map<std::uint64_t, int> known_candidates_;  // request and support -> place in candidates_
  std::vector<std::vector<int>> consumers_;
};

WEFT_DECL placement placer::run() {
  if (devices_.empty()) fail(error_code::failed_precondition, "no devices are registered; add at least one to the device_set");
  rank_devices();

  // 1. Requests, kernels, and who must share a device with whom.
  groups_.run();

  // 2. Everything but generators, in the order of creation. The first member of a group decides for all.
  chosen_.resize(nodes_.size());
  consumers_.resize(nodes_.size());
  std::vector<const node*> generators;
  for (const node* n : nodes_) {
    for (const output& in : n->inputs()) consumers_[at(in.from->id())].push_back(n->id());
    for (const node* before : n->control_inputs()) consumers_[at(before->id())].push_back(n->id());
    if (is_generator(*n)) generators.push_back(n);
    else place(*n);
  }

  // 3. Generators (constants, placeholders, handles), which follow their consumers if those are all on one device.
  for (const node* n : generators) place_generator(*n);

  // 4. The answer, with a reason for each node.
  std::vector<placed_node> out;
  out.reserve(nodes_.size());
  for (const node* n : nodes_) out.push_back({devices_.devices()[at(chosen_[at(groups_.root(n->id()))].device)].name, reason_of(*n)});
  return placement(std::move(out));
}

// By type, then the session's own task before others, then the full name.
WEFT_DECL void placer::rank_devices() {
  const std::string home = options_.default_task.empty() ? devices_.tasks().front() : task_text(parse_device_name(options_.default_task));
  struct key {
    std::pair<int, std::string> type;
    bool away;
    std::string name;
    int device;
  };
  std::vector<key> keys;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const device_name& name = devices_.names()[i];
    const bool away = options_.order == placement_order::session_task && task_text(name) != home;
    keys.push_back({devices_.rank_of(*name.type), away, to_full_text(name), static_cast<int>(i)});
  }
  std::sort(keys.begin(), keys.end(), [](const key& a, const key& b) {
    if (a.type != b.type) return a.type < b.type;
    return a.away != b.away ? b.away : a.name < b.name;
  });
  rank_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) rank_[at(keys[i].device)] = static_cast<int>(i);
}

WEFT_DECL void placer::settle(const node& n, int device, bool soft, std::string reason) {
  chosen_[at(groups_.root(n.id()))] = {device, soft, std::move(reason)};
}

WEFT_DECL void placer::place(const node& n) {
  if (chosen_[at(groups_.root(n.id()))].device >= 0) return;
  const candidates& c = candidates_of(n);
  if (is_metadata(n) && !n.inputs().empty()) {
    const node& input = *n.inputs()[0].from;
    const int device = chosen_[at(groups_.root(input.id()))].device;
    if (device >= 0 && can_run(c, device)) return settle(n, device, c.soft, "with its input '" + input.name() + "'");
  }
  settle(n, c.devices.front(), c.soft, "default device");
}

WEFT_DECL void placer::place_generator(const node& n) {
  if (chosen_[at(groups_.root(n.id()))].device >= 0) return;
  const candidates& c = candidates_of(n);
  const std::vector<int>& users = consumers_[at(n.id())];
  const auto device_of = [&](int id) { return chosen_[at(groups_.root(id))].device; };
  const bool together = !users.empty() && std::all_of(users.begin(), users.end(), [&](int id) { return device_of(id) == device_of(users[0]); });
  if (together && device_of(users[0]) >= 0 && can_run(c, device_of(users[0])))
    return settle(n, device_of(users[0]), c.soft, std::string("with its consumer") + (users.size() > 1 ? "s '" : " '") + nodes_[at(users[0])]->name() + (users.size() > 1 ? "', ..." : "'"));
  settle(n, c.devices.front(), c.soft, "default device");
}

WEFT_DECL const placer::candidates& placer::candidates_of(const node& n) {
  const colocation_member& group = groups_.group(n.id());
  const auto [known, fresh] = known_candidates_.emplace(pair_key(group.requested, group.support), static_cast<int>(candidates_.size()));
  if (!fresh) return candidates_[at(known->second)];
  candidates c;
  c.devices = matching(group.requested, group.support);
  if (c.devices.empty() && options_.allow_soft_placement) {
    device_name asked = groups_.constraint(group.requested);
    if (!groups_.constraint(group.assigned).type) asked.type.reset();
    if (!groups_.constraint(group.assigned).id) asked.id.reset();
    c.devices = matching(groups_.constraints().number(asked), group.support);
    c.soft = true;
  }
  if (c.devices.empty()) refuse(n);
  candidates_.push_back(std::move(c));
  return candidates_.back();
}

// Devices that meet a constraint and have the kernels: by priority of the kernel, then by rank.
WEFT_DECL std::vector<int> placer::matching(int request, int support) {
  std::vector<std::pair<int, int>> found;
  std::vector<int> at_rank(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const int* priority = groups_.support().priority(support, i);
    if (priority == nullptr || !matches(groups_.constraint(request), devices_.names()[i])) continue;
    found.emplace_back(-*priority, rank_[i]);
    at_rank[at(rank_[i])] = static_cast<int>(i);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> out;
  for (const auto& entry : found) out.push_back(at_rank[at(entry.second)]);
  return out;
}

WEFT_DECL std::string placer::soft_reason(const device_name& asked) const {
  device_name place = asked;
  place.type.reset();
  place.id.reset();
  const std::string where = place.empty() ? "" : " in " + to_text(place);
  const bool type_exists = std::any_of(devices_.names().begin(), devices_.names().end(), [&](const device_name& d) { return matches(place, d) && d.type == asked.type; });
  const bool exists = std::any_of(devices_.names().begin(), devices_.names().end(), [&](const device_name& d) { return matches(asked, d); });
  if (exists) return "soft: no kernel for " + asked.type.value_or("any") + " devices";
  if (!asked.type || !type_exists) return "soft: no " + asked.type.value_or("such") + " device" + where;
  return "soft: no device " + *asked.type + ":" + std::to_string(asked.id.value_or(0)) + where;
}

WEFT_DECL std::string placer::reason_of(const node& n) {
  const colocation_member& group = groups_.group(n.id());
  const choice& made = chosen_[at(groups_.root(n.id()))];
  const device_name& own = groups_.constraint(groups_.own_request(n.id()));
  const auto pinned = [&](const node& who) { return "pinned" + (who.site().known() ? " at " + who.site().text() : std::string()); };
  if (options_.earlier != nullptr && options_.earlier->has(n)) return options_.earlier->reason_of(n);
  if (!assigned_device(options_, n).empty()) return "assigned before";
  const bool met = !own.empty() && matches(own, devices_.names()[at(made.device)]);
  for (std::size_t i = 0; i < n.inputs().size(); ++i)
    if (shares_resource(n, i)) {
      const node& from = *n.inputs()[i].from;
      const char* what = from.op() == "VarHandleOp" || from.outputs()[0].is_ref ? "variable" : "resource";
      return std::string("with its ") + what + " '" + from.name() + "'" + (own.empty() || met ? "" : ", not '" + to_text(own) + "' as asked");
    }
  if (met) return pinned(n);
  if (!own.empty() && made.soft) return soft_reason(own);
  if (group.size > 1) {
    const int anchor = group.anchor >= 0 ? group.anchor : group.first;
    if (anchor != n.id()) return "colocated with '" + nodes_[at(anchor)]->name() + "'";
  }
  if (!own.empty()) return "soft: the group asks for different devices";
  return made.reason;
}

WEFT_DECL std::string placer::device_list() const {
  std::vector<std::string> names;
  for (const device& d : devices_.devices()) names.push_back(d.name);
  std::sort(names.begin(), names.end());
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 32; ++i) out += (i ? ", " : "") + names[i];
  return names.size() > 32 ? out + " and " + std::to_string(names.size() - 32) + " more" : out;
}

WEFT_DECL void placer::refuse_task(const node& n, const device_name& asked) const {
  const bool is_job = std::none_of(devices_.names().begin(), devices_.names().end(), [&](const device_name& d) { return d.job == asked.job; });
  std::string known;
  for (std::size_t i = 0; i < devices_.tasks().size() && i < 32; ++i) known += (i ? ", " : "") + devices_.tasks()[i];
  if (devices_.tasks().size() > 32) known += " and " + std::to_string(devices_.tasks().size() - 32) + " more";
  std::string text = "asks for device '" + to_text(asked) + "', but ";
  if (devices_.is_local() && asked.job && is_job) text += "the session is local; pass the server's target (the local session has only " + known + ")";
  else text += "the cluster has the task" + std::string(devices_.tasks().size() > 1 ? "s " : " ") + known;
  n.fail_about(error_code::invalid_argument, std::move(text));
}

// Nothing fits: says which part of the request is to blame.
WEFT_DECL void placer::refuse(const node& n) {
  const colocation_member& group = groups_.group(n.id());
  const device_name& wanted = groups_.constraint(group.requested);
  const node& asking = group.anchor < 0 ? n : *nodes_[at(group.anchor)];
  device_name task = wanted;
  task.type.reset();
  task.id.reset();
  const auto exists = [&](const device_name& name) {
    return std::any_of(devices_.names().begin(), devices_.names().end(), [&](const device_name& d) { return matches(name, d); });
  };
  if (!exists(task)) refuse_task(asking, wanted);
  if (!exists(wanted))
    asking.fail_about(error_code::invalid_argument, "asks for device '" + to_text(wanted) + "', but the devices are " + device_list() +
                      "; choose one of them, or allow soft placement");
  const std::string types = groups_.support().text(group.support);
  if (group.size > 1 && group.anchor != n.id())
    n.fail_about(error_code::invalid_argument, "is colocated with '" + asking.name() + "'" + (asking.site().known() ? " (" + asking.site().text() + ")" : "") +
                 ", which needs device '" + to_text(wanted) + "', but the group has kernels only for " + types + " devices");
  n.fail_about(error_code::invalid_argument, (wanted.empty() ? "no device of the cluster has its kernel" : "asks for device '" + to_text(wanted) + "', but op '" + n.op() + "' has no kernel there") +
               "; its kernels are for " + types + " devices" + (options_.allow_soft_placement ? "" : ". Choose such a device, or allow soft placement"));
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL placement place(const graph& g, const device_set& devices, const placement_options& options) {
  return detail::placer(g.nodes(), devices, options).run();
}

}  // namespace weft
#endif

#endif
