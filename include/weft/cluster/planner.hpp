#ifndef WEFT_CLUSTER_PLANNER_HPP
#define WEFT_CLUSTER_PLANNER_HPP
// From a step's signature to registered parts: contacts the tasks that the step needs and no others, places, partitions, and
// registers a part with each of them. Lives on the io thread of the master; what it waits for has a deadline.

#include <weft/cluster/peers.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/cluster/worker.hpp>
#include <weft/core/config.hpp>
#include <weft/partition/partition.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace weft::detail {

/// What one task does for a step.
struct plan_part {
  task_id task;
  std::uint64_t incarnation = 0;
  /// By index of the part's feeds and fetches: the position among those of the step.
  std::vector<std::size_t> feeds, fetches;
};

struct master_session;

/// A prepared step.
struct step_plan {
  std::uint64_t handle = 0;
  numbered_signature signature;
  std::weak_ptr<master_session> session;
  /// Number under which its parts are registered, and they; empty until it is ready.
  std::uint64_t registration = 0;
  std::vector<plan_part> parts;
  /// What its fetches are of.
  std::vector<dtype> fetched;
  bool ready = false;
  /// Something went wrong with its tasks: it must be prepared anew before it runs again.
  bool stale = false;
  std::vector<std::function<void(const status&)>> waiting;
  std::uint64_t last_used = 0;
};

/// A client's session.
struct master_session {
  /// Throws INVALID_ARGUMENT for a filter that is no device name.
  master_session(std::uint64_t number, const open_session_message& how, const op_registry& ops) : id(number), options(how), graph(ops) {
    for (const std::string& each : how.device_filters) filters.push_back(parse_device_name(each));
  }
  /// Whether the session may use a task.
  bool sees(const task_id& task) const {
    const auto names = [&](const device_name& f) { return (!f.job || *f.job == task.job) && (!f.task || *f.task == task.index) && f.replica.value_or(0) == 0; };
    return filters.empty() || std::any_of(filters.begin(), filters.end(), names);
  }
  /// Whether the session may use a device.
  bool sees(const std::string& device) const {
    const device_name name = parse_device_name(device);
    return filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const device_name& f) { return matches(f, name); });
  }
  std::uint64_t id;
  open_session_message options;
  std::vector<device_name> filters;
  weft::graph graph;
  /// Where nodes were placed; they do not move. Never changed, only replaced.
  std::shared_ptr<const placement> placed = std::make_shared<const placement>();
  /// Nodes whose placement the client knows.
  std::size_t reported = 0;
  /// The start of each task that the session's state depends on.
  std::map<task_id, std::uint64_t> incarnations;
  std::map<numbered_signature, std::shared_ptr<step_plan>> plans;
  bool closed = false;
  status closed_for;
  /// Messages whose nodes are being read.
  std::size_t reading = 0;

  /// Lines about nodes that were placed since the last call.
  std::vector<placement_line> new_placements() {
    std::vector<placement_line> out;
    for (; reported < placed->size(); ++reported) {
      const placed_node& n = (*placed)[reported];
      out.push_back({static_cast<std::uint32_t>(reported), n.device, n.reason});
    }
    return out;
  }
};

/// See the head of this file.
class planner {
 public:
  planner(task_context& own, peers& roads, worker& here) : own_(own), roads_(roads), here_(here) {}

  /// Makes a plan ready; `done` may be called at once. Several callers share one preparation.
  void prepare(const std::shared_ptr<step_plan>& plan, std::function<void(const status&)> done);
  /// The parts of a prepared step as they were registered.
  partitioned_graph partitions(const step_plan& plan) const;
  void take_registered(const task_id& from, const part_registered_message& answer);
  /// The road to a task is lost.
  void lost(const task_id& task, const status& why);
  /// Forgets the registered parts of a plan at their tasks.
  void unregister(step_plan& plan);
  void stop(const status& why);
  /// Asked to make room when a task keeps too many graphs; false when there is nothing to drop.
  std::function<bool(const step_plan& except)> make_room;

