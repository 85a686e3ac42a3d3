#ifndef WEFT_CLUSTER_MASTER_HPP
#define WEFT_CLUSTER_MASTER_HPP
// The part of a server that leads: sessions of clients, their prepared steps, and the steps that run. Lives on the io thread.

#include <weft/cluster/cluster_devices.hpp>
#include <weft/cluster/fair_share.hpp>
#include <weft/cluster/master_step.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/peers.hpp>
#include <weft/cluster/planner.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/cluster/task_wait.hpp>
#include <weft/cluster/worker.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// See the head of this file.
class master {
 public:
  master(task_context& own, peers& roads, worker& here) : own_(own), roads_(roads), here_(here), planner_(own, roads, here), waits_(own, roads) {
    planner_.make_room = [this](const step_plan& except) { return drop_oldest(&except); };
  }

  /// A client's message. What it throws closes the client's connection.
  void take(const client_ptr& client, message m);
  /// The client is gone: its steps are cancelled, its sessions closed.
  void client_lost(const client_ptr& client);
  void take_registered(const task_id& from, const part_registered_message& answer) { planner_.take_registered(from, answer); }
  void take_done(const task_id& from, const part_done_message& what, std::vector<tensor_value> fetches, bool refused);
  /// The road to a task is lost: steps that run there fail, plans that use it are made anew.
  void lost(const task_id& task, const status& why);
  /// Whether a client's request is taken in, which may stay open for a while; else it is answered. Throws when the number is in use.
  bool admit(const client_ptr& client, std::uint32_t request);
  /// Ends all sessions; their clients learn it with the next request.
  void end_sessions(const status& why);
  void stop(const status& why);
  std::size_t sessions() const noexcept { return sessions_.size(); }
  /// The sessions of a client.
  std::vector<session_report> report(const client_ptr& client) const;

 private:
  void open_session(const client_ptr& client, const message& m);
  void check_filters(const std::vector<std::string>& filters) const;
  void close_session(const client_ptr& client, const message& m);
  void prepare(const client_ptr& client, message m);
  void make_ready(const client_ptr& client, const std::shared_ptr<master_session>& session, const prepare_message& what);
  void run(const client_ptr& client, message m);
  void list_devices(const client_ptr& client, const message& m);
  void wait_for_tasks(const client_ptr& client, const message& m);
  void describe(const client_ptr& client, const message& m);

  std::shared_ptr<step_plan> plan_of(const std::shared_ptr<master_session>& session, numbered_signature signature);
  std::shared_ptr<master_session> session_of(const client_ptr& client, std::uint64_t number, std::uint32_t request) const;
  void close(const std::shared_ptr<master_session>& session, const status& why = status(error_code::cancelled, "the session was closed"));
  void drop(const std::shared_ptr<step_plan>& plan);
  bool drop_oldest(const step_plan* except);
  bool all_connected(const step_plan& plan) const;
  void start(const client_ptr& client, const run_message& what, const std::shared_ptr<step_plan>& plan, std::vector<tensor_value> feeds);
  void send_part(const step_ptr& step, const plan_part& to, const std::vector<tensor_value>& feeds);
  void watch(const step_ptr& step, std::chrono::milliseconds time, std::function<void()> then);
  void failed(const step_ptr& step, const status& why);
  void over(const step_ptr& step);
  void part_over(const step_ptr& step, const task_id& task);
  void ask_for(const task_id& task, const step_ptr& step);

