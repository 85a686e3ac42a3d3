#ifndef WEFT_PLACEMENT_PLACER_HPP
#define WEFT_PLACEMENT_PLACER_HPP
// Chooses a device for every node of a graph: a pure function in numbered passes, in time linear in the graph.

#include <weft/core/config.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/placement/placement.hpp>
#include <weft/placement/placer_interface.hpp>

#include <memory>
#include <string>
#if WEFT_HAS_BODIES
#include <weft/placement/colocation.hpp>
#include <weft/placement/story.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>
#endif

namespace weft {

/// Places every node of the graph. Requests come from device scopes and colocation; users of a variable or another resource follow it;
/// constants follow their consumers if those agree. A node that asks for nothing goes to the first device of the session's task, or where `options.placer` sends it.
/// Throws INVALID_ARGUMENT about the node when a request cannot be met, or when the placer's choice cannot be. Follows TensorFlow's Placer.
placement place(const graph& g, const device_set& devices, const placement_options& options = {});

/// The story of one node, as `placement::explain` tells it: places the graph and asks.
std::string explain(const graph& g, const device_set& devices, const node& n, const placement_options& options = {});

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

class rule_placer {
 public:
  // `resumes`: only what was added since `options.earlier` is placed, and `nodes` are numbered so.
  rule_placer(std::shared_ptr<graph_state> g, numbered_nodes nodes, bool resumes, const device_set& devices, const placement_options& options)
      : graph_(std::move(g)), resumes_(resumes), nodes_(std::move(nodes)), devices_(devices), options_(options), groups_(nodes_, devices_, options_), words_(graph_), by_default_(words_.text("default device")) {
    for (const device& d : devices_.devices()) words_.device(d.name);
  }

  placement run();

 private:
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }
  bool is_generator(const node& n) const noexcept { return groups_.has(n, colocation::generator); }

  std::string home() const;
  void rank_devices();
  void find_consumers();
  void follow_rules();
  void ask_placer();
  std::vector<placement_choice> answer_of(const placer& asked, const placement_question& question) const;
  void place(const node& n);
  void place_generator(const node& n);
  void settle(const node& n, int device, int open, placed_reason reason, bool by_placer = false);
  int open_to(const node& n);
  int known_device(const node& n);
  std::vector<int> matching(const device_name& request, int support);
  group_choice& choice_of(const node& n) { return chosen_[at(groups_.root(n))]; }
  bool can_run(int open, int device) const { return std::find(open_[at(open)].devices.begin(), open_[at(open)].devices.end(), device) != open_[at(open)].devices.end(); }
  placed_reason reason_of(const node& n);
  placed_reason pinned_at(const call_site& site);
  std::string soft_reason(const device_name& asked) const;
  bool meets(int constraint, int device);
  std::shared_ptr<const placement_record> record(const std::shared_ptr<const placed_words>& words);
  [[noreturn]] void refuse(const node& n);
  [[noreturn]] void refuse_task(const node& n, const device_name& asked) const;
  std::string task_list() const;
  std::string device_list() const;

  const std::shared_ptr<graph_state> graph_;
  const bool resumes_;
  numbered_nodes nodes_;
  const device_set& devices_;
  const placement_options& options_;
  colocation groups_;
  std::vector<int> rank_;  // by device: its place when only types, tasks and names count
  std::vector<group_choice> chosen_;  // by root of a group
  std::deque<open_devices> open_;
  std::unordered_map<std::uint64_t, int> known_open_;  // request and support -> place in open_
  // Who reads or waits for a generator, in the order of creation: by number of a node, from where to where in consumers_.
  std::vector<int> consumers_begin_, consumers_;
  placed_words_in_the_making words_;
  const placed_reason by_default_;
  std::map<std::pair<const char*, int>, placed_reason> pinned_;
  call_site last_site_;
  placed_reason last_pinned_{};
  std::vector<std::pair<int, bool>> last_met_;  // by constraint: the device that was looked at, and whether it meets it
  std::uint64_t last_request_ = 0;  // of `open_to`
  int last_open_ = -1;
};

WEFT_DECL placement rule_placer::run() {
  if (devices_.empty()) fail(error_code::failed_precondition, "no devices are registered; add at least one to the device_set");
  rank_devices();

  // 1. Requests, kernels, and who must share a device with whom.
  groups_.run();
  find_consumers();

  // 2. TensorFlow's rules; then the placer's choices, and the rules again for what it leaves to them.
  chosen_.resize(nodes_.size());
  follow_rules();
  if (options_.placer != nullptr) {
    ask_placer();
    follow_rules();
  }

  // 3. The answer, with a reason for each node.
  std::vector<placed_row> out;
  out.reserve(nodes_.size());
  for (const node* n : nodes_)
    if (nodes_(*n) >= nodes_.placed()) out.push_back({choice_of(*n).device, reason_of(*n)});
  const std::shared_ptr<const placed_words> words = words_.take();
  return placement(resumes_ ? *options_.earlier : placement(), words, std::move(out), record(words));
}