 private:
  // A plan in the making.
  struct preparation {
    std::shared_ptr<step_plan> plan;
    std::shared_ptr<master_session> session;
    partition_options what;
    std::vector<const node*> needed;
    placement_options placing;
    std::shared_ptr<const placement> earlier;
    std::optional<placement> where;
    std::optional<partitioned_graph> cut;
    std::set<task_id> contacted;
    int attempts = 0;
  };
  using preparation_ptr = std::shared_ptr<preparation>;
  struct pending_registration {
    preparation_ptr work;
    std::set<task_id> missing;
    std::unique_ptr<asio::steady_timer> deadline;
  };

  void name_step(preparation& work) const;
  void begin(const preparation_ptr& work);
  void contact(const preparation_ptr& work, const std::set<task_id>& tasks);
  void place_nodes(const preparation_ptr& work);
  void check_incarnations(const preparation_ptr& work);
  void cut(const preparation_ptr& work);
  void take_parts(const preparation_ptr& work);
  void build(const preparation_ptr& work, std::function<void()> what, std::function<void()> then);
  void send_parts(const preparation_ptr& work);
  void registered(std::uint64_t number, const task_id& task, const status& result);
  void finish(const preparation_ptr& work, const status& result);
  device_set devices(const preparation& work) const;
  std::map<task_id, std::vector<part_edge>> edges_of(const partitioned_graph& cut) const;
  // Runs a step of the preparation; what it throws ends it.
  template <class F> void guarded(const preparation_ptr& work, F&& step) {
    try {
      step();
    } catch (const error& e) {
      finish(work, e.status());
    } catch (const std::exception& e) {
      finish(work, status(error_code::internal, std::string("preparing the step: ") + e.what()));
    }
  }

  task_context& own_;
  peers& roads_;
  worker& here_;
  std::uint64_t last_registration_ = 0;
  std::map<std::uint64_t, pending_registration> pending_;
  std::optional<status> stopped_;
};

/// The task of a device's short complete name.
inline task_id task_of_device(const std::string& device) {
  const auto task = task_of(parse_device_name(device));
  if (!task) fail(error_code::internal, "device '" + device + "' names no task");
  return *task;
}

/// Says that a task is not the one that it was.
inline status restarted(const task_context& own, const task_id& task) {
  return status(error_code::aborted, "task " + own.describe(task) + " was restarted; what it kept (variables, queues) is lost, the next run starts with it anew");
}

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void planner::prepare(const std::shared_ptr<step_plan>& plan, std::function<void(const status&)> done) {
  if (plan->ready && !plan->stale) return done(status());
  plan->waiting.push_back(std::move(done));
  if (plan->waiting.size() > 1) return;
  auto work = std::make_shared<preparation>();
  work->plan = plan;
  work->session = plan->session.lock();
  if (plan->ready) unregister(*plan);
  guarded(work, [&] { begin(work); });
}

// Does a piece of work on the whole graph, beside the event loop if the graph is large, and then what comes next.
WEFT_DECL void planner::build(const preparation_ptr& work, std::function<void()> what, std::function<void()> then) {
  own_.build(work->session->graph.size(), std::move(what), [this, work, then = std::move(then)](const status& result) {
    if (!result.ok()) return finish(work, result);
    if (stopped_) return finish(work, *stopped_);
    guarded(work, then);
  });
}

// The signature's numbers as nodes of the session's graph.
WEFT_DECL void planner::name_step(preparation& work) const {
  if (work.session == nullptr || work.session->closed) fail(error_code::cancelled, "the session was closed");
  const std::vector<const node*> nodes = work.session->graph.nodes();
  const auto node_at = [&](std::uint32_t number) {
    if (number >= nodes.size()) fail(error_code::invalid_argument, "the step names node " + std::to_string(number) + ", the graph has " + std::to_string(nodes.size()));
    return nodes[number];
  };
  const auto outputs = [&](const std::vector<output_number>& named) {
    std::vector<output> out;
    for (const output_number& o : named) out.push_back({node_at(o.node), static_cast<int>(o.index)});
    return out;
  };
  const numbered_signature& signature = work.plan->signature;
  work.what.feeds = outputs(signature.feeds);
  work.what.fetches = outputs(signature.fetches);
  for (const std::uint32_t target : signature.targets) work.what.targets.push_back(node_at(target));
  if (work.what.fetches.empty() && work.what.targets.empty()) fail(error_code::invalid_argument, "the step fetches nothing and runs nothing");
  for (const output& fetch : work.what.fetches)
    if (std::find(work.what.feeds.begin(), work.what.feeds.end(), fetch) != work.what.feeds.end()) fail(error_code::invalid_argument, "the step fetches '" + to_text(fetch) + "', which it is fed: whoever feeds it knows it");
  work.what.master = to_text(own_.self);
  work.what.merge_equal_nodes = work.session->options.passes.merge_equal_nodes;
  work.what.skip_identities = work.session->options.passes.skip_identities;
  work.what.schedule_recvs = work.session->options.passes.schedule_recvs;
}

