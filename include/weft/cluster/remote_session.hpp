#ifndef WEFT_CLUSTER_REMOTE_SESSION_HPP
#define WEFT_CLUSTER_REMOTE_SESSION_HPP
// The client's half of a session on a cluster: sends the graph once and each step as one message, and adds the user's lines to what comes back.

#include <weft/cluster/client_channel.hpp>
#include <weft/cluster/cluster_reset.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/cluster/partition_codec.hpp>
#include <weft/cluster/step_trace_codec.hpp>
#include <weft/cluster/tell_cluster.hpp>
#include <weft/core/bounded_wait.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/placement/placer.hpp>
#include <weft/session/placement_log.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/session/signature_cache.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// Ends the sessions of a server and clears containers of its cluster's tasks.
void reset_remote(const host_port& to, const std::vector<std::string>& containers, const session_options& options);

/// Opens a session at a server. Throws UNAVAILABLE or DEADLINE_EXCEEDED when it cannot be reached.
std::unique_ptr<session_interface> open_remote_session(const host_port& to, const session_options& options, const graph& g);

}  // namespace weft::detail

#if WEFT_HAS_CLUSTER_BODIES

namespace weft::detail {

/// One connection's share of a session: what the master behind it knows.
struct remote_link {
  remote_link(const host_port& to, const session_options& options) : channel(to, options.connect_timeout, options.heartbeat, connection(options)) {}
  static connection_options connection(const session_options& options) {
    connection_options out;
    out.spin_time = options.spin_time;
    out.transport = options.transport;
    out.limits = options.frames;
    out.max_first_head = std::min(options.frames.max_head, 16U << 20);
    out.budget = std::make_shared<receive_budget>(options.received_bytes);
    return out;
  }
  client_channel channel;
  /// Guards what follows, and keeps the order of the messages that carry nodes.
  std::mutex mutex;
  std::uint64_t session = 0;
  std::size_t sent_nodes = 0;
};

/// What the session and its prepared steps share.
class remote_runtime : public std::enable_shared_from_this<remote_runtime> {
 public:
  using clock = client_channel::clock;

  remote_runtime(host_port to, session_options options, const graph& g)
      : to_(std::move(to)), options_(std::move(options)), graph_(g.state()), link_(std::make_shared<remote_link>(to_, options_)), incarnation_(link_->channel.incarnation()),
        leader_(link_->channel.peer().task) {}

  const weft::graph& graph() const noexcept { return graph_; }
  const session_options& options() const noexcept { return options_; }
  /// The connection to use now: the one there is, or a new one. Throws ABORTED once when the server was restarted.
  std::shared_ptr<remote_link> link();
  /// Has the master prepare a step; its number there.
  std::uint64_t prepare(const std::shared_ptr<remote_link>& to, const step_signature& signature);
  /// One request with its answer. Throws the answer's error, completed with call sites; a lost connection is forgotten.
  reply_message ask(const std::shared_ptr<remote_link>& link, std::uint32_t request, message m, std::optional<clock::time_point> deadline, bool runs);
  std::vector<device> list_devices();
  /// Asks `wait_for_tasks` or `count_tasks`; what is answered.
  reply_message ask_about_tasks(message_type type, std::chrono::milliseconds time);
  task_count count_tasks(std::chrono::milliseconds within);
  void update_cluster(const cluster_spec& next);
  /// What really runs for a signature.
  partitioned_graph partitions(const step_signature& signature);
  void close();
  [[noreturn]] void fail_with(status s) const;
  clock::time_point protocol_deadline() const { return clock::now() + 2 * bounded(options_.connect_timeout); }

 private:
  void open(const std::shared_ptr<remote_link>& to);
  std::uint64_t session_at(const std::shared_ptr<remote_link>& to);
  std::vector<device> ask_devices(const std::shared_ptr<remote_link>& to, std::uint64_t session);
  void place_new(remote_link& link);
  std::string reason_of(const node& n, const std::string& said) const;
  bool forget(const std::shared_ptr<remote_link>& link);
  void log_placement(const std::vector<placement_line>& lines) const;
  numbered_signature number(const step_signature& signature) const;