// Counted, then filled in.
WEFT_DECL void rule_placer::find_consumers() {
  consumers_begin_.assign(nodes_.size() + 1, 0);
  for (const auto& use : groups_.generator_uses()) ++consumers_begin_[at(use.first) + 1];
  for (std::size_t i = 0; i < nodes_.size(); ++i) consumers_begin_[i + 1] += consumers_begin_[i];
  consumers_.resize(groups_.generator_uses().size());
  std::vector<int> next(consumers_begin_.begin(), consumers_begin_.end() - 1);
  for (const auto& use : groups_.generator_uses()) consumers_[at(next[at(use.first)]++)] = use.second;
}

// Everything but generators (constants, placeholders, handles), in the order of creation; the first member of a group decides for all. Then the generators, which follow their consumers if those are
// all on one device.
WEFT_DECL void rule_placer::follow_rules() {
  for (const node* n : nodes_)
    if (!is_generator(*n)) place(*n);
  for (const node* n : nodes_)
    if (is_generator(*n)) place_generator(*n);
}

WEFT_DECL void rule_placer::ask_placer() {
  // 1. The question.
  placement_question question{devices_, home(), {}, std::vector<int>(nodes_.size())};
  std::vector<int> number(nodes_.size(), -1);  // by root
  for (const node* n : nodes_) {
    int& group = number[at(groups_.root(*n))];
    if (group < 0) {
      group = static_cast<int>(question.groups.size());
      const group_choice& rules = choice_of(*n);
      question.groups.push_back({{}, &open_[at(rules.open)].devices, rules.device});
    }
    question.groups[at(group)].nodes.push_back(n);
    question.group_of[at(n->id())] = group;
  }

  // 2. The answer, which may only name open devices. What it says of a group without a choice says nothing.
  const std::vector<placement_choice> answer = answer_of(*options_.placer, question);
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const node& first = *question.groups[i].nodes[0];
    group_choice& made = choice_of(first);
    const int open = made.open;
    if (answer[i].device >= 0 && !can_run(open, answer[i].device))
      first.fail_about(error_code::invalid_argument, "placer '" + options_.placer->name() + "' chose " +
                       (at(answer[i].device) < devices_.size() ? "'" + devices_.devices()[at(answer[i].device)].name + "'" : "device number " + std::to_string(answer[i].device) + " of " + std::to_string(devices_.size())) +
                       "; open to it are " + device_names(devices_, open_[at(open)].devices));
    made = {};
    if (answer[i].device >= 0 && open_[at(open)].devices.size() > 1)
      settle(first, answer[i].device, open, words_.text(answer[i].reason.empty() ? "chosen by '" + options_.placer->name() + "'" : answer[i].reason), true);
  }
}

WEFT_DECL std::vector<placement_choice> rule_placer::answer_of(const placer& asked, const placement_question& question) const {
  std::vector<placement_choice> out;
  try {
    out = asked.choose(question);
  } catch (const error& e) {
    status s = e.status();
    s.message = "placer '" + asked.name() + "': " + s.message;
    throw error(std::move(s));
  } catch (const std::exception& e) {
    fail(error_code::unknown, "placer '" + asked.name() + "': " + e.what());
  }
  if (out.size() != question.groups.size())
    fail(error_code::invalid_argument, "placer '" + asked.name() + "' answered for " + std::to_string(out.size()) + " groups of nodes, expected " + std::to_string(question.groups.size()));
  return out;
}

// The session's task.
WEFT_DECL std::string rule_placer::home() const {
  if (options_.default_task.empty()) return devices_.tasks().front();
  std::string task = task_text(parse_device_name(options_.default_task));
  if (std::find(devices_.tasks().begin(), devices_.tasks().end(), task) == devices_.tasks().end())
    fail(error_code::invalid_argument, "the session's task '" + options_.default_task + "' has no devices; tasks that have are " + task_list());
  return task;
}