WEFT_DECL partitioned_graph planner::partitions(const step_plan& plan) const {
  preparation work;
  work.plan = std::make_shared<step_plan>();
  work.plan->signature = plan.signature;
  work.session = plan.session.lock();
  name_step(work);
  return partition(work.session->graph, devices(work), *work.session->placed, work.what);
}

// 1. What the step needs, and which tasks are named by it.
WEFT_DECL void planner::begin(const preparation_ptr& work) {
  name_step(*work);
  const partition_options& what = work->what;
  work->needed = prune(work->session->graph, what.feeds, what.fetches, what.targets);
  for (const node* n : work->needed)
    if (n->def() == nullptr) n->fail_about(error_code::unimplemented, "op '" + n->op() + "' is not known to task " + own_.describe(own_.self) + "; give its definition and kernels to the servers (server_options::ops and kernels)");
  work->placing.default_task = what.master;
  work->placing.allow_soft_placement = work->session->options.allow_soft_placement;
  work->placing.order = work->session->options.order;
  if (!work->session->filters.empty()) work->placing.filtered_by = "session_options::device_filters";
  work->earlier = work->session->placed;
  work->placing.earlier = work->earlier.get();

  std::set<task_id> named;
  std::unordered_set<const std::string*> seen;  // a graph keeps each device that its nodes ask for once
  for (const node* n : work->needed) {
    if (!seen.insert(&n->device()).second) continue;
    const auto device = try_parse_device_name(n->device());
    const auto task = device ? task_of(*device) : std::nullopt;
    if (!task || !own_.cluster.has(*task)) continue;
    if (*task != own_.self && !work->session->sees(*task)) n->fail_about(error_code::invalid_argument, "it is placed on '" + n->device() + "', which the session does not see (session_options::device_filters)");
    named.insert(*task);
  }
  contact(work, named);
}

// 2. Roads to them, all at once; then placement.
WEFT_DECL void planner::contact(const preparation_ptr& work, const std::set<task_id>& tasks) {
  struct progress {
    std::size_t open;
    std::optional<status> problem;
  };
  auto left = std::make_shared<progress>(progress{tasks.size() + 1, std::nullopt});
  const auto one_done = [this, work, left](const status& result) {
    if (!result.ok() && !left->problem) left->problem = result;
    if (--left->open > 0) return;
    if (left->problem) return finish(work, *left->problem);
    guarded(work, [&] { place_nodes(work); });
  };
  for (const task_id& task : tasks) {
    work->contacted.insert(task);
    if (task == own_.self) one_done(status());
    else roads_.open(task, [one_done](const status& result, const std::shared_ptr<peer_link>&) { one_done(result); });
  }
  one_done(status());
}

// The devices of all tasks: as they said themselves where they were met, else such as this task has, and those that the graph names.
WEFT_DECL device_set planner::devices(const preparation& work) const {
  device_set out;
  const master_session& session = *work.session;
  const auto add = [&](const device& d, const task_id& of) {
    if (of == own_.self || session.sees(d.name)) out.add(d);
  };
  for (const task_id& task : own_.cluster.tasks()) {
    if (task != own_.self && !session.sees(task)) continue;
    const auto link = task == own_.self ? nullptr : roads_.find(task);
    if (task != own_.self && link == nullptr) {
      for (const auto& [type, count] : own_.options.devices)
        for (int i = 0; i < count; ++i) add({to_text(task) + "/device:" + type + ":" + std::to_string(i), type}, task);
      continue;
    }
    for (const device& d : link ? link->peer().devices : own_.devices) add(d, task);
    out.set_catalogue(to_text(task), link ? link->peer().kernels : own_.catalogue);
  }
  for (const std::string& asked : work.session->graph.state()->devices()) {
    const auto name = try_parse_device_name(asked);
    const auto task = name && name->is_complete() ? task_of(*name) : std::nullopt;
    if (task && *task != own_.self && own_.cluster.has(*task) && work.contacted.count(*task) == 0 && roads_.find(*task) == nullptr && out.find(asked) == nullptr && session.sees(*task))
      add({asked, *name->type}, *task);
  }
  return out;
}