  const host_port to_;
  const session_options options_;
  const weft::graph graph_;
  std::mutex mutex_;
  std::shared_ptr<remote_link> link_;
  // With a placer of one's own, nodes are placed here and sent with their devices. Guarded by a lock of its own; a placement only grows.
  mutable std::mutex placing_;
  device_set devices_;
  placement placement_;
  // The start of the server that this session's state depends on; nothing after a loss that was reported.
  std::optional<std::uint64_t> incarnation_;
  bool closed_ = false;
  // The task that leads, and why it cannot any more; ok while it can.
  task_id leader_;
  status moved_;

  std::unique_ptr<client_channel> open_channel(const host_port& to) const { return std::make_unique<client_channel>(to, options_.connect_timeout, options_.heartbeat, remote_link::connection(options_)); }
  void check_leader(const cluster_spec& next, const std::vector<told_task>& told);
};

/// The status with the user's line of its node.
inline status with_site(status s, const graph& g) {
  if (!s.node.empty() && s.site.empty())
    if (const node* n = g.find(s.node)) s.site = n->site().text();
  return s;
}

inline void remote_runtime::fail_with(status s) const { throw error(with_site(std::move(s), graph_)); }

inline std::shared_ptr<remote_link> remote_runtime::link() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) fail(error_code::failed_precondition, "the session is closed");
  if (!moved_.ok()) throw error(moved_);
  if (link_ != nullptr) {
    try {
      link_->channel.check_alive();
      return link_;
    } catch (const error&) {
      link_ = nullptr;
    }
  }
  link_ = std::make_shared<remote_link>(to_, options_);
  const auto known = std::exchange(incarnation_, link_->channel.incarnation());
  if (known && *known != link_->channel.incarnation())
    fail(error_code::aborted, "task " + link_->channel.describe() + " was restarted; what it kept (variables, queues) is lost, the next run starts with it anew");
  return link_;
}

// Forgets a lost connection; false when the session was closed, which is why.
inline bool remote_runtime::forget(const std::shared_ptr<remote_link>& link) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (link_ == link) {
    link_ = nullptr;
    incarnation_.reset();
  }
  return !closed_;
}

inline reply_message remote_runtime::ask(const std::shared_ptr<remote_link>& link, std::uint32_t request, message m, std::optional<clock::time_point> deadline, bool runs) {
  try {
    return link->channel.call(request, std::move(m), deadline);
  } catch (const error& e) {
    if (e.code() == error_code::invalid_argument && !link->channel.lost()) throw;  // the message could not be sent
    status s = forget(link) ? e.status() : status(error_code::cancelled, "the session was closed");
    s.may_have_run = runs;
    throw error(std::move(s));
  }
}

inline numbered_signature remote_runtime::number(const step_signature& signature) const {
  const auto number_of = [](const output& o) { return output_number{static_cast<std::uint32_t>(o.from->id()), static_cast<std::uint32_t>(o.index)}; };
  numbered_signature out;
  for (const output& o : signature.feeds) out.feeds.push_back(number_of(o));
  for (const output& o : signature.fetches) out.fetches.push_back(number_of(o));
  for (const node* n : signature.targets) out.targets.push_back(static_cast<std::uint32_t>(n->id()));
  return out;
}

// The link's lock is held.
inline void remote_runtime::open(const std::shared_ptr<remote_link>& to) {
  remote_link& link = *to;
  open_session_message what;
  what.request = link.channel.new_request();
  what.allow_soft_placement = options_.allow_soft_placement;
  what.passes = options_.optimizer;
  what.device_filters = options_.device_filters;
  const reply_message reply = ask(to, what.request, what.encode(), protocol_deadline(), false);
  if (!reply.result.ok()) fail_with(reply.result);
  wire_reader body(reply.body, "number of the session");
  const std::uint64_t number = body.u64();
  if (options_.placer != nullptr) {
    std::vector<device> found;
    try {
      found = ask_devices(to, number);
    } catch (const error&) {
      session_request unused;
      unused.request = link.channel.new_request();
      unused.session = number;
      link.channel.tell(unused.encode(message_type::close_session));
      throw;
    }
    const std::lock_guard<std::mutex> lock(placing_);
    devices_ = device_set();
    for (const device& d : found) devices_.add(d);
    for (const std::string& task : devices_.tasks()) devices_.set_catalogue(task, link.channel.peer().kernels);
  }
  link.session = number;
  link.sent_nodes = 0;
}

inline std::vector<device> remote_runtime::ask_devices(const std::shared_ptr<remote_link>& to, std::uint64_t session) {
  session_request what;
  what.session = session;
  what.request = to->channel.new_request();
  const reply_message reply = ask(to, what.request, what.encode(message_type::list_devices), protocol_deadline(), false);
  if (!reply.result.ok()) fail_with(reply.result);
  wire_reader body(reply.body, "devices");
  return decode_devices(body);
}

