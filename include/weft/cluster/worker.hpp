#ifndef WEFT_CLUSTER_WORKER_HPP
#define WEFT_CLUSTER_WORKER_HPP
// The part of a server that runs: graphs that masters registered, the steps of them that are live, and tensors that came before
// their step. All of it lives on the io thread; kernels run there while they are cheap, else in the pool.

#include <weft/cluster/accepted_peers.hpp>
#include <weft/cluster/early_arrivals.hpp>
#include <weft/cluster/fair_share.hpp>
#include <weft/cluster/live_step.hpp>
#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/peers.hpp>
#include <weft/cluster/remote_rendezvous.hpp>
#include <weft/cluster/server_status.hpp>
#include <weft/cluster/step_trace_codec.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/core/config.hpp>
#include <weft/runtime/cancellation.hpp>
#include <weft/runtime/executor.hpp>
#include <weft/session/part_passes.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

inline status forgotten_registration(std::uint64_t number) { return status(error_code::cancelled, "registration " + std::to_string(number) + " was forgotten before it was made"); }

/// See the head of this file.
class worker {
 public:
  worker(task_context& own, peers& roads, accepted_peers& accepted) : own_(own), roads_(roads), accepted_(accepted), early_(own.options.parked_bytes_per_peer, own.options.parked_steps_per_peer) {}

  /// Registers a part; `done` is called when the roads to all tasks that it sends to are open, or with what is wrong.
  void register_part(std::uint64_t master, register_part_message what, graph part, std::function<void(const status&)> done);
  void unregister_part(std::uint64_t master, std::uint64_t number);
  void forget_session(std::uint64_t master, std::uint64_t session);
  /// Starts a step, now or when its feeds have come.
  void run_part(std::uint64_t master, const run_part_message& what, std::vector<tensor_value> feeds, bool refused, part_answer answer);
  void take_feeds(std::uint64_t master, std::int64_t step, std::vector<tensor_value> feeds, bool refused);
  /// Ends a step, which may not have begun here.
  void abort_part(std::uint64_t master, const abort_part_message& what);

  void take_tensor(const task_id& from, message m);
  void take_ready(const task_id& from, const step_id& step);
  /// A road from or to a task is lost: what depends on it fails.
  void lost(const task_id& peer, const status& why);
  /// A task has connected; what an earlier start of it registered has no master any more.
  void master_came(const task_id& task, std::uint64_t master);
  /// The road from a master is lost: its steps end.
  void master_lost(std::uint64_t master, const status& why);
  /// Drops what masters left whose lease has ended.
  void sweep(std::chrono::steady_clock::time_point now);
  void stop(const status& why);

  std::size_t live_steps() const noexcept;
  std::size_t registrations() const noexcept;
  std::vector<registration_report> report() const;
  /// Bytes that came before their step, from everybody.
  std::size_t parked_bytes() const noexcept { return early_.bytes(); }

 private:
  struct master_state {
    std::map<std::uint64_t, std::shared_ptr<registration>> parts;
    std::map<std::uint64_t, std::shared_ptr<resource_manager>> kept_states;
    // The highest step that the master has announced here.
    std::int64_t highest = 0;
    std::map<std::int64_t, std::shared_ptr<live_step>> live;
    std::optional<std::chrono::steady_clock::time_point> lost_at;
  };

  std::shared_ptr<registration> make_registration(master_state& master, register_part_message what);
  void open_roads(const std::shared_ptr<registration>& what, std::function<void(const status&)> done);
  std::optional<status> reason_not_to_run(const registration* what) const;
  std::shared_ptr<live_step> make_step(const step_id& id, std::shared_ptr<registration> what, bool trace, part_answer answer);
  void begin(const std::shared_ptr<live_step>& step, early_arrivals::by_sender early);
  void start(const std::shared_ptr<live_step>& step);
  void finish(const std::shared_ptr<live_step>& step, const status& result, std::vector<tensor_value> fetches);
  void abort(const std::shared_ptr<live_step>& step, const status& why);
  void forget(const live_step& step);
  std::vector<std::shared_ptr<live_step>> all_live() const;
  // Whether a master that has `own` of something gets one more of it. Of the own master's, each client was given a share already.
  bool may_hold_one(std::uint64_t master, std::size_t own, std::size_t all, std::size_t limit) const { return may_take_one(master == own_.incarnation ? 0 : own, all, limit); }