// By type, then the session's own task before others, then the full name.
WEFT_DECL void rule_placer::rank_devices() {
  const std::string own = home();
  struct key {
    std::pair<int, std::string> type;
    bool away;
    std::string name;
    int device;
  };
  std::vector<key> keys;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const device_name& name = devices_.names()[i];
    const bool away = options_.order == placement_order::session_task && task_text(name) != own;
    keys.push_back({devices_.rank_of(*name.type), away, to_full_text(name), static_cast<int>(i)});
  }
  std::sort(keys.begin(), keys.end(), [](const key& a, const key& b) {
    if (a.type != b.type) return a.type < b.type;
    return a.away != b.away ? b.away : a.name < b.name;
  });
  rank_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) rank_[at(keys[i].device)] = static_cast<int>(i);
}

WEFT_DECL void rule_placer::settle(const node& n, int device, int open, placed_reason reason, bool by_placer) {
  choice_of(n) = {device, by_placer, open, reason};
}

WEFT_DECL void rule_placer::place(const node& n) {
  if (choice_of(n).device >= 0) return;
  const int open = open_to(n);
  if (groups_.has(n, colocation::metadata) && !n.inputs().empty()) {
    const node& input = *n.inputs()[0].from;
    const int device = known_device(input);
    if (device >= 0 && can_run(open, device)) return settle(n, device, open, words_.about(reason_kind::input, input));
  }
  settle(n, open_[at(open)].devices.front(), open, by_default_);
}

WEFT_DECL void rule_placer::place_generator(const node& n) {
  if (choice_of(n).device >= 0) return;
  const int open = open_to(n);
  const int *const users = consumers_.data() + consumers_begin_[at(nodes_(n))], *const users_end = consumers_.data() + consumers_begin_[at(nodes_(n)) + 1];
  const auto device_of = [&](int number) { return chosen_[at(groups_.root(number))].device; };
  const bool together = users != users_end && std::all_of(users, users_end, [&](int number) { return device_of(number) == device_of(users[0]); });
  if (together && device_of(users[0]) >= 0 && can_run(open, device_of(users[0])))
    return settle(n, device_of(users[0]), open, words_.about(users_end - users > 1 ? reason_kind::consumers : reason_kind::consumer, *nodes_[at(users[0])]));
  settle(n, open_[at(open)].devices.front(), open, by_default_);
}

// Where a node is; -1 when that is not decided yet.
WEFT_DECL int rule_placer::known_device(const node& n) {
  const std::string& fixed = assigned_device(options_, n);
  if (fixed.empty()) return choice_of(n).device;
  const weft::device* found = devices_.find(fixed);
  return found == nullptr ? -1 : static_cast<int>(found - devices_.devices().data());
}

// The devices that are left to a node's group, as a place in `open_`.
WEFT_DECL int rule_placer::open_to(const node& n) {
  const colocation_member& group = groups_.group(n);
  const std::uint64_t request = pair_key(group.requested, group.support);
  if (last_open_ >= 0 && request == last_request_) return last_open_;
  if (const auto known = known_open_.find(request); known != known_open_.end()) {
    last_request_ = request;
    return last_open_ = known->second;
  }
  open_devices open;
  open.request = groups_.constraint(group.requested);
  open.devices = matching(open.request, group.support);
  if (open.devices.empty() && options_.allow_soft_placement) {
    if (!groups_.constraint(group.assigned).type) open.request.type.reset();
    if (!groups_.constraint(group.assigned).id) open.request.id.reset();
    open.devices = matching(open.request, group.support);
    open.soft = true;
  }
  if (open.devices.empty()) refuse(n);
  open_.push_back(std::move(open));
  return known_open_[request] = static_cast<int>(open_.size()) - 1;
}