// Places nodes that are new since the last time, as a local session does. The kernels of the server's own task count for those of all.
inline void remote_runtime::place_new(remote_link& link) {
  const std::lock_guard<std::mutex> lock(placing_);
  if (options_.placer == nullptr || placement_.size() == graph_.size()) return;
  const placement earlier = placement_;
  placement_options options;
  options.default_task = to_text(link.channel.peer().task);
  options.allow_soft_placement = options_.allow_soft_placement;
  options.placer = options_.placer;
  if (!options_.device_filters.empty()) options.filtered_by = "session_options::device_filters";
  options.earlier = &earlier;
  placement_ = place(graph_, devices_, options);
}

inline std::uint64_t remote_runtime::prepare(const std::shared_ptr<remote_link>& to, const step_signature& signature) {
  remote_link& link = *to;
  const std::lock_guard<std::mutex> lock(link.mutex);
  if (link.session == 0) open(to);
  prepare_message what;
  what.request = link.channel.new_request();
  what.session = link.session;
  what.signature = number(signature);
  what.wants_placement = options_.log_device_placement;
  const std::vector<const node*> nodes = graph_.nodes();
  place_new(link);
  message m = [&] {
    const std::lock_guard<std::mutex> placing(placing_);
    return what.encode(nodes, link.sent_nodes, options_.placer == nullptr ? nullptr : &placement_);
  }();
  link.sent_nodes = nodes.size();
  // The graph goes to its master, and from there to its tasks.
  const auto deadline = protocol_deadline() + 2 * time_to_carry(m);
  const reply_message reply = ask(to, what.request, std::move(m), deadline, false);
  if (reply.then == reply_message::advice::open_again) link.session = 0;
  if (!reply.result.ok()) fail_with(reply.result);
  const prepared_body body = prepared_body::decode(reply.body);
  log_placement(body.placed);
  return body.handle;
}

// The server knows devices and reasons, the client the lines of the program.
inline void remote_runtime::log_placement(const std::vector<placement_line>& lines) const {
  if (lines.empty()) return;
  const std::vector<const node*> nodes = graph_.nodes();
  for (const placement_line& each : lines) {
    if (each.node >= nodes.size()) continue;
    const node& n = *nodes[each.node];
    detail::log_placement(n, {each.device, reason_of(n, each.reason)}, options_.log);
  }
}

// The server's reason with the user's line, or this session's own.
inline std::string remote_runtime::reason_of(const node& n, const std::string& said) const {
  const std::lock_guard<std::mutex> lock(placing_);
  if (placement_.has(n)) return placement_.reason_of(n);
  return said == "pinned" && n.site().known() ? "pinned at " + n.site().text() : said;
}

// The session's number at a master, which knows its filters then.
inline std::uint64_t remote_runtime::session_at(const std::shared_ptr<remote_link>& to) {
  const std::lock_guard<std::mutex> lock(to->mutex);
  if (to->session == 0) open(to);
  return to->session;
}

inline reply_message remote_runtime::ask_about_tasks(message_type type, std::chrono::milliseconds time) {
  const auto to = link();
  session_request what;
  what.session = session_at(to);
  what.request = to->channel.new_request();
  what.handle = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
  const auto longest = std::min<std::chrono::milliseconds>(time, std::chrono::hours(24 * 365));
  reply_message reply = ask(to, what.request, what.encode(type), protocol_deadline() + longest, false);
  if (!reply.result.ok()) fail_with(reply.result);
  return reply;
}

inline task_count remote_runtime::count_tasks(std::chrono::milliseconds within) {
  const reply_message reply = ask_about_tasks(message_type::count_tasks, within);
  wire_reader body(reply.body, "number of tasks");
  task_count out;
  out.alive = static_cast<std::size_t>(body.u64());
  out.all = static_cast<std::size_t>(body.u64());
  return out;
}

// Each task is told by this client itself: between tasks that know different clusters no message could pass.
inline void remote_runtime::update_cluster(const cluster_spec& next) {
  const std::vector<told_task> told = tell_cluster(next, [this](const host_port& to) { return open_channel(to); }, 2 * bounded(options_.connect_timeout));
  const std::vector<task_id> tasks = next.tasks();
  std::string missed;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (!told[i].result.ok()) missed += (missed.empty() ? "" : "; ") + to_text(tasks[i]) + ": " + told[i].result.message;
  if (!missed.empty()) fail(error_code::unavailable, "these tasks do not know the new cluster: " + missed);
  check_leader(next, told);
}