// 3. Places the whole graph. A task that turns out to be needed and was not met is met now, and the placement is made again.
WEFT_DECL void planner::place_nodes(const preparation_ptr& work) {
  const auto on = std::make_shared<const device_set>(devices(*work));
  build(work, [work, on] { work->where = place(work->session->graph, *on, work->placing); }, [this, work] {
    std::set<task_id> unmet;
    std::unordered_set<const std::string*> seen;  // a placement keeps each of its devices once
    for (const node* n : work->needed) {
      const std::string& device = work->where->device_of(*n);
      if (!seen.insert(&device).second) continue;
      const task_id task = task_of_device(device);
      if (work->contacted.count(task) == 0) unmet.insert(task);
    }
    if (!unmet.empty()) return contact(work, unmet);
    check_incarnations(work);
  });
}

// 4. A task that was restarted has lost what the session kept there: the step fails once, and the next one starts anew.
WEFT_DECL void planner::check_incarnations(const preparation_ptr& work) {
  std::optional<status> problem;
  for (const task_id& task : work->contacted) {
    const auto link = roads_.find(task);
    if (task != own_.self && link == nullptr) fail(error_code::unavailable, "task " + own_.describe(task) + ": the connection was lost");
    const std::uint64_t found = link ? link->incarnation() : own_.incarnation;
    std::uint64_t& known = work->session->incarnations.emplace(task, found).first->second;
    if (known != found && !problem) problem = restarted(own_, task);
    known = found;
  }
  if (problem) return finish(work, *problem);
  cut(work);
}

// 5. One part per task.
WEFT_DECL void planner::cut(const preparation_ptr& work) {
  const auto on = std::make_shared<const device_set>(devices(*work));
  build(work, [work, on] { work->cut = partition(work->session->graph, *on, *work->where, work->what); }, [this, work] { take_parts(work); });
}

WEFT_DECL void planner::take_parts(const preparation_ptr& work) {
  std::vector<plan_part> parts;
  for (const part& p : work->cut->parts()) {
    plan_part out;
    out.task = task_of_device(p.task);
    const auto link = roads_.find(out.task);
    if (out.task != own_.self && link == nullptr) fail(error_code::unavailable, "task " + own_.describe(out.task) + ": the connection was lost");
    out.incarnation = link ? link->incarnation() : own_.incarnation;
    out.feeds = positions_of(p.feeds, work->what.feeds);
    out.fetches = positions_of(p.fetches, work->what.fetches);
    parts.push_back(std::move(out));
  }
  work->plan->parts = std::move(parts);
  work->plan->fetched.clear();
  for (const output& o : work->what.fetches) work->plan->fetched.push_back(o.from->output_dtype(o.index));
  send_parts(work);
}

// What each task sends and receives, in the order of the edges.
WEFT_DECL std::map<task_id, std::vector<part_edge>> planner::edges_of(const partitioned_graph& cut) const {
  std::map<task_id, std::vector<part_edge>> out;
  std::unordered_map<std::string, task_id> known;
  const auto task_at = [&known](const std::string& device) -> const task_id& {
    const auto it = known.find(device);
    return it != known.end() ? it->second : known.emplace(device, task_of_device(device)).first->second;
  };
  for (const transfer& t : cut.transfers()) {
    const task_id &from = task_at(t.from), &to = task_at(t.to);
    part_edge e;
    e.edge = t.edge;
    e.dtype = t.dtype;
    e.may_be_large = !t.bytes || static_cast<std::uint64_t>(*t.bytes) > own_.options.small_tensor_bytes;
    e.way = from == to ? part_edge::direction::inside : part_edge::direction::outgoing;
    e.peer = to;
    out[from].push_back(e);
    if (from == to) continue;
    e.way = part_edge::direction::incoming;
    e.peer = from;
    out[to].push_back(std::move(e));
  }
  return out;
}