// Devices that meet a constraint and have the kernels: by priority of the kernel, then by rank.
WEFT_DECL std::vector<int> rule_placer::matching(const device_name& request, int support) {
  std::vector<std::pair<int, int>> found;
  std::vector<int> at_rank(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const int* priority = groups_.support().priority(support, i);
    if (priority == nullptr || !matches(request, devices_.names()[i])) continue;
    found.emplace_back(-*priority, rank_[i]);
    at_rank[at(rank_[i])] = static_cast<int>(i);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> out;
  for (const auto& entry : found) out.push_back(at_rank[at(entry.second)]);
  return out;
}

WEFT_DECL std::string rule_placer::soft_reason(const device_name& asked) const {
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

// Many nodes are made by one line.
WEFT_DECL placed_reason rule_placer::pinned_at(const call_site& site) {
  if (site.file == last_site_.file && site.line == last_site_.line && !pinned_.empty()) return last_pinned_;
  const auto [known, fresh] = pinned_.emplace(std::make_pair(site.file, site.line), placed_reason());
  if (fresh) known->second = words_.text(site.known() ? "pinned at " + site.text() : "pinned");
  last_site_ = site;
  return last_pinned_ = known->second;
}

WEFT_DECL placed_reason rule_placer::reason_of(const node& n) {
  const colocation_member& group = groups_.group(n);
  const group_choice& made = choice_of(n);
  const int request = groups_.own_request(n);
  if (options_.earlier != nullptr && options_.earlier->has(n)) return words_.text(options_.earlier->reason_of(n));
  if (!assigned_device(options_, n).empty()) return words_.text("assigned before");
  const device_name& own = groups_.constraint(request);
  const bool met = request != 0 && meets(request, made.device);
  if (made.by_placer && nodes_(n) == (group.anchor >= 0 ? group.anchor : group.first))
    return met ? words_.text(words_.words().text_of(made.reason) + ", within '" + to_text(own) + "' " + words_.words().text_of(pinned_at(n.site()))) : made.reason;
  if (groups_.has(n, colocation::takes_resource))
    for (std::size_t i = 0; i < n.inputs().size(); ++i)
      if (shares_resource(n, i)) {
        const node& from = *n.inputs()[i].from;
        const placed_reason with = words_.about(groups_.has(from, colocation::variable) ? reason_kind::variable : reason_kind::resource, from);
        return request == 0 || met ? with : words_.text(words_.words().text_of(with) + ", not '" + to_text(own) + "' as asked");
      }
  if (met) return pinned_at(n.site());
  if (request != 0 && open_[at(made.open)].soft) return words_.text(soft_reason(own));
  if (group.size > 1) {
    const int anchor = group.anchor >= 0 ? group.anchor : group.first;
    if (anchor != nodes_(n)) return words_.about(reason_kind::colocated, *nodes_[at(anchor)]);
  }
  if (request != 0) return words_.text("soft: the group asks for different devices");
  return made.reason;
}

// Whether a device is what a constraint asks for. Those who ask the same are mostly on the same device.
WEFT_DECL bool rule_placer::meets(int constraint, int device) {
  if (at(constraint) >= last_met_.size()) last_met_.resize(at(constraint) + 1, {-1, false});
  auto& last = last_met_[at(constraint)];
  if (last.first != device) last = {device, matches(groups_.constraint(constraint), devices_.names()[at(device)])};
  return last.second;
}

// What `explain` reads; nothing is asked of the passes any more.
WEFT_DECL std::shared_ptr<const placement_record> rule_placer::record(const std::shared_ptr<const placed_words>& words) {
  auto out = std::make_shared<placement_record>();
  out->words = words;
  out->graph = graph_;
  out->looked_at = nodes_.size();
  out->devices = devices_;
  out->classes_without_owner = groups_.classes_without_owner();
  if (resumes_) {
    const std::size_t size = options_.earlier->size() + nodes_.size() - at(nodes_.placed());
    for (const auto& [name, who] : options_.earlier->record()->classes_without_owner) {
      const node* owner = graph_->find(name);
      if (owner == nullptr || at(owner->id()) >= size) out->classes_without_owner[name] = who;
    }
    out->resumed = std::make_shared<const resumed_placement>(resumed_placement{options_, placement(*options_.earlier, nullptr, {}, nullptr), size});
    return out;
  }
  out->has_kernels.resize(groups_.support().size(), std::vector<char>(devices_.size()));
  for (std::size_t i = 0; i < out->has_kernels.size(); ++i)
    for (std::size_t device = 0; device < devices_.size(); ++device) out->has_kernels[i][device] = groups_.support().priority(static_cast<int>(i), device) != nullptr;
  if (options_.earlier != nullptr || !options_.assigned.empty())
    for (const node* n : nodes_) out->fixed.push_back(!assigned_device(options_, *n).empty());
  out->groups = groups_.take_members();
  out->own_support = groups_.take_own_support();
  out->chosen = std::move(chosen_);
  out->open = std::move(open_);
  out->nodes = nodes_.take();
  if (options_.placer != nullptr) out->placer = options_.placer->name();
  return out;
}

WEFT_DECL std::string rule_placer::task_list() const {
  std::string out;
  for (std::size_t i = 0; i < devices_.tasks().size() && i < 32; ++i) out += (i ? ", " : "") + devices_.tasks()[i];
  return devices_.tasks().size() > 32 ? out + " and " + std::to_string(devices_.tasks().size() - 32) + " more" : out;
}

WEFT_DECL std::string rule_placer::device_list() const {
  std::vector<std::string> names;
  for (const device& d : devices_.devices()) names.push_back(d.name);
  std::sort(names.begin(), names.end());
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 32; ++i) out += (i ? ", " : "") + names[i];
  return names.size() > 32 ? out + " and " + std::to_string(names.size() - 32) + " more" : out;
}

WEFT_DECL void rule_placer::refuse_task(const node& n, const device_name& asked) const {
  const bool is_job = std::none_of(devices_.names().begin(), devices_.names().end(), [&](const device_name& d) { return d.job == asked.job; });
  const std::string known = task_list();
  std::string text = "asks for device '" + to_text(asked) + "', but ";
  if (devices_.is_local() && asked.job && is_job) text += "the session is local; pass the server's target (the local session has only " + known + ")";
  else text += std::string(options_.filtered_by.empty() ? "the cluster has" : "the session sees only") + " the task" + (devices_.tasks().size() > 1 ? "s " : " ") + known;
  if (!options_.filtered_by.empty()) text += " (" + options_.filtered_by + ")";
  n.fail_about(error_code::invalid_argument, std::move(text));
}

// Nothing fits: says which part of the request is to blame.
WEFT_DECL void rule_placer::refuse(const node& n) {
  const colocation_member& group = groups_.group(n);
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
  if (group.size > 1 && group.anchor != nodes_(n))
    n.fail_about(error_code::invalid_argument, "is colocated with '" + asking.name() + "'" + (asking.site().known() ? " (" + asking.site().text() + ")" : "") +
                 ", which needs device '" + to_text(wanted) + "', but the group has kernels only for " + types + " devices");
  n.fail_about(error_code::invalid_argument, (wanted.empty() ? "no device of the cluster has its kernel" : "asks for device '" + to_text(wanted) + "', but op '" + n.op() + "' has no kernel there") +
               "; its kernels are for " + types + " devices" + (options_.allow_soft_placement ? "" : ". Choose such a device, or allow soft placement"));
}

}  // namespace weft::detail