  task_context& own_;
  peers& roads_;
  accepted_peers& accepted_;
  std::map<std::uint64_t, master_state> masters_;
  // The start of each task that connected last.
  std::map<task_id, std::uint64_t> starts_;
  early_arrivals early_;
  bool stopping_ = false;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::size_t worker::registrations() const noexcept {
  std::size_t n = 0;
  for (const auto& entry : masters_) n += entry.second.parts.size();
  return n;
}

WEFT_DECL std::size_t worker::live_steps() const noexcept {
  std::size_t n = 0;
  for (const auto& entry : masters_) n += entry.second.live.size();
  return n;
}

WEFT_DECL std::vector<registration_report> worker::report() const {
  std::vector<registration_report> out;
  for (const auto& [number, master] : masters_)
    for (const auto& [part, what] : master.parts) {
      registration_report r{number, part, what->nodes, what->edges.size(), 0};
      for (const auto& live : master.live) r.steps += live.second->what == what ? 1 : 0;
      out.push_back(r);
    }
  return out;
}

WEFT_DECL std::vector<std::shared_ptr<live_step>> worker::all_live() const {
  std::vector<std::shared_ptr<live_step>> out;
  for (const auto& entry : masters_)
    for (const auto& live : entry.second.live) out.push_back(live.second);
  return out;
}

WEFT_DECL std::shared_ptr<registration> worker::make_registration(master_state& master, register_part_message what) {
  auto out = std::make_shared<registration>();
  for (const part_edge& e : what.edges) {
    if (e.way == part_edge::direction::inside) continue;
    if (!own_.cluster.has(e.peer)) fail(error_code::invalid_argument, "edge " + std::to_string(e.edge) + " leads to " + to_text(e.peer) + ", which is not in the cluster");
    (e.way == part_edge::direction::outgoing ? out->receivers : out->senders).insert(e.peer);
    if (e.way == part_edge::direction::incoming && e.may_be_large) out->large_senders.insert(e.peer);
  }
  out->edges = std::move(what.edges);
  if (master.kept_states.size() >= own_.options.max_sessions && master.kept_states.count(what.session) == 0)
    fail(error_code::resource_exhausted, to_text(own_.self) + " keeps the state of " + std::to_string(master.kept_states.size()) + " sessions of one task, no more are accepted (server_options::max_sessions)");
  auto& state = master.kept_states[what.session];
  if (state == nullptr) state = std::make_shared<resource_manager>("localhost", own_.options.max_name_bytes);
  out->session_state = state;
  return out;
}

WEFT_DECL void worker::register_part(std::uint64_t master_number, register_part_message what, graph part, std::function<void(const status&)> done) {
  const auto known = masters_.find(master_number);
  const std::size_t all = registrations(), of_master = known == masters_.end() ? 0 : known->second.parts.size();
  if (!may_hold_one(master_number, of_master, all, own_.options.max_registrations))
    return done(own_.no_more("keeps", all, "registered graphs", of_master, "master", "max_registrations"));
  const std::uint64_t number = what.registration;
  const auto passes = what.passes;
  master_state& master = masters_[master_number];
  master.lost_at.reset();
  // 1. Its number is taken at once; it can be run when its executor is there.
  std::shared_ptr<registration> made;
  try {
    if (master.parts.count(number) != 0) fail(error_code::already_exists, "registration " + std::to_string(number) + " is there already");
    made = make_registration(master, std::move(what));
  } catch (const error& e) {
    return done(own_.located(e.status()));
  }
  master.parts.emplace(number, made);
  server_counters::add(own_.counters->registered);
  // 2. The executor, which is the work.
  const auto runs = std::make_shared<std::unique_ptr<executor>>();
  const std::size_t nodes = made->nodes = part.size();
  own_.build(nodes, [this, runs, passes, state = part.state()] { *runs = std::make_unique<executor>(optimized_part(graph(state), own_.kernels, passes), own_.kernels, own_.task_field()); },
             [this, runs, made, master_number, number, done = std::move(done)](const status& result) {
               const auto still = masters_.find(master_number);
               const bool wanted = still != masters_.end() && still->second.parts.count(number) != 0 && still->second.parts[number] == made;
               made->runs = std::move(*runs);
               if (result.ok() && wanted) return open_roads(made, done);
               if (wanted) still->second.parts.erase(number);
               done(own_.located(result.ok() ? forgotten_registration(number) : result));
             });
}

WEFT_DECL void worker::open_roads(const std::shared_ptr<registration>& what, std::function<void(const status&)> done) {
  struct progress {
    std::size_t open;
    std::optional<status> problem;
  };
  auto left = std::make_shared<progress>(progress{what->receivers.size() + 1, std::nullopt});
  const auto one_done = [left, done = std::move(done)](const status& result) {
    if (!result.ok() && !left->problem) left->problem = result;
    if (--left->open == 0) done(left->problem ? *left->problem : status());
  };
  for (const task_id& to : what->receivers) roads_.open(to, [one_done](const status& result, const std::shared_ptr<peer_link>&) { one_done(result); });
  one_done(status());
}

WEFT_DECL void worker::unregister_part(std::uint64_t master, std::uint64_t number) {
  const auto it = masters_.find(master);
  if (it != masters_.end()) it->second.parts.erase(number);
}

WEFT_DECL void worker::forget_session(std::uint64_t master, std::uint64_t session) {
  const auto it = masters_.find(master);
  if (it != masters_.end()) it->second.kept_states.erase(session);
}

// Nothing when the registration can be run: it is whole, and every task that it uses is connected.
WEFT_DECL std::optional<status> worker::reason_not_to_run(const registration* what) const {
  if (what == nullptr) return status(error_code::aborted, "task " + own_.describe(own_.self) + " does not know this step's graph any more; it was restarted, or the graph's lease has ended");
  if (what->broken) return what->broken;
  if (what->runs == nullptr) return status(error_code::failed_precondition, "the step's graph is not registered yet at task " + own_.describe(own_.self));
  const auto not_connected = [this](const task_id& task) { return status(error_code::unavailable, "task " + own_.describe(task) + " is not connected to " + to_text(own_.self)); };
  for (const task_id& to : what->receivers) {
    const auto link = roads_.find(to);
    if (link == nullptr) return not_connected(to);
    if (auto full = own_.full_queue(to, link->queued_memory(), 0)) return full;
  }
  for (const task_id& from : what->senders) {
    const accepted_peer* peer = accepted_.find(from);
    if (peer == nullptr) return not_connected(from);
    if (auto full = own_.full_queue(from, peer->queued_memory(), 0)) return full;
  }
  return std::nullopt;
}

WEFT_DECL std::shared_ptr<live_step> worker::make_step(const step_id& id, std::shared_ptr<registration> what, bool trace, part_answer answer) {
  auto step = std::make_shared<live_step>();
  step->id = id;
  step->what = std::move(what);
  step->answer = std::move(answer);
  if (trace) {
    step->ordered = std::chrono::steady_clock::now();
    step->statistics = std::make_unique<step_statistics>();
  }
  std::map<task_id, std::shared_ptr<tensor_outlet>> outlets;
  for (const task_id& to : step->what->receivers) outlets.emplace(to, roads_.find(to));
  // Whatever aborts the rendezvous, a kernel's error or a lost road: the master hears of it at once.
  const auto report = [this, weak = std::weak_ptr<live_step>(step)](const status& why) {
    const auto live = weak.lock();
    if (live == nullptr || why.derived) return;
    asio::post(own_.io, [this, live, why] {
      if (!stopping_ && !std::exchange(live->failed, true)) live->answer(part_done_message{live->id.number, why, false}, {});
    });
  };
  step->meets = std::make_unique<remote_rendezvous>(id, step->what->edges, std::move(outlets), report, step->statistics.get());
  return step;
}

WEFT_DECL void worker::run_part(std::uint64_t master_number, const run_part_message& what, std::vector<tensor_value> feeds, bool refused, part_answer answer) {
  master_state& master = masters_[master_number];
  const auto refuse = [&](const status& why) { answer(part_done_message{what.step, own_.located(why), true}, {}); };

  // 1. Announced: what comes later for this step or an earlier one is not early any more.
  if (what.step <= master.highest) return refuse(status(error_code::aborted, "step " + std::to_string(what.step) + " has ended here already"));
  early_arrivals::by_sender early = early_.claim({master_number, what.step});
  master.highest = what.step;

  // 2. Can it run?
  const auto part = master.parts.find(what.registration);
  std::optional<status> problem = reason_not_to_run(part == master.parts.end() ? nullptr : part->second.get());
  if (!problem && refused) problem = status(error_code::resource_exhausted, "the feeds of the step do not fit into what may be received (server_options::received_bytes)");
  for (const auto& [from, sent] : early)
    if (!problem && sent.refused && part->second->senders.count(from) != 0) problem = sent.refused;
  if (const std::size_t live = live_steps(); !problem && !may_hold_one(master_number, master.live.size(), live, own_.options.max_steps))
    problem = own_.no_more("runs", live, "steps", master.live.size(), "master", "max_steps");
  if (problem) return refuse(*problem);

  // 3. Live.
  const auto step = make_step({master_number, what.step}, part->second, what.trace, std::move(answer));
  master.live.emplace(what.step, step);
  server_counters::add(own_.counters->parts_begun);
  step->feeds = std::move(feeds);
  begin(step, std::move(early));
  if (!what.feeds_follow) start(step);
}

WEFT_DECL void worker::begin(const std::shared_ptr<live_step>& step, early_arrivals::by_sender early) {
  for (const task_id& from : step->what->large_senders)
    if (const accepted_peer* peer = accepted_.find(from)) peer->send(encode_ready(step->id));
  for (const auto& [peer, sent] : early)
    if (sent.ready) step->meets->peer_ready(peer);
  for (auto& [from, sent] : early) {
    if (step->what->senders.count(from) == 0) continue;  // it has no part in the step
    for (early_messages::tensor& t : sent.tensors) step->meets->deliver(from, t.about.key, std::move(t.value), t.about.is_dead, std::move(t.lease));
  }
}

WEFT_DECL void worker::start(const std::shared_ptr<live_step>& step) {
  step->started = true;
  executor::step_args args;
  args.feeds = std::move(step->feeds);
  args.resources = &own_.resources;
  args.session_state = step->what->session_state.get();
  args.pool = own_.pool.get();
  args.buffers = own_.buffers.get();
  args.rendezvous = step->meets.get();
  args.cancellation = step->cancel.token();
  args.step = step->id.number;
  args.statistics = step->statistics.get();
  // The rendezvous tells the master; kernels that wait end with the same reason.
  args.on_error = [step](const status& why) {
    step->meets->abort(why);
    status derived = why;
    derived.derived = true;
    step->cancel.cancel(std::move(derived));
  };
  step->what->runs->run_async(std::move(args), [this, step](const status& result, std::vector<tensor_value> fetches) {
    asio::dispatch(own_.io, [this, step, result, values = std::move(fetches)]() mutable { finish(step, result, std::move(values)); });
  });
}

WEFT_DECL void worker::finish(const std::shared_ptr<live_step>& step, const status& result, std::vector<tensor_value> fetches) {
  if (std::exchange(step->answered, true)) return;
  server_counters::add(own_.counters->parts_ended);
  if (!result.ok()) {
    step->failed = true;
    server_counters::add(own_.counters->parts_failed);
  }
  if (!step->meets->holds_back()) forget(*step);
  if (stopping_) return;
  const status complete = own_.located(result);
  if (!complete.ok()) fetches.clear();
  part_done_message done{step->id.number, complete, true};
  if (complete.ok() && step->statistics != nullptr) {
    fetches.push_back(encode_trace(trace_of(*step->statistics, to_text(own_.self), step->ordered)));
    done.took = nanoseconds_since(step->ordered);
  }
  step->answer(done, std::move(fetches));
}

WEFT_DECL void worker::forget(const live_step& step) {
  const auto master = masters_.find(step.id.master);
  if (master != masters_.end()) master->second.live.erase(step.id.number);
}

WEFT_DECL void worker::abort(const std::shared_ptr<live_step>& step, const status& why) {
  if (step->answered) forget(*step);
  step->meets->abort(why);
  step->cancel.cancel(why);
  if (!step->started) {
    step->started = true;
    finish(step, why, {});
  }
}

WEFT_DECL void worker::take_feeds(std::uint64_t master_number, std::int64_t number, std::vector<tensor_value> feeds, bool refused) {
  const auto master = masters_.find(master_number);
  if (master == masters_.end()) return;
  const auto it = master->second.live.find(number);
  if (it == master->second.live.end() || it->second->started) return;
  const auto step = it->second;
  if (refused) return abort(step, status(error_code::resource_exhausted, "the feeds of the step do not fit into what may be received (server_options::received_bytes)"));
  step->feeds = std::move(feeds);
  start(step);
}

WEFT_DECL void worker::abort_part(std::uint64_t master_number, const abort_part_message& what) {
  const auto master = masters_.find(master_number);
  if (master == masters_.end()) return;
  if (const auto it = master->second.live.find(what.step); it != master->second.live.end()) {
    status why = what.why;
    why.derived = true;
    const auto step = it->second;
    return abort(step, why);
  }
  if (what.step <= master->second.highest) return;
  early_.drop(master_number, what.step);
  master->second.highest = what.step;
}

WEFT_DECL void worker::take_tensor(const task_id& from, message m) {
  const tensor_message about = tensor_message::decode(m);
  const auto master = masters_.find(about.step.master);
  if (master == masters_.end()) return;
  if (about.step.number > master->second.highest) return early_.park(from, about, std::move(m));
  const auto it = master->second.live.find(about.step.number);
  if (it == master->second.live.end()) return;
  const auto step = it->second;
  if (step->what->senders.count(from) == 0)
    fail(error_code::invalid_argument, "a tensor came from " + to_text(from) + " for step " + std::to_string(about.step.number) + ", in which it has nothing to send here");
  if (m.refused)
    return abort(step, status(error_code::resource_exhausted, "a tensor from " + to_text(from) + " does not fit: " + std::to_string(own_.received->used()) +
                                                                  " bytes are received and not used yet, the limit is " + std::to_string(own_.received->limit()) + " (server_options::received_bytes)"));
  step->meets->deliver(from, about.key, m.tensors.empty() ? tensor_value() : std::move(m.tensors[0]), about.is_dead, std::move(m.lease));
}

WEFT_DECL void worker::take_ready(const task_id& from, const step_id& id) {
  const auto master = masters_.find(id.master);
  if (master == masters_.end()) return;
  if (id.number > master->second.highest) return early_.ready(from, id);
  const auto it = master->second.live.find(id.number);
  if (it == master->second.live.end()) return;
  const auto step = it->second;
  step->meets->peer_ready(from);
  if (step->answered && !step->meets->holds_back()) forget(*step);
}

WEFT_DECL void worker::lost(const task_id& peer, const status& why) {
  for (auto& entry : masters_) {
    for (auto& part : entry.second.parts)
      if (part.second->uses(peer) && !part.second->broken) part.second->broken = why;
  }
  for (const auto& step : all_live())
    if (step->what->uses(peer) && step->meets->open_with(peer)) abort(step, why);
}

WEFT_DECL void worker::master_came(const task_id& task, std::uint64_t number) {
  const std::uint64_t before = std::exchange(starts_[task], number);
  const auto it = masters_.find(before);
  if (before == number || it == masters_.end()) return;
  master_lost(before, status(error_code::aborted, "task " + own_.describe(task) + " was restarted"));
  it->second.parts.clear();
  it->second.kept_states.clear();
}

WEFT_DECL void worker::master_lost(std::uint64_t number, const status& why) {
  const auto it = masters_.find(number);
  if (it == masters_.end()) return;
  it->second.lost_at = std::chrono::steady_clock::now();
  early_.drop(number, std::numeric_limits<std::int64_t>::max());
  const auto live = it->second.live;
  for (const auto& entry : live) abort(entry.second, why);
}

WEFT_DECL void worker::sweep(std::chrono::steady_clock::time_point now) {
  for (auto it = masters_.begin(); it != masters_.end();) {
    const master_state& m = it->second;
    const bool over = m.lost_at && m.live.empty() && now - *m.lost_at > own_.options.registration_lease;
    if (over) early_.drop(it->first, std::numeric_limits<std::int64_t>::max());
    it = over ? masters_.erase(it) : std::next(it);
  }
}

// Masters elsewhere are to learn of the loss of this task, not of the errors that it causes.
WEFT_DECL void worker::stop(const status& why) {
  stopping_ = true;
  for (const auto& step : all_live()) abort(step, why);
}

#endif

}  // namespace weft::detail

#endif