// 6. To the tasks; the own part needs no socket.
WEFT_DECL void planner::send_parts(const preparation_ptr& work) {
  if (work->session->closed) throw error(work->session->closed_for);
  const std::uint64_t number = work->plan->registration = ++last_registration_;
  if (work->plan->parts.empty()) return finish(work, status());  // what is asked for is fed: nobody has to do anything
  pending_registration& waits = pending_[number];
  waits.work = work;
  for (const plan_part& p : work->plan->parts) waits.missing.insert(p.task);
  // Constants are most of a large graph.
  std::size_t bytes = 0;
  for (const part& p : work->cut->parts())
    for (const node* n : p.graph.nodes())
      if (const tensor_value* constant = n->op() == "Const" ? n->find_attr<tensor_value>("value") : nullptr) bytes += constant->bytes();
  const auto limit = own_.options.connect_timeout + time_to_carry(bytes);
  waits.deadline = std::make_unique<asio::steady_timer>(own_.io, limit);
  waits.deadline->async_wait([this, number, limit](const std::error_code& stopped) {
    const auto it = pending_.find(number);
    if (stopped || it == pending_.end()) return;
    const task_id task = *it->second.missing.begin();
    registered(number, task, status(error_code::deadline_exceeded, "task " + own_.describe(task) + " did not register its part of the graph within " + std::to_string(limit.count()) + " ms"));
  });
  std::map<task_id, std::vector<part_edge>> edges = edges_of(*work->cut);
  for (const part& p : work->cut->parts()) {
    const task_id task = task_of_device(p.task);
    register_part_message what{number, work->session->id, std::move(edges[task]), work->session->options.passes};
    if (task == own_.self) {
      asio::post(own_.io, [this, number, what, copy = p.graph]() mutable {
        here_.register_part(own_.incarnation, std::move(what), std::move(copy), [this, number](const status& result) { registered(number, own_.self, result); });
      });
    } else if (const auto link = roads_.find(task)) {
      link->send(what.encode(p.graph));
    }
  }
}

WEFT_DECL void planner::take_registered(const task_id& from, const part_registered_message& answer) {
  registered(answer.registration, from, own_.located(answer.result, from));
}

WEFT_DECL void planner::registered(std::uint64_t number, const task_id& task, const status& result) {
  const auto it = pending_.find(number);
  if (it == pending_.end() || it->second.missing.erase(task) == 0) return;
  if (result.ok() && !it->second.missing.empty()) return;
  const preparation_ptr work = it->second.work;
  pending_.erase(it);
  // Nobody else unregisters what was asked for before the session was closed.
  const status outcome = result.ok() && work->session->closed ? work->session->closed_for : result;
  if (!outcome.ok()) {
    unregister(*work->plan);
    constexpr int most_attempts = 8;
    if (outcome.code == error_code::resource_exhausted && ++work->attempts < most_attempts && make_room && make_room(*work->plan)) return guarded(work, [&] { send_parts(work); });
  }
  finish(work, outcome);
}

WEFT_DECL void planner::finish(const preparation_ptr& work, const status& result) {
  step_plan& plan = *work->plan;
  plan.ready = result.ok();
  plan.stale = false;
  if (result.ok()) {
    // Another preparation may have placed more nodes meanwhile.
    if (work->where->size() > work->session->placed->size()) work->session->placed = std::make_shared<const placement>(*work->where);
  }
  const auto waiting = std::exchange(plan.waiting, {});
  for (const auto& done : waiting) done(result);
}

WEFT_DECL void planner::unregister(step_plan& plan) {
  plan.ready = false;
  for (const plan_part& p : plan.parts) {
    if (p.task == own_.self) here_.unregister_part(own_.incarnation, plan.registration);
    else if (const auto link = roads_.find(p.task)) link->send(encode_forget(message_type::unregister_part, plan.registration));
  }
}

WEFT_DECL void planner::lost(const task_id& task, const status& why) {
  std::vector<std::uint64_t> hit;
  for (const auto& entry : pending_)
    if (entry.second.missing.count(task) != 0) hit.push_back(entry.first);
  for (const std::uint64_t number : hit) registered(number, task, why);
}

WEFT_DECL void planner::stop(const status& why) {
  stopped_ = why;
  const auto pending = std::exchange(pending_, {});
  for (const auto& entry : pending) finish(entry.second.work, why);
}

#endif

}  // namespace weft::detail

#endif