namespace weft::detail {

// Placed nodes that the new ones must share a device with: whose resource they use, whose class they name, and who named a class that they own.
WEFT_DECL std::vector<const node*> placed_neighbours(const graph_state& g, const std::vector<const node*>& fresh, const placement& earlier) {
  std::vector<const node*> out;
  const auto meet = [&](const node* n) {
    if (n != nullptr && earlier.has(*n)) out.push_back(n);
  };
  const auto& unowned = earlier.record()->classes_without_owner;
  const auto meet_class = [&](const std::string& name) {
    if (const auto it = unowned.find(name); it != unowned.end()) meet(it->second);
  };
  for (const node* n : fresh) {
    for (std::size_t i = 0; i < n->inputs().size(); ++i)
      if (shares_resource(*n, i)) meet(n->inputs()[i].from);
    meet_class(n->name());
    for_each_class(*n, [&](const std::string& name) {
      meet(g.find(name));
      meet_class(name);
    });
  }
  std::sort(out.begin(), out.end(), [](const node* a, const node* b) { return a->id() < b->id(); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

WEFT_DECL placement place_anew(const std::shared_ptr<graph_state>& g, const resumed_placement& what, const device_set& devices) {
  std::vector<const node*> nodes = g->nodes();
  nodes.resize(what.size);
  placement_options options = what.options;
  options.earlier = &what.earlier;
  return rule_placer(g, numbered_nodes(std::move(nodes)), false, devices, options).run();
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL placement place(const graph& g, const device_set& devices, const placement_options& options) {
  const placement* earlier = options.earlier;
  if (earlier != nullptr && !devices.empty() && !earlier->is_of(*g.state())) fail(error_code::invalid_argument, "the earlier placement is of another graph");
  // A placer is asked about the whole graph; of a placement that somebody else has made not enough is known; and of a task whose kernels have become known since, that it has those of the nodes there.
  if (earlier == nullptr || earlier->record() == nullptr || earlier->record()->devices != devices || options.placer != nullptr) return detail::rule_placer(g.state(), detail::numbered_nodes(g.nodes()), false, devices, options).run();
  const std::vector<const node*> fresh = g.state()->nodes_from(earlier->size());
  if (fresh.empty() && !devices.empty()) return *earlier;
  detail::numbered_nodes nodes(detail::placed_neighbours(*g.state(), fresh, *earlier), fresh, earlier->size());
  return detail::rule_placer(g.state(), std::move(nodes), true, devices, options).run();
}

WEFT_DECL std::string explain(const graph& g, const device_set& devices, const node& n, const placement_options& options) { return place(g, devices, options).explain(n); }

}  // namespace weft
#endif

#endif