  task_context& own_;
  peers& roads_;
  worker& here_;
  planner planner_;
  std::uint64_t last_session_ = 0, last_handle_ = 0, clock_ = 0;
  std::int64_t last_step_ = 0;
  std::map<std::uint64_t, std::shared_ptr<master_session>> sessions_;
  std::map<std::uint64_t, std::shared_ptr<step_plan>> plans_;
  std::map<std::int64_t, step_ptr> steps_;
  task_waits waits_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void master::take(const client_ptr& client, message m) {
  switch (type_of(m)) {
    case message_type::open_session: return open_session(client, m);
    case message_type::close_session: return close_session(client, m);
    case message_type::prepare: return prepare(client, std::move(m));
    case message_type::run: return run(client, std::move(m));
    case message_type::list_devices: return list_devices(client, m);
    case message_type::describe: return describe(client, m);
    case message_type::wait_for_tasks: case message_type::count_tasks: return wait_for_tasks(client, m);
    case message_type::heartbeat: return;
    default: fail(error_code::unimplemented, "a client sent message type " + std::to_string(m.type) + ", which is not known");
  }
}

// Takes in a request that may stay open for a while. Without it there is no answer yet to be given twice, nor room without end for what a client asks for.
WEFT_DECL bool master::admit(const client_ptr& client, std::uint32_t request) {
  if (!client->open.insert(request).second) fail(error_code::invalid_argument, "a client sent request " + std::to_string(request) + " again, which is not answered yet");
  if (client->open.size() <= own_.options.max_client_requests) return true;
  client->answer(request, status(error_code::resource_exhausted, "task " + own_.describe(own_.self) + " has " + std::to_string(client->open.size() - 1) +
                                                                     " requests of this client that are not answered yet, no more are accepted (server_options::max_client_requests)"));
  return false;
}

// They are kept as long as their session: one for each task, and some more.
WEFT_DECL void master::check_filters(const std::vector<std::string>& filters) const {
  const std::size_t most = 1024 + own_.cluster.tasks().size(), most_bytes = own_.options.max_name_bytes;
  if (filters.size() > most) fail(error_code::resource_exhausted, "there are " + std::to_string(filters.size()) + ", at most " + std::to_string(most) + " are accepted");
  for (const std::string& each : filters)
    if (each.size() > most_bytes)
      fail(error_code::resource_exhausted, "one has " + std::to_string(each.size()) + " bytes, at most " + std::to_string(most_bytes) + " are accepted (server_options::max_name_bytes): " + detail::quoted(each));
}

WEFT_DECL void master::open_session(const client_ptr& client, const message& m) {
  const open_session_message what = open_session_message::decode(m);
  if (const std::size_t theirs = client->open_sessions(); !may_take_one(theirs, sessions_.size(), own_.options.max_sessions))
    return client->answer(what.request, own_.no_more("has", sessions_.size(), "open sessions", theirs, "client", "max_sessions"));
  std::shared_ptr<master_session> session;
  try {
    check_filters(what.device_filters);
    session = std::make_shared<master_session>(++last_session_, what, own_.ops);
  } catch (const error& e) {
    return client->answer(what.request, status(e.code(), "session_options::device_filters: " + e.message()));
  }
  server_counters::add(own_.counters->sessions_opened);
  client->sessions.emplace(session->id, session);
  sessions_.emplace(session->id, session);
  reply_message reply;
  wire_writer body;
  reply.body = body.u64(session->id).take();
  client->answer(what.request, std::move(reply));
}

WEFT_DECL void master::close_session(const client_ptr& client, const message& m) {
  const session_request what = session_request::decode(m);
  const auto it = client->sessions.find(what.session);
  if (it != client->sessions.end()) {
    const auto session = it->second;
    client->sessions.erase(it);
    close(session);
  }
  client->answer(what.request, status());
}

WEFT_DECL void master::close(const std::shared_ptr<master_session>& session, const status& why) {
  if (session->closed) return;
  session->closed = true;
  session->closed_for = why;
  sessions_.erase(session->id);
  const auto steps = steps_;
  for (const auto& entry : steps)
    if (entry.second->plan->session.lock() == session) failed(entry.second, why);
  const auto plans = session->plans;
  for (const auto& entry : plans) drop(entry.second);
  for (const auto& [task, incarnation] : session->incarnations) {
    if (task == own_.self) here_.forget_session(own_.incarnation, session->id);
    else if (const auto link = roads_.find(task)) link->send(encode_forget(message_type::forget_session, session->id));
  }
}

WEFT_DECL void master::client_lost(const client_ptr& client) {
  const auto steps = steps_;
  for (const auto& entry : steps)
    if (entry.second->client == client) failed(entry.second, status(error_code::cancelled, "the client is gone"));
  const auto sessions = std::exchange(client->sessions, {});
  for (const auto& entry : sessions) close(entry.second);
}

WEFT_DECL std::shared_ptr<step_plan> master::plan_of(const std::shared_ptr<master_session>& session, numbered_signature signature) {
  auto& plan = session->plans[signature];
  if (plan == nullptr) {
    while (plans_.size() >= own_.options.max_signatures && drop_oldest(nullptr)) continue;
    plan = std::make_shared<step_plan>();
    plan->handle = ++last_handle_;
    plan->signature = std::move(signature);
    plan->session = session;
    plans_.emplace(plan->handle, plan);
  }
  plan->last_used = ++clock_;
  return plan;
}

WEFT_DECL void master::drop(const std::shared_ptr<step_plan>& plan) {
  plans_.erase(plan->handle);
  if (const auto session = plan->session.lock()) session->plans.erase(plan->signature);
  if (plan->ready) planner_.unregister(*plan);
}

// Forgets the plan that was not used for the longest time and that nobody prepares or runs; false when there is none.
WEFT_DECL bool master::drop_oldest(const step_plan* except) {
  std::shared_ptr<step_plan> oldest;
  for (const auto& entry : plans_) {
    const auto& plan = entry.second;
    const bool busy = plan.get() == except || !plan->waiting.empty() || plan.use_count() > 2 + (plan == oldest ? 1 : 0);
    if (!busy && (oldest == nullptr || plan->last_used < oldest->last_used)) oldest = plan;
  }
  if (oldest == nullptr) return false;
  drop(oldest);
  return true;
}

WEFT_DECL void master::prepare(const client_ptr& client, message m) {
  const auto sent = std::make_shared<message>(std::move(m));
  const auto from = std::make_shared<wire_reader>(sent->head, "prepare");
  const auto what = std::make_shared<prepare_message>(prepare_message::decode(*from));
  if (!admit(client, what->request)) return;
  const auto session = session_of(client, what->session, what->request);
  if (session == nullptr) return void(client->sessions.erase(what->session));
  // Nodes come in the order of their messages, so that no small one overtakes a large one.
  constexpr std::size_t node_bytes = 64;
  const std::size_t about = session->reading > 0 ? SIZE_MAX : sent->head.size() / node_bytes;
  ++session->reading;
  own_.build(about, [this, sent, from, session] {
    if (sent->refused) fail(error_code::resource_exhausted, "the graph's constants do not fit into what may be received (server_options::received_bytes)");
    decode_nodes(*from, sent->tensors, session->graph, own_.graph_limit());
    from->finish();
  }, [this, client, session, what, sent](const status& result) {
    --session->reading;
    if (session_of(client, what->session, what->request) == nullptr) return;
    if (result.ok()) return make_ready(client, session, *what);
    // The graph here is not the client's any more.
    client->sessions.erase(what->session);
    close(session);
    client->answer(what->request, result, reply_message::advice::open_again);
  });
}

// The session that a request names. When it is not open, the request is answered and nullptr returned.
WEFT_DECL std::shared_ptr<master_session> master::session_of(const client_ptr& client, std::uint64_t number, std::uint32_t request) const {
  const auto it = client->sessions.find(number);
  if (it != client->sessions.end() && !it->second->closed) return it->second;
  const status unknown(error_code::aborted, "session " + std::to_string(number) + " is not open at " + own_.describe(own_.self));
  client->answer(request, it == client->sessions.end() ? unknown : it->second->closed_for, reply_message::advice::open_again);
  return nullptr;
}

WEFT_DECL void master::end_sessions(const status& why) {
  const auto all = sessions_;
  for (const auto& entry : all) close(entry.second, why);
}

WEFT_DECL void master::make_ready(const client_ptr& client, const std::shared_ptr<master_session>& session, const prepare_message& what) {
  const auto plan = plan_of(session, what.signature);
  planner_.prepare(plan, [this, client, plan, session, request = what.request, wants_placement = what.wants_placement](const status& result) {
    if (!result.ok()) {
      drop(plan);
      return client->answer(request, result);
    }
    reply_message reply;
    reply.body = prepared_body{plan->handle, wants_placement ? session->new_placements() : std::vector<placement_line>()}.encode();
    client->answer(request, std::move(reply));
  });
}

WEFT_DECL bool master::all_connected(const step_plan& plan) const {
  for (const plan_part& p : plan.parts) {
    if (p.task == own_.self) continue;
    const auto link = roads_.find(p.task);
    if (link == nullptr || link->incarnation() != p.incarnation) return false;
  }
  return true;
}

WEFT_DECL void master::run(const client_ptr& client, message m) {
  const run_message what = run_message::decode(m);
  if (!admit(client, what.request)) return;
  const auto session = session_of(client, what.session, what.request);
  if (session == nullptr) return;
  const auto found = plans_.find(what.handle);
  if (found == plans_.end() || found->second->session.lock() != session)
    return client->answer(what.request, status(error_code::not_found, "step " + std::to_string(what.handle) + " is not prepared any more"), reply_message::advice::prepare_again);
  const auto plan = found->second;
  plan->last_used = ++clock_;
  if (m.refused) return client->answer(what.request, status(error_code::resource_exhausted, "the feeds of the step do not fit into what may be received (server_options::received_bytes)"));
  if (const auto wrong = wrong_feeds(*plan, m.tensors)) return client->answer(what.request, *wrong);
  if (plan->ready && !plan->stale && all_connected(*plan)) return start(client, what, plan, std::move(m.tensors));

  // A task was lost since the last step: meet it again before anything is sent.
  plan->stale = true;
  const auto feeds = std::make_shared<std::vector<tensor_value>>(std::move(m.tensors));
  planner_.prepare(plan, [this, client, what, plan, feeds](const status& result) {
    const auto still = plan->session.lock();
    if (result.ok() && (still == nullptr || still->closed)) return client->answer(what.request, still == nullptr ? status(error_code::cancelled, "the session was closed") : still->closed_for);
    if (!result.ok()) return client->answer(what.request, result);
    start(client, what, plan, std::move(*feeds));
  });
}

WEFT_DECL void master::start(const client_ptr& client, const run_message& what, const std::shared_ptr<step_plan>& plan, std::vector<tensor_value> feeds) {
  if (!may_take_one(client->steps, steps_.size(), own_.options.max_steps))
    return client->answer(what.request, own_.no_more("leads", steps_.size(), "steps", client->steps, "client", "max_steps"));
  ++client->steps;
  server_counters::add(own_.counters->steps_begun);
  auto step = std::make_shared<master_step>();
  step->number = ++last_step_;
  step->plan = plan;
  step->client = client;
  step->request = what.request;
  step->trace = what.trace;
  if (step->trace) step->begun = std::chrono::steady_clock::now();
  step->fetches.resize(plan->signature.fetches.size());
  for (const plan_part& p : plan->parts) step->missing.insert(p.task);
  steps_.emplace(step->number, step);
  if (what.timeout > 0) {
    constexpr std::int64_t longest = std::int64_t{1000} * 3600 * 24 * 365;
    step->timeout = std::chrono::milliseconds(std::min(what.timeout, longest));
    watch(step, step->timeout, [this, step] {
      failed(step, status(error_code::deadline_exceeded, "the step took longer than " + std::to_string(step->timeout.count()) + " ms"));
    });
  }
  // The own part comes last: it may work on this thread.
  for (const plan_part& p : plan->parts)
    if (p.task != own_.self) send_part(step, p, feeds);
  for (const plan_part& p : plan->parts)
    if (p.task == own_.self) send_part(step, p, feeds);
  if (plan->parts.empty()) over(step);
}

WEFT_DECL void master::send_part(const step_ptr& step, const plan_part& to, const std::vector<tensor_value>& feeds) {
  std::vector<tensor_value> part_feeds;
  std::size_t bytes = 0;
  for (const std::size_t i : to.feeds) {
    part_feeds.push_back(feeds[i]);
    bytes += feeds[i].bytes();
  }
  run_part_message what{step->number, step->plan->registration, false, step->trace};
  if (to.task == own_.self)
    return here_.run_part(own_.incarnation, what, std::move(part_feeds), false, [this](part_done_message done, std::vector<tensor_value> fetches) {
      take_done(own_.self, done, std::move(fetches), false);
    });
  const auto link = roads_.find(to.task);
  if (link == nullptr) {
    failed(step, status(error_code::unavailable, "task " + own_.describe(to.task) + ": the connection was lost"));
    return part_over(step, to.task);
  }
  if (const auto full = own_.full_queue(to.task, link->queued_memory(), bytes)) {
    failed(step, *full);
    return part_over(step, to.task);
  }
  what.feeds_follow = bytes > own_.options.small_tensor_bytes;
  link->send(what.encode(what.feeds_follow ? std::vector<tensor_value>() : part_feeds));
  if (what.feeds_follow) link->send_bulk(encode_part_feeds(step->number, std::move(part_feeds)));
}

// Has `then` called after a time unless the step is over; replaces what was watched before.
WEFT_DECL void master::watch(const step_ptr& step, std::chrono::milliseconds time, std::function<void()> then) {
  step->timer = std::make_unique<asio::steady_timer>(own_.io, time);
  step->timer->async_wait([this, weak = std::weak_ptr<master_step>(step), then = std::move(then)](const std::error_code& stopped) {
    const auto here = weak.lock();
    if (!stopped && here && steps_.count(here->number) != 0) then();
  });
}

WEFT_DECL void master::take_done(const task_id& from, const part_done_message& what, std::vector<tensor_value> fetches, bool refused) {
  const auto it = steps_.find(what.step);
  if (it == steps_.end()) return;
  const step_ptr step = it->second;
  if (step->missing.count(from) == 0) {
    // A large tensor that waited for its receiver may fail when the rest of the part is over.
    const bool has_part = std::any_of(step->plan->parts.begin(), step->plan->parts.end(), [&](const plan_part& p) { return p.task == from; });
    return has_part && !what.finished && !what.result.ok() ? failed(step, what.result) : void();
  }
  status result = what.result;
  if (result.ok() && refused) result = status(error_code::resource_exhausted, "the fetches from " + to_text(from) + " do not fit into what may be received (server_options::received_bytes)");
  if (result.ok()) step->take_trace(from, what.took, fetches);
  if (result.ok()) {
    result = what.finished ? step->take_fetches(from, std::move(fetches)) : status(error_code::internal, "says that its part of the step goes on, without an error");
    if (!result.ok()) result.message = "task " + own_.describe(from) + " " + result.message;
  }
  if (!result.ok()) failed(step, own_.located(result, from));
  if (what.finished) part_over(step, from);
}

WEFT_DECL void master::part_over(const step_ptr& step, const task_id& task) {
  step->missing.erase(task);
  if (step->missing.empty()) over(step);
}

// The first error ends the step everywhere; a root error takes the place of one that only follows from another.
WEFT_DECL void master::failed(const step_ptr& step, const status& why) {
  if (step->problem) {
    if (step->problem->derived && !why.derived) step->problem = why;
    return;
  }
  step->problem = why;
  watch(step, own_.options.abort_grace, [this, step] { over(step); });
  const abort_part_message order{step->number, why};
  const message encoded = order.encode();
  for (const plan_part& p : step->plan->parts)
    if (p.task != own_.self)
      if (const auto link = roads_.find(p.task)) link->send(encoded);
  here_.abort_part(own_.incarnation, order);
}

// Tells the client, once.
WEFT_DECL void master::over(const step_ptr& step) {
  if (steps_.erase(step->number) == 0) return;
  --step->client->steps;
  step->timer = nullptr;
  server_counters::add(own_.counters->steps_ended);
  if (step->problem) server_counters::add(own_.counters->steps_failed);
  reply_message reply;
  if (step->problem) {
    reply.result = *step->problem;
    reply.result.derived = false;
    reply.result.may_have_run = true;
    const error_code code = reply.result.code;
    if (code == error_code::unavailable || code == error_code::aborted) step->plan->stale = true;
  } else {
    reply.tensors = std::move(step->fetches);
    if (step->trace) reply.body = encode_traces(step->number, step->traces, reply.tensors);
  }
  step->client->answer(step->request, std::move(reply));
}

WEFT_DECL void master::lost(const task_id& task, const status& why) {
  planner_.lost(task, why);
  for (const auto& entry : plans_)
    for (const plan_part& p : entry.second->parts)
      if (p.task == task) entry.second->stale = true;
  const auto steps = steps_;
  for (const auto& entry : steps) {
    const step_ptr& step = entry.second;
    if (step->missing.count(task) == 0) continue;
    failed(step, why);
    ask_for(task, step);
  }
}

// Why a task was lost: if it answers and is a new one, it was restarted. The answer to the client waits for this, within the grace.
WEFT_DECL void master::ask_for(const task_id& task, const step_ptr& step) {
  std::uint64_t before = 0;
  for (const plan_part& p : step->plan->parts)
    if (p.task == task) before = p.incarnation;
  const auto session = step->plan->session.lock();
  // The loss is reported with this step, so the session's next one takes the task as it is.
  if (session != nullptr) session->incarnations.erase(task);
  roads_.open(task, [this, task, step, before](const status& result, const std::shared_ptr<peer_link>& link) {
    if (result.ok() && link->incarnation() != before && step->problem && step->problem->code == error_code::unavailable) step->problem = restarted(own_, task);
    part_over(step, task);
  });
}

WEFT_DECL void master::stop(const status& why) {
  planner_.stop(why);
  waits_.cancel(why);
  const auto steps = steps_;
  for (const auto& entry : steps) {
    failed(entry.second, why);
    over(entry.second);
  }
}

#endif

}  // namespace weft::detail

#endif