// A session stays with the server that it was opened at. If its task is another server's now, this says so, and so does every later use.
inline void remote_runtime::check_leader(const cluster_spec& next, const std::vector<told_task>& told) {
  const std::vector<task_id> tasks = next.tasks();
  const auto at = std::find(tasks.begin(), tasks.end(), leader_);
  if (at != tasks.end()) {
    if (next.task_address(leader_) == to_text(to_)) return;
    // The same server may be known by several addresses.
    try {
      if (open_channel(to_)->incarnation() == told[static_cast<std::size_t>(at - tasks.begin())].incarnation) return;
    } catch (const error&) {
      // Nobody is where the session was opened.
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  moved_ = status(error_code::failed_precondition, "every task knows the new cluster, but " + to_text(leader_) + ", which led this session at " + to_text(to_) +
                                                       (at == tasks.end() ? ", is not part of it; open a new session at another task" : ", is now at " + next.task_address(leader_) + "; open a new session with the target 'weft://" + next.task_address(leader_) + "'"));
  link_ = nullptr;
  throw error(moved_);
}

inline std::vector<device> remote_runtime::list_devices() {
  const auto to = link();
  return ask_devices(to, session_at(to));
}

inline partitioned_graph remote_runtime::partitions(const step_signature& signature) {
  const auto to = link();
  session_request what;
  what.handle = prepare(to, signature);
  what.session = to->session;
  what.request = to->channel.new_request();
  const reply_message reply = ask(to, what.request, what.encode(message_type::describe), protocol_deadline(), false);
  if (!reply.result.ok()) fail_with(reply.result);
  wire_reader body(reply.body, "partitions");
  partitioned_graph all = decode_partitions(body, reply.tensors, graph_.ops());
  const std::lock_guard<std::mutex> lock(placing_);
  if (options_.placer == nullptr) return all;
  // Nodes were sent as if pinned; the reasons are this session's own.
  std::vector<transfer> edges(all.transfers().begin(), all.transfers().end()), feeds = all.transfers().feeds();
  for (auto* rows : {&edges, &feeds})
    for (transfer& t : *rows)
      if (const node* reader = t.consumers.empty() ? nullptr : graph_.find(std::string_view(t.consumers[0]).substr(t.consumers[0][0] == '^' ? 1 : 0)); reader != nullptr && placement_.has(*reader))
        t.reason = "'" + reader->name() + "' is " + placement_.reason_of(*reader);
  return partitioned_graph(all.parts(), transfer_table(std::move(edges), std::move(feeds), all.transfers().fetches()), placement_);
}

inline void remote_runtime::close() {
  std::shared_ptr<remote_link> last;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    last = std::exchange(link_, nullptr);
  }
  if (last == nullptr) return;
  try {
    session_request what;
    what.request = last->channel.new_request();
    what.session = last->session;
    if (last->session != 0) (void)last->channel.call(what.request, what.encode(message_type::close_session), clock::now() + bounded(options_.connect_timeout));
  } catch (const error&) {
    // The server is gone, and the session with it.
  }
  last->channel.shutdown();
}

/// A step whose number at the master is remembered as long as the connection lives.
class remote_step final : public prepared_step {
 public:
  remote_step(std::shared_ptr<remote_runtime> runtime, step_signature signature) : runtime_(std::move(runtime)), signature_(std::move(signature)) {}

  WEFT_INLINE void run(tensor_value* feeds, tensor_value* fetches, const run_options& options) override;
  /// Prepares it on the present connection.
  void prepare() { (void)place(); }

 private:
  struct known_place {
    std::shared_ptr<remote_link> link;
    std::uint64_t handle = 0, session = 0;
  };
  known_place place();

  std::shared_ptr<remote_runtime> runtime_;
  const step_signature signature_;
  std::mutex mutex_;
  known_place known_;
};

inline remote_step::known_place remote_step::place() {
  const auto link = runtime_->link();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (known_.link == link && known_.handle != 0) return known_;
  known_ = {link, 0, 0};
  known_.handle = runtime_->prepare(link, signature_);
  known_.session = link->session;
  return known_;
}

inline void remote_step::run(tensor_value* feeds, tensor_value* fetches, const run_options& options) {
  const std::vector<tensor_value> values(feeds, feeds + signature_.feeds.size());
  // A master that has dropped the prepared step says so before anything has run; then it is prepared again.
  for (int attempt = 0;; ++attempt) {
    const known_place at = place();
    run_message what;
    what.request = at.link->channel.new_request();
    what.session = at.session;
    what.handle = at.handle;
    what.timeout = std::max<std::int64_t>(options.timeout.count(), 0);
    what.trace = options.trace != nullptr;
    std::optional<remote_runtime::clock::time_point> deadline;
    if (options.timeout.count() > 0) deadline = remote_runtime::clock::now() + bounded(options.timeout) + 2 * bounded(runtime_->options().abort_grace) + bounded(runtime_->options().connect_timeout);
    reply_message reply = runtime_->ask(at.link, what.request, what.encode(values), deadline, true);
    if (reply.result.ok()) {
      if (options.trace != nullptr) *options.trace = decode_traces(reply.body, reply.tensors);
      if (reply.tensors.size() != signature_.fetches.size()) fail(error_code::internal, "the server returned " + std::to_string(reply.tensors.size()) + " values, expected " + std::to_string(signature_.fetches.size()));
      std::move(reply.tensors.begin(), reply.tensors.end(), fetches);
      return;
    }
    if (reply.then == reply_message::advice::none || attempt > 0) runtime_->fail_with(reply.result);
    const std::lock_guard<std::mutex> lock(mutex_);
    known_ = {};
  }
}

/// The session as its user holds it.
class remote_session final : public session_interface {
 public:
  remote_session(const host_port& to, const session_options& options, const weft::graph& g)
      : runtime_(std::make_shared<remote_runtime>(to, options, g)), steps_(options.prepared_signatures) {}
  ~remote_session() override { runtime_->close(); }

  const weft::graph& graph() const override { return runtime_->graph(); }
  std::shared_ptr<prepared_step> prepare(const step_signature& signature) override {
    return steps_.find_or_make(signature, [this](const step_signature& s) {
      auto step = std::make_shared<remote_step>(runtime_, s);
      step->prepare();
      return std::static_pointer_cast<prepared_step>(step);
    });
  }
  partitioned_graph partitions(const step_signature& signature) override { return runtime_->partitions(signature); }
  std::vector<device> list_devices() override { return runtime_->list_devices(); }
  void wait_for_tasks(std::chrono::milliseconds time) override { (void)runtime_->ask_about_tasks(message_type::wait_for_tasks, time); }
  task_count count_tasks(std::chrono::milliseconds within) override { return runtime_->count_tasks(within); }
  void update_cluster(const cluster_spec& next) override { runtime_->update_cluster(next); }
  void close() override { runtime_->close(); }

 private:
  std::shared_ptr<remote_runtime> runtime_;
  signature_cache<prepared_step> steps_;
};

// What a server decides for itself is not passed over in silence.
WEFT_DECL void refuse_local_options(const host_port& to, const session_options& options) {
  const char* given = options.devices != std::map<std::string, int>{{"CPU", 1}} ? "devices" : !options.cluster.empty() ? "cluster" : options.kernels ? "kernels" : options.kernel_threads != 0 ? "kernel_threads" : nullptr;
  if (given == nullptr) return;
  fail(error_code::invalid_argument, std::string("session_options::") + given + " is for sessions in this process, the server at weft://" + to_text(to) + " has its own" +
                                         (!options.cluster.empty() && given == std::string_view("cluster") ? "; leave it empty" : std::string("; set server_options::") + given + " where it starts"));
}

WEFT_DECL void reset_remote(const host_port& to, const std::vector<std::string>& containers, const session_options& options) {
  client_channel channel(to, options.connect_timeout, options.heartbeat, remote_link::connection(options));
  const std::uint32_t request = channel.new_request();
  const reply_message reply = channel.call(request, reset_message{request, containers}.encode(message_type::reset), client_channel::clock::now() + 3 * bounded(options.connect_timeout));
  if (!reply.result.ok()) throw error(reply.result);
}

WEFT_DECL std::unique_ptr<session_interface> open_remote_session(const host_port& to, const session_options& options, const graph& g) {
  refuse_local_options(to, options);
  return std::make_unique<remote_session>(to, options, g);
}

}  // namespace weft::detail

#endif
#endif
